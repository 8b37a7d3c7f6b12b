"""Detours and shelves passed by, on walks drawn by hand and by a slow loop."""

from __future__ import annotations

from collections import deque

import numpy as np
import polars as pl
import pytest
from mazes import maze
from scipy import stats

import fidm
from fidm.evidence.evidence import find_evidence
from fidm.evidence.localization import DENOMINATORS, FEWEST, SCORES, TOP, _numbers, anchors, localize

CORRIDOR = """
format = 1
name = "corridor"
title = "A corridor"
[values]
gamma = 0.95
tau = 0.02
[rewards]
move = -0.05
target = 1.0
repeated = -0.1
non_target = -0.2
[map]
drawing = '''
#A#B###
S......
####P##
'''
[sections.apples]
symbol = "A"
[sections.bread]
symbol = "B"
[[phases]]
name = "all"
targets = ["apples", "bread"]
[[phases]]
name = "pay"
[finish]
symbol = "P"
action = "PAY"
reach = "adjacent"
reward = 1.0
[rules]
phase_change = "goals"
"""

LATER = CORRIDOR.replace(
    'targets = ["apples", "bread"]',
    'targets = ["apples"]\n[[phases]]\nname = "later"\ntargets = ["bread"]',
)
"""Bread is asked for once the apples are bought, but can be bought before."""

FACING = CORRIDOR.replace("#A#B###\nS......\n####P##", "#A#####\nS......\n#BB#P##")
"""The first cell of the corridor reaches both shelves, the second the bread alone."""


@pytest.fixture(scope="module")
def corridor():
    return fidm.compile_task(fidm.parse_task(CORRIDOR))


def walk(task, *actions):
    """The trace of these actions from the start."""
    state, states, codes = task.start, [], []
    for action in actions:
        k = task.pair(state, action)
        states.append(state)
        codes.append(task.action[k])
        state = int(task.handover[task.successor[task.successor_offsets[k]]])
    return fidm.Trace(
        task=task.name,
        state=np.array([*states, state], dtype=np.int32),
        action=np.array(codes, dtype=np.int32),
        finished=True,
        label="P1",
    )


def found(task, *actions):
    return anchors(task, fidm.Cohort.from_traces([walk(task, *actions)]))


def test_a_straight_shopper_neither_turns_away_nor_passes_by(corridor):
    table = found(corridor, "E", "BUY apples", "E", "E", "BUY bread", "E", "PAY")
    assert table["route_divergence"].to_list() == [False, None, False, False, None, False, None]
    assert table["bypass"].to_list() == [False] * 7
    assert table["opportunity"].to_list() == [False, True, False, False, True, False, False]
    assert table["completes"].to_list() == [False, True, False, False, True, False, True]
    assert table["stretch"].to_list() == [1, 1, 2, 2, 2, 3, 3]
    assert table["distance_before"].to_list() == [1, None, 2, 1, None, 1, None]
    assert table["distance_after"].to_list() == [0, None, 1, 0, None, 0, None]


def test_leaving_a_shelf_is_a_bypass_and_coming_back_a_detour_only_in_part(corridor):
    table = found(corridor, "E", "E", "W", "BUY apples", "E", "E", "BUY bread")
    assert table["bypass"].to_list() == [False, True, False, False, False, False, False]
    assert table["route_divergence"].to_list() == [False, True, False, None, False, False, None]


def test_a_finished_target_is_no_opportunity(corridor):
    table = found(corridor, "E", "BUY apples", "W", "E", "E", "E", "BUY bread")
    assert table["opportunity"].to_list() == [False, True, False, False, False, False, True]
    assert table["bypass"].sum() == 0
    assert table["route_divergence"].to_list() == [False, None, True, False, False, False, None]


def test_a_repeated_purchase_is_no_completion(corridor):
    table = found(corridor, "E", "BUY apples", "BUY apples", "E", "E", "BUY bread")
    assert table["completes"].to_list() == [False, True, False, False, False, True]


def test_a_target_bought_before_its_phase_is_a_completion_to_walk_towards():
    later = fidm.compile_task(fidm.parse_task(LATER))
    table = found(later, "E", "E", "W", "E", "E", "BUY bread", "W", "W", "BUY apples", "E", "E", "E", "PAY")
    assert np.flatnonzero(table["completes"]).tolist() == [5, 8, 12]
    away = [False, False, True, False, False, None, False, False, None, False, False, False, None]
    assert table["route_divergence"].to_list() == away
    assert table["stretch"].to_list() == [1] * 6 + [2] * 3 + [3] * 4
    assert np.flatnonzero(table["bypass"]).tolist() == [1, 3]  # the apples; bread is not asked for yet


