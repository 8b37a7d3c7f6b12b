"""What a comparison of accounts of choice says, in the terminal and in the report alike.

Differences are shown as by how many per cent what people chose is more probable, choice by choice on
(geometric) average: 100 (exp(d) − 1) for a difference d of log-likelihood per choice. Names of models stand
here in words; labels of parameters come with the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console

from fidm.cohort import Cohort
from fidm.errors import count, listed
from fidm.experiments.criticism import DISCOVERED, LEVEL
from fidm.experiments.rivals import ModelComparison
from fidm.model.action_models import Parameter, Scale
from fidm.present import MODELS
from fidm.present.numbers import DASH, number, number_text, percent, percent_text, sentence, span
from fidm.present.terminal import note, state, table_of, warn

STATISTICS: Mapping[str, str] = {
    "steps": "steps of an episode",
    "steps_to_goal": "steps to the first goal",
    "first_best": "first choices that are best",
    "best_small_gap": "best choices, actions close in value",
    "best_middle_gap": "best choices, actions farther apart",
    "best_large_gap": "best choices, actions farthest apart",
    "repeats": "steps that repeat the action before",
    "backtracks": "backtracks",
    "revisits": "steps to places visited before",
}
"""What is compared with simulated choices, in words."""

COUNTED = ("steps", "steps_to_goal")
"""The statistics that are numbers of steps; the others are shares."""

FEW = 20
"""With fewer people the intervals are themselves imprecise."""

AS_PROBABLE = (
    "more probable: than under {}, choice by choice on (geometric) average; 1 % is 1.01 times as probable"
)
"""How differences are to be read."""

MANY = (
    "intervals hold for each model alone; of {} models, one may exclude 0 by chance, and the best of them "
    "looks a little too good"
)
"""What several intervals say together."""

NESTED = (
    "more people go by an account: the probability allows for differences that are chance; accounts that "
    "contain one another (softmax is a case of several) share it, so it can be low for each of them although "
    "the differences are clear"
)
"""Why the probability that an account is the most frequent one may be low."""

HEADER = (
    "choice: how probable what somebody chose is on average, if only other people are known",
    "best of: how many people it predicts best; leads: how probably more people go by it than by any other",
)
"""How the columns of the terminal are to be read."""


# ---------------------------------------------------------------------- words


def model_words(found: ModelComparison, name: str) -> str:
    """Return what a model is called in sentences."""
    kinds = {one["name"]: one["kind"] for one in found.record.settings.get("models", ())}
    if kinds.get(name) == "believes":
        return f"taking the task for {name}"
    parts = [MODELS.get(part, part.replace("_", " ")) for part in name.split("+")]
    return f"{' or '.join(parts)}, choice by choice" if len(parts) > 1 else parts[0]


def statistic_words(name: str) -> str:
    """Return what a statistic of the checks is called."""
    return STATISTICS.get(name, name.replace("_", " "))


def more_probable(difference: float | None) -> float | None:
    """Return by what share choices are more probable, for a difference of log-likelihood per choice.

    Examples
    --------
    >>> round(more_probable(0.02), 4), round(more_probable(-0.6), 2)
    (0.0202, -0.45)
    """
    return None if difference is None else math.expm1(difference)


def gain_text(row: Mapping[str, Any], way: str = "people", *, unit: str = " %", sign: bool = False) -> str:
    """Return by how many per cent choices are more probable than under the reference, with the interval.

    Examples
    --------
    >>> row = {"people_difference": 0.0204, "people_low": 0.0031, "people_high": 0.035}
    >>> gain_text(row), gain_text(row, unit="", sign=True)
    ('2.06 % (0.31 to 3.56)', '+2.06 (+0.31 to +3.56)')
    """
    shares = (more_probable(row[f"{way}_{end}"]) for end in ("difference", "low", "high"))
    middle, *ends = (number(None if one is None else 100 * one, sign=sign) for one in shares)
    return f"{middle}{unit} ({' to '.join(ends)})"


def chance_text(p: float) -> str:
    """Return a probability; one near 1 is only known to be above 99.9 %.

    Examples
    --------
    >>> chance_text(0.83), chance_text(0.9998), chance_text(0.0002)
    ('83.0 %', '> 99.9 %', '< 0.1 %')
    """
    return "> 99.9 %" if p >= 1 - 0.0005 else percent_text(p)


def quoted(found: ModelComparison, name: str) -> str:
    """Return what a model is called within a sentence, in quotation marks."""
    return f"“{model_words(found, name)}”"


# ---------------------------------------------------------------------- what people share


def _odds(value: float) -> str:
    """A bonus as a factor of the odds."""
    return f"odds × {number_text(math.exp(value))}"


def _steps(value: float | None) -> str:
    """A planning depth; an infinite one is null in files."""
    return "the whole way" if value is None or math.isinf(value) else count(int(value), "step")


def _discount(value: float) -> str:
    """A discount, and about how many steps ahead matter."""
    return f"{value:.3f}, about {count(round(1 / max(1 - value, 1e-6)), 'step')}"


UNITS: Mapping[str, tuple[Scale, Callable[[Any], str], Callable[[Any], str]]] = {
    "action_sensitivity": ("log", number_text, number_text),
    "lapse_rate": ("logit", percent_text, percent_text),
    "share": ("logit", percent_text, percent_text),
    "repeat": ("plain", _odds, lambda value: number_text(math.exp(value))),
    "step_back": ("plain", _odds, lambda value: number_text(math.exp(value))),
    "discount": ("discount", _discount, lambda value: number(value, places=3)),
    "depth": ("levels", _steps, _steps),
}
"""The scale of parameters that come with fidm; how a typical one is written, and the ends of a range."""

REACH = NormalDist().inv_cdf(0.975)
"""Within so many standard deviations of the mean are 95 % of people."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One parameter of a model among people, in words."""

    model: str
    label: str
    typical: str
    low: str  # 95 % of people are between these two; empty where the unit is not known
    high: str

    @property
    def between(self) -> str:
        """The range of people."""
        if not self.low:
            return DASH
        return self.low if self.low == self.high else f"{self.low} to {self.high}"


