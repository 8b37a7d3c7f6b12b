"""Flights as a cohort, and whether they follow the rules of the Space Adventure Task."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from fidm.cohort import Cohort, offsets_of
from fidm_studies.space_adventure.files import Session
from fidm_studies.space_adventure.task import COSTS, N_PLANETS, transitions

CHOICES = ("first", "second", "third")
"""What the choices of a mini-block are called in the design column ``choice_index``."""


def make_cohort(people: pl.DataFrame, sessions: list[Session]) -> Cohort:
    """Return everybody's mini-blocks as episodes, and every choice as a step and a segment of its own.

    Parameters
    ----------
    people : DataFrame
        What is known of people.
    sessions : list of Session
        Theirs, in the same order.
    """
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
    """Return how many flights led where the rules do not allow, or brought other fuel, by group.

    Parameters
    ----------
    groups : iterable of (str, str, iterable of Session)
        The study, the group, and the files of each.
    """
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
