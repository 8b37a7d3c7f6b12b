"""Pictures of a classification: ROC curves, and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import logit

from fidm.errors import DataError
from fidm.plot.classification import is_known
from fidm.plot.fonts import plain
from fidm.plot.style import quieten
from fidm.study.calibrating import at_prevalence
from fidm.study.classified import Classification, Part, in_words
from fidm.study.wording import PARTS, featured, percent, span


@dataclass(frozen=True, slots=True)
class Look:
    """How a representation is drawn.

    Parameters
    ----------
    colour : str
        Of its line and its points; most are Okabe and Ito's.
    line : str, or an offset with lengths of dashes and gaps
        How its line is broken.
    marker : str
        The shape of its points.
    is_filled : bool
        Whether its points are full; otherwise they are rings.
    """

    colour: str
    line: str | tuple[float, tuple[float, ...]]
    marker: str
    is_filled: bool = True


LOOKS = {
    "score": Look("#222222", (0, (1, 1.6)), "^"),
    "fidm": Look("#0072B2", "-", "o"),
    "score+fidm": Look("#E69F00", (0, (6, 2.2)), "s", is_filled=False),
}
"""How those are drawn that every picture shows: in grey they are dark, middling and light."""


OTHERS = (
    Look("#009E73", (0, (7, 2, 1.5, 2)), "D"),
    Look("#882255", (0, (9, 2, 3, 2)), "v", is_filled=False),
    Look("#56B4E9", (0, (12, 3)), "P"),
    Look("#AA4499", (0, (4, 1.5, 1, 1.5, 1, 1.5)), "D", is_filled=False),
    Look("#D55E00", (0, (3, 3)), "X"),
)
"""How the others are drawn, by their place in the result."""


MOST_CURVES = len(OTHERS)
"""How many curves one panel holds."""


FEWEST_JOINED = 50
"""Calibration of fewer people than this is shown as points: a line between them would be mostly noise."""


def roc_curves(
    result: Classification,
    *,
    part: Part = "cv",
    representations: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw ROC curves, each with its area and interval.

    In cross-validation the curve is that of everybody's predictions in the first repetition, while the area
    is the mean over folds and repetitions, as in the tables; the two need not agree to the last digit.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.study.classifying.classify` gave.
    part : {"cv", "held-out"}
        Whose predictions.
    representations : sequence of str, optional
        Whose curves, at most five; by default the score's, FIDM's and those of both together.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    names = _chosen(result, part, representations, most=3, table=result.roc)
    if ax is None:
        ax = Figure(figsize=(4.6, 4.7), layout="constrained").add_subplot()
    ax.plot([0, 1], [0, 1], color="#aaaaaa", lw=0.9, ls=(0, (2, 2)), zorder=1)
    for name, look in _looks(result, names).items():
        points = result.roc.filter(part=part, representation=name)
        ax.plot(
            points["false_positive_rate"], points["sensitivity"], color=look.colour, ls=look.line, lw=2.0,
            zorder=4 if name == "fidm" else 3, label=_area_words(result, name, part),
        )  # fmt: skip
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    ax.set_xlabel("1 − specificity", fontsize=8.5)
    ax.set_ylabel("sensitivity", fontsize=8.5)
    quieten(ax)
    ax.legend(
        frameon=True, framealpha=0.85, edgecolor="none", fontsize=7.5, loc="lower right", handlelength=3.6,
        title="AUC (%), 95 % interval", title_fontsize=7.5, alignment="left", borderaxespad=0.3,
        labelcolor="black",
    )  # fmt: skip
    _plain_entries(ax)
    is_one_of_many = part == "cv" and result.record.settings.get("repeats") != 1
    said = " (curve: first repetition)" if is_one_of_many else ""
    ax.set_title(_part_words(result, part) + said, fontsize=9.5, loc="left")
    return ax


def calibration_curve(
    result: Classification,
    *,
    part: Part = "cv",
    representations: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw observed against predicted shares of cases, with the spread of predictions below.

    Both are at the prevalence of the training part. Whiskers are 95 % intervals (Wilson). A slope below 1
    means predictions that are too extreme, an intercept above 0 predictions that are too low. Points of fewer
    than 50 people are not joined. The number beside the spread is how many people its highest step has.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.study.classifying.classify` gave.
    part : {"cv", "held-out"}
        Whose predictions.
    representations : sequence of str, optional
        Whose curves, at most five; by default FIDM's and a combination's.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    names = _chosen(result, part, representations, most=2, table=result.calibration)
    if ax is None:
        ax = Figure(figsize=(4.4, 5.0), layout="constrained").add_subplot()
    strip = ax.inset_axes((0.0, 0.0, 1.0, 0.14), sharex=ax)
    ax.plot([0, 1], [0, 1], color="#aaaaaa", lw=0.9, ls=(0, (2, 2)), zorder=1)
    most = 0
    for i, (name, look) in enumerate(_looks(result, names).items()):
        bins = (
            result.calibration.filter(part=part, representation=name).drop_nulls("observed").sort("predicted")
        )
        x = bins["predicted"].to_numpy() + 0.006 * (i - (len(names) - 1) / 2)
        ax.vlines(
            x,
            bins["low"].to_numpy(),
            bins["high"].to_numpy(),
            color=look.colour,
            lw=1.1,
            alpha=0.9,
            zorder=2,
        )
        ax.plot(
            x, bins["observed"].to_numpy(), color=look.colour, lw=1.5, marker=look.marker, ms=5, zorder=3,
            ls=look.line if bins["n"].sum() >= FEWEST_JOINED else "none",
            mfc=look.colour if look.is_filled else "white", mew=1.3,
            label=_calibration_words(result, name, part),
        )  # fmt: skip
        counts, _, _ = strip.hist(
            _at_prevalence(result, name, part), bins=np.linspace(0, 1, 26).tolist(), histtype="step",
            color=look.colour, ls=look.line, lw=1.3,
        )  # fmt: skip
        most = max(most, int(np.max(counts)))
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.22, 1.02), aspect="equal")
    ax.set_xlabel("predicted probability (at the training part's prevalence)", fontsize=8.5)
    ax.set_ylabel("observed share of cases", fontsize=8.5)
    quieten(ax)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.spines["left"].set_bounds(0, 1)
    strip.patch.set_visible(False)
    strip.spines[["top", "right", "bottom"]].set_visible(False)
    strip.xaxis.set_visible(False)
    strip.set(ylim=(0, 1.06 * max(most, 1)), yticks=[most])
    strip.tick_params(labelsize=7.5, length=2.5)
    strip.set_ylabel("people", fontsize=7.5)
    ax.legend(
        frameon=False, fontsize=7.5, loc="lower left", bbox_to_anchor=(0.0, 1.0), handlelength=3.6,
        borderaxespad=0.2, borderpad=0.2,
    )  # fmt: skip
    _plain_entries(ax)
    ax.set_title(_part_words(result, part), fontsize=9.5, loc="left", pad=8 + 12 * len(names))
    return ax


def _plain_entries(ax: Axes) -> None:
    """Names in the legend as they stand: representations may be named after a column of the study."""
    legend = ax.get_legend()
    for text in legend.get_texts() if legend is not None else []:
        plain(text)


def _chosen(
    result: Classification, part: str, names: Sequence[str] | None, *, most: int, table: pl.DataFrame
) -> tuple[str, ...]:
    """The representations to draw: those asked for, or the usual ones."""
    known = set(table.filter(part=part)["representation"])
    if not known and table.height:
        parts = ", ".join(table["part"].unique(maintain_order=True))
        raise DataError(f"There is nothing to draw in the part {part!r}. There are the parts: {parts}.")
    if names is None:
        found = tuple(name for name in featured(result, most=most) if name in known)
    else:
        found = tuple(dict.fromkeys(names))
        if len(found) > MOST_CURVES:
            raise DataError(f"A panel holds {MOST_CURVES} curves, and {len(found)} are asked for.")
    strange = [name for name in found if name not in known]
    if strange or not found:
        what = f"of {', '.join(map(repr, strange))} " if strange else ""
        listed = ", ".join(name for name in result.representations if name in known)
        raise DataError(
            f"There is nothing {what}to draw in the part {part!r}."
            + (f" There are: {listed}." if listed else "")
        )
    return found


def _looks(result: Classification, names: Sequence[str]) -> dict[str, Look]:
    """A look per representation, whatever else is drawn and in whatever order it is asked for."""
    others = [name for name in result.representations if name not in LOOKS]
    found, free = {name: LOOKS[name] for name in names if name in LOOKS}, list(OTHERS)
    for i, name in enumerate(others):
        if name in names:
            own = OTHERS[i % len(OTHERS)]
            found[name] = own if own in free else free[0]  # two that would look the same are told apart
            free.remove(found[name])
    return {name: found[name] for name in names}


def _area_words(result: Classification, name: str, part: Part) -> str:
    row = result.score(name, part=part)
    if row is None:
        return in_words(name)
    return f"{in_words(name)}  {percent(row['value'])} ({span(row['low'], row['high'])})"


def _calibration_words(result: Classification, name: str, part: str) -> str:
    """The name with the slope and the intercept, as far as they are known."""
    rows = result.calibration_summary.filter(part=part, representation=name)
    row = rows.row(0, named=True) if rows.height else {}
    forms = {"slope": ".2f", "intercept": "+.2f"}
    said = [f"{what} {row[what]:{form}}" for what, form in forms.items() if is_known(row.get(what))]
    return f"{in_words(name)}: {', '.join(said).replace('-', '−')}" if said else in_words(name)


def _at_prevalence(result: Classification, name: str, part: str) -> NDArray[np.float64]:
    """People's probabilities as the curve has them: at the prevalence of the training part."""
    given = result.predictions.filter(setting="binary", part=part, representation=name)["probability"]
    healthy, *ill = (counts.get("train", 0) for counts in result.flow.classes.values())
    return at_prevalence(logit(given.to_numpy()), healthy, sum(ill))


def _part_words(result: Classification, part: str) -> str:
    n = result.flow.n("train" if part == "cv" else part)
    return f"{PARTS[part]}, {n:,} people"
