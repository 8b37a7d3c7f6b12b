"""The verb ``fidm studies``: list, show, run, download, verify."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest
from made_up.toy_study import DATASET, FILES, REANALYSIS, install, write

from fidm.cli.main import main
from fidm_studies import Expectation

BUILT_IN = ("justhink", "map-task", "space-adventure")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with the files of a data set that another package brings."""
    monkeypatch.delenv("FIDM_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    install(tmp_path / "site", monkeypatch)
    write(tmp_path / "data" / DATASET.folder)
    return tmp_path / "data"


def said(capsys):
    return " ".join(capsys.readouterr().out.split())


def test_studies_are_listed_with_people_licence_and_files(data, capsys):
    assert main(["studies", "--data", str(data)]) == 0
    found = said(capsys)
    for word in (
        *BUILT_IN,
        "toy",
        "3 made-up people",
        "CC0 1.0",
        "CC BY-NC-SA 2.5",
        "✓ as published",
        "✗ not here",
    ):
        assert word in found
    assert main(["studies", "list"]) == 0
    assert "FIDM_DATA" in said(capsys)
    assert main(["studies", "list", "--data", "nowhere"]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_the_list_fits_a_narrow_terminal(data, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["studies"]) == 0
    found = capsys.readouterr().out
    assert max(map(len, found.splitlines())) <= 60
    assert all(name in found.splitlines() for name in (*BUILT_IN, "toy"))


def test_list_and_show_can_be_read_by_programs(data, capsys):
    assert main(["studies", "list", "--json", "--data", str(data)]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert set(found) == {*BUILT_IN, "toy"}
    assert found["map-task"]["files"] == "not here"
    assert (found["toy"]["files"], found["toy"]["dataset"]["n_files"]) == ("as published", 3)
    assert main(["studies", "show", "toy", "--json", "--data", str(data)]) == 0
    assert json.loads(capsys.readouterr().out) == found["toy"]


def test_a_data_set_without_a_study_is_listed_and_shown(data, monkeypatch, capsys):
    lines = "numbers = made_up.toy_study:DATASET\nmap-task = made_up.toy_study:DATASET"
    monkeypatch.setattr(sys, "path", sys.path[1:])
    install(data / "alone", monkeypatch, **{"fidm.datasets": lines})
    assert main(["studies"]) == 0
    found = said(capsys)
    assert "numbers" in found
    assert "(a data set" in found
    assert "'map-task' of the package toy" in found
    assert main(["studies", "show", "numbers", "--data", str(data)]) == 0
    assert "Data set Named numbers." in said(capsys)
    assert main(["studies", "show", "map-task"]) == 0
    assert "is ignored" in said(capsys)
    assert main(["studies", "run", "numbers", "--data", str(data)]) == 2
    assert "not a study" in capsys.readouterr().err


def test_a_broken_package_does_not_hide_the_others(data, monkeypatch, capsys):
    install(data / "site", monkeypatch, **{"fidm.reanalyses": "gone = made_up.no_such_module:REANALYSIS"})
    assert main(["studies"]) == 0
    found = said(capsys)
    assert "'gone' of the package toy" in found
    assert all(name in found for name in BUILT_IN)


def test_show_prints_question_licence_terms_citation_and_sources(data, capsys):
    assert main(["studies", "show", "toy", "--data", str(data)]) == 0
    found = said(capsys)
    for word in (
        "Which number do people name?",
        "CC0 1.0 <https://creativecommons.org/publicdomain/zero/1.0/>",
        "Anybody may do anything with it.",
        "Nobody (2026). Numbers.",
        "https://example.org/numbers, version 0123456789ab",
        "✓ as published",
        "Research use only, not a diagnosis.",
    ):
        assert word in found


def test_run_writes_the_page_and_says_what_came_out(data, tmp_path, capsys):
    assert main(["studies", "run", "toy", "--data", str(data), "--bootstrap", "29", "--seed", "2"]) == 0
    found = said(capsys)
    assert "✓ 3 exactly 3" in found
    assert "✓ 6 at least 5" in found
    assert "6.0 on average &" in found
    assert "Nobody (2026). Numbers." in found
    assert found.endswith("Research use only, not a diagnosis.")
    assert "Wrote" in found
    out = tmp_path / "fidm-results" / "toy"
    assert (out / "toy.html").read_text("utf-8").startswith("<!doctype html>")
    assert (out / "figures" / "mean.svg").read_text("utf-8").startswith("<svg")
    kept = json.loads((out / "toy.json").read_text("utf-8"))
    assert (kept["seed"], kept["settings"]["bootstrap"], kept["result"]["reached"]) == (2, 29, True)


def test_run_exits_with_1_when_a_number_does_not_come_out(data, tmp_path, capsys):
    (data / DATASET.folder / "numbers.csv").write_text("participant,named\nA,9\n")
    assert main(["studies", "run", "toy", "--data", str(data)]) == 2
    assert "numbers.csv: is not" in capsys.readouterr().err
    arguments = ["studies", "run", "toy", "--data", str(data), "--unverified", "--out", str(tmp_path / "o")]
    assert main(arguments) == 1
    found = said(capsys)
    assert "✗ 1 exactly 3" in found
    assert "1 of 2 checks" in found
    assert "not the files" in found
    assert main([*arguments, "--json"]) == 1
    streams = capsys.readouterr()
    result = json.loads(streams.out)["result"]
    assert (result["reached"], result["dataset"]["verified"]) == (False, False)
    assert "(1 changed)" in streams.err


def test_a_number_that_is_not_required_does_not_change_the_exit_code(data, tmp_path, capsys, monkeypatch):
    def analyse(loaded, **settings):
        found = REANALYSIS.analyse(loaded, **settings)
        odd = Expectation("mean, read wrongly", 6.0, 1, 2, "published", required=False)
        return replace(found, expectations=(*found.expectations, odd))

    monkeypatch.setattr("fidm_studies.analysis.find_study", lambda name: replace(REANALYSIS, analyse=analyse))
    assert main(["studies", "run", "toy", "--data", str(data), "--out", str(tmp_path / "o")]) == 0
    found = said(capsys)
    assert "✗ 6 1 to 2" in found
    assert "1 of 3 checks" in found


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["nope"], "There is no command 'nope'"),
        (["run", "nope"], "There is no study 'nope'"),
        (["show", "map-tsk"], "Did you mean map-task?"),
        (["run", "toy"], "--data"),
        (["run", "toy", "--data", "site"], "has no folder named_numbers"),
        (["run", "toy", "--data", "data", "--bootstrap", "5"], "bootstrap is 5; it must be 20 or more"),
        (
            ["run", "numbers", "--data", "data"],
            "numbers is a data set, not a study. Its study is called toy.",
        ),
        (["run", "toy", "--data", "data", "--out", "data/named_numbers/numbers.csv"], "is a file"),
        (["verify", "toy", "--data", "site"], "has no folder named_numbers"),
        (["download", "numbers"], "FIDM_DATA"),
    ],
)
def test_what_cannot_be_done_is_said_with_exit_code_2(data, arguments, what, capsys):
    assert main(["studies", *arguments]) == 2
    assert what in " ".join(capsys.readouterr().err.split())


