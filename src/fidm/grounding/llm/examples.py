"""Worked examples from a lab's own segments: how its participants speak, as a person has read it.

An example is a segment that somebody reviewed: the words, where the figure stood, and the route. Which are
shown depends on whom they help to read: never that person's own, nor anybody's who is being judged. The same
segments give the same choice: as many different instructions as possible, of as many participants.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from fidm.grounding.llm.answers import MAX_WORDS, AnswerForm, InvalidAnswerError
from fidm.grounding.route.program import NOTHING, Program, same_program, write_program
from fidm.grounding.route.replay import Position

LONGEST = 300
"""Longer segments, in characters, are no examples: they take the room of several."""


@dataclass(frozen=True, slots=True)
class OwnExample:
    """A segment that a person has reviewed."""

    participant: str  # who said it
    language: str  # in which language
    task: str  # the fingerprint of the task
    said: str = field(repr=False)  # the words
    position: Position  # where the figure was
    program: Program  # what it means, with the words of each instruction

    @property
    def digest(self) -> str:
        """A hash of all of it."""
        spans = [step.span for step in self.program]
        place = (self.position.state, self.position.heading)
        whole = (
            self.participant,
            self.language,
            self.task,
            self.said,
            place,
            write_program(self.program),
            spans,
        )
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    @property
    def forms(self) -> list[str]:
        """Which forms of instructions it shows, without their numbers and places."""
        return sorted(
            {
                f"{step.op} {'squares' * bool(step.squares)}{'end' * step.to_end}{'place' * bool(step.place)}"
                for step in self.program
            }
        )

    def answer(self, form: AnswerForm) -> str:
        """Return the answer a model should have given; empty where the form has no room for it."""
        quotes = [self.said[slice(*step.span)] for step in self.program]
        if len(self.said) > LONGEST or any(len(quote) > MAX_WORDS for quote in quotes):
            return ""
        steps = []
        for step, quote in zip(self.program, quotes, strict=True):
            given = {
                "words": quote,
                "op": step.op,
                "way": step.way or None,
                "squares": step.squares,
                "end": step.to_end or None,
                "place": step.place or None,
            }
            steps.append({key: value for key, value in given.items() if value is not None})
        silent = same_program(self.program, NOTHING)
        text = json.dumps(
            {"instructions": [] if silent else steps}, ensure_ascii=False, separators=(",", ":")
        )
        try:
            read = form.read(text, self.said)
        except InvalidAnswerError:
            return ""
        is_exact = same_program(read.program, self.program) and not read.doubts and not read.is_full
        return text if is_exact else ""


def pool_digest(examples: Sequence[OwnExample]) -> str:
    """Return a hash of all examples there are to choose from."""
    return hashlib.sha256("\n".join(sorted(one.digest for one in examples)).encode()).hexdigest()


def choose_examples(
    examples: Sequence[OwnExample],
    form: AnswerForm,
    *,
    language: str,
    task: str,
    without: Collection[str],
    n: int,
) -> list[OwnExample]:
    """Choose examples to help read somebody.

    Parameters
    ----------
    examples : sequence of OwnExample
        All there are.
    form : AnswerForm
        The form of the answers.
    language, task : str
        The dialog's language, and the fingerprint of its task.
    without : collection of str
        Participants whose words must not be among them.
    n : int
        How many to choose at most.
    """
    base = language.split("-")[0]
    left = sorted(
        (
            one
            for one in examples
            if one.participant not in without
            and one.language.split("-")[0] == base
            and one.task == task
            and one.answer(form)
        ),
        key=lambda one: one.digest,
    )
    chosen: list[OwnExample] = []
    shown, said, asked = set[str](), set[str](), Counter[str]()
    while left and len(chosen) < n:
        best = max(left, key=lambda one: (len(set(one.forms) - shown), -asked[one.participant]))
        chosen.append(best)
        shown |= set(best.forms)
        said.add(best.said.casefold())
        asked[best.participant] += 1
        left = [one for one in left if one.said.casefold() not in said]
    return chosen