def test_leaving_one_of_two_shelves_within_reach_is_a_bypass():
    facing = fidm.compile_task(fidm.parse_task(FACING))
    table = found(facing, "E", "E", "E", "W", "BUY bread", "W", "E", "W", "BUY apples")
    assert table["opportunity"].to_list() == [False, True, True, False, True, False, True, False, True]
    assert table["bypass"].to_list() == [False, True, True, False, False, False, True, False, False]


def test_steps_after_the_last_completion_have_no_reference(corridor):
    table = found(corridor, "E", "BUY apples", "E", "W", "E")
    assert table["route_divergence"].to_list() == [False, None, None, None, None]
    assert table["distance_before"].to_list()[2:] == [None, None, None]


def test_left_out_actions_and_uncounted_states_have_no_anchor():
    task = fidm.load_task("grocery")
    grid = task.grid
    done = ("vegetables", "meat", "egg_tofu", "seasoning")
    waiting = grid.state((1, 4), done, "shopping")
    assert not task.counted[waiting]
    east = int(task.successor[task.successor_offsets[task.pair(waiting, "E")]]) % grid.grid.n_cells
    told = waiting - waiting % grid.grid.n_cells + east
    trace = fidm.Trace(
        task="grocery",
        state=np.array([waiting, told, told], dtype=np.int32),
        action=np.array([task.actions.index("E"), -1], dtype=np.int32),
        finished=True,
        label="P1",
    )
    table = anchors(task, fidm.Cohort.from_traces([trace]))
    assert table["is_move"].to_list() == [True, False]
    for name in ("route_divergence", "opportunity", "bypass"):
        assert table[name].to_list() == [None, None]


@pytest.fixture(scope="module")
def erratic():
    tasks = [fidm.load_task("grocery"), fidm.load_task("grocery_small")]
    cohort = fidm.simulate_cohort(tasks, 12, seed=5, wrong_moves=0.2, max_steps=150)
    return tasks, cohort


def test_a_slow_loop_finds_the_same(erratic):
    tasks, cohort = erratic
    table = anchors(tasks, cohort)
    slow = []
    for e, name in enumerate(cohort.episodes["task"].to_list()):
        task = next(task for task in tasks if task.name == name)
        steps = range(int(cohort.step_offsets[e]), int(cohort.step_offsets[e + 1]))
        slow += slow_anchors(task, [(int(cohort.state[i]), int(cohort.action[i])) for i in steps])
    names = ("route_divergence", "opportunity", "bypass")
    assert table.select(names).rows() == slow
    assert table["bypass"].sum() > 0
    assert table["route_divergence"].sum() > 0


def slow_anchors(task, steps):
    """(route divergence, opportunity, bypass) of every step of an episode, by looking at states one by one."""
    grid = task.grid
    targets = grid.spec.targets

    def reach(state):
        return {
            action for action in task.legal(state)
            if 0 <= task.goal[task.pair(state, action)] < len(targets)
        }  # fmt: skip

    def follow(state, action):
        return int(task.successor[task.successor_offsets[task.pair(state, action)]])

    done = []
    for state, action in steps:
        then = follow(state, action)
        is_end = task.goal[task.pair(state, action)] >= len(targets)
        done.append(is_end or len(grid.completed(then)) > len(grid.completed(state)))
    rows = []
    for i, (state, action) in enumerate(steps):
        is_move = task.actions[action] in "NSEW"
        then = follow(state, action)
        ahead = [k for k in range(i, len(steps)) if done[k]]
        farther = None
        if is_move and ahead:
            place = grid.cell(steps[ahead[0]][0])
            farther = distance(grid.grid, grid.cell(then), place) > distance(
                grid.grid, grid.cell(state), place
            )
        if not task.counted[state]:
            rows.append((None, None, None))
        else:
            rows.append((farther, bool(reach(state)), is_move and bool(reach(state) - reach(then))))
    return rows


def distance(grid, begin, end):
    cells = set(zip(grid.row.tolist(), grid.column.tolist(), strict=True))
    queue, seen = deque([(begin, 0)]), {begin}
    while queue:
        (row, column), far = queue.popleft()
        if (row, column) == end:
            return far
        for near in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            if near in cells and near not in seen:
                seen.add(near)
                queue.append((near, far + 1))
    raise AssertionError("unreachable")


