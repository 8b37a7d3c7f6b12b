"""Where the figure may stand after words in doubt, and what settles it later in the dialog.

A segment in doubt leaves the figure in one of several places: where each of its readings leads, where a usual
misreading of it would (a square more or less, the other direction, the last step not said), or anywhere. What
follows distinguishes them: three squares up can be walked from some squares and not from others, "to the end"
and a named place bring all of them together, and an assessor who says "okay, you're at the meat" settles it.

This is a hidden Markov model. Its hidden state is the state of the task with the heading of the figure; each
segment moves it by one of its readings, with the grounder's probability, and where the map does not allow
what was said this counts :data:`BLOCKED` times. One more state stands for anywhere. Forward and backward sums
give, for every segment, the probability that the figure stands where the dialog is replayed, and that it was
read right.

Only what can be walked and what people say they see is used, never what a step is worth: a reading that was
chosen because it is valuable would make every choice look better than it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fidm.grounding.base import Reading, Segment
from fidm.grounding.route.program import NOTHING, Instruction, Program, same_program, write_program
from fidm.grounding.route.replay import DOUBTFUL, Position, Replay, Terrain, replay

KNOWN = 0.7
"""The probability from which on it counts as known where the figure is, and that a doubt is lifted.

It is a cautious one: of moves that count because of it about 93 % are true (``benchmarks/doubts.py``)."""

TRUSTED = 0.97
"""The most that a segment without doubts is trusted."""

BLOCKED = 0.01
"""How much less probable words are where the map does not allow what they say."""

MISREAD = 0.5
"""The share of misreadings that are one of the usual ones."""

UNNOTICED = 0.5
"""How probable it is that somebody took something in words that nobody could read."""

INCOMPLETE = 0.3
"""How much less probable it is that the assessor goes on while something is still to be done."""

FAINT = 0.05
"""Less probable than this, anywhere is not looked into."""

MOST = 16
"""How many places are followed; the least probable of more count as anywhere."""

FEW = 4
"""From anywhere, words that lead to so few of the squares tried tell where the figure is."""

TRIED = 28
"""From how many squares words are tried to tell where they can be walked."""

REMEMBERED = 50_000
"""How many replays are kept, so that none has to be made twice."""

FARTHEST = 9
"""The longest distance tried where nobody said how far."""


AGAINST = DOUBTFUL - {"no_heading"}
"""Issues that say that the map does not allow what was said."""


class Spot(NamedTuple):
    """Where the figure may stand."""

    state: int  # the state of the task; -1 for anywhere
    heading: int | None
    is_done_known: bool = True  # whether it is known what is completed there


ANYWHERE = Spot(-1, None, False)

_MIRROR = {"up": "down", "down": "up", "left": "right", "right": "left"}


@dataclass(frozen=True, slots=True)
class Heard:
    """What is known of a segment before it is asked where it starts."""

    segment: Segment  # the talk
    readings: tuple[Reading, ...]  # the ways to understand it, the one that is followed first
    is_doubted: bool = False  # whether the words are in doubt, wherever they were said
    is_certain: bool = False  # whether a person read it, so that even the map cannot argue it away
    is_lost: bool = False  # whether a person rejected it


@dataclass(frozen=True, slots=True)
class Settled:
    """What the whole dialog says of a segment that is replayed as it is."""

    right: float  # how probable it is that it starts there and leads through these actions
    is_supported: bool  # whether what is said elsewhere halves the doubt that its own words leave
    known: tuple[float, ...]  # of each action, how probable it is that the figure stands there by then


class _Walked(NamedTuple):
    """The moves of a program from a spot, as little as is asked of them: many are remembered."""

    actions: tuple[int, ...]
    states: tuple[int, ...]
    end: Spot
    is_against: bool  # whether the map does not allow what was said
    is_guessed: bool  # whether nobody said how far

    @classmethod
    def of(cls, done: Replay) -> _Walked:
        is_guessed = any(issue.code == "guessed_distance" for issue in done.issues)
        return cls(tuple(done.actions), tuple(done.states), spot_of(done.end), _is_against(done), is_guessed)


class _Way(NamedTuple):
    """One way from a spot before a segment to a spot after it."""

    start: Spot
    end: Spot
    weight: float
    done: _Walked | None = None  # the moves; None where nobody knows
    reading: int = -1  # which reading leads there; -1 for a misreading


class _Option(NamedTuple):
    """A program, and its text, by which replays of it are found again."""

    program: Program
    text: str

    @classmethod
    def of(cls, program: Program) -> _Option:
        return cls(program, write_program(program))


@dataclass(slots=True)
class _Options:
    """What a segment may mean."""

    readings: list[tuple[_Option, float]]  # with probabilities
    left: float  # what is left for anything else

    @classmethod
    def of(cls, heard: Heard) -> _Options:
        """Take the grounder's probabilities, as far as they are trusted."""
        if heard.is_certain or not heard.is_doubted:
            trusted = 1.0 if heard.is_certain else TRUSTED
            return cls([(_Option.of(heard.readings[0].program), trusted)], 1.0 - trusted)
        shares = [(_Option.of(one.program), one.probability) for one in heard.readings]
        return cls(shares, 1.0 - math.fsum(share for _, share in shares))


