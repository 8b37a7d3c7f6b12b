"""A synthetic twin of the paper's study: a whole study folder of simulated people, dialogs and the truth.

    STUDY/
      study.toml, participants, episodes, steps, segments    what was truly done, as any study has it
      talks/                    the dialogs, if any, in the formats asked for
      truth/                    the people's true parameters; with dialogs, all tables, since ``fidm ground``
                                puts its own steps and segments in the place of the study's
      simulation.json           how it was made

By default 402 people of whom 2 did not complete, 332 to learn from and 68 to test. True parameters are not
among the participants' columns, where a classifier could take them for covariates. Everything is seeded per
person, and written part by part, so that a million people need no more memory than a few thousand.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fidm.cohort import Cohort
from fidm.errors import DataError, at_least, remedy
from fidm.files import contents, whole_folder, writing
from fidm.io.dialogs import formats as known_formats
from fidm.io.dialogs import write as write_dialog
from fidm.io.study import StudyWriter
from fidm.io.talk import Transcript
from fidm.record import Record, to_json
from fidm.simulate.acting import Style
from fidm.simulate.cohort import AgentName, People, check_agent, simulate_cohort
from fidm.simulate.people import (
    NOT_COMPLETED,
    Clinic,
    Roster,
    channels_of,
    draw_people,
    draw_roster,
    score_people,
    shifts_of,
)
from fidm.simulate.speaking import languages
from fidm.simulate.talk import SEVEN_FORMATS, simulate_talks
from fidm.simulate.walker import Habits
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel
from fidm.types import Floats

SIMULATION = "simulation.json"
"""How a study was simulated; a folder without it is not ours to replace."""

MOST_DIALOGS = 5_000
"""Of more people dialogs are written only if they are asked for: each is a file of its own."""

PER_PART = 20_000
"""How many people a part of the study's tables holds."""

AT_A_TIME, TALKING_AT_A_TIME = 2_000, 200
"""How many people are simulated before the next are begun."""

HABITS = Habits(wrong_turn=0.025, notices=0.75, passes_by=0.1, slope=1.2)
"""How walkers of the twin go about a task: ability shows more in slips than in walkers at large. Calibrated,
so that a diagnosis can be told from their choices nearly as well as from those of the model's people, and
that about one movement in twenty leads away from the next goal."""

STYLE = Style(names_place=0.1)
"""How they put their way into words: a segment in ten names a place and leaves the way to the planner."""

MOST_ACTIONS = 1_000
"""Whoever is not done after so many actions is stopped."""

