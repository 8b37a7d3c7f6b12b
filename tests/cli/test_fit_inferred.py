"""``fidm fit`` on studies with inferred moves: both ways, in files, on the page and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.fit.profile import number_text
from fidm.io.study import StudyWriter
from fidm.io.tables import tables_of

OTHER = [
    "action_sensitivity_all_moves",
    "action_sensitivity_all_moves_low",
    "action_sensitivity_all_moves_high",
]


@pytest.fixture(scope="module")
def task():
    return fidm.load_task("errands")


@pytest.fixture(scope="module")
def cohort(task):
    """Everybody walks once themselves, and a planner fills in a best way in a second episode."""
    values = fidm.solve(task)
    traces, flags = [], []
    for j in range(30):
        own = fidm.walk(task, values, 10.0 + j, seed=j, label=f"P{j:02d}")
        planned = fidm.walk(task, values, np.inf, seed=j, label=f"P{j:02d}", max_steps=4 + j % 9)
        traces += [own, planned]
        flags += [False] * len(own) + [True] * len(planned)
    made = replace(fidm.Cohort.from_traces(traces), inferred=np.array(flags))
    split = pl.Series(["train"] * 20 + ["test"] * 10)
    return made.with_participants(made.participants.with_columns(split=split))


@pytest.fixture
def study(tmp_path, cohort):
    fidm.write_cohort(cohort, tmp_path / "study", tasks=["errands"])
    return tmp_path / "study"


def test_both_ways_are_written_and_printed(study, task, cohort, capsys):
    assert main(["fit", str(study)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    train = cohort.split("train")
    mine = fidm.Model(task).fit(train).profile(cohort)
    other = fidm.Model(task, channels=(), inferred=1.0).fit(train).profile(cohort)
    table = pl.read_parquet(study / "profile.parquet")
    assert table.drop(pl.selectors.contains("all_moves")).equals(mine.wide)
    assert np.array_equal(table[OTHER[0]].to_numpy(), other.action_sensitivity)
    assert np.array_equal(
        table.select(OTHER[1:]).to_numpy(), np.stack([other.low[:, 0], other.high[:, 0]], axis=1)
    )
    assert table.columns[6:10] == [
        "action_sensitivity_n", "action_sensitivity_random", "inferred_share", OTHER[0]
    ]  # fmt: skip
    assert OTHER[0] in pl.read_csv(study / "profile.csv").columns
    share = cohort.inferred.mean()
    assert f"inferred moves: {100 * share:.0f} %" in out
    assert "(weight 0)" in out
    a, b = np.median(mine.action_sensitivity), np.median(other.action_sensitivity)
    assert b > a
    assert (
        f"median η {number_text(a)} with inferred moves left out, {number_text(b)} with inferred moves counted, too"
        in out
    )


def estimates(page):
    """Everybody's estimates in a report, as a table."""
    sections = {one["id"]: one for one in json.loads(page.read_text("utf-8"))["sections"]}
    (shown,) = (one for one in sections["parameters"]["tables"] if one["id"] == "estimates")
    names = [column["name"] for column in shown["columns"]]
    return pl.DataFrame(shown["rows"], schema=names, orient="row", infer_schema_length=None)


@pytest.mark.usefixtures("no_pictures")
def test_the_report_has_both_ways_as_the_profile_has_them(study):
    assert main(["fit", str(study)]) == 0
    written = pl.read_parquet(study / "profile.parquet").sort("participant")
    assert main(["report", str(study), "--no-classify"]) == 0
    shown = estimates(study / "report.json")
    assert shown["participant"].to_list() == written["participant"].to_list()
    assert np.allclose(shown[OTHER[0]].to_numpy(), written[OTHER[0]].to_numpy(), rtol=1e-4)
    assert main(["report", str(study), "--no-classify", "--deidentify"]) == 0
    hidden = estimates(next(study.glob("*deidentified*.json")))
    assert np.allclose(hidden[OTHER[0]].sort().to_numpy(), shown[OTHER[0]].sort().to_numpy())
    assert main(["fit", str(study), "--method", "mle", "--out", str(study / "other")]) == 0
    options = ["--no-classify", "--use", str(study / "other" / "fit.json")]
    assert main(["report", str(study), *options]) == 0  # the profile is not of this fit
    assert OTHER[0] not in estimates(study / "report.json").columns


