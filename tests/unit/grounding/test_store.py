"""A grounding in a study folder: what is read back is what was written, and a study is never half new."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fidm
from fidm import files
from fidm.errors import DataError, FidmError, GroundingError
from fidm.grounding.base import Context, Proposal, Segment
from fidm.grounding.dialog import Settings, Weighing
from fidm.grounding.ground import Grounded, ground
from fidm.grounding.route.program import Instruction, parse_program
from fidm.grounding.store import (
    ANSWERS,
    has_grounding,
    known_participants,
    private_folder,
    read_grounding,
    write_grounding,
)
from fidm.io.study import StudyWriter, read_cohort
from fidm.io.talk import Transcript, Turn

TASK = fidm.load_task("grocery")
STEPS = (
    "state",
    "action",
    "weight",
    "segment",
    "inferred",
    "end_state",
    "step_offsets",
    "segment_offsets",
    "episode_offsets",
)


class Stub:
    """A grounder that takes what is said for a program; ``|`` sets readings apart, ``!`` is a doubt."""

    name = "stub"

    def provenance(self) -> Mapping[str, Any]:
        return {"grounder": "stub", "note": "Zürich 麵包"}

    def ground(self, segment: Segment, context: Context) -> Proposal:
        weighed = []
        for part in segment.text.rstrip("!").split("|"):
            said, _, p = part.partition("@")
            program = parse_program(said, context.terrain.places)
            spans = [
                Instruction(s.op, s.way, s.squares, s.to_end, s.place, (i, i + 2), 0.75)
                for i, s in enumerate(program)
            ]
            weighed.append((tuple(spans), float(p or 1)))
        return Proposal.of(weighed, ("odd", "vague") if segment.text.endswith("!") else (), "stub")

    def close(self) -> None: ...


def talk(*said: str, who: str = "P1", episode: str = "1", ask: bool = False) -> Transcript:
    turns = []
    for i, text in enumerate(said):
        turns.append(Turn("PAR", 3.0 * i, 3 * i + 1.25, text, "participant", line=2 * i + 1))
        turns.append(
            Turn("INV", 3 * i + 1.5, 3 * i + 2.0, "okay, I've moved you", "assessor", line=2 * i + 2)
        )
    if ask:
        turns.append(
            Turn("INV", 3.0 * len(said), 3.0 * len(said) + 1, "please also get some bread", "assessor")
        )
    return Transcript(who, tuple(turns), language="en", episode=episode, source=f"/somewhere/{who}.cha")


def made(*transcripts: Transcript, **more: Any) -> Grounded:
    return ground(transcripts, TASK, by=Stub(), **more)


def both(
    tmp_path: Path, *transcripts: Transcript, settings: Settings | None = None
) -> tuple[Grounded, Grounded]:
    grounded = made(*transcripts, settings=settings)
    write_grounding(tmp_path / "study", grounded, tasks=["grocery"])
    return grounded, read_grounding(tmp_path / "study", TASK, settings=settings)


def same_steps(one: fidm.Cohort, other: fidm.Cohort) -> None:
    for name in STEPS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.participants.equals(other.participants)
    assert one.episodes.equals(other.episodes)


def same_tables(one: Grounded, other: Grounded) -> None:
    assert one.segments.equals(other.segments)
    assert one.moves.equals(other.moves)
    assert one.checks.equals(other.checks)


PLAIN = ("MOVE left 1", "MOVE up 2!", "NONE", "GOTO meat; BUY meat", "MOVE left 1@0.7|GOTO seasoning@0.3")


# ------------------------------------------------------------------ there and back


def test_steps_and_tables_are_read_back(tmp_path: Path) -> None:
    one, other = both(
        tmp_path,
        talk(*PLAIN),
        talk("MOVE left 2", who="P2", episode="b"),
        talk("NONE", who="P2", episode="a"),
    )
    same_steps(one.cohort, other.cohort)
    same_tables(one, other)
    assert other.provenance["note"] == "Zürich 麵包"


def test_effort_is_read_back(tmp_path: Path) -> None:
    one, other = both(tmp_path, talk(*PLAIN))
    assert one.cohort.segments["duration_s"].null_count() == 0
    assert other.cohort.segments.equals(one.cohort.segments)


def test_draws_are_the_same_after_reading_back(tmp_path: Path) -> None:
    third = "MOVE left 1@1|GOTO seasoning@1|BUY meat@1"
    one, other = both(tmp_path, *(talk(third, *PLAIN, who=f"P{i}") for i in range(6)))
    for a, b in zip(one.draws(4, seed=2), other.draws(4, seed=2), strict=True):
        same_steps(a, b)
        assert a.segments.equals(b.segments)


def test_people_without_segments_keep_their_place(tmp_path: Path) -> None:
    silent = Transcript("P0", (Turn("INV", 0, 1, "hello", "assessor"),), language="en")
    one, other = both(tmp_path, silent, talk("MOVE left 1"), talk("MOVE left 1", who="P2"))
    assert other.cohort.ids.to_list() == one.cohort.ids.to_list() == ["P0", "P1", "P2"]
    same_steps(one.cohort, other.cohort)


def test_an_episode_without_segments_keeps_its_place(tmp_path: Path) -> None:
    first = Transcript("P1", (Turn("INV", 0, 1, "hello", "assessor"),), language="en", episode="1")
    one, other = both(tmp_path, first, talk("MOVE left 1", episode="2"))
    same_steps(one.cohort, other.cohort)


def test_a_dialog_without_any_turn_is_read_back(tmp_path: Path) -> None:
    one, other = both(tmp_path, Transcript("P0", (), language="en"), talk("MOVE left 1"))
    same_steps(one.cohort, other.cohort)


def test_a_phase_that_was_told_and_never_entered_is_read_back(tmp_path: Path) -> None:
    shopping = "BUY vegetables; BUY meat; BUY egg_tofu; BUY seasoning; GOTO START"
    one, other = both(tmp_path, talk(shopping, ask=True))
    assert one.dialogs[0].told == other.dialogs[0].told == {"bakery"}
    same_steps(one.cohort, other.cohort)


def test_untimed_turns_are_read_back(tmp_path: Path) -> None:
    turns = (Turn("PAR", math.nan, math.nan, "MOVE left 1", "participant"),)
    one, other = both(tmp_path, Transcript("P1", turns, language="en"))
    same_steps(one.cohort, other.cohort)
    assert not other.dialogs[0].transcript.turns[0].is_timed


def test_the_dialogs_are_read_back(tmp_path: Path) -> None:
    one, other = both(tmp_path, talk(*PLAIN))
    ours, theirs = one.dialogs[0], other.dialogs[0]
    assert [(t.speaker, t.role, t.text, t.start_s, t.end_s, t.line) for t in ours.transcript] == [
        (t.speaker, t.role, t.text, t.start_s, t.end_s, t.line) for t in theirs.transcript
    ]
    assert ours.kinds == theirs.kinds
    assert ours.language == theirs.language
    assert [s.segment for s in ours.segments] == [s.segment for s in theirs.segments]
    for field in ("readings", "grounder"):
        mine, read = ([getattr(s.proposal, field) for s in d.segments] for d in (ours, theirs))
        assert mine == read
    assert [(s.status, s.doubts) for s in ours.segments] == [(s.status, s.doubts) for s in theirs.segments]


def test_weights_follow_the_settings_when_read_back(tmp_path: Path) -> None:
    chosen = Settings(weighing=Weighing(doubtful=0.5, keep_talk=True))
    one, other = both(tmp_path, talk(*PLAIN), settings=chosen)
    same_steps(one.cohort, other.cohort)
    assert 0.5 in other.cohort.weight
    assert read_grounding(tmp_path / "study", TASK).cohort.weight.min() == 0


@pytest.mark.parametrize("language", ["en", "yue", "zh"])
def test_simulated_people_are_read_back(tmp_path: Path, language: str) -> None:
    talks = fidm.simulate_talks(TASK, 6, seed=2, language=language)
    one = fidm.ground(talks.transcripts, TASK)
    write_grounding(tmp_path, one, tasks=["grocery"])
    other = read_grounding(tmp_path, TASK)
    same_steps(one.cohort, other.cohort)
    same_tables(one, other)
    for a, b in zip(one.draws(1, seed=0), other.draws(1, seed=0), strict=True):
        same_steps(a, b)


def test_the_study_itself_is_the_cohort(tmp_path: Path) -> None:
    grounded = made(talk(*PLAIN), talk("MOVE left 1", who="P2"))
    write_grounding(tmp_path, grounded, tasks=["grocery"])
    cohort = read_cohort(tmp_path)
    assert cohort.problems.height == 0
    for name in STEPS:
        assert np.array_equal(getattr(cohort, name), getattr(grounded.cohort, name)), name
    for name in ("n_moves", "duration_s", "n_characters", "n_turns", "pause_s", "status"):
        assert cohort.segments[name].to_list() == grounded.cohort.segments[name].to_list()


# ------------------------------------------------------------------ participants


def test_the_table_of_participants_is_kept(tmp_path: Path) -> None:
    text = "participant,age,group\nP2,71,a\n007,80,b\nP1,66,\n"
    (tmp_path / "participants.csv").write_text(text, "utf-8")
    write_grounding(
        tmp_path,
        made(talk("MOVE left 1"), talk("MOVE left 2", who="P2"), talk("NONE", who="P3")),
        tasks=["grocery"],
    )
    cohort = read_cohort(tmp_path)
    assert cohort.participants.sort("participant").rows() == [
        ("007", 80, "b"), ("P1", 66, None), ("P2", 71, "a"), ("P3", None, None),
    ]  # fmt: skip
    assert cohort.n_episodes == 3
    assert (tmp_path / "participants.csv").read_text("utf-8") == text


def test_conditions_of_episodes_are_kept(tmp_path: Path) -> None:
    text = "participant,episode,task,visit\nP1,2,grocery,late\nP1,1,grocery,early\nP9,1,grocery,early\n"
    (tmp_path / "episodes.csv").write_text(text, "utf-8")
    dialogs = talk("MOVE left 1"), talk("MOVE left 2", episode="2"), talk("NONE", who="P2")
    for _ in range(2):  # the second time they are read from the study's own table
        write_grounding(tmp_path, made(*dialogs), tasks=["grocery"])
        episodes = read_cohort(tmp_path).episodes
        assert episodes.select("episode", "visit").rows() == [("1", "early"), ("2", "late"), ("1", None)]
    assert (tmp_path / "episodes.csv").read_text("utf-8") == text


def test_a_table_of_episodes_that_names_one_twice_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "episodes.csv").write_text("participant,visit\nP1,1\nP1,2\n", "utf-8")
    with pytest.raises(DataError, match="names an episode twice"):
        write_grounding(tmp_path, made(talk("MOVE left 1")), tasks=["grocery"])
    assert (tmp_path / "episodes.csv").exists()
    assert not has_grounding(tmp_path)


def test_people_without_dialogs_stay_when_it_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "participants.csv").write_text("participant,age\nP1,66\nP9,50\n", "utf-8")
    for dialogs in (
        (talk("MOVE left 1"),),
        (talk("MOVE left 1"), talk("NONE", who="P2")),
        (talk("MOVE left 2", who="P2"),),
    ):
        write_grounding(tmp_path, made(*dialogs), tasks=["grocery"])
    people = read_cohort(tmp_path).participants.sort("participant").rows()
    assert people == [("P1", 66), ("P2", None), ("P9", 50)]


def test_a_study_in_parts_keeps_its_participants(tmp_path: Path) -> None:
    with StudyWriter(tmp_path / "s", tasks=["grocery"]) as writer:
        for first in (0, 3):
            writer.add(fidm.simulate_cohort(TASK, 3, seed=1, first=first))
    people = known_participants(tmp_path / "s")
    assert people is not None
    assert people.height == 6
    write_grounding(tmp_path / "s", made(talk("MOVE left 1", who="P0000002")), tasks=["grocery"])
    cohort = read_cohort(tmp_path / "s")
    assert len(cohort) == 6
    assert "true_action_sensitivity" in cohort.participants.columns
    assert cohort.n_steps == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [("name,age\nP1,3\n", "no column 'participant'"), ("participant\nP1\nP1\n", "twice"), ("participant,a\nP1\nP2,3,4,5\n", "cannot|can be read")],
)  # fmt: skip
def test_a_table_of_participants_that_cannot_be_used_changes_nothing(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "participants.csv").write_text(text, "utf-8")
    with pytest.raises(DataError, match=said):
        write_grounding(tmp_path, made(talk("MOVE left 1")), tasks=["grocery"])
    assert (tmp_path / "participants.csv").read_text("utf-8") == text
    assert not has_grounding(tmp_path)
    assert not list((tmp_path / "grounding").iterdir())


def test_no_table_of_participants_is_none(tmp_path: Path) -> None:
    assert known_participants(tmp_path) is None


# ------------------------------------------------------------------ files


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_what_was_said(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        write_grounding(
            tmp_path, made(talk("MOVE left 1"), Transcript("P0", (), language="en")), tasks=["grocery"]
        )
    finally:
        os.umask(before)
    folder = tmp_path / "grounding"
    assert mode(folder) == 0o700
    assert {file.name: mode(file) for file in folder.iterdir()} == dict.fromkeys(
        (
            "segments.parquet", "moves.parquet", "turns.parquet", "dialogs.parquet", "provenance.json",
            "problems.csv",
        ),
        0o600,
    )  # fmt: skip


def test_an_open_folder_is_closed(tmp_path: Path) -> None:
    (tmp_path / "grounding").mkdir(mode=0o755)
    assert mode(private_folder(tmp_path)) == 0o700


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "grounding").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        private_folder(tmp_path)


def test_words_are_in_one_file_alone(tmp_path: Path) -> None:
    write_grounding(tmp_path, made(talk("MOVE left 1")), tasks=["grocery"])
    turns = pl.read_parquet(tmp_path / "grounding" / "turns.parquet")
    assert turns["text"].to_list() == ["MOVE left 1", "okay, I've moved you"]
    dialogs = pl.read_parquet(tmp_path / "grounding" / "dialogs.parquet")
    assert dialogs["source"].to_list() == ["P1.cha"]
    for name in ("segments", "moves", "dialogs"):
        assert "okay" not in str(pl.read_parquet(tmp_path / "grounding" / f"{name}.parquet").rows())


def test_problems_appear_and_disappear(tmp_path: Path) -> None:
    problems = tmp_path / "grounding" / "problems.csv"
    good, bad = talk("MOVE left 1"), Transcript("P0", (), language="en")
    write_grounding(tmp_path, made(good), tasks=["grocery"])
    assert not problems.exists()
    write_grounding(tmp_path, made(good, bad), tasks=["grocery"])
    assert "No moves were read." in problems.read_text("utf-8")
    unread = pl.DataFrame(
        [("P7.cha", 3, "P7", "The turn has no times.", "")],
        schema=fidm.cohort.PROBLEM_SCHEMA, orient="row",
    )  # fmt: skip
    write_grounding(tmp_path, made(good, bad), tasks=["grocery"], problems=unread)
    assert pl.read_csv(problems)["participant"].to_list() == ["P7", "P0"]
    write_grounding(tmp_path, made(good), tasks=["grocery"], problems=unread.clear())
    assert not problems.exists()


def test_answers_and_audit_sheets_stay(tmp_path: Path) -> None:
    folder = private_folder(tmp_path)
    for name in (ANSWERS, "audit-1.csv"):
        (folder / name).write_text("kept")
    for _ in range(2):
        write_grounding(tmp_path, made(talk("MOVE left 1")), tasks=["grocery"])
    assert (folder / ANSWERS).read_text() == (folder / "audit-1.csv").read_text() == "kept"


def test_writing_again_replaces_everything(tmp_path: Path) -> None:
    write_grounding(tmp_path, made(talk("MOVE left 1"), talk("MOVE left 2", who="P2")), tasks=["grocery"])
    write_grounding(tmp_path, made(talk("MOVE left 3")), tasks=["grocery"])
    assert read_grounding(tmp_path, TASK).cohort.n_steps == 3
    assert read_cohort(tmp_path).n_steps == 3
    provenance = json.loads((tmp_path / "grounding" / "provenance.json").read_text("utf-8"))
    assert (provenance["n_steps"], provenance["n_segments"]) == (3, 1)


# ------------------------------------------------------------------ whole or not at all


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.mark.parametrize(
    "failing", [(StudyWriter, "add"), (StudyWriter, "__enter__"), (StudyWriter, "_finish"), (files, "_swap")]
)
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), DataError("no."), KeyboardInterrupt()]
)
def test_a_failure_leaves_the_old_study_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: tuple[Any, str], error: BaseException
) -> None:
    study = tmp_path / "study"
    write_grounding(study, made(talk("MOVE left 1"), Transcript("P0", (), language="en")), tasks=["grocery"])
    before = everything(tmp_path)

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(*failing, fail)
    with pytest.raises((FidmError, KeyboardInterrupt)):
        write_grounding(study, made(talk("MOVE left 2")), tasks=["grocery"])
    assert everything(tmp_path) == before
    monkeypatch.undo()
    assert read_grounding(study, TASK).cohort.n_steps == 1


def test_a_failure_while_files_are_swapped_brings_the_tables_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tmp_path / "study"
    write_grounding(study, made(talk("MOVE left 1")), tasks=["grocery"])
    before = everything(tmp_path)
    replace, calls = os.replace, [0]

    def fail(old: Any, new: Any) -> None:
        calls[0] += 1
        if calls[0] == 11:
            raise OSError(5, "Input/output error")
        replace(old, new)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(DataError, match="cannot be written"):
        write_grounding(study, made(talk("MOVE left 2")), tasks=["grocery"])
    assert calls[0] >= 11
    assert everything(tmp_path) == before


def test_a_failure_after_the_tables_is_noticed_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only some of grounding/ is new, nobody may take it for whole."""
    study = tmp_path / "study"
    write_grounding(study, made(talk("MOVE left 1")), tasks=["grocery"])
    replace = os.replace

    def fail(old: Any, new: Any) -> None:
        if Path(new).name == "turns.parquet":
            raise OSError(5, "Input/output error")
        replace(old, new)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(DataError, match="cannot be written"):
        write_grounding(study, made(talk("MOVE left 2", "MOVE up 1")), tasks=["grocery"])
    monkeypatch.undo()
    try:
        again = read_grounding(study, TASK).cohort
    except FidmError:
        return
    assert again.n_steps == read_cohort(study).n_steps
    assert again.n_segments == read_cohort(study).n_segments


