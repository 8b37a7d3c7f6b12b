// The review page: opens segments, shows what they were read as, and sends decisions.

import { $, freesWords, make, plural, percent, decimal, named, shortMoves, STATUS, DONE } from "./dom.js";
import { get, post, reviewer } from "./api.js";
import { List } from "./list.js";
import { Talk } from "./talk.js";
import { Walk } from "./walk.js";
import { Editor, changeWords } from "./edit.js";
import { listen } from "./keys.js";
import { Who } from "./who.js";
import { Hear } from "./hear.js";

const LOOK_MS = 15000;
const PLACE = "fidm-review-place";
const ORDER = "fidm-review-order";

class Page {
  constructor(start) {
    this.start = start;
    this.dialog = null;
    this.segment = null;
    this.head = "";
    this.sample = start.sample;
    this.restore(start.samples);
    this.opening = 0;
    this.loading = 0;
    this.isBusy = false;
    this.isCutOff = false;
    this.drafts = new Map();  // comments that belong to no decision yet, by segment
    $("study").textContent = start.study;
    document.title = `Review ${start.study} · fidm`;
    this.list = new List(() => this.mayLeave(), (row, how) => this.open(row, how));
    this.talk = new Talk((segment) => this.openInDialog(segment), (lit) => this.light(lit));
    this.walk = new Walk(start.scene, (lit) => this.light(lit));
    this.hear = new Hear((words) => this.trouble(words));
    this.editor = new Editor(start.scene, {
      preview: (text) => this.preview(text),
      onShow: (found) => this.showEdit(found),
      onSave: (text) => this.decide("edit", text),
      say: (words, isTrouble) => (isTrouble ? this.trouble(words) : this.say(words)),
    });
    this.who = new Who(start.reviewers, (name) => this.begin(name));
    this.listenToButtons();
    listen(this);
  }

  // ---- what was said and done

  say(words) {
    $("trouble").textContent = "";
    $("said").textContent = words;
  }

  trouble(words) {
    $("said").textContent = "";
    $("trouble").textContent = words;
  }

  async trying(work) {
    try {
      const found = await work();
      if (this.isCutOff) this.say("");  // the server answers again
      this.isCutOff = false;
      return found;
    } catch (error) {
      if (error.name !== "Error" || error.status === undefined) throw error;
      this.isCutOff = error.status === 0;
      this.trouble(error.message);
      return null;
    }
  }

  // ---- the list

  get order() { return this.sample ? "sample" : this.chosen; }

  get isSettling() { return !this.sample && $("which").value === "differ"; }

  // The order that was chosen before the page was loaded again.
  restore(samples) {
    const kept = sessionStorage.getItem(ORDER);
    this.chosen = ["order", "frees"].includes(kept) ? kept : "doubtful";
    const sample = (sessionStorage.getItem(ORDER) || "").replace(/^sample:/, "");
    if (samples.some((one) => one.name === sample)) this.sample = sample;
  }

  offerOrders(samples) {
    const chosen = this.sample ? `sample:${this.sample}` : this.chosen;
    $("order").replaceChildren(
      make("option", { value: "order", text: "as spoken" }),
      make("option", { value: "doubtful", text: "least probable first" }),
      make("option", { value: "frees", text: "frees most moves first" }),
      ...samples.map((one) => make("option", { value: `sample:${one.name}`, text: `audit of ${plural(one.n_dialogs, "dialog")}, seed ${one.seed} (blind)` })),
      make("option", { value: "draw", text: "draw an audit sample …" }));
    $("order").value = chosen;
  }

  async load({ keep = true } = {}) {
    const loading = (this.loading += 1);
    if (!this.editor.isDirty) this.drop();
    const found = await this.trying(() => get("/api/list", { sample: this.sample }));
    if (!found || loading !== this.loading) return;  // something else was asked for meanwhile
    this.head = found.head;
    this.who.names = found.reviewers;
    this.offerOrders(found.samples);
    this.showHeader(found.header);
    $("status").disabled = Boolean(this.sample);
    const kept = JSON.parse(sessionStorage.getItem(PLACE) || "null");
    this.outdate();
    if (keep && !this.list.current && kept) {
      const same = (row) => row.participant === kept.participant && row.episode === kept.episode && row.segment === kept.segment;
      this.list.current = found.rows.find(same) || null;
    }
    const before = this.list.current;
    this.list.take(found.rows, this.order);
    if (before && this.list.current) this.open(this.list.current, { quiet: true });
  }

