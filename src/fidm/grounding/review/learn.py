"""Words that the rules lack, learned from what reviewers decided, and proposed to a person.

Where the rules read a reviewed segment wrong, its words that no vocabulary has may be the reason: *bangers*
where a reviewer wrote ``BUY meat``. Every run of up to four such words is tried as a word for everything that
the reviewed program has and the rules' own reading lacks. A word is proposed if, once the rules know it, more
reviewed segments become right than become wrong. Both are counted on the segments it was learned from: they
say how well it explains these, and not how often it will be right elsewhere.

A proposal is a phrase that participants said. It is written into a file of the study, for its owner alone,
and is not in force until a person has accepted it there (:mod:`fidm.grounding.rules.overlay`).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

from fidm.errors import DataError, GroundingError, at_least, count, remedy
from fidm.files import whole_file
from fidm.grounding.base import Context, Segment
from fidm.grounding.ground import Grounded
from fidm.grounding.review.apply import read_proposed, review_all
from fidm.grounding.review.trail import Decision, Trail
from fidm.grounding.review.verdicts import ReviewedSegment
from fidm.grounding.route.program import Program
from fidm.grounding.route.replay import replay
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.rules.language import UNKNOWN, Language, Token, Vocabulary, load_language
from fidm.grounding.rules.overlay import Overlay
from fidm.grounding.settings import RulesTable, read_settings
from fidm.types import Progress

FILE = "words-proposed.toml"
"""Where proposals are written in a study."""

LONGEST = 4
"""The longest phrase, in words; in characters where words are not written with spaces between them."""

LOOSE = ("SAY", "SOME", "OWN")
"""Classes of single characters that may be part of an unknown word, where words are not written apart."""

LEAST = 2
"""From how many reviewed segments a word is learned."""

MOST_NAMED = 12
"""How many segments are named in the file; the others are counted."""

Name = tuple[str, str, int]
"""A segment: participant, episode and number."""


@dataclass(frozen=True, slots=True)
class WordProposal:
    """A phrase, what it would mean, and what speaks for it and against it.

    Parameters
    ----------
    language : str
        The code of the language.
    phrase : str
        What participants said.
    means : str
        A place, one or more classes of words, or a number.
    segments : tuple of Name
        Reviewed segments that have the phrase, and an instruction with this meaning that the rules missed.
    against : tuple of Name
        Reviewed segments that have the phrase and no such instruction.
    n_right, n_wrong : int
        How many reviewed segments the rules read right with it and wrong without it, and the other way round.
    n_open : int
        How many segments that nobody has reviewed have the phrase.
    """

    language: str
    phrase: str = field(repr=False)
    means: str
    segments: tuple[Name, ...]
    against: tuple[Name, ...]
    n_right: int
    n_wrong: int
    n_open: int

    @property
    def n_participants(self) -> int:
        """How many participants support it."""
        return len({participant for participant, _, _ in self.segments})

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, without the phrase."""
        own = {name: value for name, value in asdict(self).items() if name != "phrase"}
        return {**own, "n_participants": self.n_participants}


