"""What verbs about a study print: profiles, groundings, evidence, and the demo."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm.behind import Behind
from fidm.cohort import Cohort
from fidm.defaults import MAX_PEOPLE
from fidm.errors import count, listed
from fidm.evidence.evidence import IMPROBABLE, IN_DOUBT, Evidence, find_evidence
from fidm.evidence.localization import BYPASS, ROUTE, SAID, Localization
from fidm.experiments.paper import LOCALIZATION
from fidm.fit.fitted import Fit
from fidm.fit.inferred import BothWays
from fidm.fit.profile import SENSITIVITY, Profile, number_text
from fidm.fit.profile import STATUSES as STATUS_NAMES
from fidm.folder import StudyFolder
from fidm.grounding.evaluate import Evaluation, Measured, share_of
from fidm.grounding.ground import NOTHING_SAID
from fidm.grounding.review.learn import WordsLearned
from fidm.grounding.review.verdicts import doubt_in_words
from fidm.grounding.store import read_grounding
from fidm.io.columns import say_reasons
from fidm.io.study import read_cohort
from fidm.line import FittedStudy, GroundedStudy, say_unanswered
from fidm.model.action import TIE
from fidm.model.gaps import forecast, say_counted, say_forecast, segment_uses
from fidm.present import NOT_A_DIAGNOSIS
from fidm.present.experiments import probability, with_ends
from fidm.present.numbers import FLAGS, METHODS, RESIDUALS, SHORT, flag_text, not_estimated, number
from fidm.present.terminal import folded, note, printable, state, table_of, warn
from fidm.record import Record
from fidm.simulate.twin import TRUTH


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """One person's evidence as a result of its own: numbers and ids, no words."""

    found: Evidence  # everybody's evidence
    behind: Behind  # the same, with the places in the dialogs
    participant: str  # who
    top: int  # how many actions

    @property
    def record(self) -> Record:
        """How the evidence came about; it is that of the whole study."""
        return self.found.record

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """No tables of their own."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the person's numbers, their most unexpected actions, and all their segments."""
        own = pl.col("participant") == self.participant
        ranked = self.behind.actions.filter(own & pl.col("counts") & pl.col("unexpectedness").is_not_null())
        return {
            **self.found.people.filter(own).row(0, named=True),
            "n_not_counted": self.found.not_counted(participant=self.participant),
            "improbable_below": IMPROBABLE,
            "most_unexpected": ranked.sort("unexpectedness", descending=True, maintain_order=True).head(
                self.top
            ),
            "segments": self.behind.segments.filter(own),
        }


WIDEST = 46
"""How many characters of what somebody said are shown in a table."""

NARROWEST = 11
"""How narrow the column of words may become before a table grows beyond the terminal."""

CLEARLY = math.log(1.25)
"""A segment whose residual is not larger, a quarter more than expected, is not listed as heavy."""

SHRUNK = 0.25
"""Of estimates that are drawn towards other people by less, nothing is said."""

NO_WORSE = "every counted action was a best one"


def show_evidence(
    found: Evidence,
    behind: Behind,
    console: Console,
    *,
    participant: str | None,
    top: int,
    fit: Fit,
    source: str,
    profile: Profile,
    cohort: Cohort,
) -> None:
    """Print everybody's evidence, or one person's with the words behind it, and where the fit comes from."""
    console.print(
        f"[bold]Evidence for {count(len(found.participants), 'participant')}[/]: {how_much(found)}",
        soft_wrap=True,
    )
    note(console, f"what people share was {source}")
    if participant is None:
        show_everybody(found, behind, top, console)
    else:
        estimates = say_estimates(profile, participant)
        why = say_lacking(profile, fit, cohort, behind, participant)
        show_person(found, behind, participant, top, console, estimates, why)
        note(console, *say_shrunk(fit, cohort, participant))
    if not found.channels and found.segments.height:
        warn(console, "No segment has an observation of effort, so there is evidence from actions only.")
    warn(console, *behind.warnings)


