"""``fidm classify STUDY``: how well each representation tells people's status, and how sure that is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, get_args

from cyclopts import Parameter
from joblib import cpu_count
from matplotlib.figure import Figure

from fidm.classify.classify import classify as run
from fidm.classify.encoder import ENCODERS, find_encoder
from fidm.classify.features import blocks_of, is_name, known_blocks
from fidm.classify.language import Language, Texts, participant_texts
from fidm.classify.question import LABEL, NORMAL, PERMUTATIONS, REPEATS
from fidm.classify.result import Classification, Metric, Part, Setting
from fidm.classify.tabular import SCORE
from fidm.cli.opening import finish, open_study, read_talks, require_writable, results_folder
from fidm.errors import DataError
from fidm.files import whole_file
from fidm.grounding.store import VECTORS, private_folder
from fidm.plot.classification import bar_handles, calibration_curve, classification_bars, roc_curves
from fidm.present.classification import show
from fidm.present.summary import summary
from fidm.present.terminal import Bars, count, page, progress_bar, save_figure, warn
from fidm.record import to_json, write_result
from fidm.simulate.folders import SIMULATION


def classify(
    study: Path,
    *,
    representations: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    task: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    label: str = LABEL,
    normal: str = NORMAL,
    together: str | None = None,
    by: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    score: str = SCORE,
    subscores: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    folds: int = 5,
    repeats: int = REPEATS,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
    paper_estimates: Annotated[bool, Parameter(negative=())] = False,
    encoder: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    talks: Path | None = None,
    roles: Path | None = None,
    no_language: Annotated[bool, Parameter(negative=())] = False,
    skip_bad: Annotated[bool, Parameter(negative=())] = False,
    workers: int | None = None,
    out: Path | None = None,
    full: Annotated[bool, Parameter(negative=())] = False,
    json: bool = False,
) -> int:
    """Say how well cognitive status is told by scores, statistics, language and FIDM, alone and together.

    Prints the paper's tables 2 and 3 with intervals. Cross-validation of the split "train", then everybody
    else once. Writes classify.json, classify.csv and a classify-*.csv per further table (single people's
    predictions among them), classify-summary.md along the lines of TRIPOD+AI, and classify, classify-roc and
    classify-calibration as .png and .pdf. Exit code 0: done. 2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    representations
        Which to judge, such as score,fidm,score+fidm; by default those of the paper's tables, as far as they
        can be run. May be repeated.
    task
        A built-in task or a task file; by default those that study.toml names. May be repeated.
    label
        The participants' column with their status.
    normal
        The status of healthy people, who are told from all others.
    together
        A column: people with the same value (of one family, say) stay in one fold.
    by
        Columns to form groups by, such as age_years,sex; by default age, sex and education. May be repeated.
    score
        The column with the total score.
    subscores
        The columns with subscores, with commas; by default all others called score_… that hold numbers.
    folds
        How many parts people are cut into.
    repeats
        How often cross-validation is repeated with other folds.
    permutations
        How often labels are scrambled for the check; 0 leaves it out.
    seed
        The same seed gives the same numbers.
    paper_estimates
        Estimate people as the paper does: maximum likelihood, a pooled population, and η instead of log η.
    encoder
        A language encoder, LABEL=FOLDER or LABEL=NAME, or only a folder or a name; bert and macbert stand for
        the paper's. Nothing is downloaded. May be repeated.
    talks
        Where the dialogs are; by default the folder talks in the study. Read only if language is wanted.
    roles
        A file that says which speaker is the participant and which the assessor.
    no_language
        Leave language out.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    workers
        Processes; by default one per processor. Changes no number.
    out
        Where to write; by default STUDY/results.
    full
        Also print thresholds, calibration, groups and all checks.
    json
        Print the result as JSON instead of a page.
    """
    names = tuple(name for text in representations for name in _listed(text))
    if representations and not names:
        raise DataError("--representations names none. Leave it out, and the paper's are run.")
    encoders = encoders_of(encoder)
    if no_language:
        _refuse_language(names, encoders, encoder)
        encoders = {}
    if talks is not None and not talks.exists():
        raise DataError("is not there. Say where the dialogs are with --talks.", source=str(talks))
    target = results_folder(out, study)
    require_writable(target)
    with progress_bar(rates=True) as bars:
        bars.step("reading", 0, 1)
        opened = open_study(study, task=task, skip_bad=skip_bad)
        wanted = _wanted(names, encoders)
        asked = {name for name, model in encoders.items() if model != ENCODERS.get(name)}
        present, absent = _present(wanted, must=wanted if names else asked)
        unused = sorted(asked - set(wanted))
        if unused:
            raise DataError(
                f"--encoder {unused[0]} is used by no representation. Add {unused[0]} or {unused[0]}+fidm to "
                "--representations."
            )
        texts, n_unread = Texts(), 0
        if present:
            texts, n_unread = _texts(study, bars, talks, roles, skip_bad, must=bool(names))
        cache, not_kept = _cache(study) if texts else (None, "")
        found = run(
            opened.tasks,
            opened.cohort,
            representations=names or None,
            language=Language(texts, present, cache=cache),
            label=label,
            normal=normal,
            together=together,
            by=[name for text in by for name in _listed(text)] or None,
            score_column=score,
            subscores=[name for text in subscores for name in _listed(text)] or None,
            folds=folds,
            repeats=repeats,
            permutations=permutations,
            seed=seed,
            paper_estimates=paper_estimates,
            excluded=opened.excluded,
            with_problems=opened.n_left_out,
            workers=cpu_count() if workers is None else workers,
            on_progress=bars.step,
        )
        if absent:
            more = {name: why for one, why in absent.items() for name in (one, f"{one}+fidm")}
            found = replace(found, not_run={**found.not_run, **more})
        written = _write(found, target, bars, simulated=(study / SIMULATION).exists())
    if json:
        print(to_json(found))
        return 0
    console = page()
    show(found, console, simulated=(study / SIMULATION).exists(), full=full)
    if not_kept:
        warn(console, not_kept)
    if n_unread:
        warn(console, f"{count(n_unread, 'file')} of dialogs left out because of problems in them")
    finish(console, written, target, replace(opened, excluded={}, n_left_out=0))  # who is out was said above
    return 0


def encoders_of(options: Sequence[str]) -> dict[str, str]:
    """Return the encoders by label: the paper's, and those of the command line in their place or beside.

    Examples
    --------
    >>> from fidm.cli.classify import encoders_of
    >>> encoders_of(["bert=/models/mine"])["bert"]
    '/models/mine'
    >>> list(encoders_of(["/models/roberta-yue"]))
    ['bert', 'macbert', 'roberta-yue']
    """
    found, own = dict(ENCODERS), set[str]()
    labels = {model: label for label, model in ENCODERS.items()}
    for option in options:
        name, equals, model = option.partition("=")
        if not equals or Path(option).is_dir():
            model = option
            name = labels.get(option, Path(option).expanduser().resolve().name)
        name, model = name.strip(), model.strip()
        if not is_name(name) or not model:
            raise DataError(
                f"--encoder is {option!r}. Give LABEL=FOLDER or LABEL=NAME; a label has letters, digits, "
                "dots, hyphens and underscores."
            )
        if name in known_blocks(encoders={}):
            raise DataError(
                f"--encoder {option!r}: {name!r} is a representation already. Choose another label."
            )
        if name in own:
            raise DataError(f"--encoder names {name!r} twice. Give each encoder a label of its own.")
        own.add(name)
        found[name] = model
    return found


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _wanted(names: Sequence[str], encoders: Mapping[str, str]) -> dict[str, str]:
    """The encoders that the representations need: all of them where none is named."""
    if not names:
        return dict(encoders)
    known = known_blocks(encoders=encoders)
    parts = {one for name in names for one in blocks_of(name, known)}
    return {name: model for name, model in encoders.items() if name in parts}


def _refuse_language(names: Sequence[str], encoders: Mapping[str, str], options: Sequence[str]) -> None:
    asked = [name for name in names if {one.strip() for one in name.split("+")} & set(encoders)]
    if asked or options:
        said = f"the representation {asked[0]!r}" if asked else "--encoder"
        raise DataError(f"--no-language leaves language out, and {said} asks for it. Drop one of the two.")


def _present(encoders: Mapping[str, str], *, must: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The encoders that are on this machine, and why the others are not; an error for those that must be."""
    present, absent = {}, {}
    for name, model in encoders.items():
        try:
            find_encoder(model)
        except DataError as error:
            if name in must:
                raise
            absent[name] = str(error)
        else:
            present[name] = model
    return present, absent


