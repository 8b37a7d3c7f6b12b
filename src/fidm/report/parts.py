"""The pieces a report is made of, as plain dicts: sections, tables, figures; and what codes are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from fidm.channels import channel_words
from fidm.classify.result import Classification, Metric
from fidm.errors import count
from fidm.fit.profile import OK, SENSITIVITY, STATUSES, Profile
from fidm.plot.classification import bar_handles, classification_bars, curve_panels, roc_curves
from fidm.plot.profiles import cohort_scatter
from fidm.plot.style import INK, QUIET, figure_svg
from fidm.present.numbers import not_estimated, percent_text, rounded, sentence

AGAINST: Mapping[str, str] = {
    "low_information": "Little is known: the person's data narrow this down little, or too few people were "
    "observed to learn from.",
    "few_observations": "It rests on few observations.",
    "moves_in_doubt": "Over half of the moves behind it were filled in by a planner or await review.",
    "near_chance": "The choices do not exclude that the person chooses at random.",
    "at_zero": "The choices are together no better than chance.",
    "at_random": "The person probably chooses at random. The estimate is what η is if not; the interval "
    "covers both.",
    "at_edge": "All observations are at the edge of what is possible, so the data give no end on that side.",
    "no_maximum": "Every choice was a best action.",
    "alike": "Not estimated: there are no measurable individual differences.",
    "longer_than_learned": "Not estimated: every segment of this person has far more moves than any that was "
    "learned from, so nothing is known of effort at that length.",
}
"""What is to be said against an estimate."""

LOWER_BOUND = "Every choice was a best action, so the data give only a lower bound."
"""What is said of many best actions; a few say not even that."""

IN_DOUBT = "All segments behind it await review."
"""What is added where nobody has looked at any segment behind an estimate of effort, and all need it."""

FROM_OTHERS: Mapping[str, str] = {
    "at_edge": " That end comes from what is known of the other people.",
    "no_maximum": " The upper end comes from what is known of the other people.",
}
"""What is added where an estimate leans on other people (empirical Bayes)."""

GROUNDED: Mapping[str, str] = {
    "confident": "confident",
    "needs_review": "needs review",
    "no_route": "nothing about the way",
    "reviewed": "reviewed by a person",
    "rejected": "rejected by a person",
}
"""What became of a segment."""

COLUMNS: Mapping[str, str] = {
    "age_years": "age (years)",
    "education_years": "education (years)",
    "score_total": "total score",
}
"""What usual columns of the table of participants are called."""


def against(profile: Profile, row: int, k: int, why: str = "") -> str | None:
    """Return what is to be said against a person's estimate, by how it was made; None where nothing is.

    ``row`` and ``k`` are the person and the parameter; ``why`` is why nothing was observed, where more is
    known than that.
    """
    status, name, n = STATUSES[profile.status[row, k]], profile.parameters[k], int(profile.n[row, k])
    if status == "no_observation":
        return sentence(not_estimated(name, n, why))
    said, few = AGAINST.get(status), profile.is_few[row, k]
    if status == "no_maximum" and not few:
        said = LOWER_BOUND
    if status == "at_zero" and few:
        said = AGAINST["near_chance"]
    leans = profile.method == "eb" and np.isfinite(profile.estimate[row, k])
    error = profile.log_sensitivity_se[row] if name == SENSITIVITY else profile.se[row, k]
    if few and leans and status != "at_random" and error**2 > profile.prior_sd[k] ** 2 / 2:
        besides = f" {said}" if status in ("moves_in_doubt", "near_chance", "at_zero") else ""
        return (
            f"With only {rests_on(name, n)} of this person, the estimate and its interval rest mostly on "
            f"what the other people are like.{besides}"
        )
    if said is not None and leans:
        if status == "at_random":
            said = said.replace("at random.", f"at random (probability {percent_text(profile.random[row])}).")
        said += FROM_OTHERS.get(status, "")
    if said is not None and few:
        others = ", and in part on what the other people are like" if leans else ""
        rests = f"It rests on {rests_on(name, n)} only{others}."
        said = rests if status == "few_observations" else f"{said} {rests}"
    return said


def rests_on(name: str, n: int) -> str:
    """Return what a person's parameter rests on, with how many.

    Examples
    --------
    >>> rests_on("action_sensitivity", 54), rests_on("pause", 1), rests_on("duration", 23)
    ('54 steps', '1 paused segment', '23 segments')
    """
    things = "steps" if name == SENSITIVITY else channel_words(name).rests_on
    return count(n, things.removesuffix("s"), things)


def place_words(text: str, places: Mapping[str, str]) -> str:
    """Return a goal or an action with its place called as on the map.

    Examples
    --------
    >>> place_words("BUY egg_tofu", {"egg_tofu": "egg and tofu"})
    'BUY egg and tofu'
    """
    return " ".join(places.get(part, part.replace("_", " ")) for part in text.split(" "))


def column_words(name: str) -> str:
    """Return what a column of the table of participants is called."""
    return COLUMNS.get(name, name.replace("_", " "))


LOW, HIGH, FLAG, FEW = "low", "high", "flag", "few"
"""What a column can be to another one, in whose cells the page shows it: an end of an interval, a remark, and
whether there are few observations, too."""


def section(
    name: str,
    title: str,
    paragraphs: Iterable[str] = (),
    *,
    tables: Iterable[Mapping[str, Any]] = (),
    figures: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return a section of the report."""
    return {
        "id": name,
        "title": title,
        "paragraphs": [text for text in paragraphs if text],
        "tables": list(tables),
        "figures": list(figures),
    }


