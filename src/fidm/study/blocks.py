"""A named block of features, and when blocks are scaled to stand side by side."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone  # type: ignore[import-untyped]

from fidm.cohort import Cohort
from fidm.errors import DataError

Floats = NDArray[np.float64]
Kind = Literal["clinical", "behaviour", "language", "fidm", "ablation", "own"]
BlockScaling = Literal["fusion", "language", "never"]

LARGEST = 1e100
"""Larger numbers are slips, and would turn into infinite ones when they are squared."""


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
