r"""The full Bayesian model, sampled: a check of the fast empirical-Bayes fit, not a replacement for it.

:meth:`fidm.Model.fit` integrates what people share by quadrature and importance sampling, one parameter at a
time or by an approximate joint prior. Here everything unknown is sampled together by the No-U-Turn sampler
(Hoffman and Gelman 2014; numpyro, in double precision), which takes minutes to hours instead of a second and
approximates nothing but by Monte Carlo:

.. math::

    (\log\eta_j, \theta_j) = (m, 0) + \gamma^\top x_j + \operatorname{diag}(s)\, L z_j, \quad
    z_j \sim N(0, 1), \\
    a_i \sim \lambda / n_i + (1 - \lambda)\, \pi_{\eta_j}(\cdot \mid s_i), \quad
    y_{ju} \sim f(\cdot; \alpha + \beta^\top d_{ju} + \theta_j, \kappa).

People's parameters are written by standard normal z (*non-centred*): in their own scale a sampler gets stuck
where people hardly differ. L is the Cholesky factor of their correlations, uniform over correlation matrices
(LKJ), or the identity with ``joint=False``, which is the model of the default fit. The hyperpriors are those
of the fit (:mod:`fidm.fit.plausible`, :mod:`fidm.fit.sensitivity`), but for the lapse rate, whose probability
of being exactly 0 cannot be sampled. Observations are independent given the person's parameters: effort that
carries over, kinds of people and people who choose at random, which a fit looks for, are not part of it.

Data are laid out person by person, filled up to the longest and a little beyond, so that no sum depends on
the order of threads, and what was compiled for one study serves others of about its size.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from fidm.errors import FitError, at_least, count, few, remedy
from fidm.files import whole_file
from fidm.fit.common import Data, threads
from fidm.fit.draws import Draws, by_chain
from fidm.fit.plausible import OFFSET_SCALE, SENSITIVITY_SCALE
from fidm.fit.profile import SENSITIVITY
from fidm.fit.sensitivity import LAPSE_PRIOR, MIDDLE_SD, middle_of_range
from fidm.model.action import Choices
from fidm.model.amounts import Gamma, LogNormal
from fidm.model.channels import Channel
from fidm.model.counts import Bernoulli, NegativeBinomial, Poisson, ShiftedNegativeBinomial
from fidm.model.effort import Levels, Observed, design_names
from fidm.types import Flags, Floats, Integers, Progress, read_only

if TYPE_CHECKING:
    import arviz

BLOCK = 25
"""So many steps of every chain are done at a time, then kept."""

LEAPFROGS = 120
"""About how many gradients a step costs, the rest of its work included, as measured with 40 people."""

LONGEST_S = 3_600.0
"""What would take longer is refused unless it is asked for."""

TARGET, DEEPEST = 0.9, 10
"""The acceptance rate that the step size is tuned to, and how often a path may double."""

HIGHEST_R_HAT, FEWEST_PER_CHAIN = 1.01, 100
"""Above and below these, R-hat and effective draws are warned of (Vehtari et al. 2021)."""

NOWHERE = -1e300
"""The value of an option that is not there."""

Array = Any
"""An array of jax."""

Free = dict[str, Array]
"""Everything that is sampled, each on a scale without bounds."""


# ---------------------------------------------------------------------- densities


def _gamma(y: Array, xi: Array, shape: Array) -> Array:
    import jax.numpy as jnp

    return -shape * (xi + y * jnp.exp(-xi))


def _gamma_fixed(y: Array, shape: Array) -> Array:
    import jax.numpy as jnp
    from jax.scipy.special import gammaln

    return (shape - 1) * jnp.log(y) + shape * jnp.log(shape) - gammaln(shape)


def _log_normal(y: Array, xi: Array, shape: Array) -> Array:
    return -0.5 * ((y - xi) / shape) ** 2


def _log_normal_fixed(y: Array, shape: Array) -> Array:
    import jax.numpy as jnp

    return -y - jnp.log(shape) - 0.5 * math.log(2 * math.pi)


def _negative_binomial(y: Array, xi: Array, shape: Array) -> Array:
    import jax.numpy as jnp

    return y * (xi - jnp.log(shape)) - (y + shape) * jnp.log1p(jnp.exp(xi) / shape)  # for any large shape


def _negative_binomial_fixed(y: Array, shape: Array) -> Array:
    from jax.scipy.special import gammaln

    return gammaln(y + shape) - gammaln(shape) - gammaln(y + 1)


def _poisson(y: Array, xi: Array, shape: Array) -> Array:
    import jax.numpy as jnp

    return y * xi - jnp.exp(xi)


def _poisson_fixed(y: Array, shape: Array) -> Array:
    from jax.scipy.special import gammaln

    return -gammaln(y + 1)


def _bernoulli(y: Array, xi: Array, shape: Array) -> Array:
    import jax.numpy as jnp

    return y * xi - jnp.logaddexp(0.0, xi)


def _bernoulli_fixed(y: Array, shape: Array) -> Array:
    return 0.0 * y


DENSITIES: Mapping[type[Channel], tuple[Callable[..., Array], Callable[..., Array]]] = {
    Gamma: (_gamma, _gamma_fixed),
    LogNormal: (_log_normal, _log_normal_fixed),
    NegativeBinomial: (_negative_binomial, _negative_binomial_fixed),
    ShiftedNegativeBinomial: (_negative_binomial, _negative_binomial_fixed),
    Poisson: (_poisson, _poisson_fixed),
    Bernoulli: (_bernoulli, _bernoulli_fixed),
}
"""The log-density of each class of channels: what depends on ξ, and the rest, which is summed by value."""


# ---------------------------------------------------------------------- data


class Chosen(NamedTuple):
    """Everybody's choices, each different one once: values below the best option of its row.

    ``below`` [P, n, A] are all options, ``own`` [P, n] the chosen one, ``weight`` how often it was chosen,
    and ``log_options`` the logarithm of how many there were.
    """

    below: Array
    own: Array
    weight: Array
    log_options: Array

    @classmethod
    def of(cls, choices: Choices) -> Chosen:
        """Lay out choices; the same one of a person is counted."""
        person_offsets, entry, weight, begin, below, own = choices.entries()
        size = np.diff(begin)
        table = np.full((len(size) + 1, int(size.max(initial=1))), NOWHERE)  # the last one fills up
        table[np.repeat(np.arange(len(size)), size), np.arange(len(below)) - np.repeat(begin[:-1], size)] = (
            below
        )
        table[-1, 0] = 0.0
        owner = np.repeat(np.arange(len(choices)), np.diff(person_offsets))
        different, place = np.unique(owner * len(size) + entry, return_inverse=True)
        who, what = np.divmod(different, max(len(size), 1))
        offsets = np.searchsorted(who, np.arange(len(choices) + 1))
        which = _side_by_side(what, offsets, len(size)).astype(np.int64)
        times = np.bincount(place, weight, minlength=len(different))
        return cls(
            table[which],
            np.append(own, 0.0)[which],
            _side_by_side(times, offsets, 0.0),
            np.log(np.append(size, 1))[which],
        )


class SeenEffort(NamedTuple):
    """Everybody's observations in a channel: ``y`` [P, m], their design ``x`` [p, P, m], ``known`` [P, m].

    The design is standardised by ``middle`` and ``scale`` [p]. ``values`` are those that occur, ``times`` how
    often.
    """

    y: Array
    x: Array
    known: Array
    values: Array
    times: Array
    middle: Array
    scale: Array

    @classmethod
    def of(cls, seen: Observed) -> SeenEffort:
        """Lay out observations."""
        middle, scale = seen.x.mean(axis=1), seen.x.std(axis=1)
        middle[0], scale[0] = 0.0, 1.0
        design = (seen.x - middle[:, None]) / scale[:, None]
        values, times = np.unique(seen.y, return_counts=True)
        every = np.array([0, len(values)])
        return cls(
            _side_by_side(seen.y, seen.offsets, 1.0),
            np.stack([_side_by_side(column, seen.offsets, 0.0) for column in design]),
            _side_by_side(np.ones(len(seen.y)), seen.offsets, 0.0),
            _side_by_side(values, every, 1.0, 64)[0],
            _side_by_side(times, every, 0.0, 64)[0],
            middle,
            scale,
        )


class Laid(NamedTuple):
    """A study as the sampler sees it.

    ``observed`` [P, K] is 1 where anything is known of a person's parameter, ``known`` are the covariates of
    each parameter, [P, C], and ``middle`` is where the mean of log η is expected.
    """

    choices: Chosen
    effort: tuple[SeenEffort, ...]
    observed: Array
    known: tuple[Array, ...]
    middle: Array

    @classmethod
    def of(cls, data: Data, known: Sequence[Floats]) -> Laid:
        """Lay out a study."""
        return cls(
            Chosen.of(data.choices),
            tuple(SeenEffort.of(seen) for seen in data.effort),
            (_counts(data) > 0).astype(np.float64),
            tuple(np.asarray(one, np.float64) for one in known),
            np.asarray(middle_of_range(data.choices)),
        )


def _counts(data: Data) -> Integers:
    """How many choices and observations tell anything of each parameter, [P, K]."""
    return np.stack([np.diff(data.choices.person_offsets), *(one.counts for one in data.effort)], axis=1)


def _side_by_side(values: Any, offsets: Integers, empty: float, least: int = 8) -> Floats:
    """Cut values into people, [P, n], filled up beyond the longest, by an eighth at most if it is long."""
    counts = np.diff(offsets)
    longest = int(counts.max(initial=1))
    step = max(least, 1 << max(longest.bit_length() - 4, 0))
    found = np.full((len(counts), -(-longest // step) * step), empty)
    owner = np.repeat(np.arange(len(counts)), counts)
    found[owner, np.arange(len(values)) - offsets[owner]] = values
    return found


# ---------------------------------------------------------------------- model


@dataclass(frozen=True, slots=True)
class Plan:
    """What is assumed: parameters and channels by name and kind, and what is free."""

    parameters: tuple[str, ...]  # log_action_sensitivity and the names of the channels
    kinds: tuple[type[Channel], ...]  # the class of each channel
    designs: tuple[tuple[str, ...], ...]  # the names of each channel's coefficients
    slopes: tuple[tuple[str, ...], ...]  # the names of each parameter's covariates
    joint: bool  # whether parameters may be correlated
    lapse: float | None  # the lapse rate, None if it is sampled

    @classmethod
    def of(
        cls,
        channels: Sequence[Channel],
        levels: Levels,
        slopes: Sequence[tuple[str, ...]],
        *,
        joint: bool,
        lapse: float | None,
    ) -> Plan:
        """Plan the sampling of these channels, or say which of them cannot be sampled."""
        odd = [f"{c.name} ({type(c).__name__})" for c in channels if type(c) not in DENSITIES]
        if odd:
            known = ", ".join(kind.__name__ for kind in DENSITIES)
            raise FitError(
                f"{', '.join(odd)} cannot be sampled: there is no log-density for jax. Those that can: "
                f"{known}. Leave out others: "
                + remedy("channels of fidm.Model.", "[channels] in study.toml.")
            )
        return cls(
            (f"log_{SENSITIVITY}", *(channel.name for channel in channels)),
            tuple(type(channel) for channel in channels),
            tuple(design_names(channel, levels) for channel in channels),
            tuple(slopes),
            joint and len(channels) > 0,
            lapse,
        )

    def pairs(self) -> list[tuple[int, int]]:
        """Which parameters go together, in the order of their correlations."""
        return list(itertools.combinations(range(len(self.parameters)), 2)) if self.joint else []

    def names(self) -> list[tuple[str, str]]:
        """What people share: of what, and which quantity, as in a fit's table of the population."""
        found = [(self.parameters[0], "mean"), (self.parameters[0], "sd")]
        for name, design, kind in zip(self.parameters[1:], self.designs, self.kinds, strict=True):
            found += [(name, one) for one in (*design, kind.shape_name, "sd") if one]
        found += [(self.parameters[a], f"correlation with {self.parameters[b]}") for a, b in self.pairs()]
        for name, slopes in zip(self.parameters, self.slopes, strict=True):
            found += [(name, f"slope of {one}") for one in slopes]
        return [*found, ("lapse", "rate")] if self.lapse is None else found

    def start(self, data: Data, channels: Sequence[Channel], laid: Laid, seed: int, chain: int) -> Free:
        """Return where a chain begins: near what observations are like, and apart from other chains."""
        rng = np.random.default_rng([seed, chain])

        def about(centre: Any, reach: float = 0.5) -> Floats:
            return np.asarray(centre + rng.uniform(-reach, reach, np.shape(centre)), np.float64)

        width = len(self.parameters)
        found = {
            "average": about(float(laid.middle), 1.0),
            "log_spread": about(np.full(width, math.log(0.4))),
            "own": about(np.zeros((len(data), width)), 1.0),
        }
        for channel, seen, names in zip(channels, data.effort, self.designs, strict=True):
            base = np.zeros(len(names))
            base[0] = channel.predictor(seen.y)
            found[f"coefficients of {channel.name}"] = about(base)
            if channel.shape_name:
                found[f"log_shape of {channel.name}"] = about(0.5)
        if self.joint:
            found["correlations"] = about(np.zeros(len(self.pairs())))
        for name, slopes, known in zip(self.parameters, self.slopes, laid.known, strict=True):
            if slopes:
                found[f"slopes of {name}"] = about(np.zeros(len(slopes)), 0.2) / known.std(axis=0)
        if self.lapse is None:
            found["logit_lapse"] = about(-3.0)
        return found