def how_much(found: Evidence) -> str:
    """Return how much evidence there is: of choices and segments, or of choices alone."""
    if not found.segments.height:
        return count(found.actions.height, "choice")
    return f"{count(found.actions.height, 'action')}, {count(found.segments.height, 'segment')}"


def show_everybody(found: Evidence, behind: Behind, top: int, console: Console) -> None:
    """Print how the evidence is spread, and the most unexpected actions of all."""
    console.print(_spreads(found))
    counted = found.counted
    if counted.height:
        share = float((counted["probability"] < IMPROBABLE).sum() / counted.height)
        console.print(
            f"{share:.1%} of {counted.height:,} counted actions had a probability below {IMPROBABLE:.0%}",
            soft_wrap=True,
        )
    _say_not_counted(found.not_counted(), behind, console)
    rows = worse_actions(found, top)
    if rows.height:
        console.print("\n[bold]Most unexpected actions[/] that were not a best one")
        spoken = ["segment"] if found.segments.height else []
        header = ["participant", "episode", "step", *spoken, "action", "best", "p", "−log p"]
        cells = [
            [row["participant"], row["episode"], str(row["step"]), *(row[name] or "–" for name in spoken),
             *_action_cells(row)]
            for row in rows.iter_rows(named=True)
        ]  # fmt: skip
        console.print(_fitted(table_of(header, cells, left=len(header) - 2), wraps=("best",)))
    elif counted.height:
        note(console, NO_WORSE)
    note(
        console,
        "p is the probability of the action under the person's own fitted policy, −log p its unexpectedness",
        *([RESIDUALS] if found.channels else []),
        "paper: it shows such evidence for four people (figures 5 and 6) and gives no numbers of it",
    )


def show_person(
    found: Evidence,
    behind: Behind,
    participant: str,
    top: int,
    console: Console,
    estimates: Mapping[str, str],
    why: Mapping[str, str],
) -> None:
    """Print one person's most unexpected actions and heaviest segments, with the words if they are known."""
    row = found.people.filter(pl.col("participant") == participant).row(0, named=True)
    known = f"η {estimates.get(SENSITIVITY, 'not estimated')}, {count(row['n_actions'], 'counted action')}"
    known += f", {row['n_improbable']} below {IMPROBABLE:.0%}"
    console.print(Text.assemble("\n", (participant, "bold"), f": {known}"), soft_wrap=True)
    _say_not_counted(found.not_counted(participant=participant), behind, console)
    said = [] if behind.words is None else ["said"]
    rows = worse_actions(found, top, participant=participant)
    if rows.height:
        console.print("\n[bold]Most unexpected actions[/] that were not a best one")
        cells = []
        for one in rows.iter_rows(named=True):
            words = [] if behind.words is None else [_short(behind.words.of_action(one))]
            spoken = [one["segment"] or "–"] if found.segments.height else []
            cells.append([one["episode"], str(one["step"]), *spoken, *_action_cells(one), *words])
        header = [
            "episode",
            "step",
            *(["segment"] if found.segments.height else []),
            "action",
            "best",
            "p",
            "−log p",
        ]
        console.print(_fitted(table_of([*header, *said], cells, left=len(header) - 2), wraps=("best", *said)))
    elif row["n_actions"]:
        note(console, NO_WORSE)
    for reason in dict.fromkeys(why.values()):
        names = [SHORT.get(name, name) for name, own in why.items() if own == reason]
        warn(console, f"{listed(names)}: {reason}")
    channels = [name for name in found.channels if name not in why]
    for channel in channels:
        _show_segments(found, behind, participant, channel, top, console, estimates.get(channel, ""))
    own = found.segments.filter(participant=participant)
    if own.get_column(IN_DOUBT, default=pl.Series([False])).any():
        note(console, "?: over half of these moves were filled in by a planner or await review")
    if channels:
        note(console, RESIDUALS)
    if behind.words is not None:
        note(console, "words are shown here only; no file holds them")


