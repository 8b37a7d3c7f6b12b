"""grounding.toml: what may stand in it, and everything that is wrong said at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fidm.errors import GroundingError
from fidm.grounding.dialog import Settings
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.settings import FILE, GroundingFile, read_settings


def wrote(tmp_path: Path, text: str | bytes) -> GroundingFile:
    (tmp_path / FILE).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_settings(tmp_path)


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    found = read_settings(tmp_path)
    assert found == GroundingFile()
    plain = Settings()
    assert found.settings().counting == plain.counting
    assert found.settings().segmenting == plain.segmenting
    assert found.settings().weighing == plain.weighing
    assert (found.settings().language, found.settings().context_turns) == (
        plain.language,
        plain.context_turns,
    )
    assert wrote(tmp_path, "") == GroundingFile()


def test_the_defaults_of_the_rules_are_those_of_the_file() -> None:
    mine = GroundingFile().grounder(cache=None)
    assert isinstance(mine, Rules)
    assert mine.provenance() == Rules().provenance()


def test_everything_may_be_set(tmp_path: Path) -> None:
    found = wrote(
        tmp_path,
        """
        talks = "recordings"
        by = "rules"
        language = "yue"
        context_turns = 3
        untimed = "keep"
        [speakers]
        SPEAKER_00 = "assessor"
        SPEAKER_01 = "participant"
        [columns]
        text = "utterance"
        [counting]
        fillers = false
        retracings = false
        punctuation = true
        pause_above_s = 0.5
        untimed_pause_s = 1
        after_assessor = false
        duration = "turns"
        turns = "both"
        [segmenting]
        closes = ["moved", "prompt"]
        [weighing]
        doubtful = 0.5
        keep_talk = true
        [rules]
        turns = "map"
        sides = "walker"
        unknown = 0.5
        [llm]
        endpoint = "http://127.0.0.1:1/v1"
        samples = 3
        """,
    )
    settings = found.settings()
    assert (found.talks, found.untimed, found.columns) == ("recordings", "keep", {"text": "utterance"})
    assert found.speakers["SPEAKER_01"] == "participant"
    assert (settings.language, settings.context_turns) == ("yue", 3)
    assert settings.counting.duration == "turns"
    assert settings.counting.untimed_pause_s == 1
    assert settings.segmenting.closes == ("moved", "prompt")
    assert (settings.weighing.doubtful, settings.weighing.keep_talk) == (0.5, True)
    grounder = found.grounder(cache=None)
    assert isinstance(grounder, Rules)
    assert grounder.provenance() != Rules().provenance()


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    assert wrote(tmp_path, b'\xef\xbb\xbfby = "rules"\n').by == "rules"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("talk = 'x'", "talk"),
        ("[count]\nfillers = true", "count"),
        ("[counting]\nfiller = true", "counting.filler"),
        ("[counting]\npause = 0.3", "counting.pause"),
        ("[segmenting]\nclose = ['moved']", "segmenting.close"),
        ("[weighing]\nweight = 1", "weighing.weight"),
        ("[rules]\nturn = 'map'", "rules.turn"),
        ("[llm]\nallow_remote = true", "llm.allow_remote"),
        ("[llm]\napi_key = 'x'", "llm.api_key"),
        ("by = 'magic'", "by"),
        ("language = 3", "language"),
        ("context_turns = -1", "context_turns"),
        ("context_turns = 2.5", "context_turns"),
        ("context_turns = '6'", "context_turns"),
        ("untimed = 'ignore'", "untimed"),
        ("[speakers]\nA = 'boss'", "speakers.A"),
        ("speakers = ['A']", "speakers"),
        ("[columns]\ntext = 3", "columns.text"),
        ("[counting]\nfillers = 1", "counting.fillers"),
        ("[counting]\nfillers = 'yes'", "counting.fillers"),
        ("[counting]\npause_above_s = -0.1", "counting.pause_above_s"),
        ("[counting]\npause_above_s = nan", "counting.pause_above_s"),
        ("[counting]\npause_above_s = 250", "counting.pause_above_s"),
        ("[counting]\nuntimed_pause_s = '0.3'", "counting.untimed_pause_s"),
        ("[counting]\nduration = 'speaking'", "counting.duration"),
        ("[counting]\nturns = 'all'", "counting.turns"),
        ("[segmenting]\ncloses = 'moved'", "segmenting.closes"),
        ("[segmenting]\ncloses = ['bell']", "segmenting.closes.0"),
        ("[weighing]\ndoubtful = 1.5", "weighing.doubtful"),
        ("[weighing]\ndoubtful = nan", "weighing.doubtful"),
        ("[rules]\nunknown = 2", "rules.unknown"),
        ("[llm]\nsamples = 0", "llm.samples"),
        ("[llm]\nworkers = 0", "llm.workers"),
        ("[llm]\ntimeout_s = 0", "llm.timeout_s"),
        ("[llm]\ntimeout_s = nan", "llm.timeout_s"),
        ("[llm]\ntemperature = 3", "llm.temperature"),
    ],
)
def test_a_slip_is_an_error_at_its_place(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(GroundingError) as caught:
        wrote(tmp_path, text)
    assert [problem.where for problem in caught.value.problems] == [where]
    assert caught.value.source == str(tmp_path / FILE)


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(GroundingError) as caught:
        wrote(
            tmp_path, "by = 'x'\nnonsense = 1\n[counting]\nfillers = 3\nother = 1\n[weighing]\ndoubtful = 7\n"
        )
    assert {problem.where for problem in caught.value.problems} == {
        "by", "nonsense", "counting.fillers", "counting.other", "weighing.doubtful",
    }  # fmt: skip
    for problem in caught.value.problems:
        assert problem.what.endswith(".")


def test_values_are_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(GroundingError) as caught:
        wrote(
            tmp_path,
            "by = 'secretword'\n[counting]\nduration = 'secretword'\n[columns]\ntext = ['secretword']\n",
        )
    assert "secretword" not in str(caught.value)


@pytest.mark.parametrize(
    "text", [b"by = ", b"by = 'rules'\nby = 'llm'", b"\xff\xfe\x00", b"[counting\n", b"a = " + b"[" * 5000]
)
def test_what_is_no_toml_is_a_sentence(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(GroundingError, match=r"not valid TOML|cannot be read") as caught:
        wrote(tmp_path, text)
    assert str(tmp_path / FILE) in str(caught.value)


def test_a_folder_of_that_name_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(GroundingError, match="cannot be read"):
        read_settings(tmp_path)


def test_a_language_model_is_not_called_by_being_made(tmp_path: Path) -> None:
    for by in ("llm", "hybrid"):
        grounder = GroundingFile(by=by).grounder(cache=None)
        assert grounder.name
        grounder.close()
