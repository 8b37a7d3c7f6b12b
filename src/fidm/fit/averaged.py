r"""Profiles averaged over several groundings of the same dialogs, so that doubt about the moves shows.

Words seldom fix every move. A grounder that can sample gives *K* groundings of the same dialogs, hence *K*
cohorts of the same people with other steps and other ``n_moves``, and *K* profiles, each of which takes its
grounding for certain. The groundings are multiple imputations of the moves, and are combined by Rubin's rules
[1]_, for each person and each parameter on its natural scale: log η, and θ as it is. With estimates
:math:`m_k` and standard errors :math:`s_k`,

.. math::

    \bar m = \frac{1}{K} \sum_k m_k, \quad W = \frac{1}{K} \sum_k s_k^2, \quad
    B = \frac{1}{K-1} \sum_k (m_k - \bar m)^2, \quad T = W + \left(1 + \frac{1}{K}\right) B .

The rule is the same for both methods. With ``"eb"`` the posterior given the words is a mixture of the
posteriors given each grounding: its mean is estimated by :math:`\bar m`, its variance by W + B. The mean is
then known only up to B / K, as there are only K draws. The variance of the K-component mixture itself,
W + (1 − 1/K) B, leaves this out and takes too small a B, so it is too narrow by 2B / K; only very many draws
(a hundred, say [2]_) make up for that. So T holds for ``"eb"`` too, and the two agree as K grows.

Intervals keep the shape that they have within a draw, where they need not be symmetric. Each end is recovered
as a variance of its own [3]_: if :math:`h_k` is the upper end in draw k, :math:`a_k = (h_k - m_k) / z` takes
the place of :math:`s_k` above the estimate,

.. math::

    h = \bar m + t_\nu \sqrt{A + (1 + 1/K) B}, \quad A = \frac{1}{K} \sum_k a_k^2, \quad
    \nu = (K - 1) \left(1 + \frac{A}{(1 + 1/K) B}\right)^2,

and likewise below. An end that is infinite in one draw (for η also a lower end of 0) is so in the average.
Where all draws agree to the last bit, their numbers are handed on as they are.

With ``"mle"`` somebody may have no finite estimate in some of the draws, and no mean exists. The estimate is
then the median of the draws that have one, infinite ones among them; the interval reaches from the lowest to
the highest end of all draws; there is no standard error and no share of the variance.

What averaging cannot repair: a grounder that is wrong in all draws alike, or whose draws differ less than the
words leave open.

References
----------
.. [1] D. B. Rubin, *Multiple Imputation for Nonresponse in Surveys*, Wiley, 1987, chapter 3.
.. [2] X. Zhou and J. P. Reiter, "A note on Bayesian inference after multiple imputation", *The American
   Statistician* 64, 2010, 159–163.
.. [3] G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures: a general approach",
   *Statistics in Medicine* 27, 2008, 1693–1702.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.fit.fitted import Fit
from fidm.fit.profile import AT_ZERO, LOW_INFORMATION, OK, STATUSES, Profile
from fidm.types import Floats, Progress

LARGEST_DF = 1e8
"""With more degrees of freedom Student's t is the normal distribution."""