def say_estimates(profile: Profile, participant: str) -> dict[str, str]:
    """Return a person's estimates with their intervals and what is to be said against them, by parameter."""
    row, found = profile.participants.to_list().index(participant), {}
    for k, name in enumerate(profile.parameters):
        value, low, high = (float(part[row, k]) for part in (profile.estimate, profile.low, profile.high))
        if not np.isnan(value):
            against = flag_text(name, STATUS_NAMES[profile.status[row, k]], int(profile.n[row, k]))
            ends = f"{number_text(low)} to {number_text(high)}"
            found[name] = f"{number_text(value)} ({ends}{f'; {against}' if against else ''})"
    return found


def say_shrunk(fit: Fit, cohort: Cohort, participant: str) -> list[str]:
    """Return which of a person's estimates rest largely on what other people are like, and why."""
    found = []
    for row in fit.shrinkage_table(cohort.select([participant])).iter_rows(named=True):
        if row["shrinkage"] >= SHRUNK:
            is_action = row["parameter"] == SENSITIVITY
            thing, sign = ("counted action", "η") if is_action else ("segment", "θ")
            name = sign if is_action else f"{SHORT.get(row['parameter'], row['parameter'])} {sign}"
            own = (
                "no finite number"
                if row["own"] is None or math.isinf(row["own"])
                else number_text(row["own"])
            )
            found.append(
                f"{name} is shrunk by {row['shrinkage']:.0%} towards other people "
                f"({number_text(row['others'])}): {count(row['n'], thing)} alone would give {own}"
            )
    return found


def say_lacking(
    profile: Profile, fit: Fit, cohort: Cohort, behind: Behind, participant: str
) -> dict[str, str]:
    """Return why a person has no estimate, by the names of the parameters they have none of."""
    row, found = profile.participants.to_list().index(participant), {}
    columns = {channel.name: channel.column for channel in fit.channels}
    for k, name in enumerate(profile.parameters):
        n, status = int(profile.n[row, k]), STATUS_NAMES[profile.status[row, k]]
        if status == "no_observation":
            why = "" if n else behind.why_nothing(cohort, row, columns.get(name))
            found[name] = not_estimated(name, n, why)
        elif status == "longer_than_learned":
            found[name] = FLAGS[status]
    return found


def worse_actions(found: Evidence, top: int, *, participant: str | None = None) -> pl.DataFrame:
    """Return the most unexpected counted actions that were not a best one."""
    ranked = found.most_unexpected(found.actions.height, participant=participant)
    return ranked.filter(pl.col("q_gap") >= TIE).head(top)


def _show_segments(
    found: Evidence,
    behind: Behind,
    participant: str,
    channel: str,
    top: int,
    console: Console,
    estimate: str,
) -> None:
    """The segments that cost clearly more than expected in one channel."""
    is_heavy = pl.col(f"{channel}_residual") > CLEARLY
    heavy = found.heaviest(channel, top, participant=participant).filter(is_heavy)
    name = channel.replace("_", " ") + (f", θ {estimate}" if estimate else "")
    if not heavy.height:
        console.print()
        note(console, f"no segment cost clearly more than expected in {name}")
        return
    console.print(f"\n[bold]Heaviest segments[/] in {name}")
    said = [] if behind.words is None else ["said"]
    cells = []
    for one in heavy.iter_rows(named=True):
        words = [] if behind.words is None else [_short(behind.words.of_segment(one))]
        numbers = [_number(one[f"{channel}_{part}"]) for part in ("observed", "expected", "residual")]
        moves = f"{one.get('n_moves', '–')}{'?' if one.get(IN_DOUBT) else ''}"
        cells.append([one["episode"], one["segment"], moves, *numbers, *words])
    header = ["episode", "segment", "moves", "observed", "expected", "residual", *said]
    console.print(_fitted(table_of(header, cells), wraps=said))


WEIGHTLESS = (
    "of weight 0 (in segments that need review or were rejected, or after them until it is known again "
    "where the person is and what is completed)"
)
"""Why steps of a grounding have the weight 0."""


