"""The rules of a drawn task, written again as plainly as possible from the paper's tables.

State: (row, column, completed targets, phase), or "end". It reads the same TaskSpec and shares no code
with fidm.tasks.compile.
"""

from __future__ import annotations

from fidm.tasks.spec import TaskSpec

WAYS = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}
SLANTED = {"NE": (-1, 1), "SW": (1, -1), "SE": (1, 1), "NW": (-1, -1)}


class SlowGrid:
    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.map = {(r, c): s for r, row in enumerate(spec.rows) for c, s in enumerate(row)}
        self.ways = WAYS if spec.rules.diagonal == "none" else WAYS | SLANTED

    def starts(self):
        cells = [cell for cell, symbol in self.map.items() if symbol == self.spec.map.start]
        return [self._open((*cell, frozenset(), 0)) for cell in cells]

    def start(self):
        return self.starts()[0]

    def actions(self, state):
        if state == "end" or (self._is_waiting(state) and self.spec.rules.value_flow == "ends"):
            return []
        stays = self.spec.rules.bumps == "stay"
        legal = [way for way in self.ways if stays or self._is_free(state, way)]
        if self.spec.rules.buy == "single":
            legal += [self.spec.verb] if self._chosen(state) else []
        else:
            legal += [f"{self.spec.verb} {name}" for name in self.spec.sections if self._can_buy(state, name)]
        finish, leave = self.spec.finish, self.spec.exit
        if finish and finish.reach != "arrive" and self._within(state, finish.symbol, finish.reach):
            is_last = state[3] == len(self.spec.phases) - 1
            legal += [finish.action] if is_last or finish.early == "nothing" else []
        if leave and leave.in_likelihood and self.map[state[:2]] == leave.symbol:
            legal.append(leave.action)
        return legal

    def step(self, state, action):
        row, column, done, phase = state
        if action in self.ways and not self._is_free(state, action):
            return self._open(state)
        if action in self.ways:
            cell = self._moved(state, action)
            if self._ends_here(cell, phase):
                return "end"
            return self._open((*cell, done | self._collected(state, cell), phase))
        if self.spec.finish and action == self.spec.finish.action:
            is_last = phase == len(self.spec.phases) - 1
            return "end" if is_last and self.spec.finish.ends else self._open(state)
        if self.spec.exit and action == self.spec.exit.action:
            return "end"
        name = self._section(state, action)
        if name in self.spec.targets and name not in done and self._treatment(state, name) != "ignored":
            done = done | {name}
        return self._open((row, column, done, phase))

    def reward(self, state, action):
        pay, phase, done = self.spec.rewards, state[3], state[2]
        if action in self.ways and not self._is_free(state, action):
            return pay.move if pay.bump is None else pay.bump
        if action in self.ways:
            cell = self._moved(state, action)
            return self.spec.costs.get(self.map[cell], pay.move) + self._found(state, cell)
        if self.spec.finish and action == self.spec.finish.action:
            if phase < len(self.spec.phases) - 1:
                return self.spec.finish.reward_early
            share = len(done) / len(self.spec.targets)
            return self.spec.finish.reward + self.spec.finish.reward_completion * share
        if self.spec.exit and action == self.spec.exit.action:
            return 0.0
        name = self._section(state, action)
        return pay.repeated if name in done else self._pay_of(state, name)

    def _pay_of(self, state, name):
        """What a section pays that is used and is no completed target."""
        pay = self.spec.rewards
        if name not in self.spec.targets:
            return pay.non_target
        if self._treatment(state, name) == "active":
            own = self.spec.sections[name].reward
            return pay.target if own is None else own
        return pay.out_of_phase

    # ---------------------------------------------------------------- arriving

    def _arrived_at(self, cell):
        """The section that stepping onto a cell uses, if there is one."""
        for name, section in self.spec.sections.items():
            if section.symbol == self.map[cell] and (section.reach or self.spec.rules.reach) == "arrive":
                return name
        return None

    def _is_used(self, state, name):
        """Whether stepping onto a section does anything: not if it is completed, nor if it cannot be used."""
        return name is not None and name not in state[2] and self._allows(state, name)

    def _collected(self, state, cell):
        name = self._arrived_at(cell)
        marks = self._is_used(state, name) and name in self.spec.targets
        return {name} if marks and self._treatment(state, name) in ("active", "marks") else set()

    def _is_goal(self, cell):
        finish = self.spec.finish
        return bool(finish) and finish.reach == "arrive" and self.map[cell] == finish.symbol

    def _ends_here(self, cell, phase):
        return self._is_goal(cell) and phase == len(self.spec.phases) - 1 and self.spec.finish.ends

    def _found(self, state, cell):
        """What arriving pays besides the step."""
        name, finish = self._arrived_at(cell), self.spec.finish
        if self._is_used(state, name):
            return self._pay_of(state, name)
        if not self._is_goal(cell):
            return 0.0
        if state[3] < len(self.spec.phases) - 1:
            return finish.reward_early if finish.early == "nothing" else 0.0
        return finish.reward + finish.reward_completion * len(state[2]) / max(1, len(self.spec.targets))

    # ---------------------------------------------------------------- what the rules say

    def _open(self, state):
        """Let completed phases open the next, as far as the task says so."""
        row, column, done, phase = state
        last = len(self.spec.phases) - 1
        goes_on = self.spec.rules.value_flow == "chained" or (done, phase) == (frozenset(), 0)
        while goes_on and phase < last and set(self.spec.phases[phase].targets) <= done:
            phase += 1
        everything = all(set(p.targets) <= done for p in self.spec.phases[phase:])
        if everything and not self.spec.finish:
            return "end"
        return (row, column, done, phase)

    def _is_waiting(self, state):
        phase = self.spec.phases[state[3]]
        return state[3] < len(self.spec.phases) - 1 and set(phase.targets) <= state[2]

    def _treatment(self, state, name):
        """How a target that has not been bought yet is treated: active, marks, ignored or illegal."""
        done, phase = state[2], state[3]
        wanted = [t for t in self.spec.phases[phase].targets if t not in done]
        if self.spec.rules.order == "listed":
            wanted = wanted[:1]
        if name in wanted:
            return "active"
        (of_phase,) = [i for i, p in enumerate(self.spec.phases) if name in p.targets]
        return self.spec.rules.late_target if of_phase < phase else self.spec.rules.early_target

    def _can_buy(self, state, name):
        section = self.spec.sections[name]
        reach = section.reach or self.spec.rules.reach
        if reach == "arrive" or not self._within(state, section.symbol, reach):
            return False
        return self._allows(state, name)

    def _allows(self, state, name):
        """Whether the rules let somebody use a section, wherever it is."""
        section = self.spec.sections[name]
        if not set(section.requires) <= state[2]:
            return False
        if name not in self.spec.targets:
            return self.spec.rules.non_targets == "legal"
        return name in state[2] or self._treatment(state, name) != "illegal"

    def _section(self, state, action):
        if self.spec.rules.buy == "single":
            return self._chosen(state)
        return action.removeprefix(f"{self.spec.verb} ")

    def _chosen(self, state):
        """With one BUY for all: an active target, else an open one, else a bought one, else anything."""
        able = [name for name in self.spec.sections if self._can_buy(state, name)]
        targets = [name for name in able if name in self.spec.targets]
        unbought = [name for name in targets if name not in state[2]]
        active = [name for name in unbought if self._treatment(state, name) == "active"]
        return next(iter([*active, *unbought, *targets, *able]), None)

    def _moved(self, state, way):
        return state[0] + self.ways[way][0], state[1] + self.ways[way][1]

    def _is_free(self, state, way):
        """Whether a step leads somewhere: not into a wall, round a corner, or against a one-way door."""
        there = self._moved(state, way)
        if not self._can_stand(there):
            return False
        if way in SLANTED and self.spec.rules.diagonal == "no_corner_cutting":
            beside = [self._moved(state, way[0]), self._moved(state, way[1])]
            if not all(self._can_stand(cell) for cell in beside):
                return False
        doors = [self.spec.map.one_way.get(self.map[cell], way) for cell in (state[:2], there)]
        return doors == [way, way]

    def _can_stand(self, cell):
        symbol = self.map.get(cell, self.spec.map.wall)
        places = [n for n, s in self.spec.sections.items() if s.symbol == symbol]
        if places:
            return (self.spec.sections[places[0]].reach or self.spec.rules.reach) in ("on", "arrive")
        if self.spec.finish and symbol == self.spec.finish.symbol:
            return self.spec.finish.reach in ("on", "arrive")
        return symbol != self.spec.map.wall

    def _within(self, state, symbol, reach):
        if reach == "anywhere":
            return True
        if reach == "on":
            return self.map[state[:2]] == symbol
        return any(self.map.get(self._moved(state, way)) == symbol for way in WAYS)  # never across a corner


