"""Chinese in Latin letters, such as Jyutping, Yale or pinyin, which no rules can read; characters are needed.

One syllable is many words, so what was said cannot be recovered from it. What gives it away are tones: a
digit after every syllable (``zyun2 zo2``) or marks above its vowels. English words and whole English
utterances, which people in Hong Kong mix in, have neither.
"""

from __future__ import annotations

import re
import unicodedata

from fidm.io.talk import Transcript

CHINESE = ("yue", "zh", "cmn", "zho", "chi", "und")
"""Languages of which a file may say that they are written in Latin letters."""

ROMANISED = "-Latn"
"""What the name of a language ends with where it is written in Latin letters."""

LATIN_TAGS = frozenset({"latn", "jyutping", "pinyin", "yale"})
"""Parts of the names of languages that say so."""

SHARE, FEWEST = 0.3, 2
"""Of all words and characters so many, and at least so many, have tones where a dialog is romanised."""

_SYLLABLE = r"(?:[bcdfghjklmnpqrstwxyz]|[zcs]h|ng|[gk]w)?(?:y?[aeiouüv]{1,3}(?:ng|[nmptkrh])?|h?ng|m)"
_MACRON, _ACUTE, _CARON, _GRAVE = "\u0304", "\u0301", "\u030c", "\u0300"
_MARKS = re.compile(f"[{_MACRON}{_ACUTE}{_CARON}{_GRAVE}]")
_CHAIN = re.compile(rf"(?:{_SYLLABLE}){{1,4}}")  # so few that no word takes long
_TONES = "1234567"
_NUMBERED = re.compile(rf"(?=[a-zü]{{2}})(?:{_SYLLABLE}[1-7])+")
_WORD = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]|[^\W_\u3400-\u9fff\U00020000-\U0003ffff]+")


def is_romanised(transcript: Transcript, language: str) -> bool:
    """Return whether a participant's talk is Chinese in Latin letters.

    Parameters
    ----------
    transcript : Transcript
        The dialog; what the participant says counts.
    language : str
        The code of the language that it is said to be in; empty where nobody says.
    """
    text = " ".join(turn.text for turn in transcript.turns if turn.role == "participant")
    words = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    first, *others = language.lower().replace("_", "-").split("-")
    if first not in (*CHINESE, "en", ""):  # somebody's own language file may read anything
        return False
    if first in CHINESE and first != "und" and LATIN_TAGS.intersection(others):
        return any(word.isascii() for word in words) and not any(map(_is_han, words))
    toned = sum(word[-1] in _TONES and _NUMBERED.fullmatch(word) is not None for word in words)
    apart = [unicodedata.normalize("NFD", word) for word in words if not word.isascii()]
    marked = [word for word in apart if _MARKS.search(word) and _CHAIN.fullmatch(_MARKS.sub("", word))]
    marks = "".join(marked)
    if first in CHINESE or (_MACRON in marks and _CARON in marks):  # French has acute and grave
        toned += len(marked)
    return toned >= max(FEWEST, SHARE * len(words))


def _is_han(word: str) -> bool:
    return "\u3400" <= word <= "\u9fff" or "\U00020000" <= word <= "\U0003ffff"
