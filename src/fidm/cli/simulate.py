"""``fidm simulate STUDY``: a study of simulated people, with dialogs and the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fidm.cli.shared import (
    Flag,
    print_result,
)
from fidm.errors import DataError
from fidm.present.terminal import aside, page, progress_bar, warn

MIXED = "mixed"


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
    overwrite: Flag = False,
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
        What they speak: yue (Cantonese), zh (Mandarin), en (English), or another language with phrases; see
        fidm list.
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
    from fidm.present.experiments import say_left_out, show_simulated
    from fidm.simulate.talk import SEVEN_FORMATS, formats_here
    from fidm.simulate.twin import simulate_study

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
    with progress_bar() as bars:
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
        print_result(made)
    else:
        show_simulated(made, study, page(), was_asked=dialogs is not None, left_out=left_out)
    return 0
