"""How recovered parameters respond to what was manipulated: slopes, correlations, errors, coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidm.fit.profile import SENSITIVITY, Profile
from fidm.model.channels import Channel

Floats = NDArray[np.float64]


def slope_rows(factors: Floats, channels: Sequence[Channel], profile: Profile) -> list[dict[str, Any]]:
    """The standardized partial slopes of every recovered parameter, on both scales of η."""
    names = (SENSITIVITY, *(channel.name for channel in channels))
    found = []
    for scale in ("log", "raw"):
        x = factors.copy()
        if scale == "raw":
            x[:, 0] = np.exp(x[:, 0])
        for name in profile.parameters:
            y = _estimates(profile, name, scale)
            slope, se, used = partial_slopes(x, y)
            found += [
                {
                    "scale": scale, "factor": factor, "recovered": name, "slope": slope[i], "se": se[i],
                    "n": used,
                }
                for i, factor in enumerate(names)
            ]  # fmt: skip
    return found


def partial_slopes(x: Floats, y: Floats) -> tuple[Floats, Floats, int]:
    """Regress y on all columns of x, everything standardized; return slopes, their errors, how many people.

    People without a finite y are left out. Where everybody has the same y nothing is recovered: slopes are 0.
    The errors are those of least squares times √(1 − b²), since the sd of y is estimated too: a slope near 1
    is known better than least squares says, as a correlation is.

    Parameters
    ----------
    x : float array [P, K]
        The manipulated factors.
    y : float array [P]
        A recovered parameter.
    """
    known = np.isfinite(y)
    x, y, width = x[known], y[known], x.shape[1]
    if len(y) <= width + 1:
        return np.full(width, np.nan), np.full(width, np.nan), len(y)
    if y.std() <= 1e-12 * max(1.0, float(np.abs(y).max())):
        return np.zeros(width), np.full(width, np.nan), len(y)
    z = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    v = (y - y.mean()) / y.std(ddof=1)
    inverse = np.linalg.pinv(z.T @ z)
    slope = inverse @ (z.T @ v)
    residual = v - z @ slope
    variance = float(residual @ residual) / (len(v) - width - 1)
    error = np.sqrt(variance * np.diag(inverse) * np.clip(1 - slope**2, 0, 1))
    return slope, error, len(y)


def statistic_rows(factors: Floats, channels: Sequence[Channel], profile: Profile) -> list[dict[str, Any]]:
    """Correlation, slope, bias, error and coverage of every parameter."""
    found = []
    for k, name in enumerate((SENSITIVITY, *(channel.name for channel in channels))):
        if name not in profile.parameters:
            continue
        column = profile.parameters.index(name)
        for scale in ("log", "raw") if k == 0 else ("log",):
            is_raw = k == 0 and scale == "raw"
            truth = np.exp(factors[:, 0]) if is_raw else factors[:, k]
            y = _estimates(profile, name, scale)
            known = np.isfinite(y)
            own = np.exp(factors[:, 0]) if k == 0 else factors[:, k]
            low, high = profile.low[:, column], profile.high[:, column]
            has_interval = ~np.isnan(low) & ~np.isnan(high) & ~np.isnan(profile.estimate[:, column])
            inside = (low <= own) & (own <= high)
            r, slope = _line(truth[known], y[known])
            error = y[known] - truth[known]
            found.append(
                {
                    "parameter": f"log_{name}" if k == 0 and not is_raw else name,
                    "r": r,
                    "slope": slope,
                    "bias": float(error.mean()) if len(error) else math.nan,
                    "rmse": float(np.sqrt((error**2).mean())) if len(error) else math.nan,
                    "coverage": float(inside[has_interval].mean()) if has_interval.any() else math.nan,
                    "without": int((~known).sum()),
                    "n": int(known.sum()),
                }
            )
    return found


def _line(truth: Floats, y: Floats) -> tuple[float, float]:
    """Correlation and slope of the estimate on the truth; 0 where everybody has the same estimate."""
    if len(y) < 3 or truth.std() == 0:
        return math.nan, math.nan
    slope = float(np.cov(truth, y)[0, 1] / truth.var(ddof=1))
    if y.std() <= 1e-12 * max(1.0, float(np.abs(y).max())):
        return 0.0, 0.0
    return slope * float(truth.std() / y.std()), slope


def _estimates(profile: Profile, name: str, scale: str) -> Floats:
    matrix, _ = profile.features(scale="log" if scale == "log" else "raw")
    return matrix[:, profile.parameters.index(name)]
