"""``fidm studies``: published data sets of real people, analysed anew with one command each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm.cli.console import count, note, page, printable, table_of, warn
from fidm.cli.opening import finish, require_writable
from fidm.cli.progress import Bars, progress_bar
from fidm.datasets.base import Dataset
from fidm.datasets.catalogue import dataset_names, find_dataset
from fidm.datasets.fetching import download as fetch
from fidm.datasets.places import CHANGED, MISSING, VARIABLE, data_folder, dataset_folder
from fidm.datasets.places import verify as find_problems
from fidm.errors import DataError
from fidm.reanalyses.base import Expectation
from fidm.reanalyses.catalogue import find_study, study_names
from fidm.reanalyses.running import run_study, write_study
from fidm.reanalyses.told import NO, STATEMENT, YES, Told, about_data, band_text, figure_text, mark
from fidm.record import to_json

NOT_REACHED = 1
"""The exit code when a number did not come out, or a file is not the published one."""

MOST_NAMED = 10
"""How many files that are missing or changed are named."""

Data = Annotated[Path | None, Parameter(show_default=False)]


def list_studies(*, data: Data = None) -> int:
    """List the studies of published data, and whether their files are there.

    Parameters
    ----------
    data
        The folder with the data sets; by default what the environment variable FIDM_DATA names.
    """
    if data is not None:
        data_folder(data)
    rows, problems = [], []
    with progress_bar() as bars:
        for name in study_names():
            try:
                study = find_study(name)
                dataset = find_dataset(study.dataset)
            except DataError as error:
                problems.append(str(error))
                continue
            rows.append((name, study.title, dataset.people, dataset.licence, _files(dataset, data, bars)))
    console = page()
    console.print("[bold]Studies of published data of real people[/]")
    console.print(table_of(("name", "what it is", "people", "licence", "files"), rows, left=5))
    warn(console, *problems)
    note(
        console,
        _looked(data),
        "fidm studies show NAME: licence, whom to cite, and what is asked",
        "fidm studies download NAME --data FOLDER: fetch the published files",
        "fidm studies run NAME --data FOLDER: the whole analysis, as one page",
    )
    return 0


def show(name: str, *, data: Data = None) -> int:
    """Show what a study asks, of whom, on which terms, and where its files are.

    Parameters
    ----------
    name
        The study, as `fidm studies` lists it.
    data
        The folder with the data sets; by default what the environment variable FIDM_DATA names.
    """
    study = find_study(name)
    dataset = find_dataset(study.dataset)
    with progress_bar() as bars:
        files = _files(dataset, data, bars)
    console = page()
    console.print(Text(study.title, style="bold"))
    console.print(Text(study.question, style="italic"))
    console.print()
    grid = _terms(dataset)
    _add(grid, "Files", files)
    _add(grid, "", _looked(data))
    console.print(grid)
    console.print(STATEMENT, style="dim")
    return 0


def run(
    name: str,
    *,
    data: Data = None,
    out: Path | None = None,
    seed: int = 1,
    bootstrap: int | None = None,
    unverified: Annotated[bool, Parameter(negative=())] = False,
    workers: int | None = None,
    json: bool = False,
) -> int:
    """Analyse a published data set anew: figures, tables, and one page.

    Writes NAME.html (one page that opens without a network), NAME.json with every number, a CSV file per
    table, figures/*.svg, and NAME.md for documentation. Exit code 0: every number that was to come out did.
    1: some did not. 2: the data could not be used.

    Parameters
    ----------
    name
        The study, as `fidm studies` lists it.
    data
        The folder with the data sets; by default what the environment variable FIDM_DATA names.
    out
        Where to write; by default fidm-results/NAME.
    seed
        The same seed gives the same numbers.
    bootstrap
        How many draws intervals are made of; by default what the study says.
    unverified
        Read the files even if they are not those that were published; the page says so.
    workers
        Threads; by default one per processor. Changes no number.
    json
        Print the result as JSON instead of a page.
    """
    study = find_study(name)
    target = out if out is not None else Path("fidm-results") / study.name
    require_writable(target)
    with progress_bar() as bars:
        told = run_study(
            study,
            data,
            seed=seed,
            bootstrap=bootstrap,
            verified=not unverified,
            workers=workers,
            on_progress=bars.step,
        )
        bars.step("writing", 0, 1)
        written = write_study(told, target)
    if json:
        print(to_json(told.findings))
    else:
        _show_run(told, written, target, page())
    return 0 if told.findings.reached else NOT_REACHED


def download(name: str, *, data: Data = None) -> int:
    """Fetch the files of a data set from where its authors published them, and check each.

    Files that are there already are not fetched again; files that were changed are replaced. This is the
    only verb that asks the network for anything.

    Parameters
    ----------
    name
        The study, as `fidm studies` lists it, or a data set.
    data
        The folder for data sets, made if need be; by default what the environment variable FIDM_DATA names.
    """
    dataset = _dataset(name)
    console = page()
    console.print(_terms(dataset))
    with progress_bar(rates=True) as bars:
        folder = fetch(dataset, data, on_progress=bars.step)
    console.print(f"\nWrote {count(len(dataset.paths), 'file')} to {folder}", soft_wrap=True, markup=False)
    console.print(STATEMENT, style="dim")
    return 0


def verify(name: str, *, data: Data = None) -> int:
    """Check that the files of a data set are those that were published.

    Exit code 0: all are. 1: some are missing or changed. 2: there are none.

    Parameters
    ----------
    name
        The study, as `fidm studies` lists it.
    data
        The folder with the data sets; by default what the environment variable FIDM_DATA names.
    """
    dataset = _dataset(name)
    folder = dataset_folder(dataset, data)
    with progress_bar() as bars:
        problems = find_problems(dataset, folder, on_progress=bars.step)
    console = page()
    if problems.is_empty():
        console.print(Text.assemble((YES, "green"), f" {dataset.title}: every file is as published"))
        console.print(str(folder), style="dim", soft_wrap=True, markup=False)
        return 0
    of = count(len(dataset.paths), "file")
    console.print(
        Text.assemble((NO, "red"), f" {dataset.title}: {problems.height:,} of {of} not as published")
    )
    shown = problems.head(MOST_NAMED)
    console.print(table_of(("file", "problem"), list(shown.iter_rows()), left=2))
    if problems.height > shown.height:
        note(console, f"and {problems.height - shown.height:,} more")
    note(console, f"fidm studies download {name} --data {data_folder(data)} fetches them")
    return NOT_REACHED


def _dataset(name: str) -> Dataset:
    """The data set of this name, or the one of this study."""
    return find_dataset(name if name in dataset_names() else find_study(name).dataset)


def _files(dataset: Dataset, data: Path | None, bars: Bars) -> str:
    """Where the files of a data set are, and whether they are the published ones."""
    try:
        folder = dataset_folder(dataset, data)
    except DataError:
        return f"{NO} not here"
    counts = dict(find_problems(dataset, folder, on_progress=bars.step)["problem"].value_counts().iter_rows())
    said = [f"{counts[kind]:,} {kind}" for kind in (MISSING, CHANGED) if kind in counts]
    return f"{NO} {', '.join(said)}" if said else f"{YES} as published"


def _looked(data: Path | None) -> str:
    """Where files were looked for."""
    try:
        return f"files were looked for in {data_folder(data)}"
    except DataError:
        return f"say where files are: --data FOLDER, or the environment variable {VARIABLE}"


def _terms(dataset: Dataset) -> Table:
    """What a data set is, its licence, whom to cite, and where it is published."""
    grid = _grid()
    for term, said in about_data(dataset):
        for i, one in enumerate(said):
            address = f" <{one.url}>" if one.url and one.url not in one.text else ""
            _add(grid, term if not i else "", one.text + address)
    return grid


def _grid() -> Table:
    """Two columns: a term, and what is said of it."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _add(grid: Table, term: str, text: str) -> None:
    grid.add_row(Text(term), Text(printable(text)))


def _show_run(told: Told, written: tuple[Path, ...], target: Path, console: Console) -> None:
    findings, found = told.findings, told.sections[0]
    console.print(Text(told.study.title, style="bold"))
    console.print(Text(told.study.question, style="italic"))
    console.print()
    console.print(_terms(told.loaded.dataset))
    if findings.expectations:
        console.print()
        console.print(_expected(findings.expectations))
    console.print()
    for text in found["paragraphs"]:
        console.print(Text(printable(text)))
        console.print()
    missed = findings.missed
    if missed:
        of = count(len(findings.expectations), "number")
        warn(console, f"{len(missed):,} of {of} did not come out; see {NO} above.")
    if not told.loaded.verified:
        warn(console, told.loaded.notes[-1])
    finish(console, written, target, None)


def _expected(expectations: tuple[Expectation, ...]) -> Table:
    """A line per number that was to come out: a tick or a cross, what was found, the band, and what it is."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for one in expectations:
        tick = Text(mark(one), style="green" if one.reached else "bold red")
        grid.add_row(tick, figure_text(one.found), band_text(one), Text(printable(one.what)))
    return grid
