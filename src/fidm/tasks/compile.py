"""From a task's description to its arrays: every cell, in every state of progress, in every phase.

A *mode* is what has been completed together with the active phase; a state is a cell in a mode.
The rules of buying, finishing and opening phases depend on the mode alone, so they are worked out
once per mode in plain Python, and the states follow by laying the map out once per mode in NumPy. Tasks may
also be written as code: an object that says where it starts, what is legal, what follows, what it pays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fidm.errors import TaskError
from fidm.tasks.grid import Grid, GridStates
from fidm.tasks.hidden import Hidden, with_hidden
from fidm.tasks.kept import names_kept, pick_task, read_tasks, split_name
from fidm.tasks.model import TaskModel
from fidm.tasks.pairs import MAX_STATES
from fidm.tasks.spec import TaskSpec, read_task
from fidm.types import Normaliser


@runtime_checkable
class TaskRules(Protocol):
    """Any object that can say where a task starts, what is legal, what follows and what it pays.

    States and actions are hashable values of the author's choice. :func:`compile_task` enumerates
    the states that can be reached; :func:`fidm.testing.check_task` tests such an object. An object may also
    have a method ``coordinates(state)``, which returns x and y of a state in a drawing, or None.
    """

    def start(self) -> Hashable:
        """Return the state an episode begins in."""

    def actions(self, state: Any) -> Iterable[Hashable]:
        """Return the actions that are legal in a state; none where the episode ends."""

    def step(self, state: Any, action: Any) -> Hashable | Mapping[Hashable, float]:
        """Return the next state, or a mapping from possible next states to probabilities."""

    def reward(self, state: Any, action: Any) -> float:
        """Return what the action pays in this state."""


def compile_rules(
    rules: TaskRules,
    *,
    gamma: float,
    tau: float,
    normaliser: Normaliser = "sum",
    horizon: int | None = None,
    name: str = "task",
    max_states: int = 1_000_000,
) -> TaskModel:
    """Enumerate every state that can be reached under an object's rules, and make a task of it.

    States are numbered in the order they are found, breadth first; actions in the order they are
    first offered. ``max_states`` guards against rules without an end.
    """
    number: dict[Hashable, int] = {}
    code: dict[Hashable, int] = {}
    queue: list[Hashable] = []

    def visit(state: Hashable, where: str) -> int:
        _require_hashable(state, f"{name}: {where} gives a state")
        if state not in number:
            if len(number) == max_states:
                raise TaskError(
                    f"{name}: more than {max_states} states can be reached. Make states coarser, "
                    "or raise max_states if the task really is that large."
                )
            number[state] = len(number)
            queue.append(state)
        return number[state]

    visit(rules.start(), "start()")
    of_state: list[int] = []
    of_action: list[int] = []
    pay: list[float] = []
    link_pair: list[int] = []
    link_state: list[int] = []
    link_probability: list[float] = []
    for state in queue:  # the queue grows while it is read
        for action in _listed(rules.actions(state), f"{name}: actions({state!r})"):
            _require_hashable(action, f"{name}: actions({state!r}) gives an action")
            outcome = rules.step(state, action)
            outcomes = outcome.items() if isinstance(outcome, Mapping) else [(outcome, 1.0)]
            for next_state, probability in outcomes:
                link_pair.append(len(pay))
                link_state.append(visit(next_state, f"step({state!r}, {action!r})"))
                link_probability.append(
                    _number(probability, f"{name}: a probability of step({state!r}, {action!r})")
                )
            of_state.append(number[state])
            of_action.append(code.setdefault(action, len(code)))
            pay.append(_number(rules.reward(state, action), f"{name}: reward({state!r}, {action!r})"))
    transition = sparse.csr_array((link_probability, (link_pair, link_state)), shape=(len(pay), len(number)))
    return TaskModel.from_pairs(
        np.array(of_state, dtype=np.int64),
        np.array(of_action, dtype=np.int64),
        pay,
        transition,
        gamma=gamma,
        tau=tau,
        normaliser=normaliser,
        horizon=horizon,
        name=name,
        actions=[str(action) for action in code],
        states=[str(state) for state in number],
        coordinates=_coordinates(rules, list(number), name),
    )


def _coordinates(rules: TaskRules, states: list[Hashable], name: str) -> list[tuple[float, float]] | None:
    """Where states are, if the object says it: ``coordinates(state)`` returns x and y, or None."""
    say = getattr(rules, "coordinates", None)
    if not callable(say):
        return None
    found = []
    for state in states:
        at = say(state)
        what = f"{name}: coordinates({state!r})"
        if at is None:
            found.append((np.nan, np.nan))
            continue
        numbers = _listed(at, what, "pair of x and y")
        if len(numbers) != 2:
            raise TaskError(f"{what} is no pair of x and y.")
        found.append((_number(numbers[0], what), _number(numbers[1], what)))
    return found


def _require_hashable(thing: object, what: str) -> None:
    try:
        hash(thing)
    except TypeError:
        raise TaskError(f"{what} that is not hashable. Use tuples, not lists.") from None


def _listed(things: Any, what: str, expected: str = "list of actions") -> list[Any]:
    try:
        return list(things)
    except TypeError:
        raise TaskError(f"{what} is no {expected}.") from None


def _number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TaskError(f"{what} is no number.") from None


MAX_MODES = 100_000
"""More combinations of completed targets and phases than this are refused."""


class Mode(NamedTuple):
    """What has been completed (one bit per target) and which phase is active."""

    progress: int
    phase: int


class Outcome(NamedTuple):
    """What an action pays in a mode, the mode it makes (None: the end), and the goal it achieves.

    The mode is the one right after the action, before a completed phase opens the next.
    """

    reward: float
    mode: Mode | None
    goal: int = -1


def load_task(source: str | Path) -> TaskModel:
    """Load a task by the name of a built-in one or by the path of its TOML file.

    ``FILE.parquet#NAME`` is a task of a file of tasks (:func:`fidm.save_tasks`); a file that holds one task
    needs no name.

    Examples
    --------
    >>> import fidm
    >>> task = fidm.load_task("grocery")
    >>> task.legal(task.start)
    ('W',)
    """
    if names_kept(source):
        return pick_task(source)
    spec = read_task(source)
    try:
        return compile_task(spec)
    except TaskError as error:
        raise TaskError(error.message, source=str(source), problems=error.problems) from None


def load_tasks(source: str | Path) -> tuple[TaskModel, ...]:
    """Load all tasks of a file of tasks; or the one that :func:`load_task` loads.

    Examples
    --------
    >>> import fidm
    >>> [task.name for task in fidm.load_tasks("errands")]
    ['errands']
    """
    file, name = split_name(source)
    return read_tasks(file) if names_kept(source) and not name else (load_task(source),)


def compile_task(
    task: TaskSpec | TaskRules,
    *,
    gamma: float | None = None,
    tau: float | None = None,
    normaliser: Normaliser | None = None,
    horizon: int | None = None,
    name: str | None = None,
    max_states: int | None = None,
) -> TaskModel:
    """Turn a task's description, or any object with ``start/actions/step/reward``, into arrays.

    Parameters
    ----------
    task : TaskSpec or TaskRules
        What to compile. The states of an object are enumerated from its start.
    gamma, tau, normaliser, name
        Override a description's own; for an object, ``gamma`` and ``tau`` are needed.
    horizon : int, optional
        End every episode after so many steps.
    max_states : int
        Stop enumerating the states of an object when there are more than this (a million by default); a
        description says by itself how many states it has.
    """
    if isinstance(task, TaskSpec):
        if max_states is not None:
            raise TaskError("max_states applies to objects with rules, not to a task's description.")
        model = _lay_out(task).with_settings(gamma=gamma, tau=tau, normaliser=normaliser)
        model = model if name is None else replace(model, name=name)
        return model if horizon is None else model.with_horizon(horizon)
    if not isinstance(task, TaskRules):
        raise TaskError(
            f"{type(task).__name__} is no task: it needs the methods start, actions, step and reward."
        )
    if gamma is None or tau is None:
        raise TaskError("An object with rules says nothing about values: pass gamma and tau.")
    return compile_rules(
        task,
        gamma=gamma,
        tau=tau,
        normaliser=normaliser or "sum",
        horizon=horizon,
        name=name or type(task).__name__,
        max_states=1_000_000 if max_states is None else max_states,
    )


class _Rules:
    """What each action does in each mode of a described task."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.bit = {target: i for i, target in enumerate(spec.targets)}
        self.phase_of = {t: p for p, phase in enumerate(spec.phases) for t in phase.targets}
        self.wanted = [sum(1 << self.bit[t] for t in phase.targets) for phase in spec.phases]
        self.goals = (*spec.targets, *((spec.finish.action,) if spec.finish else ()))
        self.last = len(spec.phases) - 1

    def settled(self, mode: Mode) -> Mode | None:
        """The mode once every phase whose goals are complete has opened the next; None at the end."""
        progress, phase = mode
        while phase < self.last and progress & self.wanted[phase] == self.wanted[phase]:
            phase += 1
        is_over = phase == self.last and progress & self.wanted[phase] == self.wanted[phase]
        return None if is_over and not self.spec.finish else Mode(progress, phase)

    def after(self, mode: Mode | None) -> Mode | None:
        """The mode the planner expects once an action has made this one; None at the end."""
        opened = self.settled(mode) if mode else None
        return opened if opened is None or self.spec.rules.value_flow == "chained" else mode

    def is_active(self, section: str, mode: Mode) -> bool:
        """Whether a section is a goal now: of this phase, unfinished, next in line if order counts."""
        targets = self.spec.phases[mode.phase].targets
        unfinished = [t for t in targets if not mode.progress >> self.bit[t] & 1]
        return section in (unfinished[:1] if self.spec.rules.order == "listed" else unfinished)

    def buy(self, section: str, mode: Mode) -> Outcome | None:
        """What buying does (paper, table 5); None where it is not possible."""
        rules, pay, entry = self.spec.rules, self.spec.rewards, self.spec.sections[section]
        if any(not mode.progress >> self.bit[needed] & 1 for needed in entry.requires):
            return None
        if section not in self.bit:
            return Outcome(pay.non_target, mode) if rules.non_targets == "legal" else None
        bit = 1 << self.bit[section]
        if mode.progress & bit:
            return Outcome(pay.repeated, mode)
        marked = Mode(mode.progress | bit, mode.phase)
        if self.is_active(section, mode):
            first = pay.target if entry.reward is None else entry.reward
            return Outcome(first, marked, goal=self.goals.index(section))
        is_late = self.phase_of[section] < mode.phase
        treatment = rules.late_target if is_late else rules.early_target
        if treatment == "illegal":
            return None
        return Outcome(pay.out_of_phase, marked if treatment == "marks" else mode)

    def buy_one_of(self, sections: tuple[str, ...], mode: Mode) -> Outcome | None:
        """What a single BUY does beside several sections: the most wanted is taken."""

        def eagerness(section: str) -> int:
            is_open = section in self.bit and not mode.progress >> self.bit[section] & 1
            return 4 * self.is_active(section, mode) + 2 * is_open + (section in self.bit)

        possible = [s for s in sections if self.buy(s, mode) is not None]
        return self.buy(max(possible, key=eagerness), mode) if possible else None

    def finish(self, mode: Mode) -> Outcome | None:
        """What the finishing action does; C(s) is the share of all targets completed."""
        finish = self.spec.finish
        if finish is None:
            return None
        if mode.phase < self.last:
            return Outcome(finish.reward_early, mode) if finish.early == "nothing" else None
        share = mode.progress.bit_count() / max(1, len(self.bit))
        reward = finish.reward + finish.reward_completion * share
        return Outcome(reward, None if finish.ends else mode, goal=len(self.goals) - 1)

    def arrivals(self) -> dict[str, Callable[[Mode], Outcome]]:
        """What stepping onto a cell does besides, by the symbol of the cells where it does anything."""
        spec, found = self.spec, dict[str, Callable[[Mode], Outcome]]()
        for name, section in spec.sections.items():
            if spec.reach_of(name) == "arrive":
                found[section.symbol] = partial(self._arrive, name)
        if spec.finish and spec.finish.reach == "arrive":
            found[spec.finish.symbol] = lambda mode: self.finish(mode) or Outcome(0.0, mode)
        return found

    def _arrive(self, section: str, mode: Mode) -> Outcome:
        """Arriving uses a place where it can be used; a target that is completed is floor from then on."""
        is_done = section in self.bit and mode.progress >> self.bit[section] & 1
        return (None if is_done else self.buy(section, mode)) or Outcome(0.0, mode)

    def modes(self, *, told: bool, limit: int) -> list[Mode]:
        """Every mode one can be in by acting, and, if ``told``, because somebody opened a phase."""
        begin = Mode(0, 0)
        found = {begin} if told else set()
        queue = [begin]
        for mode in queue:  # the queue grows while it is read
            outcomes = [self.buy(section, mode) for section in self.spec.sections]
            made = [outcome.mode for outcome in outcomes if outcome and outcome.mode]
            reached = [self.settled(mode), *(self.after(new) for new in made)]
            if told:
                reached += made
                reached += [Mode(mode.progress, mode.phase + 1)] if mode.phase < self.last else []
            for new in reached:
                if new is None or new in found or self.settled(new) is None:
                    continue
                found.add(new)
                queue.append(new)
                if len(found) > min(limit, MAX_MODES):
                    raise TaskError(
                        "the task has too many states: more than "
                        f"{MAX_STATES:,} in all, or more than {MAX_MODES:,} ways to have completed some "
                        "targets and not others. Use fewer targets, fewer phases or a smaller map.",
                        source=self.spec.name,
                    )
        return sorted(found, key=lambda mode: (mode.phase, mode.progress))


