// The dialog: who said what and when, the open segment's turns marked, words lit up with their moves.

import { $, make, clock } from "./dom.js";

export class Talk {
  constructor(onOpen, onPoint) {
    this.onOpen = onOpen;
    this.onPoint = onPoint;
    const turns = $("turns");
    turns.addEventListener("click", (event) => {
      const turn = event.target.closest(".elsewhere");
      if (turn) this.onOpen(turn.dataset.segment);
    });
    turns.addEventListener("pointerover", (event) => {
      const word = event.target.closest(".used");
      this.onPoint(word ? word.dataset.instructions.split(" ").map(Number) : null);
    });
    turns.addEventListener("pointerleave", () => this.onPoint(null));
  }

  show(dialog, segment) {
    const own = new Set(segment.turns);
    const within = (i) => i >= segment.first && i <= segment.last;
    const spans = new Map();
    segment.instructions.forEach((one, k) => {
      for (const [turn, from, to] of one.words) {
        if (!spans.has(turn)) spans.set(turn, []);
        spans.get(turn).push([from, to, k]);
      }
    });
    $("turns").replaceChildren(...dialog.turns.map((turn, i) => {
      const isOwn = own.has(i) || within(i);
      const elsewhere = !isOwn && turn.segment !== null;
      const line = make("li", {
        class: `turn ${turn.role}${isOwn ? " own" : ""}${elsewhere ? " elsewhere" : ""}`,
        "data-segment": elsewhere ? turn.segment : null,
        title: elsewhere ? `Segment ${turn.segment}` : null,
      });
      const text = make("p", { class: "text", dir: "auto", lang: dialog.language || null });
      if (turn.role !== "participant") text.append(make("span", { class: "who", text: turn.role === "assessor" ? "Assessor" : turn.speaker, lang: "en" }));
      text.append(...(own.has(i) ? pieces(turn.text, spans.get(i) || []) : [turn.text]));
      const go = elsewhere && this.isFirst(dialog, i)
        ? make("button", { type: "button", class: "go", text: turn.segment, "aria-label": `Open segment ${turn.segment}` })
        : null;
      line.append(make("span", { class: "when" }, ...[clock(turn.start_s), go].filter(Boolean)), text);
      return line;
    }));
    const first = $("turns").children[segment.first];
    if (first) $("turns").scrollTop = Math.max(0, first.offsetTop - $("turns").offsetTop - 90);
  }

  isFirst(dialog, i) {
    const segment = dialog.turns[i].segment;
    return !dialog.turns.slice(0, i).some((turn) => turn.segment === segment);
  }

  light(instructions) {
    const lit = new Set(instructions || []);
    for (const word of $("turns").querySelectorAll(".used")) {
      word.classList.toggle("lit", word.dataset.instructions.split(" ").some((k) => lit.has(Number(k))));
    }
  }
}

// A text cut where instructions begin and end. Places count code points; JavaScript counts halves of them.
function pieces(text, spans) {
  const letters = Array.from(text);
  const cuts = [...new Set([0, letters.length, ...spans.flatMap(([from, to]) => [from, to])])]
    .filter((at) => at >= 0 && at <= letters.length).sort((a, b) => a - b);
  return cuts.slice(0, -1).map((from, n) => {
    const part = letters.slice(from, cuts[n + 1]).join("");
    const used = spans.filter(([a, b]) => a <= from && from < b).map(([, , k]) => k);
    return used.length ? make("span", { class: "used", "data-instructions": used.join(" "), text: part }) : document.createTextNode(part);
  });
}
