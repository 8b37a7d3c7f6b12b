"""What a comparison of groups, or of people with themselves, has found, and what to say of the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from fidm.channels import parameter_words
from fidm.cohort import Cohort
from fidm.errors import count, remedy
from fidm.fit.common import Data
from fidm.fit.profile import say_share_inferred
from fidm.model.channels import Channel
from fidm.model.effort import Levels, paper_channels, text_levels, without_constants
from fidm.model.gaps import Gaps, named
from fidm.record import Record, hash_values
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet

HOW_TO_READ = ("Reference: ", "1 SD of ", "Interaction: ")
"""How notes begin that say how to read the tables; the others are to be minded."""

UNEQUAL = 1.25
"""Groups whose medians differ by more than this factor did not do equally much."""


INFERRED_APART = 0.05
"""Groups whose shares of inferred moves differ by more than this are said to."""


CORRELATIONS = {
    "parameter": pl.String,
    **dict.fromkeys(("r", "low", "high", "r_estimates"), pl.Float64),
    "n_people": pl.Int64,
}


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The result of :func:`compare`.

    Parameters
    ----------
    record : Record
        How it came about.
    table : DataFrame
        A row per parameter and contrast: the ``difference`` on the scale of log η or θ with its standard
        error and interval, the same as a ``factor``, the p-value (``p``), and those that hold for all
        parameters together (``p_holm``, ``p_fdr``); ``auc`` says how well the parameter itself, known without
        error, would tell the two groups apart, with an interval that carries the uncertainty of the
        difference and of the spread within groups, and null where that spread cannot be told from 0;
        ``unadjusted`` and ``auc_unadjusted`` are factor and AUC without what is adjusted for.
    terms : DataFrame
        A row per parameter and covariate: slope, standard error, interval and p-value.
    overall : DataFrame
        A row per parameter: the p-value of all contrasts together (``p``; of a single one that of the
        table) and of their change with covariates (``p_interaction``), the sd of people with and without
        covariates and the share of the variance that they explain, and how many people it rests on.
    groups : DataFrame
        A row per group: people with data, their median numbers of counted actions and of segments, and the
        share of their moves that is inferred.
    correlations : DataFrame
        Where a number is compared, a row per parameter: its correlation with the number (``r``, ``low``,
        ``high``), free of the error with which people are estimated, and that of people's estimates
        (``r_estimates``), which is not. They are partial ones where something is adjusted for. Empty where
        groups are compared.
    by : str
        What is compared.
    adjust : tuple of str
        What it is adjusted for.
    level : float
        The level of intervals.
    notes : tuple of str
        What is to be said besides.
    gaps : tuple of str
        What is to be said of people who lack data, with their names.
    """

    record: Record
    table: pl.DataFrame
    terms: pl.DataFrame
    overall: pl.DataFrame
    groups: pl.DataFrame
    correlations: pl.DataFrame
    by: str
    adjust: tuple[str, ...]
    level: float
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: Record, said: Mapping[str, Any]) -> Comparison:
        """Make a comparison from what :meth:`to_dict` gave, and its record."""
        tables = (
            pl.DataFrame(rows, infer_schema_length=None, schema_overrides=numbers_of(rows))
            for rows in (said[name] for name in ("table", "terms", "overall", "groups"))
        )
        adjust, notes, gaps = (tuple(said[name]) for name in ("adjust", "notes", "gaps"))
        table, terms, overall, groups = tables
        correlations = pl.DataFrame(said["correlations"], schema=CORRELATIONS)
        named = said["by"], adjust, said["level"], notes, gaps
        return cls(record, table, terms, overall, groups, correlations, *named)

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Its tables by name."""
        found = {"": self.table, "terms": self.terms, "overall": self.overall, "groups": self.groups}
        return found | ({"correlations": self.correlations} if self.correlations.height else {})

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, a sentence for each parameter and contrast."""
        said = []
        for row in self.table.iter_rows(named=True):
            name, (one, _, other) = parameter_words(row["parameter"]), row["contrast"].partition(" / ")
            ends = f"{row['factor']:.2f} times ({row['factor_low']:.2f} to {row['factor_high']:.2f})"
            whose = f"in {one} as in {other}" if other else f"with {one}"
            unclear = f"no clear {'difference' if other else 'relation'}"
            if row["p_holm"] < 1 - self.level:
                unclear = ""
            elif not row["factor_low"] <= 1 <= row["factor_high"]:
                unclear += f" after correction for {self.table.height} tests (Holm p = {row['p_holm']:.3f}), "
                unclear += "though the interval, of this test alone, excludes 1; "
            else:
                unclear += "; "
            more = self._say_correlation(row["parameter"])
            said.append(f"{name}: {unclear}{ends} as high {whose}{more}.")
        return tuple(said)

    def _say_correlation(self, parameter: str) -> str:
        for row in self.correlations.filter(parameter=parameter).iter_rows(named=True):
            if row["r"] is not None:
                return f"; r = {row['r']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        return ""

    def by_contrast(self) -> Iterator[tuple[str, pl.DataFrame, tuple[str, ...]]]:
        """Give each contrast with its rows of the table and their sentences."""
        said = self.table.select("contrast").with_columns(sentence=pl.Series(self.sentences))
        for contrast in self.table["contrast"].unique(maintain_order=True):
            rows = said.filter(contrast=contrast)
            yield contrast, self.table.filter(contrast=contrast), tuple(rows["sentence"])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, texts and lists."""
        return {
            "by": self.by,
            "adjust": list(self.adjust),
            "level": self.level,
            "notes": list(self.notes),
            "gaps": list(self.gaps),
            "correlations": [],
            **{name or "table": table.to_dicts() for name, table in self.tables.items()},
        }

    def __repr__(self) -> str:
        adjusted = f", adjusted for {', '.join(self.adjust)}" if self.adjust else ""
        return f"Comparison({self.by}{adjusted}: {self.table.height} differences)"


def numbers_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, type[pl.Float64]]:
    """The columns of rows that hold no text, all of whose values may be missing."""
    names = dict.fromkeys(name for row in rows for name in row)
    bare = (name for name in names if all(row[name] is None for row in rows))
    return dict.fromkeys(bare, pl.Float64)


def all_together(table: pl.DataFrame) -> pl.DataFrame:
    """Add p-values that hold for all rows together: by Holm, and as false discovery rates."""
    p = table["p"].to_numpy()
    order = np.argsort(p, kind="stable")
    holm = np.empty(len(p))
    holm[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(len(p), 0, -1)))
    fdr = stats.false_discovery_control(p)
    after = table.columns.index("p") + 1
    return table.insert_column(after, pl.Series("p_holm", holm)).insert_column(
        after + 1, pl.Series("p_fdr", fdr)
    )


def each_group(did: pl.DataFrame) -> pl.DataFrame:
    """How many people each group has, their medians, and the share of moves that is inferred."""
    share = pl.col("inferred").sum() / pl.col("moves").sum()
    return (
        did.group_by("group")
        .agg(
            people=pl.len(),
            actions=pl.col("actions").median(),
            segments=pl.col("segments").median(),
            inferred=share.fill_nan(None),
        )
        .sort("group")
    )


def gaps_of(whole: Cohort, cohort: Cohort) -> tuple[str, ...]:
    """Who has no data, and what a fit of those who are compared would say of theirs."""
    gaps = Gaps.of(whole)
    lost = (*gaps.absent, *gaps.unread)
    are = "is" if len(lost) == 1 else "are"
    said = (
        [f"{count(len(lost), 'person', 'people')} without any data {are} left out: {named(lost)}."]
        if lost
        else []
    )
    return (*said, *(f"{one[0].upper()}{one[1:]}." for one in Gaps.of(cohort).say("episode")))


def say_moves_inferred(data: Data, inferred: float) -> list[str]:
    """Which share of all moves is inferred, where any is."""
    moves = say_share_inferred(data.n_inferred, data.n_steps, inferred)
    return [f"{moves[0].upper()}{moves[1:]}."] if moves else []


def say_unequal(groups: pl.DataFrame, who: str = "groups") -> list[str]:
    """Say it if groups, or people in each condition, did not do equally much."""
    said = []
    for what in ("actions", "segments"):
        values = groups[what].to_numpy()
        if len(values) > 1 and values.min() > 0 and values.max() > UNEQUAL * values.min():
            said.append(
                f"The {who} did not do equally much: {values.min():g} to {values.max():g} {what} (medians). "
                "Differences here allow for it; plain means of estimates would not."
            )
    return said


def say_unequally_inferred(groups: pl.DataFrame, inferred: float) -> list[str]:
    """Say it if more was inferred in one group than in another."""
    known = groups.filter(pl.col("inferred").is_not_null()).sort("inferred", "group")
    if known.height < 2 or known["inferred"][-1] - known["inferred"][0] <= INFERRED_APART:
        return []
    least, most = (f"{row['group']} ({row['inferred']:.0%})" for row in known[[0, -1]].iter_rows(named=True))
    why = (
        "Inferred moves are mostly best actions, so they raise η there."
        if inferred
        else "They do not count in action sensitivity, but effort is held against them: a difference in "
        "effort may come from how moves were filled in."
    )
    weight = 0 if inferred else 1
    other = remedy(f"inferred={weight}", f"fidm compare --inferred {weight}")
    return [
        f"More moves were inferred in {most} than in {least}. {why} See whether the result is the same with "
        f"inferred moves {'left out' if inferred else 'counted'} ({other})."
    ]


def hash_columns(cohort: Cohort, columns: Sequence[str]) -> str:
    """Return a hash of what is known of everybody: a cohort's own hash leaves it out."""
    texts = cohort.participants.select(pl.col(columns).cast(pl.String))
    return hash_values(np.array([repr(row) for row in texts.iter_rows()]))


def hash_conditions(cohort: Cohort, by: str) -> str:
    """Return a hash of the condition of every episode."""
    return hash_values(np.array([repr(one) for one in cohort.episodes[by].cast(pl.String).to_list()]))


def lay_out_for(
    tasks: TaskSet, cohort: Cohort, channels: Sequence[Channel] | None, inferred: float, longest: float
) -> tuple[tuple[Channel, ...], Levels, Data, tuple[str, ...]]:
    """Return the channels to compare in, levels of text columns, what was observed, and what to say of it."""
    wanted = tuple(paper_channels() if channels is None else channels)
    used = tuple(c for c in wanted if channels is not None or c.column in cohort.segments.columns)
    used, constant = without_constants(used, cohort)
    levels = text_levels(used, cohort)
    q = tasks.values(solve(one) for one in tasks.tasks)
    return (
        used,
        levels,
        Data.of(tasks, q, used, levels, cohort, need_columns=True, inferred=inferred, longest=longest),
        constant,
    )
