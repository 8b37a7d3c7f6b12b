"""Representations of people by name: what a classifier is given, and how it is prepared.

A *block* is a set of features with a name of its own: ``score``, ``score+subscores``, ``demographics``,
``trajectory``, ``action``, ``effort``, ``fidm``, every language encoder, and whatever transformer a caller
brings along. A *representation* is one block, or several joined by ``+``: ``score+subscores+fidm`` is two.

As in the paper (appendix B.2), missing values are imputed by the median and features standardized, both
learned from those the classifier learns from; in a fusion every block of d features is divided by √d; and the
same classifier serves all representations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from fidm.classify.encoder import ENCODERS
from fidm.classify.language import Language
from fidm.classify.tabular import DEMOGRAPHICS, LARGEST, score_columns, table_features
from fidm.classify.trajectory import TrajectoryFeatures
from fidm.cohort import Cohort
from fidm.defaults import SCORE
from fidm.errors import DataError
from fidm.experiments.shared import fit_learnable
from fidm.model.channels import Channel
from fidm.model.effort import paper_channels
from fidm.simulate.structure import PRESENCE
from fidm.sklearn import FactorizedFeatures
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.types import Floats, Values

Kind = Literal["clinical", "behaviour", "language", "fidm", "ablation", "own"]
BlockScaling = Literal["fusion", "language", "never"]

JOIN = "+"
"""Stands between the blocks of a representation."""

FACTORS = ("action", "effort", "fidm")
"""The blocks of the model itself, which share what they learn."""

TRACES = (*FACTORS, "trajectory")
"""The blocks that are made of what people did."""

KINDS: Mapping[str, Kind] = {
    "score": "clinical",
    "score+subscores": "clinical",
    "demographics": "clinical",
    "trajectory": "behaviour",
    "action": "ablation",
    "effort": "ablation",
    "fidm": "fidm",
}
"""The blocks that need no encoder, and what kind each is of."""

PART_OF: Mapping[str, str] = {"score": "score+subscores", "action": "fidm", "effort": "fidm"}
"""Blocks whose features another block has as well."""


class Block(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One named set of features: all that a transformer gives, or some of its columns.

    Parameters
    ----------
    name : str
        What it is called.
    source : transformer
        A scikit-learn transformer, or anything with ``fit`` and ``transform``, that turns a
        :class:`fidm.Cohort` into numbers [n, d], NaN where they are missing. Several blocks may share one.
    keep : tuple of int, optional
        The columns that belong to the block; all of them if left out.
    kind : str
        What kind of representation it is on its own.
    notes : tuple of str
        What a reader has to know about it, such as channels that could not be learned.
    """

    def __init__(
        self,
        name: str,
        source: Any,
        keep: tuple[int, ...] | None = None,
        *,
        kind: Kind = "own",
        notes: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.source = source
        self.keep = keep
        self.kind = kind
        self.notes = notes

    @property
    def learns(self) -> bool:
        """Whether the source learns from people, so that every training fold needs its own."""
        return bool(getattr(self.source, "learns", True))

    @property
    def is_language(self) -> bool:
        """Whether it is made of what people said."""
        return self.kind == "language"

    def fresh_source(self) -> Any:
        """Return a source that has learned nothing yet; the source itself if it never learns."""
        if not self.learns:
            return self.source
        if isinstance(self.source, type):
            raise DataError(f"{self.name} is a class; an object made of it is needed.")
        return clone(self.source) if hasattr(self.source, "get_params") else deepcopy(self.source)

    def without_source(self) -> Block:
        """Return the block for those who have its features already: no words, no files, nothing to copy."""
        return Block(self.name, None, self.keep, kind=self.kind, notes=self.notes)

    def fit(self, X: Cohort, y: Any = None) -> Block:  # noqa: N803
        """Let the source learn from these people."""
        self.source.fit(X, y)
        return self

    def transform(self, X: Cohort) -> Floats:  # noqa: N803
        """Return the features of these people, [n, d]."""
        return self.pick(checked(self.name, self.source.transform(X), len(X)))

    def pick(self, matrix: Floats) -> Floats:
        """Return the block's own columns of what its source gave."""
        return matrix if self.keep is None else matrix[:, list(self.keep)]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features, once the source is fitted."""
        names = np.asarray(self.source.get_feature_names_out(), dtype=object)
        return names if self.keep is None else names[list(self.keep)]

    def __sklearn_clone__(self) -> Block:
        """A copy has a source of its own if that learns; one that learns nothing is shared."""
        return Block(self.name, self.fresh_source(), self.keep, kind=self.kind, notes=self.notes)

    def __sklearn_is_fitted__(self) -> bool:
        return True  # the source says so itself


def checked(name: str, given: Any, n: int) -> Floats:
    """Return what a source gave as numbers [n, d], or say what is wrong with it."""
    raw = np.asarray(given.toarray() if hasattr(given, "toarray") else given)
    try:
        matrix = raw.astype(np.float64) if raw.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        matrix = None
    if matrix is None:
        raise DataError(f"{name} gives something other than numbers.")
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or len(matrix) != n:
        raise DataError(
            f"{name} gives numbers of the shape {matrix.shape} for {n} people; one row each is needed."
        )
    if not matrix.shape[1]:
        raise DataError(f"{name} has no features.")
    if (np.abs(matrix) > LARGEST).any():
        raise DataError(
            f"{name} gives infinite or absurdly large values; a classifier needs finite ones, or NaN where "
            "missing."
        )
    return matrix


def is_scaled(blocks: Sequence[Block], how: BlockScaling = "fusion") -> bool:
    """Return whether each of these blocks of d features is divided by √d before they stand side by side.

    Parameters
    ----------
    blocks : sequence of Block
        The blocks of one representation.
    how : {"fusion", "language", "never"}
        In every fusion; only where a language block takes part, as the paper writes; or never. A single block
        is never scaled.
    """
    if how not in ("fusion", "language", "never"):
        raise DataError(f"scale_blocks is {how!r}; it must be 'fusion', 'language' or 'never'.")
    if len(blocks) < 2 or how == "never":
        return False
    return how == "fusion" or any(block.is_language for block in blocks)


# ---------------------------------------------------------------------- names


def blocks_of(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the blocks a representation consists of.

    Parameters
    ----------
    name : str
        Names of blocks with ``+`` between them.
    known : iterable of str
        The names there are. One may contain a ``+`` itself; the longest that fits is meant.

    Examples
    --------
    >>> from fidm.classify.features import KINDS, blocks_of
    >>> blocks_of("score+subscores+fidm", KINDS)
    ('score+subscores', 'fidm')
    >>> blocks_of("score+fidm", KINDS)
    ('score', 'fidm')
    """
    names = tuple(known)
    parts = [part.strip() for part in name.split(JOIN)]
    blocks = _spelled(parts, {tuple(block.split(JOIN)): block for block in names})
    if blocks is None:  # "FIDM" is what pages call "fidm"
        small = {tuple(block.casefold().split(JOIN)): block for block in reversed(names)}
        blocks = _spelled([part.casefold() for part in parts], small)
    if blocks is None:
        raise DataError(
            f"There is no representation {name!r}. Known are {', '.join(names)}, and any of them joined by "
            f"{JOIN!r}."
        )
    twice = [block for block in dict.fromkeys(blocks) if blocks.count(block) > 1]
    if twice:
        raise DataError(f"The representation {name!r} names {twice[0]} twice.")
    for part, whole in PART_OF.items():
        if part in blocks and whole in blocks:
            raise DataError(f"The representation {name!r} names {part}, which is part of {whole} already.")
    return blocks


def _spelled(parts: Sequence[str], known: Mapping[tuple[str, ...], str]) -> tuple[str, ...] | None:
    """These parts as names of blocks, the longest first; None where they are not."""
    if not parts:
        return ()
    for size in range(len(parts), 0, -1):
        block = known.get(tuple(parts[:size]))
        rest = None if block is None else _spelled(parts[size:], known)
        if block is not None and rest is not None:
            return (block, *rest)
    return None


def is_name(name: str) -> bool:
    """Return whether a block may be called so: letters, digits, dots, hyphens and underscores."""
    return bool(re.fullmatch(r"[\w.-]+", name))


def known_blocks(
    *, encoders: Iterable[str] | None = None, own: Iterable[str] | None = None
) -> tuple[str, ...]:
    """Return the names of all blocks: the built-in ones, those of language encoders, and one's own."""
    names = [*KINDS, *(ENCODERS if encoders is None else encoders), *(own or ())]
    for name in names[len(KINDS) :]:
        if not is_name(name):
            raise DataError(
                f"A representation cannot be called {name!r}; a name has letters, digits, dots, hyphens and "
                "underscores."
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{twice[0]!r} is the name of two representations; give one of them another.")
    return tuple(names)


def usual(encoders: Sequence[str] = (), own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the representations of the paper's tables 2 and 3, in their order.

    Parameters
    ----------
    encoders, own : sequence of str
        Names of language encoders and of one's own representations, each to be shown alone and with FIDM.

    Examples
    --------
    >>> from fidm.classify.features import usual
    >>> usual()[-2:]
    ('score+subscores+fidm', 'trajectory+fidm')
    """
    single = ("score", "score+subscores", "trajectory", *encoders, *own)
    return (*single, *FACTORS, *(f"{name}+fidm" for name in single))


# ---------------------------------------------------------------------- making blocks


def make_blocks(
    names: Iterable[str],
    tasks: Sequence[TaskModel],
    cohort: Cohort,
    *,
    values: Sequence[Values] | None = None,
    score: str = SCORE,
    subscores: Sequence[str] | None = None,
    paper_estimates: bool = False,
    channels: Sequence[Channel] | None = None,
    language: Language | None = None,
    own: Mapping[str, Any] | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Block]:
    """Make the blocks that representations consist of.

    Parameters
    ----------
    names : iterable of str
        Representations, such as ``"score"`` or ``"score+fidm"``.
    tasks : sequence of TaskModel
        The tasks people did.
    cohort : Cohort
        The training part. It tells which columns and channels there are; nothing else is learned here.
    values : sequence of Values, optional
        The tasks' values, where they are solved already.
    score, subscores
        The columns with the total score and the subscores; see :func:`fidm.classify.tabular.score_columns`.
    paper_estimates : bool
        Estimate people as the paper does: maximum likelihood, a pooled population, and η itself. Otherwise by
        empirical Bayes with random intercepts, and log η.
    channels : sequence of Channel, optional
        The effort channels; by default those of the paper's four effort features.
    language : Language, optional
        What each participant said, and the encoders of language blocks; by default the paper's two.
    own : mapping of str to transformer, optional
        Blocks of one's own.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Returns
    -------
    dict of str to Block
        In the order in which they are first needed. ``action``, ``effort`` and ``fidm`` share one source.

    Examples
    --------
    >>> import fidm
    >>> from fidm.classify.features import make_blocks
    >>> task = fidm.load_task("errands")
    >>> people = fidm.simulate_cohort(task, 40, seed=1)
    >>> blocks = make_blocks(["trajectory+effort", "fidm"], [task], people)
    >>> list(blocks), blocks["effort"].source is blocks["fidm"].source
    (['trajectory', 'effort', 'fidm'], True)
    >>> blocks["effort"].fit(people).get_feature_names_out().tolist()
    ['duration', 'characters', 'turns', 'pause']
    """
    language, own = language or Language(), own or {}
    known = known_blocks(encoders=language.encoders, own=own)
    wanted = tuple(dict.fromkeys(block for name in names for block in blocks_of(name, known)))
    made: dict[str, Block] = {}
    if not set(FACTORS).isdisjoint(wanted):
        made |= _factorized(
            tasks, cohort, values, channels=channels, paper_estimates=paper_estimates, wanted=wanted
        )
    for name in wanted:
        if name in own:
            made[name] = Block(name, own[name])
        elif name in language.encoders:
            made[name] = Block(name, language.features(name, on_progress=on_progress), kind="language")
        elif name == "trajectory":
            made[name] = Block(name, TrajectoryFeatures(tuple(tasks)).fit(cohort), kind=KINDS[name])
        elif name not in FACTORS:
            columns: tuple[str, ...] = DEMOGRAPHICS if name == "demographics" else (score,)
            if name == "score+subscores":
                columns = score_columns(cohort, score=score, subscores=subscores)
            made[name] = Block(name, table_features(cohort, columns), kind=KINDS[name])
    return {name: made[name] for name in wanted}


def profile_channels() -> tuple[Channel, ...]:
    """Return the channels of the paper's four effort features; whether there was a pause is not one."""
    return tuple(channel for channel in paper_channels() if channel.name != PRESENCE)


def _factorized(
    tasks: Sequence[TaskModel],
    cohort: Cohort,
    values: Sequence[Values] | None,
    *,
    channels: Sequence[Channel] | None,
    paper_estimates: bool,
    wanted: Sequence[str],
) -> dict[str, Block]:
    """Action, effort and both, of one source, with the channels that these people tell something about."""
    solved = tuple(values) if values is not None else tuple(solve(task) for task in tasks)
    method: Literal["eb", "mle"] = "mle" if paper_estimates else "eb"
    usual = profile_channels() if channels is None else tuple(channels)
    tried = () if {"effort", "fidm"}.isdisjoint(wanted) else usual
    fit, failures = fit_learnable(tasks, cohort, tried, method=method, values=solved)
    if not fit.channels and not {"effort", "fidm"}.isdisjoint(wanted):
        reasons = " ".join(f"{name}: {why}" for name, why in failures.items())
        raise DataError(f"There are no effort features: none of the channels can be learned. {reasons}")
    source = FactorizedFeatures(
        tuple(tasks),
        channels=fit.channels,
        method=method,
        population="pooled" if paper_estimates else "random",
        scale="raw" if paper_estimates else "log",
        values=solved,
    )
    notes = tuple(f"{name} is left out: {why}" for name, why in failures.items())
    effort = tuple(range(1, 1 + len(fit.channels)))
    return {
        "action": Block("action", source, (0,), kind=KINDS["action"]),
        "effort": Block("effort", source, effort, kind=KINDS["effort"], notes=notes),
        "fidm": Block("fidm", source, kind=KINDS["fidm"], notes=notes),
    }


# ---------------------------------------------------------------------- representations


def preparation(*, scaled: bool = False) -> list[tuple[str, Any]]:
    """Return the steps that prepare one block, as scikit-learn writes them in a ``Pipeline``."""
    steps: list[tuple[str, Any]] = [
        ("impute", SimpleImputer(strategy="median", keep_empty_features=True)),
        ("standardize", StandardScaler()),
    ]
    return (
        [*steps, ("scale", FunctionTransformer(_by_size, feature_names_out="one-to-one"))]
        if scaled
        else steps
    )


def _by_size(block: Floats) -> Floats:
    """A block of d features divided by √d, so that it counts the same whatever its size."""
    return np.asarray(block / np.sqrt(block.shape[1]))


def representation(
    name: str, blocks: Mapping[str, Block], *, scale_blocks: BlockScaling = "fusion"
) -> Pipeline | FeatureUnion:
    """Return a representation as scikit-learn's own steps, from a :class:`fidm.Cohort` to prepared features.

    Parameters
    ----------
    name : str
        Such as ``"fidm"`` or ``"score+fidm"``.
    blocks : mapping of str to Block
        What :func:`make_blocks` made.
    scale_blocks : {"fusion", "language", "never"}
        See :func:`is_scaled`.

    Examples
    --------
    >>> import fidm
    >>> from fidm.classify.features import make_blocks, representation
    >>> from fidm.experiments.shared import classifier
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> task = fidm.load_task("errands")
    >>> people = fidm.simulate_cohort(task, 80, seed=1)
    >>> slow = people.participants["true_duration"].to_numpy() > 0
    >>> made = make_blocks(["effort"], [task], people)
    >>> pipeline = make_pipeline(representation("effort", made), classifier())
    >>> bool(cross_val_score(pipeline, people, slow, scoring="roc_auc").mean() > 0.8)
    True
    """
    parts = [blocks[block] for block in blocks_of(name, blocks)]
    scaled = is_scaled(parts, scale_blocks)
    branches = [
        (block.name, Pipeline([("features", clone(block)), *preparation(scaled=scaled)])) for block in parts
    ]
    return branches[0][1] if len(branches) == 1 else FeatureUnion(branches)
