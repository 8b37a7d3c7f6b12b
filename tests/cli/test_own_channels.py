"""Effort channels that ``study.toml`` names reach every verb, and survive in saved fits."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import textwrap
from dataclasses import replace

import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.folder import StudyFolder
from fidm.run import run_line

OWN = '''
from dataclasses import dataclass
from typing import ClassVar

from fidm.channels import Poisson


@dataclass(frozen=True)
class Gazes(Poisson):
    """Looks away from the map."""

    kind: ClassVar[str] = "gazes_away"
    label: str = "looks away"
'''
CHANNELS = """
[channels.duration]
kind = "weibull"
column = "duration_s"

[channels.gazes]
kind = "own_channels_of_a_lab:Gazes"
column = "n_turns"
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study with a channel of another family and one of its own class."""
    place = tmp_path_factory.mktemp("channels")
    (place / "own_channels_of_a_lab.py").write_text(textwrap.dedent(OWN), "utf-8")
    sys.path.insert(0, str(place))
    folder = place / "study"
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 40, seed=1)
    people = cohort.participants.select("participant", diagnosis=pl.Series(["normal", "mci"] * 20))
    fidm.write_cohort(cohort.with_participants(people), folder, tasks=["errands"])
    with (folder / "study.toml").open("a", encoding="utf-8") as file:
        file.write(CHANNELS)
    yield folder
    sys.path.remove(str(place))


NAMES = ["action_sensitivity", "duration", "gazes"]


def run(capsys, *words):
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("no_pictures")
def test_every_verb_uses_them(study, capsys):
    fitted = run(capsys, "fit", study)
    assert [row["parameter"] for row in fitted["parameters"]] == NAMES
    assert [one["kind"] for one in fitted["fit"]["channels"]] == ["weibull", "gazes_away"]
    assert (
        run(capsys, "fit", study, "--use", study / "fit.json", "--out", study / "again")["participants"] == 40
    )
    run(capsys, "evidence", study)
    segments = pl.read_parquet(study / "results" / "evidence-segments.parquet").columns
    assert {f"{name}_residual" for name in NAMES[1:]} <= set(segments)
    assert "characters_residual" not in segments
    assert run(capsys, "reliability", study, "--bootstrap", 30)["result"]["parameters"] == NAMES
    recovered = run(capsys, "recover", "--like", study, "--repeat", 1, "--method", "eb")
    assert {row["parameter"] for row in recovered["result"]["parameters"]} >= set(NAMES[1:])
    classified = run(
        capsys, "classify", study, "--no-language", "--repeats", 1, "--permutations", 0, "--workers", 1
    )
    assert [one["name"] for one in classified["settings"]["channels"]] == NAMES[1:]
    report = run(capsys, "report", study, "--no-classify")
    shown = next(one for one in report["sections"] if one["id"] == "parameters")
    assert len(next(one for one in shown["tables"] if one["id"] == "spread")["rows"]) == len(NAMES)


def test_they_are_learned_where_there_is_no_fit(study, tmp_path):
    copy = shutil.copytree(study, tmp_path / "copy", ignore=shutil.ignore_patterns("fit.json", "results"))
    fit, _ = StudyFolder.open(copy).fit()
    assert list(fit.parameters) == NAMES


def test_they_stay_when_the_tables_are_written_anew(study, tmp_path):
    copy = shutil.copytree(study, tmp_path / "copy")
    before = StudyFolder.open(copy)
    fidm.write_cohort(before.cohort, copy, tasks=["errands"], overwrite=True)
    assert StudyFolder.open(copy).channels == before.channels


def test_a_run_fits_again_when_the_class_has_changed(study, tmp_path):
    copy = shutil.copytree(study, tmp_path / "copy", ignore=shutil.ignore_patterns("fit.json", "results"))

    def outcome():
        steps = {one.step: one.outcome for one in itertools.islice(run_line(copy), 2)}
        return steps["ground"], steps["fit"]

    assert [outcome(), outcome()] == [("left out", "done"), ("left out", "up to date")]
    with (study.parent / "own_channels_of_a_lab.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert [outcome(), outcome()] == [("left out", "done"), ("left out", "up to date")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[channels.a]\nkind = 'gamma'", "needs a kind and a column"),
        ("[channels.a]\nkind = 'gama'\ncolumn = 'x'", "Did you mean gamma?"),
        ("[channels.a]\nkind = 'nowhere:Class'\ncolumn = 'x'", "nowhere"),
        ("[channels.a]\nkind = 'gamma'\ncolumn = 'x'\ncolour = 1", "colour"),
        ("channels = 3", "channels must be tables"),
    ],
)
def test_what_is_wrong_with_them_is_said(study, tmp_path, capsys, text, said):
    copy = shutil.copytree(study, tmp_path / "copy")
    (copy / "study.toml").write_text(f'schema = 1\ntasks = ["errands"]\n{text}\n', "utf-8")
    assert main(["fit", str(copy)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("no_pictures")
def test_a_design_that_varies_in_the_test_part_alone_is_left_out_and_said_so(tmp_path, capsys):
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 20, seed=1, max_steps=30)
    n = [end - first for first, end in itertools.pairwise(cohort.segment_offsets.tolist())]
    train = [j < 14 for j, own in enumerate(n) for _ in range(own)]
    table = cohort.segments.with_columns(
        role=pl.when(pl.Series(train)).then(pl.lit("asks")).otherwise(pl.lit("tells")),
        load=pl.int_range(pl.len()) % 4,
    )
    people = cohort.participants.select("participant", split=pl.Series(["train"] * 14 + ["test"] * 6))
    fidm.write_cohort(replace(cohort, segments=table, participants=people), tmp_path / "s", tasks=["errands"])
    with (tmp_path / "s" / "study.toml").open("a", encoding="utf-8") as file:
        file.write('[channels.duration]\nkind = "gamma"\ncolumn = "duration_s"\n')
        file.write('design = ["log_moves", "role", "load"]\n')
    fitted = run(capsys, "fit", tmp_path / "s")
    assert fitted["fit"]["channels"][0]["design"] == ["log_moves", "load"]
    assert "duration is not conditioned on role: it is the same" in " ".join(fitted["fit"]["notes"])
    assert pl.read_csv(tmp_path / "s" / "profile.csv")["duration"].null_count() == 0
    run(capsys, "evidence", tmp_path / "s")
    found = run(capsys, "recover", "--like", tmp_path / "s", "--repeat", 1, "--method", "eb")
    assert found["result"]["factors"] == ["action_sensitivity", "duration"]
    assert len(found["settings"]["truth"]["duration"]) == 5
    assert "not conditioned on role" in " ".join(found["result"]["notes"])
