// What belongs together in one episode: a step on the map, its bar, its row, its words, and its segment.
// Pointing or focusing lights up everything that belongs to it, a click pins it, arrow keys walk, Esc releases.
"use strict";

const fidmLinks = (() => {
  const THING = "[data-step], [data-steps], [data-segment]";
  const PACE_MS = 700;

  // An episode's parts and what is lit at the moment. segments: the index of each step's segment (or null).
  function connect(root, segments, { nSegments, onShow }) {
    const view = {
      root, onShow, segmentOf: segments, n: segments.length, nSegments,
      parts: new Map(), tabStop: new Map(),
      pin: null, hover: null, focus: null, shown: null, timer: null,
    };
    root.addEventListener("pointerover", (event) => point(view, event));
    root.addEventListener("pointerleave", () => leave(view));
    root.addEventListener("focusin", (event) => focus(view, event));
    root.addEventListener("focusout", () => { view.focus = null; show(view); });
    root.addEventListener("click", (event) => click(view, event));
    root.addEventListener("keydown", (event) => press(view, event));
    return view;
  }

  // Make an element known. Elements of a group are walked with arrow keys and are one stop for the Tab key.
  function add(view, element, group) {
    for (const key of keysOf(element)) {
      if (!view.parts.has(key)) view.parts.set(key, []);
      view.parts.get(key).push(element);
    }
    if (!group) return;
    element.dataset.group = group;
    element.setAttribute("tabindex", view.tabStop.has(group) ? "-1" : "0");
    if (!view.tabStop.has(group)) view.tabStop.set(group, element);
  }

  function keysOf(element) {
    const { step, steps, segment } = element.dataset;
    if (step !== undefined) return [`step ${step}`];
    if (steps !== undefined) return steps.split(" ").map((i) => `step ${i}`);
    return segment === undefined ? [] : [`segment ${segment}`];
  }

  // What an element stands for: steps, or a segment with all its steps.
  function meaning(view, element) {
    const found = element instanceof Element ? element.closest(THING) : null;
    if (!found || !view.root.contains(found)) return null;
    const { step, steps, segment } = found.dataset;
    if (step !== undefined) return { steps: [Number(step)], segment: null, from: found };
    if (steps !== undefined) return { steps: steps.split(" ").map(Number), segment: null, from: found };
    return { steps: stepsOf(view, Number(segment)), segment: Number(segment), from: found };
  }

  function stepsOf(view, segment) {
    return view.segmentOf.flatMap((k, i) => (k === segment ? [i] : []));
  }

  const same = (a, b) => Boolean(a && b) && a.segment === b.segment && a.steps.join() === b.steps.join();

  function point(view, event) {
    view.hover = meaning(view, event.target);
    show(view);
  }

  function leave(view) {
    view.hover = null;
    show(view);
  }

  function focus(view, event) {
    const group = event.target.dataset ? event.target.dataset.group : undefined;
    if (group) {
      view.tabStop.get(group).setAttribute("tabindex", "-1");
      event.target.setAttribute("tabindex", "0");
      view.tabStop.set(group, event.target);
    }
    view.focus = event.target.matches(":focus-visible") ? meaning(view, event.target) : null;
    show(view);
  }

  function click(view, event) {
    if (String(window.getSelection())) return; // somebody is copying words
    const target = meaning(view, event.target);
    if (target) pin(view, same(target, view.pin) ? null : target);
    else if (event.target.closest("svg")) pin(view, null);
    if (view.pin && target && !event.target.closest("[tabindex]:not(.turns, .scrolls)")) keysHere(view);
  }

  // What was clicked cannot have the focus, so its bar gets it: arrow keys go on from there, and Esc releases.
  function keysHere(view) {
    const bar = peer(view, `step ${view.pin.steps[0]}`, "bar");
    if (bar) bar.focus({ preventScroll: true });
  }

  // The step that is pinned, the last of several; -1 where there is none.
  function current(view) {
    return view.pin && view.pin.steps.length ? view.pin.steps[view.pin.steps.length - 1] : -1;
  }

  function pin(view, target) {
    view.pin = target;
    if (!target) pause(view);
    show(view);
  }

  // Pin a step by its number from 0.
  function pinStep(view, i) {
    if (!view.n) return;
    view.hover = null;
    pin(view, { steps: [Math.max(0, Math.min(view.n - 1, i))], segment: null, from: null });
  }

  function release(view) {
    view.hover = null;
    view.focus = null;
    pin(view, null);
  }

  function press(view, event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape" && view.shown) {
      release(view);
      event.preventDefault();
      return;
    }
    if (!event.target.dataset || !event.target.dataset.group) return;
    if ((event.key === "Enter" || event.key === " ") && event.target.localName !== "button") {
      event.preventDefault();
      const target = meaning(view, event.target);
      pin(view, same(target, view.pin) ? null : target);
    } else if (walked(view, event)) event.preventDefault();
  }

  // Go to the step (or segment) before or after, within the same kind of element.
  function walked(view, event) {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (way === undefined) return false;
    const target = meaning(view, event.target);
    const peers = target.segment === null
      ? { kind: "step", at: way > 0 ? target.steps[target.steps.length - 1] : target.steps[0], last: view.n - 1 }
      : { kind: "segment", at: target.segment, last: view.nSegments - 1 };
    const to = Math.max(0, Math.min(peers.last, peers.at + way));
    const next = peer(view, `${peers.kind} ${to}`, event.target.dataset.group) || peer(view, `${peers.kind} ${to}`, "bar");
    if (!next) return true;
    view.hover = null;
    if (view.pin) view.pin = meaning(view, next);
    next.focus({ preventScroll: false });
    return true;
  }

  function peer(view, key, group) {
    return (view.parts.get(key) || []).find((element) => element.dataset.group === group);
  }

  // Light up what is pinned, or else pointed at, or else focused.
  function show(view) {
    const target = view.pin || view.hover || view.focus;
    if (same(target, view.shown) && Boolean(view.pin) === view.root.classList.contains("pinned")) return;
    view.shown = target;
    for (const old of view.root.querySelectorAll(".lit, .kin")) old.classList.remove("lit", "kin");
    view.root.classList.toggle("showing", Boolean(target));
    view.root.classList.toggle("pinned", Boolean(view.pin));
    if (target) light(view, target);
    view.onShow(target, Boolean(view.pin));
  }

  function light(view, target) {
    const segments = new Set(target.segment === null ? target.steps.map((i) => view.segmentOf[i]) : [target.segment]);
    for (const k of segments) {
      if (k === null) continue;
      mark(view, `segment ${k}`, "lit");
      for (const i of stepsOf(view, k)) mark(view, `step ${i}`, "kin");
    }
    for (const i of target.steps) mark(view, `step ${i}`, "lit");
    if (!target.from || !target.from.closest(".turns")) reveal(view);
  }

  function mark(view, key, name) {
    for (const element of view.parts.get(key) || []) element.classList.add(name);
  }

  // Scroll the list of turns (never the page) to the words that are lit, or else to the segment's first turn.
  function reveal(view) {
    const list = view.root.querySelector(".turns");
    const words = list && (list.querySelector(".said.lit") || list.querySelector(".turn.lit"));
    if (!words) return;
    const [seen, box] = [list.getBoundingClientRect(), words.getBoundingClientRect()];
    if (box.top < seen.top + 8) list.scrollTop += box.top - seen.top - 40;
    else if (box.bottom > seen.bottom - 8) list.scrollTop += box.bottom - seen.bottom + 40;
  }

  // Walk the route by itself, from the pinned step or from the start; calls onEnd when it stops.
  function play(view, onEnd) {
    const last = view.n - 1;
    view.onEnd = onEnd;
    pinStep(view, current(view) >= last ? 0 : current(view) + 1);
    view.timer = setInterval(() => {
      if (current(view) >= last) pause(view);
      else pinStep(view, current(view) + 1);
    }, PACE_MS);
  }

  function pause(view) {
    if (view.timer === null) return;
    clearInterval(view.timer);
    view.timer = null;
    view.onEnd();
  }

  return Object.freeze({ connect, add, current, pinStep, release, play, pause });
})();
