"""Published data sets of real people: loaders, not data.

Each data set knows its files, their checksums, its licence and whom to cite; :func:`load` reads the files
from a folder that the user names.

>>> import fidm.datasets
>>> fidm.datasets.dataset_names()[:3]
('space-adventure', 'justhink', 'map-task')
"""

from __future__ import annotations

from fidm.datasets.base import Dataset, Loaded, Source, read_manifest
from fidm.datasets.catalogue import dataset_names, find_dataset
from fidm.datasets.fetching import download
from fidm.datasets.places import data_folder, dataset_folder, load, verify

__all__ = [
    "Dataset",
    "Loaded",
    "Source",
    "data_folder",
    "dataset_folder",
    "dataset_names",
    "download",
    "find_dataset",
    "load",
    "read_manifest",
    "verify",
]
