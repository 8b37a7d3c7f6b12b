"""Files as the tools of labs write them: forced aligners, ELAN templates, recognisers, Batchalign, spreadsheets."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fidm.errors import DataError
from fidm.io.dialogs import read, write
from fidm.io.talk import Transcript, Turn

ROLES = {"SPEAKER_00": "participant", "SPEAKER_01": "assessor"}


def one(tmp_path: Path, name: str, content: str | bytes, **options) -> Transcript:
    """The one transcript of a file."""
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    (found,) = read(file, **options)
    return found


def shown(found: Transcript) -> list[tuple[str, float, float, str]]:
    return [(turn.speaker, turn.start_s, turn.end_s, turn.text) for turn in found]


def timed(turn: Turn) -> list[tuple[str, float, float]]:
    return [(turn.text[word.start : word.end], word.start_s, word.end_s) for word in turn.words]


# ---------------------------------------------------------------------- TextGrid


def short_grid(*tiers: tuple[str, list[tuple[float, float, str]]]) -> str:
    """A TextGrid in Praat's short form."""
    last = max(end for _, rows in tiers for _, end, _ in rows)
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "0", str(last), "<exists>"]
    lines.append(str(len(tiers)))
    for name, rows in tiers:
        lines += ['"IntervalTier"', f'"{name}"', "0", str(last), str(len(rows))]
        for start, end, text in rows:
            lines += [str(start), str(end), '"' + text.replace('"', '""') + '"']
    return "\n".join(lines) + "\n"


