"""What Whisper and its relatives write (.json): segments with times, perhaps with speakers and single words.

=====================  ======================================================================================
written by             shape
=====================  ======================================================================================
Whisper, WhisperX      ``{"segments": [{"start", "end", "text", "speaker", "words"}], "language"}``
faster-whisper         a list of such segments, or of its tuples ``[id, seek, start, end, text, …]``
whisper.cpp            ``{"transcription": [{"offsets": {"from", "to"}, "text", "tokens"}], "result"}``, in ms
Hugging Face pipeline  ``{"chunks": [{"timestamp": [start, end], "text"}]}``, or ``speakers`` with speakers
=====================  ======================================================================================

Times of words are kept where they are given. A segment whose words change speaker is cut there, at the
times of the words. Files in which every piece is one word are joined into utterances: up to a silence of
0.5 s, the end of a sentence, or another speaker. Without ``speaker`` the speaker may stand before the text as
in SubRip. Where whisper.cpp marks turns alone (``speaker_turn_next``), SPEAKER_00 and SPEAKER_01 alternate; a
turn that it missed exchanges the two. The last end of a Hugging Face file may be missing; it is unknown then.

Written files have the shape of WhisperX, with ``participant``, ``episode``, ``about``, ``media`` (the
recording), each segment's ``role`` and ``marks`` and each word's place besides, which others pass over.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

from fidm.io.formats.base import (
    BrokenError,
    Flaw,
    Format,
    Options,
    Piece,
    RawFile,
    RawTurn,
    clean,
    is_single,
    marks_from,
    marks_to,
    number,
    placed_words,
    role_from,
    rounded,
    utterances,
    words_from,
)
from fidm.io.formats.subtitles import from_clock, split_prefix
from fidm.io.talk import Transcript, Turn, Word

NO_DIALOG = "is not a dialog in JSON"
"""How what is said of other JSON begins."""


def read_text(text: str, options: Options) -> RawFile:
    """Read the text of a file."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        what = "breaks off before its end." if cut else "is not JSON that can be read."
        raise BrokenError(what, error.lineno, "Was it copied whole?" if cut else "") from None
    except (ValueError, RecursionError):
        raise BrokenError("is not JSON that can be read.") from None
    whole = found if isinstance(found, dict) else {}
    segments = _segments(found)
    if segments is None:
        raise BrokenError(
            f"{NO_DIALOG}: it has neither segments (Whisper, WhisperX, faster-whisper) nor "
            "a transcription (whisper.cpp) nor chunks (Hugging Face).",
            None,
            "If it is no dialog, move it elsewhere, or name the dialogs by a pattern such as 'folder/*.cha'.",
        )
    result = whole.get("result")
    told = result.get("language") if isinstance(result, dict) else None
    who, which = _name(whole.get("participant")), _name(whole.get("episode"))
    file = RawFile(language=_name(whole.get("language") or told), media=_name(whole.get("media")))
    about = whole.get("about")
    if isinstance(about, dict):
        file.about[who, which] = {clean(fact): _name(value) for fact, value in about.items()}
    turns: list[RawTurn] = []
    for place, segment in enumerate(segments, 1):
        if not isinstance(segment, dict) or not isinstance(segment.get("text", ""), str):
            file.flaws.append(Flaw("The segment has no text.", place))
            continue
        try:
            turns += [RawTurn(**turn) for turn in _turns(segment, place, options)]
        except ValueError:
            file.flaws.append(Flaw("The times of a segment or of its words are not numbers.", place))
    if len(turns) > 1 and "segments" not in whole and all(is_single(turn.text) for turn in turns):
        turns = _joined(turns, segments)
    file.turns += [replace(turn, participant=who, episode=which) for turn in turns]
    return file


def _segments(found: object) -> list[Any] | None:
    """The pieces of a file as Whisper's segments, whoever wrote it; None if it has none."""
    if isinstance(found, list):
        shaped = [_listed(one) if isinstance(one, list) else _chunk(one) for one in found]
        return shaped if any(isinstance(one, dict) and "text" in one for one in shaped) else None
    if not isinstance(found, dict):
        return None
    for name in ("segments", "transcription", "speakers", "chunks"):
        rows = found.get(name)
        if isinstance(rows, list) and (rows or name == "segments"):
            if name == "transcription":
                return _with_turns([_cpp(row) for row in rows])
            return [_listed(row) if isinstance(row, list) else _chunk(row) for row in rows]
    return None


