"""Sphinx settings, and four small directives that keep the pages true.

``{fidm-run}`` runs a command while the pages are built and prints what it really said;
``{task-file}`` shows a task file and puts it where those commands find it; ``{python-run}`` shows
Python and runs it in the same place; ``{picture}`` draws a figure with the installed package.
Formulas become MathML, which browsers draw by themselves, so the built pages load nothing from the
network.
"""

from __future__ import annotations

import base64
import contextlib
import html
import io
import logging as standard_logging
import os
import re
import shlex
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import matplotlib as mpl
import numpy as np
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.utils.math.latex2mathml import tex2mathml
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import fidm
from fidm.cli.main import main

project = "fidm"
author = "The fidm developers"
project_copyright = author
release = version = fidm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build", "studies/results"]
root_doc = "index"
language = "en"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the numpydoc sections name the types
napoleon_google_docstring = False
napoleon_use_rtype = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"fidm {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False

PAGE_WIDTH = 80
"""Columns of the terminal in which commands are shown."""

_log = logging.getLogger(__name__)
standard_logging.getLogger("fidm").setLevel("WARNING")  # what commands log is no news of the build
_folders: dict[str, tempfile.TemporaryDirectory[str]] = {}
_pictures: dict[str, dict[str, Any]] = {}


def _folder(page: str) -> Path:
    """The folder in which a page's commands run; it is gone when the build ends."""
    if page not in _folders:
        _folders[page] = tempfile.TemporaryDirectory(prefix="fidm-docs-")
    return Path(_folders[page].name)


def _run(arguments: list[str], folder: Path) -> tuple[int, str]:
    """Run the command line in a folder; return its exit code and what it printed."""
    said, complained = io.StringIO(), io.StringIO()
    width = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(PAGE_WIDTH)
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(complained),
        ):
            try:
                code = main(arguments)
            except SystemExit as leaving:
                code = int(leaving.code or 0)
    finally:
        if width is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = width
    text = said.getvalue() + (complained.getvalue() if code == 2 else "")
    return code, "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


class RunFidm(SphinxDirective):
    """``{fidm-run} ARGUMENTS``: the command and its real output; ``:exit:`` is the code expected."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {"exit": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        line = " ".join(self.arguments[0].split())
        code, text = _run(shlex.split(line), _folder(self.env.docname))
        expected = self.options.get("exit", 0)
        if code != expected:
            _log.warning("fidm %s: exit code %d, not %d", line, code, expected, location=self.get_location())
        block = nodes.literal_block(text, f"$ fidm {line}\n{text}", language="console")
        return [block]


class TaskFile(SphinxDirective):
    """``{task-file} NAME``: show a task file and keep it for the page's commands.

    ``:append:`` adds to the file; ``:replacing: TEXT`` puts the content in the place of a text. The file
    may be something else than a task; its suffix says in which language it is shown.
    """

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "append": directives.flag,
        "replacing": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        shown = "\n".join(self.content)
        path = _folder(self.env.docname) / self.arguments[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text("utf-8") if path.exists() else ""
        if old := self.options.get("replacing"):
            if before.count(old) != 1:
                raise self.error(f"{old!r} is not once in {path.name}")
            text = before.replace(old, shown)
        else:
            text = (before if "append" in self.options else "") + f"{shown}\n\n"
        path.write_text(text, "utf-8")
        language = {".py": "python", ".csv": "text"}.get(path.suffix, "toml")
        return [nodes.literal_block(shown, shown, language=language)]


class RunPython(SphinxDirective):
    """``{python-run}``: show Python code and run it in the folder of the page's commands.

    ``:output:`` also shows what it printed.
    """

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"output": directives.flag}

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        shown = "\n".join(self.content)
        said = io.StringIO()
        with contextlib.chdir(_folder(self.env.docname)), contextlib.redirect_stdout(said):
            exec(compile(shown, f"code in {self.env.docname}", "exec"), {"__name__": "__main__"})
        blocks: list[nodes.Node] = [nodes.literal_block(shown, shown, language="python")]
        if "output" in self.options:
            text = "\n".join(line.rstrip() for line in said.getvalue().splitlines())
            blocks.append(nodes.literal_block(text, text, language="text"))
        return blocks


class Picture(SphinxDirective):
    """``{picture} ALTERNATIVE TEXT``: the ``figure`` that the Python code in it makes.

    It runs where the page's commands do, and can use what earlier pictures have made. ``:code:`` also shows
    the code.
    """

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"code": directives.flag}

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        names = _pictures.setdefault(self.env.docname, {"fidm": fidm, "np": np, "Figure": Figure})
        shown = "\n".join(self.content)
        with contextlib.chdir(_folder(self.env.docname)):
            exec(compile(shown, f"picture in {self.env.docname}", "exec"), names)
        drawn = io.BytesIO()
        with mpl.rc_context({"svg.hashsalt": "fidm"}):
            names["figure"].savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None})
        data = base64.b64encode(drawn.getvalue()).decode()
        text = html.escape(" ".join(self.arguments[0].split()))
        image = f'<img alt="{text}" src="data:image/svg+xml;base64,{data}" style="max-width: 100%">'
        code = [nodes.literal_block(shown, shown, language="python")] if "code" in self.options else []
        return [*code, nodes.raw("", f"<p>{image}</p>", format="html")]


def _mathml(formula: str, *, block: bool) -> str:
    """MathML of a LaTeX formula; several lines are aligned."""
    if r"\\" in formula and r"\begin" not in formula:
        formula = rf"\begin{{aligned}}{formula}\end{{aligned}}"
    return re.sub(r"<mo>'</mo>", "<mo>&#x2032;</mo>", tex2mathml(formula, as_block=block))


def _visit_math(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node.astext(), block=False))
    raise nodes.SkipNode


def _visit_math_block(writer: Any, node: nodes.math_block) -> None:
    drawn = _mathml(node.astext(), block=True)
    writer.body.append(f'<div class="math" style="overflow-x: auto">{drawn}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    os.environ.pop("FIDM_DATA", None)  # where this machine keeps data belongs into no page
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math_block, None))
    app.add_directive("fidm-run", RunFidm)
    app.add_directive("task-file", TaskFile)
    app.add_directive("python-run", RunPython)
    app.add_directive("picture", Picture)
