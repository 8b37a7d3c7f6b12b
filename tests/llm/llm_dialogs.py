"""Segments and contexts for the tests of the language-model grounder."""

from __future__ import annotations

from functools import cache

import fidm
from fidm.grounding.base import Context, Segment
from fidm.grounding.route.replay import Terrain


@cache
def terrain(name: str = "grocery") -> Terrain:
    return Terrain(fidm.load_task(name))


def segment(text: str = "go up three", number: int = 1) -> Segment:
    return Segment(number, text, (0,), (0,), (0,))


def context(
    row: int = 9, column: int = 14, heading: str | None = "up", task: str = "grocery", **more
) -> Context:
    land = terrain(task)
    return Context(land, land.position(row, column, heading), **more)
