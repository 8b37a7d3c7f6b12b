"""From recordings to transcripts: the contract, what is written and kept, speakers, and each built-in engine."""

from __future__ import annotations

import json
import os
import stat
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

import fidm
from fidm.errors import DataError
from fidm.io.dialogs import read
from fidm.io.talk import Transcript, Turn, Word
from fidm.io.transcribe import Transcribed, make_transcriber, transcribe_all
from fidm.registry import TRANSCRIBERS
from fidm.testing import check_transcriber

SOUND = Path(__file__).parents[2] / "data" / "recordings"
CANARY = "zzkanarienvogel"
ROLES = {"SPEAKER_00": "participant", "SPEAKER_01": "assessor"}


class Fake:
    """An engine that hears the same in every recording but those that are broken."""

    name = "fake"

    def __init__(self, *texts: str):
        self.texts = texts or (f"go up {CANARY}", "okay")
        self.asked: list[str] = []

    def provenance(self):
        return {"engine": self.name, "version": "1", "model": "none", "settings": {}}

    def transcribe(self, recording, language):
        self.asked.append(recording.name)
        if recording.read_bytes()[:4] != b"RIFF":
            raise DataError("It cannot be transcribed.")
        turns = []
        for i, text in enumerate(self.texts):
            places = [(text.find(word), len(word)) for word in text.split()]
            words = tuple(Word(a, a + n, i + k / 10, i + k / 10 + 0.1) for k, (a, n) in enumerate(places))
            turns.append(Turn("", i, i + 0.9, text, words=words))
        return Transcript(recording.stem, tuple(turns), language=language or "en")


@pytest.fixture
def audio(tmp_path):
    folder = tmp_path / "study" / "audio"
    for name in ("P1.wav", "P2/visit1.WAV", "P3/visit1.mp3"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"RIFF")
    return folder