@dataclass(frozen=True, slots=True)
class WordsLearned:
    """What could be learned from reviewed segments.

    Parameters
    ----------
    proposals : tuple of WordProposal
        The one that gains most first.
    n_reviewed : int
        How many reviewed segments there are.
    n_misread : int
        How many of them the rules read otherwise.
    """

    proposals: tuple[WordProposal, ...]
    n_reviewed: int
    n_misread: int

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, without the phrases."""
        proposals = [one.to_dict() for one in self.proposals]
        return {"n_reviewed": self.n_reviewed, "n_misread": self.n_misread, "proposals": proposals}


@dataclass(frozen=True, slots=True, eq=False)
class _Said:
    """A segment with the words in it that nobody knows."""

    name: Name
    segment: Segment
    context: Context
    language: Language
    plain: str  # all that was said, in the form in which words are looked up
    phrases: dict[str, str]  # runs of unknown words in that form, and as they were said

    def has(self, phrase: str) -> bool:
        """Whether a phrase stands here; where words are not written apart, perhaps across known ones."""
        return f" {phrase} " in self.plain if self.language.spaced else phrase in self.plain


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """A reviewed segment, and what the rules make of it."""

    said: _Said
    actions: tuple[int, ...]  # where it leads, by the reviewer
    means: Counter[str]  # what its instructions mean
    lacks: Counter[str]  # what of that the rules did not read; nothing where they are right
    is_right: bool  # whether the rules lead there


def learn_words(
    study: str | Path, *, least: int = LEAST, on_progress: Progress | None = None
) -> WordsLearned:
    """Propose words that the rules lack, from the segments of a study that people have reviewed.

    Parameters
    ----------
    study : path
        A grounded study.
    least : int
        From how many reviewed segments a word is learned.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.
    """
    grounded = read_proposed(study)
    return propose_words(
        grounded,
        Trail(study).decisions,
        rules=read_settings(study).rules,
        least=least,
        on_progress=on_progress,
        source=str(study),
    )


def propose_words(
    grounded: Grounded,
    decisions: Sequence[Decision],
    *,
    rules: RulesTable | None = None,
    least: int = LEAST,
    on_progress: Progress | None = None,
    source: str = "",
) -> WordsLearned:
    """Propose words that the rules lack.

    Parameters
    ----------
    grounded : Grounded
        The grounding as the grounder left it, see :func:`fidm.grounding.review.apply.read_proposed`.
    decisions : sequence of Decision
        What people decided, oldest first.
    rules : RulesTable, optional
        How the rules are set, the words they have in the study already among it.
    least, on_progress
        As in :func:`learn_words`.
    source : str
        The study, for messages.
    """
    at_least(remedy("least", "--least"), least, 1)
    settings = (rules or RulesTable()).model_dump()
    known = Rules(**settings).words or Overlay()
    make = partial(Rules, **{name: value for name, value in settings.items() if name != "words"})
    judged, waiting = _sorted_out(grounded, decisions, make(words=known), known)
    if not judged:
        raise GroundingError(
            "has no reviewed segment to learn from. Accept or edit some first: fidm review STUDY.",
            source=source,
        )
    tried = [
        (key, own)
        for key, own in sorted(_candidates(judged).items(), key=lambda one: one[0])
        if len(own) >= least
    ]
    found: list[tuple[WordProposal, frozenset[int]]] = []
    for done, ((code, phrase, means), own) in enumerate(tried):
        if on_progress is not None:
            on_progress("testing words", done, len(tried))
        having = [one for one in judged if one.said.language.code == code and one.said.has(phrase)]
        written = min(one.said.phrases[phrase] for one in own)
        reader = make(words=known.plus(code, written, means))
        now = [_actions(reader, one.said) == one.actions for one in having]
        right = frozenset(
            id(one) for one, is_right in zip(having, now, strict=True) if is_right > one.is_right
        )
        n_wrong = sum(is_right < one.is_right for one, is_right in zip(having, now, strict=True))
        if len(right) <= n_wrong:
            continue
        against = [one for one in having if phrase in one.said.phrases and not one.means[means]]
        n_open = sum(one.language.code == code and phrase in one.phrases for one in waiting)
        names = tuple(one.said.name for one in own), tuple(one.said.name for one in against)
        found.append((WordProposal(code, written, means, *names, len(right), n_wrong, n_open), right))
    chosen = _without_repeats(sorted(found, key=_rank))
    return WordsLearned(chosen, len(judged), sum(not one.is_right for one in judged))


def _sorted_out(
    grounded: Grounded, decisions: Sequence[Decision], rules: Rules, known: Overlay
) -> tuple[list[_Judged], list[_Said]]:
    """The segments that people have settled, and those that nobody has; rejected ones are neither."""
    spec = grounded.terrain.spec
    vocabularies: dict[str, Vocabulary] = {}
    judged, waiting = list[_Judged](), list[_Said]()
    for dialog, walked in zip(grounded.dialogs, review_all(grounded, decisions), strict=True):
        code = dialog.language
        if code not in vocabularies:
            language = load_language(code)
            vocabularies[code] = Vocabulary(language, spec, known.of(language, spec))
        item = dialog.transcript
        for one in walked:
            segment = one.proposed.segment
            context = Context(grounded.terrain, one.start, code, dialog.told)
            name = (item.participant, item.episode, segment.number)
            said = _heard(name, segment, context, vocabularies[code])
            if not one.is_settled:
                waiting.append(said)
            elif one.grounded.status == "reviewed":
                judged.append(_compared(said, one, rules))
    return judged, waiting


def _heard(name: Name, segment: Segment, context: Context, vocabulary: Vocabulary) -> _Said:
    """A segment with every run of words in it that nobody knows."""
    language = vocabulary.language
    text = language.normal(segment.text)
    shown = text if language.spaced else segment.text.lower()
    phrases: dict[str, str] = {}
    for run in _runs(vocabulary.cut(text), text, language):
        for first in range(len(run)):
            for last in range(first, min(first + LONGEST, len(run))):
                start, end = run[first].start, run[last].end
                if end - start > 1 or run[first].kind == UNKNOWN:
                    phrases[_plain(text[start:end], language)] = _plain(shown[start:end], language)
    return _Said(name, segment, context, language, f" {_plain(text, language)} ", phrases)


def _runs(tokens: Iterable[Token], text: str, language: Language) -> Iterator[list[Token]]:
    """Words that nobody knows and that follow each other with nothing but spaces between them."""
    run: list[Token] = []
    for token in tokens:
        is_part = not language.spaced and token.kind in LOOSE and token.end - token.start == 1
        is_unknown = token.kind == UNKNOWN or is_part
        if run and (not is_unknown or text[run[-1].end : token.start].strip(" -")):
            yield run
            run = []
        if is_unknown:
            run.append(token)
    if run:
        yield run


_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_GAP = re.compile(r"(?<![a-z0-9]) +| +(?![a-z0-9])")


def _plain(text: str, language: Language) -> str:
    """Words with one space between them; without, where words are not written apart, but for Latin ones."""
    return " ".join(_WORD.findall(text)) if language.spaced else _GAP.sub("", text)


def _compared(said: _Said, one: ReviewedSegment, rules: Rules) -> _Judged:
    """A reviewed segment beside the rules' own reading of it."""
    context = said.context
    own = rules.ground(said.segment, context).program
    actions = tuple(replay(own, context.terrain, context.position, told=context.told).actions)
    wanted, means = tuple(one.replay.actions), _meanings(one.program)
    is_right = actions == wanted
    return _Judged(said, wanted, means, Counter() if is_right else means - _meanings(own), is_right)


