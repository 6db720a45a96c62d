# Everything here works from a bare checkout: only Python >= 3.11 and make are needed. What a target needs is installed
# into .venv the first time, and again when pyproject.toml changes. pip takes its settings from the environment (PIP_*).
#
#   make PYTHON=/path/to/python3.12 test      to choose the interpreter, for a new .venv
#   make VENV=.venv-3.13 PYTHON=python3.13 test      to keep one environment for each
#   make test ARGS="-k chain -x"              to pass arguments on (demo, test, robust, fuzz, bench, paper)

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip
# Bytecode is kept, whatever the environment says: each worker, and each process that a test starts, would compile anew.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal
INSTALL := $(PIP) install --quiet
GROUPS := test lint docs browser paper
PYTHON ?=
ARGS ?=

# Real data, for the targets that can use them: a folder beside the checkout, unless the environment names another one.
export CONSILIENCE_DATA ?= $(abspath $(wildcard ../shared/data))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help install demo test robust check fuzz lint format types contracts docs browser bench experiments paper oldest clean distclean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMPS)/dev  ## fill .venv with the package (editable), all extras, and all that tests and benchmarks need
	@echo "Ready. Activate it with: . $(BIN)/activate"

demo: $(STAMPS)/core  ## run the main job on built-in data, and write demo-answers.csv and demo-report.html
	@$(BIN)/consilience demo $(ARGS)
	@echo; echo "To use consilience in this shell: . $(BIN)/activate"

test: $(STAMPS)/test  ## run the tests, the doctests among them
	@$(PYTEST) $(ARGS)

robust: $(STAMPS)/test  ## run what takes long: kills, signals, lost workers, compilation, real data, and more random examples
	@$(PYTEST) -m 'robust or hypothesis' --hypothesis-profile=thorough $(ARGS)

check: $(STAMPS)/dev  ## lint, types, contracts, docs and tests: what must pass before a change goes in
	@$(MAKE) --no-print-directory ARGS= lint types contracts docs
	@$(MAKE) --no-print-directory test

fuzz: $(STAMPS)/test  ## feed random crowds of every kind to the package, kill runs on disk, and grow sources (ARGS=--minutes=30 for more)
	@cd tests && ../$(BIN)/python -m fuzz $(ARGS)
	@$(BIN)/python tests/fuzz/disk_kills.py
	@$(BIN)/python tests/growth.py

lint: $(STAMPS)/lint  ## style: ruff's rules and its formatter
	@echo "ruff check";  $(BIN)/ruff check --quiet .
	@echo "ruff format"; $(BIN)/ruff format --quiet --check .

format: $(STAMPS)/lint  ## put the code in shape: what `make lint` would only complain about
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(STAMPS)/lint  ## mypy, strict
	@echo "mypy"; $(BIN)/mypy

contracts: $(STAMPS)/lint  ## who may import whom (.importlinter)
	@$(BIN)/lint-imports --no-logo

docs: $(STAMPS)/docs  ## build docs/_build/html; warnings, wide pages and bad style are errors
	@$(BIN)/sphinx-build -q -E -W --keep-going -b html docs docs/_build/html
	@$(BIN)/python docs/widths.py docs/_build/html
	@$(BIN)/python docs/style.py
	@echo "docs: docs/_build/html/index.html"

# Playwright's own Chromium comes from a server that is not a package registry, so it is the distribution's.
browser: $(STAMPS)/browser  ## install what the browser tests of the report need: Playwright, axe-core, and Chromium by apt-get
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	if ! command -v apt-get >/dev/null || ! command -v $${sudo:-sh} >/dev/null; then \
	  echo "There is no Chromium, and no way to install it with apt-get: the browser tests will be skipped." >&2; exit 0; \
	fi; \
	echo "installing Chromium"; \
	$$sudo apt-get update -qq && $$sudo apt-get install -qq -y --no-install-recommends chromium >/dev/null

experiments: $(STAMPS)/test  ## run the tests that take minutes: quick runs of the paper and of the benchmarks, against their pages
	@$(PYTEST) -m experiment $(ARGS)

bench: $(STAMPS)/dev  ## measure speed and quality against other packages
	@$(BIN)/python benchmarks/run.py $(ARGS)

paper: $(STAMPS)/paper  ## run the paper's experiments and renew docs/reproduction (half an hour; ARGS=--quick: two minutes)
	@$(BIN)/python -m paper $(ARGS)

# In an environment of its own, with an interpreter for which these versions were built. Compiled code is kept there too:
# beside the source, numba would replace it whenever its version changes.
oldest:  ## run the tests with the oldest versions that pyproject.toml allows
	@$(MAKE) --no-print-directory VENV=.venv-oldest PYTHON='$(or $(PYTHON),python3.11 python3.12)' .venv-oldest/stamps/oldest
	@NUMBA_CACHE_DIR=$(abspath .venv-oldest)/compiled \
	  $(MAKE) --no-print-directory VENV=.venv-oldest test

clean:  ## remove caches and build products; keep .venv
	@rm -rf build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	@find src tests paper benchmarks docs -type d -name __pycache__ -prune -exec rm -rf {} +

distclean: clean  ## remove .venv and other environments too
	@rm -rf $(VENV) .venv .venv-*

# The environment. One stamp for each thing installed; a failed installation leaves none.

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
CANDIDATES := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)

$(STAMPS)/venv:
	@if $(BIN)/python -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && $(PIP) --version >/dev/null 2>&1; then exit 0; fi; \
	for python in $(CANDIDATES); do \
	  $$python -c '$(NEW_ENOUGH)' >/dev/null 2>&1 || continue; \
	  $$python -c 'import venv, ensurepip' >/dev/null 2>&1 || { bare=$$python; continue; }; \
	  echo "creating $(VENV) with $$($$python --version)"; \
	  exec $$python -m venv --clear $(VENV); \
	done; \
	if [ -n "$$bare" ]; then \
	  echo "error: $$bare comes without its venv module. On Debian and Ubuntu: apt install python3-venv" >&2; \
	else \
	  echo "error: found no Python >= 3.11 (tried: $(CANDIDATES))." >&2; \
	fi; \
	echo "       Or name another one: make PYTHON=/path/to/python3.12 ..." >&2; exit 1
	@$(INSTALL) --upgrade 'pip>=25.1'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/core: $(STAMPS)/venv pyproject.toml
	@echo "installing consilience into $(VENV)"
	@$(INSTALL) --editable '.[report]'
	@touch $@

$(GROUPS:%=$(STAMPS)/%): $(STAMPS)/%: $(STAMPS)/venv pyproject.toml
	@echo "installing consilience and the group '$*' into $(VENV)"
	@$(INSTALL) --editable '.[all]' --group $*
	@touch $(STAMPS)/core $@

$(STAMPS)/oldest: $(STAMPS)/venv pyproject.toml tests/oldest.py
	@echo "installing the oldest versions that consilience allows, and the group 'test', into $(VENV)"
	@$(BIN)/python tests/oldest.py > $(STAMPS)/oldest.txt
	@$(INSTALL) --editable '.[all]' --group test --constraint $(STAMPS)/oldest.txt
	@touch $(STAMPS)/core $(STAMPS)/test $@

$(STAMPS)/dev: $(STAMPS)/venv pyproject.toml
	@echo "installing consilience, all extras and the group 'dev' into $(VENV) (a minute or two)"
	@$(INSTALL) --editable '.[all]' --group dev
	@touch $(STAMPS)/core $(GROUPS:%=$(STAMPS)/%) $@
