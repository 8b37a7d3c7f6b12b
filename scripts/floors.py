"""Print the lowest versions that pyproject.toml allows, and what the tests need beside them."""

import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
extras = ("speech", "llm", "data", "gym", "pandas")
for requirement in [
    *project["dependencies"],
    *(one for extra in extras for one in project["optional-dependencies"][extra]),
]:
    print(requirement.replace(">=", "=="))
print("hypothesis\npytest\npytest-xdist\nstatsmodels")
