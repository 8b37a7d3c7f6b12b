"""Whose left: directions as the map, the figure or somebody opposite sees them.

"Go left" is usually the map's left and "turn left" the figure's own. Some people keep to one of the two
throughout, and some speak to the assessor who sits opposite, for whom left is right and up is down. Which it
is, the dialog tells: in the wrong frame people walk into shelves. A dialog that the usual frame contradicts
is read in the others too, and the one in which what is said can be walked is taken, if that is clear. Compass
words are always the map's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from fidm.grounding.base import Context
from fidm.grounding.route.program import Instruction, Program, Way, tidy
from fidm.grounding.route.replay import HEADINGS, LEFT_OF, RIGHT_OF, replay

Frame = Literal["walker", "map", "listener"]

FRAMES: dict[str, tuple[Frame, Frame]] = {
    "map": ("map", "map"),
    "walker": ("walker", "walker"),
    "listener": ("walker", "listener"),
}
"""How turns and sides are meant by those who mean them otherwise than is usual."""

_OPPOSITE: dict[Way, Way] = {"left": "right", "right": "left", "up": "down", "down": "up"}


def in_frame(
    steps: Iterable[Instruction],
    context: Context,
    *,
    turns: Frame,
    sides: Frame,
    compass: Sequence[tuple[int, int]] = (),
) -> Program:
    """Return a program with its directions as they are meant; stretches of compass words stay the map's."""
    program = tidy(steps)
    if turns == "map":
        program = on_map(program, context)
    made: list[Instruction] = []
    for step in program:
        is_compass = any(step.span[0] <= start and end <= step.span[1] for start, end in compass)
        if step.op != "MOVE" or is_compass:
            made.append(step)
        elif sides == "walker" and step.way in ("left", "right"):
            made += [Instruction("TURN", step.way, span=step.span), replace(step, way="ahead")]
        elif sides == "listener":
            made.append(replace(step, way=_OPPOSITE.get(step.way, step.way)))
        else:
            made.append(step)
    return tuple(made)


def on_map(program: Program, context: Context) -> Program:
    """The program with its turns taken on the map: "left" is the map's left, wherever the figure faces."""
    made: list[Instruction] = []
    for step in program:
        if step.op != "TURN" or step.way not in ("left", "right"):
            made.append(step)
            continue
        heading = replay(made, context.terrain, context.position, told=context.told).end.heading
        wanted = HEADINGS[step.way]
        if heading is None or LEFT_OF[heading] == wanted:
            made.append(replace(step, way="left" if heading is not None else step.way))
        elif RIGHT_OF[heading] == wanted:
            made.append(replace(step, way="right"))
        elif heading != wanted:
            made.append(replace(step, way="around"))
    return tidy(made)