class _Use(NamedTuple):
    """An action, or movements: codes, the cells they are legal in and lead to, their outcome per mode."""

    code: int | NDArray[np.int64]
    cells: NDArray[np.int64]
    there: NDArray[np.int64]
    outcomes: Sequence[Outcome | None]
    cost: NDArray[np.float64] | None = None  # [cells]: what it pays besides, whatever the mode
    own: NDArray[np.bool_] | bool = False  # [cells]: whether that is a price of its own, not the move cost


def _lay_out(spec: TaskSpec) -> TaskModel:
    """Compile a description: its rules once per mode, its map once per mode, hidden cells taken for floor."""
    rules, grid = _Rules(spec), Grid.draw(spec)
    limit = MAX_STATES // grid.n_cells
    modes = rules.modes(told=spec.rules.phase_change == "transcript", limit=limit)
    _refuse_impossible(rules, rules.modes(told=False, limit=limit))
    hidden = Hidden.of(spec, grid, len(modes)) if spec.hidden else None
    names, uses = _uses(rules, grid, modes)
    uses = [*_movements(rules, grid, modes), *uses]

    index: dict[Mode | None, int] = {mode: i for i, mode in enumerate(modes)}
    index[None] = len(modes)
    n_cells, end = grid.n_cells, len(modes) * grid.n_cells
    opened = np.array([index[rules.settled(mode)] for mode in modes])
    is_waiting = opened != np.arange(len(modes))
    live = np.arange(len(modes))
    if spec.rules.value_flow == "ends":
        live = live[~is_waiting]

    has_extra = any(np.any(use.own) for use in uses) or len(spec.arrival_symbols) > 0
    blocks = []
    for use in uses:
        able = np.array([m for m in live.tolist() if use.outcomes[m] is not None], dtype=np.int64)
        done = [cast("Outcome", use.outcomes[m]) for m in able.tolist()]
        to = np.array([index[rules.after(outcome.mode)] for outcome in done], dtype=np.int64)[:, None]
        shape = (len(able), len(use.cells))
        pay = np.array([outcome.reward for outcome in done])[:, None]
        columns = [
            able[:, None] * n_cells + use.cells,
            use.code,
            pay if use.cost is None else pay + use.cost,
            np.where(to == len(modes), end, to * n_cells + use.there),
            np.array([outcome.goal for outcome in done], dtype=np.int64)[:, None],
        ]
        if has_extra:
            columns.append(np.where(use.own, np.nan, pay))
        blocks.append([np.broadcast_to(column, shape) for column in columns])
    state, action, reward, successor, goal, *extra = (
        np.concatenate([column.reshape(-1) for column in columns]) for columns in zip(*blocks, strict=True)
    )
    order = np.argsort(state * len(names) + action, kind="stable")
    everywhere = np.arange(end).reshape(len(modes), n_cells)
    counted = np.repeat(~is_waiting | (spec.rules.waiting == "counted"), n_cells)
    handover = opened[:, None] * n_cells + np.arange(n_cells)
    start, *others = everywhere[index[rules.settled(Mode(0, 0))], list(grid.starts)].tolist()
    task = TaskModel(
        name=spec.name,
        offsets=np.searchsorted(state[order], np.arange(end + 2)).astype(np.int64),
        action=action[order].astype(np.int32),
        reward=reward[order],
        successor_offsets=np.arange(len(order) + 1),
        successor=successor[order].astype(np.int32),
        probability=np.ones(len(order)),
        actions=names,
        gamma=spec.values.gamma,
        tau=spec.values.tau,
        normaliser=spec.values.normaliser,
        start=start,
        goals=rules.goals,
        goal=goal[order].astype(np.int16),
        is_move=action[order] < len(grid.moves),
        counted=np.append(counted, True),
        handover=np.append(handover.reshape(-1), end).astype(np.int32),
        grid=GridStates(
            grid=grid,
            spec=spec,
            progress=np.array([mode.progress for mode in modes], dtype=np.int64),
            phase=np.array([mode.phase for mode in modes], dtype=np.int32),
        ),
        also_starts=tuple(others),
        move_extra=extra[0][order] if extra else None,
    )
    return task if hidden is None else with_hidden(task, hidden)


