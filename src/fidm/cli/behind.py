"""What lies behind a row of evidence: the turns and times it came from, and, for the screen, the words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fidm.errors import DataError
from fidm.evidence.evidence import IMPROBABLE, Evidence
from fidm.grounding.store import FOLDER, has_grounding
from fidm.record import Record

KEYS = ("participant", "episode")


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """What was said, to be shown on the screen of whoever owns the study and nowhere else.

    Parameters
    ----------
    moves, segments, turns : DataFrame
        The tables of the grounding.
    """

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
    """Evidence with the places in the dialogs it came from.

    Parameters
    ----------
    actions : DataFrame
        The actions; with a grounding also ``turn``, ``turn_start_s``, ``turn_end_s``, ``word_start`` and
        ``word_end`` (characters of the turn).
    segments : DataFrame
        The segments; with a grounding also ``first_turn``, ``last_turn``, ``start_s`` and ``end_s``.
    words : Words or None
        What was said, if the study knows.
    warnings : tuple of str
        What a reader must not miss.
    """

    actions: pl.DataFrame
    segments: pl.DataFrame
    words: Words | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """One person's evidence as a result of its own: numbers and ids, no words.

    Parameters
    ----------
    found : Evidence
        Everybody's evidence.
    behind : Behind
        The same, with the places in the dialogs.
    participant : str
        Who.
    top : int
        How many actions.
    """

    found: Evidence
    behind: Behind
    participant: str
    top: int

    @property
    def record(self) -> Record:
        """How the evidence came about; it is that of the whole study."""
        return self.found.record

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """No tables of their own."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the person's numbers, their most unexpected actions, and all their segments."""
        own = pl.col("participant") == self.participant
        ranked = self.behind.actions.filter(own & pl.col("counts") & pl.col("unexpectedness").is_not_null())
        return {
            **self.found.people.filter(own).row(0, named=True),
            "n_not_counted": self.found.not_counted(participant=self.participant),
            "improbable_below": IMPROBABLE,
            "most_unexpected": ranked.sort("unexpectedness", descending=True, maintain_order=True).head(
                self.top
            ),
            "segments": self.behind.segments.filter(own),
        }


def places_behind(study: Path, found: Evidence) -> Behind:
    """Join the turns and times of a study's grounding to evidence; without one, the rows stay as they are.

    Parameters
    ----------
    study : Path
        The study folder.
    found : Evidence
        What was found in it.
    """
    if not has_grounding(study):
        return Behind(found.actions, found.segments)
    moves, segments, turns = (_read(study, name) for name in ("moves", "segments", "turns"))
    times = turns.select(*KEYS, "turn", turn_start_s="start_s", turn_end_s="end_s")
    sources = (
        moves.select(*KEYS, "step", "turn", "word_start", "word_end", grounded="action")
        .join(times, on=[*KEYS, "turn"], how="left", maintain_order="left")
        .unique([*KEYS, "step"], keep="first", maintain_order=True)
    )
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


def _same(table: pl.DataFrame, row: dict[str, Any], *more: str) -> pl.DataFrame:
    """The rows of a table with the same keys."""
    return table.filter(*(pl.col(key) == row[key] for key in (*KEYS, *more)))


def _read(study: Path, name: str) -> pl.DataFrame:
    path = study / FOLDER / f"{name}.parquet"
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"cannot be read ({type(error).__name__}). Run fidm ground again.", source=str(path)
        ) from None
