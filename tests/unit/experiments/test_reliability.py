"""Split halves, retest, and the change that is more than measurement error."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes

import fidm
from fidm.errors import DataError
from fidm.experiments.reliability import (
    _measured,
    _retest,
    _split_half,
    _usual_halves,
    deal_segments,
    episode_halves,
    half_of,
    reliability,
    why_no_change,
)
from fidm.experiments.shared import by_method
from fidm.fit.factorized import Model
from fidm.model.effort import paper_channels
from fidm.plot.experiments import reliability as draw
from fidm.simulate.cohort import People
from fidm.simulate.structure import redraw_effort
from fidm.tasks.stack import TaskSet


@pytest.fixture(scope="module")
def task():
    return fidm.load_task("errands")


@pytest.fixture(scope="module")
def cohort(task):
    people = People(effort_sd=0.7)
    return fidm.simulate_cohort(task, 80, seed=1, people=people, max_steps=60)


@pytest.fixture(scope="module")
def found(task, cohort):
    return reliability(task, cohort, bootstrap=200)


def test_the_halves_share_nothing_and_miss_nothing(task, cohort):
    odd, odd_segment, how = deal_segments(TaskSet.of(task), cohort)
    assert "with its steps" in how
    fit = Model(task).fit(cohort)
    first = half_of(cohort, fit.channels, odd, odd_segment)
    second = half_of(cohort, fit.channels, ~odd, ~odd_segment)
    assert (first.weight + second.weight == 1).all()
    assert (first.segments["duration_s"].is_null() != second.segments["duration_s"].is_null()).all()
    # a step is in the half of its segment
    episode = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    row = cohort.segment_offsets[episode] + cohort.segment
    assert (first.segments["duration_s"].is_not_null().to_numpy()[row] == (first.weight == 1)).all()
    counts = fit.profile(first).n + fit.profile(second).n
    assert (counts == fit.profile(cohort).n).all()


def test_steps_without_segments_are_dealt_in_runs(task, cohort):
    odd, _, how = deal_segments(TaskSet.of(task), replace(cohort, segment=None))
    assert "runs of 3" in how
    n = int(cohort.step_offsets[1])
    assert odd[: min(n, 7)].tolist() == [True, True, True, False, False, False, True][:n]


def test_only_steps_of_episodes_without_a_segment_are_dealt_in_runs(task, cohort):
    silent = np.repeat(np.arange(len(cohort)) % 2 == 0, np.diff(cohort.step_offsets))  # one episode each
    some = replace(cohort, segment=np.where(silent, -1, cohort.segment).astype(np.int32))
    odd, _, how = deal_segments(TaskSet.of(task), some)
    assert "40 of 80 episodes" in how
    by_segment = deal_segments(TaskSet.of(task), cohort)[0]
    in_runs = deal_segments(TaskSet.of(task), replace(cohort, segment=None))[0]
    assert (odd == np.where(silent, in_runs, by_segment)).all()
    assert not odd[silent].all()
    assert deal_segments(None, some)[2] == "split-half: odd against even segments, each with its steps"


def test_people_without_an_observation_are_not_counted_by_the_model(task, cohort):
    silent = pl.Series(np.repeat(np.arange(len(cohort)) % 4 > 0, np.diff(cohort.segment_offsets)))
    column = pl.when(silent).then(None).otherwise(pl.col("duration_s")).alias("duration_s")
    some = replace(cohort, segments=cohort.segments.with_columns(column))
    fit = Model(task).fit(cohort)
    row = reliability(task, some, fit=fit, bootstrap=20).row("duration", "model")
    assert (row["n"], row["without"]) == (20, 60)
    talkers = reliability(task, cohort[np.arange(0, 80, 4)], fit=fit, bootstrap=20).row("duration", "model")
    assert row["reliability"] == pytest.approx(talkers["reliability"])


def test_spearman_brown_and_the_error_of_measurement():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=200_000)
    halves = truth + rng.normal(size=(2, 200_000))
    data = np.stack([*halves, halves.mean(axis=0)])[:, None, :]
    r, full, sem = _split_half(data)[0]
    assert r == pytest.approx(0.5, abs=0.01)
    assert full == pytest.approx(2 / 3, abs=0.01)
    assert sem == pytest.approx(np.sqrt(0.5), abs=0.01)  # two halves of error variance 1


def test_the_icc_counts_a_shift_between_occasions_as_error():
    rng = np.random.default_rng(1)
    truth = 2 * rng.normal(size=100_000)
    times = truth + rng.normal(size=(2, 100_000))
    times[1] += 1.0
    r, icc, sem = _retest(np.stack([*times, times[0]])[:, None, :])[0]
    assert r == pytest.approx(0.8, abs=0.01)
    assert icc == pytest.approx(4 / 5.5, abs=0.01)  # the shift adds a variance of 0.5
    assert sem == pytest.approx(np.sqrt(1.5), abs=0.01)


def test_it_agrees_with_what_is_known_of_the_people(found, cohort):
    assert set(found.table["kind"]) == {"split-half", "model"}
    row = found.row("duration")
    assert row["low"] < row["reliability"] < row["high"]
    assert row["mdc"] == pytest.approx(1.96 * np.sqrt(2) * row["sem"])
    # the reliability is the squared correlation with the truth
    task = fidm.load_task("errands")
    profile = Model(task).fit(cohort).profile(cohort)
    known = np.corrcoef(profile["duration"], cohort.participants["true_duration"])[0, 1] ** 2
    assert abs(row["reliability"] - known) < 0.12
    assert abs(found.row("duration", "model")["reliability"] - known) < 0.12
    assert "no retest: nobody has several traces" in found.notes


def test_people_without_a_finite_estimate_are_counted(found, cohort):
    row = found.row("action_sensitivity")
    assert row["n"] + row["without"] == len(cohort)
    assert row["without"] > 0
    assert row["rank_r"] is not None
    assert any("no finite estimate of action sensitivity η" in note for note in found.notes)


def test_when_many_are_left_out_the_sentence_relies_on_the_model(task):
    short = fidm.simulate_cohort(task, 40, seed=1, max_steps=12)
    found = reliability(task, short, bootstrap=50)
    row = found.row("action_sensitivity")
    assert row["without"] > 0.2 * 40
    assert "by the model's own estimate, its reliability is" in found.sentences()[0]
    said = "people have no estimate of pause length in one of the halves and are left out, which is too"
    assert any(said in note for note in found.notes)


def test_several_traces_give_a_retest():
    tasks = [fidm.load_task("errands"), fidm.load_task("grocery")]
    two = fidm.simulate_cohort(tasks, 40, seed=1, max_steps=60)
    found = reliability(tasks, two, bootstrap=50)
    assert found.row("duration", "retest")["n"] == 40
    assert any("first against second" in note and "parallel forms" in note for note in found.notes)
    assert found.sentences()[1].startswith("Speech duration: retest")


def test_more_than_two_traces_are_dealt_odd_and_even(task):
    parts = [fidm.simulate_cohort(task, 3, seed=seed, max_steps=20) for seed in range(10)]
    whole = fidm.Cohort.concat(
        [
            part.with_participants(part.participants) if not i else _renamed(part, i)
            for i, part in enumerate(parts)
        ]
    )
    many = replace(
        whole,
        participants=pl.DataFrame({"participant": [f"P{j}" for j in range(10)]}),
        episode_offsets=np.arange(11) * 3,
    )
    found = reliability(task, many, bootstrap=50)
    assert found.row("duration", "retest") is None
    assert "split-half: odd against even episodes, whole" in found.notes
    assert any("no retest: people have more than two traces" in note for note in found.notes)
    row = found.row("duration")
    assert row["reliability"] == pytest.approx(
        2 * row["r"] / (1 + abs(row["r"])) if row["r"] > 0 else row["r"]
    )


def _renamed(cohort, i):
    names = pl.Series("participant", [f"Q{i}{j}" for j in range(len(cohort))])
    return replace(cohort, participants=cohort.participants.with_columns(names))


def test_one_segment_each_leaves_effort_without_halves(task, cohort):
    first = cohort.segment_offsets[:-1]
    table = cohort.segments[first]
    one = replace(cohort, segments=table, segment_offsets=np.arange(cohort.n_episodes + 1), segment=None)
    fit = Model(task).fit(cohort)
    found = reliability(task, one, fit=fit, bootstrap=50)
    assert found.row("duration")["reliability"] is None
    assert any("0 people have a speech duration" in note for note in found.notes)


def test_one_person_is_refused(task, cohort):
    with pytest.raises(DataError, match="one person"):
        reliability(task, cohort[:1])


def test_a_channel_nobody_shows_is_left_out(task, cohort):
    silent = replace(cohort, segments=cohort.segments.with_columns(pause_s=pl.lit(0.0)))
    found = reliability(task, silent, bootstrap=50)
    assert found.parameters == ("action_sensitivity", "duration", "characters", "turns")
    assert "pause" in found.not_learned


def test_the_seed_decides(task, cohort, found):
    again = reliability(task, cohort, bootstrap=200, workers=1)
    assert again.table.equals(found.table)
    other = reliability(task, cohort, bootstrap=200, seed=2)
    assert other.row("duration")["low"] != found.row("duration")["low"]
    assert other.row("duration")["r"] == found.row("duration")["r"]


def test_it_is_drawn(found):
    ax = draw(found)
    assert isinstance(ax, Axes)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["split-half", "model"]


def test_intervals_are_the_middle_95_per_cent_of_people_drawn_again():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=60)
    columns = tuple(truth + 0.7 * rng.normal(size=60) for _ in range(3))
    row = _measured("duration", "split-half", columns, _split_half, 1, 4_000)
    data = np.stack(columns)
    other = np.random.default_rng(99).integers(0, 60, (4_000, 60))
    low, high = np.quantile(_split_half(data[:, other])[:, 1], (0.025, 0.975))
    assert row["low"] == pytest.approx(low, abs=0.02)
    assert row["high"] == pytest.approx(high, abs=0.02)


@pytest.mark.parametrize("name", ["duration", "characters", "pause"])
def test_people_who_have_not_changed_differ_by_less_than_the_detectable_change(task, name):
    """The same people measured twice: 95 % differ by less, by either method; bands written before the run."""
    people = People(effort_sd=0.4)
    first, second = (measured_again(task, people, seed) for seed in (1, 2))
    fit = Model(task).fit(first)
    found = reliability(task, first, fit=fit, bootstrap=20)
    k = fit.parameters.index(name)
    for method, column in (("mle", "mdc"), ("eb", "mdc_shrunk")):
        one, two = (by_method(fit, method).profile(cohort).estimate[:, k] for cohort in (first, second))
        known = np.isfinite(one) & np.isfinite(two)
        for kind in ("split-half", "model"):
            row = found.row(name, kind)  # the change itself may be withheld from so few draws
            change = 1.96 * math.sqrt(2) * row["sem"] * (1 if method == "mle" else min(1, row["reliability"]))
            assert row[column] in (None, pytest.approx(change))
            inside = (np.abs(one - two)[known] < change).mean()
            print(f"{name}, {method}, {kind}: {inside:.3f}")
            assert 0.91 <= inside <= 0.985


def measured_again(task, people, seed):
    """600 people of the same true effort, whose talk is drawn with another seed."""
    cohort = fidm.simulate_cohort(task, 600, seed=7, people=people, max_steps=60)
    channels = paper_channels()
    theta = cohort.participants.select(f"true_{channel.name}" for channel in channels).to_numpy()
    return redraw_effort(cohort, channels, people.truth, theta, seed=seed)


def test_a_handful_of_retests_does_not_outweigh_everybodys_halves(found):
    row = {**found.row("duration"), "kind": "retest", "n": 6, "without": 0, "reliability": 0.99}
    few = replace(found, table=pl.concat([found.table, pl.DataFrame([row], schema=found.table.schema)]))
    said = next(line for line in few.sentences() if line.startswith("Speech duration"))
    assert "split-half" in said
    many = replace(few, table=few.table.with_columns(n=pl.lit(60, few.table.schema["n"])))
    assert "retest" in next(line for line in many.sentences() if line.startswith("Speech duration"))


def test_whole_episodes_can_be_dealt_to_halves(task, cohort):
    with pytest.raises(DataError, match="several episodes"):
        reliability(task, cohort, halves="episodes")
    with pytest.raises(
        DataError, match=r"neither a column of the episodes nor a rule.*may also be 'segments'"
    ):
        reliability(task, cohort, halves="weeks")
    # four episodes each, made of twenty people's at a time; the last person has one
    offsets = np.append(np.arange(0, 80, 4), [79, 80])
    several = replace(
        cohort,
        participants=cohort.participants[:21],
        episodes=cohort.episodes.with_columns(episode=pl.int_range(pl.len()).cast(pl.String)),
        episode_offsets=offsets,
    )
    channels = tuple(channel for channel in paper_channels() if channel.name == "duration")
    fit = Model(task, channels=channels).fit(several)
    found = reliability(task, several, fit=fit, halves="episodes", bootstrap=20)
    assert found.notes[0] == "split-half: odd against even episodes, whole"
    assert found.record.settings["halves"] == "episodes"
    halves = found.row("duration")
    assert (halves["n"], halves["without"]) == (20, 1)
    assert "split-half: 1 person has episodes in one half only and is left out" in found.notes
    assert not any("no estimate" in note for note in found.notes)  # said once
    assert found.row("duration", "retest") is None  # trials of one sitting
    usual = reliability(task, several, fit=fit, bootstrap=20)
    assert usual.table.equals(found.table)
    assert usual.record.settings["halves"] == "episodes"
    alone = replace(several, episode_offsets=np.append(np.arange(21), [80]))  # one person has several
    assert _usual_halves(several, "person") == "episodes"
    assert _usual_halves(alone, "person") == _usual_halves(several, "episode") == "segments"


def test_what_lasts_an_episode_does_not_count_as_the_persons(task):
    """People who are all alike, but every episode has a mood of its own: nothing can be told of people."""
    made = fidm.simulate_cohort(task, 60, seed=2)
    rng = np.random.default_rng(3)
    mood = np.repeat(rng.normal(size=60), np.diff(made.segment_offsets))
    seconds = np.exp(mood + 0.3 * rng.normal(size=made.n_segments)) * (
        1 + made.segments["n_moves"].to_numpy()
    )
    people = replace(
        made,
        participants=made.participants[:20],
        segments=made.segments.with_columns(duration_s=pl.Series(seconds)),
        episode_offsets=np.arange(0, 61, 3),
    )
    channels = tuple(channel for channel in paper_channels() if channel.name == "duration")
    fit = Model(task, channels=channels).fit(people, method="mle")
    whole, mixed = (
        reliability(task, people, fit=fit, halves=halves, bootstrap=20) for halves in (None, "segments")
    )
    assert mixed.row("duration")["reliability"] > 0.9
    assert whole.row("duration")["reliability"] < 0.6


def test_absurd_changes_are_not_written_as_numbers(found):
    row = found.table.filter(parameter="duration", kind="split-half").row(0, named=True)
    said = []
    for rho, mdc in ((0.9, 10.1), (0.9, 900.0), (0.9, 1e-4), (-0.1, None)):
        shrunk = None if mdc is None else mdc * rho / 3
        changed = {**row, "reliability": rho, "mdc": mdc, "mdc_shrunk": shrunk}
        odd = replace(
            found, parameters=("duration",), table=pl.DataFrame([changed], schema=found.table.schema)
        )
        said += odd.withheld().sentences()
    assert "(more than 100 if estimated by maximum likelihood)" in said[0]
    assert "even a change of a person's value by a factor of 100 is within" in said[1]
    assert "hardly differ" in said[2]
    assert "too low to speak of changes" in said[3]
    assert why_no_change({**row, "mdc": 1e-4})


def only(found, *rows):
    """The same result with these rows alone."""
    table = pl.DataFrame(list(rows), schema=found.table.schema)
    return replace(found, parameters=("duration",), table=table).withheld().sentences()[0]


def test_an_uncertain_reliability_gives_no_change(found):
    row = {**found.row("duration"), "reliability": 0.9, "low": 0.51, "high": 0.98, "mdc": 0.3}
    assert "within measurement error" in only(found, row)
    for doubt in ({"low": -0.08}, {"low": 0.5}, {"low": None, "high": None}):
        assert "too uncertain to speak of changes" in only(found, {**row, **doubt})
    model = {**row, "kind": "model"}
    assert not why_no_change(model)
    doubted = replace(
        found,
        parameters=("duration",),
        table=pl.DataFrame([{**row, "low": 0.1}, model], schema=found.table.schema),
    )
    assert doubted.withheld().table["mdc"].to_list() == [None, None], (
        "what halves leave open, the model does not close"
    )


def test_the_larger_error_of_halves_and_model_is_given(found):
    halves = {**found.row("duration"), "reliability": 0.9, "low": 0.6, "mdc": 0.2, "mdc_shrunk": 0.18}
    model = {**halves, "kind": "model", "reliability": 0.85, "mdc": 0.5, "mdc_shrunk": np.log(1.5)}
    for rows in ((halves, model), ({**halves, "mdc": 0.5, "mdc_shrunk": np.log(1.5)}, model)):
        said = only(found, *rows)
        assert "split-half reliability is .90" in said
        assert "by the model's own estimate .85 (" in said
        assert "below ×1.50, and perhaps larger ones, are" in said
    assert "below ×1.20 are within" in only(found, {**halves, "kind": "retest", "n": 80}, halves, model)


def test_people_without_data_are_not_left_out(task, cohort):
    """They change neither who is counted nor which reliability is relied on."""
    fit = Model(task).fit(cohort[:20])
    absent = replace(
        cohort[:0],
        participants=cohort.participants[20:32],
        episode_offsets=np.zeros(13, dtype=np.int64),
    )
    some = reliability(task, cohort[:20], fit=fit, bootstrap=50)
    more = reliability(task, fidm.Cohort.concat([cohort[:20], absent]), fit=fit, bootstrap=50)
    assert more.table.equals(some.table)
    assert (more.notes, more.sentences()) == (some.notes, some.sentences())


def test_copied_episodes_give_no_reliability(task, cohort):
    names = cohort.episodes.with_columns(episode=pl.int_range(pl.len()).cast(pl.String))
    again = [cohort[[j]] for j in range(20) for _ in range(2)]
    people = [
        replace(one, participants=cohort.participants[[i]], episodes=names[[i]])
        for i, one in enumerate(again)
    ]
    both = fidm.Cohort.concat(people)
    twice = replace(both, participants=cohort.participants[:20], episode_offsets=np.arange(0, 41, 2))
    fit = Model(task).fit(cohort)
    with pytest.raises(DataError, match="20 people have episodes that are exact copies"):
        reliability(task, twice, fit=fit, bootstrap=20)
    others = cohort[20:40]
    mixed = reliability(task, fidm.Cohort.concat([twice[:3], others]), fit=fit, bootstrap=20)
    assert mixed.table.equals(reliability(task, others, fit=fit, bootstrap=20).table)
    assert mixed.notes[0].startswith("3 people have episodes that are exact copies of each other")


def test_people_who_are_alike_have_no_reliability(task, cohort):
    fit = fidm.Model(task).fit(cohort)
    alike = reliability(task, cohort, fit=replace(fit, alike=("turns",)), bootstrap=20)
    rows = alike.table.filter(parameter="turns")
    assert rows["mdc"].null_count() == rows["reliability"].null_count() == rows.height == 2
    assert [note for note in alike.notes if "turn" in note] == [
        "no measurable individual differences, so nobody has an estimate: turn count"
    ]


def test_fewer_than_ten_people_have_no_reliability_of_any_kind(task):
    found = reliability(task, fidm.simulate_cohort(task, 9, seed=1), bootstrap=50)
    figures = ("r", "rank_r", "reliability", "low", "high", "sem", "mdc", "mdc_shrunk", "no_change")
    assert found.table.select(figures).null_count().row(0) == (found.table.height,) * len(figures)
    assert any("10 are needed for a reliability" in note for note in found.notes)
    assert "cannot be told from these people" in found.sentences()[0]


def test_the_models_reliability_is_as_uncertain_as_the_spread_among_people(task):
    """With fifteen people the interval is wide, with many it is narrow, and it holds the estimate."""
    widths = []
    for n in (15, 120):
        row = reliability(task, fidm.simulate_cohort(task, n, seed=3), bootstrap=20).row("duration", "model")
        assert row["low"] < row["reliability"] < row["high"] < 1
        widths.append(row["high"] - row["low"])
    assert widths[1] < widths[0] / 2


def alike_in_counts(n, lengths=9):
    """People who hardly differ in how often they speak, and by ``lengths`` segments cannot show it."""
    rng = np.random.default_rng(3)
    theta = np.repeat(rng.normal(0, 0.1, n), lengths)
    who = np.repeat([f"P{j:02}" for j in range(n)], lengths)
    turns = 1 + rng.poisson(0.8 * np.exp(theta))
    table = pl.DataFrame({"participant": who, "segment": np.arange(len(who)) % lengths, "n_turns": turns})
    return fidm.Cohort.from_segments(table)


def test_the_models_reliability_is_a_share_which_fit_prints_too_and_is_not_known_exactly():
    people = alike_in_counts(12)
    fit = fidm.fit_effort(people, fidm.channels.NegativeBinomial("turns", "n_turns", design=()))
    row = reliability(None, people, fit=fit, bootstrap=20).row("turns", "model")
    profile = fit.profile(people)
    assert profile.se.mean() > profile.prior_sd[0]  # how people differ is itself in doubt
    assert row["reliability"] == profile.summary().table["reliability"][0]
    assert 0 <= row["low"] < row["reliability"] < row["high"] < 1
    assert row["high"] > 0.2


def test_doubt_about_what_people_share_is_not_doubt_about_their_differences(task, cohort):
    fit = fidm.Model(task).fit(cohort[np.arange(12)])
    settled = {name: replace(one, plausible=None) for name, one in fit.populations.items()}
    settled = replace(fit, populations=settled, prior=replace(fit.prior, plausible=None))
    found, known = (one.profile(cohort).summary().table["reliability"].to_list() for one in (fit, settled))
    assert found == known


def trials(task, n=16, *, each=8, max_steps=8):
    """People with several short episodes, of which the first half is called morning."""
    parts = fidm.simulate_cohort(task, n * each, seed=3, max_steps=max_steps)
    names = [str(i + 1) for i in range(each)] * n
    return replace(
        parts,
        participants=parts.participants[:n],
        episodes=parts.episodes.with_columns(
            episode=pl.Series(names),
            day=pl.Series((["morning"] * (each // 2) + ["evening"] * (each // 2)) * n),
        ),
        episode_offsets=np.arange(0, n * each + 1, each),
    )


def test_halves_of_episodes_by_a_rule_or_a_column(task):
    people = trials(task)
    halves = {
        how: episode_halves(people, how, 1)[0]
        for how in ("episodes", "first-last", "random", "day", "every 2")
    }
    assert halves["episodes"][:8].tolist() == [0, 1] * 4
    assert halves["first-last"][:8].tolist() == [0] * 4 + [1] * 4
    assert halves["day"].tolist() == halves["first-last"].tolist()  # the morning comes first
    assert halves["every 2"][:8].tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    sums = np.add.reduceat(halves["random"], people.episode_offsets[:-1])
    assert (sums == 4).all()
    assert not np.array_equal(halves["random"], episode_halves(people, "random", 2)[0])
    turned = people[np.arange(len(people))[::-1]]
    assert episode_halves(turned, "random", 1)[0][-8:].tolist() == halves["random"][:8].tolist()
    fit = Model(task, channels=()).fit(people)
    tables = {how: reliability(task, people, fit=fit, halves=how, bootstrap=20) for how in halves}
    assert tables["day"].table.equals(tables["first-last"].table)
    assert "split-half: day morning against evening" in tables["day"].notes
    assert tables["day"].row("action_sensitivity")["n"] <= 16
    for how in ("day", "random"):
        assert tables[how].record.settings["halves"] == how
        assert len(tables[how].record.settings["dealt"]) == 16


def test_people_with_episodes_in_one_half_are_left_out_and_said_once(task):
    people = trials(task)
    late = people.episodes.with_columns(
        day=pl.when(pl.int_range(pl.len()) < 24).then(pl.lit("morning")).otherwise(pl.col("day"))
    )
    late = late.with_columns(day=pl.when(pl.int_range(pl.len()) == 100).then(None).otherwise(pl.col("day")))
    found = reliability(task, replace(people, episodes=late), halves="day", bootstrap=20)
    row = found.row("duration")
    assert row["n"] + row["without"] == 13
    said = [note for note in found.notes if "one half only" in note]
    assert said == ["split-half: 3 people have episodes in one half only and are left out"]
    assert any("1 episode in no block" in note for note in found.notes)
    with pytest.raises(DataError, match="both halves by 'half'"):
        alone = people.episodes.with_columns(half=pl.Series(np.repeat(["a", "b"], 64)))
        reliability(task, replace(people, episodes=alone), halves="half", bootstrap=20)
    with pytest.raises(DataError, match="one block"):
        reliability(task, replace(people, episodes=people.episodes.with_columns(x=1)), halves="x")
