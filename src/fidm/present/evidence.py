"""What ``fidm evidence`` shows in the terminal: everybody's evidence, or one person's.

One person's evidence as ``fidm evidence --participant`` prints it for programs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm.behind import Behind
from fidm.errors import count
from fidm.evidence.evidence import IMPROBABLE, Evidence
from fidm.model.action import TIE
from fidm.present.terminal import note, table_of, warn
from fidm.record import Record


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


WIDEST = 46
"""How many characters of what somebody said are shown in a table."""

NARROWEST = 11
"""How narrow the column of words may become before a table grows beyond the terminal."""

NO_WORSE = "no other action was worse than the best one"

WHAT_RESIDUALS_ARE = (
    "residuals are the paper's: the logarithm of observed over expected given the moves, 1 added to counts "
    "(for pause presence a difference of probabilities). Those of durations and counts are relative to the "
    "mean, and since speech is skewed a typical segment lies below 0"
)


def show_evidence(
    found: Evidence, behind: Behind, console: Console, *, participant: str | None, top: int, source: str
) -> None:
    """Print everybody's evidence, or one person's with the words behind it.

    Parameters
    ----------
    found : Evidence
        What was found.
    behind : Behind
        The same, led back to the dialogs.
    console : Console
        Where to.
    participant : str, optional
        Whose; everybody's by default.
    top : int
        How many actions and segments.
    source : str
        Where what people share comes from, in words.
    """
    console.print(
        f"[bold]Evidence for {count(len(found.participants), 'participant')}[/]: "
        f"{count(found.actions.height, 'action')}, {count(found.segments.height, 'segment')}",
        soft_wrap=True,
    )
    note(console, f"what people share was {source}")
    if participant is None:
        show_everybody(found, top, console)
    else:
        show_person(found, behind, participant, top, console)
    if not found.channels:
        warn(console, "No segment has an observation of effort, so there is evidence from actions only.")
    warn(console, *behind.warnings)


def show_everybody(found: Evidence, top: int, console: Console) -> None:
    """Print how the evidence is spread, and the most unexpected actions of all."""
    console.print(_spreads(found))
    counted = found.counted
    if counted.height:
        share = float((counted["probability"] < IMPROBABLE).sum() / counted.height)
        console.print(
            f"{share:.1%} of {counted.height:,} counted actions had a probability below {IMPROBABLE:.0%}",
            soft_wrap=True,
        )
    _say_not_counted(found.not_counted(), console)
    rows = worse_actions(found, top)
    if rows.height:
        console.print("\n[bold]Most unexpected actions[/] that were not a best one")
        header = ["participant", "episode", "step", "segment", "action", "best", "p", "−log p"]
        cells = [
            [row["participant"], row["episode"], str(row["step"]), row["segment"] or "–", *_action_cells(row)]
            for row in rows.iter_rows(named=True)
        ]
        console.print(_fitted(table_of(header, cells, left=6), wraps=("best",)))
    elif counted.height:
        note(console, NO_WORSE)
    note(
        console,
        "p is the probability of the action under the person's own fitted policy, −log p its unexpectedness",
        WHAT_RESIDUALS_ARE,
        "paper: it shows such evidence for four people (figures 5 and 6) and gives no numbers of it",
    )


def show_person(found: Evidence, behind: Behind, participant: str, top: int, console: Console) -> None:
    """Print one person's most unexpected actions and heaviest segments, with the words if they are known."""
    row = found.people.filter(pl.col("participant") == participant).row(0, named=True)
    eta = _number(row["action_sensitivity"])
    known = (
        f"η {eta}, {count(row['n_actions'], 'counted action')}, {row['n_improbable']} below {IMPROBABLE:.0%}"
    )
    console.print(Text.assemble("\n", (participant, "bold"), f": {known}"), soft_wrap=True)
    _say_not_counted(found.not_counted(participant=participant), console)
    said = [] if behind.words is None else ["said"]
    rows = worse_actions(found, top, participant=participant)
    if rows.height:
        console.print("\n[bold]Most unexpected actions[/] that were not a best one")
        cells = []
        for one in rows.iter_rows(named=True):
            words = [] if behind.words is None else [_short(behind.words.of_action(one))]
            cells.append(
                [one["episode"], str(one["step"]), one["segment"] or "–", *_action_cells(one), *words]
            )
        header = ["episode", "step", "segment", "action", "best", "p", "−log p", *said]
        console.print(_fitted(table_of(header, cells, left=5), wraps=("best", *said)))
    elif row["n_actions"]:
        note(console, NO_WORSE)
    else:
        warn(console, "None of this person's actions counts.")
    for channel in found.channels:
        _show_segments(found, behind, participant, channel, top, console)
    if found.channels:
        note(console, WHAT_RESIDUALS_ARE)
    if behind.words is not None:
        note(console, "words are shown here only; no file holds them")


