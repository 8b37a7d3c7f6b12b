"""What a grounder is worth on audited segments and phrasings: the right truth, the right place, nothing changed."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import fidm
from fidm.cli.main import main
from fidm.errors import DataError, GroundingError
from fidm.grounding.base import Context, Proposal, Reading, Segment, judge, read_phrasings
from fidm.grounding.evaluate import evaluate, known_audited, known_phrasings
from fidm.grounding.ground import ground
from fidm.grounding.review.apply import read_proposed
from fidm.grounding.review.audit import COLUMNS, read_audited, sample_audit, score_audit
from fidm.grounding.route.program import parse_program
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.store import write_grounding
from fidm.io.talk import Transcript, Turn
from fidm.stats import wilson

TASK = fidm.load_task("grocery")
PHRASINGS = Path(__file__).parents[2] / "data" / "phrasings" / "development_en.jsonl"
SAID = ("go left one square", "go up two squares", "go down one square")


class Parrot:
    """Reads each text as it is told."""

    name = "parrot"

    def __init__(self, **programs: str) -> None:
        self.programs, self.seen = programs, list[tuple[str, Context]]()

    def provenance(self) -> Mapping[str, Any]:
        return {"grounder": self.name}

    def ground(self, segment: Segment, context: Context) -> Proposal:
        self.seen.append((segment.text, context))
        program = self.programs.get(segment.text.replace(" ", "_"), "NONE")
        return Proposal((Reading(parse_program(program, context.terrain.places)),), (), self.name)

    def close(self) -> None:
        pass


def talk(who: str) -> Transcript:
    turns = []
    for i, text in enumerate(SAID):
        turns.append(Turn("PAR", 3.0 * i, 3 * i + 1.0, text, "participant"))
        turns.append(Turn("INV", 3 * i + 1.5, 3 * i + 2.0, "okay, moved", "assessor"))
    return Transcript(who, tuple(turns), language="en")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    write_grounding(folder, ground([talk("P1"), talk("P2"), talk("P3")], TASK), tasks=["grocery"])
    return folder


def sheet_of(study: Path, *judged: Mapping[str, str], name: str = "sheet.csv", n: int = 2) -> Path:
    """A sheet of two dialogs, each row judged in turn; all further rows are ok."""
    path = study.parent / name
    sample_audit(study, n, seed=1, path=path)
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    for i, row in enumerate(rows):
        row |= {"verdict": "ok", **(judged[i] if i < len(judged) else {})}
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), "utf-8-sig")
    return path


def test_a_sheet_has_a_place_for_the_right_program_and_is_scored_as_before(study: Path) -> None:
    assert COLUMNS[-3:] == ("verdict", "corrected", "comment")
    sheet = sheet_of(study, {"verdict": "wrong", "corrected": "MOVE left 2"})
    found = score_audit(study, sheet)
    assert (found.n_dialogs, found.n_consistent, found.n_segments, found.n_right) == (2, 1, 6, 5)
    read = read_audited(sheet)
    assert [(row.is_right, row.truth) for row in read[:2]] == [(False, "MOVE left 2"), (True, "MOVE up 2")]


def test_segments_are_read_where_the_figure_really_was(study: Path) -> None:
    sheet = sheet_of(study, {"verdict": "wrong", "corrected": "MOVE left 1; MOVE up 1"})
    known = known_audited(sheet, read_proposed(study))
    assert [item.participant for item in known.items[:3]] == [known.items[0].participant] * 3
    cells = [item.context.terrain.cell(item.context.position.state) for item in known.items]
    places = [(int(TASK.grid.grid.row[cell]) + 1, int(TASK.grid.grid.column[cell]) + 1) for cell in cells]
    # The first dialog is walked along the corrected program, the second along what was found right.
    assert places[0] == places[3]
    assert places[1] == (places[4][0] - 1, places[4][1])
    assert known.items[1].context.preceding == (("participant", SAID[0]), ("assessor", "okay, moved"))
    parrot = Parrot(go_left_one_square="MOVE left 1; MOVE up 1", go_up_two_squares="MOVE up 2")
    found = evaluate(parrot, known, sheet=sheet)
    (row,) = found.rows
    # The first is right in the first dialog alone, the second in both; the third is never read.
    assert (row.grounder, row.model, row.n, row.n_exact, row.n_right) == ("parrot", "", 6, 3, 3)
    assert {text for text, _ in parrot.seen} == set(SAID)


def test_rows_without_a_truth_are_left_out_and_counted(study: Path) -> None:
    sheet = sheet_of(study, {"verdict": "wrong"}, {"verdict": ""}, {"verdict": "wrong", "corrected": "NONE"})
    known = known_audited(sheet, read_proposed(study))
    assert (len(known.items), known.n_unjudged, known.n_uncorrected) == (4, 1, 1)
    assert list(known.items[0].wanted or ()) == []
    nothing = sheet_of(study, *[{"verdict": ""}] * 6, name="nothing.csv")
    with pytest.raises(DataError, match="no segment whose meaning is known"):
        evaluate(Rules(), known_audited(nothing, read_proposed(study)), sheet=nothing)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"verdict": "perhaps"}, "neither ok nor wrong"),
        ({"verdict": "ok", "corrected": "MOVE up 1"}, "not found wrong"),
        ({"verdict": "", "corrected": "MOVE up 1"}, "not found wrong"),
        ({"verdict": "wrong", "corrected": "FLY up"}, "no known name"),
        ({"verdict": "wrong", "corrected": "BUY moon"}, "names no place"),
        ({"said": "go right, zanzibarkumquat"}, "other words"),
        ({"participant": "P99"}, "the study does not have"),
        ({"segment": "2"}, "an earlier row"),
    ],
)
def test_a_sheet_that_cannot_be_used_is_refused_row_by_row(
    study: Path, row: dict[str, str], problem: str
) -> None:
    sheet = sheet_of(study, row)
    with pytest.raises(DataError, match=problem) as found:
        known_audited(sheet, read_proposed(study))
    assert "row 2" in str(found.value) or "row 3" in str(found.value)
    for word in ("zanzibarkumquat", "moon", "FLY", "perhaps"):
        assert word not in str(found.value)


def test_a_sheet_stays_the_truth_when_the_study_is_grounded_by_another(study: Path) -> None:
    sheet = sheet_of(study)
    other = Parrot(go_left_one_square="MOVE left 1")
    write_grounding(study, ground([talk("P1"), talk("P2"), talk("P3")], TASK, by=other), tasks=["grocery"])
    with pytest.raises(DataError, match="older grounding"):
        score_audit(study, sheet)
    known = known_audited(sheet, read_proposed(study))
    assert evaluate(Rules(), known, sheet=sheet).rows[0].n_exact == 6


def test_phrasings_are_judged_as_by_judge() -> None:
    known = known_phrasings(PHRASINGS)
    found = evaluate(Rules(), known, sheet=PHRASINGS, workers=3)
    (row,) = found.rows
    table = judge(Rules(), read_phrasings(PHRASINGS, language="en"))
    confident = table.filter("confident")
    assert (row.n, row.n_exact, row.n_confident, row.n_right) == (
        table.height, table["right"].sum(), confident.height, confident["right"].sum()
    )  # fmt: skip
    shares = row.shares()
    assert (shares["exact"]["low"], shares["exact"]["high"]) == wilson(row.n_exact, row.n)
    assert shares["right_when_confident"]["of"] == row.n_confident


def test_of_what_is_unclear_no_reading_is_right(tmp_path: Path) -> None:
    item = json.loads(PHRASINGS.read_text("utf-8").splitlines()[1])
    path = tmp_path / "unclear.jsonl"
    path.write_text(json.dumps(item) + "\n" + json.dumps(item | {"program": "UNCLEAR"}) + "\n", "utf-8")
    found = evaluate(Rules(), known_phrasings(path), sheet=path)
    assert (found.rows[0].n, found.rows[0].n_exact) == (2, 1)
    with pytest.raises(GroundingError, match="no phrasing"):
        known_phrasings(Path(__file__))


def everything(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_verb_prints_one_table_and_changes_nothing(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = sheet_of(study, {"verdict": "wrong"}, {"verdict": "wrong", "corrected": "MOVE up 1"})
    before = everything(study)
    assert main(["ground", str(study), "--evaluate", str(sheet)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "5 audited segments of sheet.csv" in said
    assert "rules 5 4 of 5" in said
    assert "1 wrong segment left out: nobody wrote the right program" in said
    assert main(["ground", str(study), "--evaluate", str(sheet), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["rows"]
    assert (found["kind"], found["n"], found["uncorrected"], found["agreement"]) == ("audit", 5, 1, None)
    assert (row["exact"]["n"], row["exact"]["of"]) == (4, 5)
    assert everything(study) == before


def test_the_verb_takes_phrasings_without_a_grounded_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ground", str(tmp_path), "--evaluate", str(PHRASINGS), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "phrasings"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--talks", "x"], "--talks"),
        (["--skip-bad"], "--skip-bad"),
        (["--task", "grocery"], "--task"),
        (["--samples", "3"], "--samples is for a language model"),
    ],
)
def test_options_that_cannot_apply_are_refused(
    study: Path, capsys: pytest.CaptureFixture[str], options: list[str], problem: str
) -> None:
    assert main(["ground", str(study), "--evaluate", str(sheet_of(study)), *options]) == 2
    assert problem in capsys.readouterr().err


def test_a_sheet_needs_a_grounded_study(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["ground", str(tmp_path / "empty"), "--evaluate", str(sheet_of(study))]) == 2
    assert "has neither dialogs nor tables" in capsys.readouterr().err