def _say_not_counted(causes: dict[str, int], behind: Behind, console: Console) -> None:
    total = sum(causes.values())
    if total:
        words = {} if behind.words is None else {"weight 0": WEIGHTLESS}
        known = ", ".join(f"{n:,} {words.get(cause, cause)}" for cause, n in causes.items() if n)
        note(console, f"{count(total, 'action')} not counted: {known}")


def _spreads(found: Evidence) -> Table:
    header = ["evidence", "rows", "mean", "median", "sd", "80 % of rows"]
    rows = []
    for row in found.summary().iter_rows(named=True):
        is_action = row["quantity"] == "unexpectedness"
        name = row["quantity"] if is_action else f"{row['quantity'].replace('_', ' ')} residual"
        known = not math.isnan(row["p10"])
        span = f"{_number(row['p10'])} to {_number(row['p90'])}" if known else "–"
        numbers = (_number(row[key]) for key in ("mean", "median", "sd"))
        rows.append([name, f"{row['n']:,}", *numbers, span])
    return table_of(header, rows)


def _action_cells(row: dict[str, Any]) -> list[str]:
    probability, unexpected = row["probability"], row["unexpectedness"]
    chance = f"{probability:.1%}" if isinstance(probability, float) else "–"
    return [str(row["action"]), str(row["best"]), chance, _number(unexpected)]


def _number(value: object) -> str:
    if not isinstance(value, float) or math.isnan(value):
        return "–"
    text = f"{value:.2f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _fitted(table: Table, wraps: tuple[str, ...] | list[str]) -> Table:
    """Let these columns, and no others, break over lines where the terminal is narrow."""
    for column in table.columns:
        column.no_wrap = column.header not in wraps
        if column.header == "said":
            column.justify, column.min_width = "left", NARROWEST
    return table


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= WIDEST else one_line[: WIDEST - 1] + "…"


def show_fitted(found: FittedStudy, console: Console, *, estimated: bool) -> None:
    """Print what was learned, everybody's profile in a table, and what was written.

    A lapse rate that was estimated is shown even if it is 0.
    """
    fitted = found.fit
    how = METHODS[fitted.method]
    joint = ", joint prior" if fitted.joint is not None else ""
    who = count(len(found.profile), "participant")
    console.print(f"[bold]{who}[/], {how}{joint}, {fitted.level:.0%} intervals")
    of = f" of {fitted.n_people:,}" if fitted.n_learned < fitted.n_people <= MAX_PEOPLE else ""
    dim = [f"what people share was learned from {fitted.n_learned:,}{of} ({found.part}){_say_learned(found)}"]
    if found.reviewed is not None:
        dim.append(_say_reviewed(found.reviewed))
    if found.reasons:
        dim.append(say_reasons(found.reasons))
    for line in dim:
        console.print(Text(line), style="dim", soft_wrap=True)
    show_summary(found.profile, console)
    show_regression(fitted, console)
    if found.ways is not None:
        console.print(Text(say_inferred(found.ways, is_new=found.is_new)), soft_wrap=True)
    if fitted.lapse or estimated:
        known = f" ± {fitted.lapse_se:.3f}" if math.isfinite(fitted.lapse_se) else ""
        console.print(f"lapse rate {fitted.lapse:.3f}{known}")
    warn(console, *found.warnings)
    *names, last = found.files
    console.print(Text(f"\nWrote {', '.join(names)} and {last} to {found.folder}"), soft_wrap=True)
    console.print(NOT_A_DIAGNOSIS, style="dim")


def _say_learned(found: FittedStudy) -> str:
    """From how many each factor was learned, where it is not from all; channels where fewer have one."""
    effort = {name: n for name, n in found.learned.items() if name != SENSITIVITY}
    most = max(effort.values(), default=0)
    said = [f"choices of {found.learned.get(SENSITIVITY, 0):,}"] if np.isfinite(found.fit.prior.sd) else []
    if effort:
        fewer = ", ".join(f"{name} {n:,}" for name, n in effort.items() if n < most)
        said.append(f"speech of {most:,}{f' ({fewer})' if fewer else ''}")
    is_all = set(found.learned.values()) <= {found.fit.n_learned}
    return "" if is_all else f": {', '.join(said)}"


