# `make` alone lists the targets. Everything is set up in .venv from the hashed locks; nothing needs root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JAVASCRIPT := tests/javascript
CONSOLE := src/penstock/console/index.html
CONSOLE_SOURCES := $(shell find console -name node_modules -prune -o -type f -print)
# Twice quiet: errors are shown, warnings about the machine's own pip configuration are not.
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
# uv needs a tenth of pip's time. Where it cannot be had, or its index lacks something, pip does the work.
INDEX = $${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}
UV = index=$(INDEX); $(BIN)/uv pip install --quiet --python $(BIN)/python $${index:+--index-url $$index}
INSTALL = $(UV) $(2) --require-hashes -r $(1) 2>/dev/null || $(PIP) --require-hashes -r $(1)
# Not `npm ci`: that wants packages of every platform in the lock, and not every registry has them.
NPM := npm install --no-save --silent --no-audit --no-fund --ignore-scripts
# On a machine that stands still for seconds, a test of crashes and clocks may miss its time: a few are given another
# try, told in the last line and with their tracebacks. More than a few are no accident.
AGAIN := --reruns 2 --reruns-delay 5 --max-suite-reruns 4 --rerun-show-tracebacks
# Tests start hundreds of processes: what one has compiled, the others are to find.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-bench console run test test-long check format new-vendor bench bench-guard docs pin-images lock clean
.PHONY: tested weights browser compiled lint types layers console-check

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(VENV)/.installed  ## make .venv with the `penstock` command in it
setup-dev: $(VENV)/.installed-dev  ## the same, with the tools for tests and checks

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Penstock needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock >$(VENV)/uv.lock
	@$(PIP) --require-hashes -r $(VENV)/uv.lock || true
	@$(call INSTALL,requirements.lock,--compile-bytecode)
	@$(UV) --no-deps --no-build-isolation -e . 2>/dev/null || $(PIP) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock $(JAVASCRIPT)/node_modules console/node_modules
	@$(call INSTALL,requirements-dev.lock)
	@touch $@

$(JAVASCRIPT)/node_modules: $(JAVASCRIPT)/package-lock.json
	@cd $(JAVASCRIPT) && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

console: $(CONSOLE)  ## build the web console, if its sources have changed

$(CONSOLE): $(CONSOLE_SOURCES) | console/node_modules
	@cd console && npm run --silent build

console/node_modules: console/package-lock.json
	@command -v npm > /dev/null || { echo "npm is not here."; exit 1; }
	@cd console && $(NPM)
	@touch $@

run: setup  ## serve on http://127.0.0.1:8787; the first start prints a key
	@$(BIN)/penstock models pull --optional --quiet
	@if command -v npm > /dev/null; then $(MAKE) --silent --no-print-directory console || echo "The console could not be built; all else works."; \
	else echo "npm is not here: the console is not built, and /console says how. All else works."; fi
	@$(BIN)/penstock serve

test: setup  ## what CI runs: every check and every test
	@$(MAKE) --no-print-directory --jobs 3 types tested

tested: lint layers console-check console browser weights compiled  # types take a minute of one core: meanwhile tests are run
	@$(BIN)/pytest --numprocesses 4 --dist worksteal $(AGAIN)

test-long: setup-dev weights  ## the tests that take long: ordeals, fuzzers, storms
	@$(BIN)/pytest --numprocesses 2 --dist worksteal -m long

weights: setup-dev
	@$(BIN)/penstock models pull --quiet

browser: setup-dev  # for the console's tests: found, or fetched
	@$(BIN)/python tools/console/browser.py >/dev/null

compiled: setup-dev  # the tests, once: else every one of pytest's processes does it for itself
	@$(BIN)/pytest --collect-only -qq >/dev/null 2>&1 || true

check: lint types layers console-check  ## lint, formatting, types, layers and sizes

lint: setup-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python tests/sizes.py

types: setup-dev
	@nice $(BIN)/pyright

layers: setup-dev
	@$(BIN)/lint-imports

console-check: console/node_modules
	@cd console && npm run --silent check

format: setup-dev  ## format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@cd console && npm run --silent format

new-vendor:  ## begin a vendor: make new-vendor NAME=acme
	@test -n "$(NAME)" || { echo "Name it: make new-vendor NAME=acme"; exit 1; }
	@$(PYTHON) tools/vendors/new_vendor.py "$(NAME)"

BENCHES := chat.chat chat.streams jobs.jobs storage.assets jobs.growth engines.engines
bench: setup-bench  ## measure chat beside its peers, streams, jobs, assets, growth, engines; tables and plots in bench/results
	@for question in $(BENCHES); do $(BIN)/python -m bench.$$question || exit 1; done

bench-guard: setup-bench  ## fail if a chat request costs 1.3 times what was recorded, beside a bare proxy
	@$(BIN)/python -m bench.chat.guard

setup-bench: setup-dev
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r bench/requirements.lock

docs: $(VENV)/.installed-docs  ## build the docs as a site, checked, in site/
	@$(BIN)/python tools/docs/docs_site.py

$(VENV)/.installed-docs: docs/requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r docs/requirements.lock
	@touch $@

pin-images:  ## pin the base images and those of the compose file to their digests; needs docker
	@$(PYTHON) tools/release/pin_images.py

lock: setup-dev  ## resolve the dependencies anew
	@$(BIN)/uv pip compile pyproject.toml --extra local --extra otel --group build --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --upgrade -o requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --extra local --extra otel --group dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -c requirements.lock -o requirements-dev.lock
	@echo "matplotlib>=3.10" | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -c requirements-dev.lock -o bench/requirements.lock
	@echo "zensical>=0.0.73" | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -c requirements-dev.lock -o docs/requirements.lock

clean:  ## remove what the other targets made
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist site .cache bench/results bench/.cache $(JAVASCRIPT)/node_modules console/node_modules src/penstock/console
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
