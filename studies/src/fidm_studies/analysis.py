"""What an analysis of a published data set is and gives: findings, and the numbers that must be reproduced.

A package adds a study with an entry point of the group ``fidm.reanalyses`` that leads to a
:class:`Reanalysis`, and its data set with one of the group ``fidm.datasets``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from fidm.record import Record, plain
from fidm.registry import REANALYSES
from fidm_studies.dataset import Loaded


@dataclass(frozen=True, slots=True)
class Expectation:
    """A number that an analysis must reproduce, and what it found.

    Parameters
    ----------
    what : str
        What was measured: "Spearman correlation of η with the published model_beta".
    found : float
        What was found.
    low, high : float
        The band it is to lie in, both ends included; infinite where there is no such end.
    source : str
        Where the expectation comes from: "published", "known beforehand" or "arithmetic".
    note : str
        What else there is to say about it.
    required : bool
        Whether a study fails that misses it. One that is not required is shown and counted all the same: a
        band that was missed and then read otherwise stays where everybody sees it.

    Examples
    --------
    >>> Expectation("impossible transitions", found=0, low=0, high=0, source="arithmetic").reached
    True
    """

    what: str
    found: float
    low: float
    high: float
    source: str
    note: str = ""
    required: bool = True

    @property
    def reached(self) -> bool:
        """Whether what was found lies in the band; what is no number does not."""
        return self.low <= self.found <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "reached": self.reached}


KNOWN, PUBLISHED, ARITHMETIC, OURS = "known beforehand", "published", "arithmetic", "our expectation"
"""Where expectations come from."""

Band = tuple[str, str, float, float, str, str]
"""What a number is called in an analysis, and what is expected of it: what it is, low, high, source, note."""


def expect(numbers: Mapping[str, Any], bands: Iterable[Band]) -> tuple[Expectation, ...]:
    """Return bands that were written down before beside what was found.

    Parameters
    ----------
    numbers : mapping
        What was found, by name; a number that is missing or None reaches no band.
    bands : iterable of Band
        What is expected; words and notes may hold numbers, such as ``{n}``.

    Examples
    --------
    >>> expect({"n": 3}, [("n", "people", 3, 3, PUBLISHED, "{n} of them")])[0].note
    '3 of them'
    """
    found = {name: math.nan if value is None else value for name, value in numbers.items()}
    return tuple(
        Expectation(
            what.format(**found), float(found.get(key, math.nan)), low, high, source, note.format(**found)
        )
        for key, what, low, high, source, note in bands
    )


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """What an analysis found: a result with tables, numbers, expectations and remarks.

    Parameters
    ----------
    record : Record
        How it came about; its experiment is the name of the study.
    tables : mapping of str to DataFrame
        Its tables by name.
    numbers : mapping
        Single numbers by name, and mappings of them.
    expectations : tuple of Expectation
        The numbers that must be reproduced.
    notes : tuple of str
        What is to be said about them, as sentences.
    parts : mapping
        Results that sections and figures need beyond the tables; they are not written.
    """

    record: Record
    tables: Mapping[str, pl.DataFrame]
    numbers: Mapping[str, Any]
    expectations: tuple[Expectation, ...] = ()
    notes: tuple[str, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def reached(self) -> bool:
        """Whether every expectation that is required was reached."""
        return not self.missed

    @property
    def missed(self) -> tuple[Expectation, ...]:
        """The required expectations that were not reached."""
        return tuple(one for one in self.expectations if one.required and not one.reached)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, expectations, remarks and tables as plain values."""
        return {
            "numbers": plain(self.numbers),
            "expectations": [plain(one.to_dict()) for one in self.expectations],
            "reached": self.reached,
            "notes": list(self.notes),
            "tables": {name: plain(table) for name, table in self.tables.items()},
        }

    def __repr__(self) -> str:
        reached = sum(one.reached for one in self.expectations)
        return (
            f"Findings({self.record.experiment!r}: {reached} of {len(self.expectations)} checks reproduced)"
        )


@dataclass(frozen=True, slots=True)
class Reanalysis:
    """An analysis of a published data set: what it asks, how it answers, and how it tells of it.

    Parameters
    ----------
    name : str
        What it is called on the command line.
    dataset : str
        The name of its data set.
    title, question : str
        Its heading, and what it asks in one sentence.
    analyse : callable
        ``analyse(loaded, *, seed=1, bootstrap=1000, workers=None, on_progress=None)`` returns
        :class:`Findings`. Intervals are of ``bootstrap`` draws with this ``seed``; ``workers``, threads,
        change no number; ``on_progress(doing, done, of)`` is told how far it is.
    sections : callable
        ``sections(findings, loaded)`` returns the sections of the page, the first of which sums up what was
        found; :func:`fidm_studies.writing.write_sections` makes them from a template.
    """

    name: str
    dataset: str
    title: str
    question: str
    analyse: Callable[..., Findings]
    sections: Callable[[Findings, Loaded], list[dict[str, Any]]]

    def __repr__(self) -> str:
        return f"Reanalysis({self.name!r} of the data set {self.dataset!r})"


def study_names() -> tuple[str, ...]:
    """Return the names of all studies, in the order of the alphabet.

    Examples
    --------
    >>> study_names()[:3]
    ('justhink', 'map-task', 'space-adventure')
    """
    return REANALYSES.names()


def find_study(name: str) -> Reanalysis:
    """Return the study of this name.

    Parameters
    ----------
    name : str
        One of :func:`study_names`.
    """
    return REANALYSES.find(name)
