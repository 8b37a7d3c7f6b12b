"""``fidm transcribe``: recordings become transcripts, with what the lab has installed on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fidm.cli.shared import Flag, print_json, require_writable
from fidm.errors import DataError, count, few
from fidm.present.terminal import aside, page, progress_bar, state, warn

if TYPE_CHECKING:
    from fidm.io.transcribe import Transcribed

SOME_FAILED = 1
"""The exit code where some recordings have no transcript."""


def transcribe(
    audio: Path,
    *,
    engine: str,
    model: Path | None = None,
    language: str = "",
    out: Path | None = None,
    speakers: Path | None = None,
    prompt: str = "",
    again: Flag = False,
    json: Flag = False,
) -> int:
    """Transcribe recordings on this machine, with a recogniser that you installed.

    Writes one JSON file per recording, with the times of words, readable by you alone. Recordings that have
    a transcript are passed over, so a run can be resumed. Nothing is downloaded or sent, and nothing that
    was said is printed. Exit code 1: some recordings failed. 2: nothing could be written.

    Parameters
    ----------
    audio
        A recording, or a folder of recordings named after their participants; STUDY/audio is a good place.
    engine
        What recognises speech: faster-whisper, whisper.cpp, pocketsphinx, or what a package adds (see fidm
        list transcribers).
    model
        Its model on this machine: a folder for faster-whisper, a file for whisper.cpp.
    language
        What is spoken, such as yue or en; by default the engine finds out.
    out
        Where to write; by default the folder talks beside the recordings, or beside the folder audio.
    speakers
        A folder with an RTTM file per recording, which says who speaks when.
    prompt
        For Whisper: a text in the style that is wanted, such as "Um, uh, let me see."
    again
        Transcribe what has a transcript already. Corrections made in it are lost.
    json
        Print what was done as JSON.
    """
    from fidm.io.transcribe import make_transcriber, transcribe_all

    place = audio if audio.is_dir() else audio.parent
    home = place.parent if place.name == "audio" else place
    target = out or home / "talks"
    by = make_transcriber(engine, model=model, prompt=prompt)
    require_writable(target)
    with progress_bar() as bars:
        found = transcribe_all(
            audio, target, by, language=language, speakers=speakers, again=again, on_progress=bars.step
        )
    if found.problems and not (found.written or found.kept):
        raise DataError("No recording could be transcribed.", source=str(audio), problems=found.problems)
    if json:
        print_json(found.to_dict())
    else:
        _show(found, target)
    if found.problems:
        failed = count(len(found.problems), "recording")
        said = DataError(f"{failed} could not be transcribed.", problems=found.problems)
        aside().print(str(said), soft_wrap=True, markup=False)
    if not json:
        folder = target.parent if target.name == "talks" else target
        state(page(), f"Next: fidm start {folder}")
    return SOME_FAILED if found.problems else 0


def _show(found: Transcribed, target: Path) -> None:
    console = page()
    there = f"; {len(found.kept):,} were there already (--again replaces them)" if found.kept else ""
    state(console, f"Wrote {count(len(found.written), 'transcript')} to {target}{there}")
    for names, what, then in (
        (
            found.undiarised,
            "Speakers are not told apart",
            "All words count as one speaker's, the assessor's too. Give who speaks when: --speakers FOLDER, "
            "with RTTM files of a diarisation tool.",
        ),
        (found.untimed, "Most turns have no times of words", "Pauses inside utterances are not seen."),
        (
            found.bare,
            "There is no punctuation",
            "Fewer moves will be read. With Whisper, try --prompt with a text that has some.",
        ),
        (
            found.standard,
            "The text reads like standard written Chinese, not spoken Cantonese,",
            "If Cantonese was spoken, characters and moves will be wrong: use a Cantonese model.",
        ),
    ):
        if names:
            warn(console, f"{what} in {count(len(names), 'recording')}: {few(names)}. {then}")
