"""How good a grounding is by people's judgement: audits of a random sample, and how far reviewers agree.

The paper judged 20 transcript–trajectory pairs and found 19 consistent. The sheet of an audit has one row per
segment of the sampled dialogs: what was said, the program, the moves. A person writes ``ok`` or ``wrong`` in
the column ``verdict``. A dialog counts as consistent if all its segments do. With the right program in the
column ``corrected`` of every wrong row, any grounder can be measured on the sheet
(:mod:`fidm.grounding.evaluate`).

Two reviewers are compared on segments of which both judged the same reading: whether both found it right
(agreement, and Cohen's kappa, which takes off what chance would give), and whether both ended at the same
moves. What counts is what each decided before they could see the other's decision: people may change their
minds as long as nobody else has judged the segment, and what they decide later does not enter.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby
from pathlib import Path

import numpy as np
import polars as pl

from fidm.errors import DataError, GroundingError, Problem
from fidm.files import whole_file
from fidm.grounding.ground import Grounded
from fidm.grounding.review.trail import Decision, Sample
from fidm.grounding.review.verdicts import (
    ReviewedSegment,
    by_segment,
    latest_of_each,
    review_dialog,
    segment_key,
)
from fidm.grounding.route.program import write_program
from fidm.grounding.route.replay import Terrain
from fidm.grounding.store import FOLDER, PROPOSALS, PROPOSED, PROPOSED_MOVES, has_grounding
from fidm.stats import wilson

COLUMNS = (
    "participant", "episode", "segment", "start_s", "said", "program", "moves", "status",
    "verdict", "corrected", "comment",
)  # fmt: skip
OK = ("ok", "yes", "y", "right", "correct", "consistent", "1", "true", "✓")
WRONG = ("wrong", "no", "n", "incorrect", "inconsistent", "0", "false", "✗", "x")
_RISKY = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes cells that begin so for formulas."""


@dataclass(frozen=True, slots=True)
class AuditScore:
    """What an audit found.

    Parameters
    ----------
    level : float
        The level of the intervals.
    n_dialogs, n_consistent : int
        Dialogs judged, and those without a wrong segment.
    dialogs : tuple of float
        Wilson interval of the share of consistent dialogs.
    n_segments, n_right : int
        Segments judged, and those that are right.
    segments : tuple of float
        Wilson interval of the share of right segments; segments of a dialog go together, so it is a little
        too narrow.
    n_left : int
        Segments that nobody has judged yet; their dialogs do not count.
    """

    level: float
    n_dialogs: int
    n_consistent: int
    dialogs: tuple[float, float]
    n_segments: int
    n_right: int
    segments: tuple[float, float]
    n_left: int = 0

    @classmethod
    def of(cls, whole: Sequence[bool], single: Sequence[bool], level: float, n_left: int = 0) -> AuditScore:
        """Make a score of which dialogs, and which segments, are right."""
        (n, right), (m, fine) = ((len(found), sum(found)) for found in (whole, single))
        return cls(level, n, right, wilson(right, n, level), m, fine, wilson(fine, m, level), n_left)


def drawn_dialogs(study: str | Path, n: int, *, seed: int) -> tuple[tuple[str, str], ...]:
    """Draw dialogs of a grounded study for an audit, each as participant and episode; all if there are few.

    The same seed draws the same dialogs, whatever their order.
    """
    (segments,) = _proposed(study, "segments")
    return tuple((who, episode) for who, episode in _drawn(segments, n, seed).iter_rows())


def _drawn(segments: pl.DataFrame, n: int, seed: int) -> pl.DataFrame:
    if n < 1 or seed < 0:
        raise GroundingError(f"n is {n} and seed is {seed}; n must be 1 or more and seed 0 or more.")
    keys = segments.select("participant", "episode").unique().sort("participant", "episode")
    return keys[np.sort(np.random.default_rng(seed).permutation(keys.height)[:n])]


