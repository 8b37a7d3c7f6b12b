"""Groups are compared in the latent parameters themselves."""

from __future__ import annotations

import functools
import io
import itertools
import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from scipy import special

import fidm
import fidm.study
from fidm.experiments.comparison import Comparison
from fidm.fit.common import Data
from fidm.fit.regression import regress_sensitivity
from fidm.model.effort import paper_channels
from fidm.plot import forest
from fidm.present.experiments import show_comparison
from fidm.record import to_json
from fidm.simulate.cohort import People
from fidm.tasks.stack import TaskSet


@functools.cache
def study():
    """80 people; ``keen`` is who is more sensitive than most. Age and site say nothing."""
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 80, seed=5)
    eta = people.participants["true_action_sensitivity"]
    rng = np.random.default_rng(0)
    return task, people.with_participants(
        people.participants.with_columns(
            keen=pl.when(eta > eta.median()).then(pl.lit("yes")).otherwise(pl.lit("no")),
            log_eta=eta.log(),
            age=pl.Series(rng.normal(70, 8, 80)),
            site=pl.Series(rng.choice(["x", "y", "z"], 80)),
        )
    )


@functools.cache
def keen():
    return fidm.compare(*study(), by="keen", adjust=["age", "site"], reference="no")


def test_a_difference_is_found_where_it_is_and_nowhere_else():
    table = keen().table
    assert table["contrast"].to_list() == ["yes / no"] * 6
    first, *others = table.iter_rows(named=True)
    true = np.exp(
        study()[1]
        .participants.group_by("keen")
        .agg(pl.col("log_eta").mean())
        .sort("keen")["log_eta"]
        .diff()[1]
    )
    assert first["factor_low"] < true < first["factor_high"]
    assert first["p_holm"] < 0.001
    assert first["auc"] > 0.8
    assert min(row["p_holm"] for row in others) > 0.05
    assert (table["p_holm"] >= table["p_fdr"]).all()
    assert (table["p_fdr"] >= table["p"]).all()


def test_what_is_adjusted_for_has_slopes_and_changes_little_here():
    assert keen().terms["term"].n_unique() == 4
    table = keen().table
    assert table["unadjusted"].to_numpy() == pytest.approx(table["factor"].to_numpy(), rel=0.1)
    assert table["auc_unadjusted"].to_numpy() == pytest.approx(table["auc"].to_numpy(), abs=0.1)
    alone = fidm.compare(*study(), by="keen", reference="no").table
    assert table["unadjusted"].to_list() == alone["factor"].to_list()
    assert table["auc_unadjusted"].to_list() == alone["auc"].to_list() == alone["auc_unadjusted"].to_list()
    explained = dict(keen().overall.select("parameter", "explained").iter_rows())
    assert explained["action_sensitivity"] > 0.3 > 0.1 > explained["duration"]


def test_it_is_told_in_sentences_and_drawn():
    first, second = keen().sentences[:2]
    assert first.startswith("action sensitivity η: 1.")
    assert first.endswith("as high in yes as in no.")
    assert "no clear difference; " in second
    assert forest(keen()).get_yticklabels()[0].get_text() == "action sensitivity η"
    assert json.loads(to_json(keen()))["experiment"] == "compare"


def test_it_is_the_same_after_writing_and_reading():
    said = json.loads(to_json(keen()))
    again = Comparison.of(keen().record, said["result"])
    assert again.to_dict() == keen().to_dict()
    assert again.sentences == keen().sentences
    assert again.table.schema == keen().table.schema


@functools.cache
def wide():
    """Comparisons of groups with long names, of two groups, and along a number."""
    task, people = study()
    several = people.participants.with_columns(site="a place far away in the north, clinic " + pl.col("site"))
    found = fidm.compare(task, people.with_participants(several), by="site", adjust=["age", "keen"])
    return found, keen(), fidm.compare(task, people, by="age", adjust=["keen"])


@pytest.mark.parametrize("width", [80, 100])
def test_no_table_is_wider_than_the_terminal(width, capsys):
    for one in wide():
        show_comparison(one, Console(width=width))
        lines = capsys.readouterr().out.splitlines()
        drawn = [line.rstrip() for line in lines if re.match(r" (parameter|group|──|η|pause presence)", line)]
        assert len(drawn) >= 5 * one.table["contrast"].n_unique()
        assert max(map(len, drawn)) <= width
        assert all(contrast in lines for contrast in one.table["contrast"].unique())


