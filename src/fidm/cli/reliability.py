"""``fidm reliability STUDY``: how far each person's numbers can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from matplotlib.figure import Figure
from rich.console import Console

from fidm.cli.opening import finish, open_study, results_folder
from fidm.experiments.recover import as_printed
from fidm.experiments.reliability import BOOTSTRAP, Reliability
from fidm.experiments.reliability import reliability as run
from fidm.fit.fitted import load_fit
from fidm.plot.experiments import SHORT
from fidm.plot.experiments import reliability as draw
from fidm.present.terminal import note, page, progress_bar, save_figure, table_of, warn
from fidm.record import to_json, write_result


def reliability(
    study: Path,
    *,
    task: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    use: Path | None = None,
    split: str | None = None,
    bootstrap: int = BOOTSTRAP,
    seed: int = 1,
    skip_bad: Annotated[bool, Parameter(negative=())] = False,
    workers: int | None = None,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Say how reliable every parameter is, and which change in a person is more than measurement error.

    Split-half (odd against even segments) and, where participants have several traces, retest. Writes
    reliability.json, reliability.csv and reliability.png and .pdf. Exit code 0: done. 2: the study could not
    be used.

    Parameters
    ----------
    study
        The study folder.
    task
        A built-in task or a task file; by default those that study.toml names. May be repeated.
    use
        A fit.json with what people share; by default the study's own, or else one learned now.
    split
        Learn what people share from the participants with this value of "split", where no fit is used; by
        default from "train" if there is a split. Everybody is measured.
    bootstrap
        How many times participants are drawn anew for the intervals.
    seed
        The same seed gives the same intervals.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    workers
        Threads; by default one per processor. Changes no number.
    out
        Where to write; by default STUDY/results.
    json
        Print the result as JSON instead of a page.
    """
    with progress_bar() as bars:
        bars.step("reading", 0, 1)
        opened = open_study(study, task=task, skip_bad=skip_bad)
        learners, part = opened.part(split)
        path = use if use is not None else study / "fit.json"
        has_fit = use is not None or (split is None and path.exists())
        found = run(
            opened.tasks,
            opened.cohort,
            fit=load_fit(path, opened.tasks) if has_fit else None,
            learn_from=learners,
            seed=seed,
            bootstrap=bootstrap,
            workers=workers,
            on_progress=bars.step,
        )
        target = results_folder(out, study)
        written = write_result(found, target)
        pictures = [target / "reliability.png", target / "reliability.pdf"]
        ax = draw(found)
        assert isinstance(ax.figure, Figure)  # noqa: S101
        save_figure(ax.figure, pictures)
    if json:
        print(to_json(found))
        return 0
    console = page()
    source = f"learned earlier, {path}" if has_fit else f"learned now from {len(learners):,} ({part})"
    console.print(f"[bold]{len(opened.cohort):,} participants[/]")
    console.print(f"what people share was {source}", style="dim", soft_wrap=True, markup=False)
    _show(found, console)
    finish(console, (*written, *pictures), target, opened)
    return 0


def _show(found: Reliability, console: Console) -> None:
    rows = []
    for row in found.table.iter_rows(named=True):
        rows.append(
            [
                SHORT.get(row["parameter"], row["parameter"]),
                row["kind"],
                f"{row['n']:,}",
                _cell(row["r"]),
                _cell(row["rank_r"]),
                _cell(row["reliability"]),
                "–" if row["low"] is None else f"{as_printed(row['low'])} to {as_printed(row['high'])}",
                _amount(row["sem"]),
                _amount(row["mdc"]),
                _amount(row["mdc_shrunk"]),
            ]
        )
    header = ["parameter", "kind", "n", "r", "rank", "rel.", "95 %", "SEM", "MDC", "(eb)"]
    console.print(table_of(header, rows, left=2))
    for sentence in found.sentences():
        console.print(sentence, soft_wrap=True, markup=False)
    note(
        console,
        *found.notes,
        "SEM: standard error of measurement; MDC: minimal detectable change, 95 %; both of log η and θ, of "
        "estimates by maximum likelihood; (eb): of those by empirical Bayes, which fidm fit prints",
        "rel.: reliability; rank: the rank correlation, which also counts people whose estimate is infinite "
        "in one of the two",
        "split halves and the model know one sitting: what varies from day to day comes on top",
        "model: what empirical Bayes expects of its own estimates",
        "the paper gives no reliability",
    )
    for name, why in found.not_learned.items():
        warn(console, f"{name} is left out: {why}")


def _cell(value: float | None) -> str:
    return "–" if value is None else as_printed(value)


def _amount(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
