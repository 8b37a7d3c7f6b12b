"""How far a person's numbers can be trusted: split halves, retest, and the change that is more than noise.

*Split-half.* Where people have several episodes, whole episodes are dealt to two halves, odd and even: what
lasts an episode, such as an easy maze or a slow first choice, would be in both halves otherwise and count as
the person's. Other halves of whole episodes can be asked for: the first against the last ones, random ones,
or blocks that a column or a rule names, dealt in turn. Where people have one episode, their segments are
dealt (``halves="segments"``); every step goes with its segment. In episodes whose steps do not say which
segment they belong to, runs of three counted steps are dealt instead. Each half is estimated alone by maximum
likelihood, with the population values of one fit for both; shrunken halves are pulled to the same centre, the
more the less they hold, which distorts the correlation. With r the correlation of the halves (log η, θ), the
full-length reliability is Spearman and Brown's ρ = 2r / (1 + r); a negative r is not stepped up. With SD the
spread of full-length estimates, the standard error of measurement is SD·√(1 − ρ).

People whose estimate is infinite in a half (every choice a best one) are left out of r, and with them the
most consistent people, so ρ of η says little where they are many. The rank correlation keeps them, in the
first and last places; sentences then rely on the model.

*Retest.* Where people have two traces: the first against the second. ρ is the ICC(2,1), absolute agreement
of single measurements, and the standard error of measurement √(σ²_occasion + σ²_error) of the same two-way
model. More than two traces are trials of a sitting as far as anybody knows, and give split halves only.

*Model.* What empirical Bayes itself says of people who were observed, and ``fidm fit`` prints: ρ is the mean
share of the prior's variance that a person's data take away, if the prior were known
(:attr:`fidm.Profile.reliability`), with an interval from how well the spread among people is known. The
standard error of measurement is the root of the mean posterior variance over ρ.

The standard error of measurement is that of estimates by maximum likelihood, and the minimal detectable
change 1.96·√2 times as large: two such estimates of a person who has not changed differ by less in 95 % of
cases. The estimates of empirical Bayes, which ``fidm fit`` prints unless told otherwise, are pulled towards
the mean by about ρ, and so are their differences: for them the change is ρ times as large. Intervals are from
a bootstrap of participants.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import rankdata

from fidm.cohort import Cohort
from fidm.defaults import BOOTSTRAP
from fidm.errors import DataError, count, one_of, remedy
from fidm.experiments.recover import as_printed, label_of
from fidm.experiments.shared import Blocks, by_method, episode_ranks, fit_learnable, groups_of
from fidm.fit.effort_alone import EffortFit, fit_effort
from fidm.fit.fitted import Fit
from fidm.fit.profile import FEWEST_FOR_SHARES, SENSITIVITY
from fidm.model.channels import Channel
from fidm.model.effort import paper_channels, segment_owner_offsets
from fidm.model.gaps import has_copies, with_data
from fidm.record import Record, hash_values
from fidm.simulate.structure import counted_steps
from fidm.stats import redraws
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet
from fidm.types import Flags, Floats, Integers, Progress

MANY = 0.2
"""If a larger share of people is left out, a reader is told, and sentences rely on the model."""

ENOUGH_RETESTS = 30
"""A retest of fewer people, and of less than half of them, is not what sentences rely on."""

TOO_LOW = 0.5
"""Below this reliability more than half of the differences are error, and sentences speak of no change."""

LEAST_CHANGE, MOST_TIMES = 0.005, 100
"""Estimates that vary less hardly differ, and changes by larger factors are not written as numbers."""

IN_TURN = ("segments", "episodes")
"""Halves that follow from the order alone."""

DEALT = ("first-last", "random")
"""Halves of everybody's episodes."""