class Latent(NamedTuple):
    """What the free numbers mean: people [P, K], mean of log η, log of people's sds [K], coefficients."""

    people: Array
    mean: Array
    log_sd: Array
    coefficients: tuple[Array, ...]


def latent(plan: Plan, free: Free, laid: Laid) -> Latent:
    """Return what the free numbers mean.

    Data tell the average person and how far people lie apart better than the mean and the sd of those they
    are drawn from. So the former two are free, and the latter follow by what z happens to be; this moves
    numbers by what depends on others alone, and changes no volume.
    """
    import jax.numpy as jnp

    away, n = free["own"], jnp.sum(laid.observed, axis=0)
    if plan.joint:
        away = away @ _correlated(free["correlations"])[0].T
    log_sd = free["log_spread"] - 0.5 * jnp.log(jnp.sum(laid.observed * away**2, axis=0) / n)
    away = away * jnp.exp(log_sd)
    shift = jnp.sum(laid.observed * away, axis=0) / n
    mean = free["average"] - shift[0]
    columns = [mean + away[:, 0], *away.T[1:]]
    for k, (name, slopes) in enumerate(zip(plan.parameters, plan.slopes, strict=True)):
        if slopes:
            columns[k] += laid.known[k] @ free[f"slopes of {name}"]
    coefficients = [
        jnp.asarray(free[f"coefficients of {name}"]).at[0].add(-shift[k])
        for k, name in enumerate(plan.parameters[1:], 1)
    ]
    return Latent(jnp.stack(columns, axis=1), mean, log_sd, tuple(coefficients))


