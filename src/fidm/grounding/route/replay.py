"""The one place where a route program becomes moves, legally, and each is marked stated or inferred.

A move is *stated* if the words fix it: "three up", "straight on until the shelf", "right to the end". It is
*inferred* if the planner filled it in: the way in "I go to the vegetables", or a distance nobody mentioned.
Only actions that are legal where they are taken are ever made; what a program asks for beyond that is an
*issue*, and the program goes on from where it can.

What a MOVE without a distance means depends on what follows: before a TURN or a MOVE across, it stops at
the first opening that way; before something to take or a place to go to, it stops where that comes into
reach; else it goes on to the end, which is a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from fidm.grounding.route.program import EXIT, FINISH, Instruction
from fidm.grounding.route.terrain import HEADINGS, LEFT_OF, OPPOSITE, RIGHT_OF, Position, Terrain

Code = Literal[
    "blocked",
    "guessed_distance",
    "filled_in",
    "not_in_line",
    "unreachable",
    "no_heading",
    "after_end",
    "not_here",
]

DOUBTFUL: frozenset[str] = frozenset(
    {"blocked", "guessed_distance", "not_in_line", "unreachable", "no_heading", "not_here"}
)
"""Issues after which a person should look at the segment."""

MEANING: dict[Code, str] = {
    "blocked": "a shelf or wall is in the way before the number of squares is reached",
    "guessed_distance": "nobody said how far, and nothing that follows tells",
    "filled_in": "something is taken away from its shelf; the way there was filled in",
    "not_in_line": "the place does not come into reach in that direction; the way there was filled in",
    "unreachable": "there is no way to that place, or the task has none such",
    "no_heading": "a turn before the first move, when the figure faces nowhere; read on the map",
    "after_end": "said after the task had ended",
    "not_here": "the action is not legal in this state",
}
"""What each issue means."""


@dataclass(frozen=True, slots=True)
class Issue:
    """Something a program asks for that the map does not give as said.

    Parameters
    ----------
    code : str
        What kind of issue, see :data:`MEANING`.
    instruction : int
        The number of the instruction, from 0.
    """

    code: Code
    instruction: int


@dataclass(slots=True)
class Replay:
    """A program's moves on the map.

    Parameters
    ----------
    actions : list of int
        The codes of the actions; -1 is one the task leaves out, such as leaving.
    states : list of int
        The states they are taken in.
    inferred : list of bool
        Whether the planner filled the action in.
    instruction : list of int
        Which instruction each action belongs to.
    end : Position
        Where one is afterwards.
    issues : list of Issue
        Where the map did not give what was said.
    """

    actions: list[int]
    states: list[int]
    inferred: list[bool]
    instruction: list[int]
    end: Position
    issues: list[Issue] = field(default_factory=list)

    @property
    def doubts(self) -> tuple[str, ...]:
        """The codes of issues that a person should look at, each once."""
        return tuple(dict.fromkeys(issue.code for issue in self.issues if issue.code in DOUBTFUL))

    def __len__(self) -> int:
        return len(self.actions)


def replay(
    program: Sequence[Instruction],
    terrain: Terrain,
    position: Position,
    *,
    told: frozenset[str] = frozenset(),
) -> Replay:
    """Expand a route program on the map.

    Parameters
    ----------
    program : sequence of Instruction
        What was said.
    terrain : Terrain
        The map.
    position : Position
        Where the person is.
    told : frozenset of str
        The phases that somebody opens in so many words in this dialog; others open when the goals before
        them are complete.

    Examples
    --------
    >>> import fidm
    >>> from fidm.grounding.route.program import parse_program
    >>> from fidm.grounding.route.terrain import Terrain
    >>> terrain = Terrain(fidm.load_task("grocery"))
    >>> done = replay(parse_program("MOVE left 1; MOVE up 2", terrain.places), terrain, terrain.start())
    >>> [terrain.task.actions[action] for action in done.actions]
    ['W', 'N', 'N']
    """
    walk = _Walk(terrain, position, told)
    for i, step in enumerate(program):
        walk.number = i
        if step.op == "NONE":
            continue
        if walk.state == terrain.end and step.op != "LEAVE":
            walk.say("after_end")
            continue
        following = program[i + 1] if i + 1 < len(program) else None
        before = program[i - 1] if i else None
        _STEPS[step.op](walk, step, following, before)
    return walk.done()


class _Walk:
    """A walk in progress."""

    def __init__(self, terrain: Terrain, position: Position, told: frozenset[str]) -> None:
        self.terrain, self.told = terrain, told
        self.state, self.heading = position.state, position.heading
        self.before = position.trail
        self.cells: list[int] = []
        self.number = 0
        self.made = Replay([], [], [], [], position)

    @property
    def cell(self) -> int:
        return self.terrain.cell(self.state)

    def say(self, code: Code) -> None:
        self.made.issues.append(Issue(code, self.number))

    def act(self, action: int, *, inferred: bool = False) -> bool:
        """Take an action if it is legal."""
        there = self.terrain.after(self.state, action, self.told)
        if there < 0:
            return False
        self.note(action, inferred=inferred)
        self.state = there
        return True

    def note(self, action: int, *, inferred: bool = False) -> None:
        """Note an action; -1 is one the task leaves out."""
        self.made.actions.append(action)
        self.made.states.append(self.state)
        self.made.inferred.append(inferred)
        self.made.instruction.append(self.number)

    def go(self, heading: int, *, inferred: bool = False) -> bool:
        """Take one step if nothing is in the way."""
        cell = self.cell
        if self.terrain.neighbour[cell][heading] < 0:
            return False
        if not self.act(self.terrain.move_code[heading], inferred=inferred):
            return False
        self.cells.append(cell)
        self.heading = heading
        return True

    def find(self, place: str) -> bool:
        """Go to a place by the planner's way."""
        way = self.terrain.way(self.cell, place, self.heading)
        if way is None:
            self.say("unreachable")
            return False
        return all(self.go(heading, inferred=True) for heading in way)

    def facing(self, way: str) -> int:
        """The heading a MOVE or TURN means."""
        if way == "ahead" or way == "around":
            heading = self.heading
            if heading is None:
                self.say("no_heading")
                heading = HEADINGS["up"]
            return OPPOSITE[heading] if way == "around" else heading
        return HEADINGS[way]

    def done(self) -> Replay:
        trail = tuple(self.cells) if self.cells else self.before
        self.made.end = Position(self.state, self.heading, trail)
        return self.made