def sample_audit(study: str | Path, n: int, *, seed: int, path: str | Path | None = None) -> Path:
    """Write the sheet for a manual audit of randomly drawn dialogs, as the grounder read them.

    What people have decided on the review page since is not in it: an audit is about the grounder.

    Parameters
    ----------
    study : path
        A grounded study.
    n : int
        How many dialogs; all of them if there are fewer.
    seed : int
        The same seed draws the same dialogs, whatever their order.
    path : path, optional
        The sheet; by default ``grounding/audit-SEED.csv`` in the study, readable by its owner alone.
    """
    segments, turns, moves = _proposed(study, "segments", "turns", "moves")
    drawn = _drawn(segments, n, seed)
    said = {
        (row["participant"], row["episode"], row["turn"]): row["text"] for row in turns.iter_rows(named=True)
    }
    made = moves.group_by("participant", "episode", "segment", maintain_order=True).agg(pl.col("action"))
    steps = {
        (row["participant"], row["episode"], row["segment"]): row["action"]
        for row in made.iter_rows(named=True)
    }
    target = Path(path) if path is not None else Path(study) / FOLDER / f"audit-{seed}.csv"
    if target.exists():
        raise DataError(
            "exists already, perhaps with verdicts. Choose another seed or path.", source=str(target)
        )
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in segments.join(drawn, on=["participant", "episode"], maintain_order="left").iter_rows(
        named=True
    ):
        who, episode, number = row["participant"], row["episode"], row["segment"]
        spoken = " / ".join(said[who, episode, int(turn)] for turn in row["turns"].split())
        writer.writerow(
            [
                _safe(str(cell))
                for cell in (
                    who, episode, number, "" if row["start_s"] is None else f"{row['start_s']:.1f}", spoken,
                    row["program"], _short(steps.get((who, episode, number), [])), row["status"], "", "", "",
                )
            ]
        )  # fmt: skip
    with whole_file(target, mode=0o600) as part:
        part.write_text(text.getvalue(), "utf-8-sig")
    return target


def _short(actions: list[str]) -> str:
    """Actions with repeats counted: 'N×3, E, BUY meat'."""
    runs = ((name, sum(1 for _ in run)) for name, run in groupby(actions))
    return ", ".join(f"{name}×{count}" if count > 1 else name for name, count in runs)


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_RISKY) else cell


def _proposed(study: str | Path, *names: str) -> list[pl.DataFrame]:
    """Tables of a grounding as the grounder left it, whatever people decided since."""
    if not has_grounding(study):
        raise GroundingError("has no grounding. Run: fidm ground STUDY.", source=str(study))
    folder = Path(study) / FOLDER
    kept = {"segments": PROPOSALS, "moves": PROPOSED_MOVES} if (folder / PROPOSED).exists() else {}
    try:
        return [pl.read_parquet(folder / kept.get(name, f"{name}.parquet"), glob=False) for name in names]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise GroundingError(f"cannot be read ({type(error).__name__}).", source=str(folder)) from None


def score_audit(study: str | Path, sheet: str | Path, *, level: float = 0.95) -> AuditScore:
    """Read a judged sheet back and give the share of dialogs that are right, with a Wilson interval.

    Parameters
    ----------
    study : path
        The study the sheet was drawn from.
    sheet : path
        The sheet, with ``ok`` or ``wrong`` in every row's ``verdict``.
    level : float
        The level of the intervals.
    """
    if not 0 < level < 1:
        raise GroundingError(f"level is {level}; it must be between 0 and 1.")
    (segments,) = _proposed(study, "segments")
    now = {
        tuple(r[name].removeprefix("'") for name in ("participant", "episode", "segment")): r["program"]
        for r in segments.iter_rows(named=True)
    }
    rows = _rows(sheet, "participant", "episode", "segment", "program", "verdict")
    problems: list[Problem] = []
    verdicts: dict[tuple[str, str], list[bool]] = {}
    seen: set[tuple[str, ...]] = set()
    for number, row in enumerate(rows, start=2):
        key = tuple((row[name] or "").removeprefix("'") for name in ("participant", "episode", "segment"))
        said = (row["verdict"] or "").strip().lower()
        where = f"row {number}"
        if key in seen:
            problems.append(Problem("is about a segment that an earlier row is about.", where))
        seen.add(key)
        if key not in now:
            problems.append(Problem("is about a segment the study does not have.", where))
        elif now[key] != (row["program"] or "").removeprefix("'"):
            problems.append(Problem("was drawn from an older grounding; the program has changed.", where))
        elif said not in (*OK, *WRONG):
            what = "has no verdict" if not said else "has a verdict that is neither ok nor wrong"
            problems.append(Problem(f"{what}. Write ok or wrong.", where))
        else:
            verdicts.setdefault((key[0], key[1]), []).append(said in OK)
    judged = {key[:2] for key in seen}
    problems += [
        Problem("has no row; all segments of a dialog are judged.", ", ".join(key))
        for key in now
        if key[:2] in judged and key not in seen
    ]
    if problems:
        raise DataError("cannot be scored.", source=str(sheet), problems=problems)
    whole = [all(found) for found in verdicts.values()]
    single = [right for found in verdicts.values() for right in found]
    return AuditScore.of(whole, single, level)


def _rows(sheet: str | Path, *needed: str) -> list[dict[str, str]]:
    """The rows of a sheet, which must have some columns."""
    try:
        text = Path(sheet).read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError('is not UTF-8 text. Save it as "CSV UTF-8".', source=str(sheet)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}.", source=str(sheet)) from None
    first = text.partition("\n")[0]
    rows = list(
        csv.DictReader(io.StringIO(text), delimiter=";" if first.count(";") > first.count(",") else ",")
    )
    missing = [name for name in needed if rows and name not in rows[0]]
    if not rows or missing:
        what = f"has no column {missing[0]!r}" if missing else "has no rows"
        raise DataError(f"{what}; it must be a sheet of 'fidm audit sample'.", source=str(sheet))
    return rows


