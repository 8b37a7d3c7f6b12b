"""``fidm simulate``: a whole study with a known truth, from the first line to the fit and back."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.errors import DataError
from fidm.files import contents
from fidm.io.dialogs import read
from fidm.io.study import Study
from fidm.present.experiments import say_left_out
from fidm.simulate import twin
from fidm.simulate.people import NOT_COMPLETED
from fidm.simulate.talk import SEVEN_FORMATS, formats_here
from fidm.simulate.twin import simulate_study

MANY_OUT = twin.Clinic(excluded_share=0.15)
"""So that small studies have people who did not complete."""


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def talking(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twin") / "study"
    made = simulate_study(folder, n=14, seed=3, clinic=MANY_OUT)
    return folder, made


def test_the_whole_study_of_the_paper(tmp_path, capsys):
    assert main(["simulate", str(tmp_path / "study"), "--no-dialogs", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    result = said["result"]
    assert (said["experiment"], said["seed"], said["settings"]["people"]) == ("simulate", 1, 402)
    assert (result["participants"], result["train"], result["test"]) == (400, 332, 68)
    assert result["excluded"] == {NOT_COMPLETED: 2}
    assert [sum(row.values()) - row["excluded"] for row in result["diagnoses"].values()] == [252, 124, 24]
    assert json.loads((tmp_path / "study" / "simulation.json").read_text("utf-8")) == said
    cohort = fidm.read_cohort(tmp_path / "study")
    assert len(cohort) == 400
    assert (len(cohort.split("train")), len(cohort.split("test"))) == (332, 68)
    assert cohort.n_steps == result["actions"]
    assert cohort.n_segments == result["segments"]
    assert not [name for name in cohort.participants.columns if name.startswith("true_")]
    truth = pl.read_parquet(tmp_path / "study" / "truth" / "participants.parquet")
    assert truth.height == 402
    assert {"diagnosis", "true_duration", "true_pause_presence"} <= set(truth.columns)
    assert main(["fit", str(tmp_path / "study")]) == 0
    assert "2 participants excluded" in capsys.readouterr().out


@pytest.mark.parametrize("n", [1, 2, 5, 17])
@pytest.mark.parametrize("agent", ["walker", "model"])
def test_small_studies(tmp_path, n, agent):
    made = simulate_study(tmp_path / "study", n=n, agent=agent, task="grocery_small")
    assert len(fidm.read_cohort(tmp_path / "study")) == n == made.n_people
    assert len(read(tmp_path / "study" / "talks")) == n


def test_the_same_seed_gives_the_same_bytes_and_another_other_people(tmp_path):
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        simulate_study(tmp_path / name, n=9, seed=seed, clinic=MANY_OUT)
    one, same, other = (hashes(tmp_path / name) for name in ("one", "same", "other"))
    assert one == same
    assert one.keys() == other.keys()
    assert not [name for name in one if "talks" in name and one[name] == other[name]]


@pytest.mark.parametrize("dialogs", [True, False])
def test_people_do_not_depend_on_the_parts_they_are_written_in(tmp_path, dialogs, monkeypatch):
    simulate_study(tmp_path / "whole", n=23, clinic=MANY_OUT, dialogs=dialogs)
    monkeypatch.setattr(twin, "TALKING_AT_A_TIME", 3)
    monkeypatch.setattr(twin, "AT_A_TIME", 4)
    simulate_study(tmp_path / "parts", n=23, clinic=MANY_OUT, dialogs=dialogs, people_per_part=8)
    assert Study(tmp_path / "parts").n_parts == 3
    for folder in (".", "truth") if dialogs else (".",):
        for table in ("participants", "episodes", "steps", "segments"):
            whole = pl.read_parquet(tmp_path / "whole" / folder / f"{table}.parquet")
            assert pl.read_parquet(tmp_path / "parts" / folder / table / "*.parquet").equals(whole)
    truth = pl.read_parquet(tmp_path / "parts" / "truth" / "participants" / "*.parquet")
    assert truth.equals(pl.read_parquet(tmp_path / "whole" / "truth" / "participants.parquet"))
    if dialogs:
        assert hashes(tmp_path / "parts" / "talks") == hashes(tmp_path / "whole" / "talks")


def test_dialogs_are_written_in_every_format_and_can_be_read(talking):
    folder, made = talking
    assert dict(made.dialogs) == dict.fromkeys(SEVEN_FORMATS, 2)
    dialogs = read(folder / "talks")
    assert [item.format for item in dialogs][:7] == list(SEVEN_FORMATS)
    people = pl.read_parquet(folder / "participants.parquet")
    assert [item.participant for item in dialogs] == people["participant"].to_list()


@pytest.mark.parametrize("format", SEVEN_FORMATS)
def test_one_format_for_all(tmp_path, format):
    made = simulate_study(tmp_path / "study", n=2, task="grocery_small", formats=(format,), language="en")
    assert dict(made.dialogs) == {format: 2}
    assert {item.format for item in read(tmp_path / "study" / "talks")} == {format}


def test_the_study_says_what_was_truly_done_and_the_truth_says_more(talking):
    folder, _ = talking
    study, truth = fidm.read_cohort(folder), fidm.read_cohort(folder / "truth")
    assert study.ids.equals(truth.ids)
    assert (study.state == truth.state).all()
    assert study.segments.equals(truth.segments)
    extra = set(truth.participants.columns) - set(study.participants.columns)
    assert extra == {name for name in truth.participants.columns if name.startswith("true_")} != set()


def test_whoever_is_excluded_broke_off(talking):
    folder, made = talking
    out = Study(folder).excluded()
    assert out.height == 2 == made.reasons[NOT_COMPLETED]
    ends = pl.read_parquet(folder / "episodes.parquet")["end_state"]
    people = pl.read_parquet(folder / "participants.parquet")
    broke_off = people["excluded"].is_not_null()
    task = fidm.load_task("grocery")
    last = ends.filter(broke_off).to_numpy()
    assert (np.diff(task.offsets)[last] > 0).all()  # more could have been done
    assert people["split"].filter(broke_off).null_count() == 2
    assert people["score_total"].filter(broke_off).null_count() == 2
    steps = pl.read_parquet(folder / "steps.parquet").group_by("participant").len()
    lengths = dict(steps.iter_rows())
    others = [n for name, n in lengths.items() if name not in out["participant"].to_list()]
    assert max(lengths[name] for name in out["participant"]) < np.median(others)


def test_grounding_the_dialogs_gives_back_the_truth(tmp_path, capsys):
    folder = tmp_path / "study"
    simulate_study(folder, n=14, seed=3, clinic=MANY_OUT)
    assert main(["ground", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["dialogs"] == 14
    assert said["excluded"] == {NOT_COMPLETED: 2}
    read_back, truth = fidm.read_cohort(folder), fidm.read_cohort(folder / "truth")
    assert len(read_back) == len(truth) == 12
    # written down before the run: three quarters of the people exactly, lengths within 5 %
    same = [
        [trace.action.tolist() for trace in read_back.traces(name)]
        == [trace.action.tolist() for trace in truth.traces(name)]
        for name in truth.ids
    ]
    assert np.mean(same) >= 0.75
    assert abs(read_back.n_steps - truth.n_steps) <= 0.05 * truth.n_steps
    assert read_back.participants["diagnosis"].to_list() == truth.participants["diagnosis"].to_list()
    assert main(["fit", str(folder), "--split", "all", "--json"]) == 0
    fitted = json.loads(capsys.readouterr().out)
    assert fitted["participants"] == 12
    assert fitted["excluded"] == {NOT_COMPLETED: 2}
    assert main(["ground", str(folder)]) == 0
    assert "2 participants excluded" in capsys.readouterr().out


def test_a_task_file_is_copied_into_the_study(tmp_path):
    assert main(["task", "copy", "errands", str(tmp_path / "mine.toml")]) == 0
    simulate_study(tmp_path / "study", task=tmp_path / "mine.toml", n=5, dialogs=False)
    assert (tmp_path / "study" / "tasks" / "mine.toml").exists()
    assert len(fidm.read_cohort(tmp_path / "study")) == 5


# ---------------------------------------------------------------------- what is there stays


def test_a_folder_that_is_not_ours_is_never_replaced(tmp_path, capsys):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("precious", "utf-8")
    for extra in ([], ["--overwrite"]):
        assert main(["simulate", str(mine), "--people", "2", "--no-dialogs", *extra]) == 2
        assert (mine / "notes.txt").read_text("utf-8") == "precious"
    assert "no simulated study" in capsys.readouterr().err
    (mine / "simulation.json").write_text('{"experiment": "other"}', "utf-8")
    assert main(["simulate", str(mine), "--people", "2", "--no-dialogs", "--overwrite"]) == 2
    (mine / "simulation.json").write_text("[1]", "utf-8")
    assert main(["simulate", str(mine), "--people", "2", "--no-dialogs", "--overwrite"]) == 2
    file = tmp_path / "file"
    file.write_text("x", "utf-8")
    assert main(["simulate", str(file), "--people", "2"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine"]


def test_our_own_is_replaced_only_if_asked(tmp_path, capsys):
    folder = tmp_path / "study"
    assert main(["simulate", str(folder), "--people", "4", "--no-dialogs"]) == 0
    before = hashes(folder)
    assert main(["simulate", str(folder), "--people", "5", "--no-dialogs"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert hashes(folder) == before
    assert main(["simulate", str(folder), "--people", "5", "--no-dialogs", "--overwrite"]) == 0
    assert len(fidm.read_cohort(folder)) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["study"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_nothing_is_left_behind_when_it_is_interrupted(tmp_path, monkeypatch, error):
    simulate_study(tmp_path / "old", n=3, dialogs=False)
    before = hashes(tmp_path)

    def stop(*_, **__):
        raise error

    monkeypatch.setattr(twin, "write_dialog", stop)
    for name, overwrite in (("old", True), ("new", False)):
        with pytest.raises((KeyboardInterrupt, DataError)):
            simulate_study(tmp_path / name, n=3, overwrite=overwrite)
    assert hashes(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_an_older_study_comes_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    simulate_study(tmp_path / "old", n=3, dialogs=False)
    before = hashes(tmp_path)
    really = os.replace

    def refuse(source, target):
        if Path(target) == tmp_path / "old" / "study.toml" and Path(source).parent.name == "new":
            raise OSError(13, "Permission denied")
        really(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        simulate_study(tmp_path / "old", n=4, dialogs=False, overwrite=True)
    assert hashes(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_the_folder_one_is_in_and_links_are_refused(tmp_path, capsys, monkeypatch):
    few = ["--people", "2", "--no-dialogs"]
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    before = here.stat().st_ino
    for name in (".", str(here), "../here"):
        assert main(["simulate", name, *few]) == 2
        assert "Name a new one" in capsys.readouterr().err
    assert here.stat().st_ino == before
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "here", *few]) == 0
    monkeypatch.chdir(here / "truth")
    assert main(["simulate", str(here), *few, "--overwrite"]) == 2
    assert "the folder you" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("here")
    (tmp_path / "nowhere").symlink_to("absent")
    for name in ("link", "nowhere"):
        assert main(["simulate", name, *few, "--overwrite"]) == 2
        assert "is a link" in capsys.readouterr().err
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "link", "nowhere"]


KILLED = """
import os, signal, sys
from pathlib import Path
from fidm.simulate.twin import simulate_study
really, when = os.replace, sys.argv[2]
def replace(source, target):
    is_last = Path(target).name == "done" and Path(target).parents[1] == Path(sys.argv[1])
    if when == "before" or is_last:
        os.kill(os.getpid(), signal.SIGKILL)
    really(source, target)
