"""What participants say stays where it belongs: a canary phrase must be heard nowhere else."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fidm
from fidm import files
from fidm.cli.main import main
from fidm.grounding.ground import ground
from fidm.grounding.review.audit import sample_audit, score_audit
from fidm.grounding.store import read_grounding, write_grounding
from fidm.io.dialogs import read, write
from fidm.io.study import StudyWriter
from fidm.io.talk import Transcript, Turn
from fidm.registry import FORMATS

TASK = fidm.load_task("grocery")
CANARIES = ("zanzibarkumquat", "鱷魚頭老襯底")
"""A Latin and a Chinese word that no task, language or program holds."""

CANARY = f"{CANARIES[0]} {CANARIES[1]}"
ALLOWED = ("talks/", "grounding/turns.parquet", "grounding/audit-")


@dataclass
class Heard:
    """Everything a run said to the outside."""

    records: list[logging.LogRecord] = field(default_factory=list)
    out: io.StringIO = field(default_factory=io.StringIO)
    errors: list[BaseException] = field(default_factory=list)

    def text(self) -> str:
        logged = [record.getMessage() + repr(record.args) + str(record.exc_text) for record in self.records]
        raised = [
            "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
            for error in self.errors
        ]
        return "\n".join([self.out.getvalue(), *logged, *raised])


class Ear(logging.Handler):
    def __init__(self, heard: Heard) -> None:
        super().__init__(level=0)
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.records.append(record)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    found = Heard()
    ear, root = Ear(found), logging.getLogger()
    level = root.level
    root.addHandler(ear)
    root.setLevel(0)
    with contextlib.redirect_stdout(found.out), contextlib.redirect_stderr(found.out):
        yield found
    root.removeHandler(ear)
    root.setLevel(level)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files, and one to stand in; both must stay free of words."""
    for name in ("tmp", "here", "home"):
        (tmp_path / name).mkdir()
    for variable in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(variable, str(tmp_path / "tmp"))
    for variable in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def attempt(heard: Heard, action: Any, *arguments: Any, **more: Any) -> Any:
    try:
        return action(*arguments, **more)
    except BaseException as error:  # noqa: BLE001 - whatever comes, it must not hold words
        heard.errors.append(error)
        return None


def holds(path: Path) -> bool:
    """Whether a file holds the canary, as text in any usual encoding or in a table."""
    content = path.read_bytes()
    forms = [word.encode(code) for word in CANARIES for code in ("utf-8", "utf-16-le", "utf-16-be")]
    forms += [json.dumps(word)[1:-1].encode() for word in CANARIES]
    if any(form in content for form in forms):
        return True
    if path.suffix == ".parquet":
        return any(word in str(row) for word in CANARIES for row in pl.read_parquet(path).rows())
    return False


def assert_silent(heard: Heard, root: Path, study: Path | None) -> None:
    said = heard.text()
    for word in CANARIES:
        assert word not in said
        assert word not in ascii(said)
        assert json.dumps(word)[1:-1] not in said
    for file in sorted(root.rglob("*")):
        if not file.is_file() or not holds(file):
            continue
        assert study is not None
        assert file.is_relative_to(study), file
        inside = str(file.relative_to(study))
        assert inside.startswith(ALLOWED), inside


def dialog(who: str = "P1", *, text: str = f"go left one square {CANARY}") -> Transcript:
    turns = (
        Turn("INV", 0, 1, "where to?", "assessor"),
        Turn("PAR", 1, 2, text, "participant"),
        Turn("INV", 2, 3, "okay, moved", "assessor"),
        Turn("PAR", 3, 4, f"{CANARY}, up a bit, {CANARY} {CANARY} {CANARY}", "participant"),
        Turn("INV", 4, 5, "and then?", "assessor"),
        Turn("PAR", 5, 6, f"go up one square, {CANARY}", "participant"),
    )
    return Transcript(who, turns, language="en")


