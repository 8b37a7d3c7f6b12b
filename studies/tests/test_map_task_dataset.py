"""The HCRC Map Task's loader, on made-up files in its format."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest
from made_up.map_task import DIALOGS, MAPS, made_up, write, write_archive

from fidm.errors import DataError
from fidm.grounding.segment import Counting, measure
from fidm.io.talk import Transcript, Turn, Word
from fidm_studies.dataset import Loaded, no_progress
from fidm_studies.map_task.dataset import DATASET, GIVERS, giver, is_familiar, measured, read
from fidm_studies.map_task.files import ARCHIVE, Move, Unit

UNITS = "timed-units/q1ec1.g.timed-units.xml"
MOVES = "moves/q1ec1.g.moves.xml"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("map_task")
    write(folder)
    return read(folder, no_progress)


def changed(folder: Path, path: str, text: str | None) -> Path:
    """The made-up files of one quad, with another text in one of them, or without it."""
    write(folder, dialogs=DIALOGS[:8])
    if text is None:
        (folder / path).unlink()
    else:
        (folder / path).write_text(text, "utf-8")
    return folder


def test_every_instruct_move_of_every_giver_is_read(loaded: Loaded) -> None:
    cohort = loaded.cohort
    labelled = sum(text.count('label="instruct"') for path, text in made_up().items() if ".g." in path)
    assert cohort.n_segments == labelled > 100
    assert cohort.n_episodes == len(DIALOGS)
    assert len(cohort) == len(DIALOGS) // 2
    assert loaded.tasks == ()
    assert cohort.n_steps == 0
    assert set(cohort.participants["eye_contact"].to_list()) == {True, False}
    assert cohort.segments.null_count().sum_horizontal().item() == 0
    assert (
        cohort.segments["duration_s"] + cohort.segments["pause_s"] - cohort.segments["span_s"]
    ).abs().max() < 1e-5
    assert (cohort.segments["silence_s"] + 1e-6 >= cohort.segments["pause_s"]).all()


def test_an_archive_gives_the_same_as_the_files(loaded: Loaded, tmp_path: Path) -> None:
    write_archive(tmp_path / ARCHIVE)
    packed = read(tmp_path, no_progress)
    assert packed.cohort.segments.equals(loaded.cohort.segments)
    assert packed.cohort.participants.equals(loaded.cohort.participants)
    assert packed.notes == loaded.notes
    assert [one.name for one in tmp_path.iterdir()] == [ARCHIVE]


def test_a_move_is_measured_as_grounded_dialogs_are() -> None:
    times = [(0.0, 0.3, "go"), (0.3, 0.5, "up"), (0.7, 1.1, "l--"), (1.9, 2.4, "don't"), (2.65, 3.0, "é1")]
    units = [Unit("noi", 0.0, 0.0, "")]
    for start, end, text in times:
        if units[-1].end_s < start:
            units.append(Unit("sil", units[-1].end_s, start, ""))
        units.append(Unit("tu", start, end, text))
    found = measured(Move("1", "instruct", (*units, Unit("noi", 3.0, 3.5, "")), abandoned=False))
    words, text = [], ""
    for start, end, word in times:
        words.append(Word(len(text), len(text) + len(word), start, end))
        text += word + " "
    turn = Turn(
        speaker="g", role="participant", text=text.strip(), start_s=0.0, end_s=3.0, words=tuple(words)
    )
    transcript = Transcript(participant="P", turns=(turn,))
    effort = measure(transcript, [0], Counting())
    assert found is not None
    assert found["duration_s"] == pytest.approx(effort.duration_s)
    assert found["pause_s"] == pytest.approx(effort.pause_s)
    assert found["n_characters"] == effort.n_characters
    assert found["n_pauses"] == 1
    assert found["silence_s"] == pytest.approx(0.2 + 0.8 + 0.25)
    assert found["log_words"] == pytest.approx(math.log(5))


def test_a_move_without_words_is_left_out_and_counted(tmp_path: Path) -> None:
    assert measured(Move("1", "instruct", (Unit("noi", 0, 1, ""),), abandoned=False)) is None
    assert measured(Move("1", "instruct", (Unit("tu", 1, 1, "a"),), abandoned=False)) is None
    text = made_up()[MOVES]
    silent = text.replace('label="ready"', 'label="instruct"', 1).replace(
        "</nite:root>",
        '<move id="q1ec1.g.move.99" label="instruct"><nite:child href="x#id(q1ec1g.99999)"/></move></nite:root>',
    )
    units = made_up()[UNITS].replace(
        "</nite:root>", '<sil id="q1ec1g.99999" start="999.0" end="1000.0"/></nite:root>'
    )
    changed(tmp_path, MOVES, silent)
    (tmp_path / UNITS).write_text(units, "utf-8")
    assert any("1 instruct moves" in note for note in read(tmp_path, no_progress).notes)


def test_who_gives_a_route_follows_the_design(loaded: Loaded) -> None:
    for dialog in DIALOGS:
        same = [other for other in DIALOGS if giver(other) == giver(dialog)]
        assert len(same) == 2
        assert sorted(is_familiar(other) for other in same) == [False, True]
    assert set(GIVERS) == set(range(1, 9))
    agreed = loaded.tables["same_map"].filter(pl.col("by_design") == pl.col("by_words"))
    assert agreed.height == len(DIALOGS)
    with pytest.raises(DataError, match="of a dialog"):
        giver("quite another")


def test_words_that_point_elsewhere_are_noticed(tmp_path: Path) -> None:
    write(tmp_path, dialogs=DIALOGS[:16])
    for kind in ("moves", "timed-units"):  # conversation 7 takes the place of conversation 8, and back
        one, other = (tmp_path / kind / f"q1ec{n}.g.{kind}.xml" for n in (7, 8))
        texts = one.read_text("utf-8"), other.read_text("utf-8")
        one.write_text(texts[1], "utf-8")
        other.write_text(texts[0], "utf-8")
    table = read(tmp_path, no_progress).tables["same_map"]
    assert table.filter(pl.col("by_design") != pl.col("by_words")).height == 4


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (UNITS, None, "missing"),
        (MOVES, None, "missing"),
        (UNITS, "<root><tu id='a' start='0' end='1'>lake</tu></root>", "not in the other file"),
        (UNITS, "<root><tu id='a' start='2' end='1'>lake</tu></root>", "ends before"),
        (UNITS, "<root><tu id='a' start='x' end='1'>lake</tu></root>", "no id, start and end"),
        (UNITS, "<root><tu", "not XML"),
        (UNITS, '<!DOCTYPE r [<!ENTITY a "lake">]><r>&a;</r>', "document type"),
        (MOVES, '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "lake">]><r>&a;</r>', "document type"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, path: str, text: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message) as found:
        read(changed(tmp_path, path, text), no_progress)
    assert "q1ec1.g" in str(found.value)
    assert not any(word in str(found.value) for word in MAPS)


def test_a_document_type_cannot_hide_in_another_encoding(tmp_path: Path) -> None:
    write(tmp_path, dialogs=DIALOGS[:8])
    hidden = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>'
    (tmp_path / UNITS).write_bytes(hidden.encode("utf-16"))
    with pytest.raises(DataError, match="not UTF-8"):
        read(tmp_path, no_progress)


def test_folders_without_the_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder 'moves'"):
        read(tmp_path, no_progress)
    (tmp_path / ARCHIVE).write_bytes(b"no archive")
    with pytest.raises(DataError, match="as an archive"):
        read(tmp_path, no_progress)
    (tmp_path / ARCHIVE).unlink()
    (tmp_path / "moves").mkdir()
    with pytest.raises(DataError, match="file of moves"):
        read(tmp_path, no_progress)


def test_dialogs_without_instructions_are_said(tmp_path: Path) -> None:
    for path, text in made_up(dialogs=DIALOGS[:8]).items():
        place = tmp_path / path
        place.parent.mkdir(exist_ok=True)
        place.write_text(text.replace('"instruct"', '"explain"'), "utf-8")
    with pytest.raises(DataError, match="No route giver"):
        read(tmp_path, no_progress)


def test_the_data_set_says_what_it_asks() -> None:
    assert DATASET.name == "map-task"
    assert "NC" in DATASET.licence
    assert "commercial" in DATASET.terms
    assert any("10.1177/002383099103400404" in one for one in DATASET.citation)
    assert sum(path.endswith(".g.moves.xml") for path in DATASET.paths) == 128
    assert sum(path.endswith(".g.timed-units.xml") for path in DATASET.paths) == 128
