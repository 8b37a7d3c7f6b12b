r"""Draws from everybody's posterior: what a profile sums up, sampled, so that anything can be computed of it.

A draw begins with what people share: one of the plausible populations of every channel, and one of the
plausible priors of η, each as often as it is probable. All people of that draw are under the same one. Given
it, a person's parameters are drawn by inverting their distribution function, which is known on nodes and
smooth between them (:func:`fidm.fit.offsets.node_quantiles`).

Where people are of several kinds, a person's parameters are drawn under one kind. Under a joint prior their
ranks have the correlations of the person's joint posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import special

from fidm.errors import DataError, count
from fidm.fit import joint as joints
from fidm.fit import sensitivity
from fidm.fit.common import bare, id_hash
from fidm.fit.offsets import (
    FINE_NODES,
    REPORT_NODES,
    OwnKinds,
    log_priors,
    node_quantiles,
    on_fine_nodes,
    under_each,
)
from fidm.fit.population import Learned
from fidm.fit.sensitivity import OWN_NODES, Sensitivities, SensitivityPrior
from fidm.model.action import Choices
from fidm.model.channels import Channel
from fidm.model.effort import Observed
from fidm.types import Floats, Integers, read_only

if TYPE_CHECKING:
    import arviz

AT_ONCE = 500
"""So many people are drawn at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Everybody's parameters, drawn from their posterior.

    Parameters
    ----------
    participants : Series [P]
        Whose parameters they are.
    parameters : tuple of str [K]
        ``log_action_sensitivity`` and the names of the effort channels; those alone where there is no task.
    values : float array [P, K, n]
        The draws. Minus infinity is η = 0: the person chooses at random. NaN where the profile has no
        estimate.
    chains : int
        From how many chains they are, one after the other; 1 where draws are independent.
    """

    participants: pl.Series
    parameters: tuple[str, ...]
    values: Floats
    chains: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))

    def __len__(self) -> int:
        return len(self.participants)

    def __getitem__(self, parameter: str) -> Floats:
        """Return everybody's draws of one parameter, [P, n]."""
        if parameter not in self.parameters:
            raise DataError(f"There is no parameter {parameter!r}. There are: {', '.join(self.parameters)}.")
        return self.values[:, self.parameters.index(parameter)]

    def to_inference_data(self) -> arviz.InferenceData:
        """Return the draws for ArviZ: a group ``posterior`` with one variable per parameter.

        Its dimensions are ``chain`` (one, unless chains were sampled), ``draw`` and ``participant``. Needs
        ArviZ (``pip install 'fidm[arviz]'``).
        """
        found: arviz.InferenceData = _arviz().from_dict(
            posterior={
                name: np.moveaxis(by_chain(self[name], self.chains), 0, 2) for name in self.parameters
            },
            coords={"participant": self.participants.to_list()},
            dims={name: ["participant"] for name in self.parameters},
        )
        return found

    def __repr__(self) -> str:
        who = count(len(self), "participant")
        return f"Draws({who} × {', '.join(self.parameters)}; {self.values.shape[2]:,} draws)"


