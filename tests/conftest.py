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


def pytest_configure(config):
    """Refuse gates that are asked for by name where there are no data; pytest collects what is named."""
    asked = [Path(one.split("::")[0]).absolute() for one in config.args]
    if not DATA and any(one == REAL or REAL in one.parents for one in asked):
        raise pytest.UsageError(
            "The gates in tests/real read published data of real people, and FIDM_DATA is not set. "
            "Name their folder: FIDM_DATA=FOLDER pytest tests/real"
        )


RAN: set[str] = set()
"""The gates that were run."""


def pytest_runtest_logreport(report):
    """Remember the gates that were run; one that was skipped was not."""
    if "tests/real/" in report.nodeid and report.when == "call" and report.outcome != "skipped":
        RAN.add(report.nodeid)


def asked_gates(config):
    """The files of tests/real that are within what was asked for."""
    asked = [Path(one.split("::")[0]).absolute() for one in config.args]
    files = sorted(REAL.glob("test_*.py")) or [REAL]
    return [file for file in files if any(one == file or one in file.parents for one in asked)]


def gates_not_run(config):
    """The files asked for of which no gate was run; none where tests were chosen in some other way."""
    options = ("keyword", "markexpr", "deselect", "ignore_glob", "collectonly", "lf")
    if not DATA or any(getattr(config.option, name, None) for name in options):
        return []
    ignored = [Path(one).absolute() for one in getattr(config.option, "ignore", None) or ()]
    ran = {Path(one.split("::")[0]).name for one in RAN}
    return [
        file.name
        for file in asked_gates(config)
        if file.name not in ran and not any(one == file or one in file.parents for one in ignored)
    ]


def pytest_sessionfinish(session):
    """Fail where the files of real people are named, but a gate on them was not run."""
    if not hasattr(session.config, "workerinput") and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if gates_not_run(session.config) else 0


def pytest_terminal_summary(terminalreporter, config):
    """Say whether the gates on real data were run."""
    if not asked_gates(config):
        return
    lost = gates_not_run(config)
    if lost:
        said = f"Real-data gates were NOT run, though FIDM_DATA is set: none in {', '.join(lost)}"
        terminalreporter.write_sep("=", said, red=True, bold=True)
    elif DATA:
        terminalreporter.write_sep("=", f"Real-data gates ran on {DATA}: {len(RAN)} of them", bold=True)
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
