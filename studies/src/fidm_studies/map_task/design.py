"""Who speaks to whom in the HCRC Map Task, as its design says and as the words confirm.

The files name dialogs, not people. By the corpus's design two pairs of friends, a1 with a2 and b1 with b2,
make a quad of eight conversations. Everybody gives the route of the same map twice, once to the friend and
once to a stranger: conversations 1 and 7, 2 and 8, 3 and 5, 4 and 6 have the same giver. The people of eight
quads see each other, those of the other eight do not.

:func:`same_map` checks that on the words: among the dialogs of a quad, the one whose giver uses the most
similar rare words (those of the map) must be the one with the same map.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import polars as pl

from fidm.errors import DataError
from fidm_studies.map_task.files import DIALOG

GIVERS = {1: "a1", 7: "a1", 2: "b2", 8: "b2", 3: "a2", 5: "a2", 4: "b1", 6: "b1"}
"""Who gives the route in each conversation of a quad; a1 came with a2, and b1 with b2."""

FAMILIAR = {"early": (3, 4, 7, 8), "late": (1, 2, 5, 6)}
"""The conversations with the person one came with, in quads 1 to 4 and in quads 5 to 8."""


def is_familiar(dialog: str) -> bool:
    """Return whether the two of a dialog came together.

    Examples
    --------
    >>> is_familiar("q1ec3"), is_familiar("q5ec3")
    (True, False)
    """
    quad, _, conversation = place(dialog)
    return conversation in FAMILIAR["early" if quad <= 4 else "late"]


def giver(dialog: str) -> str:
    """Return who gave the route in a dialog.

    Examples
    --------
    >>> giver("q1ec1"), giver("q1ec7"), giver("q1nc7")
    ('q1e-a1', 'q1e-a1', 'q1n-a1')
    """
    quad, sight, conversation = place(dialog)
    return f"q{quad}{sight}-{GIVERS[conversation]}"


def same_map(words: Mapping[str, Counter[str]]) -> pl.DataFrame:
    """Return, for each dialog, the one of its quad with the same map by design, and the nearest by words.

    Nearness is the cosine of log(1 + count) · log(dialogs / dialogs with the word), over the giver's words.

    Parameters
    ----------
    words : mapping of str to Counter
        How often each word was said by the giver, by dialog.
    """
    spread = Counter(word for found in words.values() for word in found)
    weights = {
        dialog: {
            word: math.log1p(count) * math.log(len(words) / spread[word]) for word, count in found.items()
        }
        for dialog, found in words.items()
    }
    length = {dialog: math.sqrt(math.fsum(x * x for x in w.values())) for dialog, w in weights.items()}
    rows = []
    for dialog in words:
        others = [other for other in words if other != dialog and other[:3] == dialog[:3]]
        designed = next((other for other in others if giver(other) == giver(dialog)), None)
        near = {other: _overlap(weights[dialog], weights[other]) / (length[other] or 1.0) for other in others}
        nearest = max(near, key=lambda other: near[other]) if near else None
        rows.append({"dialog": dialog, "by_design": designed, "by_words": nearest})
    return pl.DataFrame(
        rows, schema={"dialog": pl.String, "by_design": pl.String, "by_words": pl.String}
    ).sort("dialog")


def _overlap(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return math.fsum(weight * other.get(word, 0.0) for word, weight in one.items())


def place(dialog: str) -> tuple[int, str, int]:
    """Return the quad of a dialog, ``"e"`` for eye contact or ``"n"`` for none, and its conversation.

    Examples
    --------
    >>> place("q4nc1")
    (4, 'n', 1)
    """
    found = DIALOG.fullmatch(dialog)
    if found is None:
        raise DataError(f"{dialog!r} is not the name of a dialog such as 'q1ec1'.")
    return int(found[1]), found[2], int(found[3])
