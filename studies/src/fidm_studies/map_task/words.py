"""What was found in the HCRC Map Task, in sentences, tables and figures; numbers choose the words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from fidm.channels import parameter_words
from fidm.present.numbers import number_text
from fidm.report.parts import column, figure, section, table_of, text_column, with_interval
from fidm_studies.analysis import Findings
from fidm_studies.dataset import Loaded
from fidm_studies.map_task import figures
from fidm_studies.map_task.contrasts import EYE_CONTACT, FAMILIAR, is_clear
from fidm_studies.map_task.dataset import PAUSE_ABOVE_S
from fidm_studies.map_task.family_words import changed, compared, verdict
from fidm_studies.map_task.readings import (
    ACROSS,
    DESIGNS,
    GAMMA,
    GAMMA_ABOVE,
    LOG_NORMAL,
    MOVE,
    PAPER,
    WITHIN,
    WORDS,
)
from fidm_studies.telling import Row, how_drawn, said


def sections(findings: Findings, loaded: Loaded) -> list[dict[str, Any]]:
    """Return the sections of the page, the summary first.

    Parameters
    ----------
    findings : Findings
        What the analysis gave.
    loaded : Loaded
        The data.
    """
    return [
        _summary(findings),
        _observations(findings),
        compared(findings, MOVE),
        compared(findings, WORDS),
        _twice(findings),
        _differences(findings),
        _limits(findings),
    ]


def _summary(findings: Findings) -> dict[str, Any]:
    numbers, judged = findings.numbers, findings.parts
    return section(
        "found",
        "What was found",
        [
            f"{numbers['givers']:,} people gave routes in {numbers['dialogs']:,} dialogs, in "
            f"{numbers['moves']:,} instruct moves. The families were judged on people they were not learned "
            "from.",
            *(verdict(judged[MOVE], name) for name in PAPER),
            changed(judged),
            _reliability_words(findings),
        ],
    )


def _observations(findings: Findings) -> dict[str, Any]:
    numbers = findings.numbers
    shown = table_of(
        "observed",
        "What was observed in a move",
        [text_column("column"), column("n", "moves"), column("mean"), column("sd"), column("median"),
         column("largest"), column("zeros", "share of zeros")],
        findings.tables["observed"],
        note="Duration is from the first to the last word without pauses; pauses are gaps between words of "
        "more than 0.25 s; silence is what annotators marked, however short.",
    )  # fmt: skip
    said = [
        "Who gave a route is known from the corpus's design, in which each giver gave the same map twice: in "
        f"{numbers['same_map']:,} of {numbers['same_map_of']:,} dialogs the giver's rare words point to the "
        "dialog that the design names.",
    ]
    return section("observations", "The moves", said, tables=[shown])


def _reliability_words(findings: Findings) -> str:
    table = findings.tables["reliability"]

    def one(given: str, family: str, measured: str, parameter: str = "duration") -> str:
        rows = table.filter(given=given, family=family, measured=measured, parameter=parameter).to_dicts()
        return "unknown" if not rows else said(rows[0], "r", "r_low", "r_high")

    return (
        "θ of the duration from odd and from even moves of a dialog correlates at "
        f"{one(MOVE, GAMMA, WITHIN)} under {GAMMA} and {one(MOVE, LOG_NORMAL, WITHIN)} under {LOG_NORMAL}, "
        f"and at {one(WORDS, GAMMA, WITHIN)} under {GAMMA} once the words are given "
        f"({findings.numbers['dialogs']} dialogs; halves, not stepped up). Between the two dialogs of a "
        "giver θ agrees at "
        f"{one(MOVE, GAMMA, ACROSS)}, and at {one(WORDS, GAMMA, ACROSS)} given the words (ICC, "
        f"{findings.numbers['givers']} givers). θ of the pause length from odd and even moves correlates at "
        f"{one(MOVE, LOG_NORMAL, WITHIN, 'pause')} under {LOG_NORMAL} and "
        f"{one(MOVE, GAMMA_ABOVE, WITHIN, 'pause')} under {GAMMA_ABOVE}."
    )


def _twice(findings: Findings) -> dict[str, Any]:
    table = findings.tables["reliability"].with_columns(
        words=pl.col("parameter").map_elements(parameter_words, return_dtype=pl.String)
    )
    shown = table_of(
        "twice",
        "θ measured twice",
        [text_column("given"), text_column("measured", "measured from"), text_column("words", "parameter"),
         text_column("family"), column("n", "dialogs or givers"),
         *with_interval("r", "agreement", low="r_low", high="r_high"),
         column("reliability", "of full length")],
        table,
        note="Agreement: of odd and even moves their correlation as it is, of two dialogs the ICC(2,1). Of "
        f"full length: stepped up by Spearman and Brown's formula. {how_drawn(findings, 'quads')}",
    )  # fmt: skip
    within = figures.labelled(findings.tables["reliability"].filter(measured=WITHIN), with_family=True)
    drawn = figure(
        "twice-figure",
        "Correlation of θ from odd and even moves of a dialog",
        figures.forest(
            within, "r", "r_low", "r_high", by="given", looks=list(DESIGNS), xlabel="correlation of halves"
        ),
        alt="A mark with its interval per θ, given the move and given its words.",
        table="twice",
    )
    return section(
        "reliability", "θ measured twice", [_reliability_words(findings)], tables=[shown], figures=[drawn]
    )


def _differences(findings: Findings) -> dict[str, Any]:
    table = findings.tables["contrasts"]
    names = {EYE_CONTACT: "seeing each other", FAMILIAR: "friends, not strangers"}
    rows = table.drop_nulls("p").sort("p", maintain_order=True).to_dicts()
    clear = [_difference_words(row, names) for row in rows if is_clear(row)]
    if clear:
        said = (
            f"Of {len(rows)} contrasts, {len(clear)} {'stands' if len(clear) == 1 else 'stand'} after Holm's "
            f"correction for their number: {'; '.join(clear)}. Of the others nothing is said."
        )
    elif rows:
        said = (
            f"Of {len(rows)} contrasts, none stands after Holm's correction for their number. The nearest: "
            f"{_difference_words(rows[0], names)}."
        )
    else:
        said = "There are too few quads to compare."
    rests = (
        "Who are friends is taken from the corpus's design; unlike who gave a route, the words do not "
        "confirm it."
    )
    in_words = figures.labelled(table, with_family=False).with_columns(pl.col("contrast").replace(names))
    shown = table_of(
        "contrasts",
        "Differences of θ between conditions",
        [text_column("contrast"), text_column("given"), text_column("label", "parameter"), column("n"),
         column("quads"), *with_interval("difference", low="low", high="high"), column("p"),
         column("p_holm", "p corrected")],
        in_words,
        note="Seeing each other: dialogs of quads without a screen against those with one. Friends: the same "
        "giver with a friend against with a stranger. Each quad counts with its mean; intervals hold 95 % by "
        "Student's t, each for itself, and p is corrected for the number of contrasts by Holm's method.",
    )  # fmt: skip
    drawn = figure(
        "contrasts-figure",
        "Differences of θ between conditions, given the move",
        figures.forest(
            in_words.filter(given=MOVE),
            "difference",
            "low",
            "high",
            by="contrast",
            looks=list(names.values()),
            xlabel="difference of θ (log scale)",
        ),
        alt="A mark with its interval per θ: how much higher it is where the two see or know each other.",
        table="contrasts",
    )
    return section(
        "conditions", "Seeing and knowing each other", [said, rests], tables=[shown], figures=[drawn]
    )


def _difference_words(row: Row, names: Mapping[str, str]) -> str:
    return (
        f"θ of {parameter_words(row['parameter']).removesuffix(' θ')} given {row['given']} is "
        f"{'higher' if row['difference'] > 0 else 'lower'} with {names[row['contrast']]} "
        f"({number_text(row['difference'])}, {number_text(row['low'])} to {number_text(row['high'])}; p "
        f"{number_text(row['p'])}, corrected {number_text(row['p_holm'])})"
    )


def _limits(findings: Findings) -> dict[str, Any]:
    return section(
        "limits",
        "What this cannot show",
        [
            f"All {findings.numbers['givers']} givers are students; whether the same families fit people "
            "with a cognitive impairment is not known from them.",
            "An instruct move has no count of the steps of a route, on which the paper's channels are "
            "conditioned; words are the nearest thing, but they are themselves effort.",
            "Where moves begin and end was decided by annotators, and each has at least one word, so zeros "
            "of characters and words cannot occur. Turns, one of the paper's channels, are not observed.",
            "A family judged right here is right among those compared, for moves of this kind.",
            f"Pauses are added up over a move. One that has several cannot have less than as many times "
            f"{PAUSE_ABOVE_S:g} s, which no family here knows.",
            "Who are friends is known from the corpus's design alone.",
        ],
    )
