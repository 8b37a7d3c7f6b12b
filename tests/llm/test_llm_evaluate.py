"""A hybrid is measured with its parts: the model asked once, its answers kept nowhere, nobody's words shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_server import FakeServer

from fidm.cli.main import main

ITEMS = (
    # What is said, what it means, and what the model makes of it.
    ("go up one square", "MOVE up 1", ("MOVE", "up", 1)),
    ("go left two squares", "MOVE left 2", ("MOVE", "left", 3)),
    ("go up two squares, the zanzibarkumquat way", "MOVE up 2", ("MOVE", "up", 2)),
    ("it's quite a small shop", "NONE", None),
)


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "phrasings.jsonl"
    lines = [
        {
            "id": str(i),
            "task": "grocery",
            "row": 9,
            "column": 14,
            "heading": "up",
            "text": said,
            "program": meant,
        }
        for i, (said, meant, _) in enumerate(ITEMS)
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", "utf-8")
    return path


def answer(body: dict, _: int) -> str:
    said = [json.loads(one["content"]) for one in body["messages"][1:] if one["role"] == "user"][-1]["said"]
    read = {text: read for text, _, read in ITEMS}[said]
    steps = [] if read is None else [dict(zip(("op", "way", "squares"), read, strict=True)) | {"words": said}]
    return json.dumps({"instructions": steps})


def test_a_hybrid_is_measured_with_its_rules_and_its_model(
    tmp_path: Path, sheet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (study / "grounding.toml").write_text('by = "hybrid"\n', "utf-8")
    with FakeServer(answer=answer) as server:
        options = ["--evaluate", str(sheet), "--endpoint", server.url]
        assert main(["ground", str(study), *options, "--json"]) == 0
        report = capsys.readouterr().out
        assert len(server.requests) == len(ITEMS)
        assert main(["ground", str(study), *options]) == 0
        said = capsys.readouterr().out
        assert main(["ground", str(study), *options, "--by", "llm", "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)["rows"]
    found = json.loads(report)
    rules, model, both = found["rows"]
    assert [row["grounder"] for row in found["rows"]] == ["rules", "llm", "hybrid"]
    assert [row["model"] for row in found["rows"]] == ["", "fake-model", "fake-model"]
    assert (model["n_exact"], model["n_confident"], model["n_right"]) == (3, 4, 3)
    assert rules["n_exact"] == both["n_exact"] == 4
    # The full check doubts where the model is sure of something else.
    assert both["n_right"] == both["n_confident"] == 3
    agreement = found["agreement"]
    assert (agreement["both"], agreement["same"], agreement["right"]["n"]) == (3, 2, 2)
    assert alone == [model]
    assert "the same moves in 2 of the 3 segments" in " ".join(said.split())
    for text in (report, said):
        assert "zanzibarkumquat" not in text
    assert [path.name for path in study.iterdir()] == ["grounding.toml"]


def test_what_a_model_did_not_answer_is_said(
    tmp_path: Path, sheet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer("say hm") as server:
        options = ["--evaluate", str(sheet), "--endpoint", server.url, "--by", "llm"]
        assert main(["ground", str(tmp_path), *options]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "gave no usable answer for 4 of 4 segments" in said
        assert main(["ground", str(tmp_path), *options, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
    assert found["unanswered"] == {"not_json": 4}
    assert found["rows"][0]["n_confident"] == 0
    assert found["rows"][0]["right_when_confident"]["share"] is None


def test_participants_of_the_sheet_give_no_examples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from test_llm_examples import said_in

    from fidm.grounding.review.apply import read_proposed
    from fidm.grounding.review.audit import COLUMNS, sample_audit
    from fidm.grounding.review.trail import Trail
    from fidm.grounding.review.verdicts import decide, review_dialog

    study = tmp_path / "study"
    (study / "talks").mkdir(parents=True)
    (study / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    for name in "ABCD":
        table = f"speaker,start_s,end_s,text\nPAR,0,1,go left one square {name}\nINV,2,3,okay moved\n"
        (study / "talks" / f"{name}.csv").write_text(table, "utf-8")
    assert main(["ground", str(study)]) == 0
    grounded, trail = read_proposed(study), Trail(study)
    for dialog in grounded.dialogs:
        walked = review_dialog(dialog, (), grounded.terrain)
        trail.append(decide(dialog, walked[0], grounded.terrain, reviewer="Ann", kind="accept"))
    sheet = sample_audit(study, 2, seed=1, path=tmp_path / "sheet.csv")
    text = sheet.read_text("utf-8-sig")
    assert text.splitlines()[0] == ",".join(COLUMNS)
    sheet.write_text(text.replace(",,,", ",ok,,"), "utf-8")
    (study / "grounding.toml").write_text('by = "llm"\n[llm]\nexamples = "reviewed"\n', "utf-8")
    with FakeServer(answer='{"instructions":[]}') as server:
        assert main(["ground", str(study), "--evaluate", str(sheet), "--endpoint", server.url]) == 0
        asked = [said_in(body) for body in server.requests]
    assert capsys.readouterr().err == ""
    judged = {texts[-1] for texts in asked}
    shown = {text for texts in asked for text in texts[:-1] if text.startswith("go left one square ")}
    assert len(judged) == len(shown) == 2
    assert not judged & shown
