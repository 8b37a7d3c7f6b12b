"""Print the lowest versions that both pyproject.toml allow, and what the tests need beside them."""

import tomllib
from pathlib import Path

core, studies = (
    tomllib.loads(Path(name).read_text("utf-8"))["project"]
    for name in ("pyproject.toml", "studies/pyproject.toml")
)
extras = ("speech", "llm", "web", "gym", "pandas", "arviz")
requirements = [
    *core["dependencies"],
    *(one for extra in extras for one in core["optional-dependencies"][extra]),
    *(one for one in studies["dependencies"] if not one.startswith("fidm")),
]
for requirement in requirements:
    print(requirement.replace(">=", "=="))
print("axe-playwright-python\nhypothesis\nplaywright\npocketsphinx\npypdf\npytest\npytest-xdist\nstatsmodels")
