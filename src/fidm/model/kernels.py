r"""The hot loops, compiled by Numba.

Notation: η is a person's action sensitivity, d the values of the actions legal in one row below the best of
them (d ≤ 0), c the one chosen, ε the lapse rate. The probability of a choice is

.. math:: p = (1 - ε)\, \frac{e^{ηd_c}}{\sum_a e^{ηd_a}} + \frac{ε}{|A|}.

Choices come as entries of a list of different state-action pairs: entry ``e`` has the options
``d[begin[e]:begin[e + 1]]`` and chose the one with ``own[e]``. Each person's loop depends on that person
alone, so batches and threads change no bit of the result. All kernels release the interpreter's lock.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def list_choices(
    pair, row, counted, flat, sizes, weight, step_offsets, kept, person_offsets, n_choices, said
):
    """List the steps of each person that say something about η; return how many there are.

    ``kept`` is filled with the steps, ``person_offsets`` with where each person's begin, ``n_choices`` with
    how many choices count, and ``said`` with the log-likelihood of those between options of equal value.
    """
    total = 0
    person_offsets[0] = 0
    for j in range(len(step_offsets) - 1):
        counts = 0
        level = 0.0
        for i in range(step_offsets[j], step_offsets[j + 1]):
            if pair[i] < 0 or not counted[row[i]]:
                continue
            w = 1.0 if len(weight) == 0 else weight[i]
            if w <= 0.0:
                continue
            counts += 1
            if flat[row[i]]:
                level -= w * np.log(sizes[row[i]])
            else:
                kept[total] = i
                total += 1
        person_offsets[j + 1] = total
        n_choices[j] = counts
        said[j] = level
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def lay_out(pairs, rows, offsets, q, begin, d, own):
    """Copy the options of different pairs side by side, each below the best of its row."""
    at = 0
    for e in range(len(pairs)):
        begin[e] = at
        first = offsets[rows[e]]
        last = offsets[rows[e] + 1]
        top = q[first]
        for k in range(first + 1, last):
            top = max(top, q[k])
        for k in range(first, last):
            d[at] = q[k] - top
            at += 1
        own[e] = q[pairs[e]] - top
    begin[len(pairs)] = at


@njit(cache=True, nogil=True, error_model="numpy")
def log_choice(e, begin, d, own, eta, lapse):
    """Return log p of one entry."""
    total = 0.0
    for k in range(begin[e], begin[e + 1]):
        total += 1.0 if d[k] == 0.0 else np.exp(eta * d[k])
    if lapse == 0.0:
        return eta * own[e] - np.log(total)
    return np.log((1.0 - lapse) * np.exp(eta * own[e]) / total + lapse / (begin[e + 1] - begin[e]))


@njit(cache=True, nogil=True, error_model="numpy")
def slopes(j, person_offsets, entry, weight, begin, d, own, eta, lapse):
    """Return the first two derivatives of ℓ of one person in η."""
    slope = 0.0
    bend = 0.0
    for i in range(person_offsets[j], person_offsets[j + 1]):
        e = entry[i]
        total = 0.0
        first_moment = 0.0
        second_moment = 0.0
        for k in range(begin[e], begin[e + 1]):
            x = d[k]
            if x == 0.0:
                total += 1.0
            else:
                w = np.exp(eta * x)
                total += w
                w *= x
                first_moment += w
                second_moment += w * x
        mean = first_moment / total
        variance = max(second_moment / total - mean * mean, 0.0)
        away = own[e] - mean
        if lapse == 0.0:
            slope += weight[i] * away
            bend -= weight[i] * variance
        else:
            kept = (1.0 - lapse) * np.exp(eta * own[e]) / total
            share = kept / (kept + lapse / (begin[e + 1] - begin[e]))
            first = share * away
            slope += weight[i] * first
            bend += weight[i] * (share * (away * away - variance) - first * first)
    return slope, bend


@njit(cache=True, nogil=True, error_model="numpy")
def value(j, person_offsets, entry, weight, begin, d, own, eta, lapse):
    """Return ℓ of one person."""
    total = 0.0
    for i in range(person_offsets[j], person_offsets[j + 1]):
        total += weight[i] * log_choice(entry[i], begin, d, own, eta, lapse)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def values_at(person_offsets, entry, weight, begin, d, own, eta, lapse, found):
    """Fill ``found[j]`` with ℓ of person j at that person's own η."""
    for j in range(len(found)):
        found[j] = value(j, person_offsets, entry, weight, begin, d, own, eta[j], lapse)


