"""Pictures of a classification show every number they are given, in colours that also differ in grey."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from classifications import make_classification, with_tables, without_language
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import fidm
from fidm import plot
from fidm.plot.classification import LOOKS, OTHERS, bar_handles
from fidm.plot.classification import classification_figures as figures
from fidm.plot.save import save_figure
from fidm.present.findings import featured


@pytest.fixture(scope="module")
def found():
    return make_classification()


PARTS_SHOWN = ["cross-validation", "held-out part", "paper (its own people)", "chance"]


def drawn(ax, marker):
    return [line for line in ax.lines if line.get_marker() == marker]


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def lightness(colour):
    return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114)))


def in_grey(figure):
    """The picture as a printer without colour gives it, rows by columns, 0 black to 255 white."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3] @ (0.299, 0.587, 0.114)


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
    assert texts(ax.get_legend()) == PARTS_SHOWN
    assert not ax.texts  # chance is said in the legend, not on the picture


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


def test_the_legend_covers_nothing_and_is_not_covered(found):
    ax = plot.classification_bars(found)
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    legend = ax.get_legend().get_window_extent(canvas.get_renderer())
    assert legend.y0 >= ax.get_window_extent().y1 - 1
    assert legend.x0 >= 0
    assert not legend.overlaps(ax._left_title.get_window_extent())


def test_titles_name_the_classes(found):
    told = [plot.classification_bars(found, setting=one).get_title(loc="left") for one in found.settings]
    assert told == ["normal against mci, major_ncd", "normal, mci, major_ncd apart"]


