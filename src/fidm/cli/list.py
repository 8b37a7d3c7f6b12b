"""``fidm list``: what fidm knows by name; ``fidm doctor``: what the machine has; ``--install-completion``."""

from __future__ import annotations

import ast
import json as jsons
import tomllib
from collections.abc import Callable, Mapping
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.text import Text

from fidm.errors import DataError
from fidm.languages import WORDS
from fidm.present import MODELS
from fidm.present.terminal import note, page, progress_bar, show_checkup, table_of, warn
from fidm.registry import ACTION_MODELS, DATASETS, FORMATS, LANGUAGES, SEAMS, TASKS, Place


def list_names(
    kind: Literal[
        "channels", "action-models", "formats", "grounders", "transcribers", "languages", "tasks", "datasets"
    ]
    | None = None,
    *,
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """List what can be named, with the package each comes from.

    Parameters
    ----------
    kind
        What to list; everything by default.
    json
        Print the lists as JSON.
    """
    found = {name: _entries(name) for name in ([kind] if kind else SEAMS)}
    if json:
        print(jsons.dumps(found, indent=2, ensure_ascii=False))
        return 0
    console = page()
    for name, listed in found.items():
        console.print(Text(TITLES.get(name, name), "bold"))
        rows = [(one["name"], one["what"], one["package"]) for one in listed["entries"]]
        console.print(table_of(("name", "what it is", "package"), rows, left=3) if rows else "")
        warn(console, *listed["problems"])
        if name == "datasets" and not find_spec("fidm_studies"):
            note(console, "Published data sets come with another package: pip install fidm-studies")
    return 0


TITLES = {"action-models": "action models", "datasets": "data sets"}
"""What catalogues are called where that is not their name."""


def _entries(seam: str) -> dict[str, Any]:
    """What a catalogue holds, for programs; what cannot be used is a problem, not an entry."""
    entries, problems = [], []
    for place in SEAMS[seam].places().values():
        try:
            what = DESCRIBED[seam](place)
        except DataError as error:
            problems.append(str(error))
        else:
            entries.append({"name": place.name, "what": what, "package": place.package})
    return {"entries": entries, "problems": [*problems, *SEAMS[seam].ignored()]}


def _first_line(seam: str) -> Callable[[Place], str]:
    """Describe a class by its docstring, read without importing it: channels bring whole libraries."""

    def described(place: Place) -> str:
        module, _, name = place.value.partition(":")
        said = _docstring(module, name) or SEAMS[seam].find(place.name).__doc__ or ""
        return said.strip().partition("\n")[0]

    return described


def _docstring(module: str, name: str) -> str:
    """What stands below the head of a class or function; empty where the module does not say."""
    try:
        spec = find_spec(module)
        loader = spec.loader if spec else None
        source = loader.get_source(module) if isinstance(loader, InspectLoader) else None
        tree = ast.parse(source or "")
    except (ImportError, SyntaxError):  # loading it will say what is wrong
        return ""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
    return ""


def _format(place: Place) -> str:
    one = FORMATS.find(place.name)
    return f"{one.title} ({', '.join(one.suffixes)})"


def _action_model(place: Place) -> str:
    """What an account of choice is called in sentences; one of another package, what its class says."""
    if place.name in MODELS:
        return MODELS[place.name]
    return (ACTION_MODELS.find(place.name).__doc__ or "").strip().partition("\n")[0]


def _in_file(text: str, key: str) -> str:
    """What a TOML file calls itself; whether the rest of it is right is not looked at."""
    return str(tomllib.loads(text).get(key, ""))


DESCRIBED: Mapping[str, Callable[[Place], str]] = {
    "channels": _first_line("channels"),
    "action-models": _action_model,
    "formats": _format,
    "grounders": _first_line("grounders"),
    "transcribers": _first_line("transcribers"),
    "languages": lambda place: _in_file(LANGUAGES.read(place.name, WORDS), "name"),
    "tasks": lambda place: _in_file(TASKS.read(place.name, f"{place.name}.toml"), "title"),
    "datasets": lambda place: DATASETS.find(place.name).title,
}
"""How an entry of each catalogue is described."""


def doctor(*, json: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """Look at this machine: versions, extras, fonts, encoders, servers of language models, folders.

    Nothing is changed, and nothing leaves this machine. Exit code 0: fidm can do its work. 1: it cannot; ✗
    marks why.

    Parameters
    ----------
    json
        Print what was found as JSON.
    """
    from fidm.doctor import examine

    with progress_bar("looking"):
        found = examine()
    if json:
        print(jsons.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        show_checkup(found, page())
    return 0 if found.can_work else 1


def install_completion(*, shell: Literal["bash", "zsh", "fish", "powershell"] | None = None) -> None:
    """Let the shell complete verbs and options: write its script, and a line that loads it at the start.

    Parameters
    ----------
    shell
        The shell; by default the one this is run from.
    """
    from cyclopts.completion.detect import ShellDetectionError

    from fidm.cli.main import app

    try:
        path = app.install_completion(shell=shell)
    except ShellDetectionError:
        raise DataError("Which shell this is cannot be found out. Name it: --shell bash") from None
    console = page()
    console.print(f"Wrote {path}", soft_wrap=True, markup=False)
    note(console, "start a new shell, then press Tab after fidm; run this again after an update of fidm")
