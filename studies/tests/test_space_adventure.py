"""The Space Adventure Task on made-up files: what is read, joined and refused, and the whole analysis."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from made_up import repeated_titles
from made_up.space_adventure import CONDITIONS, MISPRINTED, write
from scipy.io import loadmat, savemat
from scipy.stats import rankdata

import fidm
from fidm.errors import DataError
from fidm.record import to_json
from fidm_studies.dataset import no_progress
from fidm_studies.page import tell
from fidm_studies.resampling import (
    holm,
    partial_rank_correlation,
    rank_correlation,
    separation,
    stepped_up,
)
from fidm_studies.space_adventure import analysis as space_adventure
from fidm_studies.space_adventure.analysis import compare_values
from fidm_studies.space_adventure.dataset import BOTH, DATASET, STUDENTS, read
from fidm_studies.space_adventure.files import person_of, read_scores, read_session
from fidm_studies.space_adventure.page import REANALYSIS, sections
from fidm_studies.space_adventure.people import IN_TIME
from fidm_studies.space_adventure.task import MiniBlock, make_task, transitions

ONE = "plandepth_aud/data/HC/SAT/Experiment/09101_b09_spacetask_file_exp.mat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("space_adventure_task")
    write(place)
    return place


@pytest.fixture(scope="module")
def loaded(folder):
    return read(folder, no_progress)


@pytest.fixture
def copied(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    return tmp_path / "copy"


# ---------------------------------------------------------------------- the task


def test_the_solver_gives_the_values_that_plain_loops_give(loaded):
    values = compare_values(loaded, [fidm.solve(task) for task in loaded.tasks])
    assert values.height == 2 * sum(steps for steps, _ in CONDITIONS)
    wrong = values.filter(~pl.col("is_same"))
    assert wrong.select("block_id", "depth", "action").rows() == [MISPRINTED]
    assert wrong["misprint"].all()
    assert values["misprint"].sum() == 1
    assert (values["ours"] - values["q"]).abs().sort()[:-1].max() == pytest.approx(1e-6)


def test_a_mini_block_is_a_task_of_planets_and_flights_to_go():
    task = make_task(MiniBlock((5, 1, 3, 3, 3, 3), "high", 3, 5))
    assert (task.n_states, task.n_pairs, task.start, task.horizon) == (19, 36, 5, 3)
    assert task.name == "planets-513333-high-3-from-6"
    assert task.normaliser == "max"
    for noise in ("low", "high"):
        table = transitions(noise)
        assert table.sum(axis=2) == pytest.approx(np.ones((2, 6)))
        assert (np.count_nonzero(table, axis=2) == [[1] * 6, [3] * 6]).all()


# ---------------------------------------------------------------------- reading


def test_people_of_two_studies_are_joined(loaded):
    people = loaded.cohort.participants
    assert len(loaded.cohort) == 28
    assert people["participant"].is_unique().all()
    assert people.filter(source=BOTH).select("participant", "age_group", "clinical_group").sort("participant").rows() == [
        ("09091", "older", "control"),
        ("09101", "younger", "control"),
        ("09102", "younger", "control"),
        ("09103", "younger", "control"),
    ]  # fmt: skip
    assert people["source"].value_counts().filter(source=STUDENTS)["count"].item() == 5
    assert loaded.notes[0].startswith("4 people took part")
    filled = people.filter(participant="09501").row(0, named=True)
    assert (filled["age"], filled["gender"]) == (25.0, "man")
    assert "one person's file" in loaded.notes[1]


def test_every_choice_is_a_step_and_a_segment_with_its_design(loaded):
    cohort = loaded.cohort
    assert cohort.n_steps == cohort.n_segments == 27 * 30 + 8 * 2 + 4 - 1
    cells = cohort.segments.select("choice_index", "steps_to_go").unique().sort(pl.all()).rows()
    assert cells == [("first", 2), ("first", 3), ("second", 1), ("second", 2), ("third", 1)]
    design = cohort.segments.select(
        one=pl.lit(1.0),
        second=(pl.col("choice_index") == "second").cast(float),
        third=(pl.col("choice_index") == "third").cast(float),
        low=(pl.col("noise") == "low").cast(float),
        steps=pl.col("steps_to_go").cast(float),
    )
    assert np.linalg.matrix_rank(design.to_numpy()) == 5
    assert (cohort.segment == cohort.segments["segment"].cast(int).to_numpy() - 1).all()
    assert fidm.Model(loaded.tasks, channels=()).check(cohort) is cohort


def test_transitions_are_counted_in_every_file(loaded):
    table = loaded.tables["transitions"]
    assert table["transitions"].to_list() == [210, 210, 180, 210, 139]
    assert table["impossible"].sum() == table["other_fuel"].sum() == 0
    assert table["not_recorded"].to_list() == [0, 0, 0, 0, 1]


def test_a_session_whose_fuel_ran_out_is_kept_as_far_as_it_goes(loaded):
    trace = loaded.cohort.traces("S27")
    assert len(trace) == 8
    assert not trace[-1].finished
    assert "ended early: 1" in loaded.notes[2]
    assert "never begun: 4" in loaded.notes[2]


def test_scores_leave_out_training_and_what_is_too_fast_or_too_late(folder):
    age = folder / "plandepth_age" / "data" / "YoungAdults"
    assert read_scores(age / "Identical Pictures", "processing_speed")["09101"] == pytest.approx(33 / 46)
    assert read_scores(age / "Spot a Word", "vocabulary")["09101"] == pytest.approx(25 / 35)
    assert read_scores(age / "Spatial Working Memory", "working_memory")["09101"] == pytest.approx(76 / 96)


def changed(path, change):
    """Write a session again, with something in it changed."""
    data = loadmat(path, squeeze_me=True, struct_as_record=False)["data"]
    plain = {
        "Age": data.Age,
        "Gender": data.Gender,
        "Responses": {"RT": data.Responses.RT, "Keys": data.Responses.Keys},
        "States": data.States,
        "Points": data.Points,
        "PlanetConf": data.PlanetConf,
        "Conditions": {"notrials": data.Conditions.notrials, "noise": data.Conditions.noise},
    }
    change(plain)
    savemat(path, {"data": plain})


def test_flights_that_break_the_rules_are_counted(copied):
    def land_elsewhere(data):
        data["States"][0, 2] = data["States"][0, 1]  # neither action ends where it began
        data["Points"][5:] += 1

    changed(copied / ONE, land_elsewhere)
    found = read(copied, no_progress)
    assert found.tables["transitions"].filter(group="control")["impossible"].item() == 1
    assert found.tables["transitions"].filter(group="control")["other_fuel"].item() >= 1
    assert "1 with other flights" in found.notes[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data["Responses"]["Keys"].__setitem__((0, 0), 3), "an action other than 1 and 2"),
        (lambda data: data["States"].__setitem__((0, 1), 7), "a planet other than 1 to 6"),
        (lambda data: data["PlanetConf"].__setitem__((0, 0), 9), "a kind of planet other than 1 to 5"),
        (lambda data: data["Conditions"]["notrials"].__setitem__(0, 4), "a number of flights other than"),
        (lambda data: data["Conditions"]["noise"].__setitem__(0, "loud"), "a noise other than low and high"),
        (lambda data: data["Responses"]["RT"].__setitem__((0, 0), -1), "a reaction time that is not above 0"),
        (lambda data: data["Conditions"]["notrials"].__setitem__(2, 2), "more flights than a mini-block has"),
        (lambda data: data["Responses"]["Keys"].__setitem__((2, 1), np.nan), "follows one that is missing"),
        (lambda data: data["States"].__setitem__((0, 1), np.nan), "from a planet that is not recorded"),
        (lambda data: data["Responses"]["Keys"].__setitem__((4, 0), np.nan), "missing between others"),
        (lambda data: data.pop("States"), "cannot be read as a session"),
    ],
)
def test_a_file_with_something_else_is_refused_by_name(folder, tmp_path, change, says):
    path = tmp_path / "09101_b09_exp.mat"
    shutil.copy(folder / ONE, path)
    changed(path, change)
    with pytest.raises(DataError, match=r"09101_b09_exp\.mat") as refused:
        read_session(path)
    assert says in str(refused.value)


def test_missing_files_and_strange_tables_are_refused(copied, tmp_path):
    for path in (tmp_path / "09101_b09_exp.mat", tmp_path / "none.txt"):
        path.write_text("no such thing")
    with pytest.raises(DataError, match="as a session"):
        read_session(tmp_path / "09101_b09_exp.mat")
    with pytest.raises(DataError, match="does not say"):
        person_of(tmp_path / "none.txt")
    (copied / "plandepth_age/data/YoungAdults/Spot a Word/09101_b09_wst_file.txt").write_text("a\tb\n1\t2\n")
    with pytest.raises(DataError, match="RESP, RESPT, ACC"):
        read(copied, no_progress)
    shutil.rmtree(copied / "plandepth_age/data/YoungAdults/Spot a Word")
    with pytest.raises(DataError, match="no files like"):
        read(copied, no_progress)


def test_published_tables_without_their_columns_are_refused(copied):
    (copied / "plandepth_aud/data/mini-block_data.csv").write_text("block_id,start\n1,2\n")
    with pytest.raises(DataError, match=r"mini-block_data\.csv: It"):
        read(copied, no_progress)
    (copied / "plandepth_aud/data/SAT_subjectLevel.csv").unlink()
    with pytest.raises(DataError, match=r"SAT_subjectLevel\.csv"):
        read(copied, no_progress)


def test_the_data_set_says_whose_it_is():
    assert DATASET.licence == "MIT"
    assert all(len(source.version) == 40 and source.version in source.base_url for source in DATASET.sources)
    assert "10.1038/s41598-023-33274-0" in DATASET.citation[0]


# ---------------------------------------------------------------------- the analysis


@pytest.fixture(scope="module")
def findings(loaded):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(space_adventure, "REPEATS", 1)
        patch.setattr(space_adventure, "FOLDS", 2)
        return space_adventure.analyse(loaded, bootstrap=40, workers=1)


def test_the_whole_analysis_runs_on_a_few_people(loaded, findings):
    numbers, tables = findings.numbers, findings.tables
    assert (numbers["n_adults"], numbers["n_joined"], numbers["n_students"]) == (23, 4, 5)
    assert (numbers["pairs"], numbers["pairs_same"], numbers["transitions"]) == (30, 29, 810)
    missed = {one.what for one in findings.missed}
    assert "people of the studies of ageing and alcohol" in missed  # these are not the published files
    assert "transitions that the rules do not allow" not in missed
    # people were made so that older ones are slower and less steered by value
    assert numbers["age_eta"]["value"] > 0.7
    assert numbers["age_theta"]["value"] > 0.7
    assert tables["people"].height == 28
    latent = tables["latent"].filter(adjusted="gender")
    assert latent["parameter"].to_list() == ["eta", "theta", "first_choice", "later_choices"]
    assert latent["factor"][0] < 1 < latent["factor"][1]
    auc = tables["ablation"].filter(metric="auc")
    assert auc["representation"].to_list() == ["action", "effort", "fidm", "fidm-two-times"]
    assert auc["n_features"].to_list() == [1, 1, 2, 3]
    assert json.loads(to_json(findings))["experiment"] == "space-adventure"


def test_its_sections_have_a_figure_and_a_table_for_everything(loaded, findings):
    told = tell(REANALYSIS, findings, loaded)
    assert repeated_titles(told) == []
    names = [section["id"] for section in told.sections]
    assert names[:3] == ["found", "expected", "task"]
    drawn = [figure["id"] for section in told.sections for figure in section["figures"]]
    assert drawn == ["values", "agreement", "times", "groups", "ablation", "relations"]
    text = " ".join(text for section in told.sections for text in section["paragraphs"])
    assert "mini-block 3, 2 flights" in text
    assert not {"nan", "None"} & set(text.replace("(", " ").replace(",", " ").split())


def test_the_same_seed_gives_the_same_draws():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 30))
    one, two = (rank_correlation(x, x + y, seed=4, bootstrap=100) for _ in range(2))
    assert one == two
    assert one.low < one.value < one.high
    assert rank_correlation(x, x + y, seed=5, bootstrap=100).low != one.low
    turned = rank_correlation(x, -(x + y), seed=4, bootstrap=100)
    assert (turned.value, turned.low, turned.high) == pytest.approx((-one.value, -one.high, -one.low))


def test_too_few_people_and_constants_give_no_number():
    assert np.isnan(rank_correlation([1, 2, 3, np.nan], [1, 2, 3, 4], seed=1, bootstrap=20).value)
    assert np.isnan(rank_correlation([1] * 9, range(9), seed=1, bootstrap=20).value)
    assert np.isnan(separation([1, 2], [3, 4], seed=1, bootstrap=20).value)
    assert separation([np.inf] * 5, range(5), seed=1, bootstrap=20).value == 1.0
    assert np.isnan(holm([0.2, float("nan")])[1])
    assert holm([0.2, float("nan")])[0] == 0.2


def test_a_third_thing_held_fixed_is_taken_out_of_a_rank_correlation():
    rng = np.random.default_rng(5)
    group = np.repeat([0.0, 1.0], 40)
    x, y = rng.normal(size=(2, 80)) + 3 * group  # nothing but the group
    plain = rank_correlation(x, y, seed=1, bootstrap=50)
    fixed = partial_rank_correlation(x, y, group, seed=1, bootstrap=50)
    assert plain.value > 0.6
    assert abs(fixed.value) < 0.25
    assert fixed.p > 0.05 > plain.p
    # the same as the correlation of what a regression of ranks on the group leaves
    left = [one - np.array([one[group == g].mean() for g in group]) for one in map(rankdata, (x, y))]
    assert fixed.value == pytest.approx(np.corrcoef(left)[0, 1])
    assert np.isnan(partial_rank_correlation(x, y, np.zeros(80), seed=1, bootstrap=20).value)


def test_halves_are_stepped_up_to_the_whole():
    x = np.append(np.arange(9.0), -np.inf)
    r, whole = stepped_up(x, x, seed=1, bootstrap=50)
    assert (r, whole.value, whole.n) == (pytest.approx(1.0), pytest.approx(1.0), 9)
    r, whole = stepped_up(x, -x, seed=1, bootstrap=50)
    assert r == pytest.approx(whole.value) == pytest.approx(-1.0)
    assert np.isnan(stepped_up(x[:3], x[:3], seed=1, bootstrap=50)[0])


def test_first_and_last_mini_blocks_are_a_split_of_their_own(findings):
    rows = findings.tables["reliability"].filter(halves=IN_TIME)
    assert rows["parameter"].to_list() == ["eta", "theta"]
    mixed = findings.tables["reliability"].filter(halves="mini-blocks")
    assert rows["r"].to_list() != mixed["r"].to_list()
    assert rows["n"][1] == findings.numbers["n_adults"]


@pytest.mark.usefixtures("no_pictures")
def test_words_follow_the_numbers(findings, loaded):
    def told_with(section: str, table: str, **changes) -> str:
        """What a section says if columns of a table were other ones."""
        changed = findings.tables[table].with_columns(**changes)
        other = replace(findings, tables={**findings.tables, table: changed})
        found = {one["id"]: one["paragraphs"] for one in sections(other, loaded)}
        return " ".join(found[section])

    first = pl.col("parameter") == "first_choice"
    low, high = (pl.when(first).then(one).otherwise(other) for one, other in ((0.1, 0.6), (0.4, 0.9)))
    assert "people are faster" in told_with("found", "groups", low=low, high=high)
    alike = told_with("found", "groups", low=pl.lit(0.6), high=pl.lit(0.9))
    assert "choices alike" in alike
    fixed = {
        "p_holm": pl.lit(0.01),
        "partial": pl.lit(0.3),
        "partial_low": pl.lit(0.1),
        "partial_high": pl.lit(0.5),
    }
    weak = told_with("tests", "relations", **fixed, partial_p_holm=pl.lit(0.11))
    assert "0.300 (0.100 to 0.500), which does not" in weak
    assert "which remains" in told_with("tests", "relations", **fixed, partial_p_holm=pl.lit(0.01))
    nobody = {name: pl.lit(None, dtype=pl.Float64) for name in (*fixed, "partial_p_holm")}
    assert "held fixed 0" not in told_with("tests", "relations", **{**nobody, "p_holm": pl.lit(0.01)})
    none = told_with("tests", "relations", p_holm=pl.lit(0.3))
    assert none.count("no correlation remains") == 4
    assert "related to age" in told_with("tests", "age", low=pl.lit(-0.1), high=pl.lit(0.1))
    less = told_with("age", "ablation_differences", low=pl.lit(-0.2), high=pl.lit(-0.1))
    assert "worse than action (η)" in less
    assert "misprint" in told_with("task", "values")
    assert "None differs." in told_with("task", "values", is_same=pl.lit(value=True))
