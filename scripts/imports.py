"""Draw which part of the package imports which, into a picture of the docs: ``python scripts/imports.py``.

Parts are packages and larger modules; each stands below everything that imports it.
"""

from __future__ import annotations

import ast
from pathlib import Path

from house import imports, modules
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

TARGET = Path(__file__).parent.parent / "docs" / "images" / "imports.svg"
BASE = {"types", "errors", "files", "private", "stats", "defaults", "registry", "languages"}
"""Small modules that nearly everything uses; they are one box at the bottom."""

FACADES = {"fidm", "study", "channels", "sklearn", "testing", "__main__"}
"""Names for users; they import whatever they offer."""


def part_of(module: str) -> str | None:
    """The part a module belongs to; None for the names for users."""
    names = module.split(".")
    top = names[1] if len(names) > 1 else names[0]
    return None if top in FACADES else "base" if top in BASE else top


def graph() -> dict[str, set[str]]:
    """Which parts each part imports."""
    found: dict[str, set[str]] = {}
    for name, path in modules("fidm").items():
        part = part_of(name)
        if part is None:
            continue
        own = found.setdefault(part, set())
        tree = ast.parse(path.read_text("utf-8"))
        if part == "cli":  # verbs import when they run
            tree.body += [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        for module, _ in imports(tree):
            other = part_of(module) if module.startswith("fidm.") else None
            if other is not None and other != part:
                own.add(other)
    return found


def levels(edges: dict[str, set[str]]) -> dict[str, int]:
    """How many parts lie below each, along the longest way down."""
    known: dict[str, int] = {}

    def level(part: str) -> int:
        if part not in known:
            known[part] = 1 + max((level(other) for other in edges[part]), default=-1)
        return known[part]

    for part in edges:
        level(part)
    return known


def draw(edges: dict[str, set[str]]) -> Figure:
    """The picture: a box per part, an arrow to each part it imports that no part between imports too."""
    height = levels(edges)
    rows: dict[int, list[str]] = {}
    for part in sorted(edges, key=lambda one: (height[one], one)):
        rows.setdefault(height[part], []).append(part)
    figure = Figure(figsize=(7.2, 0.62 * (len(rows) + 1)))
    ax = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    ax.set_axis_off()
    ax.set_xlim(0, 10)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    place = {
        part: ((i + 1) * 10 / (len(parts) + 1), row)
        for row, parts in rows.items()
        for i, part in enumerate(parts)
    }
    for part, others in edges.items():
        below = {far for other in others for far in _reach(other, edges)}
        for other in others - below:
            (x, y), (u, v) = place[part], place[other]
            bend = f"arc3,rad={0.25 if y - v > 1 else 0}"  # long arrows go round what stands between
            arrow = FancyArrowPatch((x, y - 0.24), (u, v + 0.24), arrowstyle="-|>", connectionstyle=bend)
            arrow.set_mutation_scale(9)
            arrow.set(color="#999999", lw=0.9)
            ax.add_patch(arrow)
    for part, (x, y) in place.items():
        box = FancyBboxPatch((x - 0.62, y - 0.22), 1.24, 0.44, boxstyle="round,pad=0.02,rounding_size=0.08")
        box.set(facecolor="#f4f6f8", edgecolor="#444444", lw=0.9)
        ax.add_patch(box)
        ax.text(x, y, part, ha="center", va="center", fontsize=9, color="#222222")
    return figure


def _reach(part: str, edges: dict[str, set[str]]) -> set[str]:
    """Everything below a part."""
    found: set[str] = set()
    todo = list(edges[part])
    while todo:
        other = todo.pop()
        if other not in found:
            found.add(other)
            todo += edges[other]
    return found


if __name__ == "__main__":
    draw(graph()).savefig(TARGET, metadata={"Date": None})
    print(f"Wrote {TARGET}")
