"""A study's report: one plain dict, written as HTML and JSON, each whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fidm
from fidm.defaults import LABEL, NORMAL
from fidm.errors import DataError
from fidm.files import whole_file
from fidm.present import NOT_A_DIAGNOSIS
from fidm.record import plain
from fidm.report.html import to_html
from fidm.report.opening import Opened, ReportOptions, number, open_for_report, read_key, write_key
from fidm.report.people import people_parts, shared_part
from fidm.report.sections_model import (
    classification_section,
    localisation_section,
    parameters_section,
    reliability_section,
)
from fidm.report.sections_study import grounding_section, method_section, overview, task_section
from fidm.types import Progress

KIND = "fidm report"
"""What a report's data begin with, so that nothing else is taken for one."""

SCHEMA = 1
"""The version of the dict's layout."""

RECORDED = ("label", "normal", "classify", "deidentify", "skip_bad", "seed")
"""What a report says of what it was asked for."""


def summarize(opened: Opened, *, chosen: Sequence[str]) -> dict[str, Any]:
    """Return everything a report says, as plain values.

    Parameters
    ----------
    opened : Opened
        The study.
    chosen : sequence of str
        Whose parts, in this order.
    """
    asked, is_deidentified = opened.asked, opened.known.is_deidentified
    settings = {name: getattr(asked, name) for name in RECORDED}
    settings["participants"] = "all" if asked.participants is None else len(chosen)
    sections = [
        overview(opened),
        task_section(opened),
        grounding_section(opened),
        parameters_section(opened),
        reliability_section(opened),
        localisation_section(opened),
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
    skip_bad: bool = False,
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
    skip_bad: bool = False,
    seed: int = 1,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Write the report of a study as one HTML file that opens anywhere, with the same as JSON beside it.

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

    Returns
    -------
    tuple of Path
        What was written.
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