def _actions(rules: Rules, said: _Said) -> tuple[int, ...]:
    """Where the rules lead from what was said."""
    context = said.context
    program = rules.ground(said.segment, context).program
    return tuple(replay(program, context.terrain, context.position, told=context.told).actions)


def _meanings(program: Program) -> Counter[str]:
    """What words may have been behind a program: its places, and classes of words by their instructions."""
    found: Counter[str] = Counter()
    for step in program:
        if step.op == "TURN":
            found.update(["AROUND"] if step.way == "around" else ["TURN", step.way.upper()])
            found.update([f"TURN {step.way.upper()}"] if step.way != "around" else [])
        elif step.op == "MOVE":
            found.update([step.way.upper()])
        elif step.op != "NONE":
            found.update(["GO" if step.op == "GOTO" else step.op])
        told = ("END" if step.to_end else "", str(step.squares or ""), step.place)
        found.update(means for means in told if means)
    return found


_Key = tuple[str, str, str]
"""Language, phrase and meaning."""


def _candidates(judged: Sequence[_Judged]) -> dict[_Key, list[_Judged]]:
    """Every phrase with everything that the rules missed where it stands."""
    found: dict[_Key, list[_Judged]] = defaultdict(list)
    for one in judged:
        for phrase in one.said.phrases:
            for means in one.lacks:
                found[one.said.language.code, phrase, means].append(one)
    return found


def _rank(item: tuple[WordProposal, frozenset[int]]) -> tuple[Any, ...]:
    """The greatest gain first, then most support, then the longer phrase; places before classes of words."""
    one = item[0]
    kind = 2 if " " in one.means else int(one.means.isupper() or one.means.isdigit())
    gain = one.n_right - one.n_wrong
    return -gain, -len(one.segments), len(one.against), -len(one.phrase), kind, one.means, one.phrase


