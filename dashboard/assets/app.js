// What the pages do beyond plain links and forms: keys, the live pill, and rows that hold still
// under the pointer. Everything works without it.
(() => {
  "use strict";
  const $ = (selector) => document.querySelector(selector);
  const clock = (date) => date.toISOString().slice(11, 19);

  // ---- Live pill: live, reconnecting since, paused, signed out ----
  const pill = $("#pill");
  const pillText = $("#pill-text");
  let paused = false;
  let lostAt = null;
  let retry = null;
  // A stream that says nothing for so long is not live, whatever the connection thinks: figures
  // come each second.
  const SILENCE_MS = 6000;
  let heardAt = Date.now();

  const show = (state, text) => {
    if (!pill || (pill.dataset.state === state && pillText.textContent === text)) return;
    pill.hidden = false;
    pill.dataset.state = state;
    pillText.textContent = text;
    pill.title = state === "paused" ? "Resume live figures (p)" : "Pause live figures (p)";
    document.body.classList.toggle("stale", state === "lost" || state === "out");
    document.body.classList.toggle("held", state === "paused");
  };

  const live = () => {
    lostAt = null;
    heardAt = Date.now();
    if (!paused) show("live", "live");
  };

  const lost = (status) => {
    if (paused) return;
    if (status === 401) {
      show("out", "signed out");
      replace();
      return;
    }
    lostAt ??= new Date();
    show("lost", `reconnecting since ${clock(lostAt)}`);
  };

  // The element that holds the stream is replaced: a stream ends with its element. What takes its
  // place keeps the address, and opens nothing by itself.
  const replace = () => {
    const old = $("[data-live]");
    if (!old) return null;
    const next = document.createElement("div");
    next.id = old.id;
    next.hidden = true;
    next.dataset.live = old.getAttribute("hx-sse:connect") || old.dataset.live;
    old.replaceWith(next);
    return next;
  };

  const restart = () => {
    const fresh = replace();
    if (!fresh) return;
    fresh.setAttribute("hx-sse:connect", fresh.dataset.live);
    fresh.setAttribute("hx-swap", "none");
    window.htmx.process(fresh);
  };

  const toggle = () => {
    if (!$("[data-live]")) return;
    if (pill.dataset.state === "out") {
      location.href = `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
      return;
    }
    paused = !paused;
    if (paused) {
      clearTimeout(retry);
      replace();
      show("paused", `paused at ${clock(new Date())}`);
    } else {
      show("wait", "connecting");
      restart();
    }
  };

  if (pill && $("[data-live]")) {
    show("wait", "connecting");
    pill.addEventListener("click", toggle);
    setInterval(() => {
      if (!paused && pill.dataset.state === "live" && !document.hidden && Date.now() - heardAt > SILENCE_MS) lost();
    }, 1000);
    document.addEventListener("visibilitychange", () => { heardAt = Date.now(); });
  }

  const isLive = (event) => event.target?.dataset?.live !== undefined;
  document.addEventListener("htmx:sse:after:connection", (event) => {
    if (isLive(event) && event.detail.connection?.status < 400) live();
  });
  document.addEventListener("htmx:sse:after:message", (event) => { if (isLive(event)) live(); });
  document.addEventListener("htmx:sse:error", (event) => {
    if (isLive(event)) lost(event.detail.status);
  });
  document.addEventListener("htmx:sse:before:connection", (event) => {
    if (isLive(event) && event.detail.connection?.attempt > 0 && !document.hidden) lost();
  });
  // The first connection failed, or its answer was none: the extension only mends streams that once
  // stood, so we begin anew.
  const again = (event) => {
    if (!isLive(event) || paused) return;
    const status = event.detail?.ctx?.response?.raw?.status;
    if (status >= 200 && status < 300) return;
    lost(status);
    clearTimeout(retry);
    if (status !== 401) retry = setTimeout(restart, 1500);
  };
  document.addEventListener("htmx:error", again);
  document.addEventListener("htmx:response:error", again);

  // ---- Rows hold still under the pointer ----
  // A new order of rows waits until the pointer has left the table; figures go on changing.
  let waiting = false;
  document.addEventListener("htmx:before:swap", (event) => {
    if (!isLive(event)) return;
    const tasks = event.detail.tasks;
    const table = $("#fleet-table");
    if (!tasks || !table?.matches(":hover")) return;
    for (let i = tasks.length - 1; i >= 0; i--) {
      if (tasks[i].target?.id === "fleet") {
        tasks.splice(i, 1);
        waiting = true;
      }
    }
  });
  document.addEventListener("pointerout", (event) => {
    if (!waiting || $("#fleet-table")?.contains(event.relatedTarget)) return;
    waiting = false;
    restart();
  });

  // ---- The filter's words go into the address ----
  document.addEventListener("htmx:after:swap", (event) => {
    const form = event.target;
    if (form?.id !== "filter") return;
    const words = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...words]) if (!value) words.delete(name);
    const query = words.toString();
    history.replaceState(null, "", form.getAttribute("action") + (query ? `?${query}` : ""));
  });

  // ---- Keys ----
  const keys = $("#keys");
  const pages = { o: "/", a: "/agents", l: "/alerts", r: "/record", k: "/kill" };
  let afterG = 0;
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && typing) {
      typing.blur();
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (keys?.open) return;
    if (Date.now() - afterG < 1500 && pages[event.key]) {
      event.preventDefault();
      location.href = pages[event.key];
      return;
    }
    afterG = event.key === "g" ? Date.now() : 0;
    if (event.key === "/") {
      const field = $("[data-focus]");
      if (field) {
        event.preventDefault();
        field.focus();
        field.select?.();
      }
    } else if (event.key === "?") {
      event.preventDefault();
      keys?.showModal();
    } else if (event.key === "p") {
      toggle();
    }
  });
})();
