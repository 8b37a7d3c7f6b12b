"""What a classification found, as plain rows and sentences: the terminal, the summary and the page show them.

Whoever shows them says what representations are called there, which columns there is room for, and how an
area under the curve is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from fidm.classify.result import Classification
from fidm.classify.subgroups import FEWEST
from fidm.classify.validation import FOLD_NUMBER, LEVEL, SCRAMBLED
from fidm.errors import count
from fidm.present.numbers import DASH, between, cell, number, percent, rows_of
from fidm.present.wording import PARTS, baseline_of, briefly, featured, half_width, times

Called = Callable[[str], str]
"""Gives what a representation is called."""

SIDES: Mapping[str, str] = {"train": "training part", "held-out": "held-out part"}
"""The parts of a study in words."""

SIMULATED = "These people are simulated: nothing here says how well real people can be told apart."
PAPERS_PEOPLE = (
    "The paper's figures are of its own 400 people and map, which are not public: agreement proves nothing."
)
NO_PRESENCE = "pause_presence is not used, as in the paper."
FEW_CASES = f"{DASH}: fewer than {FEWEST} cases or {FEWEST} others."
"""Said where a group is too small."""

FEW = 0.05
"""Held-out people are few if the interval of an AUC reaches further than this to either side."""

UNSURE = 0.10
"""A check whose interval reaches further than this to either side cannot be judged."""

UNCERTAIN = "too uncertain to judge with so few people"


class Rows(NamedTuple):
    """A table as text: what stands above its columns, and its cells; the first two columns are words."""

    header: list[str]
    cells: list[list[str]]

    def first(self, n: int) -> Rows:
        """Return the first columns alone."""
        return Rows(self.header[:n], [row[:n] for row in self.cells])


def found_by(frame: pl.DataFrame, *columns: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the rows of a table by what stands in these columns."""
    return {tuple(row[name] for name in columns): row for row in frame.iter_rows(named=True)}


# ---------------------------------------------------------------------- people and rows


def study_parts(found: Classification) -> dict[str, str]:
    """Return the parts of the study that have people, in words."""
    return {part: words for part, words in SIDES.items() if part == "train" or found.flow.n(part)}


def say_not_run(found: Classification, called: Called) -> list[str]:
    """Return which representations were not run, and what would help; the same reason is said once."""
    reasons: dict[str, list[str]] = {}
    for name, why in found.not_run.items():
        reasons.setdefault(why, []).append(called(name))
    return [f"{', '.join(names)} not run: {why}" for why, names in reasons.items()]


def say_width(found: Classification) -> list[str]:
    """Return how far the interval of an AUC reaches among held-out people, if there are any."""
    half = half_width(found, "held-out")
    if half is None:
        return []
    few = " are few" if half > FEW else ""
    return [
        f"{found.flow.n('held-out'):,} held-out people{few}: the 95 % interval of an AUC reaches about "
        f"{100 * half:.0f} points to either side."
    ]


def pair_words(called: Called, representation: str, against: str) -> str:
    """Return what a difference is between; the baseline of a combination need not be named."""
    words = called(representation)
    return words if baseline_of(representation) == against else f"{words} − {called(against)}"


# ---------------------------------------------------------------------- more closely


def threshold_rows(found: Classification, called: Called) -> Rows:
    """Return what a threshold of one half gives, for a few representations; in per cent."""
    shares = ("sensitivity", "specificity", "ppv", "npv")
    return Rows(
        ["", "", "sensitivity", "specificity", "PPV", "NPV"],
        [
            [called(row["representation"]), PARTS[row["part"]], *(cell(row, name) for name in shares)]
            for row in rows_of(found.thresholds, featured(found))
        ],
    )


def calibration_rows(found: Classification, called: Called) -> Rows:
    """Return the calibration of a few representations."""
    rows = []
    for row in rows_of(found.calibration_summary, featured(found)):
        numbers = (
            f"{number(row[name])} ({between(row[f'{name}_low'], row[f'{name}_high'])})"
            if row[name] is not None
            else DASH
            for name in ("intercept", "slope")
        )
        briers = (number(row[name], places=3) for name in ("brier", "brier_reference"))
        rows.append([called(row["representation"]), PARTS[row["part"]], *numbers, *briers])
    return Rows(["", "", "intercept", "slope", "Brier", "of the prevalence"], rows)


def group_rows(found: Classification, called: Called, parts: Sequence[str]) -> Rows:
    """Return the area under the curve within groups of people, for a few representations; in per cent."""
    chosen = featured(found, most=2)
    shown = found.groups.filter(
        pl.col("representation").is_in(list(chosen)), pl.col("part").is_in(list(parts)), metric="auc"
    )
    sizes = found_by(shown, "column", "group", "part")
    known = found_by(shown, "column", "group", "part", "representation")
    rows = []
    for own in shown.select("column", "group").unique(maintain_order=True).rows():
        groups = (sizes.get((*own, part)) for part in parts)
        people = (f"{one['n_cases']:,} of {one['n']:,}" if one else DASH for one in groups)
        areas = (cell(known.get((*own, part, name))) for part in parts for name in chosen)
        rows.append([*own, *people, *areas])
    where = {part: f", {PARTS[part]}" if len(parts) > 1 else "" for part in parts}
    names = (f"{called(name)}{where[part]}" for part in parts for name in chosen)
    return Rows(["", "", *(f"cases{where[part]}" for part in parts), *names], rows)


