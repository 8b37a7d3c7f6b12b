"""The built-in transcribers: each calls what the lab has installed, with a model of this machine."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import tempfile
import wave
from collections.abc import Mapping, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

from fidm.errors import DataError
from fidm.io.formats import whisper
from fidm.io.formats.base import BrokenError, Options, Piece, RawFile, utterances
from fidm.io.talk import Transcript
from fidm.io.transcribe import heard

RATE = 16_000
"""Samples per second that recognisers work with."""

UNREADABLE = (OSError, RuntimeError, ValueError, EOFError, LookupError)
"""What libraries raise where a file is no recording; their messages are not shown."""


class FasterWhisper:
    """Whisper by the Python package faster-whisper: times of words, no speakers; model: a folder."""

    name = "faster-whisper"
    NEEDED = ("model.bin", "config.json", "tokenizer.json")  # without the last it would ask the network
    SETTINGS: Mapping[str, object] = {
        "beam_size": 5,
        "word_timestamps": True,
        "vad_filter": True,  # with its own small model, which comes with the package
        "condition_on_previous_text": False,  # else a mistake may repeat to the end of the recording
    }

    def __init__(self, *, model: Path | None, prompt: str = "") -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        self._library = _library("faster_whisper", "faster-whisper")
        missing = [one for one in self.NEEDED if model is None or not (model / one).is_file()]
        if model is None or missing:
            raise DataError(
                f"needs a folder with {', '.join(self.NEEDED)}; {', '.join(missing)} not found. Name the "
                "folder of a Whisper model in CTranslate2's format: --model FOLDER. Nothing is downloaded.",
                source=f"faster-whisper: {model or 'no --model'}",
            )
        self._folder, self._prompt = model, prompt

    def provenance(self) -> Mapping[str, object]:
        """Return version, model and settings."""
        return _made(self.name, _version("faster-whisper"), self._folder, self._prompt, self.SETTINGS)

    @cached_property
    def _model(self) -> Any:
        try:
            return self._library.WhisperModel(str(self._folder), local_files_only=True)
        except UNREADABLE as error:
            raise _no(f"The model {self._folder.name} cannot be loaded", error) from None

    def transcribe(self, recording: Path, language: str) -> Transcript:
        """Return the turns of a recording."""
        model = self._model
        is_known = (
            model.model.is_multilingual and model.hf_tokenizer.token_to_id(f"<|{language}|>") is not None
        )
        if language not in ("", "en") and not is_known:
            older = " Models before large-v3 know Cantonese as zh." if language == "yue" else ""
            raise DataError(f"The model {self._folder.name} does not know --language {language}.{older}")
        try:
            segments, about = model.transcribe(
                str(recording),
                language=language or None,
                initial_prompt=self._prompt or None,
                **self.SETTINGS,
            )
            rows = [
                {
                    "start": one.start, "end": one.end, "text": one.text,
                    "words": [{"word": w.word, "start": w.start, "end": w.end} for w in one.words or ()],
                }
                for one in segments
            ]  # fmt: skip
        except UNREADABLE as error:
            raise _no("It cannot be transcribed", error) from None
        text = json.dumps({"segments": rows, "language": about.language})
        return heard(whisper.read_text(text, Options()), recording, language)


class WhisperCpp:
    """Whisper by the program whisper-cli of whisper.cpp: times of words, no speakers; model: a file."""

    name = "whisper.cpp"

    def __init__(self, *, model: Path | None, prompt: str = "") -> None:
        self._program = _program("whisper-cli", "whisper.cpp; build it, and put whisper-cli on the PATH")
        if model is None or not model.is_file():
            raise DataError(
                "needs a model file such as ggml-large-v3.bin. Name it: --model FILE. Nothing is downloaded.",
                source=f"whisper.cpp: {model or 'no --model'}",
            )
        self._model, self._prompt = model, prompt

    def provenance(self) -> Mapping[str, object]:
        """Return version, model and settings."""
        said = subprocess.run([self._program, "--version"], capture_output=True, check=False)  # noqa: S603
        version = said.stdout.decode(errors="replace").strip().rpartition(" ")[2][:20]  # older ones know none
        return _made(self.name, version, self._model, self._prompt, {"output": "json-full"})

    def transcribe(self, recording: Path, language: str) -> Transcript:
        """Return the turns of a recording."""
        with tempfile.TemporaryDirectory(prefix="fidm-") as place:
            found = Path(place) / "heard"
            asked = ["-m", str(self._model), "-f", str(_wav(recording, Path(place))), "-ojf", "-np"]
            asked += ["-l", language or "auto", "-of", str(found)]
            _run([self._program, *asked, *(["--prompt", self._prompt] if self._prompt else [])])
            try:  # letters that were cut apart between two tokens are not UTF-8
                text = found.with_suffix(".json").read_text("utf-8", errors="replace")
                return heard(whisper.read_text(text, Options()), recording, language)
            except (OSError, BrokenError) as error:
                raise _no("whisper-cli wrote nothing that can be read", error) from None


class PocketSphinx:
    """CMU PocketSphinx: English with its own small model, to try things out; too weak for a study."""

    name = "pocketsphinx"

    def __init__(self, *, model: Path | None = None, prompt: str = "") -> None:
        self._library = _library("pocketsphinx", "pocketsphinx")
        if model is not None or prompt:
            raise DataError("pocketsphinx brings its own model, and takes neither --model nor --prompt.")

    def provenance(self) -> Mapping[str, object]:
        """Return version and model."""
        return _made(self.name, _version("pocketsphinx"), Path("en-us"), "", {})

    @cached_property
    def _decoder(self) -> Any:
        return self._library.Decoder(samprate=RATE, loglevel="FATAL")

    def transcribe(self, recording: Path, language: str) -> Transcript:
        """Return the turns of a recording."""
        if language not in ("", "en"):
            raise DataError("pocketsphinx knows English alone: --language en.")
        words = []
        with tempfile.TemporaryDirectory(prefix="fidm-") as place:
            sound = _samples(_wav(recording, Path(place)))
        stretches = self._library.Segmenter(sample_rate=RATE).segment(BytesIO(sound + bytes(2 * RATE)))
        for stretch in stretches:  # with a second of silence, after which the last one ends
            self._decoder.start_utt()
            self._decoder.process_raw(stretch.pcm, full_utt=True)
            self._decoder.end_utt()
            for one in self._decoder.seg() or ():
                if one.word[:1].isalpha():  # others are silences and noises
                    times = (
                        stretch.start_time + frame / 100 for frame in (one.start_frame, one.end_frame + 1)
                    )
                    words.append(Piece(one.word.partition("(")[0], *times))
        return heard(RawFile(utterances(words, spaced=True)), recording, "en")


def _made(
    name: str, version: str, model: Path, prompt: str, settings: Mapping[str, object]
) -> dict[str, object]:
    """What a transcript says of how it was made."""
    own = {**settings, **({"prompt": prompt} if prompt else {})}
    return {"engine": name, "version": version, "model": model.name, "settings": own}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _library(module: str, package: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise DataError(f"{package} is not installed. Install it: pip install {package}") from None


def _program(name: str, what: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise DataError(f"The program {name} was not found. It comes with {what}.")
    return found


def _run(command: Sequence[str]) -> None:
    """Run a program; what it prints may be what was said, and is not shown."""
    try:
        subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        code = getattr(error, "returncode", "none")
        name = Path(command[0]).name
        raise DataError(f"{name} failed on it (exit code {code}). Is it a recording with sound?") from None


def _no(what: str, error: Exception) -> DataError:
    return DataError(f"{what} ({type(error).__name__}). Is it a recording with sound?")


def _samples(path: Path) -> bytes:
    with wave.open(str(path), "rb") as sound:
        return sound.readframes(sound.getnframes())


def _wav(recording: Path, place: Path) -> Path:
    """A recording as WAV of one channel and 16,000 samples per second: itself, or made by ffmpeg."""
    try:
        with wave.open(str(recording), "rb") as sound:
            if (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, RATE):
                return recording
    except (wave.Error, EOFError, OSError):
        pass
    ffmpeg = _program(
        "ffmpeg", "ffmpeg, which makes other recordings WAV of 16 kHz and one channel; install it"
    )
    made = place / "sound.wav"
    asked = ["-nostdin", "-i", f"file:{recording.resolve()}", "-vn", "-ac", "1", "-ar", str(RATE), str(made)]
    _run([ffmpeg, *asked])
    return made