def test_a_number_is_compared_by_its_standard_deviation():
    task, people = study()
    found = fidm.compare(task, people, by="log_eta", channels=())
    (row,) = found.table.iter_rows(named=True)
    assert row["contrast"] == "log_eta + 1 SD"
    assert row["low"] < people.participants["log_eta"].std() < row["high"]
    assert found.groups.row(0)[:2] == ("everybody", 80)


def test_several_groups_are_each_compared_with_the_largest():
    task, people = study()
    found = fidm.compare(task, people, by="site", channels=())
    largest = people.participants["site"].value_counts(sort=True)["site"][0]
    others = sorted({"x", "y", "z"} - {largest})
    assert found.table["contrast"].to_list() == [f"{one} / {largest}" for one in others]
    assert 0 < found.overall["p"][0] <= 1


def test_groups_that_did_not_do_equally_much_are_said_to():
    task, people = study()
    short = fidm.simulate_cohort(task, 110, seed=6, max_steps=12)[np.arange(80, 110)]
    both = fidm.Cohort.concat([people, short])
    late = pl.when(pl.int_range(110) < 80).then(pl.lit("no")).otherwise(pl.lit("yes"))
    both = both.with_participants(both.participants.with_columns(early=late))
    found = fidm.compare(task, both, by="early", channels=())
    assert any("did not do equally much" in said for said in found.notes)
    assert not any("did not do equally much" in said for said in keen().notes)


def test_whoever_lacks_what_is_asked_for_is_left_out_and_counted():
    task, people = study()
    lost = pl.when(pl.int_range(80) < 3).then(None).otherwise(pl.col("age"))
    gaps = people.with_participants(people.participants.with_columns(age=lost))
    found = fidm.compare(task, gaps, by="keen", adjust=["age"], channels=())
    (said,) = [said for said in found.notes if said.startswith("Left out")]
    assert said.startswith("Left out: 3 people; age is missing for 3. missing='impute' imputes")
    assert found.groups["people"].sum() == 77


def test_the_order_of_people_changes_nothing():
    task, people = study()
    found = fidm.compare(task, people, by="keen", channels=())
    again = fidm.compare(task, people[np.arange(79, -1, -1)], by="keen", channels=())
    assert found.table.equals(again.table)


def test_groups_that_are_too_small_are_counted():
    task, people = study()
    yes = (people.participants["keen"] == "yes").to_numpy()
    few = np.concatenate([np.flatnonzero(yes)[:4], np.flatnonzero(~yes)])
    with pytest.raises(fidm.FitError, match="needed; there are 'no' 40, 'yes' 4"):
        fidm.compare(task, people[np.sort(few)], by="keen", channels=())


def test_a_parameter_of_few_people_is_left_out():
    task, people = study()
    yes = np.flatnonzero((people.participants["keen"] == "yes").to_numpy())
    owner = np.repeat(np.arange(80), np.diff(people.segment_offsets[people.episode_offsets]))
    mute = pl.Series(np.isin(owner, yes[4:]))
    quiet = people.segments.with_columns(duration_s=pl.when(mute).then(None).otherwise(pl.col("duration_s")))
    found = fidm.compare(task, replace(people, segments=quiet), by="keen", channels=paper_channels()[:1])
    assert found.table["parameter"].to_list() == ["action_sensitivity"]
    assert any("duration is left out: 4 of 'yes' can be compared in it" in said for said in found.notes)


def test_people_of_a_small_group_are_left_out_if_two_groups_are_large():
    task, people = study()
    site = pl.when(pl.int_range(80) < 4).then(pl.lit("new")).otherwise(pl.col("site"))
    found = fidm.compare(
        task, people.with_participants(people.participants.with_columns(site=site)), by="site", channels=()
    )
    assert found.groups["group"].to_list() == ["x", "y", "z"]
    said = "The group 'new' is left out: 4 people can be compared, and at least 5 are needed."
    assert any(note.startswith(said) for note in found.notes)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"by": "diagnosis"}, "have no column 'diagnosis'"),
        ({"by": "ken"}, r"have no column 'ken'\. Did you mean keen\?"),
        ({"by": "episod"}, r"Did you mean episode\?"),
        ({"by": "keen", "adjust": ["keen"]}, "named twice"),
        ({"by": "keen", "reference": "ill"}, "has no group 'ill'. There are: no, yes"),
        ({"by": "age", "reference": "no"}, "age is a number"),
        ({"by": "keen", "adjust": ["site", "more"]}, "have no column 'more'"),
        ({"by": "keen", "level": 95}, "level is 95"),
    ],
)
def test_what_cannot_be_compared_is_named(asked, said):
    with pytest.raises(fidm.FidmError, match=said):
        fidm.compare(*study(), **asked)


