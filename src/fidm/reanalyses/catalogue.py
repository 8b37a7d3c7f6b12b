"""Which studies of published data there are: the built-in ones, and those of other installed packages.

A package adds a study with an entry point of the group ``fidm.reanalyses`` that leads to a
:class:`~fidm.reanalyses.base.Reanalysis`, and its data set with one of the group ``fidm.datasets``.
"""

from __future__ import annotations

from fidm.datasets.plug_ins import Catalogue
from fidm.reanalyses.base import Reanalysis

STUDIES = Catalogue(
    what="study",
    kind=Reanalysis,
    group="fidm.reanalyses",
    built_in={
        "space-adventure": "fidm.reanalyses.space_adventure.analysis:REANALYSIS",
        "justhink": "fidm.reanalyses.justhink.analysis:REANALYSIS",
        "map-task": "fidm.reanalyses.map_task.analysis:REANALYSIS",
    },
)


def study_names() -> tuple[str, ...]:
    """Return the names of all studies: the built-in ones, then those of other packages.

    Examples
    --------
    >>> study_names()[:3]
    ('space-adventure', 'justhink', 'map-task')
    """
    return STUDIES.names()


def find_study(name: str) -> Reanalysis:
    """Return the study of this name.

    Parameters
    ----------
    name : str
        One of :func:`study_names`.
    """
    return STUDIES.find(name)
