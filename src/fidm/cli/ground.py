"""``fidm ground``: the dialogs of a study become steps and segments, with everything to lead them back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fidm.cli.shared import (
    print_json,
    say_notes,
)
from fidm.present.terminal import page, progress_bar


def ground_study(
    study: Path,
    *,
    talks: Path | None = None,
    task: str | None = None,
    by: str | None = None,
    language: str | None = None,
    roles: Path | None = None,
    endpoint: str | None = None,
    model: str | None = None,
    samples: int | None = None,
    workers: int | None = None,
    allow_remote: bool = False,
    skip_bad: bool = False,
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Turn the dialogs of a study into steps and segments.

    Dialogs of participants who are excluded are read too; they reach no fit.

    Parameters
    ----------
    study
        The study folder; grounding.toml in it may hold settings.
    talks
        Where the dialogs are; by default the folder talks in the study.
    task
        A built-in task or the path of a task file; by default the one study.toml names.
    by
        Who reads the dialogs: rules, a language model on this machine (llm), the model where rules are unsure
        (hybrid), or a grounder of another package; see fidm list grounders.
    language
        The dialogs' language (see fidm list languages) or a language file; by default each file's own.
    roles
        A file that says which speaker is the participant and which the assessor.
    endpoint
        The address of the language model's server.
    model
        The name of the language model.
    samples
        How many answers to take from the language model; different ones are kept as alternatives.
    workers
        How many dialogs are read at the same time (llm and hybrid).
    allow_remote
        Allow a server on another machine. What participants said then leaves this one.
    skip_bad
        Leave out dialogs that cannot be read, and list what is wrong with them.
    json
        Print the result as JSON.
    """
    from fidm.line import ground_study as run
    from fidm.present.study import show_grounded

    with progress_bar(rates=True) as bars:
        found = run(
            study,
            talks=talks,
            task=task,
            by=by,
            language=language,
            roles=roles,
            endpoint=endpoint,
            model=model,
            samples=samples,
            workers=workers,
            allow_remote=allow_remote,
            skip_bad=skip_bad,
            on_progress=bars.step,
        )
    if found.was_interrupted:
        say_notes(["A replacement of this study's tables was interrupted; they are back as they were."])
    if json:
        print_json(found.to_dict())
    else:
        show_grounded(found, page())
    return 0
