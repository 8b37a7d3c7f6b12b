"""A manual audit: a random sample of dialogs on a sheet, judged by a person, and scored with an interval.

The paper judged 20 transcript–trajectory pairs and found 19 consistent. The sheet has one row per segment
of the sampled dialogs: what was said, the program, the moves. A person writes ``ok`` or ``wrong`` in the
column ``verdict``. A dialog counts as consistent if all its segments do.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from fidm.errors import DataError, GroundingError, Problem
from fidm.files import whole_file
from fidm.grounding.store import FOLDER, PROPOSALS, PROPOSED, PROPOSED_MOVES, has_grounding
from fidm.proportion import wilson

COLUMNS = (
    "participant", "episode", "segment", "start_s", "said", "program", "moves", "status",
    "verdict", "comment",
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


def drawn_dialogs(study: str | Path, n: int, *, seed: int) -> tuple[tuple[str, str], ...]:
    """Draw dialogs of a study for an audit, each as participant and episode.

    Parameters
    ----------
    study : path
        A grounded study.
    n : int
        How many dialogs; all of them if there are fewer.
    seed : int
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
                    row["program"], _short(steps.get((who, episode, number), [])), row["status"], "", "",
                )
            ]
        )  # fmt: skip
    with whole_file(target, mode=0o600) as part:
        part.write_text(text.getvalue(), "utf-8-sig")
    return target


def _short(actions: list[str]) -> str:
    """Actions with repeats counted: 'N×3 E BUY meat'."""
    found: list[list[str | int]] = []
    for action in actions:
        if found and found[-1][0] == action:
            found[-1][1] = int(found[-1][1]) + 1
        else:
            found.append([action, 1])
    return ", ".join(f"{name}×{count}" if int(count) > 1 else str(name) for name, count in found)


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
    missing = [
        name
        for name in ("participant", "episode", "segment", "program", "verdict")
        if rows and name not in rows[0]
    ]
    if not rows or missing:
        what = f"has no column {missing[0]!r}" if missing else "has no rows"
        raise DataError(f"{what}; it must be a sheet of 'fidm audit sample'.", source=str(sheet))
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
    return AuditScore(
        level, len(whole), sum(whole), wilson(sum(whole), len(whole), level), len(single), sum(single),
        wilson(sum(single), len(single), level),
    )  # fmt: skip
