"""``fidm ground learn``: a good's word that the task lacks is proposed, accepted by a person, and read from then on."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import polars as pl
import pytest

import fidm
from fidm import run
from fidm.cli.main import main
from fidm.defaults import RunOptions
from fidm.grounding.review.apply import read_proposed
from fidm.grounding.review.learn import FILE
from fidm.grounding.review.trail import Trail
from fidm.grounding.review.verdicts import decide, review_dialog
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import replay
from fidm.simulate.talk import Talks
from fidm.tasks.spec import builtin_text

LACKING = {"en": "bread", "yue": "麵包"}
N, N_REVIEWED = 12, 4


def simulated(language: str) -> Talks:
    return fidm.simulate_talks(fidm.load_task("grocery"), N, seed=2, language=language)


def study_of(folder: Path, talks: Talks, word: str) -> Path:
    """A study whose task lacks a word, and a reviewer who knows what the first people meant."""
    study = folder / "study"
    talks.write(study / "talks", formats=["csv"])
    text = builtin_text("grocery").replace('name = "grocery"', 'name = "shop"', 1)
    (study / "shop.toml").write_text(re.sub(f'"[^"]*{word}[^"]*", ?', "", text), "utf-8")
    (study / "study.toml").write_text('schema = 1\ntasks = ["shop.toml"]\n', "utf-8")
    assert main(["ground", str(study)]) == 0
    grounded, trail = read_proposed(study), Trail(study)
    terrain = grounded.terrain
    for dialog, programs in zip(grounded.dialogs[:N_REVIEWED], talks.programs, strict=False):
        for i, meant in enumerate(programs):
            segment = review_dialog(dialog, trail.decisions, terrain)[i]
            program = parse_program(meant, terrain.places)
            done = replay(program, terrain, segment.start, told=dialog.told)
            edit = None if done.actions == segment.replay.actions else (program, done)
            kind = "edit" if edit else "accept"
            trail.append(decide(dialog, segment, terrain, reviewer="Ann", kind=kind, edit=edit))
    return study


def read_right(study: Path, talks: Talks, word: str) -> tuple[int, int, int]:
    """Of the segments nobody reviewed: right ones, right ones with the word, and all with it."""
    grounded = read_proposed(study)
    terrain, right, with_word, n = grounded.terrain, 0, 0, 0
    for dialog, programs in list(zip(grounded.dialogs, talks.programs, strict=True))[N_REVIEWED:]:
        here = terrain.start()
        for one, meant in zip(dialog.segments, programs, strict=True):
            for phase in one.segment.opened:
                here = terrain.tell(here, phase, dialog.told)
            wanted = replay(parse_program(meant, terrain.places), terrain, here, told=dialog.told)
            got = replay(one.proposal.program, terrain, here, told=dialog.told)
            is_right, has_word = got.actions == wanted.actions, word in one.segment.text
            right, with_word, n = right + is_right, with_word + (is_right and has_word), n + has_word
            here = wanted.end
    return right, with_word, n


@pytest.mark.parametrize("language", ["en", "yue"])
def test_a_word_the_task_lacks_is_learned_and_read_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str
) -> None:
    word, talks = LACKING[language], simulated(language)
    study = study_of(tmp_path, talks, word)
    before = read_right(study, talks, word)
    assert before[1] < before[2] / 2
    capsys.readouterr()

    assert main(["ground", "learn", str(study)]) == 0
    said = capsys.readouterr().out
    assert "The file holds what participants said" in said
    assert "Nothing is in force yet" in said
    assert word not in said
    path = study / FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text("utf-8")
    entry = f'language = "{language}"\nphrase = "{word}"\nmeans = "bakery"\naccept = false\n'
    assert text.count("[[proposed]]") == 1
    assert entry in text

    (study / "grounding.toml").write_text(f'[rules]\nwords = "{FILE}"\n', "utf-8")
    assert main(["ground", str(study)]) == 0  # named, and nothing accepted
    assert read_right(study, talks, word) == before
    path.write_text(text.replace("accept = false", "accept = true"), "utf-8")
    assert main(["ground", str(study)]) == 0
    after = read_right(study, talks, word)
    assert after[1] == after[2]
    assert after[0] >= before[0] + before[2] - before[1]
    status = pl.read_parquet(study / "grounding" / "segments.parquet")["status"]
    assert (status == "reviewed").sum() > 0  # decisions hold: dialogs are cut as before
    assert Trail(study).decisions
    provenance = (study / "grounding" / "provenance.json").read_text("utf-8")
    assert json.loads(provenance)["words_sha256"]
    assert word not in provenance

    capsys.readouterr()
    assert main(["ground", "learn", str(study), "--out", str(study / "again.toml")]) == 0
    assert "0 proposals" in capsys.readouterr().out
    assert not (study / "again.toml").exists()


def test_json_files_that_are_there_and_folders_called_learn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(tmp_path, simulated("en"), "bread")
    capsys.readouterr()
    assert main(["ground", "learn", str(study), "--json"]) == 0
    said = capsys.readouterr().out
    assert "bread" not in said
    found = json.loads(said)
    assert found["wrote"] == [str(study / FILE)]
    assert (found["proposals"][0]["means"], found["proposals"][0]["n_participants"]) == ("bakery", 4)
    text = (study / FILE).read_bytes()
    assert main(["ground", "learn", str(study)]) == 2
    assert "--replace" in capsys.readouterr().err
    assert (study / FILE).read_bytes() == text
    assert main(["ground", "learn", str(study), "--replace"]) == 0
    assert (study / FILE).read_bytes() == text
    assert main(["ground", "learn", str(study), "--out", str(tmp_path / "out.toml")]) == 2
    assert "outside the study" in capsys.readouterr().err
    assert not (tmp_path / "out.toml").exists()

    study.rename(tmp_path / "learn")
    monkeypatch.chdir(tmp_path)
    assert main(["ground", "./learn"]) == 0
    assert main(["ground", "learn", "./learn", "--replace"]) == 0


def test_where_nobody_reviewed_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study"
    simulated("en").write(study / "talks", formats=["csv"])
    assert main(["ground", "learn", str(study)]) == 2
    assert "fidm ground" in capsys.readouterr().err
    assert main(["ground", str(study), "--task", "grocery"]) == 0
    assert main(["ground", "learn", str(study)]) == 2
    assert "fidm review" in capsys.readouterr().err


def test_a_changed_file_of_words_is_an_input_of_grounding(tmp_path: Path) -> None:
    simulated("en").write(tmp_path / "talks", formats=["csv"])
    (tmp_path / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    (tmp_path / "words.toml").write_text("format = 1\n", "utf-8")
    (tmp_path / "grounding.toml").write_text('[rules]\nwords = "words.toml"\n', "utf-8")
    line = run._Line(tmp_path, RunOptions(), lambda *_: None)
    assert tmp_path / "words.toml" in line.inputs("ground")
