"""The study of the HCRC Map Task, on made-up files: its analysis with fewer families, its words and figures."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from made_up import repeated_titles
from made_up.map_task import write
from scipy import stats

from fidm.experiments.families import Family
from fidm_studies.analysis import Findings
from fidm_studies.dataset import Loaded, no_progress
from fidm_studies.map_task import analysis as map_task
from fidm_studies.map_task.analysis import EYE_CONTACT, FAMILIAR, contrasts, corrected, is_clear
from fidm_studies.map_task.dataset import read
from fidm_studies.map_task.page import REANALYSIS, Standing, sections, standing
from fidm_studies.map_task.readings import (
    DESIGNS,
    LOG_NORMAL,
    MOVE,
    OBSERVABLES,
    PAPER,
    WITHIN,
    WORDS,
    families,
    reliable_channels,
)
from fidm_studies.page import tell


def fewer(given: str) -> dict[str, dict[str, Family]]:
    """Two families of each observation that is to be in the words."""
    chosen = PAPER if given == MOVE else ("duration",)
    return {name: dict(list(families(given)[name].items())[:2]) for name in chosen}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("map_task")
    write(folder)
    return read(folder, no_progress)


@pytest.fixture(scope="module")
def findings(loaded: Loaded) -> Findings:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(map_task, "families", fewer)
        patch.setattr(
            map_task, "reliable_channels", lambda given: dict(list(reliable_channels(given).items())[:2])
        )
        return map_task.analyse(loaded, bootstrap=50, folds=2, workers=1)


def test_the_study_says_what_it_found(findings: Findings, loaded: Loaded) -> None:
    told = tell(REANALYSIS, findings, loaded)
    assert repeated_titles(told) == []
    assert told.sections[0]["id"] == "found"
    assert {"given-move", "given-words", "reliability", "conditions", "limits"} <= {
        one["id"] for one in told.sections
    }
    assert all(figure["svg"].startswith("<") for one in told.sections for figure in one["figures"])
    text = " ".join(" ".join(one["paragraphs"]) for one in told.sections)
    assert f"{loaded.cohort.n_segments:,} instruct moves" in text
    assert "nan" not in text.lower().split()
    assert "None" not in text
    for name in ("pier", "tower"):  # words of the made-up dialogs
        assert name not in text


def test_counts_that_differ_from_the_published_ones_are_missed(findings: Findings) -> None:
    missed = {one.what for one in findings.missed}
    assert "instruct moves of route givers" in missed
    assert not findings.reached
    again = [one for one in findings.expectations if one.what == "dialogs"]
    assert again[0].found == 32


def test_the_first_reading_of_a_known_number_is_kept_though_not_required(findings: Findings) -> None:
    optional = [one for one in findings.expectations if not one.required]
    assert [one.what.rpartition(", ")[2] for one in optional] == ["Gamma"]
    assert ("and it was missed" in optional[0].note) == (not optional[0].reached)
    assert optional[0] not in findings.missed
    other = next(one for one in findings.expectations if one.what.endswith("log-normal"))
    assert (other.low, other.high) == (optional[0].low, optional[0].high)
    assert "chosen after" in other.note


def test_tables_hold_no_person(findings: Findings, loaded: Loaded) -> None:
    people = set(loaded.cohort.ids) | set(loaded.cohort.episodes["episode"])
    for table in findings.tables.values():
        for name, kind in table.schema.items():
            if kind == pl.String:
                assert not people & set(table[name].drop_nulls())
    assert set(findings.tables["families"]["given"]) == set(DESIGNS)
    halves = findings.tables["reliability"].filter(measured=WITHIN)
    assert set(halves["n"]) == {loaded.cohort.n_episodes}


def test_halves_correlate_as_counted_by_hand(findings: Findings, loaded: Loaded) -> None:
    """Under a log-normal without design columns θ is the mean log duration, up to a constant."""
    cohort = loaded.cohort
    log = np.log(cohort.segments["duration_s"].to_numpy())
    halves: list[list[Any]] = [[], []]
    for first, last in zip(cohort.segment_offsets[:-1], cohort.segment_offsets[1:], strict=True):
        for k in (0, 1):
            halves[k].append(log[first + k : last : 2].mean())
    row = findings.tables["reliability"].filter(given=MOVE, measured=WITHIN, family=LOG_NORMAL)
    assert row["r"].item() == pytest.approx(np.corrcoef(halves)[0, 1], abs=1e-9)
    assert row["reliability"].item() == pytest.approx(2 * row["r"].item() / (1 + row["r"].item()))
    assert row["r_low"].item() < row["r"].item() < row["r_high"].item()


def told_with(
    findings: Findings, loaded: Loaded, observable: str, difference: float, low: float, high: float
) -> str:
    """The verdict if every family but the first had this gain."""
    found = findings.parts[MOVE]
    first = pl.col("is_reference")
    table = found.table.with_columns(
        *(
            pl.when(first).then(0.0).otherwise(value).alias(name)
            for name, value in (("difference", difference), ("low", low), ("high", high))
        ),
        theta_rank_r=pl.lit(0.5),
    )
    other = {**findings.parts, MOVE: dataclasses.replace(found, table=table)}
    given = {
        one["id"]: one["paragraphs"] for one in sections(dataclasses.replace(findings, parts=other), loaded)
    }
    return given["given-move"][1 + PAPER.index(observable)]


@pytest.mark.usefixtures("no_pictures")
def test_words_follow_the_numbers(findings: Findings, loaded: Loaded) -> None:
    better = told_with(findings, loaded, "duration", 0.01, 0.008, 0.012)
    assert "by 0.010 (0.008 to 0.012) per" in better
    assert "about 300 moves" in better
    assert "LogNormal(…)" in better
    assert "change places" in better
    borderline = told_with(findings, loaded, "duration", 0.0045, 0.0002, 0.0095)
    assert "log-normal predicts better" in borderline
    assert "below 0.001" in borderline
    assert "20 to 1" not in borderline
    for numbers, said in (
        ((-0.01, -0.02, -0.005), "Worse per move: log-normal by 0.010 (0.005 to 0.020)."),
        ((-0.01, -0.02, -0.0005), "Worse, but borderline: log-normal"),
        ((0.00123, -0.0012, 0.0037), "Not clearly better or worse: log-normal (+0.0012, −0.0012 to"),
        ((0.0002, -0.0004, 0.0009), "Not different by an amount that matters: log-normal."),
    ):
        stands = told_with(findings, loaded, "duration", *numbers)
        assert "no family compared" in stands
        assert said in stands
    assert "moves that have" in told_with(findings, loaded, "pause", 0.0, 0.0, 0.0)
    assert "moves that have" not in stands


def test_a_gain_counts_if_it_is_sure_and_matters() -> None:
    assert standing({"difference": -0.5, "low": -0.6, "high": -0.4}) is Standing.WORSE
    assert standing({"difference": 0.5, "low": -0.6, "high": 0.9}) is Standing.UNSURE
    assert standing({"difference": 0.0008, "low": 0.0001, "high": 0.0015}) is Standing.UNSURE
    assert standing({"difference": 0.0008, "low": 0.0001, "high": 0.0009}) is Standing.ALIKE


def dialogs(effect: float, familiar: float) -> pl.DataFrame:
    """Six quads, three of them with eye contact, and four givers each with a friend and a stranger."""
    rng = np.random.default_rng(1)
    rows = [
        {
            "giver": f"{quad}-{who}",
            "quad": str(quad),
            "eye_contact": quad % 2 == 0,
            "familiar": friend,
            "duration": effect * (quad % 2 == 0) + familiar * friend + 0.05 * rng.normal(),
        }
        for quad in range(6)
        for who in range(4)
        for friend in (True, False)
    ]
    return pl.DataFrame(rows)


def test_contrasts_find_what_was_put_in() -> None:
    table = dialogs(0.4, -0.2)
    found = corrected(contrasts(table, ["duration"]))
    rows = {row["contrast"]: row for row in found.iter_rows(named=True)}
    for contrast, put_in in ((EYE_CONTACT, 0.4), (FAMILIAR, -0.2)):
        assert rows[contrast]["difference"] == pytest.approx(put_in, abs=0.03)
        assert rows[contrast]["low"] < rows[contrast]["difference"] < rows[contrast]["high"]
    assert (rows[EYE_CONTACT]["n"], rows[FAMILIAR]["n"]) == (48, 24)
    assert all(map(is_clear, rows.values()))
    quads = table.group_by("quad", "eye_contact").agg(pl.col("duration").mean())
    sides = [quads.filter(eye_contact=seen)["duration"].to_numpy() for seen in (True, False)]
    known = stats.ttest_ind(*sides, equal_var=False)
    row = rows[EYE_CONTACT]
    assert (row["p"], row["low"]) == pytest.approx((known.pvalue, known.confidence_interval().low))
    pairs = table.sort("familiar").group_by("quad", "giver").agg(pl.col("duration").diff().last())
    known = stats.ttest_1samp(pairs.group_by("quad").agg(pl.col("duration").mean())["duration"].to_numpy(), 0)
    row = rows[FAMILIAR]
    assert (row["p"], row["high"]) == pytest.approx((known.pvalue, known.confidence_interval().high))
    least, other = sorted(found["p"])
    assert sorted(found["p_holm"]) == pytest.approx([2 * least, max(2 * least, other)])
    alike = pl.col("duration").first().over(pl.col("quad").cast(pl.Int64) // 2, pl.col("giver").str.tail(1))
    none = corrected(contrasts(dialogs(0.0, 0.0).with_columns(alike), ["duration"]))
    assert not any(is_clear(row) for row in none.iter_rows(named=True))


def test_contrasts_of_too_few_quads_are_not_given() -> None:
    few = dialogs(0.4, 0.0).filter(pl.col("quad") == "0")
    found = corrected(contrasts(few.with_columns(duration=pl.lit(math.inf)), ["duration"]))
    assert found["difference"].null_count() == 2
    assert not is_clear(found.row(0, named=True))


def test_every_observation_has_words_and_a_reference_of_the_paper() -> None:
    assert set(families(MOVE)) == set(OBSERVABLES)
    assert [next(iter(families(MOVE)[name])) for name in PAPER] == [
        "Gamma", "negative binomial", "Bernoulli + log-normal",
    ]  # fmt: skip
    for name, candidates in families(WORDS).items():
        assert len(candidates) == 2
        assert next(iter(candidates)) == next(iter(families(MOVE)[name]))


def test_figures_are_readable_without_colour(findings: Findings) -> None:
    from fidm_studies.map_task.page import forest, labelled

    table = labelled(findings.tables["reliability"].filter(measured=WITHIN), with_family=True)
    ax = forest(table, "r", "r_low", "r_high", by="given", looks=list(DESIGNS), xlabel="r")
    marks = {line.get_marker() for line in ax.lines if line.get_label() in DESIGNS}
    assert len(marks) == len(DESIGNS)
    assert ax.get_xlabel() == "r"