def good_study(root: Path) -> Path:
    study = root / "study"
    (study / "talks").mkdir(parents=True)
    (study / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    for i, name in enumerate(("chat", "elan", "textgrid", "srt", "vtt", "whisper", "csv", "jsonl")):
        write(dialog(f"P{i}"), study / "talks" / f"P{i}{FORMATS.find(name).suffixes[0]}", format=name)
    return study


# ------------------------------------------------------------------ good dialogs


def test_the_canary_is_found_where_it_may_be(outside: Path) -> None:
    """Otherwise these tests would find nothing anywhere."""
    study = good_study(outside)
    assert main(["ground", str(study)]) == 0
    assert holds(study / "grounding" / "turns.parquet")
    assert all(holds(file) for file in (study / "talks").iterdir())


@pytest.mark.parametrize("options", [[], ["--json"], ["--skip-bad"]], ids=str)
def test_grounding_fitting_and_auditing_keep_words_in_their_places(
    outside: Path, heard: Heard, options: list[str]
) -> None:
    study = good_study(outside)
    assert main(["ground", str(study), *options]) == 0
    status = pl.read_parquet(study / "grounding" / "segments.parquet")["status"].to_list()
    assert "needs_review" in status
    assert main(["fit", str(study), *options]) in (0, 1, 2)
    assert main(["audit", "sample", str(study), "-n", "3", "--seed", "5"]) == 0
    assert main(["audit", "score", str(study), str(study / "grounding" / "audit-5.csv")]) == 2
    assert main(["audit", "sample", str(study), "-n", "3", "--seed", "5"]) == 2
    assert_silent(heard, outside, study)
    assert list((outside / "here").iterdir()) == []


def test_objects_on_the_way_show_no_words(outside: Path, heard: Heard) -> None:
    transcripts = read(good_study(outside) / "talks")
    grounded = ground(transcripts, TASK)
    shown: list[Any] = [transcripts, *transcripts, *transcripts[0].turns, grounded, *grounded.dialogs]
    for one in grounded.dialogs[0].segments:
        shown += [one, one.segment, one.proposal, one.effort, one.doubts]
    shown += [
        grounded.segments.rows(),
        grounded.moves.rows(),
        grounded.checks.rows(),
        dict(grounded.provenance),
    ]
    shown += [grounded.cohort, grounded.cohort.segments.rows(), grounded.settings, grounded.terrain]
    print(*map(repr, shown), *map(str, shown), sep="\n")
    assert_silent(heard, outside, outside / "study")


def test_a_sheet_outside_the_study_is_the_only_file_one_asks_for(outside: Path, heard: Heard) -> None:
    study = good_study(outside)
    main(["ground", str(study)])
    sheet = outside / "sheet.csv"
    sample_audit(study, 2, seed=1, path=sheet)
    assert holds(sheet)
    text = sheet.read_text("utf-8-sig").replace(",,,\r\n", ",perhaps,,\r\n").replace("P0", "P0x")
    sheet.write_text(text, "utf-8")
    attempt(heard, score_audit, study, sheet)
    sheet.write_text(text.replace('"', ""), "utf-8")
    attempt(heard, score_audit, study, sheet)
    sheet.write_text(text.replace("verdict", CANARIES[0]), "utf-8")
    attempt(heard, score_audit, study, sheet)
    assert len(heard.errors) == 3
    sheet.unlink()
    assert_silent(heard, outside, study)


def test_measuring_a_grounder_shows_no_words(outside: Path, heard: Heard) -> None:
    study = good_study(outside)
    assert main(["ground", str(study)]) == 0
    assert main(["audit", "sample", str(study), "-n", "3", "--seed", "5"]) == 0
    sheet = study / "grounding" / "audit-5.csv"
    drawn = sheet.read_text("utf-8-sig")
    for cells, code in (
        (",ok,,", 0),
        (f",wrong,GOTO {CANARIES[0]},{CANARY}", 2),
        (f",{CANARIES[0]},,", 2),
        (f",ok,{CANARIES[0]},", 2),
    ):
        sheet.write_text(drawn.replace(",,,", cells), "utf-8")
        for options in ([], ["--json"]):
            assert main(["ground", str(study), "--evaluate", str(sheet), *options]) == code
    sheet.write_text(drawn.replace(",,,", ",ok,,").replace("go left", CANARIES[0]), "utf-8")
    assert main(["ground", str(study), "--evaluate", str(sheet)]) == 2
    assert_silent(heard, outside, study)


# ------------------------------------------------------------------ broken files


BROKEN = {
    "P1.cha": f"@UTF8\n@Begin\n@Participants:\tPAR Participant, INV Investigator\n*PAR:\t{CANARY} <open [/] . 0_100\n*{CANARIES[0]}\n%mor:\t{CANARY}\n",
    "P2.cha": f"*PAR:\t{CANARY} .\n*INV:\t{CANARY} . \x1599_12\x15\n",
    "P3.cha": f"{CANARY}\n",
    "P4.eaf": f"<ANNOTATION_DOCUMENT><TIER TIER_ID='PAR'><ANNOTATION><{CANARIES[0]}>{CANARY}</TIER>",
    "P5.eaf": f"<?xml version='1.0'?><x>{CANARY}</x>",
    "P6.TextGrid": f'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nitem []:\n text = "{CANARY}\n',
    "P7.TextGrid": CANARY,
    "P8.srt": f"1\n00:00:05,000 --> 00:00:01,000\nPAR: {CANARY}\n\n{CANARY}\n",
    "P9.srt": f"{CANARY}\n00:00:0x --> \n{CANARY}\n",
    "PA.vtt": f"WEBVTT\n\n00:05.000 --> 00:01.000\n<v PAR>{CANARY}\n",
    "PB.vtt": f"{CANARY}\n\n00:01.000 --> 00:02.000\n{CANARY}\n",
    "PC.json": f'{{"segments": [{{"start": 5, "end": 1, "text": "{CANARY}", "speaker": "PAR"}}]}}',
    "PD.json": f'{{"segments": [{{"text": "{CANARY}"',
    "PE.json": f'["{CANARY}"]',
    "PF.csv": f"speaker,start_s,end_s,text\nPAR,x,{CANARIES[0]},{CANARY}\nPAR,2,1,{CANARY}\n",
    "PG.csv": f"speaker,start_s,end_s,text\nPAR,0,1,{CANARY},{CANARY}\n",
    "PH.csv": f"wer,von,bis,{CANARIES[0]}\nPAR,0,1,{CANARY}\n",
    "PI.csv": f"{CANARIES[0]},{CANARIES[1]},a,b\nPAR,0,1,{CANARY}\n",
    "PJ.csv": f'speaker,start_s,end_s,text\nPAR,0,1,"{CANARY}\n',
    "PK.csv": f"speaker;start_s;end_s;text\nPAR;0;1;{CANARY};{CANARY}\n",
    "PL.csv": f"speaker,start_s,end_s,text,role\nPAR,0,1,{CANARY},{CANARIES[0]}\n",
    "PM.jsonl": f'{{"speaker": "PAR", "text": "{CANARY}", "start_s": "{CANARIES[0]}", "end_s": 1}}\n{{"{CANARIES[0]}": \n',
    "PN.csv": f"speaker,start_s,end_s,text,participant\nPAR,0,1,{CANARY},PN\nPAR,0,1,{CANARY},PN\n",
}  # fmt: skip


def broken_study(root: Path, names: list[str]) -> Path:
    study = root / "study"
    (study / "talks").mkdir(parents=True)
    (study / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    for name in names:
        (study / "talks" / name).write_text(BROKEN[name], "utf-8")
    return study


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_not_quoted(outside: Path, heard: Heard, name: str) -> None:
    study = broken_study(outside, [name])
    assert main(["ground", str(study)]) == 2
    assert main(["ground", str(study), "--skip-bad"]) == 2
    attempt(heard, read, study / "talks")
    print(attempt(heard, read, study / "talks", strict=False).problems.rows())
    assert len(heard.errors) == 1
    assert_silent(heard, outside, study)


def test_broken_files_beside_a_good_one_are_listed_without_their_words(outside: Path, heard: Heard) -> None:
    study = broken_study(outside, list(BROKEN))
    write(dialog("good"), study / "talks" / "good.cha")
    assert main(["ground", str(study)]) == 2
    assert main(["ground", str(study), "--skip-bad"]) == 0
    assert (study / "grounding" / "problems.csv").stat().st_size > 0
    assert main(["ground", str(study), "--skip-bad", "--json"]) == 0
    assert_silent(heard, outside, study)


@pytest.mark.parametrize("encoding", ["big5hkscs", "utf-16", "gb18030"])
def test_files_in_other_encodings_are_not_quoted(outside: Path, heard: Heard, encoding: str) -> None:
    study = broken_study(outside, [])
    text = f"speaker,start_s,end_s,text\nPAR,0,1,向左行一格 {CANARIES[1][:2]}\n"
    for name in ("P1.csv", "P2.cha", "P3.srt"):
        (study / "talks" / name).write_bytes(text.encode(encoding, "replace"))
    assert main(["ground", str(study), "--skip-bad"]) == (
        0 if encoding == "utf-16" else 2
    )  # one file is read
    assert CANARIES[1][:2] not in heard.text()


def test_text_where_a_speaker_is_expected_is_not_shown_at_length(outside: Path, heard: Heard) -> None:
    """A colon in what was said must not make a subtitle's words a speaker that errors then name."""
    study = broken_study(outside, [])
    spoken = f"{CANARIES[0]} I want to go there and then I thought: left"
    (study / "talks" / "P1.srt").write_text(f"1\n00:00:01,000 --> 00:00:02,000\n{spoken}\n", "utf-8")
    (study / "talks" / "P2.vtt").write_text(f"WEBVTT\n\n00:01.000 --> 00:02.000\n{spoken}\n", "utf-8")
    assert main(["ground", str(study)]) == 2
    assert_silent(heard, outside, study)


def test_columns_that_are_asked_for_and_missing_are_not_answered_with_words(
    outside: Path, heard: Heard
) -> None:
    study = broken_study(outside, ["PF.csv"])
    (study / "talks" / "PF.csv").write_text(f"PAR,0,1,{CANARIES[0]}\nINV,1,2,{CANARIES[1]}\n", "utf-8")
    (study / "grounding.toml").write_text('[columns]\ntext = "utterance"\n', "utf-8")
    assert main(["ground", str(study)]) == 2
    assert_silent(heard, outside, study)


# ------------------------------------------------------------------ crashes


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError(), RuntimeError("bug")],
    ids=repr,
)
@pytest.mark.parametrize("failing", [(StudyWriter, "add"), (StudyWriter, "_finish"), (files, "_swap")])
def test_a_crash_while_writing_leaves_no_words_behind(
    outside: Path,
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    failing: tuple[Any, str],
) -> None:
    study = good_study(outside)

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(*failing, fail)
    attempt(heard, main, ["ground", str(study)])
    assert not (study / "grounding" / "turns.parquet").exists()
    assert_silent(heard, outside, study)
    assert list((outside / "tmp").iterdir()) == []


