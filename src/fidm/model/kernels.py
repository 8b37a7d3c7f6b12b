r"""The hot loops of the action factor, compiled by Numba.

Notation: η is a person's action sensitivity, q the values of the actions legal in one row, c the one that
was chosen, ε the lapse rate. The probability of the choice is

.. math:: p = (1 - ε)\, \frac{e^{ηq_c}}{\sum_a e^{ηq_a}} + \frac{ε}{|A|}.

All loops run over people or rows one after the other and release the interpreter's lock; callers give
each thread its own range, so the number of threads changes no bit of the result.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def choice_terms(q, first, last, chosen, eta, lapse):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return log p of one choice and its first two derivatives in η."""
    top = q[first]
    for k in range(first + 1, last):
        if q[k] > top:
            top = q[k]
    total = 0.0
    first_moment = 0.0
    second_moment = 0.0
    for k in range(first, last):
        d = q[k] - top
        w = np.exp(eta * d)
        total += w
        first_moment += w * d
        second_moment += w * d * d
    mean = first_moment / total
    variance = second_moment / total - mean * mean
    if variance < 0.0:
        variance = 0.0
    away = q[chosen] - top - mean
    log_p = eta * (q[chosen] - top) - np.log(total)
    if lapse == 0.0:
        return log_p, away, -variance
    kept = (1.0 - lapse) * np.exp(log_p)
    p = kept + lapse / (last - first)
    share = kept / p
    slope = share * away
    return np.log(p), slope, share * (away * away - variance) - slope * slope


@njit(cache=True, nogil=True, error_model="numpy")
def fill_table(pairs, rows, offsets, q, etas, lapse, table, begin, end):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill ``table[i, g]`` with log p of pair i at η g, for the pairs from ``begin`` to ``end``."""
    for i in range(begin, end):
        first = offsets[rows[i]]
        last = offsets[rows[i] + 1]
        top = q[first]
        for k in range(first + 1, last):
            if q[k] > top:
                top = q[k]
        below = q[pairs[i]] - top
        chance = lapse / (last - first)
        for g in range(len(etas)):
            total = 0.0
            for k in range(first, last):
                total += np.exp(etas[g] * (q[k] - top))
            log_p = etas[g] * below - np.log(total)
            if lapse > 0.0:
                log_p = np.log((1.0 - lapse) * np.exp(log_p) + chance)
            table[i, g] = log_p


@njit(cache=True, nogil=True, error_model="numpy")
def sum_table(person_offsets, entry, weight, table, summed, begin, end):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add up the table's rows of each person's choices: ``summed[j, g]`` is ℓ of person j at η g."""
    n_nodes = table.shape[1]
    for j in range(begin, end):
        line = summed[j]
        line[:] = 0.0
        for i in range(person_offsets[j], person_offsets[j + 1]):
            row = table[entry[i]]
            w = weight[i]
            for g in range(n_nodes):
                line[g] += w * row[g]


