"""Finding the line of a task file that a problem is about.

TOML parsers drop the places of keys, so the text is read again, line by line, just far enough.
"""

from __future__ import annotations

import re


def line_of(text: str, where: str) -> int | None:
    """Find the line of a key such as ``sections.meat.symbol`` in a task file, if it stands there.

    A place inside an array of tables is given by its number (``phases.1.targets``) or by the
    ``name`` of the table. ``map.drawing, row 3`` is the line of that row.
    """
    key, _, row = where.partition(", row ")
    want = key.split(".")
    table: list[str] = []
    counts: dict[str, int] = {}
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if match := re.match(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]", line):
            table = [part.strip().strip("\"'") for part in match[2].split(".")]
            if match[1] == "[[":
                index = counts[match[2]] = counts.get(match[2], -1) + 1
                table.append(str(index))
            here = table
        elif match := re.match(r"\s*([\w.\"'-]+)\s*=\s*(.*)", line):
            here = [*table, *(part.strip("\"'") for part in match[1].split("."))]
            if (
                here[-1:] == ["name"]
                and len(table) == 2
                and match[2].strip().strip("\"'") == "".join(want[1:2])
            ):
                want = [want[0], table[1], *want[2:]]
                here = table
        else:
            continue
        depth = len(here)
        if want[:depth] == here and (best is None or depth > best[0]):
            best = (depth, number)
    if best is None or (best[0] < len(want) and best[0] < 1):
        return None
    if row and (digits := re.match(r"\d+", row)):
        opening = text.splitlines()[best[1] - 1]
        first = best[1] if re.search(r"(\"\"\"|''')\s*\\?$", opening) is None else best[1] + 1
        return first + int(digits[0]) - 1
    return best[1]
