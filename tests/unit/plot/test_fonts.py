"""Names in figures: Chinese, from right to left, beyond the basic plane, with dollars; and figures as SVG."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import fidm
from fidm import plot
from fidm.plot import style as fonts
from fidm.plot.maps import _wrapped

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def no_chinese_font(monkeypatch):
    monkeypatch.setattr(fonts, "chinese_families", lambda: ())


def pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def written(words):
    figure = Figure(figsize=(2, 0.6), dpi=60)
    fonts.plain(figure.text(0.05, 0.4, words))
    return figure


def test_an_installed_font_has_chinese_characters():
    (family,) = fonts.chinese_families()
    path = font_manager.fontManager.findfont(font_manager.FontProperties(family=[family]))
    letters = font_manager.get_font(path).get_charmap()
    assert all(ord(letter) in letters for letter in fonts.SAMPLE)
    assert fonts.families()[-1] == family


def test_chinese_names_are_drawn_as_letters_and_not_as_boxes():
    shown = written("買菜蔬")
    assert shown.texts[0].get_text() == "買菜蔬"
    assert not np.array_equal(pixels(shown), pixels(written("□□□")))
    assert not np.array_equal(pixels(shown), pixels(written("蔬菜買")))


def test_without_such_a_font_boxes_are_drawn_with_one_warning_that_says_what_to_install(no_chinese_font):
    with pytest.warns(fonts.FontWarning, match="fonts-noto-cjk") as said:
        figure = written("P1 買菜 a")
    assert len(said) == 1
    assert "買" not in str(said[0].message)
    assert figure.texts[0].get_text() == "P1 □□ a"
    pixels(figure)  # warnings are errors here: matplotlib has none


@pytest.mark.parametrize("gone", [False, True], ids=["listed and gone", "not there"])
@pytest.mark.parametrize("family", ["sans-serif", "Helvetica Neue", "fantasy"])
def test_matplotlib_is_asked_for_no_font_that_is_not_here(family, gone, monkeypatch, caplog):
    """It logged "findfont: …" once for every face that is not quite as usual, where no font has Chinese."""
    manager = font_manager.fontManager
    chinese = {one.name for one in manager.ttflist if fonts._has_sample(one.name)}
    lost = [
        one if one.name not in chinese else replace(one, fname=f"{one.fname}.gone")
        for one in manager.ttflist
        if not (gone and one.name in chinese)
    ]
    monkeypatch.setattr(manager, "ttflist", lost)
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    monkeypatch.setitem(fonts.rcParams, "font.family", [family])
    for remembered in (fonts.chinese_families, fonts._letters, manager._findfont_cached):
        remembered.cache_clear()
    try:
        with caplog.at_level("WARNING"):
            assert fonts.chinese_families() == ()
            pixels(written("a map"))
            with pytest.warns(fonts.FontWarning):
                pixels(written("買菜"))
    finally:
        for remembered in (fonts.chinese_families, fonts._letters, manager._findfont_cached):
            remembered.cache_clear()
    assert [record.getMessage() for record in caplog.records] == []


def test_by_default_python_shows_the_warning_once(no_chinese_font, monkeypatch):
    monkeypatch.setattr(fonts, "__warningregistry__", {}, raising=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        written("買")
        written("菜")
    assert [type(one.category()) for one in said] == [fonts.FontWarning]


def test_svg_keeps_letters_that_no_installed_font_has(no_chinese_font):
    figure = Figure()
    ax = figure.subplots()
    with pytest.warns(fonts.FontWarning):
        fonts.plain(ax.set_title("買菜"))
    with pytest.warns(fonts.FontWarning):
        fonts.plain_ticks(ax.yaxis, [0.0, 1.0], ["蔬", "b"])
    text = plot.figure_svg(figure)
    assert "買菜" in text
    assert "蔬" in text
    assert ax.get_title() == "□□"
    pixels(figure)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["□", "b"]


STRANGE = (
    "$x",
    "$\\frac{",
    "_hidden",
    "שלום",
    "مرحبا",
    "😀𠮷",
    "\u202eabc",
    "a\tb\x07",
    "\ud800",
    "",
    "<&\"'>",
)


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.filterwarnings("ignore::fidm.plot.style.FontWarning")
def test_any_name_can_be_drawn_everywhere_a_name_stands(name):
    task = fidm.load_task("errands")
    trace = fidm.walk(task, fidm.solve(task), 3.0, seed=1, label=name)
    ax = plot.routes(task, [trace, replace(trace, label=f"{name} 2")])
    fonts.plain(ax.set_title(name))
    fonts.plain_ticks(ax.xaxis, [0.0], [name])
    pixels(ax.figure)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 2
    assert labels[0].startswith(fonts.boxed(fonts.cleaned(name or "errands")))
    text = plot.figure_svg(ax)
    assert not re.search("[\\x00-\\x08\\x0b-\\x1f\\ud800-\\udfff\\ufffe\\uffff]", text), "not XML"
    root = ElementTree.fromstring(text)
    shown = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    assert any(one.startswith(fonts.cleaned(name)) and "2 (" in one for one in shown)


@settings(max_examples=40)
@given(st.text(max_size=6))
@pytest.mark.filterwarnings("ignore::fidm.plot.style.FontWarning")
def test_no_text_at_all_makes_matplotlib_complain(words):
    figure = Figure(figsize=(1, 0.4), dpi=30)
    fonts.plain(figure.text(0.0, 0.5, words))
    pixels(figure)
    ElementTree.fromstring(plot.figure_svg(figure))


def test_svg_is_the_same_twice_refers_to_nothing_and_has_its_letters():
    task = fidm.load_task("grocery")

    def drawn():
        return plot.figure_svg(plot.value_field(task, fidm.solve(task)))

    text = drawn()
    assert text == drawn()
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    shown = {"".join(one.itertext()) for one in root.iter(f"{SVG}text")}
    assert {"vegetables", "meat", "value of standing here"} <= shown
    assert set(re.findall(r"https?://[^\"'\s<]*", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    links = re.findall(r"href=\"(.{5})", text)
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "<!DOCTYPE" not in text
    assert "metadata" not in text
    assert len(text) < 60_000


def test_names_of_sections_are_cut_into_lines():
    assert _wrapped("egg and tofu") == "egg and\ntofu"
    assert _wrapped("vegetables") == "vegetables"
    assert _wrapped("新鮮蔬菜水果部") == "新鮮蔬菜水\n果部"
    assert _wrapped("") == ""