def show_regression(fit: Fit, console: Console) -> None:
    """Print how parameters go with covariates, as factors; nothing where the fit is not regressed."""
    table = fit.regression_table()
    if not table.height:
        return
    header = ["parameter, covariate", f"factor per unit ({fit.level:.0%})", "p"]
    numbers = [
        ["{:.4g} ({:.4g} to {:.4g})".format(*map(math.exp, ends)), probability(p)]
        for *ends, p in table.select("slope", "low", "high", "p").iter_rows()
    ]
    room = (
        console.width - sum(max(map(cell_len, cells)) for cells in zip(header[1:], *numbers, strict=True)) - 8
    )
    rows: list[list[str]] = []
    for row, cells in zip(table.iter_rows(named=True), numbers, strict=True):
        above = [f"{row['parameter']} ({row['explained']:.0%} explained)", "", ""]
        rows += [] if above in rows else [above]
        rows.append([folded(f"  {row['words']}", max(room, NARROWEST)).replace("\n", "\n    "), *cells])
    console.print(table_of(header, rows))
    note(
        console,
        "factor per unit: how many times as high the parameter is with one more of the covariate, or in the "
        "first category than in the second; of pause presence the odds",
        "p: of each row alone, by Wald's test; explained: share of the differences among people that all "
        "covariates together explain",
        *fit.regression_notes(),
    )


def show_summary(profile: Profile, console: Console) -> None:
    """Print a profile's summary as a table."""
    header, rows, notes = profile.summary().lines()
    console.print(table_of(header, rows))
    note(console, *notes)


def say_inferred(ways: BothWays | str, *, is_new: bool) -> str:
    """Return the comparison of the sensitivity with inferred moves and without as a line."""
    if isinstance(ways, str):
        return f"not estimated with inferred moves left out: {ways}"
    return f"{ways}{'' if is_new else ' (both with the prior of the earlier fit)'}"


def _say_reviewed(reviewed: Mapping[str, int]) -> str:
    rejected = reviewed["n_rejected"]
    more = f", {rejected:,} {'is' if rejected == 1 else 'are'} rejected and left out" if rejected else ""
    of = f"{reviewed['n_reviewed']:,} of the study's {reviewed['n_segments']:,} segments"
    return f"{of} are as reviewers read them{more}"


STATUSES = {
    "confident": "used as they are",
    "needs_review": "marked for review",
    "no_route": "say nothing about the way",
    "reviewed": "read by hand",
    "rejected": "rejected by hand and left out",
}
"""What becomes of segments; the last two are shown only where there are some."""


IN_FRAME = {
    "map": "on the map, turns included",
    "walker": "by the figure",
    "listener": "by a listener opposite",
}
"""Whose directions people mean, by the frames of the rules."""


def show_grounded(found: GroundedStudy, console: Console) -> None:
    """Print what became of the dialogs, and what was written."""
    grounded, table = found.grounded, found.grounded.segments
    console.print(
        f"[bold]{count(len(grounded.dialogs), 'dialog')}[/], {count(table.height, 'segment')}, "
        f"{count(grounded.cohort.n_steps, 'action')}, read by {found.by}",
        soft_wrap=True,
    )
    note(console, found.heard)
    if found.reasons:
        told = f"{say_reasons(found.reasons)}; their dialogs are read, and reach no fit"
        console.print(Text(told), style="dim", soft_wrap=True)
    rows = []
    for status, words in STATUSES.items():
        n = int((table["status"] == status).sum())
        if n or status not in ("reviewed", "rejected"):
            rows.append([words, f"{n:,}", f"{n / max(1, table.height):.1%}"])
    console.print(table_of(["segments", "number", "share"], rows))
    note(console, *filter(None, [say_counted(segment_uses(grounded.cohort), table["status"])]))
    expected, first = forecast(grounded.cohort), found.review_first()
    note(console, say_forecast(expected), *say_review_first(first, expected))
    _show_doubts(found, console)
    for frame, n in found.frames().items():
        seen = f"left and right are taken as seen {IN_FRAME[frame]}"
        note(console, f"{count(n, 'dialog')}: {seen}, since the usual reading does not fit the map")
    warn(console, *found.warnings)
    faulty = grounded.checks.filter(pl.col("problem") != NOTHING_SAID)["participant"].n_unique()
    traces = int((np.diff(grounded.cohort.step_offsets) > 0).sum())
    sound = f"{traces:,} of {count(traces, 'trace')} sound"
    if faulty:
        sound = f"not all of {count(traces, 'trace')} sound, see grounding/problems.csv: "
        sound += count(faulty, "participant")
    console.print(f"structural checks: {sound}", soft_wrap=True)
    if found.applied is not None:
        console.print(Text(f"decisions of reviewers kept: {found.applied}"), soft_wrap=True)
    console.print(f"\nWrote the tables and grounding/ to {found.study}", soft_wrap=True, markup=False)