def log_posterior(plan: Plan, free: Free, laid: Laid) -> Array:
    """Return the logarithm of the posterior density of all that is free, up to a constant."""
    import jax
    import jax.numpy as jnp

    at = latent(plan, free, laid)
    total = beforehand(plan, free, at, laid.middle) - 0.5 * jnp.sum(free["own"] ** 2)
    lapse = plan.lapse if plan.lapse is not None else jax.nn.sigmoid(free["logit_lapse"])
    for k, name in enumerate(plan.parameters):
        if plan.slopes[k]:
            scale = OFFSET_SCALE if k else SENSITIVITY_SCALE
            total += _slopes_beforehand(free[f"slopes of {name}"], laid.known[k], laid.observed[:, k], scale)
    total += jnp.sum(of_choices(laid.choices, at.people[:, 0], lapse))
    for k, (name, kind, seen) in enumerate(zip(plan.parameters[1:], plan.kinds, laid.effort, strict=True)):
        shape = jnp.exp(free.get(f"log_shape of {name}", 0.0))
        total += jnp.sum(of_effort(kind, seen, at.people[:, k + 1], at.coefficients[k], shape))
        total += jnp.sum(seen.times * DENSITIES[kind][1](seen.values, shape))
    return total


def of_choices(chosen: Chosen, log_eta: Array, lapse: Array | float) -> Array:
    """Return the log-likelihood of everybody's choices, [P]."""
    import jax.numpy as jnp

    eta = jnp.exp(log_eta)[:, None]
    log_pi = eta * chosen.own - jnp.log(jnp.sum(jnp.exp(eta[:, :, None] * chosen.below), axis=2))
    if not (isinstance(lapse, float) and lapse == 0):
        log_pi = jnp.logaddexp(jnp.log1p(-lapse) + log_pi, jnp.log(lapse) - chosen.log_options)
    return jnp.sum(chosen.weight * log_pi, axis=1)


