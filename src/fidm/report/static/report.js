// The list of people in a report: find, filter, sort, open one or all; a section is filled when it is opened.
//
// Inlined after map.js (pages), charts.js, links.js, tables.js and person.js, in this order. The page has
//   <script type="application/json" id="shared">  {scenes, channels, parameters, statuses, label, deidentified, people}
//   <script type="application/json" id="data-N">  one person, read when the section is opened and never before
//   <section id="people">  with <details class="person" id="person-N" data-n="N"><summary>…</summary></details> each
// shared.people has a row per person in the order of the page, for the list alone:
//   {"n", "id", "label"|null, "split"|null, "flags": [words], "values": {parameter or "mean_unexpectedness": number|null}}
"use strict";

const fidmReport = (() => {
  const { el } = fidmTables;
  const ANY = "";
  const AT_ONCE_MS = 80;

  // ---- Sections.

  const isFilled = (section) => section.childElementCount > 1;

  function fill(section, shared) {
    if (isFilled(section)) return;
    const data = document.getElementById(`data-${section.dataset.n}`);
    if (data) fidmPerson.fill(section, JSON.parse(data.textContent), shared);
  }

  function open(section, shared) {
    fill(section, shared);
    section.open = true;
  }

  // ---- The list.

  // A row per person: what is searched, filtered and sorted by, and the section itself.
  function rowsOf(host, shared) {
    const listed = new Map((shared.people || []).map((one) => [String(one.n), one]));
    return [...host.querySelectorAll("details.person")].map((section, i) => {
      const own = listed.get(section.dataset.n) || {};
      const id = own.id ?? section.querySelector("summary").textContent;
      const known = { id: String(id), label: own.label ?? null, split: own.split ?? null };
      return { ...known, flags: own.flags || [], values: own.values || {}, section, place: i };
    });
  }

  const distinct = (values) => [...new Set(values.filter((value) => value !== null))].sort(inOrder);
  const inOrder = (a, b) => a.localeCompare(b, undefined, { numeric: true });

  // A control with its label, as one field.
  function labelled(words, control, className = "field") {
    const label = el("label", "", words);
    control.id = label.htmlFor = `find-${words.toLowerCase().replaceAll(" ", "-")}`;
    return el("div", className, label, control);
  }

  function choice(words, options) {
    const select = el("select");
    for (const [value, text] of options) {
      const option = el("option", "", text);
      option.value = value;
      select.append(option);
    }
    return { select, field: labelled(words, select) };
  }

  // The controls above the list. Filters that could not tell people apart are left out.
  function controlsOf(rows, shared) {
    const search = el("input");
    Object.assign(search, { type: "search", spellcheck: false, autocomplete: "off" });
    const filters = filtersOf(rows, shared);
    const parameters = (shared.parameters || []).map((one) => [one.parameter, one.words]);
    const names = [["mean_unexpectedness", "mean unexpectedness"], ...parameters];
    const known = names.filter(([name]) => rows.some((row) => Number.isFinite(row.values[name])));
    const sort = choice("Sort by", [[ANY, "order of the study"], ["id", "id"], ...known]);
    const order = choice("Order", [["up", "lowest first"], ["down", "highest first"]]);
    const count = el("p", "count");
    count.setAttribute("role", "status");
    const form = el("form", "find no-print", labelled("Find by id", search, "field grows"),
      ...filters.map((one) => one.field), sort.field, order.field);
    form.setAttribute("role", "search");
    form.setAttribute("aria-label", "Find people");
    return { form, search, filters, sort: sort.select, order: order.select, count };
  }

  function filtersOf(rows, shared) {
    const name = shared.label || "status";
    const label = name[0].toUpperCase() + name.slice(1);
    const remarked = (row, value) => (value === "none" ? !row.flags.length : row.flags.some((flag) => value === `= ${flag}`));
    const offer = (words, texts, fits, none) => {
      if (texts.length < (none ? 1 : 2)) return null;
      const extra = none ? [["none", none]] : [];
      const made = choice(words, [[ANY, "all"], ...extra, ...texts.map((text) => [`= ${text}`, text])]);
      return { ...made, fits: (row) => made.select.value === ANY || fits(row, made.select.value) };
    };
    return [
      offer(label, distinct(rows.map((row) => row.label)), (row, value) => value === `= ${row.label}`),
      offer("Split", distinct(rows.map((row) => row.split)), (row, value) => value === `= ${row.split}`),
      offer("Remarks", distinct(rows.flatMap((row) => row.flags)), remarked, "without remarks"),
    ].filter(Boolean);
  }

  function arrange(list) {
    const { rows, controls, host } = list;
    const wanted = controls.search.value.trim().toLocaleLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = row.id.toLocaleLowerCase().includes(wanted) && controls.filters.every((one) => one.fits(row));
      row.section.hidden = !fits;
      shown += fits;
    }
    const people = `${rows.length} ${rows.length === 1 ? "person" : "people"}`;
    controls.count.textContent = shown === rows.length ? people : `${shown} of ${people}`;
    controls.order.disabled = controls.sort.value === ANY;
    const sorting = `${controls.sort.value} ${controls.order.value}`;
    if (sorting === list.sorting) return;
    list.sorting = sorting;
    host.append(...sorted(rows, controls.sort.value, controls.order.value).map((row) => row.section));
  }

  // People without the number come last either way.
  function sorted(rows, name, order) {
    if (name === ANY) return [...rows].sort((a, b) => a.place - b.place);
    const way = order === "down" ? -1 : 1;
    const compare = (a, b) => {
      if (name === "id") return way * inOrder(a.id, b.id);
      const [x, y] = [a.values[name], b.values[name]].map((value) => (Number.isFinite(value) ? value : null));
      if (x === null || y === null) return (x === null) - (y === null);
      return way * (x - y);
    };
    return [...rows].sort((a, b) => compare(a, b) || a.place - b.place);
  }

  // ---- Opening everybody, for paper.

  function printing(list, shared) {
    const start = el("button", "", "Open all for printing");
    start.type = "button";
    const close = el("button", "", "Close all");
    close.type = "button";
    const withTables = el("input");
    withTables.type = "checkbox";
    const bar = el("progress");
    bar.hidden = true;
    bar.setAttribute("aria-label", "Sections opened");
    const said = el("span", "");
    said.setAttribute("role", "status");
    const state = { running: false };
    start.addEventListener("click", () => {
      if (state.running) state.running = false;
      else openAll(list, shared, { state, start, bar, said, tables: withTables.checked });
    });
    close.addEventListener("click", () => {
      state.running = false;
      for (const row of list.rows) row.section.open = false;
      said.textContent = "";
    });
    return el("div", "printing no-print", start, el("label", "", withTables, " with tables"), close, bar, said);
  }

  // Open everybody that is shown, a few at a time, so that the page stays alive and can be stopped.
  async function openAll(list, shared, { state, start, bar, said, tables }) {
    const wanted = [...list.host.querySelectorAll("details.person")].filter((section) => !section.hidden);
    state.running = true;
    start.textContent = "Stop";
    Object.assign(bar, { hidden: false, max: Math.max(1, wanted.length), value: 0 });
    let done = 0;
    while (state.running && done < wanted.length) {
      const until = performance.now() + AT_ONCE_MS;
      while (done < wanted.length && performance.now() < until) {
        open(wanted[done], shared);
        if (tables) for (const one of wanted[done].querySelectorAll("details.table")) one.open = true;
        done += 1;
      }
      bar.value = done;
      await new Promise((resolve) => setTimeout(resolve));
    }
    const isWhole = done === wanted.length;
    said.textContent = isWhole ? `${done} open. Print with the browser's own command.` : `Stopped after ${done} of ${wanted.length}.`;
    Object.assign(state, { running: false });
    bar.hidden = true;
    start.textContent = "Open all for printing";
  }

  // ---- Addresses such as report.html#person-12.

  function follow(list, shared) {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = name && document.getElementById(name);
    if (target && target.matches("details.long-table")) target.open = true;
    const section = target && target.closest("details.person");
    if (!section) return;
    if (section.hidden) {
      list.controls.form.reset();
      arrange(list);
    }
    open(section, shared);
    section.scrollIntoView();
    section.querySelector("summary").focus({ preventScroll: true });
  }

  function start() {
    const host = document.getElementById("people");
    const data = document.getElementById("shared");
    if (!host || !data) return;
    const shared = JSON.parse(data.textContent);
    const rows = rowsOf(host, shared);
    if (!rows.length) return;
    const list = { host, rows, controls: controlsOf(rows, shared), sorting: `${ANY} up` };
    const { form, count } = list.controls;
    rows[0].section.before(form, el("div", "under", count, printing(list, shared)));
    form.addEventListener("input", () => arrange(list));
    form.addEventListener("submit", (event) => event.preventDefault());
    host.addEventListener("toggle", (event) => {
      if (event.target.open && event.target.matches("details.person")) fill(event.target, shared);
    }, true);
    // Where the browser draws margin boxes, the statement stands there and need not lie over the page's foot.
    document.documentElement.classList.toggle("margin-boxes", "CSSMarginRule" in window);
    window.addEventListener("hashchange", () => follow(list, shared));
    for (const row of rows) if (row.section.open) fill(row.section, shared);
    arrange(list);
    follow(list, shared);
  }

  document.addEventListener("DOMContentLoaded", start);
  return Object.freeze({ start });
})();