def test_tasks_without_a_map_are_refused():
    task = fidm.TaskModel.from_arrays(
        [[-1, 1], [0, 2], [-1, -1]], [[0, -0.1], [-0.1, 1], [0, 0]], gamma=0.9, tau=0.1, name="line"
    )
    cohort = fidm.simulate_cohort(task, 4, seed=1)
    with pytest.raises(fidm.TaskError, match="not drawn"):
        anchors(task, cohort)


# ---------------------------------------------------------------------- tasks with coordinates


def icy(number):
    """A maze in which going right may slip, and whose start is also reached by a jump on the spot."""
    task = maze(number, size=3, states=())
    rows = np.zeros((task.n_pairs, task.n_states))
    rows[np.arange(task.n_pairs), task.successor] = 1.0
    slips = task.action == 2
    rows[slips] *= 0.75
    rows[slips, task.pair_state[slips]] += 0.25
    return fidm.TaskModel.from_pairs(
        task.pair_state, task.action, task.reward, rows, gamma=task.gamma, tau=task.tau, name=f"icy_{number}",
        actions=task.actions, coordinates=task.coordinates,
    )  # fmt: skip


def locked():
    """A corridor whose last door opens once the key at the other end was fetched."""
    at = [0, 1, 2, 3]  # key, start, door, end
    target = np.full((7, 2), -1)  # 0 to 2 without the key, 3 to 5 with it, 6 the end
    target[:3] = [[-1, 1], [3, 2], [1, -1]]
    target[3:6] = [[-1, 4], [3, 5], [4, 6]]
    place = [at[0], at[1], at[2], at[0], at[1], at[2], at[3]]
    return fidm.TaskModel.from_arrays(
        target, np.full((7, 2), -0.1), gamma=0.9, tau=0.05, start=1, name="locked", actions=["left", "right"],
        coordinates=[(x, 0) for x in place],
    )  # fmt: skip


def test_a_slow_loop_finds_the_same_detours_in_tasks_with_coordinates():
    tasks = [maze(1), maze(2, horizon=14), icy(3), locked()]
    cohort = fidm.simulate_cohort(tasks, 10, seed=2, wrong_moves=0.3, max_steps=40)
    table = anchors(tasks, cohort)
    slow = []
    for e, name in enumerate(cohort.episodes["task"].to_list()):
        task = next(task for task in tasks if task.name == name)
        low, high = cohort.step_offsets[e : e + 2].tolist()
        states = [*cohort.state[low:high].tolist(), int(cohort.end_state[e])]
        slow += slow_detours(task, states, cohort.action[low:high].tolist())
    assert table["route_divergence"].to_list() == slow
    assert table["opportunity"].null_count() == table["bypass"].null_count() == table.height
    for name in ("maze_001", "maze_002", "icy_3", "locked"):
        own = table.filter(
            pl.Series(np.repeat(cohort.episodes["task"] == name, np.diff(cohort.step_offsets)))
        )
        assert own["route_divergence"].sum() > 0


def slow_detours(task, states, actions):
    """The route divergence of every step of an episode, by searching forward from each state."""
    at = task.coordinates

    def ends(state):
        return not task.legal(state) and not (task.horizon and state == task.n_states - 1)

    def place(state):
        return None if np.isnan(at[state, 0]) else tuple(at[state])

    def moves(i):
        pair = task.pair(states[i], actions[i])
        sure = task.successor_offsets[pair + 1] - task.successor_offsets[pair] == 1
        return sure and None not in (a := place(states[i]), b := place(states[i + 1])) and a != b

    found = []
    for i in range(len(actions)):
        done = next((k for k in range(i, len(actions)) if ends(states[k + 1])), None)
        if done is None or not moves(i):
            found.append(None)
            continue
        goal = place(states[done + 1]) if moves(done) else place(states[done])
        far = [actions_to(task, state, lambda s, goal=goal: place(s) == goal) for state in states[i : i + 2]]
        found.append(far[1] > far[0])
    return found


def actions_to(task, begin, is_there):
    """The fewest actions from a state to one that is there."""
    queue, seen = deque([(begin, 0)]), {begin}
    while queue:
        state, far = queue.popleft()
        if is_there(state):
            return far
        for pair in range(task.offsets[state], task.offsets[state + 1]):
            for near in task.successor[task.successor_offsets[pair] : task.successor_offsets[pair + 1]]:
                if int(near) not in seen:
                    seen.add(int(near))
                    queue.append((int(near), far + 1))
    return np.inf


