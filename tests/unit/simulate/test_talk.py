"""Simulated dialogs: is what they say of themselves true?"""

from __future__ import annotations

import itertools
import unicodedata

import numpy as np
import pytest

import fidm
from fidm.errors import DataError, GroundingError
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import Terrain, replay
from fidm.simulate.acting import Style
from fidm.simulate.cohort import People
from fidm.simulate.speaking import Phrases, languages
from fidm.simulate.talk import Talks, simulate_talks
from fidm.tasks.compile import compile_task
from fidm.tasks.spec import builtin_tasks, builtin_text, parse_task, read_task
from fidm.tasks.stack import TaskSet, follow

TASKS = {name: fidm.load_task(name) for name in builtin_tasks()}
MADE: dict[tuple[str, str], Talks] = {}


def made(task: str, language: str) -> Talks:
    if (task, language) not in MADE:
        MADE[task, language] = simulate_talks(TASKS[task], 12, seed=5, language=language)
    return MADE[task, language]


every = pytest.mark.parametrize(
    ("task", "language"), list(itertools.product(builtin_tasks(), ("yue", "en", "zh"))), ids="-".join
)


def content(talks: Talks) -> list[object]:
    return [
        (t.participant, [(u.speaker, u.role, u.start_s, u.end_s, u.text) for u in t])
        for t in talks.transcripts
    ]


@every
def test_same_seed_same_dialogs_and_part_by_part(task: str, language: str) -> None:
    whole = made(task, language)
    again = simulate_talks(TASKS[task], 12, seed=5, language=language)
    parts = [
        simulate_talks(TASKS[task], k, seed=5, language=language, first=f)
        for f, k in ((0, 5), (5, 1), (6, 6))
    ]
    assert content(whole) == content(again)
    assert content(whole) == [one for part in parts for one in content(part)]
    joined = fidm.Cohort.concat([part.cohort for part in parts])
    for name in ("state", "action", "segment", "inferred", "end_state"):
        assert np.array_equal(getattr(joined, name), getattr(whole.cohort, name))
    assert joined.segments.equals(whole.cohort.segments)
    assert joined.participants.equals(whole.cohort.participants)
    assert whole.programs == tuple(one for part in parts for one in part.programs)
    other = simulate_talks(TASKS[task], 12, seed=6, language=language)
    assert content(other) != content(whole)


@every
def test_people_are_those_of_the_other_simulation(task: str, language: str) -> None:
    ours = made(task, language).cohort.participants
    assert ours.equals(fidm.simulate_cohort(TASKS[task], 12, seed=5).participants)


@every
def test_truth_follows_the_task(task: str, language: str) -> None:
    cohort = made(task, language).cohort
    assert not follow(TaskSet.of(TASKS[task]), cohort).fault.any()
    assert (cohort.end_state == TASKS[task].n_states - 1).all()
    finish = TASKS[task].grid.spec.finish
    if finish:  # leaving is the last thing one does, and left out of the likelihood
        last = cohort.step_offsets[1:] - 1
        assert (cohort.action[last] == -1).all()
        assert [TASKS[task].actions[a] for a in cohort.action[last - 1]] == [finish.action] * len(cohort)
    moves = np.isin(cohort.action, range(4))
    episode = np.repeat(np.arange(len(cohort)), np.diff(cohort.step_offsets))
    row = cohort.segment_offsets[episode] + cohort.segment
    assert np.array_equal(np.bincount(row, moves), cohort.segments["n_moves"].to_numpy())
    assert (np.bincount(row) > 0).all()


@every
def test_programs_replay_to_the_truth(task: str, language: str) -> None:
    talks = made(task, language)
    cohort, terrain = talks.cohort, Terrain(TASKS[task])
    told = frozenset({"bakery"}) if "grocery" in task else frozenset()
    for j, programs in enumerate(talks.programs):
        position, step = terrain.start(), int(cohort.step_offsets[j])
        for text in programs:
            if position.state != cohort.state[step]:
                position = terrain.tell(position, "bakery", told)
            done = replay(parse_program(text, terrain.places), terrain, position, told=told)
            here = slice(step, step + len(done))
            assert done.actions == cohort.action[here].tolist()
            assert done.states == cohort.state[here].tolist()
            assert done.inferred == cohort.inferred[here].tolist() == talks.inferred[here].tolist()
            assert not done.issues
            assert len(set(cohort.segment[here].tolist())) == 1
            position, step = done.end, here.stop
        assert step == cohort.step_offsets[j + 1]
        assert position.state == cohort.end_state[j]


