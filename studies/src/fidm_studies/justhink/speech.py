"""What each child of the JUSThink corpus said in each turn at the board: how long, how much, how often.

An utterance of the transcripts is a stretch of one child's speech without a silence of more than a tenth of a
second. It belongs to the turn in which it begins. Both children speak in every turn, the one who lays tracks
(who *does*) and the one with the other view (who *tells*), so that each has observations in every turn:

``duration_s``
    seconds of speech; missing where the child said nothing.
``n_characters``
    letters and digits.
``n_turns``
    turns at talk: runs of utterances that nobody else, robot and experimenter included, comes between.
``pause_s``
    seconds of silence between utterances of the same turn at talk; 0 where there was none, missing where the
    child said nothing.

What was said is counted here and goes nowhere.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from fidm.errors import DataError
from fidm_studies.dataset import require_files
from fidm_studies.justhink.replay import read_table

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