def test_verify_names_the_files_that_differ(data, capsys):
    assert main(["studies", "verify", "toy", "--data", str(data)]) == 0
    assert "✓ Named numbers" in said(capsys)
    (data / DATASET.folder / "numbers.csv").unlink()
    assert main(["studies", "verify", "numbers", "--data", str(data)]) == 1
    found = said(capsys)
    assert "✗ Named numbers: 1 file" in found
    assert "numbers.csv missing" in found


def test_download_prints_the_terms_and_asks_for_nothing_that_is_there(data, capsys):
    """All files are there, so that the network is never asked; fetching itself has tests of its own."""
    assert main(["studies", "download", "toy", "--data", str(data)]) == 0
    found = said(capsys)
    assert "Licence CC0 1.0 " in found
    assert "there already" in found


def test_only_download_can_ask_the_network(data, monkeypatch):
    """Whoever only looks, verifies or runs never reaches the code that fetches."""

    def asked(*_, **__):
        raise AssertionError("the network was asked")

    monkeypatch.setattr("fidm_studies.fetching.download", asked)
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setitem(sys.modules, "requests", None)
    (data / DATASET.folder / next(iter(FILES))).unlink()
    assert main(["studies", "--data", str(data)]) == 0
    assert main(["studies", "show", "toy", "--data", str(data)]) == 0
    assert main(["studies", "verify", "toy", "--data", str(data)]) == 1
    assert main(["studies", "run", "toy", "--data", str(data)]) == 2
