# The verbs of the project: demo, test, lint, docs, bench. Each makes what it needs in $(VENV).

VENV ?= .venv
# A name on the PATH may be a shim for a Python that is not there, or be too old: run it and see.
CANDIDATES := python3.11 python3.12 python3.13 python3.14 python3 python
PYTHON ?= $(shell for candidate in $(CANDIDATES); do \
	if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$candidate; break; fi; done)
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
STAMPS := $(VENV)/stamps
WORKERS ?= 2
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs bench clean

help:
	@echo "make demo   the main job on real data"
	@echo "make test   tests and examples (ARGS=... goes to pytest)"
	@echo "make lint   ruff and mypy --strict"
	@echo "make format put the code into ruff's format"
	@echo "make docs   the manual, in docs/_build/html"
	@echo "make bench  speed beside zarr-python and TensorStore"
	@echo "make clean  remove the virtual environment and everything built"

demo: $(STAMPS)/demo
	$(BIN)/python examples/demo.py $(ARGS)

test: $(STAMPS)/test
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src

format: $(STAMPS)/lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMPS)/docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env --quiet docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) build dist docs/_build demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv found; say make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# One stamp per extra: what is installed is installed again only if pyproject.toml changed.
$(STAMPS)/%: $(STAMPS)/venv pyproject.toml
	$(PIP) install --editable '.[all,$*]'
	@touch $@