def test_people_without_data_are_named_and_not_counted():
    task, people = study()
    nobody = replace(
        people[:0],
        participants=people.participants[:1].with_columns(participant=pl.lit("C06")),
        episode_offsets=np.zeros(2, dtype=np.int64),
    )
    found = fidm.compare(task, fidm.Cohort.concat([people, nobody]), by="keen", channels=())
    assert found.groups.equals(fidm.compare(task, people, by="keen", channels=()).groups)
    assert found.gaps == ("1 person without any data is left out: C06.",)


def test_what_is_said_of_the_data_in_a_fit_is_said_here():
    task, people = study()
    silent = people.segments.with_columns(pause_s=pl.lit(None, dtype=pl.Float64))
    marked = np.arange(people.n_steps) % 3 == 0
    found = fidm.compare(
        task, replace(people, segments=silent, inferred=marked), by="keen", channels=paper_channels()[:1]
    )
    assert any("The files of 80 participants cannot show pauses" in said for said in found.gaps)
    assert any("Inferred moves: 3" in said for said in found.notes)
    assert not any("More moves were inferred" in said for said in found.notes)


@pytest.mark.parametrize(
    ("inferred", "said"),
    [(0.0, "effort is held against them.*counted"), (0.5, "they raise η there.*left out")],
)
def test_groups_of_whom_unequally_much_was_inferred_are_said_to(inferred, said):
    task, people = study()
    keen = (people.participants["keen"] == "yes").to_numpy()
    owner = np.repeat(people.episode_owner(), np.diff(people.step_offsets))
    marked = (np.arange(people.n_steps) % 3 == 0) & keen[owner]
    found = fidm.compare(task, replace(people, inferred=marked), by="keen", channels=(), inferred=inferred)
    shares = dict(found.groups.select("group", "inferred").iter_rows())
    assert shares["no"] == 0
    assert shares["yes"] == pytest.approx(1 / 3, abs=0.02)
    (note,) = [
        note
        for note in found.notes
        if note.startswith("More moves were inferred in yes (33%) than in no (0%)")
    ]
    assert re.search(said, note)


def test_the_auc_is_as_uncertain_as_difference_and_spread_together():
    row, spread = keen().table.row(0, named=True), keen().overall["sd"][0]
    low, high = (special.ndtr(row[end] / (np.sqrt(2) * spread)) for end in ("low", "high"))
    assert row["auc_low"] < low < row["auc"] < high < row["auc_high"]
    assert row["auc"] == pytest.approx(special.ndtr(row["difference"] / (np.sqrt(2) * spread)))


def test_there_is_no_auc_where_people_may_not_differ(capsys):
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 24, seed=3, people=People(effort_sd=0.01), max_steps=30)
    half = pl.Series(["a", "b"] * 12)
    people = people.with_participants(people.participants.with_columns(group=half))
    found = fidm.compare(
        task, people, by="group", channels=[c for c in paper_channels() if c.name == "turns"]
    )
    table = found.table.filter(parameter="turns")
    assert table.select("auc", "auc_low", "auc_high").row(0) == (None, None, None)
    assert table["difference"].is_finite().all()
    (said,) = [said for said in found.notes if "No AUC" in said]
    assert "turn count" in said
    show_comparison(found, Console(width=120))
    assert " – " in capsys.readouterr().out


def test_terms_are_called_by_their_columns():
    assert keen().terms["term"][:4].to_list() == ["yes / no", "age", "site y / x", "site z / x"]