def test_fetching_a_key_is_no_detour():
    task = locked()
    steps = pl.DataFrame(
        {
            "participant": "A",
            "step": range(1, 7),
            "action": ["right", "left", "left", "right", "right", "right"],
        }
    )
    table = anchors(task, fidm.make_cohort(steps=steps, tasks=task))
    # to the closed door and back, then for the key and to the end
    assert table["route_divergence"].to_list() == [True, False, False, False, False, False]
    assert table["completes"].to_list() == [False] * 5 + [True]


def test_without_a_map_bypasses_are_left_out_and_beside_one_they_are_of_the_map_alone():
    mazes = [maze(i) for i in range(3)]
    cohort = fidm.simulate_cohort(mazes, 12, seed=1, wrong_moves=0.2)
    result = localize(find_evidence(fidm.Model(mazes).fit(cohort), cohort), cohort, bootstrap=20)
    assert set(result.table["anchor"]) == {"route_divergence"}
    assert result.row("route_divergence")["n_people"] == 12
    assert list(result.anchors) == ["route_divergence"]
    assert len(result.sentences()) == 1
    assert "maze_000, maze_001, maze_002 were not drawn as a map" in result.notes[-1]
    with pytest.raises(fidm.DataError, match="no anchor 'bypass'"):
        result.row("bypass")
    both = [maze(1), fidm.load_task("errands")]
    cohort = fidm.simulate_cohort(both, 12, seed=1, wrong_moves=0.2)
    mixed = localize(find_evidence(fidm.Model(both).fit(cohort), cohort), cohort, bootstrap=20)
    assert list(mixed.anchors) == list(DENOMINATORS)
    is_errand = np.repeat(cohort.episodes["task"] == "errands", np.diff(cohort.step_offsets))
    assert mixed.row("bypass_of_moves")["n_steps"] <= is_errand.sum()


def test_a_task_nobody_ends_has_nothing_to_turn_away_from():
    ring = fidm.TaskModel.from_arrays(
        [[1, 2], [2, 0], [0, 1]], [[0, 1], [1, 0], [0, 0]], gamma=0.9, tau=0.5, horizon=6, name="ring",
        coordinates=[(0, 0), (1, 0), (0, 1)],
    )  # fmt: skip
    cohort = fidm.simulate_cohort(ring, 6, seed=1)
    with pytest.raises(fidm.DataError, match="Nobody reached an end"):
        localize(find_evidence(fidm.Model(ring).fit(cohort, method="mle"), cohort), cohort)


# ---------------------------------------------------------------------- localization


@pytest.fixture(scope="module")
def located(erratic):
    tasks, cohort = erratic
    evidence = find_evidence(fidm.Model(tasks).fit(cohort), cohort)
    return evidence, cohort, localize(evidence, cohort, bootstrap=200)


def test_every_anchor_and_score_has_a_row(located):
    _, cohort, result = located
    assert result.table.select("anchor", "score").rows() == [(a, s) for a in DENOMINATORS for s in SCORES]
    assert result.table["n_people"].min() >= FEWEST
    for row in result.table.iter_rows(named=True):
        assert row["auc_low"] <= row["auc"] <= row["auc_high"]
        assert row["n_people"] <= row["n_people_all"] <= len(cohort)
        assert row["enrichment"] == pytest.approx(row["top_rate"] / row["baseline"])
        assert row["top_rate_low"] <= row["top_rate"] <= row["top_rate_high"]
    assert "there by construction" in result.notes[0]
    assert any("are counted" in note for note in result.notes)


def test_a_persons_numbers_are_those_of_ranks(located):
    evidence, cohort, result = located
    steps = evidence.actions.with_columns(anchors(evidence.tasks, cohort).select("opportunity", "bypass"))
    for score in SCORES:
        people = result.people.filter((pl.col("anchor") == "bypass_of_moves") & (pl.col("score") == score))
        for row in people.iter_rows(named=True):
            own = steps.filter(
                (pl.col("participant") == row["participant"]) & pl.col("counts") & pl.col("is_move")
            )
            event, values = own["bypass"].to_numpy(), own[score].to_numpy().round(9)
            assert (row["n_steps"], row["n_events"]) == (len(event), event.sum())
            assert row["baseline"] == pytest.approx(event.mean())
            places = int(np.ceil(TOP * len(values) - 1e-9))
            orders = [np.lexsort((np.random.default_rng(k).random(len(values)), -values)) for k in range(400)]
            rate = np.mean([event[order[:places]].mean() for order in orders])
            assert row["top_rate"] == pytest.approx(rate, abs=0.05)
            if 0 < event.sum() < len(event):
                u = stats.mannwhitneyu(values[event], values[~event]).statistic
                assert row["auc"] == pytest.approx(u / (event.sum() * (~event).sum()), abs=1e-12)
            else:
                assert row["auc"] is None


