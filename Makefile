# Every target sets up .venv by itself. What is in it follows pyproject.toml and constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
PEERS := .venv/peers

.PHONY: reproduce check test peers lint format book clean

reproduce: $(READY)
	$(BIN)/weightdecay reproduce figure-2

# What CI runs: lint and every test.
check: lint
	$(BIN)/pytest

# Every law once, in four minutes on two cores: all tests but those marked `slow`.
test: $(READY)
	$(BIN)/pytest -m "not slow"

# Tests against other libraries, which are too large a dependency for every contributor.
peers: $(PEERS)
	$(BIN)/pytest -n0 tests/test_transformers.py tests/test_lightning.py tests/test_integrations.py \
	    tests/test_optuna.py

lint: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Judges the committed results again, and writes what README and docs say of them.
book: $(READY)
	$(BIN)/weightdecay book results --page docs/reproduction.md --readme README.md
	$(BIN)/python results/cifar10-small/budgets.py
	$(BIN)/python results/cifar10-headline/judge.py
	$(BIN)/python -m tests.choosing --page docs/choosing.md
	$(BIN)/python -m tests.carrying --page docs/carrying.md

format: $(READY)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "weightdecay needs Python 3.11 or later; try make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(PEERS): $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[peers]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .screenshots
