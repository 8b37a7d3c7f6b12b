"""The ``fidm`` command: finds the verb, runs it, and turns errors into sentences."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated

from cyclopts import App, Group, Parameter
from rich.text import Text

import fidm
from fidm.errors import DataError, FidmError, command_line
from fidm.present.terminal import aside

ERROR = 2
"""The exit code for input that cannot be used; 1 means the answer is no."""

CLOSED_PIPE, INTERRUPTED = 141, 130
"""The exit codes a shell gives for these."""

STUDIES = "Analyse published data sets of real people: list, show, download, verify, run."

app = App(
    name="fidm",
    help="How a person decides, and what it costs them, from what they say and do. "
    "Research use only, not a diagnosis. Everything runs on this machine.",
    version=fidm.__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # main() gives the code
)
VERBS = {
    "Start here": {
        "start": ("start:start", "Look at a folder of dialogs, and make a study of it."),
        "demo": ("run:demo", "Simulate a study, take it through the whole line, and write its report."),
        "run": ("run:run", "Take a study from its dialogs or tables to its report; resume a run."),
        "simulate": ("simulate:simulate", "Write a study of simulated people, with dialogs and the truth."),
    },
    "Tasks": {
        "check": ("task:check", "Check whether a task can be used, and what to change if not."),
        "task list": ("task:list_tasks", "List the built-in tasks."),
        "task copy": ("task:copy", "Copy a built-in task to a file of your own."),
        "task show": ("task:show", "Draw a task's map and the value of each place."),
    },
    "A study, step by step": {
        "transcribe": ("transcribe:transcribe", "Transcribe recordings with a recogniser on this machine."),
        "ground": ("ground:ground_study", "Turn the dialogs of a study into steps and segments."),
        "ground learn": ("ground:learn", "Propose words that the rules lack, from what reviewers decided."),
        "review": ("review:review", "Open the local page where a person checks and corrects groundings."),
        "audit sample": ("audit:sample", "Write the sheet for a manual audit."),
        "audit score": ("audit:score", "Read a judged sheet back."),
        "audit verify": ("audit:verify", "Check that no decision of a review was changed or removed."),
        "audit agreement": ("audit:agreement", "Report how far reviewers agree, and what audits found."),
        "fit": ("fit:fit", "Fit the model and write one profile per participant."),
        "evidence": ("evidence:evidence", "Show the actions, segments and words behind a profile."),
        "report": ("report:report", "Write the whole study as one page that opens without a network."),
    },
    "Experiments": {
        "compare": ("compare:compare", "Compare groups of participants, adjusted for age and the like."),
        "compare-models": (
            "compare_models:compare_models",
            "Compare accounts of how people choose on held-out choices.",
        ),
        "localize": ("evidence:localize", "Test whether unexpected actions lie where people went astray."),
        "reliability": (
            "reliability:reliability",
            "Estimate reliability and the smallest detectable change.",
        ),
        "learning": ("learning:learning", "Estimate how decisions change over blocks of trials."),
        "recover": ("recover:recover", "Simulate how well each parameter would be recovered."),
        "calibrate": ("recover:calibrate", "Simulate whether intervals hold what they promise."),
        "matched": ("matched:matched", "Distinguish people whose totals are alike, as in the paper."),
        "select": ("task:select", "Choose move cost and temperature of a task by cross-validation."),
        "classify": ("classify:classify", "Measure how well scores, words and the model distinguish people."),
    },
    "More": {
        "list": (
            "list:list_names",
            "List channels, action models, formats, grounders, transcribers, languages, tasks, data sets.",
        ),
        "doctor": ("list:doctor", "Check what this machine has, and what to install."),
    },
}
"""Every verb: where its function is, and what it does; one of two words belongs to a group of verbs, or to
the verb before it."""

PARENTS = {
    "task": ("Tasks", "Look at tasks: list the built-in ones, show one, copy one to start your own."),
    "audit": ("A study, step by step", "Judge groundings by hand, score the verdicts, check the trail."),
}

GROUPS = {name: Group.create_ordered(name) for name in VERBS}

for _name, (_group, _help) in PARENTS.items():
    app.command(App(name=_name, help=_help, group=GROUPS[_group]))
for _group, _verbs in VERBS.items():
    for _words, (_place, _help) in _verbs.items():
        *_parent, _name = _words.split()
        if _parent:
            app[_parent[0]].command(f"fidm.cli.{_place}", name=_name, help=_help)
        else:
            app.command(f"fidm.cli.{_place}", name=_name, help=_help, group=GROUPS[_group])
app.command(
    "fidm.cli.list:install_completion",
    name="--install-completion",
    help="Let the shell complete verbs and options: bash, zsh, fish.",
    group=GROUPS["More"],
)


def no_studies(*words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> int:
    """Say what to install.

    Parameters
    ----------
    words
        What follows; it is not looked at.
    """
    raise DataError("Published data sets are analysed by a package of their own: pip install fidm-studies")


if find_spec("fidm_studies"):
    app.command("fidm_studies.verb:app", name="studies", help=STUDIES, group=GROUPS["More"])
else:
    app.command(no_studies, name="studies", help=STUDIES, group=GROUPS["More"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ✓ or η shows ? instead
            stream.reconfigure(errors="replace")
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # a letter lacking is said by fidm
    try:
        with command_line():
            code = app(list(sys.argv[1:] if arguments is None else arguments))
    except FidmError as error:
        aside().print(Text.assemble(("Error: ", "bold red"), str(error)), soft_wrap=True)
        return ERROR
    except BrokenPipeError:  # whoever reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except OSError as error:
        what = f"{error.filename} cannot be read or" if error.filename else "the output cannot be"
        aside().print(Text(f"Error: {what} written: {error.strerror}."), soft_wrap=True)
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    return int(code or 0)


def run() -> None:
    """Enter from the console script."""
    sys.exit(main())
