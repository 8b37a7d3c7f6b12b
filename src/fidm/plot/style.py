"""What the figures share: colours with their grey, how people are told apart, letters, and SVG texts.

Every text of a figure that may come from people or from a task passes through :func:`plain`. It is drawn as
it stands, Chinese too, with a font that has its letters; a ``$`` in it starts no formula, and a letter no
installed font has is shown as a box. SVG texts (:func:`figure_svg`) keep the letter itself, as whoever looks
at them brings fonts of their own; nothing is fetched. Words and units of parameters and channels are in
:mod:`fidm.channels`.
"""

from __future__ import annotations

import functools
import io
import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np
from matplotlib import font_manager, rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter

SAMPLE = "買菜"
"""A font that has these characters is taken to have Chinese ones: the first is traditional."""

PREFERRED = (
    "Noto Sans CJK HK", "Noto Sans CJK TC", "Noto Sans HK", "Noto Sans TC", "Source Han Sans HK",
    "PingFang HK", "PingFang TC", "Microsoft JhengHei", "Heiti TC", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "Noto Sans CJK SC", "Noto Sans CJK JP", "Microsoft YaHei", "SimHei",
    "Arial Unicode MS", "Droid Sans Fallback",
)  # fmt: skip
"""Fonts to take first where they are installed: sans serif, traditional characters before simplified ones."""

HINTS = ("cjk", "han", "hei", "ming", "song", "kai", "gothic", "wqy", "pingfang", "uming", "ukai", "droid")
"""What the file names of such fonts tend to hold: these are opened first."""

BOX = "□"
"""What stands for a letter no installed font has."""

MESSAGE = (
    "Some letters are in no installed font and are drawn as boxes (□). For Chinese, install a font such as "
    "Noto Sans CJK (Debian and Ubuntu: apt-get install fonts-noto-cjk, or the smaller fonts-wqy-microhei; "
    "others: https://fonts.google.com/noto), and start Python anew."
)

INVISIBLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x180B, 0x180E), (0x200B, 0x200F), (0x2060, 0x2064),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Characters that need no letter: joiners, marks of direction, selectors of variants."""

TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that would turn round the direction of whatever follows a name; they are left out."""


class FontWarning(UserWarning):
    """Some letters of a figure are in no installed font."""


def families() -> list[str]:
    """Return the fonts to draw names with: installed ones, the last with Chinese characters."""
    usual = [name for name in rcParams["font.family"] if _face(name)] or ["DejaVu Sans"]  # as matplotlib does
    return [*usual, *chinese_families()]


@functools.cache
def chinese_families() -> tuple[str, ...]:
    """Return the installed font that has Chinese characters, the most suitable one first; often only one.

    A font that was installed after matplotlib made its list of fonts is found too.
    """
    known = {entry.name for entry in fontManager.ttflist}
    found = next((name for name in PREFERRED if name in known and _has_sample(name)), None)
    if found is None:
        _add_unlisted()
        known = {entry.name for entry in fontManager.ttflist}
        rest = sorted(
            known - set(PREFERRED), key=lambda name: (all(hint not in name.lower() for hint in HINTS), name)
        )
        ordered = [*(name for name in PREFERRED if name in known), *rest]
        found = next((name for name in ordered if _has_sample(name)), None)
    return () if found is None else (found,)


def plain(text: Text, words: str | None = None) -> Text:
    """Draw a text as it stands: no formulas, in a font that has its letters, a box for each that none has.

    ``words`` is what it is to say; what it says already by default. If a letter is in no installed font, a
    :class:`FontWarning` tells so.
    """
    said = cleaned(text.get_text() if words is None else words)
    text.set(fontfamily=families(), parse_math=False, text=boxed(said))
    if text.get_text() != said:
        text._fidm_said = said  # type: ignore[attr-defined]
        warnings.warn(FontWarning(MESSAGE), stacklevel=1)
    return text


def plain_legend(legend: Legend, labels: Sequence[str]) -> Legend:
    """Give the entries of a legend their names, whatever these hold; a leading ``_`` hides none of them."""
    for text, words in zip(legend.get_texts(), labels, strict=True):
        plain(text, words)
    return legend


