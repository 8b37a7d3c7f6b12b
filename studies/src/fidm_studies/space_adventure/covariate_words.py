"""Other tests beside the Space Adventure Task, in sentences, tables and a figure; numbers choose words."""

from __future__ import annotations

from typing import Any

import polars as pl

from fidm.report.parts import column, figure, section, table_of, text_column, with_interval
from fidm_studies.analysis import Findings
from fidm_studies.space_adventure import figures
from fidm_studies.space_adventure.dataset import STUDENTS
from fidm_studies.space_adventure.figures import WORDS
from fidm_studies.space_adventure.files import FASTEST_MS, N_ITEMS
from fidm_studies.space_adventure.people import CLINICAL, DRAWN, UNDER
from fidm_studies.telling import Row, how_drawn, more_or_less, one_row, said

SURE = 0.05
"""A corrected p-value below this is called more than chance."""


def tests(findings: Findings) -> dict[str, Any]:
    """Return the section about processing speed, vocabulary and working memory."""
    rows = findings.tables["relations"]
    samples = rows["sample"].unique(maintain_order=True).to_list()
    return section(
        "tests",
        "Processing speed, vocabulary and working memory",
        [
            "Each test is scored by the share of its items answered rightly, as its authors say: "
            f"{N_ITEMS['processing_speed']} of processing speed, as many as possible in a limited time, "
            f"{N_ITEMS['vocabulary']} of vocabulary and {N_ITEMS['working_memory']} of working memory; "
            f"answers faster than {FASTEST_MS} ms are left out. So higher is better, and a negative relation "
            "with θ means that the slow do worse.",
            *(
                f"{sample.capitalize()} ({_most(rows.filter(sample=sample))} people): "
                f"{_sure(rows.filter(sample=sample))}."
                for sample in samples
            ),
            f"{_with_age(findings.tables['age'])} {_with_disorder(findings)} p-values are corrected by "
            "Holm's method for the six relations of each group of people; in the figure, plain correlations "
            f"that remain below {SURE:g} are framed.",
        ],
        tables=[
            table_of(
                "relations",
                "Rank correlations with other tests",
                [
                    text_column("sample", "people"),
                    text_column("parameter"),
                    text_column("test"),
                    *with_interval("value", "Spearman correlation", low="low", high="high"),
                    column("p_holm", "corrected p"),
                    *with_interval("partial", "alcohol use disorder held fixed"),
                    column("partial_p_holm", "corrected p"),
                    column("n", "how many"),
                ],
                figures.in_words(rows, "parameter", "test"),
                note=how_drawn(findings, DRAWN),
            ),
            table_of(
                "with-age",
                "Rank correlations with age, all adults",
                [
                    text_column("measure"),
                    *with_interval("value", "Spearman correlation", low="low", high="high"),
                    column("n", "how many"),
                ],
                figures.in_words(findings.tables["age"], "measure"),
                note=how_drawn(findings, DRAWN),
            ),
        ],
        figures=[
            figure(
                "relations",
                "η, θ and other tests",
                figures.draw_relations(rows),
                alt="Rank correlations of η and θ with three tests in four groups of people.",
                table="relations",
            )
        ],
    )


def _with_disorder(findings: Findings) -> str:
    """Why alcohol use disorder is held fixed, if η goes with it."""
    people = findings.tables["people"]
    young = people.filter(pl.col("age") < UNDER, pl.col("source") != STUDENTS)
    disorder = young.filter(pl.col("clinical_group") == CLINICAL.first).height
    eta = one_row(findings.tables["groups"], comparison="clinical", parameter="eta")
    goes = more_or_less(
        eta, "have a higher η than controls", "have a lower η than controls",
        "do not differ for sure from controls in η", chance=0.5,
    )  # fmt: skip
    return (
        f"{disorder} of the {young.height} adults under {UNDER} have alcohol use disorder, and people with "
        f"it {goes}, so relations are also given with it held fixed (partial rank correlations)."
    )


def _with_age(rows: pl.DataFrame) -> str:
    """What goes with age, and what follows from that."""
    found = [
        f"{WORDS[row['measure']]} ({said(row)})"
        for row in rows.iter_rows(named=True)
        if more_or_less(row, "more", "less", "", chance=0)
    ]
    if not found:
        return "Nothing of this goes with age for sure."
    return f"In all adults, age goes with {', '.join(found)}; so what is seen in all of them may be age."


def _most(rows: pl.DataFrame) -> int:
    """Of how many people the relations are, at most."""
    return int(max(rows["n"].to_list()))


def _sure(rows: pl.DataFrame) -> str:
    """Which relations remain after correction."""
    sure = rows.filter(pl.col("p_holm") < SURE)
    if not sure.height:
        return "no relation remains after correction"
    return "; ".join(
        f"{WORDS[row['parameter']]} with {WORDS[row['test']]} {said(row)}{_held_fixed(row)}"
        for row in sure.iter_rows(named=True)
    )


def _held_fixed(row: Row) -> str:
    """What is left of a relation with alcohol use disorder held fixed; nothing to say where nobody has it."""
    if row["partial"] is None:
        return ""
    fixed = {"value": row["partial"], "low": row["partial_low"], "high": row["partial_high"]}
    remains = "remains" if row["partial_p_holm"] < SURE else "does not remain"
    return f" (alcohol use disorder held fixed {said(fixed)}, which {remains} after correction)"
