"""The protocol of classification: who learns, who is judged, what is compared, and what is refused."""

from __future__ import annotations

import functools
import threading
import zlib

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

import fidm
import fidm.study
from fidm.classify import validation as leakage
from fidm.classify.features import Block, make_blocks, representation
from fidm.classify.question import ask, cut
from fidm.experiments import paper
from fidm.experiments.shared import classifier
from fidm.record import write_result

CLASSES = ("normal", "mci", "major")


@functools.cache
def setting(n: int = 90):
    """People of three classes whose duration rises from class to class, a third of them held out."""
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, n, seed=3)
    rng = np.random.default_rng(7)
    slow = people.participants["true_duration"].to_numpy() + 0.5 * rng.standard_normal(n)
    label = np.digitize(slow, np.quantile(slow, (0.5, 0.8)))
    score = 20 - 2 * label + rng.standard_normal(n)
    table = people.participants.with_columns(
        split=pl.Series(["test" if j % 3 == 2 else "train" for j in range(n)]),
        diagnosis=pl.Series([CLASSES[k] for k in label]),
        score_total=pl.Series(score),
        score_a=pl.Series(rng.standard_normal(n)),
        age_years=pl.Series(rng.integers(60, 90, n)),
        sex=pl.Series(rng.choice(["female", "male"], n)),
    )
    return task, people.with_participants(table)


def with_column(cohort, **columns):
    return cohort.with_participants(cohort.participants.with_columns(**columns))


def quick(**options):
    task, cohort = setting()
    chosen = {
        "representations": ["score", "trajectory", "score+trajectory"],
        "repeats": 1,
        "permutations": 0,
        **options,
    }
    return fidm.study.classify(task, chosen.pop("cohort", cohort), **chosen)


@functools.cache
def found():
    return quick(representations=["score", "effort", "score+effort"], repeats=2, permutations=20)


class Spy(TransformerMixin, BaseEstimator):
    """Gives a random number, and remembers whom it learned from and whom it was asked about."""

    log: list[tuple[frozenset, frozenset]] = []  # noqa: RUF012

    def fit(self, X, y=None):  # noqa: N803
        assert y is None, "a source of features must not see a status"
        assert "diagnosis" not in X.participants.columns
        assert "age_years" in X.participants.columns
        self.seen_ = frozenset(X.ids)
        return self

    def transform(self, X):  # noqa: N803
        Spy.log.append((self.seen_, frozenset(X.ids)))
        return np.array([[zlib.crc32(name.encode()) % 97] for name in X.ids], dtype=float)


class Memory(TransformerMixin, BaseEstimator):
    """Knows everybody's status, and tells it of those it has learned from."""

    def __init__(self, status):
        self.status = status

    def fit(self, X, y=None):  # noqa: N803
        self.seen_ = set(X.ids)
        return self

    def transform(self, X):  # noqa: N803
        rng = np.random.default_rng([ord(c) for c in X.ids[0]])
        return np.array(
            [[self.status[name] if name in self.seen_ else rng.standard_normal()] for name in X.ids],
            dtype=float,
        )

    def __sklearn_clone__(self):
        return Memory(self.status)


# ---------------------------------------------------------------------- nobody crosses


def test_a_source_of_several_blocks_is_asked_once():
    _, cohort = setting()
    people = cohort.with_participants(cohort.participants.drop("diagnosis"))
    spy, before = Spy(), len(Spy.log)
    blocks = {name: Block(name, spy) for name in ("a", "b")}
    judge = leakage.Judge(people, np.zeros(len(people), np.int64), 2, blocks, {"a": ("a",), "b": ("b",)})
    features = judge.features(np.arange(60), np.arange(60, 90))
    assert len(Spy.log) == before + 1
    assert features["a"].names == ("a_1",)
    assert np.array_equal(features["a"].matrix, features["b"].matrix)


