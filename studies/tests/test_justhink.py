"""The JUSThink corpus, on made-up files: reading, replaying, solving, and the whole study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from made_up import justhink as made_up
from made_up import repeated_titles

import fidm
from fidm.errors import DataError, TaskError
from fidm.model import action
from fidm.tasks import stack
from fidm.tasks.stack import TaskSet, follow
from fidm_studies.dataset import no_progress
from fidm_studies.justhink.analysis import analyse
from fidm_studies.justhink.dataset import DATASET, relative_gain
from fidm_studies.justhink.network import Network, network_task, read_network, set_costs, set_parts
from fidm_studies.justhink.page import REANALYSIS
from fidm_studies.justhink.people import detectable
from fidm_studies.justhink.removals import AS_READ, best_by_chance, logistic, within_teams
from fidm_studies.justhink.replay import replay, spoken
from fidm_studies.justhink.toggles import solve_toggles, toggle_task
from fidm_studies.page import tell
from fidm_studies.resampling import draw_clusters, rank_correlation, weighted_aucs

SQUARE = Network(("a", "b", "c"), (0, 1, 2), ((0, 1), (0, 2), (1, 2)), (1.0, 2.0, 4.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("justhink")
    made_up.write(place)
    return place


@pytest.fixture(scope="module")
def loaded(folder):
    return DATASET.read(folder, no_progress)


@pytest.fixture(scope="module")
def findings(loaded):
    return analyse(loaded, bootstrap=20, workers=1)


def events(*rows):
    """A log from (attempt, turn, subject, verb, object)."""
    return pl.DataFrame(
        [
            {
                "team_no": 1, "attempt_no": attempt, "turn_no": turn, "event_no": i, "time": float(i),
                "subject": who, "verb": verb, "object": thing,
            }
            for i, (attempt, turn, who, verb, thing) in enumerate(rows, start=1)
        ]
    )  # fmt: skip


def replayed(*rows):
    return replay(events(*rows), SQUARE, set_parts(SQUARE))


# ---------------------------------------------------------------------- the network and its task


def test_sets_cost_what_their_tracks_cost_and_join_what_they_join():
    assert set_costs(SQUARE).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert set_parts(SQUARE).tolist() == [3, 2, 2, 1, 2, 1, 1, 1]


@pytest.mark.parametrize("normaliser", ["max", "mean", "sum"])
def test_sweeps_give_the_values_of_the_general_solver(folder, normaliser):
    network = read_network(folder / "metadata" / "network.json")
    task = network_task(network).with_settings(tau=0.02)
    ours, general = solve_toggles(task, normaliser), fidm.solve(task, normaliser)
    assert np.abs(ours.v - general.v).max() < 1e-9
    known = np.isfinite(general.q)
    assert (known == np.isfinite(ours.q)).all()
    assert np.abs(ours.q[known] - general.q[known]).max() < 1e-9


def test_the_task_is_a_plain_one_that_other_code_can_walk(folder):
    task = network_task(read_network(folder / "metadata" / "network.json"))
    trace = fidm.walk(task, solve_toggles(task), 1000.0, seed=1)
    lying = [i for i in range(7) if trace.state[-2] >> i & 1]
    assert trace.finished
    assert sum(made_up_costs(task)[i] for i in lying) == made_up.LEAST


def made_up_costs(task):
    """What each track costs, from its name."""
    names = {tuple(sorted((a, b))): cost for a, b, cost in made_up.TRACKS}
    short = ["Aal", "Bo", "Cor", "Dee", "Eck"]
    return [names[tuple(sorted(short.index(m) for m in name.split("-")))] for name in task.actions[:-1]]


def test_toggles_mark_their_values():
    task = toggle_task(["a", "b"], np.array([0.0, 1.0, 1.0, 3.0]), change=-0.5, gamma=0.9, tau=0.1)
    assert solve_toggles(task).solved_for == task.fingerprint == fidm.solve(task).solved_for
    assert solve_toggles(task, "max").solved_for == task.with_settings(normaliser="max").fingerprint
    assert solve_toggles(task, change=-0.4).solved_for == ""


def test_what_is_no_task_of_sets_is_refused():
    with pytest.raises(TaskError, match=r"use fidm\.solve"):
        solve_toggles(fidm.load_task("errands"))
    task = toggle_task(["a", "b"], np.array([np.nan, 1.0, 1.0, 2.0]), change=-0.1, gamma=0.9)
    other = fidm.TaskModel.from_arrays(
        [[1, 2, -1], [0, 3, 4], [3, 1, 4], [2, 1, 4], [-1, -1, -1]], np.zeros((5, 3)), gamma=0.9, tau=1.0
    )
    assert task.n_pairs == 11
    with pytest.raises(TaskError, match="no task of"):
        solve_toggles(other)
    with pytest.raises(TaskError, match="no set may"):
        solve_toggles(toggle_task(["a"], np.array([np.nan, np.nan]), change=-0.1, gamma=0.9))
    with pytest.raises(TaskError, match="in circles"):
        solve_toggles(toggle_task(["a"], np.array([np.nan, 1.0]), change=0.1, gamma=1.0))
    with pytest.raises(TaskError, match="4 sets"):
        toggle_task(["a", "b"], np.zeros(3), change=-0.1, gamma=0.9)
    with pytest.raises(TaskError, match="'sum', 'mean' or 'max'"):
        solve_toggles(task, "median")
    with pytest.raises(TaskError, match="change is inf"):
        solve_toggles(task, change=np.inf)
    with pytest.raises(TaskError, match="change is -inf"):
        toggle_task(["a"], np.zeros(2), change=-np.inf, gamma=0.9)
    with pytest.raises(TaskError, match="1 of 2 sets"):
        toggle_task(["a"], np.array([np.nan, np.inf]), change=-0.1, gamma=0.9)
    for things in (["a", "a"], ["a", "submit"]):
        with pytest.raises(TaskError, match="More than one"):
            toggle_task(things, np.zeros(4), change=-0.1, gamma=0.9)


def test_how_much_of_a_large_task_is_looked_at_at_a_time_changes_no_number(loaded, monkeypatch):
    def estimates():
        fit = fidm.Model(loaded.tasks, channels=()).fit(loaded.cohort, workers=1)
        return fit.q, fit.profile(loaded.cohort, workers=1).estimate

    q, found = estimates()
    monkeypatch.setattr(stack, "STATES_AT_ONCE", 3)
    monkeypatch.setattr(action, "CHUNK_ROWS", 3)
    again_q, again = estimates()
    assert (q == again_q).all()
    assert (found == again).all()
    pair = np.array([7, 2, 7, 40, 3, 2], dtype=np.int32)
    few, many = (action._distinct(pair, n) for n in (6 * 16 + 16, 41))  # sorted, or by a table
    assert few[0].tolist() == many[0].tolist() == [2, 3, 7, 40]
    assert few[1].tolist() == many[1].tolist() == [2, 0, 2, 3, 1, 0]


# ---------------------------------------------------------------------- replaying


def test_a_log_without_slips_is_replayed_as_it_is():
    found = replayed(
        (1, 1, "A", "adds", "a-b (0-1)"),
        (1, 1, "A", "adds", "c-b (2-1)"),
        (1, 2, "B", "removes", "b-c (1-2)"),
        (1, 2, "B", "adds", "a-c (0-2)"),
        (1, 3, "T", "submits", "cost=3 (opt_cost=3)"),
        (2, 3, "A", "loads", "[(0, 1), (2, 1)]"),
        (2, 3, "A", "removes", "a-b (0-1)"),
    )
    assert found.slips.height == 0
    assert found.steps["state"].to_list() == [0, 1, 5, 1, 3, 5]
    assert found.steps["after"].to_list() == [1, 5, 1, 3, 8, 4]
    assert found.steps["part"].to_list() == [1, 1, 1, 1, 1, 2]
    assert found.turns["doer"].to_list() == ["A", "B", "A", "A"]
    assert found.turns["n_edits"].to_list() == [2, 2, 0, 1]


def test_each_kind_of_slip_is_left_out_or_kept_as_it_should_be():
    found = replayed(
        (1, 1, "A", "adds", "a-b (0-1)"),
        (1, 1, "A", "adds", "a-b (0-1)"),
        (1, 2, "B", "removes", "b-c (1-2)"),
        (1, 2, "B", "submits", "cost=3 (opt_cost=3)"),
        (2, 3, "A", "adds", "a-b (0-1)"),
    )
    assert found.slips["slip"].to_list() == [
        "laid though it lies",
        "removed though it does not lie",
        "another cost than replayed",
        "not all mines joined",
    ]
    assert found.n_edits == 4
    assert found.steps["state"].to_list() == [0, 0]  # the board is empty again after the submission


def test_what_names_no_track_is_an_error_without_what_was_written():
    with pytest.raises(DataError, match="Event 1") as caught:
        replayed((1, 1, "A", "adds", "secret (0-9)"))
    assert "secret" not in str(caught.value)


def test_speech_is_counted_by_the_turn_it_begins_in():
    turns = pl.DataFrame(
        {"attempt": 1, "part": 1, "turn": [1, 2], "start_s": [0.0, 10.0], "end_s": [10.0, 20.0],
         "n_edits": [2, 1], "doer": ["A", "B"]}
    )  # fmt: skip
    talk = [
        (1, 2, "A", "ab, c"),
        (2.5, 4, "A", "d1"),
        (5, 6, "B", "x"),
        (9, 12, "A", "yes"),
        (21, 22, "A", "z"),
    ]
    said, lost = spoken(
        turns,
        pl.DataFrame(
            [{"start": float(s), "end": float(e), "interlocutor": w, "utterance": u} for s, e, w, u in talk]
        ),
    )
    first, second, other, silent = said.rows(named=True)
    assert (first["duration_s"], first["n_characters"], first["n_turns"], first["pause_s"]) == (
        5.5,
        8,
        2,
        0.5,
    )
    assert (first["role"], other["role"]) == ("does", "tells")
    assert (second["n_characters"], second["n_turns"], second["duration_s"]) == (0, 0, None)
    assert (other["pause_s"], silent["pause_s"]) == (0.0, None)
    assert lost == 1


# ---------------------------------------------------------------------- the whole data set


def test_the_slips_that_were_put_into_the_files_are_found(loaded):
    slips = loaded.tables["slips"]["slip"].to_list()
    assert slips.count("laid though it lies") == made_up.LAID_TWICE
    assert slips.count("removed though it does not lie") == made_up.REMOVED_TWICE
    assert slips.count("another cost than replayed") == made_up.OTHER_COST
    assert slips.count("not all mines joined") == made_up.NOT_JOINED
    assert loaded.tables["logged"]["n_loads"].item() == made_up.N_LOADS
    assert any(f"{made_up.LAID_TWICE + made_up.REMOVED_TWICE} of" in note for note in loaded.notes)


def test_both_children_walk_the_whole_trace_and_own_their_part_of_it(loaded):
    cohort, task = loaded.cohort, loaded.tasks[0]
    assert (follow(TaskSet.of(task), cohort).fault == 0).all()
    assert len(cohort) == 2 * len(made_up.TEAMS)
    legal = loaded.tables["logged"]["n_edits"].item() - made_up.LAID_TWICE - made_up.REMOVED_TWICE
    assert cohort.weight.sum() == legal == loaded.tables["edits"].height
    assert (cohort.weight[cohort.action == task.n_actions - 1] == 0).all()
    spoke = np.diff(cohort.segment_offsets[cohort.episode_offsets]) > 0
    assert set(cohort.participants["team"].filter(spoke)) == set(made_up.TALKING)
    steps_with_a_turn = cohort.segment[np.repeat(np.repeat(spoke, np.diff(cohort.episode_offsets)),
                                                 np.diff(cohort.step_offsets))]  # fmt: skip
    assert (steps_with_a_turn >= 0).all()


def test_a_track_is_removed_later_only_before_the_board_changes(loaded):
    edits = loaded.tables["edits"]
    assert edits.filter(pl.col("removed_later") & (pl.col("verb") != "adds")).height == 0
    own = edits.filter(pl.col("verb") == "removes").height
    loaded_first = edits.filter((pl.col("verb") == "removes") & (pl.col("edits_before") == 0)).height
    assert edits["removed_later"].sum() == own - loaded_first
    assert (edits["edits_after"] >= 0).all()


def test_relative_gain_is_of_what_can_be_gained_or_lost():
    assert [relative_gain(5, 8), relative_gain(8, 5), relative_gain(10, 10), relative_gain(0, 0)] == [
        0.6, -0.375, 0.0, 0.0,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("metadata/network.json", "{}", "not a network"),
        ("logs/justhink19_log_03.csv", "team_no\n1\n", "no column"),
        ("logs/justhink19_log_03.csv", "team_no\tattempt_no\nx\ty\n", "cannot be read"),
        ("test_responses/justhink19_pretest.csv", "team_no\n1\n", "no column"),
    ],
)
def test_files_that_are_not_what_they_should_be_are_named(tmp_path, path, text, words):
    made_up.write(tmp_path)
    (tmp_path / path).write_text(text, "utf-8")
    with pytest.raises(DataError, match=words) as caught:
        DATASET.read(tmp_path, no_progress)
    assert path.rsplit("/", 1)[1] in str(caught.value)


def test_a_folder_without_logs_says_so(tmp_path):
    made_up.write(tmp_path)
    for path in (tmp_path / "logs").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="no log"):
        DATASET.read(tmp_path, no_progress)


# ---------------------------------------------------------------------- what is computed from it


def test_weights_count_like_rows_that_are_repeated():
    rng = np.random.default_rng(1)
    score, positive = rng.integers(0, 5, 30).astype(float), rng.random(30) < 0.4
    cluster = np.repeat(np.arange(10), 3)
    weight = draw_clusters(cluster, seed=1, bootstrap=3)
    for line in weight:
        rows = np.repeat(np.arange(30), line.astype(int))
        x, y = score[rows], positive[rows]
        pairs = x[y][:, None] - x[~y][None, :]
        expected = ((pairs > 0) + 0.5 * (pairs == 0)).mean()
        assert weighted_aucs(score, positive, line[None])[0] == pytest.approx(expected)
    assert (weight.sum(axis=1) == 30).all()


def test_the_logistic_regression_finds_what_it_was_made_from():
    rng = np.random.default_rng(2)
    x = np.stack([np.ones(4000), rng.normal(size=4000)])
    y = (rng.random(4000) < 1 / (1 + np.exp(-(0.5 + 1.0 * x[1])))).astype(float)
    every = np.ones((1, 4000))
    assert logistic(x, y, every)[0] == pytest.approx([0.5, 1.0], abs=0.12)
    assert np.isnan(logistic(np.stack([x[1], x[1]]), y, every)).all()
    # a line of weights is as good as rows that are repeated, whichever lines stand beside it
    weight = rng.integers(0, 3, (60, 4000)).astype(float)
    together = logistic(x, y, weight, start=np.array([0.4, 0.9]))
    rows = np.repeat(np.arange(4000), weight[55].astype(int))
    assert together[55] == pytest.approx(logistic(x[:, rows], y[rows], np.ones((1, len(rows))))[0], abs=1e-9)


def test_within_teams_only_tracks_of_the_same_team_are_compared():
    rng = np.random.default_rng(3)
    team = np.repeat([1, 2, 3], 12)
    removed = rng.random(36) < 0.4
    removed[24:] = False  # a team that removed nothing tells nothing
    score = rng.integers(0, 6, 36) + 10.0 * (team == 2)
    laid = pl.DataFrame(
        {
            "team": team,
            "removed_later": removed,
            "unexpectedness": score,
            "cost": rng.integers(1, 5, 36) / 1.0,
        }
    )
    found = within_teams(laid, seed=1, bootstrap=20)
    above = pairs = 0.0
    for one in (1, 2):
        x, y = (score[(team == one) & kind] for kind in (removed, ~removed))
        above += ((x[:, None] > y) + 0.5 * (x[:, None] == y)).sum()
        pairs += len(x) * len(y)
    assert found["auc"] == pytest.approx(above / pairs)
    assert found["low"] <= found["auc"] <= found["high"]


def test_chance_is_the_share_of_tracks_that_could_be_laid_that_are_best(folder):
    task = network_task(SQUARE)
    values = solve_toggles(task)
    # joining a-b-c at least cost takes the tracks 0 and 1; on an empty board either may come first
    laid = pl.DataFrame({"state": [0, 1, 4]})
    assert best_by_chance(laid, values) == pytest.approx((2 / 3 + 1 / 2 + best_from(values, 4)) / 3)
    assert np.isnan(best_by_chance(laid[:0], values))


def best_from(values, state):
    """The share of best ones among the tracks that do not lie, by a loop."""
    free = [i for i in range(3) if not state >> i & 1]
    top = max(values.q[state])
    return sum(values.q[state, i] > top - 1e-8 for i in free) / len(free)


def test_another_price_of_a_change_is_that_of_a_task_made_with_it():
    worth = np.array([np.nan, 3.0, 1.0, 2.0])
    task, dear = (toggle_task(["a", "b"], worth, change=-price, gamma=0.9) for price in (0.1, 0.7))
    assert (solve_toggles(task, change=-0.7).q == solve_toggles(dear).q).all()
    assert (solve_toggles(task, change=-0.1).q == solve_toggles(task).q).all()


@pytest.mark.usefixtures("no_pictures")
def test_words_about_readings_follow_the_numbers(findings, loaded):
    def told_with(*verdicts, loss=(0.28, 0.283)):
        """What the page says if the task had been read in these ways."""
        readings = pl.DataFrame(
            [
                {
                    "reading": AS_READ if i == 0 else f"reading {i}", "change": 0.1 + i, "auc": 0.6, "low": 0.5,
                    "high": 0.7, "over_cost": 0.0, "over_cost_low": low, "over_cost_high": high, "odds": 1.1,
                    "odds_low": 1.01, "odds_high": 1.2, "loss_low": loss[0], "loss_high": loss[1],
                    "log_likelihood": gain, "same_order": 1.0 - i, "n": 9,
                }
                for i, (low, high, gain) in enumerate(verdicts)
            ]
        )  # fmt: skip
        other = replace(findings, tables={**findings.tables, "readings": readings})
        found = {one["id"]: one["paragraphs"] for one in REANALYSIS.sections(other, loaded)}
        return " ".join(found["readings"])

    mixed = told_with((-0.05, -0.01, 0.0), (-0.02, 0.02, 7.0))
    assert "across 2 readings" in mixed
    assert "worse than cost in 1" in mixed
    assert "removal in 2" in mixed
    assert "about equally bad" in mixed
    assert "reading 1: by 7.00 nats" in mixed
    alike = told_with((0.01, 0.05, 0.0), (0.02, 0.03, -3.0), loss=(0.1, 2.0))
    assert "does not depend" in alike
    assert "not equally bad" in alike
    assert "most probable" in alike
    own = findings.tables["readings"]
    assert own["log_likelihood"][0] == 0.0
    assert own["log_likelihood"].null_count() == 1  # where submissions count there are other choices
    assert own["same_order"][0] == pytest.approx(1.0)
    whose = findings.tables["whose"]
    assert whose["auc"][0] == findings.tables["aucs"]["auc"][0]
    assert len(set(whose["auc"])) > 1  # an attempt left out, or one η for all, tells something else


def test_what_could_be_found_takes_tests_and_pairs_into_account(findings):
    learned = findings.tables["relations"].filter(pl.col("n") > 6)
    assert (learned["detectable"] < learned["detectable_corrected"]).all()
    assert (learned["detectable_corrected"] < learned["pairs_detectable_corrected"]).all()
    assert detectable(20, level=0.05 / 12) == pytest.approx(0.716, abs=1e-3)
    assert detectable(10, level=0.05 / 12) == pytest.approx(0.886, abs=1e-3)
    assert np.isnan(detectable(3))


def test_intervals_of_correlations_draw_pairs():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 40))
    y += 0.5 * x
    alone = rank_correlation(x, y, seed=1, bootstrap=300)
    singly = rank_correlation(x, y, cluster=np.arange(40), seed=1, bootstrap=300)
    assert (singly.value, singly.low, singly.high) == pytest.approx((alone.value, alone.low, alone.high))
    twins = rank_correlation(
        np.repeat(x, 2), np.repeat(y, 2), cluster=np.repeat(np.arange(40), 2), seed=1, bootstrap=300
    )
    assert (twins.low, twins.high) == pytest.approx((alone.low, alone.high))  # a twin tells nothing new
    assert np.isnan(rank_correlation(x[:3], y[:3], cluster=np.arange(3), seed=1, bootstrap=5).value)


def test_the_study_runs_and_its_expectations_can_fail(findings, loaded):
    missed = {one.what for one in findings.missed}
    assert "children" in missed  # made-up files are not the real ones
    assert not {one for one in missed if "solver" in one}
    assert findings.numbers["residual"] <= 1e-9
    assert findings.numbers["n_impossible"] == 0
    assert findings.numbers["best_plan_cost"] == findings.numbers["least_cost"] == made_up.LEAST
    assert findings.tables["aucs"]["n"].to_list() == [findings.numbers["n_laid"]] * 5
    told = tell(REANALYSIS, findings, loaded)
    assert repeated_titles(told) == []
    text = " ".join(words for one in told.sections for words in one["paragraphs"])
    for phrase in made_up.WORDS[1:]:
        assert phrase not in text


def test_a_corpus_without_transcripts_still_tells_of_choices(tmp_path):
    made_up.write(tmp_path)
    for path in (tmp_path / "transcripts").iterdir():
        path.unlink()
    silent = DATASET.read(tmp_path, no_progress)
    found = analyse(silent, bootstrap=20, workers=1)
    said = " ".join(words for one in tell(REANALYSIS, found, silent).sections for words in one["paragraphs"])
    assert "was recorded" in said
    assert found.numbers["n_speaking"] == 0


def test_at_least_one_draw_is_needed(loaded):
    with pytest.raises(DataError, match="bootstrap"):
        analyse(loaded, bootstrap=0)
