"""Four tables become a cohort; whatever is wrong in them is found, all at once.

The tables, their columns and their meaning are documented in ``docs/reference/study-format.md``:

- ``participants``: ``participant``, any covariates, and optionally ``excluded`` (a reason: left out);
- ``episodes``: ``participant``, ``episode``, ``task`` (may be left out where there is one) and optionally
  ``end_state`` and what is known of an episode: its block, condition, date;
- ``steps``: ``participant``, ``episode``, ``step``, ``state``, ``action``, and optionally ``weight``,
  ``segment``, ``inferred``;
- ``segments``: ``participant``, ``episode``, ``segment``, ``n_moves``, observations and design columns.

``episode`` may be left out of all tables where everybody has one, and the table ``episodes`` where there is
one task. Null and NaN mean *not observed*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import UNKNOWN_STATE, Cohort, as_frame, no_problems, offsets_of, require_skip
from fidm.errors import DataError
from fidm.io.columns import COLUMN as EXCLUDED
from fidm.io.columns import (
    by_number,
    excluded_people,
    flags,
    in_order,
    named_codes,
    natural,
    need,
    numbered,
    numbers,
    plain_kind,
    refusal,
    refuse_decimals,
    say,
    whole,
    without,
)
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import UNNAMED, Followed, TaskSet, follow, replay, sound_steps, trace_problems
from fidm.types import Skip

if TYPE_CHECKING:
    import pandas as pd

Tasks = TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel]

ONLY_EPISODE = "1"
"""What the episode is called where everybody has one."""

NOT_NEGATIVE = ("n_moves", "duration_s", "n_characters", "n_turns", "pause_s")
"""Columns of the segments that cannot be below 0."""

COUNTS = ("n_moves", "n_characters", "n_turns")
"""Columns of the segments that hold whole numbers."""

KEYS = {
    "participants": ("participant",),
    "episodes": ("participant", "episode"),
    "steps": ("participant", "episode", "step"),
    "segments": ("participant", "episode", "segment"),
}
"""What identifies a row of each table."""


def make_cohort(
    *,
    steps: pl.DataFrame | pd.DataFrame,
    participants: pl.DataFrame | pd.DataFrame | None = None,
    episodes: pl.DataFrame | pd.DataFrame | None = None,
    segments: pl.DataFrame | pd.DataFrame | None = None,
    tasks: Tasks | None = None,
    strict: bool = True,
    skip: Skip = "participant",
    source: str = "",
) -> Cohort:
    """Make a cohort from tables, and check it against its tasks.

    Parameters
    ----------
    steps : DataFrame
        What people did, one row per action.
    participants : DataFrame, optional
        Who they are; made from the steps if left out. Whoever has a reason in the column ``excluded`` is
        left out with all their rows.
    episodes : DataFrame, optional
        Which task each episode belongs to, and any columns about it, such as its block; may be left out where
        there is one task.
    segments : DataFrame, optional
        What they said; may be left out where choices alone are studied.
    tasks : TaskModel, or several, optional
        The tasks. With them actions and states may be given by name, and every trace is checked.
    strict : bool
        Raise if anything is wrong. With False people with problems are left out whole, and the
        problems are in ``cohort.problems``.
    skip : {"participant", "episode", "rest"}
        With ``strict=False``, what is left out: people, the episodes in which something is wrong, or of these
        what comes from a wrong step on, with the segments that it belongs to. People of whom no episode is
        left are left out.
    source : str
        Where the tables come from, for messages.

    Examples
    --------
    >>> import fidm, polars as pl
    >>> task = fidm.TaskModel.from_arrays(
    ...     [[-1, 1], [0, 2], [-1, -1]], [[0, -0.1], [-0.1, 1], [0, 0]], gamma=0.9, tau=0.1,
    ...     actions=["left", "right"]
    ... )
    >>> steps = pl.DataFrame(
    ...     {"participant": ["A", "A"], "step": [1, 2], "state": [0, 1], "action": ["right", "right"]}
    ... )
    >>> fidm.make_cohort(steps=steps, tasks=task)
    Cohort(1 participants, 1 episodes, 2 steps, 0 segments)
    """
    known = None if tasks is None else TaskSet.of(tasks)
    given = {
        name: as_frame(table, name)
        for name, table in (
            ("participants", participants),
            ("episodes", episodes),
            ("steps", steps),
            ("segments", segments),
        )
        if table is not None
    }
    return build(given, known, strict=strict, skip=skip, source=source)


def build(
    tables: Mapping[str, pl.DataFrame],
    tasks: TaskSet | None,
    *,
    strict: bool,
    skip: Skip = "participant",
    source: str,
) -> Cohort:
    """Make a cohort from polars tables."""
    require_skip(skip, strict)
    found: list[pl.DataFrame] = []
    if "steps" not in tables:
        raise DataError("There is no table of steps.", source=source)
    for name, table in tables.items():
        need(table, name, KEYS[name][:1])
        refuse_decimals(table, name)
    out = excluded_people(tables.get("participants"), source=source)["participant"]
    tables = {name: without(numbered(table), out) for name, table in tables.items()}
    _same_episodes(tables)
    people = _participants(tables, found)
    episodes = _episodes(tables, people, tasks, found)
    steps = _steps(tables, episodes, tasks, found)
    segments = _segments(tables, episodes, found)
    if "segment" in steps.columns and "segments" in tables:
        _unknown_segments(steps, segments, found)
    problems = pl.concat([no_problems(), *found])
    # Whoever has sound steps is checked against the tasks too, so that one reading tells everything.
    wrong = _wrong_episodes(problems, tables) if skip != "participant" else None
    if wrong is None:
        unsound = (
            problems.filter(pl.col("table").is_in(["episodes", "steps"]))["participant"].drop_nulls().unique()
        )
        if len(unsound):
            sound = ~pl.col("participant").is_in(unsound.implode())
            people, episodes = people.filter(sound), episodes.filter(sound)
            steps, segments = steps.filter(sound), segments.filter(sound)
    else:
        steps = _before(steps, wrong)
        keys = ["participant", "episode"]
        is_wrong = pl.struct(keys).is_in(wrong.select(pl.struct(keys)).to_series().implode())
        episodes = episodes.with_columns(end_state=pl.when(~is_wrong).then(pl.col("end_state")))
    cohort, rows = _assemble(people, episodes, steps, segments)
    followed = None if tasks is None else follow(tasks, cohort)
    if tasks is not None and followed is not None:
        problems = pl.concat([problems, trace_problems(tasks, cohort, followed, rows)])
    place = pl.col("table").replace_strict(list(KEYS), range(len(KEYS)), return_dtype=pl.Int64)
    problems = problems.sort(place, "row", maintain_order=True)
    if problems.height:
        if strict:
            raise refusal(problems, source)
        about = problems if wrong is None else problems.filter(pl.col("table") == "participants")
        if wrong is not None:
            cohort = cohort.up_to(_sound_until(cohort, wrong, followed, skip))
        bad = about["participant"].drop_nulls().unique()
        cohort = cohort[np.flatnonzero(~cohort.ids.is_in(bad.implode()).to_numpy())]
    return cohort.with_problems(problems)


def _wrong_episodes(problems: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Episodes in which a row is wrong, and the first step that is; none where all of it is in doubt."""
    found = [pl.DataFrame(schema={"participant": pl.String, "episode": pl.String, "step": pl.Int64})]
    for name in [name for name in ("episodes", "steps", "segments") if name in tables]:
        rows = problems.filter(pl.col("table") == name)["row"] - 1
        own = _with_episode(tables[name]).filter(pl.col("_row").cast(pl.Int64).is_in(rows.implode()))
        step = pl.col("step").cast(pl.Int64, strict=False) if name == "steps" else pl.lit(None, pl.Int64)
        found.append(own.select("participant", "episode", step.alias("step")))
    first = pl.when(pl.col("step").null_count() == 0).then(pl.col("step").min()).alias("step")
    return (
        pl.concat(found).drop_nulls(["participant", "episode"]).group_by("participant", "episode").agg(first)
    )


