"""A study as sections (what it found, its reproduction checks, whose data they are), as HTML and as Markdown.

The HTML page asks nobody for anything and runs no script. The Markdown is for the documentation: sentences
and tables, none about single people.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

import polars as pl

from fidm.errors import DataError
from fidm.present.numbers import cell_text, number_text, plain_text
from fidm.record import Record
from fidm.report.parts import column, section, table, text_column
from fidm.report.report import hashes, laid_out, report_styles, templates
from fidm_studies.analysis import Expectation, Findings, Reanalysis
from fidm_studies.dataset import Dataset, Loaded

PERSONAL = ("participant", "person", "team", "dialog", "episode", "speaker", "child")
"""A table with a column of such a name is about single people, and stays out of the documentation."""

MOST_ROWS = 40
"""Longer tables stay out as well: they are in the files that a run writes."""


def to_markdown(told: Told) -> str:
    """Return a study's sections as Markdown, from the second level of headings on; figures are left out.

    Parameters
    ----------
    told : Told
        What :func:`fidm_studies.page.tell` gave.
    """
    name = told.study.name
    lines = [
        f"<!-- Written by `fidm studies run {name}`; changes made here are lost. -->",
        "",
        "## The numbers",
        "",
    ]
    for part in told.sections:
        lines += [f"### {plain_text(part['title'])}", ""]
        for text in part["paragraphs"]:
            lines += [plain_text(text), ""]
        for one in part["tables"]:
            lines += _table(one, name)
    lines += ["### Data, licence and citation", ""]
    lines += [f"- {plain_text(term)}: {' '.join(map(_said, said))}" for term, said in told.about]
    return "\n".join(lines).rstrip() + "\n"


def _said(one: Said) -> str:
    text = plain_text(one.text)
    return f"[{text}](<{one.url}>)" if one.url else text


def _table(one: Mapping[str, Any], name: str) -> list[str]:
    """The lines of a table; of one about single people or of many rows, where it can be found."""
    is_personal = any(column["name"] in PERSONAL for column in one["columns"])
    title = plain_text(one["title"])
    if is_personal or len(one["rows"]) > MOST_ROWS:
        where = f"{len(one['rows']):,} rows, in the files that `fidm studies run {name}` writes"
        return [f"**{title}**: {where}.", ""]
    shown = laid_out(one)
    header = [_heading(column) for column in shown["columns"]]
    rule = ["---" if column["align"] == "left" else "---:" for column in shown["columns"]]
    rows = [[_cell(cell) for cell in row] for row in shown["rows"]]
    marks = " ".join(f"{letter}: {plain_text(words)}." for letter, words in shown["marks"])
    note = " ".join(text for text in (plain_text(one["note"]), marks) if text)
    lines = [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
    return [f"**{title}**", "", *lines, "", *([note, ""] if note else [])]


def _heading(column: Mapping[str, Any]) -> str:
    unit = f" ({column['unit']})" if column["unit"] and column["unit"] != "%" else ""
    return plain_text(column["words"] + unit)


def _cell(cell: Mapping[str, str]) -> str:
    mark = f" {cell['mark']}" if cell["mark"] else ""
    return plain_text(" ".join(one for one in (cell["text"], cell["more"]) if one)) + mark


TEMPLATE, STYLE = "study.html", "study.css"


def to_html(told: Told) -> str:
    """Return a study's page: styles and figures inside, and no script at all.

    Parameters
    ----------
    told : Told
        What :func:`fidm_studies.page.tell` gave.
    """
    styles = [*report_styles(), _read(STYLE)]
    policy = (
        f"default-src 'none'; img-src data:; style-src {hashes(styles)}; base-uri 'none'; form-action 'none'"
    )
    page = templates(lambda name: _read(name) if name == TEMPLATE else None).get_template(TEMPLATE)
    return page.render(
        study=told.study,
        sections=told.sections,
        about=told.about,
        is_verified=told.loaded.verified,
        statement=STATEMENT,
        version=told.findings.record.version,
        styles=styles,
        policy=policy,
    )


def _read(name: str) -> str:
    return files("fidm_studies").joinpath("templates", name).read_text("utf-8")


STATEMENT = "Research use only, not a diagnosis."


YES, NO = "✓", "✗"
"""Whether a check was reproduced."""


class Said(NamedTuple):
    """A text, and where it leads to, if anywhere."""

    text: str
    url: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A study that was run, as its pages tell of it; a result that :func:`fidm.record.to_json` understands.

    Parameters
    ----------
    study : Reanalysis
        Which study.
    findings : Findings
        What was found.
    loaded : Loaded
        The data.
    sections : tuple of dict
        The sections of the page, the summary first (:func:`fidm.report.parts.section`).
    about : tuple of (str, tuple of Said)
        Data set, licence, citation, version and settings: a term, and what is said of it.
    """

    study: Reanalysis
    findings: Findings
    loaded: Loaded
    sections: tuple[dict[str, Any], ...] = field(repr=False)
    about: tuple[tuple[str, tuple[Said, ...]], ...] = field(repr=False)

    @property
    def record(self) -> Record:
        """How the findings came about."""
        return self.findings.record

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The tables of the findings by name."""
        return self.findings.tables

    def to_dict(self) -> dict[str, Any]:
        """Return whose data they are, whether the files were the published ones, and the findings."""
        dataset = {**self.loaded.dataset.to_dict(), "verified": self.loaded.verified}
        return {"dataset": dataset, **self.findings.to_dict()}


def tell(study: Reanalysis, findings: Findings, loaded: Loaded) -> Told:
    """Put a study's findings into words, tables and figures; draws the figures.

    Parameters
    ----------
    study : Reanalysis
        Which study.
    findings : Findings
        What its ``analyse`` gave.
    loaded : Loaded
        The data it was given.
    """
    own = study.sections(findings, loaded)
    if not own:
        raise DataError(f"The study {study.name} has no section; the first one is to sum up what was found.")
    for one in own:
        _check(study, one)
    sections = [own[0], *_expected(findings.expectations), *own[1:], *_remarks(findings, loaded)]
    return Told(study, findings, loaded, tuple(sections), tuple(about(loaded, findings)))


def about(loaded: Loaded, findings: Findings) -> list[tuple[str, tuple[Said, ...]]]:
    """Return whose data a study is about, on which terms, and how its numbers came about."""
    record = findings.record
    settings = [f"{name} {_setting(value)}" for name, value in sorted(record.settings.items())]
    facts = [
        *about_data(loaded.dataset),
        ("Files", (Said(files_text(loaded)),)),
        ("Version", (Said(f"fidm {record.version}"),)),
        ("Seed", (Said("none: nothing was drawn" if record.seed is None else str(record.seed)),)),
    ]
    return [*facts, ("Settings", (Said(", ".join(settings)),))] if settings else facts


def about_data(dataset: Dataset) -> list[tuple[str, tuple[Said, ...]]]:
    """Return what a data set is, its licence, whom to cite, and where it is published."""
    homes = {(one.home, one.version): None for one in dataset.sources}
    return [
        ("Data set", (Said(f"{dataset.title}. {dataset.summary}"),)),
        ("People", (Said(dataset.people),)),
        ("Licence", (Said(dataset.licence, web_address(dataset.licence_url)), Said(dataset.terms))),
        ("Cite", tuple(Said(one) for one in dataset.citation)),
        (
            "Published at",
            tuple(Said(f"{home}, version {version[:12]}", web_address(home)) for home, version in homes),
        ),
    ]


def web_address(text: str) -> str:
    """Return an address of the web as it is; anything else leads nowhere, such as a script.

    Examples
    --------
    >>> web_address("https://example.org/data"), web_address("javascript:alert(1)")
    ('https://example.org/data', '')
    """
    return text if re.fullmatch(r"https?://[^\s<>\"']+", text) else ""


def files_text(loaded: Loaded) -> str:
    """Return whether the files were the published ones, as a sentence."""
    if loaded.verified:
        return "Every file has its published checksum."
    return (
        "NOT the files as published: checksums differ, or files are missing, or there are others beside them."
    )


def band_text(expectation: Expectation) -> str:
    """Return the band a number was to lie in, in words.

    Examples
    --------
    >>> from fidm_studies.analysis import Expectation
    >>> band_text(Expectation("r", found=0.9, low=0.87, high=float("inf"), source="published"))
    'at least 0.870'
    >>> band_text(Expectation("n", found=3, low=0, high=0, source="arithmetic"))
    'exactly 0'
    """
    low, high = expectation.low, expectation.high
    if low == high:
        return f"exactly {figure_text(low)}"
    if math.isinf(low) and math.isinf(high):
        return "any number"
    if math.isinf(high):
        return f"at least {figure_text(low)}"
    if math.isinf(low):
        return f"at most {figure_text(high)}"
    return f"{figure_text(low)} to {figure_text(high)}"


def figure_text(value: float) -> str:
    """Return a number that was found: counts whole, others with three digits.

    Examples
    --------
    >>> figure_text(34.0), figure_text(0.8766), figure_text(29250), figure_text(float("nan"))
    ('34', '0.877', '29,250', '–')
    """
    if math.isfinite(value) and value == round(value):
        return cell_text(round(value))
    return number_text(value)


def mark(expectation: Expectation) -> str:
    """Return a tick or a cross."""
    return YES if expectation.reached else NO


def remark(expectation: Expectation) -> str:
    """Return what else is said of a number, first whether it is not required.

    Examples
    --------
    >>> from fidm_studies.analysis import Expectation
    >>> remark(Expectation("r", 0.6, 0.3, 0.5, "published", note="read otherwise", required=False))
    'not required; read otherwise'
    """
    parts = ("" if expectation.required else "not required", expectation.note)
    return "; ".join(part for part in parts if part)


def _expected(expectations: Sequence[Expectation]) -> list[dict[str, Any]]:
    """The section with the reproduction checks; none where nothing was expected."""
    if not expectations:
        return []
    reached = sum(one.reached for one in expectations)
    said = f"{reached:,} of {len(expectations):,} checks were reproduced."
    missed = [
        one.what if one.required else f"{one.what} (not required)" for one in expectations if not one.reached
    ]
    if missed:
        said += f" Not reproduced: {'; '.join(missed)}."
    columns = [
        text_column("check"),
        column("found"),
        column("expected"),
        text_column("reproduced"),
        text_column("source"),
        text_column("remark"),
    ]
    rows = [
        (one.what, figure_text(one.found), band_text(one), mark(one), one.source, remark(one))
        for one in expectations
    ]
    shown = table("expected", "Found and expected numbers", columns, rows)
    return [section("expected", "Reproduction checks", [said], tables=[shown])]


def _remarks(findings: Findings, loaded: Loaded) -> list[dict[str, Any]]:
    notes = dict.fromkeys((*loaded.notes, *findings.notes))
    return [section("remarks", "Data notes", notes)] if notes else []


def _setting(value: Any) -> str:
    if isinstance(value, str | int | float) or value is None:
        return str(value)
    if isinstance(value, list | tuple) and all(isinstance(one, str | int | float) for one in value):
        return "[" + ", ".join(map(str, value)) + "]"
    return "(see the JSON file)"


def _check(study: Reanalysis, one: dict[str, Any]) -> None:
    """Every figure has its table, in the same section."""
    tables = {table["id"] for table in one["tables"]}
    for figure in one["figures"]:
        if figure["table"] not in tables:
            raise DataError(
                f"The figure {figure['id']} in the section {one['id']} of the study {study.name} names the "
                f"table {figure['table']}, which is not in that section."
            )