def _move(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    heading = walk.facing(step.way)
    if step.place:
        squares = walk.terrain.straight(walk.cell, heading, step.place)
        if squares is None:
            walk.say("not_in_line")
            walk.find(step.place)
            return
        _straight(walk, heading, squares)
    elif step.to_end:
        walk.heading = heading
        if not walk.go(heading):
            walk.say("blocked")
        while walk.go(heading):
            pass
    elif step.squares is not None:
        _straight(walk, heading, step.squares)
    else:
        _unmeasured(walk, heading, following)


def _straight(walk: _Walk, heading: int, squares: int) -> None:
    walk.heading = heading
    for _ in range(squares):
        if not walk.go(heading):
            walk.say("blocked")
            return


def _unmeasured(walk: _Walk, heading: int, following: Instruction | None) -> None:
    """Go on until what follows becomes possible."""
    walk.heading = heading
    across = None
    if following is not None and following.op == "TURN" and following.way in ("left", "right"):
        across = LEFT_OF[heading] if following.way == "left" else RIGHT_OF[heading]
    elif following is not None and following.op == "MOVE" and following.way in HEADINGS:
        other = HEADINGS[following.way]
        across = other if other not in (heading, OPPOSITE[heading]) else None
    place = _goal(following)
    if across is not None:
        if not walk.go(heading):
            walk.say("blocked")
            return
        while walk.terrain.neighbour[walk.cell][across] < 0:
            if not walk.go(heading):
                walk.say("guessed_distance")
                return
    elif place and (squares := walk.terrain.straight(walk.cell, heading, place)) is not None:
        _straight(walk, heading, squares)
    elif place:
        walk.say("not_in_line")
    else:
        walk.say("guessed_distance")
        while walk.go(heading, inferred=True):
            pass


def _goal(following: Instruction | None) -> str:
    """The place the next instruction is about."""
    if following is None:
        return ""
    return {"PAY": FINISH, "LEAVE": EXIT}.get(following.op, following.place)


def _turn(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    if walk.heading is None and step.way in HEADINGS:
        walk.say("no_heading")
        walk.heading = HEADINGS[step.way]
        return
    if step.way == "around":
        walk.heading = walk.facing("around")
    elif walk.heading is not None:
        walk.heading = (LEFT_OF if step.way == "left" else RIGHT_OF)[walk.heading]
    if (
        following is not None
        and following.op == "TURN"
        and following.way != "around"
        and step.way != "around"
    ):
        _unmeasured(walk, walk.heading if walk.heading is not None else 0, following)


def _goto(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    if before is not None and before.op == "TURN" and walk.heading is not None:
        squares = walk.terrain.straight(walk.cell, walk.heading, step.place)
        if squares is not None:
            _straight(walk, walk.heading, squares)
            return
    walk.find(step.place)


def _along(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    if step.place:
        _goto(walk, step, following, before)
        return
    neighbour = walk.terrain.neighbour
    for _ in range(walk.terrain.n_cells):
        back = None if walk.heading is None else OPPOSITE[walk.heading]
        ways = [way for way, there in enumerate(neighbour[walk.cell]) if there >= 0 and way != back]
        has_begun = walk.made.instruction[-1:] == [walk.number]
        if len(walk.cells) and has_begun and len(ways) != 1:
            return
        way = walk.heading if walk.heading in ways else ways[0] if len(ways) == 1 else None
        if way is None or not walk.go(way):
            walk.say("blocked")
            return


def _back(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    if step.place:
        _goto(walk, step, following, before)
        return
    if step.squares is not None:
        _straight(walk, walk.facing("around"), step.squares)
        return
    if following is not None and following.op in ("MOVE", "TURN", "ALONG"):
        walk.heading = walk.facing("around")
        if following.op == "TURN":
            _unmeasured(walk, walk.heading, following)
        return
    if following is not None and _goal(following):
        return
    walk.say("guessed_distance")
    begun = len(walk.cells)
    for cell in reversed((walk.cells or list(walk.before))[-walk.terrain.n_cells :]):
        ways = walk.terrain.neighbour[walk.cell]
        if cell not in ways or not walk.go(ways.index(cell), inferred=True):
            break
    walk.cells = walk.cells[begun:]  # the way there is used up; kept, it would double with every BACK


def _use(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    finish = walk.terrain.spec.finish
    if step.op == "BUY":
        place, action = step.place, walk.terrain.buying(step.place)
    elif finish is not None:
        place, action = FINISH, walk.terrain.code(finish.action)
    else:
        walk.say("unreachable")
        return
    if walk.cell not in walk.terrain.reach.get(place, frozenset()):
        walk.say("filled_in")
        _goto(walk, Instruction("GOTO", place=place), None, before)
    if action < 0 or not walk.act(action):
        walk.say("not_here")


def _leave(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    leaving = walk.terrain.spec.exit
    if leaving is None:
        walk.say("unreachable")
        return
    action = walk.terrain.code(leaving.action)
    if walk.state != walk.terrain.end and walk.cell not in walk.terrain.reach[EXIT]:
        walk.say("filled_in")
        _goto(walk, Instruction("GOTO", place=EXIT), None, before)
    if action < 0:
        walk.note(-1)
    elif not walk.act(action):
        walk.say("not_here")


_STEPS = {
    "MOVE": _move,
    "TURN": _turn,
    "GOTO": _goto,
    "ALONG": _along,
    "BACK": _back,
    "BUY": _use,
    "PAY": _use,
    "LEAVE": _leave,
}