def _sound_until(
    cohort: Cohort, wrong: pl.DataFrame, followed: Followed | None, skip: Skip
) -> NDArray[np.int64]:
    """How many steps of each episode are kept, [E]; -1 where the episode is left out.

    Of an episode that ends before a wrong step, the step before that is given up, too.
    """
    whole = np.diff(cohort.step_offsets)
    sound = whole.copy() if followed is None else sound_steps(cohort, followed, skip)
    cut = _in_episodes(cohort, wrong)
    sound[cut] = np.minimum(sound, whole - 1)[cut] if skip == "rest" else -1
    sound[_in_episodes(cohort, wrong.filter(pl.col("step").is_null()))] = -1
    sound[(sound == 0) & (whole > 0)] = -1
    return sound


def _before(steps: pl.DataFrame, wrong: pl.DataFrame) -> pl.DataFrame:
    """The steps before the first wrong one of their episode."""
    first = wrong.rename({"step": "_first"})
    kept = steps.join(first, on=["participant", "episode"], how="left", maintain_order="left")
    return kept.filter((pl.col("step") < pl.col("_first")).fill_null(value=True)).drop("_first")


def _in_episodes(cohort: Cohort, wrong: pl.DataFrame) -> NDArray[np.bool_]:
    """Which episodes of a cohort these are."""
    keys = cohort.episode_keys().select("participant", "episode").with_row_index("_row")
    rows = keys.join(wrong, on=["participant", "episode"], how="semi")["_row"].to_numpy()
    found = np.zeros(cohort.n_episodes, dtype=np.bool_)
    found[rows] = True
    return found


