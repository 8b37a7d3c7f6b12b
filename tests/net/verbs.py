"""Every verb of the command line, run on one small fixed study, and what each of them wrote.

``python tests/net/verbs.py`` runs them and writes what is expected anew; a change of this file is a change of numbers or
of file formats, and the changelog says which.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).with_name("expected.json")

VERSIONS = ("0.1.0.dev0", "3.11.7")
"""What verbs take for the versions of the package and of Python: fits and reports name them, and results have
the hash of their fit."""

VERBS = (
    "task copy errands my_task.toml",
    "check my_task.toml --json",
    "simulate twin --task grocery_small --people 60 --language en --seed 3 --json",
    "ground twin --json",
    "audit sample twin -n 6",
    "audit verify twin --json",
    "audit agreement twin",
    "fit twin --lapse estimate --json",
    "fit twin --method mle --population pooled --out plain --json",
    "fit twin --joint --inferred 1 --out joint --json",
    "fit twin --draws 3 --out drawn --json",
    "fit twin --regress age_years+C(diagnosis) --cluster education_years --out regressed --json",
    "fit twin --use twin/fit.json --out used --json",
    "evidence twin --json",
    "localize twin --bootstrap 100 --json",
    "reliability twin --bootstrap 50 --json",
    "learning twin --by halves --json",
    "recover --like twin --people 24 --repeat 2 --json",
    "calibrate --like twin --people 12 --studies 20 --draws 19 --json",
    "recover --task errands --people 16 --repeat 1 --method mle --out recovered --json",
    "matched --task grocery_small --people 20 --repeat 2 --out matched --json",
    "compare twin --by sex --adjust age_years --json",
    "select twin --folds 3 --json",
    "compare-models twin --model lapse --model no_way_back --folds 2 --bootstrap 50 --replicates 5 --json",
    "classify twin --no-language --folds 3 --repeats 2 --permutations 5 --json",
    "report twin --json",
    "report twin --no-classify --participant P0000001 --out one.html --json",
    "simulate errands --task errands --people 12 --language yue --json",
    "ground errands --json",
    "fit errands --split all --json",
    "evidence errands --json",
)
"""In this order: later verbs read what earlier ones wrote."""


def run_verbs(folder: Path) -> dict[str, Any]:
    """Run all verbs in an empty folder; the digests of what each printed and what was there in the end."""
    from digest import digest, digest_folder
    from matplotlib.figure import Figure
    from threadpoolctl import threadpool_limits

    import fidm
    from fidm.cli.main import main

    own = fidm.__version__, platform.python_version
    fidm.__version__, platform.python_version = VERSIONS[0], lambda: VERSIONS[1]
    Figure.savefig, drawn = _no_picture, Figure.savefig  # pictures are for people, and take most of the time
    printed = {}
    with contextlib.chdir(folder), threadpool_limits(1):  # sums of several threads differ in their last bits
        for verb in VERBS:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = main(verb.split())
            if verb.endswith("--json"):
                printed[verb] = {"code": code, **digest(json.loads(out.getvalue()))}
            else:
                printed[verb] = {"code": code}
    written = digest_folder(folder)
    Figure.savefig = drawn
    fidm.__version__, platform.python_version = own
    return {"printed": printed, "written": written}


def _no_picture(_figure: Any, target: Any, **_: Any) -> None:
    if isinstance(target, io.StringIO):
        target.write("<svg/>")
    else:
        Path(target).write_bytes(b"no picture")


def arithmetic() -> str:
    """What decides the last bits of a number: the processor, and the libraries that compute."""
    import llvmlite.binding

    libraries = " ".join(
        f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "polars", "scikit-learn")
    )
    return f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()} {os.cpu_count()} cores; {libraries}"


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    for library in ("OPENBLAS", "OMP"):  # as the tests run: sums of several threads differ in their last bits
        os.environ[f"{library}_NUM_THREADS"] = "1"
    sys.path.insert(0, str(Path(__file__).parent))
    with tempfile.TemporaryDirectory() as empty:
        found = {"arithmetic": arithmetic(), **run_verbs(Path(empty))}
    EXPECTED.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(f"Wrote {EXPECTED}")
