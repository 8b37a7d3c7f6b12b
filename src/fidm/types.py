"""The plain records that travel along the line, from a task's values to a person's trace.

Each is a frozen dataclass whose arrays are read-only; it is checked once, when it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from fidm.errors import DataError, count, few

Normaliser = Literal["sum", "mean", "max"]
"""How a state's action values become its own value: log-sum-exp, log-mean-exp or maximum."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

Skip = Literal["participant", "episode", "rest"]
"""What is left out where a row is wrong: the person, the episode, or what follows in the episode."""

SkipBad = bool | Skip
"""Whether anything is left out where a row is wrong, and what; True leaves out the person."""


def leave_out(skip_bad: bool, skip: Skip) -> SkipBad:
    """Return what is left out where a row is wrong, from the two options that say so."""
    return skip_bad if skip == "participant" else skip


Progress = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and of how much."""

_Scalar = TypeVar("_Scalar", bound=np.generic)


def read_only(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return the array in contiguous form, locked against writing; the caller's own stays open."""
    locked = np.ascontiguousarray(array).view()
    locked.flags.writeable = False
    return locked


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """What every action of a task is worth, and how exactly that is known.

    Parameters
    ----------
    q : float array [S, A]
        Action values Q(s, a); ``-inf`` where the action is not legal.
    v : float array [S]
        State values V(s); 0 in terminal states.
    normaliser : {"sum", "mean", "max"}
        Which soft maximum links the two.
    tau : float
        The Bellman temperature.
    residual : float
        The largest difference, over all states, between V(s) and the soft maximum of Q(s, ·), measured
        after solving.
    iterations : int
        The most Newton steps any layer took (0 when no layer has a cycle).
    layers : int
        How many layers of states were solved one after the other.
    method : str
        How it was solved, in words.

    Attributes
    ----------
    solved_for : str
        The fingerprint of the task they were solved for; empty for values made or changed by hand, which
        stand for what people believe: ``Model(task, believes=values)``.
    """

    q: NDArray[np.float64]
    v: NDArray[np.float64]
    normaliser: Normaliser
    tau: float
    residual: float
    iterations: int
    layers: int
    method: str
    solved_for: str = field(default="", init=False)

    def __post_init__(self) -> None:
        if self.q.ndim != 2 or self.v.shape != (self.q.shape[0],):
            raise DataError(f"q has shape {self.q.shape} and v {self.v.shape}; expected (S, A) and (S,).")
        object.__setattr__(self, "q", read_only(self.q))
        object.__setattr__(self, "v", read_only(self.v))

    def marked(self, fingerprint: str) -> Values:
        """Return the same values with the fingerprint of the task they were solved for."""
        found = replace(self)
        object.__setattr__(found, "solved_for", fingerprint)
        return found

    def __repr__(self) -> str:
        states, actions = self.q.shape
        return (
            f"Values({states:,} states × {actions} actions, normaliser={self.normaliser!r}, "
            f"tau={self.tau:g}, {self.method}, residual {self.residual:.1e})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One episode of one person on one task: the states passed and the actions taken.

    Parameters
    ----------
    task : str
        The name of the task the episode belongs to.
    state : int array [L + 1]
        The states passed, the first and the last included.
    action : int array [L]
        The actions taken.
    finished : bool
        Whether the last state is terminal.
    label : str
        Whose episode it is.
    """

    task: str
    state: NDArray[np.int32]
    action: NDArray[np.int32]
    finished: bool
    label: str = ""

    def __post_init__(self) -> None:
        if self.state.ndim != 1 or self.action.ndim != 1:
            raise DataError("A trace needs one-dimensional states and actions.")
        if len(self.state) != len(self.action) + 1:
            raise DataError(
                f"A trace of {len(self.action)} actions needs {len(self.action) + 1} states, "
                f"not {len(self.state)}."
            )
        object.__setattr__(self, "state", read_only(self.state))
        object.__setattr__(self, "action", read_only(self.action))

    def __len__(self) -> int:
        return len(self.action)

    def __repr__(self) -> str:
        end = "finished" if self.finished else "not finished"
        return f"Trace({self.label!r} on {self.task!r}: {len(self)} actions, {end})"


@dataclass(frozen=True, slots=True)
class Omission:
    """Things of one kind that are left out for one reason on the way to a report; it holds no speech.

    Files and turns are counted by whoever reads dialogs, participants and facts about them where dialogs meet
    the lab's own tables, segments and actions in the cohort. The first two are kept in
    ``grounding/provenance.json``; the terminal, ``--json`` and the report show the same.

    Examples
    --------
    >>> print(Omission("file", "named in skip of grounding.toml", 1, ("meta.json",)))
    1 file left out: named in skip of grounding.toml (meta.json)
    >>> print(Omission("turn", "no times", 3, ("P1", "P2"), of="durations and pauses"))
    3 turns left out of durations and pauses: no times (P1, P2)
    """

    what: str  # file, turn, fact, participant, segment or action
    why: str  # in words
    n: int  # how many
    who: tuple[str, ...] = ()  # the files or participants concerned
    of: str = ""  # what they are left out of; empty for everything

    def __str__(self) -> str:
        of, who = (f" of {self.of}" if self.of else ""), (f" ({few(self.who)})" if self.who else "")
        return f"{count(self.n, self.what)} left out{of}: {self.why}{who}"

    def without(self, who: Collection[str]) -> list[Omission]:
        """Return the same without some of those concerned; nothing where nobody else is."""
        return omission(self.what, self.why, [one for one in self.who if one not in who], of=self.of)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "who": list(self.who)}


def omission(
    what: str, why: str, who: Collection[str], *, n: int | None = None, of: str = ""
) -> list[Omission]:
    """Return what is left out for a reason as a list: of one, or of none where nothing is."""
    n = len(who) if n is None else n
    return [Omission(what, why, n, tuple(dict.fromkeys(who)), of)] if n else []


def kept_omissions(provenance: Mapping[str, Any]) -> list[Omission]:
    """Return what a study's grounding says was left out when its dialogs were read and met its tables."""
    kept: Iterable[Mapping[str, Any]] = (*provenance.get("omissions", ()), *provenance.get("unmatched", ()))
    return [Omission(**{**one, "who": tuple(one["who"])}) for one in kept]