@dataclass(slots=True)
class Memory:
    """Replays that were made already; for one map, and dialogs in which the same phases are told of."""

    walked: dict[tuple[str, int, int | None], _Walked] = field(default_factory=dict)
    spread: dict[tuple[str, int, int | None], tuple[dict[Spot, float], float]] = field(default_factory=dict)
    misread: dict[str, list[_Option]] = field(default_factory=dict)
    distances: dict[str, list[_Option]] = field(default_factory=dict)

    def misreadings(self, option: _Option) -> list[_Option]:
        """Return what else may usually have been meant."""
        if option.text not in self.misread:
            _forget(self.misread)
            self.misread[option.text] = [_Option.of(program) for program in misreadings(option.program)]
        return self.misread[option.text]

    def at_distances(self, option: _Option) -> list[_Option]:
        """Return a reading with every distance where it says none."""
        if option.text not in self.distances:
            _forget(self.distances)
            program = option.program
            last = max((k for k, step in enumerate(program) if _is_open(step)), default=None)
            made = [] if last is None else [
                _with(program, last, replace(program[last], squares=n)) for n in range(1, FARTHEST + 1)
            ]  # fmt: skip
            self.distances[option.text] = [_Option.of(one) for one in made]
        return self.distances[option.text]


def _forget(known: dict[Any, Any]) -> None:
    """Begin anew where too much is remembered."""
    if len(known) > REMEMBERED:
        known.clear()


class _Part(NamedTuple):
    """What one segment did to where the figure may stand."""

    heard: Heard
    start: Position  # where it is replayed from
    here: dict[Spot, float]  # where it may start
    entered: dict[Spot, tuple[Spot, float]]  # what spots at the end of the one before became
    ways: list[_Way]
    alone: float  # how far its words alone are trusted
    after: dict[Spot, float]  # where the figure may stand then
    evidence: float  # how probable it is that it can be walked


