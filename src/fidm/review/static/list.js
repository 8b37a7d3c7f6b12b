// The list of segments: what is in it, in which order, and which one is open.

import { $, freesWords, make, plural, reveal, STATUS, DONE } from "./dom.js";

const CHUNK = 200;
const FILTERS = "fidm-review-filters";

const KEEPS = {
  "": () => true,
  open: (row) => !row.mine,
  mine: (row) => Boolean(row.mine),
  doubts: (row) => row.doubts.length > 0,
  differ: (row) => row.differ,
  stale: (row) => row.stale,
};

// Sorting is stable: what is alike stays as it was spoken.
const ORDERS = {
  doubtful: (a, b) => b.doubtfulness - a.doubtfulness,
  frees: (a, b) => b.frees - a.frees || b.doubtfulness - a.doubtfulness,
};

const keyOf = ({ participant, episode, segment }) => JSON.stringify([participant, episode, segment]);

const isSame = (one, other) => one && other && keyOf(one) === keyOf(other);

export class List {
  constructor(mayLeave, onOpen) {
    this.mayLeave = mayLeave;
    this.onOpen = onOpen;
    this.rows = [];
    this.known = new Map();
    this.shown = [];
    this.drawn = 0;
    this.current = null;  // the open segment, which a filter may hide
    this.at = -1;  // where it is among the shown ones
    this.several = false;
    $("rows").addEventListener("click", (event) => {
      const button = event.target.closest("button.row");
      if (button) this.open(Number(button.dataset.i));
    });
    $("rows").addEventListener("scroll", () => this.more(), { passive: true });
    this.restore();
    for (const id of ["search", "status", "which"]) {
      $(id).addEventListener("input", () => {
        sessionStorage.setItem(FILTERS, JSON.stringify({ ...this.filters, search: $("search").value }));
        this.refilter();
      });
    }
  }

  // The filters that were set before the page was loaded again.
  restore() {
    const kept = JSON.parse(sessionStorage.getItem(FILTERS) || "{}");
    for (const id of ["search", "status", "which"]) $(id).value = kept[id] || "";
  }

  get filters() {
    return { search: $("search").value.trim().toLowerCase(), status: $("status").value, which: $("which").value };
  }

  // All rows anew; the open one stays open if it is still there.
  take(rows, order) {
    this.rows = rows;
    this.known = new Map(rows.map((row) => [keyOf(row), row]));
    this.order = order;
    this.several = new Set(rows.map((row) => row.episode)).size > 1;
    this.refilter();
  }

  // Rows of one dialog as they are now; they keep their places, so that the list does not jump under one's eyes.
  update(rows) {
    const places = new Map(this.shown.map((row, i) => [row, i]));
    for (const row of rows) {
      const known = this.known.get(keyOf(row));
      if (!known || JSON.stringify(known) === JSON.stringify(row)) continue;
      Object.assign(known, row);
      const i = places.has(known) ? places.get(known) : -1;
      if (i >= 0 && i < this.drawn) $("rows").children[i].replaceChildren(this.button(known, i));
    }
    this.mark();
  }

  refilter() {
    const { search, status, which } = this.filters;
    const blind = this.order === "sample";
    this.shown = this.rows.filter((row) =>
      (!search || row.participant.toLowerCase().includes(search))
      && (blind || !status || row.status === status)
      && KEEPS[which](row));
    const before = ORDERS[this.order];
    if (before) this.shown = [...this.shown].sort(before);
    this.at = this.shown.findIndex((row) => isSame(row, this.current));
    this.drawn = 0;
    $("rows").replaceChildren();
    this.more(Math.max(0, this.at));
    $("rows").scrollTop = 0;
    const all = this.rows.length;
    const n = this.shown.length;
    $("count").textContent = n === all ? plural(all, "segment") : `${n.toLocaleString("en")} of ${plural(all, "segment")}`;
    if (!n) $("rows").append(make("li", { class: "nothing", text: all ? "Nothing here with these filters." : "There is no segment to review." }));
    if (this.at >= 0) {
      this.current = this.shown[this.at];
      this.mark();
    } else if (n) this.open(0, { quiet: true });
    else this.leaveFor(null, -1);
  }

  more(upto = 0) {
    const box = $("rows");
    while (this.drawn < this.shown.length
      && (this.drawn <= upto || this.drawn % CHUNK || box.scrollTop + 2 * box.clientHeight > box.scrollHeight || !this.drawn)) {
      box.append(make("li", {}, this.button(this.shown[this.drawn], this.drawn)));
      this.drawn += 1;
    }
  }

  button(row, i) {
    const status = STATUS[row.status] || { words: "", mark: "" };
    const mine = row.mine ? DONE[row.mine] : null;
    // Whoever has not judged it is not told that others differ, except where they came to settle it.
    const isTold = row.differ && (row.mine || this.filters.which === "differ");
    const name = `${row.participant}${this.several ? ` · ${row.episode}` : ""} · ${row.segment}`;
    const said = [
      `${row.participant}${this.several ? `, episode ${row.episode}` : ""}, segment ${row.segment}`, status.words,
      mine ? `${mine.words} by you` : "", freesWords(row.frees), isTold ? "reviewers differ" : "", row.stale ? "moved since review" : "",
    ].filter(Boolean).join(", ");
    const marks = `${mine ? mine.mark : ""}${isTold ? " ≠" : ""}${row.stale ? " ↷" : ""}`;
    return make("button", { type: "button", class: "row", "data-i": i, tabindex: i === this.at ? 0 : -1, title: said, "aria-label": said },
      make("span", { class: `mark ${row.status || ""}`, text: status.mark }),
      make("span", { class: "what", text: name }),
      make("span", { class: `mine ${row.mine || ""}`, text: marks }),
      ...(row.frees ? [make("span", { class: "frees", text: freesWords(row.frees) })] : []),
      make("span", { class: "snippet", text: row.said, dir: "auto", lang: row.language || null }));
  }

  open(i, { quiet = false } = {}) {
    if (i >= 0 && i < this.shown.length) this.leaveFor(this.shown[i], i, { quiet });
  }

  // Open a certain segment, even if a filter hides it.
  find(row) {
    this.leaveFor(row, this.shown.findIndex((one) => isSame(one, row)));
  }

  // Open another segment, or none, unless the open one is still needed.
  leaveFor(row, i, how = {}) {
    if (!this.mayLeave()) return;
    this.current = row;
    this.at = i;
    this.more(i + 20);
    this.mark();
    this.onOpen(row, how);
  }

  move(by) { this.open(Math.max(0, Math.min(this.shown.length - 1, (this.at < 0 ? -by : this.at) + by))); }

  mark() {
    for (const old of $("rows").querySelectorAll('[aria-current="true"]')) {
      old.removeAttribute("aria-current");
      old.tabIndex = -1;
    }
    const item = $("rows").children[this.at];
    const button = item ? item.firstElementChild : null;
    if (!button || !button.classList.contains("row")) return;
    button.setAttribute("aria-current", "true");
    button.tabIndex = 0;
    reveal(button);
  }
}
