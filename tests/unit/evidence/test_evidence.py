"""Where the evidence lies: what a row says, what it never says, and what changes nothing."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import fidm
from fidm.evidence.evidence import find_evidence, find_surprisal
from fidm.evidence.localization import anchors, localize
from fidm.experiments.paper import LOCALIZATION
from fidm.io.tables import tables_of
from fidm.plot import evidence as plot
from fidm.plot.evidence import UNCOUNTED
from fidm.record import to_json
from fidm.tasks.stack import follow


@pytest.fixture(scope="module")
def task():
    return fidm.load_task("grocery")


@pytest.fixture(scope="module")
def cohort(task):
    return fidm.simulate_cohort(task, 30, seed=2, wrong_moves=0.05)


@pytest.fixture(scope="module")
def fit(task, cohort):
    return fidm.Model(task).fit(cohort)


@pytest.fixture(scope="module")
def found(fit, cohort):
    return find_evidence(fit, cohort)


def changed(cohort, **changes):
    fields = {name: getattr(cohort, name) for name in type(cohort).__slots__}
    return fidm.Cohort(**{**fields, **changes})


def test_rows_are_those_of_the_studys_tables(found, cohort, task):
    tables = tables_of(cohort)
    keys = ["participant", "episode", "step", "segment", "state"]
    assert found.actions.select(keys).equals(tables["steps"].select(keys))
    assert found.actions["action"].to_list() == [task.actions[code] for code in cohort.action]
    keys = ["participant", "episode", "segment", "n_moves"]
    assert found.segments.select(keys).equals(tables["segments"].select(keys))


def test_unexpectedness_is_never_negative(found):
    assert (found.counted["unexpectedness"] >= 0).all()
    assert found.counted["probability"].is_between(0, 1).all()
    np.testing.assert_allclose(
        -np.log(found.counted["probability"]), found.counted["unexpectedness"], atol=1e-12
    )


def test_the_best_action_is_named_and_has_no_gap(found):
    hit = pl.Series(
        [a in b.split(" / ") for a, b in found.counted.select("action", "best").cast(pl.String).rows()]
    )
    assert ((found.counted["q_gap"] < 1e-8) == hit).all()
    assert hit.mean() > 0.5


def test_a_forced_action_is_not_unexpected(found):
    forced = found.counted.filter(pl.col("n_legal") == 1)
    assert forced.height
    assert (forced["unexpectedness"] == 0).all()


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_constant_per_state_changes_nothing(found, fit, cohort, seed):
    shift = np.random.default_rng(seed).normal(0, 3, len(fit.tasks.offsets) - 1)
    moved = replace(fit, q=fit.q + np.repeat(shift, np.diff(fit.tasks.offsets)))
    again = find_evidence(moved, cohort, profile=fit.profile(cohort))
    for name in ("unexpectedness", "q_gap"):
        np.testing.assert_allclose(again.actions[name], found.actions[name], atol=1e-9)
    assert again.actions["best"].cast(pl.String).equals(found.actions["best"].cast(pl.String))


def test_the_order_of_people_changes_nothing(found, fit, cohort):
    backwards = np.arange(len(cohort))[::-1]
    again = find_evidence(fit, cohort[backwards])
    keys = ["participant", "episode", "step"]
    columns = [*keys, "unexpectedness", "percentile", "counts"]
    assert again.actions.select(columns).sort(keys).equals(found.actions.select(columns).sort(keys))
    for name in ("duration_residual", "turns_own_z"):
        keys = ["participant", "episode", "segment"]
        assert (
            again.segments.select(*keys, name)
            .sort(keys)
            .equals(found.segments.select(*keys, name).sort(keys))
        )


def test_percentiles_are_within_a_person(found):
    own = found.counted.filter(pl.col("participant") == "P0000003")
    ranks = own["unexpectedness"].rank("average").to_numpy()
    np.testing.assert_allclose(own["percentile"], 100 * (ranks - 0.5) / own.height)


def test_steps_that_do_not_count_are_kept_apart(fit, cohort):
    rng = np.random.default_rng(1)
    weight = np.where(rng.random(cohort.n_steps) < 0.3, 0.0, 1.0)
    inferred = rng.random(cohort.n_steps) < 0.3
    weighed = changed(cohort, weight=weight, inferred=inferred)
    table = find_evidence(fit, weighed).actions
    assert table["counts"].to_list() == ((weight > 0) & ~inferred).tolist()
    assert table["unexpectedness"].null_count() == 0
    assert table.filter(~pl.col("counts"))["percentile"].null_count() == (~table["counts"]).sum()
    causes = find_evidence(fit, weighed).not_counted()
    assert causes["inferred"] == inferred.sum()
    assert causes["weight 0"] == ((weight == 0) & ~inferred).sum()
    assert sum(causes.values()) == (~table["counts"]).sum()
    own = find_evidence(fit, weighed).not_counted(participant=cohort.ids[3])
    assert sum(own.values()) == (~table.filter(pl.col("participant") == cohort.ids[3])["counts"]).sum()
    everything = find_evidence(replace(fit, inferred=1.0), weighed)
    assert everything.actions["counts"].to_list() == (weight > 0).tolist()
    assert everything.not_counted()["inferred"] == 0
    assert everything.not_counted()["weight 0"] == (weight == 0).sum()


def test_left_out_actions_and_waiting_states_have_no_evidence(task, fit):
    grid = task.grid
    waiting = grid.state((1, 4), ("vegetables", "meat", "egg_tofu", "seasoning"), "shopping")
    trace = fidm.Trace(
        task="grocery",
        state=np.array([waiting, waiting, task.start, task.start], dtype=np.int32),
        action=np.array([-1, -1, -1], dtype=np.int32),
        finished=True,
        label="P1",
    )
    cohort = fidm.Cohort.from_traces([replace(trace, state=trace.state[[0, 0, 0, 0]])])
    table = find_evidence(fit, cohort).actions
    assert table["action"].to_list() == [None] * 3
    assert table["unexpectedness"].to_list() == [None] * 3
    assert not table["counts"].any()
    expected = {"waiting or no choice": 3, "inferred": 0, "weight 0": 0, "no η": 0}
    assert find_evidence(fit, cohort).not_counted() == expected
    assert find_evidence(fit, cohort).most_unexpected().height == 0


def test_always_best_has_an_infinite_eta_and_shares_ties(task):
    walker = fidm.walk(task, fidm.solve(task), 1e6, seed=1, label="P1")
    cohort = fidm.Cohort.from_traces([walker])
    fit = fidm.Model(task, channels=()).fit(cohort, method="mle")
    found = find_evidence(fit, cohort)
    assert np.isinf(found.sensitivity[0])
    n_best = np.array([len(best.split(" / ")) for best in found.counted["best"].cast(pl.String)])
    np.testing.assert_allclose(found.counted["unexpectedness"], np.log(n_best), atol=1e-12)


def test_nobody_knows_what_is_unexpected_without_an_eta(task):
    start = fidm.Trace(
        task="grocery",
        state=np.array([task.start, task.start - 1], dtype=np.int32),
        action=np.array([task.actions.index("W")], dtype=np.int32),
        finished=True,
        label="P1",
    )
    cohort = fidm.Cohort.from_traces([start])
    fit = fidm.Model(task, channels=()).fit(cohort, method="mle")
    found = find_evidence(fit, cohort)
    assert np.isnan(found.sensitivity[0])
    assert found.actions["unexpectedness"].to_list() == [0.0]  # one legal action needs no η
    assert found.people["action_sensitivity"].to_list() == [None]
    assert repr(found).startswith(
        "Evidence about 1 participant: 1 action, 1 of them counted, and 0 segments."
    )


def test_without_an_estimate_the_population_says_what_is_expected(fit, cohort):
    first = int(cohort.step_offsets[cohort.episode_offsets[1]])
    inferred = np.arange(cohort.n_steps) < first
    alike = replace(fit, alike=("duration",))
    found = find_evidence(alike, replace(cohort, inferred=inferred))
    own = found.actions[:first]
    assert np.isnan(found.sensitivity[0])
    assert found.people["action_sensitivity"][0] is None
    assert not own["counts"].any()
    judged = find_surprisal(
        fit, cohort, follow(fit.tasks, cohort), np.full(len(cohort), np.exp(fit.prior.mean))
    )
    np.testing.assert_array_equal(own["unexpectedness"].fill_null(np.nan), judged.unexpectedness[:first])
    table, mean = found.segments, fit.populations["duration"].population.mean
    shifted = table["duration_residual"] - table["duration_own_residual"]
    np.testing.assert_allclose(shifted.drop_nulls(), mean, atol=1e-12)
    assert table["duration_own_z"].null_count() == table["duration_observed"].null_count()


def test_effort_missing_is_null_and_no_segments_leave_actions(task, fit, cohort):
    gaps = cohort.segments.with_columns(
        duration_s=pl.when(pl.int_range(pl.len()) % 2 == 0).then("duration_s"), n_turns=pl.lit(None, pl.Int32)
    )
    found = find_evidence(fit, changed(cohort, segments=gaps))
    assert found.segments["duration_residual"].null_count() == gaps["duration_s"].null_count()
    assert "turns" not in found.channels
    bare = fidm.Cohort.from_traces(
        trace for name in cohort.ids.to_list()[:5] for trace in cohort.traces(name)
    )
    found = find_evidence(fit, bare)
    assert found.channels == ()
    assert found.segments.height == 0
    assert found.most_unexpected(3).height == 3
    with pytest.raises(fidm.DataError, match="effort channel 'duration'"):
        found.heaviest("duration")


def test_the_most_unexpected_and_the_heaviest_come_first(found):
    top = found.most_unexpected(5)["unexpectedness"]
    assert top.is_sorted(descending=True)
    assert top[0] == found.counted["unexpectedness"].max()
    own = found.most_unexpected(4, participant="P0000002")
    assert own["participant"].unique().to_list() == ["P0000002"]
    heavy = found.heaviest("characters", 3)
    assert heavy["characters_residual"][0] == found.segments["characters_residual"].max()
    assert found.heaviest("pause", 100, participant="P0000002")["pause_residual"].null_count() == 0
    with pytest.raises(fidm.DataError, match="no participant 'P9'"):
        found.most_unexpected(participant="P9")


def test_what_was_observed_lies_on_the_residuals_side_of_what_was_expected(found):
    assert {"duration", "characters", "turns", "pause", "pause_presence"} == set(found.channels)
    for channel in found.channels:
        rows = found.segments.drop_nulls(f"{channel}_residual")
        above = (rows[f"{channel}_observed"] - rows[f"{channel}_expected"]).sign()
        assert rows.height > 20
        assert above.equals(rows[f"{channel}_residual"].sign(), check_names=False), channel


def test_a_typical_pause_is_what_its_residual_is_relative_to(found):
    rows = found.segments.drop_nulls("pause_residual")
    ratio = np.log(rows["pause_observed"].to_numpy() / rows["pause_expected"].to_numpy())
    np.testing.assert_allclose(rows["pause_residual"], ratio, atol=1e-10)


def test_people_and_summary_add_up(found, fit, cohort):
    assert found.people["n_actions"].sum() == found.counted.height
    likelihood = fit.log_likelihood(cohort)["action"]
    np.testing.assert_allclose(-found.people["total_unexpectedness"], likelihood, atol=1e-10)
    summary = found.summary()
    assert summary["quantity"].to_list() == ["unexpectedness", *found.channels]
    assert summary["n"][0] == found.counted.height


def test_a_profile_of_others_is_refused(fit, cohort):
    with pytest.raises(fidm.DataError, match="of these people"):
        find_evidence(fit, cohort[:5], profile=fit.profile(cohort[5:10]))


def test_progress_is_told_and_workers_change_nothing(found, fit, cohort):
    heard = []
    again = find_evidence(fit, cohort, workers=2, on_progress=lambda *said: heard.append(said))
    assert ("actions", 0, 2) in heard
    assert heard[-1] == ("segments", 2, 2)
    assert again.actions.equals(found.actions)
    assert again.record == found.record


def test_the_record_names_the_fit(found, fit, cohort):
    settings = found.record.settings
    assert found.record.experiment == "evidence"
    other = find_evidence(replace(fit, lapse=0.01), cohort).record.settings
    assert settings["fit_sha256"] != other["fit_sha256"]
    assert '"share_improbable"' in to_json(found)


def test_it_is_told_in_sentences(found):
    lines = repr(found).splitlines()
    assert lines[0].startswith("Evidence about 30 participants: ")
    assert "had a probability below 5%" in lines[1]
    assert lines[2] == "Effort: duration, characters, turns, pause, pause presence."


def test_pictures_are_drawn(found, cohort, task):
    who = found.people.sort("total_unexpectedness")["participant"][-1]
    assert isinstance(plot.person_evidence(found, who, task=task), Figure)
    assert isinstance(plot.person_evidence(found, who), Figure)
    assert isinstance(plot.unexpected_steps(task, found, who), Axes)
    assert len(plot.effort_residuals(found, who, "duration").patches) > 3
    result = localize(found, cohort, bootstrap=20)
    assert len(plot.localization(result, paper=LOCALIZATION).axes) == 2
    with pytest.raises(fidm.DataError, match="no steps of 'P9'"):
        plot.unexpected_steps(task, found, "P9")
    with pytest.raises(fidm.DataError, match="no effort channel"):
        plot.effort_residuals(found, who, "sighs")
    plt.close("all")


def test_steps_that_do_not_count_are_grey_and_named_in_a_legend(found, fit, cohort, task):
    who = cohort.ids[2]
    ax = plot.unexpected_steps(task, found, who)
    assert ax.get_legend() is None
    assert "✕ marks actions" in ax.get_title()
    silent = find_evidence(fit, changed(cohort, inferred=np.ones(cohort.n_steps, dtype=bool)))
    for ax in (plot.unexpected_steps(task, silent, who), plot.unexpected_row(silent, who)):
        assert "not counted" in ax.get_legend().get_texts()[0].get_text()
    drawn = plot.unexpected_steps(task, silent, who)
    grey = np.array(to_rgba(UNCOUNTED))
    assert any(
        (lines.get_colors() == grey).all() for lines in drawn.collections if len(lines.get_edgecolor())
    )
    plt.close("all")


def test_a_way_without_other_actions_has_no_crosses_in_its_title(task):
    walker = fidm.walk(task, fidm.solve(task), 3.0, seed=1, label="P1")
    moves = int(np.argmin(task.is_move[[task.pair(s, task.actions[a]) for s, a in zip(
        walker.state[:-1].tolist(), walker.action.tolist(), strict=True)]]))  # fmt: skip
    short = replace(walker, state=walker.state[: moves + 1], action=walker.action[:moves])
    cohort = fidm.Cohort.from_traces([short])
    found = find_evidence(fidm.Model(task, channels=()).fit(cohort, method="mle"), cohort)
    assert "✕" not in plot.unexpected_steps(task, found, "P1").get_title()
    plt.close("all")


def test_whether_there_was_a_pause_has_no_panel_and_others_a_unit(found, task):
    assert found.yes_no == ("pause_presence",)
    figure = plot.person_evidence(found, "P0000002", task=task)
    labels = [ax.get_ylabel() for ax in figure.get_axes()]
    assert [label for label in labels if "log ratio" in label] == [
        f"{name}\nlog ratio" for name in ("speech duration", "character count", "turn count", "pause length")
    ]
    assert not [label for label in labels if "presence" in label]
    assert plot.effort_residuals(found, "P0000002", "pause_presence").get_ylabel().endswith("difference")
    plt.close("all")


def test_a_task_without_a_map_has_evidence_but_no_localization():
    rng = np.random.default_rng(1)
    to = np.concatenate([rng.integers(0, 8, (7, 3)), [[-1, -1, -1]]])
    to[:7, 0] = np.arange(1, 8)
    line = fidm.TaskModel.from_arrays(to, np.where(to >= 0, -0.1, 0.0), gamma=0.9, tau=0.1, name="line")
    cohort = fidm.simulate_cohort(line, 10, seed=1, max_steps=40)
    found = find_evidence(fidm.Model(line, channels=()).fit(cohort, method="mle"), cohort)
    assert found.counted.height == cohort.n_steps
    assert found.actions["where"][0] == "state 0"
    assert isinstance(plot.person_evidence(found, "P0000001"), Figure)
    with pytest.raises(fidm.TaskError, match="not drawn"):
        localize(found, cohort)


def test_an_infinite_effort_leaves_residuals_finite(task, cohort):
    silent = np.repeat(np.arange(len(cohort)), np.diff(cohort.segment_offsets[cohort.episode_offsets])) == 4
    segments = cohort.segments.with_columns(
        n_turns=pl.when(pl.Series(silent)).then(0).otherwise("n_turns").cast(pl.Int32),
        pause_s=pl.when(pl.Series(silent)).then(0.0).otherwise("pause_s"),
    )
    hushed = changed(cohort, segments=segments)
    fit = fidm.Model(task).fit(hushed, method="mle", population="pooled")
    assert np.isneginf(fit.profile(hushed)["turns"][4])
    own = find_evidence(fit, hushed).segments.filter(pl.col("participant") == cohort.ids[4])
    assert (own["turns_own_residual"] == 0).all()
    assert (own["turns_own_z"] == 0).all()
    assert (own["turns_residual"] < 0).all()
    assert own["pause_residual"].null_count() == own.height


def test_steps_keep_the_numbers_of_their_study(tmp_path):
    """A study may count its steps from 0, and each episode from where it likes."""
    task = fidm.load_task("grocery_small")
    made = fidm.simulate_cohort(task, 8, seed=1)
    tables = tables_of(made)
    first = pl.col("participant").replace_strict(made.ids, range(8), return_dtype=pl.Int32)
    study = {**tables, "steps": tables["steps"].with_columns(pl.col("step") - 1 + first * 5)}
    cohort = fidm.make_cohort(**study, tasks=task)
    expected = study["steps"]["step"].to_list()
    assert made.step is None
    assert tables_of(cohort)["steps"]["step"].to_list() == expected
    fit = fidm.Model(task, channels=()).fit(cohort, method="mle")
    assert find_evidence(fit, cohort).actions["step"].to_list() == expected
    assert anchors(task, cohort)["step"].to_list() == expected
    fidm.write_cohort(cohort, tmp_path / "study", tasks=["grocery_small"])
    again = fidm.read_cohort(tmp_path / "study")
    assert again.step_numbers().tolist() == expected
    backwards = cohort[::-1]
    assert backwards.step_numbers()[0] == 35
    both = fidm.Cohort.concat([made[:2], cohort[2:]])
    assert both.step_numbers()[0] == 1
    assert both[2:].step_numbers().tolist() == cohort[2:].step_numbers().tolist()
    before, after = (
        localize(find_evidence(fit, people), people, bootstrap=20).table for people in (made, cohort)
    )
    assert before.equals(after)
