"""Which distributions are compared on the HCRC Map Task, given what, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields

from fidm.channels import (
    Bernoulli,
    Channel,
    Gamma,
    GeneralizedGamma,
    LogNormal,
    NegativeBinomial,
    Poisson,
    TruncatedNegativeBinomial,
    ZeroInflatedNegativeBinomial,
)
from fidm.experiments.families import Family
from fidm_studies.map_task.dataset import PAUSE_ABOVE_S

MOVE, WORDS = "the move", "its words"
"""What an observation is conditioned on: nothing but that it is one move, or also how many words it has."""

WITHIN, ACROSS = "odd and even moves of a dialog", "two dialogs of a giver"
"""The two ways in which θ is measured twice."""

DESIGNS: Mapping[str, tuple[str, ...]] = {MOVE: (), WORDS: ("log_words",)}

OBSERVABLES = {
    "duration": "speech duration",
    "characters": "characters",
    "words": "words",
    "pauses": "number of pauses",
    "pause": "pause",
    "silence": "annotated silence",
}
"""What is observed, in words."""

PAPER = ("duration", "characters", "pause")
"""The observations whose families are the paper's."""

GAMMA, LOG_NORMAL, GENERALISED = "Gamma", "log-normal", "generalised gamma"
GAMMA_ABOVE = f"Gamma above {PAUSE_ABOVE_S:g} s"
LOG_NORMAL_ABOVE = f"log-normal above {PAUSE_ABOVE_S:g} s"
NEGATIVE_BINOMIAL, POISSON = "negative binomial", "Poisson"
ABOVE_ZERO, MORE_ZEROS = "negative binomial above 0", "zero-inflated negative binomial"
BERNOULLI = "Bernoulli"

PAPER_CHANNELS = (
    ("duration", GAMMA),
    ("characters", NEGATIVE_BINOMIAL),
    ("pause", LOG_NORMAL),
    ("pause_presence", BERNOULLI),
)
"""The paper's channels that a move shows; every move lies within one turn, so turns are not counted."""

MATTERS = 0.001
"""A smaller gain per move is too little to matter: it takes about 3,000 moves to favour a family 20 to 1."""


def two_parts(family: str) -> str:
    """Return what a family is called whose first part is whether there is anything.

    Examples
    --------
    >>> two_parts(LOG_NORMAL)
    'Bernoulli + log-normal'
    """
    return f"{BERNOULLI} + {family}"


def families(given: str) -> dict[str, dict[str, Family]]:
    """Return the families to compare for each observation, the paper's (or the usual one) first.

    Given the words, only what the paper names is compared with its nearest rival: whether that verdict
    changes is the question. Of pauses, which are counted from a limit on, there are also families that begin
    there.
    """
    design = DESIGNS[given]
    found: dict[str, dict[str, Family]] = {
        "duration": {
            GAMMA: Gamma("duration", "duration_s", design),
            LOG_NORMAL: LogNormal("duration", "duration_s", design),
            GENERALISED: GeneralizedGamma("duration", "duration_s", design),
        },
        "characters": {
            NEGATIVE_BINOMIAL: NegativeBinomial("characters", "n_characters", design),
            POISSON: Poisson("characters", "n_characters", design),
        },
        "words": {
            NEGATIVE_BINOMIAL: NegativeBinomial("words", "n_words", design),
            POISSON: Poisson("words", "n_words", design),
            ABOVE_ZERO: TruncatedNegativeBinomial("words", "n_words", design),
        },
        "pauses": {
            NEGATIVE_BINOMIAL: NegativeBinomial("pauses", "n_pauses", design),
            POISSON: Poisson("pauses", "n_pauses", design),
            MORE_ZEROS: ZeroInflatedNegativeBinomial("pauses", "n_pauses", design),
        },
        "pause": _amounts("pause", "pause_s", design, above=PAUSE_ABOVE_S),
        "silence": _amounts("silence", "silence_s", design),
    }
    if given == WORDS:
        rivals = {"duration": LOG_NORMAL, "characters": POISSON, "pauses": POISSON}
        rivals |= {"pause": two_parts(GAMMA_ABOVE), "silence": two_parts(GAMMA)}
        found = {
            name: {family: found[name][family] for family in (next(iter(found[name])), rival)}
            for name, rival in rivals.items()
        }
    return found


def _amounts(name: str, column: str, design: tuple[str, ...], *, above: float = 0.0) -> dict[str, Family]:
    """Whether there is any, and how much; also from a limit on, if amounts have one."""
    some = Bernoulli(f"{name}_presence", column, design)
    found: dict[str, Family] = {
        two_parts(LOG_NORMAL): (some, LogNormal(name, column, design, zeros="left_out")),
        two_parts(GAMMA): (some, Gamma(name, column, design, zeros="left_out")),
        two_parts(GENERALISED): (some, GeneralizedGamma(name, column, design, zeros="left_out")),
    }
    if above:
        late = LogNormal(name, column, design, zeros="left_out", above=above)
        found[two_parts(LOG_NORMAL_ABOVE)] = (some, late)
        found[two_parts(GAMMA_ABOVE)] = (some, Gamma(name, column, design, zeros="left_out", above=above))
    return found


def as_channel(observable: str, family: str) -> str:
    """Return how a family is written as a channel: its class and the settings that are not the usual ones.

    Of a family in two parts it is that of the amounts.

    Examples
    --------
    >>> as_channel("pause", two_parts(GAMMA_ABOVE))
    "Gamma(…, zeros='left_out', above=0.25)"
    >>> as_channel("words", ABOVE_ZERO)
    'TruncatedNegativeBinomial(…)'
    """
    found = families(MOVE)[observable][family]
    channel = found[-1] if isinstance(found, tuple) else found
    settings = [
        f"{one.name}={getattr(channel, one.name)!r}"
        for one in fields(channel)
        if one.default is not MISSING and one.name != "design" and getattr(channel, one.name) != one.default
    ]
    return f"{type(channel).__name__}({', '.join(['…', *settings])})"


def reliable_channels(given: str) -> dict[tuple[str, str], Channel]:
    """Return the channels whose θ is measured twice, by what is observed and the name of the family.

    Those of the paper that a move shows, and the log-normal duration and the Gamma pause that begins at the
    limit, to see what the family changes.
    """
    design = DESIGNS[given]
    return {
        ("duration", GAMMA): Gamma("duration", "duration_s", design),
        ("duration", LOG_NORMAL): LogNormal("duration", "duration_s", design),
        ("characters", NEGATIVE_BINOMIAL): NegativeBinomial("characters", "n_characters", design),
        ("pause", LOG_NORMAL): LogNormal("pause", "pause_s", design, zeros="left_out"),
        ("pause", GAMMA_ABOVE): Gamma("pause", "pause_s", design, zeros="left_out", above=PAUSE_ABOVE_S),
        ("pause_presence", BERNOULLI): Bernoulli("pause_presence", "pause_s", design),
    }
