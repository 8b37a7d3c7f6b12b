"""The report of a study: one HTML file that opens anywhere and sends nothing, and the same as JSON."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fidm.report.report import Report, build_report, write_report

_HOME = {"Report": "report", "build_report": "report", "write_report": "report"}

__all__ = ["Report", "build_report", "write_report"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"fidm.report.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fidm.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
