"""``fidm ground``: the dialogs of a study become steps and segments, or who reads them is measured.

``fidm ground learn`` proposes words that the rules lacked. A study folder of that name is ``./learn``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fidm.cli.shared import Flag, print_json, say_notes
from fidm.defaults import GroundOptions
from fidm.present.terminal import page, progress_bar


def ground_study(
    study: Path,
    *,
    options: Annotated[GroundOptions, Parameter(name="*")] = GroundOptions(),
    evaluate: Path | None = None,
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Turn the dialogs of a study into steps and segments.

    Dialogs of participants who are excluded are read too; they reach no fit.

    Parameters
    ----------
    study
        The study folder; grounding.toml in it may hold settings.
    evaluate
        Change nothing, and measure who reads on segments whose meaning is known: a judged sheet of fidm audit
        sample with corrected programs, or a .jsonl file of phrasings.
    json
        Print the result as JSON.
    """
    from fidm.line import evaluate_grounder
    from fidm.line import ground_study as run
    from fidm.present.next import say_next
    from fidm.present.study import show_evaluation, show_grounded

    if evaluate is not None:
        with progress_bar() as bars:
            measured = evaluate_grounder(study, evaluate, options, on_progress=bars.step)
        if json:
            print_json(measured.to_dict())
        else:
            show_evaluation(measured, page())
        return 0
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


def learn(
    study: Path,
    *,
    out: Path | None = None,
    replace: Flag = False,
    least: int = 2,
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Propose words that the rules lack, from what reviewers decided.

    The proposals are written into a file of the study. None is in force until a person accepts it there and
    grounding.toml names the file. The phrases are what participants said: the file stays in the study.

    Parameters
    ----------
    study
        A grounded study of which segments were reviewed; a folder called learn is ./learn.
    out
        The file, in the study; by default words-proposed.toml.
    replace
        Replace a file that is there, with all that was accepted in it.
    least
        From how many reviewed segments a word is learned.
    json
        Print the numbers as JSON, without the phrases.
    """
    from fidm.folder import require_grounded
    from fidm.grounding.review.learn import learn_words, write_proposals
    from fidm.present.study import show_learned

    require_grounded(study)
    with progress_bar() as bars:
        found = learn_words(study, least=least, on_progress=bars.step)
    path = write_proposals(found, study, path=out, replace=replace) if found.proposals else None
    if json:
        print_json({**found.to_dict(), "wrote": [str(path)] if path else []})
    else:
        show_learned(found, path, page())
    return 0
