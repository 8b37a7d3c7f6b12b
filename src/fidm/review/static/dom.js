// Making elements. Whatever people said or wrote goes through textContent alone.

export const $ = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") made.textContent = value;
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

// How many later moves count only once somebody has decided on a segment.
export const freesWords = (n) => (n ? `frees ${n.toLocaleString("en")} later move${n === 1 ? "" : "s"}` : "");

export const plural = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;

export const percent = (share) => `${Math.round(100 * share)} %`;

// A number with so many digits, and a minus that is one.
export const decimal = (value, digits) => {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
};

// "Ann, Bo and Cy"
export const named = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`);

// "N×3, E, BUY meat"
export function shortMoves(actions) {
  const found = [];
  for (const action of actions) {
    const last = found[found.length - 1];
    if (last && last[0] === action) last[1] += 1;
    else found.push([action, 1]);
  }
  return found.map(([name, count]) => (count > 1 ? `${name}×${count}` : name)).join(", ") || "no moves";
}

// Where to look next without making anybody dizzy.
export function reveal(element) {
  if (element) element.scrollIntoView({ block: "nearest" });
}

export const STATUS = {
  needs_review: { words: "needs review", mark: "◆" },
  confident: { words: "confident", mark: "○" },
  no_route: { words: "nothing about the way", mark: "·" },
  reviewed: { words: "reviewed", mark: "✓" },
  rejected: { words: "rejected", mark: "✕" },
};

export const DONE = {
  accept: { words: "accepted", mark: "✓" },
  edit: { words: "edited", mark: "✎" },
  reject: { words: "rejected", mark: "✕" },
};
