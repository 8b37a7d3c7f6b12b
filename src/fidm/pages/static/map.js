// The map of a task as an SVG: walls, shelves, names, ways people took, and the figure.
// A scene is what fidm.pages.scene.map_scene gives. Text only ever becomes text.
"use strict";

const fidmMap = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const CELL = 40;
  const HEAT = ["#fff3c4", "#fed976", "#feb24c", "#fd8d3c", "#f03b20", "#bd0026", "#7f0019"];
  const UNCOUNTED = "#bdbdbd";

  function node(name, attributes = {}, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // The colour of a value between 0 and top: light is ordinary, dark is heavy; lightness alone tells the order.
  function heat(value, top) {
    if (value === null || value === undefined || Number.isNaN(value)) return UNCOUNTED;
    const share = Math.max(0, Math.min(1, top > 0 ? value / top : 0)) * (HEAT.length - 1);
    const below = Math.min(HEAT.length - 2, Math.floor(share));
    const mix = share - below;
    const part = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
    const blend = (i) => Math.round(part(HEAT[below], i) * (1 - mix) + part(HEAT[below + 1], i) * mix);
    return `rgb(${blend(0)}, ${blend(1)}, ${blend(2)})`;
  }

  function centre(scene, cell) {
    const [row, column] = scene.cells[cell];
    return [(column + 0.5) * CELL, (row + 0.5) * CELL];
  }

  // Lines of at most about ten letters; a long word stays whole.
  function wrapped(words) {
    const lines = [];
    for (const word of String(words).split(/\s+/)) {
      const last = lines.length - 1;
      if (last >= 0 && (lines[last] + " " + word).length <= 10) lines[last] += " " + word;
      else lines.push(word);
    }
    return lines;
  }

  function draw(scene, { label = scene.title } = {}) {
    const width = scene.columns * CELL;
    const height = scene.rows * CELL;
    const svg = node("svg", { class: "map", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    svg.fidmScene = scene;
    const number = new Map(scene.cells.map(([row, column], i) => [row * scene.columns + column, i]));
    const ground = svg.appendChild(node("g", { class: "ground" }));
    const owners = new Map();
    for (const one of scene.labels) for (const [r, c] of one.cells) owners.set(r * scene.columns + c, one.name);
    if (!scene.kinds) {
      svg.style.maxWidth = `${Math.max(240, 1.6 * width)}px`; // a few places need no whole page
      places(scene, ground);
    }
    for (let row = 0; scene.kinds && row < scene.rows; row += 1) {
      for (let column = 0; column < scene.columns; column += 1) {
        const place = row * scene.columns + column;
        const kind = scene.kinds[row][column];
        const box = { x: column * CELL, y: row * CELL, width: CELL, height: CELL };
        const rect = node("rect", box);
        rect.setAttribute("class", { w: "wall", f: "cell", s: "shelf", t: "shelf target" }[kind]);
        if (number.has(place)) rect.setAttribute("data-cell", number.get(place));
        if (owners.has(place)) rect.setAttribute("data-place", owners.get(place));
        ground.appendChild(rect);
      }
    }
    for (const [row, column, share] of scene.prices ?? []) {
      const box = { x: column * CELL, y: row * CELL, width: CELL, height: CELL };
      ground.appendChild(node("rect", { class: "price", "fill-opacity": 0.3 + 0.7 * share, ...box }));
    }
    for (const [row, column, down, right] of scene.doors ?? []) {
      const [x, y] = [(column + 0.5) * CELL, (row + 0.5) * CELL];
      const points = [[15, 0], [-9, -11], [-4, 0], [-9, 11]].map(([on, aside]) =>
        [x + on * right - aside * down, y + on * down + aside * right].join(","));
      ground.appendChild(node("polygon", { class: "door", points: points.join(" ") }));
    }
    for (const [row, column] of scene.hidden ?? []) {
      const [x, y] = [column * CELL, row * CELL];
      const d = [10, 20, 30, 40].map((i) => `M${x} ${y + i}L${x + i} ${y}M${x + i} ${y + CELL}L${x + CELL} ${y + i}`);
      ground.appendChild(node("path", { class: "hidden-cell", d: d.join("") }));
    }
    svg.appendChild(node("g", { class: "walks" }));
    const names = svg.appendChild(node("g", { class: "names" }));
    for (const one of scene.labels) names.appendChild(nameOf(one));
    svg.appendChild(node("g", { class: "figures" }));
    return svg;
  }

  // A task that was not drawn as a map: a dot for each place, and a line for each way between two of them.
  function places(scene, ground) {
    for (const [from, to] of scene.links) {
      const [[x1, y1], [x2, y2]] = [centre(scene, from), centre(scene, to)];
      ground.appendChild(node("line", { class: "link", x1, y1, x2, y2 }));
    }
    const ends = new Set(scene.ends);
    scene.cells.forEach((_, i) => {
      const [cx, cy] = centre(scene, i);
      const kind = `spot${ends.has(i) ? " end" : ""}${i === scene.start ? " start" : ""}`;
      ground.appendChild(node("circle", { class: kind, cx, cy, r: ends.has(i) ? 9 : 6, "data-cell": i }));
    });
  }

  function nameOf(one) {
    const lines = wrapped(one.words);
    const x = (one.column + 0.5) * CELL;
    const y = (one.row + 0.5) * CELL + (one.on_floor ? 0.36 * CELL : 0) - (lines.length - 1) * 5.5;
    const text = node("text", { x, y, "text-anchor": "middle", "dominant-baseline": "central" });
    text.setAttribute("class", one.on_floor ? "name on-floor" : "name");
    lines.forEach((line, i) => text.appendChild(node("tspan", { x, dy: i ? 11 : 0 }, line)));
    return text;
  }

  // Each step lies on the right-hand side of its way, one lane further out each time it is walked again;
  // lanes lie closer where there are too many for the room, so that no two coincide.
  function lanes(scene, steps) {
    const isWay = (step) => step.move && step.from >= 0 && step.to >= 0 && step.from !== step.to;
    const needed = new Map();
    for (const step of steps.filter(isWay)) {
      const key = `${step.from}>${step.to}`;
      needed.set(key, (needed.get(key) ?? 0) + 1);
    }
    const walked = new Map();
    return steps.map((step) => {
      if (!isWay(step)) return null;
      const [x1, y1] = centre(scene, step.from);
      const [x2, y2] = centre(scene, step.to);
      const key = `${step.from}>${step.to}`;
      const lane = (walked.get(key) ?? -1) + 1;
      walked.set(key, lane);
      const out = 0.1 + lane * Math.min(0.09, 0.32 / Math.max(needed.get(key) - 1, 1));
      const apart = out / (Math.hypot(x2 - x1, y2 - y1) / CELL); // a diagonal step is longer
      const [dx, dy] = [-(y2 - y1) * apart, (x2 - x1) * apart];
      return [x1 + dx, y1 + dy, x2 + dx, y2 + dy];
    });
  }

  function arrow([x1, y1, x2, y2]) {
    const [mx, my, length] = [(x1 + x2) / 2, (y1 + y2) / 2, Math.hypot(x2 - x1, y2 - y1)];
    const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
    const tip = [mx + 6 * ux, my + 6 * uy];
    const left = [mx - 4 * ux - 4 * uy, my - 4 * uy + 4 * ux];
    const right = [mx - 4 * ux + 4 * uy, my - 4 * uy - 4 * ux];
    return node("polygon", { class: "arrow", points: [tip, left, right].map((p) => p.join(",")).join(" ") });
  }

  function cross(scene, cell, count) {
    const [x, y] = centre(scene, cell);
    const at = x + (count % 3) * 9 - 9;
    const top = y - 6 - 9 * Math.floor(count / 3);
    const d = `M${at - 5} ${top - 5}L${at + 5} ${top + 5}M${at - 5} ${top + 5}L${at + 5} ${top - 5}`;
    return [node("path", { class: "cross-edge", d }), node("path", { class: "cross", d })];
  }

  // A bump: a bar across the side of the cell where the way was not free.
  function bump(scene, step) {
    const [x, y] = centre(scene, step.from);
    const down = step.way.includes("S") - step.way.includes("N");
    const right = step.way.includes("E") - step.way.includes("W");
    const [mx, my] = [x + 16 * right, y + 16 * down];
    const d = `M${mx - 7 * down} ${my + 7 * right}L${mx + 7 * down} ${my - 7 * right}`;
    return [node("path", { class: "cross-edge", d }), node("path", { class: "cross", d })];
  }

  // Draw a way; returns an element per step. Steps: {from, to, move, way, colour, title}; a second call with the
  // same className takes the place of the first.
  function walk(svg, steps, { className = "walk" } = {}) {
    const scene = svg.fidmScene;
    const layer = svg.querySelector(".walks");
    for (const old of layer.querySelectorAll(`g[data-walk="${className}"]`)) old.remove();
    const group = layer.appendChild(node("g", { class: className, "data-walk": className }));
    const marks = node("g", { class: "marks" }); // what was done lies above the ways
    const ways = lanes(scene, steps);
    const acted = new Map();
    const found = steps.map((step, i) => {
      const made = (ways[i] ? group : marks).appendChild(node("g", { class: "step", "data-step": i }));
      if (step.title) made.appendChild(node("title", {}, step.title));
      const way = ways[i];
      if (way) {
        const [x1, y1, x2, y2] = way;
        made.appendChild(node("line", { class: "edge", x1, y1, x2, y2 }));
        made.appendChild(node("line", { class: "way", x1, y1, x2, y2, stroke: step.colour || "" }));
        made.appendChild(arrow(way));
        made.appendChild(node("line", { class: "reach", x1, y1, x2, y2 }));
      } else if (step.from >= 0 && step.move && step.way && step.from === step.to) {
        for (const part of bump(scene, step)) made.appendChild(part);
        made.lastChild.setAttribute("stroke", step.colour || "#fff");
      } else if (step.from >= 0) {
        const count = acted.get(step.from) ?? 0;
        acted.set(step.from, count + 1);
        for (const part of cross(scene, step.from, count)) made.appendChild(part);
        made.lastChild.setAttribute("stroke", step.colour || "#fff");
      }
      return made;
    });
    group.appendChild(marks);
    return found;
  }

  // Put the figure into a cell, or take it away (null).
  function figure(svg, cell) {
    const layer = svg.querySelector(".figures");
    let made = layer.querySelector(".figure");
    if (cell === null || cell === undefined || cell < 0) {
      if (made) made.remove();
      return null;
    }
    if (!made) {
      made = layer.appendChild(node("g", { class: "figure" }));
      made.appendChild(node("circle", { r: 11, class: "figure-edge" }));
      made.appendChild(node("circle", { r: 8, class: "figure-body" }));
    }
    const [x, y] = centre(svg.fidmScene, cell);
    made.setAttribute("transform", `translate(${x} ${y})`);
    return made;
  }

  return Object.freeze({ draw, walk, figure, heat, node, centre, CELL, UNCOUNTED });
})();