def show_learned(found: WordsLearned, path: Path | None, console: Console) -> None:
    """Print what words the rules could learn: numbers alone, since the phrases are what participants said."""
    console.print(
        f"[bold]{count(found.n_reviewed, 'reviewed segment')}[/], of which the rules read "
        f"{found.n_misread:,} otherwise; {count(len(found.proposals), 'proposal')}",
        soft_wrap=True,
    )
    if path is None:
        note(
            console,
            "no unknown word makes more of them right than wrong; review more segments, and try again",
        )
        return
    header = ["would mean", "right", "wrong", "for", "participants", "against", "not reviewed"]
    rows = [
        [one.means, *(f"{n:,}" for n in (one.n_right, one.n_wrong, len(one.segments), one.n_participants,
         len(one.against), one.n_open))]
        for one in found.proposals
    ]  # fmt: skip
    console.print(table_of(header, rows))
    note(
        console,
        "right and wrong: reviewed segments that become so if the rules know the word; they are those it was "
        "learned from",
        "for and against: reviewed segments with the word, with and without that meaning",
    )
    state(console, f"Wrote {path}, in this order")
    warn(console, "The file holds what participants said. It is for its owner alone; keep it in the study.")
    state(
        console,
        "Nothing is in force yet. Next: in this file write accept = true for what you agree with, name it in "
        "grounding.toml ([rules], words), and run fidm ground again.",
    )


def say_review_first(first: Mapping[str, Any], expected: Mapping[str, int]) -> list[str]:
    """Return by how much reviewing the segments that free most would raise what counts, if it would.

    Examples
    --------
    >>> say_review_first({"counted": 41, "segments": [{}]}, {"counted": 24, "actions": 100})[0][:42]
    'reviewing the 1 segment that frees most wo'
    """
    n, of = len(first["segments"]), max(1, expected["actions"])
    if not n:
        return []
    which = "segment that frees" if n == 1 else "segments that free"
    right = "it is" if n == 1 else "they are"
    return [
        f"reviewing the {n} {which} most would raise the share of actions that count from "
        f"{expected['counted'] / of:.0%} to {first['counted'] / of:.0%}, if {right} right as read"
    ]


def _show_doubts(found: GroundedStudy, console: Console) -> None:
    """Why segments need review, how much was inferred, and how far rules and model agreed."""
    doubts = found.doubts()
    if doubts.height:
        listed = "; ".join(f"{doubt_in_words(name)} ({n:,})" for name, n in doubts.head(6).iter_rows())
        note(console, f"why review: {listed}")
    share = found.grounded.shares()["inferred_moves"]
    if share:
        note(
            console,
            f"{share:.0%} of moves are inferred: the words name a place and the planner found the way",
        )
    agreement = found.agreement
    if agreement is None:
        return
    console.print(say_agreement(agreement, found.grounded.provenance.get("check_share", 1.0)), soft_wrap=True)