  // Others may have decided something meanwhile.
  async look() {
    if (document.hidden || this.isBusy || document.querySelector("dialog[open]")) return;
    const loading = this.loading;
    const found = await this.trying(() => get("/api/list", { sample: this.sample, head: this.head }));
    if (!found || found.unchanged || loading !== this.loading || this.isBusy) return;
    this.head = found.head;
    this.who.names = found.reviewers;
    this.offerOrders(found.samples);
    this.showHeader(found.header);
    this.list.update(found.rows);
    if (!this.editor.isOpen && this.list.current) {
      this.outdate();
      this.open(this.list.current, { quiet: true });
    }
  }

  nextOpen() {
    const i = this.list.shown.findIndex((row, k) => k > this.list.at && !row.mine);
    if (i >= 0) this.list.open(i);
    else this.say("No later segment in this list is open.");
  }

  // ---- one segment

  async open(row, { quiet = false } = {}) {
    if (row === null) { this.clear(); return; }
    if (!this.mayLeave()) return;
    if (!quiet) this.say("");  // before anything is waited for: what is said from now on stays
    const opening = this.drop();
    const settling = this.isSettling;
    const key = [row.participant, row.episode, this.sample, settling, reviewer.name].join("\n");
    if (!this.dialog || this.dialog.key !== key) {
      const query = { participant: row.participant, episode: row.episode, sample: this.sample, settling: settling ? "1" : "" };
      const found = await this.trying(() => get("/api/dialog", query));
      if (!found || opening !== this.opening) return;
      this.dialog = { ...found, key, settling };
    }
    const segment = this.dialog.segments.find((one) => one.segment === row.segment);
    if (!segment) { this.trouble("This segment is not in the dialog any more. Load the page again."); return; }
    sessionStorage.setItem(PLACE, JSON.stringify({ participant: row.participant, episode: row.episode, segment: row.segment }));
    this.show(segment);
  }

  // An edit is neither lost nor hidden before it is saved or left.
  mayLeave() {
    if (this.editor.isDirty) this.trouble("Save the edit or leave it first.");
    return !this.editor.isDirty;
  }

  openInDialog(segment) {
    this.list.find({ participant: this.dialog.participant, episode: this.dialog.episode, segment });
  }

  // Something else is to be shown: an answer that comes late is not, and nobody decides on what is still there.
  drop() {
    this.editor.close();
    this.allow(false);
    return (this.opening += 1);
  }

  // The dialog is asked for again when it is next opened; until then it is what can be pointed at and written about.
  outdate() {
    if (this.dialog) this.dialog.key = "";
  }

  clear() {
    this.drop();
    this.segment = null;
    this.hear.show(null, []);
    $("talk-title").textContent = "No segment is open";
    for (const id of ["talk-facts", "status-line", "chips", "doubts", "verdicts", "others", "turns"]) $(id).replaceChildren();
    this.walk.show({ start: null, steps: [], earlier: [] });
    this.showSettling({ overrules: null });
    this.showProblems([]);
    $("comment").value = "";
    $("withdraw").hidden = true;
  }

  allow(isAllowed) {
    this.isShown = isAllowed;
    for (const id of ["accept", "edit", "reject", "withdraw"]) $(id).disabled = !isAllowed;
  }

  show(segment) {
    this.segment = segment;
    const { participant, episode, segments } = this.dialog;
    const several = this.list.several ? `, episode ${episode}` : "";
    $("talk-title").textContent = `${participant}${several}, segment ${segment.segment} of ${segments.length}`;
    $("talk-facts").textContent = segment.facts.join(" · ");
    this.showProblems(this.dialog.problems);
    this.talk.show(this.dialog, segment);
    this.hear.show(this.dialog.audio, this.dialog.turns.slice(segment.first, segment.last + 1));
    this.showWay(segment);
    this.showStatus(segment);
    this.showVerdicts(segment);
    this.showReadings(segment);
    this.showSettling(segment);
    this.allow(true);
    $("withdraw").hidden = !segment.mine;
    $("comment").value = this.drafts.get(this.draftKey) || "";
    document.querySelector(".below").scrollTop = 0;
  }

