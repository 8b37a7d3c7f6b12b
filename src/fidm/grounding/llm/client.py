"""A small client for servers that speak OpenAI's chat protocol: vLLM, Ollama, llama.cpp, LM Studio.

Speech is health data, so by default only a server on this machine is talked to, no proxy is used and no
redirect is followed. Nothing a server answers is repeated in an error, since servers like to quote what they
were sent.

Answers are kept in one SQLite file so that nothing is asked twice: one row per call, whose key is the hash of
everything the answer depends on. The file holds raw answers, which may repeat what was said: it belongs in
the study's folder and can be read by its owner alone. Several threads and several processes may use it at
once, and a killed run loses only the calls that were under way.
"""

from __future__ import annotations

import email.utils
import ipaddress
import json
import logging
import random
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from fidm.errors import GroundingError, remedy
from fidm.files import Contents, PrivateFile

if TYPE_CHECKING:
    from httpx import URL


def import_httpx() -> Any:
    """Return the HTTP library; an error that says how to install it where it is missing."""
    try:
        import httpx
    except ImportError:
        raise GroundingError(
            "Language models need the package httpx. Install it with: pip install 'fidm[llm]'"
        ) from None
    return httpx


def check_address(base_url: str, *, allow_remote: bool) -> tuple[str, Literal["loopback", "remote"]]:
    """Return a server's address, tidied, and whether it is on this machine; refuse others unless allowed."""
    httpx = import_httpx()
    try:
        url: URL = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError, ValueError):
        raise GroundingError(
            f"{base_url!r} is no address. Write one such as http://127.0.0.1:8080/v1"
        ) from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise GroundingError(
            "The address of a server looks like http://127.0.0.1:8080/v1, without a password or a query. "
            + remedy("Give a key as api_key.", f"A key is taken from {API_KEY}.")
        )
    path = url.path.rstrip("/") or "/v1"
    local = is_loopback(url.host)
    if not local and not allow_remote:
        raise GroundingError(
            f"The server {url.host!r} is not on this machine, so what people said would leave it. Use a "
            f"server at 127.0.0.1, or {remedy('say allow_remote=True', 'run fidm ground --allow-remote')} if "
            "the study's rules permit it; that is recorded.",
            source=str(url),
        )
    return str(url.copy_with(path=path)), "loopback" if local else "remote"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else: 127.0.0.0/8, ::1, or ``localhost`` if it means these.

    Other names are never taken for this machine, whatever they resolve to now: that can change.
    """
    name = host.strip("[]").lower()
    if name == "localhost":
        try:
            found = {str(item[4][0]) for item in socket.getaddrinfo(name, None)}
        except OSError:
            return False
        return bool(found) and all(is_loopback(address) for address in found if address != name)
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


logger = logging.getLogger(__name__)

API_KEY = "FIDM_API_KEY"
"""The environment variable that holds a server's key; a key on the command line could be seen by others."""

MAX_BODY_BYTES = 16_000_000
MAX_WAIT_S = 60.0
FIRST_WAIT_S = 0.5
MOST_IN_A_ROW = 5
"""So many calls in a row without an answer end the run: the server is not well. Calls that fail while under
way together count as one, and those during which another was answered as the first."""

FAILURES: Mapping[str, str] = {
    "timeout": "the server did not answer in time",
    "busy": "the server was busy",
    "server_error": "the server failed",
    "broken_off": "the server’s answer broke off",
    "garbage": "the server answered something that is no answer",
    "too_large": "the server’s answer was too large",
    "beyond_context": "the question is longer than the context of the language model’s server",
    "pending": "the question was put, and no answer is there yet",
}
"""Why one call got no answer, in words."""

RETRIED = frozenset({408, 425, 429, 502, 503, 504})
THINKING_OFF = {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}
"""Asks models that think before they answer not to; servers that do not know it ignore it."""


class UnansweredError(GroundingError):
    """One call got no answer that can be used; others may. ``code`` is why, see :data:`FAILURES`."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(f"The language model gave no answer: {FAILURES[code]}.")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered, as far as it is used."""

    content: str  # the text; that of the thoughts where there is no other
    is_cut: bool  # whether it stopped because the tokens ran out
    prompt_tokens: int | None = None  # how many tokens the server counted in what was sent
    fingerprint: str = ""  # what the server says of its version
    logprobs: tuple[tuple[str, float], ...] = ()  # of each token, where the server gives them

    def __repr__(self) -> str:
        return f"Reply({len(self.content)} characters)"