@njit(cache=True, nogil=True, error_model="numpy")
def values_on(person_offsets, entry, weight, begin, d, own, etas, lapse, found):
    """Fill ``found[j, g]`` with ℓ of person j at the g-th of that person's own ηs."""
    for j in range(len(found)):
        for g in range(found.shape[1]):
            found[j, g] = value(j, person_offsets, entry, weight, begin, d, own, etas[j, g], lapse)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_table(begin, d, own, etas, lapse, table):
    """Fill ``table[e, g]`` with log p of entry e at η g.

    Entries of one row stand side by side; what they share is computed once.
    """
    shared = np.empty(len(etas))  # log Σ exp(η d) of the row
    for e in range(len(own)):
        n = begin[e + 1] - begin[e]
        known = e > 0 and begin[e] - begin[e - 1] == n
        if known:
            for k in range(n):
                if d[begin[e] + k] != d[begin[e - 1] + k]:
                    known = False
                    break
        if not known:
            for g in range(len(etas)):
                total = 0.0
                for k in range(begin[e], begin[e + 1]):
                    total += 1.0 if d[k] == 0.0 else np.exp(etas[g] * d[k])
                shared[g] = np.log(total)
        for g in range(len(etas)):
            log_p = etas[g] * own[e] - shared[g]
            if lapse > 0.0:
                log_p = np.log((1.0 - lapse) * np.exp(log_p) + lapse / n)
            table[e, g] = log_p


@njit(cache=True, nogil=True, error_model="numpy")
def sum_table(person_offsets, entry, weight, table, summed, first):
    """Add up the table's rows of each person's choices, into the columns of ``summed`` from ``first`` on."""
    n_nodes = table.shape[1]
    for j in range(len(summed)):
        line = summed[j, first : first + n_nodes]
        line[:] = 0.0
        for i in range(person_offsets[j], person_offsets[j + 1]):
            row = table[entry[i]]
            w = weight[i]
            for g in range(n_nodes):
                line[g] += w * row[g]


@njit(cache=True, nogil=True, error_model="numpy")
def extremes(person_offsets, entry, weight, begin, d, own, lapse, tie, scores):
    """Fill ``scores[j]`` with the slope of ℓ at η = 0, ℓ there, ℓ at infinity, and Σ gap to the best."""
    facts = np.empty((len(own), 4))
    for e in range(len(own)):
        n = begin[e + 1] - begin[e]
        mean = 0.0
        ties = 0
        for k in range(begin[e], begin[e + 1]):
            mean += d[k]
            if -d[k] < tie:
                ties += 1
        facts[e, 0] = own[e] - mean / n
        facts[e, 1] = -np.log(n)
        if -own[e] >= tie:
            facts[e, 2] = np.log(lapse / n)
            facts[e, 3] = -own[e]
        else:
            facts[e, 2] = np.log((1.0 - lapse) / ties + lapse / n)
            facts[e, 3] = 0.0
    for j in range(len(scores)):
        a = 0.0
        b = 0.0
        c = 0.0
        short = 0.0
        for i in range(person_offsets[j], person_offsets[j + 1]):
            e = entry[i]
            a += weight[i] * facts[e, 0]
            b += weight[i] * facts[e, 1]
            c += weight[i] * facts[e, 2]
            short += weight[i] * facts[e, 3]
        scores[j, 0] = a
        scores[j, 1] = b
        scores[j, 2] = c
        scores[j, 3] = short


