"""One call to a language model, and what its answer is worth once it is read and walked on the map."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fidm.grounding.answers import InvalidAnswerError
from fidm.grounding.base import Context, Segment
from fidm.grounding.cache import Stored
from fidm.grounding.client import Reply, read_reply
from fidm.grounding.program import NOTHING, Program, same_program
from fidm.grounding.prompt import MAX_SAID, Message, Prompt
from fidm.grounding.replay import DOUBTFUL, replay

KEY_VERSION = 1

WORTH_REPAIR = frozenset({"blocked", "not_in_line", "unreachable", "not_here"})
"""Issues that another answer may not have. A distance nobody mentioned is not the model's fault."""

SHORTEST_TOKEN, CLEARLY_FEWER = 6.0, 0.75
"""A token has at most so many characters on average; a count below this share of the expected is a cut."""

_VALUES = re.compile(r'"(?:op|way|place|squares|end)"\s*:\s*("[^"]*"|\d+|true)|"moves"\s*:\s*(\[[^\]]*\])')


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One call.

    Parameters
    ----------
    body : dict
        What is sent.
    key : str
        The hash of everything the answer depends on.
    """

    body: dict[str, Any]
    key: str

    @classmethod
    def of(cls, body: dict[str, Any], template: str, weights: str | None) -> Request:
        """Make a call's key from its body, its template's hash and that of the model's file."""
        whole = json.dumps([KEY_VERSION, template, weights, body], sort_keys=True)
        return cls(body, hashlib.sha256(whole.encode()).hexdigest())

    def __repr__(self) -> str:
        return f"Request({self.key[:12]})"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer, judged.

    Parameters
    ----------
    program : tuple of Instruction or None
        What it says; None where it cannot be used.
    doubts : tuple of str
        Why a person should look at it.
    codes : tuple of str
        What to tell the model in a second try.
    probability : float
        How probable the model finds it, where the server says.
    is_cut : bool
        Whether its tokens ran out.
    content : str
        The answer as written.
    instead_of : tuple of Instruction or None
        An earlier answer, which did not fit the map.
    """

    program: Program | None
    doubts: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    probability: float = 1.0
    is_cut: bool = False
    content: str = ""
    instead_of: Program | None = None

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
    issues = tuple(dict.fromkeys(issue.code for issue in walk.issues if issue.code in DOUBTFUL))
    if not answer.is_quoted:
        doubts.append("unquoted")
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
    model that is told so may bend their words. The first answer stays beside it as another reading.
    """
    if second.program is None:
        return first
    if first.program is None:
        return second
    if len(second.codes) >= len(first.codes) or same_program(first.program, second.program):
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
    texts = [_content(message) for message in request.body["messages"]]
    length = sum(map(len, texts))
    expected = max(length / SHORTEST_TOKEN, CLEARLY_FEWER * (ratio or 0.0) * length)
    return reply.prompt_tokens < expected


def _content(message: Mapping[str, Any]) -> str:
    return str(message["content"])
