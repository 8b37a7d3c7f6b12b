"""People who belong together, such as those who talk to each other: dealt and drawn as one."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError


def groups_of(people: Cohort, together: str | None) -> NDArray[np.int64]:
    """Return the number of the group each person belongs to, [P]; everybody their own if none is asked for.

    Parameters
    ----------
    people : Cohort
        The people.
    together : str, optional
        A column of the participants: people with the same value belong together, and those without a value
        to nobody.
    """
    if together is None:
        return np.arange(len(people))
    if together not in people.participants.columns:
        raise DataError(f"The participants have no column {together!r}.")
    values = people.participants[together].cast(pl.String)
    names = [f"={value}" if value is not None else f"?{j}" for j, value in enumerate(values)]
    return np.unique(np.array(names), return_inverse=True)[1].astype(np.int64)