class Whereabouts:
    """Where the figure may stand before each segment of a dialog.

    Parameters
    ----------
    terrain : Terrain
        The map.
    told : frozenset of str
        The phases somebody opens in so many words.
    memory : Memory, optional
        Replays made before for the same dialog.
    """

    def __init__(self, terrain: Terrain, told: frozenset[str], memory: Memory | None = None) -> None:
        self.terrain, self.told = terrain, told
        self._memory = memory or Memory()
        self._parts: list[_Part] = []

    @property
    def _now(self) -> dict[Spot, float]:
        return self._parts[-1].after if self._parts else {spot_of(self.terrain.start()): 1.0}

    @property
    def log_evidence(self) -> float:
        """How probable it is that all that was said can be walked."""
        total = 0.0
        for part in self._parts:
            total += math.log(part.evidence)
        return total

    def best(self) -> Spot:
        """Return where the figure is by now, if that is more probable than not; else anywhere."""
        now = self._now
        best = max(now, key=lambda spot: now[spot])
        return best if now[best] > 0.5 * math.fsum(now.values()) else ANYWHERE

    def again(self, said: Iterable[tuple[Heard, Position]]) -> Whereabouts:
        """Return where the figure may stand if this was said; as long as it is the same, that is known."""
        found = Whereabouts(self.terrain, self.told, self._memory)
        known = iter(self._parts)
        for heard, start in said:
            part = next(known, None)
            if part is not None and (part.heard, part.start) == (heard, start):
                found._parts.append(part)
            else:
                known = iter(())
                found.hear(heard, start)
        return found

    def hear(self, heard: Heard, start: Position) -> None:
        """Go on by one segment, which is replayed from this position."""
        now = self._now
        entered = {spot: self._entering(spot, heard, start) for spot in now}
        here = _added((spot, weight * now[old]) for old, (spot, weight) in entered.items())
        options = _Options.of(heard)
        ways = [
            way for spot, weight in here.items() for way in self._from(spot, weight, heard, options, start)
        ]
        after = _added((way.end, way.weight * here[way.start]) for way in ways)
        if len(after) > MOST:
            kept = set(sorted(after, key=lambda spot: (-after[spot], spot.state, spot.heading or 0))[:MOST])
            ways = [way if way.end in kept else way._replace(end=ANYWHERE) for way in ways]
            after = _added((way.end, way.weight * here[way.start]) for way in ways)
        whole = math.fsum(after.values()) or 1.0
        now = {spot: weight / whole for spot, weight in after.items() if weight}
        self._parts.append(_Part(heard, start, here, entered, ways, options.readings[0][1], now, whole))

    # ------------------------------------------------------------------ one segment

    def _entering(self, spot: Spot, heard: Heard, start: Position) -> tuple[Spot, float]:
        """What a spot becomes when a segment begins, and how probable that is.

        Who reviewed moves saw where they start. When the assessor opens a phase, what came before is taken
        for done as it is replayed; that is less probable where a target of an earlier phase is left.
        """
        terrain = self.terrain
        if heard.is_certain and not same_program(heard.readings[0].program, NOTHING):
            return spot_of(start), 1.0
        if not heard.segment.opened or terrain.end in (spot.state, start.state) or spot == ANYWHERE:
            return spot, 1.0
        phase = terrain.phases.index(heard.segment.opened[-1])
        wanted = {target for one in terrain.spec.phases[:phase] for target in one.targets}
        is_done = wanted <= set(terrain.grid.completed(spot.state))
        mode = start.state // terrain.n_cells
        opened = Spot(mode * terrain.n_cells + terrain.cell(spot.state), spot.heading)
        return opened, 1.0 if is_done else INCOMPLETE

    def _from(
        self, spot: Spot, weight: float, heard: Heard, options: _Options, start: Position
    ) -> list[_Way]:
        """All ways from a spot through a segment."""
        if heard.is_lost:
            return self._lost(spot, 1.0, heard, start)
        if spot == ANYWHERE:
            return self._from_anywhere(weight, heard, options, start)
        found, blocked = [], False
        for i, (option, share) in enumerate(options.readings):
            walked = self._walk(option, spot)
            if heard.is_certain:
                return [self._way(spot, walked, 1.0, heard, 0)]
            if walked.is_guessed:
                found += self._ways_guessed(spot, walked, share, heard, i, option)
                continue
            blocked |= walked.is_against
            found.append(self._way(spot, walked, share * (BLOCKED if walked.is_against else 1.0), heard, i))
        if options.left <= 0:
            return found
        usual = []
        if heard.is_doubted or blocked:
            others = self._memory.misreadings(options.readings[0][0])
            usual = [walked for option in others if not (walked := self._walk(option, spot)).is_against]
        for walked in usual:
            found.append(self._way(spot, walked, options.left * MISREAD / len(usual), heard, -1))
        left = options.left * (1.0 - MISREAD if usual else 1.0)
        return [*found, *self._lost(spot, left, heard, start)]

    def _lost(self, spot: Spot, weight: float, heard: Heard, start: Position) -> list[_Way]:
        """Ways of words nobody could read: to anywhere, or to where the assessor says that the figure is."""
        places = heard.segment.reached
        if not places:
            return [_Way(spot, ANYWHERE, weight)]
        terrain = self.terrain
        cells = frozenset.intersection(*(terrain.reach.get(place, frozenset()) for place in places))
        mode = 0 if start.state == terrain.end else start.state // terrain.n_cells
        weight /= terrain.n_cells
        found = []
        for cell in sorted(cells):
            end = Spot(mode * terrain.n_cells + cell, start.heading)
            found.append(_Way(spot, end, weight * (1.0 - UNNOTICED)))
            found.append(_Way(spot, end._replace(is_done_known=False), weight * UNNOTICED))
        return found or [_Way(spot, ANYWHERE, weight)]

    def _ways_guessed(
        self, spot: Spot, guessed: _Walked, share: float, heard: Heard, reading: int, option: _Option
    ) -> list[_Way]:
        """Ways of words that do not say how far: any distance is as probable as the one that is guessed."""
        tried = [self._walk(other, spot) for other in self._memory.at_distances(option)]
        others = [one for one in tried if not one.is_against and one.actions != guessed.actions]
        share /= len(others) + 1
        found = [self._way(spot, guessed, share, heard, reading)]
        return [*found, *(self._way(spot, one, share, heard, -1) for one in others)]

    def _way(self, spot: Spot, walked: _Walked, weight: float, heard: Heard, reading: int) -> _Way:
        end = walked.end if spot.is_done_known else walked.end._replace(is_done_known=False)
        return _Way(spot, end, weight * self._reached(heard.segment, end), walked, reading)

    def _from_anywhere(self, weight: float, heard: Heard, options: _Options, start: Position) -> list[_Way]:
        """Ways from anywhere: words that can be walked from few squares, or lead to few, tell where it is."""
        if weight < FAINT:
            return self._lost(ANYWHERE, 1.0, heard, start)
        found, rest = [], options.left
        for option, share in options.readings:
            ends, fits = self._spread_out(option, start)
            for end, part in ends.items():
                own = share * part * self._reached(heard.segment, end)
                found.append(_Way(ANYWHERE, end, own * (1.0 - UNNOTICED)))
                found.append(_Way(ANYWHERE, end._replace(is_done_known=False), own * UNNOTICED))
            rest += share * ((0.0 if ends else fits) + BLOCKED * (1.0 - fits))
        return [*found, *self._lost(ANYWHERE, rest, heard, start)]

    def _spread_out(self, option: _Option, like: Position) -> tuple[dict[Spot, float], float]:
        """Where a program leads from anywhere, where these are few spots, and how often it can be walked."""
        terrain = self.terrain
        mode = 0 if like.state == terrain.end else like.state // terrain.n_cells
        key = (option.text, mode, like.heading)
        known = self._memory.spread.get(key)
        if known is None:
            ends: dict[Spot, float] = {}
            every = -(-terrain.n_cells // TRIED)
            cells = range(every // 2, terrain.n_cells, every)
            for cell in cells:
                start = Position(mode * terrain.n_cells + cell, like.heading)
                done = replay(option.program, terrain, start, told=self.told)
                if not _is_against(done):
                    end = spot_of(done.end)
                    ends[end] = ends.get(end, 0.0) + 1.0 / len(cells)
            known = (ends if len(ends) <= FEW else {}, math.fsum(ends.values()))
            self._memory.spread[key] = known
        return known

    def _walk(self, option: _Option, spot: Spot) -> _Walked:
        key = (option.text, spot.state, spot.heading)
        walked = self._memory.walked.get(key)
        if walked is None:
            done = replay(option.program, self.terrain, Position(spot.state, spot.heading), told=self.told)
            _forget(self._memory.walked)
            walked = self._memory.walked[key] = _Walked.of(done)
        return walked

    def _reached(self, segment: Segment, end: Spot) -> float:
        """How probable it is that an assessor names these places, were the figure there."""
        if not segment.reached:
            return 1.0
        here = (self.terrain.cell(end.state),)
        return 1.0 if all(self.terrain.is_near(here, place) for place in segment.reached) else BLOCKED

    # ------------------------------------------------------------------ the whole dialog

    def _weights(self) -> list[list[float]]:
        """The probability of every way, given the whole dialog."""
        later, found = dict.fromkeys(self._now, 1.0), []
        for part in reversed(self._parts):
            ways = part.ways
            onward = [way.weight * later.get(way.end, 0.0) for way in ways]
            weights = [part.here[way.start] * weight for way, weight in zip(ways, onward, strict=True)]
            whole = math.fsum(weights) or 1.0
            found.append([weight / whole for weight in weights])
            sooner = _added((way.start, weight) for way, weight in zip(ways, onward, strict=True))
            most = max(sooner.values()) or 1.0
            later = {old: weight * sooner[spot] / most for old, (spot, weight) in part.entered.items()}
        found.reverse()
        return found

    def follow(self) -> list[int]:
        """Return which reading of each segment leads along the most probable way, as far as one is known."""
        found: list[int] = []
        spot = spot_of(self.terrain.start())
        for part, weights in zip(self._parts, self._weights(), strict=True):
            own = [
                (weight, -way.reading, way)
                for way, weight in zip(part.ways, weights, strict=True)
                if way.reading >= 0 and way.start == spot
            ]
            best = max(own, key=lambda pair: pair[:2])[2] if own else None
            found.append(best.reading if best else 0)
            spot = best.end if best else ANYWHERE
        return found

    def settle(self, walks: Sequence[Replay]) -> list[Settled]:
        """Return what the whole dialog says of every segment, if these are its moves."""
        found = []
        for done, part, weights in zip(map(_Walked.of, walks), self._parts, self._weights(), strict=True):
            n, right = len(done.actions), 0.0
            known = [0.0] * n
            uses = next((j for j, code in enumerate(done.actions) if code not in self.terrain.move_code), n)
            for way, weight in zip(part.ways, weights, strict=True):
                if not weight or not way.end.is_done_known:
                    continue
                first = n if way.done is None else _agree_from(done, way.done)
                if way.start == ANYWHERE and way.end == done.end:
                    first = uses  # wherever it came from, by then it stands where that can be used
                for j in range(first, n):
                    known[j] += weight
                right += weight if way.done is not None and _are_same(done, way.done) else 0.0
            found.append(Settled(right, 2.0 * (1.0 - right) <= 1.0 - part.alone, tuple(known)))
        return found


def _is_against(done: Replay) -> bool:
    """Whether the map does not allow what was said; before the first move the figure faces nowhere."""
    return any(issue.code in AGAINST for issue in done.issues)


def _added(pairs: Iterable[tuple[Spot, float]]) -> dict[Spot, float]:
    """Sums of weights by spot."""
    found: dict[Spot, float] = {}
    for spot, weight in pairs:
        found[spot] = found.get(spot, 0.0) + weight
    return found


def _agree_from(one: _Walked, other: _Walked) -> int:
    """From which action on two ways are the same to their ends."""
    if one.end.state != other.end.state:
        return len(one.actions)
    n = 0
    while n < min(len(one.actions), len(other.actions)):
        if (one.states[-1 - n], one.actions[-1 - n]) != (other.states[-1 - n], other.actions[-1 - n]):
            break
        n += 1
    return len(one.actions) - n


def _are_same(one: _Walked, other: _Walked) -> bool:
    return one.states == other.states and one.actions == other.actions and one.end.state == other.end.state


def spot_of(position: Position, *, is_done_known: bool = True) -> Spot:
    """Return the spot of a position."""
    return Spot(position.state, position.heading, is_done_known)


def misreadings(program: Program) -> list[Program]:
    """Return what else may have been meant by words that were read as this program.

    Examples
    --------
    >>> from fidm.grounding.route.program import parse_program, write_program
    >>> [write_program(one) for one in misreadings(parse_program("TURN left; MOVE ahead 2", []))]
    ['NONE', 'TURN left', 'TURN left; MOVE ahead 1', 'TURN left; MOVE ahead 3', 'TURN right; MOVE ahead 2']
    """
    if same_program(program, NOTHING):
        return []
    found: list[Program] = [NOTHING]
    if len(program) > 1:
        found.append(program[:-1])
    last = max((i for i, step in enumerate(program) if step.squares is not None), default=None)
    if last is not None:
        step, n = program[last], program[last].squares or 1
        found += [_with(program, last, replace(step, squares=other)) for other in (n - 1, n + 1) if other]
    for i, step in enumerate(program):
        if step.way in _MIRROR:
            found.append(_with(program, i, replace(step, way=_MIRROR[step.way])))  # type: ignore[arg-type]
        if step.op == "BUY":
            found.append(_with(program, i, replace(step, op="GOTO")))
        elif step.op == "GOTO" and i == len(program) - 1:
            found.append((*program[:i], replace(step, op="BUY")))
    kept: dict[str, Program] = {write_program(program): program}
    for one in found:
        kept.setdefault(write_program(one), one)
    return list(kept.values())[1:]


def _is_open(step: Instruction) -> bool:
    """Whether a move does not say how far."""
    return step.op in ("MOVE", "BACK") and step.squares is None and not (step.to_end or step.place)


def _with(program: Program, i: int, step: Instruction) -> Program:
    return (*program[:i], step, *program[i + 1 :])
