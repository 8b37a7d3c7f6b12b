"""Which data sets there are: the built-in ones, and those of other installed packages.

A package adds a data set with an entry point of the group ``fidm.datasets`` that leads to a
:class:`~fidm.datasets.base.Dataset`.
"""

from __future__ import annotations

from fidm.datasets.base import Dataset
from fidm.datasets.plug_ins import Catalogue

DATASETS = Catalogue(
    what="data set",
    kind=Dataset,
    group="fidm.datasets",
    built_in={
        "space-adventure": "fidm.datasets.space_adventure.dataset:DATASET",
        "justhink": "fidm.datasets.justhink.dataset:DATASET",
        "map-task": "fidm.datasets.map_task.dataset:DATASET",
    },
)


def dataset_names() -> tuple[str, ...]:
    """Return the names of all data sets: the built-in ones, then those of other packages.

    Examples
    --------
    >>> dataset_names()[:3]
    ('space-adventure', 'justhink', 'map-task')
    """
    return DATASETS.names()


def find_dataset(name: str) -> Dataset:
    """Return the data set of this name.

    Parameters
    ----------
    name : str
        One of :func:`dataset_names`.

    Examples
    --------
    >>> find_dataset("map-task").licence
    'CC BY-NC-SA 2.5'
    """
    return DATASETS.find(name)
