"""``fidm matched``: two kinds of people with the same totals, and what tells them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from matplotlib.figure import Figure
from rich.console import Console

from fidm.cli.opening import Opened, finish, open_study, results_folder
from fidm.errors import count
from fidm.experiments.matched import FEATURES, Matched
from fidm.experiments.matched import matched as run
from fidm.experiments.paper import MATCHED_LARGEST_DIFFERENCE
from fidm.plot.experiments import matched_auc
from fidm.present.terminal import note, page, progress_bar, save_figure, table_of, warn
from fidm.record import to_json, write_result
from fidm.tasks.compile import load_task


def matched(
    *,
    like: Path | None = None,
    task: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    people: int | None = None,
    low: float = 18.0,
    high: float = 30.0,
    repeat: int = 5,
    seed: int = 1,
    population: Literal["random", "pooled"] = "random",
    skip_bad: Annotated[bool, Parameter(negative=())] = False,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Make pairs of people with the same totals and other habits, and see what tells them apart.

    A chooses less sensibly and speaks in the observed segments; B chooses more sensibly and speaks in
    segments merged two by two, with offsets so that both need as much in total. Writes matched.json,
    matched.csv, matched-recovery.csv, matched-differences.csv and matched.png and .pdf. Exit code 0: done.
    2: the study could not be used.

    Parameters
    ----------
    like
        A study folder: the pairs share its people's situations and segments. What people share is learned
        from its training part. Simulated people by default.
    task
        A built-in task or a task file; by default grocery, or those of the study. May be repeated.
    people
        How many people to simulate, by default 400. Not with --like: everybody of the study gives a pair.
    low
        A's action sensitivity.
    high
        B's action sensitivity.
    repeat
        How many times the pairs are drawn.
    seed
        The same seed gives the same numbers.
    population
        random fits what people share with an intercept per person; pooled as if all were one (the paper).
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    out
        Where to write; by default STUDY/results, or fidm-results.
    json
        Print the result as JSON instead of a page.
    """
    opened: Opened | None = None
    with progress_bar(rates=True) as bars:
        if like is not None:
            bars.step("reading", 0, 1)
            opened = open_study(like, task=task, skip_bad=skip_bad)
        tasks = opened.tasks if opened else tuple(load_task(name) for name in task or ("grocery",))
        found = run(
            tasks,
            like=opened.cohort if opened else None,
            learn_from=opened.part(None)[0] if opened else None,
            n=people,
            low=low,
            high=high,
            repeat=repeat,
            seed=seed,
            population=population,
            on_progress=bars.step,
        )
        target = results_folder(out, like)
        written = write_result(found, target)
        pictures = [target / "matched.png", target / "matched.pdf"]
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        matched_auc(found, ax=figure.add_subplot())
        save_figure(figure, pictures)
    if json:
        print(to_json(found))
        return 0
    console = page()
    _show(found, console, is_like=like is not None)
    finish(console, (*written, *pictures), target, opened)
    return 0


def _show(found: Matched, console: Console, *, is_like: bool) -> None:
    settings = found.record.settings
    whose = "of the study's people" if is_like else "of simulated people"
    console.print(
        f"[bold]{count(found.n_pairs, 'pair')} {whose}[/], {count(settings['repeat'], 'repetition')}",
        soft_wrap=True,
    )
    console.print(
        f"A: η = {settings['low']:g}, {found.n_segments:.1f} segments each. "
        f"B: η = {settings['high']:g}, merged to {found.n_merged:.1f} segments. "
        f"Both: {found.n_actions:.0f} choices, and the same totals in expectation.",
        soft_wrap=True,
    )
    rows = [
        [FEATURES[row["features"]], _text(row["auc"]), _text(row["sd"]), _text(row["paper"])]
        for row in found.auc.iter_rows(named=True)
    ]
    console.print(table_of(["telling A from B by", "AUC", "± sd", "paper"], rows))
    console.print(found.sentence, soft_wrap=True, markup=False)
    console.print(
        f"\nLargest standardized difference of raw and per-movement totals: {found.largest_difference:.3f} "
        f"(paper {MATCHED_LARGEST_DIFFERENCE:.3f}); in one repetition {found.largest_single_difference:.3f}",
        soft_wrap=True,
    )
    differences = found.differences
    header = ["B − A in pooled sd", "mean", "largest in one"]
    console.print(
        table_of(
            header,
            [
                [f"{row['channel']}, {FEATURES[row['summary']]}", _signed(row["mean"]), _text(row["largest"])]
                for row in differences.iter_rows(named=True)
            ],
        )
    )
    rows = [
        [
            row["factor"],
            *(_text(row[name]) for name in ("r", "paper_r", "direction", "paper_direction", "difference")),
            _text(row["paper_difference"]),
            _text(row["meant"]),
        ]
        for row in found.recovery.iter_rows(named=True)
    ]
    header = ["recovered", "r", "paper", "B > A", "paper", "B − A", "paper", "true"]
    console.print(table_of(header, rows))
    is_log = found.recovery["factor"].str.starts_with("log_")
    without = found.recovery.filter(~is_log & (found.recovery["left_out"] > 0))
    note(
        console,
        *(
            f"{row['factor']}: {row['left_out']:.1f} of {found.n_pairs:,} pairs on average lack a finite "
            "estimate and are left out of r and B − A"
            for row in without.iter_rows(named=True)
        ),
        f"differences: by chance alone one has a standard error of up to {found.chance_difference:.3f} in a "
        "repetition",
        "as a feature, log η is used; an estimate without a finite maximum gets the farthest finite value",
        "what people share comes from the observed people, not from A and B",
        "estimates are by maximum likelihood",
        "paper: 400 people whose data and map are not public",
    )
    if found.skipped:
        warn(console, f"nothing was observed of {', '.join(found.skipped)}")
    if found.n_left_out:
        warn(
            console,
            f"{count(found.n_left_out, 'participant')} without a choice that counts or a movement: no pair",
        )


def _text(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.3f}" if abs(value) < 10 else f"{value:.2f}"


def _signed(value: float) -> str:
    return f"{value:+.3f}"
