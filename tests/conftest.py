"""Settings and helpers shared by all tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["COLUMNS"] = "120"

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")

REAL = Path(__file__).parent / "real"
DATA = os.environ.get("FIDM_DATA", "")
"""Where the published data of real people are; without them their gates are not collected."""

collect_ignore = [] if DATA else [str(REAL)]


def pytest_terminal_summary(terminalreporter, config):
    """Say whether the gates on real data were run."""
    asked = [Path(one.split("::")[0]).absolute() for one in config.args]
    if not any(one == REAL or one in REAL.parents or REAL in one.parents for one in asked):
        return
    if DATA:
        ran = [
            report
            for kind in ("passed", "failed", "error")
            for report in terminalreporter.getreports(kind)
            if "tests/real/" in report.nodeid and getattr(report, "when", "") in ("call", "setup", "collect")
        ]
        terminalreporter.write_sep("=", f"Real-data gates ran on {DATA}: {len(ran)} of them", bold=True)
    else:
        terminalreporter.write_sep(
            "=", "Real-data gates were NOT run: FIDM_DATA is not set", yellow=True, bold=True
        )


@pytest.fixture
def no_pictures(monkeypatch):
    """Figures are made but not drawn: for tests of pages and tables, most of whose time drawing would take."""
    from matplotlib.figure import Figure

    def undrawn(_figure, path, **_):
        Path(path).write_bytes(b"no picture")

    monkeypatch.setattr(Figure, "savefig", undrawn)