def _without_repeats(ranked: Sequence[tuple[WordProposal, frozenset[int]]]) -> tuple[WordProposal, ...]:
    """Proposals without those that say of the same segments what a better one says."""
    kept: list[tuple[WordProposal, frozenset[int]]] = []
    for one, right in ranked:
        if not any(_repeats(one, right, other, its) for other, its in kept if other.language == one.language):
            kept.append((one, right))
    return tuple(one for one, _ in kept)


def _repeats(one: WordProposal, right: frozenset[int], other: WordProposal, its: frozenset[int]) -> bool:
    """Whether a proposal adds nothing to a better one."""
    is_within = one.phrase in other.phrase or other.phrase in one.phrase
    is_less = right < its and one.means == other.means
    return one.phrase == other.phrase or is_less or (is_within and right <= its)


HEAD = """\
Words that the rules did not know, proposed by fidm ground learn from what reviewers decided.

Nothing here is in force. To accept a proposal, write accept = true in it, name this file in grounding.toml,
    [rules]
    words = "{name}"
and run fidm ground again. The phrases are what participants said: keep this file in the study, and private.

Right and wrong are counted on the reviewed segments that the words were learned from.
"""


def write_proposals(
    found: WordsLearned, study: str | Path, *, path: str | Path | None = None, replace: bool = False
) -> Path:
    """Write proposals into a file of a study, for its owner alone; none of them is accepted.

    Parameters
    ----------
    found : WordsLearned
        What was learned.
    study : path
        The study; the file stays in it, since it holds what participants said.
    path : path, optional
        The file; by default ``words-proposed.toml`` in the study.
    replace : bool
        Whether to replace a file that is there. The one that grounding.toml names is never replaced.
    """
    folder = Path(study).resolve()
    target = Path(path) if path is not None else Path(study) / FILE
    if not target.resolve().is_relative_to(folder):
        raise DataError(
            "is outside the study. The phrases are what participants said, and stay in it.",
            source=str(target),
        )
    words = read_settings(study).rules.words
    if words and target.resolve() == Path(words).resolve():
        other = remedy("path", "--out")
        raise DataError(
            f"is the file of words that grounding.toml names. Choose another ({other}), and copy what you "
            "accept into this one.",
            source=str(target),
        )
    if target.exists() and not replace:
        again = remedy("replace=True", "--replace")
        raise DataError(
            f"exists already, perhaps with what somebody accepted. Rename it, or replace it: {again}.",
            source=str(target),
        )
    head = HEAD.format(name=target.resolve().relative_to(folder).as_posix())
    parts = [_comment(head), "format = 1\n", *map(_entry, found.proposals)]
    with whole_file(target, mode=0o600) as part:
        part.write_text("\n".join(parts), "utf-8")
    return target


def _comment(text: str) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


def _entry(one: WordProposal) -> str:
    """A proposal as a table, with what speaks for it and against it."""
    people = count(one.n_participants, "participant")
    lines = [
        f"{one.n_right:,} reviewed segments become right with it, {one.n_wrong:,} wrong. "
        f"{count(one.n_open, 'segment')} with it not reviewed.",
        f"For it: {count(len(one.segments), 'segment')} of {people}: {_named(one.segments)}.",
        f"Against it: {f'{len(one.against):,}: {_named(one.against)}' if one.against else 'none'}.",
    ]
    said = "\n".join(line for each in lines for line in wrap(each, 110, break_long_words=False))
    written = {"language": one.language, "phrase": one.phrase, "means": one.means}
    keys = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in written.items())
    return f"{_comment(said)}[[proposed]]\n{keys}accept = false\n"


def _named(segments: Sequence[Name]) -> str:
    """Segments by participant, episode where there are several, and number."""
    several = len({episode for _, episode, _ in segments}) > 1
    named = [
        f"{who}{f' {episode}' if several else ''} segment {n}" for who, episode, n in segments[:MOST_NAMED]
    ]
    more = [f"{len(segments) - MOST_NAMED:,} more"] if len(segments) > MOST_NAMED else []
    return ", ".join(" ".join(name.split()) for name in (*named, *more))