def worse_actions(found: Evidence, top: int, *, participant: str | None = None) -> pl.DataFrame:
    """Return the most unexpected counted actions that were not a best one."""
    ranked = found.most_unexpected(found.actions.height, participant=participant)
    return ranked.filter(pl.col("q_gap") >= TIE).head(top)


def _show_segments(
    found: Evidence, behind: Behind, participant: str, channel: str, top: int, console: Console
) -> None:
    """The segments that cost more than expected in one channel."""
    heavy = found.heaviest(channel, top, participant=participant).filter(pl.col(f"{channel}_residual") > 0)
    name = channel.replace("_", " ")
    if not heavy.height:
        console.print()
        note(console, f"no segment cost more than expected in {name}")
        return
    console.print(f"\n[bold]Heaviest segments[/] in {name}")
    said = [] if behind.words is None else ["said"]
    cells = []
    for one in heavy.iter_rows(named=True):
        words = [] if behind.words is None else [_short(behind.words.of_segment(one))]
        numbers = [_number(one[f"{channel}_{part}"]) for part in ("observed", "expected", "residual")]
        cells.append([one["episode"], one["segment"], str(one.get("n_moves", "–")), *numbers, *words])
    header = ["episode", "segment", "moves", "observed", "expected", "residual", *said]
    console.print(_fitted(table_of(header, cells), wraps=said))


def _say_not_counted(causes: dict[str, int], console: Console) -> None:
    total = sum(causes.values())
    if total:
        known = ", ".join(f"{n:,} {cause}" for cause, n in causes.items() if n)
        note(console, f"{count(total, 'action')} not counted: {known}")


def _spreads(found: Evidence) -> Table:
    header = ["evidence", "rows", "mean", "median", "sd", "80 % of rows"]
    rows = []
    for row in found.summary().iter_rows(named=True):
        is_action = row["quantity"] == "unexpectedness"
        name = row["quantity"] if is_action else f"{row['quantity'].replace('_', ' ')} residual"
        span = f"{_number(row['p10'])} to {_number(row['p90'])}"
        numbers = (_number(row[key]) for key in ("mean", "median", "sd"))
        rows.append([name, f"{row['n']:,}", *numbers, span])
    return table_of(header, rows)


def _action_cells(row: dict[str, Any]) -> list[str]:
    probability, unexpected = row["probability"], row["unexpectedness"]
    chance = f"{probability:.1%}" if isinstance(probability, float) else "–"
    return [str(row["action"]), str(row["best"]), chance, _number(unexpected)]


def _number(value: object) -> str:
    if not isinstance(value, float) or math.isnan(value):
        return "–"
    text = f"{value:.2f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _fitted(table: Table, wraps: tuple[str, ...] | list[str]) -> Table:
    """Let these columns, and no others, break over lines where the terminal is narrow."""
    for column in table.columns:
        column.no_wrap = column.header not in wraps
        if column.header == "said":
            column.justify, column.min_width = "left", NARROWEST
    return table


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= WIDEST else one_line[: WIDEST - 1] + "…"
