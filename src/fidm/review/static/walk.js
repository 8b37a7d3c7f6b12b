// The map, the way on it, and the figure that walks it.
/* global fidmMap */

import { $ } from "./dom.js";

const STEP_MS = 420;

export class Walk {
  constructor(scene, onPoint) {
    this.scene = scene;
    this.onPoint = onPoint;
    this.steps = [];
    this.drawn = [];
    this.at = 0;
    this.timer = null;
    this.svg = fidmMap.draw(scene, { label: `Map: ${scene.title}` });
    $("map").replaceChildren(this.svg);
    this.svg.addEventListener("pointerover", (event) => {
      const step = event.target.closest(".walk .step");
      this.onPoint(step ? [this.steps[Number(step.dataset.step)].instruction] : null);
    });
    this.svg.addEventListener("pointerleave", () => this.onPoint(null));
    $("first").addEventListener("click", () => this.go(0));
    $("back").addEventListener("click", () => this.step(-1));
    $("on").addEventListener("click", () => this.step(1));
    $("play").addEventListener("click", () => this.play());
    $("at").addEventListener("input", () => this.go(Number($("at").value)));
    $("earlier").addEventListener("change", () => this.before(this.earlier));
  }

  // Draw a way and put the figure at its start, or at its end while it is being drawn by hand.
  show({ start, steps, earlier, atEnd = false }) {
    this.pause();
    this.start = start;
    this.steps = steps;
    if (earlier) this.before(earlier);
    this.mark(start);
    this.drawn = fidmMap.walk(this.svg, steps.map((step) => ({
      ...step, title: `${step.action}${step.inferred ? " (filled in)" : ""}`,
    })));
    this.drawn.forEach((g, i) => g.classList.toggle("inferred", steps[i].inferred));
    $("at").max = steps.length;
    this.go(atEnd ? steps.length : 0, { whole: true });
    this.label();
  }

  label() {
    const moves = this.steps.map((step) => step.action).join(" ") || "no moves";
    this.svg.setAttribute("aria-label", `Map: ${this.scene.title}. Moves: ${moves}.`);
  }

  before(steps) {
    this.earlier = steps;
    fidmMap.walk(this.svg, $("earlier").checked ? steps : [], { className: "before" });
    const layer = this.svg.querySelector(".walks");
    layer.prepend(layer.querySelector('[data-walk="before"]'));
  }

  // A dashed ring around the square where the segment begins.
  mark(cell) {
    const old = this.svg.querySelector(".from-here");
    if (old) old.remove();
    if (cell === null || cell < 0) return;
    const [cx, cy] = fidmMap.centre(this.scene, cell);
    this.svg.querySelector(".walks").before(fidmMap.node("circle", { class: "from-here", cx, cy, r: 0.44 * fidmMap.CELL }));
  }

  cellAt(i) {
    if (!i) return this.start;
    const to = this.steps[i - 1].to;
    return to < 0 ? this.steps[i - 1].from : to;
  }

  go(i, { whole = false } = {}) {
    this.at = Math.max(0, Math.min(this.steps.length, i));
    fidmMap.figure(this.svg, this.cellAt(this.at));
    this.drawn.forEach((g, k) => g.classList.toggle("ahead", !whole && k >= this.at));
    $("at").value = this.at;
    const step = this.at ? this.steps[this.at - 1] : null;
    const words = step ? `${this.at} of ${this.steps.length}: ${step.action}` : this.steps.length ? `start, ${this.steps.length} to go` : "no moves";
    $("at-words").textContent = words;
    $("at").setAttribute("aria-valuetext", words);
    if (!whole) this.onPoint(step ? [step.instruction] : null);
  }

  step(by) {
    this.pause();
    this.go(this.at + by);
  }

  get isPlaying() { return this.timer !== null; }

  play() {
    if (this.isPlaying) { this.pause(); return; }
    if (!this.steps.length) return;
    if (this.at >= this.steps.length) this.go(0);
    $("play").textContent = "❚❚";
    $("play").setAttribute("aria-label", "Pause");
    const next = () => {
      this.go(this.at + 1);
      this.timer = this.at < this.steps.length ? setTimeout(next, STEP_MS) : null;
      if (!this.timer) this.pause();
    };
    this.timer = setTimeout(next, 60);
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    $("play").textContent = "▶";
    $("play").setAttribute("aria-label", "Play");
  }

  light(instructions) {
    const lit = new Set(instructions || []);
    this.drawn.forEach((g, i) => g.classList.toggle("lit", lit.has(this.steps[i].instruction)));
  }
}

// The shortest way between two squares as MOVE instructions; of equally short ones the one with fewest turns.
export function movesTo(scene, from, to) {
  const names = ["up", "down", "right", "left"];
  if (from < 0 || from === to) return [];
  const far = new Map();
  const queue = [];
  const key = (cell, way) => cell * 5 + way;
  const offer = (cell, way, cost, parent) => {
    const known = far.get(key(cell, way));
    if (known && known.cost <= cost) return;
    far.set(key(cell, way), { cell, way, cost, parent });
    queue.push(far.get(key(cell, way)));
  };
  offer(from, 4, 0, null);
  let best = null;
  while (queue.length) {
    queue.sort((a, b) => a.cost - b.cost);
    const at = queue.shift();
    if (far.get(key(at.cell, at.way)) !== at) continue;
    if (at.cell === to) { best = at; break; }
    scene.neighbour[at.cell].forEach((there, way) => {
      if (there >= 0) offer(there, way, at.cost + 1 + (way === at.way || at.way === 4 ? 0 : 0.001), at);
    });
  }
  const ways = [];
  for (let at = best; at && at.parent; at = at.parent) ways.unshift(at.way);
  const found = [];
  for (const way of ways) {
    const last = found[found.length - 1];
    if (last && last.way === way) last.n += 1;
    else found.push({ way, n: 1 });
  }
  return found.map(({ way, n }) => `MOVE ${names[way]} ${n}`);
}