TALKS, TRUTH = "talks", "truth"


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedStudy:
    """What :func:`simulate_study` wrote.

    Parameters
    ----------
    record : Record
        How it was made.
    counts : DataFrame
        ``diagnosis``, and how many are in ``train``, in ``test`` and ``excluded``.
    reasons : mapping of str to int
        Why people are excluded, and how many.
    n_actions, n_segments : int
        In all, of those who are not excluded.
    dialogs : mapping of str to int
        How many dialogs were written in each format.
    """

    record: Record
    counts: pl.DataFrame
    reasons: Mapping[str, int]
    n_actions: int
    n_segments: int
    dialogs: Mapping[str, int]

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The counts."""
        return {"": self.counts}

    @property
    def n_people(self) -> int:
        """How many take part: those to learn from and those to test."""
        return int(self.counts["train"].sum()) + int(self.counts["test"].sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {
            "participants": self.n_people,
            "train": int(self.counts["train"].sum()),
            "test": int(self.counts["test"].sum()),
            "excluded": dict(self.reasons),
            "diagnoses": {row.pop("diagnosis"): row for row in self.counts.iter_rows(named=True)},
            "actions": self.n_actions,
            "segments": self.n_segments,
            "dialogs": dict(self.dialogs),
        }


def simulate_study(
    folder: str | Path,
    *,
    task: str | Path = "grocery",
    n: int = 402,
    seed: int = 1,
    agent: AgentName = "walker",
    language: str = "yue",
    formats: Sequence[str] = SEVEN_FORMATS,
    dialogs: bool | None = None,
    people: People | None = None,
    clinic: Clinic | None = None,
    habits: Habits | None = None,
    overwrite: bool = False,
    people_per_part: int = PER_PART,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> SimulatedStudy:
    """Write a study of simulated people, with dialogs and the truth; whole or not at all.

    Parameters
    ----------
    folder : path
        Where to; must not exist, or be empty, unless ``overwrite`` is set.
    task : str or path
        A built-in task or a task file, which is copied into the study.
    n : int
        How many people, those who do not complete included.
    seed : int
        The same seed gives the same study.
    agent : {"walker", "model"}
        Whether people shop as people do, or exactly as the model says.
    language : {"yue", "zh", "en"}
        What they speak.
    formats : sequence of str
        The dialogs' formats: the i-th person's is the i-th, and from the beginning again; one for all alike.
    dialogs : bool, optional
        Whether they talk; by default where there are at most 5,000 people. Without dialogs segments are as
        the model of effort draws them, and every move is said; with them, the segments are measured in the
        talk, and about one in ten names a destination and leaves the way to the planner.
    people : People, optional
        How people differ within a diagnosis.
    clinic : Clinic, optional
        The diagnoses, covariates and scores.
    habits : Habits, optional
        How walkers go about a task; by default :data:`HABITS`.
    overwrite : bool
        Replace an earlier simulated study with everything in its folder. Any other folder is refused.
    people_per_part : int
        How many people each part of the tables holds; changes no person.
    on_progress : callable, optional
        Called with what is done, how many people of it, and of how many.

    Examples
    --------
    >>> import fidm, tempfile
    >>> from fidm.simulate.twin import simulate_study
    >>> with tempfile.TemporaryDirectory() as place:
    ...     made = simulate_study(f"{place}/twin", task="errands", n=20, agent="model", dialogs=False)
    ...     len(fidm.read_cohort(f"{place}/twin")), made.to_dict()["test"]
    (20, 3)
    """
    target = Path(folder).absolute()
    roster = draw_roster(n, seed=seed, clinic=clinic)
    model = load_task(task)
    talks = n <= MOST_DIALOGS if dialogs is None else bool(dialogs)
    if talks:
        _check_words(language, formats)
    check_agent(agent, habits)
    at_least("people_per_part", people_per_part, 1)
    plan = _Plan(
        task=model,
        roster=roster,
        clinic=clinic or Clinic(),
        people=people or People(),
        seed=int(seed),
        agent=agent,
        habits=(habits or HABITS) if agent == "walker" else habits,
        language=language if talks else None,
    )
    record = Record.of(
        "simulate",
        model,
        seed=seed,
        settings={
            "people": int(n),
            "agent": agent,
            "habits": None if plan.habits is None else asdict(plan.habits),
            "dialogs": talks,
            "language": plan.language,
            "formats": list(formats) if talks else [],
            "style": asdict(STYLE) if talks else None,
            "differences": asdict(plan.people),
            "clinic": asdict(plan.clinic),
        },
    )
    tally, named = _Tally(plan.clinic), [task if isinstance(task, str) else Path(task)]
    with writing(target), whole_folder(target, replaced=lambda: _replaced(target, overwrite)) as place:
        with ExitStack() as open_files:
            # The study's tables are the last to appear, where its dialogs and its truth already are.
            study = open_files.enter_context(StudyWriter(place, tasks=named, overwrite=True))
            truth = open_files.enter_context(StudyWriter(place / TRUTH, tasks=named)) if talks else None
            for number, first in enumerate(range(0, n, people_per_part)):
                last = min(first + people_per_part, n)
                pieces = []
                for begun, cohort, said in _people(plan, first, last):
                    tally.add(plan.roster, cohort, begun)
                    tally.write(said, begun, place / TALKS, formats)
                    pieces.append(cohort)
                    if on_progress is not None:
                        on_progress("simulating", begun + len(cohort), n)
                whole = pieces[0] if len(pieces) == 1 else Cohort.concat(pieces)
                covariates, true = _tables(plan, whole, first)
                study.add(whole.with_participants(covariates))
                if truth is not None:
                    truth.add(whole.with_participants(true))
                else:
                    _write_truth(place / TRUTH, true, number, is_only=people_per_part >= n)
        made = tally.result(record)
        (place / SIMULATION).write_text(to_json(made) + "\n", "utf-8")
    return made


def _is_ours(folder: Path) -> bool:
    """Whether a folder is a simulated study."""
    try:
        said = json.loads((folder / SIMULATION).read_text("utf-8"))
        return bool(said.get("experiment") == "simulate")
    except (OSError, ValueError, AttributeError):
        return False


def _replaced(target: Path, overwrite: bool) -> list[str]:
    """Everything in a folder that may be written to; raise where it may not."""
    if target.is_symlink():
        raise DataError("is a link. Name the folder itself.", source=str(target))
    if target.exists() and not target.is_dir():
        raise DataError("is a file, not a folder.", source=str(target))
    here = Path.cwd().resolve()
    if target.resolve() == here:
        raise DataError("is the folder you are in. Name a new one.", source=str(target))
    if target.resolve() in here.parents:
        raise DataError("holds the folder you are in. Name a new one.", source=str(target))
    there = contents(target)
    if there and not overwrite:
        raise DataError(
            "exists already. Choose another folder, or replace it: "
            + remedy("overwrite=True.", "--overwrite."),
            source=str(target),
        )
    if there and not _is_ours(target):
        raise DataError(
            f"is no simulated study: it has no {SIMULATION} of ours. It is left as it is; choose another "
            "folder.",
            source=str(target),
        )
    return there


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Who is simulated, doing what, and how."""

    task: TaskModel
    roster: Roster
    clinic: Clinic
    people: People
    seed: int
    agent: AgentName
    habits: Habits | None
    language: str | None

    def shifts(self, first: int, n: int) -> Floats:
        """How far diagnoses move these people."""
        rows = slice(first, first + n)
        return shifts_of(self.roster.group[rows], channels_of(self.people), clinic=self.clinic)


