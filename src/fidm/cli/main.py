"""The ``fidm`` command: finds the verb, runs it, and turns errors into sentences."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

import fidm
from fidm.errors import DataError, FidmError
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
)
task_app = App(
    name="task", help="Look at tasks: list the built-in ones, show one, copy one to start your own."
)
audit_app = App(
    name="audit", help="Judge groundings by hand, score the verdicts, and check the trail of decisions."
)
app.command(task_app)
app.command(audit_app)
app.command("fidm.cli.task:check", help="Say whether a task can be used, and what to change if not.")
app.command(
    "fidm.cli.demo:demo", help="Simulate a study, read its dialogs, profile everybody, and write the report."
)
app.command(
    "fidm.cli.simulate:simulate", help="Write a whole study of simulated people, with dialogs and the truth."
)
app.command(
    "fidm.cli.evidence:evidence", help="Say which actions and segments a profile rests on, down to the words."
)
app.command(
    "fidm.cli.list:list_names",
    name="list",
    help="List channels, formats, grounders, languages, tasks and data sets by name.",
)
app.command(
    "fidm.cli.localize:localize",
    help="Test whether unexpected actions are where people go astray or pass by.",
)
app.command(
    "fidm.cli.recover:recover", help="Say how well each parameter would come back from data like a study's."
)
app.command("fidm.cli.matched:matched", help="Tell apart people whose totals are alike, as in the paper.")
app.command(
    "fidm.cli.classify:classify",
    help="Say how well scores, words and the model tell people's status, alone and together.",
)
app.command("fidm.cli.select:select", help="Choose move cost and temperature of a task by cross-validation.")
app.command(
    "fidm.cli.reliability:reliability",
    help="Say how reliable each parameter is, and which change is more than error.",
)
app.command("fidm.cli.run:run", help="Take a study from its dialogs or tables to its report; resume a run.")
app.command("fidm.cli.fit:fit", help="Learn what people share and estimate every participant of a study.")
app.command(
    "fidm.cli.ground:ground_study", name="ground", help="Turn the dialogs of a study into steps and segments."
)
app.command(
    "fidm.cli.review:review", help="Open the local page where a person checks and corrects groundings."
)
app.command("fidm.cli.report:report", help="Write the whole study as one page that opens without a network.")
audit_app.command("fidm.cli.audit:sample", help="Write the sheet for a manual audit.")
audit_app.command("fidm.cli.audit:score", help="Read a judged sheet back.")
audit_app.command("fidm.cli.audit:verify", help="Check that no decision of a review was changed or removed.")
audit_app.command("fidm.cli.audit:agreement", help="Say how far reviewers agree, and what audits found.")
task_app.command("fidm.cli.task:list_tasks", name="list", help="List the built-in tasks.")
task_app.command("fidm.cli.task:copy", help="Copy a built-in task to a file of your own.")
task_app.command("fidm.cli.task:show", help="Draw a task's map and the value of each place.")


def no_studies(*words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> int:
    """Say what to install.

    Parameters
    ----------
    words
        What follows; it is not looked at.
    """
    raise DataError("Published data sets are analysed by a package of their own: pip install fidm-studies")


if find_spec("fidm_studies"):
    app.command("fidm_studies.verb:app", name="studies", help=STUDIES)
else:
    app.command(no_studies, name="studies", help=STUDIES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ✓ or η shows ? instead
            stream.reconfigure(errors="replace")
    try:
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
