"""``fidm fit STUDY``: from a study folder to a profile of every participant."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fidm.cli.shared import (
    Reading,
    print_json,
    say_notes,
)
from fidm.defaults import MAX_PEOPLE
from fidm.errors import DataError
from fidm.present.terminal import page, progress_bar


def fit(
    study: Path,
    *,
    reading: Reading = Reading(),
    method: Literal["eb", "mle"] = "eb",
    population: Literal["random", "pooled"] = "random",
    joint: bool = False,
    lapse: str | None = None,
    inferred: float | None = None,
    draws: int = 0,
    seed: int = 1,
    split: str | None = None,
    use: Path | None = None,
    max_people: int = MAX_PEOPLE,
    workers: int | None = None,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Learn what people share and estimate every participant of a study.

    Writes ``fit.json`` (what people share) and ``profile.parquet`` and ``profile.csv`` (one row per
    participant). Exit code 0: done. 2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    method
        eb shrinks every estimate by what people are like; mle takes each alone, as in the paper.
    population
        random fits what people share with an intercept per person; pooled as if all were one (the paper).
    joint
        Learn one prior over all parameters together.
    lapse
        The share of choices made at random: a number, or "estimate". By default eb estimates it, mle takes 0.
    inferred
        How much a move counts that a planner filled in (column "inferred" of the steps): from 0, the default,
        which leaves such moves out, to 1, like any other. Where there are such moves, the sensitivity is also
        estimated the other way: with all moves, or with 1 without the inferred ones.
    draws
        Average over so many sampled groundings of the dialogs, so that intervals carry the grounding's doubt.
        0 takes the most probable grounding, with moves in doubt left out.
    seed
        The same seed gives the same draws.
    split
        Learn from the participants with this value of "split"; by default from "train" where there is a
        split, else from everybody. "all" learns from everybody. Everybody is profiled.
    use
        A fit.json to profile people with, instead of learning from this study.
    max_people
        Learn from at most so many participants.
    workers
        Threads; by default one per processor. Changes no number.
    out
        Where to write; by default into the study folder.
    json
        Print a summary as JSON instead of a page.
    """
    from fidm.line import fit_study
    from fidm.present.study import show_fitted

    with progress_bar() as bars:
        found = fit_study(
            study,
            task=reading.task,
            method=method,
            population=population,
            joint=joint,
            lapse=_lapse(lapse),
            inferred=inferred,
            draws=draws,
            seed=seed,
            split=split,
            use=use,
            skip_bad=reading.skip_bad,
            max_people=max_people,
            workers=workers,
            out=out,
            on_progress=bars.step,
        )
    say_notes(found.notes)
    if json:
        print_json(found.to_dict())
    else:
        show_fitted(found, page(), estimated=lapse is not None or found.fit.method == "eb")
    return 0


def _lapse(text: str | None) -> float | Literal["estimate"] | None:
    if text is None:
        return None
    if text == "estimate":
        return "estimate"
    try:
        return float(text)
    except ValueError:
        raise DataError(f"--lapse is {text!r}; it must be a number or 'estimate'.") from None
