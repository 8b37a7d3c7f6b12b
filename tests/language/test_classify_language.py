"""``fidm classify`` with what people said: dialogs are read, encoded once, and kept as vectors alone."""

from __future__ import annotations

import json
import re
import shutil
import stat
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fidm
import fidm.classify.language
from fidm.cli.main import main

OPTIONS = ["--folds", "3", "--repeats", "1", "--permutations", "0"]
PHRASES = {"normal": "我行去麵包檔。", "mci": "去邊度呀，我唔記得。"}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty people; what they say depends on their status, and what the assessor says does too."""
    folder = tmp_path_factory.mktemp("spoken") / "study"
    made = fidm.simulate_cohort(fidm.load_task("errands"), 30, seed=1)
    rng = np.random.default_rng(3)
    status = np.where(np.arange(30) % 2, "mci", "normal")
    table = made.participants.select("participant").with_columns(
        diagnosis=pl.Series(status),
        split=pl.Series(["train"] * 24 + ["test"] * 6),
        score_total=pl.Series(rng.normal(20, 3, 30)),
        sex=pl.Series(rng.choice(["female", "male"], 30)),
    )
    fidm.write_cohort(made.with_participants(table), folder, tasks=["errands"])
    (folder / "talks").mkdir()
    for name, own in zip(table["participant"], status, strict=True):
        lines = ["speaker,start_s,end_s,text", "INV,0,1,跟住呢"]
        for turn in range(int(rng.integers(2, 5))):
            lines.append(f"PAR,{2 * turn + 1},{2 * turn + 2},{PHRASES[str(own)] * int(rng.integers(1, 4))}")
        (folder / "talks" / f"{name}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@pytest.fixture
def copy(study: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(study, tmp_path / "study"))


def test_an_encoder_is_a_row_and_its_vectors_are_kept(
    copy: Path, bert: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["classify", str(copy), "--representations", "score,tiny,score+tiny", *OPTIONS]
    arguments += ["--encoder", f"tiny={bert}"]
    assert main(arguments) == 0
    page = capsys.readouterr().out
    assert "language baselines" in page
    assert re.search(r"^ +tiny \(32\) +\d", page, re.M)
    assert re.search(r"^ +score \+ tiny \(33\) +\d", page, re.M)
    said = json.loads((copy / "results" / "classify.json").read_text("utf-8"))
    areas = [row["value"] for row in said["result"]["scores"] if row["representation"] == "tiny"]
    assert min(areas) > 0.9  # what they say differs, so it is found
    cache = copy / "grounding" / "language.sqlite"
    assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    assert "麵".encode() not in cache.read_bytes()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("what is known is not encoded again")

    monkeypatch.setattr(fidm.classify.language, "load_encoder", refuse)
    before = {path.name: path.read_bytes() for path in (copy / "results").iterdir()}
    assert main(arguments) == 0
    assert before == {path.name: path.read_bytes() for path in (copy / "results").iterdir()}


def test_a_folder_alone_lends_its_name_and_joins_the_papers_table(
    copy: Path,
    bert: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    own = shutil.copytree(bert, tmp_path / "roberta-yue")
    assert main(["classify", str(copy), "--encoder", str(own), *OPTIONS]) == 0
    page = capsys.readouterr().out
    assert re.search(r"^ +roberta-yue \(32\) +\d", page, re.M)
    assert re.search(r"^ +roberta-yue \+ FIDM \(37\) +\d", page, re.M)
    assert "hf download hfl/chinese-macbert-base" in page  # the paper's own are still missed


def test_nobody_said_anything_that_belongs_to_the_study(
    copy: Path, bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, path in enumerate(sorted((copy / "talks").iterdir())):
        path.rename(path.with_name(f"somebody{number}.csv"))
    arguments = ["classify", str(copy), "--encoder", f"bert={bert}", "--representations", "bert", *OPTIONS]
    assert main(arguments) == 2
    assert "of the 24 people" in capsys.readouterr().err


def test_a_dialog_that_cannot_be_read_stops_it_unless_told(
    copy: Path, bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = min((copy / "talks").iterdir())
    first.write_text("speaker,start_s,end_s,text\nPAR,5,1,去\n", "utf-8")
    arguments = ["classify", str(copy), "--encoder", f"bert={bert}", "--representations", "bert", *OPTIONS]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert first.name in said
    assert "去" not in said
    assert main([*arguments, "--skip-bad"]) == 0
    assert "1 file of dialogs" in capsys.readouterr().out
    missing = pl.read_csv(copy / "results" / "classify-missing.csv").filter(part="train")
    assert set(missing["n_missing"]) == {1}
