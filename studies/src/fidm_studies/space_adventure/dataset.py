"""The Space Adventure Task: 90 adults and 44 students flew a spaceship from planet to planet.

Two studies of one laboratory, of ageing and of alcohol use disorder, share 27 people; their files are the
same in both, and they are joined. A third study, of students, had other starts and some other planets.
Each mini-block is an episode on a task of its own (:mod:`fidm_studies.space_adventure.task`), each choice a
segment with its reaction time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from fidm.cohort import Cohort, offsets_of
from fidm.errors import DataError
from fidm.types import Progress
from fidm_studies.dataset import Dataset, Loaded, Source, read_manifest, require_files
from fidm_studies.space_adventure.files import (
    N_ITEMS,
    SCORES,
    SESSIONS,
    Session,
    read_scores,
    read_sessions,
    require_folders,
)
from fidm_studies.space_adventure.task import COSTS, FUEL, N_PLANETS, MiniBlock, make_task, transitions

AGEING, ALCOHOL, STUDENTS, BOTH = "ageing", "alcohol", "students", "ageing and alcohol"
"""The studies people took part in."""


@dataclass(frozen=True, slots=True)
class Group:
    """People of one study and one group, and the folders of their files.

    Parameters
    ----------
    study : str
        The study.
    group : str or None
        What its authors call the group.
    sessions : str
        The folder with the MATLAB files.
    scores : mapping of str to str
        The folder of each other test.
    """

    study: str
    group: str | None
    sessions: str
    scores: Mapping[str, str]


def _ageing(group: str, folder: str) -> Group:
    at = f"plandepth_age/data/{folder}"
    tests = ("Identical Pictures", "Spot a Word", "Spatial Working Memory")
    scores = {test: f"{at}/{name}" for test, name in zip(N_ITEMS, tests, strict=True)}
    return Group(AGEING, group, f"{at}/space_adventure/Experiment", scores)


def _alcohol(group: str, folder: str) -> Group:
    at = f"plandepth_aud/data/{folder}"
    scores = {test: f"{at}/{name}" for test, name in zip(N_ITEMS, ("IDP", "SAW", "SWM"), strict=True)}
    return Group(ALCOHOL, group, f"{at}/SAT/Experiment", scores)


GROUPS = (
    _ageing("older", "OldAdults"),
    _ageing("younger", "YoungAdults"),
    _alcohol("alcohol use disorder", "AUD"),
    _alcohol("control", "HC"),
    Group(STUDENTS, None, "pybefit_students/data", {}),
)
"""All groups of people, in the order in which they are read."""

FITS, VALUES = "plandepth_aud/data/SAT_subjectLevel.csv", "plandepth_aud/data/mini-block_data.csv"
MISPRINT = 1_000.0
"""No action is worth so much fuel: a published value beyond this is a misprint."""

FITTED = {
    "model_beta": "model_beta",
    "model_theta": "model_theta",
    "model_alpha": "model_alpha",
    "MeanPD": "mean_planning_depth",
    "IDP_PER": "processing_speed_percent",
    "SWM_PER": "working_memory_percent",
    "SAT_Total_points": "points",
    "age": "age",
    "gender": "gender",
}
"""Columns of the published table about people, and what they are called here."""


def read(folder: Path, on_progress: Progress) -> Loaded:
    """Read all files of the data set."""
    require_files([folder / FITS, folder / VALUES])
    require_folders(
        {folder / group.sessions: SESSIONS for group in GROUPS}
        | {folder / at: SCORES for group in GROUPS for at in group.scores.values()}
    )
    fits, values = _published_fits(folder / FITS), _published_values(folder / VALUES)
    sessions, scores = [], []
    for done, group in enumerate(GROUPS):
        on_progress("reading files", done, len(GROUPS))
        sessions.append(read_sessions(folder / group.sessions))
        scores.append({test: read_scores(folder / at, test) for test, at in group.scores.items()})
    on_progress("reading files", len(GROUPS), len(GROUPS))
    people, chosen, notes = _join(sessions, scores, fits)
    blocks = sorted({block for session in chosen for block in session.blocks})
    tables = {
        "published_fits": fits,
        "published_values": values,
        "transitions": count_transitions(
            (group.study, group.group or group.study, found.values())
            for group, found in zip(GROUPS, sessions, strict=True)
        ),
    }
    return Loaded(
        dataset=DATASET,
        tasks=tuple(make_task(block) for block in blocks),
        cohort=make_cohort(people, chosen),
        tables=tables,
        notes=(*notes, *_ended_early(chosen)),
    )


# ---------------------------------------------------------------------- people


def _join(
    sessions: list[dict[str, Session]], scores: list[dict[str, dict[str, float]]], fits: pl.DataFrame
) -> tuple[pl.DataFrame, list[Session], list[str]]:
    """Everybody once: what is known of them, their session, and what there is to say about joining."""
    rows: dict[str, dict[str, object]] = {}
    chosen: dict[str, Session] = {}
    differ = 0
    for group, found, tests in zip(GROUPS, sessions, scores, strict=True):
        for name, session in found.items():
            person = f"S{name}" if group.study == STUDENTS else name
            row = rows.setdefault(person, {"participant": person, "source": group.study})
            if person in chosen:
                differ += not session.same_choices(chosen[person])
                row["source"] = BOTH
            chosen.setdefault(person, session)
            if group.group is not None:
                row["age_group" if group.study == AGEING else "clinical_group"] = group.group
            known = {
                "age": session.age if np.isfinite(session.age) else None,
                "gender": session.gender,
                "points": session.points,
                **{test: given.get(name) for test, given in tests.items()},
            }
            for key, value in known.items():
                row[key] = value if row.get(key) is None else row[key]
    filled = _fill(rows, fits)
    people = pl.DataFrame(list(rows.values()), schema=PEOPLE)
    shared = people.filter(source=BOTH).height
    notes = []
    if shared:
        same = "the same flights and reaction times in both" if not differ else f"{differ} with other flights"
        notes.append(f"{shared} people took part in the studies of ageing and of alcohol; {same}.")
    if filled:
        whose = "one person's file lacks" if filled == 1 else f"the files of {filled} people lack"
        notes.append(f"Age and gender: {whose} them; they were taken from the table of published fits.")
    without = people.filter(pl.col("source") != STUDENTS, pl.any_horizontal(pl.col(list(N_ITEMS)).is_null()))
    if without.height:
        notes.append(f"{without.height} people of these studies lack one of the other tests.")
    return people, list(chosen.values()), notes


PEOPLE = {
    "participant": pl.String,
    "source": pl.String,
    "age_group": pl.String,
    "clinical_group": pl.String,
    "age": pl.Float64,
    "gender": pl.String,
    **dict.fromkeys(N_ITEMS, pl.Float64),
    "points": pl.Float64,
}
"""What is known of people."""


def _fill(rows: Mapping[str, dict[str, object]], fits: pl.DataFrame) -> int:
    """Fill in ages and genders that only the published table has; return of how many people."""
    filled = 0
    for known in fits.iter_rows(named=True):
        row = rows.get(known["participant"])
        if row is not None and row.get("age") is None and known["age"] is not None:
            row["age"] = known["age"]
            row["gender"] = None if known["gender"] is None else ("man", "woman")[int(known["gender"] != 0)]
            filled += 1
    return filled


def _ended_early(sessions: list[Session]) -> list[str]:
    """What there is to say of sessions that ended early."""
    blocks, steps, fuel = [], [], []
    longest = max(len(session.blocks) for session in sessions)
    for session in sessions:
        missing = sum(block.steps for block in session.blocks) - int(session.flown.sum())
        if len(session.blocks) < longest or missing:
            blocks.append(longest - len(session.blocks))
            steps.append(missing)
            fuel.append(session.points)
    if not blocks:
        return []
    empty = sum(left < max(COSTS) for left in fuel)
    return [
        f"Sessions that ended early: {len(blocks)}; with no fuel left for another jump: {empty}. "
        f"Mini-blocks never begun: {sum(blocks)}; choices of begun ones not made: {sum(steps)}. What there "
        "is of these people is kept."
    ]


# ---------------------------------------------------------------------- published tables


def _table(path: Path, needed: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    """The columns of a table that are needed; those that are numbers must be numbers."""
    try:
        table = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"It cannot be read as a table ({type(error).__name__}).", source=path.name) from None
    missing = sorted(set(needed) - set(table.columns))
    if missing:
        raise DataError(f"It has no column {', '.join(missing)}.", source=path.name)
    if table.is_empty():
        raise DataError("It has no row.", source=path.name)
    read = table.select(pl.col(name).cast(kind, strict=False) for name, kind in needed.items())
    no_numbers = [name for name in needed if read[name].null_count() > table[name].null_count()]
    if no_numbers:
        raise DataError(f"Something in the column {', '.join(no_numbers)} is not a number.", source=path.name)
    return read


def _published_fits(path: Path) -> pl.DataFrame:
    """What the authors estimated of each person; theirs are those of the study of alcohol."""
    table = _table(path, {"ID": pl.String, **dict.fromkeys(FITTED, pl.Float64)})
    if table["ID"].is_duplicated().any() or table["ID"].has_nulls():
        raise DataError("Somebody has two rows in it, or a row is nobody's.", source=path.name)
    return table.select(pl.col("ID").alias("participant"), *(pl.col(a).alias(b) for a, b in FITTED.items()))


def _published_values(path: Path) -> pl.DataFrame:
    """What the authors found each action to be worth at the start, planning one, two and three deep."""
    kinds = [f"p{planet}" for planet in range(1, N_PLANETS + 1)]
    whole = ("block_id", "start", "noise", "steps", "depth", "action")
    numbers = {**dict.fromkeys(whole, pl.Int64), **dict.fromkeys(("Q", *kinds), pl.Float64)}
    table = _table(path, numbers)
    possible: dict[str, Iterable[float]] = {
        "noise": (0, 1),
        "steps": (2, 3),
        "start": range(1, N_PLANETS + 1),
    }
    possible |= dict.fromkeys(kinds, FUEL)
    strange = [name for name, values in possible.items() if not table[name].is_in(list(values)).all()]
    if strange or table.null_count().sum_horizontal().item():
        raise DataError(
            f"Cells are empty in it, or are what the task does not have: {', '.join(strange) or 'empty'}.",
            source=path.name,
        )
    names = []
    for row in table.iter_rows(named=True):
        planets = tuple(round(row[kind] / 10.0) + 3 for kind in kinds)
        names.append(MiniBlock(planets, ("low", "high")[row["noise"]], row["steps"], row["start"] - 1).name)
    return table.select(
        pl.Series("task", names),
        "block_id",
        "steps",
        planet=pl.col("start") - 1,
        depth=pl.col("depth"),
        action=pl.col("action"),
        q=pl.col("Q"),
        misprint=pl.col("Q").abs() > MISPRINT,
    )


# ---------------------------------------------------------------------- the data set


PYBEFIT = "6fe3e1f863c1e28c0476b074a78679d0950fc489"


def _github(repository: str, commit: str, within: str, there: str = "") -> Source:
    return Source(
        home=f"https://github.com/{repository}",
        version=commit,
        base_url=f"https://raw.githubusercontent.com/{repository}/{commit}/",
        within=within,
        there=there,
    )


DATASET = Dataset(
    name="space-adventure",
    title="Space Adventure Task",
    folder="space_adventure_task",
    summary=(
        "People flew a spaceship from planet to planet, two or three flights ahead, to gain fuel; every "
        "choice, where it led and how long it took was recorded."
    ),
    people="90 adults (27 older and 25 younger ones; 30 with alcohol use disorder and 35 controls) and 44 "
    "students",
    licence="MIT",
    licence_url="https://opensource.org/license/mit",
    terms="Anybody may use, change and pass on the files if the licence and its copyright line go with them.",
    citation=(
        "Steffen, J., Marković, D., Glöckner, F., Neukam, P. T., Kiebel, S. J., Li, S.-C., & Smolka, M. N. "
        "(2023). Shorter planning depth and higher response noise during sequential decision-making in old "
        "age. Scientific Reports, 13, 7692. https://doi.org/10.1038/s41598-023-33274-0",
        "Steffen, J. (2024). Planning depth in Alcohol Use Disorder [data and code]. "
        "https://github.com/jeffensen/plandepth_aud",
        "Marković, D. PyBefit [data and code]. https://github.com/dimarkov/pybefit",
    ),
    sources=(
        _github("jeffensen/plandepth_age", "593488712d41f111556284d9f6ab19a0ee41cf31", "plandepth_age/"),
        _github("jeffensen/plandepth_aud", "efe2cdada227d7a68054c888cc20ba986255c3d7", "plandepth_aud/"),
        _github("dimarkov/pybefit", PYBEFIT, "pybefit_students/", "examples/plandepth/"),
        _github("dimarkov/pybefit", PYBEFIT, "pybefit_students/LICENSE.md", "LICENSE.md"),
    ),
    manifest=read_manifest("space_adventure.txt"),
    read=read,
)


CHOICES = ("first", "second", "third")
"""What the choices of a mini-block are called in the design column ``choice_index``."""


def make_cohort(people: pl.DataFrame, sessions: list[Session]) -> Cohort:
    """Return everybody's mini-blocks as episodes, and every choice as a step and a segment of its own."""
    blocks = [block for session in sessions for block in session.blocks]
    flown = np.concatenate([session.flown for session in sessions])
    steps = np.array([block.steps for block in blocks])
    planet = np.concatenate([session.planet for session in sessions])
    landed = np.concatenate([session.landed for session in sessions])
    index = np.broadcast_to(np.arange(flown.shape[1]), flown.shape)
    counts = flown.sum(axis=1)
    last = landed[np.arange(len(counts)), counts - 1]
    end = np.where(counts == steps, steps * N_PLANETS, counts * N_PLANETS + last)
    to_go = steps[:, None] - index
    number = [str(b + 1) for session in sessions for b in range(len(session.blocks))]
    segments = pl.DataFrame(
        {
            "segment": (index + 1)[flown].astype(str),
            "n_moves": np.ones(int(flown.sum()), dtype=np.int32),
            "rt_s": np.concatenate([session.rt_s for session in sessions])[flown],
            "choice_index": np.array(CHOICES)[index[flown]],
            "noise": np.repeat([block.noise for block in blocks], counts),
            "steps_to_go": to_go[flown].astype(np.int32),
        }
    )
    return Cohort(
        participants=people,
        episodes=pl.DataFrame({"episode": number, "task": [block.name for block in blocks]}),
        episode_offsets=offsets_of([len(session.blocks) for session in sessions]),
        step_offsets=offsets_of(counts),
        state=(index * N_PLANETS + planet)[flown].astype(np.int32),
        action=np.concatenate([session.action for session in sessions])[flown].astype(np.int32),
        end_state=np.where(last < 0, -1, end).astype(np.int32),
        segments=segments,
        segment_offsets=offsets_of(counts),
        segment=index[flown].astype(np.int32),
    )