  showWay({ start, steps, instructions, segment }) {
    const earlier = this.dialog.segments.slice(0, this.dialog.segments.findIndex((one) => one.segment === segment)).flatMap((one) => one.steps);
    this.walk.show({ start: start.cell, steps, earlier });
    const chips = instructions.map((one, k) => {
      const kind = `${one.inferred ? " inferred" : ""}${one.issues.length ? " trouble-here" : ""}`;
      const why = [one.inferred ? "the way was filled in" : "", ...one.issues.map((code) => this.start.meanings[code] || code)].filter(Boolean);
      return make("span", { class: `chip${kind}`, "data-k": k, text: one.text, title: why.join("; ") || null });
    });
    $("chips").replaceChildren(...chips);
  }

  // Whose comment it is, and about what.
  get draftKey() { return JSON.stringify([reviewer.name, this.dialog.participant, this.dialog.episode, this.segment.segment, this.sample]); }

  keepDraft() {
    if (!this.segment) return;
    if ($("comment").value.trim()) this.drafts.set(this.draftKey, $("comment").value);
    else this.drafts.delete(this.draftKey);
  }

  // Where a decision would overrule others, the page says whom, and whose reading it shows.
  // What is wrong with the dialog as a whole.
  showProblems(problems) {
    $("problems").hidden = !problems.length;
    $("problems").textContent = problems.join(" ");
  }

  showSettling({ overrules, read_by: by }) {
    const isSettling = Boolean(overrules);
    const line = $("settling");
    line.hidden = !isSettling;
    if (isSettling) {
      const others = named(overrules.filter((name) => name !== reviewer.name));
      const whose = by.length ? named(by.map(youOr)) : "the grounder";
      line.textContent = `You are settling: your decision overrules ${others}. The map shows how ${whose} read it.`;
    }
    for (const [id, words] of [["accept", "Accept"], ["edit", "Edit"], ["reject", "Reject"], ["save", "Save edit"]]) {
      const text = isSettling ? `Settle: ${words.toLowerCase()} ` : `${words} `;
      $(id).firstChild.textContent = text;
    }
  }

  showStatus({ status, probability, grounder, read_by: by, doubts, issues, start, stale, differ, frees }) {
    const line = [];
    if (status) line.push(make("span", { class: `tag ${status}`, text: STATUS[status].words }));
    if (differ) line.push(make("span", { class: "tag differ", text: "reviewers differ" }));
    if (stale) line.push(make("span", { class: "tag differ", text: "moved since review" }));
    const share = probability !== null && probability < 0.995 ? `, ${percent(probability)}` : "";
    if (grounder) line.push(make("span", { class: "quiet", text: `read by ${by.length ? named(by.map(youOr)) : grounder}${share}` }));
    if (frees) line.push(make("span", { class: "quiet", text: freesWords(frees) }));
    if (start.phase) line.push(make("span", { class: "quiet", text: `phase: ${start.phase}` }));
    $("status-line").replaceChildren(...line);
    const codes = [...new Set([...doubts, ...issues])];
    $("doubts").replaceChildren(...codes.map((code) => {
      const words = this.start.meanings[code];
      return make("li", {}, words || code, words ? " " : null, words ? make("span", { class: "code", text: code }) : null);
    }));
  }

  showVerdicts({ mine, others }) {
    const line = (who, one) => make("p", { class: "verdict-line" },
      make("b", { text: `${who} ${DONE[one.kind].words} it` }),
      one.program !== null ? make("span", { class: "program", text: ` ${one.program}` }) : null,
      one.settles ? " (settled)" : null,
      one.comment ? make("span", { text: ` – ${one.comment}`, dir: "auto" }) : null,
      make("span", { class: "quiet", text: ` ${one.at.slice(0, 16).replace("T", " ")} UTC` }));
    $("verdicts").replaceChildren(...(mine ? [line("You", mine)] : []), ...(others || []).map((one) => line(one.reviewer, one)));
  }

  showReadings({ readings }) {
    if (!readings.length) { $("others").replaceChildren(); return; }
    const moves = ({ actions, issues }) => [shortMoves(actions), issues.map((code) => this.start.meanings[code] || code).join("; ")].filter(Boolean).join(" – ");
    const button = (one, i) => make("button", { type: "button", class: `alternative${one.by.length ? " by-people" : ""}`, "data-n": i + 1, title: "Edit from this reading" },
      make("kbd", { text: i + 1 }),
      one.by.length ? null : make("span", { class: "share", text: percent(one.probability) }),
      make("span", { class: "program" }, one.program,
        make("span", { class: "moves", text: one.by.length ? `${named(one.by.map(youOr))}: ${moves(one)}` : moves(one) })));
    $("others").replaceChildren(make("h3", { class: "part-title", text: "Other readings" }), ...readings.map(button));
  }

