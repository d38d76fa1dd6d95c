# `make` alone lists the targets. Everything is installed into .venv from the hashed locks, without root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JAVASCRIPT := tests/javascript
AGENTS := tests/agents
CONSOLE := src/penstock/console/index.html
CONSOLE_SOURCES := $(shell find console -name node_modules -prune -o -type f -print)
SOURCES := $(shell find src -name '*.py')
TEST_SOURCES := $(shell find tests -name node_modules -prune -o -name '*.py' -print)
# Twice quiet: show errors, hide warnings about the machine's own pip configuration.
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
# uv takes a tenth of pip's time. pip is the fallback where uv is not available or its index lacks something.
INDEX = $${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}
UV = index=$(INDEX); $(BIN)/uv pip install --quiet --python $(BIN)/python $${index:+--index-url $$index}
INSTALL = $(UV) $(2) --require-hashes -r $(1) 2>/dev/null || $(PIP) --require-hashes -r $(1)
# Not `npm ci`: it requires the packages of every platform, which not every registry has.
NPM := npm install --no-save --silent --no-audit --no-fund --ignore-scripts
# Tests start hundreds of processes, which share their compiled files.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-bench console run demo test test-long simulate teeth check format new-vendor bench bench-guard docs pin-images lock clean
.PHONY: run-tests pull-weights fetch-browser compile-tests lint check-types check-layers check-console

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(VENV)/.installed  ## make .venv with the `penstock` command in it
setup-dev: $(VENV)/.installed-dev  ## make .venv with the tools for tests and checks too

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Penstock needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock >$(VENV)/uv.lock
	@$(PIP) --require-hashes -r $(VENV)/uv.lock || true
	@$(call INSTALL,requirements.lock,--compile-bytecode)
	@$(UV) --no-deps --no-build-isolation -e . 2>/dev/null || $(PIP) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock $(JAVASCRIPT)/node_modules $(AGENTS)/node_modules console/node_modules
	@$(call INSTALL,requirements-dev.lock)
	@touch $@

$(JAVASCRIPT)/node_modules $(AGENTS)/node_modules: %/node_modules: %/package-lock.json
	@cd $* && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

console: $(CONSOLE)  ## build the web console if its sources have changed

$(CONSOLE): $(CONSOLE_SOURCES) | console/node_modules
	@cd console && npm run --silent build

console/node_modules: console/package-lock.json
	@command -v npm > /dev/null || { echo "npm is not installed."; exit 1; }
	@cd console && $(NPM)
	@touch $@

run: setup  ## serve on http://127.0.0.1:8787; the first start prints a key
	@$(BIN)/penstock models pull --optional --quiet
	@if command -v npm > /dev/null; then $(MAKE) --silent --no-print-directory console || echo "The console was not built. Everything else works."; \
	else echo "npm is not installed, so the console is not built; /console explains how. Everything else works."; fi
	@$(BIN)/penstock serve

test: setup  ## run every check and every test, like CI
	@$(MAKE) --no-print-directory --jobs 3 lint run-tests check-layers check-console check-types

run-tests: console fetch-browser pull-weights compile-tests  # beside the checks; more processes than cores, since many tests wait
	@$(BIN)/pytest --numprocesses 4 --dist worksteal

test-long: setup-dev pull-weights  ## run the tests that take long: ordeals, fuzzers, storms
	@$(BIN)/pytest --numprocesses 2 --dist worksteal -m long

demo: setup-dev pull-weights  ## show it: nine clients, a pipeline on dying machines, a crowd, proof of origin; ends with receipts
	@$(BIN)/python tools/demo/run.py

