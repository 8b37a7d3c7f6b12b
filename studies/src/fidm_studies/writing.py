"""A study's page from a template: Python computes and chooses, the template has the words.

A template is Markdown with Jinja in it. Sections are headings of the second level, tables those of the third;
what stands below a table is its note. The last line of a table says which columns of the data frame its cells
hold, an interval as ``value (low to high)``::

    ## Summary [#found]

    {{ n }} people were {{ pace | say(above="slower", below="faster", unsure="about as fast") }} ({{ r }}).

    ### Times by group [#times]

    | group | typical time (s)     |
    | ----- | -------------------: |
    | group | median (low to high) |

    Times are medians.

    ![A mark with its interval per group.](times "Times by group")

A figure belongs to the table of its own name, or else to the one above it. Values are written in one way, by
what they are: counts with commas, other numbers with three digits, a row with ``value``, ``low`` and ``high``
as a number with its interval.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import polars as pl
from jinja2 import Environment, StrictUndefined
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fidm.errors import DataError
from fidm.present.numbers import cell_text, number, number_text, percent_text
from fidm.report import parts
from fidm_studies.analysis import Findings

Row = Mapping[str, Any]
"""A row of a table of findings."""

T = TypeVar("T")

ABOVE, BELOW, UNSURE = "above", "below", "unsure"
"""Where an interval lies: on one side of a number, or on neither."""

HEADING = re.compile(r"(##|###) (.+) \[#([\w-]+)\]")
FIGURE = re.compile(r'!\[(.+)\]\(([\w-]+) "(.+)"\)')
CELL = re.compile(r"(\S+)(?: \((\S+) to (\S+)\))?")


def write_sections(
    template: str,
    findings: Findings,
    *,
    chosen: Mapping[str, Any] | None = None,
    tables: Mapping[str, pl.DataFrame] | None = None,
    figures: Mapping[str, Figure | Axes] | None = None,
) -> list[dict[str, Any]]:
    """Return the sections of a study's page, as :mod:`fidm.report.parts` has them.

    Parameters
    ----------
    template : str
        Its words; :func:`read_template` reads them from a file.
    findings : Findings
        The template sees its ``numbers`` by their names, its ``settings`` and its ``seed``.
    chosen : mapping, optional
        What else it sees: rows, counts, and words such as "above" that decide between sentences.
    tables : mapping of str to DataFrame, optional
        The tables it shows, besides those of the findings.
    figures : mapping of str to Figure or Axes, optional
        The figures it shows; each must stand in it.
    """
    frames, drawn = {**findings.tables, **(tables or {})}, dict(figures or {})
    record = findings.record
    about = {"settings": record.settings, "seed": str(record.seed)}
    text = _environment().from_string(template).render({**findings.numbers, **about, **(chosen or {})})
    sections: list[dict[str, Any]] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        line = one_line(block)
        heading, picture = HEADING.fullmatch(line), FIGURE.fullmatch(line)
        if heading and heading[1] == "##":
            sections.append(parts.section(heading[3], heading[2]))
        elif not sections:
            raise DataError("The template does not begin with a heading such as: ## Summary [#found]")
        elif heading:
            table = (heading[3], heading[2])
        elif line.startswith("|"):
            frame = _given(frames, table[0], "table")
            sections[-1]["tables"].append(parts.table_of(*table, _columns(block, table[0]), frame))
        elif picture:
            alt, name, title = picture.groups()
            known = [one["id"] for one in sections[-1]["tables"]]
            below = name if name in known else known[-1] if known else ""
            drawing = _given(drawn, name, "figure")
            sections[-1]["figures"].append(parts.figure(name, title, drawing, alt=alt, table=below))
        elif sections[-1]["tables"]:
            last = sections[-1]["tables"][-1]
            last["note"] = f"{last['note']} {line}".strip()
        elif line:
            sections[-1]["paragraphs"].append(line)
    missing = sorted(set(drawn) - {one["id"] for section in sections for one in section["figures"]})
    if missing:
        raise DataError(f"The template has no place for the figures: {', '.join(missing)}.")
    return sections


def read_template(package: str, name: str = "page.md.jinja") -> str:
    """Return the template of a study, a file of its package."""
    return files(package).joinpath(name).read_text("utf-8")


def one_line(text: str) -> str:
    r"""Return a paragraph on one line, without spaces that only set words and tags of a template apart.

    Examples
    --------
    >>> one_line("It is ( 3 of 4 )\n  not sure ; see below .")
    'It is (3 of 4) not sure; see below.'
    """
    text = re.sub(r"[ \n]+", " ", text).strip()
    return re.sub(r"(?<=\() | (?=[,.;:)](?:[ ,.;:)]|$))", "", text)


def side(row: Row, at: float, name: str = "value") -> str:
    """Return whether an interval lies above a number, below it, or on neither side.

    Examples
    --------
    >>> side({"low": 0.6, "high": 0.9}, 0.5), side({"r_low": -0.3, "r_high": 0.1}, 0.0, "r")
    ('above', 'unsure')
    """
    low, high = _ends(row, name)
    if low is None or high is None:
        return UNSURE
    return ABOVE if low > at else BELOW if high < at else UNSURE


def one_row(frame: pl.DataFrame, **keys: Any) -> dict[str, Any]:
    """Return the one row with these values."""
    return frame.filter(**keys).row(0, named=True)


# ---------------------------------------------------------------------- how values are written


def interval_text(row: Row, name: str = "value") -> str:
    """Return a number of a row and its interval, where it has one.

    Examples
    --------
    >>> interval_text({"value": 0.8936, "low": 0.8203, "high": 0.9340})
    '0.894 (0.820 to 0.934)'
    """
    if row[name] is None:
        return "an unknown value"
    low, high = _ends(row, name)
    if low is None or low != low:
        return number_text(row[name])
    return f"{number_text(row[name])} ({number_text(low)} to {number_text(high)})"


def _ends(row: Row, name: str) -> tuple[float | None, float | None]:
    """The ends of the interval of a number: ``NAME_low`` and ``NAME_high``, or else ``low`` and ``high``."""
    low, high = (f"{name}_{end}" if f"{name}_{end}" in row else end for end in ("low", "high"))
    return row[low], row[high]


def _places(value: float | None, places: int, sign: bool = False) -> str:
    return number(value, places=places, sign=sign)


def _say(verdict: str, **words: str) -> str:
    return words[verdict]


def _written(value: Any) -> Any:
    """A value as the page has it, by what it is."""
    if isinstance(value, Mapping):
        return interval_text(value)
    if value is None or isinstance(value, float):
        return number_text(value)
    return cell_text(value) if isinstance(value, int) else value


@cache
def _environment() -> Environment:
    found = Environment(  # the text is escaped where it becomes HTML or Markdown
        undefined=StrictUndefined,
        finalize=_written,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701
    )
    found.filters |= {
        "interval": interval_text,
        "percent": percent_text,
        "places": _places,
        "plain": "{:g}".format,
        "say": _say,
    }
    return found


# ---------------------------------------------------------------------- parts of a template


def _columns(block: str, name: str) -> list[dict[str, Any]]:
    """The columns of a table: its header, how they are set, and which columns of the frame they are."""
    lines = [
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.strip().split("\n")
    ]
    if len(lines) != 3 or len({len(line) for line in lines}) > 1:
        raise DataError(f"The table {name} of the template needs a header, a rule and one line of columns.")
    found: list[dict[str, Any]] = []
    for words, rule, cell in zip(*lines, strict=True):
        held = CELL.fullmatch(cell)
        if held is None:
            raise DataError(f"The table {name} of the template has a cell that names no column: {cell}")
        align = "right" if rule.endswith(":") else "left"
        if held[2]:
            found += parts.with_interval(held[1], words, low=held[2], high=held[3])
        else:
            found.append(parts.column(held[1], words, align=align))
    return found


def _given(known: Mapping[str, T], name: str, what: str) -> T:
    if name not in known:
        raise DataError(f"The template shows the {what} {name}, which is not there.")
    return known[name]
