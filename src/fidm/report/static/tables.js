// Tables of a person's steps and segments (every figure has its table), and the plain elements pages are made of.
"use strict";

const fidmTables = (() => {
  const { number, count, percent, surprise } = fidmCharts;
  const CHANNELS_AT_ONCE = 5; // more in one table would be wider than a page

  function el(name, className, ...inside) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...inside.filter((part) => part !== null && part !== undefined));
    return made;
  }

  const inWords = (name) => String(name).replaceAll("_", " ");
  const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

  function times(start, end) {
    if (start === null || start === undefined) return "";
    return end === null || end === undefined ? clock(start) : `${clock(start)}–${clock(end)}`;
  }

  // ---- Tables, made when they are asked for.

  function tablesOf(view, episode, steps, shared) {
    const box = el("div", "tables");
    if (steps.length) box.append(onDemand(`Table of ${steps.length} steps`, () => stepTable(view, episode, steps)));
    if (episode.segments.length) {
      box.append(onDemand(`Table of ${episode.segments.length} segments`, () => segmentTables(view, episode, shared)));
    }
    return box;
  }

  function onDemand(title, make) {
    const made = el("details", "table", el("summary", "", title));
    made.addEventListener("toggle", () => {
      if (!made.open || made.childElementCount > 1) return;
      made.append(...[make()].flat().map((table) => scrolls(table, table.caption.textContent)));
    });
    return made;
  }

  function scrolls(table, label) {
    const box = el("div", "scrolls", table);
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", label);
    return box;
  }

  // numbers: columns that stand to the right; kept: other columns whose cells are not broken into lines
  function dataTable(caption, heads, rows, { numbers = [], kept = [], group = null } = {}) {
    const style = (c) => (numbers.includes(c) ? "number" : kept.includes(c) ? "kept" : "");
    const head = el("tr", "", ...heads.map((text, c) => {
      const made = el(text ? "th" : "td", style(c), text);
      if (text) made.scope = "col";
      return made;
    }));
    const body = el("tbody", "", ...rows.map((cells) => el("tr", "", ...cells.map((cell, c) => {
      const made = el(c ? "td" : "th", style(c), cell ?? "");
      if (!c) made.scope = "row";
      return made;
    }))));
    return el("table", "data", el("caption", "", caption), el("thead", "", ...(group ? [group] : []), head), body);
  }

  // The first cell of a row is a button, so that rows can be reached and pinned without a mouse.
  function rowButton(text, label) {
    const made = el("button", "row", text);
    made.type = "button";
    made.setAttribute("aria-label", label);
    return made;
  }

  function linkRows(view, table, key, group) {
    [...table.tBodies[0].rows].forEach((row, i) => {
      row.dataset[key] = i;
      fidmLinks.add(view, row);
      const button = row.querySelector("button");
      button.dataset[key] = i;
      fidmLinks.add(view, button, group);
    });
    return table;
  }

  function stepTable(view, episode, steps) {
    const texts = new Map((episode.turns || []).map((turn) => [turn.turn, turn.text]));
    const withWords = [...texts.values()].some((text) => text !== null && text !== undefined);
    const heads = ["step", "segment", "action", "best", "at", "probability", "−log π", "gap in Q", "above % of own", "counts"];
    const { named } = view;
    if (withWords) heads.push("words");
    const rows = steps.map((row, i) => [
      rowButton(row.step, row.label), row.name ?? "–", named(row.action ?? "–"), named(row.best ?? "–"), named(placeText(row, steps[i - 1])),
      percent(row.probability), surprise(row), number(row.q_gap), number(row.percentile),
      row.known ? "yes" : row.inferred ? "no, inferred" : "no", ...(withWords ? [quoteOf(row, texts)] : []),
    ]);
    const table = dataTable("Steps (phase and what is completed only where they change)", heads, rows, { numbers: [5, 6, 7, 8], kept: [1] });
    table.classList.add("steps");
    return linkRows(view, table, "step", "step-row");
  }

  // Where a step was taken; what else is known of the state only where it differs from the step before.
  function placeText(row, before) {
    const cut = (text) => /^(row \d+, column \d+), (.*)$/.exec(text ?? "") || [null, text ?? "–", null];
    const [, place, rest] = cut(row.where);
    return rest === null || (before && cut(before.where)[2] === rest) ? place : `${place}, ${rest}`;
  }

  function quoteOf(row, texts) {
    const text = texts.get(row.turn);
    const known = text !== null && text !== undefined && row.from !== null && row.from !== undefined;
    const made = el("span", "quote", known ? Array.from(text).slice(row.from, row.to).join("") : "–");
    made.dir = "auto";
    return made;
  }

  // The channels in which anything was observed in an episode.
  function channelsOf(episode, shared) {
    const isSeen = (channel) => episode.segments.some((one) => one.effort && one.effort[channel.name]);
    return (shared.channels || []).filter(isSeen);
  }

  // What each segment was read as, who looked at it, and then its effort, a few channels in each table.
  function segmentTables(view, episode, shared) {
    const channels = channelsOf(episode, shared);
    const found = [readTable(view, episode, shared)];
    for (let first = 0; first < channels.length; first += CHANNELS_AT_ONCE) {
      found.push(effortTable(view, episode, channels.slice(first, first + CHANNELS_AT_ONCE), first));
    }
    return found;
  }

  function readTable(view, episode, shared) {
    const isReviewed = episode.segments.some((one) => (one.reviews || []).length);
    const heads = ["segment", "status", "reading", "probability", "moves", "turns", "time", ...(isReviewed ? ["decisions"] : [])];
    const rows = episode.segments.map((one) => [
      rowButton(one.segment, `Segment ${one.segment}`), [statusOf(one, shared) || "–", ...(one.doubts || [])].join("; "),
      el("span", "program", one.program || "–"), percent(one.probability), count(one.n_moves), turnNumbers(one),
      times(one.start_s, one.end_s), ...(isReviewed ? [(one.reviews || []).map(reviewText).join(" ") || "–"] : []),
    ]);
    const table = dataTable("Segments", heads, rows, { numbers: [3, 4], kept: [5, 6] });
    table.classList.add("segments");
    return linkRows(view, table, "segment", "segment-row");
  }

  function effortTable(view, episode, channels, first) {
    const heads = ["segment", ...channels.flatMap(() => ["observed", "expected", "residual"])];
    const rows = episode.segments.map((one) => [
      rowButton(one.segment, `Segment ${one.segment}, effort`),
      ...channels.flatMap((channel) => {
        const own = (one.effort && one.effort[channel.name]) || {};
        return [observedText(own.observed, channel), number(own.expected), number(own.residual)];
      }),
    ]);
    const numbers = heads.map((_, c) => c).slice(1);
    const table = dataTable("Effort of the segments", heads, rows, { numbers, group: channelHeads(channels) });
    table.classList.add("efforts");
    return linkRows(view, table, "segment", `effort-row-${first}`);
  }

  // Seconds have decimals; characters, turns, and yes or no, are counted.
  function observedText(value, channel) {
    if (channel.yes_no) return value === 1 ? "yes" : value === 0 ? "no" : number(value);
    return Number.isInteger(value) && channel.unit !== "s" ? count(value) : number(value);
  }

  const statusOf = (one, shared) => (one.status ? (shared.statuses || {})[one.status] || inWords(one.status) : "");

  // One decision as a sentence: who, when, what, and why.
  function reviewText(made) {
    const when = made.at ? `, ${made.at.replace("T", " ").replace(/:\d\dZ$/, " UTC")}` : "";
    const how = `${made.settles ? "settled, " : ""}${made.words || inWords(made.kind)}`;
    const holds = made.in_force ? "" : ", not in force";
    return `${made.reviewer}${when}: ${how}${holds}${made.comment ? ` (“${made.comment}”)` : ""}.`;
  }

  function channelHeads(channels) {
    const gap = el("td");
    return el("tr", "", gap, ...channels.map((channel) => {
      const made = el("th", "", channel.unit ? `${channel.words} (${channel.unit})` : channel.words);
      made.colSpan = 3;
      made.scope = "colgroup";
      return made;
    }));
  }

  function turnNumbers(one) {
    if (one.first_turn === null || one.first_turn === undefined) return "–";
    return one.first_turn === one.last_turn ? `${one.first_turn}` : `${one.first_turn}–${one.last_turn}`;
  }

  return Object.freeze({ el, inWords, times, dataTable, scrolls, channelsOf, observedText, reviewText, statusOf, tablesOf });
})();
