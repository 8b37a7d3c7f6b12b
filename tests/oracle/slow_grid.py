"""The rules of a drawn task, written again as plainly as possible from the paper's tables.

State: (row, column, completed targets, phase), or "end". It reads the same TaskSpec and shares no code
with fidm.tasks.compile.
"""

from __future__ import annotations

from fidm.tasks.spec import TaskSpec

WAYS = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}


class SlowGrid:
    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.map = {(r, c): s for r, row in enumerate(spec.rows) for c, s in enumerate(row)}

    def start(self):
        (cell,) = [cell for cell, symbol in self.map.items() if symbol == self.spec.map.start]
        return self._open((*cell, frozenset(), 0))

    def actions(self, state):
        if state == "end" or (self._is_waiting(state) and self.spec.rules.value_flow == "ends"):
            return []
        legal = [way for way in WAYS if self._can_stand(self._moved(state, way))]
        if self.spec.rules.buy == "single":
            legal += [self.spec.verb] if self._chosen(state) else []
        else:
            legal += [f"{self.spec.verb} {name}" for name in self.spec.sections if self._can_buy(state, name)]
        finish, leave = self.spec.finish, self.spec.exit
        if finish and self._within(state, finish.symbol, finish.reach):
            is_last = state[3] == len(self.spec.phases) - 1
            legal += [finish.action] if is_last or finish.early == "nothing" else []
        if leave and leave.in_likelihood and self.map[state[:2]] == leave.symbol:
            legal.append(leave.action)
        return legal

    def step(self, state, action):
        row, column, done, phase = state
        if action in WAYS:
            return self._open((*self._moved(state, action), done, phase))
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
        if action in WAYS:
            return pay.move
        if self.spec.finish and action == self.spec.finish.action:
            if phase < len(self.spec.phases) - 1:
                return self.spec.finish.reward_early
            share = len(done) / len(self.spec.targets)
            return self.spec.finish.reward + self.spec.finish.reward_completion * share
        if self.spec.exit and action == self.spec.exit.action:
            return 0.0
        name = self._section(state, action)
        if name not in self.spec.targets:
            return pay.non_target
        if name in done:
            return pay.repeated
        if self._treatment(state, name) == "active":
            own = self.spec.sections[name].reward
            return pay.target if own is None else own
        return pay.out_of_phase

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
        if not self._within(state, section.symbol, section.reach or self.spec.rules.reach):
            return False
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
        return state[0] + WAYS[way][0], state[1] + WAYS[way][1]

    def _can_stand(self, cell):
        symbol = self.map.get(cell, self.spec.map.wall)
        places = [n for n, s in self.spec.sections.items() if s.symbol == symbol]
        if places:
            return (self.spec.sections[places[0]].reach or self.spec.rules.reach) == "on"
        if self.spec.finish and symbol == self.spec.finish.symbol:
            return self.spec.finish.reach == "on"
        return symbol != self.spec.map.wall

    def _within(self, state, symbol, reach):
        if reach == "anywhere":
            return True
        if reach == "on":
            return self.map[state[:2]] == symbol
        return any(self.map.get(self._moved(state, way)) == symbol for way in WAYS)
