"""A study of published data as one HTML page, which asks nobody for anything and runs no script."""

from __future__ import annotations

from importlib.resources import files

from fidm.reanalyses.told import STATEMENT, Told
from fidm.report.html import hashes, report_styles, templates

TEMPLATE, STYLE = "study.html", "study.css"


def to_html(told: Told) -> str:
    """Return a study's page: styles and figures inside, and no script at all.

    Parameters
    ----------
    told : Told
        What :func:`fidm.reanalyses.told.tell` gave.
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
    return files("fidm.reanalyses").joinpath("templates", name).read_text("utf-8")