def test_the_order_of_people_changes_nothing(located):
    evidence, cohort, result = located
    backwards = cohort[np.arange(len(cohort))[::-1]]
    again = localize(
        find_evidence(fidm.Model(evidence.tasks.tasks).fit(cohort), backwards), backwards, bootstrap=50
    )
    for name in ("auc", "top_rate", "baseline"):
        np.testing.assert_allclose(again.table[name], result.table[name], rtol=1e-12)


def test_the_same_seed_gives_the_same_intervals(located):
    evidence, cohort, result = located
    assert localize(evidence, cohort, bootstrap=200).table.equals(result.table)
    assert not localize(evidence, cohort, bootstrap=200, seed=2).table.equals(result.table)


def test_clear_stretches_hold_no_bypass(located):
    evidence, cohort, result = located
    table = anchors(evidence.tasks, cohort).with_columns(counts=evidence.actions["counts"])
    passed = pl.col("bypass").fill_null(value=False).any().over("participant", "episode", "stretch")
    clear = table.filter(pl.col("counts") & pl.col("route_divergence").is_not_null() & ~passed)
    people = result.people.filter(
        (pl.col("anchor") == "route_divergence_clear") & (pl.col("score") == "unexpectedness")
    )
    assert people["n_steps"].sum() == clear.height
    assert people["n_events"].sum() == clear["route_divergence"].sum()


def test_few_people_have_no_interval_and_fewer_no_number(located):
    evidence, cohort, result = located
    who = result.people.filter((pl.col("anchor") == "bypass") & pl.col("auc").is_not_null())["participant"]
    fit = fidm.Model(evidence.tasks.tasks).fit(cohort)
    five, four = (cohort.select(who[:n].to_list()) for n in (5, 4))
    found = localize(find_evidence(fit, five), five)
    row = found.row("bypass")
    assert row["auc"] is not None
    assert row["auc_low"] is None
    assert row["enrichment_high"] is None
    assert any("too few people" in n for n in found.notes)
    found = localize(find_evidence(fit, four), four)
    row = found.row("bypass")
    assert (row["auc"], row["enrichment"], row["pooled_enrichment"], row["n_people"]) == (None, None, None, 4)
    said = "Passed a target by, among opportunity steps: 4 people have both such events and other actions"
    assert f"{said}: too few to judge." in found.sentences()


def binomial_people(n):
    """Half of the people have an AUC of 0, the others of 1; of 20 steps two are events, one of them on top."""
    return pl.DataFrame(
        {
            "n_steps": [20] * n,
            "n_events": [2] * n,
            "auc": [float(j % 2) for j in range(n)],
            "top_rate": [0.5] * n,
            "baseline": [0.1] * n,
        }
    )


@pytest.mark.parametrize("level", [0.95, 0.5])
def test_intervals_are_the_quantiles_of_drawing_people_again(level):
    """The mean AUC of 12 people drawn again is a binomial number over 12, whose quantiles are known."""
    row = _numbers(binomial_people(12), [1, 0], 4_000, level)
    share = np.array([(1 - level) / 2, (1 + level) / 2])
    assert (row["auc_low"], row["auc_high"]) == pytest.approx(stats.binom.ppf(share, 12, 0.5) / 12)
    assert (row["enrichment_low"], row["enrichment_high"]) == pytest.approx((5.0, 5.0))


def test_the_level_is_that_of_the_intervals(located):
    evidence, cohort, result = located
    default = localize(evidence, cohort, bootstrap=200, level=0.95)
    assert default.table.equals(result.table)
    half = localize(evidence, cohort, bootstrap=200, level=0.5).row("route_divergence")
    whole = result.row("route_divergence")
    assert half["auc_high"] - half["auc_low"] < 0.7 * (whole["auc_high"] - whole["auc_low"])


