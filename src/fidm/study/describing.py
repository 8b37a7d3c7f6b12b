"""How simulated people say what they do: every wording of a run of moves that fixes it, as route programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fidm.grounding.program import EXIT, FINISH, START, Instruction, Op, Program, Way
from fidm.grounding.terrain import HEADING_NAMES, LEFT_OF, OPPOSITE, RIGHT_OF, Terrain

_PLACES: dict[str, str] = {"PAY": FINISH, "LEAVE": EXIT}


class Describer:
    """Finds the programs that say exactly what was done.

    Parameters
    ----------
    terrain : Terrain
        The map.
    told : frozenset of str
        The phases the assessor opens.
    """

    def __init__(self, terrain: Terrain, told: frozenset[str]) -> None:
        self.terrain, self.told = terrain, told
        self._uses = self._used_places()

    def describe(
        self, state: int, heading: int | None, actions: Sequence[int], rng: np.random.Generator
    ) -> Iterator[Instruction]:
        """Words that fix these actions, drawn among all that do."""
        terrain, i = self.terrain, 0
        while i < len(actions):
            if actions[i] not in terrain.move_code:
                yield self.use(state, actions[i])
                state, i = terrain.after(state, actions[i], self.told), i + 1
                continue
            way, first, begun = terrain.move_code.index(actions[i]), i, terrain.cell(state)
            while i < len(actions) and actions[i] == actions[first]:
                state, i = terrain.after(state, actions[i], self.told), i + 1
            is_used = i < len(actions) and actions[i] not in terrain.move_code
            then = self.use(state, actions[i]) if is_used else None
            ways = self._ways_to_say(begun, heading, way, i - first, then)
            yield from ways[int(rng.random() * len(ways))]
            heading = way

    def _ways_to_say(
        self, cell: int, heading: int | None, way: int, n: int, then: Instruction | None
    ) -> list[Program]:
        """Every exact way to say a run of equal moves."""
        terrain = self.terrain
        fars: list[tuple[int | None, bool, str]] = [(n, False, "")] * 2
        there = cell
        for _ in range(n):
            there = terrain.neighbour[there][way]
        if terrain.neighbour[there][way] < 0:
            fars.append((None, True, ""))
        fars += [
            (None, False, place)
            for place in terrain.reach
            if place != START and terrain.straight(cell, way, place) == n
        ]
        goal = "" if then is None else _PLACES.get(then.op, then.place)
        if goal and terrain.straight(cell, way, goal) == n:
            fars.append((None, False, ""))
        heads: list[tuple[Program, Way]] = [((), _way(way))]
        if heading is not None:
            turns: dict[int, Program] = {
                heading: (),
                LEFT_OF[heading]: (Instruction("TURN", "left"),),
                RIGHT_OF[heading]: (Instruction("TURN", "right"),),
                OPPOSITE[heading]: (Instruction("TURN", "around"),),
            }
            heads.append((turns[way], "ahead"))
        found = [
            (*head, Instruction("MOVE", said, squares, to_end, place))
            for head, said in heads
            for squares, to_end, place in fars
        ]
        if heading is not None and way == OPPOSITE[heading]:
            found += [(Instruction("BACK", squares=n),)] * 2
        return found

    def use(self, state: int, action: int) -> Instruction:
        """The instruction of an action that is no movement."""
        op, place = self._uses.get(action, ("BUY", ""))
        if op != "BUY" or place:
            return Instruction(op, place=place)
        cell, done = self.terrain.cell(state), self.progress(state)
        near = [name for name in self.terrain.places if cell in self.terrain.reach[name]]
        gained = self.progress(int(self.terrain.task.next_state[state, action])) & ~done
        targets = self.terrain.spec.targets
        new = [name for name in near if name in targets and gained >> targets.index(name) & 1]
        return Instruction("BUY", place=(new or near)[0])

    def place(self, state: int, action: int) -> str:
        """Return where an action that is no movement is done."""
        said = self.use(state, action)
        return _PLACES.get(said.op, said.place)

    def progress(self, state: int) -> int:
        """Return which targets are completed, one bit each; all at the end."""
        if state == self.terrain.end:
            return -1
        return int(self.terrain.grid.progress[state // self.terrain.n_cells])

    def _used_places(self) -> dict[int, tuple[Op, str]]:
        """What each action that is no movement is called in a program; no place where one fits all."""
        spec, terrain = self.terrain.spec, self.terrain
        found: dict[int, tuple[Op, str]] = {}
        for place in terrain.places:
            found[terrain.buying(place)] = ("BUY", "" if spec.rules.buy == "single" else place)
        if spec.finish:
            found[terrain.code(spec.finish.action)] = ("PAY", "")
        if spec.exit:
            found[terrain.code(spec.exit.action)] = ("LEAVE", "")
        return found


def _way(heading: int) -> Way:
    names: dict[str, Way] = {"up": "up", "down": "down", "left": "left", "right": "right"}
    return names[HEADING_NAMES[heading]]
