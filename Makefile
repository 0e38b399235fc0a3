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

# What depends on rounding, and runs with other kernels and with shaken rounding too.
NUMERICAL := -m "numerical and not large"
SEEDS ?= 1 2

# Versions; oldest.txt holds the lower bounds of pyproject.toml.
CONSTRAINTS ?= constraints.txt
PYTHONS ?= python3.11 python3.12 python3.13

.PHONY: reproduce test test-all test-kernels test-shaken test-oldest test-pythons lint format docs bench clean

reproduce: $(VENV)/fusion.done
	$(BIN)/python examples/tour.py
	$(BIN)/tnsum reproduce --protocol paper --splits 5 --jobs 2 --out reproduction

test: $(VENV)/test.done
	$(PYTEST) -m "not large"

test-all: $(VENV)/large.done
	$(PYTEST)
	$(BIN)/python tests/kernels.py --others $(PYTEST) --quiet $(NUMERICAL)
	set -e; for seed in $(SEEDS); do $(PYTEST) --quiet $(NUMERICAL) --shake $$seed; done

test-kernels: $(VENV)/test.done
	$(BIN)/python tests/kernels.py $(PYTEST) --quiet $(NUMERICAL)

test-shaken: $(VENV)/test.done
	set -e; for seed in $(SEEDS); do $(PYTEST) --quiet $(NUMERICAL) --shake $$seed; done

test-oldest:
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=oldest.txt

# Those that are installed, each in an environment of its own.
test-pythons:
	set -e; for python in $(PYTHONS); do \
	  if $$python --version; then \
	    $(MAKE) test PYTHON=$$python VENV=.venv-$$($$python -c "import sys; print('%d.%d' % sys.version_info[:2])"); \
	  else echo "$$python: not installed, not tested"; fi; \
	done

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
	$(BIN)/python benchmarks/by_rank.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/calibration.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/fusion.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/drawing.py --write benchmarks/RESULTS.md

clean:
	rm -rf $(VENV) .venv-* docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/base.done: pyproject.toml | $(BIN)/python
	$(PIP) --editable . --constraint $(CONSTRAINTS)
	touch $@

$(VENV)/%.done: $(VENV)/base.done $(CONSTRAINTS)
	$(PIP) --editable ".[$*]" --constraint $(CONSTRAINTS)
	touch $@

# The targets of the pattern above are wanted: make must not delete or remake them.
.SECONDARY:
