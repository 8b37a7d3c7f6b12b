"""The manual audit: a sheet that is safe to open, and a score that can be believed."""

from __future__ import annotations

import csv
import io
import stat
from pathlib import Path

import pytest
from statsmodels.stats.proportion import proportion_confint

import fidm
from fidm.cli.main import main
from fidm.errors import DataError, FidmError, GroundingError
from fidm.grounding.ground import ground
from fidm.grounding.review.audit import COLUMNS, OK, WRONG, sample_audit, score_audit
from fidm.grounding.store import write_grounding
from fidm.io.talk import Transcript, Turn
from fidm.stats import wilson

TASK = fidm.load_task("grocery")


def talk(who: str, *said: str, episode: str = "1") -> Transcript:
    turns = []
    for i, text in enumerate(said):
        turns.append(Turn("PAR", 3.0 * i, 3 * i + 1.0, text, "participant"))
        turns.append(Turn("INV", 3 * i + 1.5, 3 * i + 2.0, "okay, moved", "assessor"))
    return Transcript(who, tuple(turns), language="en", episode=episode)


def store(folder: Path, *dialogs: Transcript) -> Path:
    write_grounding(folder, ground(dialogs, TASK), tasks=["grocery"])
    return folder


@pytest.fixture
def study(tmp_path: Path) -> Path:
    people = [
        talk(f"P{i:02d}", "go left one square", "go up two squares, go up one square") for i in range(12)
    ]
    return store(tmp_path / "study", *people)


def rows(sheet: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"))))


def judge(
    sheet: Path, verdicts: list[str] | str, *, delimiter: str = ",", encoding: str = "utf-8-sig"
) -> Path:
    found = rows(sheet)
    listed = [verdicts] * len(found) if isinstance(verdicts, str) else verdicts
    for row, verdict in zip(found, listed, strict=True):
        row["verdict"] = verdict
    return put(sheet, found, delimiter=delimiter, encoding=encoding)


def put(
    sheet: Path, found: list[dict[str, str]], *, delimiter: str = ",", encoding: str = "utf-8-sig"
) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, delimiter=delimiter)
    writer.writeheader()
    writer.writerows(found)
    sheet.write_bytes(text.getvalue().encode(encoding))
    return sheet


# ------------------------------------------------------------------ sampling


def test_a_sheet_has_every_segment_of_the_dialogs_drawn(study: Path) -> None:
    sheet = sample_audit(study, 5, seed=3)
    assert sheet == study / "grounding" / "audit-3.csv"
    found = rows(sheet)
    assert tuple(found[0]) == COLUMNS
    assert len(found) == 10
    assert len({row["participant"] for row in found}) == 5
    assert found[0]["said"] == "go left one square"
    assert (found[0]["program"], found[0]["moves"], found[0]["status"]) == ("MOVE left 1", "W", "confident")
    assert found[1]["moves"] == "N×3"
    assert {row["verdict"] + row["comment"] for row in found} == {""}


