"""``fidm studies``: published data sets of real people, analysed with one command each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fidm.cli.shared import finish, require_writable
from fidm.errors import DataError, count
from fidm.present.terminal import Bars, aside, note, page, printable, progress_bar, table_of, warn

if TYPE_CHECKING:
    from fidm_studies.analysis import Expectation, Reanalysis
    from fidm_studies.dataset import Dataset
    from fidm_studies.page import Told

NARROW = 80
"""On a terminal of fewer columns studies stand one below the other, not in a table."""

HEADER = ("name", "what it is", "people", "licence", "files")
"""What the list says of each study."""


def print_json(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print plain values, for programs."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def show_list(rows: Sequence[tuple[str, ...]], console: Console) -> None:
    """A table of studies; on a narrow terminal one below the other."""
    table = table_of(HEADER, rows, left=len(HEADER))
    least = Measurement.get(console, console.options.update(max_width=1_000), table).minimum
    if console.width >= max(NARROW, least):
        console.print(table)
        return
    for name, *rest in rows:
        console.print()
        console.print(Text(printable(name), style="bold"))
        grid = grid_of_terms()
        for term, text in zip(HEADER[1:], rest, strict=True):
            add_term(grid, term, text)
        console.print(grid)
    console.print()


def show_run(told: Told, written: tuple[Path, ...], target: Path, console: Console) -> None:
    """What a study found: its terms, a tick or a cross per number, the summary, and what was written."""
    from fidm_studies.page import NO

    findings, found = told.findings, told.sections[0]
    console.print(Text(told.study.title, style="bold"))
    console.print(Text(told.study.question, style="italic"))
    console.print()
    console.print(terms(told.loaded.dataset))
    if findings.expectations:
        console.print()
        console.print(_expected(findings.expectations))
    console.print()
    for text in found["paragraphs"]:
        console.print(Text(printable(text)))
        console.print()
    missed = sum(not one.reached for one in findings.expectations)
    if missed:
        of = count(len(findings.expectations), "check")
        rest = " None of these is required." if findings.reached else ""
        warn(console, f"{missed:,} of {of} not reproduced; see {NO} above.{rest}")
    if not told.loaded.verified:
        warn(console, told.loaded.notes[-1])
    finish(console, written, target, None)


def terms(dataset: Dataset) -> Table:
    """What a data set is, its licence, whom to cite, and where it is published."""
    from fidm_studies.page import about_data

    grid = grid_of_terms()
    for term, said in about_data(dataset):
        for i, one in enumerate(said):
            address = f" <{one.url}>" if one.url and one.url not in one.text else ""
            add_term(grid, term if not i else "", one.text + address)
    return grid


def grid_of_terms() -> Table:
    """Two columns: a term, and what is said of it."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def add_term(grid: Table, term: str, text: str) -> None:
    """Add a term, and what is said of it; as text, whatever it holds."""
    grid.add_row(Text(term), Text(printable(text)))


def _expected(expectations: tuple[Expectation, ...]) -> Table:
    """A line per check: a tick or a cross, what was found, the band, and what it is."""
    from fidm_studies.page import band_text, figure_text, mark

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for one in expectations:
        tick = Text(mark(one), style="green" if one.reached else "bold red")
        what = one.what if one.required else f"{one.what} (not required)"
        grid.add_row(tick, figure_text(one.found), band_text(one), Text(printable(what)))
    return grid


NOT_REACHED = 1
"""The exit code when a required check was not reproduced, or a file is not the published one."""

MOST_NAMED = 10
"""How many files that are missing, changed or unknown are named."""

Data = Annotated[Path | None, Parameter(show_default=False)]

app = App(
    name="studies", help="Analyse published data sets of real people: list, show, download, verify, run."
)


@app.default
def studies(*words: Annotated[str, Parameter(show=False)], data: Path | None = None) -> int:
    """List the studies of published data, and whether their files are there.

    Parameters
    ----------
    words
        What was meant as a command but is none.
    data
        The folder with the data sets; by default what the environment variable FIDM_DATA names.
    """
    if words:
        raise DataError(f"There is no command {words[0]!r}; see: fidm studies --help.")
    return list_studies(data=data)


