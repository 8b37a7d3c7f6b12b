"""How a report writes numbers: one way, here and in the page's own script (static/charts.js).

Three significant digits with their trailing zeros, whole numbers from 1,000 on, per cent with one decimal,
halves away from zero, a true minus sign, and a dash where there is no number.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

PERCENT = "%"
"""The unit of shares: a cell holds a number from 0 to 1, and the page shows per cent."""

MINUS, DASH, INFINITE = "−", "–", "∞"

ENDLESS = ("no_maximum", "at_edge")
"""The statuses of estimates that are infinite by maximum likelihood."""

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

    Parameters
    ----------
    value, low, high : float or None
        The estimate and its interval; None where there is no finite number.
    status : str
        One of :data:`fidm.fit.profile.STATUSES`.

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


def _fixed(exact: Decimal, places: int) -> Decimal:
    return exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def _significant(exact: Decimal) -> Decimal:
    """The same with three significant digits, as JavaScript's toPrecision rounds."""
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - FIGURES + 1), ROUND_HALF_UP)
    if rounded.adjusted() > exact.adjusted():  # 9.996 is 10.0, and not 10.00
        rounded = rounded.quantize(Decimal(1).scaleb(rounded.adjusted() - FIGURES + 1), ROUND_HALF_UP)
    return rounded
