"""The report of a study: one HTML file that opens anywhere and sends nothing, and the same as JSON."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fidm.report.report import Report, build_report, write_report

__all__ = ["Report", "build_report", "write_report"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("fidm.report.report"), name)
    raise AttributeError(f"module 'fidm.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
