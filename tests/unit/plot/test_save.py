"""Pictures show what they are given, and files are written whole or not at all."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import fidm
from fidm import plot
from fidm.files import whole_file
from fidm.plot.save import save_figure


def test_routes_name_everybody_and_give_back_the_axes():
    task = fidm.load_task("grocery")
    values = fidm.solve(task)
    traces = [fidm.walk(task, values, eta, seed=2, label=f"η = {eta:g}") for eta in (40.0, 5.0)]
    ax = Figure().subplots()
    assert plot.routes(task, traces, ax=ax) is ax
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0].startswith("η = 40 (")
    shown = {text.get_text().replace("\n", " ") for text in ax.texts}
    assert {"vegetables", "egg and tofu", "till", "exit", "start"} <= shown


def test_an_empty_walk_can_be_drawn():
    task = fidm.load_task("errands")
    trace = fidm.walk(task, fidm.solve(task), 1.0, seed=1, max_steps=0)
    plot.routes(task, trace, ax=Figure().subplots())


def test_value_field_has_a_bar_with_words():
    task = fidm.load_task("errands")
    figure = Figure()
    plot.value_field(task, fidm.solve(task), completed=("bank",), ax=figure.subplots())
    assert "value of standing here" in [ax.get_ylabel() for ax in figure.axes]


def test_a_new_figure_is_made_where_none_is_given():
    ax = plot.draw_map(fidm.load_task("grocery_small"))
    assert ax.figure is not None


def test_a_task_without_a_map_says_so():
    task = fidm.TaskModel.from_arrays([[0]], [[1.0]], gamma=0.9, tau=0.1)
    with pytest.raises(fidm.TaskError, match="not drawn"):
        plot.draw_map(task)


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    def draw(path):
        figure = Figure()
        plot.draw_map(fidm.load_task("errands"), ax=figure.subplots())
        save_figure(figure, [path])
        return path.read_bytes()

    assert draw(tmp_path / "a.svg") == draw(tmp_path / "b.svg")
    assert draw(tmp_path / "a.png") == draw(tmp_path / "b.png")


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    with pytest.raises(RuntimeError), whole_file(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert list(path.parent.iterdir()) == []
    with whole_file(path) as part:
        part.write_text("whole")
    with pytest.raises(RuntimeError), whole_file(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "whole"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_a_file_that_cannot_be_written_says_why(tmp_path):
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(fidm.DataError, match="cannot be written"),
        whole_file(tmp_path / "file" / "below.png"),
    ):
        pass
