"""What a recovery experiment found, in tables and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import t

from fidm.channels import CHANNEL_WORDS, SENSITIVITY_WORDS
from fidm.errors import DataError
from fidm.fit.profile import SENSITIVITY
from fidm.record import Record

Floats = NDArray[np.float64]

LABELS: Mapping[str, str] = {
    SENSITIVITY: SENSITIVITY_WORDS,
    f"log_{SENSITIVITY}": SENSITIVITY_WORDS,
    **{name: words.name for name, words in CHANNEL_WORDS.items()},
}
"""How parameters are called in sentences and pictures."""

VERDICTS = ((0.85, "well"), (0.70, "well enough to compare groups"), (0.50, "only weakly"))
"""How well a parameter is recovered, by the least correlation with the truth; below, it cannot be."""

NOTICEABLE = 0.12
"""A cross-response up to this is nothing to speak of."""

ENOUGH_REPETITIONS = 5
"""With fewer, the sd of r between repetitions is taken from theory, not from them."""


def verdict(r: float) -> str:
    """Return how well a parameter with this correlation is recovered; empty if it cannot be estimated.

    What is judged is r as it is printed, with two digits.
    """
    return next((word for least, word in VERDICTS if round(r, 2) >= least), "")


def number(value: float) -> str:
    """Return a correlation or slope as papers print it: .93."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:.2f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return text.replace("0.", ".", 1) if abs(value) < 0.995 else text


