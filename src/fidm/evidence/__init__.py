"""Where the evidence for a profile lies: at which steps, and in which segments."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fidm.evidence.evidence import Evidence, find_evidence
    from fidm.evidence.localization import Localization, localize

_HOME = {
    "Evidence": "evidence",
    "Localization": "localizing",
    "find_evidence": "evidence",
    "localize": "localizing",
}

__all__ = ["Evidence", "Localization", "find_evidence", "localize"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"fidm.evidence.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fidm.evidence' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
