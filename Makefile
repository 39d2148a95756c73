# Every target makes .venv itself the first time and again only when pyproject.toml or constraints.txt changed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
CODE   := flows tasks storage schemas tests

.PHONY: run test check lint format types imports unit bench s3 clean

run: $(READY)
	$(BIN)/sessionmill demo sessionmill-demo

test: $(READY)
	$(BIN)/python -m pytest

check: lint types imports unit

lint: $(READY)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)

format: $(READY)
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/python -m pytest tests/unit -q

bench: $(READY)
	$(BIN)/python -m tests.bench

s3: $(READY)
	$(BIN)/python -m tests.s3_server

clean:
	rm -rf $(VENV) .node sessionmill-demo .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: make PYTHON=python3.12 ..."; exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)
