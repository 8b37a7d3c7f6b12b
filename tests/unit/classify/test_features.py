"""Representations by name: their blocks, how they are joined, and what is said when one cannot be made."""

from __future__ import annotations

import functools

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

import fidm
from fidm.classify import features
from fidm.classify.features import (
    KINDS,
    Block,
    blocks_of,
    is_scaled,
    known_blocks,
    make_blocks,
    representation,
)
from fidm.classify.language import Language
from fidm.experiments.shared import Preparation, classifier
from fidm.model.effort import paper_channels

ALL = ("score", "score+subscores", "demographics", "trajectory", "action", "effort", "fidm")


@functools.cache
def setting():
    """A task, 60 people with scores of which some are missing, and who of them is slow."""
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 60, seed=1)
    rng = np.random.default_rng(1)
    slow = cohort.participants["true_duration"].to_numpy() > 0
    score = [None if i % 11 == 3 else value for i, value in enumerate((rng.normal(size=60) - slow).tolist())]
    table = cohort.participants.with_columns(
        score_total=pl.Series(score, dtype=pl.Float64),
        score_route=pl.Series(rng.integers(0, 5, 60)),
        score_time=pl.Series(rng.integers(0, 5, 60)),
        age_years=pl.Series(rng.integers(60, 90, 60)),
        education_years=pl.Series(rng.integers(0, 16, 60)),
        sex=pl.Series(["female", "male", "male"] * 20),
    )
    return task, cohort.with_participants(table), slow


@functools.cache
def made():
    task, cohort, _ = setting()
    return make_blocks(ALL, [task], cohort)


def without(cohort, *columns):
    return cohort.with_participants(cohort.participants.drop(columns))


def with_segments(cohort, segments, offsets=None):
    fields = {name: getattr(cohort, name) for name in fidm.Cohort.__slots__}
    offsets = cohort.segment_offsets if offsets is None else offsets
    return fidm.Cohort(**{**fields, "segments": segments, "segment_offsets": offsets, "segment": None})


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        ("score", ("score",)),
        ("score+subscores", ("score+subscores",)),
        ("score+subscores+fidm", ("score+subscores", "fidm")),
        ("fidm+score+subscores", ("fidm", "score+subscores")),
        (" score + fidm", ("score", "fidm")),
        ("action+effort", ("action", "effort")),
        ("bert+trajectory+demographics", ("bert", "trajectory", "demographics")),
    ],
)
def test_names_are_taken_apart(name, blocks):
    assert blocks_of(name, known_blocks()) == blocks


def test_the_longest_name_that_leads_on_is_meant():
    assert blocks_of("a+b+c", ("a", "a+b", "b+c")) == ("a", "b+c")
    assert blocks_of("a+b+c", ("a", "a+b", "b", "c")) == ("a+b", "c")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("subscores", r"no representation 'subscores'. Known are score, score\+subscores, demographics"),
        ("", "no representation ''"),
        ("score+", r"no representation 'score\+'"),
        ("fidm+fidm", "names fidm twice"),
        ("action+fidm", "names action, which is part of fidm already"),
        ("score+score+subscores", r"names score, which is part of score\+subscores"),
    ],
)
def test_names_that_mean_nothing(name, message):
    with pytest.raises(fidm.DataError, match=message):
        blocks_of(name, known_blocks())


def test_known_names():
    assert known_blocks(encoders={}) == tuple(KINDS)
    assert known_blocks()[-2:] == ("bert", "macbert")
    assert known_blocks(encoders={"tiny": "folder"}, own={"gait": None})[-2:] == ("tiny", "gait")
    with pytest.raises(fidm.DataError, match="'fidm' is"):
        known_blocks(own={"fidm": None})


# ---------------------------------------------------------------------- blocks


def test_every_block_has_the_features_it_is_to_have():
    _, cohort, _ = setting()
    sizes = {"score": 1, "score+subscores": 3, "demographics": 3, "trajectory": 14}
    sizes |= {"action": 1, "effort": 4, "fidm": 5}
    assert list(made()) == list(ALL)
    for name, size in sizes.items():
        block = made()[name]
        found = block.fit(cohort).transform(cohort)
        assert found.shape == (60, size)
        assert len(block.get_feature_names_out()) == size
        assert block.learns == (name in ("action", "effort", "fidm"))
        assert block.kind == KINDS[name]
    assert np.isnan(made()["score"].transform(cohort)).sum() == 6
    assert "pause_presence" not in made()["fidm"].get_feature_names_out()


def test_action_effort_and_both_share_one_source():
    _, cohort, _ = setting()
    action, effort, both = (made()[name] for name in ("action", "effort", "fidm"))
    assert action.source is both.source
    assert effort.source is both.source
    matrix = both.source.fit(cohort).transform(cohort)
    assert np.array_equal(action.pick(matrix), matrix[:, :1])
    assert np.array_equal(effort.pick(matrix), matrix[:, 1:])
    assert np.array_equal(both.pick(matrix), matrix)


