"""What people say by pointing at the map: "the second aisle", "past the meat", "until the eggs are here".

A *sight* is such a stretch of the way. Where it ends depends on where the figure stands by then and on what
follows, so sights are settled last, when the rest of the program is known: each becomes a number of squares,
or a doubt. Only what can be seen on the map is used, never what a step is worth.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from fidm.grounding.base import Context
from fidm.grounding.route.program import Instruction, Way
from fidm.grounding.route.replay import (
    HEADING_NAMES,
    HEADINGS,
    LEFT_OF,
    OPPOSITE,
    RIGHT_OF,
    Position,
    Terrain,
    replay,
)


@dataclass(frozen=True, slots=True)
class Sight(Instruction):
    """A MOVE whose end is something one sees.

    ``nth`` counts aisles that open to a ``side`` (as the figure sees it) or to either; ``goes_to`` says that
    the direction leads along to the aisle and not into it. ``past`` names what must be left behind.
    """

    along: Way = ""  # in which direction one comes to an aisle that is gone into in another
    nth: int = 0
    side: str = ""
    goes_to: bool = False
    past: tuple[str, ...] = ()
    after: bool = False  # whether aisles are counted from one named before
    is_mouth: bool = False  # whether it may be the mouth of an aisle counted before: "go to its mouth"
    between: tuple[str, ...] = ()  # the two places on either side of the aisle one goes to
    beyond: int = 0  # how many squares further than the last place passed


def settle(steps: Sequence[Instruction], context: Context) -> tuple[list[Instruction], bool]:
    """Return the program with every sight as squares, and whether all of them could be settled."""
    made: list[Instruction] = []
    for i, step in enumerate(steps):
        if not isinstance(step, Sight):
            made.append(step)
            continue
        following = steps[i + 1] if i + 1 < len(steps) else None
        end = replay(made, context.terrain, context.position, told=context.told).end
        cell = context.terrain.cell(end.state)
        found = None
        if cell >= 0:
            seek = _to_middle if step.between else _to_aisle if step.nth else _past
            found = seek(step, following, context.terrain, cell, end)
        if found is None:
            rest = [Instruction("MOVE", step.way or "ahead", span=step.span)]
            return [*made, *rest, *(s for s in steps[i + 1 :] if not isinstance(s, Sight))], False
        made += found
    return made, True


def _across(following: Instruction | None, along: int) -> int | None:
    """The direction, across the one one goes in, in which the next instruction leads."""
    if following is None or following.op not in ("MOVE", "TURN"):
        return None
    if following.op == "TURN":
        return (
            {"left": LEFT_OF, "right": RIGHT_OF}[following.way][along] if following.way != "around" else None
        )
    way = HEADINGS.get(following.way)
    return way if way not in (along, OPPOSITE[along]) else None


def _to_aisle(
    step: Sight, following: Instruction | None, terrain: Terrain, cell: int, end: Position
) -> list[Instruction] | None:
    """Along to the n-th aisle, and into it where the words say so."""
    way = HEADINGS.get(step.way)
    tries: list[tuple[int, int | None]] = []  # which way to go along, and which way to go in
    ahead = HEADINGS.get(step.along, end.heading)
    if step.along and ahead is not None:
        tries = [(ahead, way if way not in (ahead, OPPOSITE[ahead]) else None)]
    elif way is None:
        ways = [end.heading] if end.heading is not None else list(range(4))
        tries = [(along, None) for along in ways]
    else:
        leads = _across(following, way) is not None
        if step.goes_to or leads or end.heading in (way, OPPOSITE[way], None):
            tries.append((way, None))
        elif end.heading is not None:
            tries.append((end.heading, way))
    found = []
    for along, into in tries:
        aisles: Collection[int]
        onward = _across(following, along)
        if into is not None:
            aisles = {into}
        elif onward is not None:
            aisles = {onward}
        elif step.side:
            aisles = {(LEFT_OF if step.side == "left" else RIGHT_OF)[along]}
        else:
            aisles = {LEFT_OF[along], RIGHT_OF[along]}
        beyond = [squares_past(terrain, cell, along, place) for place in step.past]
        if None in beyond:
            return None
        after = max([1, *filter(None, beyond)])
        most = max(aisles, key=lambda side: _openings(terrain, cell, along, side))
        if step.nth > 1 or (not _opens(terrain, cell, {most}) and _opens(terrain, cell, aisles)):
            aisles = {most}  # one stands in a gap between shelves, where only few are
        squares = squares_to_opening(terrain, cell, along, step.nth, aisles, after=after)
        if squares is not None:
            found.append((along, squares, into))
    if len(found) != 1:
        return None
    along, squares, into = found[0]
    made = [Instruction("MOVE", _way(along), squares, span=step.span)]
    if into is not None and not (
        following is not None and following.op == "MOVE" and following.way == _way(into)
    ):
        made.append(Instruction("MOVE", _way(into), span=step.span))
    elif into is None and step.side and following is not None and following.way in ("ahead", ""):
        made.append(Instruction("TURN", step.side, span=step.span))  # type: ignore[arg-type]
    return made


def _to_middle(
    step: Sight, following: Instruction | None, terrain: Terrain, cell: int, end: Position
) -> list[Instruction] | None:
    """Along to the aisle with one place on one side and another on the other."""
    headings = [HEADINGS[step.way]] if step.way in HEADINGS else list(range(4))
    found = []
    for along in headings:
        at, squares = cell, 0
        while at >= 0:
            beside = [
                _sees(terrain, at, LEFT_OF[along], place) or _sees(terrain, at, RIGHT_OF[along], place)
                for place in step.between
            ]
            if all(beside):
                found.append((along, squares))
                break
            at, squares = terrain.neighbour[at][along], squares + 1
    straight = HEADINGS.get(step.way, end.heading)
    if not found and straight is not None:
        found.append((straight, _squares_between(terrain, cell, straight, step.between)))
    if len(found) != 1 or not found[0][1]:
        return None
    along, squares = found[0]
    return [Instruction("MOVE", _way(along), squares, span=step.span)]


def _squares_between(terrain: Terrain, cell: int, along: int, places: Sequence[str]) -> int:
    """Return how many squares straight on the one square between two shelves is; 0 where there is none."""
    beside: list[list[int]] = [[] for _ in places]
    squares = 0
    while cell >= 0:
        for place, at in zip(places, beside, strict=True):
            if cell in terrain.reach.get(place, frozenset()):
                at.append(squares)
        cell, squares = terrain.neighbour[cell][along], squares + 1
    if not all(beside):
        return 0
    first, then = sorted(beside)
    return first[-1] + 1 if then[0] - first[-1] == 2 else 0


def _sees(terrain: Terrain, cell: int, way: int, place: str) -> bool:
    """Whether a place comes into reach straight on from a cell, further on than the cell itself."""
    at = terrain.neighbour[cell][way]
    while at >= 0:
        if at in terrain.reach.get(place, frozenset()):
            return True
        at = terrain.neighbour[at][way]
    return False


def _past(
    step: Sight, following: Instruction | None, terrain: Terrain, cell: int, end: Position
) -> list[Instruction] | None:
    """On until a place lies behind, and further to the opening that the next instruction needs."""
    along = HEADINGS.get(step.way, end.heading)
    if along is None:
        return None
    open_move = Instruction("MOVE", _way(along), span=step.span)
    squares = 0
    for place in step.past:
        beyond = squares_past(terrain, cell, along, place)
        if beyond is None:
            return None
        squares = max(squares, beyond)
    if step.beyond:
        return [replace(open_move, squares=squares - 1 + step.beyond)]
    onward = _across(following, along)
    if onward is not None:
        further = squares_to_opening(terrain, cell, along, 1, {onward}, after=squares)
        return None if further is None else [replace(open_move, squares=further)]
    if (
        following is not None
        and following.place
        and terrain.straight(cell, along, following.place) is not None
    ):
        return [open_move]
    return [replace(open_move, squares=squares)] if following is not None else None


def _way(heading: int) -> Way:
    return HEADING_NAMES[heading]  # type: ignore[return-value]


def squares_to_opening(
    terrain: Terrain, cell: int, along: int, n: int, aisles: Collection[int], after: int = 1
) -> int | None:
    """Return how many squares straight on the n-th opening to one of these sides is, or None.

    Openings side by side are one. Where one stands does not count.
    """
    was_open, squares = _opens(terrain, cell, aisles), 0
    while True:
        cell = terrain.neighbour[cell][along]
        if cell < 0:
            return None
        squares += 1
        is_open = _opens(terrain, cell, aisles)
        if is_open and not was_open and squares >= after:
            n -= 1
            if not n:
                return squares
        was_open = is_open


def _openings(terrain: Terrain, cell: int, along: int, side: int) -> int:
    """How many openings a wall along a straight way has."""
    count, was_open = 0, False
    while cell >= 0:
        is_open = _opens(terrain, cell, (side,))
        count += is_open and not was_open
        was_open = is_open
        cell = terrain.neighbour[cell][along]
    return count


def _opens(terrain: Terrain, cell: int, sides: Collection[int]) -> bool:
    return any(terrain.neighbour[cell][side] >= 0 for side in sides)


def squares_past(terrain: Terrain, cell: int, along: int, place: str) -> int | None:
    """Return how many squares straight on a place is behind; None where one does not come past it."""
    cells, squares, last = terrain.reach.get(place, frozenset()), 0, -1
    while cell >= 0:
        if cell in cells:
            last = squares
        cell = terrain.neighbour[cell][along]
        squares += 1
    return last + 1 if 0 <= last < squares - 1 else None


def around_corners(steps: Sequence[Instruction], context: Context) -> tuple[list[Instruction], bool]:
    """Return the program with "down to the till" as a way there where no straight line leads down to it.

    The place must lie in that direction; the second value says whether anything was changed.
    """
    made: list[Instruction] = []
    is_changed = False
    terrain = context.terrain
    for step in steps:
        if step.op == "MOVE" and step.place and step.way in HEADINGS:
            end = replay(made, terrain, context.position, told=context.told).end
            cell, heading = terrain.cell(end.state), HEADINGS[step.way]
            if cell >= 0 and terrain.straight(cell, heading, step.place) is None:
                way = terrain.way(cell, step.place, end.heading) or []
                if way.count(heading) > way.count(OPPOSITE[heading]):
                    step, is_changed = replace(step, op="GOTO", way=""), True
        made.append(step)
    return made, is_changed
