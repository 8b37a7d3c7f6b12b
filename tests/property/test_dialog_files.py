"""Dialogs through every format and back; broken files give a DataError that says nothing that was said."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from fidm.errors import DataError
from fidm.io.dialogs import formats, read, write
from fidm.io.formats.base import clean
from fidm.io.talk import Mark, Transcript, Turn, Word

DATA = Path(__file__).parents[1] / "data" / "dialogs"
SAMPLES = sorted(path for path in DATA.iterdir() if path.suffix != ".toml")
CANARY = "zzkanarienvogel"
NAMES = [one.name for one in formats()]
BY_NAME = {one.name: one for one in formats()}
SPEAKERS = {
    "PAR": "participant", "INV": "assessor", "SPEAKER_00": "participant", "Dr_Wu": "assessor", "個案": "participant",
    "OBS": "other",
}  # fmt: skip

LETTERS = st.one_of(
    st.sampled_from([*list("abcIé去左轉𨋢𠮷😀ｱ"), "é", " ", " ", " "]),
    st.sampled_from([*list("\"'<>&:|;,.?!-_()[]{}@+*%^~/\\#=0123456789`$。，？："), "\u200d", "-->"]),
    st.characters(exclude_categories=["Cs"]),
)
PLAIN = st.sampled_from([*list("abcIé去左轉𨋢𠮷😀ｱ,.?!'-"), "。", "，", " ", " "])
"""What CHAT can show; it has no way to escape its signs."""


@st.composite
def spoken(draw: st.DrawFn, letters: st.SearchStrategy[str], *, words: bool = True) -> Transcript:
    turns = []
    now = draw(st.integers(0, 5_000))
    free = dict.fromkeys(SPEAKERS, 0)
    for _ in range(draw(st.integers(1, 6))):
        speaker = draw(st.sampled_from(list(SPEAKERS)))
        start = max(now, free[speaker])
        end = start + draw(st.integers(1, 9_000))
        text = clean("".join(draw(st.lists(letters, max_size=12))))
        spans = [(place, place + len(word)) for place, word in _words(text)]
        timed: tuple[Word, ...] = ()
        marks = []
        if words and spans and draw(st.booleans()):
            timed = tuple(
                Word(a, b, (start + i) / 1000, (start + i + 1) / 1000) for i, (a, b) in enumerate(spans)
            )
        for a, b in spans:
            kind = draw(st.sampled_from(["pause", "filler", "retraced", "event", None]))
            if kind in ("pause", "event"):
                marks.append(
                    Mark(
                        kind, b, b, draw(st.sampled_from([0.5, 12.125])) if kind == "pause" else float("nan")
                    )
                )
            elif kind:
                marks.append(Mark(kind, a, b))
        role = SPEAKERS[speaker]
        turns.append(Turn(speaker, start / 1000, end / 1000, text, role, words=timed, marks=tuple(marks)))  # type: ignore[arg-type]
        free[speaker] = end
        now = start + draw(st.integers(1, 5_000))
    return Transcript("P1", tuple(turns), language=draw(st.sampled_from(["", "en", "yue"])))


def _words(text: str) -> list[tuple[int, str]]:
    found, place = [], 0
    for word in text.split():
        place = text.index(word, place)
        found.append((place, word))
        place += len(word)
    return found


def through(one: Transcript, name: str) -> Transcript:
    """Write and read again."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "P1.x"
        write(one, file, format=name)
        roles = {**SPEAKERS, "": "other"}
        (again,) = read(file, format=name, roles=roles)
    return again


def check_same(one: Transcript, again: Transcript, name: str) -> None:
    keeps = BY_NAME[name].keeps
    wanted = [turn for turn in one if turn.text or "empty" in keeps]
    found = [turn for turn in again if turn.text or "empty" in keeps]
    if name in ("elan", "textgrid"):
        wanted.sort(key=lambda turn: turn.start_s)
    assert [(t.speaker, t.role, t.text) for t in found] == [(t.speaker, t.role, t.text) for t in wanted]
    for a, b in zip(found, wanted, strict=True):
        assert (a.start_s, a.end_s) == pytest.approx((b.start_s, b.end_s), abs=0.0011)
        assert a.text == clean(a.text)
        for part in (*a.words, *a.marks):
            assert 0 <= part.start <= part.end <= len(a.text)
        if name in ("whisper", "jsonl"):
            assert repr(a.marks) == repr(b.marks)
            assert a.words == b.words
        if name in ("csv", "srt", "vtt"):
            assert a.marks == a.words == ()
    if "language" in keeps:
        assert again.language == one.language or (name == "chat" and not one.language)


@pytest.mark.parametrize("name", ["whisper", "jsonl", "csv", "vtt", "elan", "textgrid"])
@settings(max_examples=80)
@given(data=st.data())
def test_any_text_survives(name, data):
    one = data.draw(spoken(LETTERS))
    if name == "textgrid":
        assume(any(turn.role == "participant" and turn.text for turn in one))
    assume(any(turn.role == "participant" for turn in one))
    check_same(one, through(one, name), name)


@pytest.mark.parametrize("name", ["srt", "chat"])
@settings(max_examples=120)
@given(data=st.data())
def test_any_text_survives_or_is_refused(name, data):
    one = data.draw(spoken(LETTERS))
    assume(any(turn.role == "participant" for turn in one))
    try:
        again = through(one, name)
    except DataError as error:
        event("refused")
        assert "cannot show" in str(error)
        return
    check_same(one, again, name)


@pytest.mark.parametrize("name", ["srt", "chat"])
@settings(max_examples=120)
@given(data=st.data())
def test_plain_talk_survives(name, data):
    one = data.draw(spoken(PLAIN.filter(lambda letter: letter not in ",.?!'-\u3002\uff0c")))
    assume(any(turn.role == "participant" for turn in one))
    again = through(one, name)
    check_same(one, again, name)
    if name == "chat":
        for a, b in zip(again, one, strict=True):
            assert a.words == b.words
            assert sorted(repr(mark) for mark in a.marks) == sorted(repr(mark) for mark in b.marks)


def survives(data: bytes, suffix: str) -> str:
    """Read bytes as a file; a DataError with a message or transcripts, and never what was said."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / f"P1{suffix}"
        file.write_bytes(data)
        loose = read(file, strict=False, untimed="keep")
        shown = "".join(map(str, loose.problems.rows())) + repr(list(loose))
        assert len(loose) > 0 or loose.problems.height > 0
        for one in loose:
            for turn in one:
                assert turn.text == clean(turn.text)
                assert all(0 <= p.start <= p.end <= len(turn.text) for p in (*turn.words, *turn.marks))
        try:
            read(file, untimed="keep")
        except DataError as error:
            assert all(problem.what for problem in error.problems)
            shown += f"{error} {error!r}"
    return shown


SIGNS = st.sampled_from([b"<", b">", b'"', b"{", b"}", b"[", b"]", b":", b",", b"\n", b"\t", b"\x15", b"*", b"@", b"%", b"&", b"\x00", b"\xff", b"-", b"1e999", b"NaN", b"-->", b"\xe5\x8e\xbb", b"999999999999", b"null", b"]]>", b"&#0;", b"\r"])  # fmt: skip


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
@settings(max_examples=60)
@given(data=st.data())
def test_changed_files_never_crash(path, data):
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content)))
        change = data.draw(st.sampled_from(["insert", "drop", "cut", "byte", "double"]))
        if change == "insert":
            content[place:place] = data.draw(SIGNS)
        elif change == "drop":
            del content[place : place + data.draw(st.integers(1, 30))]
        elif change == "cut":
            del content[place:]
        elif change == "byte" and place < len(content):
            content[place] = data.draw(st.integers(0, 255))
        else:
            content[place:place] = content[place : place + data.draw(st.integers(1, 80))]
    survives(bytes(content), path.suffix)


@settings(max_examples=120)
@given(st.sampled_from(sorted({path.suffix for path in SAMPLES})), st.binary(max_size=300))
@example(".json", b'{"segments": [{"text": "a", "words": [{"word": 5, "from": 0, "to": 99}]}]}')
@example(".json", b'{"segments": [{"text": "a", "words": 5, "marks": [5], "speaker": []}]}')
@example(".jsonl", b'{"speaker": [], "start_s": {}, "end_s": true, "text": "a"}')
@example(".TextGrid", b'"ooTextFile" "TextGrid" 0 1 <exists> 1 "IntervalTier" "PAR" 0 1 1 0 1e999 "a"')
@example(".srt", "1\n00:00:00,0é --> 00:00:01,000\nhi\n".encode())
@example(".csv", b"speaker,start_s,end_s,text\nPAR,0,1," + b"a" * 200_000)
def test_any_bytes(suffix, content):
    survives(content, suffix)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from([CANARY, "PAR", "1", ""])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["text", "start", "end", "speaker", "words", "word", "role", "marks", "from", "to", "kind",
                 "start_s", "end_s", "participant", "episode", "language"]
            ),
            inner,
            max_size=8,
        ),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(JSON, min_size=1, max_size=4), st.booleans())
def test_any_json(rows, is_whisper):
    if is_whisper:
        survives(json.dumps({"segments": rows, "language": rows[0]}).encode(), ".json")
    else:
        survives("\n".join(json.dumps(row) for row in rows).encode(), ".jsonl")


def test_tiers_without_names_do_not_crash():
    path = next(one for one in SAMPLES if one.name == "E002.eaf")
    content = re.sub(rb'(TIER_ID|PARTICIPANT)="[^"]*"', rb'\1=""', path.read_bytes())
    survives(content, path.suffix)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
@settings(max_examples=30)
@given(data=st.data())
def test_nothing_said_is_in_an_error(path, data):
    encoding = "utf-16" if path.name == "C003.TextGrid" else "utf-8"
    text = path.read_bytes().decode(encoding)
    for said in ("tell me", "Tell", "I go", "行", "meat", "then", "左"):
        text = text.replace(said, CANARY)
    assert CANARY in text
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 200)))
    shown = survives((text[:start] + text[end:]).encode(encoding), path.suffix)
    # A label in the place of a speaker's name may be shown; a cut can make such a label of a word.
    for line in shown.split("speakers of the file are")[:1]:
        assert CANARY not in line.split("not known:")[0]