def _same_episodes(tables: Mapping[str, pl.DataFrame]) -> None:
    """Steps and segments must both say which episode they belong to, or neither."""
    having = [name for name in ("steps", "segments") if name in tables and "episode" in tables[name].columns]
    if len(having) == 1 and "segments" in tables and "steps" in tables:
        other = "segments" if having == ["steps"] else "steps"
        if tables[having[0]].select(natural(pl.col("episode")).n_unique()).item() > 1 or (
            tables[having[0]].select((natural(pl.col("episode")) != ONLY_EPISODE).any()).item()
        ):
            raise DataError(
                f"{having[0]} has a column 'episode', but {other} has none. Give both one, or neither."
            )


# ---------------------------------------------------------------------- the four tables


def _participants(tables: Mapping[str, pl.DataFrame], found: list[pl.DataFrame]) -> pl.DataFrame:
    given = tables.get("participants")
    if given is None:
        names = tables["steps"].select(natural(pl.col("participant"))).unique(maintain_order=True)
        return names.drop_nulls()
    table = given.with_columns(natural(pl.col("participant")))
    say(found, "participants", table, pl.col("participant").is_null(), "The participant is missing.")
    twice = pl.col("participant").is_duplicated() & pl.col("participant").is_not_null()
    say(found, "participants", table, twice, "The participant has several rows.", "Ids must be unique.")
    table = table.drop_nulls("participant").unique("participant", keep="first", maintain_order=True)
    return table.drop("_row").select("participant", pl.exclude("participant", EXCLUDED))


def _episodes(
    tables: Mapping[str, pl.DataFrame], people: pl.DataFrame, tasks: TaskSet | None, found: list[pl.DataFrame]
) -> pl.DataFrame:
    given = tables.get("episodes")
    one = tasks is None or len(tasks.tasks) == 1
    if given is not None and "task" not in given.columns and one:
        given = given.with_columns(task=pl.lit(UNNAMED if tasks is None else tasks.names[0]))
    if given is None:
        if tasks is not None and len(tasks.tasks) > 1:
            raise DataError(
                f"There are {len(tasks.tasks)} tasks, so a table 'episodes' must say which one each is on."
            )
        name = tasks.names[0] if tasks is not None else UNNAMED
        keys = [_with_episode(tables["steps"]).select("participant", "episode")]
        if "segments" in tables:
            keys.append(_with_episode(tables["segments"]).select("participant", "episode"))
        given = pl.concat(keys).drop_nulls().unique(maintain_order=True).with_columns(task=pl.lit(name))
        is_known = pl.col("participant").is_in(people["participant"].implode())
        table = given.filter(is_known).with_row_index("_row")
    else:
        need(given, "episodes", ("participant", "task"))
        table = _with_episode(given).with_columns(pl.col("task").cast(pl.String))
        say(found, "episodes", table, pl.col("task").is_null(), "The task is missing.")
        table = _of_known(table, "episodes", people, found)
        twice = pl.struct("participant", "episode").is_duplicated()
        once = "An episode is named once per participant."
        say(found, "episodes", table, twice, "The episode has several rows.", once)
        table = table.unique(["participant", "episode"], keep="first", maintain_order=True)
    if "end_state" not in table.columns:
        table = table.with_columns(end_state=pl.lit(None, dtype=pl.Int32))
    table = table.with_columns(_task=pl.col("task"))
    table = named_codes(table, "episodes", "end_state", tasks, found).drop("_task")
    order = people.select("participant").with_row_index("_person")
    placed = table.join(order, on="participant", how="left", maintain_order="left")
    return by_number(placed, "_person", "episode").drop("_row").with_row_index("_episode")