@njit(cache=True, nogil=True, error_model="numpy")
def row_products(left, right, found):
    """Fill ``found`` with the matrix product, each row by itself and added up in the order of the terms.

    Unlike BLAS, it gives a row the same bits wherever it stands, and those of ``np.einsum`` in less time.
    """
    n = left.shape[1]
    fours = n - n % 4
    for p in range(len(found)):
        line = found[p]
        line[:] = 0.0
        for k in range(0, fours, 4):
            a, b, c, d = left[p, k], left[p, k + 1], left[p, k + 2], left[p, k + 3]
            first, second, third, fourth = right[k], right[k + 1], right[k + 2], right[k + 3]
            for g in range(len(line)):
                line[g] = (((line[g] + a * first[g]) + b * second[g]) + c * third[g]) + d * fourth[g]
        for k in range(fours, n):
            a = left[p, k]
            first = right[k]
            for g in range(len(line)):
                line[g] += a * first[g]


@njit(cache=True, nogil=True, error_model="numpy")
def count_below(rows, limits, found):
    """Fill ``found[p, n]`` with how many of a row lie below the n-th limit, of its own or of all."""
    for p in range(len(found)):
        own = limits[p if len(limits) > 1 else 0]
        for n in range(len(own)):
            count = 0
            for g in range(rows.shape[1]):
                count += rows[p, g] < own[n]
            found[p, n] = count


@njit(cache=True, nogil=True, error_model="numpy")
def polish(person_offsets, entry, weight, begin, d, own, lapse, low, high, eta, bend):
    """Bring each person's η from its place in (low, high) to the maximum, by safeguarded Newton steps.

    A converged step is taken before the bracket is asked, since rounding may put it a hair outside.
    """
    for j in range(len(eta)):
        if not np.isfinite(eta[j]):
            continue
        left = low[j]
        right = high[j]
        x = eta[j]
        s, b = slopes(j, person_offsets, entry, weight, begin, d, own, x, lapse)
        for _ in range(100):
            if s > 0.0:
                left = x
            elif s < 0.0:
                right = x
            step = -s / b if b < 0.0 else 0.0
            if b < 0.0 and abs(step) <= 1e-13 * x:
                x += step
                s, b = slopes(j, person_offsets, entry, weight, begin, d, own, x, lapse)
                break
            to = x + step
            if b >= 0.0 or to <= left or to >= right:
                to = 0.5 * (left + right)
            if to == x or s == 0.0:
                break
            small = b < 0.0 and abs(step) <= 3e-5 * x and to == x + step
            x = to
            s, b = slopes(j, person_offsets, entry, weight, begin, d, own, x, lapse)
            if small:  # Newton squares the error: about 1e-9 is left
                break
        eta[j] = x
        bend[j] = b


@njit(cache=True, nogil=True, error_model="numpy")
def cross_table(table, first, spacing, log_eta, target, upward, found):
    """Find for each person the log η beside the estimate where the tabulated ℓ falls below ``target``.

    ℓ between two nodes is the cubic through four; NaN where four nodes are not at hand.
    """
    last = table.shape[1] - 1
    way = 1 if upward else -1
    for j in range(len(found)):
        found[j] = np.nan
        place = (log_eta[j] - first) / spacing
        if np.isnan(place) or np.isnan(target[j]):
            continue
        nearest = int(np.floor(min(max(place, -1.0), last + 1.0)))  # the node below the estimate
        start = nearest + 1 if upward else nearest
        start = min(max(start, 0), last)
        if (start - place) * way < 0.0:
            continue
        k = start
        while 0 <= k <= last and table[j, k] >= target[j]:
            k += way
        inside = k - way  # the last node that is still above the target
        if k < 1 or k > last - 1 or (inside - start) * way < 0 or inside < 1 or inside > last - 1:
            continue
        base = min(k, inside) - 1
        y0 = table[j, base] - target[j]
        y1 = table[j, base + 1] - target[j]
        y2 = table[j, base + 2] - target[j]
        y3 = table[j, base + 3] - target[j]
        c1 = (-2.0 * y0 - 3.0 * y1 + 6.0 * y2 - y3) / 6.0
        c2 = (y0 - 2.0 * y1 + y2) / 2.0
        c3 = (-y0 + 3.0 * y1 - 3.0 * y2 + y3) / 6.0
        low = 0.0
        high = 1.0
        t = y1 / (y1 - y2)
        for _ in range(40):
            at = ((c3 * t + c2) * t + c1) * t + y1
            if (at > 0.0) == (y1 > 0.0):
                low = t
            else:
                high = t
            to = t - at / ((3.0 * c3 * t + 2.0 * c2) * t + c1)
            if not low <= to <= high:
                to = 0.5 * (low + high)
            if abs(to - t) < 1e-12:
                break
            t = to
        found[j] = first + spacing * (base + 1 + t)