def _cache(study: Path) -> tuple[Path | None, str]:
    """Where vectors are kept, or why they are not."""
    try:
        return private_folder(study) / VECTORS, ""
    except DataError as error:
        return None, f"the vectors of what was said are not kept: {error}"


def _texts(
    study: Path, bars: Bars, talks: Path | None, roles: Path | None, skip_bad: bool, *, must: bool
) -> tuple[Texts, int]:
    """What participants said, and how many files of dialogs could not be read."""
    dialogs = read_talks(study, bars, talks=talks, roles=roles, skip_bad=skip_bad)
    if dialogs is None:
        if must:
            raise DataError(
                "has no dialogs, and language needs them. Say where they are with --talks.", source=str(study)
            )
        return Texts(), 0
    return participant_texts(dialogs), dialogs.problems["table"].n_unique()


def _write(found: Classification, target: Path, bars: Bars, *, simulated: bool) -> list[Path]:
    """Write the tables, the summary and the figures."""
    bars.step("writing", 0, 1)
    written = list(write_result(found, target))
    written.append(target / "classify-summary.md")
    with whole_file(written[-1]) as part:
        part.write_text(summary(found, simulated=simulated), "utf-8")
    for name, figure in figures(found).items():
        pictures = [target / f"{name}.png", target / f"{name}.pdf"]
        save_figure(figure, pictures)
        written += pictures
    return written