@every
def test_channels_are_what_the_dialog_holds(task: str, language: str) -> None:
    talks = made(task, language)
    row = 0
    for transcript, segments in zip(talks.transcripts, talks.turns, strict=True):
        inside = set()
        for first, last in segments:
            duration = pause = 0.0
            characters = turns = 0
            speaking = ended = None
            for number in range(first, last + 1):
                turn = transcript.turns[number]
                inside.add(number)
                if ended is not None and turn.start_s - ended > 0.25:
                    pause += turn.start_s - ended
                    assert turn.start_s - ended > 0.3 - 1e-9
                ended = turn.end_s
                if turn.role == "participant":
                    duration += turn.end_s - turn.start_s
                    assert turn.end_s - turn.start_s > 0.12 - 1e-9
                    turns += speaking != "participant"
                    for letter in turn.text:
                        if letter != " " and not unicodedata.category(letter).startswith("P"):
                            characters += 1
                speaking = turn.role
            assert transcript.turns[first].role == transcript.turns[last].role == "participant"
            assert transcript.turns[last + 1].role == "assessor"
            truth = talks.cohort.segments.row(row, named=True)
            assert duration == pytest.approx(truth["duration_s"], abs=1e-9)
            assert pause == pytest.approx(truth["pause_s"], abs=1e-9)
            assert (characters, turns) == (truth["n_characters"], truth["n_turns"])
            row += 1
        outside = [turn for i, turn in enumerate(transcript) if i not in inside]
        assert all(turn.role == "assessor" for turn in outside)
    assert row == talks.cohort.n_segments


@every
def test_times_and_speakers(task: str, language: str) -> None:
    for transcript in made(task, language).transcripts:
        times = [time for turn in transcript for time in (turn.start_s, turn.end_s)]
        assert all(a <= b for a, b in itertools.pairwise(times))
        assert all(round(time * 1000) / 1000 == time for time in times)
        assert {(turn.speaker, turn.role) for turn in transcript} == {
            ("PAR", "participant"),
            ("INV", "assessor"),
        }
        assert transcript.language == language
        assert all(turn.text.strip() for turn in transcript)
        assert not any(mark in turn.text for turn in transcript for mark in "{}")


@pytest.mark.parametrize("language", ["yue", "en", "zh"])
def test_the_assessor_opens_the_bakery(language: str) -> None:
    task = TASKS["grocery"]
    talks = simulate_talks(task, 12, seed=2, language=language)
    words = set(Phrases(language, read_task("grocery")).said("request", "bakery"))
    cohort, terrain = talks.cohort, Terrain(task)
    for j, transcript in enumerate(talks.transcripts):
        asked = [i for i, turn in enumerate(transcript) if turn.text in words]
        assert len(asked) == 1
        steps = slice(int(cohort.step_offsets[j]), int(cohort.step_offsets[j + 1]))
        phases = [terrain.phase(state) for state in cohort.state[steps].tolist()]
        segment = int(cohort.segment[steps][phases.index(1) if 1 in phases else phases.index(2)])
        first, _ = talks.turns[j][segment]
        assert asked == [first - 1]  # right before the first segment of the new phase
        assert first - 2 > talks.turns[j][segment - 1][1]  # after the figure was moved
        assert task.counted[cohort.state[steps]].all()  # nobody walks about while waiting


