"""Whether unexpected actions are where people went astray: the paper's table 1, for any cohort.

Within each person, the actions at which an anchor event happened (:mod:`fidm.evidence.anchors`) are compared
with the others: the AUC is the chance that an event is more unexpected than another action, ties half. The
top-decile rate is the share of events among the person's most unexpected tenth of actions, ⌈n/10⌉ of them;
actions tied at the edge share the last places evenly, so that no order of rows matters. All numbers are means
over the people who have both events and other actions; enrichment is the top-decile rate over the base rate.
Intervals come from drawing people again with replacement, and need at least ten people who count.

The paper averages the AUC over people but does not say whether it does so with rates and enrichment. They are
therefore also given pooled: in these every action of everybody counts the same.

Who heads for one target, passes it by and completes another next has, in hindsight, walked away from the
latter by perfectly sensible steps. Route divergence is therefore also given for the stretches (the way from
one completion to the next) on which no target was passed by; the paper does not make this distinction.

The same is done with the gap in Q alone, which needs no η. Both scores are rounded to 1e-9 first, so that
equal ones tie on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.evidence.anchors import anchors
from fidm.evidence.evidence import Evidence
from fidm.fit.fitted import Progress
from fidm.record import Record

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

ROUTE, ROUTE_CLEAR = "route_divergence", "route_divergence_clear"
BYPASS, BYPASS_OF_MOVES = "bypass", "bypass_of_moves"
DENOMINATORS: Mapping[str, str] = {
    ROUTE: "movements with a next completion",
    ROUTE_CLEAR: "those on stretches without a bypass",
    BYPASS: "opportunity steps",
    BYPASS_OF_MOVES: "all movements",
}
"""The anchors, and the steps each is looked for among."""

SAID: Mapping[str, str] = {
    ROUTE: "Turned away from the next goal",
    ROUTE_CLEAR: "Turned away from the next goal",
    BYPASS: "Passed a target by",
    BYPASS_OF_MOVES: "Passed a target by",
}
"""The anchors in words."""

SCORES = ("unexpectedness", "q_gap")
"""What is compared: the unexpectedness, and the control that needs no η."""

TOP = 0.1
CIRCULAR = (
    "The anchors are found from the same distances on the map as Q, so part of the agreement is there by "
    "construction. q_gap, which needs no η, is the control to compare with."
)
NUMBERS = ("auc", "top_rate", "baseline", "enrichment")

FEWEST = 10
"""An interval from drawing people again needs at least so many people who count."""


@dataclass(frozen=True, slots=True, eq=False)
class Localization:
    """How well unexpectedness points at detours and at shelves passed by.

    Parameters
    ----------
    table : DataFrame
        A row per anchor (see :data:`DENOMINATORS`) and score: ``auc``, ``top_rate``, ``baseline``,
        ``enrichment``, each with ``_low`` and ``_high`` (null with fewer than ten people who count);
        ``n_people`` (who have both kinds of actions, and whom the numbers are about), ``n_people_all`` (who
        have any action of the denominator), ``n_events`` and ``n_steps`` of the former; and
        ``pooled_top_rate``, ``pooled_baseline`` and ``pooled_enrichment``, in which every action of all of
        the latter counts the same.
    people : DataFrame
        The same per person: ``n_steps``, ``n_events``, ``auc``, ``top_rate``, ``baseline``.
    notes : tuple of str
        What is to be said of it.
    record : Record
        How it came about.
    """

    table: pl.DataFrame
    people: pl.DataFrame
    notes: tuple[str, ...]
    record: Record

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The table, and the one per person."""
        return {"": self.table, "people": self.people}

    def row(self, anchor: str, score: str = "unexpectedness") -> dict[str, Any]:
        """Return the numbers of one anchor, such as ``"route_divergence"``."""
        found = self.table.filter((pl.col("anchor") == anchor) & (pl.col("score") == score))
        if not found.height:
            raise DataError(f"There is no anchor {anchor!r} with the score {score!r}.")
        return found.row(0, named=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values."""
        return {"anchors": self.table, "notes": self.notes}

    def sentences(self) -> tuple[str, ...]:
        """Return how well unexpectedness points at each anchor, in a sentence each."""
        said = []
        for anchor, among in DENOMINATORS.items():
            row = self.row(anchor)
            what = f"{SAID[anchor]}, among {among}"
            if row["auc"] is None:
                said.append(f"{what}: nobody has both such events and other actions.")
                continue
            low, high = row["auc_low"], row["auc_high"]
            interval = "" if low is None else f" [{low:.3f}, {high:.3f}]"
            said.append(
                f"{what}: AUC {row['auc']:.3f}{interval} within a person; {row['enrichment']:.2f} times as "
                f"frequent in the most unexpected tenth ("
                f"{row['n_people']:,} of {row['n_people_all']:,} people)."
            )
        return tuple(said)

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def localize(
    evidence: Evidence,
    cohort: Cohort,
    *,
    seed: int = 1,
    bootstrap: int = 2_000,
    level: float = 0.95,
    on_progress: Progress | None = None,
) -> Localization:
    """Say how well the unexpectedness of actions points at detours and at shelves passed by.

    Parameters
    ----------
    evidence : Evidence
        What :func:`find_evidence` found about these people.
    cohort : Cohort
        The people, on tasks with a map.
    seed : int
        The same seed gives the same intervals.
    bootstrap : int
        How often people are drawn again for the intervals.
    level : float
        The level of the intervals.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.evidence.evidence import find_evidence
    >>> from fidm.evidence.localizing import localize
    >>> task = fidm.load_task("grocery_small")
    >>> cohort = fidm.simulate_cohort(task, 30, seed=1)
    >>> found = localize(find_evidence(fidm.Model(task).fit(cohort), cohort), cohort, bootstrap=100)
    >>> found.row("route_divergence")["auc"] > 0.5
    True
    """
    check_settings(seed=seed, bootstrap=bootstrap, level=level)
    _require(evidence, cohort)
    steps = evidence.actions.select("counts", *SCORES).with_columns(
        anchors(evidence.tasks, cohort).select(
            "step", "stretch", "is_move", "route_divergence", "opportunity", "bypass"
        )
    )
    counts = steps["counts"].to_numpy() & steps["unexpectedness"].is_not_null().to_numpy()
    if not (counts & steps["is_move"].to_numpy()).any():
        raise DataError("No movement of anybody counts, so there is nothing to localize.")
    edges = cohort.step_offsets[cohort.episode_offsets]
    person = np.repeat(np.arange(len(cohort)), np.diff(edges))
    bypass = steps["bypass"].fill_null(value=False).to_numpy()
    away = steps["route_divergence"].fill_null(value=False).to_numpy()
    directed = counts & steps["route_divergence"].is_not_null().to_numpy()
    cases: dict[str, tuple[Flags, Flags]] = {
        ROUTE: (directed, away),
        ROUTE_CLEAR: (directed & ~_on_stretch(steps, bypass), away),
        BYPASS: (counts & steps["opportunity"].fill_null(value=False).to_numpy(), bypass),
        BYPASS_OF_MOVES: (counts & steps["is_move"].to_numpy(), bypass),
    }
    if not any((among & event).any() for among, event in cases.values()):
        raise DataError(
            "Nobody ever turned away from the next goal or passed a target by, so there is nothing to "
            "localize."
        )
    rows: list[dict[str, Any]] = []
    people: list[pl.DataFrame] = []
    for number, (anchor, (among, event)) in enumerate(cases.items()):
        for score in SCORES:
            if on_progress:
                on_progress("localizing", len(rows), len(cases) * len(SCORES))
            values = np.round(steps[score].fill_null(0.0).to_numpy(), 9)
            table = _people(person[among], values[among], event[among], cohort)
            named = {"anchor": anchor, "denominator": DENOMINATORS[anchor], "score": score}
            rows.append(named | _numbers(table, [seed, number], bootstrap, level))
            people.append(table.select(*(pl.lit(text).alias(key) for key, text in named.items()), pl.all()))
    if on_progress:
        on_progress("localizing", len(rows), len(rows))
    table = pl.DataFrame(rows, schema=_schema())
    settings = {**evidence.record.settings, "bootstrap": bootstrap, "level": level, "top": TOP}
    return Localization(
        table=table,
        people=pl.concat(people).select("participant", pl.exclude("participant")),
        notes=_notes(table),
        record=Record.of("localize", evidence.tasks.tasks, seed=seed, settings=settings, cohort=cohort),
    )


def _on_stretch(steps: pl.DataFrame, event: Flags) -> Flags:
    """Whether an event happened anywhere on the stretch a step belongs to, [N]."""
    begins = (steps["step"] == 1) | (steps["stretch"] != steps["stretch"].shift(1))
    number = np.cumsum(begins.fill_null(value=True).to_numpy()) - 1
    return np.asarray(np.bincount(number, event, minlength=1)[number] > 0)


def check_settings(*, seed: int, bootstrap: int, level: float) -> None:
    """Raise if a setting of :func:`localize` cannot be, and say which.

    Parameters
    ----------
    seed : int
        Must be 0 or more.
    bootstrap : int
        Must be 1 or more.
    level : float
        Must lie between 0 and 1.
    """
    if seed < 0:
        raise DataError(f"seed is {seed}; it must be 0 or more.")
    if bootstrap < 1:
        raise DataError(f"bootstrap is {bootstrap}; it must be 1 or more.")
    if not 0 < level < 1:
        hint = f" Write {level / 100:g} for {level:g} %." if 1 < level < 100 else ""
        raise DataError(f"level is {level:g}; it must lie between 0 and 1.{hint}")


def _require(evidence: Evidence, cohort: Cohort) -> None:
    if evidence.actions.height != cohort.n_steps or not evidence.participants.equals(cohort.ids):
        raise DataError("The evidence is not about these people. Make it with find_evidence(fit, cohort).")


def _people(person: NDArray[np.int64], score: Floats, event: Flags, cohort: Cohort) -> pl.DataFrame:
    """Everybody's own numbers; null where a person does not have both kinds of actions."""
    order = np.lexsort((-score, person))
    sizes = np.bincount(person, minlength=len(cohort))
    some = np.flatnonzero(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes[some])]).astype(np.int64)
    n_events, auc, top = (np.zeros(len(some)) for _ in range(3))
    _rank(offsets, score[order], event[order], TOP, n_events, auc, top)
    n = sizes[some].astype(np.int64)
    return pl.DataFrame(
        {
            "participant": cohort.ids.gather(some),
            "n_steps": n,
            "n_events": n_events.astype(np.int64),
            "auc": pl.Series(auc, nan_to_null=True),
            "top_rate": top,
            "baseline": n_events / np.maximum(n, 1),
        }
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _rank(offsets, score, event, top, n_events, auc, top_rate):  # type: ignore[no-untyped-def]
    """Fill in each person's events, AUC and top rate; scores come person by person, the largest first."""
    for j in range(len(offsets) - 1):
        first = offsets[j]
        last = offsets[j + 1]
        n = last - first
        places = int(np.ceil(top * n - 1e-9))
        events = 0
        wins = 0.0  # pairs in which the event has the larger score, ties half
        hits = 0.0
        i = first
        while i < last:
            k = i
            tied_events = 0
            while k < last and score[k] == score[i]:
                tied_events += event[k]
                k += 1
            others = (k - i) - tied_events
            wins += others * (events + 0.5 * tied_events)
            free = min(max(places - (i - first), 0), k - i)
            hits += tied_events * free / (k - i)
            events += tied_events
            i = k
        n_events[j] = events
        auc[j] = wins / (events * (n - events)) if 0 < events < n else np.nan
        top_rate[j] = hits / places


def _numbers(people: pl.DataFrame, stream: list[int], bootstrap: int, level: float) -> dict[str, Any]:
    """The means over those who have both kinds of actions, with intervals."""
    both = people.filter(pl.col("auc").is_not_null())
    values = both.select("auc", "top_rate", "baseline").to_numpy()
    n = len(values)
    found: dict[str, Any] = {"n_people": n, "n_people_all": people.height}
    found |= {"n_events": int(both["n_events"].sum()), "n_steps": int(both["n_steps"].sum())}
    places = np.ceil(TOP * people["n_steps"].to_numpy() - 1e-9)
    total, events = int(people["n_steps"].sum()), int(people["n_events"].sum())
    pooled = float((people["top_rate"].to_numpy() * places).sum() / places.sum()) if total else math.nan
    base = events / total if total else math.nan
    found |= {"pooled_top_rate": pooled, "pooled_baseline": base}
    found["pooled_enrichment"] = pooled / base if events else math.nan
    if not n:
        return found
    centre = values.mean(axis=0)
    found |= dict(zip(NUMBERS, (*centre.tolist(), centre[1] / centre[2]), strict=True))
    if n < FEWEST:
        return found
    means = np.empty((bootstrap, 3))
    for b in range(bootstrap):
        means[b] = values[np.random.default_rng([*stream, b]).integers(0, n, n)].mean(axis=0)
    drawn = np.column_stack([means, means[:, 1] / means[:, 2]])
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    for k, name in enumerate(NUMBERS):
        found[f"{name}_low"], found[f"{name}_high"] = float(low[k]), float(high[k])
    return found


def _schema() -> dict[str, Any]:
    columns: dict[str, Any] = dict.fromkeys(("anchor", "denominator", "score"), pl.String)
    for name in NUMBERS:
        columns |= dict.fromkeys((name, f"{name}_low", f"{name}_high"), pl.Float64)
    columns |= dict.fromkeys(("n_people", "n_people_all", "n_events", "n_steps"), pl.Int64)
    return columns | dict.fromkeys(("pooled_top_rate", "pooled_baseline", "pooled_enrichment"), pl.Float64)


def _notes(table: pl.DataFrame) -> tuple[str, ...]:
    notes = [CIRCULAR]
    for row in table.filter(pl.col("score") == SCORES[0]).iter_rows(named=True):
        what = f"{row['anchor']} among {row['denominator']}"
        if not row["n_people"]:
            notes.append(f"{what}: nobody has both such events and other actions, so nothing can be said.")
            continue
        said = (
            f"{what}: {row['n_people']:,} of {row['n_people_all']:,} people have both kinds and are counted"
        )
        notes.append(said + (": too few people for an interval." if row["n_people"] < FEWEST else "."))
    return tuple(notes)
