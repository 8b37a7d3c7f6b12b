"""How often rules and model agree is a study's quality figure: on the terminal, as JSON, and in the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_server import FakeServer

from fidm.cli.main import main
from fidm.stats import wilson

SAID = (
    "go left one square",
    "go up three squares",
    "my daughter usually does the shopping",
    "go down one square",
    "a thingamajig thereabouts whatsoever, go up two",
)
"""What is said, segment by segment: the rules doubt the last, and are sure that the third says nothing."""


READ = (("left", 1), ("left", 1), ("up", 5), ("down", 1), ("up", 2))
"""What the model reads: something else in the second segment."""


def said_in(body: dict) -> str:
    data = [json.loads(one["content"]) for one in body["messages"][1:] if one["role"] == "user"]
    return str([one["said"] for one in data if "said" in one][-1])


def answer(body: dict, _: int) -> str:
    way, squares = READ[SAID.index(said_in(body))]
    step = {"words": said_in(body).split(", ")[-1], "op": "MOVE", "way": way, "squares": squares}
    return json.dumps({"instructions": [step]})


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    (folder / "talks").mkdir(parents=True)
    (folder / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    for name in ("p1", "p2", "p3"):
        lines = ["speaker,start_s,end_s,text"]
        for i, said in enumerate(SAID):
            lines += [f'PAR,{4 * i},{4 * i + 1},"{said}"', f"INV,{4 * i + 2},{4 * i + 3},okay I've moved you"]
        (folder / "talks" / f"{name}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def test_agreement_is_said_everywhere(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer(answer=answer) as server:
        options = ["--by", "hybrid", "--endpoint", server.url, "--workers", "1"]
        assert main(["ground", str(study), *options]) == 0
        said = " ".join(capsys.readouterr().out.split())
        asked = {said_in(body) for body in server.requests}
        assert main(["ground", str(study), *options, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
    assert set(SAID) - asked == {"my daughter usually does the shopping"}
    low, high = wilson(9, 12)
    sentence = (
        "Agreement of rules and language model: the same moves in 9 of 12 segments that both read, 75.0% "
        f"(95% Wilson interval {low:.1%} to {high:.1%}); 6 of 9 where the rules were sure, 3 of 3 where they "
        "doubted."
    )
    assert sentence in said
    kept = json.loads((study / "grounding" / "provenance.json").read_text("utf-8"))["agreement"]
    assert found["agreement"] == kept
    assert (kept["same"], kept["both"], kept["low"], kept["high"]) == (9, 12, low, high)
    assert main(["report", str(study), "--out", str(study / "report.html")]) == 0
    assert sentence in (study / "report.html").read_text("utf-8")