def test_a_crash_of_the_grounder_shows_no_words(
    outside: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = good_study(outside)

    def fail(self: Any, segment: Any, context: Any) -> None:
        raise fidm.GroundingError(f"{segment!r} {context!r}")

    monkeypatch.setattr("fidm.grounding.rules.grounder.Rules.ground", fail)
    assert main(["ground", str(study)]) == 2
    assert_silent(heard, outside, study)


def test_a_crash_while_a_sheet_is_written_leaves_none(
    outside: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = good_study(outside)
    main(["ground", str(study)])

    def fail(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)
    attempt(heard, sample_audit, study, 2, seed=1)
    assert len(heard.errors) == 1
    assert not list((study / "grounding").glob("*audit*"))
    assert_silent(heard, outside, study)


def test_damaged_groundings_are_not_quoted(outside: Path, heard: Heard) -> None:
    study = outside / "study"
    write_grounding(study, ground([dialog()], TASK), tasks=["grocery"])
    for name in ("provenance.json", "segments.parquet"):
        (study / "grounding" / name).write_text(f'{{"a": "{CANARY}', "utf-8")
        attempt(heard, read_grounding, study, TASK)
        attempt(heard, sample_audit, study, 1, seed=1)
        (study / "grounding" / name).unlink()
    assert heard.errors
    assert_silent(heard, outside, study)
