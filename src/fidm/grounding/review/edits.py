"""What a person may write in place of a grounder's reading: legal moves and nothing else.

A reviewer writes a program of the route language, or simply the moves, or both. Unlike a grounder's program
it is never repaired: what is illegal, blocked, or would have to be guessed is refused, with what is legal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fidm.errors import GroundingError
from fidm.grounding.route.program import (
    EXIT,
    MAX_INSTRUCTIONS,
    MAX_SQUARES,
    NOTHING,
    OPS,
    Instruction,
    Program,
    parse_program,
)
from fidm.grounding.route.replay import (
    DOUBTFUL,
    HEADING_NAMES,
    MEANING,
    Issue,
    Position,
    Replay,
    Terrain,
    replay,
)
from fidm.tasks.grid import MOVES

MOST_LETTERS = 4000
"""The longest text of an edit."""

MAX_ACTIONS = 2000
"""The longest way one segment can stand for."""

MOST_QUOTED = 40
"""How much of what a reviewer wrote is repeated to them."""

_MOVE = re.compile(r"([NSEW])(?:[×X*]?([0-9]{1,6}))?")
_WIDE = str.maketrans("；，、　", ";,, ")
"""What a Chinese keyboard writes between words."""


def action_name(terrain: Terrain, action: int) -> str:
    """Return the name of an action; -1 is the one the task leaves out."""
    if action >= 0:
        return terrain.task.actions[action]
    return terrain.spec.exit.action if terrain.spec.exit else ""


def action_names(terrain: Terrain, actions: Sequence[int]) -> tuple[str, ...]:
    """Return the names of actions."""
    return tuple(action_name(terrain, action) for action in actions)


def legal_actions(
    terrain: Terrain, position: Position, *, told: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return what can be done somewhere, by name.

    Parameters
    ----------
    terrain : Terrain
        The map.
    position : Position
        Where the person is.
    told : frozenset of str
        The phases that somebody opens in so many words in this dialog.

    Examples
    --------
    >>> import fidm
    >>> from fidm.grounding.route.replay import Terrain
    >>> terrain = Terrain(fidm.load_task("grocery"))
    >>> legal_actions(terrain, terrain.start())
    ('W',)
    """
    state = position.state
    found = [
        name
        for code, name in enumerate(terrain.task.actions)
        if state != terrain.end and terrain.after(state, code, told) >= 0
    ]
    leaving = terrain.spec.exit
    if leaving is not None and terrain.code(leaving.action) < 0:
        at_exit = state == terrain.end or terrain.cell(state) in terrain.reach[EXIT]
        found += [leaving.action] if at_exit else []
    return tuple(found)


def parse_edit(
    text: str, terrain: Terrain, position: Position, *, told: frozenset[str] = frozenset()
) -> tuple[Program, Replay]:
    """Read what a reviewer wrote, and walk it.

    Parameters
    ----------
    text : str
        Instructions of the route language, set apart by semicolons or line ends (``MOVE up 3; BUY meat``); or
        actions by name, repeated ones with their number (``N×3, E, BUY meat``); or both. ``NONE`` says that
        nothing was said about the way.
    terrain, position, told
        As in :func:`legal_actions`; the segment starts at ``position``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.grounding.route.program import write_program
    >>> from fidm.grounding.route.replay import Terrain
    >>> terrain = Terrain(fidm.load_task("grocery"))
    >>> program, done = parse_edit("W N×2", terrain, terrain.start())
    >>> write_program(program)
    'MOVE left 1; MOVE up 2'
    >>> parse_edit("MOVE up 3", terrain, terrain.start())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    fidm.errors.GroundingError: Instruction 1, MOVE up 3, cannot be done: ... Legal there: W.
    """
    if len(text) > MOST_LETTERS:
        raise GroundingError(f"An edit has at most {MOST_LETTERS:,} letters, not {len(text):,}.")
    written, numbers = _written(text.translate(_WIDE), terrain)
    program = _placed(written, numbers, terrain, position, told)
    done = replay(program, terrain, position, told=told)
    wrong = [issue for issue in done.issues if issue.code in DOUBTFUL or issue.code == "after_end"]
    if wrong:
        raise GroundingError(_refusal(wrong[0], program, numbers, done, terrain, told))
    if len(done) > MAX_ACTIONS:
        raise GroundingError(f"That is {len(done):,} actions; one segment has at most {MAX_ACTIONS:,}.")
    return program, done