def count_transitions(groups: Iterable[tuple[str, str, Iterable[Session]]]) -> pl.DataFrame:
    """Return how many flights led where the rules do not allow, or brought other fuel, by group."""
    rows = []
    for study, group, sessions in groups:
        counted = [_against_rules(session) for session in sessions]
        flights, unknown, impossible, other_fuel = np.sum(counted, axis=0).tolist()
        rows.append(
            {
                "study": study,
                "group": group,
                "files": len(counted),
                "transitions": flights,
                "not_recorded": unknown,
                "impossible": impossible,
                "other_fuel": other_fuel,
            }
        )
    return pl.DataFrame(rows)


def _against_rules(session: Session) -> tuple[int, int, int, int]:
    """Flights; those without a recorded landing; those the rules do not allow; those that brought other fuel.

    How much fuel there was before the first flight is not recorded, so the first is not compared.
    """
    flown, known = session.flown, session.landed >= 0
    gain = np.full(flown.shape, np.nan)
    impossible = 0
    for b, block in enumerate(session.blocks):
        for t in np.flatnonzero(flown[b] & known[b]):
            action, here, there = session.action[b, t], session.planet[b, t], session.landed[b, t]
            impossible += transitions(block.noise)[action, here, there] == 0
            gain[b, t] = block.fuel[there] - COSTS[action]
        impossible += int((session.landed[b, :-1] != session.planet[b, 1:])[flown[b, 1:]].sum())
    fuel, expected = session.fuel[flown], gain[flown]
    change = np.diff(fuel)
    other = np.isfinite(change) & np.isfinite(expected[1:]) & (change != expected[1:])
    return int(flown.sum()), int((flown & ~known).sum()), int(impossible), int(other.sum())