@app.command(name="list", help="List the studies.")
def list_studies(*, data: Data = None, json: bool = False) -> int:
    """List the studies of published data, and whether their files are there.

    Parameters
    ----------
    data
        The folder with the data sets; by default what the environment variable FIDM_DATA names.
    json
        Print the list as JSON instead of a table.
    """
    from fidm_studies.dataset import data_folder

    if data is not None:
        data_folder(data)
    found, problems = _all_there_is()
    with progress_bar() as bars:
        files = {name: _files(dataset, data, bars) for name, _, dataset in found}
    if json:
        print_json([_plain(name, study, dataset, files[name]) for name, study, dataset in found])
        warn(aside(), *problems)
        return 0
    rows = [
        (
            name,
            study.title if study is not None else f"{dataset.title} (a data set without a study)",
            dataset.people,
            dataset.licence,
            files[name],
        )
        for name, study, dataset in found
    ]
    console = page()
    console.print("[bold]Studies of published data of real people[/]")
    show_list(rows, console)
    warn(console, *problems)
    for hint in (
        _looked(data),
        "fidm studies show NAME: licence, whom to cite, and what is asked",
        "fidm studies download NAME --data FOLDER: fetch the published files",
        "fidm studies run NAME --data FOLDER: the whole analysis, as one page",
    ):
        console.print(Text(f"· {printable(hint)}"), style="dim")
    return 0


@app.command(help="Show what a study asks, its licence and whom to cite.")
def show(name: str, *, data: Data = None, json: bool = False) -> int:
    """Show what a study asks, of whom, on which terms, and where its files are.

    Parameters
    ----------
    name
        The study, as `fidm studies` lists it, or a data set.
    data
        The folder with the data sets; by default what the environment variable FIDM_DATA names.
    json
        Print it as JSON instead of words.
    """
    from fidm.registry import DATASETS, REANALYSES
    from fidm_studies.analysis import find_study, study_names
    from fidm_studies.dataset import dataset_names, find_dataset
    from fidm_studies.page import STATEMENT

    is_data_alone = name not in study_names() and name in dataset_names()
    study = None if is_data_alone else find_study(name)
    dataset = find_dataset(name if study is None else study.dataset)
    with progress_bar() as bars:
        files = _files(dataset, data, bars)
    if json:
        print_json(_plain(name, study, dataset, files))
        return 0
    console = page()
    console.print(Text(dataset.title if study is None else study.title, style="bold"))
    console.print(Text("A data set." if study is None else study.question, style="italic"))
    console.print()
    grid = terms(dataset)
    add_term(grid, "Files", files)
    add_term(grid, "", _looked(data))
    console.print(grid)
    warn(console, *DATASETS.ignored(dataset.name), *REANALYSES.ignored(name))
    console.print(STATEMENT, style="dim")
    return 0


@app.command(help="Run a study: figures, tables, and one page.")
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
    """Analyse a published data set: figures, tables, and one page.

    Writes NAME.html (one page that opens without a network), NAME.json with every number, a CSV file per
    table, figures/*.svg, and NAME.md for documentation. Exit code 0: every
    required check was reproduced. 1: some were not. 2: the data could not be used.

    Parameters
    ----------
    name
        The study, as `fidm studies` lists it.
    data
        The folder with the data sets; by default what the environment variable FIDM_DATA names.
    out
        Where to write; by default fidm-results/NAME.
    seed
        The same seed gives the same numbers; 0 or more.
    bootstrap
        How many draws intervals are made of, at least 20; by default what the study says.
    unverified
        Read the files even if they are not those that were published; the page says so.
    workers
        Threads; by default one per processor. Changes no number.
    json
        Print the result as JSON instead of words; all files are written as well.
    """
    from fidm.record import to_json
    from fidm_studies.running import run_study, write_study

    study = _study(name)
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
        print(to_json(told))
        if not told.loaded.verified:
            warn(aside(), told.loaded.notes[-1])
    else:
        show_run(told, written, target, page())
    return 0 if told.findings.reached else NOT_REACHED


@app.command(help="Fetch the published files of a data set.")
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
    from fidm_studies.fetching import DOWNLOADING
    from fidm_studies.fetching import download as fetch
    from fidm_studies.page import STATEMENT

    dataset = _dataset(name)
    console = page()
    console.print(terms(dataset))
    fetched = 0
    with progress_bar() as bars:

        def step(doing: str, done: int, of: int) -> None:
            nonlocal fetched
            fetched = done if doing == DOWNLOADING else fetched
            bars.step(doing, done, of)

        folder = fetch(dataset, data, on_progress=step)
    said = f"Wrote {count(fetched, 'file')} to" if fetched else "Every file is there already, in"
    console.print(f"\n{said} {folder}", soft_wrap=True, markup=False)
    console.print(STATEMENT, style="dim")
    return 0


