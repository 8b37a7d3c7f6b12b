"""Grounding by a language model that runs on your own machine.

The model is asked for a route program in a fixed form; the map, not the model, turns it into moves. Whatever
comes back is checked, and everything a person should look at is said in the proposal's doubts:

===================  ==================================================================================
``no_answer``        nothing usable came back, even at the second try; the reason stands beside it
``cut_off``          the answer was longer than its tokens
``prompt_cut``       the server seems to have read only a part of what was sent
``repaired``         the first answer did not fit the map; the second, which does, is only one reading
``disagree``         less than four in five of the samples say the same
``unsure``           the tokens of the answer have a low probability
``missed``           an empty answer, though the words name a place or something to do
``unquoted``         an instruction whose words nobody said was left out
``requoted``         an instruction whose words an earlier one had used was left out
``full``             as many instructions as fit, so that some may be missing
===================  ==================================================================================

and the issues of the replay (:data:`fidm.grounding.route.replay.MEANING`). Models at temperature 0 still do
not always answer the same: the stored grounding is the result, never "run it again".

Very large studies: requests written to, and answers read from, the JSONL files of OpenAI's batch format.

``vllm run-batch -i requests.jsonl -o answers.jsonl --model …`` answers such a file without a server. What a
later segment needs depends on where the earlier ones led, and a second try on the first answer, so a study is
worked off in rounds: export what can be asked now (the next open segment of every dialog), run it, import the
answers into the cache, go on with those segments for which :meth:`LanguageModel.pending` is empty, and
repeat until an export writes nothing. All dialogs move on together, so there are about as many rounds as
the longest dialog has segments, and some more for second tries.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from fidm.errors import GroundingError, Problem, remedy
from fidm.files import hash_file
from fidm.grounding.base import Context, Proposal, Reading, Segment
from fidm.grounding.llm.answers import AnswerForm, response_format
from fidm.grounding.llm.attempts import Asker, Attempt, Request, judge, prefer
from fidm.grounding.llm.client import (
    THINKING_OFF,
    AnswerCache,
    ChatClient,
    Stored,
    UnansweredError,
    read_reply,
)
from fidm.grounding.llm.examples import OwnExample, choose_examples, pool_digest
from fidm.grounding.llm.prompt import Message, Prompt, read_template
from fidm.grounding.route.program import NOTHING, same_program
from fidm.grounding.route.replay import Terrain

AGREED = 0.8
"""The share of samples that must say the same."""

SAMPLING_TEMPERATURE = 0.7
SURE = 0.5

Ask = Callable[[Sequence[Request]], list[Stored]]


@dataclass(frozen=True, slots=True)
class Answers:
    """How many segments a model was asked about, and why how many got no answer that can be used."""

    n_asked: int = 0
    unanswered: Mapping[str, int] = field(default_factory=dict)  # how many, by the doubt that says why

    @property
    def n_unanswered(self) -> int:
        """How many segments got no usable answer."""
        return sum(self.unanswered.values())


class LanguageModel:
    """A grounder that asks a local language model what was said about the way.

    Parameters
    ----------
    base_url : str
        An OpenAI-compatible server: vLLM, Ollama, llama.cpp, LM Studio.
    model : str, optional
        The model's name; needed where the server has several.
    template : str
        How to ask: ``route_v1``, ``moves_v1`` (single moves, as in the paper), or the path of your own.
    temperature : float, optional
        0 unless several samples are taken, then 0.7.
    samples : int
        How many answers to take; with more than one, different ones become readings with probabilities.
    logprobs : bool
        Whether to take an answer's probability from the server's token probabilities.
    timeout_s : float
        How long one call may take.
    retries : int
        How often a failed call is tried again.
    context_turns : int
        How many turns before the segment are sent along.
    max_instructions : int, optional
        How many instructions (or moves) fit into an answer.
    cache : path, optional
        A file in the study's folder that keeps every answer, so that nothing is asked twice.
    allow_remote : bool
        Whether the server may be on another machine. What people said then leaves this one.
    api_key : str, optional
        For servers that want one.
    model_file : path, optional
        The file of weights; its hash then goes into the provenance and into the keys of the cache.
    examples : sequence of OwnExample
        Reviewed segments of the study, shown as worked examples behind those of the template, to a server on
        this machine alone. Nobody's words help to read themselves, see :meth:`about`.
    max_examples : int
        How many of them are shown at most.

    Examples
    --------
    >>> model = LanguageModel("http://127.0.0.1:8080/v1", model="my-model")
    >>> model.provenance()["endpoint"], model.provenance()["template"]
    ('loopback', 'route_v1')
    >>> model.close()
    """

    name = "llm"

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8080/v1",
        model: str | None = None,
        *,
        template: str = "route_v1",
        temperature: float | None = None,
        samples: int = 1,
        logprobs: bool = False,
        timeout_s: float = 120.0,
        retries: int = 4,
        context_turns: int = 6,
        max_instructions: int | None = None,
        cache: str | Path | None = None,
        allow_remote: bool = False,
        api_key: str | None = None,
        model_file: str | Path | None = None,
        examples: Sequence[OwnExample] = (),
        max_examples: int = 6,
    ) -> None:
        _check_settings(temperature, samples, logprobs, timeout_s, retries, context_turns)
        self._template = read_template(template)
        self._temperature = (
            (SAMPLING_TEMPERATURE if samples > 1 else 0.0) if temperature is None else temperature
        )
        self._samples, self._logprobs, self._turns = samples, logprobs, context_turns
        self._most = max_instructions
        self._allow_remote = allow_remote
        self._weights = None if model_file is None else _file_digest(model_file)
        client = ChatClient(
            base_url, timeout_s=timeout_s, retries=retries, allow_remote=allow_remote, api_key=api_key
        )
        try:
            self._asker = Asker(client, None if cache is None else AnswerCache(cache), model)
        except GroundingError:
            client.close()
            raise
        self._examples, self._most_examples = tuple(examples), max_examples
        if examples and client.host_class == "remote":
            self.close()
            without = remedy("leave examples out", "set llm.examples in grounding.toml to template")
            raise GroundingError(
                "Examples from reviewed segments hold what participants said, and go to a server on this "
                f"machine only. Use a server at 127.0.0.1, or {without}.",
                source=client.url,
            )
        if examples and self._template.style != "route":
            self.close()
            raise GroundingError(
                f"Reviewed segments are examples of routes; the template {self._template.name!r} asks for "
                "single moves. Use a route template, or leave the examples out."
            )
        self._without: frozenset[str] | None = None  # whose words must not be shown; None where nobody knows
        # What follows is shared by all copies that about() makes.
        self._lock = threading.Lock()
        self._prompts: WeakKeyDictionary[Terrain, dict[str, Prompt]] = WeakKeyDictionary()
        self._own: WeakKeyDictionary[Terrain, dict[tuple[str, frozenset[str]], list[Message]]] = (
            WeakKeyDictionary()
        )
        self._schemas: set[str] = set()
        self._asked, self._unanswered = Counter[str](), Counter[str]()

    @property
    def cache(self) -> AnswerCache | None:
        """The file of answers."""
        return self._asker.cache

    def provenance(self) -> Mapping[str, Any]:
        """Return what a later reader must know: model, template, schema, settings, and how it was served."""
        import fidm

        with self._lock:
            schemas = sorted(self._schemas)
        return {
            "grounder": self.name,
            "fidm_version": fidm.__version__,
            **self._asker.provenance(),
            "model_file_sha256": self._weights,
            "template": self._template.name,
            "template_sha256": self._template.digest,
            "schema_sha256": schemas,
            "allow_remote": self._allow_remote,
            "examples": {"n": len(self._examples), "sha256": pool_digest(self._examples)},
            "settings": {
                "temperature": self._temperature,
                "samples": self._samples,
                "logprobs": self._logprobs,
                "context_turns": self._turns,
                "max_instructions": self._most,
                "max_examples": self._most_examples,
            },
        }

    def about(self, participant: str, without: Collection[str] = ()) -> LanguageModel:
        """Return this model to read one participant, shown examples that hold nobody's words who is judged.

        The server, the answers and all counts are shared. Without it no reviewed segment is shown, since
        nobody knows who is being read.

        Parameters
        ----------
        participant : str
            Whose dialog is read; empty for words that are nobody's.
        without : collection of str
            Further participants whose words must not be shown.
        """
        found = copy(self)
        found._without = frozenset({participant, *without})
        return found

    def ground(self, segment: Segment, context: Context) -> Proposal:
        """Propose what a segment says about the way; never raises because of what a model answers."""
        try:
            found = self._read(segment, context, lambda asked: [self._asker.answer(one) for one in asked])
        except UnansweredError as error:
            found = Proposal(doubts=("no_answer", error.code), grounder=self.name)
        with self._lock:
            self._asked["segments"] += bool(segment.text.strip())
            self._unanswered.update(found.doubts[1:2] if "no_answer" in found.doubts else ())
        return found

    def answers(self) -> Answers:
        """Return how many segments the model was asked about so far, and how many got no usable answer."""
        with self._lock:
            return Answers(self._asked["segments"], dict(self._unanswered))

    def pending(self, segment: Segment, context: Context) -> list[Request]:
        """Return the calls a segment needs next and the cache does not hold; none where all is answered."""
        missing: list[Request] = []

        def look(requests: Sequence[Request]) -> list[Stored]:
            kept = [self._asker.kept(request.key) for request in requests]
            missing.extend(r for r, stored in zip(requests, kept, strict=True) if stored is None)
            if missing:
                raise UnansweredError("pending")
            return [stored for stored in kept if stored is not None]

        try:
            self._read(segment, context, look)
        except UnansweredError:
            return missing
        return []

    def close(self) -> None:
        """Close the connections and the file of answers."""
        self._asker.close()

    # ------------------------------------------------------------------ reading one segment

    def _read(self, segment: Segment, context: Context, ask: Ask) -> Proposal:
        if not segment.text.strip():
            return Proposal(grounder=self.name)
        prompt = self._prompt(context)
        messages = prompt.messages(segment, context, self._turns, self._examples_for(prompt, context))

        def tried(*requests: Request) -> list[Attempt]:
            answers = zip(ask(requests), requests, strict=True)
            return [judge(stored, request, segment, context, prompt) for stored, request in answers]

        if self._samples > 1:
            seeds = range(1, 1 + self._samples)
            return self._sampled(tried(*(self._request(prompt, messages, seed=seed) for seed in seeds)))
        (attempt,) = tried(self._request(prompt, messages))
        if attempt.is_cut:
            (attempt,) = tried(self._request(prompt, messages, times=2))
        if attempt.is_repairable:
            again = prompt.repair(messages, attempt.content, attempt.codes)
            try:
                (second,) = tried(self._request(prompt, again))
                attempt = prefer(attempt, second)
            except UnansweredError as error:
                if error.code == "pending":
                    raise
        return self._proposal(attempt)

    def _proposal(self, attempt: Attempt) -> Proposal:
        if attempt.program is None:
            doubts = tuple(dict.fromkeys(("no_answer", *attempt.doubts)))
            return Proposal(doubts=doubts, grounder=self.name)
        doubts = attempt.doubts
        if self._logprobs and attempt.probability < SURE:
            doubts = (*doubts, "unsure")
        if attempt.instead_of is not None:
            readings = [(attempt.program, 0.5), (attempt.instead_of, 0.5)]
            return Proposal.of(readings, (*doubts, "repaired"), self.name)
        return Proposal((Reading(attempt.program, attempt.probability),), doubts, self.name)

    def _sampled(self, attempts: Sequence[Attempt]) -> Proposal:
        valid = [attempt for attempt in attempts if attempt.program is not None]
        if not valid:
            return self._proposal(attempts[0])
        proposal = Proposal.of([(a.program or NOTHING, 1.0) for a in valid], (), self.name)
        alike = [a for a in valid if a.program is not None and same_program(a.program, proposal.program)]
        doubts = alike[0].doubts
        if len(alike) < AGREED * self._samples:
            doubts = (*doubts, "disagree")
        return Proposal(proposal.readings, doubts, self.name)

    # ------------------------------------------------------------------ asking

    def _prompt(self, context: Context) -> Prompt:
        with self._lock:
            kept = self._prompts.setdefault(context.terrain, {})
            found = kept.get(context.language)
            if found is None:
                form = AnswerForm.of(context.terrain, self._template.style, most=self._most)
                found = Prompt.of(self._template, form, context.terrain, context.language)
                kept[context.language] = found
                self._schemas.add(form.digest)
            return found

    def _examples_for(self, prompt: Prompt, context: Context) -> list[Message]:
        """The messages of the reviewed segments that may be shown."""
        if not self._examples or self._without is None:
            return []
        terrain, language = context.terrain, context.language
        with self._lock:
            kept = self._own.setdefault(terrain, {})
            found = kept.get((language, self._without))
            if found is None:
                chosen = choose_examples(
                    self._examples,
                    prompt.form,
                    language=language,
                    task=terrain.task.fingerprint,
                    without=self._without,
                    n=self._most_examples,
                )
                found = [message for one in chosen for message in prompt.own(one, terrain)]
                kept[language, self._without] = found
            return found

    def _request(
        self, prompt: Prompt, messages: Sequence[Message], *, times: int = 1, seed: int | None = None
    ) -> Request:
        body: dict[str, Any] = {
            "model": self._asker.model_name(),
            "messages": list(messages),
            "temperature": self._temperature,
            "max_tokens": times * prompt.form.max_tokens,
            "response_format": response_format("answer", prompt.form.schema),
        }
        if seed is not None:
            body["seed"] = seed
        if self._logprobs:
            body |= {"logprobs": True, "top_logprobs": 1}
        return Request.of(body, self._template.digest, self._weights)


def _file_digest(path: str | Path) -> str:
    try:
        return hash_file(path)
    except OSError as error:
        raise GroundingError(
            f"The model's file cannot be read: {error.strerror}.", source=str(path)
        ) from None


def _check_settings(
    temperature: float | None, samples: int, logprobs: bool, timeout_s: float, retries: int, turns: int
) -> None:
    if samples < 1 or retries < 0 or turns < 0 or not 0 < timeout_s < math.inf:
        raise GroundingError(
            "samples is at least 1, retries and context_turns at least 0, timeout_s above 0."
        )
    if temperature is not None and not 0 <= temperature <= 2:
        raise GroundingError(f"temperature is 0 to 2, not {temperature}.")
    if samples > 1 and temperature == 0:
        raise GroundingError(
            "Several samples at temperature 0 are the same. Leave temperature out, or raise it."
        )
    if samples > 1 and logprobs:
        raise GroundingError("Take either several samples or logprobs: both tell how sure an answer is.")


MAX_LINE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought."""

    n_answers: int  # answers that are now in the cache
    # Lines that could not be used; their requests are exported again in the next round.
    problems: tuple[Problem, ...] = ()