os.replace = replace
simulate_study(sys.argv[1], n=2, dialogs=False, overwrite=True)
"""


def killed(target, when):
    done = subprocess.run([sys.executable, "-c", KILLED, str(target), when], check=False)
    assert done.returncode < 0


def test_what_a_killed_process_left_is_put_back_or_removed(tmp_path, capsys):
    target = tmp_path / "study"
    simulate_study(target, n=3, dialogs=False)
    before = hashes(target)
    killed(target, "before")
    assert len(fidm.read_cohort(target)) == 3
    assert len(contents(target)) + 1 == len(list(target.iterdir()))
    killed(target, "between")  # its start removes what the first one left
    with pytest.raises(DataError, match="interrupted"):
        fidm.read_cohort(target)
    assert main(["simulate", str(target), "--people", "2", "--no-dialogs"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert hashes(target) == before
    killed(target, "between")
    simulate_study(target, n=2, dialogs=False, overwrite=True)
    assert len(contents(target)) == len(list(target.iterdir()))
    assert len(fidm.read_cohort(target)) == 2
    killed(tmp_path / "other", "before")
    simulate_study(tmp_path / "other", n=2, dialogs=False)
    assert hashes(tmp_path / "other").keys() == hashes(target).keys()


# ---------------------------------------------------------------------- the page


def test_brackets_in_paths_are_no_markup(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    odd = "br2/a[/b]x"
    few = ["--people", "3", "--task", "grocery_small", "--language", "en"]
    assert main(["simulate", odd, *few]) == 0
    assert f"Wrote {odd}. What next:" in capsys.readouterr().out
    assert main(["simulate", "plain", *few]) == 0
    shutil.copytree("plain/talks", "br3/a[/b]x/talks")
    assert main(["ground", "plain"]) == 0
    assert main(["simulate", "more", "--people", "30", "--no-dialogs"]) == 0
    capsys.readouterr()
    for verb in (
        ["ground", "br3/a[/b]x", "--task", "grocery_small"],
        ["audit", "sample", "plain", "--out", f"{odd}/sheet.csv"],
        ["fit", "more", "--split", "all", "--out", f"{odd}/fit"],
        ["task", "show", "grocery_small", "--out", f"{odd}/map.png"],
    ):
        assert main(verb) == 0
        assert "/a[/b]x" in capsys.readouterr().out


def without_speech(monkeypatch, *lost):
    find, load = importlib.util.find_spec, importlib.import_module
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name in lost else find(name, *more)
    )

    def refuse(name, *more):
        if name.split(".")[0] in lost:
            raise ImportError(name)
        return load(name, *more)

    monkeypatch.setattr(importlib, "import_module", refuse)


def test_without_the_extra_packages_the_formats_that_can_be_written_are_taken(tmp_path, capsys, monkeypatch):
    without_speech(monkeypatch, "rustling", "webvtt")
    few = ["--people", "6", "--task", "grocery_small", "--language", "en"]
    assert main(["simulate", str(tmp_path / "study"), *few]) == 0
    out = capsys.readouterr().out
    assert "textgrid 2, whisper 2, csv 2" in out
    told = (
        "Written as TextGrid, Whisper JSON and CSV only: pip install 'fidm[speech]' adds CHAT, ELAN, WebVTT"
    )
    assert told in out
    said = json.loads((tmp_path / "study" / "simulation.json").read_text("utf-8"))
    assert said["settings"]["formats"] == ["textgrid", "whisper", "csv"]
    assert len(read(tmp_path / "study" / "talks")) == 6
    assert main(["simulate", str(tmp_path / "json"), *few, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == said
    assert told in printed.err
    assert main(["simulate", str(tmp_path / "none"), *few, "--no-dialogs"]) == 0
    assert "Written as" not in capsys.readouterr().out
    assert main(["simulate", str(tmp_path / "chat"), *few, "--formats", "chat"]) == 2
    assert "pip install 'fidm[speech]'" in capsys.readouterr().err
    assert not (tmp_path / "chat").exists()


def test_the_packages_are_looked_for_one_by_one(monkeypatch):
    assert formats_here() == SEVEN_FORMATS
    assert say_left_out(formats_here()) == ""
    without_speech(monkeypatch, "webvtt")
    assert formats_here() == ("chat", "elan", "textgrid", "srt", "whisper", "csv")
    assert say_left_out(formats_here()).endswith("pip install 'fidm[speech]' adds WebVTT.")


@pytest.mark.parametrize(("agent", "does"), [("walker", "acts as people do"), ("model", "chooses as the")])
def test_the_page_of_one_person(tmp_path, capsys, agent, does):
    assert main(["simulate", str(tmp_path / "one"), "--people", "1", "--agent", agent, "--no-dialogs"]) == 0
    out = capsys.readouterr().out
    assert f"1 simulated participant who {does}" in out
    assert "calibrated to published figures" in out
    assert "what was drawn" not in out


def test_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "twin", "--people", "20", "--task", "grocery_small", "--language", "en"]) == 0
    out = capsys.readouterr().out
    assert "20 simulated participants" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["normal", "11", "2", "13", "65.0%"] in lines
    assert ["all", "17", "3", "20"] in lines
    assert "20 dialogs in talks/ (en)" in out
    assert "Simulated people" in out
    assert "true_characters, true_turns" in out
    assert "fidm run twin" in out
    assert "Research use only, not a diagnosis." in out
    assert max(len(line) for line in out.splitlines() if "·" not in line and "dialogs" not in line) <= 80


def test_large_studies_have_no_dialogs_unless_asked(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(twin, "MOST_DIALOGS", 4)
    assert main(["simulate", str(tmp_path / "many"), "--people", "5", "--task", "grocery_small"]) == 0
    assert "no dialogs" in capsys.readouterr().out
    assert not (tmp_path / "many" / "talks").exists()
    settings = json.loads((tmp_path / "many" / "simulation.json").read_text("utf-8"))["settings"]
    assert (settings["dialogs"], settings["formats"], settings["language"]) == (False, [], None)
    asked = ["--people", "5", "--task", "grocery_small", "--dialogs"]
    assert main(["simulate", str(tmp_path / "asked"), *asked]) == 0
    assert len(read(tmp_path / "asked" / "talks")) == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--people", "0"], "--people is 0; there must be somebody to simulate"),
        (["--seed", "-1"], "0 or more"),
        (["--formats", "word"], "formats must be"),
        (["--formats", ","], "--formats names none"),
        (["--formats", "chat", "--no-dialogs"], "--no-dialogs asks for none"),
        (["--language", "tlh"], "do not speak 'tlh'"),
        (["--task", "nowhere"], "nowhere"),
    ],
)
def test_impossible_wishes_are_refused(tmp_path, capsys, arguments, words):
    assert main(["simulate", str(tmp_path / "study"), *arguments]) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")
    assert not list(tmp_path.iterdir())


def test_a_study_with_one_diagnosis_says_that_nothing_can_be_told_apart(tmp_path):
    from fidm.experiments.shared import cross_validated_auc

    simulate_study(tmp_path / "one", n=1, dialogs=False)
    people = fidm.read_cohort(tmp_path / "one").participants
    with pytest.raises(DataError, match="has 0 people"):
        cross_validated_auc(people["age_years"], people["diagnosis"] != "normal", seed=1)


def test_ground_refuses_a_table_that_does_not_say_clearly_who_is_excluded(tmp_path, capsys):
    folder = tmp_path / "study"
    simulate_study(folder, n=2, task="grocery_small")
    (folder / "participants.parquet").unlink()
    (folder / "participants.csv").write_text("participant,excluded\nP0000001,1\nP0000002,0\n", "utf-8")
    assert main(["ground", str(folder)]) == 2
    assert "holds numbers" in capsys.readouterr().err
    assert not (folder / "grounding" / "provenance.json").exists()