def say_agreement(agreement: Mapping[str, Any], check_share: float = 1.0) -> str:
    """Return how often rules and language model agreed, as the quality figure of a study's grounding.

    Parameters
    ----------
    agreement : mapping
        See :meth:`fidm.grounding.hybrid.Agreement.to_dict`.
    check_share : float
        Of how many of the segments that the rules are sure of the model was asked.

    Examples
    --------
    >>> from fidm.grounding.hybrid import Agreement
    >>> found = Agreement(n_asked=12, n_agreed=9, n_checked=24, n_confirmed=23)
    >>> print(say_agreement(found.to_dict()))  # doctest: +NORMALIZE_WHITESPACE
    Agreement of rules and language model: the same moves in 32 of 36 segments that both read, 88.9%
    (95% Wilson interval 74.7% to 95.6%); 23 of 24 where the rules were sure, 9 of 12 where they doubted.
    """
    both, same = agreement["both"], agreement["same"]
    if not both:
        return "Agreement of rules and language model: there is no segment that both read."
    doubted = both - agreement["checked"]
    said = (
        f"Agreement of rules and language model: the same moves in {same:,} of {count(both, 'segment')} that "
        f"both read, {agreement['share']:.1%} (95% Wilson interval {agreement['low']:.1%} to "
        f"{agreement['high']:.1%}); {agreement['confirmed']:,} of {agreement['checked']:,} where the rules "
        f"were sure, {agreement['agreed']:,} of {doubted:,} where they doubted."
    )
    if check_share < 1:
        said += f" Only a share of {check_share:g} of what the rules were sure of was checked (check_share)."
    return said


def show_demo(study: Path, console: Console) -> None:
    """Print what became of words in a simulated study, what people are like, and what one of them did."""
    opened = StudyFolder.open(study)
    _show_words(opened, console)
    fit, _ = opened.fit()
    profile = fit.profile(opened.cohort)
    console.print(f"\n[bold]What these {len(opened.cohort)} people are like[/], from what they did and said")
    show_summary(profile, console)
    found = find_evidence(fit, opened.cohort, profile=profile)
    whom = found.most_astray()
    if whom is not None:
        console.print(f"\n[bold]Evidence[/]: what {whom} did that was not best, the least expected first")
        rows = [
            [str(row["step"]), str(row["segment"]), row["action"], row["best"], f"{row['probability']:.1%}"]
            for row in worse_actions(found, 4, participant=whom).iter_rows(named=True)
        ]
        console.print(table_of(["step", "segment", "did", "best", "probability"], rows, left=4))
    astray = opened.find_localization(fit)
    if astray is not None:
        _show_localization(astray, console)


