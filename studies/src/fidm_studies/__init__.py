"""Published data sets of real people, and what was found in them: loaders and analyses, not data.

Each data set knows its files, their checksums, its licence and whom to cite; :func:`load` reads the files
from a folder that the user names.

>>> import fidm_studies
>>> fidm_studies.dataset_names()[:3]
('justhink', 'map-task', 'space-adventure')
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

_HOME = {
    "Dataset": "fidm_studies.dataset",
    "Expectation": "fidm_studies.analysis",
    "Findings": "fidm_studies.analysis",
    "Loaded": "fidm_studies.dataset",
    "Reanalysis": "fidm_studies.analysis",
    "Source": "fidm_studies.dataset",
    "data_folder": "fidm_studies.dataset",
    "dataset_folder": "fidm_studies.dataset",
    "dataset_names": "fidm_studies.dataset",
    "download": "fidm_studies.fetching",
    "find_dataset": "fidm_studies.dataset",
    "find_study": "fidm_studies.analysis",
    "load": "fidm_studies.dataset",
    "read_manifest": "fidm_studies.dataset",
    "study_names": "fidm_studies.analysis",
    "verify": "fidm_studies.dataset",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fidm_studies' has no attribute {name!r}")
