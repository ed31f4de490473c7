.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench clean

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

help:  ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | expand -t 10

# Every install is held to constraints.txt: a bare torch range may bring gigabytes of GPU libraries.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "grapefill needs Python 3.11 or newer; try: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --disable-pip-version-check --quiet \
		-c constraints.txt --editable '.[benchmarks,dev]'
	@touch $@

demo: $(INSTALLED)  ## Fill a real table and show it before and after
	$(BIN)/grapefill demo --folder demo-output

test: lint  ## Lint, check types, run every test and print coverage
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --cov

lint: $(INSTALLED)  ## Check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)  ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(INSTALLED)  ## Measure speed and memory on this machine
	$(BIN)/python -m benchmarks speed

clean:  ## Remove the environment, caches and outputs
	rm -rf .venv build dist demo-output .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
