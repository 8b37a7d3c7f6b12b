"""``fidm transcribe``: a folder of recordings, resumed, with all that went wrong, and the next step."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fidm.cli.main import main

SOUND = Path(__file__).parents[1] / "data" / "recordings"
LISTEN = ["--engine", "pocketsphinx", "--language", "en"]


@pytest.fixture
def study(tmp_path):
    (tmp_path / "study" / "audio").mkdir(parents=True)
    shutil.copy(SOUND / "talk.wav", tmp_path / "study" / "audio" / "P1.wav")
    voices = (
        (SOUND / "talk.rttm").read_text("utf-8").replace("SPEAKER_00", "PAR").replace("SPEAKER_01", "INV")
    )
    (tmp_path / "P1.rttm").write_text(voices, "utf-8")
    return tmp_path / "study"


def test_recordings_become_talks_beside_them_and_the_next_step_is_named(study, capsys):
    assert main(["transcribe", str(study / "audio"), *LISTEN]) == 0
    said = capsys.readouterr().out
    assert f"Wrote 1 transcript to {study / 'talks'}" in said
    assert "Speakers are not told apart in 1 recording: P1.wav." in said
    assert said.splitlines()[-1] == f"Next: fidm start {study}"
    assert "squares" not in said
    (study / "audio" / "P2.wav").write_text("nothing", "utf-8")
    assert main(["transcribe", str(study / "audio"), *LISTEN]) == 1
    both = capsys.readouterr()
    assert "Wrote 0 transcripts" in both.out
    assert "1 were there already (--again replaces them)" in both.out
    assert "1 recording could not be transcribed." in both.err
    assert "P2.wav: " in both.err


def test_with_speakers_the_study_can_be_started(study, tmp_path, capsys):
    asked = ["transcribe", str(study / "audio" / "P1.wav"), *LISTEN, "--speakers", str(tmp_path), "--json"]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "written": [str(study / "talks" / "P1.json")],
        "kept": [], "undiarised": [], "standard": [], "bare": [], "untimed": [], "problems": [],
    }  # fmt: skip
    assert (
        main(["start", str(study), "--task", "grocery", "--yes"]) == 1
    )  # it asks: is so little about the way?
    capsys.readouterr()
    assert main(["ground", str(study), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["forecast"]["actions"] == 2


def test_where_nothing_can_be_written_the_exit_code_says_so(study, tmp_path, capsys):
    (study / "audio" / "P1.wav").write_text("nothing", "utf-8")
    assert main(["transcribe", str(study / "audio"), *LISTEN]) == 2
    assert "No recording could be transcribed." in capsys.readouterr().err
    assert not (study / "talks").exists()
    assert main(["transcribe", str(study / "audio"), "--engine", "pocket"]) == 2
    assert "There is no transcriber 'pocket'. Did you mean pocketsphinx?" in capsys.readouterr().err
    assert main(["transcribe", str(tmp_path / "none"), *LISTEN]) == 2
    assert "no such file or folder" in capsys.readouterr().err