def test_the_features_are_those_of_a_profile():
    task, cohort, _ = setting()
    channels = [channel for channel in paper_channels() if channel.name != "pause_presence"]
    expected = fidm.Model(task, channels=channels).fit(cohort).profile(cohort).features()[0]
    assert np.array_equal(made()["fidm"].fit(cohort).transform(cohort), expected)
    paper = make_blocks(["fidm"], [task], cohort, paper_estimates=True)["fidm"]
    fit = fidm.Model(task, channels=channels).fit(cohort, method="mle", population="pooled")
    expected = fit.profile(cohort).features(scale="raw")[0]
    assert np.array_equal(paper.fit(cohort).transform(cohort), expected, equal_nan=True)
    assert paper.get_feature_names_out()[0] == "action_sensitivity"


def test_tasks_are_solved_once(monkeypatch):
    task, cohort, _ = setting()
    values, expected = fidm.solve(task), made()["fidm"].fit(cohort).transform(cohort)

    def again(*_args, **_options):
        raise AssertionError("solved again")

    monkeypatch.setattr(features, "solve", again)
    monkeypatch.setattr("fidm.tasks.beliefs.solve", again)
    block = make_blocks(["fidm"], [task], cohort, values=[values])["fidm"]
    assert np.array_equal(block.fit(cohort).transform(cohort), expected)


def test_a_copy_has_its_own_source_only_if_that_learns():
    fused, table = made()["fidm"], made()["score"]
    assert clone(fused).source is not fused.source
    assert clone(table).source is table.source
    assert fused.fresh_source() is not fused.source
    assert table.fresh_source() is table.source
    assert clone(fused).keep == fused.keep
    assert clone(fused).kind == "fidm"


# ---------------------------------------------------------------------- what cannot be made


def test_a_missing_column_is_named():
    task, cohort, _ = setting()
    for name, column in (
        ("score", "score_total"),
        ("score+subscores", "score_total"),
        ("demographics", "sex"),
    ):
        with pytest.raises(fidm.DataError, match=f"no column '{column}'"):
            make_blocks([name], [task], without(cohort, column))
    with pytest.raises(fidm.DataError, match="no columns score_…"):
        make_blocks(["score+subscores"], [task], without(cohort, "score_route", "score_time"))
    other = make_blocks(["score"], [task], cohort, score="age_years")["score"]
    assert other.get_feature_names_out().tolist() == ["age_years"]
    other = make_blocks(["score+subscores"], [task], cohort, subscores=["age_years"])["score+subscores"]
    assert other.get_feature_names_out().tolist() == ["score_total", "age_years"]


def test_a_channel_that_cannot_be_learned_is_left_out_and_named():
    task, cohort, _ = setting()
    segments = cohort.segments.drop("n_turns").with_columns(pause_s=pl.lit(0.0))
    found = make_blocks(["action", "effort", "fidm"], [task], with_segments(cohort, segments))
    assert found["effort"].fit(cohort).get_feature_names_out().tolist() == ["duration", "characters"]
    assert [note.split(" ")[0] for note in found["fidm"].notes] == ["turns", "pause"]
    assert "no column n_turns" in found["fidm"].notes[0]
    assert found["action"].notes == ()


def test_without_segments_there_is_no_effort():
    task, cohort, _ = setting()
    silent = with_segments(
        cohort, cohort.segments[:0].select("segment", "n_moves"), np.zeros(cohort.n_episodes + 1, np.int64)
    )
    assert make_blocks(["action"], [task], silent)["action"].fit(silent).transform(silent).shape == (60, 1)
    for name in ("effort", "fidm", "action+effort"):
        with pytest.raises(fidm.DataError, match="no effort features"):
            make_blocks([name], [task], silent)


def test_too_few_people_to_learn_from():
    task, cohort, _ = setting()
    with pytest.raises(fidm.FitError, match="how people differ"):
        make_blocks(["fidm"], [task], cohort[:1])


def test_language_needs_what_was_said():
    task, cohort, _ = setting()
    for language in (None, Language({})):
        with pytest.raises(fidm.DataError, match="bert needs"):
            make_blocks(["bert+fidm"], [task], cohort, language=language)


def test_language_blocks_are_made_without_loading_an_encoder():
    task, cohort, _ = setting()
    said = dict.fromkeys(cohort.ids, ("唔該",))
    language = Language(said, {"tiny": "no/such-encoder"}, batch_size=3)
    found = make_blocks(["tiny+score"], [task], cohort, language=language)
    assert found["tiny"].is_language
    assert not found["tiny"].learns
    assert found["tiny"].source.model == "no/such-encoder"
    assert found["tiny"].source.batch_size == 3


# ---------------------------------------------------------------------- one's own


class Halves(TransformerMixin, BaseEstimator):
    """Whether somebody's number is even: a transformer somebody else might write."""

    def __init__(self, gives=None):
        self.gives = gives

    def fit(self, X, y=None):  # noqa: N803
        return self

    def transform(self, X):  # noqa: N803
        return np.arange(len(X)) % 2 if self.gives is None else self.gives


