// The small charts of one person: unexpectedness per step, effort per segment, the profile among the cohort.
// Each gives an SVG element; the numbers come from the page's data and nothing is computed beyond places and colours.
"use strict";

const fidmCharts = (() => {
  const { node, heat } = fidmMap;
  const EXPECTED = "#222";

  // A number in three figures with their trailing zeros, a real minus sign, and an en dash where there is none.
  // The tables above are written by fidm.present.numbers in Python: both must give the same for every number.
  function number(value) {
    if (!has(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    const isOrdinary = size >= 1e-4 && size < 1e15;
    const text = !isOrdinary ? size.toExponential(2).replace("+", "")
      : size >= 999.5 ? thousands(size.toFixed(0)) : size.toPrecision(3);
    return (value < 0 ? "−" : "") + text.replace("-", "−");
  }

  const thousands = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");

  // How many: no decimals.
  const count = (n) => (has(n) ? (n < 0 ? "−" : "") + thousands(String(Math.abs(n))) : "–");

  function percent(share) {
    if (!has(share)) return "–";
    if (share > 0 && share < 0.001) return "< 0.1 %";
    const size = Math.abs(100 * share).toFixed(1);
    return `${share < 0 && Number(size) ? "−" : ""}${size} %`;
  }

  // How unexpected a step was; the data have no ∞, but a probability of 0 instead.
  const surprise = (step) => (step.unexpectedness === null && step.probability === 0 ? "∞" : number(step.unexpectedness));

  // An estimate; one without a finite maximum is infinite on the side on which it has no end, as in numbers.py.
  function estimate({ estimate: value, low, high, status }) {
    const isEndless = !has(value) && ["no_maximum", "at_edge"].includes(status) && has(low) !== has(high);
    if (!isEndless) return number(value);
    return has(low) ? "∞" : "−∞";
  }

  // A number on an axis: no more digits than it needs.
  const tickText = (value) => String(Number(value.toPrecision(6))).replace("-", "−");

  // Residuals as fidm.plot draws them: white at 0, brown above, blue below, darkest at four times what was expected
  // (or a quarter of it). Bars also go up or down, so that nobody needs the colours.
  const [MORE, LESS] = [[138, 48, 0], [90, 165, 216]];
  const [DARKEST_LOG, DARKEST_DIFFERENCE] = [Math.log(4), 1];

  function residualColour(value, isDifference) {
    const share = Math.min(1, Math.abs(value) / (isDifference ? DARKEST_DIFFERENCE : DARKEST_LOG));
    const blend = (value < 0 ? LESS : MORE).map((part) => Math.round(255 + share * (part - 255)));
    return `rgb(${blend.join(", ")})`;
  }

  // Round values at even distances between two ends, four or five of them.
  function ticks(low, high, wanted = 4) {
    const raw = (high - low) / wanted;
    if (!(raw > 0)) return [low];
    const power = 10 ** Math.floor(Math.log10(raw));
    const size = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const found = [];
    for (let i = Math.ceil(low / size - 1e-9); i * size <= high + size * 1e-9; i += 1) found.push(i * size);
    return found;
  }

  function hatch(svg, id) {
    const defs = svg.appendChild(node("defs"));
    const box = { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
    const pattern = defs.appendChild(node("pattern", box));
    pattern.appendChild(node("rect", { width: 5, height: 5, fill: "#ececec" }));
    pattern.appendChild(node("line", { x1: 0, y1: 0, x2: 0, y2: 5, stroke: "#8c8c8c", "stroke-width": 2 }));
  }

  function frame(width, height, label, role) {
    return node("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role, "aria-label": label });
  }

  // The upright axis with its faint lines; returns where a value lies.
  function upright(svg, box, low, high, words) {
    const y = (value) => box.bottom - ((value - low) / (high - low || 1)) * (box.bottom - box.top);
    for (const tick of words || ticks(low, high)) {
      const [value, text] = Array.isArray(tick) ? tick : [tick, tickText(tick)];
      svg.appendChild(node("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }));
      svg.appendChild(node("text", { class: "tick end", x: box.left - 6, y: y(value) + 3.5 }, text));
    }
    return y;
  }

  // Which of n numbers stand below an axis, so that they do not touch.
  function sparse(n, room, wide) {
    const every = [1, 2, 5, 10, 20, 50, 100, 200].find((e) => (room / n) * e >= wide) || 500;
    return (i) => (i + 1) % every === 0;
  }

  // Unexpectedness per step: a bar each, grey and hatched where a step does not count.
  // steps: [{value, counts, label, segment}], bands: [{first, last, name}]
  function stepBars(steps, { top, bands, label, id }) {
    const [width, height] = [1000, 172];
    const box = { left: 54, right: 994, top: 10, bottom: 126 };
    const svg = frame(width, height, label, "group");
    hatch(svg, id);
    const wide = Math.min(26, (box.right - box.left) / Math.max(1, steps.length));
    const x = (i) => box.left + i * wide;
    bands.forEach((band, k) => svg.appendChild(bandOf(band, k, x, box, wide)));
    const y = upright(svg, box, 0, top);
    const named = sparse(steps.length, wide * steps.length, 26);
    steps.forEach((step, i) => {
      const up = Math.max(2, box.bottom - y(Math.min(step.value ?? 0, top)));
      const fill = step.counts ? heat(step.value, top) : `url(#${id})`;
      const bar = svg.appendChild(node("g", { class: step.counts ? "bar" : "bar uncounted", "data-step": i }));
      bar.setAttribute("role", "button");
      bar.setAttribute("aria-label", step.label);
      const column = { x: x(i), y: box.top, width: wide, height: box.bottom - box.top + 14 };
      bar.appendChild(node("rect", { class: "catch", ...column }));
      const inside = { x: x(i) + wide * 0.08, y: box.bottom - up, width: wide * 0.84, height: up };
      bar.appendChild(node("rect", { class: "body", ...inside, fill }));
      if (step.value > top) {
        bar.appendChild(node("path", { class: "more", d: `M${x(i + 0.5) - 4} ${box.top - 1}l4 -7l4 7z` }));
      }
      if (named(i)) svg.appendChild(node("text", { class: "tick middle", x: x(i + 0.5), y: box.bottom + 13 }, i + 1));
    });
    svg.appendChild(node("line", { class: "axis", x1: box.left, x2: x(steps.length), y1: box.bottom, y2: box.bottom }));
    svg.appendChild(node("text", { class: "tick end", x: box.left - 6, y: box.bottom + 13 }, "step"));
    if (bands.length) svg.appendChild(node("text", { class: "tick end", x: box.left - 6, y: box.bottom + 31 }, "segment"));
    return svg;
  }

  function bandOf(band, k, x, box, wide) {
    const group = node("g", { class: k % 2 ? "band odd" : "band", "data-segment": band.segment });
    const [from, long] = [x(band.first), (band.last - band.first + 1) * wide];
    const ground = { x: from, y: box.top - 6, width: long, height: box.bottom - box.top + 46 };
    group.appendChild(node("rect", { class: "ground", ...ground }));
    if (long > 8 * String(band.name).length) {
      group.appendChild(node("text", { class: "tick middle", x: from + long / 2, y: box.bottom + 31 }, band.name));
    }
    return group;
  }

  // Effort per segment in one channel: what was observed (with a line where it was expected), or the residual.
  // values: [{name, observed, expected, residual, missing}]
  function effortBars(values, { part, yesNo, label }) {
    const [width, height] = [480, 118];
    const box = { left: 44, right: 476, top: 8, bottom: 98 };
    const svg = frame(width, height, label, "img");
    const known = values.flatMap((one) => (part === "observed" ? [one.observed, one.expected] : [one.residual]));
    const numbers = known.filter((value) => value !== null && value !== undefined);
    const high = part === "observed" && yesNo ? 1 : Math.max(0, ...numbers) || (Math.min(0, ...numbers) ? 0 : 1);
    const low = Math.min(0, ...numbers);
    const y = upright(svg, box, low, high, part === "observed" && yesNo ? [[0, "no"], [1, "yes"]] : null);
    const wide = Math.min(40, (box.right - box.left) / Math.max(1, values.length));
    const x = (k) => box.left + k * wide;
    const named = sparse(values.length, wide * values.length, 20);
    values.forEach((one, k) => {
      const bar = svg.appendChild(node("g", { class: "bar", "data-segment": k }));
      bar.appendChild(node("title", {}, one.title));
      bar.appendChild(node("rect", { class: "catch", x: x(k), y: box.top, width: wide, height: height - box.top }));
      const value = one[part];
      if (value === null || value === undefined) {
        bar.appendChild(node("text", { class: "tick middle", x: x(k + 0.5), y: y(0) - 3 }, "·"));
      } else {
        const [above, under] = [y(Math.max(0, value)), y(Math.min(0, value))];
        const size = { x: x(k) + wide * 0.1, y: above, width: wide * 0.8, height: Math.max(1, under - above) };
        const fill = part === "observed" ? heat(value, high) : residualColour(value, yesNo);
        bar.appendChild(node("rect", { class: "body", ...size, fill }));
      }
      if (part === "observed" && one.expected !== null && one.expected !== undefined) {
        const at = { x1: x(k) + wide * 0.02, x2: x(k) + wide * 0.98, y1: y(one.expected), y2: y(one.expected) };
        bar.appendChild(node("line", { class: "expected", ...at, stroke: EXPECTED }));
      }
      if (named(k)) svg.appendChild(node("text", { class: "tick middle", x: x(k + 0.5), y: height - 5 }, one.name));
    });
    svg.appendChild(node("line", { class: "axis", x1: box.left, x2: x(values.length), y1: y(0), y2: y(0) }));
    return svg;
  }

  // One parameter: the middle 80 % of the cohort as a band, its median as a line, the person as a dot with an interval.
  function strip(own, cohort, label) {
    const [width, height, edge] = [300, 28, 8];
    const svg = frame(width, height, label, "img");
    svg.setAttribute("class", "chart strip");
    const scale = cohort.log ? (value) => Math.log(Math.max(value, 1e-9)) : (value) => value;
    const [from, to] = [scale(lowEnd(cohort)), scale(cohort.high)];
    const place = (value) => edge + ((scale(value) - from) / (to - from || 1)) * (width - 2 * edge);
    const x = (value) => Math.max(edge, Math.min(width - edge, place(value)));
    svg.appendChild(node("line", { class: "base", x1: edge, x2: width - edge, y1: 14, y2: 14 }));
    if (has(cohort.p10) && has(cohort.p90)) {
      const wide = Math.max(1, x(cohort.p90) - x(cohort.p10));
      svg.appendChild(node("rect", { class: "middle80", x: x(cohort.p10), y: 6, width: wide, height: 16 }));
    }
    if (has(cohort.median)) {
      svg.appendChild(node("line", { class: "median", x1: x(cohort.median), x2: x(cohort.median), y1: 4, y2: 24 }));
    }
    if (has(own.low) || has(own.high)) {
      const ends = [has(own.low) ? own.low : cohort.low, has(own.high) ? own.high : cohort.high];
      svg.appendChild(node("line", { class: "interval", x1: x(ends[0]), x2: x(ends[1]), y1: 14, y2: 14 }));
      if (!has(own.low) || place(own.low) < edge) {
        svg.appendChild(node("path", { class: "beyond", d: `M${edge - 6} 14l6 -4v8z` }));
      }
      if (!has(own.high) || place(own.high) > width - edge) {
        svg.appendChild(node("path", { class: "beyond", d: `M${width - edge + 6} 14l-6 -4v8z` }));
      }
    }
    if (has(own.estimate)) {
      const kind = own.status === "ok" ? "dot" : "dot doubtful";
      svg.appendChild(node("circle", { class: kind, cx: x(own.estimate), cy: 14, r: 5 }));
    }
    return svg;
  }

  // A logarithm has no zero: where somebody is there, the strip begins well below the others instead.
  function lowEnd(cohort) {
    if (!cohort.log || cohort.low > 0) return cohort.low;
    return cohort.p10 > 0 ? cohort.p10 / 5 : cohort.high / 1000;
  }

  function has(value) {
    return value !== null && value !== undefined && Number.isFinite(value);
  }

  // The colours of unexpectedness from 0 to top.
  function scaleBar(top, id) {
    const svg = frame(180, 30, `Colours from 0, light, to ${number(top)}, dark`, "img");
    svg.setAttribute("class", "chart scale");
    const defs = svg.appendChild(node("defs"));
    const blend = defs.appendChild(node("linearGradient", { id }));
    for (let i = 0; i <= 6; i += 1) blend.appendChild(node("stop", { offset: i / 6, "stop-color": heat(i, 6) }));
    const box = { x: 8, y: 2, width: 164, height: 11, stroke: "#767676", "stroke-width": 0.6 };
    svg.appendChild(node("rect", { ...box, fill: `url(#${id})` }));
    for (const tick of ticks(0, top, 3)) {
      svg.appendChild(node("text", { class: "tick middle", x: 8 + (164 * tick) / top, y: 26 }, tickText(tick)));
    }
    return svg;
  }

  return Object.freeze({ number, count, percent, surprise, estimate, residualColour, stepBars, effortBars, strip, scaleBar });
})();
