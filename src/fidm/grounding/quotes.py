"""Where words that a model quotes stand in what was said."""

from __future__ import annotations

import unicodedata

EXACT, CLOSE, NOWHERE = 1.0, 0.95, 0.5
"""The probability of an instruction whose words were said so, nearly so, or not at all."""


def locate(words: object, said: str, after: int = 0) -> tuple[tuple[int, int], float]:
    """Find words in what was said: the stretch of the text, and how sure one can be of it.

    Looked for as they stand, then without regard to case, spaces and punctuation; each time first behind
    ``after`` and then from the beginning. Words that are nowhere are put down to the whole text.

    Examples
    --------
    >>> locate("turn LEFT", "go up, turn left")
    ((7, 16), 0.95)
    """
    whole = (0, len(said))
    if not isinstance(words, str) or not words.strip():
        return whole, NOWHERE
    words = words.strip()
    for start in (after, 0):
        found = said.find(words, start)
        if found >= 0:
            return (found, found + len(words)), EXACT
    plain, places = _plain(said)
    wanted = _plain(words)[0]
    if wanted:
        behind = next((i for i, place in enumerate(places) if place >= after), len(plain))
        for start in (behind, 0):
            found = plain.find(wanted, start)
            if found >= 0:
                return (places[found], places[found + len(wanted) - 1] + 1), CLOSE
    return whole, NOWHERE


def _plain(text: str) -> tuple[str, list[int]]:
    """A text without case, spaces and punctuation, and where each of its characters stood."""
    kept, places = [], []
    for place, character in enumerate(text):
        for part in unicodedata.normalize("NFKC", character).casefold():
            if unicodedata.category(part)[0] in "LMN":
                kept.append(part)
                places.append(place)
    return "".join(kept), places