def plain_ticks(axis: Axis, places: Sequence[float], labels: Sequence[str], *, size: float = 8.0) -> None:
    """Put names beside an axis, one for each place, in letters of this many points."""
    axis.set_ticks(np.asarray(places, dtype=np.float64))
    formatter = _Names([cleaned(label) for label in labels])
    axis.set_major_formatter(formatter)
    axis.set_tick_params(labelsize=size, labelfontfamily=families())
    for tick in axis.get_major_ticks():
        for label in (tick.label1, tick.label2):
            label.set_parse_math(False)
    if formatter.seq != formatter.said:
        warnings.warn(FontWarning(MESSAGE), stacklevel=1)


@contextmanager
def as_said(figure: Figure) -> Iterator[None]:
    """Show every letter itself for a while, those no installed font has included, without a warning."""
    texts = [text for text in figure.findobj(Text) if hasattr(text, "_fidm_said")]
    names = [
        one
        for ax in figure.get_axes()
        for axis in (ax.xaxis, ax.yaxis)
        if isinstance(one := axis.get_major_formatter(), _Names)
    ]
    shown = [text.get_text() for text in texts]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font", category=UserWarning)
        try:
            for text in texts:
                text.set_text(text._fidm_said)
            for name in names:
                name.seq = name.said
            yield
        finally:
            for text, boxes in zip(texts, shown, strict=True):
                text.set_text(boxes)
            for name in names:
                name.seq = name.boxes


def cleaned(words: str) -> str:
    """Return a name without characters that no figure can hold: halves of characters, controls, turns."""
    kept = (letter for letter in words if letter not in TURNING)
    return "".join(_drawable(letter) for letter in kept)


def boxed(words: str) -> str:
    """Return a name with a box for each letter that no installed font has."""
    known = _letters(tuple(families()))
    return "".join(BOX if _needs_letter(ord(one)) and ord(one) not in known else one for one in words)


class _Names(FixedFormatter):
    """Names beside an axis, with boxes for letters that no font has."""

    def __init__(self, said: list[str]) -> None:
        self.said = said
        self.boxes = [boxed(name) for name in said]
        super().__init__(self.boxes)


def _drawable(letter: str) -> str:
    kind = unicodedata.category(letter)
    if kind == "Cs" or letter in "\ufffe\uffff":  # half a character, or none
        return BOX
    return letter if letter == "\n" or kind != "Cc" else " "


def _needs_letter(code: int) -> bool:
    return code != 0x0A and not any(first <= code <= last for first, last in INVISIBLE)


@functools.lru_cache(maxsize=16)
def _letters(names: tuple[str, ...]) -> frozenset[int]:
    """The characters these fonts have together."""
    found: set[int] = set()
    for face in filter(None, map(_face, names)):
        found.update(get_font(fontManager.findfont(face)).get_charmap())
    return frozenset(found)


def _face(name: str) -> FontProperties | None:
    """The most usual face of a font, or of a generic family such as sans-serif, if one is installed.

    matplotlib logs what it cannot find, so it is asked for nothing else.
    """
    listed = cast("Mapping[str, Sequence[str]]", rcParams)
    for family in listed.get(f"font.{name}", ()) if name in font_manager.font_family_aliases else (name,):
        faces = [one for one in fontManager.ttflist if one.name == family and Path(one.fname).is_file()]
        if faces:
            return FontProperties(family=[family], weight=min(faces, key=_unusual).weight)
    return None


def _unusual(face: font_manager.FontEntry) -> tuple[bool, float]:
    """How far a face is from upright letters of usual weight."""
    weight = font_manager.weight_dict.get(str(face.weight), face.weight)
    return face.style != "normal", abs(float(weight) - 400)


def _has_sample(name: str) -> bool:
    if "Last Resort" in name:  # it has a picture of every script and no letter of any
        return False
    known = _letters((name,))
    return all(ord(letter) in known for letter in SAMPLE)


def _add_unlisted() -> None:
    """Make fonts known that were installed since matplotlib made its list, as far as it can read them."""
    listed = {entry.fname for entry in fontManager.ttflist}
    for path in sorted(font_manager.findSystemFonts()):
        if path not in listed:
            try:
                fontManager.addfont(path)
            except (OSError, RuntimeError, ValueError):
                continue  # not every file there is a font that can be read


