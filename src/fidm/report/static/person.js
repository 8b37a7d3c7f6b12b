// One person's section: profile, map, steps, effort, and what was said, all linked (links.js).
// Words of people become text nodes and nothing else.
"use strict";

const fidmPerson = (() => {
  const { number, count, percent, surprise, estimate } = fidmCharts;
  const { el, inWords, times, dataTable, scrolls, observedText, reviewText, statusOf } = fidmTables;

  // Fill a section with what there is about a person.
  function fill(section, person, shared) {
    const body = el("div", "person-body", factsOf(person), profileOf(person, shared));
    const top = Math.max(1, ...person.episodes.flatMap((one) => counted(one.steps)));
    person.episodes.forEach((episode, e) => {
      const about = { person, shared, top, id: `p${section.dataset.n}e${e}`, several: person.episodes.length > 1 };
      body.append(episodeOf(episode, about));
    });
    if (!person.episodes.length) body.append(el("p", "quiet", "There are no steps of this person."));
    section.append(body);
  }

  function counted(steps) {
    return steps.unexpectedness.filter((value, i) => value !== null && steps.counts[i]);
  }

  function factsOf(person) {
    if (!person.facts || !person.facts.length) return null;
    const list = el("dl", "facts");
    const said = (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : value ?? "–");
    for (const [words, value] of person.facts) list.append(el("div", "", el("dt", "", words), el("dd", "", said(value))));
    return list;
  }

  // ---- The profile among the cohort: a figure and its table at once.

  function profileOf(person, shared) {
    if (!person.profile || !person.profile.length) return null;
    const rows = person.profile.map((own) => profileRow(own, shared));
    const level = shared.level ? `${Math.round(100 * shared.level)} % interval` : "interval";
    const heads = ["parameter", "among the cohort", "estimate", level, "place", "rests on", "remarks"];
    const table = dataTable("Profile", heads, rows, { numbers: [2, 4], kept: [0, 3, 5] });
    table.classList.add("profile");
    const said = "Band: the middle 80 % of the cohort, line: its median. Dot and bar: this person's estimate and "
      + "interval, hollow where something is to be said against it. Place: the share of the others who lie below; "
      + "none where people may not be distinguishable."
      + finiteOf(shared);
    return el("div", "", scrolls(table, "Profile"), el("p", "quiet small", said));
  }

  // Of whom the bands are, where not everybody's estimate is finite; places take in everybody.
  function finiteOf(shared) {
    const some = (shared.parameters || []).filter((one) => one.n_infinite > 0);
    const said = some.map((one) => `${one.words} ${count(one.n)} of ${count(one.n + one.n_infinite)}`);
    return said.length ? ` Bands and medians are of people with a finite estimate (${said.join(", ")}); places are among all.` : "";
  }

  function profileRow(own, shared) {
    const cohort = (shared.parameters || []).find((one) => one.parameter === own.parameter);
    const range = rangeOf(own);
    const place = own.percentile === null || own.percentile === undefined ? "–" : `${Math.round(own.percentile)} %`;
    const said = own.said || (own.status === "ok" ? "" : inWords(own.status));
    const label = `${own.words}: ${estimate(own) === "–" ? said : `${estimate(own)}, interval ${range}`}`;
    const strip = cohort ? fidmCharts.strip(own, cohort, label) : "";
    return [own.words, strip, estimate(own), range, place, own.rests_on ?? count(own.n), el("span", "doubt", said)];
  }

  function rangeOf({ low, high }) {
    if (low === null && high === null) return "–";
    if (high === null) return `from ${number(low)}`;
    return low === null ? `up to ${number(high)}` : `${number(low)} to ${number(high)}`;
  }

  // Places as the map calls them, in actions and wherever else they stand.
  function namesOf(scene) {
    const known = new Map((scene ? scene.labels : []).map((one) => [one.name, one.words]));
    return (text) => String(text).replace(/[^\s,;:]+/g, (part) => known.get(part) ?? inWords(part));
  }

  // ---- One episode.

  function episodeOf(episode, about) {
    const { shared } = about;
    const heading = about.several ? `${shared.has_speech === false ? "Trial" : "Episode"} ${episode.episode}: ${inWords(episode.task)}` : inWords(episode.task);
    const root = el("section", "episode", el("h3", "", heading));
    root.setAttribute("aria-label", `${heading}, ${about.person.id}`);
    const index = new Map(episode.segments.map((one, k) => [one.segment, k]));
    const scene = episode.scene === null || episode.scene === undefined ? null : shared.scenes[episode.scene];
    const named = namesOf(scene);
    const steps = stepRows(episode, index, named);
    const segmentOf = steps.map((step) => step.segment);
    const now = el("p", "now");
    const nSegments = episode.segments.length;
    const isShort = !scene && shared.has_speech === false; // a trial: some choices, and nothing to walk along
    const view = fidmLinks.connect(root, segmentOf, { nSegments, onShow: (target, pinned) => tell(target, pinned) });
    view.named = named;
    view.isFirst = episode === about.person.episodes[0];
    const { bar, slider, all } = steps.length ? walker(view, steps, now, scene ? "route" : "steps") : {};
    const map = scene && steps.length ? mapOf(view, steps, scene, about) : null;

    function tell(target, pinned) {
      now.replaceChildren(...(target ? told(target, steps, { episode, shared, named }) : [isShort ? "" : hint(shared)]));
      if (map) fidmMap.figure(map, target && target.steps.length ? steps[target.steps[0]].cell : null);
      if (!slider) return;
      if (target && target.steps.length === 1) slider.value = target.steps[0] + 1;
      slider.setAttribute("aria-valuetext", target && target.steps.length ? steps[target.steps[0]].label : "no step is chosen");
      all.disabled = !pinned;
    }

    if (bar) root.append(isShort ? now : bar);
    const left = el("div", "seen", map && mapFigure(map, about, steps));
    left.append(steps.length ? barsFigure(view, steps, about) : el("p", "quiet", "There are no steps in this episode."));
    const said = episode.turns && episode.turns.length ? turnsOf(view, episode, steps, index, shared) : null;
    root.append(el("div", said ? "beside" : "", left, said));
    root.append(...(shared.has_speech === false ? [] : effortOf(view, episode, shared)), fidmTables.tablesOf(view, episode, steps, shared));
    if (slider) tell(null, false);
    return root;
  }

  const hint = (shared) => `Point at ${shared.has_words ? "a step, a bar or words" : "a step or a bar"} to see what `
    + "belongs together; click to pin, arrow keys to walk, Esc to release.";

  // The columns of the steps as a row each, with a sentence.
  function stepRows(episode, index, named) {
    const columns = episode.steps;
    return columns.step.map((step, i) => {
      const row = { i };
      for (const name of Object.keys(columns)) row[name] = columns[name][i];
      row.name = row.segment;
      row.segment = index.get(row.segment) ?? null;
      row.known = Boolean(row.counts) && row.unexpectedness !== null;
      row.label = stepWords(row, columns.step.length, named);
      return row;
    });
  }

  function stepWords(row, n, named) {
    return `Step ${row.step} of ${n}${row.name === null ? "" : `, segment ${row.name}`}: ${actionWords(row, named)}`;
  }

  function actionWords(row, named) {
    const parts = [named(row.action ?? "no action")];
    if (row.probability !== null) parts.push(`probability ${percent(row.probability)}`);
    if (surprise(row) !== "–") parts.push(`unexpectedness ${surprise(row)}`);
    if (!row.known) parts.push(row.inferred ? "inferred, not counted" : "not counted");
    return parts.join(", ");
  }

  // What is lit, in words.
  function told(target, steps, about) {
    const { named } = about;
    if (target.segment !== null || target.steps.length > 1) return toldSegment(target, steps, about);
    const row = steps[target.steps[0]];
    const colon = row.label.indexOf(":") + 1;
    const [first, rest] = [row.label.slice(0, colon), row.label.slice(colon)];
    const more = [];
    if (row.known && row.percentile !== null) more.push(ranked(row.percentile));
    if (row.best && row.q_gap > 0) more.push(`best here: ${named(row.best)}`);
    const where = row.where ? ` At ${named(row.where)}.` : "";
    return [el("strong", "", first), `${[rest, ...more].join("; ")}.`, el("span", "quiet", where)];
  }

  // The place of a step among the person's own, from 0 to 100.
  function ranked(percentile) {
    return `more unexpected than ${Math.floor(percentile)} % of this person's steps`;
  }

  function toldSegment(target, steps, { episode, shared }) {
    const k = target.segment ?? steps[target.steps[0]].segment;
    const segment = k === null ? null : episode.segments[k];
    const which = target.steps.map((i) => steps[i].step);
    const span = which.length ? `step${which.length > 1 ? "s" : ""} ${ranges(which)}` : "no steps";
    if (!segment) return [el("strong", "", span)];
    return [el("strong", "", `Segment ${segment.segment}`), `, ${span}: ${segment.program || "no reading"}`,
      segment.status ? ` (${statusOf(segment, shared)})` : "", "."];
  }

  // 3, 4, 5, 9 → "3–5, 9"
  function ranges(numbers) {
    const found = [];
    for (const one of numbers) {
      const last = found[found.length - 1];
      if (last && last[1] === one - 1) last[1] = one;
      else found.push([one, one]);
    }
    return found.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
  }

  // Buttons and slider that walk along the route, and the line that says what is lit.
  function walker(view, steps, now, way) {
    const slider = el("input");
    Object.assign(slider, { type: "range", min: 1, max: steps.length, value: 1 });
    const button = (text, label) => {
      const made = el("button", "", text);
      made.type = "button";
      made.setAttribute("aria-label", label);
      return made;
    };
    const [back, play, on] = [button("‹", "Step back"), button("Play", `Play the ${way}`), button("›", "Step on")];
    const all = button("Release", "Release the pinned step");
    back.addEventListener("click", () => fidmLinks.pinStep(view, fidmLinks.current(view) - 1));
    on.addEventListener("click", () => fidmLinks.pinStep(view, fidmLinks.current(view) + 1));
    all.addEventListener("click", () => fidmLinks.release(view));
    slider.addEventListener("input", () => { fidmLinks.pause(view); fidmLinks.pinStep(view, Number(slider.value) - 1); });
    play.addEventListener("click", () => {
      if (view.timer !== null) { fidmLinks.pause(view); return; }
      play.textContent = "Pause";
      now.setAttribute("aria-live", "off"); // a step every moment is too much to be read out
      fidmLinks.play(view, () => { play.textContent = "Play"; now.setAttribute("aria-live", "polite"); });
    });
    now.setAttribute("aria-live", "polite");
    const label = el("label", "", el("span", "visually-hidden", `Step along the ${way}`), slider);
    const bar = el("div", "walker", el("div", "controls no-print", back, play, on, label, all), now);
    return { bar, slider, all };
  }

  // ---- Map and steps.

  function mapOf(view, steps, scene, about) {
    const map = fidmMap.draw(scene, { label: `Map: the way of ${about.person.id}, the darker the more unexpected` });
    const ways = steps.map((row) => ({
      from: row.cell ?? -1, to: row.next_cell ?? -1, move: row.move, way: row.action,
      colour: row.known ? fidmMap.heat(row.unexpectedness, about.top) : fidmMap.UNCOUNTED,
    }));
    fidmMap.walk(map, ways).forEach((group, i) => {
      if (!steps[i].known) group.classList.add("uncounted");
      fidmLinks.add(view, group);
    });
    return map;
  }

  function mapFigure(map, about, steps) {
    const scale = fidmCharts.scaleBar(about.top, `${about.id}-scale`);
    const key = el("div", "key", el("span", "", "unexpectedness, −log π"), scale);
    if (steps.some((row) => !row.known)) key.append(el("span", "swatch uncounted"), el("span", "", "not counted"));
    if (steps.some((row) => !row.move)) key.append(el("span", "", "✕ an action that is no movement"));
    if (map.fidmScene.kinds && steps.some((row) => row.move)) key.append(el("span", "", "N is up, S down, E right, W left"));
    if (map.fidmScene.kinds && steps.some((row) => row.move && row.action.length === 2)) {
      key.append(el("span", "", "NE is up right, SE down right, SW down left, NW up left"));
    }
    if (steps.some((row) => row.move && row.cell !== null && row.cell === row.next_cell)) {
      key.append(el("span", "", "┃ a bump: the way was not free"));
    }
    return el("figure", "", map, el("figcaption", "", key));
  }

  const SPOKEN = "filled in by a planner, in or after a segment that awaits review, ";

  function barsFigure(view, steps, about) {
    const bands = [];
    for (const row of steps) {
      const last = bands[bands.length - 1];
      if (last && last.segment === row.segment) last.last = row.i;
      else bands.push({ segment: row.segment, name: row.name ?? "", first: row.i, last: row.i });
    }
    const values = steps.map((row) => ({ value: row.unexpectedness, counts: row.known, label: row.label }));
    const label = `Unexpectedness of each of ${steps.length} steps`;
    const drawn = { top: about.top, bands: bands.filter((one) => one.segment !== null), label, id: `${about.id}-hatch` };
    const svg = fidmCharts.stepBars(values, drawn);
    for (const bar of svg.querySelectorAll(".bar")) fidmLinks.add(view, bar, "bar");
    for (const band of svg.querySelectorAll(".band")) fidmLinks.add(view, band);
    const grey = steps.some((row) => !row.known) ? ` Hatched: not counted (${drawn.bands.length ? SPOKEN : ""}leaving, waiting, or no η).` : "";
    const over = steps.some((row) => row.unexpectedness > about.top) ? " ▲: higher than the drawing." : "";
    const said = `Unexpectedness, −log π, of each step, the darker the higher${drawn.bands.length ? "; below it the segments" : ""}.${grey}${over}`;
    if (about.shared.has_speech === false && !view.isFirst && !grey && !over) return el("figure", "", svg); // once
    return el("figure", "", svg, el("figcaption", "", said));
  }

  // ---- What was said.

  function turnsOf(view, episode, steps, index, shared) {
    const list = el("ol", "turn-list");
    const spans = wordSpans(steps);
    const lastOf = new Map(episode.turns.map((turn, t) => [turn.segment, t]));
    episode.turns.forEach((turn, t) => {
      const k = index.get(turn.segment);
      const item = el("li", `turn ${turn.role === "participant" ? "own" : "other"}`);
      item.append(el("span", "when", times(turn.start_s, turn.end_s)), el("span", "role", inWords(turn.role || "")));
      const rows = spans.get(turn.turn) || [];
      if (typeof turn.text === "string") item.append(wordsOf(view, turn, rows, episode.language || shared.language));
      if (k !== undefined) {
        item.dataset.segment = k;
        fidmLinks.add(view, item);
        if (lastOf.get(turn.segment) === t) item.append(readingOf(episode.segments[k], shared));
      }
      list.append(item);
    });
    const box = el("div", "turns", list);
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "What was said, with times");
    const isSilent = episode.turns.every((one) => typeof one.text !== "string");
    return el("div", "told", el("h4", "", isSilent ? "Turns (the words are left out)" : "What was said"), box);
  }

  // By turn: which code points belong to which steps.
  function wordSpans(steps) {
    const found = new Map();
    for (const row of steps) {
      if (row.turn === null || row.turn === undefined || row.from === null || row.from === undefined) continue;
      if (!found.has(row.turn)) found.set(row.turn, []);
      found.get(row.turn).push(row);
    }
    return found;
  }

  // A turn's text, cut where the words of steps begin and end. Counted in code points, as Python does.
  function wordsOf(view, turn, rows, language) {
    const letters = Array.from(turn.text);
    const cuts = new Set([0, letters.length]);
    for (const row of rows) for (const at of [row.from, row.to]) cuts.add(Math.max(0, Math.min(letters.length, at)));
    const edges = [...cuts].sort((a, b) => a - b);
    const text = el("p", "text");
    text.dir = "auto";
    if (language) text.lang = language;
    for (let i = 0; i + 1 < edges.length; i += 1) {
      const words = letters.slice(edges[i], edges[i + 1]).join("");
      const own = rows.filter((row) => row.from <= edges[i] && row.to >= edges[i + 1]);
      text.append(own.length ? saidOf(view, words, own) : document.createTextNode(words));
    }
    return text;
  }

  function saidOf(view, words, rows) {
    const span = el("span", "said", words);
    span.dataset.steps = rows.map((row) => row.i).join(" ");
    span.setAttribute("role", "button");
    fidmLinks.add(view, span, "words");
    return span;
  }

  function readingOf(segment, shared) {
    const program = el("span", "program", segment.program || "no reading");
    const made = el("p", "reading", el("span", "name", `segment ${segment.segment}`), " · ", program);
    const status = segment.status || "";
    if (status) made.append(" · ", el("span", `status ${status.replaceAll("_", "-")}`, statusOf(segment, shared)));
    for (const doubt of segment.doubts || []) made.append(el("span", "doubt", doubt));
    for (const one of segment.reviews || []) made.append(decisionOf(one));
    return made;
  }

  // Who decided, when, what, and why; a comment is somebody's own words.
  function decisionOf(one) {
    const made = el("span", one.in_force ? "decision" : "decision past", reviewText(one));
    made.dir = "auto";
    return made;
  }

  // ---- Effort.

  function effortOf(view, episode, shared) {
    const seen = fidmTables.channelsOf(episode, shared);
    if (!seen.length) return [el("p", "quiet", "There are no observations of effort in this episode.")];
    const heads = ["observed, the darker the more; a black line where it was expected",
      "residual: brown above what the moves explain, blue below, white near 0"];
    const grid = el("div", "effort", ...heads.map((text) => el("p", "head", text)));
    for (const channel of seen) grid.append(...channelOf(view, episode, channel));
    const isMissing = seen.some((channel) => episode.segments.some((one) => !(one.effort && one.effort[channel.name])));
    const dots = isMissing ? el("p", "quiet small", MISSING) : null;
    return [el("h4", "", "Effort of each segment"), grid, ...(dots ? [dots] : [])];
  }

  const MISSING = "A dot: nothing was observed there, such as the length of a pause where there is none.";

  function channelOf(view, episode, channel) {
    const values = episode.segments.map((segment) => {
      const own = (segment.effort && segment.effort[channel.name]) || {};
      const numbers = [`observed ${observedText(own.observed, channel)}`, `expected ${number(own.expected)}`,
        `residual ${number(own.residual)}`];
      return { ...own, name: segment.segment, title: `Segment ${segment.segment}, ${channel.words}: ${numbers.join(", ")}` };
    });
    return ["observed", "residual"].map((part) => {
      const unit = part === "observed" ? channel.unit : channel.yes_no ? "difference" : "log ratio";
      const words = `${channel.words}${part === "residual" ? ", residual" : ""}${unit ? ` (${unit})` : ""}`;
      const label = `${words}, of each of ${values.length} segments`;
      const svg = fidmCharts.effortBars(values, { part, yesNo: Boolean(channel.yes_no), label });
      for (const bar of svg.querySelectorAll(".bar")) fidmLinks.add(view, bar);
      return el("figure", "", el("figcaption", "", words), svg);
    });
  }

  return Object.freeze({ fill });
})();
