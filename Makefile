.DEFAULT_GOAL := help
.PHONY: help demo test coverage test-spark lint format bench clean

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | expand -t 12

# Every install is held to constraints.txt: a bare torch range may bring gigabytes of GPU libraries.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "grapefill needs Python 3.11 or newer; try: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --disable-pip-version-check --quiet \
		-c constraints.txt --editable '.[benchmarks,dev]'
	@touch $@

demo: $(INSTALLED)  ## Fill a real table and show it before and after
	$(BIN)/grapefill demo --folder demo-output --overwrite

test: lint  ## Lint, check types, run every test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto

coverage: $(INSTALLED)  ## Run every test and print which lines none of them reaches
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --cov

# pyspark is half a gigabyte, so it has an environment of its own and is no part of `make test`.
.venv-spark/.installed: pyproject.toml constraints.txt
	test -x .venv-spark/bin/python || $(PYTHON) -m venv .venv-spark
	PIP_CONSTRAINT=constraints.txt .venv-spark/bin/python -m pip install --quiet \
		--disable-pip-version-check -c constraints.txt --editable '.[spark]' \
		pandas hypothesis pytest pytest-timeout pytest-cov
	@touch $@

test-spark: .venv-spark/.installed  ## Fill a Spark DataFrame (needs Java 17)
	.venv-spark/bin/python -m pytest tests/distributed/test_spark.py -m spark

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
	rm -rf .venv .venv-spark build dist demo-output .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
