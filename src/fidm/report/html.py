"""A report as one HTML file: styles, scripts, pictures and data inside, and nothing fetched from anywhere.

What people said is in the page as data that only the page's own scripts read, and they put it on the screen
as text. A content-security policy lets those scripts run by their hashes, and no others, and lets the page
ask nobody for anything.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape

from fidm.errors import count
from fidm.fit.profile import SENSITIVITY
from fidm.pages import csp_hash, read_asset, script_json
from fidm.present.numbers import DASH, FLAGS, cell_text, estimate_text, flag_text, interval_text
from fidm.report.parts import FEW, FLAG, HIGH, LOW

STYLES = ("report.css",)
SCRIPTS = ("charts.js", "links.js", "tables.js", "person.js", "report.js")
"""The report's own files, in the order in which they stand in the page."""

SMALL_PT, WIDE_PT = 6 * 72, 9.5 * 72
"""Up to which width, in points, figures stand side by side on paper, and on a wide screen."""

LONGEST, LONG_WORD = 60, 24
"""How many characters of the first cell of a row are shown, and from how many on a word is broken."""

MARKS = "abcdefghijkl"
"""The letters that stand for what is to be said against an estimate."""


def to_html(report: Mapping[str, Any]) -> str:
    """Return a report's page.

    Parameters
    ----------
    report : mapping
        What :func:`fidm.report.report.summarize` gave.
    """
    styles = report_styles()
    scripts = [read_asset("map.js"), *(_file("static", name) for name in SCRIPTS)]
    policy = (
        f"default-src 'none'; img-src data:; style-src {hashes(styles)}; "
        f"script-src {hashes(scripts)}; base-uri 'none'; form-action 'none'"
    )
    listed = [
        _summary(one, whole) for one, whole in zip(report["shared"]["people"], report["people"], strict=True)
    ]
    return (
        templates()
        .get_template("report.html")
        .render(report=report, styles=styles, scripts=scripts, policy=policy, listed=listed)
    )


def templates(more: Callable[[str], str | None] | None = None) -> Environment:
    """Return what fills in templates: the report's, and before them those of another page.

    ``parts.html`` has the macros ``show_table`` and ``show_sections``, which show what
    :mod:`fidm.report.parts` makes; with ``whole=true`` the first cell of a row is never cut.

    Parameters
    ----------
    more : callable, optional
        Gives the text of another page's own template by its name, or None.
    """

    def text_of(name: str) -> str:
        own = more(name) if more is not None else None
        return own if own is not None else _file("templates", name)

    environment = Environment(
        autoescape=select_autoescape(default=True, default_for_string=True),
        loader=FunctionLoader(text_of),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "json": script_json,
        "cut": cut,
        "is_long": is_long,
        "laid_out": laid_out,
        "picture": _picture,
        "size": _size,
    }
    return environment


def report_styles() -> list[str]:
    """Return the style sheets of a report."""
    return [read_asset("base.css"), *(_file("static", name) for name in STYLES)]


def hashes(texts: Sequence[str]) -> str:
    """Return the hashes by which a content-security policy allows these scripts or styles."""
    return " ".join(csp_hash(text) for text in texts)


def _file(folder: str, name: str) -> str:
    return files("fidm.report").joinpath(folder, name).read_text("utf-8")


def _picture(svg: str) -> str:
    """A figure as an address that holds all of it."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _size(svg: str) -> str:
    """Whether a figure can have another beside it: a small one always, a large one on a wide screen."""
    width = re.match(r'<svg [^>]*?\bwidth="([\d.]+)pt"', svg)
    if width is None or float(width[1]) > WIDE_PT:
        return "wide"
    return "small" if float(width[1]) <= SMALL_PT else "large"


def cut(text: str) -> str:
    """Return a text that fits in a table's cell, cut where it is very long.

    Examples
    --------
    >>> len(cut("x" * 900)), cut("P001")
    (60, 'P001')
    """
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def is_long(text: str) -> bool:
    """Return whether a text has so long a word that it must be broken within it.

    Examples
    --------
    >>> is_long("x" * 900), is_long("a remark of many words, all of them short")
    (True, False)
    """
    return any(len(word) > LONG_WORD for word in text.split())


def laid_out(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as the page shows it: an interval and a remark stand in the cell of their number.

    Parameters
    ----------
    table : mapping
        What :func:`fidm.report.parts.table` gave. A column with ``within`` has no place of its own.

    Returns
    -------
    dict
        ``columns``, ``rows`` of cells (``text``, ``more`` for the interval, ``mark`` for the remarks), and
        ``marks``: what each mark means.
    """
    columns = table["columns"]
    shown = [i for i, one in enumerate(columns) if not one.get("within")]
    parts: dict[str, dict[str, int]] = {}

    def flags(row: Sequence[Any], own: Mapping[str, int]) -> list[str]:
        few = "few_observations" if FEW in own and row[own[FEW]] else None
        said = (row[own[FLAG]], few) if FLAG in own else ()
        return [flag for flag in dict.fromkeys(said) if flag in FLAGS]

    for i, one in enumerate(columns):
        if one.get("within"):
            parts.setdefault(one["within"], {})[one["role"]] = i
    of = [parts.get(columns[i]["name"], {}) for i in shown]
    found = {flag for row in table["rows"] for own in of for flag in flags(row, own)}
    marks = dict(zip((one for one in FLAGS if one in found), MARKS, strict=False))

    def cell(row: Sequence[Any], i: int, own: Mapping[str, int]) -> dict[str, str]:
        unit = columns[i]["unit"]
        more = interval_text(row[own[LOW]], row[own[HIGH]], unit) if LOW in own else ""
        text = cell_text(row[i], unit)
        if FLAG in own and LOW in own:
            text = estimate_text(row[i], row[own[LOW]], row[own[HIGH]], row[own[FLAG]])
        is_bare = text == DASH and more
        mark = ",".join(sorted(marks[flag] for flag in flags(row, own)))
        return {"text": "" if is_bare else text, "more": more, "mark": mark}

    return {
        "columns": [columns[i] for i in shown],
        "rows": [[cell(row, i, own) for i, own in zip(shown, of, strict=True)] for row in table["rows"]],
        "marks": [(letter, FLAGS[flag]) for flag, letter in marks.items()],
    }


def _summary(listed: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """What a person's line in the list says before it is opened.

    What is to be said against η stands there; remarks on effort are counted, since most people have some.
    """
    own = next(one for one in whole["profile"] if one["parameter"] == SENSITIVITY)
    value = estimate_text(own["estimate"], own["low"], own["high"], own["status"])
    eta = "" if value == DASH else f"η {value} {interval_text(own['low'], own['high'])}".strip()
    flag = flag_text(SENSITIVITY, own["status"], own["n"])
    if own["status"] == "no_observation" and own["said"]:
        flag = own["said"][0].lower() + own["said"][1:].rstrip(".")
    others = sum(one["status"] not in ("ok", "alike") for one in whole["profile"] if one is not own)
    return {
        **listed,
        "eta": eta,
        "flag": flag,
        "others": count(others, "remark") + " on effort" if others else "",
    }