  light(instructions) {
    const lit = new Set(instructions || []);
    this.walk.light(instructions);
    if (!this.editor.isOpen) this.talk.light(instructions);
    for (const chip of $("chips").children) chip.classList.toggle("lit", lit.has(Number(chip.dataset.k)));
  }

  // ---- editing

  edit(text = this.segment && this.segment.program) {
    if (!this.segment || !this.isShown || this.isBusy) return;
    this.say("");
    this.walk.pause();
    this.talk.light(null);
    this.editor.open(text);
  }

  takeReading(n) {
    const reading = this.segment && this.segment.readings[n - 1];
    if (!reading) return;
    if (this.editor.isOpen) this.editor.then(() => this.editor.take(reading.program));
    else this.edit(reading.program);
  }

  type(more) {
    const field = $("route");
    if (more) field.value = field.value.trim() ? `${field.value.trim()}; ${more}` : more;
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  leaveEdit() {
    this.editor.close();
    this.say("");
    if (this.segment) this.showWay(this.segment);
    $("segment").focus({ preventScroll: true });
  }

  preview(text) {
    return this.trying(async () => {
      try {
        return await post("/api/preview", { ...this.where(), text });
      } catch (error) {
        if (error.status !== 409) throw error;
        this.changedMeanwhile(error.body);
        return null;
      }
    });
  }

  showEdit({ start, steps }) {
    this.walk.show({ start: start.cell, steps, atEnd: true });
  }

  // ---- deciding

  where() {
    return {
      participant: this.dialog.participant, episode: this.dialog.episode, segment: this.segment.segment,
      sample: this.sample, settling: this.dialog.settling, seen: this.segment.seen,
    };
  }

  async decide(kind, text = "") {
    if (!this.segment || !this.isShown || this.isBusy || (kind === "withdraw" && !this.segment.mine)) return;
    if (!reviewer.name) { this.who.ask(); return; }
    this.isBusy = true;
    const { opening, draftKey, list } = this;
    const { participant } = this.dialog;
    const { segment, overrules } = this.segment;
    try {
      const found = await post("/api/decide", { ...this.where(), kind, text, comment: $("comment").value });
      this.isBusy = false;
      this.drafts.delete(draftKey);
      const said = `${decidedWords(kind, overrules)}: ${participant}, segment ${segment}.${alsoWords(found.changes)}`;
      if (opening !== this.opening) {  // somebody went on meanwhile, and stays where they are
        this.known(found);
        this.say(said);
        return;
      }
      this.editor.close();
      this.taken(found);
      const isLast = list.at >= 0 && list.at + 1 >= list.shown.length;
      $("segment").focus({ preventScroll: true });
      if (kind === "withdraw" || isLast || list.at < 0) this.show(this.dialog.segments.find((one) => one.segment === segment));
      else list.move(1);
      this.say(`${said}${isLast && kind !== "withdraw" ? " This was the last in the list." : ""}`);
    } catch (error) {
      if (error.status === undefined) throw error;
      this.isCutOff = error.status === 0;
      if (error.status === 409 && opening === this.opening) this.changedMeanwhile(error.body);
      else this.trouble(error.message);
    } finally {
      this.isBusy = false;
    }
  }

  known(found) {
    this.head = found.head;
    this.showHeader(found.header);
    this.list.update(found.rows);
  }

  taken(found) {
    this.dialog = { ...found.dialog, key: this.dialog.key, settling: this.dialog.settling };
    this.known(found);
  }

  changedMeanwhile(found) {
    const { segment } = this.segment;
    this.editor.close();
    this.taken(found);
    const now = found.dialog.segments.find((one) => one.segment === segment);
    if (now) this.show(now);
    this.trouble("It has changed meanwhile, and nothing was decided. This is how it stands now.");
  }

  // ---- header

  showHeader({ n, n_mine: mine, agreements, audit }) {
    $("done").max = Math.max(1, n);
    $("done").value = mine;
    $("done-words").textContent = `${mine.toLocaleString("en")} of ${n.toLocaleString("en")} judged`;
    const own = agreements.find((one) => [one.one, one.other].includes(reviewer.name)) || agreements[0];
    $("agreement").replaceChildren(...(own ? agreementWords(own) : []));
    $("agreement").title = agreements.map((one) => `${one.one} and ${one.other}: ${one.n_same_verdict} of ${one.n} alike`).join("\n");
    $("audit").replaceChildren(...(audit ? auditWords(audit) : []));
  }

  // ---- buttons and windows

  listenToButtons() {
    for (const kind of ["accept", "reject", "withdraw"]) $(kind).addEventListener("click", () => this.decide(kind));
    $("edit").addEventListener("click", () => this.edit());
    $("leave").addEventListener("click", () => this.leaveEdit());
    $("others").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.takeReading(Number(button.dataset.n));
    });
    $("chips").addEventListener("pointerover", (event) => {
      const chip = event.target.closest(".chip");
      this.light(chip ? [Number(chip.dataset.k)] : null);
    });
    $("chips").addEventListener("pointerleave", () => this.light(null));
    $("which").addEventListener("input", () => { if (this.list.current) this.open(this.list.current); });
    $("order").addEventListener("change", () => this.reorder());
    $("comment").addEventListener("input", () => this.keepDraft());
    $("reviewer").addEventListener("click", () => this.who.ask());
    $("help-open").addEventListener("click", () => $("help").showModal());
    $("help-close").addEventListener("click", () => $("help").close());
    $("draw-leave").addEventListener("click", () => $("draw").close("leave"));
    $("draw").addEventListener("close", () => { if ($("order").value === "draw") this.offerBack(); });
    $("draw-form").addEventListener("submit", () => this.drawSample(Number($("draw-n").value), Number($("draw-seed").value)));
    window.addEventListener("beforeunload", (event) => { if (this.editor.isDirty || this.drafts.size) event.preventDefault(); });
  }

  offerBack() { $("order").value = this.sample ? `sample:${this.sample}` : this.chosen; }

  keepOrder(chosen) {
    this.sample = chosen.startsWith("sample:") ? chosen.slice(7) : "";
    if (!this.sample) this.chosen = chosen;
    sessionStorage.setItem(ORDER, chosen);
    this.list.current = null;
  }

  reorder() {
    const chosen = $("order").value;
    if (!this.mayLeave()) { this.offerBack(); return; }
    if (chosen === "draw") { $("draw").showModal(); return; }
    this.keepOrder(chosen);
    this.load({ keep: false });
  }

  async drawSample(n, seed) {
    const found = await this.trying(() => post("/api/sample", { n, seed }));
    if (!found) { this.offerBack(); return; }
    this.keepOrder(`sample:${found.name}`);
    await this.load({ keep: false });
    this.say(`Drawn: ${plural(found.n_dialogs, "dialog")}, seed ${seed}.`);
  }

  begin(name) {
    reviewer.name = name;
    $("reviewer").textContent = name;
    $("reviewer").setAttribute("aria-label", `Reviewer: ${name}. Change`);
    this.load();
  }
}

