"""Effort channels: the ones that come with the package, and the class to write your own.

See :mod:`fidm.model.channels` for the distributions.
"""

from __future__ import annotations

from fidm.model.channels import (
    Bernoulli,
    Channel,
    Gamma,
    LogNormal,
    NegativeBinomial,
    Poisson,
    paper_channels,
)

__all__ = ["Bernoulli", "Channel", "Gamma", "LogNormal", "NegativeBinomial", "Poisson", "paper_channels"]