def of_effort(
    kind: type[Channel], seen: SeenEffort, theta: Array, coefficients: Array, shape: Array
) -> Array:
    """Return what depends on ξ of the log-likelihood of everybody's observations, [P]."""
    import jax.numpy as jnp

    xi = theta[:, None] + jnp.tensordot(coefficients, seen.x, axes=1)
    return jnp.sum(seen.known * DENSITIES[kind][0](seen.y, xi, shape), axis=1)


def beforehand(plan: Plan, free: Free, at: Latent, middle: Array) -> Array:
    """Return the log-density of the hyperpriors, those of a fit, on the scales that are sampled."""
    import jax
    import jax.numpy as jnp

    scale = np.array([SENSITIVITY_SCALE, *[OFFSET_SCALE] * len(plan.kinds)])
    total = jnp.sum(at.log_sd - 2.5 * jnp.log1p(jnp.exp(2 * at.log_sd) / scale**2 / 4))
    total += -0.5 * ((at.mean - middle) / MIDDLE_SD) ** 2
    for name, kind in zip(plan.parameters[1:], plan.kinds, strict=True):
        if kind.shape_name and kind.lowest is not None:
            log_shape = free[f"log_shape of {name}"]
            total += -0.5 * (log_shape + jnp.exp(-log_shape))
    if plan.joint:
        total += _correlated(free["correlations"])[1]
    if plan.lapse is None:
        logit = free["logit_lapse"]
        total += (LAPSE_PRIOR + 1) * jax.nn.log_sigmoid(-logit) + jax.nn.log_sigmoid(logit)
    return total


def _slopes_beforehand(slopes: Array, known: Array, observed: Array, scale: float) -> Array:
    """The log-density of slopes [C] of covariates [P, C], as :func:`fidm.fit.plausible.log_slopes_prior`."""
    import jax.numpy as jnp

    share = (observed / jnp.sum(observed))[:, None]
    away = (known - jnp.sum(share * known, axis=0)) @ slopes
    square = jnp.sum(share[:, 0] * away**2) / scale**2
    return -0.5 * (4 + len(slopes)) * jnp.log1p(square / 4)


def _correlated(free: Array) -> tuple[Array, Array]:
    """The Cholesky factor of a correlation matrix, and the log-density of a uniform one there."""
    from numpyro.distributions import LKJCholesky
    from numpyro.distributions.transforms import CorrCholeskyTransform

    to = CorrCholeskyTransform()
    root = to(free)
    uniform = LKJCholesky(root.shape[-1], 1.0)
    return root, uniform.log_prob(root) + to.log_abs_det_jacobian(free, root)


def shared(plan: Plan, free: Free, at: Latent, laid: Laid) -> Array:
    """Return what people share, in the order of :meth:`Plan.names`, [S]."""
    import jax
    import jax.numpy as jnp

    sd = jnp.exp(at.log_sd)
    found = [at.mean[None], sd[:1]]
    for k, (name, kind, seen) in enumerate(zip(plan.parameters[1:], plan.kinds, laid.effort, strict=True)):
        slopes = at.coefficients[k] / seen.scale
        found.append(slopes.at[0].add(-jnp.sum(slopes[1:] * seen.middle[1:])))
        found += [jnp.exp(free[f"log_shape of {name}"])[None]] if kind.shape_name else []
        found.append(sd[k + 1 : k + 2])
    if plan.joint:
        root, _ = _correlated(free["correlations"])
        found.append(jnp.stack([(root @ root.T)[a, b] for a, b in plan.pairs()]))
    found += [
        free[f"slopes of {name}"] for name, some in zip(plan.parameters, plan.slopes, strict=True) if some
    ]
    if plan.lapse is None:
        found.append(jax.nn.sigmoid(free["logit_lapse"])[None])
    return jnp.concatenate(found)


# ---------------------------------------------------------------------- sampling