@dataclass(frozen=True, slots=True, eq=False)
class Recovery:
    """How well each parameter comes back, and whether it is mistaken for another.

    Parameters
    ----------
    record : Record
        How it came about.
    factors : tuple of str [K]
        What was varied, action sensitivity first.
    matrices : DataFrame
        A row per condition, method, scale of η, manipulated factor and recovered parameter: the standardized
        partial slope (mean over repetitions), its sd between repetitions, its standard error within one,
        how many people it rests on, and from how many repetitions it comes.
    parameters : DataFrame
        A row per condition, method and parameter: r with the truth and where it lies in 95 % of such studies,
        slope on the truth, bias, rmse, coverage of the intervals, and how many have no finite estimate.
    n_people : int
        How many people.
    n_actions, n_segments : float
        How many of each a person has, on average.
    repeat : int
        How many repetitions.
    is_like : bool
        Whether it is about a study.
    not_learned : mapping of str to str
        Channels that could not be learned in some repetition, and why.
    notes : tuple of str
        What else is to be said.
    """

    record: Record
    factors: tuple[str, ...]
    matrices: pl.DataFrame
    parameters: pl.DataFrame
    n_people: int
    n_actions: float
    n_segments: float
    repeat: int
    is_like: bool
    not_learned: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods tried, the default one first."""
        return tuple(self.matrices["method"].unique(maintain_order=True))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions tried."""
        return tuple(self.matrices["condition"].unique(maintain_order=True))

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The parameters, and the matrices."""
        return {"": self.parameters, "matrix": self.matrices}

    def matrix(
        self, condition: str = "complete", *, method: str = "", scale: str = "log", value: str = "slope"
    ) -> Floats:
        """Return a matrix [K, K]: rows are manipulated factors, columns recovered parameters.

        Parameters
        ----------
        condition : {"complete", "missing", "noise"}
            Which condition.
        method : {"eb", "mle"}
            How people were estimated; by default the first method tried.
        scale : {"log", "raw"}
            Whether log η or η.
        value : {"slope", "sd", "se"}
            The mean slope, its sd between repetitions, or its standard error in one.
        """
        chosen = self.matrices.filter(condition=condition, method=method or self.methods[0], scale=scale)
        if not chosen.height:
            raise DataError(
                f"There is no matrix for {condition!r}, {method or self.methods[0]!r} and {scale!r}."
            )
        found = np.full((len(self.factors), len(self.factors)), np.nan)
        for row in chosen.iter_rows(named=True):
            at = self.factors.index(row["factor"]), self.factors.index(row["recovered"])
            found[at] = math.nan if row[value] is None else row[value]
        return found

    def row(self, parameter: str, condition: str = "complete", *, method: str = "") -> dict[str, Any] | None:
        """Return what is known of a parameter; None if it could not be learned."""
        chosen = self.parameters.filter(
            condition=condition, method=method or self.methods[0], parameter=parameter
        )
        return chosen.row(0, named=True) if chosen.height else None

    def sentences(self) -> tuple[str, ...]:
        """Answer in words: what can be estimated with these people and this much data, and what cannot."""
        whose = f"your {self.n_people:,} people" if self.is_like else f"{self.n_people:,} simulated people"
        much = f"about {self.n_actions:.0f} actions and {self.n_segments:.0f} segments each"
        said = []
        first = self.conditions[0]
        for k, name in enumerate(self.factors):
            row = self.row(f"log_{name}" if k == 0 else name, first)
            what = LABELS.get(name, name)
            if row is None or row["r"] is None:
                text = f"{what} cannot be estimated: {self.not_learned.get(name, 'nobody has an estimate.')}"
            else:
                text = f"{what} {self._judged(row)}"
            said.append(f"With {whose} and {much}, {text}" if k == 0 else text[0].upper() + text[1:])
        return (*said, *self._worse(), *self._crossed())

    def condition_words(self, condition: str) -> str:
        """Return a condition in words."""
        settings = self.record.settings
        if condition == "missing":
            return f"{settings['missing']:.0%} of the effort missing"
        return f"noise × {settings['noise']:g}" if condition == "noise" else "complete observations"

    def _judged(self, row: Mapping[str, Any]) -> str:
        r, word = row["r"], verdict(row["r"])
        how = f"over {self.repeat} repetitions" if self.repeat > 1 else "one repetition"
        figures = f"r = {number(r)} ({number(row['r_low'])} to {number(row['r_high'])}, {how})"
        return f"is recovered with {figures}: {word}." if word else f"cannot be estimated: {figures}."

    def _worse(self) -> list[str]:
        """Where another condition changes the verdict."""
        said = []
        for condition in self.conditions[1:]:
            changes = []
            for name in self.factors[1:]:
                before, after = self.row(name, self.conditions[0]), self.row(name, condition)
                if before is None or after is None or before["r"] is None or after["r"] is None:
                    continue
                if verdict(after["r"]) != verdict(before["r"]) and after["r"] < before["r"]:
                    word = verdict(after["r"]) or "cannot be estimated"
                    changes.append(f"{LABELS.get(name, name)} {word} (r = {number(after['r'])})")
            if changes:
                said.append(f"With {self.condition_words(condition)}: {'; '.join(changes)}.")
        return said

    def _crossed(self) -> list[str]:
        """Whether a factor passes for another, beyond the largest of all cross-responses by chance."""
        matrix = self.matrix(self.conditions[0])
        error = self.matrix(self.conditions[0], value="se") / math.sqrt(self.repeat)
        off = ~np.eye(len(matrix), dtype=bool)
        if not np.isfinite(matrix[off]).any():
            return []
        freedom = max(1, self.repeat * (self.n_people - len(matrix) - 1))
        by_chance = float(t.ppf(1 - 0.025 / off.sum(), freedom)) * error  # one in twenty studies has a larger
        with np.errstate(invalid="ignore"):
            big = off & (np.abs(matrix) > NOTICEABLE) & (np.abs(matrix) > by_chance)
        if big.any():
            return [
                f"{LABELS.get(self.factors[i], self.factors[i]).capitalize()} passes in part for "
                f"{LABELS.get(self.factors[j], self.factors[j])}: cross-response {number(matrix[i, j])}."
                for i, j in np.argwhere(big)
            ]
        largest, limit = float(np.nanmax(np.abs(matrix[off]))), float(np.nanmax(by_chance[off]))
        figures = (
            f"the largest cross-response is {number(largest)}, and chance alone gives up to {number(limit)}"
        )
        if limit > NOTICEABLE:
            return [f"Too few people to tell whether one factor passes for another: {figures}."]
        return [f"No factor passes for another: {figures}."]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "people": self.n_people,
            "actions_per_person": self.n_actions,
            "segments_per_person": self.n_segments,
            "repeat": self.repeat,
            "factors": list(self.factors),
            "sentences": list(self.sentences()),
            "parameters": self.parameters.to_dicts(),
            "matrices": self.matrices.to_dicts(),
            "not_learned": dict(self.not_learned),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def summarize(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> pl.DataFrame:
    """Average rows over repetitions; a correlation also gets the range in which 95 % of such studies lie.

    With R repetitions, mean z and sd s of Fisher's z the range is tanh(z ± t s √(1 + 1/R)), t the quantile of
    Student's distribution with R − 1 degrees of freedom: a prediction interval for one more study. With fewer
    than five repetitions s is 1 / √(n − 3), and t is 1.96.
    """
    table = pl.DataFrame(list(rows)).fill_nan(None)
    mean = [
        pl.col(name).mean()
        for name in ("r", "slope", "bias", "rmse", "coverage", "se", "without", "n")
        if name in table.columns
    ]
    more = [pl.col("slope").std().alias("sd"), pl.len().alias("repetitions")]
    if "r" in table.columns:
        z = pl.col("r").clip(-0.999999, 0.999999).arctanh()
        own = (1 / (pl.col("n").mean() - 3).clip(lower_bound=1).sqrt()).alias("_own")
        more = [z.mean().alias("_z"), z.std().alias("_sd"), z.count().alias("_count"), own, *more]
    found = table.group_by(keys, maintain_order=True).agg(*mean, *more)
    if "r" not in table.columns:
        return found
    count = found["_count"].to_numpy()
    enough = count >= ENOUGH_REPETITIONS
    quantile = np.where(enough, t.ppf(0.975, np.maximum(count - 1, 1)), 1.96)
    spread = np.where(enough, found["_sd"].fill_null(0.0).to_numpy(), found["_own"].to_numpy())
    width = pl.Series(quantile * spread * np.sqrt(1 + 1 / np.maximum(count, 1)))
    return found.with_columns(
        r=pl.col("_z").tanh(),
        r_low=(pl.col("_z") - width).tanh(),
        r_high=(pl.col("_z") + width).tanh(),
    ).select(*keys, "r", "r_low", "r_high", pl.exclude(*keys, "r", "r_low", "r_high", "sd", "^_.*$"))
