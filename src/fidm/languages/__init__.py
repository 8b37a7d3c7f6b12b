"""A folder per language: the words that the rules read, and the phrases of simulated people."""

from __future__ import annotations

from fidm.registry import LANGUAGES

WORDS, PHRASES = "words.toml", "phrases.toml"
"""What the rules understand; what simulated people say."""


def languages_with(file: str) -> tuple[str, ...]:
    """Return the codes of the languages that have a file of this name; those of other packages come last."""
    return tuple(name for name in LANGUAGES.loaded() if LANGUAGES.path(name, file).is_file())
