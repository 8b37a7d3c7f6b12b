"""Print the lowest versions that pyproject.toml allows, and what the tests need beside them."""

import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
for requirement in [
    *project["dependencies"],
    *project["optional-dependencies"]["gym"],
    *project["optional-dependencies"]["pandas"],
]:
    print(requirement.replace(">=", "=="))  # noqa: T201
print("hypothesis\npytest\npytest-xdist\nstatsmodels")  # noqa: T201