def _listed(row: list[Any]) -> dict[str, Any] | None:
    """A segment that was a tuple: the text follows its times; words are lists of two times and a text."""
    place = next((place for place, cell in enumerate(row) if isinstance(cell, str)), -1)
    if place < 2:
        return None
    segment: dict[str, Any] = {"start": row[place - 2], "end": row[place - 1], "text": row[place]}
    for cell in row[place + 1 :]:
        if isinstance(cell, list) and cell and all(isinstance(word, list | dict) for word in cell):
            words = [_listed(word) if isinstance(word, list) else word for word in cell]
            segment["words"] = [word for word in words if word is not None]
    return segment


def _chunk(row: Any) -> Any:
    """A chunk of a Hugging Face pipeline, with its two times apart; anything else as it is."""
    times = row.get("timestamp") if isinstance(row, dict) else None
    if not isinstance(times, list) or len(times) != 2:
        return row
    return {**row, "start": times[0], "end": times[1], "open": times[0] is not None and times[1] is None}


def _cpp(row: Any) -> Any:
    """A segment of whisper.cpp, whose times are thousandths of a second."""
    if not isinstance(row, dict):
        return row
    start, end = _offsets(row)
    segment = {**row, "start": start, "end": end}
    segment.pop("words", None)
    if isinstance(row.get("text"), str):
        segment["text"] = row["text"].replace("[SPEAKER_TURN]", " ")
    tokens = row.get("tokens")
    words: list[dict[str, Any]] = []
    for token in tokens if isinstance(tokens, list) else ():
        said = token.get("text") if isinstance(token, dict) else None
        if not isinstance(said, str) or not said or said.startswith("[_"):
            continue
        first, last = _offsets(token)
        if words and not said[:1].isspace():
            words[-1].update(word=words[-1]["word"] + said, end=last)
        else:
            words.append({"word": said, "start": first, "end": last})
    if clean("".join(word["word"] for word in words)) == clean(str(segment.get("text"))):
        segment["words"] = words  # else letters were cut apart, which words cannot show
    return segment


def _offsets(row: dict[str, Any]) -> tuple[object, object]:
    """Both times of a piece in seconds, from ``offsets`` or, without them, from ``timestamps``."""
    given = row.get("offsets")
    if isinstance(given, dict):
        first, last = number(given.get("from")) / 1000, number(given.get("to")) / 1000
        return first, last
    clocks = row.get("timestamps")
    if isinstance(clocks, dict):
        return from_clock(str(clocks.get("from"))), from_clock(str(clocks.get("to")))
    return None, None


def _with_turns(segments: list[Any]) -> list[Any]:
    """Segments with speakers that alternate where the file marks changes of turn alone."""
    rows = [row for row in segments if isinstance(row, dict)]
    if any(row.get("speaker") for row in rows) or not any(row.get("speaker_turn_next") for row in rows):
        return segments
    second = False
    for row in rows:
        row["speaker"] = f"SPEAKER_0{int(second)}"
        second ^= row.get("speaker_turn_next") is True
    return segments


def _joined(turns: list[RawTurn], segments: list[Any]) -> list[RawTurn]:
    """Pieces of one word each, joined into utterances."""
    raw = [str(segments[turn.line - 1].get("text", "")) for turn in turns]
    led = any(text[:1].isspace() for text in raw)
    said = [
        Piece(text if led else turn.text, turn.start_s, turn.end_s, turn.line, turn.speaker)
        for turn, text in zip(turns, raw, strict=True)
    ]
    return utterances(said, sentences=True)


def _name(value: object) -> str:
    return clean(value) if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _turns(segment: dict[str, Any], line: int, options: Options) -> list[dict[str, Any]]:
    """The turns of one segment: one, or more where its words change speaker."""
    start, end = number(segment.get("start")), number(segment.get("end"))
    listed = segment.get("words")
    given = [word for word in listed if isinstance(word, dict)] if isinstance(listed, list) else []
    raw = [(str(word.get("word") or word.get("text") or ""), word) for word in given]
    spoken = [(clean(said), number(word.get("start")), number(word.get("end"))) for said, word in raw]
    text = clean(segment.get("text", ""))
    words = _own_words(text, given) or placed_words(text, spoken)
    if words is None:  # the text and its words differ; the words are what was timed
        between = "" if any(said.startswith(" ") for said, _ in raw) else " "
        text = clean(between.join(said for said, _ in raw))
        words = placed_words(text, spoken) or ()
    whole = _name(segment.get("speaker"))
    speaker, cuts = whole, [0]
    names = [whole]
    heard = [_name(word.get("speaker")) for (_, word), (said, _, _) in zip(raw, spoken, strict=True) if said]
    if len(set(filter(None, heard))) > 1 and len(heard) == len(words):
        speaker = next(filter(None, heard))
        names = [speaker]
        for name, word in zip(heard, words, strict=True):
            if name and name != speaker:
                speaker = name
                names.append(name)
                cuts.append(word.start)
    elif not whole:
        names = [next(filter(None, heard), "")]
    if not names[0]:
        return [_unnamed(text, words, start, end, line, options, segment)]
    if len(cuts) > 1:
        pieces = _pieces(text, words, names, [*cuts, len(text)], start, end)
        return [dict(piece, line=line) for piece in pieces]
    marks, role = marks_from(segment.get("marks"), len(text)), role_from(segment.get("role"))
    return [
        {
            "speaker": names[0], "start_s": start, "end_s": end, "text": text,
            "line": line, "words": words, "marks": marks, "role": role,
            "ends_open": segment.get("open") is True,
        }
    ]  # fmt: skip


