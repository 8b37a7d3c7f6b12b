"""Running a study of published data from its files to its pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fidm.errors import DataError
from fidm.files import whole_file
from fidm.record import write_result
from fidm.types import Progress
from fidm_studies.analysis import Reanalysis, find_study
from fidm_studies.dataset import load, no_progress
from fidm_studies.page import Told, tell, to_html, to_markdown

FIGURES = "figures"
"""The folder of figures in the folder of a study's results."""

LEAST = {"seed": 0, "bootstrap": 20, "workers": 1}
"""The least that a setting may be; of fewer draws no interval can be made."""


def run_study(
    study: str | Reanalysis,
    data: str | Path | None = None,
    *,
    seed: int = 1,
    bootstrap: int | None = None,
    verified: bool = True,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Told:
    """Read a published data set, analyse it, and put what was found into words, tables and figures.

    Parameters
    ----------
    study : str or Reanalysis
        Its name (:func:`fidm_studies.study_names`), or the study itself.
    data : path, optional
        The folder of all data, or of this data set; by default what ``FIDM_DATA`` names.
    seed : int
        The same seed gives the same numbers; 0 or more.
    bootstrap : int, optional
        How many draws intervals are made of, at least 20; by default what the study says.
    verified : bool
        Whether every file must be the published one.
    workers : int, optional
        Threads; by default one per processor. Changes no number.
    on_progress : callable, optional
        Is told what is being done, how much of it is done, and of how much.
    """
    _check({"seed": seed, "bootstrap": bootstrap, "workers": workers})
    known = find_study(study) if isinstance(study, str) else study
    step = on_progress or no_progress
    loaded = load(known.dataset, data, verified=verified, on_progress=step)
    chosen: Mapping[str, Any] = {} if bootstrap is None else {"bootstrap": bootstrap}
    findings = known.analyse(loaded, seed=seed, workers=workers, on_progress=step, **chosen)
    step("drawing", 0, 1)
    told = tell(known, findings, loaded)
    step("drawing", 1, 1)
    return told


def write_study(told: Told, folder: str | Path) -> tuple[Path, ...]:
    """Write a study: its page, its numbers as JSON and CSV, its figures, and Markdown for documentation.

    Parameters
    ----------
    told : Told
        What :func:`run_study` gave.
    folder : path
        Where to; made if need be. Each file is written whole or not at all.

    Returns
    -------
    tuple of Path
        What was written, the page first.
    """
    place, name = Path(folder), told.study.name
    texts = {
        place / f"{name}.html": to_html(told),
        place / f"{name}.md": to_markdown(told),
        **{
            place / FIGURES / f"{figure['id']}.svg": figure["svg"]
            for section in told.sections
            for figure in section["figures"]
        },
    }
    for path, text in texts.items():
        with whole_file(path) as part:
            part.write_text(text, "utf-8")
    return (*texts, *write_result(told, place))


def _check(settings: Mapping[str, int | None]) -> None:
    """Refuse at once what no study can be run with, all of it in one message."""
    wrong = [
        f"{name} is {value}; it must be {LEAST[name]} or more."
        for name, value in settings.items()
        if value is not None and value < LEAST[name]
    ]
    if wrong:
        raise DataError(" ".join(wrong))