def test_a_difference_at_chosen_ages_is_the_slope_of_people_of_that_age():
    """Its error comes from the covariance of slopes; the same slope can be learned, with age counted from there."""
    task, people = study()
    found = fidm.compare(
        task,
        people,
        by="keen",
        adjust=["age"],
        interact=["age"],
        at={"age": [60, 75]},
        reference="no",
        channels=(),
    )
    assert found.table["contrast"].to_list() == ["yes / no at age 60", "yes / no at age 75"]
    yes = (people.participants["keen"] == "yes").to_numpy().astype(float)
    choices = Data.of(
        TaskSet.of(task),
        TaskSet.of(task).values([fidm.solve(task)]),
        (),
        {},
        people,
        need_columns=True,
        inferred=0.0,
    ).choices
    for row, age in zip(found.table.iter_rows(named=True), (60, 75), strict=True):
        from_there = people.participants["age"].to_numpy() - age
        known = np.column_stack([yes, from_there, yes * from_there])
        alone = regress_sensitivity(choices, known - known.mean(axis=0), lapse=None)
        assert row["difference"] == pytest.approx(alone.slopes[0], abs=1e-4)
        assert row["se"] == pytest.approx(alone.se[0], rel=1e-3)
    terms = found.terms.filter(term="yes / no × age")
    assert found.overall["p_interaction"].to_list() == terms["p"].to_list()


def test_without_chosen_values_it_is_the_mean_or_every_group():
    task, people = study()
    found = fidm.compare(
        task, people, by="keen", adjust=["age", "site"], interact=["age", "site"], reference="no", channels=()
    )
    mean = f"{people.participants['age'].mean():.4g}"
    assert found.table["contrast"].to_list() == [f"yes / no at age {mean}, site {site}" for site in "xyz"]
    assert 0 < found.overall["p_interaction"][0] < 1


def test_values_beyond_those_observed_are_said():
    task, people = study()
    found = fidm.compare(
        task, people, by="keen", adjust=["age"], interact=["age"], at={"age": [70, 120]}, channels=()
    )
    assert any("120 lies outside" in note for note in found.notes)


def test_a_curve_is_adjusted_for():
    task, people = study()
    rng = np.random.default_rng(2)
    eta = np.log(people.participants["true_action_sensitivity"].to_numpy())
    bent = people.participants.with_columns(
        age=pl.Series(70 + 10 * np.sqrt(np.abs(eta - eta.mean())) * rng.choice([-1, 1], 80))
    )
    found = fidm.compare(
        task, people.with_participants(bent), by="keen", adjust=["bs(age, df=3)", "site"], channels=()
    )
    assert found.terms["term"].to_list()[1:4] == [f"bs(age, df=3)[{i}]" for i in (1, 2, 3)]
    assert found.adjust == ("bs(age, df=3)", "site")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"interact": ["age"]},
            "interact names 'age', which must be a column that is adjusted for. Add it: adjust=['age']",
        ),
        (
            {"adjust": ["age"], "at": {"age": [60]}},
            "at gives values of 'age', but interact does not name it, so the difference is the same at all of its "
            "values. Add it: interact=['age'].",
        ),
        (
            {"adjust": ["age"], "interact": ["aeg"]},
            "interact names 'aeg', which must be a column that is adjusted",
        ),
        ({"adjust": ["age"], "interact": ["aeg"]}, "Did you mean age? There are: age."),
        ({"adjust": ["age"], "interact": ["age"], "at": {"aeg": [60]}}, "Did you mean age? There are: age."),
        (
            {"adjust": ["agee", "sit"]},
            "have no column 'agee', 'sit'. Did you mean age and site? There are: part",
        ),
        ({"cluster": "sit"}, "no column 'sit' to cluster by. Did you mean site?"),
        (
            {"adjust": ["bs(age, df=3)"], "interact": ["bs(age, df=3)"]},
            "Name a column, and adjust for it, too",
        ),
        (
            {"adjust": ["site"], "interact": ["site"], "at": {"site": ["w"]}},
            "site has no value 'w'. There are: x",
        ),
        (
            {"adjust": ["age"], "interact": ["age"], "at": {"age": ["old"]}},
            "age has no value 'old'. age is a num",
        ),
        ({"adjust": ["bs(height, df=3)"]}, "have no column 'height'"),
        ({"missing": "guess"}, "missing is 'guess'"),
        ({"adjust": ["age", "place"]}, "place of the formula 'keen + age + place' is the same for everybody"),
        ({"adjust": ["age", "months"]}, "The columns yes / no, age, months of the formula"),
        ({"imputations": 1}, "imputations"),
    ],
)
def test_what_cannot_be_adjusted_for_is_named(asked, said):
    task, people = study()
    about = people.participants.with_columns(place=pl.lit("here"), months=12 * pl.col("age"))
    asked = {"reference": "no", **asked}
    with pytest.raises(fidm.FidmError, match=re.escape(said)):
        fidm.compare(task, people.with_participants(about), by="keen", channels=(), **asked)


