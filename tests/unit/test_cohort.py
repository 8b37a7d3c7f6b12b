"""Cohorts: cutting, choosing, joining, and tables that are wrong."""

from __future__ import annotations

import copy
import functools
import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
from mazes import maze, walked

import fidm
from fidm.errors import DataError
from fidm.files import WRITING
from fidm.grounding.store import known_participants
from fidm.io.study import Study, StudyWriter
from fidm.io.tables import tables_of


@functools.cache
def task():
    return fidm.load_task("grocery")


@functools.cache
def cohort():
    return fidm.simulate_cohort(task(), 6, seed=1)


def test_the_segments_say_whose_they_are():
    found = cohort().segment_table()
    assert found.columns == ["participant", "episode", "task", *cohort().segments.columns]
    assert found.drop("participant", "episode", "task").equals(cohort().segments)
    again = cohort().with_segments(found)
    assert again.segments.drop("task").equals(cohort().segments)
    assert again.segment_table().columns == found.columns
    last = cohort()[[5]]
    assert last.segment_table()["participant"].unique().to_list() == last.ids.to_list()
    assert cohort()[np.zeros(0, int)].segment_table().height == 0


def corridor(name="corridor"):
    return fidm.TaskModel.from_arrays(
        [[-1, 1], [0, 2], [-1, -1]],
        [[0, -0.1], [-0.1, 1], [0, 0]],
        gamma=0.9,
        tau=0.1,
        actions=["left", "right"],
        states=["west", "middle", "east"],
        name=name,
    )


# ---------------------------------------------------------------------- the class


def test_people_can_be_chosen_by_rows_flags_slices_and_names():
    whole = cohort()
    flags = np.arange(6) % 2 == 1
    for part in (
        whole[[1, 3, 5]],
        whole[flags],
        whole[1::2],
        whole.select(["P0000002", "P0000004", "P0000006"]),
    ):
        assert part.ids.to_list() == ["P0000002", "P0000004", "P0000006"]
        assert part.n_steps == sum(len(whole.traces(name)[0]) for name in part.ids)
        assert part.traces("P0000004")[0].state.tolist() == whole.traces("P0000004")[0].state.tolist()


def test_choosing_keeps_segments_with_their_people():
    part = cohort()[[4, 2]]
    owner = np.repeat(np.arange(2), np.diff(part.segment_offsets))
    for row, name in enumerate(part.ids):
        own = part.segments.filter(pl.Series(owner == row))
        alone = cohort().select([name]).segments
        assert own.equals(alone)


def test_an_unknown_person_or_split_is_named():
    with pytest.raises(fidm.DataError, match="participant 'X' among the 6"):
        cohort().select(["X"])
    with pytest.raises(fidm.DataError, match="no column 'split'"):
        cohort().split("train")
    table = cohort().participants.with_columns(split=pl.Series(["train", "test", None] * 2))
    parted = fidm.make_cohort(**{**tables_of(cohort()), "participants": table})
    assert parted.split("train").ids.to_list() == ["P0000001", "P0000004"]
    with pytest.raises(fidm.DataError, match="'test', 'train'"):
        parted.split("dev")


def test_joining_parts_gives_the_whole_and_refuses_a_person_twice():
    whole = cohort()
    joined = fidm.Cohort.concat([whole[:2], whole[2:]])
    assert np.array_equal(joined.state, whole.state)
    assert joined.segments.equals(whole.segments)
    with pytest.raises(fidm.DataError, match="several cohorts: 'P0000001'"):
        fidm.Cohort.concat([whole, whole[:1]])


def test_arrays_are_locked_and_copies_are_the_thing_itself():
    with pytest.raises(ValueError, match="read-only"):
        cohort().state[0] = 1
    assert copy.deepcopy(cohort()) is cohort()


def test_lengths_that_do_not_fit_are_refused():
    whole = cohort()
    fields = {name: getattr(whole, name) for name in fidm.Cohort.__slots__}
    with pytest.raises(fidm.DataError, match="action has the"):
        fidm.Cohort(**{**fields, "action": whole.action[:-1]})
    with pytest.raises(fidm.DataError, match="step_offsets"):
        fidm.Cohort(**{**fields, "step_offsets": whole.step_offsets + 1})


def test_traces_of_one_person_become_episodes():
    values = fidm.solve(task())
    traces = [fidm.walk(task(), values, 20.0, seed=i, label="AB"[i % 2]) for i in range(5)]
    made = fidm.Cohort.from_traces(traces)
    assert made.ids.to_list() == ["A", "B"]
    assert made.episodes["episode"].to_list() == ["1", "2", "3", "1", "2"]
    assert [len(trace) for trace in made.traces("A")] == [len(traces[i]) for i in (0, 2, 4)]


# ---------------------------------------------------------------------- tables


def good():
    return {
        "steps": pl.DataFrame(
            {
                "participant": ["A", "A", "B", "B", "B", "B"],
                "step": [1, 2, 1, 2, 3, 4],
                "state": [0, 1, 0, 1, 0, 1],
                "action": [1, 1, 1, 0, 1, 1],
            }
        ),
        "segments": pl.DataFrame(
            {
                "participant": ["A", "B"],
                "segment": [1, 1],
                "n_moves": [2, 4],
                "duration_s": [1.5, 2.0],
                "pause_s": [0.0, None],
            }
        ),
        "participants": pl.DataFrame({"participant": ["A", "B"], "age": [70, 80]}),
    }


def with_step(row, **changes):
    steps = good()["steps"]
    return steps.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
        for column, value in changes.items()
    )


def test_the_smallest_tables_are_enough():
    made = fidm.make_cohort(steps=good()["steps"], tasks=corridor())
    assert len(made) == 2
    assert made.tasks == ("corridor",)
    assert made.end_state.tolist() == [-1, -1]


def test_names_of_actions_and_states_are_understood():
    steps = good()["steps"].with_columns(
        action=pl.Series(["right", "right", "right", "left", "right", "right"]),
        state=pl.Series(["west", "middle", "west", "middle", "west", "middle"]),
    )
    made = fidm.make_cohort(steps=steps, tasks=corridor())
    assert made.action.tolist() == good()["steps"]["action"].to_list()
    assert made.state.tolist() == good()["steps"]["state"].to_list()
    with pytest.raises(fidm.DataError, match="given by name"):
        fidm.make_cohort(steps=steps)


