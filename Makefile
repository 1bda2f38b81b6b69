# Everything a contributor or CI does, from nothing but make and Python 3.11 or newer.
# `make help` lists the targets. Use another interpreter with `make PYTHON=python3.12 …`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_BUNDLE := tests/bundles/long-context-surge.zip
WHEEL_DEMO := build/wheel-demo
REAL_TIME_LIMIT := 25m

# Two stamps: the demo needs the product only, so a first look does not wait for the checkers.
# The version is part of what gets installed, hence the second prerequisite.
RUNTIME := $(VENV)/.runtime-installed
TOOLS := $(VENV)/.tools-installed
INSTALLED_FROM := pyproject.toml src/llmedic/__init__.py

# Errors only: on the first run nobody can act on pip's warnings.
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check

# Exit code 1 of `llmedic diagnose` says that it found something: for these targets that is success.
FINDINGS_ARE_FINE = || [ $$? -eq 1 ]

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo check lint types contracts test test-real test-real-full bench wheel wheel-demo format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

demo: $(RUNTIME) ## Diagnose a bundle recorded from an overloaded vLLM
	@echo "$$ llmedic diagnose $(DEMO_BUNDLE)"
	@$(BIN)/llmedic diagnose $(DEMO_BUNDLE) $(FINDINGS_ARE_FINE)

check: lint types contracts test ## All that CI demands: lint, types, contracts, test

lint: $(TOOLS) ## Style and formatting (ruff)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "hint: make format" >&2; exit 1; }

types: $(TOOLS) ## Types (mypy --strict)
	@$(BIN)/mypy --no-error-summary

contracts: $(TOOLS) ## Who may import whom (import-linter)
	@$(BIN)/lint-imports --no-logo

test: $(TOOLS) ## The tests that need no engine
	@$(BIN)/pytest --quiet -m "not real"

test-real: $(TOOLS) ## The short tests on a real vLLM (installs one, CPU only)
	@tests/real/install.sh
	@timeout --foreground $(REAL_TIME_LIMIT) $(BIN)/pytest -m "real and not long" tests/real

test-real-full: $(TOOLS) ## All tests on a real vLLM
	@tests/real/install.sh
	@$(BIN)/pytest -m real tests/real

bench: $(TOOLS) ## Measure our own speed
	@$(BIN)/python -m benchmarks

wheel: $(RUNTIME) ## Build dist/llmedic-*.whl
	@rm -rf dist
	@$(BIN)/python -m pip wheel -qq --no-deps --wheel-dir dist .
	@ls dist/*.whl

wheel-demo: wheel ## Prove that the wheel is complete: the same verdict from it as from the checkout
	@rm -rf $(WHEEL_DEMO)
	@$(PYTHON) -m venv $(WHEEL_DEMO)
	@$(WHEEL_DEMO)/bin/python -m pip install -qq --disable-pip-version-check dist/*.whl
	@$(BIN)/llmedic diagnose --format json $(DEMO_BUNDLE) > $(WHEEL_DEMO)/checkout.json $(FINDINGS_ARE_FINE)
	@$(WHEEL_DEMO)/bin/llmedic diagnose --format json $(DEMO_BUNDLE) > $(WHEEL_DEMO)/wheel.json $(FINDINGS_ARE_FINE)
	@cmp $(WHEEL_DEMO)/checkout.json $(WHEEL_DEMO)/wheel.json
	@echo "The wheel gives the same verdict as the checkout."

format: $(TOOLS) ## Format the code and fix what can be fixed
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

clean: ## Remove everything that was built or cached in the checkout
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Old pips know no dependency groups (PEP 735), so pip comes first.
$(RUNTIME): $(INSTALLED_FROM)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $(PYTHON) is not Python 3.11 or newer" >&2; echo "hint: make PYTHON=python3.12 …" >&2; exit 2; }
	@echo "Setting up $(VENV): LLMedic and what it needs"
	@$(PYTHON) -m venv $(VENV) || { echo "hint: on Debian, apt-get install python3-venv" >&2; exit 2; }
	@$(PIP_INSTALL) --upgrade 'pip>=25.1'
	@$(PIP_INSTALL) --editable .
	@touch $@

$(TOOLS): $(RUNTIME)
	@echo "Setting up $(VENV): the checkers and test tools"
	@$(PIP_INSTALL) --group dev
	@touch $@