@pytest.mark.parametrize("settings", [("binary", "multiclass"), ("multiclass", "binary")])
def test_one_legend_serves_several_panels(found, settings):
    figure = Figure(figsize=(10, 6), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    for ax, setting in zip((left, right), settings, strict=True):
        plot.classification_bars(found, setting=setting, metric="balanced_accuracy", legend=False, ax=ax)
        assert ax.get_legend() is None
    legend = figure.legend(handles=bar_handles(found), loc="outside upper right", ncols=4)
    assert texts(legend) == PARTS_SHOWN
    rows = found.scores.filter(metric="balanced_accuracy")
    for ax in (left, right):  # whichever was drawn last, both show everything
        low, high = ax.get_xlim()
        assert low <= rows["low"].min()
        assert high >= rows["high"].max()


def test_the_paper_stands_below_its_line(found):
    ax = plot.classification_bars(found)
    lines = {float(line.get_ydata()[0]) for marker in "os" for line in drawn(ax, marker)}
    for diamond in drawn(ax, "D"):
        assert any(0.1 < float(diamond.get_ydata()[0]) - at < 0.25 for at in lines)
        assert min(abs(float(diamond.get_ydata()[0]) - at) for at in lines) > 0.1
        assert diamond.get_zorder() < drawn(ax, "o")[0].get_zorder()


def test_where_the_paper_says_nothing_it_is_not_mentioned(found):
    silent = with_tables(found, scores=found.scores.with_columns(paper=pl.lit(None, pl.Float64)))
    ax = plot.classification_bars(silent)
    assert not drawn(ax, "D")
    assert texts(ax.get_legend()) == ["cross-validation", "held-out part", "chance"]
    assert [one.get_label() for one in bar_handles(silent)] == ["cross-validation", "held-out part", "chance"]


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_score_without_an_interval_is_still_shown(found, nothing):
    rows = found.scores.with_columns(
        pl.when(representation="score").then(pl.lit(nothing, pl.Float64)).otherwise(pl.col(name)).alias(name)
        for name in ("low", "high")
    )
    ax = plot.classification_bars(with_tables(found, scores=rows))
    n = len(found.representations)
    assert len(drawn(ax, "o")) == n
    whiskers = [one for one in ax.collections if one.get_zorder() == 3]
    assert len(whiskers) == 2 * (n - 1)


def test_no_score_at_all_leaves_the_row_empty(found):
    names = ("value", "low", "high", "paper")
    ax = plot.classification_bars(
        with_tables(found, scores=found.scores.with_columns(pl.lit(None, pl.Float64).alias(n) for n in names))
    )
    assert not drawn(ax, "o")
    assert ax.get_xlim() == pytest.approx((0.48, 0.52))


def test_roc_curves_say_their_area_with_the_interval(found):
    ax = plot.roc_curves(found, part="held-out", representations=["fidm", "score+fidm"])
    row = found.score("fidm", part="held-out")
    told = texts(ax.get_legend())
    assert told[0] == (f"FIDM  {100 * row['value']:.1f} ({100 * row['low']:.1f}–{100 * row['high']:.1f})")
    assert told[1].startswith("score + FIDM")
    assert ax.get_legend().get_title().get_text() == "AUC (%), 95 % interval"
    assert {to_rgb(text.get_color()) for text in ax.get_legend().get_texts()} == {to_rgb("black")}
    curve = ax.lines[1]
    points = found.roc.filter(part="held-out", representation="fidm")
    assert list(curve.get_ydata()) == points["sensitivity"].to_list()
    assert ax.get_title(loc="left") == "held-out part, 68 people"


def test_roc_curves_say_that_they_are_of_one_repetition(found):
    title = "cross-validation, 332 people"
    assert plot.roc_curves(found).get_title(loc="left") == f"{title} (curve: first repetition)"
    once = replace(found.record, settings={**found.record.settings, "repeats": 1})
    assert plot.roc_curves(with_tables(found, record=once)).get_title(loc="left") == title


def test_the_usual_curves_are_chosen_without_looking_at_scores(found):
    assert featured(found, most=5) == ("score", "trajectory", "bert", "fidm", "score+fidm")
    assert featured(found, most=2) == ("fidm", "score+fidm")
    worse = found.scores.with_columns(value=1 - pl.col("value"))
    assert featured(with_tables(found, scores=worse), most=5) == featured(found, most=5)
    told = texts(plot.roc_curves(found).get_legend())
    assert [one.split("  ")[0] for one in told] == ["score", "FIDM", "score + FIDM"]


def test_curves_differ_in_grey_too():
    looks = (*LOOKS.values(), *OTHERS)
    assert len({look.line for look in looks}) == len(looks)
    assert len({(look.marker, look.is_filled) for look in looks}) == len(looks)
    assert max(lightness(look.colour) for look in looks) < 0.7  # visible on white
    usual = sorted(lightness(look.colour) for look in LOOKS.values())
    assert np.diff(usual).min() > 0.15  # of 1, from black to white


def test_each_usual_curve_can_be_found_in_a_grey_picture(found):
    figure = plot.roc_curves(found).figure
    grey = in_grey(figure)
    for look in LOOKS.values():
        close = np.abs(grey - 255 * lightness(look.colour)) < 4
        assert close.sum() > 200


def test_a_representation_looks_the_same_whatever_else_is_drawn(found):
    def looks(names, draw):
        lines = [line for line in draw(found, representations=names).lines if line.get_label()[0] != "_"]
        return {
            name: (
                line.get_color(),
                line._unscaled_dash_pattern,
                line.get_marker(),
                line.get_markerfacecolor(),
            )
            for name, line in zip(names, lines, strict=True)
        }

    names = ["trajectory", "fidm", "score+fidm", "score"]
    for draw in (plot.roc_curves, plot.calibration_curve):
        all_of_them = looks(names, draw)
        assert looks(names[::-1], draw) == all_of_them
        for name in names:
            assert looks([name], draw)[name] == all_of_them[name]
    for i in range(len(found.representations) - 4):  # and no two look the same
        assert len(set(looks(found.representations[i : i + 5], plot.roc_curves).values())) == 5
    others = [name for name in found.representations if name not in LOOKS]
    assert (
        len(set(looks(others[:: len(OTHERS)], plot.roc_curves).values())) == len(others[:: len(OTHERS)]) > 1
    )


def test_calibration_says_slope_and_intercept(found):
    ax = plot.calibration_curve(found, part="cv", representations=["fidm"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["FIDM: slope 0.90, intercept +0.05"]
    bins = found.calibration.filter(part="cv", representation="fidm").sort("predicted")
    assert list(drawn(ax, "o")[0].get_ydata()) == bins["observed"].to_list()
    whiskers = [tuple(path[:, 1]) for path in ax.collections[0].get_segments()]
    assert whiskers == [pytest.approx(pair) for pair in bins.select("low", "high").iter_rows()]
    assert len(ax.child_axes) == 1  # how predictions are spread


def test_calibration_writes_minus_signs(found):
    rows = found.calibration_summary.with_columns(intercept=pl.lit(-0.2), slope=pl.lit(-1.0))
    ax = plot.calibration_curve(with_tables(found, calibration_summary=rows), representations=["score+fidm"])
    assert texts(ax.get_legend()) == ["score + FIDM: slope −1.00, intercept −0.20"]


def test_calibration_of_few_people_is_points_only():
    made = make_classification(("fidm", "score+fidm"), classes={"normal": (30, 34), "mci": (20, 15)})
    for part, line in (("cv", "-"), ("held-out", "None")):  # 50 and 49 people
        assert drawn(plot.calibration_curve(made, part=part), "o")[0].get_linestyle() == line


def test_calibration_counts_its_highest_step(found):
    ax = plot.calibration_curve(found, representations=["fidm"])
    (strip,) = ax.child_axes
    outline = strip.patches[0].get_xy()[:, 1]
    assert [text.get_text() for text in strip.get_yticklabels()] == [f"{outline.max():.0f}"]
    assert strip.get_ylabel() == "people"
    assert ax.get_xlabel() == "predicted probability (at the training part's prevalence)"


def test_the_legend_of_a_calibration_covers_no_point(found):
    ax = plot.calibration_curve(found, representations=["score", "trajectory", "fidm", "score+fidm"])
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    legend = ax.get_legend().get_window_extent(canvas.get_renderer())
    assert legend.y0 >= ax.get_window_extent().y1 - 1
    assert not legend.overlaps(ax._left_title.get_window_extent())


@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        (["slope"], "FIDM: intercept +0.05"),
        (["intercept"], "FIDM: slope 0.90"),
        (["slope", "intercept"], "FIDM"),
    ],
)
def test_calibration_says_what_is_known(found, unknown, said):
    rows = found.calibration_summary.with_columns(pl.lit(None, pl.Float64).alias(name) for name in unknown)
    ax = plot.calibration_curve(with_tables(found, calibration_summary=rows), representations=["fidm"])
    assert texts(ax.get_legend()) == [said]


def test_what_is_not_there_is_refused_in_words(found):
    with pytest.raises(fidm.DataError, match="'age' to draw"):
        plot.roc_curves(found, representations=["fidm", "age"])
    with pytest.raises(fidm.DataError, match="5 curves, and 6"):
        plot.calibration_curve(found, representations=found.representations[:6])
    alone = make_classification(classes={"normal": (30, 8), "mci": (20, 5)}, held_out=False)
    with pytest.raises(fidm.DataError, match=r"'held-out'. .* the parts: cv\.$"):
        plot.roc_curves(alone, part="held-out")
    for draw in (plot.roc_curves, plot.calibration_curve):
        with pytest.raises(fidm.DataError, match=r"There are the parts: cv, held-out\.$"):
            draw(found, part="test")
    with pytest.raises(fidm.DataError, match=r"the setting 'multiclass' .* the settings: binary; and"):
        plot.classification_bars(alone, setting="multiclass")
    with pytest.raises(fidm.DataError, match=r"'x' .* binary, multiclass; .*: auc, balanced_accuracy\.$"):
        plot.classification_bars(found, setting="x")
    with pytest.raises(fidm.DataError, match=r"the metric 'f1' .*: auc, balanced_accuracy\.$"):
        plot.classification_bars(found, metric="f1")


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