def test_leaving_the_store_is_an_action_the_task_leaves_out():
    table = tables_of(cohort()[:1])
    end = int(cohort().end_state[0])
    last = int(table["steps"]["step"].max())
    names = np.array(task().actions)[cohort()[:1].action].tolist()
    steps = table["steps"].drop("segment").with_columns(action=pl.Series(names))
    leaving = pl.DataFrame(
        {
            "participant": ["P0000001"],
            "episode": ["1"],
            "step": [last + 1],
            "state": [end],
            "action": ["OUT"],
        },
        schema=steps.schema,
    )
    made = fidm.make_cohort(**{**table, "steps": pl.concat([steps, leaving])}, tasks=task())
    assert made.action[-1] == -1
    plain = fidm.Model(task(), channels=()).fit(cohort(), method="mle")
    assert plain.profile(made).estimate[0, 0] == plain.profile(cohort()[:1]).estimate[0, 0]
    assert plain.profile(made).n[0, 0] == plain.profile(cohort()[:1]).n[0, 0]


def test_rows_may_come_in_any_order_and_from_pandas():
    tables = good()
    expected = fidm.make_cohort(**tables, tasks=corridor())
    shuffled = {name: table.sample(fraction=1, shuffle=True, seed=3) for name, table in tables.items()}
    shuffled["participants"] = tables["participants"]
    made = fidm.make_cohort(**{name: table.to_pandas() for name, table in shuffled.items()}, tasks=corridor())
    assert np.array_equal(made.state, expected.state)
    assert np.array_equal(made.action, expected.action)
    assert made.segments["duration_s"].to_list() == expected.segments["duration_s"].to_list()


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["1.1", "1.9", "1.10"], [0, 1, 2]),  # text, though each could be read as a number
        (["3", "1e0", "2"], [0, 1, 2]),
        (["10", "2", "1"], [2, 1, 0]),
    ],
)
def test_only_whole_numbers_are_put_in_their_order(tmp_path, names, order):
    steps = pl.DataFrame(
        {"participant": "A", "episode": names, "step": 1, "state": [0, 0, 0], "action": [1, 1, 1]}
    )
    segments = pl.DataFrame({"participant": "A", "episode": names[0], "segment": names, "n_moves": [1, 2, 3]})
    made = fidm.make_cohort(steps=steps, segments=segments, tasks=corridor())
    assert made.episodes["episode"].to_list() == [names[i] for i in order]
    assert made.segments["segment"].to_list() == [names[i] for i in order]
    fidm.write_cohort(made, tmp_path / "study")
    again = fidm.read_cohort(tmp_path / "study", tasks=corridor())
    assert again.episodes["episode"].to_list() == made.episodes["episode"].to_list()


@pytest.mark.parametrize("column", ["participant", "episode", "segment"])
def test_names_read_as_decimals_are_refused(column):
    steps = pl.DataFrame({"participant": 1.0, "episode": 1.0, "step": [1], "state": [0], "action": [1]})
    segments = pl.DataFrame({"participant": 1.0, "episode": 1.0, "segment": [1.0], "n_moves": [1]})
    made = fidm.make_cohort(steps=steps, segments=segments, tasks=corridor())
    assert made.segments["segment"].to_list() == ["1"]
    spoiled = segments.with_columns(pl.lit(1.1).alias(column))
    with pytest.raises(
        fidm.DataError, match=r"1\.1 and 1\.10 cannot be told apart\. Read the column as text"
    ):
        fidm.make_cohort(steps=steps, segments=spoiled, tasks=corridor())


def test_a_caller_s_tables_are_not_changed():
    tables = good()
    before = {name: table.clone() for name, table in tables.items()}
    pandas = pd.DataFrame(tables["steps"].to_dict(as_series=False))
    fidm.make_cohort(**{**tables, "steps": pandas}, tasks=corridor())
    assert all(before[name].equals(tables[name]) for name in tables)
    assert list(pandas.columns) == ["participant", "step", "state", "action"]