RUN = 3
"""How many counted steps are dealt at a time where steps do not name their segment."""


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """How far each parameter of a person can be trusted.

    Parameters
    ----------
    record : Record
        How it came about.
    parameters : tuple of str
        ``action_sensitivity`` and the channels.
    table : DataFrame
        A row per parameter and kind (``split-half``, ``retest``, ``model``): people with an estimate in both
        measurements and without, their correlation r, the rank correlation of all, the reliability with its
        interval, the standard error of measurement, and the minimal detectable change, with its interval, of
        estimates by maximum likelihood; ``mdc_shrunk`` is that of estimates by empirical Bayes. Where nothing
        can be said of changes in a person they are empty, and ``no_change`` says why. Sensitivity is on the
        scale of log η.
    notes : tuple of str
        How halves were made, and what could not be done.
    not_learned : mapping of str to str
        Channels that could not be learned, and why.
    """

    record: Record
    parameters: tuple[str, ...]
    table: pl.DataFrame
    notes: tuple[str, ...]
    not_learned: Mapping[str, str]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The table."""
        return {"": self.table}

    def row(self, parameter: str, kind: str = "split-half") -> dict[str, Any] | None:
        """Return what is known of a parameter; None where there is nothing of this kind."""
        chosen = self.table.filter(parameter=parameter, kind=kind)
        return chosen.row(0, named=True) if chosen.height else None

    def sentences(self) -> tuple[str, ...]:
        """Say for each parameter how reliable it is, and which change in a person is more than noise."""
        said = []
        for name in self.parameters:
            label = label_of(name)
            label = label[0].upper() + label[1:]
            row = self._best(name)
            if row is None:
                said.append(f"{label}: its reliability cannot be told from these people.")
                continue
            what = "odds" if name == "pause_presence" else "value"
            known = row["low"] is not None
            interval = f"{as_printed(row['low'])} to {as_printed(row['high'])}, " if known else ""
            interval = f" ({interval}{_people(row['n'])})"
            kind = "by the model's own estimate, its" if row["kind"] == "model" else row["kind"]
            text = f"{label}: {kind} reliability is {as_printed(row['reliability'])}{interval}"
            is_model = row["kind"] == "model"
            other = self.row(name, "split-half" if is_model else "model")
            if other is not None and other["reliability"] is not None:
                by = "split halves" if is_model else "the model's own estimate"
                text += f", by {by} {as_printed(other['reliability'])} ({_people(other['n'])})"
            said.append(f"{text}; {row['no_change'] or _say_change(self._largest_error(row), what)}")
        return tuple(said)

    def withheld(self) -> Reliability:
        """Return the same without changes that cannot be spoken of, in any row of a parameter."""
        rows = []
        for row in self.table.iter_rows(named=True):
            best = self._best(row["parameter"])
            known = row["reliability"] is not None
            why = (why_no_change(row) or None) if known else None
            if known and not why and best is not None and (other := why_no_change(best)):
                why = f"by {best['kind']}, {other}"
            gone = [name for name in row if name.startswith("mdc")] if why else []
            rows.append(row | dict.fromkeys(gone) | {"no_change": why})
        schema = {**self.table.schema, "no_change": pl.String()}
        return replace(self, table=pl.DataFrame(rows, schema=schema))

    def _largest_error(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row with the larger error of split halves and the model, neither of which knows the truth."""
        found = dict(row)
        for kind in () if row["kind"] == "retest" else ("split-half", "model"):
            other = self.row(row["parameter"], kind)
            if other is not None and other["mdc"] is not None and other["mdc_shrunk"] > found["mdc_shrunk"]:
                found |= {name: other[name] for name in ("mdc", "mdc_shrunk")}
        return found

    def _best(self, name: str) -> dict[str, Any] | None:
        """The kind to rely on: retest of enough people, else split-half, else the model.

        Retest and split-half are passed over if too many had to be left out.
        """
        halves = self.row(name)
        everybody = 0 if halves is None else halves["n"] + halves["without"]
        for kind in ("retest", "split-half", "model"):
            row = self.row(name, kind)
            if row is None or row["reliability"] is None:
                continue
            if kind == "retest" and row["n"] < min(ENOUGH_RETESTS, everybody / 2):
                continue
            if kind == "model" or row["without"] <= MANY * (row["n"] + row["without"]):
                return row
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "parameters": list(self.parameters),
            "reliability": self.table.to_dicts(),
            "sentences": list(self.sentences()),
            "notes": list(self.notes),
            "not_learned": dict(self.not_learned),
        }

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def why_no_change(row: Mapping[str, Any]) -> str:
    """Return why nothing is said of changes in a person, of a row with a reliability; empty where it is."""
    nothing = "to speak of changes in one person."
    if row["reliability"] < TOO_LOW:
        return f"below {as_printed(TOO_LOW)}, too low {nothing}"
    if row["low"] is None or row["low"] <= TOO_LOW:
        return f"it may be {as_printed(TOO_LOW)} or below, too uncertain {nothing}"
    if row["mdc"] < LEAST_CHANGE:
        return "people's estimates hardly differ, so nothing is said of changes in one person."
    return ""