@app.command(help="Check that files are those that were published.")
def verify(name: str, *, data: Data = None) -> int:
    """Check that the files of a data set are those that were published.

    Exit code 0: all are. 1: some are missing or changed, or there are others among them. 2: there are none.

    Parameters
    ----------
    name
        The study, as `fidm studies` lists it.
    data
        The folder with the data sets; by default what the environment variable FIDM_DATA names.
    """
    from fidm_studies.dataset import data_folder, dataset_folder, mending
    from fidm_studies.dataset import verify as find_problems
    from fidm_studies.page import NO, YES

    dataset = _dataset(name)
    folder = dataset_folder(dataset, data)
    with progress_bar() as bars:
        problems = find_problems(dataset, folder, on_progress=bars.step)
    console = page()
    if problems.is_empty():
        console.print(Text.assemble((YES, "green"), f" {dataset.title}: every file is as published"))
        console.print(str(folder), style="dim", soft_wrap=True, markup=False)
        return 0
    console.print(
        Text.assemble((NO, "red"), f" {dataset.title}: {count(problems.height, 'file')} not as published")
    )
    shown = problems.head(MOST_NAMED)
    console.print(table_of(("file", "problem"), list(shown.iter_rows()), left=2))
    if problems.height > shown.height:
        note(console, f"and {problems.height - shown.height:,} more")
    note(console, mending(dataset, data_folder(data), problems))
    return NOT_REACHED


def _study(name: str) -> Reanalysis:
    """The study of this name; of a data set that is meant, which studies there are."""
    from fidm_studies.analysis import find_study, study_names
    from fidm_studies.dataset import dataset_names

    if name in study_names() or name not in dataset_names():
        return find_study(name)
    of = [one for one, study, dataset in _all_there_is()[0] if study is not None and dataset.name == name]
    hint = f"Its study is called {of[0]}." if of else "fidm_studies.load reads it in Python."
    raise DataError(f"{name} is a data set, not a study. {hint}")


def _all_there_is() -> tuple[list[tuple[str, Reanalysis | None, Dataset]], list[str]]:
    """Every study with its data set, the data sets without a study, and what is wrong with some."""
    from fidm.registry import DATASETS, REANALYSES
    from fidm_studies.analysis import find_study, study_names
    from fidm_studies.dataset import dataset_names, find_dataset

    found: list[tuple[str, Reanalysis | None, Dataset]] = []
    problems = [*DATASETS.ignored(), *REANALYSES.ignored()]
    for name in study_names():
        try:
            study = find_study(name)
            found.append((name, study, find_dataset(study.dataset)))
        except DataError as error:
            problems.append(str(error))
    analysed = {dataset.name for _, _, dataset in found}
    for name in dataset_names():
        if name not in analysed and name not in study_names():
            try:
                found.append((name, None, find_dataset(name)))
            except DataError as error:
                problems.append(str(error))
    return found, list(dict.fromkeys(problems))


def _plain(name: str, study: Reanalysis | None, dataset: Dataset, files: str) -> dict[str, Any]:
    """A line of the list, for programs."""
    from fidm_studies.page import NO, YES

    return {
        "name": name,
        "title": None if study is None else study.title,
        "question": None if study is None else study.question,
        "dataset": dataset.to_dict(),
        "files": files.lstrip(f"{YES}{NO} "),
    }


def _dataset(name: str) -> Dataset:
    """The data set of this name, or the one of this study."""
    from fidm_studies.analysis import find_study
    from fidm_studies.dataset import dataset_names, find_dataset

    return find_dataset(name if name in dataset_names() else find_study(name).dataset)


def _files(dataset: Dataset, data: Path | None, bars: Bars) -> str:
    """Where the files of a data set are, and whether they are the published ones."""
    from fidm_studies.dataset import CHANGED, MISSING, UNKNOWN, dataset_folder
    from fidm_studies.dataset import verify as find_problems
    from fidm_studies.page import NO, YES

    try:
        folder = dataset_folder(dataset, data)
    except DataError:
        return f"{NO} not here"
    counts = dict(find_problems(dataset, folder, on_progress=bars.step)["problem"].value_counts().iter_rows())
    said = [f"{counts[kind]:,} {kind}" for kind in (MISSING, CHANGED, UNKNOWN) if kind in counts]
    return f"{NO} {', '.join(said)}" if said else f"{YES} as published"


def _looked(data: Path | None) -> str:
    """Where files were looked for."""
    from fidm_studies.dataset import VARIABLE, data_folder

    try:
        return f"files were looked for in {data_folder(data)}"
    except DataError:
        return f"say where files are: --data FOLDER, or the environment variable {VARIABLE}"