def _movements(rules: _Rules, grid: Grid, modes: list[Mode]) -> Iterator[_Use]:
    """All movements: first those that do nothing but move, then those that arrive at something."""
    spec = rules.spec
    cell, way = np.nonzero(grid.arrival >= 0)
    there = grid.arrival[cell, way].astype(np.int64)
    stays = there == cell
    drawn = np.where(stays, "", grid.symbol[grid.row[there], grid.column[there]])
    cost, own = np.full(len(cell), spec.rewards.move), np.zeros(len(cell), dtype=np.bool_)
    for symbol, price in spec.costs.items():
        cost[drawn == symbol], own[drawn == symbol] = price, True
    if spec.rewards.bump is not None:
        cost[stays], own[stays] = spec.rewards.bump, True
    arrivals = rules.arrivals()
    for symbol in ("", *arrivals):
        rows = drawn == symbol if symbol else ~np.isin(drawn, list(arrivals))
        outcome = arrivals.get(symbol, partial(Outcome, 0.0))
        outcomes = [outcome(mode) for mode in modes]
        yield _Use(way[rows], cell[rows], there[rows], outcomes, cost[rows], own[rows])


def _uses(rules: _Rules, grid: Grid, modes: list[Mode]) -> tuple[tuple[str, ...], list[_Use]]:
    """The names of all actions, and every action that is not a movement."""
    spec = rules.spec
    names = list(grid.moves)
    uses = []
    cells_of = {
        name: grid.cells_reaching(section.symbol, spec.reach_of(name))
        for name, section in spec.sections.items()
        if spec.reach_of(name) != "arrive"
    }
    if spec.rules.buy == "per_section":
        for name, cells in cells_of.items():
            uses.append(_Use(len(names), cells, cells, [rules.buy(name, mode) for mode in modes]))
            names.append(f"{spec.verb} {name}")
    elif cells_of:
        within_reach: dict[int, tuple[str, ...]] = {}
        for name, cells in cells_of.items():
            for cell in cells.tolist():
                within_reach[cell] = (*within_reach.get(cell, ()), name)
        for group in sorted(set(within_reach.values())):
            cells = np.array([c for c, names_here in within_reach.items() if names_here == group])
            uses.append(_Use(len(names), cells, cells, [rules.buy_one_of(group, mode) for mode in modes]))
        names.append(spec.verb)
    if spec.finish and spec.finish.reach != "arrive":
        cells = grid.cells_reaching(spec.finish.symbol, spec.finish.reach)
        uses.append(_Use(len(names), cells, cells, [rules.finish(mode) for mode in modes]))
        names.append(spec.finish.action)
    if spec.exit and spec.exit.in_likelihood:
        cells = grid.cells_on(spec.exit.symbol)
        uses.append(_Use(len(names), cells, cells, [Outcome(0.0, None)] * len(modes)))
        names.append(spec.exit.action)
    return tuple(names), uses


def _refuse_impossible(rules: _Rules, modes: list[Mode]) -> None:
    """Raise if the targets cannot all be completed, whatever one does."""
    possible = 0
    for mode in modes:
        for section in rules.bit:
            outcome = rules.buy(section, mode)
            possible |= outcome.mode.progress if outcome and outcome.mode else 0
    missing = [target for target, bit in rules.bit.items() if not possible >> bit & 1]
    if missing:
        raise TaskError(
            f"{', '.join(missing)} can never be completed. "
            "Look for sections that require each other, or that require a target of a later phase.",
            source=rules.spec.name,
        )