def read_reply(body: Mapping[str, Any]) -> Reply:
    """Read a server's answer; UnansweredError where it is no chat completion."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
        content = _text(message.get("content"))
        if not content.strip():
            content = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
        usage = body.get("usage") or {}
        tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        given = choice.get("logprobs")
        listed = given.get("content") if isinstance(given, dict) else None
        logprobs = tuple((str(item["token"]), float(item["logprob"])) for item in listed or ())
        return Reply(
            content,
            choice.get("finish_reason") == "length",
            tokens if isinstance(tokens, int) and tokens > 0 else None,
            str(body.get("system_fingerprint") or "")[:200],
            logprobs,
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise UnansweredError("garbage") from None


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


class ChatClient:
    """A connection to one server, to be shared by all threads.

    ``base_url`` is such as ``http://127.0.0.1:8080/v1``, on this machine unless ``allow_remote``. A call may
    take ``timeout_s`` and is tried again ``retries`` times; as many may be under way at once as there are
    threads. ``api_key`` is sent as a bearer token.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float = 120.0,
        retries: int = 4,
        allow_remote: bool = False,
        api_key: str | None = None,
    ) -> None:
        self._httpx = import_httpx()
        self.url, self.host_class = check_address(base_url, allow_remote=allow_remote)
        self.timeout_s, self.retries = timeout_s, retries
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise GroundingError("The API key has characters that no key has. Was it copied whole?")
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self._http = self._httpx.Client(
            headers=headers,
            timeout=self._httpx.Timeout(timeout_s, connect=min(10.0, timeout_s)),
            limits=self._httpx.Limits(max_connections=None, max_keepalive_connections=None),
            follow_redirects=False,
            trust_env=False,
        )
        self._lock = threading.Lock()
        self._in_a_row = self._n_answered = 0

    def models(self) -> list[dict[str, Any]]:
        """Return what the server says of its models."""
        body = self._call("GET", "models", None)
        listed = body.get("data")
        return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []

    def chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send one chat and return the whole answer, which :func:`read_reply` can read."""
        return self._call("POST", "chat/completions", json.dumps(body).encode())

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _call(self, method: str, path: str, content: bytes | None) -> dict[str, Any]:
        with self._lock:
            before = self._in_a_row, self._n_answered
        try:
            found = self._persist(method, path, content)
            if content is not None:
                read_reply(found)
        except UnansweredError as error:
            logger.warning("A call got no answer: %s.", FAILURES[error.code])
            if error.code != "beyond_context" and self._failed(*before) >= MOST_IN_A_ROW:
                raise GroundingError(
                    f"The language-model server answers no more: {FAILURES[error.code]}, after as much for "
                    "the calls before. Look at the server's own log, and run again: answers so far are kept "
                    "where a cache was named.",
                    source=self.url,
                ) from None
            raise
        with self._lock:
            self._in_a_row, self._n_answered = 0, self._n_answered + 1
        return found

    def _failed(self, in_a_row: int, n_answered: int) -> int:
        """Note a failure of a call that began after so many in a row; how many there are now."""
        with self._lock:
            before = in_a_row if n_answered == self._n_answered else 0
            self._in_a_row = max(self._in_a_row, before + 1)
            return self._in_a_row

    def _persist(self, method: str, path: str, content: bytes | None) -> dict[str, Any]:
        """Try, and try again where that may help."""
        n_odd = 0
        for attempt in range(self.retries + 1):
            last, wait = attempt == self.retries, None
            try:
                status, headers, raw = self._once(method, path, content)
            except (self._httpx.ConnectError, self._httpx.ConnectTimeout):
                if last:
                    raise GroundingError(
                        "No language-model server answers at this address. Start it, or correct the "
                        "address, and run again: answers so far are kept where a cache was named.",
                        source=self.url,
                    ) from None
            except (self._httpx.TimeoutException, TimeoutError):
                if last:
                    raise UnansweredError("timeout") from None
            except (self._httpx.TransportError, self._httpx.StreamError):
                if last:
                    raise UnansweredError("broken_off") from None
            else:
                found = _json_object(raw) if status == 200 else None
                if found is not None:
                    return found
                if status in RETRIED:
                    wait = _retry_after(headers.get("retry-after"))
                    if last:
                        raise UnansweredError("busy")
                elif status in (200, 500) and n_odd == 0 and not last:
                    n_odd += 1
                else:
                    raise self._refused(status, raw)
            _sleep(attempt, wait)
        raise UnansweredError("busy")  # not reached: the last attempt returns or raises

    def _once(self, method: str, path: str, content: bytes | None) -> tuple[int, Mapping[str, str], bytes]:
        """One call, with a bound on its time and on the size of its answer."""
        deadline = time.monotonic() + self.timeout_s
        kind = {"Content-Type": "application/json"} if content is not None else None
        with self._http.stream(method, f"{self.url}/{path}", content=content, headers=kind) as response:
            parts, size = [], 0
            for part in response.iter_raw():
                size += len(part)
                if size > MAX_BODY_BYTES:
                    raise UnansweredError("too_large")
                if time.monotonic() > deadline:
                    raise TimeoutError
                parts.append(part)
            return response.status_code, response.headers, b"".join(parts)

    def _refused(self, status: int, raw: bytes) -> GroundingError:
        """The error of a status that trying again does not change."""
        if status in (400, 413, 422) and _is_too_long(raw):
            return UnansweredError("beyond_context")
        if status == 200:
            return UnansweredError("garbage")
        if status >= 500:
            return UnansweredError("server_error")
        if 300 <= status < 400:
            what = "The server points to another address, which is not followed. Give the final address."
        else:
            give = remedy("Give it as api_key", f"Put it into the environment variable {API_KEY}")
            what = {
                400: "The server does not understand the request. Is it an OpenAI-compatible chat server, "
                "and can the model chat?",
                401: f"The server wants an API key, or another one. {give}.",
                403: f"The server refuses access. Does it want an API key? {give}, or ask whoever runs it.",
                404: "The server knows no such address or model. The address usually ends in /v1; name one "
                "of the server's models.",
                422: "The server refuses the request. Is it an OpenAI-compatible chat server?",
            }.get(status, "The server refuses the request. See its own log.")
        return RefusedError(f"{what} (HTTP status {status}.)", source=self.url, status=status)


class RefusedError(GroundingError):
    """A server will not take this request, however often it is sent."""

    def __init__(self, message: str, *, source: str, status: int) -> None:
        self.status = status
        super().__init__(message, source=source)


def _json_object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_too_long(raw: bytes) -> bool:
    said = raw[:10_000].lower()
    return any(
        mark in said
        for mark in (b"exceed_context_size", b"context length", b"context_length", b"context size")
    )


def _retry_after(value: str | None) -> float | None:
    """Seconds to wait as the server asks, as a number or a date."""
    if not value:
        return None
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return email.utils.parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None


def _sleep(attempt: int, wait: float | None) -> None:
    if wait is None or not 0 <= wait < float("inf"):
        wait = FIRST_WAIT_S * 2.0**attempt * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
    time.sleep(min(wait, MAX_WAIT_S))


CONTENTS = Contents(
    table="""
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    answer TEXT NOT NULL,
    asked_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) WITHOUT ROWID
