"""Published data sets of real people, and what was found in them: loaders and analyses, not data.

Each data set knows its files, their checksums, its licence and whom to cite; :func:`load` reads the files
from a folder that the user names.

>>> import fidm_studies
>>> fidm_studies.dataset_names()[:3]
('justhink', 'map-task', 'space-adventure')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fidm import lazy_names

if TYPE_CHECKING:
    from fidm_studies.analysis import Expectation, Findings, Reanalysis, find_study, study_names
    from fidm_studies.dataset import (
        Dataset,
        Loaded,
        Source,
        data_folder,
        dataset_folder,
        dataset_names,
        find_dataset,
        load,
        read_manifest,
        verify,
    )
    from fidm_studies.fetching import download

__version__ = "0.1.0"

__all__ = [
    "Dataset",
    "Expectation",
    "Findings",
    "Loaded",
    "Reanalysis",
    "Source",
    "data_folder",
    "dataset_folder",
    "dataset_names",
    "download",
    "find_dataset",
    "find_study",
    "load",
    "read_manifest",
    "study_names",
    "verify",
]

_HOMES = {
    "fidm_studies.analysis": ["Expectation", "Findings", "Reanalysis", "find_study", "study_names"],
    "fidm_studies.dataset": [
        "Dataset",
        "Loaded",
        "Source",
        "data_folder",
        "dataset_folder",
        "dataset_names",
        "find_dataset",
        "load",
        "read_manifest",
        "verify",
    ],
    "fidm_studies.fetching": ["download"],
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