def export_requests(
    model: LanguageModel, segments: Iterable[tuple[Segment, Context]], path: str | Path
) -> int:
    """Write the calls that segments need next, and the cache does not hold, as a batch file.

    Parameters
    ----------
    model : LanguageModel
        With the name of its model given, and a cache. No server is asked.
    segments : iterable of (Segment, Context)
        The next open segment of each dialog.
    path : str or Path
        The file to write, which only its owner can read: it holds what was said.

    Returns
    -------
    int
        How many calls were written; 0 when nothing is left to ask.
    """
    if model.cache is None:
        raise GroundingError("A batch needs a cache to keep its answers: LanguageModel(…, cache=path).")
    written: set[str] = set()
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                for segment, context in segments:
                    for request in model.pending(segment, context):
                        if request.key in written:
                            continue
                        written.add(request.key)
                        line = {
                            "custom_id": request.key,
                            "method": "POST",
                            "url": "/v1/chat/completions",
                            "body": request.body | THINKING_OFF,
                        }
                        file.write(json.dumps(line) + "\n")
            os.replace(name, target)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise GroundingError(f"cannot be written: {error.strerror}.", source=str(target)) from None
    return len(written)


def import_answers(path: str | Path, cache: AnswerCache) -> Imported:
    """Put the answers of a batch into a cache.

    Parameters
    ----------
    path : str or Path
        The file the batch wrote.
    cache : AnswerCache
        Where they are kept; answers that are there already stay.
    """
    n_answers, problems = 0, []
    try:
        with Path(path).open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if not line.strip():
                    continue
                wrong = _import_line(line, cache)
                if wrong:
                    problems.append(Problem(wrong, line=number))
                else:
                    n_answers += 1
    except OSError as error:
        raise GroundingError(f"cannot be read: {error.strerror}.", source=str(path)) from None
    return Imported(n_answers, tuple(problems))


def _import_line(line: bytes, cache: AnswerCache) -> str:
    """Keep one answer; what is wrong with it, if anything, without a word of it."""
    try:
        item = json.loads(line)
        key, response = item["custom_id"], item["response"]
        status, body = response.get("status_code", 200), response["body"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "This line is no answer in the batch format."
    if not isinstance(key, str) or not re.fullmatch("[0-9a-f]{64}", key):
        return "This answer belongs to no request of fidm."
    if status != 200 or not isinstance(body, dict):
        return "This request failed."
    try:
        read_reply(body)
    except UnansweredError:
        return "This answer is no chat completion."
    cache.put(key, Stored(body))
    return ""
