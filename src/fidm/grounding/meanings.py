"""What each doubt about a segment means, in words for people who look at it."""

from __future__ import annotations

from collections.abc import Mapping

from fidm.grounding.replay import MEANING
from fidm.grounding.verdicts import REVIEW_MEANING

OF_RULES: Mapping[str, str] = {
    "unknown_words": "too many words that are in no word list",
    "unread_words": "a word about the way, such as “left” or a number, was not used",
    "vague": "a distance or place that is none: “a bit”, “the corner”",
    "place_unused": "a place was named, and nothing was done with it",
    "ambiguous_place": "a word that several sections have; the first was taken",
    "not_in_reach": "what is taken, or the place named, is not in reach of where the moves lead",
    "set_aside": "something taken for a question, a thought or a negation reads like an instruction",
    "unresolved_repair": "something was taken back, and it is not clear what",
    "maybe_repair": "“hold on”, and then another version: taken back, or in addition?",
    "mixed_frames": "“turn left, then go left”: the figure’s own left, and then the map’s?",
    "said_twice": "the same thing taken twice in a row; read as once",
    "bought_elsewhere": "something is said to be taken that is elsewhere",
    "too_long": "more than can be read as a whole; the rest is left out",
    "what_to_buy": "“I take it”, with no section or several in reach",
    "where_to": "“go there”, with no place named before",
    "turn": "a turn that does not say where to",
    "back": "a way back that does not say where to",
    "along": "a way along something that does not say where to",
}
"""What the doubts of the rules mean."""

OF_MODELS: Mapping[str, str] = {
    "no_answer": "the language model gave nothing usable",
    "cut_off": "the language model’s answer was cut off",
    "prompt_cut": "the language model seems to have read only a part",
    "repaired": "the language model’s first answer did not fit the map; this is its second",
    "disagree": "several readings of the same words differ",
    "unsure": "the language model is unsure",
    "missed": "an empty answer, though the words name a place or something to do",
    "unquoted": "an instruction whose words nobody said",
    "full": "as many instructions as fit; some may be missing",
    "not_json": "its answer is not in the form that was asked for",
    "wrong_form": "its answer is not in the form that was asked for",
    "unknown_place": "its answer names a place that the task does not have",
    "timeout": "the server did not answer in time",
    "busy": "the server was busy",
    "server_error": "the server failed",
    "broken_off": "the server’s answer broke off",
    "garbage": "the server answered something that is no answer",
    "too_large": "the server’s answer was too large",
    "pending": "the question was put, and no answer is there yet",
}
"""What the doubts of language models mean, and what may stand beside ``no_answer``."""

MEANINGS: Mapping[str, str] = {
    **{str(code): words for code, words in MEANING.items()},
    **OF_RULES,
    **OF_MODELS,
    **REVIEW_MEANING,
}
"""All of them: issues of the replay, doubts of the built-in grounders, and those that come from reviews."""


def doubt_in_words(code: str) -> str:
    """Return what a doubt means; a code of somebody's own grounder is shown as it is.

    Examples
    --------
    >>> doubt_in_words("unsure"), doubt_in_words("odd_accent")
    ('the language model is unsure', 'odd accent')
    """
    return MEANINGS.get(code, code.replace("_", " "))