def shared_parameters(found: ModelComparison) -> list[Shared]:
    """Return every parameter of every model: what a typical person has, and how people differ.

    Of a parameter whose unit is not known, such as that of a model of one's own, the range is left out.
    """
    rows = []
    for row in found.parameters.iter_rows(named=True):
        model, label = str(row["model"]), str(row["label"])
        name = str(row["parameter"]).removeprefix("second_")
        if name not in UNITS:
            rows.append(Shared(model, label, number_text(row["typical"]), "", ""))
            continue
        scale, unit, end = UNITS[name]
        one = _parameter(found, model, name, scale)
        free = (row["mean"] - REACH * row["sd"], row["mean"] + REACH * row["sd"])
        low, high = ("", "") if one is None else (end(one.value(x)) for x in free)
        rows.append(Shared(model, label, unit(row["typical"]), low, high))
    return rows


def _parameter(found: ModelComparison, model: str, name: str, scale: Scale) -> Parameter | None:
    """The parameter that brings free numbers back to values; None where its levels are not known."""
    if scale != "levels":
        return Parameter(name, "", np.zeros(0), scale)
    known = {one["name"]: one.get("depths") for one in found.record.settings.get("models", ())}
    depths = known.get(model)
    if not depths:
        return None
    return Parameter.of_levels(name, "", [math.inf if one is None else one for one in depths])


# ---------------------------------------------------------------------- sentences


def choice_sentences(found: ModelComparison) -> list[str]:
    """Return which account predicts people best, and what the best one and the reference fail to describe."""
    shown = tuple(dict.fromkeys([found.best, found.reference]))
    return [
        *_winner(found),
        _trials(found),
        _frequent(found),
        *(_misses(found, name) for name in shown),
        _undescribed(found, shown),
        *(_calibration(found, name) for name in shown),
    ]


def _winner(found: ModelComparison) -> Iterator[str]:
    """Which model predicts people best who were not learned from, and whether that is beyond chance."""
    reference, best = (quoted(found, name) for name in (found.reference, found.best))
    row, level = found.row(found.best), level_text(found)
    better = [name for name in _above(found) if name != found.best]
    if row["people_low"] > 0:
        yield (
            f"People who were not learned from are predicted best by {best}: what they chose is "
            f"{gain_text(row)} more probable than under {reference} ({level} interval). This is beyond "
            "chance."
        )
        if better:
            yield f"Better than {reference} beyond chance, too: {_with_gains(found, better)}."
        return
    if better:
        yield f"Better than {reference} beyond chance: {_with_gains(found, better)}."
    else:
        yield f"No model predicts people better than {reference} beyond chance."
    if found.best != found.reference:
        yield f"The best on average is {best}, {gain_text(row)}, but its {level} interval includes 0."
    like = [
        quoted(found, str(one["model"]))
        for one in found.models.iter_rows(named=True)
        if one["people_low"] <= 0 <= one["people_high"] and one["model"] not in (found.reference, found.best)
    ]
    if like:
        yield f"Not distinguishable from {reference}: {listed(like)}."


def _trials(found: ModelComparison) -> str:
    """Which model predicts trials of a person from the others best."""
    reference = quoted(found, found.reference)
    top = found.models.sort("by_trials", descending=True, maintain_order=True).row(0, named=True)
    said = "Trials of a person that were held out, given the person's others, are predicted best by"
    if top["model"] == found.reference:
        return f"{said} {reference}."
    sure = "beyond chance" if top["trials_low"] > 0 else "but the interval includes 0"
    better = f"{gain_text(top, 'trials')} more probable than under {reference}"
    return f"{said} {quoted(found, str(top['model']))}: {better}, {sure}."


def _frequent(found: ModelComparison) -> str:
    """Which account is the most frequent one among people, and how probably none is."""
    top = found.models.sort("protected", descending=True, maintain_order=True).row(0, named=True)
    return (
        f"More people go by {quoted(found, str(top['model']))} than by any other account with a probability "
        f"of {chance_text(top['protected'])}. That differences between people are chance has a probability "
        f"of {chance_text(found.chance)}."
    )


def _misses(found: ModelComparison, name: str) -> str:
    """What a model fails to describe."""
    words, checks = quoted(found, name), found.criticism.checks.filter(pl.col("model") == name).height
    missed = found.criticism.misses(name)
    if not checks:
        return f"Nothing could be checked under {words}."
    if not missed.height:
        return f"{words} describes all {checks} statistics that were checked."
    said = (
        "{}, {} observed, {} ({}) expected".format(statistic_words(row["statistic"]), *check_texts(row))
        for row in missed.iter_rows(named=True)
    )
    return f"{words} fails to describe {missed.height} of {checks} statistics: {'; '.join(said)}."


def check_texts(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what was observed, what is expected under a model, and its band, as they are shown.

    Examples
    --------
    >>> row = {"observed": 0.21, "replicated": 0.27, "low": 0.25, "high": 0.29}
    >>> check_texts({"statistic": "backtracks", **row})
    ('21.0 %', '27.0 %', '25.0–29.0 %')
    """
    if row["statistic"] in COUNTED:
        shown = (number(row[name], places=1) for name in ("observed", "replicated", "low", "high"))
        observed, expected, low, high = shown
        return observed, expected, f"{low}–{high}"
    observed, expected = (f"{percent(row[name])} %" for name in ("observed", "replicated"))
    return observed, expected, f"{span(row['low'], row['high'])} %"


def _undescribed(found: ModelComparison, shown: tuple[str, ...]) -> str:
    """How many people are not described."""
    table, people = found.criticism.undescribed, count(found.criticism.n_people, "person", "people")
    rate = f"{100 * DISCOVERED:g} %"
    said = [
        f"{table.filter(pl.col('model') == name)['participant'].n_unique():,} by {quoted(found, name)}"
        for name in shown
    ]
    return f"Of {people}, not described: {listed(said)} (false discovery rate {rate})."


def _calibration(found: ModelComparison, name: str) -> str:
    """How far predicted probabilities are from how often options were chosen."""
    words, own = quoted(found, name), found.criticism.calibration.filter(pl.col("model") == name)
    if not own.height:
        return f"Calibration of {words} is not known: which goal somebody has in mind is not seen."
    apart, n = (own["predicted"] - own["observed"]).abs(), own["n"]
    off = own.filter((pl.col("predicted") < pl.col("low")) | (pl.col("predicted") > pl.col("high"))).height
    points = number(100 * float(np.average(apart.to_numpy(), weights=n.to_numpy())), places=1)
    beyond = f"in {off} of {count(own.height, 'bin')} beyond chance" if off else "nowhere beyond chance"
    return f"Calibration of {words}: predicted probabilities are off by {points} points on average, {beyond}."


def say_filled_in(cohort: Cohort) -> list[str]:
    """Return that what a planner filled in is nobody's choice, and what that does to the checks."""
    share = 0.0 if cohort.inferred is None or not len(cohort.inferred) else float(cohort.inferred.mean())
    if not share:
        return []
    return [
        f"A planner filled in {percent_text(share)} of the steps. They are left out of what people did, and "
        "episodes that have any are not checked for their length."
    ]


def say_models_not_run(found: ModelComparison) -> list[str]:
    """Return which models could not be used, and why."""
    return [f"Not run: {quoted(found, name)}. {sentence(why)}" for name, why in found.not_run.items()]


def choice_notes(found: ModelComparison) -> list[str]:
    """Return how the numbers are to be read."""
    others = found.models.height - 1
    few = f"with so few people (below {FEW}) these intervals are themselves imprecise"
    said = (one.partition(": ") for one in found.notes)
    return [
        AS_PROBABLE.format(quoted(found, found.reference)),
        *([few] if found.people.height < FEW else []),
        *([MANY.format(others)] if others > 2 else []),
        NESTED,
        f"one of twenty statistics lies outside its {100 * LEVEL:g} % band by chance",
        *(f"{quoted(found, name)}: {text[0].lower()}{text[1:].rstrip('.')}" for name, _, text in said),
    ]


def _above(found: ModelComparison) -> list[str]:
    """The models that predict people better than the reference beyond chance, the best first."""
    ranked = found.models.sort("people_difference", descending=True, maintain_order=True)
    return [str(name) for name in ranked.filter(pl.col("people_low") > 0)["model"]]


def _with_gains(found: ModelComparison, names: list[str]) -> str:
    """Models with their differences."""
    return "; ".join(f"{quoted(found, name)}, {gain_text(found.row(name))}" for name in names)


def level_text(found: ModelComparison) -> str:
    """Return the level of the intervals: "95 %"."""
    return f"{100 * found.record.settings['level']:g} %"


# ---------------------------------------------------------------------- the page of the terminal


def show_models(found: ModelComparison, cohort: Cohort, console: Console) -> None:
    """Print which account of choices predicts people best, and what it fails to describe."""
    people, choices = count(found.people.height, "person", "people"), int(found.people["n"].sum())
    console.print(f"[bold]{people}[/], {count(choices, 'choice')}", soft_wrap=True)
    ranked = found.models.sort("by_people", descending=True, maintain_order=True)
    rows = [
        [
            model_words(found, str(row["model"])),
            percent_text(math.exp(row["by_people"])),
            "reference" if row["model"] == found.reference else gain_text(row, unit="", sign=True),
            f"{row['best']:,}",
            chance_text(row["protected"]),
        ]
        for row in ranked.iter_rows(named=True)
    ]
    header = ["account", "choice", f"more probable, % ({level_text(found)})", "best of", "leads"]
    console.print(table_of(header, rows))
    state(console, *choice_sentences(found))
    _show_shared(found, console)
    note(console, *HEADER, *choice_notes(found))
    warn(console, *say_filled_in(cohort), *say_models_not_run(found))


def _show_shared(found: ModelComparison, console: Console) -> None:
    """Print what people share, a row per model."""
    rows: dict[str, list[str]] = {}
    for one in shared_parameters(found):
        label = "η" if one.label.endswith(" η") else one.label
        between = f" ({one.between})" if one.low else ""
        rows.setdefault(one.model, []).append(f"{label}: {one.typical}{between}")
    if rows:
        console.print("\n[bold]What people share[/]: a typical person (95 % of people)")
        cells = [[model_words(found, name), line] for name, own in rows.items() for line in own]
        for i in range(len(cells) - 1, 0, -1):
            if cells[i][0] == cells[i - 1][0]:
                cells[i][0] = ""
        console.print(table_of(["account", "parameter"], cells, left=2))