def test_same_seed_same_dialogs_whatever_their_order(tmp_path: Path, study: Path) -> None:
    people = [
        talk(f"P{i:02d}", "go left one square", "go up two squares, go up one square") for i in range(12)
    ]
    other = store(tmp_path / "other", *people[::-1])
    drawn = [
        {row["participant"] for row in rows(sample_audit(place, 4, seed=seed, path=tmp_path / f"{i}.csv"))}
        for i, (place, seed) in enumerate([(study, 1), (other, 1), (study, 2)])
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_more_than_there_are_means_all(study: Path) -> None:
    assert len({row["participant"] for row in rows(sample_audit(study, 500, seed=1))}) == 12


def test_episodes_are_drawn_one_by_one(tmp_path: Path) -> None:
    study = store(tmp_path / "s", *(talk("P1", "go left one square", episode=str(i)) for i in range(6)))
    assert len({row["episode"] for row in rows(sample_audit(study, 2, seed=0))}) == 2


def test_a_sheet_is_for_its_owner_alone_and_opens_in_a_spreadsheet(study: Path, tmp_path: Path) -> None:
    for sheet in (
        sample_audit(study, 1, seed=1),
        sample_audit(study, 1, seed=1, path=tmp_path / "deep" / "er.csv"),
    ):
        assert stat.S_IMODE(sheet.stat().st_mode) == 0o600
        assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")


def test_a_sheet_that_exists_is_not_overwritten(study: Path) -> None:
    sheet = judge(sample_audit(study, 3, seed=1), "ok")
    before = sheet.read_bytes()
    with pytest.raises(DataError, match="exists already"):
        sample_audit(study, 3, seed=1)
    assert sheet.read_bytes() == before


@pytest.mark.parametrize(("n", "seed"), [(0, 1), (-2, 1), (1, -1)])
def test_a_sample_needs_a_number_and_a_seed(study: Path, n: int, seed: int) -> None:
    with pytest.raises(GroundingError):
        sample_audit(study, n, seed=seed)


def test_a_study_without_a_grounding_is_refused(tmp_path: Path) -> None:
    for action in (
        lambda: sample_audit(tmp_path, 1, seed=1),
        lambda: score_audit(tmp_path, tmp_path / "x.csv"),
    ):
        with pytest.raises(GroundingError, match="fidm ground"):
            action()


FORMULAS = ["=1+1", "+1 left", "-left", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x","go")']


@pytest.mark.parametrize("said", FORMULAS)
def test_no_cell_is_a_formula(tmp_path: Path, said: str) -> None:
    study = store(tmp_path / "s", talk("=P1", said), talk("@P2", "go left one square", said))
    sheet = sample_audit(study, 5, seed=1)
    for cells in csv.reader(io.StringIO(sheet.read_text("utf-8-sig"))):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)
    assert score_audit(study, judge(sheet, "ok")).n_consistent == 2


def test_names_that_begin_with_an_apostrophe_can_be_scored(tmp_path: Path) -> None:
    study = store(tmp_path / "s", talk("'P1", "go left one square"))
    assert score_audit(study, judge(sample_audit(study, 1, seed=1), "ok")).n_dialogs == 1


# ------------------------------------------------------------------ scoring


def test_one_wrong_segment_makes_a_dialog_wrong(study: Path) -> None:
    sheet = sample_audit(study, 4, seed=1)
    verdicts = ["ok"] * 8
    verdicts[2] = "wrong"
    found = score_audit(study, judge(sheet, verdicts))
    assert (found.n_dialogs, found.n_consistent, found.n_segments, found.n_right) == (4, 3, 8, 7)
    assert found.dialogs == wilson(3, 4)
    assert found.segments == wilson(7, 8)


@pytest.mark.parametrize("n", [1, 2, 20, 137])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_is_that_of_statsmodels(n: int, level: float) -> None:
    for right in {0, 1, n // 2, n - 1, n}:
        low, high = proportion_confint(right, n, alpha=1 - level, method="wilson")
        assert wilson(right, n, level) == pytest.approx((max(0.0, low), min(1.0, high)), abs=1e-10)


def test_nothing_judged_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_level_is_that_of_the_intervals(study: Path) -> None:
    sheet = judge(sample_audit(study, 4, seed=1), "ok")
    wide, narrow = (score_audit(study, sheet, level=level).dialogs for level in (0.99, 0.5))
    assert wide[0] < narrow[0]
    for level in (0, 1, 95, float("nan")):
        with pytest.raises(GroundingError, match="level"):
            score_audit(study, sheet, level=level)


@pytest.mark.parametrize(
    ("word", "right"),
    [*((w, True) for w in OK), *((w, False) for w in WRONG), (" OK ", True), ("Wrong", False)],
)
def test_words_for_right_and_wrong(study: Path, word: str, right: bool) -> None:
    found = score_audit(study, judge(sample_audit(study, 1, seed=1), word))
    assert (found.n_right, found.n_consistent) == ((2, 1) if right else (0, 0))


def test_semicolons_are_fine(study: Path) -> None:
    sheet = judge(sample_audit(study, 3, seed=1), "ok", delimiter=";")
    assert score_audit(study, sheet).n_consistent == 3


def test_windows_line_ends_and_no_byte_order_mark_are_fine(study: Path) -> None:
    sheet = judge(sample_audit(study, 3, seed=1), "ok", encoding="utf-8")
    sheet.write_bytes(sheet.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert score_audit(study, sheet).n_consistent == 3


def test_every_missing_verdict_is_listed_at_once(study: Path) -> None:
    sheet = judge(sample_audit(study, 3, seed=1), ["ok", "", "wrong", "maybe", "", "ok"])
    with pytest.raises(DataError) as caught:
        score_audit(study, sheet)
    assert [(problem.where, "neither" in problem.what) for problem in caught.value.problems] == [
        ("row 3", False),
        ("row 5", True),
        ("row 6", False),
    ]
    assert "go left" not in str(caught.value)
    assert "maybe" not in str(caught.value)


def test_a_changed_grounding_is_refused(study: Path) -> None:
    sheet = judge(sample_audit(study, 2, seed=1), "ok")
    who = rows(sheet)[0]["participant"]
    store(study, *(talk(f"P{i:02d}", "go left two squares" if f"P{i:02d}" == who else "go left one square",
                        "go up two squares, go up one square") for i in range(12)))  # fmt: skip
    with pytest.raises(DataError, match="older grounding") as caught:
        score_audit(study, sheet)
    assert [problem.where for problem in caught.value.problems] == ["row 2"]


def test_segments_the_study_has_not_are_refused(study: Path, tmp_path: Path) -> None:
    sheet = judge(sample_audit(study, 2, seed=1), "ok")
    other = store(tmp_path / "other", talk("Q1", "go left one square"))
    with pytest.raises(DataError) as caught:
        score_audit(other, sheet)
    assert len(caught.value.problems) == 4


def test_a_dialog_of_which_rows_were_deleted_is_not_taken_for_whole(study: Path) -> None:
    """Who deletes the row of a wrong segment must not make the dialog right."""
    sheet = judge(sample_audit(study, 2, seed=1), "ok")
    put(sheet, rows(sheet)[1:])
    with pytest.raises(DataError):
        score_audit(study, sheet)


def test_a_row_that_stands_there_twice_is_not_counted_twice(study: Path) -> None:
    sheet = judge(sample_audit(study, 2, seed=1), "ok")
    found = rows(sheet)
    put(sheet, [*found, found[0]])
    try:
        score = score_audit(study, sheet)
    except DataError:
        return
    assert score.n_segments == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no rows"),
        (b"participant,episode,segment,program,verdict\n", "no rows"),
        (b"participant,episode\nP1,1\n", "no column 'segment'"),
        ("participant,verdict\nP1,ok\n".encode("utf-16"), "UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_sheet_is_a_sentence(study: Path, tmp_path: Path, content: bytes, said: str) -> None:
    sheet = tmp_path / "sheet.csv"
    sheet.write_bytes(content)
    with pytest.raises(DataError, match=said):
        score_audit(study, sheet)


def test_a_sheet_that_is_not_there_is_a_sentence(study: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        score_audit(study, tmp_path / "nowhere.csv")


def test_a_row_that_was_cut_is_a_problem_not_a_crash(study: Path) -> None:
    sheet = judge(sample_audit(study, 1, seed=1), "ok")
    lines = sheet.read_text("utf-8-sig").splitlines()
    sheet.write_text("\n".join([*lines[:-1], lines[-1].split(",")[0]]) + "\n", "utf-8")
    with pytest.raises(FidmError):
        score_audit(study, sheet)


# ------------------------------------------------------------------ command line


def test_the_commands_sample_and_score(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "sheet.csv"
    assert main(["audit", "sample", str(study), "-n", "3", "--seed", "7", "--out", str(sheet)]) == 0
    said = capsys.readouterr()
    assert "go left" not in said.out + said.err
    assert main(["audit", "score", str(study), str(sheet)]) == 2
    assert "has no verdict" in capsys.readouterr().err
    judge(sheet, "ok")
    assert main(["audit", "score", str(study), str(sheet)]) == 0
    assert "3 of 3 right, 100.0%" in capsys.readouterr().out
    assert main(["audit", "score", str(study), str(sheet), "--json", "--level", "0.9"]) == 0
    assert '"n_consistent": 3' in capsys.readouterr().out
    assert main(["audit", "sample", str(study), "--out", str(sheet)]) == 2
    assert "exists already" in capsys.readouterr().err
