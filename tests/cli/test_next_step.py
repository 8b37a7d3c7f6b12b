"""The last line of a verb says what to do next, from what is in the study folder."""

import json
import shutil

import pytest

from fidm.cli.main import main
from fidm.io.study import read_cohort
from fidm.model.gaps import forecast
from fidm.present.next import next_step
from fidm.simulate.twin import simulate_study


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    study = tmp_path_factory.mktemp("next") / "study"
    simulate_study(study, task="errands", n=12, seed=1, language="en", formats=("jsonl",), dialogs=True)
    return study


@pytest.fixture
def raw(made, tmp_path):
    """The study before its dialogs are grounded."""
    study = tmp_path / "raw"
    study.mkdir()
    shutil.copytree(made / "talks", study / "talks")
    shutil.copy(made / "study.toml", study)
    return study


VERBS = [
    "fit", "evidence", "report", "review --no-open", "reliability", "localize", "compare --by label", "classify",
    "select", "calibrate --like", "recover --like", "audit sample", "audit score sheet.csv", "audit agreement",
    "audit verify",
]  # fmt: skip


def called(verb, study):
    """The verb on a study, which comes first of what has no name."""
    words = verb.split()
    place = 2 if words[0] == "audit" or "--like" in words else 1
    return [*words[:place], str(study), *words[place:]]


@pytest.mark.parametrize("verb", VERBS)
def test_dialogs_that_are_not_grounded_are_noticed(raw, verb, capsys):
    assert main(called(verb, raw)) == 2
    said = capsys.readouterr().err
    assert "talks/ found, not yet grounded" in said
    assert f"fidm ground {raw}" in said


@pytest.mark.parametrize("verb", [*VERBS, "run"])
def test_a_folder_without_dialogs_and_tables_says_what_was_looked_for(tmp_path, verb, capsys):
    assert main(called(verb, tmp_path)) == 2
    said = capsys.readouterr().err
    for part in (str(tmp_path), "talks/", "steps.parquet", f"fidm start {tmp_path}"):
        assert part in said
    assert list(tmp_path.iterdir()) == []


def test_each_step_names_the_next(raw, capsys):
    assert next_step(raw, after="simulate") == f"Next: fidm ground {raw}"
    for verb, then in (("ground", "fit"), ("fit", "evidence"), ("evidence", "report")):
        assert main([verb, str(raw)]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"Next: fidm {then} {raw}"


def test_the_forecast_accounts_for_every_action(raw, capsys):
    assert main(["ground", str(raw), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["forecast"]
    cohort = read_cohort(raw)
    assert said == forecast(cohort)
    assert said["actions"] == cohort.n_steps == sum(n for name, n in said.items() if name != "actions")


def test_talk_without_moves_is_no_success(raw, capsys):
    for path in (raw / "talks").iterdir():
        path.unlink()
    turn = {"participant": "p1", "speaker": "PAR", "role": "participant", "start_s": 0.0, "end_s": 1.0}
    (raw / "talks" / "p1.jsonl").write_text(json.dumps({**turn, "text": "lovely weather"}) + "\n", "utf-8")
    assert main(["ground", str(raw)]) == 2
    said = capsys.readouterr().err
    assert "No move could be read in 1 dialog" in said
    assert "weather" not in said
    assert not list(raw.glob("steps*"))