PAR_WORDS = [
    (0.0, 0.4, ""), (0.4, 0.6, "i"), (0.6, 0.9, "go"), (0.9, 1.2, "sp"), (1.2, 1.5, "left"),
    (1.5, 2.0, "<eps>"), (2.0, 2.3, "to"), (2.3, 2.5, "spn"), (2.5, 2.9, "meat"), (2.9, 5.0, ""),
]  # fmt: skip
INV_WORDS = [(0.0, 3.0, "sil"), (3.0, 3.2, "and"), (3.2, 3.5, "then"), (3.5, 5.0, "<p>")]
PHONES = [(0.0, 0.4, ""), (0.4, 0.6, "AY1"), (0.6, 5.0, "G")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_words_of_the_montreal_forced_aligner_become_utterances(encoding, tmp_path):
    text = short_grid(
        ("INV - words", INV_WORDS),
        ("INV - phones", PHONES),
        ("PAR - words", PAR_WORDS),
        ("PAR - phones", PHONES),
    )
    found = one(tmp_path, "P1.TextGrid", text.encode(encoding))
    assert shown(found) == [
        ("PAR", 0.4, 1.5, "i go left"),
        ("PAR", 2.0, 2.9, "to meat"),
        ("INV", 3.0, 3.5, "and then"),
    ]
    assert timed(found.turns[0]) == [("i", 0.4, 0.6), ("go", 0.6, 0.9), ("left", 1.2, 1.5)]


def test_words_of_one_speaker_without_a_name(tmp_path):
    text = short_grid(("words", PAR_WORDS), ("phones", PHONES))
    found = one(tmp_path, "P1.TextGrid", text, roles={"": "participant"})
    assert [turn.text for turn in found] == ["i go left", "to meat"]


def test_tiers_of_words_time_the_utterances_above_them(tmp_path):
    utterances = [(0.4, 1.6, "I go left."), (1.6, 2.0, ""), (2.0, 3.0, "to meat")]
    words = [(start, end, "I" if text == "i" else text) for start, end, text in PAR_WORDS]
    found = one(
        tmp_path,
        "P1.TextGrid",
        short_grid(("PAR", utterances), ("PAR_words", words), ("INV", INV_WORDS[1:3])),
    )
    assert [turn.text for turn in found if turn.speaker == "PAR"] == ["I go left.", "to meat"]
    assert timed(found.turns[0]) == [("I", 0.4, 0.6), ("go", 0.6, 0.9), ("left", 1.2, 1.5)]
    assert timed(found.turns[1]) == [("to", 2.0, 2.3), ("meat", 2.5, 2.9)]


def test_events_of_a_long_file_find_their_turns(tmp_path):
    n = 20_000
    said = [(2.0 * i, 2.0 * i + 1, "left") for i in range(n)]
    moved = [(2.0 * i + (0.5 if i % 2 else 1.5), 2.0 * i + (0.6 if i % 2 else 1.6), "move") for i in range(n)]
    found = one(tmp_path, "P1.TextGrid", short_grid(("PAR", said), ("events", moved)))
    assert len(found) == n + n // 2
    assert [(turn.speaker, len(turn.marks)) for turn in found.turns[:5]] == [
        ("PAR", 0), ("events", 1), ("PAR", 1), ("PAR", 0), ("events", 1),
    ]  # fmt: skip


# ---------------------------------------------------------------------- ELAN

ELAN = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2024-05-02T10:11:12+08:00" FORMAT="3.0" VERSION="3.0"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">
  <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">
    <MEDIA_DESCRIPTOR MEDIA_URL="file:///C:/study/audio/P07%20visit.wav" MIME_TYPE="audio/x-wav" {relative}/>
    <PROPERTY NAME="URN">urn:nl-mpi-tools-elan-eaf:1</PROPERTY>
    <PROPERTY NAME="lastUsedAnnotationId">9</PROPERTY>
    <PROPERTY NAME="site">Shatin</PROPERTY>
  </HEADER>
  <TIME_ORDER>
    <TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="0"/><TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="900"/>
    <TIME_SLOT TIME_SLOT_ID="ts3" TIME_VALUE="1000"/><TIME_SLOT TIME_SLOT_ID="ts4" TIME_VALUE="1300"/>
    <TIME_SLOT TIME_SLOT_ID="ts5"/><TIME_SLOT TIME_SLOT_ID="ts6" TIME_VALUE="2500"/>
  </TIME_ORDER>
  <TIER DEFAULT_LOCALE="en" LINGUISTIC_TYPE_REF="utt" PARTICIPANT="{who}" TIER_ID="{tier}">
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts3" TIME_SLOT_REF2="ts6">
      <ANNOTATION_VALUE>I go left</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
  </TIER>
  <TIER LINGUISTIC_TYPE_REF="words" PARENT_REF="{tier}" PARTICIPANT="{who}" TIER_ID="{tier}-words">
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a2" TIME_SLOT_REF1="ts3" TIME_SLOT_REF2="ts4">
      <ANNOTATION_VALUE>I</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a3" TIME_SLOT_REF1="ts4" TIME_SLOT_REF2="ts5">
      <ANNOTATION_VALUE>go</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a4" TIME_SLOT_REF1="ts5" TIME_SLOT_REF2="ts6">
      <ANNOTATION_VALUE>left</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
  </TIER>
  <TIER LINGUISTIC_TYPE_REF="gloss" PARENT_REF="{tier}-words" PARTICIPANT="{who}" TIER_ID="{tier}-gloss">
    <ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a5" ANNOTATION_REF="a2">
      <ANNOTATION_VALUE>1SG</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>
  </TIER>
  <TIER LINGUISTIC_TYPE_REF="parts" PARENT_REF="{tier}" PARTICIPANT="{who}" TIER_ID="pieces of it">
    <ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a6" ANNOTATION_REF="a1">
      <ANNOTATION_VALUE>I go</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>
    <ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a7" ANNOTATION_REF="a1" PREVIOUS_ANNOTATION="a6">
      <ANNOTATION_VALUE>left</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>
  </TIER>
  <TIER LINGUISTIC_TYPE_REF="utt" PARTICIPANT="{other}" TIER_ID="INV">
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a8" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
      <ANNOTATION_VALUE>and then?</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
  </TIER>
  <TIER LINGUISTIC_TYPE_REF="utt" TIER_ID="Notes">
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a9" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts6">
      <ANNOTATION_VALUE>noisy</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
  </TIER>
  <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="utt" TIME_ALIGNABLE="true"/>
  <LINGUISTIC_TYPE CONSTRAINTS="Time_Subdivision" LINGUISTIC_TYPE_ID="words" TIME_ALIGNABLE="true"/>
  <LINGUISTIC_TYPE CONSTRAINTS="Symbolic_Association" LINGUISTIC_TYPE_ID="gloss" TIME_ALIGNABLE="false"/>
  <LINGUISTIC_TYPE CONSTRAINTS="Symbolic_Subdivision" LINGUISTIC_TYPE_ID="parts" TIME_ALIGNABLE="false"/>
</ANNOTATION_DOCUMENT>
"""


def elan(*, who: str = "", tier: str = "PAR", other: str = "", relative: str = "") -> str:
    return ELAN.format(who=who, tier=tier, other=other, relative=relative)


def test_a_template_of_elan(tmp_path):
    found = one(tmp_path, "P7.eaf", elan(relative='RELATIVE_MEDIA_URL="./audio/P07%20visit.wav"'))
    assert shown(found) == [("INV", 0.0, 0.9, "and then?"), ("PAR", 1.0, 2.5, "I go left")]
    first, second, third = timed(found.turns[1])
    assert first == ("I", 1.0, 1.3)
    assert (second[:2], third[0], third[2]) == (("go", 1.3), "left", 2.5)
    assert math.isnan(second[2])
    assert math.isnan(third[1])
    assert dict(found.about) == {"site": "Shatin"}
    assert found.media == "audio/P07 visit.wav"


def test_participants_of_tiers_name_the_speakers(tmp_path):
    text = elan(who="Anna", tier="Tier-1", other="Ben")
    found = one(tmp_path, "P7.eaf", text, roles={"anna": "participant", "Ben": "assessor"})
    assert [turn.speaker for turn in found] == ["Ben", "Anna"]
    assert timed(found.turns[1])[0] == ("I", 1.0, 1.3)
    assert found.media == "P07 visit.wav"
    with pytest.raises(DataError, match="not known: 'Anna'"):
        read(tmp_path / "P7.eaf")


@pytest.mark.parametrize("after", ["<!-- -->" * 30 + "x", "<!---->" * 30 + "<", " " * 300 + "&", "<!--" * 60])
def test_what_follows_the_end_of_an_elan_file_costs_no_time(after, tmp_path):
    (tmp_path / "a.eaf").write_text("<ANNOTATION_DOCUMENT></ANNOTATION_DOCUMENT>" + after)
    assert read(tmp_path / "a.eaf", strict=False).problems.height == 1


# ---------------------------------------------------------------------- Whisper's relatives


def cpp(start: int, end: int, text: str, **more: object) -> dict[str, object]:
    clock = {
        "from": f"00:00:0{start // 1000},{start % 1000:03d}",
        "to": f"00:00:0{end // 1000},{end % 1000:03d}",
    }
    return {"timestamps": clock, "offsets": {"from": start, "to": end}, "text": text, **more}


def whisper_cpp(*rows: dict[str, object]) -> str:
    model = {"type": "base", "multilingual": False}
    head = {
        "systeminfo": "AVX = 1",
        "model": model,
        "params": {"language": "en"},
        "result": {"language": "en"},
    }
    return json.dumps({**head, "transcription": rows})


def test_whisper_cpp(tmp_path):
    tokens = [
        cpp(2000, 2000, "[_BEG_]", id=50364, p=0.9), cpp(2000, 2300, " I", id=1), cpp(2300, 2500, "'m", id=2),
        cpp(2500, 3100, " left", id=3), cpp(3100, 3200, ".", id=4), cpp(3200, 3200, "[_TT_150]", id=5),
    ]  # fmt: skip
    rows = cpp(0, 1500, " And then?", speaker="1"), cpp(2000, 3200, " I'm left.", speaker="0", tokens=tokens)
    found = one(tmp_path, "P1.json", whisper_cpp(*rows), roles={"0": "participant", "1": "assessor"})
    assert shown(found) == [("1", 0.0, 1.5, "And then?"), ("0", 2.0, 3.2, "I'm left.")]
    assert found.language == "en"
    assert timed(found.turns[1]) == [("I'm", 2.0, 2.5), ("left.", 2.5, 3.2)]


def test_whisper_cpp_with_tinydiarize(tmp_path):
    rows = (
        cpp(0, 1500, " And then? [SPEAKER_TURN]", speaker_turn_next=True),
        cpp(2000, 3200, " I go", speaker_turn_next=False), cpp(3200, 4000, " left.", speaker_turn_next=True),
        cpp(4000, 4500, " Okay.", speaker_turn_next=False),
    )  # fmt: skip
    found = one(
        tmp_path, "P1.json", whisper_cpp(*rows), roles={"SPEAKER_01": "participant", "SPEAKER_00": "assessor"}
    )
    assert [(turn.role, turn.text) for turn in found] == [
        ("assessor", "And then?"), ("participant", "I go"), ("participant", "left."), ("assessor", "Okay."),
    ]  # fmt: skip


FASTER = {
    "dicts": [
        {"id": 1, "seek": 250, "start": 0.0, "end": 1.5, "text": " And then?", "tokens": [1, 2], "words": None, "speaker": "SPEAKER_01"},
        {"id": 2, "seek": 500, "start": 2.0, "end": 3.2, "text": " I go", "tokens": [1], "speaker": "SPEAKER_00",
         "words": [{"start": 2.0, "end": 2.4, "word": " I", "probability": 0.9}, {"start": 2.5, "end": 3.2, "word": " go", "probability": 0.9}]},
    ],
    "tuples": [
        [1, 250, 0.0, 1.5, " INV: And then?", [50364, 400], 0.0, -0.2, 1.1, 0.01, None],
        [2, 500, 2.0, 3.2, " PAR: I go", [50364], -0.2, 1.1, 0.01, [[2.0, 2.4, " PAR: I", 0.9], [2.5, 3.2, " go", 0.9]], 0.0],
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", FASTER)
def test_lists_of_faster_whisper(shape, tmp_path):
    found = one(tmp_path, "P1.json", json.dumps(FASTER[shape]), roles=ROLES)
    assert [(turn.role, turn.start_s, turn.end_s, turn.text) for turn in found] == [
        ("assessor", 0.0, 1.5, "And then?"), ("participant", 2.0, 3.2, "I go"),
    ]  # fmt: skip
    assert timed(found.turns[1])[-1] == ("go", 2.5, 3.2)


def test_chunks_of_hugging_face(tmp_path):
    chunks = [
        {"timestamp": [0.0, 1.5], "text": " And then we go?", "speaker": "SPEAKER_01"},
        {"timestamp": [2.0, None], "text": " I go left.", "speaker": "SPEAKER_00"},
    ]
    found = one(tmp_path, "P1.json", json.dumps({"text": "…", "chunks": chunks}), roles=ROLES)
    assert [turn.text for turn in found] == ["And then we go?", "I go left."]
    assert found.turns[1].start_s == 2.0
    assert math.isnan(found.turns[1].end_s)


def test_single_words_of_hugging_face_become_utterances(tmp_path):
    words = [
        (" I", 0.0, 0.2),
        ("'m", 0.2, 0.3),
        (" going", 0.4, 0.9),
        (" left.", 1.0, 1.3),
        (" Then", 1.4, 1.6),
        (" up", 2.1, None),
    ]
    chunks = [{"text": text, "timestamp": [start, end]} for text, start, end in words]
    found = one(tmp_path, "P1.json", json.dumps({"text": "…", "chunks": chunks}), roles={"": "participant"})
    assert [turn.text for turn in found] == ["I'm going left.", "Then", "up"]
    assert timed(found.turns[0]) == [("I'm", 0.0, 0.3), ("going", 0.4, 0.9), ("left.", 1.0, 1.3)]
    assert found.turns[0].end_s == 1.3


def test_single_words_of_scripts_without_spaces(tmp_path):
    chunks = [
        {"text": text, "timestamp": [i / 5, i / 5 + 0.2], "speaker": "SPEAKER_00" if i < 4 else "SPEAKER_01"}
        for i, text in enumerate(["我", "一直", "行", "。", "好", "呀"])
    ]
    found = one(tmp_path, "P1.json", json.dumps({"text": "…", "speakers": [], "chunks": chunks}), roles=ROLES)
    assert [turn.text for turn in found] == ["我一直行。", "好呀"]


# ---------------------------------------------------------------------- CHAT

BATCHALIGN = """@UTF8
@Begin
@Languages:\teng
@Participants:\tPAR0 Participant, PAR1 Participant
@ID:\teng|corpus_name|PAR0|||||Participant|||
@ID:\teng|corpus_name|PAR1|72;03.|female|MCI||Participant|16|left-handed|
@Media:\tP07_visit1, audio
*PAR0:\tand then ? \x150_900\x15
%wor:\tand \x150_320\x15 then \x15320_900\x15 ?
*PAR1:\t&-um <I go> [/] I go left . \x151000_4000\x15
%wor:\t&-um \x151000_1300\x15 I \x151400_1500\x15 go I \x152000_2200\x15 go \x152200_2500\x15 left \x152500_4000\x15 .
@End
"""


def test_chat_of_batchalign(tmp_path):
    found = one(tmp_path, "P7.cha", BATCHALIGN, roles={"PAR0": "assessor", "PAR1": "participant"})
    assert [turn.role for turn in found] == ["assessor", "participant"]
    assert timed(found.turns[0]) == [("and", 0.0, 0.32), ("then", 0.32, 0.9)]
    assert timed(found.turns[1]) == [
        ("um", 1.0, 1.3), ("I", 1.4, 1.5), ("I", 2.0, 2.2), ("go", 2.2, 2.5), ("left", 2.5, 4.0),
    ]  # fmt: skip
    assert found.about == {
        "age": "72.25", "sex": "female", "group": "MCI", "education": "16", "custom": "left-handed",
    }  # fmt: skip
    assert found.media == "P07_visit1"


def test_times_of_words_without_their_signs(tmp_path):
    plain = BATCHALIGN.replace("and \x150_320\x15 then \x15320_900\x15", "and 0_320 then 320_900")
    found = one(tmp_path, "P7.cha", plain, roles={"PAR0": "assessor", "PAR1": "participant"})
    assert timed(found.turns[0]) == [("and", 0.0, 0.32), ("then", 0.32, 0.9)]


def test_batchalign_does_not_know_who_is_the_participant(tmp_path):
    (tmp_path / "P7.cha").write_text(BATCHALIGN)
    with pytest.raises(DataError, match="2 speakers are not known: 'PAR0', 'PAR1'"):
        read(tmp_path / "P7.cha")


@pytest.mark.parametrize("name", ["P7.cha", "P7.json"])
def test_what_a_file_says_of_the_participant_survives(name, tmp_path):
    found = one(tmp_path, "P7.cha", BATCHALIGN, roles={"PAR0": "assessor", "PAR1": "participant"})
    write(found, tmp_path / name)
    assert read(tmp_path / name)[0].about == found.about


@pytest.mark.parametrize(
    "line", ["(" + "1" * 15_000 + "x", "a" + "," * 15_000 + "b", "(" + "1" * 15_000 + ":)"]
)
def test_long_tokens_of_chat_cost_no_time(line, tmp_path):
    text = (
        f"@UTF8\n@Begin\n@Participants:\tPAR Participant\n*PAR:\t{line} . \x150_9\x15\n%wor:\t{line}\n@End\n"
    )
    (tmp_path / "a.cha").write_text(text)
    assert len(read(tmp_path / "a.cha", strict=False).items) <= 1


def test_voices_of_blanks_cost_no_time(tmp_path):
    (tmp_path / "a.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\n<v" + " " * 60_000 + "<i>hi\n")
    assert read(tmp_path / "a.vtt", strict=False).problems.height == 1


# ---------------------------------------------------------------------- tables

ROWS = [
    ("speaker", "start_s", "end_s", "text"),
    ("INV", "{0}", "{1}", "and then?"),
    ("PAR", "{2}", "{3}", "où ça"),
]
SECONDS = [("INV", 0.0, 1.5, "and then?"), ("PAR", 62.25, 3725.5, "où ça")]


def rows_of(between: str, *times: str) -> str:
    return "\n".join(between.join(cells) for cells in ROWS).format(*times) + "\n"


@pytest.mark.parametrize(
    ("between", "times"),
    [
        (",", ("0", "1.5", "62.25", "3725.5")),
        (";", ("0", "1,5", "62,25", "3725,5")),
        ("\t", ("0", "1,5", "62,25", "3725,5")),
        (";", ("0:00", "0:01.5", "1:02.25", "1:02:05.5")),
        (",", ("00:00:00", "00:00:01.500", "00:01:02.250", "62:05.5")),
        ("\t", ("00:00:00,000", "00:00:01,500", "00:01:02,250", "01:02:05,500")),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("name", ["P1.csv", "P1.tsv"])
def test_tables_of_turns_as_spreadsheets_write_them(between, times, encoding, name, tmp_path, caplog):
    assert shown(one(tmp_path, name, rows_of(between, *times).encode(encoding))) == SECONDS
    assert ("was read as Windows-1252" in caplog.text) == (encoding == "cp1252")


@pytest.mark.parametrize(
    "time", ["1,500", "1:60", "1:02:60", "1:60:00", "0:00:01:05", "1.5,2", ":30", "-0:30"]
)
def test_what_is_no_time(time, tmp_path):
    (tmp_path / "a.csv").write_text(rows_of(",", "0", "1", "1", f'"{time}"'))
    with pytest.raises(DataError, match="end_s is not a number"):
        read(tmp_path / "a.csv")


def test_points_and_commas_in_one_table_are_not_guessed(tmp_path):
    (tmp_path / "a.csv").write_text(rows_of(";", "0", "1.500", "1600,5", "1700"))
    with pytest.raises(DataError, match="Some times have points, others commas"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("columns", "named"),
    [("Utterance text", "column 4 of another name"), ("notes;zzcanary up", "columns 4, 5 of other names")],
)
def test_a_missing_column_is_told_with_those_found(columns, named, tmp_path):
    """A name that is not known may be speech, where lines of a broken file run together."""
    (tmp_path / "a.csv").write_text(
        f"who;start_s;end_s;{columns}\nPAR;0;1{';left' * (columns.count(';') + 1)}\n"
    )
    with pytest.raises(DataError, match=f"It has 'who', 'start_s', 'end_s', {named}\\.") as raised:
        read(tmp_path / "a.csv")
    assert not any(repr(column) in str(raised.value) for column in columns.split(";"))


@pytest.mark.parametrize("row", ["PAR,0,1,start", "PAR,0:00,0:01,end", "INV,start,quietly,please"])
def test_a_first_row_of_speech_is_not_shown(row, tmp_path):
    (tmp_path / "a.csv").write_text(f"{row}\nPAR,1,2,more\n")
    with pytest.raises(DataError, match="Its first row must hold the names") as raised:
        read(tmp_path / "a.csv")
    said = row.split(",")[-1]
    assert repr(said) not in str(raised.value)


# ---------------------------------------------------------------------- names of speakers

HEAD = "speaker,start_s,end_s,text\n"


def refusal(tmp_path: Path, rows: list[tuple[str, str]]) -> str:
    text = HEAD + "".join(f"{who},{n},{n + 1},{said}\n" for n, (who, said) in enumerate(rows))
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError) as raised:
        read(tmp_path / "a.csv")
    return str(raised.value)


TALK = [
    ("Dr Ann Smith", "and then"),
    ("Frau Müller", "go left"),
    ("Dr Ann Smith", "okay"),
    ("Frau Müller", "up"),
]


def test_names_with_spaces_are_shown_whole(tmp_path):
    assert "2 speakers are not known: 'Dr Ann Smith', 'Frau Müller'." in refusal(tmp_path, TALK)


@pytest.mark.parametrize("times", [1, 3])
def test_what_was_said_is_not_taken_for_a_name(times, tmp_path):
    swapped = [(said, who) for who, said in TALK] * times
    text = refusal(tmp_path, swapped)
    assert "go left" not in text
    assert "and then" not in text


def test_pauses_of_a_speaker_are_silence(tmp_path):
    rows = [(0.0, 1.0, "<p>"), (1.0, 2.0, "go left"), (2.0, 3.0, "sp"), (3.0, 4.0, ""), (4.0, 5.0, "SIL")]
    found = one(tmp_path, "P1.TextGrid", short_grid(("PAR", rows)))
    assert shown(found) == [("PAR", 1.0, 2.0, "go left")]
