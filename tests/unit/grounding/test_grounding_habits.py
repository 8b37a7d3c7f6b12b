"""Habits of transcripts that once gave wrong moves or counts."""

from __future__ import annotations

import math

import pytest

import fidm
from fidm.cli.main import main
from fidm.errors import GroundingError
from fidm.grounding.review.apply import bring_up_to_date
from fidm.grounding.segment import Counting, measure
from fidm.io.talk import Transcript, Turn, Word

HEAD = "@UTF8\n@Begin\n@Languages:\teng\n@Participants:\tPAR Participant, INV Investigator\n"
IDS = "@ID:\teng|x|PAR|||||Participant|||\n@ID:\teng|x|INV|||||Investigator|||\n"


def actions(tmp_path, line):
    file = tmp_path / "P1.cha"
    file.write_text(f"{HEAD}{IDS}*PAR:\t{line} \x150_3000\x15\n@End\n", "utf-8")
    task = fidm.load_task("grocery")
    grounded = fidm.ground(fidm.read(file), task)
    return "".join(task.actions[action] for action in grounded.cohort.action)


@pytest.mark.parametrize(
    ("line", "moves"),
    [
        ("<left three squares> [//] left one square .", "W"),
        ("left one square <up one> [/] up two squares .", "WNN"),
        ("lef(t) one square .", "W"),
        ("wight [: left] one square .", "W"),
        ("left tree [: three] squares .", "WWW"),
    ],
)
def test_chat_marks_do_not_become_moves(tmp_path, line, moves):
    assert actions(tmp_path, line) == moves


def test_nobody_pauses_while_somebody_else_speaks():
    turns = (
        Turn("PAR", 0.0, 3.0, "left one", role="participant"),
        Turn("X", 3.1, 4.9, "excuse me", role="other"),
        Turn("PAR", 5.0, 6.0, "up two", role="participant"),
    )
    effort = measure(Transcript("P1", turns), (0, 1, 2), Counting())
    assert effort.pause_s == 0
    assert effort.n_turns == 1


def test_a_word_without_a_time_is_no_silence():
    words = (Word(0, 4, 1.0, 2.4), Word(5, 6, math.nan, math.nan), Word(7, 13, 3.5, 4.0))
    turn = Turn("PAR", 1.0, 4.0, "left 1 square", role="participant", words=words)
    effort = measure(Transcript("P1", (turn,)), (0,), Counting())
    assert (effort.pause_s, effort.duration_s) == (0, 3)


def test_a_table_of_participants_given_as_csv_is_kept(tmp_path):
    study = tmp_path / "study"
    talks = fidm.simulate_talks(fidm.load_task("grocery"), 3, seed=1, language="en")
    talks.write(study / "talks", formats=("csv",))
    given = "participant,age\n" + "".join(f"{name},70\n" for name in talks.cohort.ids)
    (study / "participants.csv").write_text(given)
    assert main(["ground", str(study), "--task", "grocery"]) == 0
    assert (study / "participants.csv").read_text() == given
    (study / "participants.csv").write_text(given.replace("70", "71"))  # corrected later
    bring_up_to_date(study)
    assert fidm.read_cohort(study).participants["age"].unique().to_list() == [71]
    assert bring_up_to_date(study) is None


def test_what_is_handed_in_wrongly_is_said_in_words():
    task = fidm.load_task("grocery")
    one = Transcript("P1", (Turn("PAR", 0, 1, "left one square", role="participant"),))
    assert len(fidm.ground(one, task).cohort) == 1
    for arguments, more in (((one, "grocery"), {}), (([one], task), {"by": "rules"}), (("talks", task), {})):
        with pytest.raises(GroundingError, match=r"TaskModel|grounder|transcripts"):
            fidm.ground(*arguments, **more)


def test_files_nobody_can_read_are_counted(tmp_path, capsys):
    study = tmp_path / "study"
    fidm.simulate_talks(fidm.load_task("grocery"), 2, seed=1).write(study / "talks", formats=("csv",))
    (study / "talks" / "P9.docx").write_text("x")
    assert main(["ground", str(study), "--task", "grocery"]) == 0
    assert "1 file left out: in no known format" in capsys.readouterr().out