def figures(found: Classification) -> dict[str, Figure]:
    """Return the figures by the names of their files: scores, ROC curves and calibration."""
    settings: list[Setting] = [one for one in get_args(Setting) if one in found.settings]
    metrics: tuple[Metric, ...] = get_args(Metric)
    parts: list[Part] = [one for one in get_args(Part) if one in found.parts]
    n = len(found.representations) + 0.8 * len(set(found.scores["kind"]))
    bars = Figure(figsize=(2.2 + 4.4 * len(settings), 0.3 + 2 * (0.9 + 0.31 * n)), layout="constrained")
    panels = bars.subplots(len(metrics), len(settings), squeeze=False, sharex="row")
    for axes, metric in zip(panels, metrics, strict=True):
        for i, (ax, setting) in enumerate(zip(axes, settings, strict=True)):
            classification_bars(found, setting=setting, metric=metric, legend=False, ax=ax)
            ax.tick_params(labelleft=i == 0)
    bars.legend(handles=bar_handles(found), loc="outside upper right", ncols=4, frameon=False, fontsize=8.5)
    roc = Figure(figsize=(0.2 + 4.5 * len(parts), 4.7), layout="constrained")
    calibration = Figure(figsize=(0.2 + 4.3 * len(parts), 5.1), layout="constrained")
    for part, left, right in zip(
        parts,
        roc.subplots(1, len(parts), squeeze=False)[0],
        calibration.subplots(1, len(parts), squeeze=False)[0],
        strict=True,
    ):
        roc_curves(found, part=part, ax=left)
        calibration_curve(found, part=part, ax=right)
    return {"classify": bars, "classify-roc": roc, "classify-calibration": calibration}
