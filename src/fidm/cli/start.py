"""``fidm start``: what lies in a folder of dialogs, shown before anything is written, and its study."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.prompt import Confirm, Prompt
from rich.text import Text

from fidm.cli.shared import print_json
from fidm.errors import count, few
from fidm.present.terminal import note, page, printable, progress_bar, state, table_of, warn

if TYPE_CHECKING:
    from rich.console import Console

    from fidm.grounding.intake import Intake

NOT_READY = 1
"""The exit code where something is left to be said or repaired."""

MOST_FILES = 20
"""Of so many files the speakers are shown one by one; of all with ``--json``."""


def start(
    folder: Path,
    *,
    study: Path | None = None,
    task: str | None = None,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative=())] = False,
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Look at a folder of dialogs, show what is in it, and make a study of it.

    Finds the dialogs and their formats, who speaks in them and who the participant is, the language, the
    task that the words are about, and the table of participants. Then writes study.toml and grounding.toml,
    with comments, and roles.csv where roles differ between files. No file that is there is changed. Exit
    code 0: fidm run can follow. 1: something must be said or repaired first. 2: there is nothing to use.

    Parameters
    ----------
    folder
        Where the dialogs are, however deep, and perhaps a table of participants.
    study
        Where to make the study; by default the folder itself, or the folder study in it where the dialogs
        have no folder of their own.
    task
        The built-in task or task file; by default found by the words.
    yes
        Ask nothing, and write what was found.
    json
        Print what was found as JSON. Writes only with --yes.
    """
    from fidm.grounding.intake import look_at

    with progress_bar() as bars:
        found = look_at(folder, study=study, task=task, on_progress=bars.step)
    asks = not yes and not json and sys.stdin.isatty()
    if json:
        written = found.write() if yes else []
        print_json({**found.to_dict(), "written": [str(path) for path in written]})
        return NOT_READY if found.questions() else 0
    console = page()
    show(found, console)
    if asks:
        found = _ask(found, console)
    if not found.task:
        warn(console, *found.questions())
        state(console, "Nothing was written.")
        return NOT_READY
    if not yes and not (asks and Confirm.ask(f"\nWrite the study to {found.study}?", default=True)):
        warn(console, *found.questions())
        state(console, "", "Nothing was written. To write it: add --yes")
        return NOT_READY
    written = found.write()
    there = "Its files were there already, and stay as they are"
    said = f"Wrote {', '.join(path.name for path in written)} to {found.study}" if written else there
    console.print(f"\n{said}", soft_wrap=True, markup=False)
    open_questions = found.questions()
    warn(console, *open_questions)
    state(
        console,
        f"Next: fidm run {found.study}{_group(found)}" if not open_questions else "Then: " + _then(found),
    )
    return NOT_READY if open_questions else 0


def _then(found: Intake) -> str:
    return f"fidm run {found.study}"


def _group(found: Intake) -> str:
    """The option that names the groups, where one column tells them and it is not the default."""
    from fidm.defaults import LABEL, NORMAL

    groups = {} if found.people is None else found.people.groups
    if not groups or LABEL in groups:
        return ""
    usual = [name for name in groups if name.strip().casefold() in GROUP_NAMES]
    if len(usual) != 1:
        return ""
    healthy = [one for one in groups[usual[0]] if one.strip().casefold() in HEALTHY]
    also = f" --normal {_shell(healthy[0])}" if len(healthy) == 1 and healthy[0] != NORMAL else ""
    return f" --label {_shell(usual[0])}{also}"


GROUP_NAMES = ("group", "diagnosis", "status", "dx", "condition", "cohort", "arm")
HEALTHY = ("normal", "control", "controls", "healthy", "hc", "nc", "cn", "con", "ctrl", "healthy control")


