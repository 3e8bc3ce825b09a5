// Zooming into a chart of the dependency page. The charts drawn by the server stay as they are: this
// opens one of them large, from the same figures, and asks for finer ones of what is shown.
(() => {
  "use strict";
  const panel = document.getElementById("zoom");
  if (!panel || !window.uPlot) return;
  document.body.classList.add("can-zoom");

  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const PAN = 0.25;
  const CLOSER = 0.5;
  const NEAREST_S = 10;
  let plot = null;
  let data = null;
  let chart = null;
  let whole = null;
  let shown = null;
  let opener = null;
  let asked = 0;
  let waiting = null;

  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes ?? {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const time = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
  // Days by their date, hours and minutes by the clock, in UTC like everything else on the page.
  const times = (u, splits, axis, space, step) => splits.map((seconds) => {
    const text = new Date(seconds * 1000).toISOString();
    if (seconds % 86400 === 0) return text.slice(5, 10);
    return step < 60 ? text.slice(11, 19) : text.slice(11, 16);
  });
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // How a line looks is said once, in the style sheet: it is asked for the look of a line of its class.
  const looks = new Map();
  const look = (kind, name) => {
    const key = `${kind} ${name}`;
    if (!looks.has(key)) {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("class", kind === "line" ? `line s-${name}` : kind === "area" ? `area a-${name}` : `level ${name}`);
      svg.setAttribute("class", "probe");
      svg.append(path);
      const box = element("div", { class: "chart probe" });
      box.append(svg);
      panel.append(box);
      const style = getComputedStyle(path);
      const dash = style.strokeDasharray;
      looks.set(key, {
        stroke: style.stroke,
        fill: style.fill,
        opacity: parseFloat(style.fillOpacity) || 1,
        width: parseFloat(style.strokeWidth) || 1.5,
        dash: dash === "none" ? [] : dash.split(/[ ,]+/).map(parseFloat),
      });
      box.remove();
    }
    return looks.get(key);
  };

  const drawUnder = (u) => {
    const { ctx, bbox } = u;
    const x = (ms) => u.valToPos(ms / 1000, "x", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = variable("--shade");
    for (const [from, to] of data.off) ctx.fillRect(x(from), bbox.top, Math.max(x(to) - x(from), 1), bbox.height);
    for (const area of chart.areas) {
      const its = look("area", area.class);
      ctx.fillStyle = its.fill;
      ctx.globalAlpha = its.opacity;
      ctx.beginPath();
      for (let i = 0; i + 1 < chart.at.length; i++) {
        if (area.low[i] == null || area.low[i + 1] == null) continue;
        const y = (value) => (value == null ? bbox.top : u.valToPos(value, "y", true));
        const [left, right] = [x(chart.at[i]), x(chart.at[i + 1])];
        ctx.moveTo(left, y(area.high[i]));
        ctx.lineTo(right, y(area.high[i + 1]));
        ctx.lineTo(right, y(area.low[i + 1]));
        ctx.lineTo(left, y(area.low[i]));
        ctx.closePath();
      }
      ctx.fill();
      ctx.globalAlpha = 1;
    }
    const ratio = devicePixelRatio || 1;
    for (const level of chart.levels) {
      const its = look("level", level.class);
      const y = u.valToPos(level.value, "y", true);
      ctx.strokeStyle = its.stroke;
      ctx.lineWidth = its.width * ratio;
      ctx.setLineDash(its.dash.map((part) => part * ratio));
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.fillStyle = variable("--soft");
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      ctx.textAlign = "right";
      ctx.fillText(level.label, bbox.left + bbox.width - 4 * ratio, y - 4 * ratio);
    }
    ctx.setLineDash([2 * ratio, 2 * ratio]);
    ctx.lineWidth = ratio;
    for (const mark of data.marks) {
      ctx.strokeStyle = variable({ policy: "--observe", mode: "--warn" }[mark.class] ?? "--bad");
      ctx.beginPath();
      ctx.moveTo(x(mark.at), bbox.top);
      ctx.lineTo(x(mark.at), bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  };

  // Marks are links over the canvas: they lead to their record, by keyboard too.
  const placeMarks = (u) => {
    const over = panel.querySelector(".zoommarks");
    over.replaceChildren();
    const [min, max] = [u.scales.x.min * 1000, u.scales.x.max * 1000];
    for (const mark of data.marks) {
      if (mark.at < min || mark.at > max) continue;
      const link = element("a", { href: mark.href, class: `zoommark m-${mark.class}`, title: `${time(mark.at / 1000)} ${mark.words}` }, mark.glyph);
      link.append(element("span", { class: "sr" }, ` ${time(mark.at / 1000)} UTC ${mark.words}`));
      link.style.left = `${u.over.offsetLeft + u.valToPos(mark.at / 1000, "x")}px`;
      over.append(link);
    }
  };

  const draw = () => {
    plot?.destroy();
    looks.clear();
    const host = panel.querySelector(".zoomplot");
    const axis = { stroke: variable("--soft"), grid: { stroke: variable("--line"), width: 1 }, ticks: { stroke: variable("--line"), width: 1 }, font: "11px system-ui, sans-serif" };
    const value = (u, v) => (v == null ? "–" : Number(v.toPrecision(3)).toString());
    plot = new window.uPlot({
      width: host.clientWidth,
      height: 320,
      tzDate: (seconds) => window.uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      cursor: { drag: { x: true, y: false, setScale: false } },
      scales: {
        x: { range: () => shown },
        y: { range: (u, min, max) => [0, Math.max(chart.top, max ?? 0, ...chart.levels.map((level) => level.value)) * 1.05 || 1] },
      },
      axes: [{ ...axis, values: times }, { ...axis, size: 56, label: chart.unit, labelSize: 18, labelFont: "11px system-ui, sans-serif" }],
      series: [
        { label: "UTC", value: (u, v) => (v == null ? "–" : time(v)) },
        ...chart.series.map((line) => {
          const its = look("line", line.class);
          return { label: line.label, stroke: its.stroke, width: its.width, dash: its.dash.length ? its.dash : undefined, value, points: { show: false }, spanGaps: false };
        }),
      ],
      hooks: {
        drawClear: [drawUnder],
        draw: [placeMarks],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const [from, to] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          show(from, to);
        }],
      },
    }, [chart.at.map((ms) => ms / 1000), ...chart.series.map((line) => line.values)], host);
    plot.over.addEventListener("dblclick", () => show(...whole));
  };

  const say = (words) => { panel.querySelector(".zoomsaid").textContent = words; };

  const load = async (id, from, to) => {
    const turn = ++asked;
    const query = new URLSearchParams({ range: panel.dataset.range });
    if (from) query.set("from", Math.floor(from * 1000));
    if (to) query.set("to", Math.ceil(to * 1000));
    let answer;
    try {
      answer = await fetch(`${panel.dataset.course}?${query}`, { headers: { accept: "application/json" } });
      if (!answer.ok || answer.redirected) throw new Error(answer.redirected ? "signed out" : `answered ${answer.status}`);
      answer = await answer.json();
    } catch (problem) {
      if (turn === asked) say(`Finer figures could not be read (${problem.message}); what is shown stays.`);
      return false;
    }
    if (turn !== asked) return false;
    const found = answer.charts.find((it) => it.id === id);
    if (!found) return false;
    [data, chart] = [answer, found];
    return true;
  };

  // Shows a part of the whole: at once what is there, and finer figures when they have come.
  const show = (from, to) => {
    const [first, last] = whole;
    const least = Math.min(NEAREST_S, last - first);
    let span = Math.min(Math.max(to - from, least), last - first);
    const middle = (from + to) / 2;
    const begin = Math.min(Math.max(middle - span / 2, first), last - span);
    shown = [begin, begin + span];
    plot.setScale("x", { min: shown[0], max: shown[1] });
    say(`${time(shown[0])} to ${time(shown[1])} UTC`);
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      if (await load(chart.id, shown[0], shown[1])) draw();
    }, 250);
  };

  const by = (factor) => {
    const [middle, half] = [(shown[0] + shown[1]) / 2, ((shown[1] - shown[0]) / 2) * factor];
    show(middle - half, middle + half);
  };
  const pan = (part) => {
    const step = (shown[1] - shown[0]) * part;
    show(shown[0] + step, shown[1] + step);
  };

  const close = () => {
    clearTimeout(waiting);
    asked++;
    plot?.destroy();
    plot = null;
    panel.hidden = true;
    panel.replaceChildren();
    document.querySelector(`[data-zoom="${opener}"]`)?.focus();
  };

  const acts = { closer: () => by(CLOSER), wider: () => by(1 / CLOSER), back: () => pan(-PAN), on: () => pan(PAN), all: () => show(...whole), close };
  const button = (act, text, name) => element("button", { type: "button", "data-act": act, title: name, "aria-label": name }, text);

  const open = async (id) => {
    plot?.destroy();
    plot = null;
    opener = id;
    panel.replaceChildren(
      element("div", { class: "zoomhead" },
        element("h3", { id: "zoom-title" }, "Zoom"),
        element("div", { class: "zoomacts", role: "group", "aria-label": "Zoom" },
          button("closer", "+", "Closer"), button("wider", "−", "Wider"),
          button("back", "◀", "Earlier"), button("on", "▶", "Later"),
          button("all", "All", "All of it"), button("close", "Close", "Close the zoom"))),
      element("p", { class: "zoomsaid muted", role: "status" }, "reading"),
      element("div", { class: "zoombox" }, element("div", { class: "zoommarks" }), element("div", { class: "zoomplot" })),
      element("p", { class: "muted" }, "Drag across to zoom in, double click for all of it. Keys: + and −, arrows, 0 for all, Esc to close."),
    );
    panel.hidden = false;
    if (!(await load(id))) return;
    panel.querySelector("#zoom-title").textContent = chart.title;
    whole = [data.from / 1000, Math.max(data.to / 1000, data.from / 1000 + 1)];
    shown = whole;
    draw();
    say(`${time(shown[0])} to ${time(shown[1])} UTC`);
    panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
  };

  document.addEventListener("click", (event) => {
    const opens = event.target.closest?.("[data-zoom]");
    if (opens) open(opens.dataset.zoom);
    const act = event.target.closest?.("#zoom [data-act]");
    if (act && (plot || act.dataset.act === "close")) acts[act.dataset.act]();
  });
  panel.addEventListener("keydown", (event) => {
    if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { "+": "closer", "=": "closer", "-": "wider", ArrowLeft: "back", ArrowRight: "on", 0: "all", Escape: "close" }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    acts[act]();
  });
  const redraw = () => { if (plot) draw(); };
  dark.addEventListener("change", redraw);
  // The colours chosen on the page itself.
  new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  addEventListener("resize", () => { if (plot) plot.setSize({ width: panel.querySelector(".zoomplot").clientWidth, height: 320 }); });
})();
