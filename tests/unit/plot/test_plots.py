"""Figures of people show the numbers they are given, and can be read in grey."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.quiver import Quiver
from mazes import maze

import fidm
from fidm import plot
from fidm.evidence.evidence import find_evidence
from fidm.evidence.localization import localize
from fidm.experiments.recover import LABELS
from fidm.fit.profile import ALIKE, AT_EDGE, NO_MAXIMUM, NO_OBSERVATION
from fidm.plot.evidence import UNCOUNTED, evidence_figure, residual_shade, shade
from fidm.plot.maps import lanes
from fidm.plot.profiles import DOTS, FittedText, _rank_words
from fidm.plot.style import LESS, LOOKS, MORE, lightness
from fidm.plot.talk import ARROWS, NODES, said_along


@pytest.fixture(scope="module")
def task():
    return fidm.load_task("errands")


@pytest.fixture(scope="module")
def cohort(task):
    return fidm.simulate_cohort(task, 14, seed=3)


@pytest.fixture(scope="module")
def profile(task, cohort):
    return fidm.Model(task).fit(cohort).profile(cohort)


@pytest.fixture(scope="module")
def found(task, cohort, profile):
    return find_evidence(fidm.Model(task).fit(cohort), cohort, profile=profile)


def changed(thing, **changes):
    fields = {name: getattr(thing, name) for name in type(thing).__slots__}
    return type(thing)(**{**fields, **changes})


def grey(colours):
    return np.asarray(colours)[:, :3] @ (0.299, 0.587, 0.114)


# ---------------------------------------------------------------------- the way and the words


def test_verbal_output_spreads_each_segment_over_its_steps(cohort):
    who = cohort.ids[1]
    ax = plot.verbal_output(cohort, [who, cohort.ids[2]])
    drawn = [one for one in ax.patches if one.get_fill()]
    assert len(drawn) == 2
    first, last = cohort.step_offsets[1], cohort.step_offsets[2]
    of_step = cohort.segment[first:last]
    amounts = cohort.segments["n_characters"][cohort.segment_offsets[1] : cohort.segment_offsets[2]].to_list()
    heights = drawn[0].get_data().values
    expected = [amounts[s] / (of_step == s).sum() if s >= 0 else np.nan for s in of_step.tolist()]
    np.testing.assert_allclose(heights, expected)
    said = said_along(cohort, who)
    assert said.total == sum(amount for amount in amounts if amount is not None)
    assert np.nansum(heights) + sum(amount for _, amount in said.without) == pytest.approx(said.total)
    label = ax.get_legend().get_texts()[0].get_text()
    assert label == f"{who}: {said.total:,.0f} characters in {len(of_step)} steps"


def test_what_was_said_without_a_step_is_a_pin_after_the_steps_before_it(cohort):
    segment = cohort.segment.copy()
    end = int(cohort.step_offsets[1])
    second = np.flatnonzero(segment[:end] == 1)
    segment[second] = -1
    ax = plot.verbal_output(changed(cohort, segment=segment), cohort.ids[0])
    amount = cohort.segments["n_characters"][1]
    pins = [line for line in ax.lines if line.get_marker() == "o"]
    assert pins[0].get_xdata()[0] == second[0] + 0.5
    assert pins[0].get_ydata()[0] == amount
    assert "pins" in ax.get_title(loc="right")
    assert np.isnan(ax.patches[0].get_data().values[second]).all()


def test_verbal_output_says_what_is_missing(cohort):
    with pytest.raises(fidm.DataError, match="no participant 'P9'"):
        plot.verbal_output(cohort, "P9")
    with pytest.raises(fidm.DataError, match="one of n_characters"):
        plot.verbal_output(cohort, cohort.ids[0], quantity="sighs")
    with pytest.raises(fidm.DataError, match="no episode '7'"):
        plot.verbal_output(cohort, cohort.ids[0], episode="7")
    with pytest.raises(fidm.DataError, match="nobody"):
        plot.verbal_output(cohort, [])
    with pytest.raises(fidm.DataError, match="its segment"):
        plot.verbal_output(changed(cohort, segment=None), cohort.ids[0])
    with pytest.raises(fidm.DataError, match="no column 'pause_s'"):
        silent = changed(cohort, segments=cohort.segments.drop("pause_s"))
        plot.verbal_output(silent, cohort.ids[0], quantity="pause_s")


def test_figure_one_has_ways_and_words(task, cohort):
    figure = plot.figure_one(task, cohort, walkers=cohort.ids[:2].to_list(), speakers=[cohort.ids[3]])
    left, right = figure.axes
    assert len(left.get_legend().get_texts()) == 2
    assert right.get_legend().get_texts()[0].get_text().startswith(cohort.ids[3])
    with pytest.raises(fidm.DataError, match="episode on 'grocery'"):
        plot.figure_one(fidm.load_task("grocery"), cohort, walkers=[cohort.ids[0]])


def test_figure_one_draws_the_same_episode_on_both_sides(task, cohort):
    line = fidm.TaskModel.from_arrays([[1], [-1]], [[-0.1], [0.0]], gamma=0.9, tau=0.1, name="line")
    who = cohort.select(cohort.ids[:1])
    one, other = np.zeros(1, dtype=np.int32), np.zeros((), dtype=np.int32)
    both = changed(  # a short episode on another task comes first
        who,
        episodes=pl.DataFrame({"episode": ["a", "b"], "task": [line.name, task.name]}),
        episode_offsets=np.array([0, 2]),
        step_offsets=np.array([0, 1, 1 + who.n_steps]),
        state=np.append(one, who.state),
        action=np.append(one, who.action),
        end_state=np.append(other + 1, who.end_state),
        segment_offsets=np.array([0, 0, who.n_segments]),
        segment=np.append(one - 1, who.segment),
        weight=None if who.weight is None else np.append(1.0, who.weight),
        inferred=None if who.inferred is None else np.append(False, who.inferred),
    )
    left, right = plot.figure_one(task, both, walkers=[who.ids[0]]).axes
    n = len(who.traces(who.ids[0])[0])
    assert f"({n} actions" in left.get_legend().get_texts()[0].get_text()
    assert right.get_legend().get_texts()[0].get_text().endswith(f"in {who.n_steps} steps")
    with pytest.raises(fidm.DataError, match="2 episodes for 1 people"):
        plot.verbal_output(both, [who.ids[0]], episode=["a", "b"])


def test_no_two_walks_lie_on_each_other():
    to_and_fro = np.array([(0.0, 0.0), (1.0, 0.0)] * 9)
    ((begin, end),) = lanes([to_and_fro])
    out = begin[end[:, 0] > begin[:, 0], 1]
    assert len(set(out.round(9))) == 9
    assert out.min() > 0
    assert out.max() < 0.5, "beside the middle, and in the cell"
    np.testing.assert_allclose(lanes([to_and_fro[:6]])[0][0][::2, 1], [0.06, 0.14, 0.22])
    people = lanes([np.array([(0.0, 0.0), (1.0, 0.0)] * (1 + i % 3)) for i in range(9)])
    all_out = np.concatenate([begin[end[:, 0] > begin[:, 0], 1] for begin, end in people])
    assert len(set(all_out.round(9))) == len(all_out) == 18
    assert all_out.max() < 0.5


def test_people_on_a_map_differ_in_more_than_colour(task, cohort):
    walks = [cohort.traces(name)[0] for name in cohort.ids[:3]]
    ax = plot.routes(task, walks)
    lines = ax.get_legend().get_lines()
    assert len({str(line.get_linestyle()) + str(line._unscaled_dash_pattern) for line in lines}) == 3
    assert len({look.line for look in LOOKS}) == len({look.marker for look in LOOKS}) == len(LOOKS)
    assert len({look.box for look in LOOKS}) == len(LOOKS)


# ---------------------------------------------------------------------- action evidence


@pytest.mark.parametrize(("width", "height", "panels"), [(7.0, 3.0, 2), (4.0, 2.0, 2), (12.0, 8.0, 1)])
def test_names_on_a_map_fit_into_their_places(width, height, panels):
    task = fidm.load_task("grocery")
    figure = Figure(figsize=(width, height), dpi=200, layout="constrained")
    ax = figure.subplots(1, panels, squeeze=False)[0, 0]
    trace = fidm.walk(task, fidm.solve(task), 9.0, seed=1)
    plot.routes(task, trace, ax=ax)
    FigureCanvasAgg(figure).draw()
    names = [text for text in ax.texts if isinstance(text, FittedText)]
    sections = {name.replace("_", " "): s for s, name in task.grid.spec.place_names.items()}
    assert len(names) >= len(sections)
    cell = abs(np.diff(ax.transData.transform([(0, 0), (1, 0)])[:, 0])[0])
    for text in names:
        box = text.get_window_extent()
        assert box.width <= text.room[0] * cell + 1, text.get_text()  # letters end at pixels
        assert box.height <= text.room[1] * cell + 1, text.get_text()
        symbol = sections.get(text.get_text().replace("\n", " "))
        if symbol is not None:
            assert text.room[0] <= (task.grid.grid.symbol == symbol).any(axis=0).sum()
    largest = max(text.get_fontsize() for text in names)
    assert largest == 6.5 if width > 7 else largest <= 6.5


def test_the_legend_of_localization_lies_outside_the_bars(found, cohort):
    figure = plot.localization(localize(found, cohort, bootstrap=20))
    FigureCanvasAgg(figure).draw()
    for ax in figure.axes:
        assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1


def test_action_evidence_has_a_row_per_person_on_one_scale(found, cohort):
    people = cohort.ids[:2].to_list()
    figure = plot.action_evidence(found, people)
    rows = [ax for ax in figure.axes if ax.get_xlabel() == "step"]
    bars = [ax for ax in figure.axes if "unexpectedness" in ax.get_ylabel() and ax not in rows]
    assert len(rows) == len(bars) == 2
    assert len({ax.get_ylim() for ax in rows}) == 1
    assert len({ax.get_ylim() for ax in bars}) == 1
    for ax, name in zip(rows, people, strict=True):
        own = found.actions.filter(participant=name, counts=True)
        heights = [patch.get_height() for patch in ax.containers[0]]
        np.testing.assert_allclose(heights, own["unexpectedness"])
        shades = grey([patch.get_facecolor() for patch in ax.containers[0]])
        order = np.argsort(heights)
        assert (np.diff(shades[order]) <= 1e-9).all(), "the more unexpected, the darker"
        letters = {text.get_text(): text.get_position()[0] for text in ax.texts}
        top = own.sort("unexpectedness", descending=True).head(3)["step"].sort().to_list()
        assert letters == dict(zip("abc", top, strict=True))


def test_letters_on_the_map_stand_on_the_way_of_their_step(task, found, cohort):
    who = cohort.ids[0]
    steps = found.actions.filter(participant=who)
    step = steps.filter(pl.col("is_move"))["step"][2]
    ax = plot.unexpected_steps(task, found, who, marked=[step])
    (letter,) = [text for text in ax.texts if text.get_text() == "a"]
    row, column = task.grid.cell(steps["state"][step - 1])
    after = task.grid.cell(steps["state"][step])
    middle = ((column + after[1]) / 2, (row + after[0]) / 2)
    assert np.abs(np.subtract(letter.get_position(), middle)).max() < 0.2


def test_the_last_move_of_a_way_that_does_not_finish_is_drawn(task, found, cohort):
    who = cohort.ids[0]
    moves = found.actions.filter(pl.col("participant") == who, pl.col("is_move"))
    cut = moves.filter(pl.col("step") == pl.col("step").cum_count())  # those before anything else is done
    assert cut.height > 1
    ax = plot.unexpected_steps(task, changed(found, actions=cut), who)
    (arrows,) = [one for one in ax.collections if isinstance(one, Quiver)]
    assert len(arrows.U) == cut.height
    before = task.grid.cell(cut["state"][-1])
    way = {"N": (0, -1), "S": (0, 1), "E": (1, 0), "W": (-1, 0)}[cut["action"][-1]]
    assert (arrows.U[-1], arrows.V[-1]) == pytest.approx(way)
    middle = (before[1] + way[0] / 2, before[0] + way[1] / 2)
    assert np.abs(np.subtract(arrows.XY[-1], middle)).max() < 0.2


def test_what_had_no_probability_is_marked(task, found, cohort):
    who = cohort.ids[0]
    endless = pl.when(pl.col("step") == 4).then(float("inf")).otherwise(pl.col("unexpectedness"))
    some = changed(found, actions=found.actions.with_columns(unexpectedness=endless))
    for ax in (plot.unexpected_row(some, who, marked=[4]), plot.unexpected_steps(task, some, who)):
        assert [text.get_text() for text in ax.texts].count("∞") == 1
    ax = plot.unexpected_row(some, who, marked=[4])
    mark, letter = (text.get_position() for text in ax.texts)
    heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.containers[0]}
    assert heights[4] == max(heights.values()) < mark[1] < letter[1] < ax.get_ylim()[1]
    assert mark[0] == 4
    assert "probability 0" in ax.get_legend().get_texts()[0].get_text()
    plain = plot.unexpected_row(found, who)
    assert "∞" not in [text.get_text() for text in plain.texts]


def test_steps_that_do_not_count_are_hatched_and_dotted(task, found, cohort):
    table = found.actions.with_columns(counts=pl.col("counts") & (pl.col("step") > 3))
    some = changed(found, actions=table)
    who = cohort.ids[0]
    ax = plot.unexpected_row(some, who)
    assert {patch.get_hatch() for patch in ax.containers[1]} == {"/////"}
    assert not any(patch.get_hatch() for patch in ax.containers[0])
    tallest = max(patch.get_height() for bars in ax.containers for patch in bars)
    assert ax.get_ylim()[1] > tallest, "nothing is cut off"
    drawn = plot.unexpected_steps(task, some, who)
    dotted = [
        lines for lines in drawn.collections
        if len(lines.get_edgecolor()) and np.allclose(lines.get_edgecolor()[0][:3], to_rgb(UNCOUNTED))
        and lines.get_linestyle()[0][1] is not None
    ]  # fmt: skip
    assert len(dotted) == 1


@pytest.fixture(scope="module")
def mazes():
    return [maze(1), maze(2, horizon=20), maze(3, coordinates=None)]


def test_routes_on_a_task_with_coordinates_pass_its_places(mazes):
    for task in mazes[:2]:
        trace = fidm.walk(task, fidm.solve(task), 200.0, seed=1, label="P1")
        ax = plot.routes(task, trace)
        FigureCanvasAgg(ax.figure).draw()
        (way,) = [one.get_segments() for one in ax.collections if one.get_zorder() == 3]
        at = task.coordinates[trace.state]
        own = at[~np.isnan(at[:, 0])]
        ((begin, end),) = lanes([own])
        np.testing.assert_allclose(way[0], np.stack([begin, end], axis=1).reshape(-1, 2))
        names = [text.get_text() for text in ax.texts]
        assert sum(name.startswith("r") for name in names) == 16
        assert not any(name.isdigit() for name in names), "movements are no actions to be numbered"
    with pytest.raises(fidm.TaskError, match="no coordinates"):
        plot.routes(mazes[2], fidm.walk(mazes[2], fidm.solve(mazes[2]), 5.0, seed=1))


def test_actions_that_are_no_movements_are_numbered_at_their_place():
    task = fidm.TaskModel.from_arrays(
        [[1, 0], [-1, 2], [-1, -1]], [[0, 0], [0, 1], [0, 0]], gamma=0.9, tau=0.1, name="dig",
        actions=["go", "dig"], coordinates=[(0, 0), (3, 0), (np.nan, np.nan)],
    )  # fmt: skip
    trace = fidm.Trace(task.name, np.array([0, 0, 1, 2]), np.array([1, 0, 1]), finished=True, label="A")
    numbers = {text.get_text(): text.get_position() for text in plot.routes(task, trace).texts}
    assert (numbers["1"], numbers["2"]) == ((0, 0), (1, 0))


def test_values_of_places_are_those_of_their_first_states(mazes):
    task = mazes[1]
    values = fidm.solve(task)
    ax = plot.value_field(task, values)
    dots = next(one for one in ax.collections if one.get_array() is not None)
    np.testing.assert_array_equal(dots.get_array(), values.v[:15])  # the end is not worth anything any more
    with pytest.raises(fidm.TaskError, match="no targets and no phases"):
        plot.value_field(task, values, completed=["gold"])


def test_evidence_is_drawn_on_places(mazes):
    cohort = fidm.simulate_cohort(mazes, 4, seed=1)
    found = find_evidence(fidm.Model(mazes).fit(cohort, method="mle"), cohort)
    who = cohort.ids[0]
    figure = evidence_figure(found, who, mazes[::-1], cohort)
    FigureCanvasAgg(figure).draw()
    steps = found.actions.filter(participant=who, episode="1")
    bands = [one for one in figure.axes[0].collections if one.get_zorder() == 4]
    assert len(bands[0].get_segments()) == steps["is_move"].sum()


def test_evidence_without_a_map_or_of_nobody(found, cohort):
    line = fidm.TaskModel.from_arrays([[1], [-1]], [[-0.1], [0.0]], gamma=0.9, tau=0.1, name="line")
    figure = plot.action_evidence(found, cohort.ids[0], task=line)
    assert len(figure.axes) == 1
    with pytest.raises(fidm.DataError, match="no steps of 'P9'"):
        plot.action_evidence(found, ["P9"])
    with pytest.raises(fidm.DataError, match="'P0000001' in the episode '5'"):
        plot.action_evidence(found, "P0000001", episode="5")
    with pytest.raises(fidm.DataError, match="nobody"):
        plot.action_evidence(found, [])
    with pytest.raises(fidm.DataError, match="between 0 and 10"):
        plot.action_evidence(found, cohort.ids[0], n_marked=11)


# ---------------------------------------------------------------------- effort evidence


def test_effort_evidence_shows_what_was_observed_beside_its_residual(found, cohort):
    who = cohort.ids[4]
    own = found.segments.filter(participant=who)
    left, right = plot.effort_evidence(found, who, "characters").axes
    np.testing.assert_allclose([bar.get_width() for bar in left.patches], own["characters_observed"])
    np.testing.assert_allclose([bar.get_width() for bar in right.patches], own["characters_residual"])
    expected = [line[0][0] for line in left.collections[-1].get_segments()]
    np.testing.assert_allclose(expected, own["characters_expected"])
    labels = [label.get_text() for label in left.get_yticklabels()]
    assert labels == [f"{s} ({n})" for s, n in zip(own["segment"], own["n_moves"], strict=True)]
    widths = np.array([bar.get_width() for bar in left.patches])
    shades = grey([bar.get_facecolor() for bar in left.patches])
    assert (np.diff(shades[np.argsort(widths)]) <= 1e-9).all(), "the larger, the darker"
    for sign, hatch in ((1, ""), (-1, "////")):
        side = [bar for bar in right.patches if bar.get_width() * sign > 0]
        assert side
        assert {bar.get_hatch() or "" for bar in side} == {hatch}
        sizes = np.array([abs(bar.get_width()) for bar in side])
        shades = grey([bar.get_facecolor() for bar in side])
        assert (np.diff(shades[np.argsort(sizes)]) <= 1e-9).all(), "the farther from nothing, the darker"
    assert left.get_xlabel().startswith("character count (characters);")


def test_a_residual_of_nothing_looks_like_nothing():
    colours = residual_shade(np.array([0.0, 0.02, -0.02, 5.0, -5.0, np.nan]))
    assert (grey(colours)[[0, 1, 2, 5]] > 0.97).all()
    np.testing.assert_allclose(colours[3, :3], to_rgb(MORE), atol=0.01)
    np.testing.assert_allclose(colours[4, :3], to_rgb(LESS), atol=0.01)
    assert lightness(MORE) + 0.2 < lightness(LESS) < 0.8
    both = residual_shade(np.array([0.5]))[0], residual_shade(np.array([0.5]), is_difference=True)[0]
    assert grey(np.array(both))[0] > grey(np.array(both))[1], "darkest is a factor of four, or 1"


def test_residuals_of_one_channel_have_the_same_colours(found, cohort):
    who = cohort.ids[4]
    bars = plot.effort_residuals(found, who, "pause_presence")
    values = found.segments.filter(participant=who)["pause_presence_residual"].to_numpy()
    drawn = np.array([bar.get_facecolor() for bar in bars.patches])
    np.testing.assert_allclose(drawn, residual_shade(values, is_difference=True))
    assert bars.get_ylabel() == "pause presence\ndifference"


def test_segments_without_an_observation_have_a_dash(found, cohort):
    who = cohort.ids[4]
    gone = pl.when(pl.col("segment") == "2").then(None)
    table = found.segments.with_columns(
        gone.otherwise(pl.col(f"duration_{part}")).alias(f"duration_{part}")
        for part in ("observed", "expected", "residual")
    )
    left, right = plot.effort_evidence(changed(found, segments=table), who, "duration").axes
    n = table.filter(participant=who).height
    for ax in (left, right):
        assert len(ax.patches) == n - 1
        assert [text.get_text() for text in ax.texts] == [" –"]


def test_shades_of_equal_or_missing_values():
    assert len(np.unique(shade(np.array([2.0, 2.0])), axis=0)) == 1
    assert (shade(np.array([np.nan, 1.0, 3.0]))[0] == 1.0).all()
    assert shade(np.array([np.nan])).shape == (1, 4)


def test_effort_evidence_says_what_there_is(found, cohort):
    with pytest.raises(fidm.DataError, match=r"'sighs'\. There is: duration"):
        plot.effort_evidence(found, cohort.ids[0], "sighs")
    with pytest.raises(fidm.DataError, match="no segments of 'P9'"):
        plot.effort_evidence(found, "P9", "duration")


# ---------------------------------------------------------------------- profiles


def test_a_profile_stands_on_the_cohorts_scale(profile):
    who, row = profile.participants[3], 3
    ax = plot.person_profile(profile, who)
    marks = [line for line in ax.lines if line.get_marker() == "s"]
    assert len(marks) == len(profile.parameters)
    for k, line in enumerate(marks):
        values = np.log(profile.estimate[:, 0]) if k == 0 else profile.estimate[:, k]
        low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
        at = (values[row] - middle) / ((high - low) / 2.5631)
        assert line.get_xdata()[0] == pytest.approx(np.clip(at, -4.5, 4.5))
        band = ax.patches[k]
        assert band.get_width() == pytest.approx(2.5631)
    said = [text.get_text() for text in ax.texts]
    assert said[0].startswith(f"{profile.estimate[row, 0]:.1f} (")
    assert all("others" in one or "people" in one for one in said)


@pytest.mark.parametrize(
    ("others", "own", "said"),
    [
        ([2, 3, 4, 5], 1, "the lowest of 5 people"),
        ([2, 3, 4, 5], 6, "the highest of 5 people"),
        ([1, 3, 4, 5], 1, "higher than 12 % of the others"),  # half of one of four
        ([1, 1, 1, 1], 1, "higher than 50 % of the others"),
        ([1, 2, 4, 5], 3, "higher than 50 % of the others"),
        ([0, *range(2, 300)], 1, "among the lowest 1 % of 300 people"),
        ([*range(2, 300), 400], 350, "among the highest 1 % of 300 people"),
    ],
)
def test_a_place_is_the_share_of_the_others_below(others, own, said):
    assert _rank_words(np.array([*others, own], dtype=float), float(own)) == said


def test_figures_and_sentences_call_a_parameter_the_same(profile):
    labels = [label.get_text() for label in plot.person_profile(profile, "P0000001").get_yticklabels()]
    assert labels[0] == LABELS["action_sensitivity"] == "action sensitivity η"
    assert labels[1:] == [f"{LABELS[name]} θ" for name in profile.parameters[1:]]
    assert plot.cohort_scatter(profile, channel="turns").get_ylabel() == "effort offset θ: turn count"


def test_a_profile_of_one_person_and_of_what_is_not_known(profile):
    one = changed(profile, **{
        name: getattr(profile, name)[:1]
        for name in ("participants", "estimate", "se", "low", "high", "status", "n", "log_sensitivity",
                     "log_sensitivity_se", "n_steps", "n_inferred")
    })  # fmt: skip
    said = [text.get_text() for text in plot.person_profile(one, profile.participants[0]).texts]
    assert not any("others" in text for text in said)
    estimate, low, high, status = (
        getattr(profile, name).copy() for name in ("estimate", "low", "high", "status")
    )
    estimate[0, 1], low[0, 1], high[0, 1], status[0, 1] = np.nan, np.nan, np.nan, NO_OBSERVATION
    estimate[0, 3], low[0, 3], high[0, 3], status[0, 3] = np.nan, np.nan, np.nan, ALIKE
    estimate[0, 0], high[0, 0], status[0, 0] = np.inf, np.inf, NO_MAXIMUM
    estimate[0, 2], low[0, 2], status[0, 2] = -np.inf, -np.inf, AT_EDGE
    odd = changed(profile, estimate=estimate, low=low, high=high, status=status)
    ax = plot.person_profile(odd, profile.participants[0])
    said = [text.get_text() for text in ax.texts]
    assert said[1].startswith("not estimated: no ")
    assert said[3] == "no measurable individual differences"
    assert "every choice was a best one" in said[0]
    assert "at the edge" in said[2]
    assert {line.get_marker() for line in ax.lines} >= {"<", ">", "s"}
    hollow = [line for line in ax.lines if line.get_marker() == "s" and line.get_markerfacecolor() == "white"]
    assert len(hollow) >= 2
    FigureCanvasAgg(ax.figure).draw()
    with pytest.raises(fidm.DataError, match="no participant 'P9'"):
        plot.person_profile(profile, "P9")


def test_the_scatter_has_everybody_by_group(profile):
    groups = pl.Series(["a"] * 8 + ["b$"] * 4 + [None] * 2)
    ax = plot.cohort_scatter(
        profile, channel="characters", groups=groups, highlight=[profile.participants[0]]
    )
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["a (8)", "b$ (4)", "unknown (2)"]
    drawn = ax.lines[:3]
    np.testing.assert_array_equal(drawn[0].get_xdata(), profile.action_sensitivity[:8])
    np.testing.assert_array_equal(drawn[1].get_ydata(), profile["characters"][8:12])
    assert len({line.get_marker() for line in drawn}) == 3
    assert profile.participants[0] in [text.get_text() for text in ax.texts]
    cross = ax.collections[0].get_segments()[0][:, 0]
    np.testing.assert_allclose(cross, [profile.low[0, 0], profile.high[0, 0]])
    FigureCanvasAgg(ax.figure).draw()


def test_groups_differ_in_grey():
    for (one, first, inside), (other, second, filled) in itertools.pairwise(DOTS):
        assert first != second
        assert (
            abs(lightness(inside) - lightness(filled)) > 0.1 or abs(lightness(one) - lightness(other)) > 0.1
        )


def test_the_scatter_leaves_out_what_cannot_be_shown_and_says_so(profile):
    estimate = profile.estimate.copy()
    estimate[2, 0], estimate[3, 1] = np.inf, np.nan
    odd = changed(profile, estimate=estimate)
    ax = plot.cohort_scatter(odd)
    assert len(ax.lines[0].get_xdata()) == len(profile) - 2
    assert ax.texts[0].get_text().startswith("2 without a finite estimate")
    with pytest.raises(fidm.DataError, match="no finite"):
        plot.cohort_scatter(odd, highlight=[profile.participants[2]])
    with pytest.raises(fidm.DataError, match="no participant 'P9'"):
        plot.cohort_scatter(profile, highlight=["P9"])
    with pytest.raises(fidm.DataError, match="no parameter 'sighs'"):
        plot.cohort_scatter(profile, channel="sighs")
    with pytest.raises(fidm.DataError, match="horizontal axis already"):
        plot.cohort_scatter(profile, channel="action_sensitivity")
    with pytest.raises(fidm.DataError, match="groups of 3 people"):
        plot.cohort_scatter(profile, groups=pl.Series(["a", "b", "c"]))
    none = changed(profile, estimate=np.full_like(estimate, np.nan))
    FigureCanvasAgg(plot.cohort_scatter(none).figure).draw()


# ---------------------------------------------------------------------- the model, and all of them


def test_the_drawing_of_the_model_has_its_quantities_and_both_factors():
    ax = plot.factor_graph(ax=Figure().subplots())
    said = [text.get_text() for text in ax.texts]
    assert {words for _, _, words, _ in NODES.values()} <= set(said)
    assert sum("factor:" in text for text in said) == 2
    assert sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) == len(ARROWS)
    assert {source for source, *_ in ARROWS} | {target for _, target, *_ in ARROWS} == set(NODES)


def test_figures_are_drawn_into_the_axes_given(task, cohort, found, profile):
    who = cohort.ids[0]
    for draw in (
        lambda ax: plot.verbal_output(cohort, who, ax=ax),
        lambda ax: plot.unexpected_row(found, who, ax=ax),
        lambda ax: plot.unexpected_steps(task, found, who, ax=ax),
        lambda ax: plot.effort_residuals(found, who, "turns", ax=ax),
        lambda ax: plot.person_profile(profile, who, ax=ax),
        lambda ax: plot.cohort_scatter(profile, ax=ax),
        lambda ax: plot.factor_graph(ax=ax),
    ):
        ax = Figure().subplots()
        assert draw(ax) is ax


def test_every_figure_can_be_svg_and_names_are_in_it(task, cohort, found, profile):
    who = cohort.ids[0]
    for figure in (
        plot.action_evidence(found, who),
        plot.effort_evidence(found, who, "duration"),
        plot.person_profile(profile, who),
        plot.cohort_scatter(profile, highlight=[who]),
    ):
        assert who in plot.figure_svg(figure)
    assert set(plot.__all__) <= set(dir(plot))
