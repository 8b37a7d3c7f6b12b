"""How a report writes numbers: one way, here and in the page's own script (static/charts.js).

Three significant digits with their trailing zeros, whole numbers from 1,000 on, per cent with one decimal,
halves away from zero, a true minus sign, and a dash where there is no number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import polars as pl

from fidm.channels import CHANNEL_WORDS, channel_words
from fidm.fit.profile import SENSITIVITY, fewest

DIGITS = 6
"""How many significant digits numbers keep; the page shows three of them, so that none is rounded twice."""

PERCENT = "%"
"""The unit of shares: a cell holds a number from 0 to 1, and the page shows per cent."""

MINUS, DASH, INFINITE = "−", "–", "∞"

ENDLESS = ("no_maximum", "at_edge")
"""The statuses of estimates that are infinite by maximum likelihood."""

FLAGS: Mapping[str, str] = {
    "low_information": "little information",
    "few_observations": "few observations",
    "moves_in_doubt": "most moves in doubt",
    "near_chance": "chance not excluded",
    "at_zero": "no better than chance",
    "at_random": "probably at random",
    "at_edge": "at the edge",
    "no_maximum": "every choice was a best one",
    "alike": "no measurable individual differences",
    "longer_than_learned": "not estimated: far longer segments than learned from",
    "no_observation": "not estimated",
}
"""What a status says against an estimate, in a few words."""

FIGURES = 3
"""How many significant digits are shown."""

WHOLE, HUGE, TINY, LEAST_SHARE = 999.5, 1e15, 1e-4, 0.001
"""Where whole numbers begin and end, below which there is an exponent, and which shares are "< 0.1 %"."""


def number_text(value: float | None) -> str:
    """Return a number as the page shows it.

    Examples
    --------
    >>> number_text(11.9538), number_text(-19.0), number_text(1234.5), number_text(1e-7), number_text(None)
    ('12.0', '−19.0', '1,235', '1.00e−7', '–')
    """
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    sign, exact = (MINUS if value < 0 else ""), Decimal(abs(value))
    if Decimal(WHOLE) <= exact < Decimal(HUGE):
        return f"{sign}{_fixed(exact, 0):,}"
    digits = _significant(exact)
    if Decimal(TINY) <= exact < Decimal(HUGE):
        return f"{sign}{digits:f}"
    power = digits.adjusted()
    return f"{sign}{digits.scaleb(-power):f}e{power}".replace("-", MINUS)


def percent_text(share: float | None) -> str:
    """Return a share in per cent.

    Examples
    --------
    >>> percent_text(0.1234), percent_text(0.0004), percent_text(-0.00001), percent_text(None)
    ('12.3 %', '< 0.1 %', '0.0 %', '–')
    """
    if share is None or not math.isfinite(share):
        return DASH
    if 0 < share < LEAST_SHARE:
        return "< 0.1 %"
    size = _fixed(Decimal(abs(100 * share)), 1)
    return f"{MINUS if share < 0 and size else ''}{size} %"


def cell_text(value: Any, unit: str | None = None) -> str:
    """Return a cell as the page shows it.

    Examples
    --------
    >>> cell_text(0.1234, "%"), cell_text(-1.5), cell_text(12345), cell_text(None), cell_text(True)
    ('12.3 %', '−1.50', '12,345', '–', 'yes')
    """
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and unit == PERCENT:
        return percent_text(value)
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS)
    return number_text(value) if isinstance(value, float) else str(value)


def estimate_text(value: float | None, low: float | None, high: float | None, status: str) -> str:
    """Return an estimate; one without a finite maximum is infinite on the side on which it has no end.

    The numbers are None where they are not finite; ``status`` is one of :data:`fidm.fit.profile.STATUSES`.

    Examples
    --------
    >>> estimate_text(None, 21.0, None, "no_maximum"), estimate_text(None, None, -1.2, "at_edge")
    ('∞', '−∞')
    >>> estimate_text(None, None, None, "no_observation"), estimate_text(35.0, 21.0, 60.0, "no_maximum")
    ('–', '35.0')
    """
    if value is None and status in ENDLESS and (low is None) != (high is None):
        return INFINITE if high is None else MINUS + INFINITE
    return cell_text(value)


def not_estimated(name: str, n: int = 0, why: str = "") -> str:
    """Return why a person has no estimate of a parameter, of what it rests on.

    ``n`` is how many moves or observations there are all the same, ``why`` why there are none, where more is
    known than that.

    Examples
    --------
    >>> not_estimated("action_sensitivity"), not_estimated("duration")
    ('not estimated: no stated moves', 'not estimated: no segments')
    >>> not_estimated("pause"), not_estimated("action_sensitivity", 3)
    ('not estimated: no paused segments', 'not estimated: no choice between better and worse actions')
    """
    if why and not n:
        return f"not estimated: {why}"
    if name != SENSITIVITY:
        return f"not estimated: no {channel_words(name).rests_on}"
    missing = "choice between better and worse actions" if n else "stated moves"
    return f"not estimated: no {missing}"


def flag_text(name: str, status: str, n: int, why: str = "") -> str:
    """Return what is to be said against one person's estimate, in a few words; empty where nothing is.

    That nobody has an estimate is said once for the parameter, and not here.

    Examples
    --------
    >>> flag_text("pause", "no_observation", 0), flag_text("pause", "at_edge", 9)
    ('not estimated: no paused segments', 'at the edge')
    >>> flag_text("pause", "alike", 9), flag_text("action_sensitivity", "no_maximum", 1)
    ('', 'every choice was a best one, few observations')
    """
    if status == "alike":
        return ""
    if status == "no_observation":
        return not_estimated(name, n, why)
    few = FLAGS["few_observations"] if n < fewest(name) and status != "longer_than_learned" else ""
    status = "near_chance" if status == "at_zero" and few else status  # one choice proves nothing
    return ", ".join(dict.fromkeys(said for said in (FLAGS.get(status), few) if said))


def interval_text(low: Any, high: Any, unit: str | None = None) -> str:
    """Return an interval in brackets, empty where it has neither end.

    Examples
    --------
    >>> interval_text(16.8, 27.75), interval_text(21.0, None), interval_text(None, None)
    ('(16.8 to 27.8)', '(from 21.0)', '')
    """
    if low is None and high is None:
        return ""
    if high is None:
        return f"(from {cell_text(low, unit)})"
    if low is None:
        return f"(up to {cell_text(high, unit)})"
    return f"({cell_text(low, unit)} to {cell_text(high, unit)})"


def in_one_way(text: str) -> str:
    """Return a sentence of the package with its numbers written as in all of the report.

    Examples
    --------
    >>> in_one_way("reliability is .83 (.79 to .86), AUC 0.934 [0.915, 0.950]; q_gap needs no η")
    'reliability is 0.83 (0.79 to 0.86), AUC 0.934 (0.915 to 0.950); the gap in Q alone needs no η'
    """
    text = re.sub(r"(?<![\w.])(-?)\.(\d)", r"\g<1>0.\2", text)
    text = re.sub(r"\[(\S+), (\S+)\]", r"(\1 to \2)", text)
    text = re.sub(r"(\d)%", r"\1 %", text)
    text = re.sub(r"(^|[.:] )q_gap\b", r"\1The gap in Q alone", text).replace("q_gap", "the gap in Q alone")
    return re.sub(r"(?<![\w–-])-(?=\d)", MINUS, text)


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter and ends with a full stop."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _fixed(exact: Decimal, places: int) -> Decimal:
    return exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def _significant(exact: Decimal) -> Decimal:
    """The same with three significant digits, as JavaScript's toPrecision rounds."""
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - FIGURES + 1), ROUND_HALF_UP)
    if rounded.adjusted() > exact.adjusted():  # 9.996 is 10.0, and not 10.00
        rounded = rounded.quantize(Decimal(1).scaleb(rounded.adjusted() - FIGURES + 1), ROUND_HALF_UP)
    return rounded