def test_nobody_is_judged_by_somebody_who_saw_them():
    task, cohort = setting()
    Spy.log.clear()
    fidm.study.classify(task, cohort, representations=["spy"], own={"spy": Spy()}, repeats=2, permutations=0)
    train = set(cohort.split("train").ids)
    held = set(cohort.ids) - train
    assert len(Spy.log) == 2 * 5 + 1
    judged = []
    for seen, asked in Spy.log[:-1]:
        assert seen <= train
        assert asked <= train, "the held-out part takes no part in cross-validation"
        judged.append(asked - seen)
        assert asked - seen
    for repeat in (judged[:5], judged[5:]):
        assert sorted(name for fold in repeat for name in fold) == sorted(train), "everybody once"
    seen, asked = Spy.log[-1]
    assert seen == train
    assert asked - seen == held


def test_what_is_remembered_of_the_learners_does_not_help():
    task, cohort = setting()
    status = {
        name: float(label != "normal")
        for name, label in cohort.participants.select("participant", "diagnosis").rows()
    }
    result = fidm.study.classify(
        task, cohort, representations=["memory"], own={"memory": Memory(status)}, repeats=2, permutations=0
    )
    assert result.score("memory")["value"] < 0.7
    assert result.score("memory", part="held-out")["value"] < 0.8
    leaky = Memory(status).fit(cohort).transform(cohort)[:, 0]
    ill = np.array([status[name] for name in cohort.ids])
    assert roc_auc_score(ill, leaky) == 1.0, "had it been refitted on everybody, it would know"


def test_those_who_belong_together_stay_together():
    _, cohort = setting()
    train = cohort.split("train")
    family = pl.Series([f"F{j // 2}" for j in range(len(train))])
    question = ask(with_column(train, family=family), together="family")
    fold = cut(question, question.train, question.label[question.train], 5, 1)
    for name in family.unique():
        assert len(set(fold[(family == name).to_numpy()])) == 1
    result = quick(
        cohort=with_column(
            cohort, family=pl.Series([f"F{j // 3}" if j % 3 < 2 else f"G{j}" for j in range(90)])
        ),
        together="family",
        repeats=1,
    )
    assert result.record.settings["together"] == "family"


def test_a_family_in_both_parts_is_refused():
    _, cohort = setting()
    with pytest.raises(fidm.DataError, match=r"30 value\(s\) of 'family'"):
        quick(
            cohort=with_column(cohort, family=pl.Series([f"F{j // 3}" for j in range(90)])), together="family"
        )


def test_learning_from_the_judged_is_refused():
    _, cohort = setting()
    judge = leakage.Judge(cohort, np.zeros(90, dtype=np.int64), 2, {}, {})
    with pytest.raises(fidm.DataError, match="learned from and"):
        judge.predict(np.arange(10), np.arange(9, 20))


# ---------------------------------------------------------------------- the same as scikit-learn's own


@functools.cache
def learned(name, fold):
    """Features by scikit-learn's own pipeline, learned from all folds but one: those of the others, and its own."""
    task, cohort = setting()
    train = cohort.split("train")
    features = representation(name, make_blocks([name], [task], train))
    others, own = (train[rows] for rows in folds()[fold])
    return features.fit_transform(others), features.transform(own)


@functools.cache
def folds():
    diagnosis = setting()[1].split("train").participants["diagnosis"].to_numpy()
    return list(StratifiedKFold(5, shuffle=True, random_state=1).split(diagnosis, diagnosis))