@njit(cache=True, nogil=True, error_model="numpy")
def cross(person_offsets, entry, weight, begin, d, own, lapse, target, low, high, start, found):
    """Find for each person the η between ``low`` and ``high`` where ℓ crosses ``target``, to about 1e-12.

    ``low`` and ``high`` must lie on different sides; NaN asks for nothing. The search begins at ``start``.
    """
    for j in range(len(found)):
        a = low[j]
        b = high[j]
        found[j] = np.nan
        if np.isnan(a) or np.isnan(b):
            continue
        va = value(j, person_offsets, entry, weight, begin, d, own, a, lapse) - target[j]
        x = start[j] if min(a, b) < start[j] < max(a, b) else 0.5 * (a + b)
        for _ in range(80):
            v = value(j, person_offsets, entry, weight, begin, d, own, x, lapse) - target[j]
            s, _b = slopes(j, person_offsets, entry, weight, begin, d, own, x, lapse)
            if (v > 0.0) == (va > 0.0):
                a = x
            else:
                b = x
            to = x - v / s if s != 0.0 else np.nan
            if abs(to - x) <= 1e-7 * x:  # Newton squares the error
                x = to
                break
            if not (min(a, b) < to < max(a, b)):
                to = 0.5 * (a + b)
            if abs(b - a) <= 1e-12 * max(a, b):
                x = to
                break
            x = to
        found[j] = x


@njit(cache=True, nogil=True, error_model="numpy")
def negative_binomial_maximum(y, base, offsets, kappa, theta, curvature):
    """Fill each person's θ of highest negative-binomial likelihood, and minus ℓ'' there; else NaN.

    In t = e^θ the score Σ (y − t m (y + κ) / (κ + t m)), with m = e^base, falls strictly; Newton steps in θ
    from the Poisson answer find its root. A step that leaves the bracket is replaced by its middle.
    """
    m = np.exp(base)
    for j in range(len(theta)):
        total = 0.0
        expected = 0.0
        for i in range(offsets[j], offsets[j + 1]):
            total += y[i]
            expected += m[i]
        theta[j] = np.nan
        curvature[j] = np.nan
        if total <= 0.0 or expected <= 0.0:
            continue
        x = np.log(total / expected)
        left = -700.0
        right = 700.0
        bend = 0.0
        for _ in range(200):
            t = np.exp(x)
            score = 0.0
            bend = 0.0
            for i in range(offsets[j], offsets[j + 1]):
                mean = t * m[i]
                inverse = 1.0 / (kappa + mean)
                pull = mean * (y[i] + kappa) * inverse
                score += y[i] - pull
                bend += pull * kappa * inverse
            if score > 0.0:
                left = x
            elif score < 0.0:
                right = x
            step = score / bend
            if abs(step) <= 1e-12:
                x += step
                break
            to = x + max(-2.0, min(2.0, step))
            if not left < to < right:
                to = 0.5 * (left + right)
            small = abs(step) <= 1e-6  # Newton squares the error
            x = to
            if small:
                break
        bend = 0.0
        for i in range(offsets[j], offsets[j + 1]):
            mean = np.exp(x) * m[i]
            inverse = 1.0 / (kappa + mean)
            bend += mean * (y[i] + kappa) * inverse * kappa * inverse
        theta[j] = x
        curvature[j] = bend
