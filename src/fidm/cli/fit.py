"""``fidm fit STUDY``: from a study folder to a profile of every participant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fidm.cli.shared import Reading, print_json, say_notes
from fidm.defaults import FitOptions
from fidm.present.terminal import page, progress_bar


def fit(
    study: Path,
    *,
    reading: Reading = Reading(),
    options: Annotated[FitOptions, Parameter(name="*")] = FitOptions(),
    json: bool = False,
) -> int:
    """Learn what people share and estimate every participant of a study.

    Writes ``fit.json`` (what people share) and ``profile.parquet`` and ``profile.csv`` (one row per
    participant). Exit code 0: done. 2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    json
        Print a summary as JSON instead of a page.
    """
    from fidm.line import fit_study
    from fidm.present.next import say_next
    from fidm.present.study import show_fitted

    with progress_bar() as bars:
        found = fit_study(
            study, options, task=reading.task, skip_bad=reading.leave_out, on_progress=bars.step
        )
    say_notes(found.notes)
    if json:
        print_json(found.to_dict())
    else:
        console = page()
        show_fitted(found, console, estimated=options.lapse is not None or found.fit.method == "eb")
        say_next(console, study, after="fit", skip=reading.leave_out)
    return 0
