"""Replays the action logs of the JUSThink activity, and counts what was said in each turn.

An attempt begins with an empty board. ``adds`` lays a track and ``removes`` takes one away; ``loads`` puts
an earlier solution on the board, whole; ``submits`` hands the board in and empties it. The authors say that a
few events were not logged. What that looks like, and what is done about it:

- *a track is laid that lies already*, or *one is removed that does not lie*: an event before it is missing.
  It is left out and counted. The replayed board is right about this track again from here on, and goes on;
- *the cost that was logged at submission is not that of the replayed board*: counted. What was submitted is
  always logged rightly, say the authors, so the board has a track too many or too few. Its changes stay;
- *the replayed board does not join all mines when it is submitted*, though the tablet allows no such
  submission: the submission is left out of the steps, and counted.

An utterance of the transcripts is a stretch of one child's speech without a silence of more than a tenth of a
second. It belongs to the turn in which it begins. Both children speak in every turn, the one who lays tracks
(who *does*) and the one with the other view (who *tells*), so that each has observations in every turn:
seconds of speech (``duration_s``, missing where the child said nothing), letters and digits
(``n_characters``), turns at talk (``n_turns``: runs of utterances that nobody else, robot and experimenter
included, comes between), and seconds of silence between utterances of the same turn at talk (``pause_s``: 0
where there was none, missing where the child said nothing). What was said is counted here and goes nowhere.
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
from fidm_studies.dataset import require_files
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
    """Replay one team's log."""
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


TRANSCRIPT_SCHEMA = {
    "team_no": pl.Int64, "utterance_no": pl.Int64, "start": pl.Float64, "end": pl.Float64,
    "interlocutor": pl.String, "utterance": pl.String,
}  # fmt: skip


CHILDREN = ("A", "B")


def read_transcript(path: Path) -> pl.DataFrame:
    """Read a published transcript, and check that utterances have times that can be."""
    require_files([path])
    found = read_table(path, TRANSCRIPT_SCHEMA)
    if found.is_empty():
        raise DataError("The transcript has no utterance.", source=path.name)
    start, end = found["start"].to_numpy(), found["end"].to_numpy()
    wrong = np.flatnonzero(~(np.isfinite(start) & np.isfinite(end) & (start <= end)))
    if len(wrong):
        raise DataError(f"Utterance {wrong[0] + 1} ends before it begins, or has no time.", source=path.name)
    return found


def spoken(turns: pl.DataFrame, transcript: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return what each child said in each turn, and how many of their utterances lie outside all turns.

    Parameters
    ----------
    turns : DataFrame [T]
        The turns of one team, in their order: ``start_s``, ``end_s``, ``n_edits``, ``doer``.
    transcript : DataFrame
        What was said in this team, as published.

    Returns
    -------
    DataFrame [2 T]
        The turns with ``child``, ``role`` ("does" or "tells") and the four observations, first all of A.
    """
    said = transcript.sort("start", maintain_order=True)
    begun, ended = said["start"].to_numpy(), said["end"].to_numpy()
    who = said["interlocutor"].to_numpy()
    run = np.cumsum(np.concatenate([[True], who[1:] != who[:-1]])) if len(who) else np.zeros(0, np.int64)
    letters = said["utterance"].str.count_matches(r"[\p{L}\p{N}]").to_numpy()
    ends = turns["end_s"].to_numpy()
    place = np.searchsorted(ends, begun, side="left")  # the first turn that is not over yet
    inside = place < len(ends)
    rows = pl.DataFrame(
        {
            "place": place.astype(np.int64),
            "child": who,
            "run": run,
            "start": begun,
            "end": ended,
            "letters": letters,
        }
    ).filter(pl.Series(inside) & pl.col("child").is_in(CHILDREN))
    lost = int((~inside & np.isin(who, CHILDREN)).sum())
    gap = (pl.col("start") - pl.col("end").shift(1)).over("place", "child", "run")
    summed = (
        rows.with_columns(gap=pl.max_horizontal(gap, pl.lit(0.0)))
        .group_by("place", "child")
        .agg(
            duration_s=(pl.col("end") - pl.col("start")).sum(),
            n_characters=pl.col("letters").sum().cast(pl.Int64),
            n_turns=pl.col("run").n_unique().cast(pl.Int64),
            pause_s=pl.col("gap").sum(),
        )
    )
    every = turns.with_row_index("place").with_columns(pl.col("place").cast(pl.Int64))
    found = [
        every.with_columns(
            child=pl.lit(child),
            role=pl.when(pl.col("doer") == child).then(pl.lit("does")).otherwise(pl.lit("tells")),
        ).join(summed, on=["place", "child"], how="left", maintain_order="left")
        for child in CHILDREN
    ]
    whole = pl.concat(found).with_columns(pl.col("n_characters", "n_turns").fill_null(0))
    return whole.drop("place"), lost


def robot_lag(transcript: pl.DataFrame, log: pl.DataFrame) -> list[float]:
    """Return how long after the nearest line of the robot in the log each of its transcribed lines begins.

    Where the clocks of log and transcript share their zero these are small.
    """
    logged = log.filter((pl.col("subject") == "R") & (pl.col("verb") == "says"))["time"].to_numpy()
    heard = transcript.filter(pl.col("interlocutor") == "R")["start"].to_numpy()
    if not len(logged):
        return []
    nearest = np.abs(logged[None, :] - heard[:, None]).argmin(axis=1)
    return [float(lag) for lag in heard - logged[nearest]]