@pytest.mark.parametrize("name", ["score", "effort", "score+effort"])
@pytest.mark.parametrize("setting_name", ["binary", "multiclass"])
def test_the_first_repetition_is_scikit_learns_cross_validation(name, setting_name):
    train = setting()[1].split("train")
    order = {one: number for number, one in enumerate(("normal", "mci", "major"))}
    label = np.array([order[one] for one in train.participants["diagnosis"]])
    y = label > 0 if setting_name == "binary" else label
    areas, right = [], []
    for fold, (others, rows) in enumerate(folds()):
        features, judged = learned(name, fold)
        given = classifier().fit(features, y[others]).predict_proba(judged)
        if setting_name == "binary":
            areas.append(roc_auc_score(y[rows], given[:, 1]))
        else:
            areas.append(roc_auc_score(y[rows], given, multi_class="ovr", average="macro"))
        right.append(balanced_accuracy_score(y[rows], given.argmax(axis=1)))
    said = found().score(name, setting=setting_name)
    assert said["first_repeat"] == pytest.approx(np.mean(areas), abs=1e-6)
    said = found().score(name, setting=setting_name, metric="balanced_accuracy")
    assert said["first_repeat"] == pytest.approx(np.mean(right), abs=1e-12)


def test_the_held_out_part_is_judged_by_the_whole_training_part():
    task, cohort = setting()
    train, held = cohort.split("train"), cohort.split("test")
    blocks = make_blocks(["score+effort"], [task], train)
    pipeline = make_pipeline(representation("score+effort", blocks), classifier())
    ill = (train.participants["diagnosis"] != "normal").to_numpy()
    given = pipeline.fit(train, ill).predict_proba(held)[:, 1]
    truth = (held.participants["diagnosis"] != "normal").to_numpy()
    assert found().score("score+effort", part="held-out")["value"] == roc_auc_score(truth, given)
    said = found().predictions.filter(part="held-out", setting="binary", representation="score+effort")
    assert said["participant"].to_list() == held.ids.to_list()
    assert said["probability"].to_numpy() == pytest.approx(given, abs=1e-6)


# ---------------------------------------------------------------------- the result


def test_scores_have_intervals_and_repetitions():
    scores = found().scores
    assert scores.height == 3 * 2 * 2 * 2
    assert (scores["low"] < scores["value"]).all()
    assert (scores["value"] < scores["high"]).all()
    cv = scores.filter(part="cv")
    assert cv["sd_repeats"].null_count() == 0
    assert scores.filter(part="held-out")["sd_repeats"].null_count() == 12
    assert set(cv["n"]) == {60}
    assert dict(scores.select("representation", "n_features").unique().iter_rows()) == {
        "score": 1,
        "effort": 4,
        "score+effort": 5,
    }
    assert set(scores.filter(representation="score+effort")["kind"]) == {"fusion"}


def test_papers_figures_stand_beside():
    for row in found().scores.iter_rows(named=True):
        keys = (row["representation"], row["setting"], row["part"], row["metric"])
        assert row["paper"] == paper.classification(*keys)
    assert found().score("score")["paper"] == 0.6209


def test_differences_are_those_of_the_scores():
    rows = found().differences
    assert set(rows.select("representation", "against").unique().rows()) == {
        ("score+effort", "score"),
        ("score+effort", "effort"),
    }
    for row in rows.iter_rows(named=True):
        keys = {name: row[name] for name in ("setting", "part", "metric")}
        one, other = (found().score(row[name], **keys)["value"] for name in ("representation", "against"))
        assert row["value"] == pytest.approx(one - other, abs=1e-12)
        if row["low"] is not None:  # classes of fewer than ten people have no interval
            assert row["low"] < row["value"] < row["high"]
    assert rows.filter(setting="binary")["low"].is_not_null().all()


def test_every_fusion_is_compared_with_each_of_its_parts_and_what_is_left_without_one():
    result = quick(
        representations=[
            "score",
            "score+subscores",
            "trajectory",
            "score+trajectory+effort",
            "trajectory+effort",
        ]
    )
    pairs = set(result.differences.select("representation", "against").unique().rows())
    assert pairs == {
        ("score+trajectory+effort", "score"),
        ("score+trajectory+effort", "trajectory"),
        ("score+trajectory+effort", "trajectory+effort"),
        ("trajectory+effort", "trajectory"),
    }


