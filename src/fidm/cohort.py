"""All traces and effort observations of a study, concatenated, with offsets that cut them apart.

The nesting is participant → episode → steps and segments. Nothing is padded:

- participant ``j`` owns the episodes ``episode_offsets[j]:episode_offsets[j + 1]``;
- episode ``e`` owns the steps ``step_offsets[e]:step_offsets[e + 1]`` and the segments
  ``segment_offsets[e]:segment_offsets[e + 1]``.

Make one with :func:`fidm.read_cohort` (a study folder), :func:`fidm.make_cohort` (tables in memory)
or :meth:`Cohort.from_traces`. Missing observations are null, and null means *not observed*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from fidm.errors import DataError, few, meant, one_of, remedy
from fidm.types import Integers, Skip, Trace, read_only

PAUSES_INCLUDED = "pauses_included"
"""The column of segments that says whether durations include pauses inside utterances."""

SCRIPT, NO_SCRIPT = "script", "none"
"""The column of segments that says the script of a dialog, where there are several; no letter has none."""

ANY_SCRIPT = "n_characters_any_script"
"""The column of segments with the characters of all scripts, where there are several."""

NO_ACTION = -1
"""The code of an action the task leaves out (such as leaving the store): replayed, never in a likelihood."""

UNKNOWN_STATE = -1
"""The code of an end state nobody recorded."""

PER_STEP = ("state", "action", "weight", "segment", "inferred", "step")
"""The arrays with one entry per step."""

PROBLEM_SCHEMA = {
    "table": pl.String,
    "row": pl.Int64,
    "participant": pl.String,
    "problem": pl.String,
    "hint": pl.String,
}
"""The columns of a table of problems; ``row`` counts data rows from 1."""


def no_problems() -> pl.DataFrame:
    """Return an empty table of problems."""
    return pl.DataFrame(schema=PROBLEM_SCHEMA)


@dataclass(frozen=True, slots=True, eq=False)
class Cohort:
    """The traces and effort observations of many people, ready to be fitted.

    Parameters
    ----------
    participants : DataFrame [P]
        One row per person: ``participant`` (a unique text) and any covariates, ``split`` among them.
    episodes : DataFrame [E]
        One row per episode, in the order of the participants: ``episode`` and ``task``.
    episode_offsets : int array [P + 1]
        Where each person's episodes begin.
    step_offsets : int array [E + 1]
        Where each episode's steps begin.
    state, action : int array [N]
        The state a step was taken in and the action taken; -1 is an action the task leaves out.
    end_state : int array [E]
        The state after the last step; -1 where unknown.
    segments : DataFrame [M]
        One row per segment: ``segment``, ``n_moves``, the observations and further design columns.
    segment_offsets : int array [E + 1]
        Where each episode's segments begin.
    weight : float array [N] or None
        How much each step counts in the action likelihood; None counts every step once.
    segment : int array [N] or None
        The row of the segment each step belongs to, counted within its episode; -1 for none.
    inferred : bool array [N] or None
        Whether a step was filled in by a planner, not said by the person; None where no step was.
    step : int array [N] or None
        The number of each step in its study; None where every episode counts from 1.
    problems : DataFrame
        What was wrong with the people who were left out when it was read with ``strict=False``.
    """

    participants: pl.DataFrame
    episodes: pl.DataFrame
    episode_offsets: Integers
    step_offsets: Integers
    state: NDArray[np.int32]
    action: NDArray[np.int32]
    end_state: NDArray[np.int32]
    segments: pl.DataFrame
    segment_offsets: Integers
    weight: NDArray[np.float64] | None = None
    segment: NDArray[np.int32] | None = None
    inferred: NDArray[np.bool_] | None = None
    step: NDArray[np.int32] | None = None
    problems: pl.DataFrame = field(default_factory=no_problems)

    def __post_init__(self) -> None:
        people, episodes = self.participants.height, self.episodes.height
        if self.participants.columns[:1] != ["participant"]:
            raise DataError("The first column of a cohort's participants must be 'participant'.")
        if self.episodes.columns[:2] != ["episode", "task"]:
            raise DataError("The first columns of a cohort's episodes must be 'episode' and 'task'.")
        for name, offsets, owners, owned in (
            ("episode_offsets", self.episode_offsets, people, episodes),
            ("step_offsets", self.step_offsets, episodes, len(self.state)),
            ("segment_offsets", self.segment_offsets, episodes, self.segments.height),
        ):
            _check_offsets(name, offsets, owners, owned)
        for name in (*PER_STEP, "end_state"):
            array, expected = getattr(self, name), episodes if name == "end_state" else len(self.state)
            if array is not None and array.shape != (expected,):
                raise DataError(f"{name} has the shape {array.shape}; expected ({expected},).")
        for name in ("episode_offsets", "step_offsets", "segment_offsets"):
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name), np.int64)))
        for name in ("state", "action", "end_state", "segment", "step"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, read_only(np.asarray(getattr(self, name), np.int32)))
        if self.weight is not None:
            object.__setattr__(self, "weight", read_only(np.asarray(self.weight, np.float64)))
        if self.inferred is not None:
            if self.inferred.dtype != np.bool_:
                raise DataError(
                    f"inferred holds {self.inferred.dtype}; True or False is needed for every step."
                )
            object.__setattr__(self, "inferred", read_only(self.inferred))

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_traces(
        cls,
        traces: Iterable[Trace],
        *,
        segments: pl.DataFrame | None = None,
        participants: pl.DataFrame | None = None,
    ) -> Cohort:
        """Make a cohort from traces; those with the same label are episodes of one person.

        Parameters
        ----------
        traces : iterable of Trace
            Each is one episode of the person its ``label`` names.
        segments : DataFrame, optional
            Columns ``participant``, ``episode`` (counted from 1 within a person) and ``segment``, then
            ``n_moves`` and the observations.
        participants : DataFrame, optional
            A column ``participant`` with every label, and covariates. Made from the labels if left out.

        Examples
        --------
        >>> import fidm
        >>> task = fidm.load_task("errands")
        >>> values = fidm.solve(task)
        >>> cohort = fidm.Cohort.from_traces(
        ...     fidm.walk(task, values, 20.0, seed=seed, label=f"P{seed}") for seed in range(3)
        ... )
        >>> len(cohort)
        3
        """
        found = list(traces)
        if any(not trace.label for trace in found):
            raise DataError("Every trace needs a label that says whose it is.")
        order = list(dict.fromkeys(trace.label for trace in found))
        if participants is None:
            participants = pl.DataFrame({"participant": order}, schema={"participant": pl.String})
        known = {name: j for j, name in enumerate(participants["participant"].to_list())}
        unknown = [name for name in order if name not in known]
        if unknown:
            raise DataError(f"participants has no row for {', '.join(map(repr, unknown[:5]))}.")
        found.sort(key=lambda trace: known[trace.label])
        owner = np.array([known[trace.label] for trace in found], dtype=np.int64)
        counts = np.bincount(owner, minlength=len(known)).astype(np.int64)
        offsets = offsets_of(counts)
        number = np.arange(len(found)) - offsets[owner] + 1
        episodes = pl.DataFrame(
            {"episode": [str(i) for i in number], "task": [trace.task for trace in found]},
            schema={"episode": pl.String, "task": pl.String},
        )
        cohort = cls(
            participants=participants,
            episodes=episodes,
            episode_offsets=offsets,
            step_offsets=offsets_of([len(trace) for trace in found]),
            state=_joined([trace.state[:-1] for trace in found]),
            action=_joined([trace.action for trace in found]),
            end_state=np.array([trace.state[-1] for trace in found], dtype=np.int32),
            segments=pl.DataFrame(schema={"segment": pl.String, "n_moves": pl.Int32}),
            segment_offsets=np.zeros(len(found) + 1, dtype=np.int64),
        )
        return cohort if segments is None else cohort.with_segments(segments)

    @classmethod
    def from_segments(cls, segments: Any, *, participants: Any | None = None) -> Cohort:
        """Make a cohort of people whose effort was observed, but who made no choices in a task.

        Parameters
        ----------
        segments : DataFrame
            Columns ``participant``, ``segment``, the observations, and ``episode`` where people have several
            (one dialog or session each). The rows of a person stay in their order.
        participants : DataFrame, optional
            A column ``participant`` with everybody, and covariates. Made from the segments, in the order of
            first appearance, if left out.

        Examples
        --------
        >>> import fidm, polars as pl
        >>> segments = pl.DataFrame(
        ...     {"participant": ["A", "B", "A"], "segment": [1, 1, 2], "duration_s": [2.0, 3.5, 1.0]}
        ... )
        >>> fidm.Cohort.from_segments(segments)
        Cohort(2 participants, 2 episodes, 0 steps, 3 segments)
        """
        table = as_frame(segments, "segments")
        if "participant" not in table.columns or "segment" not in table.columns:
            raise DataError("segments need the columns 'participant' and 'segment'.")
        if "episode" not in table.columns:
            table = table.with_columns(episode=pl.lit("1"))
        table = table.with_columns(pl.col("participant", "episode", "segment").cast(pl.String))
        nameless = table.filter(pl.any_horizontal(pl.col("participant", "episode").is_null())).height
        if nameless:
            raise DataError(f"{nameless} of {table.height} segments do not say whose they are.")
        if participants is None:
            people = table.select("participant").unique(maintain_order=True)
        else:
            people = as_frame(participants, "participants")
            if people.columns[:1] != ["participant"] or people["participant"].is_duplicated().any():
                raise DataError("participants need a first column 'participant' that names each person once.")
            people = people.with_columns(pl.col("participant").cast(pl.String))
        found = table.select("participant", "episode").unique(maintain_order=True)
        places = people.select("participant").with_row_index("_person")
        found = found.join(places, on="participant", how="left", maintain_order="left")
        if found["_person"].null_count():
            lost = found.filter(pl.col("_person").is_null())["participant"].n_unique()
            raise DataError(f"participants has no row for {lost} people whom the segments name.")
        found = found.sort("_person", maintain_order=True)
        n = found.height
        nothing = np.zeros(0, dtype=np.int32)
        cohort = cls(
            participants=people,
            episodes=found.select("episode", task=pl.lit("")),
            episode_offsets=offsets_of(np.bincount(found["_person"].to_numpy(), minlength=people.height)),
            step_offsets=np.zeros(n + 1, dtype=np.int64),
            state=nothing,
            action=nothing,
            end_state=np.full(n, UNKNOWN_STATE, dtype=np.int32),
            segments=pl.DataFrame(schema={"segment": pl.String}),
            segment_offsets=np.zeros(n + 1, dtype=np.int64),
        )
        return cohort.with_segments(table)

    def with_segments(self, segments: Any) -> Cohort:
        """Return the same people with these segments (``participant``, ``episode``, ``segment``, …).

        The rows may come in any order; they are put into the order of the episodes. The steps' own
        ``segment`` is kept if the new segments have as many rows in every episode.
        """
        keys = self.episode_keys().with_row_index("_episode")
        segments = as_frame(segments, "segments")
        if "participant" not in segments.columns or "segment" not in segments.columns:
            raise DataError("segments need the columns 'participant' and 'segment'.")
        if "episode" not in segments.columns:
            segments = segments.with_columns(episode=pl.lit("1"))
        placed = segments.with_columns(pl.col("participant", "episode").cast(pl.String)).join(
            keys.drop("task"), on=["participant", "episode"], how="left", maintain_order="left"
        )
        if placed["_episode"].null_count():
            lost = placed.filter(pl.col("_episode").is_null())["participant"].unique().sort().to_list()
            raise DataError(f"segments name episodes that do not exist, of {', '.join(map(repr, lost[:5]))}.")
        placed = placed.sort("_episode", maintain_order=True)
        counts = np.bincount(placed["_episode"].to_numpy(), minlength=self.n_episodes)
        offsets = offsets_of(counts)
        keep = self.segment is not None and np.array_equal(offsets, self.segment_offsets)
        return replace(
            self,
            segments=placed.drop("participant", "episode", "_episode"),
            segment_offsets=offsets,
            segment=self.segment if keep else None,
        )

    def with_participants(self, participants: Any) -> Cohort:
        """Return the same people with this table about them; it must name each of them once.

        Examples
        --------
        >>> import fidm, polars as pl
        >>> cohort = fidm.simulate_cohort(fidm.load_task("errands"), 3, seed=1)
        >>> halves = cohort.participants.with_columns(split=pl.Series(["train", "train", "test"]))
        >>> len(cohort.with_participants(halves).split("train"))
        2
        """
        participants = as_frame(participants, "participants")
        if "participant" not in participants.columns:
            raise DataError("participants need the column 'participant'.")
        order = self.participants.select("participant").join(
            participants.with_columns(pl.col("participant").cast(pl.String)),
            on="participant",
            how="left",
            maintain_order="left",
            validate="1:1" if not participants["participant"].is_duplicated().any() else "m:m",
        )
        known = self.ids.is_in(participants["participant"].cast(pl.String).implode()).all()
        if order.height != len(self) or participants.height != len(self) or not known:
            raise DataError("participants must have one row for each person of the cohort, and no other.")
        return replace(self, participants=order)

    def with_episodes(self, episodes: Any) -> Cohort:
        """Return the same people with these columns about their episodes; the table names each episode once.

        Parameters
        ----------
        episodes : DataFrame
            ``participant``, ``episode`` (may be left out where everybody has one), and any columns: the block
            of a trial, its condition, the visit.

        Examples
        --------
        >>> import fidm, polars as pl
        >>> segments = pl.DataFrame({"participant": ["A", "A"], "episode": [1, 2], "segment": [1, 1]})
        >>> blocks = pl.DataFrame({"participant": ["A", "A"], "episode": [1, 2], "block": ["early", "late"]})
        >>> fidm.Cohort.from_segments(segments).with_episodes(blocks).where(block="late").n_segments
        1
        """
        given, keys = as_frame(episodes, "episodes"), ["participant", "episode"]
        if "participant" not in given.columns:
            raise DataError("episodes need the column 'participant'.")
        if "episode" not in given.columns:
            given = given.with_columns(episode=pl.lit("1"))
        given = given.with_columns(pl.col(keys).cast(pl.String)).drop("task", strict=False)
        own = self.episode_keys().select(keys)
        twice = given.filter(pl.struct(keys).is_duplicated()).select(keys).unique(maintain_order=True)
        strange, lost = (one.join(other, on=keys, how="anti") for one, other in ((given, own), (own, given)))
        wrong = (("names twice", twice), ("names, though nobody has them,", strange), ("lacks", lost))
        problems = [
            f"{what} {few(f'{who}, {name}' for who, name in rows.select(keys).iter_rows())}"
            for what, rows in wrong
            if rows.height
        ]
        if problems:
            raise DataError(
                f"The table of episodes must name each episode once; it {'; it '.join(problems)}."
            )
        joined = own.join(given, on=keys, how="left", maintain_order="left").drop(keys)
        return replace(self, episodes=self.episodes.drop(joined.columns, strict=False).hstack(joined))

    def with_problems(self, problems: pl.DataFrame) -> Cohort:
        """Return the same people with this table of what was wrong with others."""
        return replace(self, problems=problems)

    # ------------------------------------------------------------------ looking inside

    def __len__(self) -> int:
        return self.participants.height

    @property
    def shape(self) -> tuple[int]:
        """The number of people, as arrays give it; lets scikit-learn cut a cohort into folds."""
        return (len(self),)

    @property
    def ids(self) -> pl.Series:
        """The names of the people."""
        return self.participants["participant"]

    @property
    def n_episodes(self) -> int:
        """The number of episodes E."""
        return self.episodes.height

    def step_numbers(self) -> NDArray[np.int32]:
        """Return the number of each step in its episode, [N], as the study counts them."""
        if self.step is not None:
            return self.step
        begins = np.repeat(self.step_offsets[:-1], np.diff(self.step_offsets))
        return (np.arange(self.n_steps) - begins + 1).astype(np.int32)

    @property
    def n_steps(self) -> int:
        """The number of steps N."""
        return len(self.state)

    @property
    def n_segments(self) -> int:
        """The number of segments M."""
        return self.segments.height

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks the episodes were played on, in the order of the alphabet."""
        return tuple(self.episodes["task"].unique().sort().to_list())

    def episode_owner(self) -> Integers:
        """Return the row of the person who owns each episode, [E]."""
        return np.repeat(np.arange(len(self)), np.diff(self.episode_offsets))

    def episode_keys(self) -> pl.DataFrame:
        """Return ``participant``, ``episode`` and ``task`` of every episode."""
        return pl.DataFrame(
            {
                "participant": self.ids.gather(self.episode_owner()),
                "episode": self.episodes["episode"],
                "task": self.episodes["task"],
            }
        )

    def segment_table(self) -> pl.DataFrame:
        """Return every segment and whose it is.

        Its columns are ``participant``, ``episode``, ``task``, then those of the segments. A column
        of the segments themselves that has one of these three names gives way.

        Examples
        --------
        >>> import fidm, polars as pl
        >>> segments = pl.DataFrame({"participant": ["A", "B"], "segment": ["1", "1"], "words": [7, 4]})
        >>> cohort = fidm.Cohort.from_segments(segments)
        >>> cohort.segment_table().select("participant", "episode", "segment", "words").rows()
        [('A', '1', '1', 7), ('B', '1', '1', 4)]
        """
        keys = self.episode_keys()
        owner = np.repeat(np.arange(self.n_episodes), np.diff(self.segment_offsets))
        own = self.segments.drop(keys.columns, strict=False)
        return pl.concat([keys[owner], own], how="horizontal")

    def traces(self, participant: str) -> list[Trace]:
        """Return the traces of one person, an episode each, without actions the task leaves out.

        ``finished`` says whether the state after the last action was recorded.
        """
        row = self._row(participant)
        found = []
        for e in range(int(self.episode_offsets[row]), int(self.episode_offsets[row + 1])):
            steps = slice(int(self.step_offsets[e]), int(self.step_offsets[e + 1]))
            acted = self.action[steps] != NO_ACTION
            end = int(self.end_state[e])
            state, action = self.state[steps][acted], self.action[steps][acted]
            if end == UNKNOWN_STATE:  # the last action led somewhere nobody wrote down
                state, action = state, action[:-1]
            else:
                state = np.append(state, np.int32(end))
            found.append(
                Trace(
                    task=self.episodes["task"][e],
                    state=state.astype(np.int32),
                    action=action.astype(np.int32),
                    finished=end != UNKNOWN_STATE,
                    label=participant,
                )
            )
        return found

    # ------------------------------------------------------------------ choosing people

    def split(self, name: str) -> Cohort:
        """Return the people whose ``split`` is ``name``, for example ``"train"``."""
        if "split" not in self.participants.columns:
            raise DataError("The participants have no column 'split', so there are no parts to choose from.")
        values = self.participants["split"].cast(pl.String)
        chosen = np.flatnonzero((values == name).fill_null(value=False).to_numpy())
        if not len(chosen):
            known = values.drop_nulls().unique().sort().to_list()
            short = all(len(value) <= 20 and " " not in value for value in known) and len(known) <= 10
            listed = ", ".join(map(repr, known)) if short else f"{len(known)} other values"
            raise DataError(f"Nobody is in the split {name!r}. There is: {listed or 'none'}.")
        return self[chosen]

    def by_episode(self) -> Cohort:
        """Return the same episodes as if each were a person of its own.

        The new people are called ``"P1, 2"`` for episode 2 of P1. They keep what is known of the person,
        whose name is in the column ``person``.

        Examples
        --------
        >>> import fidm, polars as pl
        >>> segments = pl.DataFrame({"participant": ["A", "A"], "episode": [1, 2], "segment": [1, 1]})
        >>> fidm.Cohort.from_segments(segments).by_episode().ids.to_list()
        ['A, 1', 'A, 2']
        """
        owner = self.episode_owner()
        names = self.ids.gather(owner) + ", " + self.episodes["episode"].cast(pl.String)
        people = self.participants[owner].with_columns(participant=names, person=self.ids.gather(owner))
        return replace(
            self, participants=people, episode_offsets=np.arange(self.n_episodes + 1, dtype=np.int64)
        )

    def where(self, *conditions: pl.Expr, **values: Any) -> Cohort:
        """Return the same people with the episodes of which something holds.

        People who have no such episode stay, with nothing observed, so that profiles of parts of a study have
        the same rows.

        Parameters
        ----------
        *conditions : polars expression
            Conditions on columns of the episodes, ``participant``, ``episode`` and ``task`` among them.
        **values
            The value a column must have, or several of which it must have one. Texts and numbers that are
            written alike are the same. A missing value equals nothing: ask ``pl.col("block").is_null()``.

        Examples
        --------
        >>> import fidm, polars as pl
        >>> segments = pl.DataFrame(
        ...     {"participant": ["A", "A", "B"], "episode": [1, 2, 1], "segment": [1, 1, 1]}
        ... )
        >>> cohort = fidm.Cohort.from_segments(segments)
        >>> first = cohort.where(episode=1)
        >>> len(first), first.n_episodes
        (2, 2)
        >>> cohort.where(pl.col("episode").cast(pl.Int64) > 1).n_episodes
        1
        """
        owner = self.episode_owner()
        table = self.episodes.with_columns(participant=self.ids.gather(owner))
        unknown = [name for name in values if name not in table.columns]
        if unknown:
            raise DataError(f"Episodes have no column {unknown[0]!r}. {meant(unknown, table.columns)}")
        asked = [*conditions, pl.lit(True)]
        for name, value in values.items():
            several = (
                list(value) if isinstance(value, list | tuple | set | frozenset | pl.Series) else [value]
            )
            kind = table.schema[name]
            given = map(str, several) if kind == pl.String else several
            asked.append(pl.col(name).is_in(pl.Series(given, dtype=kind, strict=False).implode()))
        try:
            rows = table.with_row_index("_row").filter(*asked)["_row"]
        except pl.exceptions.PolarsError as error:
            raise DataError(f"This cannot be asked of episodes: {str(error).splitlines()[0]}") from None
        episodes = np.asarray(rows, dtype=np.int64)
        offsets = offsets_of(np.bincount(owner[episodes], minlength=len(self)))
        return self.of_episodes(self.participants, episodes, offsets).with_problems(self.problems)

    def up_to(self, kept: ArrayLike) -> Cohort:
        """Return the episodes up to a step each, [E]; all of it where that is its length, nothing at -1.

        Of an episode that is cut, the segment in which the cut falls and later ones are left out, since they
        cost what the moves that are gone did; all of them where steps do not say to which they belong. People
        all of whose episodes are left out are left out.
        """
        n, whole = np.asarray(kept, dtype=np.int64), np.diff(self.step_offsets)
        if n.shape != whole.shape or (n > whole).any() or (n < -1).any():
            raise DataError(
                f"kept must hold {self.n_episodes} numbers of steps, from -1 to the episode's own."
            )
        step = np.arange(self.n_steps) - np.repeat(self.step_offsets[:-1], whole)
        stays = step < np.repeat(n, whole)
        of_segment = np.repeat(np.arange(self.n_episodes), np.diff(self.segment_offsets))
        row = np.arange(self.n_segments) - self.segment_offsets[of_segment]
        last = np.where(n == whole, np.iinfo(np.int32).max, -1)  # the first segment that is left out
        segment = self.segment
        if segment is not None:
            inside = np.flatnonzero(stays & (np.repeat(n, whole) < np.repeat(whole, whole)))
            np.maximum.at(last, np.repeat(np.arange(self.n_episodes), whole)[inside], segment[inside])
            segment = np.where(segment < np.repeat(last, whole), segment, -1).astype(np.int32)
        said = row < last[of_segment]
        end_state = np.where(n == whole, self.end_state, UNKNOWN_STATE).astype(np.int32)
        own = {**self._steps(stays), "segment": None if segment is None else segment[stays]}
        cut = replace(
            self,
            step_offsets=offsets_of(np.maximum(n, 0)),
            end_state=end_state,
            segments=self.segments.filter(pl.Series(said, dtype=pl.Boolean)),
            segment_offsets=offsets_of(np.bincount(of_segment[said], minlength=self.n_episodes)),
            **own,
        )
        owner = self.episode_owner()
        episodes = np.flatnonzero(n >= 0)
        left = np.bincount(owner[episodes], minlength=len(self))
        there = np.flatnonzero((left > 0) | (np.diff(self.episode_offsets) == 0))
        counts = offsets_of(left[there])
        return cut.of_episodes(self.participants[there], episodes, counts).with_problems(self.problems)

    def select(self, participants: Sequence[str]) -> Cohort:
        """Return these people, in the order given."""
        participants = [participants] if isinstance(participants, str) else participants
        return self[np.array([self._row(name) for name in participants], dtype=np.int64)]

    def __getitem__(self, rows: Any) -> Cohort:
        """Return the people in these rows: a slice, row numbers, or one flag per person."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]  # scikit-learn writes X[rows, ...]
        if isinstance(rows, slice) and rows.step in (None, 1):
            return self._range(*rows.indices(len(self))[:2])
        if isinstance(rows, str):
            raise DataError("Rows are numbers or flags; choose people by name with select.")
        everyone = np.arange(len(self))
        if not isinstance(rows, slice):
            rows = np.asarray(rows) if np.size(rows) else np.zeros(0, dtype=np.int64)
        chosen = everyone[rows]
        if chosen.ndim != 1:
            chosen = np.atleast_1d(chosen).reshape(-1)
        return self.of_episodes(self.participants[chosen], *gather(self.episode_offsets, chosen))

    def of_episodes(
        self, participants: pl.DataFrame, episodes: Integers, episode_offsets: Integers
    ) -> Cohort:
        """Return a cohort of these people, with these episodes (rows) cut apart by these offsets."""
        steps, step_offsets = gather(self.step_offsets, episodes)
        segments, segment_offsets = gather(self.segment_offsets, episodes)
        return Cohort(
            participants=participants,
            episodes=self.episodes[episodes],
            episode_offsets=episode_offsets,
            step_offsets=step_offsets,
            end_state=self.end_state[episodes],
            segments=self.segments[segments],
            segment_offsets=segment_offsets,
            **self._steps(steps),
        )

    def _steps(self, chosen: Any) -> dict[str, Any]:
        """Everything that is known of these steps."""
        arrays = {name: getattr(self, name) for name in PER_STEP}
        return {name: None if array is None else array[chosen] for name, array in arrays.items()}

    def _range(self, first: int, last: int) -> Cohort:
        """People who stand side by side; arrays are views, so this costs next to nothing."""
        last = max(first, last)
        if (first, last) == (0, len(self)) and not self.problems.height:
            return self
        e0, e1 = int(self.episode_offsets[first]), int(self.episode_offsets[last])
        steps = slice(int(self.step_offsets[e0]), int(self.step_offsets[e1]))
        segments = slice(int(self.segment_offsets[e0]), int(self.segment_offsets[e1]))
        return Cohort(
            participants=self.participants[first:last],
            episodes=self.episodes[e0:e1],
            episode_offsets=self.episode_offsets[first : last + 1] - e0,
            step_offsets=self.step_offsets[e0 : e1 + 1] - steps.start,
            end_state=self.end_state[e0:e1],
            segments=self.segments[segments],
            segment_offsets=self.segment_offsets[e0 : e1 + 1] - segments.start,
            **self._steps(steps),
        )

    @staticmethod
    def concat(cohorts: Sequence[Cohort]) -> Cohort:
        """Put several cohorts into one, in this order; a person may occur in only one of them."""
        if not cohorts:
            raise DataError("There are no cohorts to put together.")
        participants = _stacked([c.participants for c in cohorts], "participants")
        if participants["participant"].is_duplicated().any():
            twice = participants["participant"].filter(participants["participant"].is_duplicated()).unique()
            raise DataError(f"People occur in several cohorts: {', '.join(map(repr, twice.sort()[:5]))}.")
        return Cohort(
            participants=participants,
            episodes=_stacked([c.episodes for c in cohorts], "episodes"),
            episode_offsets=offsets_of(np.concatenate([np.diff(c.episode_offsets) for c in cohorts])),
            step_offsets=offsets_of(np.concatenate([np.diff(c.step_offsets) for c in cohorts])),
            state=np.concatenate([c.state for c in cohorts]),
            action=np.concatenate([c.action for c in cohorts]),
            end_state=np.concatenate([c.end_state for c in cohorts]),
            segments=_stacked([c.segments for c in cohorts], "segments"),
            segment_offsets=offsets_of(np.concatenate([np.diff(c.segment_offsets) for c in cohorts])),
            weight=_filled(cohorts, "weight", np.float64(1.0)),
            segment=_filled(cohorts, "segment", np.int32(-1)),
            inferred=_filled(cohorts, "inferred", np.bool_(False)),
            step=None
            if all(c.step is None for c in cohorts)
            else np.concatenate([c.step_numbers() for c in cohorts]),
            problems=pl.concat([c.problems for c in cohorts]),
        )

    def _row(self, participant: str) -> int:
        row = self.ids.index_of(str(participant))
        if row is None:
            raise DataError(f"There is no participant {participant!r} among the {len(self)} people.")
        return int(row)

    def __repr__(self) -> str:
        return (
            f"Cohort({len(self):,} participants, {self.n_episodes:,} episodes, "
            f"{self.n_steps:,} steps, {self.n_segments:,} segments)"
        )

    def __copy__(self) -> Cohort:
        return self

    def __deepcopy__(self, memo: Any) -> Cohort:
        return self  # nothing in it can change


def require_skip(skip: str, strict: bool) -> None:
    """Raise unless an option says what is left out, and something is."""
    one_of("skip", skip, get_args(Skip))
    if strict and skip != "participant":
        leave_out = remedy("strict=False", "--skip-bad")
        raise DataError(f"skip is {skip!r}, but nothing is left out without {leave_out}.")


def offsets_of(counts: ArrayLike) -> Integers:
    """Return where each of several runs begins, from their lengths."""
    sizes = np.asarray(counts, dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


def gather(offsets: Integers, rows: NDArray[Any]) -> tuple[Integers, Integers]:
    """Return the members of the chosen runs, laid end to end, and the offsets that cut them apart."""
    sizes = offsets[rows + 1] - offsets[rows]
    cut = offsets_of(sizes)
    return np.repeat(offsets[rows] - cut[:-1], sizes) + np.arange(cut[-1]), cut


def _stacked(tables: list[pl.DataFrame], name: str) -> pl.DataFrame:
    try:
        return pl.concat(tables, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        raise DataError(
            f"The tables of {name} cannot be put together: a column holds different types."
        ) from None


def as_frame(table: Any, name: str) -> pl.DataFrame:
    """Return a polars or pandas table as a polars one; columns of mixed types become text."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if not (hasattr(table, "iloc") and hasattr(table, "columns")):
        raise DataError(f"{name} is a {type(table).__name__}; a polars or pandas DataFrame is needed.")
    columns: dict[str, Any] = {}
    for column in table.columns:
        if not isinstance(table[column].ndim, int) or table[column].ndim != 1:
            raise DataError(f"{name} has several columns called {str(column)!r}.")
        try:
            columns[str(column)] = pl.Series(pl.from_pandas(table[column], nan_to_null=True))
        except (TypeError, ValueError, NotImplementedError, ModuleNotFoundError, pl.exceptions.PolarsError):
            texts = [
                None if value is None or value != value else str(value) for value in table[column].tolist()
            ]
            columns[str(column)] = pl.Series(texts, dtype=pl.String)
    return pl.DataFrame(columns)


def _check_offsets(name: str, offsets: Integers, owners: int, owned: int) -> None:
    if offsets.shape != (owners + 1,):
        raise DataError(f"{name} has the shape {offsets.shape}; expected ({owners + 1},).")
    if offsets[0] != 0 or offsets[-1] != owned or (np.diff(offsets) < 0).any():
        raise DataError(f"{name} must rise from 0 to {owned}.")


def _joined(parts: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([np.zeros(0, dtype=np.int32), *parts])


def _filled(cohorts: Sequence[Cohort], name: str, usual: np.generic) -> NDArray[Any] | None:
    """What cohorts say of their steps, the usual value where one says nothing; None if none says anything."""
    arrays = [getattr(cohort, name) for cohort in cohorts]
    if all(array is None for array in arrays):
        return None
    return np.concatenate(
        [np.full(c.n_steps, usual) if a is None else a for c, a in zip(cohorts, arrays, strict=True)]
    )