def test_some_are_sent_on_early() -> None:
    task, bits = TASKS["grocery"], 0b1111
    missing = {}
    for share in (0.0, 1.0):
        cohort = simulate_talks(task, 20, seed=3, style=Style(early_request=share)).cohort
        assert not follow(TaskSet.of(task), cohort).fault.any()
        mode = np.minimum(cohort.state // task.grid.grid.n_cells, len(task.grid.phase) - 1)
        later = task.grid.phase[mode] == 1
        missing[share] = ((task.grid.progress[mode[later]] & bits) != bits).mean()
    assert missing[0.0] == 0
    assert missing[1.0] > 0.5


def test_destinations_are_inferred_and_only_they() -> None:
    none = simulate_talks(TASKS["grocery"], 5, seed=4, style=Style(names_place=0.0))
    assert not none.inferred.any()
    assert not any("GOTO" in text for person in none.programs for text in person)
    always = simulate_talks(TASKS["grocery"], 5, seed=4, style=Style(names_place=1.0))
    assert always.inferred.mean() > 0.5


def test_moves_that_are_not_inferred_are_chosen_by_value() -> None:
    task = TASKS["grocery"]
    talks = simulate_talks(task, 150, seed=8)
    cohort, values = talks.cohort, fidm.solve(task)
    stated = (cohort.action >= 0) & ~talks.inferred
    owner = np.repeat(np.arange(len(cohort)), np.diff(cohort.step_offsets))[stated]
    eta = cohort.participants["true_action_sensitivity"].to_numpy()[owner]
    state, action = cohort.state[stated], cohort.action[stated]
    q = values.q[state]
    legal = task.next_state[state] >= 0
    scaled = np.where(legal, eta[:, None] * np.where(legal, q, 0.0), -np.inf)
    chance = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    best = np.where(legal, q, -np.inf).argmax(axis=1)
    expected = chance[np.arange(len(best)), best]
    found = action == best
    error = np.sqrt((expected * (1 - expected)).sum())
    assert abs(found.sum() - expected.sum()) < 4 * error


def test_effort_depends_on_the_person() -> None:
    talks = simulate_talks(TASKS["grocery"], 150, seed=9, people=People(effort_sd=0.6))
    table = talks.cohort.segments
    owner = np.repeat(np.arange(150), np.diff(talks.cohort.segment_offsets))
    for column, name in (("duration_s", "duration"), ("n_characters", "characters"), ("n_turns", "turns")):
        mean = np.bincount(owner, table[column].to_numpy()) / np.bincount(owner)
        truth = talks.cohort.participants[f"true_{name}"].to_numpy()
        assert np.corrcoef(np.log(mean), truth)[0, 1] > 0.6


EXIT = '[exit]\nsymbol = "X"\naction = "OUT"\nlabel = "exit"\nin_likelihood = false\n'
MORE = '[[phases]]\nname = "more"\ntargets = ["drinks", "dairy"]\n\n'
WOOL = '[sections.wool]\nsymbol = "W"\nlabel = "wool {odd}"\n'
VARIANTS: dict[str, list[tuple[str, str]]] = {
    "one way to buy": [('buy = "per_section"', 'buy = "single"')],
    "reach anywhere": [('reach = "adjacent"', 'reach = "anywhere"')],
    "leaving counts": [("in_likelihood = false", "in_likelihood = true")],
    "phases end": [('value_flow = "chained"', 'value_flow = "ends"')],
    "phases by goals": [('phase_change = "transcript"', 'phase_change = "goals"')],
    "no exit": [(EXIT, ""), ("#P.X...S.##", "#P.....S.##")],
    "two requests": [('[[phases]]\nname = "checkout"', MORE + '[[phases]]\nname = "checkout"')],
    "a place without words": [("[sections.meat]", WOOL + "[sections.meat]"), ("##.##K##.##", "##.#WK##.##")],
    "a wanted place without words": [
        ("[sections.meat]", WOOL + "[sections.meat]"),
        ("##.##K##.##", "##.#WK##.##"),
        ('targets = ["bakery"]', 'targets = ["bakery", "wool"]'),
    ],
    "another verb": [("format = 1", 'format = 1\nverb = "GREET"')],
    "visits on request": [("format = 1", 'format = 1\nverb = "VISIT"')],
}


@pytest.mark.parametrize("language", ["yue", "en", "zh"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_any_drawn_task(variant: str, language: str) -> None:
    text = builtin_text("grocery_small")
    for old, new in VARIANTS[variant]:
        assert text.count(old) == 1
        text = text.replace(old, new)
    task = compile_task(parse_task(text))
    talks = simulate_talks(
        task, 8, seed=1, language=language, style=Style(max_actions=200, early_request=0.5)
    )
    assert not follow(TaskSet.of(task), talks.cohort).fault.any()
    assert talks.cohort.n_segments == sum(map(len, talks.programs))
    assert np.diff(talks.cohort.step_offsets).max() <= 201  # leaving is said after the last


def test_nothing_said_is_in_a_repr() -> None:
    talks = made("grocery", "en")
    shown = (
        repr(talks) + repr(talks.transcripts) + repr(talks.transcripts[0]) + repr(talks.transcripts[0].turns)
    )
    assert "moved" not in shown
    assert "MOVE" not in shown
    assert repr(talks) == f"Talks(12 people, {talks.cohort.n_segments} segments)"


@pytest.mark.parametrize("language", languages())
def test_every_wording_can_be_filled_in(language: str) -> None:
    for name in builtin_tasks():
        spec = read_task(name)
        phrases = Phrases(language, spec)
        rng = np.random.default_rng(0)
        programs = [
            f"{head}MOVE {way}{far}; BUY {place}"
            for place in spec.sections
            for head, ways in (
                ("", ("up", "down", "left", "right", "ahead")),
                ("TURN left; ", ("ahead",)),
                ("TURN around; ", ("ahead",)),
            )
            for way in ways
            for far in (" 1", " 25", " end", f" to {place}", "")
        ]
        programs += ["BACK 2; PAY; LEAVE", *(f"GOTO {place}" for place in (*spec.sections, "FINISH", "EXIT"))]
        for text in programs:
            for terse in (False, True):
                for clause in phrases.clauses(parse_program(text, spec.sections), rng, terse=terse):
                    assert clause.text
                    slip = phrases.wrong(clause, rng)
                    assert slip is None or slip[0] != clause.text


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 1.5}, {"seed": -1}, {"first": -1}, {"language": "xx"}])
def test_refuses(wrong: dict[str, object]) -> None:
    with pytest.raises(DataError):
        simulate_talks(TASKS["errands"], **{"n": 1, "seed": 1, **wrong})


@pytest.mark.parametrize(
    "wrong", [{"names_place": 2.0}, {"early_request": -0.1}, {"actions_per_segment": 0.5}, {"max_actions": 0}]
)
def test_refuses_styles(wrong: dict[str, float]) -> None:
    with pytest.raises(DataError):
        Style(**wrong)


def test_needs_a_map() -> None:
    task = fidm.TaskModel.from_arrays(
        next_state=np.array([[1], [1]]), reward=np.array([[1.0], [0.0]]), gamma=0.9, tau=0.1
    )
    with pytest.raises(GroundingError):
        simulate_talks(task, 1, seed=1)