def test_an_interval_needs_ten_people():
    few, enough = (_numbers(binomial_people(n), [1, 0], 50, 0.95) for n in (FEWEST - 1, FEWEST))
    assert few["auc"] == pytest.approx(4 / 9)
    assert "auc_low" not in few
    assert enough["auc_low"] < enough["auc_high"]


def test_pooled_numbers_by_hand():
    people = pl.DataFrame(
        {
            "n_steps": [20, 40, 10],
            "n_events": [2, 10, 0],
            "auc": [0.9, 0.8, None],
            "top_rate": [0.5, 0.75, 0.0],  # of 2, 4 and 1 places
            "baseline": [0.1, 0.25, 0.0],
        }
    )
    row = _numbers(pl.concat([people] * 3), [1, 0], 10, 0.95)
    assert row["pooled_top_rate"] == pytest.approx((1 + 3 + 0) / (2 + 4 + 1))
    assert row["pooled_baseline"] == pytest.approx(12 / 70)
    assert row["pooled_enrichment"] == pytest.approx((4 / 7) / (12 / 70))
    assert row["enrichment"] == pytest.approx(0.625 / 0.175)  # means over those who have both kinds
    assert (row["n_people"], row["n_events"], row["n_steps"]) == (6, 36, 180)


def test_it_is_told_in_sentences(located, corridor):
    result = located[2]
    lines = repr(result).splitlines()
    assert len(lines) == len(DENOMINATORS)
    assert lines[0].startswith(
        "Turned away from the next goal, among movements with a next completion: AUC 0."
    )
    assert "Localization(" not in repr(result)
    cohort = fidm.Cohort.from_traces([walk(corridor, "E", "BUY apples", "W", "E", "E", "E", "BUY bread")])
    fit = fidm.Model(corridor, channels=()).fit(cohort, method="mle")
    assert "nobody has both" in repr(localize(find_evidence(fit, cohort), cohort))


def test_nobody_astray_is_refused(corridor):
    straight = walk(corridor, "E", "BUY apples", "E", "E", "BUY bread", "E", "PAY")
    cohort = fidm.Cohort.from_traces([straight])
    evidence = find_evidence(fidm.Model(corridor, channels=()).fit(cohort, method="mle"), cohort)
    with pytest.raises(fidm.DataError, match="turned away"):
        localize(evidence, cohort)


def test_nobody_who_moves_is_refused(corridor):
    cohort = fidm.Cohort.from_traces([walk(corridor, "E", "BUY apples")])
    fit = fidm.Model(corridor, channels=()).fit(cohort, method="mle")
    still = fidm.Cohort.from_traces(
        [
            fidm.Trace(
                task="corridor",
                state=cohort.state[[1, 1]] * 1,
                action=cohort.action[[1]] * 0 - 1,
                finished=True,
                label="P1",
            )
        ]
    )
    with pytest.raises(fidm.DataError, match="No movement"):
        localize(find_evidence(fit, still), still)


def test_an_anchor_nobody_has_is_said_to_be_missing(corridor):
    cohort = fidm.Cohort.from_traces([walk(corridor, "E", "BUY apples", "W", "E", "E", "E", "BUY bread")])
    fit = fidm.Model(corridor, channels=()).fit(cohort, method="mle")
    result = localize(find_evidence(fit, cohort), cohort)
    assert result.row("bypass")["auc"] is None
    assert result.row("bypass")["n_people"] == 0
    assert any(note.startswith("bypass among opportunity") for note in result.notes)


def test_other_peoples_evidence_and_odd_settings_are_refused(located):
    evidence, cohort, result = located
    with pytest.raises(fidm.DataError, match="these people"):
        localize(evidence, cohort[:3])
    with pytest.raises(fidm.DataError, match=r"^bootstrap is 0; it must be 1 or more\.$"):
        localize(evidence, cohort, bootstrap=0)
    with pytest.raises(fidm.DataError, match=r"^seed is -1; it must be 0 or more\.$"):
        localize(evidence, cohort, seed=-1)
    with pytest.raises(fidm.DataError, match=r"^level is 95; .* Write 0\.95 for 95 %\.$"):
        localize(evidence, cohort, level=95)
    with pytest.raises(fidm.DataError, match=r"between 0 and 1\.$"):
        localize(evidence, cohort, level=0)
    with pytest.raises(fidm.DataError, match="no anchor 'detour'"):
        result.row("detour")
