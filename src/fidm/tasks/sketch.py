"""The drawing of a task that has coordinates and no map: its places, and the ways between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fidm.errors import TaskError
from fidm.tasks.model import TaskModel


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Where places are drawn, in units of a typical movement; the corner is 0, 0 and y points down."""

    at: NDArray[np.float64]  # [P, 2]: x and y of each place, by its number
    place: NDArray[np.int64]  # [S]: the place of each state; -1 where it has none
    links: NDArray[np.int64]  # [L, 2]: places between which a movement leads, each pair once
    start: int  # the place of the start; -1 where it has none
    ends: NDArray[np.int64]  # the places at which the task ends
    labels: tuple[str, ...]  # [P]: what each place is called; empty where its states are called differently

    @classmethod
    def of(cls, task: TaskModel) -> Sketch:
        """Lay out the places of a task."""
        if task.coordinates is None:
            raise TaskError(
                f"{task.name} was not drawn as a map and has no coordinates, so there is no map to show."
            )
        place = task.place
        known, first = np.unique(place, return_index=True)
        first = first[known >= 0]
        if not len(first):
            raise TaskError(f"{task.name} has no state with coordinates, so there is no map to show.")
        moves = np.flatnonzero(task.is_move)
        ways = np.sort(
            np.stack(
                [place[task.pair_state[moves]], place[task.successor[task.successor_offsets[moves]]]], axis=1
            )
        )
        links = np.unique(ways[(ways[:, 0] >= 0) & (ways[:, 0] != ways[:, 1])], axis=0).reshape(-1, 2)
        at = task.coordinates[first]
        ends = task.terminal
        if task.horizon is not None:
            ends[-1] = False
        at_end = place[ends]
        return cls(
            at=(at - at.min(axis=0)) / _unit(at, links),
            place=place,
            links=links,
            start=int(place[task.start]),
            ends=np.unique(at_end[at_end >= 0]),
            labels=_labels(task, place, first),
        )

    def spots(self, states: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return x and y of states, [n, 2]; NaN where a state has no place."""
        place = self.place[states]
        return np.where((place >= 0)[:, None], self.at[np.maximum(place, 0)], np.nan)


def _unit(at: NDArray[np.float64], links: NDArray[np.int64]) -> float:
    """How long a typical movement is; without movements, how far apart places would lie in a square."""
    if len(links):
        return float(np.median(np.linalg.norm(at[links[:, 0]] - at[links[:, 1]], axis=1)))
    return float(np.ptp(at, axis=0).max() / np.sqrt(len(at))) or 1.0


def _labels(task: TaskModel, place: NDArray[np.int64], first: NDArray[np.int64]) -> tuple[str, ...]:
    """What places are called where their states have names: with a horizon without the steps to go."""
    if not task.states:
        return ("",) * len(first)
    names = np.array(task.states, dtype=object)
    if task.horizon is not None:
        names = np.array([name.rpartition(" with ")[0] for name in task.states], dtype=object)
    same = np.ones(len(first), dtype=np.bool_)
    known = np.flatnonzero(place >= 0)
    same[place[known][names[known] != names[first][place[known]]]] = False
    return tuple(str(name) if one else "" for name, one in zip(names[first], same, strict=True))
