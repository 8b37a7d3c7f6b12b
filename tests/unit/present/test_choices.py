"""What a comparison of accounts of choice says, on whatever it found; and its figures and its section."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import fidm
from fidm import plot
from fidm.action_models import Depth, GoalAtATime, Lapse, Mixture, Random, Softmax, Stickiness
from fidm.errors import FidmError
from fidm.experiments.criticism import CALIBRATION, CHECKS, STATISTICS, UNDESCRIBED
from fidm.experiments.rivals import ModelComparison, usual_models
from fidm.plot.save import figures_of
from fidm.present import MODELS
from fidm.present.choices import (
    chance_text,
    check_texts,
    choice_notes,
    choice_sentences,
    gain_text,
    model_words,
    say_filled_in,
    say_models_not_run,
    shared_parameters,
    show_models,
    statistic_words,
)
from fidm.present.terminal import page
from fidm.record import Record, plain
from fidm.simulate.choosing import simulate_choices

BACK = {"action_sensitivity": (15.0, 0.4), "step_back": (-1.5, 0.3)}


@pytest.fixture(scope="module")
def task():
    return fidm.load_task("errands")


@pytest.fixture(scope="module")
def cohort(task):
    return simulate_choices(task, Stickiness("way"), BACK, 8, seed=2, episodes=2)


@pytest.fixture(scope="module")
def found(task, cohort):
    models = [Softmax(), Stickiness("way"), Random()]
    return fidm.compare_models(task, cohort, models, folds=2, replicates=12, bootstrap=60)


def with_rows(found, rows):
    """The same with other differences: of each model (difference, low, high), by people and by trials."""
    table = found.models.to_dicts()
    for row in table:
        for way in ("people", "trials"):
            ends = rows.get(row["model"], (0.0, 0.0, 0.0))
            row |= dict(zip([f"{way}_difference", f"{way}_low", f"{way}_high"], ends, strict=True))
            row[f"by_{way}"] = -0.5 + ends[0]
    return replace(found, models=pl.DataFrame(table))


def shown(found, cohort, capsys):
    capsys.readouterr()
    show_models(found, cohort, page())
    return capsys.readouterr().out


# ---------------------------------------------------------------------- words


def test_every_model_and_every_statistic_has_words():
    assert {model.name for model in usual_models()} <= set(MODELS)
    assert len(set(MODELS.values())) == len(MODELS)
    assert all(statistic_words(name) != name.replace("_", " ") or name == "backtracks" for name in STATISTICS)


def test_mixtures_beliefs_and_models_of_ones_own_have_words(found):
    kinds = [{"name": "errands_far", "kind": "believes"}, {"name": "my_own", "kind": "mine"}]
    other = replace(found, record=replace(found.record, settings={"models": kinds}))
    assert model_words(other, "errands_far") == "taking the task for errands_far"
    assert model_words(other, "my_own") == "my own"
    assert model_words(other, "softmax+random") == "softmax or random choice, choice by choice"


def test_a_model_that_wins_beyond_chance_is_said_to(found):
    said = choice_sentences(
        with_rows(found, {"no_way_back": (0.02, 0.01, 0.03), "random": (-0.5, -0.6, -0.4)})
    )
    assert said[0] == (
        "People who were not learned from are predicted best by “not stepping back”: what they chose is 2.02 % "
        "(1.01 to 3.05) more probable than under “softmax” (95 % interval). This is beyond chance."
    )
    assert "No model" not in " ".join(said)


def test_without_a_winner_no_model_is_said_to_predict_better(found):
    worse = {"no_way_back": (-0.02, -0.03, -0.01), "random": (-0.5, -0.6, -0.4)}
    said = choice_sentences(with_rows(found, worse))
    assert said[0] == "No model predicts people better than “softmax” beyond chance."
    assert said[1].endswith("are predicted best by “softmax”.")
    unclear = choice_sentences(
        with_rows(found, {"no_way_back": (0.02, -0.01, 0.05), "random": (-0.1, -0.2, 0.1)})
    )
    assert unclear[0] == said[0]
    assert "its 95 % interval includes 0" in unclear[1]
    assert unclear[2] == "Not distinguishable from “softmax”: “random choice”."
    assert "but the interval includes 0" in unclear[3]


def test_a_best_one_that_is_not_sure_does_not_hide_a_sure_one(found):
    said = choice_sentences(
        with_rows(found, {"no_way_back": (0.02, 0.01, 0.03), "random": (0.03, -0.01, 0.07)})
    )
    assert said[0] == "Better than “softmax” beyond chance: “not stepping back”, 2.02 % (1.01 to 3.05)."
    assert said[1].startswith("The best on average is “random choice”")
    assert found.is_beaten == bool((found.models["people_low"] > 0).any())


def test_per_cent_are_those_of_the_differences(found):
    for row in found.models.iter_rows(named=True):
        numbers = re.findall(r"[+−]\d+\.\d+", gain_text(row, unit="", sign=True))
        exact = [100 * math.expm1(row[f"people_{end}"]) for end in ("difference", "low", "high")]
        assert [float(one.replace("−", "-")) for one in numbers] == pytest.approx(exact, abs=0.00501)


def test_what_is_not_described_has_its_numbers(found):
    said = " ".join(choice_sentences(found))
    for name in ("softmax", found.best):
        missed = found.criticism.misses(name)
        for row in missed.iter_rows(named=True):
            observed, expected, band = check_texts(row)
            assert (
                f"{statistic_words(row['statistic'])}, {observed} observed, {expected} ({band}) expected"
                in said
            )
        if missed.height:
            assert f"{MODELS[name]}” fails to describe {missed.height} of " in said
        else:
            assert f"{MODELS[name]}” describes all " in said
    assert "Of 8 people, not described: " in said


def test_calibration_is_weighted_by_options(found):
    table = pl.DataFrame(
        [("softmax", 1, 0.1, 0.2, 0.15, 0.25, 300), ("softmax", 2, 0.8, 0.8, 0.7, 0.9, 100)],
        schema=CALIBRATION, orient="row",
    )  # fmt: skip
    other = replace(found, criticism=replace(found.criticism, calibration=table))
    said = " ".join(choice_sentences(with_rows(other, {})))
    assert "predicted probabilities are off by 7.5 points on average, in 1 of 2 bins beyond chance." in said


def test_a_goal_that_is_kept_in_mind_has_no_calibration(task, cohort, capsys):
    made = fidm.compare_models(
        task, cohort, [GoalAtATime("chosen"), Random()], folds=2, replicates=3, bootstrap=20
    )
    assert "which goal somebody has in mind is not seen" in " ".join(choice_sentences(made))
    assert set(figures_of(made)) == {"compare-models", "compare-models-checks"}
    assert "against “one goal at a time”" not in shown(made, cohort, capsys)


def test_parameters_have_units_and_a_range(task, cohort):
    models = [Softmax(), Depth(), Stickiness("way"), Mixture(Lapse(), Softmax())]
    made = fidm.compare_models(task, cohort[:6], models[:3], folds=2, replicates=2, bootstrap=20)
    rows = {(one.model, one.label): one for one in shared_parameters(made)}
    assert rows["no_way_back", "bonus for stepping back"].typical.startswith("odds × 0.")
    assert "step" in rows["depth", "planning depth"].typical or rows["depth", "planning depth"].typical == (
        "the whole way"
    )
    eta = made.parameters.filter(model="softmax").row(0, named=True)
    low, high = (math.exp(eta["mean"] + z * 1.95996 * eta["sd"]) for z in (-1, 1))
    own = rows["softmax", "action sensitivity η"]
    assert (float(own.low), float(own.high)) == pytest.approx((low, high), rel=0.01)


def test_what_was_written_says_the_same(found, cohort, capsys):
    said = json.loads(json.dumps(plain(found.to_dict())))
    record = replace(found.record, settings=json.loads(json.dumps(plain(found.record.settings))))
    again = ModelComparison.of(record, said)
    assert shown(again, cohort, capsys) == shown(found, cohort, capsys)


def test_an_endless_depth_survives_the_file():
    table = pl.DataFrame(
        {"model": ["depth"], "parameter": ["depth"], "label": ["planning depth"], "typical": [None], "mean": [7.9],
         "sd": [0.3]}, schema_overrides={"typical": pl.Float64},
    )  # fmt: skip
    settings = {"models": [{"name": "depth", "kind": "depth", "depths": [1.0, 2.0, 4.0, 8.0, None]}]}
    empty = pl.DataFrame()
    found = ModelComparison(
        Record("compare-models", "0", {}, 1, settings), empty, table, empty, None, 0.5, {}
    )
    [one] = shared_parameters(found)
    assert (one.typical, one.between) == ("the whole way", "the whole way")
    unknown = replace(found, record=replace(found.record, settings={}))
    assert shared_parameters(unknown)[0].between == "–"


def test_the_page_of_the_terminal_lines_up_and_says_who_is_missing(found, cohort, capsys):
    said = shown(replace(found, not_run={"nearest_goal": "Fewer than two goals in errands."}), cohort, capsys)
    assert "8 people" in said
    assert "! Not run: “the nearest goal alone”. Fewer than two goals in errands." in said
    lines = said.splitlines()
    header = next(line for line in lines if "best of" in line)
    rows = [line for line in lines if line.strip().startswith(tuple(MODELS.values()))][:3]
    assert {len(line.rstrip()) for line in [header, *rows]} == {len(header.rstrip())}


def test_steps_that_a_planner_filled_in_are_told(cohort):
    assert say_filled_in(cohort) == []
    inferred = np.zeros(len(cohort.state), dtype=np.bool_)
    inferred[: len(inferred) // 4] = True
    [said] = say_filled_in(replace(cohort, inferred=inferred))
    assert said.startswith("A planner filled in 2")


def test_few_people_and_many_models_are_noted(found):
    notes = " ".join(choice_notes(found))
    assert "with so few people" in notes
    assert "one may exclude 0 by chance" not in notes  # of two differences
    assert say_models_not_run(found) == []
    assert chance_text(1.0) == "> 99.9 %"


def test_nothing_checked_is_said(found):
    bare = replace(
        found.criticism, checks=pl.DataFrame(schema=CHECKS), calibration=pl.DataFrame(schema=CALIBRATION),
        undescribed=pl.DataFrame(schema=UNDESCRIBED),
    )  # fmt: skip
    other = replace(found, criticism=bare)
    assert "Nothing could be checked under “softmax”." in " ".join(choice_sentences(other))
    assert set(figures_of(other)) == {"compare-models"}


# ---------------------------------------------------------------------- figures


def test_the_forest_has_every_difference_and_writes_far_ones_at_the_edge(found):
    rows = {"no_way_back": (0.02, 0.01, 0.03), "random": (-0.5, -0.6, -0.4)}
    ax = plot.model_differences(with_rows(found, rows))
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["not stepping back", "softmax", "random choice"]
    middles = [line.get_xdata()[0] for line in ax.get_lines() if line.get_marker() == "o"]
    assert middles == pytest.approx([100 * math.expm1(0.02)])
    assert [text.get_text() for text in ax.texts] == ["−39 %"]
    assert ax.get_xlim()[0] > -5
    close = plot.model_differences(with_rows(found, {**rows, "random": (-0.05, -0.06, -0.04)}))
    assert not close.texts


def test_only_differences_beyond_chance_are_filled(found):
    ax = plot.model_differences(
        with_rows(found, {"no_way_back": (0.02, -0.01, 0.03), "random": (-0.05, -0.06, -0.04)})
    )
    filled = {
        line.get_ydata()[0] > 1: line.get_markerfacecolor() != "white"
        for line in ax.get_lines()
        if line.get_marker() == "o"
    }
    assert filled == {False: False, True: True}


def test_all_figures_can_be_drawn_and_have_the_numbers_of_the_tables(found):
    figures = figures_of(found)
    assert set(figures) == {"compare-models", "compare-models-checks", "compare-models-calibration"}
    for figure in figures.values():
        FigureCanvasAgg(figure).draw()
    shares, steps = figures["compare-models-checks"].axes
    diamonds = [line.get_xdata()[0] for line in shares.get_lines() if line.get_marker() == "D"]
    own = found.criticism.checks.filter(model="softmax").filter(~pl.col("statistic").str.starts_with("steps"))
    assert diamonds == pytest.approx((100 * own["observed"]).to_list())
    assert steps.get_xlabel() == "steps"
    top = figures["compare-models-calibration"].axes[0]
    points = found.criticism.calibration.filter(model=found.best)
    assert top.get_lines()[1].get_ydata() == pytest.approx((100 * points["observed"]).to_numpy())


def test_a_comparison_has_a_reference_to_be_asked_for(found):
    assert found.reference == "softmax"
    with pytest.raises(FidmError, match="There is no model 'nobody'"):
        found.row("nobody")
