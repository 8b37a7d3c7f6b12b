"""Rubin's rules and recovered variances for one person and one parameter, one number at a time."""

from __future__ import annotations

import math

from scipy import stats


def rubin(estimates, errors):
    """Mean, total standard error and the share of the variance that lies between the draws."""
    k = len(estimates)
    mean = sum(estimates) / k
    within = sum(error**2 for error in errors) / k
    between = sum((estimate - mean) ** 2 for estimate in estimates) / (k - 1)
    total = within + (1 + 1 / k) * between
    return mean, math.sqrt(total), (1 + 1 / k) * between / total


def end(estimates, ends, level, sign):
    """One end of the averaged interval, from the same end in every draw."""
    k = len(estimates)
    z = stats.norm.ppf(0.5 + level / 2)
    mean = sum(estimates) / k
    between = (1 + 1 / k) * sum((estimate - mean) ** 2 for estimate in estimates) / (k - 1)
    within = sum(((e - m) / z) ** 2 for e, m in zip(ends, estimates, strict=True)) / k
    if between == 0:
        return mean + sign * z * math.sqrt(within)
    freedom = (k - 1) * (1 + within / between) ** 2
    return mean + sign * stats.t.ppf(0.5 + level / 2, freedom) * math.sqrt(within + between)
