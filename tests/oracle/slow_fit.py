"""The two factors once more, as slow and plain as possible: one person, one number at a time."""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate, optimize, stats


def log_policy(q, chosen, eta, lapse=0.0):
    """log((1 − ε) softmax(η q)[c] + ε / |A|)."""
    top = max(q)
    total = sum(math.exp(eta * (value - top)) for value in q)
    p = math.exp(eta * (q[chosen] - top)) / total
    return math.log((1 - lapse) * p + lapse / len(q))


def action_log_likelihood(rows, eta, lapse=0.0):
    """rows: (values of the legal actions, index of the one chosen)."""
    return sum(log_policy(q, chosen, eta, lapse) for q, chosen in rows)


def action_score(rows, eta):
    """dℓ/dη = Σ (q_c − E_η[q])."""
    total = 0.0
    for q, chosen in rows:
        top = max(q)
        w = [math.exp(eta * (value - top)) for value in q]
        total += q[chosen] - sum(a * b for a, b in zip(w, q, strict=True)) / sum(w)
    return total


def action_maximum(rows):
    """η̂ by bisection of the score on a bracket grown from 1e-6."""
    if action_score(rows, 0.0) <= 0:
        return 0.0
    if all(q[c] >= max(q) - 1e-8 for q, c in rows):
        return math.inf
    high = 1e-6
    while action_score(rows, high) > 0:
        high *= 2
    return optimize.brentq(lambda eta: action_score(rows, eta), 0.0, high, xtol=1e-300, rtol=1e-14)


def action_interval(rows, eta, drop):
    """Where ℓ is ``drop`` below its maximum, to either side; 0 and ∞ where it never falls so far."""
    target = action_log_likelihood(rows, eta) - drop

    def above(x):
        return action_log_likelihood(rows, x) - target

    low = 0.0 if above(0.0) >= 0 else optimize.brentq(above, 0.0, eta, rtol=1e-13)
    high = 2 * eta
    while above(high) > 0:
        high *= 2
    return low, optimize.brentq(above, eta, high, rtol=1e-13)


DENSITIES = {
    "gamma": lambda y, xi, k: stats.gamma.logpdf(y, k, scale=np.exp(xi) / k),
    "negative_binomial": lambda y, xi, k: stats.nbinom.logpmf(y, k, k / (k + np.exp(xi))),
    "poisson": lambda y, xi, k: stats.poisson.logpmf(y, np.exp(xi)),
    "log_normal": lambda y, xi, k: stats.lognorm.logpdf(np.exp(y), k, scale=np.exp(xi)),
    "bernoulli": lambda y, xi, k: stats.bernoulli.logpmf(y, 1 / (1 + np.exp(-xi))),
}
"""Log-densities by scipy.stats, in the observations the channels use (log y for the log-normal)."""


def effort_log_likelihood(kind, y, xi, shape, theta):
    return float(np.sum(DENSITIES[kind](y, xi + theta, shape)))


def effort_maximum(kind, y, xi, shape):
    """θ̂ as the root of a finite-difference score, then refined on the exact likelihood by golden section."""

    def loss(theta):
        return -effort_log_likelihood(kind, y, xi, shape, theta)

    step = 1e-4

    def score(theta):  # fourth order, so that the root is right to about 1e-10
        a, b, c, d = (loss(theta + k * step) for k in (-2, -1, 1, 2))
        return (a - 8 * b + 8 * c - d) / (12 * step)

    return optimize.brentq(score, -12.0, 12.0, xtol=1e-12)


def posterior(log_likelihood, mean, sd, quantiles=(0.025, 0.975)):
    """Mean, sd, quantiles and log integral of exp(ℓ) N(mean, sd²), by adaptive quadrature."""
    half = -0.5 / sd**2
    constant = -math.log(sd * math.sqrt(2 * math.pi))

    def log_density(x):
        return log_likelihood(x) + half * (x - mean) ** 2 + constant

    grid = np.linspace(mean - 9 * sd, mean + 9 * sd, 401)
    heights = [log_density(x) for x in grid]
    top, peak = max(heights), grid[int(np.argmax(heights))]

    def density(x):
        return math.exp(log_density(x) - top)

    def integral(f, low, high):
        return integrate.quad(
            f, low, high, limit=500, epsabs=1e-13, epsrel=1e-12, points=[peak] if low < peak < high else None
        )[0]

    low, high = mean - 9 * sd, mean + 9 * sd
    mass = integral(density, low, high)
    centre = integral(lambda x: x * density(x), low, high) / mass
    spread = math.sqrt(integral(lambda x: (x - centre) ** 2 * density(x), low, high) / mass)
    found = [
        optimize.brentq(
            lambda x, share=share: integral(density, low, x) / mass - share,
            centre - 8 * spread,
            centre + 8 * spread,
        )
        for share in quantiles
    ]
    return centre, spread, found, math.log(mass) + top