class SlowHidden:
    """A task with hidden cells. State: that of the drawn task, and a letter per hidden cell; or "end".

    "?" is unknown, "#" a wall, "." open, and "+" open and entered where one sees cells from beside them and
    entering pays once.
    """

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        drawn, queue = SlowGrid(spec).map, [(*start[:2],) for start in SlowGrid(spec).starts()]
        for cell in queue:  # the queue grows while it is read; nobody can see what nobody can get to
            ways = [way for way in WAYS if SlowGrid(spec)._is_free(cell, way)]
            queue += [there for way in ways if (there := SlowGrid(spec)._moved(cell, way)) not in queue]
        self.cells = [cell for cell in drawn if drawn[cell] in spec.hidden and cell in queue]
        self.about = {cell: spec.hidden[drawn[cell]] for cell in self.cells}

    def world(self, known):
        """The map if unknown cells were open."""
        found = SlowGrid(self.spec)
        found.map |= {
            cell: self.spec.map.wall for cell, what in zip(self.cells, known, strict=True) if what == "#"
        }
        return found

    def starts(self):
        nothing = "?" * len(self.cells)
        return [(*state, nothing) for state in self.world(nothing).starts()]

    def start(self):
        return self.starts()[0]

    def actions(self, state):
        return [] if state == "end" else self.world(state[4]).actions(state[:4])

    def reward(self, state, action):
        world, known = self.world(state[4]), dict(zip(self.cells, state[4], strict=True))
        cell = self.entered(state, action)
        paid = world.reward(state[:4], action)
        if cell is None or self.about[cell].reward is None:
            return paid
        if self.spec.rules.reveal == "on_entering":
            return paid + (self.about[cell].open * self.about[cell].reward if known[cell] == "?" else 0)
        return paid + (self.about[cell].reward if known[cell] == "." else 0)

    def step(self, state, action):
        """What follows, with probabilities."""
        world, known = self.world(state[4]), dict(zip(self.cells, state[4], strict=True))
        after, cell = world.step(state[:4], action), self.entered(state, action)
        if after == "end":
            return {"end": 1.0}
        if self.spec.rules.reveal == "on_entering":
            if cell is None or known[cell] != "?":
                return {(*after, state[4]): 1.0}
            chance = self.about[cell].open
            opened, shut = ("".join((known | {cell: what}).values()) for what in ".#")
            return {(*after, opened): chance, (*state[:2], *after[2:], shut): 1 - chance}
        if cell is not None and self.about[cell].reward is not None:
            known[cell] = "+"
        found = {"".join(known.values()): 1.0}
        for i, one in enumerate(self.cells):
            if abs(one[0] - after[0]) + abs(one[1] - after[1]) == 1 and known[one] == "?":
                found = {
                    letters[:i] + what + letters[i + 1 :]: chance * share
                    for letters, chance in found.items()
                    for what, share in ((".", self.about[one].open), ("#", 1 - self.about[one].open))
                }
        return {(*after, letters): chance for letters, chance in found.items()}

    def entered(self, state, action):
        """The hidden cell that a movement leads into or tries to, if it does."""
        world = self.world(state[4])
        if action not in world.ways or not world._is_free(state[:4], action):
            return None
        cell = world._moved(state, action)
        return cell if cell in self.about else None