@dataclass(frozen=True, slots=True)
class AuditedSegment:
    """A row of a judged sheet: what a person found a segment to mean.

    Parameters
    ----------
    participant, episode, segment : str
        Which segment.
    said : str
        The words, turns set apart by ``/``.
    is_right : bool or None
        Whether the program was found right; None where nobody said so.
    truth : str
        The right program; empty where nobody wrote it.
    where : str
        The row, for messages.
    """

    participant: str
    episode: str
    segment: str
    said: str = field(repr=False)
    is_right: bool | None
    truth: str
    where: str

    def is_about(self, text: str) -> bool:
        """Whether it is about a segment with these words, one line per turn."""
        return self.said.split() == " / ".join(text.split("\n")).split()


def read_audited(sheet: str | Path) -> list[AuditedSegment]:
    """Read what a judged sheet says each segment means, whatever the study's grounding says now.

    Parameters
    ----------
    sheet : path
        A sheet of :func:`sample_audit`. Rows found wrong may have the right program in the column
        ``corrected``; rows may also lack a verdict.
    """
    found: dict[tuple[str, ...], AuditedSegment] = {}
    problems: list[Problem] = []
    needed = ("participant", "episode", "segment", "said", "program", "verdict")
    for number, row in enumerate(_rows(sheet, *needed), start=2):
        cells = {name: (row.get(name) or "").strip().removeprefix("'") for name in (*needed, "corrected")}
        verdict, corrected, where = cells["verdict"].lower(), cells["corrected"], f"row {number}"
        is_right = True if verdict in OK else False if verdict in WRONG else None
        key = (cells["participant"], cells["episode"], cells["segment"])
        if key in found:
            problems.append(Problem("is about a segment that an earlier row is about.", where))
        elif verdict and is_right is None:
            what = "has a verdict that is neither ok nor wrong. Write ok or wrong."
            problems.append(Problem(what, where))
        elif corrected and is_right is not False:
            what = "has a corrected program, and is not found wrong. Write wrong, or clear it."
            problems.append(Problem(what, where))
        truth = cells["program"] if is_right else corrected
        found[key] = AuditedSegment(*key, cells["said"], is_right, truth, where)
    if problems:
        raise DataError("cannot be used.", source=str(sheet), problems=problems)
    return list(found.values())


_Reading = tuple[str, int, str, tuple[str, ...]]
"""What somebody was shown: task, start, program and moves."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two reviewers agree.

    Parameters
    ----------
    one, other : str
        The reviewers.
    n : int
        Segments that both judged.
    n_same_verdict : int
        Those that both found right, or both not.
    agreement : float
        The share of those; nan where there is no segment.
    low, high : float
        Its 95 % Wilson interval; segments of a dialog go together, so it is a little too narrow.
    kappa : float
        Cohen's kappa of right or not; nan where it is undefined, because both said the same of everything.
    n_same_moves : int
        Segments for which both ended at the same moves, or both rejected them.
    same_moves : float
        The share of those.
    """

    one: str
    other: str
    n: int
    n_same_verdict: int
    agreement: float
    low: float
    high: float
    kappa: float
    n_same_moves: int
    same_moves: float


def agreements(decisions: Sequence[Decision]) -> tuple[Agreement, ...]:
    """Return how far each pair of reviewers agrees, on the segments both judged.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions, oldest first.
    """
    seen = {key: _by_reviewer(made) for key, made in by_segment(decisions).items()}
    reviewers = sorted({decision.reviewer for decision in decisions})
    found = []
    for one, other in combinations(reviewers, 2):
        pairs = [
            pair for each in seen.values() if (pair := _pair(each.get(one), each.get(other))) is not None
        ]
        if pairs:
            found.append(_compared(one, other, pairs))
    return tuple(found)


def _by_reviewer(made: Iterable[Decision]) -> dict[str, dict[_Reading, Decision]]:
    """What each reviewer decided about each reading of a segment before they could see what others had."""
    found: dict[str, dict[_Reading, Decision]] = {}
    judges: set[str] = set()
    settlers: set[str] = set()
    for decision in made:
        who, is_alone = decision.reviewer, judges <= {decision.reviewer}
        judges.add(who)
        if decision.settles:  # who settles a difference has seen what others decided
            settlers.add(who)
        elif decision.kind == "withdraw":
            if is_alone:
                found.pop(who, None)
        elif who not in settlers:
            reading = (decision.task, decision.start, decision.old.program, decision.old.actions)
            known = found.setdefault(who, {})
            if is_alone or not known:
                known[reading] = decision
    return found