""",
    application_id=0x4649444D,  # "FIDM"
    version=1,
    what="answers",
    kept="What was answered so far is kept.",
    again="its answers are then asked for anew.",
    error=GroundingError,
)


@dataclass(frozen=True, slots=True)
class Stored:
    """One answer as the server gave it, and what was known of the server."""

    body: dict[str, Any]  # the whole answer
    enforced: bool | None = None  # whether the server was found to keep to schemas; None where nobody looked
    tokens_per_character: float | None = None  # what the server counted for a text of known length

    def __repr__(self) -> str:
        # An answer repeats what was said, and must not end up in a log by way of a repr.
        return f"Stored(enforced={self.enforced})"


class AnswerCache(PrivateFile):
    """A file of answers.

    Parameters
    ----------
    path : str or Path
        Where it lies; made with its folder if it is not there.
    """

    contents = CONTENTS

    def get(self, key: str) -> Stored | None:
        """Return the answer of a call; None if it was never made."""
        with self._use() as connection:
            row = connection.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            kept = json.loads(row[0])
            return Stored(kept["body"], kept["enforced"], kept["tokens_per_character"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._damaged() from None

    def put(self, key: str, stored: Stored) -> None:
        """Keep an answer; one that is there already stays."""
        with self._use() as connection:
            # INSERT is a transaction of its own: a row is there whole or not at all.
            connection.execute(
                "INSERT OR IGNORE INTO answers (key, answer) VALUES (?, ?)", (key, json.dumps(asdict(stored)))
            )

    def keys(self) -> set[str]:
        """Return the keys of all calls made."""
        with self._use() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM answers")}
