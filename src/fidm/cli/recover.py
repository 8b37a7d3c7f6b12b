"""``fidm recover`` and ``calibrate``: whether parameters come back and intervals hold in studies like one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fidm.cli.shared import Flag, Reading, Writing
from fidm.present.terminal import progress_bar


def recover(
    *,
    like: Path | None = None,
    reading: Reading = Reading(),
    people: int | None = None,
    repeat: int = 10,
    seed: int = 1,
    spread: Literal["study", "paper"] | None = None,
    effort_sd: float | None = None,
    sensitivity_sd: float | None = None,
    missing: float = 0.3,
    noise: float = 2.0,
    method: Literal["both", "eb", "mle"] = "both",
    population: Literal["random", "pooled"] = "random",
    all: Flag = False,
    workers: int | None = None,
    writing: Writing = Writing(),
) -> int:
    """Vary five factors independently, draw data from them, and see which estimates respond to which.

    Writes recover.json, recover.csv (a row per parameter), recover-matrix.csv (a row per cell) and
    recover.png and .pdf. Exit code 0: done. 2: the study could not be used.

    Parameters
    ----------
    like
        A study folder: its task, people and trace lengths are used, and the answer is about them.
    people
        How many people: by default 400, or as many as the study has.
    repeat
        How many times everything is drawn.
    seed
        The same seed gives the same numbers.
    spread
        How much people differ: "study" as much as the study's (the default with --like), "paper" by a fixed
        sd of 0.7 in effort and 0.42 in log η.
    effort_sd
        The sd of θ among people, instead of what --spread says.
    sensitivity_sd
        The sd of log η among people, instead of what --spread says.
    missing
        The share of effort observations removed in the second condition.
    noise
        How many times as noisy effort is in the third condition: dispersions, and the variance of log pauses.
    method
        eb shrinks estimates by what people are like, mle takes each alone; both does both.
    population
        random fits what people share with an intercept per person; pooled as if all were one (the paper).
    all
        Print the matrices of every method and scale; otherwise they are only in the files.
    workers
        Threads; by default one per processor. Changes no number.
    """
    from fidm.experiments.recover import recover as run
    from fidm.present.experiments import show_recovery

    with progress_bar() as bars:
        opened, tasks = reading.open_like(like, bars)
        found = run(
            tasks,
            like=opened.cohort if opened else None,
            learn_from=opened.part()[0] if opened else None,
            channels=opened.channels if opened else None,
            n=people,
            seed=seed,
            repeat=repeat,
            spread=spread,
            effort_sd=effort_sd,
            log_sensitivity_sd=sensitivity_sd,
            missing=missing,
            noise=noise,
            methods=("eb", "mle") if method == "both" else (method,),
            population=population,
            workers=workers,
            on_progress=bars.step,
        )
        written = writing.write(found, like)
    writing.show(found, written, like, opened, lambda page: show_recovery(found, page, all_matrices=all))
    return 0


def calibrate(
    *,
    like: Path | None = None,
    reading: Reading = Reading(),
    people: int | None = None,
    studies: int = 200,
    draws: int = 199,
    seed: int = 1,
    spread: Literal["study", "paper"] | None = None,
    effort_sd: float | None = None,
    sensitivity_sd: float | None = None,
    joint: Flag = False,
    sampled: Flag = False,
    populations: Literal["same", "drawn"] = "same",
    workers: int | None = None,
    writing: Writing = Writing(),
) -> int:
    """Draw studies with known truth, fit them, and see where the truth lies among posterior draws.

    Writes calibrate.json, calibrate.csv (a row per parameter), calibrate-ranks.csv (a row per person) and
    calibrate.png and .pdf. Exit code 0: done. 2: the study could not be used.

    Parameters
    ----------
    like
        A study folder: its task, people and trace lengths are used, and the answer is about them.
    people
        How many people in each study: by default 40, or as many as the study has.
    studies
        How many studies are drawn.
    draws
        How many posterior draws the truth is ranked among; one less than a multiple of 20.
    seed
        The same seed gives the same numbers.
    spread
        How much people differ: "study" as much as the study's (the default with --like), "paper" by a fixed
        sd of 0.7 in effort and 0.42 in log η.
    effort_sd
        The sd of θ among people, instead of what --spread says.
    sensitivity_sd
        The sd of log η among people, instead of what --spread says.
    joint
        Learn a joint prior, as fidm fit --joint does.
    sampled
        Sample the full Bayesian model instead of fitting: seconds to minutes per study (needs fidm[bayes]).
    populations
        Whether what people share is the same in every study, or drawn from the hyperpriors of a fit.
    workers
        Threads; by default one per processor. Changes no number.
    """
    from fidm.experiments.calibrate import calibrate as run
    from fidm.present.experiments import show_calibration

    with progress_bar() as bars:
        opened, tasks = reading.open_like(like, bars)
        found = run(
            tasks,
            like=opened.cohort if opened else None,
            learn_from=opened.part()[0] if opened else None,
            channels=opened.channels if opened else None,
            n=people,
            studies=studies,
            draws=draws,
            seed=seed,
            spread=spread,
            effort_sd=effort_sd,
            log_sensitivity_sd=sensitivity_sd,
            joint=joint,
            sampled=sampled,
            populations=populations,
            workers=workers,
            on_progress=bars.step,
        )
        written = writing.write(found, like)
    writing.show(found, written, like, opened, lambda page: show_calibration(found, page))
    return 0
