"""The network of the JUSThink activity: gold mines, tracks that may be laid between them, and what they cost.

Children lay and remove tracks until every mine can be reached from every other; then they may submit. They
are asked to do so at the least cost. As a task of sets (:mod:`fidm_studies.justhink.toggles`):

- a state is the set of tracks that lie, an action lays or removes one of them;
- submitting is legal where all mines are joined, as the tablet's button is enabled only then. It pays, in
  francs, what the network saves against laying every track;
- laying or removing a track costs :data:`CHANGE`, a tenth of a franc, so that a detour costs something while
  one franc saved is worth several changes. Rewards are discounted by :data:`GAMMA` per change, just enough
  for values to be finite whatever somebody does;
- values are those of the best plan (``normaliser="max"``). Soft values of the paper's kind pay a bonus of up
  to τ ln 21 for every change, and with a τ of 0.05 franc that is more than a change costs: going on changing
  tracks for ever would be worth more than submitting.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidm.errors import DataError
from fidm.tasks.model import TaskModel
from fidm_studies.justhink.toggles import MOST_THINGS, toggle_task

CHANGE = 0.1
"""What laying or removing a track costs, in francs."""

GAMMA = 0.999
"""The discount per change."""

TAU = 0.05
"""The temperature, in francs, where soft values are asked for to compare."""

TASK = "network"
"""The name of the task."""


@dataclass(frozen=True, slots=True)
class Network:
    """Mines and the tracks between them.

    Parameters
    ----------
    mines : tuple of str
        The names of the mines.
    ids : tuple of int
        How the logs number them.
    ends : tuple of (int, int)
        The two mines of each track, by their places in ``mines``.
    costs : tuple of float
        What each track costs, in francs.
    """

    mines: tuple[str, ...]
    ids: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]
    costs: tuple[float, ...]

    @property
    def tracks(self) -> tuple[str, ...]:
        """The names of the tracks, such as "Bern-Luzern"."""
        return tuple(f"{self.mines[a]}-{self.mines[b]}" for a, b in self.ends)

    def track(self, one: int, other: int) -> int | None:
        """Return the number of the track between two mines, by their numbers in the logs."""
        if one not in self.ids or other not in self.ids:
            return None
        pair = {self.ids.index(one), self.ids.index(other)}
        return next((i for i, ends in enumerate(self.ends) if set(ends) == pair), None)


def read_network(path: Path) -> Network:
    """Read the network from a node-link file as NetworkX writes it."""
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        nodes = sorted(found["nodes"], key=lambda node: int(node["id"]))
        ids = tuple(int(node["id"]) for node in nodes)
        mines = tuple(_short(str(node["label"])) for node in nodes)
        place = {number: i for i, number in enumerate(ids)}
        links = sorted(
            (*sorted((place[int(link["source"])], place[int(link["target"])])), float(link["cost"]))
            for link in found["links"]
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise DataError(
            "This is not a network of nodes (id, label) and links (source, target, cost).", source=path.name
        ) from None
    pairs = {(a, b) for a, b, _ in links}
    wrong = {
        "two mines of the same number": len(place) < len(ids),
        f"no track, or more than {MOST_THINGS}": not 1 <= len(links) <= MOST_THINGS,
        "a track twice, or one that leads back": len(pairs) < len(links) or any(a == b for a, b in pairs),
        "a cost that is not a number above 0": not all(0 < cost < float("inf") for _, _, cost in links),
    }
    found_wrong = [what for what, is_so in wrong.items() if is_so]
    if found_wrong:
        raise DataError(f"The network has {' and '.join(found_wrong)}.", source=path.name)
    return Network(
        mines=mines,
        ids=ids,
        ends=tuple((int(a), int(b)) for a, b, _ in links),
        costs=tuple(cost for _, _, cost in links),
    )


def _short(label: str) -> str:
    """A mine's name as the logs have it: "Mount St. Gallen" is Gallen there."""
    return label.removeprefix("Mount ").removeprefix("St. ")


def set_costs(network: Network) -> NDArray[np.float64]:
    """Return what every set of tracks costs, [2^n]."""
    cost = np.zeros(1)
    for one in network.costs:
        cost = np.concatenate([cost, cost + one])
    return cost


def set_parts(network: Network) -> NDArray[np.int8]:
    """Return into how many parts every set of tracks leaves the mines, [2^n]; 1 where all are joined."""
    known: dict[tuple[int, ...], int] = {tuple(range(len(network.mines))): 0}
    numbers = np.zeros(1, dtype=np.int32)
    for a, b in network.ends:
        joined = np.array([_joined(parts, a, b, known) for parts in list(known)], dtype=np.int32)
        numbers = np.concatenate([numbers, joined[numbers]])
    sizes = np.array([len(set(parts)) for parts in known], dtype=np.int8)
    return np.asarray(sizes[numbers])


def _joined(parts: tuple[int, ...], a: int, b: int, known: dict[tuple[int, ...], int]) -> int:
    """The number of the partition in which the parts of two mines are one; a new one gets the next number."""
    low, high = sorted((parts[a], parts[b]))
    return known.setdefault(tuple(low if part == high else part for part in parts), len(known))


def network_task(network: Network, parts: NDArray[np.int8] | None = None) -> TaskModel:
    """Return the task of joining all mines at least cost."""
    cost = set_costs(network)
    parts = set_parts(network) if parts is None else parts
    worth = np.where(parts == 1, cost[-1] - cost, np.nan)
    return toggle_task(
        network.tracks, worth, change=-CHANGE, gamma=GAMMA, tau=TAU, normaliser="max", name=TASK
    )