simulate: setup-dev  ## simulate gateways, stores and faults: SEEDS=1-500, SEED=7, MINUTES=10; STORE, ONLY and sizes
	@PYTHONPATH=tests:tests/support $(BIN)/python -m simulation.run $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) \
	$(if $(MINUTES),--minutes $(MINUTES)) $(if $(FIRST),--first $(FIRST)) $(if $(STORE),--store $(STORE)) $(if $(JOBS),--jobs $(JOBS)) $(if $(CHAT),--chat $(CHAT)) $(if $(PIPELINES),--pipelines $(PIPELINES)) \
	$(if $(SECONDS),--seconds $(SECONDS)) $(if $(PROCESSES),--processes $(PROCESSES)) $(if $(ONLY),--only '$(ONLY)') \
	$(if $(FAILURES),--failures $(FAILURES))

teeth: setup-dev  ## plant faults in the code, and show that the simulation notices each: FAULTS=…, SEEDS=2000, STORE
	@PYTHONPATH=tests:tests/support $(BIN)/python -m simulation.planted.teeth $(FAULTS) $(if $(SEEDS),--seeds $(SEEDS)) \
	$(if $(STORE),--store $(STORE)) $(if $(PROCESSES),--processes $(PROCESSES))

pull-weights: setup-dev
	@$(BIN)/penstock models pull --quiet

fetch-browser: setup-dev  # for the console's tests, unless one is installed
	@$(BIN)/python tools/console/browser.py >/dev/null

compile-tests: $(VENV)/.tests-compiled  # if they have changed, or each of pytest's processes does it for itself

$(VENV)/.tests-compiled: $(VENV)/.installed-dev $(TEST_SOURCES)
	@$(BIN)/pytest --collect-only -qq >/dev/null 2>&1 || true
	@touch $@

check: lint check-types check-layers check-console  ## check style, formatting, types, layers, sizes and names

lint: setup-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python tests/sizes.py

check-types: $(VENV)/.types-checked  # if the sources have changed: it takes a minute of both cores

$(VENV)/.types-checked: $(VENV)/.installed-dev pyproject.toml $(SOURCES)
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then nice $(BIN)/pyright; \
	else echo "Types are checked on Python 3.11 only: newer ones get other releases of NumPy, with other types."; fi
	@touch $@

check-layers: setup-dev
	@$(BIN)/lint-imports

check-console: console/node_modules
	@cd console && npm run --silent check

format: setup-dev  ## format, and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@cd console && npm run --silent format

new-vendor:  ## create a vendor from the template: make new-vendor NAME=acme
	@test -n "$(NAME)" || { echo "Give it a name: make new-vendor NAME=acme"; exit 1; }
	@$(PYTHON) tools/vendors/new_vendor.py "$(NAME)"

BENCHES := chat.chat chat.doors chat.streams jobs.jobs storage.assets jobs.growth engines.engines
bench: setup-bench  ## measure chat and its doors beside peers, streams, jobs, assets, growth, engines; tables and plots in bench/results
	@for question in $(BENCHES); do $(BIN)/python -m bench.$$question || exit 1; done

bench-guard: setup-bench  ## fail if a chat request costs 1.3 times the recorded cost, beside a bare proxy
	@$(BIN)/python -m bench.chat.guard

setup-bench: setup-dev
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r bench/requirements.lock

docs: $(VENV)/.installed-docs  ## build and check the docs as a site in site/
	@$(BIN)/python tools/docs/docs_site.py

$(VENV)/.installed-docs: docs/requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r docs/requirements.lock
	@touch $@

pin-images:  ## pin the images of Dockerfile and compose file to their digests; needs docker
	@$(PYTHON) tools/release/pin_images.py

lock: setup-dev  ## resolve the dependencies again and write the locks
	@$(BIN)/uv pip compile pyproject.toml --extra local --extra otel --group build --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --upgrade -o requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --extra local --extra otel --group dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -c requirements.lock -o requirements-dev.lock
	@echo "matplotlib>=3.10" | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -c requirements-dev.lock -o bench/requirements.lock
	@echo "zensical>=0.0.73" | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -c requirements-dev.lock -o docs/requirements.lock

clean:  ## remove everything that the other targets made
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist site .cache bench/results bench/.cache $(JAVASCRIPT)/node_modules $(AGENTS)/node_modules console/node_modules src/penstock/console
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
