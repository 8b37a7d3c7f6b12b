"""The gates on real data: collected if FIDM_DATA names their folder, and then none of their files may run nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["COLUMNS"] = "120"

REAL = Path(__file__).parent / "real"
DATA = os.environ.get("FIDM_DATA", "")
CHOOSING = ("keyword", "markexpr", "deselect", "collectonly", "lf")
"""Options that choose tests: whoever uses one need not run the gates."""

RAN: set[str] = set()
"""The gates that were run."""

collect_ignore = [] if DATA else ["real"]


@pytest.fixture
def no_pictures(monkeypatch):
    """Figures of pages are made but not drawn: for tests of what pages say."""
    monkeypatch.setattr("fidm.report.parts.figure_svg", lambda _figure: "<svg/>")


def pytest_runtest_logreport(report):
    if (
        DATA
        and report.when == "call"
        and report.outcome != "skipped"
        and "/real/" in report.nodeid.split("::")[0]
    ):
        RAN.add(report.nodeid)


def not_run(config):
    """The files of gates that are within what was asked for, and of which nothing was run."""
    asked = [Path(one.split("::")[0]).absolute() for one in config.args]
    chosen = any(getattr(config.option, name, None) for name in CHOOSING)
    files = [] if chosen else [one for one in REAL.glob("test_*.py") if {one, *one.parents} & set(asked)]
    return sorted(one.name for one in files if not any(f"/{one.name}::" in ran for ran in RAN))


def pytest_sessionfinish(session):
    is_worker = hasattr(session.config, "workerinput")
    if DATA and not is_worker and not session.exitstatus and not_run(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    lost = not_run(config)
    if lost and DATA:
        said = f"Real-data gates were NOT run, though FIDM_DATA is set: none in {', '.join(lost)}"
        terminalreporter.write_sep("=", said, red=True, bold=True)
    elif lost:
        terminalreporter.write_sep("=", "Real-data gates were NOT run: FIDM_DATA is not set", yellow=True)
    elif RAN:
        terminalreporter.write_sep("=", f"Real-data gates ran on {DATA}: {len(RAN)} of them", bold=True)
