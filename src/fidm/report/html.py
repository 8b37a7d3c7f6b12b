"""A report as one HTML file: styles, scripts, pictures and data inside, and nothing fetched from anywhere.

What people said is in the page as data that only the page's own scripts read, and they put it on the screen
as text. A content-security policy lets those scripts run by their hashes, and no others, and lets the page
ask nobody for anything.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape

from fidm.fit.profile import SENSITIVITY
from fidm.pages.embed import csp_hash, read_asset, script_json
from fidm.report.parts import cell_text

STYLES = ("report.css",)
SCRIPTS = ("charts.js", "links.js", "tables.js", "person.js", "report.js")
"""The report's own files, in the order in which they stand in the page."""


def to_html(report: Mapping[str, Any]) -> str:
    """Return a report's page.

    Parameters
    ----------
    report : mapping
        What :func:`fidm.report.summarize.summarize` gave.
    """
    styles = [read_asset("base.css"), *map(_static, STYLES)]
    scripts = [read_asset("map.js"), *map(_static, SCRIPTS)]
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hashes(styles)}; "
        f"script-src {_hashes(scripts)}; base-uri 'none'; form-action 'none'"
    )
    environment = Environment(
        autoescape=select_autoescape(default=True, default_for_string=True),
        loader=FunctionLoader(_template),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell": cell_text, "json": script_json, "picture": _picture}
    listed = [
        _summary(one, whole) for one, whole in zip(report["shared"]["people"], report["people"], strict=True)
    ]
    return environment.get_template("report.html").render(
        report=report, styles=styles, scripts=scripts, policy=policy, listed=listed
    )


def _hashes(texts: list[str]) -> str:
    return " ".join(csp_hash(text) for text in texts)


def _static(name: str) -> str:
    return files("fidm.report").joinpath("static", name).read_text("utf-8")


def _template(name: str) -> str:
    return files("fidm.report").joinpath("templates", name).read_text("utf-8")


def _picture(svg: str) -> str:
    """A figure as an address that holds all of it."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _summary(listed: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """What a person's line in the list says before it is opened."""
    own = next(one for one in whole["profile"] if one["parameter"] == SENSITIVITY)
    eta = f"η {cell_text(own['estimate'])}"
    if own["low"] is not None or own["high"] is not None:
        eta += f" ({cell_text(own['low'])} to {cell_text(own['high'])})"
    return {**listed, "eta": eta}
