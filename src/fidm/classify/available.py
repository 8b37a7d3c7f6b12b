"""Which representations can be run on a study, and why others cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fidm.classify.features import FACTORS, parse
from fidm.classify.judging import Features
from fidm.classify.tabular import Block
from fidm.cohort import Cohort
from fidm.errors import DataError, FidmError
from fidm.types import Integers


@dataclass(frozen=True, slots=True, eq=False)
class Runnable:
    """What can be run.

    Parameters
    ----------
    representations : mapping of str to tuple of str
        Those that can be run, and the blocks each is made of.
    blocks : mapping of str to Block
        Their blocks.
    fixed : mapping of str to Features
        The features, of everybody, of blocks that learn nothing.
    not_run : mapping of str to str
        Why the others cannot.
    """

    representations: Mapping[str, tuple[str, ...]]
    blocks: Mapping[str, Block]
    fixed: Mapping[str, Features]
    not_run: Mapping[str, str]


def usual(encoders: Sequence[str] = (), own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the representations of the paper's tables 2 and 3, in their order.

    Parameters
    ----------
    encoders, own : sequence of str
        Names of language encoders and of one's own representations, each to be shown alone and with FIDM.

    Examples
    --------
    >>> from fidm.classify.available import usual
    >>> usual()[-2:]
    ('score+subscores+fidm', 'trajectory+fidm')
    """
    single = ("score", "score+subscores", "trajectory", *encoders, *own)
    return (*single, *FACTORS, *(f"{name}+fidm" for name in single))


def prepare_blocks(
    wanted: Sequence[str],
    known: Sequence[str],
    cohort: Cohort,
    learners: Integers,
    make: Callable[[Sequence[str]], dict[str, Block]],
    *,
    must: bool,
) -> Runnable:
    """Make the blocks of representations, and compute those that learn nothing.

    Parameters
    ----------
    wanted : sequence of str
        Representations.
    known : sequence of str
        The names of blocks there are.
    cohort : Cohort
        Everybody.
    learners : int array
        The rows of the training part.
    make : callable
        Makes blocks by their names; see :func:`fidm.classify.features.make_blocks`.
    must : bool
        Whether each must be run; otherwise those that cannot are left out, and the reason kept.
    """
    spelled = [in_order(parse(name, known), known) for name in wanted]
    parts = {"+".join(names): names for names in spelled}
    if not parts:
        raise DataError("No representation is named.")
    needed = list(dict.fromkeys(block for made in parts.values() for block in made))
    blocks: dict[str, Block] = {}
    fixed: dict[str, Features] = {}
    failed: dict[str, str] = {}
    for names in _together(needed):
        try:
            made = make(names)
            found = {
                name: _compute(block, cohort, learners) for name, block in made.items() if not block.learns
            }
        except FidmError as error:
            if must:
                raise
            failed |= dict.fromkeys(names, str(error))
        else:
            blocks |= made
            fixed |= found
    if "action" in failed:  # it needs no words, so it may be possible without the others
        try:
            blocks |= make(["action"])
        except FidmError as error:
            failed["action"] = str(error)
        else:
            del failed["action"]
    not_run = {
        name: next(failed[block] for block in made if block in failed)
        for name, made in parts.items()
        if any(block in failed for block in made)
    }
    if len(not_run) == len(parts):
        raise DataError(f"No representation can be run. {' '.join(dict.fromkeys(not_run.values()))}")
    return Runnable(
        representations={name: made for name, made in parts.items() if name not in not_run},
        blocks={
            name: blocks[name].without_source() if name in fixed else blocks[name]
            for name in needed
            if name in blocks
        },
        fixed=fixed,
        not_run=not_run,
    )


def in_order(blocks: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the blocks of a representation in the usual order, the model's own at the end.

    Examples
    --------
    >>> from fidm.classify.available import in_order
    >>> in_order(("fidm", "score"), ("score", "fidm", "bert"))
    ('score', 'fidm')
    """
    return tuple(sorted(blocks, key=lambda name: (name in FACTORS, list(known).index(name))))


def _together(needed: Sequence[str]) -> list[list[str]]:
    """Blocks that are made at the same time: the factors, which share a source, and every other by itself."""
    factors = [name for name in needed if name in FACTORS]
    return [[name] for name in needed if name not in FACTORS] + ([factors] if factors else [])


def _compute(block: Block, cohort: Cohort, learners: Integers) -> Features:
    source = block.fresh_source()
    source.fit(cohort[learners])
    features = Features.of(block, source, cohort)
    if np.isnan(features.matrix[learners]).all():
        raise DataError(f"{block.name} has no value for any of the {len(learners)} people to learn from.")
    return features