def _pair(
    one: dict[_Reading, Decision] | None, other: dict[_Reading, Decision] | None
) -> tuple[Decision, Decision] | None:
    """What two reviewers decided about the first reading that both were shown."""
    if not one or not other:
        return None
    return next(((mine, other[reading]) for reading, mine in one.items() if reading in other), None)


def _compared(one: str, other: str, pairs: Sequence[tuple[Decision, Decision]]) -> Agreement:
    verdicts = [(_is_right(mine), _is_right(theirs)) for mine, theirs in pairs]
    n, same = len(pairs), sum(a == b for a, b in verdicts)
    moves = sum(_moves(mine) == _moves(theirs) for mine, theirs in pairs)
    low, high = wilson(same, n)
    return Agreement(one, other, n, same, same / n, low, high, _kappa(verdicts), moves, moves / n)


def _is_right(decision: Decision) -> bool:
    """Whether somebody found what was shown to be right."""
    return decision.new is not None and decision.new.program == decision.old.program


def _moves(decision: Decision) -> tuple[str, ...] | None:
    return None if decision.new is None else decision.new.actions


def _kappa(verdicts: Sequence[tuple[bool, bool]]) -> float:
    if len({verdict for pair in verdicts for verdict in pair}) < 2:
        return math.nan  # nothing but one verdict: chance alone would agree as well
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score([a for a, _ in verdicts], [b for _, b in verdicts]))


def draw_sample(study: str | Path, n: int, seed: int, *, reviewer: str = "") -> Sample:
    """Draw dialogs for an audit: those that ``fidm audit sample`` draws with the same seed.

    Parameters
    ----------
    study, n, seed
        As in :func:`sample_audit`.
    reviewer : str
        Who draws them.
    """
    dialogs = drawn_dialogs(study, n, seed=seed)
    return Sample(reviewer=reviewer, name=f"audit-{seed}-{n}", seed=seed, n=n, dialogs=dialogs)


def audit_of(
    sample: Sample,
    grounded: Grounded,
    decisions: Sequence[Decision],
    *,
    reviewer: str,
    level: float = 0.95,
) -> AuditScore:
    """Return how many dialogs of an audit sample were grounded right, by what one reviewer found.

    Only what they decided while they judged the sample counts, since there they see neither doubts nor what
    others decided. A segment is right if it was accepted as the grounder proposed it, and wrong if it was
    edited or rejected. A dialog counts once all its segments are judged, and is right if all of them are.

    Parameters
    ----------
    sample : Sample
        The dialogs drawn.
    grounded : Grounded
        The grounding as the grounder left it, see :func:`fidm.grounding.review.apply.read_proposed`.
    decisions : sequence of Decision
        Decisions, oldest first.
    reviewer : str
        By whose decisions.
    level : float
        The level of the intervals.
    """
    if not 0 < level < 1:
        raise GroundingError(f"level is {level}; it must be between 0 and 1.")
    wanted = set(sample.dialogs)
    known = by_segment(
        decision for decision in decisions if (decision.sample, decision.reviewer) == (sample.name, reviewer)
    )
    whole, single, n_left = [], [], 0
    for dialog in grounded.dialogs:
        if (dialog.transcript.participant, dialog.transcript.episode) not in wanted or not dialog.segments:
            continue
        proposed = review_dialog(dialog, (), grounded.terrain)
        verdicts = [
            _found_right(known.get(segment_key(dialog, one.proposed), []), one, grounded.terrain)
            for one in proposed
        ]
        judged = [verdict for verdict in verdicts if verdict is not None]
        n_left += len(verdicts) - len(judged)
        single += judged
        if len(judged) == len(verdicts):
            whole.append(all(judged))
    return AuditScore.of(whole, single, level, n_left)


def _found_right(made: Sequence[Decision], proposed: ReviewedSegment, terrain: Terrain) -> bool | None:
    """Whether a segment was found right as it was proposed; None where that was not judged."""
    latest = latest_of_each(made)
    if not latest or (latest[0].task, latest[0].start) != (terrain.task.fingerprint, proposed.start.state):
        return None
    return latest[0].new is not None and latest[0].new.program == write_program(proposed.program)


def audits(
    samples: Iterable[Sample], grounded: Grounded, decisions: Sequence[Decision]
) -> list[tuple[Sample, str, AuditScore]]:
    """Return what each reviewer found in each audit sample; a sample that was drawn twice counts once."""
    found = []
    for sample in {one.name: one for one in samples}.values():
        judges = {decision.reviewer for decision in decisions if decision.sample == sample.name}
        for reviewer in sorted(judges):
            found.append((sample, reviewer, audit_of(sample, grounded, decisions, reviewer=reviewer)))
    return found
