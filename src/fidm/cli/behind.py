"""One person's evidence as ``fidm evidence --participant`` prints it for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from fidm.evidence.evidence import IMPROBABLE, Evidence
from fidm.record import Record
from fidm.study.behind import Behind


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