def test_everybody_is_predicted_once_by_every_representation():
    said = found().predictions
    assert said.filter(setting="binary").height == 90 * 3
    assert said.filter(setting="multiclass").height == 90 * 3 * 3
    total = (
        said.filter(setting="multiclass")
        .group_by("participant", "representation")
        .agg(pl.col("probability").sum())
    )
    assert total["probability"].to_numpy() == pytest.approx(1)


def test_missing_scores_are_counted_and_imputed():
    _, cohort = setting()
    gaps = cohort.participants["score_total"].to_list()
    gaps[0] = gaps[2] = None
    result = quick(
        cohort=with_column(cohort, score_total=pl.Series(gaps)), representations=["score"], repeats=1
    )
    assert result.missing.rows() == [
        ("score", "score_total", "train", 60, 1),
        ("score", "score_total", "held-out", 30, 1),
    ]
    assert result.predictions["probability"].null_count() == 0


def test_the_weights_give_the_predictions():
    _, cohort = setting()
    weights = dict(
        found()
        .coefficients.filter(setting="binary", representation="score")
        .select("feature", "coefficient")
        .rows()
    )
    train = cohort.split("train").participants["score_total"].to_numpy()
    held = cohort.split("test").participants["score_total"].to_numpy()
    logit = weights["(intercept)"] + weights["score_total"] * (held - train.mean()) / train.std()
    said = found().predictions.filter(part="held-out", setting="binary", representation="score")[
        "probability"
    ]
    assert said.to_numpy() == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-9)


def test_groups_thresholds_and_curves_are_of_the_same_people():
    result = found()
    assert set(result.groups["column"]) == {"age_years", "sex"}
    one = result.groups.filter(part="cv", representation="score", column="sex", metric="auc")
    assert one["n"].sum() == 60
    counted = result.thresholds.filter(part="held-out", representation="score").row(0, named=True)
    assert sum(counted[f"{a}_{b}"] for a in ("true", "false") for b in ("positive", "negative")) == 30
    curve = result.roc.filter(part="held-out", representation="score").sort(
        "false_positive_rate", "sensitivity"
    )
    area = np.trapezoid(curve["sensitivity"].to_numpy(), curve["false_positive_rate"].to_numpy())
    assert area == pytest.approx(result.score("score", part="held-out")["value"], abs=1e-12)
    assert result.calibration.filter(part="cv", representation="score")["n"].sum() == 60


def test_it_is_the_same_again_and_in_several_processes(tmp_path):
    lock, told = threading.Lock(), []

    def tell(doing, done, of):  # holds what cannot be copied to another process
        with lock:
            told.append(doing)

    again = quick(
        representations=["score", "effort", "score+effort"],
        repeats=2,
        permutations=20,
        workers=2,
        on_progress=tell,
    )
    assert "cross-validation" in told
    for name, table in found().tables.items():
        assert table.equals(again.tables[name]), name
    assert again.record == found().record
    assert not quick(seed=2).scores.equals(quick().scores)
    names = [path.name for path in write_result(again, tmp_path)]
    assert names[:2] == ["classify.json", "classify.csv"]
    assert "classify-calibration-summary.csv" in names


def test_what_is_recorded_names_people_nowhere_but_in_the_predictions():
    text = str(found().to_dict()) + repr(found())
    _, cohort = setting()
    assert not any(name in text for name in cohort.ids)


# ---------------------------------------------------------------------- checks


def test_scrambled_labels_tell_nothing_and_true_ones_do():
    rows = {row["representation"]: row for row in found().checks.filter(check="scrambled labels").to_dicts()}
    assert set(rows) == {"score", "effort"}
    for row in rows.values():
        assert row["low"] < 0.5 < row["high"]
        assert row["passed"]
        assert row["observed"] > 0.6
        assert row["p"] < 0.15, "three in 21 at most: of 20 scrambles, one or two may do as well by luck"
    assert rows["score"]["p"] == pytest.approx(1 / 21), "no scramble does as well as the score"


def test_scrambled_labels_find_a_score_that_cannot_fall_below_one_half(monkeypatch):
    def flattering(score, positive):
        area = auc(score, positive)
        return area if area.value >= 0.5 else auc(-np.asarray(score), positive)

    auc = leakage.auc
    monkeypatch.setattr(leakage, "auc", flattering)
    checks = quick(representations=["score"], repeats=1, permutations=40).checks
    assert checks.filter(check="scrambled labels")["passed"].to_list() == [False]


def test_the_number_of_the_fold_does_not_help():
    row = found().checks.filter(check="fold number").row(0, named=True)
    assert row["passed"]
    assert abs(row["value"]) < 0.01


def test_the_number_of_the_fold_finds_a_classifier_that_saw_those_it_judges(monkeypatch):
    honest = leakage.Judge.judge

    def leaky(self, x, label, rows):
        n = len(label)
        everybody = np.concatenate([label, self.label[rows]])
        return honest(self, np.concatenate([x, x[n:]]), everybody, rows)

    monkeypatch.setattr(leakage.Judge, "judge", leaky)
    task, cohort = setting(240)
    options = {"representations": ["spy"], "own": {"spy": Spy()}, "repeats": 1, "permutations": 0}
    row = fidm.study.classify(task, cohort, **options).checks.row(0, named=True)
    assert not row["passed"]
    assert row["value"] > 0.2


# ---------------------------------------------------------------------- what can and cannot be run


def test_what_cannot_be_run_is_said_where_everything_is_asked_for():
    _, cohort = setting()
    bare = cohort.with_participants(cohort.participants.drop("score_a", "score_total"))
    result = quick(cohort=bare, representations=None, repeats=1)
    assert "score_total" in result.not_run["score"]
    assert "score_total" in result.not_run["score+subscores+fidm"]
    assert "no dialogs" in result.not_run["bert"]
    assert set(result.representations) == {"trajectory", "action", "effort", "fidm", "trajectory+fidm"}


def test_what_cannot_be_run_is_an_error_where_it_is_asked_for():
    _, cohort = setting()
    bare = cohort.with_participants(cohort.participants.drop("score_a", "score_total"))
    with pytest.raises(fidm.DataError, match="no column 'score_total'"):
        quick(cohort=bare)
    with pytest.raises(fidm.DataError, match="bert needs"):
        quick(representations=["bert"])


def test_without_segments_there_is_still_the_action_factor():
    _, cohort = setting()
    silent = fidm.Cohort.from_traces(
        [trace for name in cohort.ids for trace in cohort.traces(name)], participants=cohort.participants
    )
    result = quick(cohort=silent, representations=None, repeats=1)
    assert "action" in result.representations
    assert "fidm" not in result.representations
    assert "effort" in result.not_run


def test_without_a_split_everybody_is_cross_validated():
    _, cohort = setting()
    result = quick(cohort=cohort.with_participants(cohort.participants.drop("split")), repeats=1)
    assert result.parts == ("cv",)
    assert result.flow.n("train") == 90
    assert set(result.coefficients["representation"]) == {"score", "trajectory", "score+trajectory"}


def test_people_without_a_status_or_a_part_are_left_out_and_counted():
    _, cohort = setting()
    table = cohort.participants
    result = quick(
        cohort=with_column(
            cohort,
            diagnosis=pl.Series([None, " ", *table["diagnosis"][2:]]),
            split=pl.Series([*table["split"][:3], None, *table["split"][4:]]),
        ),
        repeats=1,
    )
    assert (result.flow.without_label, result.flow.without_part) == (2, 1)
    assert result.flow.n("train") == 57


def test_a_class_that_is_too_small_leaves_the_binary_question():
    _, cohort = setting()
    rare = pl.Series(["major" if j in (0, 3, 6) else "mci" if j % 2 else "normal" for j in range(90)])
    result = quick(cohort=with_column(cohort, diagnosis=rare), repeats=1)
    assert result.settings == ("binary",)
    assert "'major' has 3 people" in result.notes[0]


def test_a_class_that_is_not_held_out_leaves_the_binary_question_there():
    _, cohort = setting()
    label = [("major" if j % 3 == 0 else "mci") if j % 2 else "normal" for j in range(90)]
    label = ["mci" if one == "major" and j % 3 == 2 else one for j, one in enumerate(label)]
    result = quick(cohort=with_column(cohort, diagnosis=pl.Series(label)), repeats=1)
    assert set(result.scores.filter(part="held-out")["setting"]) == {"binary"}
    assert any("is 'major'" in note for note in result.notes)


def test_two_classes_have_one_question():
    _, cohort = setting()
    two = cohort.participants["diagnosis"].replace("major", "mci")
    result = quick(cohort=with_column(cohort, diagnosis=two), repeats=1)
    assert result.settings == ("binary",)
    assert not result.notes


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["normal"] * 90, {}, "one class only"),
        ([None] * 90, {}, "no value at all"),
        (["normal", "Normal", "mci"] * 30, {}, "both 'Normal' and 'normal'|both 'normal' and 'Normal'"),
        ([f"c{j}" for j in range(90)], {}, "90 different values"),
        (["a", "b"] * 45, {}, "Nobody's diagnosis is 'normal'.*'a', 'b'.*one of them: normal"),
        (
            ["mci", "mci", "mci", "mci", *["normal"] * 86],
            {},
            "are any class but 'normal'; 5 folds need at least 5",
        ),
        (["normal", "mci"] * 45, {"label": "status"}, "no column 'status'.*status: label"),
        (["normal", "mci"] * 45, {"folds": 1}, "folds is 1; a whole number of 2 or more"),
        (["normal", "mci"] * 45, {"folds": 40}, "fewer folds"),
        (["normal", "mci"] * 45, {"together": "family"}, "no column 'family'"),
        (["normal", "mci"] * 45, {"repeats": 0}, "repeats is 0; a whole number of 1 or more"),
        (["normal", "mci"] * 45, {"representations": []}, "No representation is named"),
        (["normal", "mci"] * 45, {"representations": ["nonsense"]}, "no representation 'nonsense'"),
        (["normal", "mci"] * 45, {"by": ["height"]}, "height"),
        (["normal", "mci"] * 45, {"seed": 2**32}, "seed is 4294967296"),
        (["normal", "mci"] * 45, {"seed": 1.5}, "seed is 1.5; a whole number"),
        (["normal", "mci"] * 45, {"representations": "score"}, "a list of names is needed"),
        (
            ["normal", "mci"] * 45,
            {"representations": ["x y"], "own": {"x y": Spy()}},
            "cannot be called 'x y'",
        ),
        (["normal", "mci"] * 45, {"representations": ["spy"], "own": {"spy": Spy}}, "spy is a class"),
    ],
)
def test_bad_questions_are_refused_in_words(labels, options, message):
    _, cohort = setting()
    with pytest.raises(fidm.DataError, match=message):
        quick(cohort=with_column(cohort, diagnosis=pl.Series(labels, dtype=pl.String)), **options)


def test_other_words_for_healthy():
    _, cohort = setting()
    other = cohort.participants["diagnosis"].replace("normal", "control")
    result = quick(cohort=with_column(cohort, diagnosis=other), normal="control", repeats=2)
    assert result.classes[0] == "control"
    assert result.score("score")["value"] == pytest.approx(found().score("score")["value"], abs=1e-12)


# ---------------------------------------------------------------------- words as people write them


def test_blanks_around_words_do_not_change_who_is_where():
    _, cohort = setting()
    table = cohort.participants
    untidy = with_column(
        cohort,
        diagnosis=table["diagnosis"] + pl.Series(["", " "] * 45),
        split=pl.Series([" ", ""] * 45) + table["split"],
    )
    assert quick(cohort=untidy).scores.equals(quick().scores)


def test_a_blank_part_is_none():
    _, cohort = setting()
    blank = pl.Series([" ", "", *cohort.participants["split"][2:]])
    assert quick(cohort=with_column(cohort, split=blank)).flow.without_part == 2


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("split", ["train", "Train", "test"] * 30, "both 'Train' and 'train'"),
        ("split", [1, 2, 3] * 30, "Nobody's split is 'train'.*'1', '2', '3'.*drop the column"),
        ("split", [[1]] * 90, "holds List"),
        ("diagnosis", [[1]] * 90, "holds List"),
        ("score_total", [1e300, *range(89)], "absurdly large"),
    ],
)
def test_odd_columns_are_refused_in_words(column, values, message):
    _, cohort = setting()
    with pytest.raises(fidm.DataError, match=message):
        quick(cohort=with_column(cohort, **{column: pl.Series(values)}))


@pytest.mark.parametrize("nothing", [None, "", " ", float("nan")])
def test_who_belongs_to_nobody_is_alone(nothing):
    _, cohort = setting()
    family = pl.Series([nothing] * 90, dtype=pl.Float64 if isinstance(nothing, float) else pl.String)
    question = ask(with_column(cohort, family=family), together="family")
    assert len(set(question.together)) == 90


def test_one_representation_has_one_name():
    result = quick(representations=["score", "trajectory + score", "Score+trajectory", "SCORE"])
    assert result.representations == ("score", "score+trajectory")
    assert set(result.differences["against"]) == {"score"}


def test_where_some_belong_together_a_scramble_has_no_p():
    _, cohort = setting()
    twins = pl.Series(
        [f"{cohort.participants['diagnosis'][j]}{cohort.participants['split'][j]}{j // 9}" for j in range(90)]
    )
    alone = quick(permutations=3)
    together = quick(cohort=with_column(cohort, twins=twins), together="twins", folds=2, permutations=3)
    assert together.checks.filter(check="scrambled labels")["p"].null_count() == 2
    assert alone.checks.filter(check="scrambled labels")["p"].null_count() == 0


# ---------------------------------------------------------------------- the paper's question, and others


def test_the_papers_figures_are_of_the_papers_question():
    _, cohort = setting()
    other = quick(cohort=with_column(cohort, status=cohort.participants["diagnosis"]), label="status")
    assert other.scores["paper"].null_count() == other.scores.height
    four = cohort.participants["diagnosis"].to_list()
    for j in range(0, 60, 3):
        four[j] = "other"
    several = quick(cohort=with_column(cohort, diagnosis=pl.Series(four)), representations=["score"])
    assert several.scores.filter(setting="binary")["paper"].null_count() == 0
    assert (
        several.scores.filter(setting="multiclass")["paper"].null_count()
        == several.scores.filter(setting="multiclass").height
    )


def test_a_class_of_two_has_no_interval():
    _, cohort = setting()
    label = cohort.participants["diagnosis"].to_list()
    rare = [j for j in range(90) if j % 3 == 2 and label[j] == "major"]
    for j in rare[2:]:
        label[j] = "mci"
    result = quick(cohort=with_column(cohort, diagnosis=pl.Series(label)))
    few = result.scores.filter(setting="multiclass", part="held-out")
    assert few["value"].null_count() == 0
    assert few["low"].null_count() == few["se"].null_count() == few.height
    assert result.differences.filter(setting="multiclass", part="held-out")["p"].null_count() == 4
    assert any("2 are 'major' (held-out part): too few people for intervals" in note for note in result.notes)


def test_own_transformers_may_be_plain_objects():
    class Plain:
        def fit(self, people, y=None):
            self.mean = float(len(people))

        def transform(self, people):
            return people.participants["score_a"].to_numpy() - self.mean

    task, cohort = setting()
    result = fidm.study.classify(
        task, cohort, representations=["plain"], own={"plain": Plain()}, repeats=1, permutations=0
    )
    assert result.score("plain")["n_features"] == 1


def test_effort_can_be_that_of_other_channels():
    channel = fidm.channels.LogNormal("tempo", "duration_s", design=("log_moves",))
    found = quick(representations=["effort"], channels=[channel], folds=2)
    assert found.scores["n_features"].unique().to_list() == [1]
    assert found.record.settings["channels"][0]["name"] == "tempo"
    assert "channels" not in quick(representations=["score"]).record.settings


# ---------------------------------------------------------------------- small and messy studies


def empty_people(like, n):
    """People with a status and a score of whom nothing was observed."""
    table = like.participants[:n].with_columns(participant=pl.Series([f"empty{j}" for j in range(n)]))
    nothing = np.zeros(0, dtype=np.int32)
    return fidm.Cohort(
        participants=table, episodes=like.episodes[:0], episode_offsets=np.zeros(n + 1, dtype=np.int64),
        step_offsets=np.zeros(1, dtype=np.int64), state=nothing, action=nothing, end_state=nothing,
        segments=like.segments[:0], segment_offsets=np.zeros(1, dtype=np.int64),
    )  # fmt: skip


def test_people_without_data_are_left_out_of_every_representation():
    task, cohort = setting()
    more = fidm.Cohort.concat([cohort, empty_people(cohort, 5)])
    asked = {"representations": ["score", "trajectory"], "repeats": 1, "permutations": 0}
    plain, found = (fidm.study.classify(task, people, **asked) for people in (cohort, more))
    assert found.flow.without_data == found.to_dict()["flow"]["without_data"] == 5
    assert found.flow.classes == plain.flow.classes
    assert found.scores.equals(plain.scores)
    assert not found.predictions["participant"].str.starts_with("empty").any()
    only_scores = fidm.study.classify(task, more, **asked | {"representations": ["score"]})
    assert only_scores.flow.without_data == 0  # nobody lacks anything of what is judged
    assert only_scores.flow.n("train") + only_scores.flow.n("held-out") == 95


def test_too_few_people_with_data_are_refused_with_their_number():
    task, cohort = setting()
    few = fidm.Cohort.concat([cohort[:6], empty_people(cohort, 60)])
    with pytest.raises(fidm.DataError, match="60 left out: no data"):
        fidm.study.classify(task, few, representations=["trajectory"])


def test_a_channel_that_one_fold_cannot_learn_is_left_out_of_all():
    _, cohort = setting()
    owner = np.repeat(cohort.episode_owner(), np.diff(cohort.segment_offsets))
    spared = np.flatnonzero((cohort.participants["split"] == "train").to_numpy())[:5]
    pause = np.where(np.isin(owner, spared), cohort.segments["pause_s"].to_numpy(), 0.0)
    rare = cohort.with_segments(cohort.segment_table().with_columns(pause_s=pl.Series(pause)))
    found = quick(cohort=rare, representations=["effort"])
    assert found.missing["feature"].unique(maintain_order=True).to_list() == [
        "duration",
        "characters",
        "turns",
    ]
    (said,) = [note for note in found.notes if note.startswith("pause is left out")]
    assert "not every training fold" in said
    assert "=" not in said  # no option of Python's, which the command line does not have


def test_a_score_with_a_small_class_has_no_interval_nor_has_a_difference():
    task, cohort = setting()
    ids = cohort.participants.with_row_index()
    rows = [*ids.filter(diagnosis="normal")["index"][:20], *ids.filter(diagnosis="mci")["index"][:9]]
    small = cohort[np.sort(rows)]
    small = small.with_participants(small.participants.drop("split"))
    found = fidm.study.classify(
        task, small, representations=["score", "action", "score+action"], permutations=0
    )
    for table in (found.scores, found.differences):
        assert 0 < table["low"].null_count() == table["se"].null_count() == table.height
    (said,) = [note for note in found.notes if "too few people" in note]
    assert said.startswith(
        "9 in the smaller class (cross-validation): too few people for intervals, and to judge"
    )
