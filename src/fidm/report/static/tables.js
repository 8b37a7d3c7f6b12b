// Tables of a person's steps and segments (every figure has its table), and the plain elements pages are made of.
"use strict";

const fidmTables = (() => {
  const { number, percent } = fidmCharts;

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
      box.append(onDemand(`Table of ${episode.segments.length} segments`, () => segmentTable(view, episode, shared)));
    }
    return box;
  }

  function onDemand(title, make) {
    const made = el("details", "table", el("summary", "", title));
    made.addEventListener("toggle", () => {
      if (made.open && made.childElementCount === 1) made.append(scrolls(make(), title));
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

  function dataTable(caption, heads, rows, { numbers = [], group = null } = {}) {
    const style = (c) => (numbers.includes(c) ? "number" : "");
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
    if (withWords) heads.push("words");
    const rows = steps.map((row) => [
      rowButton(row.step, row.label), row.name ?? "–", row.action ?? "–", row.best ?? "–", row.where ?? "–",
      percent(row.probability), number(row.unexpectedness), number(row.q_gap), number(row.percentile),
      row.known ? "yes" : row.inferred ? "no, inferred" : "no", ...(withWords ? [quoteOf(row, texts)] : []),
    ]);
    return linkRows(view, dataTable("Steps", heads, rows, { numbers: [5, 6, 7, 8] }), "step", "step-row");
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

  function segmentTable(view, episode, shared) {
    const channels = channelsOf(episode, shared);
    const heads = ["segment", "status", "reading", "probability", "moves", "turns", "time"];
    heads.push(...channels.flatMap(() => ["observed", "expected", "residual"]));
    const rows = episode.segments.map((one) => [
      rowButton(one.segment, `Segment ${one.segment}`), [inWords(one.status || "–"), ...(one.doubts || [])].join("; "),
      el("span", "program", one.program || "–"), percent(one.probability), number(one.n_moves), turnNumbers(one),
      times(one.start_s, one.end_s),
      ...channels.flatMap((channel) => {
        const own = (one.effort && one.effort[channel.name]) || {};
        return [number(own.observed), number(own.expected), number(own.residual)];
      }),
    ]);
    const numbers = [3, 4, ...heads.keys()].filter((c) => c === 3 || c === 4 || c > 6);
    const table = dataTable("Segments", heads, rows, { numbers, group: channels.length ? channelHeads(channels) : null });
    table.classList.add("segments");
    return linkRows(view, table, "segment", "segment-row");
  }

  function channelHeads(channels) {
    const gap = el("td");
    gap.colSpan = 7;
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

  return Object.freeze({ el, inWords, times, dataTable, scrolls, channelsOf, tablesOf });
})();
