// Talking to the server: the token that came with the address, who is reviewing, and errors in words.

const HEADER = "X-Fidm-Token";
const WHO = "X-Fidm-Reviewer";
const KEPT = "fidm-review";

export class Refused extends Error {
  constructor(status, words, body) {
    super(words);
    this.status = status;
    this.body = body;
  }
}

// The token stands behind the # of the address, which no browser sends anywhere. It is taken out of the address
// at once and kept for this tab alone.
function readToken() {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem(`${KEPT}-token`, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(`${KEPT}-token`) || "";
}

const token = readToken();

export const reviewer = {
  get name() { return sessionStorage.getItem(`${KEPT}-reviewer`) || ""; },
  set name(name) { sessionStorage.setItem(`${KEPT}-reviewer`, name); },
};

async function ask(method, path, { query = {}, body } = {}) {
  const asked = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  const address = asked.length ? `${path}?${new URLSearchParams(asked)}` : path;
  const headers = { [HEADER]: token, [WHO]: encodeURIComponent(reviewer.name) };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(address, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store",
    });
  } catch {
    throw new Refused(0, "The server does not answer. Is it still running? Decisions made so far are kept.");
  }
  const found = await answer.json().catch(() => ({}));
  if (answer.ok) return found;
  const words = answer.status === 401
    ? "This page is not allowed in. Open the address that fidm review printed."
    : found.error || `The server answers ${answer.status}.`;
  throw new Refused(answer.status, words, found);
}

export const get = (path, query) => ask("GET", path, { query });
export const post = (path, body) => ask("POST", path, { body });