def test_a_transformer_of_ones_own():
    task, cohort, slow = setting()
    blocks = make_blocks(["halves+score"], [task], cohort, own={"halves": Halves()})
    assert blocks["halves"].learns  # unless it says otherwise
    assert blocks["halves"].kind == "own"
    assert blocks["halves"].fit(cohort).transform(cohort).shape == (60, 1)
    pipeline = make_pipeline(representation("halves+score", blocks), classifier())
    assert np.isfinite(cross_val_score(pipeline, cohort, slow, cv=3, scoring="roc_auc")).all()


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        (np.zeros((3, 2)), r"halves gives numbers of the shape \(3, 2\) for 60 people"),
        (np.zeros((60, 0)), "halves has no features"),
        (np.full((60, 1), np.inf), "halves gives infinite or absurdly large values"),
        (np.full((60, 1), "a"), "halves gives something other than numbers"),
    ],
)
def test_what_a_transformer_may_not_give(gives, message):
    _, cohort, _ = setting()
    with pytest.raises(fidm.DataError, match=message):
        Block("halves", Halves(gives)).fit(cohort).transform(cohort)


# ---------------------------------------------------------------------- joined


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("score", "fusion"),
        ("fidm", "fusion"),
        ("score+trajectory", "language"),
        ("score+demographics", "never"),
        ("score+subscores+trajectory+effort", "fusion"),
    ],
)
def test_the_fast_way_is_that_of_the_pipeline(name, how):
    _, cohort, slow = setting()
    train, test = cohort[:40], cohort[40:]
    pipeline = make_pipeline(representation(name, made(), scale_blocks=how), classifier())
    pipeline.fit(train, slow[:40])
    parts = [clone(made()[block]).fit(train) for block in blocks_of(name, made())]
    scaled = is_scaled(parts, how)
    assert scaled == (how == "fusion" and len(parts) > 1)
    learned = [part.transform(train) for part in parts]
    found = Preparation.learn(learned, scaled=scaled)
    x = found.apply([part.transform(test) for part in parts])
    np.testing.assert_allclose(x, pipeline[:-1].transform(test), atol=1e-10, rtol=0)
    fast = classifier().fit(found.apply(learned), slow[:40]).decision_function(x)
    np.testing.assert_allclose(fast, pipeline.decision_function(test), atol=1e-6, rtol=0)
    assert len(pipeline[:-1].get_feature_names_out()) == x.shape[1]


def test_when_blocks_are_scaled():
    plain, said = Block("a", None), Block("b", None, kind="language")
    assert not is_scaled([said])
    assert not is_scaled([said], "language")
    assert is_scaled([plain, plain])
    assert not is_scaled([plain, plain], "language")
    assert is_scaled([plain, said], "language")
    assert not is_scaled([plain, said], "never")
    with pytest.raises(fidm.DataError, match="scale_blocks"):
        is_scaled([plain, said], "always")


def test_cross_validation_tells_slow_people_from_others():
    _, cohort, slow = setting()
    pipeline = make_pipeline(representation("score+effort", made()), classifier())
    areas = cross_val_score(pipeline, cohort, slow, cv=StratifiedKFold(3), scoring="roc_auc")
    assert areas.mean() > 0.8


def test_nothing_is_learned_from_those_who_are_judged():
    """Changing the people of the test fold beyond recognition changes nothing for the others."""
    _, cohort, slow = setting()
    first = int(cohort.segment_offsets[cohort.episode_offsets[40]])
    spoilt = cohort.segments.with_row_index("row").with_columns(
        duration_s=pl.when(pl.col("row") >= first).then(pl.col("duration_s") * 1e3).otherwise("duration_s")
    )
    changed = with_segments(cohort, spoilt.drop("row"))
    table = changed.participants.with_columns(
        score_total=pl.Series([*cohort.participants["score_total"][:40], *[1e6] * 20], dtype=pl.Float64)
    )
    changed = changed.with_participants(table)
    pipeline = make_pipeline(representation("score+fidm", made()), classifier())
    learned = [clone(pipeline).fit(people[:40], slow[:40]) for people in (cohort, changed)]
    assert np.array_equal(learned[0][-1].coef_, learned[1][-1].coef_)
    assert not np.array_equal(
        learned[0].decision_function(cohort[40:]), learned[1].decision_function(changed[40:])
    )


def test_effort_may_have_channels_of_its_own():
    task, cohort, _ = setting()
    channel = fidm.channels.LogNormal("tempo", "duration_s", design=("log_moves",))
    found = make_blocks(["effort", "fidm"], [task], cohort, channels=[channel])
    assert found["effort"].fit(cohort).get_feature_names_out().tolist() == ["tempo"]
    assert found["fidm"].fit(cohort).transform(cohort).shape == (60, 2)