# ---------------------------------------------------------------------- checks


class Scale(NamedTuple):
    """How areas under the curve are written, and changes of one."""

    area: Callable[[float], str]
    change: Callable[[float | None], str]
    unit: str
    half: str


def _small(value: float | None) -> str:
    """A small difference, signed; one that rounds to nothing is 0.

    Examples
    --------
    >>> _small(-0.0002), _small(-0.0121), _small(0.0031), _small(None)
    ('0.000', '−0.012', '+0.003', '–')
    """
    return number(value, places=3, sign=True) if value is None or round(value, 3) else "0.000"


POINTS = Scale(percent, partial(percent, sign=True), " points", "50")
"""In per cent, as the paper has them."""

SHARES = Scale("{:.3f}".format, _small, "", "0.5")
"""From 0 to 1, as the report has them."""


def check_level() -> str:
    """Return the level of the intervals of checks: "99.9 %"."""
    return f"{LEVEL:.1%}".replace("%", " %")


def is_unsure(row: Mapping[str, Any]) -> bool:
    """Return whether the check of the fold passed only because its interval is so wide."""
    low, high = row["low"], row["high"]
    return row["passed"] is not False and (low is None or high is None or not (high - low) / 2 <= UNSURE)


def say_fold(row: Mapping[str, Any], scale: Scale = POINTS) -> str:
    """Return what features that name the fold add to a representation, and whether that is well."""
    verdict = {
        True: "nothing, as it must be",
        False: "it must be nothing, so the check FAILED",
        None: "not judged",
    }[row["passed"]]
    if is_unsure(row):
        verdict = UNCERTAIN
    value, low, high = (scale.change(row[name]) for name in ("value", "low", "high"))
    ends = "" if DASH in (low, high) else f" ({check_level()}: {low} to {high})"
    added = f"{value}{scale.unit} of AUC to {briefly(row['representation'])}"
    return f"features that name the fold add {added}{ends}: {verdict}"


def permutation_p(p: float | None, n: int) -> str:
    """Return the p of n scrambles; at its least it is only a bound.

    Examples
    --------
    >>> from fidm.present.findings import permutation_p
    >>> permutation_p(1 / 21, 20), permutation_p(0.5, 20)
    ('≤ 0.048', '0.500')
    """
    if p is None or not math.isfinite(p):
        return DASH
    words = f"{p:.3f}" if p >= 0.0005 else f"{p:.1g}"
    return f"≤ {words}" if p <= (1 + 1e-9) / (1 + n) else words


def say_failed(found: Classification, called: Called) -> list[str]:
    """Return which checks failed, if any did."""
    failed = found.checks.filter(passed=False)
    if not failed.height:
        return []
    which = (
        f"{check} ({', '.join(map(called, names))})"
        for check, names in failed.group_by("check", maintain_order=True).agg("representation").iter_rows()
    )
    return [
        f"{failed.height} of {count(found.checks.height, 'check')} failed: do not trust these results before "
        f"it is known why. Failed: {', '.join(which)}."
    ]


def say_checks(found: Classification, scale: Scale = POINTS) -> list[str]:
    """Return in a line what the checks gave, and how many passed; nothing where there are none."""
    checks, said = found.checks, []
    scrambled = checks.filter(check=SCRAMBLED)
    values = scrambled["value"].drop_nulls().drop_nans().to_list()
    if values:
        gave = " to ".join(dict.fromkeys((scale.area(min(values)), scale.area(max(values)))))
        often = times(int(scrambled["n"][0]))
        said.append(f"labels scrambled {often} gave a mean AUC of {gave} ({scale.half} expected)")
        if chances := scrambled["p"].drop_nulls().to_list():
            ps = " to ".join(dict.fromkeys(f"{p:.2f}" for p in (min(chances), max(chances))))
            said.append(f"they did as well as the true labels with a probability of {ps}")
    folds = checks.filter(check=FOLD_NUMBER).rows(named=True)
    said += [say_fold(row, scale) for row in folds]
    unsure = sum(is_unsure(row) and row["passed"] is not None for row in folds)
    passed, judged = (int(n) - unsure for n in (checks["passed"].sum(), checks["passed"].count()))
    open_ones = checks["passed"].null_count() + unsure
    if open_ones:
        said.append(
            f"{open_ones} not judged" + (f", {passed} of the other {judged} passed" if judged else "")
        )
    elif judged:
        said.append(f"{passed} of {judged} passed")
    return [f"checks: {'; '.join(said)}"] if said else []