def _steps(
    tables: Mapping[str, pl.DataFrame],
    episodes: pl.DataFrame,
    tasks: TaskSet | None,
    found: list[pl.DataFrame],
) -> pl.DataFrame:
    given = tables["steps"]
    has_states = "state" in given.columns
    needed = ("participant", "step", "state", "action") if has_states else ("participant", "step", "action")
    need(given, "steps", needed)
    table = _placed(_with_episode(given), "steps", episodes, found)
    for column in needed[1:]:
        say(found, "steps", table, pl.col(column).is_null(), f"The {column} is missing.")
    table = whole(table, "steps", "step", found)
    table = in_order(table.drop_nulls("step"), ["_episode", "step"])
    same = pl.col("_episode") == pl.col("_episode").shift(1)
    gap = pl.col("step") - pl.col("step").shift(1)
    say(found, "steps", table, same & (gap == 0), "The step number occurs twice in its episode.")
    say(found, "steps", table, same & (gap > 1), "Step numbers jump: steps before this one are missing.",
         "Number the steps of an episode without gaps.")  # fmt: skip
    if has_states:
        table = named_codes(table, "steps", "state", tasks, found)
    table = named_codes(table, "steps", "action", tasks, found).drop_nulls(needed[1:])
    if not has_states:
        table = _replayed(table, tasks)
    if "weight" in table.columns:
        table = numbers(table, "steps", "weight", found)
        say(found, "steps", table, pl.col("weight") < 0, "The weight is negative.")
        table = table.with_columns(pl.col("weight").fill_null(1.0))
    if "inferred" in table.columns:
        table = flags(table, "steps", "inferred", found)
    return table


def _segments(
    tables: Mapping[str, pl.DataFrame], episodes: pl.DataFrame, found: list[pl.DataFrame]
) -> pl.DataFrame:
    given = tables.get("segments")
    if given is None:
        nothing = {"participant": pl.String, "episode": pl.String, "segment": pl.String, "n_moves": pl.Int64}
        return pl.DataFrame(schema={"_row": pl.UInt32, **nothing, "_episode": pl.UInt32})
    need(given, "segments", ("participant", "segment"))
    table = _with_episode(given).with_columns(natural(pl.col("segment")))
    table = _placed(table, "segments", episodes, found)
    if "n_moves" in table.columns:
        seen = [column for column in NOT_NEGATIVE[1:] if column in table.columns]
        said = pl.any_horizontal(pl.col(seen).is_not_null()) if seen else pl.lit(True)
        say(found, "segments", table, pl.col("n_moves").is_null() & said, "n_moves is missing.",
             "Say how many moves the segment describes.")  # fmt: skip
    say(found, "segments", table, pl.col("segment").is_null(), "The segment is missing.")
    twice = pl.struct("_episode", "segment").is_duplicated() & pl.col("segment").is_not_null()
    once = "A segment is named once per episode."
    say(found, "segments", table, twice, "The segment has several rows.", once)
    for column, kind in table.schema.items():
        if kind.is_float():
            say(found, "segments", table, pl.col(column).is_infinite(), f"{column} is not finite.")
            table = table.with_columns(pl.col(column).fill_nan(None))
        if column in NOT_NEGATIVE:
            table = plain_kind(table, "segments", column)
            if table.schema[column] == pl.String:
                table = numbers(table, "segments", column, found)
            say(found, "segments", table, pl.col(column) < 0, f"{column} is negative.")
        if column in COUNTS and table.schema[column].is_float():
            part = pl.col(column).is_finite() & (pl.col(column) != pl.col(column).round())
            say(found, "segments", table, part, f"{column} is not a whole number.")
    if "duration_s" in table.columns:
        zero = "Leave it empty where nothing was said."
        say(found, "segments", table, pl.col("duration_s") == 0, "duration_s is 0.", zero)
    return by_number(table, "_episode", "segment")