def rounded(value: float | None, *, digits: int = DIGITS) -> float | None:
    """Return a number with so many significant digits; None where it is no finite number.

    Examples
    --------
    >>> rounded(0.12345678), rounded(float("nan")), rounded(-0.0)
    (0.123457, None, 0.0)
    """
    if value is None or not np.isfinite(value):
        return None
    return float(f"{value:.{digits}g}") + 0.0


SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$@^]|:(?=//|\w+:))")
"""Characters that Markdown may take for more than themselves, in the middle of a line."""


def plain_text(text: object) -> str:
    r"""Return text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> from fidm.present.numbers import plain_text
    >>> print(plain_text("major_ncd | *new*"))
    major\_ncd \| \*new\*
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return SPECIAL.sub(r"\\\1", line)


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: int = 1,
    write: Callable[[str], str] = plain_text,
) -> list[str]:
    """Return the lines of a table in Markdown; the first columns are words, the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    cells = (header, rule, *rows)
    return ["", *(f"| {' | '.join(map(write, row))} |" for row in cells), ""]


def cell(row: Mapping[str, Any] | None, name: str = "", *, sign: bool = False) -> str:
    """Return a value and its interval in per cent: "70.4 (61.2–78.3)"; a dash where it is not known."""
    value, low, high = (f"{name}", f"{name}_low", f"{name}_high") if name else ("value", "low", "high")
    if row is None or row[value] is None:
        return DASH
    return f"{percent(row[value], sign=sign)} ({span(row[low], row[high], sign=sign)})"


def rows_of(frame: pl.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of these representations, in their order."""
    return [row for name in names for row in frame.filter(representation=name).iter_rows(named=True)]


def percent(value: float | None, *, sign: bool = False) -> str:
    """Return a share in per cent with one decimal, as the paper prints it; a dash where it is not known.

    Examples
    --------
    >>> from fidm.present.numbers import percent
    >>> percent(0.7039), percent(-0.0002, sign=True), percent(None)
    ('70.4', '−0.0', '–')
    """
    return number(None if value is None else 100 * value, places=1, sign=sign)  # "−0.0" is just below zero


def span(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """Return an interval in per cent: "66.1–74.3"; signed ones as "−1.2 to +4.0".

    Examples
    --------
    >>> from fidm.present.numbers import span
    >>> span(0.661, 0.743), span(-0.012, 0.04, sign=True)
    ('66.1–74.3', '−1.2 to +4.0')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return DASH
    between = " to " if sign else "–"
    return f"{percent(low, sign=sign)}{between}{percent(high, sign=sign)}"


def number(value: float | None, *, places: int = 2, sign: bool = False) -> str:
    """Return a number with a true minus; a dash where it is not known.

    Examples
    --------
    >>> from fidm.present.numbers import number
    >>> number(-0.254), number(0.5, sign=True), number(None)
    ('−0.25', '+0.50', '–')
    """
    if value is None or not math.isfinite(value):
        return DASH
    return f"{value + 0.0:{'+' if sign else ''}.{places}f}".replace("-", MINUS)


def between(low: float | None, high: float | None) -> str:
    """Return an interval as it is: "−0.20 to 0.31"."""
    return DASH if number(low) == DASH or number(high) == DASH else f"{number(low)} to {number(high)}"


RESIDUALS = (
    "A residual of effort is, as in the paper, the logarithm of observed over expected given the moves, 1 "
    "added to counts (for pause presence a difference of probabilities). Those of durations and counts are "
    "relative to the mean, and since speech is skewed a typical segment lies below 0."
)
ONE_SITTING = "Split halves and the model know one sitting: what varies from day to day comes on top."
"""What no reliability from a single episode can say."""

METHODS: Mapping[str, str] = {"eb": "empirical Bayes", "mle": "maximum likelihood"}
"""How people's estimates were made, in words."""

SHORT = {SENSITIVITY: "η", **{name: name.replace("_", " ") for name in CHANNEL_WORDS}}
"""What parameters are called where there is little room, as in tables of the terminal: by their own names."""
