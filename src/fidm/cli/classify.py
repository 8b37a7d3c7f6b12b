"""``fidm classify STUDY``: how well each representation tells people's status, and how sure that is."""

from __future__ import annotations

from pathlib import Path

from fidm.cli.shared import (
    Flag,
    Many,
    Reading,
    Writing,
    finish,
    print_result,
    require_writable,
    say_simulated,
)
from fidm.defaults import FOLDS, LABEL, NORMAL, PERMUTATIONS, REPEATS, SCORE
from fidm.errors import DataError, count
from fidm.present.terminal import page, progress_bar, warn


def classify(
    study: Path,
    *,
    representations: Many = (),
    reading: Reading = Reading(),
    label: str = LABEL,
    normal: str = NORMAL,
    together: str | None = None,
    by: Many = (),
    score: str = SCORE,
    subscores: Many = (),
    folds: int = FOLDS,
    repeats: int = REPEATS,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
    paper_estimates: Flag = False,
    encoder: Many = (),
    talks: Path | None = None,
    roles: Path | None = None,
    no_language: Flag = False,
    workers: int | None = None,
    full: Flag = False,
    writing: Writing = Writing(),
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
    workers
        Processes; by default one per processor. Changes no number.
    full
        Also print thresholds, calibration, groups and all checks.
    """
    from joblib import cpu_count

    from fidm.classify.question import Protocol
    from fidm.line import classify_study
    from fidm.plot.save import write_with_figures
    from fidm.present.classification import show
    from fidm.present.next import say_next
    from fidm.present.summary import write_summary

    names = _listed(representations)
    if representations and not names:
        raise DataError("--representations names none. Leave it out, and the paper's are run.")
    target = writing.target(study)
    require_writable(target)
    with progress_bar() as bars:
        opened = reading.open(study, bars)
        protocol = Protocol(
            representations=names or None,
            label=label,
            normal=normal,
            together=together,
            by=_listed(by) or None,
            score_column=score,
            subscores=_listed(subscores) or None,
            folds=folds,
            repeats=repeats,
            permutations=permutations,
            seed=seed,
            paper_estimates=paper_estimates,
            workers=cpu_count() if workers is None else workers,
        )
        made = classify_study(
            opened,
            protocol,
            encoder=encoder,
            talks=talks,
            roles=roles,
            no_language=no_language,
            skip_bad=reading.leave_out,
            on_progress=bars.step,
        )
        bars.step("writing", 0, 1)
        summary = write_summary(made.found, target, simulated=opened.is_simulated)
        written = [*write_with_figures(made.found, target), summary]
    if writing.json:
        print_result(made.found)
        return 0
    console = page()
    show(made.found, console, simulated=opened.is_simulated, full=full)
    if made.not_kept:
        warn(console, made.not_kept)
    if made.n_unread:
        warn(console, f"{count(made.n_unread, 'file')} of dialogs left out because of problems in them")
    if opened.is_simulated:
        say_simulated(console)
    finish(console, written, target, None)  # who is out was said above
    say_next(console, study, after="result", skip=reading.leave_out)
    return 0


def _listed(options: tuple[str, ...]) -> list[str]:
    """What options name that may be repeated and also take commas."""
    return [part.strip() for text in options for part in text.split(",") if part.strip()]