def _replayed(steps: pl.DataFrame, tasks: TaskSet | None) -> pl.DataFrame:
    """The steps with the states their actions lead through, from each task's start.

    The next phase of a task opens as soon as its goals are complete, since nobody says when else.
    """
    random = [] if tasks is None else [task.name for task in tasks.tasks if not task.is_deterministic]
    if tasks is None or random:
        why = "the tasks are not known" if tasks is None else f"actions of {random[0]} have several outcomes"
        raise DataError(
            f"The steps have no column 'state', and {why}, so the states cannot be worked out. Add "
            "the column to the steps."
        )
    parts = []
    for task in tasks.tasks:
        own = steps.filter(pl.col("_task").is_in([task.name, UNNAMED]))
        counts = own.group_by("_episode", maintain_order=True).len()["len"].to_numpy()
        state, end = replay(task, own["action"].to_numpy(), offsets_of(counts))
        ends = np.repeat(end, counts)
        worked = own.with_columns(state=pl.Series(state), _end=pl.Series(ends))
        parts.append(worked.filter(pl.col("state") > -2))
    return in_order(pl.concat(parts), ["_episode", "step"])


# ---------------------------------------------------------------------- helpers


def _assemble(
    people: pl.DataFrame, episodes: pl.DataFrame, steps: pl.DataFrame, segments: pl.DataFrame
) -> tuple[Cohort, NDArray[np.int64]]:
    """The arrays, and the row each step stood in."""
    order = people.select("participant").with_row_index("_p")
    episodes = episodes.join(order, on="participant", how="left", maintain_order="left")
    numbers = episodes["_episode"].to_numpy()
    place = np.full(int(numbers.max(initial=0)) + 1, -1, dtype=np.int64)
    place[numbers] = np.arange(episodes.height)
    of_step = place[steps["_episode"].to_numpy()] if steps.height else np.zeros(0, np.int64)
    of_segment = place[segments["_episode"].to_numpy()] if segments.height else np.zeros(0, np.int64)
    segment_offsets = offsets_of(np.bincount(of_segment, minlength=episodes.height))
    known = ("participant", "episode", "task", "end_state", "_person", "_episode", "_p")
    hidden = ("_row", "participant", "episode", "_episode", "_task")
    step = steps["step"].cast(pl.Int32).to_numpy()
    step_offsets = offsets_of(np.bincount(of_step, minlength=episodes.height))
    first = step[step_offsets[:-1][np.diff(step_offsets) > 0]]
    cohort = Cohort(
        participants=people,
        episodes=episodes.select("episode", "task", pl.exclude(known)),
        episode_offsets=offsets_of(np.bincount(episodes["_p"].to_numpy(), minlength=people.height)),
        step_offsets=step_offsets,
        state=steps["state"].cast(pl.Int32).to_numpy(),
        action=steps["action"].cast(pl.Int32).to_numpy(),
        end_state=_ends(episodes, steps, of_step),
        segments=segments.select("segment", pl.exclude("segment", *hidden)),
        segment_offsets=segment_offsets,
        weight=steps["weight"].to_numpy() if "weight" in steps.columns else None,
        segment=_segment_rows(steps, segments, segment_offsets, of_segment)
        if "segment" in steps.columns
        else None,
        inferred=steps["inferred"].to_numpy() if "inferred" in steps.columns else None,
        step=None if (first == 1).all() else step,
    )
    return cohort, steps["_row"].to_numpy().astype(np.int64)


def _ends(episodes: pl.DataFrame, steps: pl.DataFrame, of_step: NDArray[np.int64]) -> NDArray[np.int32]:
    """The state after each episode's last step: as given, or as worked out."""
    ends = episodes["end_state"].cast(pl.Int32).fill_null(UNKNOWN_STATE).to_numpy().copy()
    if "_end" in steps.columns:
        worked = np.full(len(ends), UNKNOWN_STATE, dtype=np.int32)
        worked[of_step] = steps["_end"].to_numpy()
        ends = np.where(ends == UNKNOWN_STATE, worked, ends)
    return ends.astype(np.int32)


def _unknown_segments(steps: pl.DataFrame, segments: pl.DataFrame, found: list[pl.DataFrame]) -> None:
    known = segments.select("_episode", "segment").unique().with_columns(_known=pl.lit(True))
    named = steps.with_columns(natural(pl.col("segment")))
    joined = named.join(known, on=["_episode", "segment"], how="left", maintain_order="left")
    lost = pl.col("segment").is_not_null() & pl.col("_known").is_null()
    say(found, "steps", joined, lost, "The segment is not in the table of segments.")


