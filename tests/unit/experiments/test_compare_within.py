"""People are compared with themselves where a column of the episodes is asked for."""

from __future__ import annotations

import functools
import io
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import fidm
from fidm.cohort import offsets_of
from fidm.errors import DataError, FitError
from fidm.experiments.compare import compare
from fidm.io.tables import tables_of
from fidm.plot import forest
from fidm.present.experiments import show_comparison
from fidm.simulate.cohort import People

TASK = "errands"


@functools.cache
def study(n=24, visits=2, change=-0.8):
    """People whose log η changes by as much from visit to visit; their durations are others each time."""
    task = fidm.load_task(TASK)
    own = 0.4 * np.random.default_rng(5).normal(size=n)
    parts = []
    for visit in range(visits):
        shifts = np.zeros((n, 6))
        shifts[:, 0] = own + change * visit
        alike = People(log_sensitivity_sd=1e-9)
        parts.append(
            fidm.simulate_cohort(task, n, seed=6, first=n * visit, max_steps=50, people=alike, shifts=shifts)
        )
    units = fidm.Cohort.concat(parts)[np.arange(visits * n).reshape(visits, n).T.ravel()]
    number = np.tile(np.arange(visits) + 1, n)
    episodes = units.episodes.with_columns(episode=pl.Series(number).cast(pl.String), visit=pl.Series(number))
    return task, replace(
        units,
        participants=units.participants[::visits].select("participant"),
        episodes=episodes.with_columns(place=pl.Series(np.array(["home", "lab", "ward"])[number - 1])),
        episode_offsets=np.arange(n + 1) * visits,
    )


@functools.cache
def by_visit():
    task, cohort = study()
    return compare(task, cohort, by="visit", channels=fidm.channels.paper_channels()[:1])


def test_each_person_is_compared_with_themselves():
    found = by_visit()
    first, second = found.table.iter_rows(named=True)
    assert (first["parameter"], first["contrast"]) == ("action_sensitivity", "visit 2 / visit 1")
    assert first["low"] < -0.8 < first["high"]
    assert first["p_holm"] < 0.001
    assert second["p"] > 0.05
    assert first["auc"] is None
    assert found.groups.select("group", "people").rows() == [("1", 24), ("2", 24)]
    assert found.overall.select("n_people", "n_paired").rows() == [(24, 24)] * 2
    assert any(
        note.startswith("24 of 24 people have data of several values of visit") for note in found.notes
    )
    assert found.notes[-2].startswith("People clearly differ in how they change in speech duration θ (sd 0.")
    assert found.notes[-1].startswith("Whether people differ in how they change is not clear in action")


def test_it_is_printed_and_drawn_like_groups():
    page = Console(width=120, record=True, file=io.StringIO())
    show_comparison(by_visit(), page)
    assert "visit 2 / visit 1" in page.export_text()
    assert by_visit().sentences[0].endswith("as high in visit 2 as in visit 1.")
    assert forest(by_visit()).get_yticklabels()[0].get_text() == "action sensitivity η"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_study_folder_keeps_columns_of_episodes(tmp_path, kind):
    task, cohort = study()
    if kind == "parquet":
        fidm.write_cohort(cohort, tmp_path / "study", tasks=[TASK])
    else:
        (tmp_path / "study").mkdir()
        (tmp_path / "study" / "study.toml").write_text(f'schema = 1\ntasks = ["{TASK}"]\n', "utf-8")
        for name, table in tables_of(cohort).items():
            table.write_csv(tmp_path / "study" / f"{name}.csv")
    read = fidm.read_cohort(tmp_path / "study")
    assert read.episodes.select("visit", "place").equals(cohort.episodes.select("visit", "place"))
    found = compare(task, read, by="visit", channels=())
    assert found.table["difference"][0] == by_visit().table["difference"][0]


def test_a_number_of_several_values_is_compared_per_unit():
    task, cohort = study(visits=3, change=-0.4)
    found = compare(task, cohort, by="visit", channels=())
    assert found.table["contrast"].to_list() == ["visit + 1"]
    assert found.table["low"][0] < -0.4 < found.table["high"][0]
    with pytest.raises(DataError, match="visit is a number"):
        compare(task, cohort, by="visit", reference="1", channels=())


def test_two_large_numbers_are_two_conditions():
    task, cohort = study()
    dated = cohort.episodes.with_columns(date=20240100 + pl.col("visit"), dose=0.5 * pl.col("visit"))
    cohort = replace(cohort, episodes=dated)
    for by, contrast in (("date", "date 20240102 / date 20240101"), ("dose", "dose 1 / dose 0.5")):
        assert compare(task, cohort, by=by, channels=()).table["contrast"].to_list() == [contrast]


def test_several_conditions_are_compared_with_one():
    task, cohort = study(visits=3, change=-0.4)
    found = compare(task, cohort, by="place", reference="lab", channels=())
    assert found.table["contrast"].to_list() == ["home / lab", "ward / lab"]
    assert found.table["difference"][0] > 0 > found.table["difference"][1]
    assert found.overall["p"][0] < 0.05
    assert "there are several contrasts. Standard errors are by person." in found.notes[-1]
    usual = compare(task, cohort, by="place", channels=())
    assert usual.table["contrast"].to_list() == ["lab / home", "ward / home"]


def test_several_episodes_of_a_condition_are_taken_together():
    task, cohort = study(visits=3)
    paired = cohort.episodes.with_columns(late=pl.col("visit") > 1)
    found = compare(task, replace(cohort, episodes=paired), by="late", channels=())
    assert found.table["contrast"].to_list() == ["false / true"]
    assert found.groups.select("group", "people").rows() == [("false", 24), ("true", 24)]


def test_episodes_without_a_condition_are_left_out_and_counted():
    task, cohort = study()
    lost = pl.when(pl.int_range(48).is_in([1, 3, 5])).then(None).otherwise(pl.col("visit"))
    found = compare(
        task, replace(cohort, episodes=cohort.episodes.with_columns(visit=lost)), by="visit", channels=()
    )
    assert found.notes[0].startswith("Reference: visit 1, the lower of two numbers")
    assert found.notes[1] == "3 episodes without visit are left out."
    assert found.overall.select("n_people", "n_paired").row(0) == (24, 21)


def test_where_most_people_have_one_condition_it_is_said():
    task, cohort = study()
    kept = np.arange(48)[(np.arange(48) % 2 == 0) | (np.arange(48) < 16)]
    some = cohort.by_episode()[kept]
    counts = np.bincount(kept // 2, minlength=24)
    some = replace(some, participants=cohort.participants, episode_offsets=offsets_of(counts))
    found = compare(task, some, by="visit", channels=())
    assert any(note.startswith("Most people have data of one value of visit alone") for note in found.notes)


def test_what_cannot_be_compared_is_refused():
    task, cohort = study()
    with pytest.raises(DataError, match="leave adjust, interact and cluster out"):
        compare(task, cohort, by="visit", adjust=["participant"])
    with pytest.raises(DataError, match=r"place has no condition 'ward'\. There are: home, lab"):
        compare(task, cohort, by="place", reference="ward")
    with pytest.raises(DataError, match="task is the same in all episodes"):
        compare(task, cohort, by="task")
    with pytest.raises(FitError, match=r"Nothing can be compared.*3 people can be compared with themselves"):
        compare(task, cohort[:3], by="visit", channels=())
