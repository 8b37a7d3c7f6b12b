"""What lies behind a row of evidence: its turns and times and, for the owner of the study, the words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fidm.cohort import ANY_SCRIPT, Cohort
from fidm.errors import DataError
from fidm.evidence.evidence import Evidence
from fidm.files import whole_file
from fidm.grounding.store import FOLDER, has_grounding
from fidm.model.gaps import NO_MOVES
from fidm.record import write_result

KEYS = ("participant", "episode")


OWN = {"moves": "step", "segments": "segment", "turns": "turn"}
"""What tells the rows of a table of the grounding apart, in an episode."""


NEEDED: Mapping[str, Mapping[str, type[pl.DataType]]] = {
    "moves": {"step": pl.Int32, "turn": pl.Int32, "word_start": pl.Int32, "word_end": pl.Int32,
              "action": pl.String},
    "segments": {"segment": pl.String, "turns": pl.String, "first_turn": pl.Int32, "last_turn": pl.Int32,
                 "start_s": pl.Float64, "end_s": pl.Float64},
    "turns": {"turn": pl.Int32, "start_s": pl.Float64, "end_s": pl.Float64, "text": pl.String},
}  # fmt: skip
"""The columns that are used of each table. Times may be unknown; all else must be there."""


MORE: Mapping[str, Mapping[str, type[pl.DataType]]] = {
    "segments": {"status": pl.String, "program": pl.String, "doubts": pl.String, "probability": pl.Float64},
    "turns": {"speaker": pl.String, "role": pl.String},
}
"""Further columns, which are null where a table does not have them."""


NO_WORDS = "so nothing is led back to what was said"


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """What was said, to be shown to whoever owns the study and to nobody else."""

    # The tables of the grounding.
    moves: pl.DataFrame
    segments: pl.DataFrame
    turns: pl.DataFrame

    def of_action(self, row: dict[str, Any]) -> str:
        """Return the words an action came from."""
        for move in _same(self.moves, row, "step").iter_rows(named=True):
            for turn in _same(self.turns, {**row, "turn": move["turn"]}, "turn").iter_rows(named=True):
                return str(turn["text"])[move["word_start"] : move["word_end"]]
        return ""

    def of_segment(self, row: dict[str, Any]) -> str:
        """Return what the participant said in a segment."""
        for segment in _same(self.segments, row, "segment").iter_rows(named=True):
            own = [int(turn) for turn in segment["turns"].split()]
            spoken = _same(self.turns, row).filter(pl.col("turn").is_in(own))
            return " / ".join(spoken["text"].to_list())
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class Behind:
    """Evidence with the places in the dialogs it came from."""

    # The actions; with a grounding also ``turn``, ``turn_start_s``, ``turn_end_s``, ``word_start`` and
    # ``word_end`` (characters of the turn).
    actions: pl.DataFrame
    # The segments; with a grounding also ``first_turn``, ``last_turn``, ``start_s`` and ``end_s``.
    segments: pl.DataFrame
    words: Words | None = None  # what was said, if the study knows
    warnings: tuple[str, ...] = ()  # what a reader must not miss

    @property
    def source(self) -> str:
        """What people's data come from."""
        return "episode" if self.words is None else "dialog"

    def why_nothing(self, cohort: Cohort, row: int, column: str | None = None) -> str:
        """Return why nothing was observed of a person; empty where there is no other reason.

        ``column`` is what was not observed, a column of the segments; choices by default.
        """
        first, last = cohort.episode_offsets[row : row + 2]
        if first == last:
            return f"no {self.source}"
        steps, segments = (slice(of[first], of[last]) for of in (cohort.step_offsets, cohort.segment_offsets))
        n = segments.stop - segments.start
        if not n and steps.start == steps.stop:
            return NO_MOVES
        if column is not None and n:
            own = cohort.segments[segments]
            is_counted = column == "n_characters" and ANY_SCRIPT in own.columns
            why = "in another script" if is_counted and own[ANY_SCRIPT].count() else "not recorded"
            return why if own[column].null_count() == n else ""
        is_stated = column is not None or cohort.inferred is None or not cohort.inferred[steps].all()
        in_doubt = (
            self.words is not None
            and not self.words.segments.filter(participant=cohort.ids[row], status="needs_review").is_empty()
        )
        return "what was said awaits review" if is_stated and in_doubt else ""


