"""Published data sets analysed anew: figures, words and one page for each."""

from __future__ import annotations

from fidm.reanalyses.base import Expectation, Findings, Reanalysis
from fidm.reanalyses.catalogue import find_study, study_names

__all__ = ["Expectation", "Findings", "Reanalysis", "find_study", "study_names"]