def _own_words(text: str, given: list[dict[str, Any]]) -> tuple[Word, ...]:
    """The words of a file of ours, which says where each stands; nothing for files of others."""
    if not given or not all({"from", "to"} <= word.keys() for word in given):
        return ()
    rows = [{**word, "start_s": word.get("start"), "end_s": word.get("end")} for word in given]
    return words_from(rows, len(text))


def _unnamed(
    text: str,
    words: tuple[Word, ...],
    start: float,
    end: float,
    line: int,
    options: Options,
    segment: dict[str, Any],
) -> dict[str, Any]:
    speaker, said = split_prefix(text, options.speakers)
    gone = len(text) - len(said)
    kept = tuple(
        Word(word.start - gone, word.end - gone, word.start_s, word.end_s)
        for word in words
        if word.start >= gone
    )
    marks = () if gone else marks_from(segment.get("marks"), len(text))
    role = role_from(segment.get("role"))
    return {
        "speaker": speaker, "start_s": start, "end_s": end, "text": said,
        "line": line, "words": kept, "marks": marks, "role": role,
        "ends_open": segment.get("open") is True,
    }  # fmt: skip


def _pieces(
    text: str, words: tuple[Word, ...], names: list[str], cuts: list[int], start: float, end: float
) -> list[dict[str, Any]]:
    """A segment cut where its words change speaker."""
    found: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        first, last = cuts[place], cuts[place + 1]
        inside = [word for word in words if first <= word.start < last]
        said = text[first:last].strip()
        begins = [word.start_s for word in inside if not math.isnan(word.start_s)]
        ends = [word.end_s for word in inside if not math.isnan(word.end_s)]
        found.append(
            {
                "speaker": name,
                "start_s": start if place == 0 else begins[0] if begins else math.nan,
                "end_s": end if place == len(names) - 1 else ends[-1] if ends else math.nan,
                "text": said,
                "words": tuple(Word(w.start - first, w.end - first, w.start_s, w.end_s) for w in inside),
            }
        )
    return found


def write_text(transcript: Transcript) -> str:
    """Return the text of a file, as WhisperX writes it."""
    return json.dumps(as_dict(transcript), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def as_dict(transcript: Transcript) -> dict[str, Any]:
    """Return what a file of a dialog holds."""
    return {
        "participant": transcript.participant,
        "episode": transcript.episode,
        "segments": [_segment(turn) for turn in transcript],
        "language": transcript.language,
        **({"about": dict(transcript.about)} if transcript.about else {}),
        **({"media": transcript.media} if transcript.media else {}),
    }


def _segment(turn: Turn) -> dict[str, Any]:
    segment: dict[str, Any] = {
        "start": rounded(turn.start_s),
        "end": rounded(turn.end_s),
        "text": turn.text,
        "speaker": turn.speaker,
        "role": turn.role,
    }
    if turn.words:
        segment["words"] = [
            {
                "word": turn.text[word.start : word.end],
                "start": rounded(word.start_s),
                "end": rounded(word.end_s),
                "from": word.start,
                "to": word.end,
                "speaker": turn.speaker,
            }
            for word in turn.words
        ]
    if turn.marks:
        segment["marks"] = marks_to(turn.marks)
    return segment


FORMAT = Format(
    "whisper",
    "JSON of Whisper and its relatives",
    (".json",),
    (
        "times", "untimed", "empty", "roles", "words", "pauses", "fillers", "retracings", "events",
        "language", "participant", "about",
    ),
    read_text,
    write_text,
)  # fmt: skip