def places_behind(study: Path, found: Evidence, *, names: Mapping[str, str] | None = None) -> Behind:
    """Join the turns and times of a study's grounding to evidence; without one, the rows stay as they are.

    A grounding that cannot be used is told in ``warnings``, and nothing is joined. ``names`` is what people
    are called in the evidence instead of their ids, where they are.
    """
    if (study / FOLDER).exists() and not (study / FOLDER).is_dir():
        said = f"{FOLDER} cannot be used: it is no folder, {NO_WORDS}. Remove it, and run fidm ground again."
        return Behind(found.actions, found.segments, warnings=(said,))
    if not has_grounding(study):
        return Behind(found.actions, found.segments)
    try:
        tables = (_read(study, name) for name in OWN)
        moves, segments, turns = (
            one if names is None else renamed(one, names).drop_nulls("participant") for one in tables
        )
    except DataError as error:
        said = f"{error.source} cannot be used: {error.message}, {NO_WORDS}. Run fidm ground again."
        return Behind(found.actions, found.segments, warnings=(said,))
    times = turns.select(*KEYS, "turn", turn_start_s="start_s", turn_end_s="end_s")
    sources = moves.select(*KEYS, "step", "turn", "word_start", "word_end", grounded="action").join(
        times, on=[*KEYS, "turn"], how="left", maintain_order="left"
    )  # no two rows of a table have the same keys, so that a join adds none
    actions = found.actions.join(sources, on=[*KEYS, "step"], how="left", maintain_order="left")
    differs = pl.col("grounded").is_null() | (pl.col("action").cast(pl.String) != pl.col("grounded"))
    if actions.select((differs & pl.col("action").is_not_null()).any()).item():
        return Behind(
            found.actions,
            found.segments,
            warnings=(
                "The steps are not those the study's grounding made, so they are not led back to what was "
                "said. Run fidm ground again to have both agree.",
            ),
        )
    where = segments.select(*KEYS, "segment", "first_turn", "last_turn", "start_s", "end_s")
    return Behind(
        actions.drop("grounded"),
        found.segments.join(where, on=[*KEYS, "segment"], how="left", maintain_order="left"),
        Words(moves, segments, turns),
    )


def renamed(table: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """Return a table whose participants have other names; whoever has none is null."""
    new = pl.col("participant").replace_strict(names, default=None, return_dtype=pl.String)
    return table.with_columns(new)


def _same(table: pl.DataFrame, row: dict[str, Any], *more: str) -> pl.DataFrame:
    """The rows of a table with the same keys."""
    return table.filter(*(pl.col(key) == row[key] for key in (*KEYS, *more)))


def _read(study: Path, name: str) -> pl.DataFrame:
    """A table of the grounding, all of whose cells can be used; whatever is wrong is told without them."""
    path = study / FOLDER / f"{name}.parquet"
    source = f"{FOLDER}/{path.name}"
    try:
        table = pl.read_parquet(path, glob=False)  # a [ in its name is no pattern
    except FileNotFoundError:
        raise DataError("it is not there", source=source) from None
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataError(f"it cannot be read ({type(error).__name__})", source=source) from None
    wanted: dict[str, type[pl.DataType]] = {**dict.fromkeys(KEYS, pl.String), **NEEDED[name]}
    more = MORE.get(name, {})
    missing = [column for column in wanted if column not in table.columns]
    if missing:
        raise DataError(f"it has no column {', '.join(map(repr, missing))}", source=source)
    for column, kind in wanted.items():
        if not _is_like(table.schema[column], kind):
            needed = {pl.String: "text", pl.Int32: "whole numbers", pl.Float64: "numbers"}[kind]
            raise DataError(f"its column {column!r} does not hold {needed}", source=source)
        if kind != pl.Float64 and table[column].null_count():
            raise DataError(f"its column {column!r} has empty cells", source=source)
    try:
        table = table.select(
            *(pl.col(column).cast(kind) for column, kind in wanted.items()),
            *(
                pl.col(column).cast(kind)
                if column in table.columns and _is_like(table.schema[column], kind)
                else pl.lit(None, kind).alias(column)
                for column, kind in more.items()
            ),
        )
    except pl.exceptions.PolarsError:
        raise DataError("it has numbers that are too large", source=source) from None
    if any((table[column] < 0).any() for column, kind in wanted.items() if kind == pl.Int32):
        raise DataError("it has numbers below 0", source=source)
    if "turns" in wanted and not table["turns"].str.contains(r"^([0-9]{1,9}( |$))*$").all():
        raise DataError("its column 'turns' does not list numbers of turns", source=source)
    if table.select(*KEYS, OWN[name]).is_duplicated().any():
        raise DataError(f"it has a {OWN[name]} twice", source=source)
    return table


def _is_like(kind: pl.DataType, wanted: type[pl.DataType]) -> bool:
    """Whether a column of this type can be taken for one of the type wanted, without loss."""
    if wanted == pl.String:
        return kind in (pl.String, pl.Categorical, pl.Null) or isinstance(kind, pl.Enum)
    if wanted == pl.Int32:
        return kind.is_integer() or kind == pl.Null
    return kind.is_numeric() or kind == pl.Null


def write_evidence(found: Evidence, behind: Behind, folder: Path) -> list[Path]:
    """Write a row per action and per segment, with their turns and times, and a summary; but no words."""
    written = [folder / "evidence-actions.parquet", folder / "evidence-segments.parquet"]
    try:
        for path, table in zip(written, (behind.actions, behind.segments), strict=True):
            with whole_file(path) as part:
                table.write_parquet(part)
        return [*written, *write_result(found, folder)]
    except OSError as error:
        why = f": {error.strerror}." if error.strerror else ". Is the disk full?"
        raise DataError(f"cannot be written{why}", source=str(folder)) from None
    except pl.exceptions.PolarsError:
        raise DataError("cannot be written. Is the disk full?", source=str(folder)) from None