def _show_words(opened: StudyFolder, console: Console) -> None:
    """What became of the dialogs: how many segments are right, and what one of them looks like."""
    grounded = read_grounding(opened.path, opened.tasks[0])
    formats = len({dialog.transcript.format for dialog in grounded.dialogs})
    console.print(
        f"\n[bold]From words to moves[/]: {len(grounded.dialogs)} dialogs in {formats} formats, "
        f"{grounded.segments.height:,} segments, "
        f"{grounded.shares().get('needs_review', 0.0):.1%} marked for review",
        soft_wrap=True,
    )
    right, of = _right(read_cohort(opened.path / TRUTH), grounded.cohort)
    console.print(
        f"{right / of:.1%} of segments led through exactly the actions that were meant; this package put "
        "them into words, so that says nothing about real speech",
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("one of the simulated people said", overflow="fold", max_width=44)
    table.add_column("program", overflow="fold")
    table.add_column("actions", justify="right")
    dialog = grounded.dialogs[0]
    counts = grounded.segments.filter(grounded.segments["participant"] == dialog.transcript.participant)
    for one, n in list(zip(dialog.segments, counts["n_actions"].to_list(), strict=True))[:4]:
        program = "; ".join(str(step) for step in one.proposal.program)
        table.add_row(Text(one.segment.text.replace("\n", " / ")), Text(program), str(n))
    console.print(table)


def _right(truth: Cohort, found: Cohort) -> tuple[int, int]:
    """How many segments led through exactly the true actions, of how many."""
    same = found.select(truth.ids.to_list())
    actions = []
    for cohort in (truth, same):
        own = []
        for e in range(cohort.n_episodes):
            first, last = cohort.step_offsets[e], cohort.step_offsets[e + 1]
            owner = cohort.segment[first:last] if cohort.segment is not None else np.zeros(0)
            n = int(cohort.segment_offsets[e + 1] - cohort.segment_offsets[e])
            own.append([tuple(cohort.action[first:last][owner == i].tolist()) for i in range(n)])
        actions.append(own)
    right = sum(a == b for one, two in zip(*actions, strict=True) for a, b in zip(one, two, strict=False))
    return right, truth.n_segments


def _show_localization(astray: Localization, console: Console) -> None:
    """How well unexpected actions point at detours and shelves passed by."""
    console.print("[bold]Are unexpected actions where people went astray?[/] Two anchors from the map alone")
    rows = []
    for anchor in (ROUTE, BYPASS):
        row, paper = astray.row(anchor), LOCALIZATION[anchor]
        enriched = (number(one["enrichment"]) for one in (row, paper))
        rows.append([SAID[anchor].lower(), with_ends(row, "auc", ".3f"), f"{paper['auc']:.3f}", *enriched])
    console.print(table_of(["", "AUC within a person", "paper", "enrichment", "paper"], rows))
    note(
        console,
        "The anchors are found from the same distances as the values, so part of this is circular; and these "
        "people were made to resemble the paper's.",
    )


def show_evaluation(found: Evaluation, console: Console) -> None:
    """Print how often each part of a grounder was exact, confident, and right where it was confident."""
    known = found.known
    what = count(len(known.items), "audited segment" if known.kind == "audit" else "phrasing")
    models = "".join(dict.fromkeys(f"; model {named_model(row)}" for row in found.rows if row.model))
    console.print(printable(f"{what} of {found.sheet}{models}"), style="bold", markup=False, soft_wrap=True)
    rows = [
        [row.grounder, f"{row.n:,}", *(say_share(one, "\n", "\n") for one in row.shares().values())]
        for row in found.rows
    ]
    console.print(table_of(("grounder", "n", "exact", "confident", "of these right"), rows))
    if found.agreement is not None and found.agreement.n_both:
        agreed = found.agreement
        console.print(
            f"Rules and model led to the same moves in {agreed.n_same:,} of the {agreed.n_both:,} segments "
            f"that both read; right in {say_share(share_of(found.n_agreed_right, agreed.n_same))}",
            soft_wrap=True,
        )
    note(
        console,
        "exact: through the same actions as the truth; of these right: exact ones of the confident; 95% "
        "Wilson intervals",
    )
    if found.unanswered:
        warn(console, f"{say_unanswered(len(known.items), found.unanswered)}.")
    if known.n_unjudged:
        note(console, f"{count(known.n_unjudged, 'row')} without a verdict left out")
    if known.n_uncorrected:
        warn(
            console,
            f"{count(known.n_uncorrected, 'wrong segment')} left out: nobody wrote the right program into "
            "the column corrected. These are the hard ones, so the figures are too good.",
        )


def named_model(row: Measured) -> str:
    """Return a model's name with its size, as far as the server says.

    Examples
    --------
    >>> named_model(Measured("llm", "some.gguf", 134_515_008, 1, 1, 1, 1))
    'some.gguf (135 M)'
    """
    if row.n_params is None:
        return row.model
    size = f"{row.n_params / 1e9:.1f} B" if row.n_params >= 1e9 else f"{row.n_params / 1e6:.0f} M"
    return f"{row.model} ({size})"


def say_share(share: Mapping[str, Any], between: str = ", ", apart: str = " ") -> str:
    """Return a share with its interval.

    Examples
    --------
    >>> say_share(share_of(35, 36))
    '35 of 36, 97.2% (85.8 to 99.5%)'
    """
    if not share["of"]:
        return "–"
    interval = f"({100 * share['low']:.1f} to {share['high']:.1%})"
    return f"{share['n']:,} of {share['of']:,}{between}{share['share']:.1%}{apart}{interval}"