def test_every_recording_becomes_a_transcript_that_names_it_and_what_made_it(audio, tmp_path):
    out, steps = tmp_path / "talks", []
    found = transcribe_all(audio, out, Fake(), language="en", on_progress=lambda *step: steps.append(step))
    names = ["P1.json", "P2/visit1.json", "P3/visit1.json"]
    assert [path.relative_to(out).as_posix() for path in found.written] == names
    assert steps == [("transcribing", n, 3) for n in range(3)]
    assert found.undiarised == ("P1.wav", "P2/visit1.WAV", "P3/visit1.mp3")
    assert found.problems == found.standard == found.untimed == ()
    whole = json.loads((out / "P2" / "visit1.json").read_text("utf-8"))
    assert whole["media"] == "P2/visit1.WAV"
    assert whole["transcribed"] == {
        "engine": "fake", "version": "1", "model": "none", "settings": {},
        "language": "en", "speakers": False, "fidm": fidm.__version__,
    }  # fmt: skip
    assert not {"participant", "episode"} & whole.keys()
    assert stat.S_IMODE((out / "P1.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    talks = read(out, names="folder", roles={"": "participant"})
    assert [(one.participant, one.episode) for one in talks][1:] == [("P2", "visit1"), ("P3", "visit1")]
    assert {one.media for one in talks} == set(found.undiarised)
    assert [(word.start_s, word.end_s) for word in talks[0].turns[0].words][:2] == [(0.0, 0.1), (0.1, 0.2)]


def test_a_run_is_resumed_and_only_our_own_files_are_replaced(audio, tmp_path):
    out, by = tmp_path / "talks", Fake()
    out.mkdir()
    (out / "P1.json").write_text('{"segments": []}', "utf-8")
    first = transcribe_all(audio, out, by)
    assert [path.name for path in first.kept] == ["P1.json"]
    assert by.asked == ["visit1.WAV", "visit1.mp3"]
    (out / "P2" / "visit1.json").unlink()
    second = transcribe_all(audio, out, by)
    assert (len(second.kept), len(second.written), by.asked[2:]) == (2, 1, ["visit1.WAV"])
    third = transcribe_all(audio, out, by, again=True)
    assert [path.parent.name for path in third.written] == ["P2", "P3"]
    assert "P1.json is there and was not written by fidm transcribe" in str(third.problems[0])
    assert (out / "P1.json").read_text("utf-8") == '{"segments": []}'


def test_all_problems_are_told_and_nothing_that_was_said(audio, tmp_path, caplog):
    (audio / "P1.mp3").write_bytes(b"RIFF")
    (audio / "P4.flac").write_bytes(CANARY.encode())
    found = transcribe_all(audio, tmp_path / "talks", Fake())
    assert {one.where: one.what.partition(".")[0] for one in found.problems} == {
        "P1.mp3": "Several recordings would become P1",
        "P1.wav": "Several recordings would become P1",
        "P4.flac": "It cannot be transcribed",
    }
    assert CANARY not in json.dumps(found.to_dict()) + caplog.text
    silent = transcribe_all(audio / "P2", tmp_path / "more", Fake(" "))
    assert silent.problems[0].what.startswith("No speech was recognised")
    for source, said in ((tmp_path / "none", "no such file"), (tmp_path / "talks", "has no recordings")):
        with pytest.raises(DataError, match=said):
            transcribe_all(source, tmp_path / "out", Fake())


def test_words_belong_to_whoever_speaks_meanwhile(audio, tmp_path):
    lines = [
        "SPEAKER x 1 0.0 0.2 <NA> <NA> A <NA> <NA>",
        "SPKR-INFO x",
        "SPEAKER x 1 0.2 2 <NA> <NA> B <NA> <NA>",
    ]
    (tmp_path / "P1.rttm").write_text("\n".join(lines), "utf-8")
    out, one = tmp_path / "talks", audio / "P1.wav"
    found = transcribe_all(one, out, Fake("go up two squares", "okay"), speakers=tmp_path)
    assert found == Transcribed(written=(out / "P1.json",))
    turns = read(out, roles={"A": "participant", "B": "assessor"})[0].turns
    assert [(turn.speaker, turn.text, turn.start_s) for turn in turns] == [
        ("A", "go up", 0.0), ("B", "two squares", 0.2), ("B", "okay", 1.0),
    ]  # fmt: skip
    (tmp_path / "P1.rttm").write_text(f"SPEAKER {CANARY}", "utf-8")
    broken = transcribe_all(one, out, Fake(), speakers=tmp_path, again=True)
    absent = transcribe_all(one, out, Fake(), speakers=audio, again=True)
    assert "P1.rttm is not RTTM" in str(broken.problems[0])
    assert "There is no P1.rttm" in str(absent.problems[0])
    assert CANARY not in str(broken.problems[0])


@pytest.mark.parametrize(
    ("text", "is_standard"),
    [
        ("我們現在要去買的是那些肉", True),
        ("我哋而家要去買嘅係嗰啲肉", False),
        ("好的", False),
        ("go up", False),
    ],
)
def test_written_chinese_in_the_place_of_spoken_cantonese_is_noticed(audio, tmp_path, text, is_standard):
    found = transcribe_all(audio / "P1.wav", tmp_path / "talks", Fake(text), language="yue")
    assert bool(found.standard) is is_standard


def test_texts_without_punctuation_and_turns_without_times_of_words_are_noticed(audio, tmp_path):
    class Plain(Fake):
        def transcribe(self, recording, language):
            talk = super().transcribe(recording, language)
            return replace(talk, turns=tuple(replace(turn, words=()) for turn in talk))

    long = "go up two squares and then go left three squares and then take the meat"
    found = transcribe_all(audio / "P1.wav", tmp_path / "talks", Plain(long))
    assert found.bare == found.untimed == ("P1.wav",)
    marked = transcribe_all(audio / "P1.wav", tmp_path / "more", Fake(f"{long}."))
    assert marked.bare == marked.untimed == ()


# ---------------------------------------------------------------------- contract


def test_engines_keep_the_contract():
    check_transcriber(Fake(), SOUND / "talk.wav")
    check_transcriber(make_transcriber("pocketsphinx"), SOUND / "talk.wav")


class Odd(Fake):
    def provenance(self):
        return {"engine": self}

    def transcribe(self, recording, language):
        turn = Turn("", 1, 0, "up", words=(Word(0, 9, 0, 1),))
        return Transcript("x", (turn,), language="xx")


class Telling(Fake):
    def transcribe(self, recording, language):
        if recording.stem == "broken":
            raise DataError(recording.read_text("utf-8"))
        return Transcript("x", ())


def test_a_broken_transcriber_is_told_what_is_wrong():
    with pytest.raises(AssertionError, match="lacks name, provenance or transcribe"):
        check_transcriber(object(), SOUND)
    with pytest.raises(AssertionError, match="no Transcript with turns"):
        check_transcriber(Telling(), SOUND)
    with pytest.raises(AssertionError) as told:
        check_transcriber(Odd(), SOUND)
    for what in ("JSON", "language that was asked", "no times", "Words do not stand", "is no DataError"):
        assert what in str(told.value)


# ---------------------------------------------------------------------- engines


def test_a_real_recording_goes_all_the_way_to_moves(tmp_path):
    """A small English recogniser hears a recording of two synthetic voices."""
    by = make_transcriber("pocketsphinx")
    found = transcribe_all(SOUND, tmp_path / "talks", by, language="en", speakers=SOUND)
    assert found.problems == found.undiarised == found.untimed == ()
    [talk] = read(tmp_path / "talks", roles=ROLES)
    assert [(turn.role, turn.text) for turn in talk] == [
        ("participant", "go left two squares"), ("assessor", "okay"),
    ]  # fmt: skip
    assert talk.turns[0].start_s == pytest.approx(0.2, abs=0.1)
    assert talk.turns[1].end_s == pytest.approx(2.5, abs=0.1)
    assert (len(talk.turns[0].words), talk.media) == (4, "talk.wav")
    task = fidm.load_task("grocery")
    grounded = fidm.ground([talk], task)
    assert [task.actions[action] for action in grounded.cohort.action] == ["W", "W"]
    assert by.provenance()["engine"] == "pocketsphinx"


def test_pocketsphinx_takes_english_and_its_own_model(tmp_path):
    with pytest.raises(DataError, match="brings its own model"):
        make_transcriber("pocketsphinx", model=tmp_path)
    with pytest.raises(DataError, match="English alone"):
        make_transcriber("pocketsphinx").transcribe(SOUND / "talk.wav", "yue")


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    for name, said in (
        ("faster-whisper", "pip install faster-whisper"),
        ("whisper.cpp", "whisper-cli was not found"),
    ):
        with pytest.raises(DataError, match=said):
            make_transcriber(name, model=tmp_path)
    (tmp_path / "x.mp3").write_bytes(b"ID3")
    with pytest.raises(DataError, match="ffmpeg was not found"):
        make_transcriber("pocketsphinx").transcribe(tmp_path / "x.mp3", "en")
    monkeypatch.setitem(TRANSCRIBERS.built_in, "dict", "builtins:dict")
    with pytest.raises(DataError, match="makes no transcriber"):
        make_transcriber("dict")


def program(folder: Path, name: str, code: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n{code}", "utf-8")
    path.chmod(0o700)


def test_whisper_cpp_is_asked_for_times_of_words(tmp_path, monkeypatch):
    tokens = [
        {"text": word, "offsets": {"from": n * 200, "to": n * 200 + 150}}
        for n, word in enumerate((" go", " up"))
    ]
    row = {"offsets": {"from": 0, "to": 900}, "text": " go up", "tokens": tokens}
    heard = {"result": {"language": "en"}, "transcription": [row]}
    program(
        tmp_path,
        "whisper-cli",
        "if '--version' in sys.argv: sys.exit(print('whisper.cpp version: 1.8.2'))\n"
        f"pathlib.Path({str(tmp_path)!r}, 'asked').write_text(json.dumps(sys.argv[1:]))\n"
        f"print({CANARY!r}); sys.stdout.flush()\n"
        "if 'broken' in sys.argv[4]: sys.exit(3)\n"
        f"pathlib.Path(sys.argv[sys.argv.index('-of') + 1] + '.json').write_text(json.dumps({heard!r}))\n",
    )
    program(
        tmp_path, "ffmpeg", "import shutil; shutil.copy(sys.argv[3].removeprefix('file:'), sys.argv[-1])\n"
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(DataError, match=r"needs a model file such as ggml-large-v3\.bin"):
        make_transcriber("whisper.cpp", model=tmp_path / "none.bin")
    (tmp_path / "ggml-tiny.bin").write_bytes(b"ggml")
    by = make_transcriber("whisper.cpp", model=tmp_path / "ggml-tiny.bin", prompt="um")
    assert by.provenance() == {
        "engine": "whisper.cpp", "version": "1.8.2", "model": "ggml-tiny.bin",
        "settings": {"output": "json-full", "prompt": "um"},
    }  # fmt: skip
    talk = by.transcribe(SOUND / "talk.wav", "")
    asked = json.loads((tmp_path / "asked").read_text("utf-8"))
    assert asked[:6] == ["-m", str(tmp_path / "ggml-tiny.bin"), "-f", str(SOUND / "talk.wav"), "-ojf", "-np"]
    assert asked[6:8] + asked[-2:] == ["-l", "auto", "--prompt", "um"]
    assert (talk.language, talk.turns[0].text) == ("en", "go up")
    assert [word.start_s for word in talk.turns[0].words] == [0.0, 0.2]
    (tmp_path / "broken.mp3").write_bytes(b"ID3")
    program(tmp_path, "ffmpeg", "sys.exit(1)\n")
    with pytest.raises(DataError, match=r"ffmpeg failed on it \(exit code 1\)"):
        by.transcribe(tmp_path / "broken.mp3", "en")


def test_faster_whisper_loads_a_folder_and_nothing_else(tmp_path, monkeypatch):
    library = types.ModuleType("faster_whisper")
    calls = {}

    class WhisperModel:
        model = types.SimpleNamespace(is_multilingual=True)
        hf_tokenizer = types.SimpleNamespace(token_to_id={"<|en|>": 1, "<|zh|>": 2}.get)

        def __init__(self, folder, **options):
            calls.update(folder=folder, load=options)

        def transcribe(self, path, **options):
            calls.update(options)
            if path.endswith("broken.wav"):
                raise ValueError(CANARY)
            word = types.SimpleNamespace(word=" up", start=0.1, end=0.4)
            return iter(
                [types.SimpleNamespace(start=0.1, end=0.5, text=" up", words=[word])]
            ), types.SimpleNamespace(language="en")

    library.WhisperModel = WhisperModel
    monkeypatch.setitem(sys.modules, "faster_whisper", library)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    (tmp_path / "model.bin").touch()
    (tmp_path / "config.json").touch()
    for model, said in ((None, "no --model"), (tmp_path, r"tokenizer\.json not found")):
        with pytest.raises(DataError, match=said):
            make_transcriber("faster-whisper", model=model)
    (tmp_path / "tokenizer.json").touch()
    by = make_transcriber("faster-whisper", model=tmp_path)
    check_transcriber(by, SOUND / "talk.wav")
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert (calls["folder"], calls["load"]) == (str(tmp_path), {"local_files_only": True})
    assert calls["word_timestamps"] is True
    assert by.transcribe(SOUND / "talk.wav", "").language == "en"
    with pytest.raises(
        DataError, match=r"does not know --language yue\. Models before large-v3 know Cantonese as zh"
    ):
        by.transcribe(SOUND / "talk.wav", "yue")