def _segment_rows(
    steps: pl.DataFrame, segments: pl.DataFrame, offsets: NDArray[np.int64], owner: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The row of each step's segment within its episode; -1 for none."""
    number = np.arange(segments.height) - offsets[owner] if segments.height else np.zeros(0, np.int64)
    known = segments.select("_episode", "segment").with_columns(_place=pl.Series(number, dtype=pl.Int64))
    known = known.unique(["_episode", "segment"], keep="first", maintain_order=True)
    named = steps.select("_episode", natural(pl.col("segment")))
    joined = named.join(known, on=["_episode", "segment"], how="left", maintain_order="left")
    return joined["_place"].fill_null(-1).to_numpy().astype(np.int32)


def _with_episode(table: pl.DataFrame) -> pl.DataFrame:
    episode = (
        natural(pl.col("episode")) if "episode" in table.columns else pl.lit(ONLY_EPISODE).alias("episode")
    )
    return table.with_columns(natural(pl.col("participant")), episode)


def _of_known(
    table: pl.DataFrame, name: str, people: pl.DataFrame, found: list[pl.DataFrame]
) -> pl.DataFrame:
    strange = ~pl.col("participant").is_in(people["participant"].implode()) | pl.col("participant").is_null()
    first = table.filter(strange).unique("participant", keep="first", maintain_order=True)
    say(found, name, first, pl.lit(True), "The participant is not in the table of participants.")
    return table.filter(~strange)


def _placed(
    table: pl.DataFrame, name: str, episodes: pl.DataFrame, found: list[pl.DataFrame]
) -> pl.DataFrame:
    """The rows whose episode exists, with its number."""
    keys = episodes.select("participant", "episode", "_episode", pl.col("task").alias("_task"))
    placed = table.join(keys, on=["participant", "episode"], how="left", maintain_order="left")
    people = episodes["participant"].unique().implode()
    lost = pl.col("_episode").is_null()
    stranger = ~pl.col("participant").is_in(people) | pl.col("participant").is_null()
    strangers = placed.filter(lost & stranger).unique("participant", keep="first", maintain_order=True)
    what = "The participant is not in the table of participants, or has no episode."
    say(found, name, strangers, pl.lit(True), what, "Only the first such row is given.")
    say(found, name, placed, lost & ~stranger, "The episode is not in the table of episodes.")
    return placed.filter(~lost)


# ---------------------------------------------------------------------- and back


def tables_of(cohort: Cohort) -> dict[str, pl.DataFrame]:
    """Return the four tables of a cohort, in the documented form."""
    owner = cohort.episode_owner()
    names, episode = cohort.ids.gather(owner), cohort.episodes["episode"]
    n_steps, n_segments = np.diff(cohort.step_offsets), np.diff(cohort.segment_offsets)
    of_step = np.repeat(np.arange(cohort.n_episodes), n_steps)
    of_segment = np.repeat(np.arange(cohort.n_episodes), n_segments)
    end = pl.Series("end_state", cohort.end_state)
    episodes = cohort.episodes.with_columns(
        names.alias("participant"), end.set(end == UNKNOWN_STATE, None).alias("end_state")
    )
    first = ("participant", "episode", "task", "end_state")
    episodes = episodes.select(*first, pl.exclude(first))
    steps = pl.DataFrame(
        {
            "participant": names.gather(of_step),
            "episode": episode.gather(of_step),
            "step": cohort.step_numbers(),
            "state": cohort.state,
            "action": cohort.action,
        }
    )
    if cohort.weight is not None:
        steps = steps.with_columns(weight=pl.Series(cohort.weight))
    if cohort.inferred is not None:
        steps = steps.with_columns(inferred=pl.Series(cohort.inferred))
    if cohort.segment is not None:
        row = np.where(cohort.segment < 0, -1, cohort.segment + cohort.segment_offsets[of_step])
        known = pl.Series(row).set(pl.Series(row < 0), None)
        steps = steps.with_columns(segment=cohort.segments["segment"].gather(known))
    segments = cohort.segments.with_columns(
        names.gather(of_segment).alias("participant"), episode.gather(of_segment).alias("episode")
    ).select("participant", "episode", "segment", pl.exclude("participant", "episode", "segment"))
    return {"participants": cohort.participants, "episodes": episodes, "steps": steps, "segments": segments}