def _shell(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _ask(found: Intake, console: Console) -> Intake:
    """Ask what only the user can say; an empty answer leaves it open."""
    from dataclasses import replace

    from fidm.tasks.spec import builtin_tasks

    def answer(question: str, choices: list[str]) -> str:
        known = printable(f"{question} ({', '.join(choices)}; Enter leaves it open)")
        return Prompt.ask(
            Text(known),
            choices=[*choices, ""],
            default="",
            console=console,
            show_choices=False,
            show_default=False,
        )

    if not found.task:
        found = replace(found, task=answer("Which task?", list(builtin_tasks())))

    def agrees(question: str) -> bool:
        return Confirm.ask(Text(printable(question)), default=False, console=console)

    off = [file.name for file in found.files if file.is_off_task]
    if off and agrees(f"In {few(off)} the participant hardly speaks of the way. Leave that out?"):
        found = found.without(off)
    single = [file for file in found.files if file.is_undiarised and file.is_unclear]
    names = few(file.name for file in single)
    if single and agrees(f"Speakers are not told apart in {names}. Does nobody but the participant speak?"):
        found = found.answered({file.name: file.speakers[0].name for file in single})
    said = {}
    for file in found.files:
        if file.is_unclear and not file.is_undiarised:
            speakers = [one.name for one in file.speakers if one.name]
            said[file.name] = answer(f"Who is the participant in {file.name}?", speakers)
    said = {name: who for name, who in said.items() if who}
    return found.answered(said) if said else found


def show(found: Intake, console: Console) -> None:
    """Print what was found."""
    written_as, spoken = (
        ", ".join(f"{name} {n:,}" for name, n in Counter(some).most_common())
        for some in ([file.format for file in found.files], [file.language for file in found.files])
    )
    console.print(f"[bold]{count(len(found.files), 'file')}[/] of dialogs in {found.talks}", soft_wrap=True)
    state(console, f"formats:  {written_as}", f"language: {spoken}")
    console.print(_by_file(found) if len(found.files) <= MOST_FILES else _by_speaker(found))
    fits = sorted(((fit, name) for name, fit in found.fits.items() if fit), reverse=True)
    named = ", ".join(f"{name} {fit:.0%}" for fit, name in fits)
    known = f"of the unusual words, so many are places of: {named}" if named else "no places of a known task"
    state(console, f"task: {found.task or 'not clear'} ({known})")
    if found.people is None:
        state(console, "participants: no table of them was found; fidm works without one")
    else:
        first, *others = found.people.say(len(found.ids))
        state(console, f"participants: {first}")
        note(console, *others)
        for name, values in found.people.groups.items():
            note(console, f"groups may be told by {name}: {', '.join(values)}")
    facts = Counter(name for one in found.dialogs for name in one.about)
    if facts:
        told = ", ".join(f"{name} ({n:,})" for name, n in facts.items())
        note(console, f"the files themselves say of participants: {told}")
    warn(console, *found.warnings())
    kinds = found.bad.group_by("table", "problem", "hint", maintain_order=True).len()
    for row in kinds.head(MOST_FILES).iter_rows(named=True):
        times = f" ({row['len']:,} times)" if row["len"] > 1 else ""
        warn(console, f"{row['table']}: {row['problem']}{times} {row['hint']}".strip())
    if kinds.height > MOST_FILES:
        warn(console, f"{kinds.height - MOST_FILES:,} more problems; all with --json")


HEADER = ("speaker", "role", "turns", "words", "minutes", "of the way")


def _by_file(found: Intake) -> object:
    """A table of everybody who speaks in each file; what is the same in all files is not repeated."""
    told = {"file": "name", "format": "format", "language": "language"}
    told = {
        title: name
        for title, name in told.items()
        if name == "name" or len({getattr(file, name) for file in found.files}) > 1
    }
    rows = [
        [
            *("" if i else getattr(file, name) for name in told.values()),
            *(one.name or "(no name)", one.role or "?", f"{one.turns:,}", f"{one.words:,}"),
            *(f"{one.seconds / 60:,.1f}", f"{one.way_words:,}"),
        ]
        for file in found.files
        for i, one in enumerate(file.speakers)
    ]
    return table_of([*told, *HEADER], rows, left=len(told) + 2)


def _by_speaker(found: Intake) -> object:
    """A table of speakers by name and role, in how many files, and how much they say."""
    by_name: dict[tuple[str, str], list[float]] = {}
    for file in found.files:
        for one in file.speakers:
            row = by_name.setdefault((one.name or "(no name)", one.role or "?"), [0, 0, 0.0, 0, 0])
            for i, n in enumerate((one.turns, one.words, one.seconds / 60, one.way_words, 1)):
                row[i] += n
    largest = sorted(by_name.items(), key=lambda pair: -pair[1][-1])
    rows = [
        [name, role, f"{turns:,.0f}", f"{words:,.0f}", f"{minutes:,.1f}", f"{way:,.0f}", f"{n:,.0f}"]
        for (name, role), (turns, words, minutes, way, n) in largest[:MOST_FILES]
    ]
    if len(largest) > MOST_FILES:
        rows.append([f"and {len(largest) - MOST_FILES:,} more", *[""] * len(HEADER)])
    return table_of([*HEADER, "files"], rows, left=2)
