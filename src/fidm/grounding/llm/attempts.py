"""Asking a language model: each question once, kept answers first, and what an answer is worth on the map."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from fidm.errors import GroundingError, remedy
from fidm.grounding.base import Context, Segment
from fidm.grounding.llm.answers import InvalidAnswerError, closed, response_format
from fidm.grounding.llm.client import (
    THINKING_OFF,
    AnswerCache,
    ChatClient,
    RefusedError,
    Reply,
    Stored,
    UnansweredError,
    read_reply,
)
from fidm.grounding.llm.prompt import MAX_SAID, Message, Prompt
from fidm.grounding.route.program import NOTHING, Program, same_program
from fidm.grounding.route.replay import replay

KEY_VERSION = 1

WORTH_REPAIR = frozenset({"blocked", "not_in_line", "unreachable", "not_here"})
"""Issues that another answer may not have. A distance nobody mentioned is not the model's fault."""

UNSUPPORTED = frozenset({"unquoted", "requoted", "missed"})
"""Doubts about an answer that holds less than was written, or less than was said."""

SHORTEST_TOKEN, CLEARLY_FEWER = 6.0, 0.75
"""A token has at most so many characters on average; a count below this share of the expected is a cut."""

_VALUES = re.compile(r'"(?:op|way|place|squares|end)"\s*:\s*("[^"]*"|\d+|true)|"moves"\s*:\s*(\[[^\]]*\])')


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One call."""

    body: dict[str, Any]  # what is sent
    key: str  # the hash of everything the answer depends on

    @classmethod
    def of(cls, body: dict[str, Any], template: str, weights: str | None) -> Request:
        """Make a call's key from its body, its template's hash and that of the model's file."""
        whole = json.dumps([KEY_VERSION, template, weights, body], sort_keys=True)
        return cls(body, hashlib.sha256(whole.encode()).hexdigest())

    def __repr__(self) -> str:
        return f"Request({self.key[:12]})"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer, judged."""

    program: Program | None  # what it says; None where it cannot be used
    doubts: tuple[str, ...] = ()  # why a person should look at it
    codes: tuple[str, ...] = ()  # what to tell the model in a second try
    probability: float = 1.0  # how probable the model finds it, where the server says
    is_cut: bool = False  # whether its tokens ran out
    content: str = ""  # the answer as written
    instead_of: Program | None = None  # an earlier answer, which did not fit the map

    def __repr__(self) -> str:
        return f"Attempt(doubts={self.doubts})"

    @property
    def is_repairable(self) -> bool:
        """Whether a second try may help."""
        return bool(self.codes) and not self.is_cut


def judge(stored: Stored, request: Request, segment: Segment, context: Context, prompt: Prompt) -> Attempt:
    """Read an answer, walk it on the map, and note every doubt."""
    reply = read_reply(stored.body)
    doubts: list[str] = []
    if is_prompt_cut(request, reply, stored.tokens_per_character) or len(segment.text) > MAX_SAID:
        doubts.append("prompt_cut")
    if reply.is_cut:
        return Attempt(None, ("cut_off", *doubts), is_cut=True)
    try:
        answer = prompt.form.read(reply.content, segment.text)
    except InvalidAnswerError as error:
        return Attempt(None, (error.code, *doubts), (error.code,), content=reply.content)
    walk = replay(answer.program, context.terrain, context.position, told=context.told)
    issues = walk.doubts
    doubts += answer.doubts
    if answer.is_full:
        doubts.append("full")
    if same_program(answer.program, NOTHING) and prompt.tells(segment.text):
        doubts.append("missed")
    return Attempt(
        answer.program,
        (*issues, *doubts),
        tuple(code for code in issues if code in WORTH_REPAIR),
        answer_probability(reply),
        content=reply.content,
    )


def prefer(first: Attempt, second: Attempt) -> Attempt:
    """Choose between a first answer that is invalid or does not fit the map, and the second try.

    A second answer that fits better is followed, but not silently: people do say what cannot be done, and a
    model that is told so may bend their words. The first answer stays beside it as another reading. A second
    answer of which something had to be left out fits only for that reason.
    """
    if second.program is None:
        return first
    if first.program is None:
        return second
    if UNSUPPORTED & set(second.doubts) or same_program(first.program, second.program):
        return first
    if len(second.codes) >= len(first.codes):
        return first
    return replace(second, instead_of=first.program)


def answer_probability(reply: Reply) -> float:
    """Return the probability of an answer's values from those of its tokens; 1 where there are none.

    Only tokens of values that decide something count (names of instructions, directions, numbers, places),
    where they can be found in the answer; else all tokens.
    """
    if not reply.logprobs:
        return 1.0
    joined = "".join(token for token, _ in reply.logprobs)
    start = joined.find(reply.content.strip())
    spans = [match.span(match.lastindex or 0) for match in _VALUES.finditer(joined)] if start >= 0 else []
    total, place = 0.0, 0
    for token, logprob in reply.logprobs:
        end = place + len(token)
        if not spans or any(place < high and low < end for low, high in spans):
            total += min(logprob, 0.0) if logprob == logprob else -math.inf
        place = end
    return math.exp(total)


def token_ratio(messages: Sequence[Message], prompt_tokens: int | None) -> float | None:
    """Return how many tokens a server counts per character of a text that was surely read whole."""
    length = sum(len(message["content"]) for message in messages)
    return None if prompt_tokens is None or not length else prompt_tokens / length


def is_prompt_cut(request: Request, reply: Reply, ratio: float | None) -> bool:
    """Whether the server counted clearly fewer tokens than were sent, as one does that cuts silently."""
    if reply.prompt_tokens is None:
        return False
    texts = [str(message["content"]) for message in request.body["messages"]]
    length = sum(map(len, texts))
    expected = max(length / SHORTEST_TOKEN, CLEARLY_FEWER * (ratio or 0.0) * length)
    return reply.prompt_tokens < expected


logger = logging.getLogger(__name__)

PROBE_TOKENS = 96


class Asker:
    """A server and a file of answers, shared by all threads.

    ``cache`` holds the answers so far; where ``model`` is None, the server is asked for its name.
    """

    def __init__(self, client: ChatClient, cache: AnswerCache | None, model: str | None) -> None:
        self.client, self.cache = client, cache
        self._model = model
        self._lock = threading.RLock()
        self._in_flight: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._is_probed = False
        self._enforced: bool | None = None
        self._ratio: float | None = None
        self._extras: dict[str, Any] = dict(THINKING_OFF)
        self._server: dict[str, Any] = {}
        self._seen_enforced: set[bool | None] = set()
        self._seen_fingerprints: set[str] = set()

    def provenance(self) -> dict[str, Any]:
        """Return what was found out about the server and the model; without paths."""
        with self._lock:
            enforced = False if False in self._seen_enforced else None
            return {
                "model": None if self._model is None else Path(self._model).name,
                "server": dict(self._server),
                "system_fingerprint": sorted(self._seen_fingerprints),
                "enforced": True if self._seen_enforced == {True} else enforced,
                "endpoint": self.client.host_class,
            }

    def model_name(self) -> str:
        """Return the model's name, as it was given or as the server says."""
        with self._lock:
            if self._model is None:
                listed = self.client.models()
                names = [str(item["id"]) for item in listed if item.get("id")]
                if len(names) != 1:
                    known = ", ".join(Path(name).name for name in names[:20]) or "none"
                    raise GroundingError(
                        f"The server has {len(names)} models ({known}). Say which one: "
                        + remedy("model=NAME.", "model in grounding.toml, or fidm ground --model NAME."),
                        source=self.client.url,
                    )
                self._model = names[0]
                self._server = _described(listed[0])
            return self._model

    def kept(self, key: str) -> Stored | None:
        """Return an answer that is kept."""
        return None if self.cache is None else self.cache.get(key)

    def answer(self, request: Request) -> Stored:
        """Return the answer to a request: the kept one, else a new one, which is then kept."""
        with self._lock:
            # Two dialogs may ask the same at the same time; the second then waits for the first.
            alone = self._in_flight.get(request.key) or threading.Lock()
            self._in_flight[request.key] = alone
        with alone:
            stored = self.kept(request.key)
            if stored is None:
                self._probe(request)
                body = self.client.chat(request.body | self._extras)
                stored = Stored(body, self._enforced, self._ratio)
                if self.cache is not None:
                    self.cache.put(request.key, stored)
        fingerprint = read_reply(stored.body).fingerprint
        with self._lock:
            self._seen_enforced.add(stored.enforced)
            self._seen_fingerprints |= {fingerprint} - {""}
        return stored

    def close(self) -> None:
        """Close the connections and the file."""
        self.client.close()
        if self.cache is not None:
            self.cache.close()

    def _probe(self, request: Request) -> None:
        """Find out once whether the server keeps to schemas, and how it counts tokens.

        It is asked to say hello in a form whose only filling is a random code that stands nowhere in the
        prompt.
        """
        with self._lock:
            if self._is_probed:
                return
            code = f"zq-{secrets.token_hex(8)}"
            messages = [request.body["messages"][0], {"role": "user", "content": "Say hello."}]
            probe = {
                "model": request.body["model"],
                "messages": messages,
                "temperature": 0,
                "max_tokens": PROBE_TOKENS,
                "response_format": response_format("code", closed({"code": {"enum": [code]}})),
            }
            try:
                body = self.client.chat(probe | self._extras)
            except RefusedError as error:
                # A strict server may refuse fields it does not know.
                if error.status not in (400, 422):
                    raise
                body = self.client.chat(probe)
                self._extras = {}
            reply = read_reply(body)
            self._enforced = f'"{code}"' in reply.content
            self._ratio = token_ratio(messages, reply.prompt_tokens)
            self._is_probed = True
            self._describe(request.body["model"])
            logger.info("Schema enforced by the server: %s.", self._enforced)

    def _describe(self, model: str) -> None:
        """Note what the server says of the model, if it says anything."""
        if self._server:
            return
        try:
            listed = self.client.models()
        except (RefusedError, UnansweredError):
            return
        self._server = next((_described(item) for item in listed if item.get("id") == model), {})


def _described(item: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers a server gives of its model, without paths."""
    meta = item.get("meta")
    known = {**item, **(meta if isinstance(meta, dict) else {})}
    wanted = ("owned_by", "n_params", "size", "ftype", "n_ctx", "n_ctx_train", "n_vocab", "max_model_len")
    return {key: known[key] for key in wanted if isinstance(known.get(key), int | str)}
