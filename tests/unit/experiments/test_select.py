"""Choosing a move cost and a temperature: the right one is found, a degenerate one never."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.errors import DataError, FidmError, TaskError
from fidm.experiments.select import _Scored, select
from fidm.model.effort import paper_channels
from fidm.record import plain, to_json
from fidm.stats import deal

COSTS, TEMPERATURES = (-0.02, -0.05), (0.03, 0.05, 0.12)
TRUE = (-0.02, 0.05)


@pytest.fixture(scope="module")
def task():
    return fidm.load_task("errands").with_settings(move_cost=TRUE[0], tau=TRUE[1])


@pytest.fixture(scope="module")
def people(task):
    return fidm.simulate_cohort(task, 60, seed=1)


@pytest.fixture(scope="module")
def found(task, people):
    return select(task, people, costs=COSTS, temperatures=TEMPERATURES)


def grouped(cohort, values, name="diagnosis"):
    return cohort.with_participants(cohort.participants.with_columns(**{name: pl.Series(values)}))


def test_the_point_people_acted_by_is_chosen_or_close(found):
    assert found.at(*TRUE) in found.close
    assert found.chosen in found.close
    assert all(point.usable for point in found.close)
    assert found.own == TRUE
    assert found.own_is_close is True
    assert found.score(found.chosen) == max(p.likelihood for p in found.points if p.usable)
    assert found.chosen.likelihood_se == 0
    assert found.n_people == 60


def test_several_tasks_share_a_point():
    tasks = [
        fidm.load_task(name).with_settings(move_cost=-0.02, tau=0.05) for name in ("errands", "grocery_small")
    ]
    people = fidm.simulate_cohort(tasks, 30, seed=1, max_steps=60)
    found = select(tasks, people, costs=[-0.02], temperatures=[0.05, 0.5], folds=3)
    assert found.own == (-0.02, 0.05)
    assert [point.usable for point in found.points] == [True, False]
    assert found.points[1].reasons[0].startswith("errands: ")
    assert set(found.record.tasks) == {"errands", "grocery_small"}
    variants = [task.with_settings(tau=0.5) for task in tasks]
    fold = deal(30, 3, seed=[1, 30])
    log = 0.0
    for part in range(3):
        fit = fidm.Model(variants, channels=()).fit(people[np.flatnonzero(fold != part)])
        log += fit.log_likelihood(people[np.flatnonzero(fold == part)], at="prior")["action"].sum()
    assert found.points[1].likelihood == pytest.approx(log / found.n_actions)
    mixed = [tasks[0], tasks[1].with_settings(tau=0.04)]
    other = select(mixed, people, costs=[-0.02], temperatures=[0.05], folds=3)
    assert np.isnan(other.own).all()
    assert other.own_is_close is None
    assert other.sentence.endswith("The tasks as they stand differ in their settings.")
    assert other.points[0].likelihood == found.points[0].likelihood
    assert '"task_as_it_stands": {"move_cost": null, "tau": null' in json.dumps(plain(other.to_dict()))
    with pytest.raises(DataError, match="People did grocery_small, not only errands"):
        select(tasks[0], people, folds=3)


def test_people_of_another_point_choose_another(task):
    other = task.with_settings(move_cost=-0.05, tau=0.03)
    people = fidm.simulate_cohort(other, 60, seed=2)
    found = select(task, people, costs=COSTS, temperatures=TEMPERATURES)
    assert found.at(-0.05, 0.03) in found.close
    assert found.at(*TRUE) not in found.close
    assert found.own_is_close is False
    assert "(-0.02, 0.05) is not" in found.sentence


def test_a_degenerate_point_is_never_chosen_even_if_people_acted_by_it(task):
    trap = task.with_settings(tau=0.12)
    people = fidm.simulate_cohort(trap, 40, seed=1, max_steps=60)
    found = select(task, people, costs=COSTS[:1], temperatures=TEMPERATURES)
    worst = found.at(-0.02, 0.12)
    assert not worst.usable
    assert "never finishes" in worst.reasons[0]
    assert worst.likelihood == max(point.likelihood for point in found.points), "it does score best"
    assert found.chosen is not None
    assert found.chosen.usable
    assert worst not in found.close


def test_where_every_point_is_degenerate_none_is_chosen(task, people):
    found = select(task, people, costs=COSTS[:1], temperatures=[0.12])
    assert found.chosen is None
    assert found.close == ()
    assert found.own_is_close is None
    assert "none is chosen" in found.sentence
    assert json.loads(to_json(found))["result"]["chosen"] is None


def test_the_score_is_that_of_left_out_people(task, people, found):
    fold = deal(len(people), 5, seed=[1, len(people)])
    total = count = 0.0
    for number in range(5):
        fit = fidm.Model(task, channels=()).fit(people[np.flatnonzero(fold != number)])
        out = people[np.flatnonzero(fold == number)]
        total += fit.log_likelihood(out, at="prior")["action"].sum()
        count += fit.profile(out).n[:, 0].sum()
    assert found.at(*TRUE).likelihood == pytest.approx(total / count, abs=1e-12)
    assert found.n_actions == count


def test_the_area_is_that_of_features_learned_in_each_fold(task, people):
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import PredefinedSplit, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    slow = people.participants["true_duration"].to_numpy() > 0.1
    cohort = grouped(people, np.where(slow, "mci", "normal"))
    found = select(task, cohort, costs=TRUE[:1], temperatures=[TRUE[1], 0.03], by="auc")
    channels = tuple(channel for channel in paper_channels() if channel.name != "pause_presence")
    pipeline = make_pipeline(
        fidm.sklearn.FactorizedFeatures(task, channels=channels),
        SimpleImputer(strategy="median"),
        StandardScaler(),
        LogisticRegression(C=1.0, class_weight="balanced", max_iter=1_000),
    )
    folds = PredefinedSplit(deal(len(people), 5, seed=[1, len(people)], classes=slow.astype(np.int8)))
    areas = cross_val_score(pipeline, cohort, slow, scoring="roc_auc", cv=folds)
    assert found.at(*TRUE).auc == pytest.approx(areas.mean(), abs=1e-9)
    assert found.by == "auc"
    assert found.chosen.auc == max(point.auc for point in found.points)


def test_folds_are_even_and_groups_are_spread():
    group = np.array([0] * 13 + [1] * 7 + [-1] * 3, dtype=np.int8)
    fold = deal(23, 5, seed=[1, 23], classes=group)
    assert set(np.bincount(fold)) <= {4, 5}
    for value in (0, 1):
        each = np.bincount(fold[group == value], minlength=5)
        assert each.max() - each.min() <= 1
    assert not np.array_equal(fold, deal(23, 5, seed=[2, 23], classes=group))


def test_tables_and_json_say_everything(found):
    table = found.tables[""]
    assert table.height == 6
    assert table["chosen"].sum() == 1
    assert table["paper"].to_list() == [p.move_cost == -0.02 and p.tau == 0.05 for p in found.points]
    assert table.filter(~pl.col("usable"))["reasons"].str.len_chars().min() > 0
    assert table["auc"].null_count() == 6
    said = json.loads(to_json(found))
    assert said["experiment"] == "select"
    assert said["result"]["by"] == "likelihood"
    assert said["result"]["notes"] == []


def test_a_diagnosis_is_not_looked_at_unless_it_is_asked_for(task, people):
    same = grouped(people, ["normal"] * 60)
    found = select(task, same, costs=TRUE[:1], temperatures=TRUE[1:])
    plain = select(task, people, costs=TRUE[:1], temperatures=TRUE[1:])
    assert str(found.points) == str(plain.points)  # NaN, where there is no AUC, equals nothing
    for options in ({"by": "auc"}, {"label": "diagnosis"}):
        with pytest.raises(DataError, match="group of 0"):
            select(task, same, **options)


def test_what_a_diagnosis_says_does_not_change_the_likelihood(task, people):
    point = {"costs": TRUE[:1], "temperatures": TRUE[1:], "folds": 2}
    named = select(task, grouped(people, ["normal", "mci"] * 30), label="diagnosis", **point)
    plain = select(task, people, **point)
    assert named.points[0].likelihood == plain.points[0].likelihood


def test_a_channel_that_cannot_be_learned_is_left_out_of_the_area(task, people):
    keyed = people.segments.with_columns(
        pause_s=pl.lit(0.0),
        participant=people.ids.gather(np.repeat(people.episode_owner(), np.diff(people.segment_offsets))),
        episode=pl.lit("1"),
    )
    silent = grouped(people.with_segments(keyed), ["normal", "mci"] * 30)
    found = select(task, silent, label="diagnosis", costs=TRUE[:1], temperatures=TRUE[1:], folds=2)
    assert found.notes[0].startswith("pause is left out")
    assert 0 < found.points[0].auc < 1


def test_the_error_of_a_difference_is_that_of_a_bootstrap_over_people():
    rng = np.random.default_rng(1)
    n = rng.integers(20, 80, 300)
    one, two = (rng.normal(-0.4, 0.1, 300) * n for _ in range(2))
    first, second = (_Scored(-0.02, 0.05, (), log, n, np.zeros(5)) for log in (one, two))
    rows = rng.integers(0, 300, (4_000, 300))
    drawn = (one - two)[rows].sum(axis=1) / n[rows].sum(axis=1)
    assert first.error(second, "likelihood") == pytest.approx(drawn.std(), rel=0.05)


def test_groups_that_are_not_two_are_refused(task, people):
    three = grouped(people, ["a", "b", "c"] * 20, "site")
    with pytest.raises(DataError, match="has 3 different values"):
        select(task, three, label="site")
    with pytest.raises(DataError, match="no column 'group'"):
        select(task, people, label="group")
    with pytest.raises(DataError, match="no column 'diagnosis'"):
        select(task, people, by="auc")


def test_unknown_groups_are_left_out_of_the_area_alone(task, people):
    values = [None, None, *(["normal", "mci"] * 29)]
    cohort = grouped(people, values)
    found = select(task, cohort, costs=TRUE[:1], temperatures=TRUE[1:], label="diagnosis", folds=2)
    assert found.n_people == 60
    assert 0 < found.points[0].auc < 1


def test_people_who_did_other_tasks_are_refused(task):
    tasks = (task, fidm.load_task("grocery_small"))
    with pytest.raises(DataError, match="not only errands"):
        select(task, fidm.simulate_cohort(tasks, 12, seed=1))


@functools.cache
def corridors():
    """Small tasks without movements: on, or back to the start."""
    made = []
    for n in range(4, 9):
        on, back = [*range(1, n), -1], [*([0] * (n - 1)), -1]
        pay = [[-0.1, -0.1]] * (n - 2) + [[0.5, -0.1], [0.0, 0.0]]
        task = fidm.TaskModel.from_arrays(np.transpose([on, back]), np.array(pay), gamma=0.9, tau=0.1)
        made.append(replace(task, name=f"corridor{n}"))
    return tuple(made)


def people_in(tasks, n=30):
    return fidm.simulate_cohort(
        tasks, n, seed=1, max_steps=40, people=fidm.simulate.cohort.People(log_sensitivity_mean=1.5)
    )


def test_tasks_without_movements_are_selected_over_temperature_and_discount():
    tasks = corridors()
    people = people_in(tasks)
    found = select(tasks, people, temperatures=[0.05, 0.1], gammas=[0.8, 0.9, 1.0], folds=3)
    assert [(p.gamma, p.tau) for p in found.points[:3]] == [(0.8, 0.05), (0.8, 0.1), (0.9, 0.05)]
    assert all(np.isnan(point.move_cost) for point in found.points)
    assert found.at(np.nan, 0.1) is found.points[3]
    assert found.at(np.nan, 0.1, 0.8) is found.points[1]
    assert [point.usable for point in found.points] == [True] * 4 + [False] * 2
    assert "walked in circles" in found.points[4].reasons[0]
    assert found.sentence.startswith("Chosen: temperature ")
    assert f"gamma {found.chosen.gamma:g}." in found.sentence
    assert "The task's own setting (0.1, 0.9)" in found.sentence
    assert found.tables[""]["gamma"].to_list() == [0.8, 0.8, 0.9, 0.9, 1.0, 1.0]
    assert found.tables[""]["move_cost"].null_count() == 6
    said = json.loads(to_json(found))
    assert said["settings"]["gammas"] == [0.8, 0.9, 1.0]
    assert said["settings"]["costs"] == []
    assert said["result"]["chosen"]["gamma"] == found.chosen.gamma
    alone = select(tasks[-1], people_in(tasks[-1:]), temperatures=[0.1], folds=3)
    assert alone.points[0].gamma == alone.own_gamma == 0.9
    assert "gamma" not in alone.tables[""].columns
    with pytest.raises(TaskError, match="corridor8 has no movements"):
        select(tasks[-1], people_in(tasks[-1:]), costs=[-0.02])


def test_a_discount_is_scored_as_the_same_task_with_that_discount(task, people):
    grid = {"costs": TRUE[:1], "temperatures": TRUE[1:], "folds": 2}
    found = select(task, people, gammas=[0.9, task.gamma], **grid)
    for point in found.points:
        alone = select(task.with_settings(gamma=point.gamma), people, **grid)
        assert alone.points[0].likelihood == point.likelihood
    assert found.at(*TRUE) is found.points[1]


def test_any_number_of_workers_gives_the_same_numbers(task, people):
    grid = {"costs": TRUE[:1], "temperatures": TEMPERATURES, "folds": 2}
    one, three = (select(task, people, workers=workers, **grid) for workers in (1, 3))
    assert str(one.points) == str(three.points)
    with pytest.raises(FidmError, match="workers"):
        select(task, people, workers=0, **grid)


def test_a_task_that_tells_nothing_does_no_harm_beside_others():
    silent = fidm.TaskModel.from_arrays([[1, 1], [-1, -1]], [[0, 0], [0, 0]], gamma=0.9, tau=0.1)
    tasks = (*corridors()[3:], replace(silent, name="silent"))
    found = select(tasks, people_in(tasks), temperatures=[0.1], folds=3)
    assert found.points[0].usable
    moving = replace(silent, name="moving", is_move=np.array([True, True]))
    mixed = select(
        (*corridors()[3:], moving), people_in((*corridors()[3:], moving)), costs=[-0.02, -0.05],
        temperatures=[0.1], folds=3,
    )  # fmt: skip
    assert [point.move_cost for point in mixed.points] == [-0.02, -0.05]
    assert mixed.points[0].likelihood == mixed.points[1].likelihood


def test_forty_small_tasks_are_selected_together():
    tasks = [
        replace(corridors()[i % 5], name=f"t{i}", reward=corridors()[i % 5].reward * (1 + i / 40))
        for i in range(40)
    ]
    found = select(tasks, people_in(tasks, 8), temperatures=[0.1, 5.0], gammas=[0.8, 0.9], folds=2)
    assert found.chosen is not None
    worst = found.at(np.nan, 5.0)
    assert not worst.usable
    assert len(worst.reasons) == 11
    assert worst.reasons[-1].endswith("more problems of tasks.")


def test_where_people_cannot_be_told_apart_by_any_values_this_is_an_error():
    straight = fidm.Cohort.from_traces(
        [
            fidm.Trace(
                task="corridor4", state=np.arange(4, dtype=np.int32), action=np.zeros(3, np.int32),
                finished=True, label=name,
            )
            for name in map(str, range(12))
        ]
    )  # fmt: skip
    with pytest.raises(fidm.FitError, match="neither all best"):
        select(corridors()[0], straight, temperatures=[0.05, 0.1], folds=2)


def test_a_task_whose_choices_tell_nothing_is_degenerate_and_has_no_score():
    plain = fidm.TaskModel.from_arrays([[1, 1], [-1, -1]], [[0, 0], [0, 0]], gamma=0.9, tau=0.1)
    task = replace(plain, is_move=np.ones(2, dtype=np.bool_))
    found = select(task, fidm.simulate_cohort(task, 12, seed=1))
    assert found.chosen is None
    assert all(np.isnan(point.likelihood) and not point.usable for point in found.points)
    assert "tell nothing" in found.points[0].reasons[0]
    assert found.tables[""]["likelihood"].null_count() == 12


@pytest.mark.parametrize(
    "options",
    [
        {"folds": 1},
        {"folds": 31},
        {"by": "luck"},
        {"costs": ()},
        {"temperatures": ()},
        {"temperatures": (0.0,)},
    ],
)
def test_impossible_settings_are_refused(task, people, options):
    with pytest.raises(FidmError):
        select(task, people, **options)


def test_one_person_is_refused(task, people):
    with pytest.raises(DataError, match="5 folds cannot"):
        select(task, people[:1])


def test_the_picture_hatches_what_is_degenerate(found):
    from fidm.plot.experiments import selection_map

    ax = selection_map(found)
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert len(hatched) == sum(not point.usable for point in found.points) > 0
    assert len(ax.patches) == len(hatched) + 1, "and the frame of the chosen one"
    assert len(ax.texts) == len(found.points)
