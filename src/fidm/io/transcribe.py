"""Recordings become transcripts on this machine: what recognises speech, and a folder of recordings at once.

A *transcriber* turns one recording into a :class:`~fidm.io.talk.Transcript`. The built-in ones
(:mod:`fidm.io.engines`) call what the lab has installed itself; nothing is downloaded. Each transcript is
a JSON file in the shape of WhisperX. It names its recording (``media``), so that the review page can play it,
and says what made it (``transcribed``: engine, version, model, settings). It does not say whose it is, which
its path does, nor who is participant and who assessor.

Speakers may come from elsewhere, as RTTM files that diarisation tools such as pyannote write: each word then
belongs to whoever speaks most while it lasts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fidm.errors import DataError, Problem
from fidm.files import whole_file
from fidm.io.formats import whisper
from fidm.io.formats.base import RECORDINGS, BrokenError, Options, RawFile, files_below, read_file
from fidm.io.talk import Transcript, Turn
from fidm.registry import TRANSCRIBERS

MADE = "transcribed"
"""What a transcript of ours says of how it was made; files without it are never replaced."""

WRITTEN, SPOKEN, FEWEST = frozenset("的是不在了這这那他們们沒没"), frozenset("嘅係唔喺咗呢嗰佢哋冇嚟"), 5
"""Words of standard written Chinese, those of spoken Cantonese in their place, and how many must be there."""

LONG = 60
"""A transcript with so many characters and no punctuation was written by a recogniser that knows none."""


@runtime_checkable
class Transcriber(Protocol):
    """What turns a recording into a transcript; ``name`` is what it is called.

    It is made with ``model=`` (a path or None) and ``prompt=`` (a text), and asked for many recordings, one
    after another.
    """

    name: str

    def provenance(self) -> Mapping[str, object]:
        """Return what a later reader must know, for JSON: engine, version, model, settings; no paths."""
        ...

    def transcribe(self, recording: Path, language: str) -> Transcript:
        """Return turns with times, with speakers and times of words where they are known.

        ``language`` is a code such as ``"yue"``, or empty: the transcript then says which was heard. What
        cannot be transcribed raises :class:`~fidm.errors.DataError`, which never quotes what was said.
        """
        ...


@dataclass(frozen=True, slots=True)
class Transcribed:
    """What became of recordings."""

    written: tuple[Path, ...] = ()  # transcripts
    kept: tuple[Path, ...] = ()  # transcripts that were there already
    problems: tuple[Problem, ...] = ()  # one for each recording that has no transcript
    undiarised: tuple[str, ...] = ()  # recordings in which nobody told speakers apart
    standard: tuple[str, ...] = ()  # recordings whose Chinese reads like written, not like spoken Cantonese
    bare: tuple[str, ...] = ()  # recordings whose transcripts have no punctuation
    untimed: tuple[str, ...] = ()  # recordings in which less than half of the turns have times of words

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            **{name: list(map(str, getattr(self, name))) for name in ("written", "kept")},
            **{name: list(getattr(self, name)) for name in ("undiarised", "standard", "bare", "untimed")},
            "problems": [{"recording": one.where, "problem": one.what} for one in self.problems],
        }


def make_transcriber(name: str, *, model: Path | None = None, prompt: str = "") -> Transcriber:
    """Return a transcriber by its name in the catalogue, with a model of this machine."""
    made = TRANSCRIBERS.find(name)(model=model, prompt=prompt)
    if not isinstance(made, Transcriber):
        raise DataError(
            f"What is installed as {name!r} makes no transcriber: that has name, provenance, transcribe."
        )
    return made


def transcribe_all(
    source: Path,
    out: Path,
    by: Transcriber,
    *,
    language: str = "",
    speakers: Path | None = None,
    again: bool = False,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Transcribed:
    """Transcribe a recording, or all recordings in a folder, however deep; return what became of them.

    Parameters
    ----------
    source, out : path
        The recordings, and the folder of the transcripts, which lie as the recordings do.
    by : Transcriber
        What recognises speech.
    language : str
        What is spoken; where empty, the transcriber finds out.
    speakers : path, optional
        A folder with RTTM files that lie and are named as the recordings are.
    again : bool
        Transcribe what has a transcript of ours already; what somebody corrected in it is lost.
    on_progress : callable, optional
        Called with what is done, how many recordings are done, and of how many.
    """
    from fidm import __version__

    found = _recordings(source)
    targets = {path: out / Path(name).with_suffix(".json") for path, name in found.items()}
    taken = Counter(targets.values())
    outcome: dict[str, list[Any]] = {name: [] for name in Transcribed.__slots__}
    for number, (path, name) in enumerate(found.items()):
        if on_progress is not None:
            on_progress("transcribing", number, len(found))
        target = targets[path]
        if target.exists() and not again:
            outcome["kept"].append(target)
            continue
        try:
            if taken[target] > 1:
                raise DataError(f"Several recordings would become {target.name}. Keep one of them.")
            _require_ours(target)
            voices = None if speakers is None else _voices(speakers / Path(name).with_suffix(".rttm"))
            talk = by.transcribe(path, language)
            if not any(turn.text.strip() for turn in talk):
                raise DataError("No speech was recognised. Is it the right file, and loud enough?")
            talk = talk if voices is None else _with_speakers(talk, voices)
            made = {
                **by.provenance(),
                "language": language,
                "speakers": speakers is not None,
                "fidm": __version__,
            }
            _write(replace(talk, media=name), target, made)
        except DataError as error:
            outcome["problems"].append(Problem(str(error), name))
            continue
        outcome["written"].append(target)
        for kind, is_so in _doubts(talk).items():
            outcome[kind] += [name] * is_so
    return Transcribed(**{name: tuple(ones) for name, ones in outcome.items()})


def heard(file: RawFile, recording: Path, language: str = "") -> Transcript:
    """Return what a reader of one of our formats made of a recogniser's output, as a transcript."""
    turns = tuple(
        Turn(turn.speaker, turn.start_s, turn.end_s, turn.text, words=turn.words)
        for turn in file.turns
        if turn.text
    )
    return Transcript(recording.stem, turns, language=language or file.language)