def _say_change(row: Mapping[str, Any], what: str) -> str:
    """Which change of a person's value is within measurement error."""
    if row["mdc_shrunk"] > math.log(MOST_TIMES):
        return f"even a change of a person's {what} by a factor of {MOST_TIMES} is within measurement error."
    larger = "" if row["kind"] == "retest" else ", and perhaps larger ones,"
    alone = f"more than {MOST_TIMES}"
    if row["mdc"] <= math.log(MOST_TIMES):
        alone = f"×{math.exp(row['mdc']):.2f}"
    return (
        f"changes of a person's {what} below ×{math.exp(row['mdc_shrunk']):.2f}{larger} are within "
        f"measurement error ({alone} if estimated by maximum likelihood)."
    )


def reliability(
    task: TaskModel | Iterable[TaskModel] | None,
    cohort: Cohort,
    *,
    fit: EffortFit | None = None,
    learn_from: Cohort | None = None,
    channels: Sequence[Channel] | None = None,
    halves: str | None = None,
    unit: Literal["person", "episode"] = "person",
    together: str | None = None,
    seed: int = 1,
    bootstrap: int = BOOTSTRAP,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Reliability:
    """Say how reliable every parameter is: split halves, retest, and the change that can be detected.

    Parameters
    ----------
    task : TaskModel, or several, or None
        The tasks the episodes name; None where effort alone is studied, without a task.
    cohort : Cohort
        The people.
    fit : EffortFit, optional
        What people share; learned from ``learn_from`` if left out.
    learn_from : Cohort, optional
        The training part; by default all of the cohort.
    channels : sequence of Channel, optional
        The effort channels that are learned where there is no fit; by default the paper's.
    halves : str, optional
        What is dealt to the two halves: ``"segments"`` with their steps in turn; or whole episodes:
        ``"episodes"`` in turn (odd and even), ``"first-last"``, ``"random"`` (by the seed), or blocks in turn
        (the first, third … against the second, fourth …), named by a column of the episodes, such as a
        session, or by a rule such as ``"every 10"``. By default whole episodes in turn if at least four of
        five people have several, or else segments. People with episodes in one half only are left out.
    unit : {"person", "episode"}
        Whose reliability: that of people; or that of single episodes, such as the dialogs of a person, each
        of which then has numbers of its own. People are still drawn whole for the intervals.
    together : str, optional
        A column of the participants: people with the same value, such as those who talk to each other, are
        drawn together for the intervals.
    seed : int
        Of the bootstrap, and of random halves.
    bootstrap : int
        How many times people are drawn anew for the intervals.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.experiments.reliability import reliability
    >>> task = fidm.load_task("errands")
    >>> found = reliability(task, fidm.simulate_cohort(task, 60, seed=1), bootstrap=100)
    >>> found.row("duration")["n"]
    60
    """
    whole, notes = cohort, list[str]()
    cohort = _without_copies(with_data(cohort), notes)
    protocol = _Protocol(
        halves=halves or _usual_halves(cohort, unit),
        unit=unit,
        together=together,
        seed=seed,
        bootstrap=bootstrap,
        workers=workers,
    )
    several = _check_people(task, cohort, fit, protocol)
    say = on_progress or (lambda doing, done, of: None)
    group = None if together is None else groups_of(cohort, together)
    if several.any() and protocol.halves == "segments" and unit == "person":
        notes.append(
            "neighbouring segments of an episode are in opposite halves, so what lasts an episode counts as "
            "the person's, and the reliability may be too high"
            + remedy("; halves='episodes' deals whole episodes", "")
        )
    if unit == "episode":
        owner = cohort.episode_owner()
        group = owner if group is None else group[owner]
        whole = cohort = cohort.by_episode()
        learn_from = None if learn_from is None else learn_from.by_episode()
        several = np.zeros(len(cohort), dtype=np.bool_)
        notes.append(f"every episode has numbers of its own: {len(cohort):,} episodes stand for people")
    tasks = None if task is None else TaskSet.of(task)
    say("population", 0, 4)
    failures: dict[str, str] = {}
    if fit is None:
        learners = cohort if learn_from is None else learn_from
        if tasks is None:
            fit = fit_effort(learners, channels, workers=workers)
        else:
            wanted = channels or paper_channels()
            fit, failures = fit_learnable(tasks.tasks, learners, wanted, workers=workers)
    measuring = _Measuring(tasks, cohort, fit, group, protocol)
    say("split halves", 1, 4)
    rows = measuring.halves(notes)
    say("retest", 2, 4)
    twice = np.diff(cohort.episode_offsets) == 2
    if twice.any() and 2 * twice.sum() >= several.sum():
        rows += measuring.retest(twice, notes)
    elif unit == "person":
        notes.append(
            "no retest: people have more than two traces, and nothing says which are of another day; as "
            "trials of one sitting they give split halves"
            if several.any()
            else "no retest: nobody has several traces"
        )
    say("model", 3, 4)
    rows += measuring.model(notes)
    say("model", 4, 4)
    alike = fit.alike
    if alike:
        labels = ", ".join(label_of(name) for name in alike)
        notes.append(f"no measurable individual differences, so nobody has an estimate: {labels}")
    settings = {"bootstrap": bootstrap, "learned": hash_values(learned_numbers(fit)), **protocol.unusual()}
    if protocol.halves not in IN_TURN:
        settings["dealt"] = hash_halves(whole, protocol.halves, seed)
    models = () if tasks is None else tasks.tasks
    return Reliability(
        record=Record.of("reliability", models, seed=seed, settings=settings, cohort=whole),
        parameters=fit.parameters,
        table=pl.DataFrame(rows, infer_schema_length=None).drop("alone").fill_nan(None),
        notes=(*notes, *_few([row for row in rows if row["parameter"] not in alike])),
        not_learned=failures,
    ).withheld()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Protocol:
    """What is asked: the options of :func:`reliability`, described there, checked."""

    halves: str
    unit: Literal["person", "episode"]
    together: str | None
    seed: int
    bootstrap: int
    workers: int | None

    def __post_init__(self) -> None:
        if self.seed < 0 or self.bootstrap < 20:
            raise DataError(
                f"seed is {self.seed} and bootstrap {self.bootstrap}; they must be at least 0 and 20."
            )
        one_of("unit", self.unit, ("person", "episode"))
        if self.halves != "segments" and self.unit == "episode":
            raise DataError("A single episode cannot be dealt to halves whole; deal segments.")

    def unusual(self) -> dict[str, str]:
        """The settings that are not the usual ones."""
        usual = {"halves": "segments", "unit": "person", "together": None}
        return {name: getattr(self, name) for name, own in usual.items() if getattr(self, name) != own}


def _without_copies(cohort: Cohort, notes: list[str]) -> Cohort:
    """The people whose episodes are no exact copies of each other: copies agree whatever they are worth."""
    copied = has_copies(cohort)
    n = int(copied.sum())
    if not n:
        return cohort
    whose = f"{_people(n)} {'has' if n == 1 else 'have'} episodes that are exact copies of each other"
    if len(cohort) - n < 2:
        raise DataError(
            f"{whose}, which say nothing of reliability. Are files duplicated? Remove copies and fit again."
        )
    notes.append(f"{whose} (are files duplicated?), and take no part")
    return cohort[np.flatnonzero(~copied)]


def _people(n: int) -> str:
    return count(n, "person", "people")


def _usual_halves(cohort: Cohort, unit: str) -> Literal["segments", "episodes"]:
    """What is dealt unless somebody says: whole episodes, where few people would be lost by it."""
    alone = np.diff(cohort.episode_offsets) < 2
    return "episodes" if unit == "person" and len(cohort) and alone.mean() <= MANY else "segments"


def _check_people(
    task: TaskModel | Iterable[TaskModel] | None,
    cohort: Cohort,
    fit: EffortFit | None,
    protocol: _Protocol,
) -> Flags:
    """Who has several episodes, if this can be asked of these people and this fit."""
    if len(cohort) < 2:
        raise DataError("There is one person; reliability compares differences among people with error.")
    if fit is not None and not isinstance(fit, Fit) and task is not None:
        raise DataError("This fit is of effort alone; give None as the task.")
    if isinstance(fit, Fit) and task is None:
        raise DataError("This fit is of a task; give the task too.")
    several = np.diff(cohort.episode_offsets) > 1
    if protocol.halves not in (*IN_TURN, *DEALT):
        try:
            Blocks.of(cohort, protocol.halves)
        except DataError as error:
            known = ", ".join(map(repr, (*IN_TURN, *DEALT)))
            raise DataError(f"{error.message} Halves may also be {known}.") from None
    if protocol.halves != "segments" and not several.any():
        raise DataError("Nobody has several episodes, so they cannot be dealt to halves; deal segments.")
    return several


def learned_numbers(fit: EffortFit) -> Floats:
    """Return everything a fit learned, in a row."""
    return fit.population_table()["estimate"].cast(pl.Float64).to_numpy()


# ---------------------------------------------------------------------- two measurements of everybody


@dataclass(frozen=True, slots=True, eq=False)
class _Measuring:
    """Who is measured twice, by which population, and who is drawn together for the intervals."""

    tasks: TaskSet | None
    cohort: Cohort
    fit: EffortFit
    group: NDArray[np.int64] | None
    protocol: _Protocol

    def halves(self, notes: list[str]) -> list[dict[str, Any]]:
        """The rows of split halves."""
        cohort, group, halves = self.cohort, self.group, self.protocol.halves
        if halves == "segments":
            odd, odd_segment, how = deal_segments(self.tasks, cohort)
            notes.append(how)
            dealt = ((odd, odd_segment), (~odd, ~odd_segment))
            first, second = (half_of(cohort, self.fit.channels, *half) for half in dealt)
            return self._rows("split-half", (first, second, cohort), _split_half, group)
        half, how = episode_halves(cohort, halves, self.protocol.seed)
        notes.append(f"split-half: {how}")
        alone = _in_one_half(cohort, half)
        if alone.any():
            are = "is" if alone.sum() == 1 else "are"
            have = "has" if alone.sum() == 1 else "have"
            notes.append(
                f"split-half: {_people(int(alone.sum()))} {have} episodes in one half only and {are} left out"
            )
        if halves not in IN_TURN:
            half, kept = half[~alone[cohort.episode_owner()]], np.flatnonzero(~alone)
            if not len(kept):
                raise DataError(f"Nobody has episodes in both halves by {halves!r}.")
            cohort, group = cohort[kept], None if group is None else group[kept]
            alone = alone[kept]
        first, second, both = (
            half_of(cohort, self.fit.channels, *_of_episodes(cohort, chosen))
            for chosen in (half == 0, half == 1, half >= 0)
        )
        whole = cohort if (half >= 0).all() else both
        return self._rows("split-half", (first, second, whole), _split_half, group, alone)

    def retest(self, twice: Flags, notes: list[str]) -> list[dict[str, Any]]:
        """The rows of a retest of those who have two traces."""
        chosen = self.cohort[np.flatnonzero(twice)]
        how = f"retest: first against second trace, {len(chosen):,} people with two"
        if len(chosen.tasks) > 1:
            how += "; traces are on different tasks, so the retest is one with parallel forms"
        notes.append(how)
        steps, segments = deal_episodes(chosen)
        dealt = ((steps, segments), (~steps, ~segments))
        first, second = (half_of(chosen, self.fit.channels, *part) for part in dealt)
        group = None if self.group is None else self.group[twice]
        return self._rows("retest", (first, second), _retest, group)

    def _rows(
        self,
        kind: str,
        times: tuple[Cohort, ...],
        function: Callable[[Floats], Floats],
        group: NDArray[np.int64] | None,
        once: Flags | None = None,
    ) -> list[dict[str, Any]]:
        """One row per parameter, by maximum likelihood: two measurements and, of halves, the whole.

        ``once`` [P] are those of whom it is said already that they have one measurement.
        """
        alone, drawn = by_method(self.fit, "mle"), (self.protocol.seed, self.protocol.bootstrap)
        profiles = [alone.profile(people, workers=self.protocol.workers) for people in times]
        rows = []
        observed = np.any([profile.n > 0 for profile in profiles], axis=0)
        for k, name in enumerate(self.fit.parameters):
            first, *others = (
                profile.log_sensitivity if name == SENSITIVITY else profile.estimate[:, k]
                for profile in profiles
            )
            columns = (first, *others) if len(others) == 2 else (first, *others, first)
            row = _measured(name, kind, columns, function, *drawn, group)
            row["without"] = int(observed[:, k].sum()) - row["n"]  # who was never observed is not left out
            row["alone"] = 0 if once is None else int((observed[:, k] & once).sum())
            rows.append(row)
        return rows

    def model(self, notes: list[str]) -> list[dict[str, Any]]:
        """What empirical Bayes says of the reliability of its own estimates."""
        fit = self.fit
        spreads = [learned.population.sd for learned in fit.populations.values()]
        spreads += [fit.prior.sd] if isinstance(fit, Fit) and fit.method == "mle" else []
        if not np.isfinite(spreads).all():
            notes.append("no reliability by the model: the fit has no prior; the method eb learns one")
            return []
        profile = by_method(fit, "eb").profile(self.cohort, workers=self.protocol.workers)
        rows = []
        shares = profile.reliability
        for k, name in enumerate(profile.parameters):
            errors, share = profile.error_given_prior[:, k], shares[k, 0]
            seen = np.isfinite(errors)
            found, low, high = (np.full(3, np.nan) for _ in range(3))
            found[1], low[1], high[1] = shares[k]
            found[2] = math.sqrt(np.mean(errors[seen] ** 2) / share) if share > 0 else math.nan
            rows.append(_row(name, "model", int(seen.sum()), int((~seen).sum()), found, low, high))
        return rows


def deal_segments(tasks: TaskSet | None, cohort: Cohort) -> tuple[Flags, Flags, str]:
    """Which steps and which segments are in the odd half, and how that was decided."""
    person_start = segment_owner_offsets(cohort)
    owner = np.repeat(np.arange(len(cohort)), np.diff(person_start))
    odd_segment = (np.arange(cohort.n_segments) - person_start[owner]) % 2 == 0
    how = "split-half: odd against even segments"
    episode = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    segment = np.full(cohort.n_steps, -1, np.int32) if cohort.segment is None else cohort.segment
    linked = np.bincount(episode[segment >= 0], minlength=cohort.n_episodes) > 0
    odd = np.zeros(cohort.n_steps, np.bool_)
    if linked.any():
        place = cohort.segment_offsets[episode] + _filled_in(segment, cohort.step_offsets)
        odd = odd_segment[np.clip(place, 0, cohort.n_segments - 1)]
        how += ", each with its steps"
    alone = ~linked & (np.diff(cohort.step_offsets) > 0)
    if tasks is None or not alone.any():
        return odd, odd_segment, how
    odd = np.where(alone[episode], _runs(cohort, counted_steps(tasks, cohort) & alone[episode]), odd)
    where = f" of {int(alone.sum()):,} of {cohort.n_episodes:,} episodes" if linked.any() else ""
    how += (
        f"; steps{where} do not say which segment they belong to, so for sensitivity runs of {RUN} counted "
        "steps were dealt in turn; neighbours are in opposite halves, so its reliability may be too high"
    )
    return odd, odd_segment, how


def _runs(cohort: Cohort, counts: Flags) -> Flags:
    """Whether a step is in an odd run of those of its person that count."""
    edges = cohort.step_offsets[cohort.episode_offsets]
    before = np.append(0, np.cumsum(counts))
    index = before[:-1] - np.repeat(before[edges[:-1]], np.diff(edges))
    return np.asarray((index // RUN) % 2 == 0)


def _filled_in(segment: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every step's segment; a step without one goes with the step before it, or else with the first."""
    at = np.arange(len(segment))
    starts = np.repeat(offsets[:-1], np.diff(offsets))
    last = np.maximum.accumulate(np.where(segment >= 0, at, -1))
    known = last >= starts
    return np.where(known, segment[np.maximum(last, 0)], 0).astype(np.int64)


def deal_episodes(cohort: Cohort) -> tuple[Flags, Flags]:
    """Which steps and segments belong to odd episodes of their person."""
    return _of_episodes(cohort, episode_ranks(cohort)[0] % 2 == 0)


def _of_episodes(cohort: Cohort, chosen: Flags) -> tuple[Flags, Flags]:
    """Which steps and segments belong to these episodes."""
    return np.repeat(chosen, np.diff(cohort.step_offsets)), np.repeat(chosen, np.diff(cohort.segment_offsets))


def episode_halves(cohort: Cohort, halves: str, seed: int) -> tuple[Integers, str]:
    """Return the half each episode is in, 0, 1, or -1 for neither, and how that was decided."""
    rank, _ = episode_ranks(cohort)
    if halves == "episodes":
        return rank % 2, "odd against even episodes, whole"
    if halves == "random":
        sizes = np.diff(cohort.episode_offsets)
        draws = [  # of everybody's own, so that the order of people changes nothing
            np.random.default_rng([seed, zlib.crc32(name.encode())]).permutation(n)
            for name, n in zip(cohort.ids, sizes, strict=True)
        ]
        return np.concatenate([np.zeros(0, np.int64), *draws]) % 2, f"random halves of episodes (seed {seed})"
    if halves == "first-last":
        return Blocks.of(
            cohort, "halves"
        ).of_episode, "the first against the last half of everybody's episodes"
    blocks = Blocks.of(cohort, halves)
    names = blocks.names
    if len(names) < 2:
        raise DataError(f"{halves} puts all episodes into one block; two halves are needed.")
    dealt = np.where(blocks.of_episode < 0, -1, blocks.of_episode % 2)
    lost = int((dealt < 0).sum())
    how = (
        f"{halves} {names[0]} against {names[1]}" if len(names) == 2 else f"blocks by {halves} dealt in turn"
    )
    return dealt, how + (f"; {count(lost, 'episode')} in no block" if lost else "")


def hash_halves(cohort: Cohort, halves: str, seed: int) -> str:
    """Return a hash of the half each episode is in."""
    return hash_values(episode_halves(cohort, halves, seed)[0])


def _in_one_half(cohort: Cohort, half: Integers) -> Flags:
    """Whose episodes with any data are all in one half, [P]."""
    has_any = (np.diff(cohort.step_offsets) > 0) | (np.diff(cohort.segment_offsets) > 0)
    owner, n = cohort.episode_owner(), len(cohort)
    first, second = (np.bincount(owner[has_any & (half == k)], minlength=n) for k in (0, 1))
    return np.asarray((first == 0) | (second == 0))


def half_of(cohort: Cohort, channels: tuple[Channel, ...], steps: Flags, segments: Flags) -> Cohort:
    """The same people with only these steps and these segments' observations."""
    weight = np.ones(cohort.n_steps) if cohort.weight is None else cohort.weight
    names = {channel.column for channel in channels} & set(cohort.segments.columns)
    kept = pl.Series(segments)
    table = cohort.segments.with_columns(
        pl.when(kept).then(pl.col(name)).otherwise(None).alias(name) for name in sorted(names)
    )
    return replace(cohort, weight=np.where(steps, weight, 0.0), segments=table)


# ---------------------------------------------------------------------- numbers


def _measured(
    name: str,
    kind: str,
    columns: tuple[Floats, ...],
    function: Callable[[Floats], Floats],
    seed: int,
    bootstrap: int,
    group: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """One row of the table: what people with two finite measurements give, and bootstrap intervals."""
    data = np.stack(columns)
    ranked = ~np.isnan(data[:2]).any(axis=0)
    known = np.isfinite(data).all(axis=0)
    rank_r = _rank_correlation(data[0, ranked], data[1, ranked])
    data = data[:, known]
    n = data.shape[1]
    nothing = np.full(3, np.nan)
    found, low, high = nothing, nothing, nothing
    if n >= FEWEST_FOR_SHARES:
        found = function(data[:, None, :])[0]
        rng = np.random.default_rng([seed, n])
        their = None if group is None else group[known]
        rows = redraws(n, bootstrap, rng, together=their)
        drawn = np.concatenate([function(data[:, some]) for some in rows])
        drawn = drawn[np.isfinite(drawn).all(axis=1)]
        if len(drawn) > bootstrap // 2:
            low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    return _row(name, kind, n, int((~known).sum()), found, low, high, rank_r)


def _row(
    name: str,
    kind: str,
    n: int,
    without: int,
    found: Floats,
    low: Floats,
    high: Floats,
    rank_r: float = math.nan,
) -> dict[str, Any]:
    change = 1.96 * math.sqrt(2) if found[1] > 0 else math.nan  # without a reliability there is none
    return {
        "parameter": name,
        "kind": kind,
        "n": n,
        "without": without,
        "alone": 0,
        "r": float(found[0]),
        "rank_r": rank_r,
        "reliability": float(found[1]),
        "low": float(low[1]),
        "high": float(high[1]),
        "sem": float(found[2]),
        "mdc": change * float(found[2]),
        "mdc_low": change * float(low[2]),
        "mdc_high": change * float(high[2]),
        "mdc_shrunk": change * float(found[2]) * min(1.0, float(found[1])),
    }


def _split_half(data: Floats) -> Floats:
    """r, Spearman and Brown's reliability, and the standard error of measurement, [B, 3]; data [3, B, n]."""
    r = _correlation(data[0], data[1])
    full = np.where(r > 0, 2 * r / (1 + np.abs(r)), r)
    sd = data[2].std(axis=1, ddof=1)
    return np.stack([r, full, sd * np.sqrt(1 - np.clip(full, 0, 1))], axis=1)


def _retest(data: Floats) -> Floats:
    """r, ICC(2,1) and the standard error of measurement, [B, 3], of data [3, B, n]; the third is not used."""
    both = np.stack([data[0], data[1]], axis=2)
    n = both.shape[1]
    grand = both.mean(axis=(1, 2))
    people = both.mean(axis=2) - grand[:, None]
    times = both.mean(axis=1) - grand[:, None]
    rest = both - grand[:, None, None] - people[:, :, None] - times[:, None, :]
    between = 2 * (people**2).sum(axis=1) / (n - 1)
    occasion = n * (times**2).sum(axis=1)
    error = (rest**2).sum(axis=(1, 2)) / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        icc = (between - error) / (between + error + 2 * (occasion - error) / n)
    sem = np.sqrt(error + np.maximum(0.0, (occasion - error) / n))
    return np.stack([_correlation(data[0], data[1]), icc, sem], axis=1)


def _correlation(x: Floats, y: Floats) -> Floats:
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1)))


def _rank_correlation(x: Floats, y: Floats) -> float:
    """Spearman's correlation; infinite values take the first and last places."""
    if len(x) < FEWEST_FOR_SHARES:
        return math.nan
    return float(_correlation(rankdata(x)[None], rankdata(y)[None])[0])


def _few(rows: list[dict[str, Any]]) -> list[str]:
    """Who could not be measured twice."""
    said = []
    for row in rows:
        if row["kind"] == "model":
            if row["n"] < FEWEST_FOR_SHARES:
                said.append(
                    f"model: {_people(row['n'])} {'has' if row['n'] == 1 else 'have'} an estimate of "
                    f"{label_of(row['parameter'])}; {FEWEST_FOR_SHARES} are needed for a reliability"
                )
            continue
        label = label_of(row["parameter"])
        label = "finite η" if row["parameter"] == SENSITIVITY else label
        where = "halves" if row["kind"] == "split-half" else "traces"
        if row["n"] < FEWEST_FOR_SHARES:
            have = f"{_people(row['n'])} {'has' if row['n'] == 1 else 'have'}"
            said.append(
                f"{row['kind']}: {have} a {label} in both {where}; "
                f"{FEWEST_FOR_SHARES} are needed for a correlation"
            )
        elif row["without"] - row["alone"]:
            share = row["without"] / (row["n"] + row["without"])
            more = ", which is too many to rely on it; see the rank correlation" if share > MANY else ""
            lost = row["without"] - row["alone"]
            have, are = ("has", "is") if lost == 1 else ("have", "are")
            finite = "finite " if row["parameter"] == SENSITIVITY else ""
            said.append(
                f"{row['kind']}: {_people(lost)} {have} no {finite}estimate of "
                f"{label_of(row['parameter'])} in one of the {where} and {are} left out{more}"
            )
    return said
