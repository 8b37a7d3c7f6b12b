"""What Whisper and WhisperX write (.json): segments with times, perhaps with speakers and single words.

Times of words are kept where they are given. A segment whose words change speaker is cut there, at the
times of the words. Without ``speaker`` the speaker may stand before the text as in SubRip. Written files
have the same shape, with ``participant``, ``episode``, each segment's ``role`` and ``marks`` and each
word's place besides, which other programs pass over.
"""

from __future__ import annotations

import json
import math
from typing import Any

from fidm.io.formats.base import (
    BrokenError,
    Flaw,
    Format,
    Options,
    RawFile,
    RawTurn,
    clean,
    marks_from,
    marks_to,
    number,
    placed_words,
    role_from,
    rounded,
    words_from,
)
from fidm.io.formats.subtitles import split_prefix
from fidm.talk import Transcript, Turn, Word


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
    if not isinstance(found, dict) or not isinstance(found.get("segments"), list):
        raise BrokenError(
            "has no list of segments, as Whisper and WhisperX write it.",
            None,
            "Is it another kind of file? Name the dialogs with a pattern such as 'folder/*.cha'.",
        )
    file = RawFile(language=_name(found.get("language")))
    for place, segment in enumerate(found["segments"], 1):
        if not isinstance(segment, dict) or not isinstance(segment.get("text", ""), str):
            file.flaws.append(Flaw("The segment has no text.", place))
            continue
        try:
            turns = _turns(segment, place, options)
        except ValueError:
            file.flaws.append(Flaw("The times of a segment or of its words are not numbers.", place))
            continue
        who, which = _name(found.get("participant")), _name(found.get("episode"))
        for turn in turns:
            turn.update(participant=who, episode=which)
            file.turns.append(RawTurn(**turn))
    return file


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
    whole = {
        "participant": transcript.participant,
        "episode": transcript.episode,
        "segments": [_segment(turn) for turn in transcript],
        "language": transcript.language,
    }
    return json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


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
    "Whisper and WhisperX JSON",
    (".json",),
    (
        "times", "untimed", "empty", "roles", "words", "pauses", "fillers", "retracings", "events",
        "language", "participant",
    ),
    read_text,
    write_text,
)  # fmt: skip