def _recordings(source: Path) -> dict[Path, str]:
    """The recordings that a path names, each with its path from there."""
    if source.is_file():
        return {source: source.name}
    if not source.is_dir():
        raise DataError("there is no such file or folder.", source=str(source))
    found = {
        path: path.relative_to(source).as_posix()
        for path in files_below(source)
        if path.suffix.casefold() in RECORDINGS
    }
    if not found:
        raise DataError(f"has no recordings ({', '.join(RECORDINGS)}).", source=str(source))
    return found


def _require_ours(target: Path) -> None:
    """Raise where a file would be replaced that was not made here."""
    try:
        is_ours = not target.exists() or MADE in json.loads(target.read_text("utf-8"))
    except (OSError, ValueError, TypeError):
        is_ours = False
    if not is_ours:
        raise DataError(f"{target.name} is there and was not written by fidm transcribe. Move it away first.")


def _write(talk: Transcript, target: Path, made: Mapping[str, object]) -> None:
    """Write a transcript, for its owner alone, without what is not known: whose it is, and who is who."""
    whole = whisper.as_dict(talk)
    del whole["participant"], whole["episode"]
    for segment in whole["segments"]:
        del segment["role"]
    if not target.parent.exists():
        target.parent.mkdir(parents=True, mode=0o700)
    with whole_file(target, mode=0o600) as part:
        part.write_text(json.dumps({MADE: made, **whole}, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _doubts(talk: Transcript) -> dict[str, bool]:
    """What a user should know of a transcript."""
    text = "".join(turn.text for turn in talk)
    written, spoken = (sum(letter in kind for letter in text) for kind in (WRITTEN, SPOKEN))
    return {
        "undiarised": len({turn.speaker for turn in talk}) < 2,
        "standard": written + spoken >= FEWEST and written > spoken and talk.language not in ("cmn", "zh-CN"),
        "bare": len(text) >= LONG and not any(sign in text for sign in ",.?，、。？"),
        "untimed": 2 * sum(bool(turn.words) for turn in talk) < len(talk),
    }


# ---------------------------------------------------------------------- speakers

Voice = tuple[float, float, str]


def _voices(path: Path) -> list[Voice]:
    """Who speaks from when to when, from an RTTM file."""
    if not path.is_file():
        raise DataError(f"There is no {path.name} with its speakers in the folder of --speakers.")
    try:
        rows = [line.split() for line in read_file(path).splitlines()]
        found = [
            (float(row[3]), float(row[3]) + float(row[4]), row[7]) for row in rows if row[:1] == ["SPEAKER"]
        ]
    except (BrokenError, ValueError, IndexError):
        found = []
    if not found:
        raise DataError(
            f"{path.name} is not RTTM: lines such as SPEAKER file 1 0.5 2.1 <NA> <NA> A <NA> <NA>."
        )
    return found


def _with_speakers(talk: Transcript, voices: Iterable[Voice]) -> Transcript:
    """A transcript whose words belong to those who speak meanwhile; turns are cut where that changes."""
    whole = whisper.as_dict(talk)
    for segment in whole["segments"]:
        segment["speaker"] = ""
        for piece in segment.get("words", [segment]):
            piece["speaker"] = _speaker(piece["start"], piece["end"], voices)
    cut = heard(whisper.read_text(json.dumps(whole), Options()), Path("cut"))
    return replace(talk, turns=cut.turns)


def _speaker(start: float | None, end: float | None, voices: Iterable[Voice]) -> str:
    """Who speaks most in a stretch of time; where nobody does, who is nearest; nobody where it is unknown."""
    if start is None or end is None:
        return ""
    overlaps: dict[str, float] = {}
    for begins, ends, name in voices:
        overlaps[name] = overlaps.get(name, 0.0) + max(0.0, min(end, ends) - max(start, begins))
    if any(overlaps.values()):
        return max(overlaps, key=lambda name: overlaps[name])
    return min(voices, key=lambda one: max(one[0] - end, start - one[1]))[2]