class _Tally:
    """What was written so far."""

    def __init__(self, clinic: Clinic) -> None:
        self.names = clinic.names
        self.numbers = np.zeros((len(self.names), 3), dtype=np.int64)
        self.n_actions = self.n_segments = 0
        self.dialogs: Counter[str] = Counter()

    def add(self, roster: Roster, cohort: Cohort, first: int) -> None:
        """Count the people of a part, and what those who completed did."""
        rows = slice(first, first + len(cohort))
        out = roster.is_excluded[rows]
        column = np.where(out, 2, roster.is_test[rows].astype(np.int64))
        np.add.at(self.numbers, (roster.group[rows], column), 1)
        done = ~out[cohort.episode_owner()]
        self.n_actions += int(np.diff(cohort.step_offsets)[done].sum())
        self.n_segments += int(np.diff(cohort.segment_offsets)[done].sum())

    def write(self, said: list[Transcript], first: int, place: Path, formats: Sequence[str]) -> None:
        """Write dialogs, each in the next format, and count them."""
        suffixes = {known.name: known.suffixes[0] for known in known_formats()}
        for i, transcript in enumerate(said, start=first):
            name = formats[i % len(formats)]
            write_dialog(transcript, place / f"{transcript.participant}{suffixes[name]}", format=name)
            self.dialogs[name] += 1

    def result(self, record: Record) -> SimulatedStudy:
        """Return all of it."""
        columns = dict(zip(("train", "test", "excluded"), self.numbers.T, strict=True))
        n_out = int(self.numbers[:, 2].sum())
        return SimulatedStudy(
            record=record,
            counts=pl.DataFrame({"diagnosis": self.names, **columns}),
            reasons={NOT_COMPLETED: n_out} if n_out else {},
            n_actions=self.n_actions,
            n_segments=self.n_segments,
            dialogs=dict(self.dialogs),
        )


def _check_words(language: str, formats: Sequence[str]) -> None:
    """Raise unless dialogs can be written as they were asked for."""
    if language not in languages():
        raise DataError(f"Simulated people do not speak {language!r}. Known: {', '.join(languages())}.")
    known = [one.name for one in known_formats()]
    if isinstance(formats, str) or not formats or not set(formats) <= set(known):
        raise DataError(f"formats must be a list with some of {', '.join(known)}.")


def _people(plan: _Plan, first: int, last: int) -> Iterator[tuple[int, Cohort, list[Transcript]]]:
    """Simulate people a few at a time: the number of the first of them, what they did, their dialogs."""
    size = AT_A_TIME if plan.language is None else TALKING_AT_A_TIME
    for begun in range(first, last, size):
        yield begun, *_part(plan, begun, min(size, last - begun))


def _part(plan: _Plan, first: int, n: int) -> tuple[Cohort, list[Transcript]]:
    """What people did, and their dialogs; whoever does not complete breaks off after a third of the way."""
    cohort, said = _simulated(plan, first, n, plan.shifts(first, n), None)
    broken: dict[int, Cohort] = {}
    for row in np.flatnonzero(plan.roster.is_excluded[first : first + n]).tolist():
        most = max(1, cohort[row : row + 1].n_steps // 3)
        broken[row], talk = _simulated(plan, first + row, 1, plan.shifts(first + row, 1), most)
        said[row : row + 1] = talk
    if broken:
        others = [row for row in range(n) if row not in broken]
        pieces = [*([cohort[others]] if others else []), *broken.values()]
        order = np.argsort(np.array([*others, *broken]))
        cohort = Cohort.concat(pieces)[order]
    return cohort, said


def _simulated(
    plan: _Plan, first: int, n: int, shifts: Floats, most: int | None
) -> tuple[Cohort, list[Transcript]]:
    """People who act, and talk if they are to; after so many actions they are stopped."""
    if plan.language is None:
        cohort = simulate_cohort(
            plan.task,
            n,
            seed=plan.seed,
            people=plan.people,
            max_steps=most or MOST_ACTIONS,
            shifts=shifts,
            first=first,
            agent=plan.agent,
            habits=plan.habits,
        )
        return cohort, []
    talks = simulate_talks(
        plan.task,
        n,
        seed=plan.seed,
        language=plan.language,
        people=plan.people,
        style=replace(STYLE, max_actions=most or MOST_ACTIONS),
        shifts=shifts,
        first=first,
        agent=plan.agent,
        habits=plan.habits,
    )
    return talks.cohort, list(talks.transcripts)


def _tables(plan: _Plan, cohort: Cohort, first: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The participants as the study has them, and with their true parameters."""
    known = draw_people(plan.roster, seed=plan.seed, clinic=plan.clinic, first=first, n=len(cohort))
    scores = score_people(
        plan.roster, seed=plan.seed, people=plan.people, clinic=plan.clinic, first=first, n=len(cohort)
    )
    reason = known["excluded"]
    covariates = known.drop("excluded").with_columns(scores).with_columns(reason)
    return covariates, covariates.with_columns(cohort.participants.drop("participant"))


def _write_truth(place: Path, table: pl.DataFrame, number: int, *, is_only: bool) -> None:
    path = (
        place / "participants.parquet" if is_only else place / "participants" / f"part-{number:05d}.parquet"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write_parquet(path)
