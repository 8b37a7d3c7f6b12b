// Keys for everything. Nothing is taken from somebody who is typing, and the keys can be turned off.

import { $, make } from "./dom.js";

export const KEYS = [
  ["Segments", [["j  ↓", "next"], ["k  ↑", "previous"], ["n", "next one not judged by you"], ["/", "find a participant"]]],
  ["Judging", [["a", "accept"], ["e", "edit"], ["r", "reject"], ["w", "withdraw your decision"], ["c", "write a comment"],
    ["1 – 9", "edit from another reading"]]],
  ["Looking", [["space", "play or pause"], [",  .", "a step back or on"], ["v", "show the way before"], ["h", "hear the recording, or stop it"]]],
  ["Editing", [["← ↑ → ↓", "move the figure"], ["b", "take something (BUY)"], ["p", "pay"], ["l", "leave"],
    ["g", "go to a place: type it"], ["t", "type the route"], ["Backspace", "undo"], ["Enter", "save"], ["Esc", "leave the edit"]]],
  ["Page", [["?", "this help"], ["Esc", "out of a field or a window"]]],
];

const WAYS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
const TEXT = new Set(["text", "search", "number", ""]);

function isTyping(element) {
  if (!element || !element.tagName) return false;
  if (element.isContentEditable || ["TEXTAREA", "SELECT"].includes(element.tagName)) return true;
  return element.tagName === "INPUT" && TEXT.has(element.type || "");
}

// Keys that the focused element has a use for itself.
function isOwn(element, key) {
  if (!element || !element.closest) return false;
  if (element.tagName === "INPUT") return key === " " || key.startsWith("Arrow");
  if (element.closest("#turns") && key.startsWith("Arrow")) return element.tagName !== "BUTTON";
  return element.closest("button, a") && (key === " " || key === "Enter");
}

export function listen(page) {
  $("help-keys").replaceChildren(...KEYS.flatMap(([title, keys]) => {
    const list = make("dl", {});
    for (const [key, words] of keys) list.append(make("dt", {}, ...key.split("  ").map((k) => make("kbd", { text: k }))), make("dd", { text: words }));
    return [make("h3", { text: title }), list];
  }));
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    const where = document.activeElement;
    if (event.key === "Escape") {
      if (isTyping(where) && where.id !== "route") where.blur();
      else if (page.editor.isOpen) page.leaveEdit();
      return;
    }
    if (isTyping(where) || isOwn(where, event.key) || !$("keys-on").checked) return;
    const act = page.editor.isOpen ? editing(event, page) : looking(event, page);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function looking({ key, repeat }, page) {
  if (/^[1-9]$/.test(key)) return () => page.takeReading(Number(key));
  const once = (act) => (repeat ? () => {} : act);
  return {
    j: () => page.list.move(1),
    ArrowDown: () => page.list.move(1),
    k: () => page.list.move(-1),
    ArrowUp: () => page.list.move(-1),
    n: () => page.nextOpen(),
    a: once(() => page.decide("accept")),
    e: once(() => page.edit()),
    r: once(() => page.decide("reject")),
    w: once(() => page.decide("withdraw")),
    c: () => $("comment").focus(),
    "/": () => $("search").focus(),
    "?": () => $("help").showModal(),
    " ": () => page.walk.play(),
    ",": () => page.walk.step(-1),
    ".": () => page.walk.step(1),
    v: () => $("earlier").click(),
    h: () => page.hear.play(),
  }[key];
}

function editing({ key, repeat }, page) {
  const { editor } = page;
  if (WAYS[key]) return () => editor.step(WAYS[key]);
  if (/^[1-9]$/.test(key)) return () => editor.pick(Number(key)) || page.takeReading(Number(key));
  return {
    b: () => editor.use("BUY"),
    p: () => editor.use("PAY"),
    l: () => editor.use("LEAVE"),
    g: () => page.type("GOTO "),
    t: () => page.type(""),
    c: () => $("comment").focus(),
    "?": () => $("help").showModal(),
    " ": () => page.walk.play(),
    ",": () => page.walk.step(-1),
    ".": () => page.walk.step(1),
    v: () => $("earlier").click(),
    h: () => page.hear.play(),
    Backspace: () => editor.undo(),
    Enter: repeat ? () => {} : () => editor.save(),
  }[key];
}
