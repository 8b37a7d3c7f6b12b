"""The report of a study: one HTML file that opens anywhere and sends nothing, and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fidm import lazy_names

if TYPE_CHECKING:
    from fidm.report.report import Report, build_report, write_report

__all__ = ["Report", "build_report", "write_report"]

__getattr__, __dir__ = lazy_names(__name__, {"fidm.report.report": __all__})
