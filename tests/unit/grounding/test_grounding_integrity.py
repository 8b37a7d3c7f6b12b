"""Whatever interrupts grounding, nothing is lost and nothing half-done is taken for whole."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.errors import DataError
from fidm.files import WRITING
from fidm.grounding.store import alone_in, has_grounding

KILLED = """
    import os, sys
    from fidm.cli.main import main

    left = int(sys.argv[1])
    for name in ("replace", "unlink", "rmdir"):
        def counted(*arguments, _real=getattr(os, name), **more):
            global left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), 9)
            return _real(*arguments, **more)
        setattr(os, name, counted)
    sys.exit(main(["ground", sys.argv[2]]))
"""


def study_of(folder: Path, seed: int = 1) -> Path:
    talks = fidm.simulate_talks(fidm.load_task("grocery"), 3, seed=seed, language="en")
    talks.write(folder / "talks", formats=("csv",))
    (folder / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n')
    rows = "".join(f"{name},7{i}\n" for i, name in enumerate(talks.cohort.ids))
    (folder / "participants.csv").write_text(f"participant,age\n{rows}nobody,99\n")
    return folder


@pytest.mark.parametrize("after", [1, 2, 4, 6, 8, 10, 12, 14])
def test_covariates_survive_a_kill_at_any_moment(tmp_path, after):
    study = study_of(tmp_path / "study")
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    done = subprocess.run([sys.executable, str(script), str(after), str(study)], capture_output=True)
    assert done.returncode in (-9, 0), done.stderr
    assert main(["ground", str(study)]) == 0
    people = pl.read_parquet(study / "participants.parquet")
    assert people["age"].to_list() == [70, 71, 72, 99]
    assert not list(study.glob(f"{WRITING}*"))
    assert len(fidm.read_cohort(study)) == 4
    assert has_grounding(study)


def test_one_process_at_a_time(tmp_path):
    study = study_of(tmp_path / "study")
    with alone_in(study), pytest.raises(DataError, match="another process"), alone_in(study):
        pass
    with alone_in(study):
        pass


def test_links_are_not_followed(tmp_path):
    study = study_of(tmp_path / "study")
    (tmp_path / "elsewhere").mkdir()
    (study / "grounding").symlink_to(tmp_path / "elsewhere")
    assert main(["ground", str(study)]) == 2
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_study_behind_a_link_can_be_grounded(tmp_path):
    study = study_of(tmp_path / "deep" / "study")
    (tmp_path / "link").symlink_to(study)
    assert main(["ground", str(tmp_path / "link")]) == 0
    assert (tmp_path / "link").is_symlink()
    assert len(fidm.read_cohort(study)) == 4


def test_a_failed_replacement_brings_the_provenance_back(tmp_path, monkeypatch):
    study = study_of(tmp_path / "study")
    assert main(["ground", str(study)]) == 0
    before = (study / "grounding" / "provenance.json").read_bytes()

    def full(self, *arguments, **more):
        raise pl.exceptions.ComputeError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(
            "fidm.io.study.tables_of", lambda cohort: {"steps": type("T", (), {"write_parquet": full})()}
        )
        assert main(["ground", str(study)]) == 2
    assert (study / "grounding" / "provenance.json").read_bytes() == before
    assert len(fidm.read_cohort(study)) == 4


def test_numbers_in_a_table_of_participants_lose_nothing(tmp_path):
    study = study_of(tmp_path / "study")
    text = (study / "participants.csv").read_text().replace("participant,age", "participant,age,site,score")
    lines = [text.splitlines()[0], *(f"{line},007,1.5" for line in text.splitlines()[1:])]
    (study / "participants.csv").write_text("\n".join(lines) + "\n")
    assert main(["ground", str(study)]) == 0
    people = pl.read_parquet(study / "participants.parquet")
    assert people["site"].unique().to_list() == ["007"]
    assert people.schema["age"].is_integer()
    assert people.schema["score"] == pl.Float64


def test_names_in_another_normal_form_are_the_same_person(tmp_path):
    study = tmp_path / "study"
    talks = fidm.simulate_talks(fidm.load_task("grocery"), 1, seed=1, language="en")
    (path,) = talks.write(study / "talks", formats=("csv",))
    path.write_text(path.read_text().replace(talks.cohort.ids[0], "Jose\u0301"))
    path.rename(path.with_name("Jose\u0301.csv"))
    (study / "participants.csv").write_text("participant,age\nJose\u0301,70\n")
    assert main(["ground", str(study), "--task", "grocery"]) == 0
    assert pl.read_parquet(study / "participants.parquet")["age"].to_list() == [70]


def test_draws_keep_the_settings_of_the_grounding(tmp_path):
    study = study_of(tmp_path / "study")
    (study / "grounding.toml").write_text("[weighing]\nkeep_talk = true\n")
    assert main(["ground", str(study)]) == 0
    from fidm.grounding.store import study_draws

    whole = fidm.read_cohort(study)
    (drawn,) = study_draws(study, fidm.load_task("grocery"), 1, seed=1)
    assert drawn.n_segments == whole.n_segments


@pytest.mark.parametrize("name", ["我有癌症好驚", "I have cancer", "scared of dying"])
def test_words_in_the_place_of_speakers_are_not_shown(tmp_path, name, capsys):
    study = tmp_path / "study"
    (study / "talks").mkdir(parents=True)
    (study / "talks" / "P1.csv").write_text(f"speaker,start_s,end_s,text\n{name},0,1,PAR\n")
    assert main(["ground", str(study), "--task", "grocery"]) == 2
    assert name not in capsys.readouterr().err


def test_words_in_the_place_of_a_language_are_not_shown(tmp_path, capsys):
    study = tmp_path / "study"
    (study / "talks").mkdir(parents=True)
    rows = "speaker,start_s,end_s,text,language\nPAR,0,1,go left one square,secretword here\n"
    (study / "talks" / "P1.csv").write_text(rows)
    assert main(["ground", str(study), "--task", "grocery"]) == 2
    assert "secretword" not in capsys.readouterr().err
