"""``fidm simulate STUDY``: a study of simulated people, with dialogs and the truth."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from fidm.errors import DataError, count
from fidm.io.columns import say_reasons
from fidm.present.terminal import aside, note, page, progress_bar, table_of, warn
from fidm.record import to_json
from fidm.simulate.talk import SEVEN_FORMATS
from fidm.simulate.twin import MOST_DIALOGS, TALKS, TRUTH, SimulatedStudy, simulate_study

MIXED = "mixed"
CALIBRATED = "grocery"
"""The task on which simulated people resemble published figures."""

NEEDS = {"chat": "rustling", "elan": "rustling", "srt": "rustling", "vtt": "webvtt"}
"""The formats that need a package of the extra ``speech``."""

TITLES = {"chat": "CHAT", "elan": "ELAN", "textgrid": "TextGrid", "vtt": "WebVTT", "srt": "SRT",
          "whisper": "Whisper JSON", "csv": "CSV"}  # fmt: skip

WHAT_TRUTH_IS = (
    "true_characters, true_turns, … are what was drawn. Talk cannot be shorter than its words, so with "
    "dialogs people differ somewhat less than that; and θ of a fit is relative to the mean of the people it "
    "was learned from."
)


def simulate(
    study: Path,
    *,
    task: str = "grocery",
    people: int = 402,
    seed: int = 1,
    agent: Literal["walker", "model"] = "walker",
    language: str = "yue",
    formats: str = MIXED,
    dialogs: bool | None = None,
    overwrite: Annotated[bool, Parameter(negative=())] = False,
    json: bool = False,
) -> int:
    """Write a study of simulated people: a public twin of the paper's, with dialogs and the truth.

    Exit code 0: done. 2: it could not be written.

    Parameters
    ----------
    study
        The folder to write; it must be new or empty.
    task
        A built-in task or a task file.
    people
        How many; of 402, two do not complete, 332 are to learn from and 68 to test. Other numbers likewise.
    seed
        The same seed gives the same study.
    agent
        walker: people who shop as people do. model: people who choose exactly as the model says.
    language
        What they speak: yue (Cantonese) or en (English).
    formats
        The dialogs' formats: mixed, or some of chat, elan, textgrid, vtt, srt, whisper, csv, with commas.
        Mixed are all of these that can be written here; some need the extra "speech" to be installed.
    dialogs
        Write dialogs; by default for at most 5,000 people, since each is a file of its own, and where formats
        are named.
    overwrite
        Replace an earlier simulated study, with everything in its folder.
    json
        Print the result as JSON instead of a page.
    """
    if people < 1:
        raise DataError(f"--people is {people}; there must be somebody to simulate.")
    chosen = tuple(name.strip() for name in formats.split(",") if name.strip())
    if not chosen:
        raise DataError(f"--formats names none. Say {MIXED}, or some of {', '.join(SEVEN_FORMATS)}.")
    if chosen != (MIXED,) and dialogs is False:
        raise DataError("--formats is for dialogs, and --no-dialogs asks for none.")
    if chosen != (MIXED,):
        dialogs = True
    here = formats_here() if chosen == (MIXED,) else chosen
    with progress_bar(rates=True) as bars:
        made = simulate_study(
            study,
            task=task,
            n=people,
            seed=seed,
            agent=agent,
            language=language,
            formats=here,
            dialogs=dialogs,
            overwrite=overwrite,
            on_progress=bars.step,
        )
    left_out = say_left_out(here) if chosen == (MIXED,) and made.dialogs else ""
    if json:
        if left_out:
            warn(aside(), left_out)
        print(to_json(made))
    else:
        _show(made, study, page(), was_asked=dialogs is not None, left_out=left_out)
    return 0


def formats_here() -> tuple[str, ...]:
    """Return those of the seven formats that can be written with the packages that are installed."""
    return tuple(name for name in SEVEN_FORMATS if name not in NEEDS or importlib.util.find_spec(NEEDS[name]))


def say_left_out(written: Sequence[str]) -> str:
    """Return which of the seven formats could not be written, as a sentence; empty if all could."""
    lost = [TITLES[name] for name in SEVEN_FORMATS if name not in written]
    if not lost:
        return ""
    named = _listed([TITLES[name] for name in written])
    return f"Written as {named} only: pip install 'fidm[speech]' adds {_listed(lost)}."


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _show(made: SimulatedStudy, study: Path, console: Console, *, was_asked: bool, left_out: str) -> None:
    settings = made.record.settings
    task = ", ".join(made.record.tasks)
    n, is_walker = int(settings["people"]), settings["agent"] == "walker"
    one, more = ("acts as people do", "act as people do") if is_walker else (
        "chooses as the model says", "choose as the model says")  # fmt: skip
    console.print(
        Text.assemble(
            (count(n, "simulated participant"), "bold"),
            f" who {one if n == 1 else more}, on {task}, seed {made.record.seed}",
        ),
        soft_wrap=True,
    )
    rows = [
        (row["diagnosis"], f"{row['train']:,}", f"{row['test']:,}", f"{row['train'] + row['test']:,}",
         f"{(row['train'] + row['test']) / max(1, made.n_people):.1%}")
        for row in made.counts.iter_rows(named=True)
    ]  # fmt: skip
    both = [int(made.counts[name].sum()) for name in ("train", "test")]
    rows.append(("all", f"{both[0]:,}", f"{both[1]:,}", f"{sum(both):,}", ""))
    console.print(table_of(("diagnosis", "train", "test", "all", "share"), rows))
    if made.reasons:
        console.print(Text(say_reasons(made.reasons)), soft_wrap=True)
    each = max(1, made.n_people)
    console.print(
        f"{made.n_actions / each:,.1f} actions and {made.n_segments / each:,.1f} segments per participant"
    )
    if made.dialogs:
        listed = ", ".join(f"{name} {n:,}" for name, n in made.dialogs.items())
        n_dialogs = sum(made.dialogs.values())
        said = f"{count(n_dialogs, 'dialog')} in {TALKS}/ ({settings['language']}): {listed}"
        console.print(Text(said), soft_wrap=True)
        if left_out:
            warn(console, left_out)
    else:
        why = "" if was_asked else f": of more than {MOST_DIALOGS:,} people only with --dialogs"
        console.print(Text(f"no dialogs{why}"), soft_wrap=True)
    known = ", calibrated to published figures" if CALIBRATED in made.record.tasks else ""
    note(
        console,
        f"Simulated people{known}; not data about anybody.",
        f"True parameters are in {TRUTH}/, and not among the participants' columns.",
        *([WHAT_TRUTH_IS] if made.dialogs else []),
    )
    console.print(f"\nWrote {study}. What next:", soft_wrap=True, markup=False)
    steps = [("fidm fit", "a profile of every participant")]
    if made.dialogs:
        steps.append(("fidm ground", "read the dialogs instead of taking what was truly done"))
    steps.append(("fidm evidence", "where in a trace the numbers come from"))
    steps.append(("fidm classify", "how well status is told from it"))
    for verb, what in steps:
        console.print(Text(f"  {verb} {study}".ljust(34) + f"  {what}"), soft_wrap=True)
    console.print("Research use only, not a diagnosis.", style="dim")
