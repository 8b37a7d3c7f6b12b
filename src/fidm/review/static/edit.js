// Editing a route: by clicking squares and shelves, with keys and buttons, or by typing. The server reads every
// version and says what it comes to; only what it can read and walk can be saved.

import { $, make, plural, shortMoves, STATUS } from "./dom.js";
import { movesTo } from "./walk.js";

const TYPING_MS = 180;

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
      this.typing = setTimeout(() => this.take($("route").value), TYPING_MS);
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

  get isDirty() { return this.isOpen && this.text !== this.first; }

  // One change after the other: whoever presses keys faster than the server answers loses none of them.
  then(work) {
    this.queue = this.queue.then(() => (this.isOpen ? work() : null));
    return this.queue;
  }

  open(text) {
    this.isOpen = true;
    this.first = text === "NONE" ? "" : text;
    this.history = [];
    this.good = null;
    this.text = null;
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
    $("editor").hidden = true;
    $("editing").hidden = true;
    $("shown").hidden = false;
    $("judge").hidden = false;
    $("map").classList.remove("edits");
    $("route").removeAttribute("aria-invalid");
  }

  // Let the server read a version; it becomes the present one if it can be walked.
  async take(text, { isUndo = false, keepField = null } = {}) {
    const asked = (this.asked += 1);
    if (this.text !== null && !isUndo && text !== this.text) this.history.push(this.text);
    this.text = text;
    const field = keepField === null ? text : keepField;
    if ($("route").value !== field) $("route").value = field;
    const found = await this.preview(text);
    if (asked !== this.asked || !found || !this.isOpen) return;
    const said = $("route-said");
    said.classList.toggle("wrong", !found.ok);
    $("route").toggleAttribute("aria-invalid", false);
    if (!found.ok) {
      $("route").setAttribute("aria-invalid", "true");
      said.textContent = found.error;
      $("save").disabled = true;
      return;
    }
    this.good = found;
    $("save").disabled = found.same;
    said.textContent = keepField === null
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
    if (!changes.length) {
      box.replaceChildren(make("p", { class: "quiet", text: "Nothing else in this dialog changes." }));
      return;
    }
    box.replaceChildren(
      make("p", { text: `This also changes ${plural(changes.length, "later segment")}:` }),
      make("ul", {}, ...changes.slice(0, 6).map((one) => make("li", { text: changeWords(one) })),
        changes.length > 6 ? make("li", { text: `and ${changes.length - 6} more` }) : null));
  }

  add(instructions) {
    if (!instructions.length) return;
    this.then(() => (this.good ? this.take(joined(this.good.program, instructions)) : null));
  }

  undo() {
    this.then(() => (this.history.length ? this.take(this.history.pop(), { isUndo: true }) : null));
  }

  click(target) {
    if (!this.isOpen || !this.good) return;
    const box = target.closest("[data-cell], [data-place]");
    if (!box) return;
    const at = this.good.end.cell;
    const { place, cell } = box.dataset;
    if (place && (this.scene.places[place] || []).includes(at)) {
      const use = this.legal.find((one) => one.place === place);
      if (use) { this.add([use.add]); return; }
    }
    if (at < 0) this.say("The task has ended here; nothing more can be done.");
    else if (cell !== undefined) this.add(movesTo(this.scene, at, Number(cell)));
    else if (!(this.scene.places[place] || []).includes(at)) this.add([`GOTO ${place}`]);
    else this.say("That cannot be done here.");
  }

  // Add what is legal and begins so; where there are several, digits choose.
  use(op) {
    this.then(() => this.offerUse(op));
  }

  offerUse(op) {
    const found = this.legal.filter((one) => one.add === op || one.add.startsWith(`${op} `));
    if (found.length === 1) this.add([found[0].add]);
    else if (!found.length) this.say(`${op} is not possible here.`);
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
      if ($("route").value.trim() !== this.text.trim()) await this.take($("route").value);
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