def column(name: str, words: str = "", *, unit: str | None = None, align: str = "right") -> dict[str, Any]:
    """Return a table's column: its name for programs, its words for readers, its unit."""
    return {"name": name, "words": words or name.replace("_", " "), "unit": unit, "align": align}


def with_interval(
    name: str,
    words: str = "",
    *,
    low: str = "",
    high: str = "",
    flag: str = "",
    few: str = "",
    unit: str | None = None,
) -> list[dict[str, Any]]:
    """Return the columns of a number, its interval and, if named, its flags; a page shows them as one.

    Parameters
    ----------
    name, words, unit
        As in :func:`column`.
    low, high : str
        What the columns of the ends are called; by default the name with ``_low`` and ``_high``.
    flag, few : str
        What the columns with a remark's code, and with whether there are few observations, are called.
    """
    whole = column(name, words, unit=unit)
    ends = [(low or f"{name}_low", LOW, "from"), (high or f"{name}_high", HIGH, "to")]
    ends += [(flag, FLAG, "remark"), (few, FEW, "few observations")]
    parts = (
        {**column(own, said, unit=unit), "within": name, "role": role} for own, role, said in ends if own
    )
    return [whole, *parts]


def text_column(name: str, words: str = "") -> dict[str, Any]:
    """Return a column of words."""
    return column(name, words, align="left")


def table(
    name: str,
    title: str,
    columns: Sequence[Mapping[str, Any]],
    rows: Iterable[Sequence[Any]],
    *,
    note: str = "",
    brackets: str = "",
) -> dict[str, Any]:
    """Return a table; its cells are raw values, rounded to six significant digits.

    ``brackets`` says what intervals it has; that stands in its note only if it has any.
    """
    cells = [[raw(cell) for cell in row] for row in rows]
    ends = [i for i, one in enumerate(columns) if one.get("role") in (LOW, HIGH)]
    if brackets and any(row[i] is not None for row in cells for i in ends):
        note = f"In brackets: {brackets}. {note}".strip()
    return {"id": name, "title": title, "columns": list(columns), "rows": cells, "note": note}


def table_of(
    name: str,
    title: str,
    columns: Sequence[Mapping[str, Any]],
    frame: pl.DataFrame,
    *,
    note: str = "",
    brackets: str = "",
) -> dict[str, Any]:
    """Return a data frame as a table, with the columns that are named."""
    chosen = frame.select(one["name"] for one in columns)
    return table(name, title, columns, chosen.iter_rows(), note=note, brackets=brackets)


def figure(name: str, title: str, drawn: Figure | Axes, *, alt: str, table: str) -> dict[str, Any]:
    """Return a figure as SVG text, with the table that has its numbers.

    Parameters
    ----------
    name, title : str
        Its name in the page, and what stands above it.
    drawn : Figure or Axes
        What a function of :mod:`fidm.plot` gave.
    alt : str
        What it shows, for those who cannot see it.
    table : str
        The id of the table with its numbers.
    """
    whole = drawn.figure if isinstance(drawn, Axes) else drawn
    assert isinstance(whole, Figure)  # noqa: S101
    return {"id": name, "title": title, "alt": alt, "table": table, "svg": figure_svg(whole)}


