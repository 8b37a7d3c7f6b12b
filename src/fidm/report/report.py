"""A study's report: one plain dict, written as HTML and JSON, each whole or not at all.

The page is one file: styles, scripts, pictures and data inside, and nothing fetched from anywhere. What
people said is in it as data that only its own scripts read, and they put it on the screen as text. A
content-security policy lets those scripts run by their hashes, and no others, and lets the page ask nobody
for anything.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape

import fidm
from fidm.defaults import LABEL, NORMAL
from fidm.errors import DataError, count
from fidm.files import whole_file
from fidm.fit.profile import SENSITIVITY
from fidm.pages import csp_hash, read_asset, script_json
from fidm.present import NOT_A_DIAGNOSIS
from fidm.present.numbers import DASH, FLAGS, cell_text, estimate_text, flag_text, interval_text
from fidm.record import plain
from fidm.report.opening import Opened, ReportOptions, number, open_for_report, read_key, write_key
from fidm.report.parts import FEW, FLAG, HIGH, LOW
from fidm.report.people import people_parts, shared_part
from fidm.report.sections_model import (
    classification_section,
    groups_section,
    learning_section,
    localisation_section,
    models_section,
    parameters_section,
    reliability_section,
)
from fidm.report.sections_study import grounding_section, method_section, overview, task_section
from fidm.types import Progress, SkipBad

KIND = "fidm report"
"""What a report's data begin with, so that nothing else is taken for one."""

SCHEMA = 1
"""The version of the dict's layout."""

RECORDED = ("label", "normal", "classify", "deidentify", "skip_bad", "seed")
"""What a report says of what it was asked for."""


def summarize(opened: Opened, *, chosen: Sequence[str]) -> dict[str, Any]:
    """Return everything a report says, as plain values, with the parts of these people in this order."""
    asked, is_deidentified = opened.asked, opened.known.is_deidentified
    settings = {name: getattr(asked, name) for name in RECORDED}
    settings["participants"] = "all" if asked.participants is None else len(chosen)
    has_words = opened.known.has_speech or opened.provenance
    has_maps = any(task.has_places for task in opened.known.tasks)
    sections = [
        overview(opened),
        task_section(opened),
        *([grounding_section(opened)] if has_words else []),
        parameters_section(opened),
        models_section(opened),
        *learning_section(opened),
        reliability_section(opened),
        groups_section(opened),
        *([localisation_section(opened)] if has_words or has_maps else []),
        classification_section(opened),
        method_section(opened, settings=settings),
    ]
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "fidm_version": fidm.__version__,
        "title": f"Report of {'a study' if is_deidentified else opened.folder.resolve().name}",
        "statement": NOT_A_DIAGNOSIS,
        "deidentified": is_deidentified,
        "sections": sections,
        "shared": shared_part(opened.known, chosen=chosen),
        "people": list(people_parts(opened.known, chosen=chosen, on_progress=asked.on_progress)),
    }


NAME, DEIDENTIFIED = "report.html", "report-deidentified.html"
"""What a report is called in its study."""

