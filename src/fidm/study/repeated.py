"""What :func:`fidm.study.reliability` found, in a table and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from fidm.record import Record
from fidm.study.recovered import LABELS, number

MANY = 0.2
"""If a larger share of people is left out, a reader is told, and sentences rely on the model."""

ENOUGH_RETESTS = 30
"""A retest of fewer people, and of less than half of them, is not what sentences rely on."""

TOO_LOW = 0.5
"""Below this reliability more than half of the differences are error, and sentences speak of no change."""


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """How far each parameter of a person can be trusted.

    Parameters
    ----------
    record : Record
        How it came about.
    parameters : tuple of str
        ``action_sensitivity`` and the channels.
    table : DataFrame
        A row per parameter and kind (``split-half``, ``retest``, ``model``): people with an estimate in both
        measurements and without, their correlation r, the rank correlation of all, the reliability with its
        interval, the standard error of measurement, and the minimal detectable change, with its interval, of
        estimates by maximum likelihood; ``mdc_shrunk`` is that of estimates by empirical Bayes. Sensitivity
        is on the scale of log η.
    notes : tuple of str
        How halves were made, and what could not be done.
    not_learned : mapping of str to str
        Channels that could not be learned, and why.
    """

    record: Record
    parameters: tuple[str, ...]
    table: pl.DataFrame
    notes: tuple[str, ...]
    not_learned: Mapping[str, str]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The table."""
        return {"": self.table}

    def row(self, parameter: str, kind: str = "split-half") -> dict[str, Any] | None:
        """Return what is known of a parameter; None where there is nothing of this kind."""
        chosen = self.table.filter(parameter=parameter, kind=kind)
        return chosen.row(0, named=True) if chosen.height else None

    def sentences(self) -> tuple[str, ...]:
        """Say for each parameter how reliable it is, and which change in a person is more than noise."""
        said = []
        for name in self.parameters:
            label = LABELS.get(name, name)
            label = label[0].upper() + label[1:]
            row = self._best(name)
            if row is None:
                said.append(f"{label}: its reliability cannot be told from these people.")
                continue
            what = "odds" if name == "pause_presence" else "value"
            known = row["low"] is not None
            interval = f"{number(row['low'])} to {number(row['high'])}, " if known else ""
            interval = f" ({interval}{row['n']:,} people)"
            kind = "by the model's own reckoning, its" if row["kind"] == "model" else row["kind"]
            text = f"{label}: {kind} reliability is {number(row['reliability'])}{interval}"
            halves = self.row(name)
            if row["kind"] == "model" and halves is not None and halves["reliability"] is not None:
                text += f", by split halves {number(halves['reliability'])} ({halves['n']:,} people)"
            if row["reliability"] < TOO_LOW:
                said.append(f"{text}; below {number(TOO_LOW)}, too low to speak of changes in one person.")
                continue
            least = "" if row["kind"] == "retest" else "at least "
            said.append(
                f"{text}; a change of a person's {what} by less than a factor of {least}"
                f"{math.exp(row['mdc_shrunk']):.2f} is within measurement error "
                f"({math.exp(row['mdc']):.2f} if estimated by maximum likelihood)."
            )
        return tuple(said)

    def _best(self, name: str) -> dict[str, Any] | None:
        """The kind to rely on: retest of enough people, else split-half, else the model.

        Retest and split-half are passed over if too many had to be left out.
        """
        halves = self.row(name)
        everybody = 0 if halves is None else halves["n"] + halves["without"]
        for kind in ("retest", "split-half", "model"):
            row = self.row(name, kind)
            if row is None or row["reliability"] is None:
                continue
            if kind == "retest" and row["n"] < min(ENOUGH_RETESTS, everybody / 2):
                continue
            if kind == "model" or row["without"] <= MANY * (row["n"] + row["without"]):
                return row
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "parameters": list(self.parameters),
            "reliability": self.table.to_dicts(),
            "sentences": list(self.sentences()),
            "notes": list(self.notes),
            "not_learned": dict(self.not_learned),
        }

    def __repr__(self) -> str:
        return "\n".join(self.sentences())
