"""``fidm recover``: how well would each parameter come back, with a study's people and trace lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from fidm.cli.opening import Opened, finish, open_study, results_folder
from fidm.experiments.paper import RECOVERY_DIAGONAL
from fidm.experiments.recover import Recovery, as_printed
from fidm.experiments.recover import recover as run
from fidm.plot.experiments import SHORT
from fidm.plot.experiments import recovery as draw
from fidm.present.terminal import count, note, page, progress_bar, save_figure, table_of, warn
from fidm.record import to_json, write_result
from fidm.tasks.compile import load_task

HOW = {"eb": "empirical Bayes", "mle": "maximum likelihood"}


def recover(
    *,
    like: Path | None = None,
    task: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    people: int | None = None,
    repeat: int = 10,
    seed: int = 1,
    spread: Literal["study", "paper"] | None = None,
    effort_sd: float | None = None,
    sensitivity_sd: float | None = None,
    missing: float = 0.3,
    noise: float = 2.0,
    method: Literal["both", "eb", "mle"] = "both",
    all: Annotated[bool, Parameter(negative=())] = False,
    skip_bad: Annotated[bool, Parameter(negative=())] = False,
    workers: int | None = None,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Vary five factors independently, draw data from them, and see which estimates respond to which.

    Writes recover.json, recover.csv (a row per parameter), recover-matrix.csv (a row per cell) and
    recover.png and .pdf. Exit code 0: done. 2: the study could not be used.

    Parameters
    ----------
    like
        A study folder: its task, people and trace lengths are used, and the answer is about them.
    task
        A built-in task or a task file; by default grocery, or those of the study. May be repeated.
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
    all
        Print the matrices of every method and scale; otherwise they are only in the files.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    workers
        Threads; by default one per processor. Changes no number.
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
            seed=seed,
            repeat=repeat,
            spread=spread,
            effort_sd=effort_sd,
            log_sensitivity_sd=sensitivity_sd,
            missing=missing,
            noise=noise,
            methods=("eb", "mle") if method == "both" else (method,),
            workers=workers,
            on_progress=bars.step,
        )
        target = results_folder(out, like)
        written = write_result(found, target)
        pictures = [target / "recover.png", target / "recover.pdf"]
        save_figure(draw(found), pictures)
    if json:
        print(to_json(found))
        return 0
    console = page()
    _show(found, console, all_matrices=all)
    finish(console, (*written, *pictures), target, opened)
    return 0


def _show(found: Recovery, console: Console, *, all_matrices: bool) -> None:
    whose = "people of the study" if found.is_like else "simulated people"
    console.print(
        f"[bold]{found.n_people:,} {whose}[/], about {found.n_actions:.0f} actions and "
        f"{found.n_segments:.0f} segments each, {count(found.repeat, 'repetition')}",
        soft_wrap=True,
    )
    shown = [(method, scale) for method in found.methods for scale in ("log", "raw")]
    for method, scale in shown if all_matrices else shown[:1]:
        for condition in found.conditions:
            console.print(
                f"\n[bold]{found.condition_words(condition)}[/], {HOW[method]}, {scale} η", soft_wrap=True
            )
            console.print(_matrix(found, condition, method, scale))
    console.print()
    for sentence in found.sentences():
        console.print(sentence, soft_wrap=True, markup=False)
    _say_without(found, console)
    settings = found.record.settings
    sds = ", ".join(f"{SHORT.get(name, name)} {sd:.2f}" for name, sd in settings["sd"].items())
    how = "as much as the study's people do" if settings["spread"] == "study" else "as much as we say"
    note(
        console,
        f"people differ {how}, with an sd of (log η first): {sds}",
        "rows are manipulated factors, columns recovered parameters; cells are standardized partial slopes "
        "(matched: those on the diagonal), which r, a plain correlation, need not equal",
        "well: r from .85; well enough to compare groups: from .70; only weakly: from .50; below that, it "
        "cannot be estimated",
        "choices are the same in all conditions, and so is the row of η; whether there is a pause at all "
        "follows the same chance for everybody and is not recovered",
        "paper: the range of its matched responses with complete observations, on data that are not public",
    )
    for name, why in found.not_learned.items():
        warn(console, f"{name} could not be learned in every repetition: {why}")
    warn(console, *found.notes)


def _matrix(found: Recovery, condition: str, method: str, scale: str) -> object:
    matrix = found.matrix(condition, method=method, scale=scale)
    spread = found.matrix(condition, method=method, scale=scale, value="sd" if found.repeat > 1 else "se")
    names = [SHORT.get(name, name) for name in found.factors]
    paper = "–"
    if condition == "complete":
        paper = " to ".join(as_printed(bound) for bound in RECOVERY_DIAGONAL)
    header = ["manipulated", *names, "matched ± sd" if found.repeat > 1 else "matched ± se", "paper"]
    rows = [
        [name, *map(as_printed, matrix[i]), f"{as_printed(matrix[i, i])} ± {as_printed(spread[i, i])}", paper]
        for i, name in enumerate(names)
    ]
    return table_of(header, rows)


def _say_without(found: Recovery, console: Console) -> None:
    """Who had no finite estimate and was left out of a column."""
    for method in found.methods:
        for row in found.parameters.filter(method=method, condition=found.conditions[0]).iter_rows(
            named=True
        ):
            if row["without"] and not row["parameter"].startswith("log_"):
                label = SHORT.get(row["parameter"], row["parameter"])
                note(
                    console,
                    f"{HOW[method]}: {row['without']:.1f} of {found.n_people:,} people have no finite "
                    f"{label} on average and are left out of its column",
                )
