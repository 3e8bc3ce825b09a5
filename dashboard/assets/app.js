// What the pages do beyond plain links and forms: keys, the live pill, times and colours somebody
// chose, and rows that hold still under the pointer. Everything works without it.
(() => {
  "use strict";
  const $ = (selector) => document.querySelector(selector);
  const clock = (date) => date.toISOString().slice(11, 19);
  const kept = {
    get(name) { try { return localStorage.getItem(`hedgerow-${name}`); } catch { return null; } },
    set(name, value) { try { localStorage.setItem(`hedgerow-${name}`, value); } catch { /* for this page only */ } },
  };

  // ---- Live pill: live, reconnecting since, paused, signed out, gone ----
  const pill = $("#pill");
  const pillText = $("#pill-text");
  const note = $("#stalenote");
  let paused = false;
  let gone = null;
  let lostAt = null;
  let retry = null;
  // A stream that says nothing for so long is not live, whatever the connection thinks: figures
  // come each second.
  const SILENCE_MS = 6000;
  let heardAt = Date.now();

  // What is shown is as old as the foot says.
  const figuresOf = () => {
    const time = $("#controller time");
    return time ? `Figures as of ${clock(new Date(time.dateTime))} UTC.` : "";
  };
  const say = (text) => {
    if (!note || note.textContent === text) return;
    note.textContent = text;
    note.hidden = !text;
  };

  const show = (state, text) => {
    if (!pill || (pill.dataset.state === state && pillText.textContent === text)) return;
    pill.hidden = false;
    pill.dataset.state = state;
    pillText.textContent = text;
    pill.title = state === "paused" ? "Resume live figures (p)" : "Pause live figures (p)";
    const stale = state === "lost" || state === "out" || state === "gone";
    document.body.classList.toggle("stale", stale);
    document.body.classList.toggle("held", state === "paused");
    if (gone) say(`${gone}. ${figuresOf()}`);
    else if (state === "lost") say(`The controller does not answer; trying again. ${figuresOf()}`);
    else if (state === "out") say(`Signed out. ${figuresOf()}`);
    else if (state === "paused") say(`Paused. ${figuresOf()}`);
    else say("");
  };

  const live = () => {
    lostAt = null;
    heardAt = Date.now();
    if (!paused && !gone) show("live", "live");
  };

  const lost = (status) => {
    if (paused || gone) return;
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

  // What the page is about is no longer there: nothing more will come, and nothing is asked for.
  const over = (words) => {
    clearTimeout(retry);
    gone = words || "What this page is about is gone";
    replace();
    show("gone", "gone");
  };

  const toggle = () => {
    if (!$("[data-live]") || gone) return;
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
    if (!isLive(event)) return;
    const status = event.detail.connection?.status;
    if (status === 204) over();
    else if (status < 400) live();
  });
  document.addEventListener("htmx:sse:after:message", (event) => { if (isLive(event)) live(); });
  document.addEventListener("gone", (event) => { if (isLive(event)) over(event.detail?.data); });
  document.addEventListener("htmx:sse:error", (event) => {
    if (isLive(event)) lost(event.detail.status);
  });
  document.addEventListener("htmx:sse:before:connection", (event) => {
    if (isLive(event) && event.detail.connection?.attempt > 0 && !document.hidden) lost();
  });
  // The first connection failed, or its answer was none: the extension only mends streams that once
  // stood, so we begin anew.
  const again = (event) => {
    if (!isLive(event) || paused || gone) return;
    const status = event.detail?.ctx?.response?.raw?.status;
    if (status === 204) {
      over();
      return;
    }
    if (status >= 200 && status < 300) return;
    lost(status);
    clearTimeout(retry);
    if (status !== 401) retry = setTimeout(restart, 1500);
  };
  document.addEventListener("htmx:error", again);
  document.addEventListener("htmx:response:error", again);

  // Each message is a piece of work of its own: in between, the page may draw and answer keys.
  document.addEventListener("htmx:sse:before:message", (event) => {
    if (isLive(event)) event.detail.waitUntil(new Promise((resolve) => setTimeout(resolve)));
  });

  // ---- Rows: places for new ones, and their order, which waits while the pointer is over them ----
  let waiting = false;
  const arrange = () => {
    const body = $("#rows");
    const order = $("#order");
    if (!order) return;
    const ids = order.textContent.trim().split(/\s+/).filter(Boolean);
    if (!body) {
      // The start page was open, and there is a fleet now.
      if (ids.length) location.reload();
      return;
    }
    for (const id of ids) {
      if (document.getElementById(id)) continue;
      const row = document.createElement("tr");
      row.id = id;
      body.append(row);
    }
    if ($("#fleet-table")?.matches(":hover")) {
      waiting = true;
      return;
    }
    waiting = false;
    const wanted = new Set(ids);
    for (const row of [...body.children]) if (!wanted.has(row.id)) row.remove();
    // Only what is out of place is moved: focus in a row that stays where it is stays too.
    let next = body.firstElementChild;
    for (const id of ids) {
      const row = document.getElementById(id);
      if (row === next) next = next.nextElementSibling;
      else if (row) body.insertBefore(row, next);
    }
  };
  document.addEventListener("htmx:before:swap", (event) => {
    if (!isLive(event)) return;
    const tasks = event.detail.tasks;
    if (!tasks || !$("#fleet-table")?.matches(":hover")) return;
    // The whole table would move its rows: it is asked for again once the pointer has left.
    for (let i = tasks.length - 1; i >= 0; i--) {
      if (tasks[i].target?.id === "fleet") {
        tasks.splice(i, 1);
        waiting = "whole";
      }
    }
  });
  document.addEventListener("pointerout", (event) => {
    if (!waiting || $("#fleet-table")?.contains(event.relatedTarget)) return;
    if (waiting === "whole") {
      waiting = false;
      restart();
    } else {
      arrange();
    }
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

  // ---- Times: UTC, local or relative; the record is always in UTC ----
  let times = kept.get("times") ?? "utc";
  const two = (n) => String(n).padStart(2, "0");
  const local = (date, withDay) => {
    const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
    return withDay ? `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}` : time;
  };
  const relative = (date) => {
    const s = Math.round((Date.now() - date) / 1000);
    const far = Math.abs(s);
    const [n, unit] = far < 60 ? [far, "s"] : far < 3600 ? [Math.round(far / 60), "min"]
      : far < 86400 ? [Math.round(far / 3600), "h"] : [Math.round(far / 86400), "d"];
    return s < 0 ? `in ${n} ${unit}` : `${n} ${unit} ago`;
  };
  const writeTimes = () => {
    for (const time of document.querySelectorAll("main time[title]:not(.abs), #kills time, #controller time")) {
      time.dataset.utc ??= time.textContent;
      const date = new Date(time.dateTime);
      const text = times === "local" ? local(date, time.dataset.utc.length > 10)
        : times === "relative" ? relative(date) : time.dataset.utc;
      if (time.textContent !== text) time.textContent = text;
    }
  };
  const applyTimes = () => { if (times !== "utc") writeTimes(); };
  document.addEventListener("htmx:after:swap", () => { arrangeIfNeeded(); applyTimes(); });
  setInterval(() => { if (times === "relative" && !document.hidden) writeTimes(); }, 5000);

  let arranged = "";
  const arrangeIfNeeded = () => {
    const order = $("#order")?.textContent ?? "";
    if (order === arranged) return;
    arranged = order;
    arrange();
  };
  arranged = $("#order")?.textContent ?? "";

  // ---- What somebody chose ----
  const choose = (name, value, apply) => {
    for (const radio of document.querySelectorAll(`.menu input[name="${name}"]`)) {
      radio.checked = radio.value === value;
      radio.addEventListener("change", () => {
        kept.set(name, radio.value);
        apply(radio.value);
      });
    }
  };
  choose("times", times, (value) => { times = value; writeTimes(); });
  choose("theme", kept.get("theme") ?? "auto", (value) => {
    if (value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
  });
  if (times !== "utc") writeTimes();

  // ---- The menu closes as menus do ----
  const menu = $("#menu");
  document.addEventListener("click", (event) => {
    if (menu?.open && !menu.contains(event.target)) menu.open = false;
  });

  // ---- Keys ----
  const keys = $("#keys");
  $("#showkeys")?.addEventListener("click", () => {
    menu.open = false;
    keys.showModal();
  });
  let afterG = 0;
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]");
    if (event.key === "Escape") {
      if (menu?.open) {
        menu.open = false;
        menu.querySelector("summary").focus();
      } else if (typing) {
        typing.blur();
      }
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || keys?.open) return;
    const page = Date.now() - afterG < 1500 && /^[a-z]$/.test(event.key)
      && $(`.top a[data-key="${event.key}"]`);
    if (page) {
      event.preventDefault();
      afterG = 0;
      location.href = page.getAttribute("href");
      return;
    }
    afterG = event.key === "g" ? Date.now() : 0;
    if (event.key === "/") {
      const field = $("[data-focus]");
      event.preventDefault();
      // A page without a search of its own: the fleet's has one.
      if (!field) location.href = "/#q";
      else {
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
  if (location.hash === "#q") $("#q")?.focus();
})();
