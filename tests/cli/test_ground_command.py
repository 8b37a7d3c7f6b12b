"""``fidm ground``: from dialogs in any format to a fitted study, without a network."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl
import pytest

import fidm
from fidm import registry
from fidm.cli.main import main
from fidm.grounding.store import read_grounding
from fidm.io.dialogs import write
from fidm.simulate.talk import Talks, simulate_talks

FORMATS = ("chat", "elan", "textgrid", "srt", "vtt", "whisper", "csv")
CHANNELS = ("duration_s", "n_characters", "n_turns", "pause_s")
TABLES = ("participants.parquet", "episodes.parquet", "steps.parquet", "segments.parquet")
GROUNDING = ("grounding/segments.parquet", "grounding/moves.parquet", "grounding/turns.parquet")

MADE: dict[tuple[str, int], Talks] = {}


def people(language: str, n: int = 8) -> Talks:
    if (language, n) not in MADE:
        MADE[language, n] = simulate_talks(fidm.load_task("grocery"), n, seed=4, language=language)
    return MADE[language, n]


def study_of(folder: Path, talks: Talks, format: str, *, manifest: bool = True) -> Path:
    (folder / "talks").mkdir(parents=True)
    for transcript in talks.transcripts:
        write(
            transcript,
            folder / "talks" / f"{transcript.participant}{registry.FORMATS.find(format).suffixes[0]}",
            format=format,
        )
    if manifest:
        (folder / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    return folder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("language", ["en", "yue", "zh"])
@pytest.mark.parametrize("format", FORMATS)
def test_from_simulated_people_to_a_fit_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str, language: str
) -> None:
    talks = people(language)
    study = study_of(tmp_path / "study", talks, format)
    assert main(["ground", str(study)]) == 0
    said = capsys.readouterr()
    assert "8 dialogs" in said.out
    assert "8 of 8 traces sound" in said.out
    assert said.err == ""

    truth = talks.cohort.segments
    found = pl.read_parquet(study / "grounding" / "segments.parquet")
    assert found.height == truth.height
    for name in CHANNELS:
        off = np.abs(found[name].fill_null(0).to_numpy() - truth[name].to_numpy())
        assert off.max() <= (0.002 if name.endswith("_s") else 0), name

    cohort = fidm.read_cohort(study)
    assert cohort.ids.to_list() == talks.cohort.ids.to_list()
    assert cohort.problems.height == 0
    assert main(["fit", str(study), "--method", "mle", "--population", "pooled", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert pl.read_parquet(study / "profile.parquet").height == 8


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_gives_the_same_moves(tmp_path: Path, format: str) -> None:
    talks = people("en")
    assert main(["ground", str(study_of(tmp_path / "study", talks, format))]) == 0
    wanted = fidm.ground(talks.transcripts, fidm.load_task("grocery"))
    cohort = fidm.read_cohort(tmp_path / "study")
    for name in ("state", "action", "weight", "segment", "inferred", "step_offsets", "segment_offsets"):
        assert np.array_equal(getattr(cohort, name), getattr(wanted.cohort, name)), name
    moves = pl.read_parquet(tmp_path / "study" / "grounding" / "moves.parquet")
    assert moves.equals(wanted.moves)


def test_grounding_twice_gives_identical_tables(tmp_path: Path) -> None:
    study = study_of(tmp_path / "study", people("en"), "chat")
    (study / "participants.csv").write_text("participant,age\nP0000003,70\nP9,61\n", "utf-8")
    seen = []
    for _ in range(2):
        assert main(["ground", str(study)]) == 0
        seen.append([pl.read_parquet(study / name) for name in (*TABLES, *GROUNDING)])
        seen[-1].append((study / "grounding" / "provenance.json").read_text("utf-8"))  # type: ignore[arg-type]
    for one, two in zip(*seen, strict=True):
        assert one == two if isinstance(one, str) else one.equals(two)
    assert pl.read_parquet(study / "participants.parquet").height == 9


def test_json_is_json_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = study_of(tmp_path / "study", people("yue"), "csv")
    assert main(["ground", str(study), "--json"]) == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert said.err == ""
    assert (report["dialogs"], report["left_out"], report["checks_failed"]) == (8, 0, 0)
    table = pl.read_parquet(study / "grounding" / "segments.parquet")
    assert report["segments"] == table.height
    assert report["steps"] == fidm.read_cohort(study).n_steps
    assert report["shares"]["confident"] == pytest.approx((table["status"] == "confident").mean())
    assert report["agreement"] is None
    assert report["provenance"]["task"] == "grocery"
    assert report["provenance"]["fidm"] == fidm.__version__


def test_provenance_holds_no_paths(tmp_path: Path) -> None:
    study = study_of(tmp_path / "study", people("en"), "csv")
    assert main(["ground", str(study)]) == 0
    assert str(tmp_path) not in (study / "grounding" / "provenance.json").read_text("utf-8")


def broken(study: Path) -> None:
    (study / "talks" / "P0000002.cha").write_text("@UTF8\n@Begin\n*PAR:\tgo left .\n", "utf-8")
    (study / "talks" / "Z.srt").write_text("1\n00:00:05,000 --> 00:00:01,000\nPAR: left\n", "utf-8")


def test_broken_files_stop_everything_unless_they_are_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = study_of(tmp_path / "study", people("en"), "chat")
    broken(study)
    assert main(["ground", str(study)]) == 2
    said = capsys.readouterr()
    assert "P0000002.cha" in said.err
    assert "Z.srt" in said.err
    assert "--skip-bad" in said.err
    assert said.out == ""
    assert not (study / "steps.parquet").exists()
    assert not list(study.glob("grounding/*"))

    assert main(["ground", str(study), "--skip-bad"]) == 0
    assert "2 files left out" in capsys.readouterr().out
    assert len(fidm.read_cohort(study)) == 7
    problems = pl.read_csv(study / "grounding" / "problems.csv")
    assert set(problems["table"].to_list()) == {"P0000002.cha", "Z.srt"}

    assert main(["ground", str(study), "--skip-bad", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == 2

    write(people("en").transcripts[1], study / "talks" / "P0000002.cha")
    (study / "talks" / "Z.srt").unlink()
    assert main(["ground", str(study)]) == 0
    assert not (study / "grounding" / "problems.csv").exists()
    assert len(fidm.read_cohort(study)) == 8


def test_a_folder_of_broken_files_alone_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study"
    (study / "talks").mkdir(parents=True)
    broken(study)
    assert main(["ground", str(study), "--task", "grocery", "--skip-bad"]) == 2
    assert "no dialog" in capsys.readouterr().err


def test_which_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = study_of(tmp_path / "study", people("en"), "csv", manifest=False)
    assert main(["ground", str(study)]) == 2
    assert "--task NAME" in capsys.readouterr().err
    assert main(["ground", str(study), "--task", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert main(["ground", str(study), "--task", "grocery"]) == 0
    assert (study / "study.toml").read_text("utf-8") == 'schema = 1\ntasks = ["grocery"]\n'
    assert main(["ground", str(study)]) == 0


def test_a_task_file_is_copied_and_found_again(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(fidm.builtin_text("grocery").replace('name = "grocery"', 'name = "mine"'), "utf-8")
    study = study_of(tmp_path / "study", people("en"), "csv", manifest=False)
    assert main(["ground", str(study), "--task", str(own)]) == 0
    own.unlink()
    assert main(["ground", str(study)]) == 0
    assert fidm.read_cohort(study).episodes["task"].unique().to_list() == ["mine"]


@pytest.mark.parametrize(
    "manifest",
    [
        "schema = 1\n",
        "schema = 1\ntasks = []\n",
        'schema = 1\ntasks = ["grocery", "errands"]\n',
        "schema = 1\ntasks = 5\n",
        'schema = 1\ntasks = "grocery"\n',
        "schema = 1\ntasks = [3]\n",
        "schema =\n",
    ],
)
def test_a_manifest_that_names_no_single_task_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], manifest: str
) -> None:
    study = study_of(tmp_path / "study", people("en"), "csv")
    (study / "study.toml").write_text(manifest, "utf-8")
    assert main(["ground", str(study)]) == 2
    said = capsys.readouterr().err
    assert "study.toml" in said or "--task" in said


def test_where_the_dialogs_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = study_of(tmp_path / "other", people("en"), "csv") / "talks"
    study = tmp_path / "study"
    study.mkdir()
    assert main(["ground", str(study), "--task", "grocery"]) == 2
    assert "--talks" in capsys.readouterr().err
    assert main(["ground", str(study), "--task", "grocery", "--talks", str(elsewhere)]) == 0
    assert main(["ground", str(tmp_path / "nowhere")]) == 2
    (study / "grounding.toml").write_text('talks = "recordings"\n', "utf-8")
    elsewhere.rename(study / "recordings")
    assert main(["ground", str(study)]) == 0


@pytest.mark.parametrize(
    "options",
    [["--endpoint", "http://127.0.0.1:1/v1"], ["--model", "x"], ["--samples", "3"], ["--workers", "2"]],
    ids=lambda options: options[0],
)
def test_options_for_a_language_model_need_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    study = study_of(tmp_path / "study", people("en"), "csv")
    assert main(["ground", str(study), *options]) == 2
    said = capsys.readouterr().err
    assert options[0] in said
    assert "--by llm" in said
    assert not (study / "steps.parquet").exists()


@pytest.mark.parametrize(
    "options",
    [["--samples", "0"], ["--samples", "-1"], ["--samples", "65"], ["--workers", "0"], ["--workers", "257"]],
    ids="".join,
)
@pytest.mark.usefixtures("no_network")
def test_numbers_out_of_range_are_refused_before_anybody_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """The command line takes what the file of settings takes: 1 to 64 samples, 1 to 256 workers."""
    study = study_of(tmp_path / "study", people("en"), "csv")
    assert main(["ground", str(study), "--by", "llm", *options]) == 2
    assert options[0].removeprefix("--") in capsys.readouterr().err


def test_settings_are_read_and_options_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = study_of(tmp_path / "study", people("en"), "csv")
    (study / "grounding.toml").write_text('language = "yue"\n[counting]\npunctuation = true\n', "utf-8")
    assert main(["ground", str(study), "--language", "en"]) == 0
    found = pl.read_parquet(study / "grounding" / "segments.parquet")
    assert (found["n_characters"] > people("en").cohort.segments["n_characters"]).any()
    provenance = json.loads((study / "grounding" / "provenance.json").read_text("utf-8"))
    assert provenance["language"] == "en"
    (study / "grounding.toml").write_text("by = 'magic'\nwhat = 1\n", "utf-8")
    capsys.readouterr()
    assert main(["ground", str(study)]) == 2
    said = capsys.readouterr().err
    assert "by" in said
    assert "what" in said


def test_romanised_cantonese_is_refused_with_every_file_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = study_of(tmp_path / "study", people("yue"), "csv")
    first, second, *_ = sorted((study / "talks").iterdir())
    for file in (first, second):
        table = pl.read_csv(file, infer_schema=False)
        own = pl.col("speaker") == "PAR"
        text = pl.when(own).then(pl.lit("zyun2 zo2 haang4 loeng5 gaak3")).otherwise(pl.col("text"))
        table.with_columns(text=text).write_csv(file)
    assert main(["ground", str(study)]) == 2
    said = capsys.readouterr().err
    assert "2 of 8 dialogs are in romanised Chinese" in " ".join(said.split())
    assert first.name in said
    assert second.name in said
    assert "characters are needed" in " ".join(said.split())
    assert "[speakers] in grounding.toml" in " ".join(said.split())
    assert "zyun2" not in said
    assert not (study / "steps.parquet").exists()


def test_a_language_file_in_the_study_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(tmp_path / "study", people("en"), "csv")
    (study / "mine.toml").write_text(registry.LANGUAGES.read("en", "words.toml"), "utf-8")
    (study / "grounding.toml").write_text('language = "mine.toml"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["ground", str(study)]) == 0


def test_speakers_nobody_knows_can_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = study_of(tmp_path / "study", people("en"), "srt")
    for file in (study / "talks").iterdir():
        text = file.read_text("utf-8")
        file.write_text(text.replace("PAR", "SPEAKER_00").replace("INV", "SPEAKER_01"), "utf-8")
    assert main(["ground", str(study)]) == 2
    assert "SPEAKER_00" in capsys.readouterr().err
    roles = tmp_path / "roles.toml"
    roles.write_text('SPEAKER_00 = "participant"\nSPEAKER_01 = "assessor"\n', "utf-8")
    assert main(["ground", str(study), "--roles", str(roles)]) == 0
    (study / "grounding.toml").write_text(
        '[speakers]\nSPEAKER_00 = "participant"\nSPEAKER_01 = "assessor"\n', "utf-8"
    )
    assert main(["ground", str(study)]) == 0


def test_columns_of_a_table_can_be_named(tmp_path: Path) -> None:
    study = study_of(tmp_path / "study", people("en"), "csv")
    for file in (study / "talks").iterdir():
        head, _, rest = file.read_text("utf-8").partition("\n")
        file.write_text(head.replace("text", "heard") + "\n" + rest, "utf-8")
    assert main(["ground", str(study)]) == 2
    (study / "grounding.toml").write_text('[columns]\ntext = "heard"\n', "utf-8")
    assert main(["ground", str(study)]) == 0


def test_what_was_written_can_be_read_back_and_drawn_from(tmp_path: Path) -> None:
    study = study_of(tmp_path / "study", people("yue"), "chat")
    assert main(["ground", str(study)]) == 0
    again = read_grounding(study, fidm.load_task("grocery"))
    cohort = fidm.read_cohort(study)
    for name in ("state", "action", "weight", "segment", "inferred"):
        assert np.array_equal(getattr(cohort, name), getattr(again.cohort, name)), name
    assert len(list(again.draws(2, seed=1))) == 2


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["ground", str(tmp_path), "--magic"])
    assert caught.value.code != 0


@pytest.mark.usefixtures("no_pictures")
def test_characters_of_another_script_are_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = study_of(tmp_path / "study", people("en"), "chat")
    for who, transcript in zip(("Y1", "Y2"), people("yue").transcripts, strict=False):
        write(replace(transcript, participant=who), study / "talks" / f"{who}.cha", format="chat")
    told = (
        "character counts of 2 participants are left out: those of Y1, Y2 are in Chinese characters, and those "
        "of the other 8 in Latin letters, which cannot be compared."
    )
    for verb in ("ground", "fit"):
        assert main([verb, str(study)]) == 0
        assert capsys.readouterr().out.count(told) == 1
    read_back = read_grounding(study, fidm.load_task("grocery")).cohort
    for cohort in (fidm.read_cohort(study), read_back):
        counted = cohort.segment_table().select("participant", pl.col("n_characters").is_not_null())
        assert set(counted.unique().rows()) == {(who, who[0] != "Y") for who in cohort.ids.to_list()}
    assert main(["evidence", str(study), "--participant", "Y1"]) == 0
    assert "characters: not estimated: in another script" in capsys.readouterr().out

    said = (study / "study.toml").read_text("utf-8")
    own = 'kind = "negative_binomial"\ncolumn = "n_characters_any_script"\ndesign = ["log_moves", "script"]\n'
    (study / "study.toml").write_text(f"{said}\n[channels.characters]\n{own}", "utf-8")
    for verb in ("ground", "fit"):  # each script has an average of its own
        assert main([verb, str(study)]) == 0
        assert "character counts" not in capsys.readouterr().out
    assert pl.read_parquet(study / "profile.parquet")["characters"].null_count() == 0

    (study / "study.toml").write_text(said, "utf-8")
    names = "".join(f"P{i:07},speaks English\n" for i in range(1, 9))
    (study / "participants.csv").write_text(f"participant,excluded\n{names}Y1,\nY2,\n", "utf-8")
    assert main(["ground", str(study)]) == 0  # those who take part speak one language
    assert "character counts" not in capsys.readouterr().out
    assert fidm.read_cohort(study).segments["n_characters"].null_count() == 0