def lacking():
    """The study with ages of a third of the people and sites of some missing."""
    task, people = study()
    place = pl.int_range(80)
    return task, people.with_participants(
        people.participants.with_columns(
            age=pl.when(place % 3 == 0).then(None).otherwise(pl.col("age")),
            site=pl.when(place % 9 == 0).then(None).otherwise(pl.col("site")),
        )
    )


def test_missing_covariates_are_imputed_where_asked():
    asked = {"by": "keen", "adjust": ["age", "site"], "reference": "no", "channels": ()}
    dropped = fidm.compare(*lacking(), **asked)
    found = fidm.compare(*lacking(), **asked, missing="impute", imputations=5)
    again = fidm.compare(*lacking(), **asked, missing="impute", imputations=5)
    assert found.table.equals(again.table)
    assert (dropped.groups["people"].sum(), found.groups["people"].sum()) == (53, 80)
    assert found.table["se"][0] < dropped.table["se"][0]
    assert found.table["difference"][0] == pytest.approx(keen().table["difference"][0], abs=0.05)
    assert any(
        "Imputed 5 times" in note and "age of 27 people and site of 9 people" in note for note in found.notes
    )
    assert (found.record.seed, found.record.settings["imputations"]) == (1, 5)
    several = fidm.compare(
        *lacking(), by="site", adjust=["age"], channels=(), missing="impute", imputations=3
    )
    assert several.groups["people"].sum() == 71
    assert 0 < several.overall["p"][0] <= 1


def test_nothing_is_imputed_where_nothing_is_missing():
    asked = {"by": "keen", "adjust": ["age"], "channels": ()}
    found = fidm.compare(*study(), **asked, missing="impute")
    assert found.table.equals(fidm.compare(*study(), **asked).table)
    assert found.record.settings["imputations"] == 0


def scored():
    task, people = study()
    rng = np.random.default_rng(4)
    eta = people.participants["log_eta"].to_numpy()
    score = 0.5 * (eta - eta.mean()) / eta.std() + np.sqrt(0.75) * rng.normal(size=80)
    about = people.participants.with_columns(moca=pl.Series(24 + 3 * score), diagnosis=pl.Series(score))
    return task, people.with_participants(about)


def test_a_score_is_correlated_with_the_parameter_itself():
    task, people = scored()
    found = fidm.compare(task, people, by="moca", channels=paper_channels()[:1])
    row, slope = found.correlations.row(0, named=True), found.table.row(0, named=True)
    spread = found.overall["sd"][0]
    assert row["r"] == pytest.approx(slope["difference"] / np.hypot(slope["difference"], spread))
    assert row["low"] < row["r_estimates"] < row["r"] < row["high"]
    true = np.corrcoef(people.participants["log_eta"], people.participants["moca"])[0, 1]
    assert row["low"] < true < row["high"]
    assert "; r = 0." in found.sentences[0]
    assert not keen().correlations.height
    partial = fidm.compare(task, people, by="moca", adjust=["log_eta"], channels=())
    assert any(note.startswith("No correlation of action sensitivity") for note in partial.notes)
    assert partial.correlations["r"].to_list() == [None]


def test_several_scores_are_correlated_at_once():
    task, people = scored()
    found = fidm.study.correlate(task, people, scores=["moca", "age"], channels=())
    assert found.select("score", "parameter").rows() == [
        ("moca", "action_sensitivity"),
        ("age", "action_sensitivity"),
    ]
    assert (found["p_holm"] >= found["p"]).all()
    with pytest.raises(fidm.DataError, match="site holds texts"):
        fidm.study.correlate(task, people, scores=["moca", "site"])
    with pytest.raises(fidm.DataError, match="No score"):
        fidm.study.correlate(task, people, scores=[])


def test_a_number_that_is_classified_may_reuse_the_data():
    found = fidm.compare(*scored(), by="diagnosis", channels=())
    assert any("predicted from these data" in note for note in found.notes)
    assert not any("predicted from these data" in note for note in keen().notes)


def test_one_contrast_has_one_p_value():
    assert keen().overall["p"].to_list() == keen().table["p"].to_list()