def test_a_first_grounding_that_fails_leaves_no_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StudyWriter, "add", fail)
    with pytest.raises(DataError, match="No space left"):
        write_grounding(tmp_path, made(talk("MOVE left 1")), tasks=["grocery"])
    assert everything(tmp_path) == {}


# ------------------------------------------------------------------ what cannot be read


def test_another_version_of_the_task_is_refused(tmp_path: Path) -> None:
    write_grounding(tmp_path, made(talk("MOVE left 1")), tasks=["grocery"])
    with pytest.raises(GroundingError, match="another version"):
        read_grounding(tmp_path, fidm.load_task("grocery_small"))
    changed = fidm.compile_task(
        fidm.parse_task(fidm.builtin_text("grocery").replace("gamma = 0.98", "gamma = 0.97"))
    )
    with pytest.raises(GroundingError, match="another version"):
        read_grounding(tmp_path, changed)


def test_a_study_without_a_grounding_says_what_to_do(tmp_path: Path) -> None:
    assert not has_grounding(tmp_path)
    with pytest.raises(GroundingError, match="Run: fidm ground"):
        read_grounding(tmp_path, TASK)


@pytest.mark.parametrize("name", ["segments.parquet", "turns.parquet", "provenance.json"])
@pytest.mark.parametrize("damage", ["empty", "rubbish", "gone"])
def test_damaged_files_are_a_sentence(tmp_path: Path, name: str, damage: str) -> None:
    write_grounding(tmp_path, made(talk("MOVE left 1")), tasks=["grocery"])
    file = tmp_path / "grounding" / name
    file.unlink() if damage == "gone" else file.write_bytes(b"" if damage == "empty" else b"\xff\xfe rubbish")
    with pytest.raises(GroundingError, match="fidm ground"):
        read_grounding(tmp_path, TASK)
