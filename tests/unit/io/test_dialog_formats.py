"""Each format of dialogs: what is read, what is written, what is wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fidm.errors import DataError
from fidm.io.dialogs import formats, read, write
from fidm.io.formats.base import clean, tidy
from fidm.io.formats.chat import parse, written
from fidm.io.formats.checks import KNOWN
from fidm.io.formats.subtitles import from_clock, split_prefix, to_clock
from fidm.io.talk import Mark, Transcript, Turn, Word

DATA = Path(__file__).parents[2] / "data" / "dialogs"
ROLES = DATA / "roles.toml"


def turns(name: str) -> list[tuple[str, str, float, float, str]]:
    (one,) = read(DATA / name, roles=ROLES)
    return [(turn.speaker, turn.role, turn.start_s, turn.end_s, turn.text) for turn in one]


def kinds(marks: list[Mark] | tuple[Mark, ...]) -> list[tuple[str, int, int]]:
    return [(mark.kind, mark.start, mark.end) for mark in marks]


# ---------------------------------------------------------------------- CHAT


@pytest.mark.parametrize(
    ("line", "text", "marks"),
    [
        ("I go left .", "I go left.", []),
        ("I (.) go (..) left (...) .", "I go left.", [("pause", 1, 1), ("pause", 4, 4), ("pause", 9, 9)]),
        ("&-uh I go .", "uh I go.", [("filler", 0, 2)]),
        ("&uh I go .", "uh I go.", [("filler", 0, 2)]),
        ("&-uh, I go .", "uh, I go.", [("filler", 0, 2)]),
        ("<I go> [/] I go .", "I go I go.", [("retraced", 0, 4)]),
        ("left [//] right .", "left right.", [("retraced", 0, 4)]),
        ("<the the> [///] a <b <c d> [/] c> [/-] e", "the the a b c d c e", [("retraced", 0, 7), ("retraced", 10, 17), ("retraced", 12, 15)]),
        ("go &=laughs on [=! whispers] .", "go on.", []),
        ("go &=points:left on .", "go on.", [("event", 2, 2)]),
        ("0 [=! points] .", "", [("event", 0, 0)]),
        ("xxx .", "", []),
        ("a yyy b www c xxx .", "a b c.", []),
        ("&+fr &~ba from 0the shop .", "from shop.", []),
        ("go &*INV:mhm on .", "go on.", []),
        ("(be)cause gonna [: going to] [*] go .", "because going to go.", []),
        ("letter b@l bana:nas black+board .", "letter b bananas blackboard.", []),
        ("at 10:30 we go .", "at 10:30 we go.", []),
        ('+" no +...', "no", []),
        ("what +/?", "what", []),
        ("I said +\"/.", "I said", []),
        ("+, and then [+ exc] .", "and then.", []),
        ("well ‡ you „ right ?", "well you right?", []),
        ("<over lap> [>] [<1] [x 3] there .", "over lap there.", []),
        ("[- yue] 我 去 , 左 邊 。", "我 去, 左 邊。", []),
        ("unclosed < here [ and ( there", "unclosed here and ( there", []),
        ("", "", []),
    ],
)  # fmt: skip
def test_main_lines_of_chat(line, text, marks):
    found, noted = parse(line)
    assert found == text
    assert kinds(noted) == marks


@pytest.mark.parametrize(
    ("sign", "seconds"), [("(1.5)", 1.5), ("(2.)", 2.0), ("(1:02.5)", 62.5), ("(0.15)", 0.15)]
)
def test_timed_pauses_of_chat(sign, seconds):
    _, (mark,) = parse(f"I {sign} go .")
    assert mark == Mark("pause", 1, 1, seconds)


def test_untimed_pauses_of_chat_have_no_length():
    _, (mark,) = parse("I (..) go .")
    assert math.isnan(mark.seconds)


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("uh I go I go left.", [("filler", 0, 2), ("retraced", 3, 7)]),
        ("uh uh no", [("filler", 0, 2), ("filler", 3, 5), ("retraced", 0, 5)]),
        ("誒 我 去 左 邊", [("filler", 0, 1), ("pause", 5, 5), ("event", 9, 9)]),
        ("what!?", []),
        ("...", []),
        ("", [("event", 0, 0), ("event", 0, 0)]),
        ("", []),
    ],
)
def test_main_lines_survive_writing(text, marks):
    noted = [Mark(kind, start, end) for kind, start, end in marks]
    found, again = parse(written(text, noted))
    assert found == text
    assert sorted(kinds(again)) == sorted(marks)


def test_marks_inside_words_move_or_go():
    text = "一直行去左邊"
    line = written(text, [Mark("filler", 0, 1), Mark("pause", 3, 3, 1.25)])
    found, marks = parse(line)
    assert found == text
    assert marks == [Mark("pause", 6, 6, 1.25)]


def test_a_chat_file():
    (one,) = read(DATA / "E001.cha")
    assert (one.participant, one.language, one.format) == ("E001", "en", "chat")
    assert [turn.role for turn in one] == ["assessor", "participant", "assessor", "participant", "participant", "other", "participant"]  # fmt: skip
    first = one.turns[1]
    assert first.text == "uh I go up and then and then I turn left at the entrance."
    assert (first.line, first.start_s, first.end_s) == (14, 2.9, 8.12)
    assert kinds(first.marks) == [
        ("filler", 0, 2),
        ("pause", 10, 10),
        ("retraced", 11, 19),
        ("pause", 40, 40),
    ]
    assert first.words == (Word(0, 2, 2.9, 3.1), Word(3, 4, 3.15, 3.2), Word(5, 7, 3.22, 3.5))
    assert kinds(one.turns[0].marks) == [("event", 39, 39)]


def test_a_cantonese_chat_file():
    (one,) = read(DATA / "C001.cha")
    assert one.language == "yue"
    assert one.turns[1].text == "誒 我 一直 行 跟住 轉 左 轉 右, 去到 菜 嗰度."
    assert one.turns[3].text == "買 咗 豆腐 再 行 兩 格, 𨋢 嗰邊."


def test_chat_roles_beat_codes_and_mothers_are_others(tmp_path):
    file = tmp_path / "a.cha"
    file.write_text(
        "@UTF8\n@Begin\n@Participants:\tINV Participant, XYZ Investigator, MOT Mother\n"
        "*INV:\tone . \x150_10\x15\n*XYZ:\ttwo . \x1510_20\x15\n*MOT:\tthree . \x1520_30\x15\n@End\n"
    )
    (one,) = read(file)
    assert [turn.role for turn in one] == ["participant", "assessor", "other"]


# ---------------------------------------------------------------------- other formats


def test_an_elan_file():
    assert turns("E002.eaf") == [
        ("INV", "assessor", 0.0, 2.5, "tell me how you walk"),
        ("PAR", "participant", 2.9, 8.12, "I go up and then left & in"),
        ("INV", "assessor", 8.3, 9.0, "and then?"),
        ("PAR", "participant", 9.1, 12.0, "to the <meat>"),
        ("events", "assessor", 12.5, 13.0, ""),
    ]
    (one,) = read(DATA / "E002.eaf")
    assert kinds(one.turns[1].marks) == [("event", 26, 26)]
    assert kinds(one.turns[4].marks) == [("event", 0, 0)]
    assert one.turns[1].line == 26


def test_praats_long_and_short_form():
    assert turns("E003.TextGrid")[1] == ("PAR", "participant", 2.9, 8.12, 'I go "up" ! and then left')
    assert turns("E003.TextGrid")[4] == ("events", "assessor", 12.5, 12.5, "")
    assert turns("C003.TextGrid")[1] == ("PAR", "participant", 2.8, 9.4, "誒\uff0c我一直行")  # in UTF-16


def test_subtitles():
    assert turns("E004.srt")[0] == ("INV", "assessor", 0.0, 2.5, "tell me how you walk")
    assert turns("E004.srt")[1] == ("PAR", "participant", 2.9, 8.12, "I go up, I said: left")
    assert [turn[0] for turn in turns("C004.srt")] == ["SPEAKER_01", "SPEAKER_00"]
    assert turns("E005.vtt")[1] == ("Participant", "participant", 2.9, 8.12, "I go up & left")
    assert [turn[1] for turn in turns("C005.vtt")] == ["assessor", "participant"]
    assert read(DATA / "E005.vtt")[0].language == "en"


def test_whisperx_segments_are_cut_where_words_change_speaker():
    assert turns("E006.json")[1:] == [
        ("SPEAKER_00", "participant", 2.9, 3.8, "I go up."),
        ("SPEAKER_01", "assessor", 4.0, 4.5, "And then?"),
        ("SPEAKER_00", "participant", 4.9, 6.0, "Left 2 steps."),
    ]
    (one,) = read(DATA / "E006.json", roles=ROLES)
    last = one.turns[-1]
    assert [last.text[word.start : word.end] for word in last.words] == ["Left", "2", "steps."]
    assert math.isnan(last.words[1].start_s)


def test_whisper_words_that_differ_from_the_text_are_the_text(tmp_path):
    file = tmp_path / "a.json"
    word = [{"word": " Two", "start": 0, "end": 1}, {"word": " words", "start": 1, "end": 2}]
    segment = {"start": 0, "end": 2, "text": "something else", "words": word, "speaker": "PAR"}
    file.write_text(json.dumps({"segments": [segment]}))
    assert read(file)[0].turns[0].text == "Two words"


def test_tables_hold_many_participants():
    found = read(DATA / "many.csv")
    assert [(one.participant, one.episode, one.language) for one in found] == [
        ("P1", "1", "en"), ("P2", "1", "yue"), ("P2", "2", "yue"),
    ]  # fmt: skip
    assert found[0].turns[1].text == 'I go "up"'
    assert [one.participant for one in read(DATA / "many.jsonl")] == ["J1", "J2"]


def test_columns_are_renamed(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("who,from,to,utterance\nPAR,0,1,hello\n")
    names = {"speaker": "who", "start_s": "from", "end_s": "to", "text": "utterance"}
    assert read(file, columns=names)[0].turns[0].text == "hello"


# ---------------------------------------------------------------------- what they share


def test_clean_text():
    assert clean("  e\u0301  a\x00\tb\ufeff\n") == "\u00e9 a b"
    assert clean("a\ud800b") == "a\ufffdb"
    assert clean("𨋢\u3000嗰邊") == "𨋢 嗰邊"


def test_tidy_moves_words_and_marks():
    turn = Turn("PAR", 0, 1, "  one   two", words=(Word(8, 11, 0, 1),), marks=(Mark("filler", 2, 5),))
    found = tidy(turn)
    assert found.text == "one two"
    assert found.text[found.words[0].start : found.words[0].end] == "two"
    assert (found.marks[0].start, found.marks[0].end) == (0, 3)


@pytest.mark.parametrize(
    ("text", "speaker", "rest"),
    [
        ("PAR: hello", "PAR", "hello"),
        ("PAR:", "PAR", ""),
        ("[SPEAKER_00]: hello", "SPEAKER_00", "hello"),
        ("[SPEAKER_00] hello", "SPEAKER_00", "hello"),
        ("[Anna B]: hello", "Anna B", "hello"),
        ("Participant: hello", "Participant", "hello"),
        ("醫生\uff1a行呀", "醫生", "行呀"),
        ("[個案]\uff1a行呀", "個案", "行呀"),
        ("我話\uff1a行呀", "", "我話\uff1a行呀"),
        ("[laughs] hello", "", "[laughs] hello"),
        ("I said: go", "", "I said: go"),
        ("at 10:30 then", "", "at 10:30 then"),
        ("", "", ""),
    ],
)
def test_speakers_before_a_text(text, speaker, rest):
    assert split_prefix(text, frozenset(KNOWN)) == (speaker, rest)


def test_clocks():
    assert from_clock("01:02:03,456") == 3723.456
    assert from_clock("02:03.4") == 123.4
    assert math.isnan(from_clock("2:3"))
    assert to_clock(3723.456, ",") == "01:02:03,456"
    assert to_clock(59.9996, ".") == "00:01:00.000"


# ---------------------------------------------------------------------- writing

WHOLE = Transcript(
    "P9",
    (
        Turn("INV", 0.0, 1.5, "How do you go?", "assessor", marks=(Mark("event", 14, 14),)),
        Turn("PAR", 1.5, 4.25, "uh I go I go up 𨋢", "participant",
             words=(Word(0, 2, 1.5, 1.75), Word(3, 4, 2.0, 2.125)),
             marks=(Mark("filler", 0, 2), Mark("retraced", 3, 7), Mark("pause", 15, 15, 1.5))),
        Turn("INV", 4.0, 4.5, "mhm", "assessor"),
        Turn("PAR", 5.0, 6.0, "", "participant", marks=(Mark("event", 0, 0),)),
    ),
    episode="2",
    language="yue",
)  # fmt: skip


@pytest.mark.parametrize("one", formats(), ids=lambda one: one.name)
def test_what_is_written_is_read(one, tmp_path):
    file = tmp_path / f"P9{one.suffixes[0]}"
    write(WHOLE, file)
    (again,) = read(file, language="" if "language" in one.keeps else "yue")
    assert (again.participant, again.language) == ("P9", "yue")
    assert again.episode == ("2" if "participant" in one.keeps else "1")
    wanted = [turn for turn in WHOLE if turn.text or one.name != "textgrid"]
    found = [turn for turn in again if turn.text or one.name != "textgrid"]
    assert [(t.speaker, t.role, t.text) for t in found] == [(t.speaker, t.role, t.text) for t in wanted]
    for a, b in zip(found, wanted, strict=True):
        assert (a.start_s, a.end_s) == pytest.approx((b.start_s, b.end_s), abs=0.001)
        keep = {"pauses": "pause", "fillers": "filler", "retracings": "retraced", "events": "event"}
        kept = {keep[name] for name in one.keeps if name in keep}
        assert sorted(kinds(a.marks)) == sorted(kinds([mark for mark in b.marks if mark.kind in kept]))
        assert a.words == (b.words if "words" in one.keeps else ())


@pytest.mark.parametrize("name", ["srt", "vtt", "elan", "textgrid"])
def test_formats_that_need_times_refuse_turns_without(name, tmp_path):
    untimed = Transcript("P1", (Turn("PAR", math.nan, math.nan, "hello", "participant"),))
    with pytest.raises(DataError, match="no times"):
        write(untimed, tmp_path / "a", format=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["chat", "csv", "jsonl", "whisper"])
def test_turns_without_times_are_kept_when_asked(name, tmp_path):
    untimed = Transcript("P1", (Turn("PAR", math.nan, math.nan, "hello", "participant"),))
    file = tmp_path / "P1.x"
    write(untimed, file, format=name)
    with pytest.raises(DataError, match="has no times"):
        read(file, format=name)
    assert not read(file, format=name, untimed="keep")[0].turns[0].is_timed


@pytest.mark.parametrize(
    ("speaker", "text", "name"),
    [
        ("PAR", "go <left> [now]", "chat"),
        ("Anna B", "go left", "chat"),
        ("", "PAR: left", "srt"),
        ("PAR", "a <i>b</i>", "srt"),
        ("P>R", "left", "textgrid"),
        ("events", "left", "elan"),
        ("%act", "left", "textgrid"),
        ("PAR", "two at once", "textgrid"),
    ],
)
def test_what_a_format_cannot_show_is_refused_not_changed(speaker, text, name, tmp_path):
    spoken = [Turn(speaker, 0, 2, text, "participant")]
    if text == "two at once":
        spoken.append(Turn(speaker, 1, 3, text, "participant"))
    one = Transcript("P1", tuple(spoken))
    if speaker == "P>R":
        write(one, tmp_path / "a", format=name)
        return
    (tmp_path / "a").write_text("older")
    with pytest.raises(DataError) as caught:
        write(one, tmp_path / "a", format=name)
    assert text not in str(caught.value)
    assert (tmp_path / "a").read_text() == "older"
    assert len(list(tmp_path.iterdir())) == 1