BAD = {
    "illegal action": (lambda t: {**t, "steps": with_step(0, action=0)}, "steps, row 1, A: left is not legal in west. Legal here: right"),
    "no such state": (lambda t: {**t, "steps": with_step(3, state=9)}, "steps, row 4, B: corridor has no state 9"),
    "broken chain": (lambda t: {**t, "steps": with_step(4, state=1)}, "steps, row 4, B: left in middle is followed by middle. It leads to west"),
    "unknown participant": (lambda t: {**t, "steps": with_step(1, participant="Z")}, "steps, row 2, Z: The participant is not in the table"),
    "duplicate participant": (lambda t: {**t, "participants": pl.concat([t["participants"]] * 2)}, "participants, row 3, A: The participant has several rows"),
    "duplicate step": (lambda t: {**t, "steps": with_step(1, step=1)}, "steps, row 2, A: The step number occurs twice"),
    "missing step": (lambda t: {**t, "steps": with_step(1, step=5)}, "steps, row 2, A: Step numbers jump"),
    "missing action": (lambda t: {**t, "steps": with_step(1, action=None)}, "steps, row 2, A: The action is missing"),
    "half a state": (lambda t: {**t, "steps": with_step(1, state=0.5)}, "steps, row 2, A: The state is not a whole number"),
    "negative duration": (lambda t: {**t, "segments": t["segments"].with_columns(duration_s=pl.Series([1.0, -2.0]))}, "segments, row 2, B: duration_s is negative"),
    "infinite duration": (lambda t: {**t, "segments": t["segments"].with_columns(duration_s=pl.Series([np.inf, 2.0]))}, "segments, row 1, A: duration_s is not finite"),
    "negative moves": (lambda t: {**t, "segments": t["segments"].with_columns(n_moves=pl.Series([-1, 2]))}, "segments, row 1, A: n_moves is negative"),
    "duplicate segment": (lambda t: {**t, "segments": pl.concat([t["segments"], t["segments"][:1]])}, "segments, row 3, A: The segment has several rows"),
    "segment of nobody": (lambda t: {**t, "segments": t["segments"].with_columns(participant=pl.Series(["A", "Q"]))}, "segments, row 2, Q: The participant is not in the table"),
    "unknown task": (lambda t: {**t, "episodes": pl.DataFrame({"participant": ["A", "B"], "task": ["corridor", "maze"]})}, "episodes, row 2, B: It names the task 'maze', which was not given. Known: corridor"),
    "unknown episode": (lambda t: {**t, "episodes": pl.DataFrame({"participant": ["A", "B"], "episode": ["1", "7"], "task": ["corridor"] * 2})}, "steps, row 3, B: The episode is not in the table of episodes"),
    "negative weight": (lambda t: {**t, "steps": t["steps"].with_columns(weight=pl.Series([1.0, 1.0, 1.0, 1.0, -1.0, 1.0]))}, "steps, row 5, B: The weight is negative"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_named_with_participant_and_row(name):
    spoil, sentence = BAD[name]
    with pytest.raises(fidm.DataError) as raised:
        fidm.make_cohort(**spoil(good()), tasks=corridor())
    assert sentence in str(raised.value)


@pytest.mark.parametrize("name", BAD)
def test_without_strict_the_good_people_stay_and_the_problems_are_a_table(name):
    spoil, sentence = BAD[name]
    made = fidm.make_cohort(**spoil(good()), tasks=corridor(), strict=False)
    assert made.problems.columns == ["table", "row", "participant", "problem", "hint"]
    said = [
        f"{r['table']}, row {r['row']}, {r['participant']}: {r['problem']} {r['hint']}"
        for r in made.problems.iter_rows(named=True)
    ]
    assert any(line.startswith(sentence) for line in said)
    bad = set(made.problems["participant"].to_list())
    assert set(made.ids.to_list()) == {"A", "B"} - bad


def test_all_problems_are_reported_at_once():
    tables = good()
    tables["steps"] = with_step(0, action=0)
    tables["segments"] = tables["segments"].with_columns(
        duration_s=pl.Series([1.0, -2.0]), n_moves=pl.Series([-1, 4])
    )
    with pytest.raises(fidm.DataError) as raised:
        fidm.make_cohort(**tables, tasks=corridor())
    assert len(raised.value.problems) == 3
    assert str(raised.value).startswith("3 problems, with 2 participants.")


def test_a_table_without_a_needed_column_says_what_it_has():
    with pytest.raises(
        fidm.DataError, match=r"'steps' has no column 'action'. It has 'participant', 'step', 'state'\."
    ):
        fidm.make_cohort(steps=good()["steps"].drop("action"))


def test_a_phase_opened_by_the_transcript_is_no_broken_chain():
    model = task()
    grid = model.grid
    here = grid.state((4, 4))
    cell = here % grid.grid.n_cells
    told = next(
        mode
        for mode in range(len(grid.phase))
        if grid.phase[mode] > grid.phase[0]
        and grid.progress[mode] == grid.progress[here // grid.grid.n_cells]
    )
    steps = pl.DataFrame(
        {
            "participant": ["A", "A"],
            "step": [1, 2],
            "state": [
                here,
                int(told) * grid.grid.n_cells + int(model.next_state[here, 1]) % grid.grid.n_cells,
            ],
            "action": ["S", "N"],
        }
    )
    assert cell == here % grid.grid.n_cells
    assert len(fidm.make_cohort(steps=steps, tasks=model)) == 1
    back = steps.reverse().with_columns(step=pl.Series([1, 2]))
    with pytest.raises(fidm.DataError):
        fidm.make_cohort(steps=back, tasks=model)


# ---------------------------------------------------------------------- folders


def test_csv_files_are_enough(tmp_path):
    names = np.array(task().actions)[cohort().action]
    tables = tables_of(cohort())
    tables["steps"].with_columns(action=pl.Series(names)).drop("episode", "segment").write_csv(
        tmp_path / "steps.csv"
    )
    tables["segments"].drop("episode").write_csv(tmp_path / "segments.csv")
    made = fidm.read_cohort(tmp_path, tasks=task())
    assert np.array_equal(made.action, cohort().action)
    assert made.segments["duration_s"].to_list() == pytest.approx(cohort().segments["duration_s"].to_list())


def test_csv_knows_several_words_for_missing(tmp_path):
    (tmp_path / "steps.csv").write_text("participant,step,state,action\n007,1,0,1\n007,2,1,1\n")
    (tmp_path / "segments.csv").write_text(
        "participant,segment,n_moves,duration_s,pause_s\n007,1,1,NA,0\n007,2,1,2.5,\n007,3,1,nan,1\n"
    )
    made = fidm.read_cohort(tmp_path, tasks=corridor())
    assert made.ids.to_list() == ["007"]
    assert made.segments["duration_s"].to_list() == [None, 2.5, None]
    assert made.segments["pause_s"].to_list() == [0, None, 1]


def test_a_study_names_its_own_task_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(fidm.builtin_text("grocery"), "utf-8")
    fidm.write_cohort(cohort(), tmp_path / "study", tasks=[file])
    assert (tmp_path / "study" / "tasks" / "mine.toml").exists()
    assert len(fidm.read_cohort(tmp_path / "study")) == 6


def test_parts_are_read_one_by_one_and_together(tmp_path):
    with StudyWriter(tmp_path / "study", tasks=["grocery"]) as writer:
        for first in (0, 2, 4):
            writer.add(cohort()[first : first + 2])
    study = Study(tmp_path / "study")
    assert [len(batch) for batch in study.batches()] == [2, 2, 2]
    assert study.participants()["participant"].to_list() == cohort().ids.to_list()
    assert np.array_equal(fidm.read_cohort(tmp_path / "study").state, cohort().state)
    (tmp_path / "study" / "segments" / "part-00001.parquet").unlink()
    with pytest.raises(fidm.DataError, match="segments has 2 parts"):
        Study(tmp_path / "study")


def test_writing_does_not_replace_a_study_unasked_and_leaves_other_files(tmp_path):
    fidm.write_cohort(cohort(), tmp_path / "study", tasks=["grocery"])
    (tmp_path / "study" / "notes.txt").write_text("mine")
    with pytest.raises(fidm.DataError, match="exists already"):
        fidm.write_cohort(cohort()[:2], tmp_path / "study")
    fidm.write_cohort(cohort()[:2], tmp_path / "study", tasks=["grocery"], overwrite=True)
    assert len(fidm.read_cohort(tmp_path / "study")) == 2
    assert (tmp_path / "study" / "notes.txt").read_text() == "mine"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_failed_writing_leaves_nothing_behind(tmp_path):
    with pytest.raises(RuntimeError), StudyWriter(tmp_path / "study") as writer:
        writer.add(cohort())
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_replacement_is_noticed(tmp_path):
    fidm.write_cohort(cohort(), tmp_path / "study")
    (tmp_path / "study" / f"{WRITING}1" / "old").mkdir(parents=True)
    with pytest.raises(fidm.DataError, match="interrupted"):
        fidm.read_cohort(tmp_path / "study")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("study.toml", "schema = 2", "has the schema 2; this version of fidm reads 1"),
        ("study.toml", "schema = 1\ntasks = 3", "tasks must be a list"),
        ("study.toml", "schema", "cannot be read"),
        ("steps.parquet", "not parquet", "is not a table that can be read"),
        ("steps.csv", "participant", "steps.parquet and steps.csv; keep one"),
    ],
)
def test_spoiled_files_are_named(tmp_path, name, text, sentence):
    fidm.write_cohort(cohort(), tmp_path / "study", tasks=["grocery"])
    (tmp_path / "study" / name).write_text(text)
    with pytest.raises(fidm.DataError, match=sentence):
        fidm.read_cohort(tmp_path / "study")


def test_what_a_cell_holds_never_reaches_an_error(tmp_path):
    (tmp_path / "steps.csv").write_text("participant,step,state,action\nA,1,0,1\n")
    (tmp_path / "segments.csv").write_text(
        'participant,segment,n_moves,duration_s\nA,1,1,"my secret words"\n'
    )
    with pytest.raises(fidm.DataError) as raised:
        fidm.read_cohort(tmp_path, tasks=corridor())
    assert "secret" not in str(raised.value)
    assert "segments, row 1, A: duration_s" in str(raised.value)
    (tmp_path / "segments.csv").write_text('participant,segment\nA,1,"my secret words","x\n')
    with pytest.raises(fidm.DataError) as raised:
        fidm.read_cohort(tmp_path, tasks=corridor())
    assert "secret" not in str(raised.value)


def test_an_empty_folder_says_what_is_needed(tmp_path):
    with pytest.raises(fidm.DataError, match="no table 'steps'"):
        fidm.read_cohort(tmp_path)
    with pytest.raises(fidm.DataError, match="is not a folder"):
        fidm.read_cohort(tmp_path / "nothing")


# ---------------------------------------------------------------------- what users stumble over


def test_states_are_worked_out_where_actions_alone_are_known():
    tables = tables_of(cohort())
    names = np.array(task().actions)[cohort().action]
    steps = tables["steps"].with_columns(action=pl.Series(names)).drop("state")
    made = fidm.make_cohort(**{**tables, "steps": steps}, tasks=task())
    assert np.array_equal(made.state, cohort().state)
    assert np.array_equal(made.segment, cohort().segment)
    with pytest.raises(fidm.DataError, match="tasks are not known"):
        fidm.make_cohort(steps=tables["steps"].drop("segment", "state"))


def test_only_the_first_wrong_action_of_an_episode_is_reported_when_states_are_worked_out():
    steps = good()["steps"].drop("state").with_columns(action=pl.Series([1, 1, 1, 0, 0, 1]))
    with pytest.raises(fidm.DataError) as raised:
        fidm.make_cohort(steps=steps, tasks=corridor())
    assert [problem.where for problem in raised.value.problems] == ["steps, row 5, B"]


def test_states_of_a_task_with_chance_must_be_given():
    slippery = fidm.TaskModel.from_pairs([0], [0], [-1.0], [[0.2, 0.8]], gamma=1.0, tau=0.1, horizon=2)
    steps = pl.DataFrame({"participant": ["A"], "step": [1], "action": [0]})
    with pytest.raises(fidm.DataError, match="have several outcomes"):
        fidm.make_cohort(steps=steps, tasks=slippery)


def test_duplicate_segments_beside_steps_that_name_them_are_reported():
    tables = tables_of(cohort())
    tables["segments"] = pl.concat([tables["segments"], tables["segments"][:1]])
    made = fidm.make_cohort(**tables, tasks=task(), strict=False)
    assert made.problems["problem"].unique().to_list() == ["The segment has several rows."]
    assert len(made) == 5


def test_a_step_of_an_unknown_segment_is_reported():
    tables = tables_of(cohort())
    last = tables["segments"].height - 1
    tables["segments"] = tables["segments"][:last]
    with pytest.raises(fidm.DataError, match="P0000006: The segment"):
        fidm.make_cohort(**tables, tasks=task())


def test_an_episode_column_in_one_table_only_is_refused():
    tables = good()
    tables["steps"] = tables["steps"].with_columns(episode=pl.lit("2"))
    with pytest.raises(fidm.DataError, match="but segments has none"):
        fidm.make_cohort(**tables, tasks=corridor())


def test_numbers_as_ids_are_the_same_whether_whole_or_not():
    tables = good()
    tables["steps"] = tables["steps"].with_columns(participant=pl.Series([1.0, 1.0, 2.0, 2.0, 2.0, 2.0]))
    tables["participants"] = pl.DataFrame({"participant": [1, 2]})
    tables["segments"] = tables["segments"].with_columns(participant=pl.Series(["1", "2"]))
    assert fidm.make_cohort(**tables, tasks=corridor()).ids.to_list() == ["1", "2"]


def test_a_cohort_read_without_its_task_is_fitted_on_the_only_one():
    tables = tables_of(cohort())
    made = fidm.make_cohort(steps=tables["steps"].drop("segment", "episode"))
    fit = fidm.Model(task(), channels=()).fit(made, method="mle")
    assert fit.profile(made).estimate.tolist() == fit.profile(cohort()).estimate.tolist()


def test_a_wrong_end_state_is_reported_without_its_text():
    episodes = pl.DataFrame(
        {"participant": ["A", "B"], "task": ["corridor"] * 2, "end_state": ["secret", "east"]}
    )
    with pytest.raises(fidm.DataError) as raised:
        fidm.make_cohort(**good(), episodes=episodes, tasks=corridor())
    assert "secret" not in str(raised.value)
    assert "Known: west, middle, east." in str(raised.value)


def test_a_table_about_the_people_can_be_replaced():
    table = cohort().participants.select("participant").with_columns(age=pl.int_range(6)).reverse()
    made = cohort().with_participants(table)
    assert made.participants["age"].to_list() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(fidm.DataError, match="for each person"):
        cohort().with_participants(table[:3])


def test_traces_need_an_owner_and_writers_a_block(tmp_path):
    trace = fidm.walk(task(), fidm.solve(task()), 20.0, seed=1)
    with pytest.raises(fidm.DataError, match="needs a label"):
        fidm.Cohort.from_traces([trace])
    with pytest.raises(fidm.DataError, match="inside a with block"):
        StudyWriter(tmp_path / "study").add(cohort())
    with pytest.raises(fidm.DataError, match="task file 'errnds'"):
        fidm.write_cohort(cohort(), tmp_path / "study", tasks=["errnds"])


def test_blank_rows_and_spaces_of_a_spreadsheet_do_no_harm():
    tables = good()
    blank = {column: [None] for column in tables["steps"].columns}
    steps = pl.concat([tables["steps"], pl.DataFrame(blank, schema=tables["steps"].schema)])
    names = pl.Series(["right ", " right", "right", "left", "right", "right", None])
    made = fidm.make_cohort(**{**tables, "steps": steps.with_columns(action=names)}, tasks=corridor())
    assert made.action.tolist() == good()["steps"]["action"].to_list()


def test_a_typo_is_met_with_a_suggestion_and_without_a_cascade():
    names = pl.Series(["rigth", "right", "right", "left", "right", "right"])
    with pytest.raises(fidm.DataError) as raised:
        fidm.make_cohort(steps=good()["steps"].with_columns(action=names), tasks=corridor())
    assert [str(problem) for problem in raised.value.problems] == [
        "steps, row 1, A: The task has no action of this name. Did you mean right?"
    ]


def test_mixed_columns_of_pandas_are_read_or_named():
    steps = good()["steps"].to_pandas()
    steps["participant"] = [1, 1, "B", "B", "B", "B"]
    assert fidm.make_cohort(steps=steps, tasks=corridor()).ids.to_list() == ["1", "B"]
    steps["step"] = [1, "2x", 1, 2, 3, 4]
    with pytest.raises(fidm.DataError, match="steps, row 2, 1: The step"):
        fidm.make_cohort(steps=steps, tasks=corridor())
    with pytest.raises(fidm.DataError, match="steps is a list"):
        fidm.make_cohort(steps=[1, 2])


def test_many_problems_of_one_kind_are_counted():
    bad = pl.concat([good()["segments"]] * 1).with_columns(duration_s=pl.lit(-1.0))
    many = pl.concat([bad.with_columns(segment=pl.lit(str(i))) for i in range(40)])
    with pytest.raises(fidm.DataError) as raised:
        fidm.make_cohort(**{**good(), "segments": many}, tasks=corridor())
    assert len(raised.value.problems) == 80
    assert "75 times more: duration_s" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 7


def test_a_segment_without_observations_needs_no_moves():
    segments = pl.DataFrame(
        {"participant": ["A", "B"], "segment": [1, 1], "n_moves": [None, 3], "duration_s": [None, 2.0]}
    )
    assert len(fidm.make_cohort(**{**good(), "segments": segments}, tasks=corridor())) == 2
    segments = segments.with_columns(duration_s=pl.Series([1.0, 2.0]))
    with pytest.raises(fidm.DataError, match="segments, row 1, A: n_moves"):
        fidm.make_cohort(**{**good(), "segments": segments}, tasks=corridor())


def test_worked_out_states_end_where_they_end():
    steps = good()["steps"].drop("state")
    assert fidm.make_cohort(steps=steps, tasks=corridor()).end_state.tolist() == [2, 2]


@pytest.mark.parametrize(
    "content",
    [
        b"participant;step;state;action\nJos\xc3\xa9;1;0;1\n",
        b"participant\tstep\tstate\taction\nJos\xc3\xa9\t1\t0\t1\n",
        "participant,step,state,action\nJosé,1,0,1\n".encode("latin-1"),
        "participant,step,state,action\nJosé,1,0,1\n".encode("utf-16"),
    ],
)
def test_what_spreadsheets_make_of_csv_is_read(tmp_path, content):
    (tmp_path / "steps.csv").write_bytes(content)
    assert fidm.read_cohort(tmp_path, tasks=corridor()).ids.to_list() == ["José"]


def test_a_row_with_too_many_cells_is_explained(tmp_path):
    (tmp_path / "steps.csv").write_bytes(b"participant,step,state,action\nA,1,0,1,5,6\n")
    with pytest.raises(fidm.DataError, match="as many cells as the first"):
        fidm.read_cohort(tmp_path, tasks=corridor())


def test_a_byte_order_mark_and_windows_lines_are_fine(tmp_path):
    (tmp_path / "steps.csv").write_bytes("\ufeffparticipant,step,state,action\r\nÄ,1,0,1\r\n".encode())
    assert fidm.read_cohort(tmp_path, tasks=corridor()).ids.to_list() == ["Ä"]


def test_tables_about_people_and_segments_may_be_pandas():
    whole = cohort()
    segments = tables_of(whole)["segments"]
    again = whole.with_segments(segments.drop("episode").to_pandas())
    assert again.segments["duration_s"].to_list() == whole.segments["duration_s"].to_list()
    assert whole.with_participants(whole.participants.to_pandas()).ids.to_list() == whole.ids.to_list()
    assert whole.select("P0000003").ids.to_list() == ["P0000003"]
    with pytest.raises(fidm.TaskError, match="drawn as a map"):
        fidm.write_cohort(whole, "anywhere", tasks=[task()])


# ---------------------------------------------------------------------- hostile tables


def test_times_must_be_seconds_not_durations():
    spoken = pl.Series([1_500_000, 2_000_000]).cast(pl.Duration("us"))
    with pytest.raises(fidm.DataError, match="'duration_s' of segments"):
        fidm.make_cohort(
            **{**good(), "segments": good()["segments"].with_columns(duration_s=spoken)}, tasks=corridor()
        )


@pytest.mark.parametrize("column", ["state", "step", "action"])
def test_numbers_too_large_are_problems_not_lost_rows(column):
    for huge in (1e19, 2**40):
        with pytest.raises(fidm.DataError, match=f"row 2, A: The {column} is not a whole number"):
            fidm.make_cohort(steps=with_step(1, **{column: huge}), tasks=corridor())


def test_columns_of_any_kind_are_read(tmp_path):
    tables = good()
    tables["segments"] = tables["segments"].with_columns(
        n_turns=pl.lit(None), n_characters=pl.Series(["3", "4"]).cast(pl.Categorical), _episode=pl.lit("x")
    )
    tables["steps"] = tables["steps"].with_columns(
        step=pl.col("step").cast(pl.String).cast(pl.Categorical),
        state=pl.col("state").cast(pl.Decimal(10, 2)),
    )
    made = fidm.make_cohort(**tables, tasks=corridor())
    assert made.state.tolist() == good()["steps"]["state"].to_list()
    assert made.segments["n_characters"].to_list() == [3, 4]
    assert "_episode" not in made.segments.columns


def test_words_in_the_place_of_a_header_stay_private(tmp_path):
    (tmp_path / "steps.csv").write_text("participant,step,state,action\nA,1,0,1\n")
    (tmp_path / "segments.csv").write_text("A,1,I went to the shop,3\nA,2,and then home,1\n")
    with pytest.raises(fidm.DataError) as raised:
        fidm.read_cohort(tmp_path, tasks=corridor())
    assert "shop" not in str(raised.value)
    assert "4 columns" in str(raised.value)


def test_the_order_of_rows_within_tables_changes_nothing():
    tasks = [fidm.load_task("errands"), fidm.load_task("grocery_small")]
    made = fidm.simulate_cohort(tasks, 8, seed=3)
    tables = tables_of(made)
    mixed = {name: table.sample(fraction=1, shuffle=True, seed=5) for name, table in tables.items()}
    mixed["participants"] = tables["participants"]
    again = fidm.make_cohort(**mixed, tasks=tasks)
    assert np.array_equal(again.state, made.state)
    assert again.segments.equals(made.segments.select(again.segments.columns))
    assert again.episodes["task"].to_list() == made.episodes["task"].to_list()


def test_all_parts_are_read_before_problems_are_reported(tmp_path):
    with StudyWriter(tmp_path / "study", tasks=["grocery"]) as writer:
        for first in (0, 3):
            writer.add(cohort()[first : first + 3])
    for part in ("part-00000", "part-00001"):
        path = tmp_path / "study" / "segments" / f"{part}.parquet"
        pl.read_parquet(path).with_columns(duration_s=pl.lit(-1.0)).write_parquet(path)
    with pytest.raises(fidm.DataError) as raised:
        fidm.read_cohort(tmp_path / "study")
    assert len(raised.value.problems) == cohort().n_segments
    assert "segments/part-00001, row 1" in str(raised.value.problems[-1]) or raised.value.problems[
        -1
    ].where.startswith("segments/part-00001")


def test_an_interrupted_replacement_brings_the_old_study_back(tmp_path, monkeypatch):
    fidm.write_cohort(cohort(), tmp_path / "study", tasks=["grocery"])
    real, calls = os.replace, []

    def fragile(source, target):
        calls.append(target)
        if len(calls) == 12:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", fragile)
    with pytest.raises(KeyboardInterrupt):
        fidm.write_cohort(cohort()[:2], tmp_path / "study", tasks=["grocery"], overwrite=True)
    monkeypatch.undo()
    assert len(calls) > 12
    assert len(fidm.read_cohort(tmp_path / "study")) == 6
    fidm.write_cohort(cohort()[:2], tmp_path / "study", tasks=["grocery"], overwrite=True)
    assert len(fidm.read_cohort(tmp_path / "study")) == 2


def test_tasks_from_arrays_are_kept_beside_the_tables(tmp_path):
    mazes = [maze(i) for i in range(3)]
    steps, episodes = walked(mazes, 2)
    made = fidm.make_cohort(steps=steps, episodes=episodes, tasks=mazes)
    study = tmp_path / "study"
    fidm.write_cohort(made, study, tasks=[mazes[0], "grocery", *mazes[1:]])
    assert Study(study).task_names == ("tasks/tasks.parquet", "grocery")
    names = [task.name for task in Study(study).load_tasks()]
    assert names == ["maze_000", "maze_001", "maze_002", "grocery"]
    assert np.array_equal(fidm.read_cohort(study).state, made.state)
    fidm.write_cohort(made[:1], study, tasks=mazes[:2], overwrite=True)
    assert [task.name for task in Study(study).load_tasks()] == ["maze_000", "maze_001"]


def test_tasks_that_cannot_be_kept_are_refused_before_anything_is_written(tmp_path):
    for tasks, said in (
        ([maze(1), maze(1)], "Several tasks are called"),
        ([fidm.load_task("errands")], "drawn as a map"),
        (maze(1), "must be a list"),
        ([3], "must be a list"),
    ):
        with pytest.raises(fidm.FidmError, match=said):
            fidm.write_cohort(cohort(), tmp_path / "study", tasks=tasks)
    fidm.save_tasks(tmp_path / "tasks.parquet", maze(1))
    with pytest.raises(fidm.DataError, match="the same name"):
        fidm.write_cohort(cohort(), tmp_path / "study", tasks=[tmp_path / "tasks.parquet", maze(2)])
    assert not (tmp_path / "study").exists()


def test_a_name_of_several_states_is_a_problem_and_numbers_still_do():
    names = ["here" if s in (1, 2) else f"s{s}" for s in range(16)]
    steps, episodes = walked([maze(1)], 2)
    task = maze(1, states=names)
    plain = fidm.make_cohort(steps=steps, episodes=episodes, tasks=maze(1))
    named = steps.with_columns(state=pl.Series([names[s] for s in plain.state.tolist()]))
    with pytest.raises(fidm.DataError, match="Several states of the task have this name") as error:
        fidm.make_cohort(steps=named, episodes=episodes, tasks=task)
    n_same = np.isin(plain.state, (1, 2)).sum()
    assert len([one for one in error.value.problems if "Several" in one.what]) == n_same > 0
    numbered = steps.with_columns(state=pl.Series(plain.state))
    made = fidm.make_cohort(steps=numbered, episodes=episodes, tasks=task)
    assert np.array_equal(made.state, plain.state)


def test_task_files_of_one_name_are_refused(tmp_path):
    files = [tmp_path / name / "task.toml" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text(fidm.builtin_text("errands"), "utf-8")
    with pytest.raises(fidm.DataError, match="the same name"):
        fidm.write_cohort(cohort(), tmp_path / "study", tasks=files)


def test_odd_ways_to_choose_people():
    assert len(cohort()[[]]) == 0
    with pytest.raises(fidm.DataError, match="with select"):
        cohort()["P0000001"]
    with pytest.raises(fidm.DataError, match="no participant 1 "):
        cohort().select([1])
    with pytest.raises(fidm.DataError, match="the column 'participant'"):
        cohort().with_participants(pl.DataFrame({"id": [1]}))


def test_what_looks_like_an_id_stays_text(tmp_path):
    """Of a table of participants, however it is read."""
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 3, seed=1)
    fidm.write_cohort(cohort, tmp_path / "study", tasks=["errands"])
    (tmp_path / "study" / "participants.parquet").unlink()
    ids = cohort.ids.to_list()
    rows = [
        f"{name},{site},{age},1e3,12345678901234567890"
        for name, site, age in zip(ids, ("007", "010", "12"), (70, 71, 72), strict=True)
    ]
    table = tmp_path / "study" / "participants.csv"
    table.write_text("\n".join(["participant,site,age,dose,card", *rows]) + "\n")
    people = fidm.read_cohort(tmp_path / "study").participants
    assert people["site"].to_list() == ["007", "010", "12"]
    assert people["age"].to_list() == [70, 71, 72]
    assert people["dose"].to_list() == [1000.0] * 3
    assert people["card"].to_list() == ["12345678901234567890"] * 3
    known = known_participants(tmp_path / "study")
    assert known.select(people.columns).equals(people)


def trials():
    """Three people with four, two and one trials of two tasks."""
    segments = pl.DataFrame(
        {
            "participant": ["A"] * 4 + ["B"] * 2 + ["C"],
            "episode": [1, 2, 3, 4, 1, 2, 1],
            "segment": [1] * 7,
            "words": [5, 6, 7, 8, 3, 4, 9],
        }
    )
    return fidm.Cohort.from_segments(segments)


def blocks(**more):
    keys = {"participant": ["B", "B", "A", "A", "A", "A", "C"], "episode": [2, 1, 1, 2, 3, 4, 1]}
    return pl.DataFrame(
        {**keys, "block": [2, 1, 1, 1, 2, 2, None], "late": [True, False] * 3 + [None], **more}
    )


def test_episodes_are_chosen_by_what_is_known_of_them():
    cohort = trials().with_episodes(blocks())
    assert cohort.episodes["block"].to_list() == [1, 1, 2, 2, 1, 2, None]
    late = cohort.where(block=2)
    assert late.ids.to_list() == ["A", "B", "C"]
    assert late.episode_keys()["episode"].to_list() == ["3", "4", "2"]
    assert late.segment_table()["words"].to_list() == [7, 8, 4]
    assert cohort.where(episode=[1, "2"], participant="A").n_episodes == 2
    assert cohort.where(late=True).n_episodes == cohort.where(pl.col("late")).n_episodes == 3
    assert cohort.where(pl.col("block").is_null()).segment_table()["words"].to_list() == [9]
    assert cohort.where(block=3).n_episodes == 0
    assert cohort.where().episode_keys().equals(cohort.episode_keys())


def test_parts_of_a_study_hold_every_step_once():
    tasks = [fidm.load_task("errands"), fidm.load_task("grocery_small")]
    both = fidm.simulate_cohort(tasks, 12, seed=2)
    parts = [both.where(task=name) for name in both.tasks]
    assert [part.tasks for part in parts] == [(name,) for name in both.tasks]
    assert sum(part.n_steps for part in parts) == both.n_steps
    assert sum(part.n_segments for part in parts) == both.n_segments
    fit = fidm.Model(tasks).fit(both)
    assert all(fit.profile(part).participants.equals(fit.profile(both).participants) for part in parts)
    one, other = (fit.profile(part).n[:, 0] for part in parts)
    assert (one + other == fit.profile(both).n[:, 0]).all()


def test_a_table_of_episodes_need_not_name_the_only_task():
    task = fidm.load_task("errands")
    tables = tables_of(fidm.simulate_cohort(task, 3, seed=1))
    about = tables["episodes"].drop("task").with_columns(block=pl.lit(2))
    read = fidm.make_cohort(**{**tables, "episodes": about}, tasks=task)
    assert read.tasks == ("errands",)
    assert read.episodes["block"].to_list() == [2, 2, 2]
    with pytest.raises(DataError, match="task"):
        fidm.make_cohort(**{**tables, "episodes": about}, tasks=[task, fidm.load_task("grocery_small")])


def test_a_table_of_episodes_names_each_once():
    with pytest.raises(DataError, match="lacks C, 1"):
        trials().with_episodes(blocks()[:6])
    with pytest.raises(DataError, match="names twice B, 2; it names, though nobody has them, D, 1"):
        odd = blocks()[:1].with_columns(participant=pl.lit("D"), episode=pl.lit(1, pl.Int64))
        trials().with_episodes(pl.concat([blocks(), blocks()[:1], odd]))
    with pytest.raises(DataError, match="column 'participant'"):
        trials().with_episodes(pl.DataFrame({"episode": [1]}))


def test_what_cannot_be_asked_of_episodes_says_so():
    with pytest.raises(DataError, match="no column 'blok'"):
        trials().with_episodes(blocks()).where(blok=1)
    with pytest.raises(DataError, match="cannot be asked"):
        trials().where(pl.col("nothing") > 1)


@functools.cache
def errands():
    return fidm.load_task("errands")


def trial_tables():
    """Steps and segments of eight people with three episodes each."""
    tables = tables_of(fidm.simulate_cohort(errands(), 24, seed=5))
    number = pl.col("participant").str.slice(1).cast(pl.Int64) - 1
    keys = {"participant": pl.format("P{}", number // 3 + 1), "episode": pl.format("{}", number % 3 + 1)}
    tables = {name: table.with_columns(**keys) for name, table in tables.items()}
    people = tables["participants"].select("participant").unique(maintain_order=True)
    return {**tables, "participants": people}


def spoilt(tables, wrong):
    """The tables with something wrong in these places, and for "steps" at the step of that number."""
    steps, segments = tables["steps"], tables["segments"]
    for who, episode, what, number in wrong:
        here = (pl.col("participant") == who) & (pl.col("episode") == episode)
        match what:
            case "action" | "state":
                cell = pl.when(here & (pl.col("step") == number)).then(-7).otherwise(pl.col(what)).alias(what)
                steps = steps.with_columns(cell.cast(pl.Int32))
            case "missing":
                steps = steps.filter(~(here & (pl.col("step") == number)))
            case "moves":
                one = here & (pl.col("segment") == str(number))
                segments = segments.with_columns(
                    n_moves=pl.when(one).then(-1).otherwise(pl.col("n_moves")).cast(pl.Int64)
                )
    return {**tables, "steps": steps, "segments": segments}


WRONG = [("P2", "1", "action", 9), ("P3", "2", "state", 6), ("P5", "3", "missing", 11), ("P6", "1", "moves", 2),
         ("P7", "1", "action", 1), ("P7", "2", "action", 4), ("P7", "3", "action", 4)]  # fmt: skip


def of(tables, **options):
    return fidm.make_cohort(**tables, tasks=errands(), **options)


def lengths(cohort):
    return dict(
        zip(
            cohort.episode_keys().select("participant", "episode").rows(),
            np.diff(cohort.step_offsets),
            strict=True,
        )
    )


@pytest.mark.parametrize("wrong", [WRONG, WRONG[:1], WRONG[2:4]])
def test_episodes_are_left_out_alone(wrong):
    whole, tables = of(trial_tables()), spoilt(trial_tables(), wrong)
    with pytest.raises(DataError, match="problem"):
        of(tables)
    found = of(tables, strict=False, skip="episode")
    bad = {(who, episode) for who, episode, _, _ in wrong}
    assert lengths(found) == {key: n for key, n in lengths(whole).items() if key not in bad}
    assert found.problems.equals(of(tables, strict=False).problems)
    assert found.ids.to_list() == [who for who in whole.ids if {(who, e) for e in "123"} - bad]
    assert fidm.Model(errands()).check(found) is found
    kept = whole.where(
        ~pl.struct("participant", "episode").is_in([{"participant": p, "episode": e} for p, e in bad])
    )
    assert found.segment_table().equals(kept.select(found.ids.to_list()).segment_table())


@pytest.mark.parametrize("wrong", [WRONG, WRONG[:1], WRONG[2:4]])
def test_episodes_are_cut_before_what_is_wrong(wrong):
    whole, tables = of(trial_tables()), spoilt(trial_tables(), wrong)
    found, before = of(tables, strict=False, skip="rest"), lengths(whole)
    first = {(who, episode): 0 if what == "moves" else n - 1 for who, episode, what, n in wrong}
    for key, n in lengths(found).items():
        assert n == before[key] if key not in first else 0 < n <= first[key]
        assert key not in first or n >= first[key] - 1  # the step before may be in doubt, too
    assert {key for key in before if key not in lengths(found)} == {key for key, n in first.items() if n == 0}
    assert fidm.Model(errands()).check(found) is found
    said, full = (one.segment_table().select("participant", "episode", "segment") for one in (found, whole))
    assert said.join(full, on=said.columns, how="anti").height == 0
    for who, episode in first:  # no segment costs what moves did that are gone
        moves = found.where(participant=who, episode=episode)
        assert moves.segments["n_moves"].sum() <= moves.n_steps


def test_what_is_skipped_has_to_be_skipped():
    with pytest.raises(DataError, match="nothing is left out without strict=False"):
        of(trial_tables(), skip="episode")
    with pytest.raises(DataError, match="skip is 'trial'"):
        of(trial_tables(), strict=False, skip="trial")
    for skip in ("participant", "episode", "rest"):
        sound = of(trial_tables(), strict=False, skip=skip)
        assert sound.segment_table().equals(of(trial_tables()).segment_table())


def test_segments_a_channel_cannot_use_take_their_episode():
    zero = (pl.col("participant") == "P4") & (pl.col("episode") == "2") & (pl.col("segment") == "1")
    read = of(trial_tables())
    read = read.with_segments(
        read.segment_table().with_columns(duration_s=pl.when(~zero).then(pl.col("duration_s")).otherwise(0.0))
    )
    model = fidm.Model(errands())
    with pytest.raises(DataError, match="duration_s is 0"):
        model.check(read)
    kept = model.check(read, strict=False, skip="episode")
    assert set(lengths(read)) - set(lengths(kept)) == {("P4", "2")}
    assert len(model.check(read, strict=False)) == len(read) - 1


def test_a_study_leaves_out_episodes(tmp_path):
    for name, table in spoilt(trial_tables(), WRONG).items():
        table.write_csv(tmp_path / f"{name}.csv")
    (tmp_path / "study.toml").write_text('schema = 1\ntasks = ["errands"]\n')
    found = fidm.read_cohort(tmp_path, strict=False, skip="episode")
    assert lengths(found) == lengths(of(spoilt(trial_tables(), WRONG), strict=False, skip="episode"))
    with pytest.raises(DataError, match="without strict=False"):
        fidm.read_cohort(tmp_path, skip="rest")
