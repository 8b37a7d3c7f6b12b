"""The names that users write: in Python, and on the command line.

``python tests/net/names.py`` writes them anew. A name that goes or changes breaks somebody's script.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from cyclopts import App

NAMES = Path(__file__).with_name("names.json")
MODULES = ("fidm", "fidm.study", "fidm.channels", "fidm.plot", "fidm.sklearn", "fidm.testing")


def public_names() -> dict[str, Any]:
    """The public names of modules, and the options of every verb."""
    from fidm.cli.main import app

    return {
        "python": {module: sorted(_names(module)) for module in MODULES},
        "command line": {" ".join(words): sorted(options) for words, options in sorted(_verbs(app, ()))},
    }


def _names(module: str) -> list[str]:
    found = importlib.import_module(module)
    own = [
        name
        for name, value in vars(found).items()
        if getattr(value, "__module__", None) == module and not name.startswith("_")
    ]
    return list(getattr(found, "__all__", own))


def _verbs(app: App, words: tuple[str, ...]):
    for name in app:
        if name.startswith("-"):
            continue
        verb = app[name]
        if any(not one.startswith("-") for one in verb):
            yield from _verbs(verb, (*words, name))
        if verb.default_command is not None:
            options = verb.assemble_argument_collection()
            yield (*words, name), [one for option in options for one in option.names if one != "*"]


if __name__ == "__main__":
    NAMES.write_text(json.dumps(public_names(), indent=1) + "\n", "utf-8")
    print(f"Wrote {NAMES}")