class Told(NamedTuple):
    """What is kept of every draw: where the chain was, whether its path diverged, its length and energy."""

    free: Free
    divergent: Array
    leapfrogs: Array
    energy: Array


@contextmanager
def double_precision() -> Iterator[None]:
    """Let jax compute in 64 bits inside, in this thread, whatever is set outside."""
    try:
        import jax
        import numpyro.infer.hmc  # noqa: F401
    except ModuleNotFoundError as error:
        raise FitError(f"Sampling needs {error.name}: pip install 'fidm[bayes]'.") from None
    with jax.enable_x64(True):
        yield


class Kernel(NamedTuple):
    """Compiled functions: the beginning of a chain, so many steps of it, and a block of gradients to time."""

    begin: Callable[[Free, Array, Laid], Any]
    advance: Callable[[Any, int, Laid], tuple[Any, Told]]
    climb: Callable[[Free, Laid], Free]


@functools.lru_cache(maxsize=8)
def kernel(plan: Plan, warmup: int, vectorised: bool) -> Kernel:
    """Return the sampler of a plan, for one chain or for several side by side."""
    import jax
    import jax.numpy as jnp
    from numpyro.infer.hmc import hmc

    def potential(laid: Laid) -> Callable[[Free], Array]:
        return lambda free: -log_posterior(plan, free, laid)

    start, step = hmc(potential_fn_gen=potential, algo="NUTS")

    def begin(free: Free, key: Array, laid: Laid) -> Any:
        # What people share is correlated in the posterior; people, given that, hardly.
        dense = [tuple(sorted(set(free) - {"own"}))]
        return start(
            free, warmup, dense_mass=dense, target_accept_prob=TARGET, max_tree_depth=DEEPEST,
            model_args=(laid,), rng_key=key,
        )  # fmt: skip

    def advance(state: Any, steps: int, laid: Laid) -> tuple[Any, Told]:
        def told(state: Any) -> Told:
            return Told(state.z, state.diverging, state.num_steps, state.energy)

        def one(i: Array, both: tuple[Any, Told]) -> tuple[Any, Told]:
            state = step(both[0], (laid,))
            return state, jax.tree.map(lambda all_, now: all_.at[i].set(now), both[1], told(state))

        empty = jax.tree.map(lambda now: jnp.zeros((BLOCK, *now.shape), now.dtype), told(state))
        found: tuple[Any, Told] = jax.lax.fori_loop(0, steps, one, (state, empty))
        return found

    def climb(free: Free, laid: Laid) -> Free:
        def one(_: Array, at: Free) -> Free:
            slopes = jax.grad(lambda at: log_posterior(plan, at, laid))(at)
            moved: Free = jax.tree.map(lambda place, slope: place + 1e-12 * slope, at, slopes)
            return moved

        found: Free = jax.lax.fori_loop(0, BLOCK, one, free)
        return found

    if vectorised:
        return Kernel(
            jax.jit(jax.vmap(begin, (0, 0, None))),
            jax.jit(jax.vmap(advance, (0, None, None))),
            jax.jit(jax.vmap(climb, (0, None))),
        )
    return Kernel(jax.jit(begin), jax.jit(advance), jax.jit(climb))


class Chains:
    """Several chains of one posterior, a block of steps at a time: side by side on a GPU, else in threads."""

    def __init__(
        self,
        plan: Plan,
        laid: Laid,
        starts: Sequence[Free],
        *,
        seed: int,
        warmup: int,
        workers: int,
        vectorised: bool,
    ) -> None:
        import jax

        self.vectorised, self.ready = vectorised, False
        self.kernel = kernel(plan, warmup, self.vectorised)
        self.laid: Laid = jax.tree.map(jax.numpy.asarray, laid)
        self.workers = 1 if self.vectorised else min(workers, len(starts))
        keys = [jax.random.fold_in(jax.random.PRNGKey(seed), chain) for chain in range(len(starts))]
        self.first = list(zip(starts, keys, strict=True))
        if self.vectorised:
            self.first = [jax.tree.map(lambda *one: jax.numpy.stack(one), *self.first)]
        # What the steps need to know of the warm-up is known to numpyro once a beginning was traced.
        self.like = jax.eval_shape(self.kernel.begin, *self.first[0], self.laid)

    def __call__(self, function: Callable[..., Any], given: Sequence[Sequence[Any]]) -> list[Any]:
        """Apply a compiled function to what is given for each chain, or for all side by side."""
        import jax

        def one(arguments: Sequence[Any]) -> Any:
            with double_precision():
                return jax.block_until_ready(function(*arguments, self.laid))

        if self.workers == 1:
            return [one(arguments) for arguments in given]
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(one, given))

    def begin(self) -> list[Any]:
        """Return the states in which the chains begin."""
        return [self.kernel.begin(*one, self.laid) for one in self.first]

    def advance(self, states: Sequence[Any], steps: int) -> tuple[list[Any], Told]:
        """Go on by so many steps; what is told of them is [chain, draw, …]."""
        import jax

        if not self.ready:
            self.kernel.advance(states[0], 0, self.laid)  # compiled once, and not by every thread
            self.ready = True
        found = self(self.kernel.advance, [(state, steps) for state in states])
        told = [jax.tree.map(np.asarray, one) for _, one in found]
        if not self.vectorised:
            told = [jax.tree.map(lambda *one: np.stack(one), *told)]
        return [state for state, _ in found], jax.tree.map(lambda one: one[:, :steps], told[0])

    def seconds(self, steps: int) -> float:
        """Return about how long so many steps of every chain take, from a few gradients."""
        import jax

        at = [(free,) for free, _ in self.first]
        jax.block_until_ready(self.kernel.climb(*at[0], self.laid))
        began = time.perf_counter()
        self(self.kernel.climb, at)
        return (time.perf_counter() - began) / BLOCK * LEAPFROGS * steps


