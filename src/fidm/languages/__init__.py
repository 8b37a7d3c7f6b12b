"""A folder per language: the words that the rules read, and the phrases of simulated people."""

from __future__ import annotations

from functools import cache

from fidm.registry import LANGUAGES

WORDS, PHRASES, ALIASES = "words.toml", "phrases.toml", "aliases.txt"
"""What the rules understand; what simulated people say; what else files call the language, name by name."""


def languages_with(file: str) -> tuple[str, ...]:
    """Return the codes of the languages that have a file of this name; those of other packages come last."""
    return tuple(name for name in LANGUAGES.loaded() if LANGUAGES.path(name, file).is_file())


@cache
def language_called(name: str) -> str | None:
    """Return the code of the language that files call so, in small letters; None where nobody knows it.

    Examples
    --------
    >>> language_called("zh-hk"), language_called("klingon")
    ('yue', None)
    """
    for code in languages_with(WORDS):
        path = LANGUAGES.path(code, ALIASES)
        if name == code or (path.is_file() and name in path.read_text("utf-8").split()):
            return code
    return None
