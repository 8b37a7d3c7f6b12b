"""What is left out on the way from a folder to a report, and why: a row for each reason, and no speech.

Files and turns are counted by whoever reads dialogs, participants and facts about them where the dialogs meet
the lab's own tables, segments and actions in the cohort. The first two are kept in
``grounding/provenance.json``; the terminal, ``--json`` and the report show the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fidm.errors import count, few


@dataclass(frozen=True, slots=True)
class Omission:
    """Things of one kind that are left out for one reason.

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