def profile_draws(
    fit: Fit,
    cohorts: Iterable[Cohort],
    *,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Profile:
    """Estimate everybody under each of several groundings, and average.

    Parameters
    ----------
    fit : Fit
        What people share.
    cohorts : iterable of Cohort
        The groundings: the same people in the same order. They are taken one at a time, so an iterator needs
        no more memory than one of them, and the profiles.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)`` after each draw. How many will follow is not known, so
        ``of`` is 0.

    Examples
    --------
    >>> import fidm
    >>> from fidm.fit.averaged import profile_draws
    >>> task = fidm.load_task("errands")
    >>> people = fidm.simulate_cohort(task, 30, seed=1)
    >>> other = fidm.simulate_cohort(task, 30, seed=2).with_participants(people.participants)
    >>> profile = profile_draws(fidm.Model(task).fit(people), iter([people, other]))
    >>> profile.n_draws, profile.grounding_share.shape
    (2, (30, 6))
    """
    found: list[Profile] = []
    for cohort in cohorts:
        if found:
            _same_people(found[0].participants, cohort.ids, len(found) + 1)
        found.append(fit.profile(cohort, workers=workers))
        if on_progress:
            on_progress("groundings", len(found), 0)
    return average_profiles(found)


def average_profiles(profiles: Sequence[Profile]) -> Profile:
    """Combine the profiles of the same people under several groundings, by Rubin's rules.

    :mod:`fidm.fit.averaged` has the rule, and why it holds for both methods. The standard error of η itself
    is η times that of log η, as in each profile. ``n``, ``n_steps`` and ``n_inferred`` are means over the
    draws, the first rounded.

    The status is the one that most draws have; of two that are equally frequent, the later one of
    :data:`fidm.fit.profile.STATUSES`. An ``ok`` becomes ``low_information`` if somebody is at an edge or
    without observation in some of the draws, or if the averaged standard error is above the limit of that
    status.

    One profile alone is returned as it is: it says nothing about groundings.

    Parameters
    ----------
    profiles : sequence of Profile
        One per grounding: the same people in the same order, the same parameters, method, level and weight
        of inferred moves.
    """
    _check(profiles)
    first = profiles[0]
    if len(profiles) == 1:
        return first
    raw = np.stack([[p.estimate, p.se, p.low, p.high] for p in profiles], axis=1)  # [4, draws, P, D]
    natural = raw.copy()
    natural[0, :, :, 0] = [profile.log_sensitivity for profile in profiles]
    natural[1, :, :, 0] = [profile.log_sensitivity_se for profile in profiles]
    with np.errstate(divide="ignore"):
        natural[2:, :, :, 0] = np.log(raw[2:, :, :, 0])
    together = np.empty((5, *raw.shape[2:]))
    for k in range(raw.shape[3]):
        together[:, :, k] = _combined(natural[..., k], first.level)
    log_eta, log_se = together[:2, :, 0].copy()
    with np.errstate(over="ignore"):
        together[[0, 2, 3], :, 0] = np.exp(together[[0, 2, 3], :, 0])
    together[1, :, 0] = together[0, :, 0] * log_se
    same = _agree(raw).all(axis=0)
    together[:4, same] = raw[:, 0][:, same]
    prior_sd = np.array([profile.prior_sd for profile in profiles])
    spread = np.where(_agree(prior_sd[None])[0], prior_sd[0], np.sqrt((prior_sd**2).mean(axis=0)))
    errors = np.column_stack([log_se, together[1, :, 1:]])
    given = np.array([[profile.error_given_prior for profile in profiles]])
    settled = np.sqrt((given[0] ** 2).mean(axis=0) + together[4] * errors**2)
    settled = np.where(_agree(given)[0] & same, given[0, 0], settled)
    limit = 0.8 * spread if first.method == "eb" else np.ones(len(spread))
    return Profile(
        participants=first.participants,
        parameters=first.parameters,
        estimate=together[0],
        se=together[1],
        low=together[2],
        high=together[3],
        status=_status(np.stack([profile.status for profile in profiles]), errors, limit),
        n=np.rint(np.mean([profile.n for profile in profiles], axis=0)).astype(np.int64),
        log_sensitivity=log_eta,
        log_sensitivity_se=log_se,
        random=np.mean([profile.random for profile in profiles], axis=0),
        method=first.method,
        level=first.level,
        prior_sd=spread,
        prior_sd_range=np.mean([profile.prior_sd_range for profile in profiles], axis=0),
        error_given_prior=settled,
        n_steps=np.mean([profile.n_steps for profile in profiles], axis=0),
        n_inferred=np.mean([profile.n_inferred for profile in profiles], axis=0),
        inferred=first.inferred,
        n_draws=len(profiles),
        grounding_share=together[4],
    )


def _combined(draws: Floats, level: float) -> Floats:
    """Estimate, se, low, high and the grounding's share, [5, P], from [4, draws, P] on the natural scale."""
    found = np.empty((5, draws.shape[2]))
    finite = np.isfinite(draws[0]).all(axis=0)
    found[:, finite] = _rubin(draws[:, :, finite], level)
    found[:, ~finite] = _at_edge(draws[:, :, ~finite])
    same = _agree(draws).all(axis=0)
    found[:4, same] = draws[:, 0][:, same]
    return found


def _rubin(draws: Floats, level: float) -> Floats:
    """The rule itself, for those with a finite estimate in every draw."""
    estimate, se, low, high = draws
    k, z = len(estimate), float(special.ndtri(0.5 + 0.5 * level))
    mean = estimate.mean(axis=0)
    away = estimate - mean
    away[:, _agree(draws[:1])[0]] = 0.0  # the mean of equal numbers need not be that number
    among = (1 + 1 / k) * (away**2).sum(axis=0) / (k - 1)

    def reach(half: Floats) -> Floats:
        within = ((half / z) ** 2).mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            freedom = (k - 1) * (1 + within / among) ** 2
        normal = ~(freedom < LARGEST_DF)
        t = np.where(normal, z, special.stdtrit(np.where(normal, 1.0, freedom), 0.5 + 0.5 * level))
        return np.asarray(t * np.sqrt(within + among))

    total = (se**2).mean(axis=0) + among
    with np.errstate(invalid="ignore"):
        share = np.where(among > 0, among / total, np.where(np.isnan(total), np.nan, 0.0))
    return np.stack(
        [mean, np.sqrt(total), mean - reach(estimate - low), mean + reach(high - estimate), share]
    )


def _at_edge(draws: Floats) -> Floats:
    """For those without a finite estimate in some draws: the median, and the widest interval."""
    estimate, _, low, high = draws
    middle = np.array([_median(column[~np.isnan(column)]) for column in estimate.T])
    bottom = np.where(np.isnan(low), -np.inf, low).min(axis=0, initial=np.inf)
    top = np.where(np.isnan(high), np.inf, high).max(axis=0, initial=-np.inf)
    unknown = np.full(len(middle), np.nan)
    return np.stack([middle, unknown, bottom, top, unknown])


def _median(values: Floats) -> float:
    """The median of numbers that may be infinite; NaN of none. Between -∞ and ∞ it is unknown, too."""
    if not len(values):
        return np.nan
    ordered = np.sort(values)
    below, above = float(ordered[(len(values) - 1) // 2]), float(ordered[len(values) // 2])
    return below if below == above else 0.5 * below + 0.5 * above


def _agree(draws: NDArray[Any]) -> NDArray[np.bool_]:
    """Where all draws, along the second axis, have the same number, or all have none."""
    first = draws[:, :1]
    return np.asarray(((draws == first) | (np.isnan(draws) & np.isnan(first))).all(axis=1))


def _status(codes: NDArray[np.int8], errors: Floats, limit: Floats) -> NDArray[np.int8]:
    counts = np.stack([(codes == code).sum(axis=0) for code in range(len(STATUSES))])
    most = len(STATUSES) - 1 - counts[::-1].argmax(axis=0)
    doubtful = (codes >= AT_ZERO).any(axis=0) | ~(errors <= limit)
    return np.where((most == OK) & doubtful, LOW_INFORMATION, most).astype(np.int8)


def _check(profiles: Sequence[Profile]) -> None:
    if not profiles:
        raise DataError("There are no groundings to average over.")
    first = profiles[0]
    for number, other in enumerate(profiles[1:], start=2):
        _same_people(first.participants, other.participants, number)
        for name in ("parameters", "method", "level", "inferred"):
            mine, others = getattr(first, name), getattr(other, name)
            if mine != others:
                raise DataError(
                    f"Draw 1 has {name} {mine!r}, draw {number} {others!r}. Profile all draws with one fit."
                )
    if any(profile.n_draws > 1 for profile in profiles):
        raise DataError("A profile is an average already. Average the profiles of all draws at once.")


def _same_people(first: pl.Series, other: pl.Series, number: int) -> None:
    if first.equals(other):
        return
    mine, others = set(first.to_list()), set(other.to_list())
    if mine == others:
        raise DataError(
            f"Draw {number} has the people of draw 1 in another order. Put them in order with Cohort.select."
        )
    lost = sorted(mine ^ others)
    raise DataError(
        f"Draws 1 and {number} are not of the same people: {len(lost):,} are in one of them only, such as "
        f"{', '.join(map(repr, lost[:3]))}. Leave them out of all draws, or ground them again."
    )