def test_people_of_a_site_may_go_together():
    """Twice the same people, as two of one cluster: they are no more than once."""
    task = fidm.load_task("errands")
    once = fidm.simulate_cohort(task, 30, seed=3, max_steps=30)
    about = once.participants.with_columns(
        group=pl.Series(["a", "b", "c"] * 10), family=pl.col("participant")
    )
    once = once.with_participants(about)
    again = replace(once, participants=about.with_columns(participant=pl.col("participant") + "again"))
    both = fidm.Cohort.concat([once, again])
    alone, twice, clustered = (
        fidm.compare(task, people, by="group", reference="a", channels=(), lapse=0, cluster=cluster)
        for people, cluster in ((once, None), (both, None), (both, "family"))
    )
    assert clustered.table["difference"].to_list() == twice.table["difference"].to_list()
    assert twice.table["se"][0] < 0.8 * alone.table["se"][0]
    assert clustered.table["se"][0] == pytest.approx(alone.table["se"][0], rel=0.1)
    assert clustered.overall["p"][0] == pytest.approx(alone.overall["p"][0], abs=0.15)
    with pytest.raises(fidm.DataError, match="no column 'site' to cluster by"):
        fidm.compare(task, once, by="group", channels=(), cluster="site")


def test_what_groups_are_compared_with_is_said():
    task, people = study()
    assert keen().notes[0] == "Reference: no."
    largest = fidm.compare(task, people, by="site", channels=())
    base = largest.groups.sort("people")["group"][-1]
    assert largest.notes[0].startswith(f"Reference: {base}, the largest group")
    assert largest.notes[0].endswith("; reference names another.")
    number = fidm.compare(task, people, by="age", channels=())
    assert number.notes[0] == f"1 SD of age is {people.participants['age'].std():.3g}."


def test_a_difference_that_is_clear_alone_but_not_among_all_is_said_to_be():
    row = keen().table.row(1, named=True)
    clear = {"factor_low": 1.01, "factor": 1.2, "factor_high": 1.4, "p": 0.02, "p_holm": 0.08}
    changed = pl.DataFrame([keen().table.row(0, named=True), {**row, **clear}], schema=keen().table.schema)
    said = replace(keen(), table=changed).sentences[1]
    assert "no clear difference after correction for 2 tests (Holm p = 0.080)" in said
    assert "though the interval, of this test alone, excludes 1; 1.20 times (1.01 to 1.40)" in said


def page(found, width=80):
    """What a terminal shows."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, highlight=False)
    show_comparison(found, console)
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", out.getvalue())


def test_nothing_on_the_page_is_wider_than_the_terminal():
    task, people = study()
    found = fidm.compare(
        task, people, by="keen", adjust=["age", "site"], interact=["age", "site"], at={"age": [60, 99]}
    )
    shown = page(found)
    assert max(map(len, shown.splitlines())) <= 80
    said = " ".join(shown.split())
    assert "Change of the difference with age and site, p of each parameter: η " in said
    assert "Interaction: in compare-terms.csv, slopes of keen are at the mean age" in said
    assert "(below .5 it is lower in the first group)" in said
    assert "· Reference: no" in shown
    assert "All differences together" in page(fidm.compare(task, people, by="site", channels=()))
    assert "All differences together" not in page(keen())


def test_a_group_without_any_data_is_named():
    task, people = study()
    about = people.participants[:6].with_columns(site=pl.lit("new"), participant="N" + pl.col("participant"))
    nobody = replace(people[:0], participants=about, episode_offsets=np.zeros(7, dtype=np.int64))
    found = fidm.compare(task, fidm.Cohort.concat([people, nobody]), by="site", channels=())
    assert found.groups["group"].to_list() == ["x", "y", "z"]
    assert any(
        note.startswith("The group 'new' is left out: 0 people can be compared") for note in found.notes
    )
    assert found.gaps[0].startswith("6 people without any data are left out: N")


def test_parameters_that_are_left_out_for_the_same_reason_are_named_together():
    task, people = study()
    silent = replace(people, segments=people.segments.with_columns(pause_s=pl.lit(None, dtype=pl.Float64)))
    found = fidm.compare(task, silent, by="keen")
    said = "pause and pause_presence are left out: 0 of 'no' and 0 of 'yes' can be compared in it"
    assert any(note.startswith(said) for note in found.notes)


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.1), (0.3, 3.0), (0.01, 40.0), (1e-7, 1e6)])
def test_ticks_of_a_forest_do_not_touch(low, high):
    ends = {"factor_low": low, "factor": 1.0, "factor_high": high}
    table = pl.DataFrame([keen().table.row(0, named=True) | ends], schema=keen().table.schema)
    ax = forest(replace(keen(), table=table))
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels(which="both") if label.get_text()]
    boxes.sort(key=lambda box: box.x0)
    assert len(boxes) >= 2
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))
