"""Whose left and right people mean is told by what can be walked."""

from __future__ import annotations

import pytest

import fidm
from fidm.grounding.dialog import Settings
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.store import read_grounding, write_grounding
from fidm.io.talk import Transcript, Turn

TASK = fidm.load_task("grocery")

SAID = {
    "": (
        "go left one square and up three squares",
        "go left four squares, then up four squares and take the meat",
        "go up three squares, left three squares and take the bread",
        "turn left and go seven squares",
        "turn right and go three squares",
    ),
    "listener": (
        "go right one square and down three squares",
        "go right four squares, then down four squares and take the meat",
        "go down three squares, right three squares and take the bread",
        "go right six squares",
        "go up seven squares",
    ),
    "map": (
        "go left one square and up three squares",
        "go left four squares, then up four squares and take the meat",
        "go down four squares",
        "turn left and go one square",
        "turn left and go two squares",
        "turn right and go one square",
        "turn left and go three squares",
        "turn left and go one square",
    ),
    "walker": (
        "go left one square",
        "go right three squares",
        "go left four squares",
        "go right four squares and take the meat",
        "go ahead three squares",
        "go left three squares and take the bread",
        "go left seven squares",
        "go right three squares",
    ),
}


def talk(said: tuple[str, ...], who: str = "P1") -> Transcript:
    turns = []
    for i, text in enumerate(said):
        turns.append(Turn("PAR", 3.0 * i, 3 * i + 1.0, text, "participant"))
        turns.append(Turn("INV", 3 * i + 1.5, 3 * i + 2.0, "okay, I've moved you", "assessor"))
    return Transcript(who, tuple(turns), language="en")


@pytest.mark.parametrize("frame", list(SAID))
def test_the_frame_in_which_it_can_be_walked_is_taken(frame: str) -> None:
    found = fidm.ground([talk(SAID[frame])], TASK)
    assert found.dialogs[0].frame == frame
    assert (found.segments["status"] == "confident").mean() > 0.6
    assert found.checks.height == 0


def test_a_frame_that_is_set_is_kept() -> None:
    fixed = fidm.ground([talk(SAID["listener"])], TASK, by=Rules(turns="walker", sides="map"))
    assert fixed.dialogs[0].frame == ""
    assert (fixed.segments["status"] == "needs_review").sum() > 1
    told = fidm.ground([talk(SAID["listener"])], TASK, by=Rules(turns="walker", sides="listener"))
    assert (told.segments["status"] == "confident").mean() > 0.7
    assert told.dialogs[0].frame == ""


def test_one_slip_changes_no_frame() -> None:
    said = (*SAID[""][:2], "go left one square", *SAID[""][2:])  # into a shelf
    assert fidm.ground([talk(said)], TASK).dialogs[0].frame == ""


def test_compass_words_are_the_maps_whoever_listens() -> None:
    said = ("go west one square and north three squares", *SAID["listener"][1:])
    found = fidm.ground([talk(said)], TASK, by=Rules(turns="walker", sides="listener"))
    assert found.segments["program"][0] == "MOVE left 1; MOVE up 3"


def test_simulated_people_speak_in_the_usual_frame() -> None:
    talks = fidm.simulate_talks(TASK, 30, seed=4, language="en")
    found = fidm.ground(talks.transcripts, TASK)
    assert {dialog.frame for dialog in found.dialogs} == {""}


def test_the_frame_is_kept_with_the_study(tmp_path) -> None:
    found = fidm.ground([talk(SAID["listener"]), talk(SAID[""], "P2")], TASK)
    write_grounding(tmp_path, found, tasks=["grocery"])
    again = read_grounding(tmp_path, TASK)
    assert [dialog.frame for dialog in again.dialogs] == ["listener", ""]
    assert Settings().language == again.settings.language
