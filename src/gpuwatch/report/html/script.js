"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const WIDE = 1000, HIGH = 250, TOP = 8, BOTTOM = 226, MARKS = 6;
  const make = (name, attributes, text) => {
    const found = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    if (text !== undefined) found.textContent = text;
    return found;
  };

  // ---- numbers beside what the pointer is over, or the keyboard's focus is on
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  for (const title of document.querySelectorAll("svg.row > title, use.mark > title, text > title")) {
    const of = title.parentNode;
    of.dataset.tip = title.textContent;
    if (of.getAttribute("role") === "img") of.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  const show = (event) => {
    const of = event.target.closest?.("[data-tip]");
    tip.hidden = !of;
    if (!of) return;
    tip.textContent = of.dataset.tip.replaceAll("; ", "\n");
    const box = of.getBoundingClientRect();
    const x = event.clientX ?? box.left + box.width / 2;
    tip.style.left = `${Math.max(8, Math.min(x + 12, innerWidth - tip.offsetWidth - 8))}px`;
    const below = box.bottom + 8;
    const fits = below + tip.offsetHeight < innerHeight;
    tip.style.top = `${fits ? below : Math.max(8, box.top - tip.offsetHeight - 8)}px`;
  };
  for (const kind of ["pointermove", "focusin"]) document.addEventListener(kind, show);
  for (const kind of ["focusout", "scroll"]) document.addEventListener(kind, () => { tip.hidden = true; });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // ---- the gauges
  const nice = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].find((factor) => value <= factor * power * (1 + 1e-9)) * power;
  };
  const ticks = (low, high, most) => {
    const step = nice((high - low) / most), found = [];
    const last = Math.floor(high / step + 1e-9);
    for (let at = Math.ceil(low / step - 1e-9); at <= last; at++) found.push(at * step);
    return found;
  };
  const label = (value) => (Math.abs(value) > 1e-9 ? String(Number(value.toPrecision(6))) : "0");
  const short = (value) => String(Number(value.toPrecision(3)));

  for (const figure of document.querySelectorAll("figure.curves")) {
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const [metric, mode] = figure.querySelectorAll("select");
    const plot = figure.querySelector("svg.over"), scale = figure.querySelector("svg.up");
    const across = figure.querySelector(".across"), readout = figure.querySelector(".readout");
    const slider = figure.querySelector("input");
    const title = plot.querySelector("title");
    const of = title.textContent;
    let cursor;

    const along = (run) => (mode.value === "steps" ? run.k : run.t);
    const range = () => data.ranges[mode.value];
    const measure = () => data.measures[metric.value];
    const y = (value) => {
      const { low, top } = measure();
      return TOP + (BOTTOM - TOP) * (1 - Math.min(1, Math.max(0, (value - low) / (top - low))));
    };
    const share = (x) => (x - range()[0]) / (range()[1] - range()[0]);

    // A run's point nearest to x among those that are shown, as [x, value].
    const nearest = (run, x, farthest = Infinity) => {
      const xs = along(run), values = run.v[metric.value];
      if (!values) return null;
      let best = null, distance = farthest;
      for (let i = 0; i < xs.length; i++) {
        if (xs[i] === null || typeof values[i] !== "number" || xs[i] < range()[0] || xs[i] > range()[1]) continue;
        const far = Math.abs(xs[i] - x);
        if (far < distance) { best = [xs[i], values[i]]; distance = far; }
      }
      return best;
    };

    const path = (run) => {
      const xs = along(run), values = run.v[metric.value];
      let told = "", pen = "M";
      if (!values) return told;
      for (let at = 0; at < values.length; at++) {
        const x = xs[at];
        if (values[at] === false) continue;
        if (values[at] === null || x === null || x < range()[0] || x > range()[1]) { pen = "M"; continue; }
        told += `${pen}${(share(x) * WIDE).toFixed(1)} ${y(values[at]).toFixed(1)}`;
        pen = "L";
      }
      return told;
    };

    // Shapes along the first judged run of each cell, beside those of the other cells.
    const marks = () => data.cells.flatMap((cell, number) => {
      const run = data.runs.find((each) => each.cell === number && !each.faint);
      if (!run) return [];
      return Array.from({ length: MARKS }, (_, place) => {
        const wanted = (place + (number + 0.5) / data.cells.length) / MARKS;
        const found = nearest(run, range()[0] + wanted * (range()[1] - range()[0]));
        if (!found) return [];
        const x = `${(100 * share(found[0])).toFixed(2)}%`;
        return [make("use", { class: `mark ${cell.colour}`, href: cell.shape, x, y: y(found[1]) })];
      }).flat();
    });

    const draw = () => {
      const up = ticks(measure().low, measure().top, 4), parts = [title];
      title.textContent = `${measure().title} of ${of}`;
      for (const tick of up)
        parts.push(make("line", { class: "grid", x1: 0, x2: "100%", y1: y(tick), y2: y(tick) }));
      for (const tick of ticks(...range(), 7)) {
        const x = 100 * share(tick), place = `${x.toFixed(2)}%`;
        if (mode.value !== "steps" && Math.abs(tick) < 1e-12)
          parts.push(make("line", { class: "axis", x1: place, x2: place, y1: TOP, y2: BOTTOM }));
        const anchor = x < 3 ? "start" : x > 97 ? "end" : "middle";
        parts.push(make("text", { x: place, y: HIGH - 6, "text-anchor": anchor }, label(tick)));
      }
      const inner = make("svg", {
        width: "100%", height: HIGH, viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none",
      });
      for (const run of data.runs) {
        const faint = run.faint ? " faint" : "";
        inner.append(make("path", { class: `curve ${data.cells[run.cell].colour}${faint}`, d: path(run) }));
      }
      cursor = make("line", { class: "cursor", y1: TOP, y2: BOTTOM, visibility: "hidden" });
      plot.replaceChildren(...parts, inner, ...marks(), cursor);
      scale.replaceChildren(
        ...up.map((tick) => make("text", { x: "100%", y: y(tick) + 4, "text-anchor": "end" }, label(tick))),
      );
      figure.querySelector(".what").textContent = [measure().title, measure().unit].filter(Boolean).join(", ");
      across.textContent = mode.value === "steps" ? "timed steps done" : across.dataset.time;
      figure.querySelector(".how").textContent = measure().how;
      readout.replaceChildren();
    };

    const read = (portion) => {
      const [low, high] = range(), x = low + portion * (high - low);
      const place = `${(100 * portion).toFixed(2)}%`;
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      cursor.setAttribute("visibility", "visible");
      const told = [mode.value === "steps" ? `step ${Math.round(x)}` : `at ${short(x)}`];
      data.cells.forEach((cell, number) => {
        const runs = data.runs.filter((run) => run.cell === number && !run.faint);
        const points = runs.map((run) => nearest(run, x, (high - low) / 20));
        const values = points.filter((point) => point).map((point) => point[1]);
        if (!values.length) { told.push(`${cell.label}: —`); return; }
        const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
        const span = values.length > 1 ? ` (${short(Math.min(...values))} to ${short(Math.max(...values))}, ${values.length} runs)` : "";
        told.push(`${cell.label}: ${short(mean)}${measure().unit && ` ${measure().unit}`}${span}`);
      });
      readout.replaceChildren(...told.map((text) => {
        const part = document.createElement("span");
        part.textContent = text;
        return part;
      }));
    };

    mode.value = data.mode;
    metric.addEventListener("change", draw);
    mode.addEventListener("change", draw);
    slider.addEventListener("input", () => read(slider.value / slider.max));
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const portion = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      slider.value = portion * slider.max;
      read(portion);
    });
    figure.querySelector(".unscripted").remove();
    figure.querySelector("[hidden]").hidden = false;
    draw();
  }

  // ---- print shows every part
  const closed = [];
  addEventListener("beforeprint", () => {
    closed.push(...document.querySelectorAll("details:not([open])"));
    closed.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => {
    closed.splice(0).forEach((part) => { part.open = false; });
  });
})();
