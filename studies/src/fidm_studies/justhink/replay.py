"""Replays the action logs of the JUSThink activity, and says what the logs do not have right.

An attempt begins with an empty board. ``adds`` lays a track and ``removes`` takes one away; ``loads`` puts
an earlier solution on the board, whole; ``submits`` hands the board in and empties it. The authors say that a
few events were not logged. What that looks like, and what is done about it:

- *a track is laid that lies already*, or *one is removed that does not lie*: an event before it is missing.
  It is left out and counted. The replayed board is right about this track again from here on, and goes on;
- *the cost that was logged at submission is not that of the replayed board*: counted. What was submitted is
  always logged rightly, say the authors, so the board has a track too many or too few. Its changes stay;
- *the replayed board does not join all mines when it is submitted*, though the tablet allows no such
  submission: the submission is left out of the steps, and counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.errors import DataError
from fidm_studies.justhink.network import Network

LOG_SCHEMA = {
    "team_no": pl.Int64, "attempt_no": pl.Int64, "turn_no": pl.Int64, "event_no": pl.Int64,
    "time": pl.Float64, "subject": pl.String, "verb": pl.String, "object": pl.String,
}  # fmt: skip

LAID_TWICE, REMOVED_TWICE = "laid though it lies", "removed though it does not lie"
OTHER_COST, NOT_JOINED = "another cost than replayed", "not all mines joined"

STEP_SCHEMA = {
    "team": pl.Int64, "attempt": pl.Int64, "part": pl.Int64, "turn": pl.Int64, "time_s": pl.Float64,
    "child": pl.String, "verb": pl.String, "action": pl.Int64, "state": pl.Int64, "after": pl.Int64,
}  # fmt: skip
TURN_SCHEMA = {
    "team": pl.Int64, "attempt": pl.Int64, "part": pl.Int64, "turn": pl.Int64, "start_s": pl.Float64,
    "end_s": pl.Float64, "n_edits": pl.Int64, "doer": pl.String,
}  # fmt: skip
SUBMISSION_SCHEMA = {
    "team": pl.Int64, "attempt": pl.Int64, "time_s": pl.Float64, "cost": pl.Float64,
    "replayed_cost": pl.Float64, "optimal_cost": pl.Float64, "joined": pl.Boolean,
}  # fmt: skip
SLIP_SCHEMA = {"team": pl.Int64, "attempt": pl.Int64, "event": pl.Int64, "slip": pl.String}

_TRACK = re.compile(r".*\(([0-9]{1,4})-([0-9]{1,4})\)")
_PAIR = re.compile(r"\(([0-9]{1,4}), ?([0-9]{1,4})\)")
_COST = re.compile(r"cost=([0-9]{1,9}(?:\.[0-9]+)?) \(opt_cost=([0-9]{1,9}(?:\.[0-9]+)?)\)")


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """What a log says once it is replayed.

    Parameters
    ----------
    steps : DataFrame
        Every change and every submission that is possible on the replayed board: who (``child``, null for
        both), the set of tracks before (``state``) and after it. ``part`` grows by one wherever an earlier
        solution was put on the board.
    turns : DataFrame
        The turns of each attempt and part: when, how many changes, and who was at the board (``doer``).
    submissions : DataFrame
        The cost that was logged, and that of the replayed board.
    slips : DataFrame
        What the log does not have right.
    n_edits, n_loads : int
        How many changes and how many earlier solutions were logged.
    """

    steps: pl.DataFrame
    turns: pl.DataFrame
    submissions: pl.DataFrame
    slips: pl.DataFrame
    n_edits: int
    n_loads: int


def read_table(path: Path, schema: dict[str, Any], *, separator: str = "\t") -> pl.DataFrame:
    """Read a published table and check that it has the columns it should have, and no cell empty."""
    try:
        found = pl.read_csv(path, separator=separator, quote_char=None, schema_overrides=schema)
    except OSError as error:
        raise DataError(f"cannot be read ({type(error).__name__}).", source=path.name) from None
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        raise DataError("This table cannot be read: a number is no number, or rows differ in length.",
                        source=path.name) from None  # fmt: skip
    missing = [name for name in schema if name not in found.columns]
    if missing:
        raise DataError(f"The table has no column {missing[0]!r}.", source=path.name)
    found = found.select(list(schema))
    empty = [name for name in schema if found[name].null_count()]
    if empty:
        raise DataError(f"Rows have nothing in the column {empty[0]!r}.", source=path.name)
    return found


def replay(log: pl.DataFrame, network: Network, parts: NDArray[np.int8], *, source: str = "") -> Replayed:
    """Replay one team's log.

    Parameters
    ----------
    log : DataFrame
        The log, as published.
    network : Network
        The tracks.
    parts : int array [2^n]
        Into how many parts each set of tracks leaves the mines.
    source : str
        The file, for messages.
    """
    board = _Board(network, parts, source)
    if log.is_empty():
        raise DataError("The log has no event.", source=source)
    for event in log.iter_rows(named=True):
        board.take(event)
    return board.found()


class _Board:
    """The tracks that lie, and everything that was noted while events were taken in."""

    def __init__(self, network: Network, parts: NDArray[np.int8], source: str) -> None:
        self.network, self.parts, self.source = network, parts, source
        self.costs = np.array(network.costs)
        self.lying, self.attempt, self.part, self.handed_in = 0, -1, 1, False
        self.steps: list[tuple[Any, ...]] = []
        self.turns: list[dict[str, Any]] = []
        self.submissions: list[tuple[Any, ...]] = []
        self.slips: list[tuple[Any, ...]] = []
        self.n_edits = self.n_loads = 0
        self.team = self.events = 0

    def take(self, event: dict[str, Any]) -> None:
        """Take one event in."""
        self.team = event["team_no"]
        self.events += 1
        if not np.isfinite(event["time"]):
            raise DataError(f"Event {self.events} has no time.", source=self.source)
        if event["attempt_no"] != self.attempt:
            self.attempt, self.part, self.handed_in = event["attempt_no"], 1, False
        verb = event["verb"]
        if verb == "loads" or (self.handed_in and verb in ("adds", "removes")):
            self.part, self.handed_in = self.part + 1, False
        turn = self._turn(event)
        if verb in ("adds", "removes"):
            self._change(event, turn)
        elif verb == "loads":
            self.n_loads += 1
            self.lying = 0
            for one, other in _PAIR.findall(event["object"]):
                self.lying |= 1 << self._track(int(one), int(other))
        elif verb == "submits":
            self._submit(event)

    def _turn(self, event: dict[str, Any]) -> dict[str, Any]:
        key = (self.attempt, self.part, event["turn_no"])
        if not self.turns or self.turns[-1]["key"] != key:
            start = self.turns[-1]["end"] if self.turns else 0.0
            self.turns.append({"key": key, "start": start, "end": start, "by": []})
        self.turns[-1]["end"] = max(self.turns[-1]["end"], event["time"])
        return self.turns[-1]

    def _change(self, event: dict[str, Any], turn: dict[str, Any]) -> None:
        self.n_edits += 1
        ends = _TRACK.fullmatch(event["object"])
        if ends is None:
            raise self._unclear()
        track = self._track(int(ends[1]), int(ends[2]))
        if event["subject"] not in ("A", "B"):
            raise DataError(f"Event {self.events} changes the board, but neither A nor B does it.",
                            source=self.source)  # fmt: skip
        turn["by"].append(event["subject"])
        lies, lays = bool(self.lying >> track & 1), event["verb"] == "adds"
        if lies == lays:
            self._slip(event, LAID_TWICE if lays else REMOVED_TWICE)
            return
        self._step(event, track, event["subject"], self.lying ^ (1 << track))
        self.lying ^= 1 << track

    def _submit(self, event: dict[str, Any]) -> None:
        cost = _COST.fullmatch(event["object"].strip())
        if cost is None:
            raise self._unclear()
        lying = [i for i in range(len(self.costs)) if self.lying >> i & 1]
        replayed, joined = float(self.costs[lying].sum()), bool(self.parts[self.lying] == 1)
        self.submissions.append(
            (self.team, self.attempt, event["time"], float(cost[1]), replayed, float(cost[2]), joined)
        )
        if replayed != float(cost[1]):
            self._slip(event, OTHER_COST)
        if joined:
            self._step(event, len(self.costs), None, 1 << len(self.costs))
        else:
            self._slip(event, NOT_JOINED)
        self.lying, self.handed_in = 0, True

    def _step(self, event: dict[str, Any], action: int, child: str | None, after: int) -> None:
        self.steps.append(
            (self.team, self.attempt, self.part, event["turn_no"], event["time"], child, event["verb"],
             action, self.lying, after)
        )  # fmt: skip

    def _slip(self, event: dict[str, Any], kind: str) -> None:
        self.slips.append((self.team, self.attempt, event["event_no"], kind))

    def _track(self, one: int, other: int) -> int:
        track = self.network.track(one, other)
        if track is None:
            raise self._unclear()
        return track

    def _unclear(self) -> DataError:
        return DataError(
            f"Event {self.events} names no track of the network, or no cost. Is it the published file?",
            source=self.source,
        )

    def found(self) -> Replayed:
        """Return what was noted."""
        turns = [
            (self.team, *turn["key"], turn["start"], turn["end"], len(turn["by"]), doer)
            for turn, doer in zip(self.turns, _doers(self.turns), strict=True)
        ]
        return Replayed(
            steps=pl.DataFrame(self.steps, schema=STEP_SCHEMA, orient="row"),
            turns=pl.DataFrame(turns, schema=TURN_SCHEMA, orient="row"),
            submissions=pl.DataFrame(self.submissions, schema=SUBMISSION_SCHEMA, orient="row"),
            slips=pl.DataFrame(self.slips, schema=SLIP_SCHEMA, orient="row"),
            n_edits=self.n_edits,
            n_loads=self.n_loads,
        )


def _doers(turns: list[dict[str, Any]]) -> list[str]:
    """Who was at the board in each turn: whoever changed most, else not whoever was there the turn before."""
    by_turn: dict[int, list[str]] = {}
    for turn in turns:
        by_turn.setdefault(turn["key"][2], []).extend(turn["by"])
    doers: dict[int, str] = {}
    last = "B"
    for number, by in by_turn.items():
        doers[number] = max(dict.fromkeys(by), key=by.count) if by else {"A": "B", "B": "A"}.get(last, "A")
        last = doers[number]
    return [doers[turn["key"][2]] for turn in turns]
