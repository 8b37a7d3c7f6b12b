"""What each doubt means, in words for people who look at a segment."""

from __future__ import annotations

from fidm.grounding.replay import MEANING
from fidm.grounding.verdicts import REVIEW_MEANING

DOUBTS: dict[str, str] = {
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
    "too_long": "more instructions than a program may have; the rest is left out",
    "what_to_buy": "“I take it”, with no section or several in reach",
    "where_to": "“go there”, with no place named before",
    "turn": "a turn that does not say where to",
    "back": "a way back that does not say where to",
    "along": "a way along something that does not say where to",
    "no_answer": "the language model gave nothing usable",
    "cut_off": "the language model’s answer was cut off",
    "prompt_cut": "the language model seems to have read only a part",
    "repaired": "the language model’s first answer did not fit the map; this is its second",
    "disagree": "several readings of the same words differ",
    "unsure": "the language model is unsure",
    "missed": "an empty answer, though the words name a place or something to do",
    "unquoted": "an instruction whose words nobody said",
    "full": "as many instructions as fit; some may be missing",
}
"""What the doubts of the built-in grounders mean; other grounders may have their own."""

MEANINGS: dict[str, str] = {
    **{str(code): words for code, words in MEANING.items()},
    **DOUBTS,
    **REVIEW_MEANING,
}
"""Doubts, those that come from reviews, and issues of the replay."""
