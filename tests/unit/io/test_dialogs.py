"""Reading dialogs: which files, whose, who speaks, and what is wrong with them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fidm.cohort import PROBLEM_SCHEMA
from fidm.errors import DataError
from fidm.io.dialogs import formats, read, write
from fidm.io.formats import base as opening
from fidm.io.talk import Transcript, Turn

DATA = Path(__file__).parents[2] / "data" / "dialogs"
CSV = "speaker,start_s,end_s,text\n"
GOOD = CSV + "INV,0,1,and then\nPAR,1.5,3,left\n"
NO_JSON = (
    "is not a dialog in JSON: it has neither segments (Whisper, WhisperX, faster-whisper) nor a transcription "
    "(whisper.cpp) nor chunks (Hugging Face)."
)
CANARY = "zzkanarienvogel"


def problems_of(path: Path, **options) -> list[tuple[str, int | None, str]]:
    found = read(path, strict=False, **options)
    return list(found.problems.select("table", "row", "problem").iter_rows())


def wrong(tmp_path: Path, content: str | bytes, name: str = "P1.csv", **options) -> tuple[int | None, str]:
    """The one problem of a file: its line, and what it is."""
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    found = problems_of(file, **options)
    assert len(found) == 1, found
    return found[0][1:]


# ---------------------------------------------------------------------- which files


def test_a_folder_is_read_deep_sorted_and_without_hidden_files(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("z.csv", "b/y.csv", "a.CSV", ".x.csv", ".hidden/w.csv", "notes.txt"):
        (tmp_path / name).write_text(GOOD)
    assert [one.participant for one in read(tmp_path)] == ["a", "y", "z"]
    assert [one.participant for one in read(str(tmp_path / "*.csv"))] == ["z"]
    assert [one.participant for one in read(tmp_path / "**" / "[yz].csv")] == ["y", "z"]
    assert [one.participant for one in read([tmp_path / "z.csv", str(tmp_path / "b")])] == ["z", "y"]
    assert len(read([tmp_path / "z.csv", tmp_path / "z.csv"])) == 1


def test_all_samples_are_read_together():
    found = read(DATA, roles=DATA / "roles.toml")
    assert len(found) == 18
    assert {one.format for one in found} == {one.name for one in formats()}
    assert all(turn.text == turn.text.strip() for one in found for turn in one)


@pytest.mark.parametrize("source", ["nothing*.csv", [], 7, [7]])
def test_sources_that_name_nothing(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError):
        read(source)


def test_a_folder_without_dialogs(tmp_path):
    with pytest.raises(DataError, match="no dialogs"):
        read(tmp_path)


def test_unknown_suffixes_and_missing_files_are_problems(tmp_path):
    assert wrong(tmp_path, GOOD, "a.docx") == (None, "has a suffix that no known format has.")
    assert problems_of(tmp_path / "nowhere.csv") == [("nowhere.csv", None, "There is no such file.")]
    assert len(read(tmp_path / "a.docx", format="csv")) == 1
    with pytest.raises(DataError, match="no format"):
        read(tmp_path, format="docx")


def test_progress_is_told(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.csv").write_text(GOOD)
    told = []
    read(tmp_path, on_progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]


# ---------------------------------------------------------------------- whose, and who


def test_the_participant_is_the_stem_unless_given(tmp_path):
    file = tmp_path / "P001_ep2.csv"
    file.write_text(GOOD)
    assert (read(file)[0].participant, read(file)[0].episode) == ("P001_ep2", "1")
    assert read(file, participant="X")[0].participant == "X"
    assert read(tmp_path, participant=lambda path: path.stem.split("_")[0])[0].participant == "P001"
    (tmp_path / "b.csv").write_text(GOOD)
    with pytest.raises(DataError, match="names one file"):
        read(tmp_path, participant="X")
    with pytest.raises(DataError, match="not empty"):
        read(file, participant=lambda path: "")


def test_roles_by_mapping_and_by_file(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(CSV + "SPEAKER_00,0,1,one\nspeaker_01,1,2,two\n")
    given = {"speaker_00": "assessor", "SPEAKER_01": "participant"}
    (tmp_path / "roles.json").write_text(json.dumps(given))
    (tmp_path / "roles.toml").write_text('[roles]\nspeaker_00 = "assessor"\nSPEAKER_01 = "Participant"\n')
    (tmp_path / "r.csv").write_text("speaker,role\nSPEAKER_00,assessor\nSPEAKER_01,participant\n")
    for roles in (given, tmp_path / "roles.json", str(tmp_path / "roles.toml"), tmp_path / "r.csv"):
        assert [turn.role for turn in read(file, roles=roles)[0]] == ["assessor", "participant"]
    assert len(read(tmp_path / "*.csv", roles=tmp_path / "r.csv")) == 1  # the table of roles is no dialog


@pytest.mark.parametrize("text", ["{", "PAR = 1", '{"PAR": "boss"}', "[1]"])
def test_roles_that_are_none(text, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "roles.json").write_text(text)
    with pytest.raises(DataError):
        read(tmp_path / "a.csv", roles=tmp_path / "roles.json")
    with pytest.raises(DataError):
        read(tmp_path / "a.csv", roles={"PAR": "boss"})
    with pytest.raises(DataError):
        read(tmp_path / "a.csv", roles=tmp_path / "nowhere.toml")


def test_roles_come_before_what_the_file_says(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("speaker,role,start_s,end_s,text\nINV,participant,0,1,one\nEXA,,1,2,two\n")
    assert [turn.role for turn in read(file)[0]] == ["participant", "assessor"]
    assert [turn.role for turn in read(file, roles={"inv": "other", "exa": "participant"})[0]] == [
        "other",
        "participant",
    ]


def test_unknown_speakers_are_named_but_words_are_not(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(CSV + f"SPEAKER_00,0,1,{CANARY}\nPAR,1,2,two\nso {CANARY} I said it,3,4,x\n")
    with pytest.raises(DataError) as caught:
        read(file)
    assert "'SPEAKER_00' and 1" in str(caught.value)
    assert "'PAR'" in str(caught.value)
    assert CANARY not in str(caught.value)


def test_speakers_without_a_name_can_be_mapped(tmp_path):
    file = tmp_path / "a.srt"
    file.write_text("1\n00:00:00,000 --> 00:00:01,000\nhello\n")
    assert "no name" in problems_of(file)[0][2]
    assert read(file, roles={"": "participant"})[0].turns[0].role == "participant"


def test_nobody_is_the_participant(tmp_path):
    assert wrong(tmp_path, CSV + "INV,0,1,one\n") == (None, "Nobody in it is the participant.")


def test_language_is_that_of_the_file_or_the_one_given():
    assert read(DATA / "C001.cha", language="en")[0].language == "yue"
    assert read(DATA / "C002.eaf", language="yue")[0].language == "yue"


# ---------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("rows", "line", "problem"),
    [
        ("PAR,2,1,one\n", 2, "The turn ends before it starts."),
        ("PAR,-1,1,one\n", 2, "A time is negative."),
        ("PAR,0,90000,one\n", 2, "A time is beyond 24 hours."),
        ("PAR,3000,63000,one\n", 2, "People hardly say anything in these times."),
        ("PAR,,1,one\n", 2, "The turn has no times."),
        ("PAR,soon,1,one\n", 2, "start_s is not a number."),
        ("PAR,0,inf,one\n", 2, "end_s is not a number."),
        ("PAR,0,1,one\nINV,5,6,two\nPAR,3,4,three\n", 4, "The turn starts before the one above it."),
        ("PAR,0,2,one\nPAR,1,3,two\n", 3, "The turn overlaps the one of line 2, of the same speaker."),
        ("PAR,0,1,one\nINV,1,2,two\nINV,1,2,two\n", None, None),
        ('PAR,0,1,"one\ntwo"\nPAR,3,2,x\n', 4, "The turn ends before it starts."),
        ("PAR,0,1\n", 2, "A row has not as many cells as the first."),
        ('PAR,0,1,"one\n', 2, "is not CSV that can be read."),
        ("", None, "has no turns."),
    ],
)
def test_problems_of_tables(rows, line, problem, tmp_path):
    if problem is None:
        (tmp_path / "a.csv").write_text(CSV + rows)
        assert "The row repeats an earlier one." in [what for _, _, what in problems_of(tmp_path / "a.csv")]
    else:
        assert wrong(tmp_path, CSV + rows) == (line, problem)


def test_turns_without_times_may_repeat(tmp_path):
    (tmp_path / "a.csv").write_text(CSV + "PAR,,,left\nINV,,,okay\nPAR,,,left\nINV,,,okay\n")
    assert len(read(tmp_path, untimed="keep")[0]) == 4


def test_different_speakers_may_overlap(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(CSV + "PAR,0,2,one\nINV,1,3,two\n")
    assert len(read(file)[0]) == 2


def test_turns_may_touch_a_little(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(CSV + "PAR,0,2,one\nPAR,1.96,3,two\nINV,1.95,3,three\n")
    assert len(read(file)[0]) == 3


def test_missing_columns(tmp_path):
    assert wrong(tmp_path, "speaker,start_s,end_s\nPAR,0,1\n") == (2, "has no column 'text'.")
    assert wrong(tmp_path, "speaker,start_s,end_s\n") == (1, "has no column 'text'.")
    assert wrong(tmp_path, "speaker;start_s;end_s;text\n") == (None, "has no turns.")
    assert wrong(tmp_path, "a,a\n1,2\n") == (1, "has two columns of the same name.")
    assert wrong(tmp_path, GOOD, columns={"episode": "visit"}) == (2, "has no column 'visit'.")
    with pytest.raises(DataError, match="no 'words'"):
        read(tmp_path, columns={"words": "x"})
    with pytest.raises(DataError, match="is for tables"):
        read(DATA / "E001.cha", columns={"text": "x"})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty."),
        (b" \n\t", "is empty."),
        (CSV.encode() + "PAR,0,1,caf\u00e9 noir\n".encode("cp850"), "an older encoding"),
        (CSV.encode() + "PAR,0,1,caf\u00e9 ni\u00f1o\n".encode("mac-roman"), "an older encoding"),
        (CSV.encode() + "PAR,0,1,caf\u00e9 \u00e0 \u00e9t\u00e9\n".encode() + b"\xe9 x\n", "damaged UTF-8"),
        (
            CSV.encode() + "PAR,0,1,\u043f\u0440\u044f\u043c\u043e \u044f, \u0438 \u0438\n".encode("cp1251"),
            "an older encoding",
        ),
        (CSV.encode() + "PAR,0,1,我一直行跟住轉左\n".encode("big5hkscs"), "Big5"),
        (CSV.encode() + "PAR,0,1,我一直走然后转左\n".encode("gb18030"), "GB 18030"),
        (GOOD.encode("utf-16-le"), "UTF-16"),
        (CSV.encode() + "PAR,0,1,我".encode()[:-1], "middle of a character"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(50), "something else than text"),
    ],
)
def test_what_is_not_utf8(content, says, tmp_path):
    assert says in wrong(tmp_path, content)[1]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_taken(encoding, tmp_path, caplog):
    file = tmp_path / "a.csv"
    file.write_bytes(GOOD.replace("left", "caf\u00e9").encode(encoding))
    assert read(file)[0].turns[1].text == "caf\u00e9"
    assert not caplog.records


@pytest.mark.parametrize(
    "text", ["caf\u00e9 noir, cr\u00e9\u00e9", "\u201cna\u00efve\u201d, it\u2019s \u2013 so\u2026 \u00e0 "]
)
def test_latin_letters_of_windows_are_read_and_noted(text, tmp_path, caplog):
    file = tmp_path / "a.csv"
    file.write_bytes((CSV + f'PAR,0,1,"{text}"\n').encode("cp1252"))
    assert read(file)[0].turns[0].text == text.strip()
    assert "a.csv is not UTF-8 and was read as Windows-1252" in caplog.text
    assert text not in caplog.text


@pytest.mark.parametrize("name", ["E001.cha", "E002.eaf", "E003.TextGrid", "E006.json"])
@pytest.mark.parametrize("part", [0.5, 0.8, 0.97])
def test_files_that_break_off(name, part, tmp_path):
    data = (DATA / name).read_bytes()
    line, what = wrong(tmp_path, data[: int(len(data) * part)], name)
    assert "breaks off" in what or "not JSON" in what
    assert line is not None


def test_entities_in_xml_are_refused(tmp_path):
    text = (DATA / "E002.eaf").read_text()
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>\n<ANNOTATION_DOCUMENT'
    assert "declares" in wrong(tmp_path, text.replace("<ANNOTATION_DOCUMENT", bomb, 1), "a.eaf")[1]


def test_elan_without_time_values(tmp_path):
    text = (DATA / "E002.eaf").read_text().replace(' TIME_VALUE="2900"', "")
    assert wrong(tmp_path, text, "a.eaf") == (26, "The turn has no times.")


def test_counts_of_a_textgrid_cannot_exhaust_memory(tmp_path):
    text = (DATA / "E003.TextGrid").read_text().replace("size = 4", "size = 999999999")
    assert wrong(tmp_path, text, "a.TextGrid")[1] in (
        "is not a TextGrid that can be read.", "breaks off before its end.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.cha", "nothing of the kind", (1, "is not a CHAT file that can be read.")),
        ("a.cha", "@UTF8\n@Begin\n*PAR hello\n@End\n", (3, "The line names no speaker.")),
        ("a.cha", "@UTF8\n@Begin\n@End\n", (None, "has no turns.")),
        ("a.cha", "@UTF8\n@Begin\n*PAR:\thello .\n@End\n", (3, "The turn has no times.")),
        ("a.cha", "@UTF8\n@Begin\n*PAR:\ta\n" + "\t<<<<<<<<\n" * 3_000 + "@End\n", (3, "An utterance is longer than 20,000 characters.")),
        ("a.eaf", "<x/>", (1, "is not an ELAN file that can be read.")),
        ("a.textgrid", 'File type = "ooTextFile"\nObject class = "Pitch"\n', (2, "does not begin as a TextGrid.")),
        ("a.srt", "hello\n", (1, "A subtitle does not begin with its number.")),
        ("a.srt", "1\n00:00:01,000 -> 00:00:02,000\nhi\n", (2, "The times of a subtitle are missing or cannot be understood.")),
        ("a.srt", "1\n-00:00:01,000 --> 00:00:02,000\nhi\n", (2, "The times of a subtitle are missing or cannot be understood.")),
        ("a.srt", "1\n00:00:01,0\u53bb --> 00:00:02,000\nhi\n", (2, "The times of a subtitle are missing or cannot be understood.")),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nPAR: a\nINV: b\n", (1, "Two speakers share one subtitle, so their times cannot be told apart.")),
        ("a.vtt", "hello\n", (1, "does not begin with WEBVTT.")),
        ("a.vtt", "WEBVTT\n\n00:01 --> 00:02\n<v PAR>hi\n", (3, "The times of a cue cannot be understood.")),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n<v PAR>hi <v INV>ho\n", (3, "Two speakers share one cue, so their times cannot be told apart.")),
        ("a.json", "{}", (None, NO_JSON)),
        ("a.json", "[1]", (None, NO_JSON)),
        ("a.json", "[" * 100_000, (None, "is not JSON that can be read.")),
        ("a.json", '{"segments": [7]}', (1, "The segment has no text.")),
        ("a.json", '{"segments": [{"text": "a", "start": "x"}]}', (1, "The times of a segment or of its words are not numbers.")),
        ("a.json", '{"segments": [{"text": "PAR: a", "end": 1}]}', (1, "The turn has no times.")),
        ("a.jsonl", "7\n", (1, "A line is no JSON object.")),
        ("a.jsonl", "{\n", (1, "A line is not JSON that can be read.")),
        ("a.jsonl", '{"speaker": "PAR", "start_s": 0, "end_s": 1, "text": 3}\n', (1, "The text is missing or is no text.")),
        ("a.jsonl", '{"speaker": "PAR", "start_s": 1' + "0" * 400 + ', "end_s": 1, "text": ""}\n', (1, "start_s is not a number.")),
    ],
)  # fmt: skip
def test_problems_of_formats(name, content, problem, tmp_path):
    assert wrong(tmp_path, content, name) == problem


def test_large_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "MOST_BYTES", 10)
    assert "too large" in wrong(tmp_path, GOOD)[1]


def test_two_files_of_one_participant(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "P1.csv").write_text(GOOD)
    (tmp_path / "a" / "P1.csv").write_text(GOOD)
    (tmp_path / "P2.csv").write_text(GOOD)
    found = read(tmp_path, strict=False)
    assert [one.participant for one in found] == ["P2"]
    assert found.problems["table"].to_list() == ["P1.csv", "a/P1.csv"]


def test_files_with_problems_are_left_out_whole(tmp_path):
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "bad.csv").write_text("participant," + CSV + "A,PAR,0,1,one\nB,PAR,3,2,two\n")
    found = read(tmp_path, strict=False)
    assert [one.participant for one in found] == ["good"]
    assert dict(found.problems.schema) == PROBLEM_SCHEMA
    assert found.problems.row(0) == ("bad.csv", 3, "B", "The turn ends before it starts.", "")
    with pytest.raises(DataError, match="1 problem in 1 of 2 files") as caught:
        read(tmp_path)
    assert str(caught.value.problems[0]) == "bad.csv (line 3): The turn ends before it starts."


# ---------------------------------------------------------------------- silence


@pytest.mark.parametrize("name", ["E001.cha", "E002.eaf", "E003.TextGrid", "E004.srt", "E005.vtt", "E006.json", "many.csv", "many.jsonl"])  # fmt: skip
@pytest.mark.parametrize("part", [0.6, 0.9, 1.0])
def test_nothing_said_reaches_an_error_a_log_or_a_repr(name, part, tmp_path, caplog, capfd):
    caplog.set_level(0)
    text = (DATA / name).read_text("utf-8").replace("tell me", CANARY).replace("Tell", CANARY)
    for word in ("I go", "up", "then", "left", "to the"):
        text = text.replace(word, f"{CANARY} {word}")
    file = tmp_path / name
    file.write_text(text[: int(len(text) * part)].replace("0,1", "9,1"))
    try:
        shown = repr(read(file)) + repr(list(read(file)[0]))
    except DataError as error:
        shown = f"{error} {error!r} {error.__cause__} {error.__context__} {error.problems}"
        assert error.__suppress_context__ or error.__context__ is None
    shown += "".join(map(str, read(file, strict=False).problems.rows()))
    shown += caplog.text + "".join(capfd.readouterr())
    assert CANARY not in shown


def test_missing_libraries_are_told(monkeypatch):
    for library in ("rustling", "rustling.chat", "webvtt"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(DataError, match=r"pip install 'fidm\[speech\]'"):
        read(DATA / "E001.cha")
    with pytest.raises(DataError, match="needs webvtt-py"):
        read(DATA / "E005.vtt")
    assert len(read(DATA / "many.csv")) == 3


def test_writing_to_an_unknown_suffix(tmp_path):
    one = Transcript("P1", (Turn("PAR", 0, 1, "hello", "participant"),))
    with pytest.raises(DataError, match="suffix"):
        write(one, tmp_path / "a.docx")
    with pytest.raises(DataError, match="no format"):
        write(one, tmp_path / "a.csv", format="docx")
    with pytest.raises(DataError, match="untimed"):
        read(DATA, untimed="maybe")


def test_a_folder_per_participant_holds_their_episodes(tmp_path):
    for who in ("P1", "P2"):
        for visit in ("visit1", "visit2"):
            (tmp_path / who).mkdir(exist_ok=True)
            (tmp_path / who / f"{visit}.csv").write_text(GOOD)
    with pytest.raises(DataError, match="names = "):
        read(tmp_path)
    found = [(item.participant, item.episode) for item in read(tmp_path, names="folder")]
    assert found == [("P1", "visit1"), ("P1", "visit2"), ("P2", "visit1"), ("P2", "visit2")]
    with pytest.raises(DataError, match="both say whose"):
        read(tmp_path, names="folder", participant=lambda path: "x")


def test_names_tell_participant_and_episode_by_a_pattern(tmp_path):
    for name in ("HC_01_visit1", "HC_01_visit2", "HC_02_visit1"):
        (tmp_path / f"{name}.csv").write_text(GOOD)
    found = [(item.participant, item.episode) for item in read(tmp_path, names="{participant}_{episode}")]
    assert found == [("HC_01", "visit1"), ("HC_01", "visit2"), ("HC_02", "visit1")]
    (tmp_path / "HC03.csv").write_text(GOOD)
    left = read(tmp_path, names="{participant}_{episode}", strict=False)
    assert left.problems["table"].to_list() == ["HC03.csv"]
    assert len(left) == 3
    for odd in ("visit", "{episode}", "{participant}{episode}", "{participant}_{participant}"):
        with pytest.raises(DataError, match="names is"):
            read(tmp_path, names=odd)


def test_what_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "nosuch")


# ---------------------------------------------------------------------- roles, file by file

TWO = "speaker,start_s,end_s,text\nSPEAKER_00,0,1,go left\nSPEAKER_01,1,2,and then\n"


def two_files(tmp_path):
    for name in ("P1.csv", "P2.csv"):
        (tmp_path / "talks").mkdir(exist_ok=True)
        (tmp_path / "talks" / name).write_text(TWO)
    return tmp_path / "talks"


BY_FILE = {
    "P1.csv": {"SPEAKER_00": "participant", "SPEAKER_01": "assessor"},
    "P2.csv": {"SPEAKER_00": "Assessor", "SPEAKER_01": "participant "},
}


def test_roles_may_differ_from_file_to_file(tmp_path):
    talks, table = two_files(tmp_path), tmp_path / "roles.csv"
    rows = [(name, who, role) for name, own in BY_FILE.items() for who, role in own.items()]
    table.write_text("File;Speaker;Role\n" + "".join(f"{';'.join(row)}\n" for row in rows))
    for roles in (BY_FILE, table):
        found = read(talks, roles=roles)
        assert [[turn.role for turn in one] for one in found] == [
            ["participant", "assessor"],
            ["assessor", "participant"],
        ]


def test_a_role_that_is_not_filled_in_is_told_with_its_file(tmp_path):
    talks, table = two_files(tmp_path), tmp_path / "roles.csv"
    table.write_text(
        "file,speaker,role\nP1.csv,SPEAKER_00,\nP1.csv,SPEAKER_01,assessor\nP2.csv,SPEAKER_00,boss\n"
    )
    with pytest.raises(DataError, match="does not say who everybody is") as raised:
        read(talks, roles=table)
    first, second = raised.value.problems
    assert (first.where, first.what) == ("P1.csv", "The role of 'SPEAKER_00' is empty.")
    assert second.where == "P2.csv"
    assert "participant" in first.hint


def test_roles_of_files_that_are_not_there_are_told(tmp_path):
    talks = two_files(tmp_path)
    with pytest.raises(DataError, match=r"not among the dialogs: P3.csv. Did you mean P"):
        read(talks, roles={**BY_FILE, "P3.csv": {"SPEAKER_00": "participant"}})


def test_two_participants_and_no_assessor_is_a_question(tmp_path):
    file = tmp_path / "P1.csv"
    file.write_text(
        "speaker,start_s,end_s,text,role\nPAR0,0,1,left,participant\nPAR1,1,2,and then,participant\n"
        "PAR0,2,3,up,participant\nPAR1,3,4,okay,participant\n"
    )
    with pytest.raises(
        DataError, match="2 speakers are participants, and nobody is the assessor: 'PAR0', 'PAR1'"
    ):
        read(file)
    assert {turn.role for turn in read(file, roles={"PAR1": "assessor"})[0]} == {"participant", "assessor"}
    both = read(file, roles={"PAR0": "participant", "PAR1": "participant"})[0]
    assert {turn.role for turn in both} == {"participant"}


def test_studies_below_the_dialogs_are_not_read(tmp_path):
    talks = two_files(tmp_path)
    (talks / "study").mkdir()
    (talks / "study" / "study.toml").write_text("schema = 1\n")
    (talks / "study" / "P3.csv").write_text(TWO)
    assert len(read(talks, roles=BY_FILE)) == 2