def _refusal(
    issue: Issue,
    program: Program,
    numbers: Sequence[int],
    done: Replay,
    terrain: Terrain,
    told: frozenset[str],
) -> str:
    """What cannot be done, why, and what can be done there."""
    after = [
        state
        for state, number in zip(done.states, done.instruction, strict=True)
        if number > issue.instruction
    ]
    place = Position(after[0]) if after else done.end
    step = program[issue.instruction]
    legal = ", ".join(legal_actions(terrain, place, told=told)) or "nothing; the task has ended"
    return (
        f"Instruction {numbers[issue.instruction]}, {step}, cannot be done: {MEANING[issue.code]}. "
        f"Legal there: {legal}."
    )


def _written(text: str, terrain: Terrain) -> tuple[Program, list[int]]:
    """The instructions of a text, and the number each one has as it was written.

    A move by name is a MOVE, and the same ones in a row are one: the number is that of the first.
    """
    found: list[Instruction] = []
    numbers: list[int] = []
    number = 0
    for part in re.split(r"[;,\n]", text):
        words = part.split()
        at = 0
        while at < len(words):
            number += 1
            move = _MOVE.fullmatch(words[at].upper())
            if move is not None:
                _add_moves(found, MOVES.index(move[1]), int(move[2] or 1), number=number)
                at += 1
            else:
                end = next((i for i in range(at + 1, len(words)) if _starts(words, i, terrain)), len(words))
                found.append(_instruction(words[at:end], number, terrain))
                at = end
            numbers += [number] * (len(found) - len(numbers))
    if not found:
        raise GroundingError("Nothing is written. Write NONE if nothing was said about the way.")
    kept = [(step, of) for step, of in zip(found, numbers, strict=True) if step.op != "NONE"]
    if len(kept) > MAX_INSTRUCTIONS:
        raise GroundingError(f"A program has at most {MAX_INSTRUCTIONS} instructions, not {len(kept)}.")
    if not kept:
        return NOTHING, [1]
    return tuple(step for step, _ in kept), [of for _, of in kept]


def _placed(
    program: Program, numbers: Sequence[int], terrain: Terrain, position: Position, told: frozenset[str]
) -> Program:
    """The program, where tasks have one action for all places with the place that is in reach."""
    found: list[Instruction] = []
    for number, step in zip(numbers, program, strict=True):
        if step.op == "BUY" and not step.place:
            here = replay(found, terrain, position, told=told).end
            place = _at_hand(terrain.buying(""), here.state, terrain)
            if place is None:
                legal = ", ".join(legal_actions(terrain, here, told=told))
                raise GroundingError(
                    f"Instruction {number}: nothing is in reach there. Legal there: {legal}."
                )
            step = replace(step, place=place)
        found.append(step)
    return tuple(found)


def _quoted(words: Sequence[str]) -> str:
    """What the reviewer wrote, so that they find it: nothing that cannot be seen, and not much of it."""
    text = "".join(letter for letter in " ".join(words) if letter.isprintable())
    return f"“{text}”" if len(text) <= MOST_QUOTED else f"“{text[:MOST_QUOTED]}…”"


def _starts(words: Sequence[str], at: int, terrain: Terrain) -> bool:
    """Whether a new move or instruction begins here, rather than the last one going on."""
    word = words[at]
    if word.casefold() in {place.casefold() for place in terrain.places}:
        return False
    verbs = {*OPS, *(name.split()[0].upper() for name in terrain.task.actions)}
    if terrain.spec.exit is not None:
        verbs.add(terrain.spec.exit.action.split()[0].upper())
    return word.upper() in verbs or _MOVE.fullmatch(word.upper()) is not None


def _add_moves(found: list[Instruction], heading: int, squares: int, *, number: int | None = None) -> None:
    way, own = HEADING_NAMES[heading], squares
    if found and found[-1].op == "MOVE" and found[-1].way == way and found[-1].squares is not None:
        squares += found.pop().squares or 0
    if own < 1 or squares > MAX_SQUARES:
        raise GroundingError(
            f"Instruction {number or len(found) + 1}: a number of squares is 1 to {MAX_SQUARES}."
        )
    found.append(Instruction("MOVE", way, squares))  # type: ignore[arg-type]