Dashes = Literal["-"] | tuple[float, tuple[float, ...]]

INK, QUIET, RULE = "#222222", "#666666", "#e6e6e6"
PEOPLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Colours of people, distinguishable by the colour-blind (Okabe and Ito)."""

WEIGHT_MAP = "YlOrRd"
"""Light is ordinary, dark is heavy; its lightness alone tells the order."""

MORE, NOTHING, LESS = "#8A3000", "#FFFFFF", "#5AA5D8"
"""More than expected, as expected, and less: dark, white and middling in grey."""

RESIDUAL_MAP = LinearSegmentedColormap.from_list("fidm_residual", (LESS, NOTHING, MORE))
"""From less through nothing to more; the farther from nothing, the darker on either side."""

LESS_HATCH = "////"
"""Over what is less than expected, so that it differs from more without colour too."""


@dataclass(frozen=True, slots=True)
class Look:
    """How one person, group or curve is drawn, told apart by more than its colour."""

    colour: str  # of lines and points
    line: Dashes  # how lines are broken
    marker: str  # the shape of points
    box: str = ""  # the shape of the box round a number
    is_filled: bool = True  # whether points are full; otherwise they are rings


LOOKS = (
    Look(PEOPLE[0], "-", "o", "round,pad=0.25,rounding_size=0.7"),
    Look(PEOPLE[1], (0, (4, 1.5)), "s", "square,pad=0.25"),
    Look(PEOPLE[2], (0, (1.2, 1.2)), "^", "sawtooth,pad=0.3"),
    Look(PEOPLE[3], (0, (7, 1.5, 1.2, 1.5)), "D", "round4,pad=0.3"),
    Look(PEOPLE[4], (0, (9, 2)), "v", "larrow,pad=0.2"),
    Look(PEOPLE[5], (0, (2.5, 2.5)), "P", "rarrow,pad=0.2"),
)
"""How the first, the second … person is drawn; in grey their lines, points and boxes still differ."""


def new_axes(width: float, height: float) -> Axes:
    """Return the one Axes of a new figure of this size, in inches."""
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def figure_of(ax: Axes) -> Figure | SubFigure:
    """Return the figure or the part of one that an Axes stands in."""
    figure = ax.get_figure()
    if figure is None:
        raise ValueError("These Axes were taken out of their figure.")
    return figure


def ink_on(colour: str) -> str:
    """Return the colour of letters that can be read on this one: dark or white."""
    return INK if lightness(colour) > 0.55 else "white"


def lightness(colour: str) -> float:
    """Return how light a colour is in grey, 0 black to 1 white."""
    return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114)))


def quieten(ax: Axes) -> None:
    """Leave an axis what a reader needs: two sides, small ticks and a faint grid."""
    ax.grid(color=RULE, lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)


UNDATED = {"Date": None, "Creator": None, "Format": None, "Type": None}


def figure_svg(figure: Figure | Axes) -> str:
    """Return a figure as SVG text: the same figure, the same text, with letters that can be searched.

    The text begins with ``<svg`` and refers to nothing outside itself, so it can stand in a page or in a
    ``data:`` address. Letters that no installed font has are kept: whoever looks at it brings
    their own fonts.

    Parameters
    ----------
    figure : Figure or Axes
        What a function of :mod:`fidm.plot` gave back; of Axes, the whole figure they stand in.

    Examples
    --------
    >>> import fidm
    >>> from fidm.plot.style import figure_svg
    >>> text = figure_svg(fidm.plot.draw_map(fidm.load_task("errands")))
    >>> text.startswith("<svg"), "start" in text
    (True, True)
    """
    whole = figure_of(figure).get_figure(root=True) if isinstance(figure, Axes) else figure
    page = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "fidm"}), as_said(whole):
        whole.savefig(page, format="svg", bbox_inches="tight", metadata=UNDATED)
    text = page.getvalue()
    text = text[text.index("<svg") :]  # neither a prologue nor a document type, which names an address
    return re.sub(r"^ *<metadata>.*?</metadata>\n", "", text, flags=re.DOTALL | re.MULTILINE)