class Kept:
    """A run that is kept in a file after every block, so that it can go on where it stopped."""

    def __init__(self, path: str | Path | None, of: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.of = json.dumps({"format": "fidm chains", **of}, sort_keys=True)

    def load(self, like: Any, chains: int, vectorised: bool) -> tuple[list[Any], Told | None, int] | None:
        """Return states, what was told and how many steps were done; None where nothing was kept."""
        import jax

        if self.path is None or not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                arrays = {name: saved[name] for name in saved.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            raise FitError("is not a file of kept chains, or is damaged.", source=str(self.path)) from None
        if str(arrays.pop("of", "")) != self.of:
            raise FitError(
                "holds chains of other data, settings or another seed. Remove it, or name another file.",
                source=str(self.path),
            )
        done = int(arrays.pop("done"))
        leaves, tree = jax.tree.flatten(like)
        stacked = [jax.numpy.asarray(arrays.pop(f"state {i}")) for i in range(len(leaves))]
        own: list[list[Any]] = (
            [stacked] if vectorised else [[one[c] for one in stacked] for c in range(chains)]
        )
        told = None
        if arrays:
            free = {name.removeprefix("free "): arrays[name] for name in arrays if name.startswith("free ")}
            told = Told(free, arrays["divergent"], arrays["leapfrogs"], arrays["energy"])
        return [jax.tree.unflatten(tree, one) for one in own], told, done

    def save(self, states: Sequence[Any], told: Told | None, done: int, vectorised: bool) -> None:
        """Write the file, whole or not at all."""
        import jax

        if self.path is None:
            return
        both = states[0] if vectorised else jax.tree.map(lambda *one: np.stack(one), *states)
        arrays = {f"state {i}": np.asarray(one) for i, one in enumerate(jax.tree.leaves(both))}
        if told is not None:
            arrays |= {f"free {name}": one for name, one in told.free.items()}
            arrays |= {"divergent": told.divergent, "leapfrogs": told.leapfrogs, "energy": told.energy}
        with whole_file(self.path) as part, part.open("wb") as file:
            np.savez(file, of=np.array(self.of), done=np.array(done), **arrays)  # type: ignore[arg-type]


def advance(
    chains: Chains,
    n: int,
    *,
    warmup: int,
    draws: int,
    kept: Kept,
    however_long: bool,
    on_progress: Progress | None,
) -> Told:
    """Run n chains and return what was told of their draws, [chain, draw, …]."""
    import jax

    say = on_progress or (lambda doing, done, of: None)
    total = warmup + draws
    found = kept.load(chains.like, n, chains.vectorised)
    left = total - found[2] if found else total
    if left > 0 and not however_long:
        _refuse_hours(chains.seconds(left))
    states, told, done = found or (chains.begin(), None, 0)
    while done < total:
        say("warming up" if done < warmup else "sampling", done, total)
        steps = min(BLOCK, (warmup if done < warmup else total) - done)
        states, new = chains.advance(states, steps)
        if done >= warmup:
            told = new if told is None else jax.tree.map(lambda *one: np.concatenate(one, axis=1), told, new)
        done += steps
        kept.save(states, told, done, chains.vectorised)
    say("done", total, total)
    assert told is not None  # noqa: S101
    return Told(*jax.tree.map(lambda one: one[:, :draws], tuple(told)))


def _refuse_hours(seconds: float) -> None:
    """Raise if sampling would take too long, and say how long."""
    if seconds > LONGEST_S:
        raise FitError(
            f"Sampling would take about {_duration(seconds)} here. Take fewer people, draws or chains, or "
            "use a GPU."
            + remedy(" Or ask for it: however_long=True; keep=FILE lets it go on where it stopped.", "")
        )


def _duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0)):
        if seconds >= 1.5 * size:
            return count(round(seconds / size), unit)
    return count(max(1, round(seconds)), "second")


# ---------------------------------------------------------------------- the result


