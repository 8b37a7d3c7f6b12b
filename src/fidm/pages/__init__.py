"""What the report and the review page share: the map as data and as a drawing, and safe ways into a page."""

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

import numpy as np

from fidm.grounding.route.replay import places_in_reach
from fidm.tasks.grid import GridStates
from fidm.tasks.model import TaskModel
from fidm.tasks.sketch import Sketch

WALL, FLOOR, SHELF, TARGET = "wfst"
"""What a cell is, as a letter."""


def map_scene(task: TaskModel) -> dict[str, Any]:
    """Return what is needed to draw a task's map and to walk on it.

    ``kinds`` has a text per row of the drawing with a letter per cell (:data:`WALL` and so on); ``cells`` the
    row and column (from 0) of every cell one can stand in, by its number; ``neighbour`` the numbers of the
    cells to its north, south, east and west (and along the diagonals where one can go so), -1 where there is
    none; ``places`` the cells from which each place is in reach, with ``START``, ``FINISH`` and ``EXIT``;
    ``labels`` where names stand. ``doors`` (row, column, rows and columns a step goes), ``prices`` (row,
    column, how far from a plain step's, 0 to 1) and ``hidden`` (row, column) are there where the map has any.

    Of a task with coordinates there are ``cells``, its places by their number, which lie anywhere; ``links``
    between them, ``start`` and ``ends``; and no ``kinds``, ``neighbour`` and ``places``.

    Parameters
    ----------
    task : TaskModel
        A task that was drawn as a map, or whose states have coordinates.

    Examples
    --------
    >>> import fidm
    >>> scene = map_scene(fidm.load_task("errands"))
    >>> len(scene["kinds"]) == scene["rows"], len(scene["cells"]) == len(scene["neighbour"])
    (True, True)
    """
    if task.grid is None:
        return _sketch_scene(task)
    spec, grid = task.grid.spec, task.grid.grid
    rows, columns = grid.shape
    kind = {spec.map.wall: WALL}
    owner: dict[str, str] = {}
    for name, section in spec.sections.items():
        kind[section.symbol] = TARGET if name in spec.targets else SHELF
        owner[section.symbol] = name
    if spec.finish:
        owner[spec.finish.symbol] = "FINISH"
    if spec.exit:
        owner[spec.exit.symbol] = "EXIT"
    labels = [
        {
            "name": owner.get(symbol, "START"),
            "words": words,
            "row": float(at[:, 0].mean()),
            "column": float(at[:, 1].mean()),
            "on_floor": symbol not in kind or symbol in spec.arrival_symbols,
            "cells": at.tolist(),
        }
        for symbol, words in spec.place_names.items()
        for at in task.grid.labelled(symbol)
    ]
    return {
        "name": task.name,
        "title": spec.title,
        "rows": int(rows),
        "columns": int(columns),
        "kinds": ["".join(kind.get(symbol, FLOOR) for symbol in row) for row in grid.symbol.tolist()],
        "labels": labels,
        "cells": np.stack([grid.row, grid.column], axis=1).tolist(),
        "neighbour": grid.neighbour.tolist(),
        "actions": list(task.actions),
        "places": {name: sorted(cells) for name, cells in places_in_reach(task.grid).items()},
        **_ground(task.grid),
    }


def _ground(states: GridStates) -> dict[str, Any]:
    """One-way doors, hidden cells and cells with a price of their own, where a map has any."""
    found: dict[str, Any] = {}
    if states.spec.map.one_way:
        found["doors"] = states.doors()
    if states.spec.hidden:
        found["hidden"] = states.unseen()
    if states.spec.costs:
        found["prices"] = states.prices()
    return found


MOST_NAMED = 60
"""In a sketch of more places than this, places have no names."""


def _sketch_scene(task: TaskModel) -> dict[str, Any]:
    """The places of a task with coordinates, and the ways between them."""
    sketch = Sketch.of(task)
    cells = sketch.at[:, ::-1].round(3).tolist()
    named = [i for i, name in enumerate(sketch.labels) if name and len(cells) <= MOST_NAMED]
    return {
        "name": task.name,
        "title": task.name,
        "rows": round(float(sketch.at[:, 1].max()) + 1, 3),
        "columns": round(float(sketch.at[:, 0].max()) + 1, 3),
        "labels": [
            {
                "name": sketch.labels[i],
                "words": sketch.labels[i],
                "row": cells[i][0],
                "column": cells[i][1],
                "on_floor": True,
                "cells": [],
            }
            for i in named
        ],
        "cells": cells,
        "links": sketch.links.tolist(),
        "start": sketch.start,
        "ends": sketch.ends.tolist(),
        "actions": list(task.actions),
    }


ASSETS = ("base.css", "map.js")
"""The files that pages share."""


RISKY = "<>&\u2028\u2029"
"""What could end a script element, or a line of a script."""


def script_json(value: Any) -> str:
    r"""Return a value as JSON that may stand inside a ``<script type="application/json">`` element.

    Halves of characters, which no page can hold, become the replacement character.

    Examples
    --------
    >>> script_json({"said": "</script>"})
    '{"said":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in RISKY:  # far faster than str.translate
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_asset(name: str) -> str:
    """Return the text of one of the files that pages share (:data:`ASSETS`)."""
    if name not in ASSETS:
        raise ValueError(f"There is no shared file {name!r}.")
    return files("fidm.pages").joinpath("static", name).read_text("utf-8")


def csp_hash(text: str) -> str:
    """Return the hash by which a content-security policy allows a script or a style.

    Examples
    --------
    >>> csp_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
