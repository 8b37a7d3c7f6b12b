"""Settings and helpers shared by all tests."""

from __future__ import annotations

import gc
import io
import os
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["COLUMNS"] = "120"
# What tests sample is small: compiling it takes far longer than running it, so XLA is not to improve much on it.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported for the tests stays to the end, so nobody searches it for garbage again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture
def no_pictures(monkeypatch):
    """Figures are made but not drawn: for tests of pages and tables, most of whose time drawing would take."""
    from matplotlib.figure import Figure

    def undrawn(_figure, where, **_):
        if isinstance(where, io.StringIO):
            where.write("<svg/>")
        else:
            Path(where).write_bytes(b"no picture")

    monkeypatch.setattr(Figure, "savefig", undrawn)


@pytest.fixture(scope="module")
def briefly_classified():
    """Whoever runs the whole line classifies once, with two scrambles: it takes most of the time of a run."""
    from fidm import run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "Protocol", partial(run.Protocol, repeats=1, permutations=2))
        yield
