// Editing a route: by clicking squares and shelves, with keys and buttons, or by typing. The server reads every
// version and says what it comes to; only what it can read and walk can be saved.

import { $, make, plural, shortMoves, STATUS } from "./dom.js";
import { movesTo } from "./walk.js";

const TYPING_MS = 180;
const ENDED = "The task has ended here; nothing more can be done.";

// Put instructions behind a program; two moves the same way become one.
export function joined(program, more) {
  const parts = program === "NONE" ? [] : program.split(";").map((part) => part.trim()).filter(Boolean);
  for (const next of more) {
    const [, way, n] = /^MOVE (up|down|left|right) (\d+)$/.exec(next) || [];
    const [, before, m] = /^MOVE (up|down|left|right) (\d+)$/.exec(parts[parts.length - 1] || "") || [];
    if (way && way === before) parts[parts.length - 1] = `MOVE ${way} ${Number(n) + Number(m)}`;
    else parts.push(next);
  }
  return parts.join("; ");
}

export class Editor {
  constructor(scene, { preview, onShow, onSave, say }) {
    Object.assign(this, { scene, preview, onShow, onSave, say });
    this.isOpen = false;
    this.asked = 0;
    this.queue = Promise.resolve();
    $("editor").addEventListener("submit", (event) => {
      event.preventDefault();
      this.save();
    });
    $("route").addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.then(() => this.read()), TYPING_MS);
    });
    $("route").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();  // a form whose button is still disabled would not be sent
      this.save();
    });
    $("undo").addEventListener("click", () => this.undo());
    $("legal").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.add([button.dataset.add]);
    });
    $("map").addEventListener("click", (event) => this.click(event.target));
  }

  get isDirty() { return this.isOpen && $("route").value !== this.first; }

  // One change after the other: whoever presses keys faster than the server answers loses none of them.
  then(work) {
    this.queue = this.queue.then(() => (this.isOpen ? work() : null));
    return this.queue;
  }

  open(text) {
    this.isOpen = true;
    this.first = text === "NONE" ? "" : text;
    this.history = [];  // versions that could be walked, the oldest first
    this.good = null;  // what the server says of the last of them
    this.goodText = null;
    this.legal = [];
    this.picking = [];
    this.wrong(false);
    $("route").value = this.first;
    $("editor").hidden = false;
    $("editing").hidden = false;
    $("shown").hidden = true;
    $("judge").hidden = true;
    $("map").classList.add("edits");
    $("map").focus({ preventScroll: true });
    this.then(async () => {
      await this.take(this.first);
      // A reading that cannot be walked as it is: begin with nothing, but leave it in the field to be mended.
      if (!this.good) await this.take("", { keepField: this.first });
    });
  }

  close() {
    if (!this.isOpen) return;
    this.isOpen = false;
    clearTimeout(this.typing);
    this.asked += 1;
    this.wrong(false);
    $("editor").hidden = true;
    $("editing").hidden = true;
    $("shown").hidden = false;
    $("judge").hidden = false;
    $("map").classList.remove("edits");
  }

  // While the text cannot be walked, everything that belongs to an earlier version steps back.
  wrong(isWrong) {
    this.isWrong = isWrong;
    $("route-said").classList.toggle("wrong", isWrong);
    if (isWrong) $("route").setAttribute("aria-invalid", "true");
    else $("route").removeAttribute("aria-invalid");
    for (const id of ["legal", "changes", "map"]) $(id).classList.toggle("earlier-version", isWrong);
    for (const button of $("legal").children) button.disabled = isWrong;
  }

  // Let the server read a version; it becomes the present one if it can be walked. What keys and clicks add
  // (onlyIfGood) leaves no trace otherwise; what somebody typed stays in the field, to be mended.
  async take(text, { isUndo = false, keepField = null, onlyIfGood = false } = {}) {
    const asked = (this.asked += 1);
    let before = keepField ?? $("route").value;
    const put = () => {
      if ($("route").value !== before) return;  // somebody has typed on meanwhile: that is read next
      this.text = text;
      this.field = keepField === null ? text : keepField;
      if (before !== this.field) $("route").value = this.field;
      before = this.field;
    };
    if (!onlyIfGood) put();
    const found = await this.preview(text);
    if (asked !== this.asked || !found || !this.isOpen) return;
    if (!found.ok && onlyIfGood) {
      this.say(found.error, true);
      return;
    }
    put();
    this.wrong(!found.ok);
    if (!found.ok) {
      $("route-said").textContent = found.error;
      $("save").disabled = true;
      return;
    }
    this.say("");
    if (this.goodText !== null && !isUndo && text !== this.goodText) this.history.push(this.goodText);
    this.goodText = text;
    this.good = found;
    $("save").disabled = found.same;
    $("route-said").textContent = keepField === null
      ? `${shortMoves(found.steps.map((step) => step.action))}${found.same ? " – as it stands" : ""}`
      : "The reading cannot be walked as it is; mend it above, or draw the way anew.";
    this.offer(found.legal);
    this.tell(found.changes);
    this.onShow(found);
  }

  offer(legal) {
    this.legal = legal;
    this.picking = [];
    $("legal").replaceChildren(...legal.map((one) =>
      make("button", { type: "button", "data-add": one.add, text: one.label })));
  }

  tell(changes) {
    const box = $("changes");
    if (changes === null) {  // in an audit nothing is told about other segments
      box.replaceChildren();
      return;
    }
    if (!changes.length) {
      box.replaceChildren(make("p", { class: "quiet", text: "Nothing else in this dialog changes." }));
      return;
    }
    box.replaceChildren(
      make("p", { text: `This also changes ${plural(changes.length, "later segment")}:` }),
      make("ul", {}, ...changes.slice(0, 6).map((one) => make("li", { text: changeWords(one) })),
        changes.length > 6 ? make("li", { text: `and ${changes.length - 6} more` }) : null));
  }

  // Read what was typed since.
  async read() {
    clearTimeout(this.typing);
    if ($("route").value !== this.field) await this.take($("route").value);
  }

  // Whether something can be added now: what was typed must be read first, and must be right.
  async isReady() {
    await this.read();
    if (this.isWrong) this.say("Mend the route first, or undo.", true);
    return Boolean(this.good) && !this.isWrong;
  }

  add(instructions) {
    if (!instructions.length) return;
    this.then(async () => {
      if (await this.isReady()) await this.take(joined(this.good.program, instructions), { onlyIfGood: true });
    });
  }

  // One square, if nothing is in the way.
  step(way) {
    this.then(async () => {
      if (!(await this.isReady())) return;
      const move = `MOVE ${way} 1`;
      if (this.legal.some((one) => one.add === move)) await this.take(joined(this.good.program, [move]), { onlyIfGood: true });
      else this.say(this.good.end.cell < 0 ? ENDED : "A shelf or wall is there.", true);
    });
  }

  // Back to the version before; from one that cannot be walked, to the last that can.
  undo() {
    this.then(async () => {
      clearTimeout(this.typing);
      if (this.goodText === null) return;
      if (this.isWrong || $("route").value !== this.field) await this.take(this.goodText, { isUndo: true });
      else if (this.history.length) await this.take(this.history.pop(), { isUndo: true });
      else this.say("There is nothing to undo.", true);
    });
  }

  click(target) {
    const box = target.closest("[data-cell], [data-place]");
    if (this.isOpen && box) this.then(async () => { if (await this.isReady()) await this.reach(box.dataset); });
  }

  // To a square that was clicked, or to a shelf; what is in reach is taken.
  async reach({ place, cell }) {
    const at = this.good.end.cell;
    const isHere = (this.scene.places[place] || []).includes(at);
    const use = isHere ? this.legal.find((one) => one.place === place) : null;
    const more = use ? [use.add] : at < 0 ? [] : cell !== undefined ? movesTo(this.scene, at, Number(cell)) : isHere ? [] : [`GOTO ${place}`];
    if (more.length) await this.take(joined(this.good.program, more), { onlyIfGood: true });
    else if (at < 0) this.say(ENDED, true);
    else if (Number(cell) !== at) this.say("That cannot be done here.", true);
  }

  // Add what is legal and begins so; where there are several, digits choose.
  use(op) {
    this.then(async () => { if (await this.isReady()) this.offerUse(op); });
  }

  offerUse(op) {
    const found = this.legal.filter((one) => one.add === op || one.add.startsWith(`${op} `));
    if (found.length === 1) this.add([found[0].add]);
    else if (!found.length) this.say(`${op} is not possible here.`, true);
    else {
      this.picking = found;
      for (const button of $("legal").children) {
        const n = found.findIndex((one) => one.add === button.dataset.add);
        button.classList.toggle("picked", n >= 0);
        if (n >= 0) button.textContent = `${n + 1}  ${found[n].label}`;
      }
      this.say(`Which? Press 1 to ${found.length}.`);
    }
  }

  pick(n) {
    const found = this.picking[n - 1];
    if (found) this.add([found.add]);
    return Boolean(found);
  }

  save() {
    clearTimeout(this.typing);
    return this.then(async () => {
      if ($("route").value !== this.text) await this.take($("route").value);
      if ($("save").disabled) this.say($("route-said").textContent, true);
      else this.onSave(this.good.program);
    });
  }
}

export function changeWords({ segment, old_actions: before, new_actions: after, old_status: was, new_status: is }) {
  const words = (status) => (STATUS[status] || { words: status }).words;
  const found = [];
  if (before.join() !== after.join()) found.push(`${shortMoves(before)} becomes ${shortMoves(after)}`);
  if (was !== is) found.push(`${words(was)} becomes ${words(is)}`);
  return `Segment ${segment}: ${found.join("; ") || "starts elsewhere"}`;
}
