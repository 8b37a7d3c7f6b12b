"""What :func:`fidm.study.select` gives: the grid of settings, judged, and the point that was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from fidm.record import Record
from fidm.study import paper

By = Literal["likelihood", "auc"]
PAPER_CHOICE = (paper.CHOSEN_MOVE_COST, paper.CHOSEN_TEMPERATURE)
"""The move cost and the temperature that the paper chose."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the grid.

    Parameters
    ----------
    move_cost, tau : float
        What a movement pays, and the Bellman temperature.
    usable : bool
        Whether the task check has no problem with it.
    reasons : tuple of str
        The problems, if there are some.
    likelihood : float
        Mean log-likelihood of a left-out choice, in nats; NaN where nothing could be learned.
    likelihood_se : float
        Standard error, over people, of its difference from the best usable point.
    auc : float
        Area under the curve by all features; NaN where it was not computed.
    auc_se : float
        Standard error, over folds, of its difference from the best usable point.
    """

    move_cost: float
    tau: float
    usable: bool
    reasons: tuple[str, ...]
    likelihood: float
    likelihood_se: float
    auc: float
    auc_se: float


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The result of :func:`select`.

    Parameters
    ----------
    record : Record
        How it came about.
    points : tuple of Point
        The grid, costs first, temperatures within.
    by : {"likelihood", "auc"}
        What was compared.
    chosen : Point or None
        The usable point with the highest score; None if no point is usable.
    close : tuple of Point
        The usable points within one standard error of the chosen one, itself among them.
    own : tuple of float
        Move cost and temperature of the task as it stands.
    n_people, n_actions : int
        How many people and how many of their choices were scored.
    notes : tuple of str
        What is to be said beside.
    """

    record: Record
    points: tuple[Point, ...]
    by: By
    chosen: Point | None
    close: tuple[Point, ...]
    own: tuple[float, float]
    n_people: int
    n_actions: int
    notes: tuple[str, ...] = ()

    def at(self, cost: float, tau: float) -> Point | None:
        """Return the point with this move cost and temperature; None if the grid has none."""
        return next((p for p in self.points if np.allclose((p.move_cost, p.tau), (cost, tau), atol=0)), None)

    def score(self, point: Point) -> float:
        """Return what points are compared by."""
        return point.likelihood if self.by == "likelihood" else point.auc

    @property
    def own_is_close(self) -> bool | None:
        """Whether the task as it stands is within one standard error; None if it is not on the grid."""
        own = self.at(*self.own)
        return None if own is None else own in self.close

    @property
    def sentence(self) -> str:
        """Return what was chosen, and how clearly, in words."""
        if self.chosen is None:
            return (
                f"All {len(self.points)} points are degenerate, so none is chosen. fidm check says what "
                "would repair the task."
            )
        others = len(self.close) - 1
        how = {0: "No other usable point is", 1: "One other usable point is"}.get(
            others, f"{others} other usable points are"
        )
        own = {
            None: "is not on the grid",
            True: "is among them",
            False: "is not among them",
        }[self.own_is_close]
        if self.at(*self.own) == self.chosen:
            own = "is the one chosen"
        setting = f"The task's own setting ({self.own[0]:g}, {self.own[1]:g})"
        return (
            f"Chosen: move cost {self.chosen.move_cost:g}, temperature {self.chosen.tau:g}. {how} within one "
            f"standard error of it. {setting} {own}."
        )

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Its tables by name."""
        names = ("move_cost", "tau", "likelihood", "likelihood_se", "auc", "auc_se")
        columns: dict[str, Any] = {
            name: pl.Series([getattr(p, name) for p in self.points], dtype=pl.Float64).fill_nan(None)
            for name in names
        }
        columns |= {
            "usable": [p.usable for p in self.points],
            "within_one_se": [p in self.close for p in self.points],
            "chosen": [p == self.chosen for p in self.points],
            "paper": [p == self.at(*PAPER_CHOICE) for p in self.points],
            "reasons": [" ".join(p.reasons) for p in self.points],
        }
        return {"": pl.DataFrame(columns)}

    def __repr__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Return its numbers as plain values, without the record."""
        return {
            "by": self.by,
            "people": self.n_people,
            "actions": self.n_actions,
            "chosen": _named(self.chosen),
            "paper": {"move_cost": PAPER_CHOICE[0], "tau": PAPER_CHOICE[1]},
            "task_as_it_stands": {
                "move_cost": self.own[0],
                "tau": self.own[1],
                "within_one_se": self.own_is_close,
            },
            "within_one_se": [_named(point) for point in self.close],
            "points": self.tables[""],
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def _named(point: Point | None) -> dict[str, float] | None:
    return None if point is None else {"move_cost": point.move_cost, "tau": point.tau}
