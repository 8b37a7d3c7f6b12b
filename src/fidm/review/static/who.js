// Who is reviewing: a name, the same one every time. "ann" and "Ann" would be two people who agree a lot.

import { $, make } from "./dom.js";
import { reviewer } from "./api.js";

const plain = (name) => name.normalize("NFC").replace(/\s+/g, " ").trim();

export class Who {
  constructor(names, onName) {
    this.names = names;
    this.onName = onName;
    $("who-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.take($("who-name").value);
    });
    $("who-name").addEventListener("input", () => this.doubt(null));
    $("who-known").addEventListener("click", () => this.accept($("who-known").dataset.name));
    $("who-new").addEventListener("click", () => this.accept($("who-new").dataset.name));
    // Browsers close a window at the second Esc, whatever the page says. Without a name there is no review.
    $("who").addEventListener("close", () => { if (!reviewer.name) this.ask(); });
  }

  // A name that differs from this one in small and capital letters alone.
  twin(name) {
    if (this.names.includes(name) || name === reviewer.name) return null;
    return this.names.find((known) => plain(known).toLowerCase() === name.toLowerCase()) || null;
  }

  ask(name = reviewer.name) {
    $("who-names").replaceChildren(...this.names.map((known) => make("option", { value: known })));
    $("who-name").value = name;
    this.doubt(null);
    if (!$("who").open) $("who").showModal();
    $("who-name").select();
  }

  // A name that came with the start of the program; asked for if there is none.
  offer(name) {
    if (name && !this.twin(plain(name))) { this.accept(plain(name)); return; }
    this.ask(name);
    if (name) this.take(name);
  }

  take(typed) {
    const name = plain(typed);
    if (!name) return;
    const known = this.twin(name);
    if (known) this.doubt(name, known);
    else this.accept(name);
  }

  doubt(name, known = "") {
    $("who-same").hidden = name === null;
    $("who-begin").hidden = name !== null;
    if (name === null) return;
    $("who-same-words").textContent = `${known} has decided here before. Is that you?`;
    for (const [id, who, words] of [["who-known", known, `Yes, I am ${known}`], ["who-new", name, `No, begin as ${name}`]]) {
      $(id).textContent = words;
      $(id).dataset.name = who;
    }
    $("who-known").focus();
  }

  accept(name) {
    this.onName(name);
    $("who").close();
  }
}
