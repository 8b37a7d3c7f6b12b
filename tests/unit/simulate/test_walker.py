"""Walkers: do they keep to the rules, slip as often as asked, and walk the same whoever asks?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fidm
from fidm.cohort import Cohort
from fidm.errors import DataError, TaskError
from fidm.simulate import cohort as simulate
from fidm.simulate import walker as walking
from fidm.simulate.acting import Style
from fidm.simulate.cohort import People
from fidm.simulate.walker import Floor, Habits, Walker, rates_of
from fidm.tasks.compile import compile_task
from fidm.tasks.model import TaskModel
from fidm.tasks.spec import builtin_tasks, builtin_text, parse_task
from fidm.tasks.stack import TaskSet, follow

CLUMSY = Habits(
    wrong_turn=0.3, notices=0.3, passes_by=0.5, takes_on_way=0.5, forgets=0.5, remembers=0.3, nearest=0.3
)
STRAIGHT = Habits(wrong_turn=0, passes_by=0, forgets=0, nearest=1)

PLAIN = """
format = 1
name = "plain"
title = "A small task"
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
{drawing}
'''
{rest}
"""

CORRIDOR = PLAIN.format(
    drawing="#####\n#S.A#\n#####",
    rest='[sections.apples]\nsymbol = "A"\nreach = "on"\n[[phases]]\nname = "all"\ntargets = ["apples"]',
)

ONE_CELL = PLAIN.format(
    drawing="###\n#S#\n#AB",
    rest='[sections.apples]\nsymbol = "A"\n[sections.bread]\nsymbol = "B"\nreach = "anywhere"\n'
    '[[phases]]\nname = "all"\ntargets = ["apples", "bread"]',
)

THREE_PHASES = PLAIN.format(
    drawing="#########\n#S..A..C#\n#.##.##.#\n#B..D..E#\n#..P...X#\n#########",
    rest="\n".join(
        [f'[sections.{name}]\nsymbol = "{name.upper()}"' for name in "abcde"]
        + ['requires = ["a"]']  # e needs a, which may therefore not be left out
        + ['[[phases]]\nname = "one"\ntargets = ["a", "b"]']
        + ['[[phases]]\nname = "two"\ntargets = ["c", "d"]']
        + ['[[phases]]\nname = "three"\ntargets = ["e"]']
        + ['[finish]\nsymbol = "P"\naction = "PAY"\nreward = 1.0']
        + ['[exit]\nsymbol = "X"\n[rules]\nreach = "on"']
    ),
)

NEEDS_LATER = PLAIN.format(
    drawing="#######\n#S...A#\n#.###.#\n#B...C#\n#######",
    rest="""
[sections]
a = { symbol = "A", requires = ["c"] }
b = { symbol = "B" }
c = { symbol = "C" }
[[phases]]
name = "one"
targets = ["a", "b"]
[[phases]]
name = "two"
targets = ["c"]
[rules]
reach = "on"
""",
)


def grocery(*changes: tuple[str, str]) -> str:
    text = builtin_text("grocery_small")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


ODD = {
    "corridor": CORRIDOR,
    "one_cell": ONE_CELL,
    "three_phases": THREE_PHASES,
    "needs_later": NEEDS_LATER,
    "single": grocery(('buy = "per_section"', 'buy = "single"')),
    "anywhere": grocery(('reach = "adjacent"', 'reach = "anywhere"')),
    "on": grocery(('reach = "adjacent"', 'reach = "on"')),
    "listed": grocery(('order = "any"', 'order = "listed"')),
    "listed_strict": grocery(
        ('order = "any"', 'order = "listed"'), ('early_target = "marks"', 'early_target = "illegal"')
    ),
    "ends": grocery(('value_flow = "chained"', 'value_flow = "ends"')),
    "continues": grocery(('value_flow = "chained"', 'value_flow = "continues"')),
    "goals": grocery(('phase_change = "transcript"', 'phase_change = "goals"')),
    "late_illegal": grocery(('late_target = "marks"', 'late_target = "illegal"')),
    "out": grocery(("in_likelihood = false", "in_likelihood = true"), ("ends = true", "ends = false")),
    "endless": grocery(("ends = true", "ends = false")),
    "all_at_the_till": grocery(
        ('[[phases]]\nname = "bakery"\ntargets = ["bakery"]\n\n[[phases]]\nname = "checkout"\n', ""),
        ('"egg_tofu", "seasoning"]', '"egg_tofu", "seasoning", "bakery"]'),
    ),
}
TASKS = {name: fidm.load_task(name) for name in builtin_tasks()}
TASKS |= {name: compile_task(parse_task(text), name=name) for name, text in ODD.items()}
every = pytest.mark.parametrize("name", list(TASKS))


def walkers(name: str, n: int, *, seed: int = 1, habits: Habits | None = None, **options: object) -> Cohort:
    return fidm.simulate_cohort(TASKS[name], n, seed=seed, agent="walker", habits=habits, **options)


def goals_of(task: TaskModel, cohort: Cohort) -> np.ndarray:
    """The goal each step achieves, or -1."""
    followed = follow(TaskSet.of(task), cohort)
    return np.where(followed.pair >= 0, task.goal[np.maximum(followed.pair, 0)], -1)


def next_places(task: TaskModel, cohort: Cohort) -> np.ndarray:
    """The cell of the next completion at each step, or -1."""
    goal, found = goals_of(task, cohort), np.full(cohort.n_steps, -1)
    for e in range(cohort.n_episodes):
        place = -1
        for i in range(cohort.step_offsets[e + 1] - 1, cohort.step_offsets[e] - 1, -1):
            if goal[i] >= 0:
                place = cohort.state[i] % task.grid.grid.n_cells
            found[i] = place
    return found


def share_away(task: TaskModel, cohort: Cohort) -> float:
    """The share of movements that lead away from the place of the next completion."""
    n_cells, grid = task.grid.grid.n_cells, task.grid.grid
    place, distance = next_places(task, cohort), grid.distances()
    moves = (cohort.action >= 0) & (cohort.action < 4) & (place >= 0)
    here = cohort.state[moves] % n_cells
    there = grid.neighbour[here, cohort.action[moves]]
    return float((distance[there, place[moves]] > distance[here, place[moves]]).mean())


def missing(task: TaskModel, cohort: Cohort) -> np.ndarray:
    """How many targets each person never completed."""
    n_targets, goal = len(task.grid.spec.targets), goals_of(task, cohort)
    done = np.append(task.grid.progress, 0)[cohort.state // task.grid.grid.n_cells]
    done |= np.where((goal >= 0) & (goal < n_targets), 1 << np.maximum(goal, 0), 0)
    done = np.bitwise_or.reduceat(done, cohort.step_offsets[:-1])
    return n_targets - np.array([int(own).bit_count() for own in done])


# ---------------------------------------------------------------------- the rules


@every
def test_walkers_keep_to_the_rules(name: str) -> None:
    task = TASKS[name]
    for habits in (None, CLUMSY, STRAIGHT):
        cohort = walkers(name, 60, habits=habits, max_steps=3_000)
        assert not follow(TaskSet.of(task), cohort).fault.any()
        assert (cohort.state[cohort.step_offsets[:-1]] == task.start).all()
        if name != "endless":
            assert (cohort.end_state == task.n_states - 1).all()
        finish = task.grid.spec.finish
        if finish:
            paid = goals_of(task, cohort) == len(task.grid.spec.targets)
            assert paid.sum() == len(cohort)  # everybody pays, and once
        if habits is STRAIGHT:
            assert not missing(task, cohort).any()


@every
def test_walkers_talk_by_the_rules(name: str) -> None:
    task = TASKS[name]
    for habits, style in ((CLUMSY, Style(early_request=0)), (None, Style(names_place=1.0))):
        talks = fidm.simulate_talks(
            task, 8, seed=3, language="en", agent="walker", habits=habits, style=style
        )
        assert not follow(TaskSet.of(task), talks.cohort).fault.any()
        if name != "endless":
            assert (talks.cohort.end_state == task.n_states - 1).all()
        assert np.diff(talks.cohort.segment_offsets).min() >= 1


def test_wrong_moves_are_made_by_walkers_too() -> None:
    task = TASKS["grocery"]
    kept, slipped = walkers("grocery", 80), walkers("grocery", 80, wrong_moves=0.1)
    assert not follow(TaskSet.of(task), slipped).fault.any()
    assert share_away(task, slipped) > share_away(task, kept) + 0.02


def test_one_walk_is_broken_off() -> None:
    cohort = walkers("grocery", 5, max_steps=7)
    assert np.diff(cohort.step_offsets).tolist() == [7] * 5


def test_several_tasks() -> None:
    both = fidm.simulate_cohort([TASKS["errands"], TASKS["grocery"]], 4, seed=2, agent="walker")
    assert both.episodes["task"].to_list() == ["errands", "grocery"] * 4
    assert not follow(TaskSet.of([TASKS["errands"], TASKS["grocery"]]), both).fault.any()


# ---------------------------------------------------------------------- who does not slip, and who does


@pytest.mark.parametrize(
    "name", ["grocery", "grocery_small", "errands", "three_phases", "single", "corridor"]
)
def test_without_slips_nobody_walks_away(name: str) -> None:
    cohort = walkers(name, 30, habits=STRAIGHT)
    assert share_away(TASKS[name], cohort) == 0
    assert not missing(TASKS[name], cohort).any()


def test_wrong_turns_are_as_many_as_asked() -> None:
    """With everybody noticing at once, each wrong turn is one step that does not lead closer."""
    habits = Habits(wrong_turn=0.1, notices=1, passes_by=0, forgets=0, nearest=1, takes_on_way=0, slope=0)
    task = TASKS["grocery"]
    cohort = walkers("grocery", 300, habits=habits)
    neighbour, distance = task.grid.grid.neighbour, task.grid.grid.distances()
    place, n_cells = next_places(task, cohort), task.grid.grid.n_cells
    chances = turned = 0
    for e in range(cohort.n_episodes):
        heading, was_wrong = -1, False
        for i in range(cohort.step_offsets[e], cohort.step_offsets[e + 1]):
            action, cell = int(cohort.action[i]), int(cohort.state[i]) % n_cells
            if action >= 4:
                was_wrong = False
                continue
            away = distance[neighbour[cell], place[i]] >= distance[cell, place[i]]
            on = (neighbour[cell] >= 0) & (np.arange(4) != (heading ^ 1 if heading >= 0 else -1))
            if not was_wrong and (away & on).any():
                chances += 1
                turned += bool(away[action])
                was_wrong = bool(away[action])
            else:
                was_wrong = False
            heading = action
    assert chances > 4_000
    assert turned / chances == pytest.approx(0.1, abs=0.02)


def test_forgotten_targets_are_left_as_often_as_asked() -> None:
    habits = Habits(forgets=0.3, remembers=0.5, slope=0)
    left = missing(TASKS["grocery"], walkers("grocery", 600, habits=habits))
    assert left.mean() == pytest.approx(4 * 0.3 * 0.5, abs=0.1)  # four targets may be forgotten
    for name in ("goals", "errands"):  # here nobody goes on without them
        assert not missing(TASKS[name], walkers(name, 60, habits=habits)).any()
    assert not missing(TASKS["grocery"], walkers("grocery", 60, habits=Habits(forgets=1, remembers=1))).any()
    every_time = missing(TASKS["grocery"], walkers("grocery", 60, habits=Habits(forgets=1, remembers=0)))
    assert every_time.tolist() == [3] * 60  # nobody forgets all
    assert missing(TASKS["all_at_the_till"], walkers("all_at_the_till", 60, habits=habits)).any()


def test_what_another_target_needs_is_not_left_out() -> None:
    task = TASKS["three_phases"]
    cohort = walkers("three_phases", 200, habits=Habits(forgets=0.8, remembers=0, slope=0))
    goal, owner = goals_of(task, cohort), np.repeat(np.arange(200), np.diff(cohort.step_offsets))
    taken = np.zeros((200, 6), dtype=bool)
    taken[owner[goal >= 0], goal[goal >= 0]] = True
    assert taken[:, [0, 4, 5]].all()
    assert not taken[:, 1:4].all()


def test_passing_by() -> None:
    task = TASKS["grocery"]
    passing = walkers("grocery", 60, habits=Habits(passes_by=1, wrong_turn=0, forgets=0, nearest=1, slope=0))
    assert not missing(task, passing).any()
    assert share_away(task, passing) > 0.05
    counts = np.diff(passing.step_offsets)
    assert counts.min() > np.diff(walkers("grocery", 60, habits=STRAIGHT).step_offsets).max()


def test_who_puts_nothing_off_goes_back_to_the_shelf() -> None:
    """They take things in the order of people who pass nothing by; who puts things off walks farther."""
    habits = Habits(passes_by=1, wrong_turn=0, forgets=0, nearest=1, takes_on_way=0, slope=0, notices=1)
    usual, back, later = (
        walkers("grocery", 20, habits=own)
        for own in (replace(habits, passes_by=0), replace(habits, puts_off=0), replace(habits, puts_off=1))
    )
    assert taken(back) == taken(usual)
    assert usual.n_steps < back.n_steps < later.n_steps


def taken(cohort: Cohort) -> list[list[int]]:
    """For each person, the actions that are no movements, in their order."""
    return [
        [int(a) for a in cohort.action[cohort.step_offsets[e] : cohort.step_offsets[e + 1]] if a >= 4]
        for e in range(cohort.n_episodes)
    ]


def bypasses(task: TaskModel, cohort: Cohort) -> np.ndarray:
    """For each step at which an unfinished target of the phase can be had, whether one moves out of its reach."""
    n_targets, found = len(task.grid.spec.targets), []

    def within_reach(state: int) -> set[int]:
        goals = task.goal[task.offsets[state] : task.offsets[state + 1]].tolist()
        return {goal for goal in goals if 0 <= goal < n_targets}

    for i in range(cohort.n_steps):
        near = within_reach(int(cohort.state[i]))
        if near:
            is_move = 0 <= cohort.action[i] < 4
            found.append(is_move and bool(near - within_reach(int(cohort.state[i + 1]))))
    return np.array(found)


def test_what_lies_on_the_way() -> None:
    """Who always takes what lies on the way passes nothing; who never does passes shelves, but gets all."""
    for chance in (1.0, 0.0):
        habits = Habits(wrong_turn=0, takes_on_way=chance, passes_by=0, forgets=0, nearest=0)
        cohort = walkers("grocery", 100, habits=habits)
        assert not missing(TASKS["grocery"], cohort).any()
        assert bypasses(TASKS["grocery"], cohort).any() == (chance == 0)


def test_less_able_people_slip_more() -> None:
    task = TASKS["grocery"]
    width = len(simulate.PAPER_TRUTH) + 1
    shares, left, lengths = [], [], []
    for ability in (2.0, 1.0, 0.0, -1.0, -2.0):
        shifts = np.zeros((150, width))
        shifts[:, 0] = ability * 0.42
        cohort = walkers("grocery", 150, shifts=shifts)
        shares.append(share_away(task, cohort))
        left.append(missing(task, cohort).mean())
        lengths.append(np.diff(cohort.step_offsets).mean())
    assert shares == sorted(shares)
    assert lengths == sorted(lengths)
    assert left[-1] > left[0]


def test_default_habits_have_plausible_base_rates() -> None:
    task = TASKS["grocery"]
    cohort = walkers("grocery", 400)
    assert 0.03 < share_away(task, cohort) < 0.08
    assert 0.05 < (missing(task, cohort) > 0).mean() < 0.15
    assert 0.1 < bypasses(task, cohort).mean() < 0.4


def test_true_rates_stand_in_the_table() -> None:
    habits = Habits(wrong_turn=0.04, passes_by=0.1, forgets=0.0, slope=0.5)
    table = walkers("errands", 50, habits=habits).participants
    same = fidm.simulate_cohort(TASKS["errands"], 50, seed=1).participants
    ability = (np.log(same["true_action_sensitivity"].to_numpy()) - 3.178) / 0.42
    assert "true_action_sensitivity" not in table.columns
    assert table["true_duration"].equals(same["true_duration"])
    for name, rate in (("true_wrong_turn", 0.04), ("true_passes_by", 0.1)):
        odds = rate / (1 - rate) * np.exp(-0.5 * ability)
        assert np.allclose(table[name].to_numpy(), odds / (1 + odds))
    assert (table["true_forgets"] == 0).all()
    shifts = np.zeros((3, len(simulate.PAPER_TRUTH) + 1))
    shifts[1, 0] = -1.0  # people who do not differ, but for one
    alike = walkers("errands", 3, shifts=shifts, people=People(log_sensitivity_sd=0.0)).participants
    usual = Habits().wrong_turn
    assert alike["true_wrong_turn"].to_list() == pytest.approx(
        [usual, Habits().of_person(-1.0).wrong_turn, usual]
    )
    talks = fidm.simulate_talks(TASKS["errands"], 5, seed=1, agent="walker", habits=habits)
    assert talks.cohort.participants.equals(table.head(5))


# ---------------------------------------------------------------------- the same walk


def same(one: Cohort, other: Cohort) -> bool:
    arrays = ("state", "action", "end_state", "segment", "step_offsets", "segment_offsets")
    return (
        all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and one.segments.equals(other.segments)
        and one.participants.equals(other.participants)
        and one.episodes.equals(other.episodes)
    )


def test_same_seed_same_walk_and_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = walkers("grocery", 20, seed=4)
    assert same(whole, walkers("grocery", 20, seed=4))
    parts = [walkers("grocery", k, seed=4, first=f) for f, k in ((0, 3), (3, 12), (15, 5))]
    assert same(whole, Cohort.concat(parts))
    assert not np.array_equal(whole.action, walkers("grocery", 20, seed=5).action)
    model = fidm.simulate_cohort(TASKS["grocery"], 20, seed=4)
    monkeypatch.setattr(simulate, "PART", 6)
    assert same(whole, walkers("grocery", 20, seed=4))
    assert same(model, fidm.simulate_cohort(TASKS["grocery"], 20, seed=4))


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(sorted(TASKS)),
    seed=st.integers(0, 10**6),
    chances=st.lists(st.floats(0, 1), min_size=8, max_size=8),
)
def test_step_by_step_is_the_whole_walk(name: str, seed: int, chances: list[float]) -> None:
    task, most = TASKS[name], 60
    habits = Habits(*chances)
    walker = Walker.of(task, People(), habits)
    truth = np.array([3.178])
    states, actions = walker.run(truth, 0.0, np.random.default_rng(seed), most)
    rng = np.random.default_rng(seed)
    rates, memory = walker.begin(truth, rng)
    draws = rng.random((128, walking.N_DRAWS))
    state, found, seen = task.start, [], [task.start]
    for row in draws[:most]:
        if not task.legal(state):
            break
        chosen = walking.step.py_func(walker.floor, rates, memory, state, row)
        while chosen == walking.SENT_ON:
            mode, cell = divmod(state, task.grid.grid.n_cells)
            state = seen[-1] = int(task.handover[walker.floor.then[mode] * task.grid.grid.n_cells + cell])
            chosen = walking.step.py_func(walker.floor, rates, memory, state, row)
        if chosen < 0:
            break
        state = int(task.handover[task.successor[task.pair(state, int(chosen))]])
        found.append(int(chosen))
        seen.append(state)
    assert found == actions.tolist()
    assert seen == states.tolist()


# ---------------------------------------------------------------------- talk


@pytest.mark.parametrize("language", ["yue", "en", "zh"])
def test_walkers_are_understood(language: str) -> None:
    """As many segments are read exactly as the gate asks of talk by model agents."""
    task = TASKS["grocery"]
    talks = fidm.simulate_talks(task, 12, seed=6, language=language, agent="walker")
    grounded = fidm.ground(talks.transcripts, task)
    right = 0
    for j in range(12):
        truth, found = (
            {
                name: cohort.action[steps][cohort.segment[steps] == i].tolist()
                for i, name in enumerate(
                    cohort.segments["segment"][
                        int(cohort.segment_offsets[j]) : int(cohort.segment_offsets[j + 1])
                    ]
                )
            }
            for cohort in (talks.cohort, grounded.cohort)
            for steps in [slice(int(cohort.step_offsets[j]), int(cohort.step_offsets[j + 1]))]
        )
        right += sum(found.get(name) == actions for name, actions in truth.items())
    assert right / talks.cohort.n_segments >= 0.97


def test_a_named_place_is_where_the_walker_goes() -> None:
    """Who always names a place and never slips takes, at the end of the way, what they named."""
    talks = fidm.simulate_talks(
        TASKS["grocery"], 6, seed=2, agent="walker", habits=STRAIGHT, style=Style(names_place=1.0)
    )
    words = [text.replace(";", " ").split() for own in talks.programs for text in own]
    named = {words[i + 1] for words in words for i, word in enumerate(words) if word == "GOTO"}
    assert named == {"vegetables", "meat", "egg_tofu", "seasoning", "bakery", "FINISH"}
    assert share_away(TASKS["grocery"], talks.cohort) == 0
    assert talks.inferred.mean() > 0.7


def test_the_assessor_does_not_wait_for_what_was_forgotten() -> None:
    task = TASKS["grocery"]
    habits = Habits(forgets=0.6, remembers=0, slope=0)
    talks = fidm.simulate_talks(
        task, 20, seed=2, agent="walker", habits=habits, style=Style(early_request=0), language="en"
    )
    left = missing(task, talks.cohort)
    assert left.mean() == pytest.approx(4 * 0.6, abs=0.6)
    assert (talks.cohort.end_state == task.n_states - 1).all()
    assert task.counted[talks.cohort.state].all()  # nobody walks about while waiting


# ---------------------------------------------------------------------- refusals


def test_habits_are_checked() -> None:
    for name in (
        "wrong_turn",
        "notices",
        "turns_back",
        "passes_by",
        "takes_on_way",
        "forgets",
        "remembers",
        "nearest",
    ):
        for value in (-0.1, 1.1, float("nan")):
            with pytest.raises(DataError, match=f"habit {name} is"):
                Habits(**{name: value})
    with pytest.raises(DataError, match="slope"):
        Habits(slope=float("inf"))
    assert Habits(wrong_turn=0, passes_by=1).of_person(-3).passes_by == 1
    assert Habits(wrong_turn=0).of_person(-3).wrong_turn == 0
    assert rates_of(Habits(wrong_turn=0.25)).tolist()[walking.WRONG_TURN] == 0.25


def test_refuses(tmp_path: Path) -> None:
    errands = TASKS["errands"]
    for function in (fidm.simulate_cohort, fidm.simulate_talks):
        with pytest.raises(DataError, match="habits are for walkers"):
            function(errands, 1, seed=1, habits=Habits())
        with pytest.raises(DataError, match="'model' or 'walker'"):
            function(errands, 1, seed=1, agent="robot")
        with pytest.raises(TaskError, match="has no map"):
            function(errands.with_horizon(5), 1, seed=1, agent="walker")
    plain = TaskModel.from_arrays([[1], [-1]], [[1.0], [0.0]], gamma=0.9, tau=0.1)
    with pytest.raises(TaskError, match="has no map"):
        Floor.of(plain)
    path = tmp_path / "corridor.toml"
    path.write_text(CORRIDOR)
    own = fidm.simulate_cohort(fidm.load_task(path), 2, seed=1, agent="walker", habits=STRAIGHT)
    assert own.action.tolist() == [2, 2, 4] * 2
