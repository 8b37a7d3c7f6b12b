"""``fidm ground``: the dialogs of a study become steps and segments, with everything to lead them back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fidm.cli.shared import print_json, say_notes
from fidm.defaults import GroundOptions
from fidm.present.terminal import page, progress_bar


def ground_study(
    study: Path,
    *,
    options: Annotated[GroundOptions, Parameter(name="*")] = GroundOptions(),
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Turn the dialogs of a study into steps and segments.

    Dialogs of participants who are excluded are read too; they reach no fit.

    Parameters
    ----------
    study
        The study folder; grounding.toml in it may hold settings.
    json
        Print the result as JSON.
    """
    from fidm.line import ground_study as run
    from fidm.present.next import say_next
    from fidm.present.study import show_grounded

    with progress_bar() as bars:
        found = run(study, options, on_progress=bars.step)
    if found.was_interrupted:
        say_notes(["A replacement of this study's tables was interrupted; they are back as they were."])
    if json:
        print_json(found.to_dict())
    else:
        console = page()
        show_grounded(found, console)
        say_next(console, study, after="ground")
    return 0
