# Every target sets up what it needs in .venv, once; nothing else has to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# One BLAS thread: small matrices are many times slower with two on a busy machine.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

# scikit-learn then checks estimators with arrays of other libraries too.
export SCIPY_ARRAY_API ?= 1

# Tests share the cores; a few workers are enough, and each holds its own copy of what it tests.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

.PHONY: reproduce test test-all lint format docs bench clean

reproduce: $(VENV)/fusion.done
	$(BIN)/python examples/tour.py
	$(BIN)/tnsum reproduce --protocol paper --splits 5 --jobs 2 --out reproduction

test: $(VENV)/test.done
	$(PYTEST) -m "not large"

test-all: $(VENV)/large.done
	$(PYTEST)

lint: $(VENV)/lint.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/lint.done
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Everything anew: pictures and examples show what the code does now, whatever was built before.
docs: $(VENV)/docs.done
	rm -rf docs/_build docs/gallery
	$(BIN)/python -m sphinx --fail-on-warning --quiet docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/bench.done
	$(BIN)/python benchmarks/sums.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/storage.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/compression.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/loops.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/calibration.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/fusion.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/drawing.py --write benchmarks/RESULTS.md

clean:
	rm -rf $(VENV) docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/base.done: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/%.done: $(VENV)/base.done constraints.txt
	$(PIP) --editable ".[$*]" --constraint constraints.txt
	touch $@

# The targets of the pattern above are wanted: make must not delete or remake them.
.SECONDARY:
