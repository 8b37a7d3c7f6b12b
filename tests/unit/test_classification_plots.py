"""Pictures of a classification show every number they are given, in colours that also differ in grey."""

from __future__ import annotations

import itertools

import polars as pl
import pytest
from classifications import make_classification, with_tables, without_language
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import fidm
from fidm import plot
from fidm.cli.classify import figures
from fidm.cli.pictures import save_figure
from fidm.plot.classification import FIDM, FUSION, OTHERS
from fidm.study.wording import featured


@pytest.fixture(scope="module")
def found():
    return make_classification()


def drawn(ax, marker):
    return [line for line in ax.lines if line.get_marker() == marker]


def test_bars_have_a_row_per_representation_in_groups(found):
    ax = Figure().subplots()
    assert plot.classification_bars(found, ax=ax) is ax
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[:4] == ["clinical baselines", "score (1)", "score + subscores (8)", "behavioural baselines"]
    assert "FIDM (5)" in labels
    assert labels[-1] == "MacBERT + FIDM (773)"
    n = len(found.representations)
    assert len(labels) == n + 6
    shown = sorted(float(line.get_xdata()[0]) for line in drawn(ax, "o"))
    told = found.scores.filter(setting="binary", part="cv", metric="auc")["value"].sort()
    assert shown == pytest.approx(told.to_list())
    assert len(drawn(ax, "s")) == n
    assert len(drawn(ax, "D")) == 2 * n - 2  # the paper is silent about single factors in its held-out part
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "cross-validation",
        "held-out part",
        "paper",
    ]


@pytest.mark.parametrize(
    ("setting", "metric", "chance"),
    [("binary", "auc", 0.5), ("multiclass", "auc", 0.5), ("multiclass", "balanced_accuracy", 1 / 3)],
)
def test_chance_depends_on_what_is_asked(found, setting, metric, chance):
    ax = plot.classification_bars(found, setting=setting, metric=metric)
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert [line.get_xdata()[0] for line in dashed] == pytest.approx([chance])


def test_nothing_shown_lies_outside_the_picture(found):
    for setting, metric in itertools.product(("binary", "multiclass"), ("auc", "balanced_accuracy")):
        ax = plot.classification_bars(found, setting=setting, metric=metric)
        low, high = ax.get_xlim()
        rows = found.scores.filter(setting=setting, metric=metric)
        assert low <= rows["low"].min()
        assert high >= rows["high"].max()


def test_a_score_without_an_interval_is_still_shown(found):
    rows = found.scores.with_columns(
        pl.when(representation="score").then(None).otherwise(pl.col(name)).alias(name)
        for name in ("low", "high")
    )
    ax = plot.classification_bars(with_tables(found, scores=rows))
    assert len(drawn(ax, "o")) == len(found.representations)


def test_roc_curves_say_their_area_with_the_interval(found):
    ax = plot.roc_curves(found, part="held-out", representations=["fidm", "score+fidm"])
    row = found.score("fidm", part="held-out")
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[0] == (f"FIDM  {100 * row['value']:.1f} ({100 * row['low']:.1f}–{100 * row['high']:.1f})")
    assert texts[1].startswith("score + FIDM")
    curve = ax.lines[1]
    points = found.roc.filter(part="held-out", representation="fidm")
    assert list(curve.get_ydata()) == points["sensitivity"].to_list()
    assert ax.get_title(loc="left") == "held-out part, 68 people"


def test_the_usual_curves_are_chosen_without_looking_at_scores(found):
    assert featured(found, most=5) == ("score", "trajectory", "bert", "fidm", "score+fidm")
    assert featured(found, most=2) == ("fidm", "score+fidm")
    worse = found.scores.with_columns(value=1 - pl.col("value"))
    assert featured(with_tables(found, scores=worse), most=5) == featured(found, most=5)
    assert len(plot.roc_curves(found).get_legend().get_texts()) == 5


def test_curves_differ_in_grey_too():
    styles = (FIDM, FUSION, *OTHERS)
    assert len({line for _, line, _ in styles}) == len(styles)
    assert len({marker for _, _, marker in styles}) == len(styles)
    light = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in (to_rgb(colour) for colour, _, _ in styles)]
    assert max(light) < 0.75  # visible on white


def test_calibration_says_slope_and_intercept(found):
    ax = plot.calibration_curve(found, part="cv", representations=["fidm"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["FIDM: slope 0.90, intercept +0.05"]
    bins = found.calibration.filter(part="cv", representation="fidm").sort("predicted")
    assert list(drawn(ax, "o")[0].get_ydata()) == bins["observed"].to_list()
    whiskers = [tuple(path[:, 1]) for path in ax.collections[0].get_segments()]
    assert whiskers == [pytest.approx(pair) for pair in bins.select("low", "high").iter_rows()]
    assert len(ax.child_axes) == 1  # how predictions are spread


def test_calibration_without_a_slope_is_still_drawn(found):
    rows = found.calibration_summary.with_columns(slope=pl.lit(None, pl.Float64))
    ax = plot.calibration_curve(with_tables(found, calibration_summary=rows), representations=["fidm"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["FIDM"]


def test_what_is_not_there_is_refused_in_words(found):
    with pytest.raises(fidm.DataError, match=r"nothing of 'age' to draw in the part 'cv'. There are: score,"):
        plot.roc_curves(found, representations=["fidm", "age"])
    with pytest.raises(fidm.DataError, match="A panel holds 5 curves, and 6 are asked for"):
        plot.calibration_curve(found, representations=found.representations[:6])
    alone = make_classification(classes={"normal": (30, 8), "mci": (20, 5)}, held_out=False)
    with pytest.raises(fidm.DataError, match="nothing to draw in the part 'held-out'"):
        plot.roc_curves(alone, part="held-out")
    with pytest.raises(fidm.DataError, match="no scores of the setting 'multiclass'"):
        plot.classification_bars(alone, setting="multiclass")


@pytest.mark.parametrize(
    "made",
    [
        without_language(),
        make_classification(("effort",), classes={"normal": (30, 8), "mci": (20, 5)}),
        make_classification(("score", "fidm", "score+fidm"), held_out=False),
    ],
    ids=["without language", "one row, two classes", "nobody held out"],
)
def test_every_figure_can_be_written(made, tmp_path):
    for name, figure in figures(made).items():
        save_figure(figure, [tmp_path / f"{name}.png", tmp_path / f"{name}.pdf"])
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
