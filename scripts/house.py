"""How large and how tangled the code is: ``python scripts/house.py``; ``--tighten`` lowers the ceilings.

The ceilings in ``scripts/house.json`` may only go down; a test compares them with what is measured.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
CEILINGS = Path(__file__).with_name("house.json")
SOURCES = {"fidm": ROOT / "src", "fidm_studies": ROOT / "studies" / "src"}
COMPLEX = 15
"""Functions with more branches than this count as complex (McCabe's measure, as ruff takes it)."""

FACADES = {"fidm", "fidm.study", "fidm.channels", "fidm.plot", "fidm.evidence", "fidm.report", "fidm_studies"}
"""Modules that exist to offer names of others to users."""


def modules(package: str) -> dict[str, Path]:
    """The modules of a package by name."""
    root = SOURCES[package]
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def measure(package: str = "fidm") -> dict[str, int]:
    """The numbers that may only go down."""
    own = modules(package)
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in own.items()}
    return {
        "modules": len(own),
        "lines": sum(len(path.read_text("utf-8").splitlines()) for path in own.values()),
        "modules side by side": max(Counter(path.parent for path in own.values()).values()),
        f"functions above complexity {COMPLEX}": len(complex_functions(package)),
        "names defined in two modules": len(twice_defined(trees)),
        "re-exports between inner modules": len(list(re_exports(trees))),
        "import cycles": len(cycles(trees)),
    }


def complex_functions(package: str) -> list[str]:
    """Functions with too many branches."""
    command = [sys.executable, "-m", "ruff", "check", "--select=C901", "--output-format=json", "--no-cache"]
    command += ["--config", f"lint.mccabe.max-complexity={COMPLEX}", str(SOURCES[package])]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)  # noqa: S603
    if not found.stdout:  # where nothing is complex, it says []
        sys.exit(f"house.py counts branches with ruff, which did not run: {found.stderr.strip()}")
    return [
        f"{one['filename']}:{one['location']['row']} {one['message']}" for one in json.loads(found.stdout)
    ]


def defined(tree: ast.Module) -> set[str]:
    """The functions and classes of a module."""
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def twice_defined(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Public functions and classes of the same name in two modules; verbs are named like what they call."""
    homes = defaultdict(list)
    for name, tree in trees.items():
        if not name.startswith("fidm.cli."):
            for one in defined(tree):
                if not one.startswith("_"):
                    homes[one].append(name)
    return {name: where for name, where in homes.items() if len(where) > 1}


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What a module imports when it is imported: the module, and the name."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, one.name) for one in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)


def re_exports(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Names that are imported from a module which has them from another."""
    passed_on = {name: {one for _, one in imports(tree)} for name, tree in trees.items()}
    for name, tree in trees.items():
        for module, one in imports(tree):
            inner = module in trees and module not in FACADES and f"{module}.{one}" not in trees
            if inner and one in passed_on[module]:
                yield f"{name} imports {one} from {module}"


def cycles(trees: dict[str, ast.Module]) -> list[list[str]]:
    """Groups of modules that import each other, in a circle."""
    graph = {
        name: {
            f"{module}.{one}" if f"{module}.{one}" in trees else module
            for module, one in imports(tree)
            if module in trees
        }
        for name, tree in trees.items()
    }
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:  # Tarjan's strongly connected components
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in graph[name]:
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            at = stack.index(name)
            found.append(stack[at:])
            del stack[at:]

    for name in graph:
        if name not in order:
            visit(name)
    return [group for group in found if len(group) > 1]


def main() -> None:
    """Print what is measured beside the ceilings."""
    known = json.loads(CEILINGS.read_text("utf-8")) if CEILINGS.exists() else {}
    found = {package: measure(package) for package in SOURCES}
    for package, numbers in found.items():
        print(f"{package:44}   now  ceiling")
        for what, n in numbers.items():
            print(f"  {what:40} {n:7,} {known.get(package, {}).get(what, n):8,}")
    if "--tighten" in sys.argv:
        lower = {
            package: {what: min(n, known.get(package, {}).get(what, n)) for what, n in numbers.items()}
            for package, numbers in found.items()
        }
        CEILINGS.write_text(json.dumps(lower, indent=1) + "\n", "utf-8")
    if "--names" in sys.argv:
        trees = {name: ast.parse(path.read_text("utf-8")) for name, path in modules("fidm").items()}
        print(*complex_functions("fidm"), *re_exports(trees), *cycles(trees), sep="\n")
        print(*(f"{name}: {', '.join(where)}" for name, where in twice_defined(trees).items()), sep="\n")


if __name__ == "__main__":
    main()