def _instruction(words: Sequence[str], number: int, terrain: Terrain) -> Instruction:
    """One instruction of the route language, or an action by the task's own name for it."""
    said = " ".join(words).casefold()
    spec = terrain.spec
    named = {f"{spec.verb} {place}".casefold(): Instruction("BUY", place=place) for place in terrain.places}
    if spec.finish is not None:
        named[spec.finish.action.casefold()] = Instruction("PAY")
    if spec.exit is not None:
        named[spec.exit.action.casefold()] = Instruction("LEAVE")
    if spec.rules.buy == "single":
        named[spec.verb.casefold()] = Instruction("BUY")
    if said in named:
        return named[said]
    if words[0].upper() not in OPS:
        known = ", ".join(dict.fromkeys((*OPS, *MOVES, *(name.split()[0] for name in terrain.task.actions))))
        raise GroundingError(f"Instruction {number}, {_quoted(words)}, has no known name. Known: {known}.")
    try:
        return parse_program(" ".join(words), terrain.places)[0]
    except GroundingError as error:
        told = error.message.removeprefix("Instruction 1")
        between = "" if told.startswith(":") else ","
        raise GroundingError(f"Instruction {number}, {_quoted(words)}{between}{told}") from None


def program_of(
    actions: Sequence[int | str],
    terrain: Terrain,
    position: Position,
    *,
    told: frozenset[str] = frozenset(),
) -> Program:
    """Return the shortest program that says exactly these actions, all of them stated.

    Parameters
    ----------
    actions : sequence of int or str
        The actions, by code or by name.
    terrain, position, told
        As in :func:`legal_actions`; the segment starts at ``position``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.grounding.route.program import write_program
    >>> from fidm.grounding.route.replay import Terrain
    >>> terrain = Terrain(fidm.load_task("grocery"))
    >>> write_program(program_of(["W", "N", "N"], terrain, terrain.start()))
    'MOVE left 1; MOVE up 2'
    """
    found: list[Instruction] = []
    state = position.state
    for number, action in enumerate(actions, start=1):
        code = _code(action, number, terrain)
        here = Position(state)
        if action_name(terrain, code) not in legal_actions(terrain, here, told=told):
            legal = ", ".join(legal_actions(terrain, here, told=told)) or "nothing; the task has ended"
            raise GroundingError(
                f"Action {number}, {action_name(terrain, code)}, is not legal there. Legal: {legal}."
            )
        if code in terrain.move_code:
            _add_moves(found, terrain.move_code.index(code), 1)
        else:
            found.append(_doing(code, state, terrain))
        state = state if code < 0 else terrain.after(state, code, told)
    if len(found) > MAX_INSTRUCTIONS:
        raise GroundingError(f"A program has at most {MAX_INSTRUCTIONS} instructions, not {len(found)}.")
    return tuple(found) or NOTHING


def _code(action: int | str, number: int, terrain: Terrain) -> int:
    """The code of an action; -1 for the one the task leaves out."""
    if isinstance(action, str):
        leaving = terrain.spec.exit
        code = terrain.code(action)
        if code >= 0 or (leaving is not None and action == leaving.action):
            return code
    elif 0 <= action < len(terrain.task.actions) or (action == -1 and terrain.spec.exit is not None):
        return action
    known = ", ".join(terrain.task.actions)
    raise GroundingError(f"Action {number} is none of the task's. Known: {known}.")


def _doing(code: int, state: int, terrain: Terrain) -> Instruction:
    """The instruction of an action that is no movement."""
    finish, leaving = terrain.spec.finish, terrain.spec.exit
    if leaving is not None and code == terrain.code(leaving.action):
        return Instruction("LEAVE")
    if finish is not None and code == terrain.code(finish.action):
        return Instruction("PAY")
    return Instruction("BUY", place=_at_hand(code, state, terrain) or "")


def _at_hand(code: int, state: int, terrain: Terrain) -> str | None:
    """The place in reach at which an action takes something."""
    cell = terrain.cell(state)
    there = (p for p in terrain.places if terrain.buying(p) == code and cell in terrain.reach[p])
    return next(there, None)