BEGINNING = 8192
"""In how many bytes at its beginning a file says what it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A report in memory.

    Parameters
    ----------
    data : dict
        Everything it says, as plain values.
    html : str
        The page.
    is_deidentified : bool
        Whether it leads back to nobody.
    names : mapping of str to str
        Who is called what in a de-identified report; belongs into a key file, and nowhere else.
    """

    data: dict[str, Any] = field(repr=False)
    html: str = field(repr=False)
    is_deidentified: bool = False
    names: Mapping[str, str] = field(default_factory=dict, repr=False)

    def about(self) -> dict[str, Any]:
        """Return the sections without pictures, for programs; nothing of single people."""
        sections = [
            {
                **one,
                "tables": [table for table in one["tables"] if table["id"] != "estimates"],
                "figures": [{key: drawn[key] for key in drawn if key != "svg"} for drawn in one["figures"]],
            }
            for one in self.data["sections"]
        ]
        return {
            "n_people": len(self.data["people"]),
            "deidentified": self.is_deidentified,
            "sections": sections,
        }

    def write(self, path: str | Path) -> tuple[Path, Path]:
        """Write the page, and the same as JSON beside it; return both paths.

        A report that holds what was said can be read by its owner alone.

        Parameters
        ----------
        path : path
            The page, such as ``report.html``.
        """
        page = Path(path)
        beside = targets(page)
        mode = None if self.is_deidentified else 0o600
        text = json.dumps(plain(self.data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        try:
            for target, content in ((page, self.html), (beside, text + "\n")):
                with whole_file(target, mode=mode) as part:
                    part.write_text(content, "utf-8", errors="replace")
        except OSError as error:
            why = error.strerror or "is the disk full?"
            raise DataError(f"cannot be written: {why}.", source=str(page)) from None
        return page, beside


def targets(page: Path, *, key: Path | None = None) -> Path:
    """Return where the data of a page go, or raise if anything would be written over that is no report's.

    Parameters
    ----------
    page : Path
        The page, such as ``report.html``. Its name must be a page's.
    key : Path, optional
        The key file; it can be neither the page nor its data, and if it is there it must be a key.
    """
    if page.suffix.lower() not in (".html", ".htm"):
        raise DataError("is no name of a page; it must end in .html.", source=str(page))
    beside = page.with_suffix(".json")
    if key is not None:
        if key.resolve() in (page.resolve(), beside.resolve()):
            raise DataError("cannot be the key and the report at once. Choose another name.", source=str(key))
        if key.exists():
            read_key(key)
    for path, is_ours in ((page, _is_page), (beside, _is_data)):
        try:
            with path.open("rb") as file:
                beginning = file.read(BEGINNING)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}.", source=str(path)) from None
        if not is_ours(beginning):
            raise DataError("is there already and is no report. Choose another name.", source=str(path))
    return beside


def _is_page(beginning: bytes) -> bool:
    return b'<meta name="generator" content="fidm ' in beginning


def _is_data(beginning: bytes) -> bool:
    return beginning.startswith(f'{{"kind":"{KIND}"'.encode())


def build_report(
    study: str | Path,
    *,
    task: Sequence[str] = (),
    use: str | Path | None = None,
    label: str = LABEL,
    normal: str = NORMAL,
    participants: Sequence[str] | None = None,
    classify: bool = True,
    deidentify: bool = False,
    key: str | Path | None = None,
    skip_bad: SkipBad = False,
    seed: int = 1,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """Make the report of a study, and write nothing.

    Parameters
    ----------
    study : path
        The study folder.
    task : sequence of str
        Built-in tasks or task files; by default those that study.toml names.
    use : path, optional
        A fit.json with what people share; by default the study's own, or else learned now.
    label, normal : str
        The participants' column with their status, and the status of healthy people.
    participants : sequence of str, optional
        Whose parts to show; everybody's by default. The numbers about the cohort are about everybody.
    classify : bool
        Whether people's status is classified, if the column is there.
    deidentify : bool
        Leave out what was said, ids, covariates other than status and split, and names of files.
    key : path, optional
        A file that says who is called what in a de-identified report: used if it is there. It is not written
        here but by :func:`write_report`.
    skip_bad : bool
        Leave out people whose data have problems, instead of refusing the study.
    seed : int
        The same seed gives the same numbers; in a de-identified report with the same key, since people are
        drawn and dealt out in the order of their names.
    workers : int, optional
        Threads or processes; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.
    """
    asked = ReportOptions(
        task=task,
        use=None if use is None else Path(use),
        label=label,
        normal=normal,
        participants=participants,
        classify=classify,
        deidentify=deidentify,
        key=None if key is None else Path(key),
        skip_bad=skip_bad,
        seed=seed,
        workers=workers,
        on_progress=on_progress,
    )
    opened = open_for_report(Path(study), asked)
    data = summarize(opened, chosen=_chosen(opened))
    if on_progress:
        on_progress("page", 0, 1)
    return Report(data, to_html(data), deidentify, opened.names)


def _chosen(opened: Opened) -> list[str]:
    """Whose parts are shown; the order is never one that could tell who somebody is."""
    asked, everybody = opened.asked, opened.known.cohort.ids.to_list()
    chosen = everybody
    if asked.participants is not None:
        chosen = [opened.names.get(name, name) if asked.deidentify else name for name in asked.participants]
        known = set(everybody)
        strange = [name for name, own in zip(asked.participants, chosen, strict=True) if own not in known]
        if strange:
            raise DataError(
                f"There is no participant {strange[0]!r} among the {len(everybody):,} people of the report."
            )
        chosen = list(dict.fromkeys(chosen))
    if asked.deidentify:  # the order of the new names, and not that in which somebody was asked for
        chosen.sort(key=number)
    return chosen


def write_report(
    study: str | Path,
    path: str | Path | None = None,
    *,
    task: Sequence[str] = (),
    use: str | Path | None = None,
    label: str = LABEL,
    normal: str = NORMAL,
    participants: Sequence[str] | None = None,
    classify: bool = True,
    deidentify: bool = False,
    key: str | Path | None = None,
    skip_bad: SkipBad = False,
    seed: int = 1,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Write the report of a study as one HTML file that opens anywhere, with the same as JSON beside it.

    The paths of what was written come back.

    Parameters
    ----------
    study : path
        The study folder.
    path : path, optional
        The page; by default ``report.html`` in the study, or ``report-deidentified.html``.
    key : path, optional
        Where to keep who is called what in a de-identified report; if it is there already, people keep their
        names. Without one, nobody can tell later, and another report has other names.
    task, use, label, normal, participants, classify, deidentify, skip_bad, seed, workers, on_progress
        As in :func:`build_report`.
    """
    target = Path(path) if path is not None else Path(study) / (DEIDENTIFIED if deidentify else NAME)
    targets(target, key=None if key is None else Path(key))
    found = build_report(
        study,
        task=task,
        use=use,
        label=label,
        normal=normal,
        participants=participants,
        classify=classify,
        deidentify=deidentify,
        key=key,
        skip_bad=skip_bad,
        seed=seed,
        workers=workers,
        on_progress=on_progress,
    )
    if key is not None:  # first, so that no report is there whose names nobody knows
        write_key(Path(key), found.names)
        return (*found.write(target), Path(key))
    return found.write(target)


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
    """Return the page of a report that :func:`summarize` gave."""
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
    :mod:`fidm.report.parts` makes; with ``whole=true`` the first cell of a row is never cut. ``more`` gives
    the text of another page's own template by its name, or None.
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

    ``table`` is what :func:`fidm.report.parts.table` gave; a column with ``within`` has no place of its own.
    What comes back has ``columns``, ``rows`` of cells (``text``, ``more`` for the interval, ``mark`` for the
    remarks), and ``marks``: what each mark means.
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
