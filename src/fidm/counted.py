"""Which segments of dialogs count in effort, which can in action sensitivity, and on what effort rests."""

from __future__ import annotations

import numpy as np
import polars as pl

from fidm.cohort import Cohort
from fidm.errors import count
from fidm.gaps import NO_MOVES


def segment_uses(cohort: Cohort, *, inferred: float = 0.0) -> pl.DataFrame:
    """Return a row per segment that counts in effort.

    Parameters
    ----------
    cohort : Cohort
        The people.
    inferred : float
        How much moves count in action sensitivity that a planner filled in.

    Returns
    -------
    DataFrame
        ``participant``, ``awaits_review``, ``in_choices`` (whether any of its steps can count in action
        sensitivity), ``n_moves`` and ``n_inferred`` (those of the moves that a planner filled in).
    """
    n, keys = cohort.n_segments, cohort.episode_keys()["participant"].cast(pl.String)
    of_segment, of_step = (
        np.repeat(np.arange(cohort.n_episodes), np.diff(offsets))
        for offsets in (cohort.segment_offsets, cohort.step_offsets)
    )
    own = np.full(cohort.n_steps, -1) if cohort.segment is None else cohort.segment
    filled_in = np.zeros(cohort.n_steps, np.bool_) if cohort.inferred is None else cohort.inferred
    weight = np.where(filled_in, inferred, 1.0) * (1.0 if cohort.weight is None else cohort.weight)
    row = own + cohort.segment_offsets[of_step]
    can_count = (own >= 0) & (weight > 0) & (cohort.action >= 0)
    in_doubt = (
        (cohort.segments["status"] == "needs_review").fill_null(False)
        if "status" in cohort.segments.columns
        else np.zeros(n, np.bool_)
    )
    return pl.DataFrame(
        {
            "participant": keys.gather(of_segment),
            "awaits_review": in_doubt,
            "in_choices": np.bincount(row[can_count], minlength=n) > 0,
            "n_moves": cohort.segments["n_moves"],
            "n_inferred": np.bincount(row[filled_in & (own >= 0)], minlength=n),
        }
    )


def say_counted(uses: pl.DataFrame, status: pl.Series) -> str:
    """Return how many segments of dialogs count, and in what; empty where all count in everything.

    Parameters
    ----------
    uses : DataFrame
        What :func:`segment_uses` gave.
    status : Series
        The status of every segment, those that do not count included.

    Examples
    --------
    >>> uses = pl.DataFrame({"awaits_review": [True, False], "in_choices": [False, True]})
    >>> say_counted(uses, pl.Series(["needs_review", "confident", "no_route"])).split("; ")[0]
    '2 of 3 segments count in effort (1 of these awaits review) and 1 can count in action sensitivity'
    """
    n, of, waiting = uses.height, len(status), int(uses["awaits_review"].sum())
    in_choices, rejected = int(uses["in_choices"].sum()), int((status == "rejected").sum())
    if in_choices == n == of:
        return ""
    waits = f" ({waiting:,} of these {'awaits' if waiting == 1 else 'await'} review)" if waiting else ""
    said = f"{n:,} of {count(of, 'segment')} count in effort{waits} and {in_choices:,} can count in action "
    said += "sensitivity"
    said += f"; in {of - n - rejected:,} {NO_MOVES}" if of > n + rejected else ""
    return said + (f"; {rejected:,} {'was' if rejected == 1 else 'were'} rejected" if rejected else "")
