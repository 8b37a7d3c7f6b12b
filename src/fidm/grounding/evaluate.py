"""How good a grounder is where the meaning is known: on audited segments of a study, or on phrasings.

A sheet of ``fidm audit sample`` carries the truth: the program of a segment that was found ``ok``, and the
program in the column ``corrected`` of one that was found ``wrong``. Dialogs are walked along these programs,
so that every segment is read where the figure really was, whatever the grounder made of the segments before.
A reading is exact if it leads through the same actions as the truth.

A hybrid is measured together with its rules and its model. Nothing of the study is changed, and answers of a
model are not kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from fidm.errors import DataError, GroundingError, Problem
from fidm.files import hash_file
from fidm.grounding.base import Context, Grounder, Proposal, Segment, placed, read_phrasings
from fidm.grounding.ground import Grounded
from fidm.grounding.hybrid import Agreement, Hybrid
from fidm.grounding.review.audit import read_audited
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import replay
from fidm.stats import wilson
from fidm.types import Progress


@dataclass(frozen=True, slots=True)
class KnownSegment:
    """A segment whose meaning is known."""

    segment: Segment  # what was said
    context: Context  # where, and after what
    # The actions it means, and None where words and position do not settle them: no reading is right then.
    wanted: Sequence[int] | None
    participant: str = ""  # who said it; empty for phrasings


@dataclass(frozen=True, slots=True)
class KnownSegments:
    """Everything a grounder is measured on."""

    kind: Literal["audit", "phrasings"]
    items: tuple[KnownSegment, ...]
    n_unjudged: int = 0  # rows of a sheet without a verdict
    n_uncorrected: int = 0  # rows found wrong, of which nobody wrote what would be right

    @property
    def participants(self) -> frozenset[str]:
        """Whose words they are."""
        return frozenset(item.participant for item in self.items)


@dataclass(frozen=True, slots=True)
class Measured:
    """How often one grounder was exact, confident, and right where it was confident."""

    grounder: str
    model: str  # the language model's name; empty without one
    n_params: int | None  # how many parameters it has, where its server says so
    n: int
    n_exact: int
    n_confident: int
    n_right: int  # exact ones among the confident

    def shares(self, level: float = 0.95) -> dict[str, dict[str, Any]]:
        """Return the three shares, each with its Wilson interval; a share of nothing is None."""
        return {
            "exact": share_of(self.n_exact, self.n, level),
            "confident": share_of(self.n_confident, self.n, level),
            "right_when_confident": share_of(self.n_right, self.n_confident, level),
        }


def share_of(right: int, n: int, level: float = 0.95) -> dict[str, Any]:
    """Return a count, of how many, their share and its Wilson interval."""
    low, high = wilson(right, n, level)
    return {"n": right, "of": n, "share": right / n if n else None, "low": low, "high": high}


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What a grounder was found to be worth."""

    sheet: str  # the file's name
    sheet_sha256: str
    known: KnownSegments = field(repr=False)
    rows: tuple[Measured, ...]  # the grounder; of a hybrid, its rules and its model before it
    agreement: Agreement | None  # how often rules and model of a hybrid agreed
    n_agreed_right: int  # how often they were right then
    # Segments of which a model gave no usable answer, by the doubt that says why.
    unanswered: Mapping[str, int]
    provenance: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values."""
        found = self.agreement
        return {
            "sheet": self.sheet,
            "sheet_sha256": self.sheet_sha256,
            "kind": self.known.kind,
            "n": len(self.known.items),
            "unjudged": self.known.n_unjudged,
            "uncorrected": self.known.n_uncorrected,
            "unanswered": dict(self.unanswered),
            "rows": [asdict(row) | row.shares() for row in self.rows],
            "agreement": None
            if found is None
            else found.to_dict() | {"right": share_of(self.n_agreed_right, found.n_same)},
            "provenance": dict(self.provenance),
        }


def known_phrasings(path: str | Path, *, language: str = "en") -> KnownSegments:
    """Read a file of phrasings, see :func:`fidm.grounding.base.read_phrasings`."""
    items = placed(read_phrasings(path, language=language))
    found = [KnownSegment(segment, context, wanted) for _, segment, context, wanted in items]
    return KnownSegments("phrasings", tuple(found))


def known_audited(
    sheet: str | Path, grounded: Grounded, *, language: str = "", context_turns: int = 6
) -> KnownSegments:
    """Read a judged sheet of ``fidm audit sample``, and place its segments where the figure really was.

    Parameters
    ----------
    sheet : path
        The sheet, with verdicts, and corrected programs where the verdict is ``wrong``.
    grounded : Grounded
        The study's dialogs, cut into the same segments; its programs stand in where the truth is not known.
    language : str
        The language of all dialogs; empty for the one in which each was read.
    context_turns : int
        How many turns before a segment a grounder may see.
    """
    terrain = grounded.terrain
    audited = read_audited(sheet)
    rows = {(row.participant, row.episode, row.segment): row for row in audited}
    judged = {key[:2] for key in rows}
    items: list[KnownSegment] = []
    problems: list[Problem] = []
    for dialog in grounded.dialogs:
        transcript = dialog.transcript
        if (transcript.participant, transcript.episode) not in judged:
            continue
        position = terrain.start()
        for one in dialog.segments:
            for phase in one.segment.opened:
                position = terrain.tell(position, phase, dialog.told)
            row = rows.pop((transcript.participant, transcript.episode, str(one.segment.number)), None)
            program = one.proposal.program
            if row is not None and not row.is_about(one.segment.text):
                problems.append(Problem("has other words than the segment of this study.", row.where))
            elif row is not None and row.truth:
                try:
                    program = parse_program(row.truth, terrain.places)
                except GroundingError as error:
                    problems.append(Problem(f"has no program that can be read: {error.message}", row.where))
            done = replay(program, terrain, position, told=dialog.told)
            if row is not None and row.truth:
                first = one.segment.turns[0]
                before = transcript.turns[max(0, first - context_turns) : first]
                said = tuple((turn.role, turn.text) for turn in before)
                context = Context(terrain, position, language or dialog.language, dialog.told, said)
                items.append(KnownSegment(one.segment, context, done.actions, transcript.participant))
            position = done.end
    problems += [Problem("is about a segment the study does not have.", row.where) for row in rows.values()]
    if problems:
        raise DataError("cannot be used.", source=str(sheet), problems=problems)
    n_unjudged = sum(row.is_right is None for row in audited)
    return KnownSegments("audit", tuple(items), n_unjudged, len(audited) - n_unjudged - len(items))


class _Said:
    """A grounder that says what another one has said."""

    def __init__(self, name: str, proposal: Proposal) -> None:
        self.name, self._proposal = name, proposal

    def provenance(self) -> Mapping[str, Any]:
        return {"grounder": self.name}

    def ground(self, _segment: Segment, _context: Context) -> Proposal:
        return self._proposal

    def close(self) -> None:
        pass


def evaluate(
    grounder: Grounder,
    known: KnownSegments,
    *,
    sheet: str | Path,
    workers: int = 1,
    on_progress: Progress | None = None,
) -> Evaluation:
    """Measure a grounder on segments whose meaning is known.

    Parameters
    ----------
    grounder : Grounder
        The grounder; it is not closed.
    known : KnownSegments
        The segments.
    sheet : path
        The file they come from.
    workers : int
        How many segments are read at the same time. Changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.
    """
    if not known.items:
        raise DataError("has no segment whose meaning is known. Judge some.", source=str(sheet))
    say = on_progress or (lambda doing, done, of: None)
    judged: list[tuple[dict[str, tuple[bool, bool]], Agreement]] = []
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for one in pool.map(lambda item: _judge(grounder, item, known.participants), known.items):
            judged.append(one)
            say("reading", len(judged), len(known.items))
    names = list(judged[0][0])
    provenance = {key: value for key, value in grounder.provenance().items() if key != "agreement"}
    asked = provenance.get("model")
    asked = asked if isinstance(asked, Mapping) else provenance
    server = asked.get("server")
    n_params = server.get("n_params") if isinstance(server, Mapping) else None
    rows = []
    for name in names:
        verdicts = [one[name] for one, _ in judged]
        model = str(asked.get("model") or "") if name != "rules" else ""
        rows.append(
            Measured(
                name,
                model,
                n_params if model else None,
                n=len(verdicts),
                n_exact=sum(is_exact for is_exact, _ in verdicts),
                n_confident=sum(is_confident for _, is_confident in verdicts),
                n_right=sum(is_exact and is_confident for is_exact, is_confident in verdicts),
            )
        )
    agreement = None
    if isinstance(grounder, Hybrid):
        counts = [asdict(found) for _, found in judged]
        agreement = Agreement(**{key: sum(one[key] for one in counts) for key in counts[0]})
    agreed_right = sum(verdicts[names[-1]][0] for verdicts, found in judged if found.n_same)
    count_answers = getattr(getattr(grounder, "model", grounder), "answers", None)
    unanswered = {} if count_answers is None else count_answers().unanswered
    return Evaluation(
        sheet=Path(sheet).name,
        sheet_sha256=hash_file(sheet),
        known=known,
        rows=tuple(rows),
        agreement=agreement,
        n_agreed_right=agreed_right,
        unanswered=unanswered,
        provenance=provenance,
    )


def _judge(
    grounder: Grounder, item: KnownSegment, without: Collection[str]
) -> tuple[dict[str, tuple[bool, bool]], Agreement]:
    """Whether each part of a grounder reads a segment exactly, and is confident; and whether they agree."""
    about = getattr(grounder, "about", None)
    reader = grounder if about is None else about(item.participant, without)
    found = Agreement()
    if isinstance(reader, Hybrid):
        rules, model = (part.ground(item.segment, item.context) for part in (reader.rules, reader.model))
        both = Hybrid(
            _Said("rules", rules),
            _Said("llm", model),
            check_share=reader.check_share,
            model_weight=reader.model_weight,
        )
        said = {"rules": rules, "llm": model, reader.name: both.ground(item.segment, item.context)}
        found = both.agreement()
    else:
        said = {reader.name: reader.ground(item.segment, item.context)}
    return {name: _verdict(one, item) for name, one in said.items()}, found


def _verdict(proposal: Proposal, item: KnownSegment) -> tuple[bool, bool]:
    context = item.context
    done = replay(proposal.program, context.terrain, context.position, told=context.told)
    is_exact = item.wanted is not None and list(done.actions) == list(item.wanted)
    return is_exact, proposal.is_confident and not done.doubts