def test_json_has_both_ways(study, cohort, capsys):
    assert main(["fit", str(study), "--json", "--inferred", "0.5"]) == 0
    said = json.loads(capsys.readouterr().out)["inferred"]
    assert said["share"] == pytest.approx(cohort.inferred.mean())
    assert (said["weight"], said["other_weight"]) == (0.5, 1.0)
    assert said["median"] < said["other_median"]
    assert -1 <= said["rank_correlation"] <= 1
    assert said["other_columns"][:3] == OTHER
    assert said["other_prior"] == "learned again"
    assert json.loads((study / "fit.json").read_text("utf-8"))["action_sensitivity"]["inferred"] == 0.5


def test_if_all_moves_count_the_other_way_leaves_them_out(study, task, cohort, capsys):
    assert main(["fit", str(study), "--inferred", "1", "--method", "mle"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "inferred moves counted, too" in out
    table = pl.read_parquet(study / "profile.parquet")
    expected = fidm.Model(task, channels=()).fit(cohort.split("train"), method="mle").profile(cohort)
    assert table["action_sensitivity_stated_moves"].to_list() == expected.action_sensitivity.tolist()


def test_parts_give_the_same_numbers(study, cohort, tmp_path, capsys):
    with StudyWriter(tmp_path / "parts", tasks=["errands"]) as writer:
        for first in range(0, 30, 7):
            writer.add(cohort[first : first + 7])
    options = ["--max-people", "15", "--lapse", "estimate"]
    assert main(["fit", str(study), *options]) == 0
    page = capsys.readouterr().out.splitlines()
    assert main(["fit", str(tmp_path / "parts"), *options]) == 0
    assert capsys.readouterr().out.splitlines()[:-3] == page[:-3]
    whole = pl.read_parquet(study / "profile.parquet")
    assert OTHER[0] in whole.columns
    assert pl.read_parquet(tmp_path / "parts" / "profile.parquet").equals(whole)


def test_a_study_without_inferred_moves_is_not_compared(tmp_path, cohort, capsys):
    none = replace(cohort, inferred=np.zeros(cohort.n_steps, bool))
    for name, people in (("unsaid", replace(cohort, inferred=None)), ("none", none)):
        fidm.write_cohort(people, tmp_path / name, tasks=["errands"])
        assert main(["fit", str(tmp_path / name), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["inferred"] is None
        assert OTHER[0] not in pl.read_parquet(tmp_path / name / "profile.parquet").columns
    tables = [pl.read_parquet(tmp_path / name / "profile.parquet") for name in ("unsaid", "none")]
    assert tables[0].drop("inferred_share").equals(tables[1].drop("inferred_share"))


def test_an_earlier_fit_keeps_its_weight_and_its_prior(study, cohort, tmp_path, capsys):
    assert main(["fit", str(study), "--inferred", "0.2"]) == 0
    fidm.write_cohort(cohort[:2], tmp_path / "new", tasks=["errands"])
    capsys.readouterr()
    use = ["fit", str(tmp_path / "new"), "--use", str(study / "fit.json")]
    assert main(use) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "inferred moves counted 0.2" in out
    assert "the earlier fit" in out
    assert main([*use, "--inferred", "0.2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inferred"]["other_prior"] == "that of the earlier fit"
    assert main([*use, "--inferred", "1"]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "--inferred is 1" in err


def test_too_few_stated_moves_are_no_reason_to_refuse_a_fit_of_all(tmp_path, cohort, capsys):
    everything = replace(cohort, inferred=np.ones(cohort.n_steps, bool))
    fidm.write_cohort(everything, tmp_path / "study", tasks=["errands"])
    assert main(["fit", str(tmp_path / "study")]) == 2
    assert "100% of the counted" in " ".join(capsys.readouterr().err.split())
    assert main(["fit", str(tmp_path / "study"), "--inferred", "1"]) == 0
    assert "is not estimated" in " ".join(capsys.readouterr().out.split())
    assert main(["fit", str(tmp_path / "study"), "--inferred", "1", "--json"]) == 0
    assert "is not estimated" in json.loads(capsys.readouterr().out)["inferred"]["not_compared"]


def test_wrong_weights_and_flags_are_said_in_a_sentence(study, cohort, capsys):
    assert main(["fit", str(study), "--inferred", "2"]) == 2
    assert "inferred is 2.0" in " ".join(capsys.readouterr().err.split())
    steps = tables_of(cohort)["steps"].with_columns(inferred=pl.col("inferred").cast(pl.Int64) * 3)
    steps.write_parquet(study / "steps.parquet")
    assert main(["fit", str(study)]) == 2
    assert "inferred is neither" in capsys.readouterr().err
