"""A study of published data as one HTML page, which asks nobody for anything and runs no script.

A study's numbers as Markdown, for the documentation: sentences and tables, none about single people.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fidm.present.numbers import plain_text
from fidm.report.html import hashes, laid_out, report_styles, templates
from fidm_studies.telling import STATEMENT, Said, Told

PERSONAL = ("participant", "person", "team", "dialog", "episode", "speaker", "child")
"""A table with a column of such a name is about single people, and stays out of the documentation."""

MOST_ROWS = 40
"""Longer tables stay out as well: they are in the files that a run writes."""


def to_markdown(told: Told) -> str:
    """Return a study's sections as Markdown, from the second level of headings on; figures are left out.

    Parameters
    ----------
    told : Told
        What :func:`fidm_studies.telling.tell` gave.
    """
    name = told.study.name
    lines = [
        f"<!-- Written by `fidm studies run {name}`; changes made here are lost. -->",
        "",
        "## The numbers",
        "",
    ]
    for section in told.sections:
        lines += [f"### {plain_text(section['title'])}", ""]
        for text in section["paragraphs"]:
            lines += [plain_text(text), ""]
        for one in section["tables"]:
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
        What :func:`fidm_studies.telling.tell` gave.
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
