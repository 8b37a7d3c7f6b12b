"""Build both packages as they are released, and check that they work where nothing else of this checkout is.

``python scripts/check-dist.py`` writes wheels and sources to ``dist/``, installs the wheels into an
environment that has nothing but what they ask for, and runs the demonstration there. It stops at the first
thing wrong.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
VENV = ROOT / "build" / "dist-venv"
SITE = Path(sysconfig.get_path("purelib", "venv", {"base": str(VENV)}))
PACKAGES = {"fidm": ROOT, "fidm_studies": ROOT / "studies"}
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""The environment of commands: no code comes from a path somebody has set."""

STARTED = time.monotonic()


def main() -> None:
    """Build, look inside, install, run."""
    shutil.rmtree(DIST, ignore_errors=True)
    for package, folder in PACKAGES.items():
        run(sys.executable, "-m", "build", "--outdir", DIST, folder)
        check_sdist(package, folder)
        check_wheel(package, folder)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))
    say("dist/ holds " + ", ".join(sorted(path.name for path in DIST.iterdir())))

    shutil.rmtree(VENV, ignore_errors=True)
    run(sys.executable, "-m", "venv", "--without-pip", VENV)
    with tempfile.TemporaryDirectory() as elsewhere:
        install("fidm", "speech", "web")
        expect("pip install fidm-studies", "studies", "list", cwd=elsewhere, code=2)
        install("fidm_studies")
        pip("check")
        for package in PACKAGES:
            asked = f"import {package} as it; print(it.__file__, it.__version__)"
            found = run(VENV / "bin" / "python", "-c", asked, cwd=elsewhere).split()
            require(Path(found[0]).is_relative_to(VENV), f"{package} was imported from {found[0]}")
            require(wheel(package).name.split("-")[1] == found[1], f"{package} says it is {found[1]}")
        say("installed into an environment with nothing but what they ask for")
        expect("grocery", "list", cwd=elsewhere)
        expect("map-task", "studies", "list", cwd=elsewhere)
        expect("report.html", "demo", cwd=elsewhere)
        require(Path(elsewhere, "fidm-demo/study/report.html").exists(), "fidm demo wrote no report")
    say("fidm demo, fidm list and fidm studies list run there")


def check_sdist(package: str, folder: Path) -> None:
    """Check that everything the sources are said to include is there, and in the archive."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    with tarfile.open(only(f"{package}-*.tar.gz")) as archive:
        inside = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    for pattern in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        there = [path.relative_to(folder) for path in folder.glob(pattern.removeprefix("/"))]
        require(bool(there), f"{folder / 'pyproject.toml'}: there is no {pattern}, which the sdist includes")
        missing = [str(path) for path in there if not any(one.is_relative_to(path) for one in inside)]
        require(not missing, f"the sdist of {package} lacks {', '.join(missing)}")


def check_wheel(package: str, folder: Path) -> None:
    """Check that a wheel holds every file of its package, data files too, its licence, and nothing else."""
    source = folder / "src"
    known = {path.relative_to(source).as_posix() for path in (source / package).rglob("*") if path.is_file()}
    known = {name for name in known if "__pycache__" not in name}
    found = set(zipfile.ZipFile(wheel(package)).namelist())
    about = {name for name in found if name.split("/")[0].endswith(".dist-info")}
    licence = any(name.endswith("/licenses/LICENSE") for name in about)
    require(licence, f"the wheel of {package} has no licence")
    wrong = sorted(known ^ (found - about))
    require(not wrong, f"the wheel of {package} and {source} differ in {', '.join(wrong)}")


def wheel(package: str) -> Path:
    """Return the wheel of a package."""
    return only(f"{package}-*.whl")


def only(pattern: str) -> Path:
    """Return the one file in ``dist/`` that a pattern matches."""
    found = list(DIST.glob(pattern))
    require(len(found) == 1, f"dist/ has {len(found)} files {pattern}")
    return found[0]


def install(package: str, *extras: str) -> None:
    """Install a wheel into the environment, and link what it asks for there."""
    pip("install", "--quiet", "--no-deps", wheel(package))
    (found,) = distributions(name=package, path=[str(SITE)])
    link_needs(found, extras)


def link_needs(package: Distribution, extras: Iterable[str]) -> None:
    """Link what a package asks for, and what that asks for, from this script's environment."""
    for requirement in map(Requirement, package.requires or ()):
        marker = requirement.marker
        is_asked = marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))
        if not is_asked or requirement.name in PACKAGES:
            continue
        needed = distribution(requirement.name)
        parts = {file.parts[0] for file in needed.files or ()} - {"..", "__pycache__"}
        new = [part for part in parts if not (SITE / part).exists()]
        for part in new:
            (SITE / part).symlink_to(str(needed.locate_file(part)))
        if new or requirement.extras:
            link_needs(needed, requirement.extras)


def pip(*words: str | Path) -> None:
    """Run pip for the environment."""
    there = ("--python", VENV / "bin" / "python", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", *there, *words)


def expect(text: str, *verb: str, cwd: str, code: int = 0) -> None:
    """Run the command ``fidm`` of the environment, and check that it says something."""
    said = run(VENV / "bin" / "fidm", *verb, cwd=cwd, code=code)
    require(text in said, f"fidm {' '.join(verb)} does not say {text!r} but:\n{said}")


def run(*command: str | Path, cwd: str | Path = ROOT, code: int = 0) -> str:
    """Run a command and return what it prints; end here if its exit code is not the expected one."""
    done = subprocess.run(  # noqa: S603
        [str(word) for word in command],
        cwd=cwd,
        env=CLEAN,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = " ".join(map(str, command))
    require(done.returncode == code, f"{said} ended with {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout


def require(fine: bool, message: str) -> None:
    """End here if something is wrong."""
    if not fine:
        sys.exit(f"dist: {message}")


def say(what: str) -> None:
    """Print what has been done, and after how many seconds."""
    print(f"{time.monotonic() - STARTED:4.0f} s  {what}", flush=True)


if __name__ == "__main__":
    main()
