"""Tables of scores in the terminal: a value, its interval and the paper's value per cell, at any width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fidm.study.wording import DASH, PARTS, SHORT

Cell = tuple[str, str, str]
"""A setting, a part and a metric."""

Line = tuple[str, str | None, str]
"""What a row is called, what it shows (None in a heading), and its style."""

Reader = Callable[[Cell, str], tuple[str, str, str]]
"""Gives the value, the interval and the paper's value of a row in a column."""

HEAD = ("", "95 % CI", "paper")
NARROW = {"balanced accuracy": "bal. acc."}


def print_grid(
    lines: Sequence[Line],
    columns: Sequence[Cell],
    read: Reader,
    console: Console,
    *,
    above: Callable[[Cell], str] = lambda column: PARTS[column[1]],
) -> None:
    """Print one table, or one per part (or question) where the terminal is too narrow for all.

    Parameters
    ----------
    lines : sequence of Line
        The rows.
    columns : sequence of Cell
        The columns.
    read : callable
        Gives what stands in a cell.
    console : Console
        Where to print.
    above : callable
        Gives what stands above a column; neighbours under the same words share them.
    """
    everything = [_lay_out(lines, columns, read, above, narrow=narrow) for narrow in (0, 1)]
    fitting = [made for made in everything if _width(made) <= console.width]
    if fitting:
        _print(fitting[0], console)
        return
    for _, own in groupby(columns, above):
        some = list(own)
        made = [_lay_out(lines, some, read, above, narrow=narrow) for narrow in (0, 1, 2)]
        _print(next((one for one in made if _width(one) <= console.width), made[-1]), console)


def _width(made: Sequence[tuple[str, str]]) -> int:
    return max(cell_len(line) for line, _ in made)


def _print(made: Sequence[tuple[str, str]], console: Console) -> None:
    for line, style in made:
        console.print(Text(line, style=style), soft_wrap=True)
    console.print()


def _lay_out(
    lines: Sequence[Line],
    columns: Sequence[Cell],
    read: Reader,
    above: Callable[[Cell], str],
    *,
    narrow: int,
) -> list[tuple[str, str]]:
    """The lines of a table and their styles: three of headings, a rule, and the rows; 2 is narrowest."""
    gap = "  " if narrow == 0 else " "
    first = max(cell_len(words) for words, _, _ in lines)
    cells = {
        column: [None if name is None else _short(read(column, name), narrow) for _, name, _ in lines]
        for column in columns
    }
    told = {
        setting: any(one is not None and one[2] != DASH for column in own for one in cells[column])
        for setting, own in _by_setting(columns).items()
    }
    upper, metrics, heads = [], [], []
    bodies: list[list[str]] = [[] for _ in lines]
    for words, group in groupby(columns, above):
        wide = []
        for column in group:
            n = 3 if told[column[0]] else 2
            known = [one[:n] for one in cells[column] if one is not None]
            widths = [max(cell_len(one[i]) for one in (HEAD, *known)) for i in range(n)]
            metric = NARROW.get(SHORT[column[2]], SHORT[column[2]]) if narrow else SHORT[column[2]]
            width = max(sum(widths) + n - 1, len(metric))
            wide.append(width)
            metrics.append(metric.rjust(width))
            heads.append(_spaced(HEAD[:n], widths).rjust(width))
            for body, one in zip(bodies, cells[column], strict=True):
                body.append((_spaced(one[:n], widths) if one else "").rjust(width))
        upper.append(f" {words} ".center(sum(wide) + len(gap) * (len(wide) - 1), "─"))
    empty = " " * first
    made = [gap.join([empty, *texts]) for texts in (upper, metrics, heads)]
    made.append("─" * cell_len(made[0]))
    found = [(f" {line}", "") for line in made]
    for (words, _, style), body in zip(lines, bodies, strict=True):
        padded = words + " " * (first - cell_len(words))
        found.append((f" {gap.join([padded, *body])}".rstrip(), style))
    return found


def _short(texts: tuple[str, str, str], narrow: int) -> tuple[str, str, str]:
    value, interval, told = texts
    return value, interval.replace(" to ", "…") if narrow > 1 else interval, told


def _by_setting(columns: Sequence[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for column in columns:
        found.setdefault(column[0], []).append(column)
    return found


def _spaced(texts: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(" " * (width - cell_len(text)) + text for text, width in zip(texts, widths, strict=True))