def by_chain(values: Floats, chains: int) -> Floats:
    """Return draws, the last axis, with an axis of chains before it."""
    return values.reshape(*values.shape[:-1], chains, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """What decides each draw: uniform numbers of every person and parameter [P, K, n].

    ``kind`` and ``random`` [P, n] decide a person's kind and whether they choose at random. A person's
    numbers depend on the seed and their id alone, and so do ``shared`` ones on the seed and the parameter.
    """

    own: Floats
    kind: Floats
    random: Floats
    seed: int

    @classmethod
    def of(cls, participants: Sequence[str], width: int, n: int, seed: int) -> Noise:
        """Make the noise of some people and so many parameters."""
        found = [
            np.random.default_rng([seed, 0, id_hash(who)]).random((width + 2, n)) for who in participants
        ]
        noise = np.maximum(np.array(found).reshape(len(participants), width + 2, n), 1e-16)
        return cls(noise[:, :width], noise[:, width], noise[:, width + 1], seed)

    def shared(self, parameter: str, weight: Floats) -> Integers:
        """Return under which population or prior each draw of a parameter is, [n]."""
        rng = np.random.default_rng([self.seed, 1, id_hash(parameter)])
        return np.asarray(rng.choice(len(weight), self.own.shape[2], p=weight / weight.sum()))


def _arviz() -> Any:
    try:
        import arviz
    except ModuleNotFoundError as error:
        raise DataError(f"This needs {error.name}: pip install 'fidm[arviz]'.") from None
    return arviz


def elpd_of(participants: pl.Series, left_out: Floats, inside: Floats) -> arviz.ELPDData:
    """Return everybody's log-likelihood [P] by what others share, and by what all share, for ArviZ."""
    from xarray import DataArray

    n = len(left_out)
    pointwise = DataArray(left_out, dims="participant", coords={"participant": participants.to_list()})
    values = {
        "elpd_loo": float(left_out.sum()),
        "se": float(np.sqrt(n * np.var(left_out))),
        "p_loo": float((inside - left_out).sum()),
        "n_samples": 1,
        "n_data_points": n,
        "warning": False,
        "loo_i": pointwise.rename("loo_i"),
        "scale": "log",
    }
    found: arviz.ELPDData = _arviz().ELPDData(data=list(values.values()), index=list(values))
    return found


def draw_offsets(
    channel: Channel, seen: Observed, learned: Learned, kinds: OwnKinds | None, noise: Noise, k: int
) -> Floats:
    """Draw everybody's θ in a channel, the k-th parameter, [P, n]."""
    shared, others = learned.population, learned.plausible
    if others is None:
        centre, scale, likelihood = bare(channel, shared, seen)
        return _drawn(
            centre, scale, REPORT_NODES, likelihood, (shared.means(seen), shared.sd), kinds,
            noise.own[:, k], noise.kind,
        )  # fmt: skip
    found = np.empty(noise.kind.shape)
    under = noise.shared(channel.name, others.weight)
    centre, half, coarse = under_each(channel, seen, shared, others, kinds)
    means = others.means(seen)
    for r in np.unique(under):
        some = under == r
        own = means[r], float(others.sd[r])
        found[:, some] = _drawn(
            centre, half, FINE_NODES, on_fine_nodes(coarse[r]), own, kinds,
            noise.own[:, k, some], noise.kind[:, some],
        )  # fmt: skip
    return found


def draw_sensitivities(
    choices: Choices,
    prior: SensitivityPrior,
    lapse: float,
    own: Sensitivities,
    kinds: OwnKinds | None,
    noise: Noise,
) -> Floats:
    """Draw everybody's log η, the first parameter, [P, n]; ``own`` is their posterior, which places nodes."""
    centre, scale = own.log_mean, own.log_se
    etas = np.exp(centre[:, None] + scale[:, None] * OWN_NODES)
    priors = list(prior.rates(lapse))
    under = noise.shared("log_action_sensitivity", np.concatenate([some.weight for some in priors]))
    found, first = np.empty(noise.kind.shape), 0
    for one in priors:
        likelihood = sensitivity.values_on(choices, etas, float(one.lapse[0]))
        means = np.broadcast_to(one.means(choices), (len(choices), len(one)))
        for r in np.unique(under[(under >= first) & (under < first + len(one))]):
            some, k = under == r, r - first
            found[:, some] = _drawn(
                centre, scale, OWN_NODES, likelihood, (means[:, k], float(one.sd[k])), kinds,
                noise.own[:, 0, some], noise.kind[:, some],
            )  # fmt: skip
        first += len(one)
    return found if own.random is None else np.where(noise.random < own.random[:, None], -np.inf, found)


def draw_jointly(likelihoods: joints.Likelihoods, prior: joints.JointPrior, noise: Noise) -> Floats:
    """Draw everybody's parameters under a joint prior, [P, K, n]: normal ranks, and the marginals' places."""
    densities, covariance = joints.joint_posterior(likelihoods, prior)
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    root = np.linalg.cholesky(covariance / (sd[:, :, None] * sd[:, None, :]))
    ranks = special.ndtr(np.einsum("pij,pjn->pin", root, special.ndtri(noise.own)))
    columns = zip(likelihoods.centre, likelihoods.scale, densities, likelihoods.nodes, strict=True)
    return np.stack([node_quantiles(*column, ranks[:, k]) for k, column in enumerate(columns)], axis=1)


def _drawn(
    centre: Floats,
    scale: Floats,
    nodes: Floats,
    likelihood: Floats,
    prior: tuple[Any, float],
    kinds: OwnKinds | None,
    own: Floats,
    kind: Floats,
) -> Floats:
    """Draw from everybody's posterior under one prior, given ℓ on nodes [P, Q] and uniform numbers [P, m].

    The prior's mean is one for all, or everybody's own, [P].

    First their kind, as often as it is probable by all that is known of them, then a value under it.
    """
    at = centre[:, None] + scale[:, None] * nodes
    means = np.broadcast_to(prior[0], len(at))[:, None]
    density = likelihood[:, :, None] + log_priors(at, means, prior[1], kinds)
    density = np.maximum(density - density.max(axis=(1, 2))[:, None, None], -700.0)
    up_to = np.cumsum(np.exp(density).sum(axis=1), axis=1)
    found = node_quantiles(centre, scale, density[:, :, 0], nodes, own)
    for c in range(1, density.shape[2]):
        others = node_quantiles(centre, scale, density[:, :, c], nodes, own)
        found = np.where(kind * up_to[:, -1:] < up_to[:, c - 1 : c], found, others)
    return found