const youOr = (name) => (name === reviewer.name ? "you" : name);

function decidedWords(kind, overrules) {
  if (overrules && kind !== "withdraw") return `Settled, ${DONE[kind].words}`;
  return { accept: "Accepted", edit: "Edited", reject: "Rejected", withdraw: "Withdrawn" }[kind];
}

function alsoWords(changes) {
  return changes && changes.length ? ` It also changed: ${changes.slice(0, 3).map(changeWords).join(". ")}.` : "";
}

function agreementWords({ one, other, agreement, n, kappa }) {
  const with_ = one === reviewer.name ? `Agreement with ${other} ` : other === reviewer.name ? `Agreement with ${one} ` : `Agreement of ${one} and ${other} `;
  return [with_, make("b", { text: percent(agreement) }), ` of ${n}`, ...(kappa === null ? [] : [", κ ", make("b", { text: decimal(kappa, 2) })])];
}

function auditWords({ n_dialogs: n, n_consistent: right, low, high, n_left: left }) {
  if (!n) return [`Audit: ${plural(left, "segment")} to judge`];
  return ["Audit: ", make("b", { text: `${right} of ${n}` }), ` ${n === 1 ? "dialog" : "dialogs"} right, `, make("b", { text: `${Math.round(100 * low)}–${percent(high)}` }), left ? `, ${plural(left, "segment")} left` : ""];
}

async function begin() {
  let start;
  try {
    start = await get("/api/start");
  } catch (error) {
    if (error.status === undefined) throw error;
    $("talk-title").textContent = "The page cannot be shown";
    $("trouble").textContent = error.message;
    return;
  }
  const page = new Page(start);
  page.offerOrders(start.samples);
  setInterval(() => page.look(), LOOK_MS);
  if (reviewer.name) page.begin(reviewer.name);
  else page.who.offer(start.reviewer);
}

begin();