@njit(cache=True, nogil=True, error_model="numpy")
def person_terms(j, person_offsets, pair, row, weight, offsets, q, eta, lapse):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return ℓ of one person and its first two derivatives in η, exactly."""
    value = 0.0
    slope = 0.0
    bend = 0.0
    for i in range(person_offsets[j], person_offsets[j + 1]):
        a, b, c = choice_terms(q, offsets[row[i]], offsets[row[i] + 1], pair[i], eta, lapse)
        value += weight[i] * a
        slope += weight[i] * b
        bend += weight[i] * c
    return value, slope, bend


@njit(cache=True, nogil=True, error_model="numpy")
def polish(person_offsets, pair, row, weight, offsets, q, lapse, low, high, eta, value, bend, begin, end):  # type: ignore[no-untyped-def] # pragma: no cover
    """Bring each person's η from its place in (low, high) to the maximum, by safeguarded Newton steps.

    A converged step is taken before the bracket is asked, since rounding may put it a hair outside.
    """
    for j in range(begin, end):
        if not np.isfinite(eta[j]):
            continue
        left = low[j]
        right = high[j]
        x = eta[j]
        v, s, b = person_terms(j, person_offsets, pair, row, weight, offsets, q, x, lapse)
        for _ in range(100):
            if s > 0.0:
                left = x
            elif s < 0.0:
                right = x
            step = -s / b if b < 0.0 else 0.0
            if b < 0.0 and abs(step) <= 1e-13 * x:
                x += step
                break
            to = x + step
            if b >= 0.0 or to <= left or to >= right:
                to = 0.5 * (left + right)
            if to == x or s == 0.0:
                break
            converging = abs(step) <= 1e-7 * x  # the next step will be about 1e-14: Newton squares the error
            x = to
            v, s, b = person_terms(j, person_offsets, pair, row, weight, offsets, q, x, lapse)
            if converging:
                if b < 0.0 and left < x - s / b < right:
                    x -= s / b
                break
        eta[j] = x
        value[j] = v
        bend[j] = b


@njit(cache=True, nogil=True, error_model="numpy")
def cross(person_offsets, pair, row, weight, offsets, q, lapse, target, low, high, found, begin, end):  # type: ignore[no-untyped-def] # pragma: no cover
    """Find for each person the η between ``low`` and ``high`` where ℓ crosses ``target``.

    ``low`` and ``high`` must lie on different sides; NaN asks for nothing.
    """
    for j in range(begin, end):
        a = low[j]
        b = high[j]
        if np.isnan(a) or np.isnan(b):
            found[j] = np.nan
            continue
        va = person_terms(j, person_offsets, pair, row, weight, offsets, q, a, lapse)[0] - target[j]
        x = 0.5 * (a + b)
        for _ in range(80):
            v, s, _b = person_terms(j, person_offsets, pair, row, weight, offsets, q, x, lapse)
            v -= target[j]
            if (v > 0.0) == (va > 0.0):
                a = x
            else:
                b = x
            to = x - v / s if s != 0.0 else np.nan
            lo = min(a, b)
            hi = max(a, b)
            if abs(to - x) <= 1e-9 * x:
                x = to
                break
            if not (lo < to < hi):
                to = 0.5 * (a + b)
            if abs(b - a) <= 1e-12 * hi:
                x = to
                break
            x = to
        found[j] = x


@njit(cache=True, nogil=True, error_model="numpy")
def extremes(person_offsets, pair, row, weight, offsets, q, lapse, tie, scores, begin, end):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill ``scores[j]`` with the slope of ℓ at η = 0, ℓ there, ℓ at infinity, and Σ gap to the best."""
    for j in range(begin, end):
        slope = 0.0
        nothing = 0.0
        limit = 0.0
        short = 0.0
        for i in range(person_offsets[j], person_offsets[j + 1]):
            first = offsets[row[i]]
            last = offsets[row[i] + 1]
            top = q[first]
            mean = 0.0
            for k in range(first, last):
                mean += q[k]
                if q[k] > top:
                    top = q[k]
            mean /= last - first
            ties = 0
            for k in range(first, last):
                if top - q[k] < tie:
                    ties += 1
            gap = top - q[pair[i]]
            slope += weight[i] * (q[pair[i]] - mean)
            nothing -= weight[i] * np.log(last - first)
            if gap >= tie:
                short += weight[i] * gap
                limit += weight[i] * np.log(lapse / (last - first))
            else:
                limit += weight[i] * np.log((1.0 - lapse) / ties + lapse / (last - first))
        scores[j, 0] = slope
        scores[j, 1] = nothing
        scores[j, 2] = limit
        scores[j, 3] = short


@njit(cache=True, nogil=True, error_model="numpy")
def values_at(person_offsets, pair, row, weight, offsets, q, eta, lapse, found, begin, end):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill ``found[j]`` with ℓ of person j at that person's own η."""
    for j in range(begin, end):
        found[j] = person_terms(j, person_offsets, pair, row, weight, offsets, q, eta[j], lapse)[0]
