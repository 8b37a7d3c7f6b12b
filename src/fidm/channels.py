"""Effort channels: those that come with the package, the class to write your own, and what they are called.

See :mod:`fidm.model.channels` and :mod:`fidm.model.amounts` for the distributions. Figures, sentences
and reports take their words for parameters and channels from here, so that one thing has one name everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fidm.model.amounts import Gamma, GeneralizedGamma, LogNormal, Weibull
from fidm.model.channels import Channel
from fidm.model.counts import (
    Bernoulli,
    NegativeBinomial,
    Poisson,
    ShiftedNegativeBinomial,
    TruncatedNegativeBinomial,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
)
from fidm.model.effort import paper_channels

__all__ = [
    "CHANNEL_WORDS",
    "SENSITIVITY_WORDS",
    "Bernoulli",
    "Channel",
    "ChannelWords",
    "Gamma",
    "GeneralizedGamma",
    "LogNormal",
    "NegativeBinomial",
    "Poisson",
    "ShiftedNegativeBinomial",
    "TruncatedNegativeBinomial",
    "Weibull",
    "ZeroInflatedNegativeBinomial",
    "ZeroInflatedPoisson",
    "channel_words",
    "paper_channels",
    "parameter_words",
]


class ChannelWords(NamedTuple):
    """What an effort channel is called.

    Parameters
    ----------
    name : str
        In sentences: one thing, so that "is" can follow.
    unit : str
        What an observation is counted in; empty where it has no unit.
    rests_on : str
        What its observations are, several of them: ``"segments"`` or ``"paused segments"``.
    """

    name: str
    unit: str
    rests_on: str = "segments"


SENSITIVITY_WORDS = "action sensitivity η"
"""What the parameter of a person's actions is called; it rests on steps."""

CHANNEL_WORDS: Mapping[str, ChannelWords] = {
    one.name: ChannelWords(one.label, one.unit, one.rests_on) for one in paper_channels()
}
"""The paper's effort channels in words."""


def channel_words(name: str | Channel, column: str = "") -> ChannelWords:
    """Return what an effort channel is called, its unit, and what it rests on.

    Parameters
    ----------
    name : str or Channel
        The channel. One with a ``label`` says itself what it is called; a name is that of the paper's
        channel, or is taken as it is.
    column : str, optional
        The column it is observed in; one that ends in ``_s`` holds seconds.

    Examples
    --------
    >>> channel_words("characters")
    ChannelWords(name='character count', unit='characters', rests_on='segments')
    >>> channel_words("response_time", "response_time_s")
    ChannelWords(name='response time', unit='s', rests_on='segments')
    >>> channel_words(Poisson("gaze", "n_shifts", label="gaze shift count", unit="shifts"))
    ChannelWords(name='gaze shift count', unit='shifts', rests_on='segments')
    """
    if isinstance(name, Channel):
        own = ChannelWords(name.label, name.unit, name.rests_on)
        return own if name.label else channel_words(name.name, name.column)
    known = CHANNEL_WORDS.get(name)
    return known or ChannelWords(name.replace("_", " "), "s" if column.endswith("_s") else "")


def parameter_words(name: str) -> str:
    """Return what a person's parameter is called: η of actions, or θ of an effort channel.

    Examples
    --------
    >>> parameter_words("action_sensitivity"), parameter_words("duration"), parameter_words("gaze_shifts")
    ('action sensitivity η', 'speech duration θ', 'gaze shifts θ')
    """
    if name in ("action_sensitivity", "log_action_sensitivity"):
        return SENSITIVITY_WORDS
    return f"{channel_words(name).name} θ"
