# Every target sets up what it needs: an environment in .venv, renewed when pyproject.toml changes.
# PYTHON chooses the interpreter of a new .venv (`make clean` first to change it).

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

# Of `make soak`: what is drawn, how many daemons are killed in each operation, and how many
# requests or lines of words each operation of the API and each command is given.
SEED     ?= 0
DEATHS   ?= 300
REQUESTS ?= 500

# A real browser, a real database server, a terminal, accounts, and a compiler for a sham driver.
TEST_PACKAGES := chromium postgresql tmux passwd gcc libc6-dev

PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test soak lint format bench docs clean test-packages

help: ## Show this list
	@echo "Usage: make TARGET [PYTHON=python3.12]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(VENV)/.ready-run ## Set up, start the daemon, run three elastic jobs on this machine
	$(BIN)/bough demo

test: lint ## Set up, then lint, types, architecture contracts and the whole test suite
	$(BIN)/pytest -n 2

soak: $(VENV)/.ready-test ## Kill daemons and draw input for longer than a test may take: make soak SEED=7
	SOAK_SEED=$(SEED) SOAK_DEATHS=$(DEATHS) SOAK_REQUESTS=$(REQUESTS) $(BIN)/pytest -n 2 --timeout 0 \
		tests/faults tests/server/test_api_fuzz.py tests/cli/test_any_input.py

test-packages: ## As root on Debian: install the programs that some tests skip without
	apt-get -qq update
	apt-get -qq install --yes --no-install-recommends $(TEST_PACKAGES)

lint: $(VENV)/.ready-test ## Lint, formatting, types and architecture contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.ready-test ## Format the code and repair what lint can repair
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.ready-test ## Measure: every script of bench/, each against a baseline run beside it
	@status=0; for script in bench/*.py; do \
		echo "== $$script"; $(BIN)/python $$script || status=1; \
	done; exit $$status

docs: $(VENV)/.ready-test ## Write the generated pages anew: policies, commands, JSON
	$(BIN)/python docs/generate.py

clean: ## Remove the environment, caches and results
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	rm -f bough-report.html
	find src tests bench docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "bough needs Python 3.11 or newer: make PYTHON=python3.11 …" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-run: pyproject.toml | $(BIN)/python
	@echo "Installing bough into $(VENV)"
	@$(PIP_INSTALL) --editable '.[nvidia,tui]'
	@touch $@

$(VENV)/.ready-test: pyproject.toml | $(BIN)/python
	@echo "Installing bough and what its tests need into $(VENV)"
	@$(PIP_INSTALL) --editable '.[dev,fast]'
	@touch $@ $(VENV)/.ready-run