def raw(value: Any) -> Any:
    """Return a value as JSON knows it, its digits those that matter."""
    if isinstance(value, float):
        return rounded(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


LOOKS: Mapping[str, tuple[str, str]] = {
    "confident": ("#0072B2", ""),
    "reviewed": ("#56B4E9", ".."),
    "needs_review": ("#E69F00", "//"),
    "rejected": ("#D55E00", "xx"),
    "no_route": ("#D9D9D9", ""),
}
"""The colour and the hatching of each status, told apart in grey too."""

AREA = re.compile(r"  (\d+\.\d)(?: \((\d+\.\d)–(\d+\.\d)\))?(?: \(–\))?$")
"""How an area stands at the end of a legend's entry, in per cent."""


def status_bar(counts: Mapping[str, int]) -> Figure:
    """Draw how many segments have each status as one bar."""
    figure = Figure(figsize=(8, 1.25), layout="constrained")
    ax = figure.subplots()
    total, left = sum(counts.values()), 0.0
    for status, n in counts.items():
        colour, hatch = LOOKS.get(status, ("#999999", "--"))
        share = 100 * n / total
        ax.barh(0, share, left=left, height=0.8, color=colour, hatch=hatch, edgecolor="white", lw=0.8,
                label=f"{GROUNDED.get(status, status)} {share:.1f} %")  # fmt: skip
        left += share
    ax.set(xlim=(0, 100), yticks=[], xlabel="segments (%)")
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper left", ncols=5, frameon=False, fontsize=8.5)
    return figure


def scatter(profile: Profile, *, channel: str, groups: pl.Series | None) -> Axes:
    """Draw everybody's action sensitivity against effort, with a cross where an estimate has a flag."""
    ax = cohort_scatter(profile, channel=channel, groups=groups)
    eta, theta, k = profile.action_sensitivity, profile[channel], profile.parameters.index(channel)
    shown = np.isfinite(eta) & (eta > 0) & np.isfinite(theta)
    flagged = shown & ((profile.status[:, 0] != OK) | (profile.status[:, k] != OK))
    if flagged.any():
        ax.plot(eta[flagged], theta[flagged], "x", color=INK, ms=7.5, mew=1.0, zorder=6)
        said = f"× something is to be said against η or θ ({flagged.sum():,})"
        ax.annotate(said, (0, 0), xytext=(3, 3), xycoords="axes fraction", textcoords="offset points",
                    ha="left", va="bottom", fontsize=7, color=QUIET)  # fmt: skip
    return ax


def score_bars(found: Classification) -> Figure:
    """Draw the area under the curve and the balanced accuracy of each representation, for two classes."""
    n = len(found.representations) + 0.8 * len(set(found.scores["kind"]))
    drawn = Figure(figsize=(10.5, 1.1 + 0.31 * n), layout="constrained")
    metrics: tuple[Metric, ...] = get_args(Metric)
    for i, (ax, metric) in enumerate(zip(drawn.subplots(1, len(metrics)), metrics, strict=True)):
        classification_bars(found, setting="binary", metric=metric, legend=False, ax=ax)
        ax.tick_params(labelleft=i == 0)
        if metric == "auc":  # the report writes an AUC as 0.93 everywhere
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:.2g}")
            ax.set_xlabel(ax.get_xlabel().replace(" (%)", ""), fontsize=8.5)
    drawn.legend(handles=bar_handles(found), loc="outside upper right", ncols=4, frameon=False, fontsize=8.5)
    return drawn


def roc_panels(found: Classification) -> Figure:
    """Draw the ROC curves of each part, their areas as the report writes them: 0.934 (0.915 to 0.950)."""
    drawn = curve_panels(found, roc_curves)
    for legend in drawn.findobj(Legend):
        legend.set_title(legend.get_title().get_text().replace(" (%)", ""))
        for entry in legend.get_texts():
            entry.set_text(AREA.sub(_area, entry.get_text()))
    return drawn


def _area(found: re.Match[str]) -> str:
    value, low, high = (None if one is None else f"{float(one) / 100:.3f}" for one in found.groups())
    return f"  {value}" if low is None else f"  {value} ({low} to {high})"