@dataclass(frozen=True, slots=True, eq=False)
class Diagnostics:
    """Whether chains can be trusted.

    Parameters
    ----------
    table : DataFrame
        One row per quantity: ``parameter``, ``quantity`` (of what people share), ``participant``, ``r_hat``,
        and effective numbers of draws in the middle and in the tails, ``ess_bulk`` and ``ess_tail``.
    divergences : int
        How many draws ended in a path that diverged: there the sampler may have missed a narrow place.
    too_long : int
        How many paths were cut off because they doubled :data:`DEEPEST` times.
    leapfrogs : float
        How many gradients a draw took on average.
    chains, draws : int
        How many chains there are, and how many draws each has.
    """

    table: pl.DataFrame
    divergences: int
    too_long: int
    leapfrogs: float
    chains: int
    draws: int

    @property
    def r_hat(self) -> float:
        """The highest R-hat of all; NaN of one chain."""
        return _number(self.table["r_hat"].fill_nan(None).max())

    @property
    def ess(self) -> float:
        """The smallest effective number of draws of all, in the middle or in the tails."""
        return min(_number(self.table[name].fill_nan(None).min()) for name in ("ess_bulk", "ess_tail"))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the chains, and what to do; empty if nothing is."""
        found, few, of = [], FEWEST_PER_CHAIN * self.chains, f"{self.chains * self.draws:,}"
        if self.chains < 2:
            found.append("One chain cannot show whether chains agree: take four.")
        high = int((self.table["r_hat"] > HIGHEST_R_HAT).sum())
        if self.r_hat > HIGHEST_R_HAT:
            found.append(
                f"R-hat of {high:,} of {count(self.table.height, 'quantity', 'quantities')} is above "
                f"{HIGHEST_R_HAT} (up to {self.r_hat:.2f}): chains disagree. Take a longer warm-up and more "
                "draws."
            )
        if self.ess < few:
            found.append(
                f"The smallest effective number of draws is {self.ess:.0f}; below {few} intervals are "
                "imprecise. Take more draws."
            )
        if self.divergences:
            found.append(
                f"{count(self.divergences, 'path')} of {of} diverged, so a part of the posterior may be "
                "missing. Compare another seed and a longer warm-up."
            )
        if self.too_long:
            found.append(
                f"{count(self.too_long, 'path')} of {of} reached the greatest length allowed: draws are "
                "valid, but few are effective. Take more draws."
            )
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Everybody's parameters and what people share, sampled together.

    Parameters
    ----------
    draws : Draws
        Everybody's parameters, chain after chain. NaN where nothing was observed of a person.
    n : int array [P, K]
        How many choices and observations each estimate rests on.
    names : tuple of (str, str) [S]
        What people share: of what, and which quantity.
    shared : float array [S, n]
        Its draws.
    divergent, leapfrogs, energy : array [chains, draws]
        Of each draw: whether its path diverged, how many gradients it took, and its energy.
    level : float
        The level of intervals.
    notes : tuple of str
        What is to be said of the data.
    """

    draws: Draws
    n: Integers
    names: tuple[tuple[str, str], ...]
    shared: Floats
    divergent: Flags
    leapfrogs: Integers
    energy: Floats
    level: float
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of a person's parameters, as a profile has them."""
        return (SENSITIVITY, *self.draws.parameters[1:])

    @property
    def table(self) -> pl.DataFrame:
        """One row per person and parameter: estimate, se, low, high and n, as in a profile's table.

        The estimate of η is the median of its draws, that of an offset their mean.
        """
        values = self.draws.values
        low, middle, high = self._quantiles(values)
        estimate, se = values.mean(axis=2), values.std(axis=2)
        for ends in (low, middle, high):
            ends[:, 0] = np.exp(ends[:, 0])
        estimate[:, 0] = middle[:, 0]
        se[:, 0] *= middle[:, 0]
        width = len(self.parameters)
        columns = {"estimate": estimate, "se": se, "low": low, "high": high}
        return pl.DataFrame(
            {
                "participant": self.draws.participants.gather(np.repeat(np.arange(len(self.draws)), width)),
                "parameter": pl.Series(
                    list(self.parameters) * len(self.draws), dtype=pl.Enum(self.parameters)
                ),
                **{name: pl.Series(one.reshape(-1), nan_to_null=True) for name, one in columns.items()},
                "n": self.n.reshape(-1),
            }
        )

    @property
    def population(self) -> pl.DataFrame:
        """What people share, one row per quantity: its mean, sd (as ``se``) and interval."""
        low, _, high = self._quantiles(self.shared)
        return pl.DataFrame(
            {
                "parameter": [name for name, _ in self.names],
                "quantity": [quantity for _, quantity in self.names],
                "estimate": self.shared.mean(axis=1),
                "se": self.shared.std(axis=1),
                "low": low,
                "high": high,
            }
        )

    @functools.cached_property
    def diagnostics(self) -> Diagnostics:
        """Whether the chains can be trusted; needs ArviZ (``pip install 'fidm[bayes]'``)."""
        arviz = _arviz()
        rows: list[tuple[str, str | None, str | None, Floats]] = [
            (name, None, who, by_chain(self.draws.values[j, k], self.draws.chains))
            for k, name in enumerate(self.draws.parameters)
            for j, who in enumerate(self.draws.participants)
            if self.n[j, k]
        ]
        rows += [
            (name, quantity, None, by_chain(values, self.draws.chains))
            for (name, quantity), values in zip(self.names, self.shared, strict=True)
        ]
        table = [
            (
                *names,
                float(arviz.rhat(values)) if self.draws.chains > 1 else math.nan,
                float(arviz.ess(values, method="bulk")),
                float(arviz.ess(values, method="tail")),
            )
            for *names, values in rows
        ]
        columns = ["parameter", "quantity", "participant", "r_hat", "ess_bulk", "ess_tail"]
        return Diagnostics(
            pl.DataFrame(table, schema=columns, orient="row", infer_schema_length=None),
            int(self.divergent.sum()),
            int((self.leapfrogs >= 2**DEEPEST - 1).sum()),
            float(self.leapfrogs.mean()),
            *self.divergent.shape,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said against the chains and the data; empty if nothing is."""
        return (*self.diagnostics.warnings, *self.notes)

    def to_inference_data(self) -> arviz.InferenceData:
        """Return all draws for ArviZ: people's parameters, what people share, and ``sample_stats``.

        Dimensions are ``chain``, ``draw`` and ``participant``. What people share is named as in
        :attr:`population`, with a colon: ``"duration: sd"``.
        """
        found: Any = self.draws.to_inference_data()
        for (name, quantity), values in zip(self.names, self.shared, strict=True):
            found.posterior[f"{name}: {quantity}"] = (
                ("chain", "draw"),
                by_chain(values, self.draws.chains),
            )
        stats = _arviz().from_dict(
            sample_stats={"diverging": self.divergent, "n_steps": self.leapfrogs, "energy": self.energy}
        )
        found.extend(stats)
        whole: arviz.InferenceData = found
        return whole

    def _quantiles(self, values: Floats) -> list[Floats]:
        """The low end, the median and the high end along the last axis."""
        ends = 0.5 - 0.5 * self.level, 0.5, 0.5 + 0.5 * self.level
        return list(np.quantile(values, ends, axis=-1))

    def __repr__(self) -> str:
        who, (chains, draws) = count(len(self.draws), "participant"), self.divergent.shape
        names = ", ".join(self.draws.parameters)
        return f"Posterior({who} × {names}; {count(chains, 'chain')} of {draws:,} draws)"


def _arviz() -> Any:
    try:
        import arviz
    except ModuleNotFoundError as error:
        raise FitError(f"This needs {error.name}: pip install 'fidm[bayes]'.") from None
    return arviz


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def sample_posterior(
    data: Data,
    channels: Sequence[Channel],
    levels: Levels,
    participants: pl.Series,
    *,
    lapse: float | None,
    joint: bool,
    draws: int,
    warmup: int,
    chains: int,
    seed: int,
    level: float,
    keep: str | Path | None = None,
    however_long: bool = False,
    workers: int | None = None,
    on_progress: Progress | None = None,
    known: Mapping[str, tuple[tuple[str, ...], Floats]] | None = None,
    notes: Sequence[str] = (),
) -> Posterior:
    """Sample a study that is laid out; options are those of :meth:`fidm.Model.sample`.

    ``lapse=None`` samples the lapse rate. ``known`` are by parameter the names of covariates, and these less
    their means, [P, C]; the hyperprior of their slopes is that of a fit. ``notes`` is what is to be said of
    the data.
    """
    for name, value, least in (("draws", draws, 4), ("warmup", warmup, 1), ("chains", chains, 1)):
        at_least(name, value, least, FitError)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise FitError(f"seed is {seed!r}; it must be a whole number, 0 or more.")
    if not len(data.choices.row):
        raise FitError("In no counted step do two legal actions differ in value: there is nothing to sample.")
    parameters = (f"log_{SENSITIVITY}", *(channel.name for channel in channels))
    unknown = sorted(set(known or {}) - set(parameters))
    if unknown:
        raise FitError(
            f"Covariates are given of {few(unknown)}. The parameters are: {', '.join(parameters)}."
        )
    given = [(known or {}).get(name, ((), np.zeros((len(data), 0)))) for name in parameters]
    plan = Plan.of(channels, levels, [names for names, _ in given], joint=joint, lapse=lapse)
    with double_precision():
        import jax

        laid = Laid.of(data, [values for _, values in given])
        starts = [plan.start(data, channels, laid, int(seed), chain) for chain in range(chains)]
        lines = Chains(
            plan, laid, starts, seed=int(seed), warmup=warmup, workers=threads(workers),
            vectorised=jax.default_backend() != "cpu",
        )  # fmt: skip
        of = {"plan": repr(plan), "data": _hash(laid), "on": jax.default_backend()}
        kept = Kept(keep, {**of, "seed": int(seed), "chains": chains, "warmup": warmup})
        told = advance(
            lines, chains, warmup=warmup, draws=draws, kept=kept, however_long=however_long,
            on_progress=on_progress,
        )  # fmt: skip

        def both(free: Free) -> tuple[Array, Array]:
            at = latent(plan, free, lines.laid)
            return at.people, shared(plan, free, at, lines.laid)

        flat = jax.tree.map(lambda one: one.reshape(chains * draws, *one.shape[2:]), told.free)
        own, population = (np.asarray(one) for one in jax.jit(jax.vmap(both))(flat))
    n = _counts(data)
    values = np.where(n[:, :, None] > 0, np.moveaxis(own, 0, 2), np.nan)
    n[:, 0] = np.where(n[:, 0] > 0, data.choices.n_choices, 0)
    return Posterior(
        Draws(participants, parameters, values, chains),
        read_only(n),
        tuple(plan.names()),
        read_only(population.T),
        read_only(told.divergent),
        read_only(told.leapfrogs),
        read_only(told.energy),
        level,
        tuple(notes),
    )


def _hash(laid: Laid) -> str:
    import jax

    found = hashlib.sha256()
    for leaf in jax.tree.leaves(laid):
        found.update(repr(np.shape(leaf)).encode())
        found.update(np.ascontiguousarray(leaf).tobytes())
    return found.hexdigest()
