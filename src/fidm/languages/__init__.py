"""A folder per language: the words that the rules read, and the phrases of simulated people."""

from __future__ import annotations

from importlib import resources

WORDS, PHRASES = "words.toml", "phrases.toml"
"""What the rules understand; what simulated people say."""


def languages_with(file: str) -> tuple[str, ...]:
    """Return the codes of the languages that have a file of this name, in the order of the alphabet."""
    folders = resources.files("fidm.languages").iterdir()
    return tuple(sorted(folder.name for folder in folders if (folder / file).is_file()))


def language_text(language: str, file: str) -> str:
    """Return the text of one file of a language."""
    return (resources.files("fidm.languages") / language / file).read_text("utf-8")
