# Everything here sets itself up: a fresh clone and Python 3.11 or later are enough.

VENV   := .venv
BENCH  := .venv-bench
FLOORS := .venv-floors
SOAK   := .venv-soak
PYTHON := $(VENV)/bin/python
PIP    := -m pip --disable-pip-version-check --quiet install
PYTEST := $(PYTHON) -m pytest
CONSOLE := $(PYTHON) console/build.py
COMPILE = UV_CUSTOM_COMPILE_COMMAND="make lock" $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(UPGRADE)

# Tests start hundreds of processes: they load the code compiled, though the machine asks for none to be kept.
unexport PYTHONDONTWRITEBYTECODE

# $(call install,FILE): uv needs a quarter of pip's CPU time. pip is tried where uv fails: it alone reads pip.conf, where a mirror may be set.
install = @$(VENV)/bin/uv pip install --quiet --python $(PYTHON) --require-hashes -r $(1) || $(PYTHON) $(PIP) --require-hashes -r $(1)

# $(call rule,NAME,COMMAND): one line when it holds, everything the command said when it does not.
rule = @if said=$$($(2) 2>&1); then printf '  %-11sholds\n' '$(1)'; else printf '  %-11sBROKEN\n%s\n' '$(1)' "$$said"; exit 1; fi
# What failed beside other tests is tried once more, alone: hundreds of real processes share a machine that may stall.
AGAIN = echo 'Once more, one after another: what fails now is broken, what passes now has a race that is worth mending.' && \
	$(PYTEST) -x -n 0 --ignore=tests/rules --last-failed --last-failed-no-failures none $(ARGS)
# Two at a time, for most of them use one core; what is quick to tell comes first.
RULES := formatting lint layers types own console

.DEFAULT_GOAL := help
.PHONY: help run test setup check format soak floors bench docs lock screenshots build console-dev clean $(RULES:%=rule-%)

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.base ## start the engine; ARGS="--port 4700" passes options on
	@$(CONSOLE) || echo 'The engine starts without its console.' >&2
	@echo 'In another terminal: `source $(VENV)/bin/activate`, then `holdfast chat`; or `$(VENV)/bin/holdfast chat`.' >&2
	@$(VENV)/bin/holdfast up $(ARGS)

test: $(VENV)/.dev check ## the rules, then every test; ARGS="-k tenant" passes options on to pytest
	@$(CONSOLE) || test -z "$$CI"
	@$(PYTEST) --ignore=tests/rules $(ARGS) || { test $$? -eq 1 && $(AGAIN); }

setup: $(VENV)/.dev ## make .venv with all that work on the project needs

check: $(VENV)/.dev ## the rules: formatting, lint, types, layers, and our own
	@$(MAKE) --no-print-directory --jobs=2 $(RULES:%=rule-%)

rule-formatting:
	$(call rule,formatting,$(VENV)/bin/ruff format --check)

rule-lint:
	$(call rule,lint,$(VENV)/bin/ruff check --quiet)

rule-types:
	$(call rule,types,$(VENV)/bin/basedpyright --pythonpath $(PYTHON))

rule-layers:
	$(call rule,layers,$(VENV)/bin/lint-imports)

rule-console:
	$(call rule,console,{ $(CONSOLE) run --silent formatted && $(CONSOLE) run --silent types && $(CONSOLE) run --silent test; })

rule-own:
	$(call rule,our own,$(PYTEST) --quiet -n 1 tests/rules)

format: $(VENV)/.dev ## format the code, and mend what lint can mend
	@$(VENV)/bin/ruff format --quiet && $(VENV)/bin/ruff check --quiet --fix
	@$(CONSOLE) run --silent format

soak: $(VENV)/.dev $(SOAK)/.made ## the long forms of crash, load and state-machine tests
	@$(PYTEST) -m "soak and not alone" $(ARGS)
	@$(PYTEST) -m "soak and alone" -n 0 $(ARGS)

floors: $(VENV)/.dev ## whether the lowest versions that we allow work; ARGS="adk 3.12" tries some
	@$(PYTHON) -m tests.floors.floors $(ARGS)

bench: $(VENV)/.dev $(patsubst requirements/bench-%.txt,$(BENCH)/%/.made,$(wildcard requirements/bench-*.txt)) ## measure; ONLY=start runs bench/start.py alone
	@for file in bench/$(or $(ONLY),*).py; do echo "== $$file" && $(PYTHON) $$file $(ARGS) || exit 1; done

docs: $(VENV)/.dev ## write anew what is generated: the pages on requirements and settings, the CLI's operations, the console's types
	@$(PYTHON) -m holdfast.core.reference > docs/settings.md
	@$(PYTEST) -qqq --collect-only -n 0 -m "" --requirements-page=docs/requirements.md > /dev/null
	@$(PYTHON) -m holdfast.server.operation_table > src/holdfast/cli/operations.json
	@$(PYTHON) console/schema.py > console/src/api/schema.ts

lock: $(VENV)/.dev ## pin the dependencies with their hashes; UPGRADE=--upgrade takes the newest
	@$(COMPILE) requirements/installer.in -o requirements/installer.txt
	@$(COMPILE) pyproject.toml requirements/base.in -c requirements/installer.txt -o requirements/base.txt
	@$(COMPILE) pyproject.toml requirements/base.in requirements/dev.in -c requirements/base.txt -o requirements/dev.txt
	@for peer in requirements/soak.in requirements/mcp-1.9.in $(wildcard requirements/bench-*.in); do $(COMPILE) $$peer -o $${peer%.in}.txt || exit 1; done

screenshots: $(VENV)/.dev ## take the documentation's pictures of the console anew
	@$(CONSOLE) && $(PYTEST) -q tests/console --screenshots docs/images

build: $(VENV)/.dev ## the wheel and the source archive, in dist/
	@$(PYTHON) -m build --no-isolation --outdir dist .

console-dev: $(VENV)/.base ## the console as you change it, before an engine that runs (HOLDFAST_URL, else this machine's)
	@$(CONSOLE) run --silent dev

clean: ## remove all that was made here; your data lies elsewhere and stays
	@rm -rf $(VENV) $(BENCH) $(FLOORS) $(SOAK) build dist console/node_modules src/holdfast/server/static/console .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	@find src tests bench -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The stamps. Each is written last, so that an interrupted step is done again, and nothing is done twice.

$(VENV)/.made:
	@for python in python3 python3.13 python3.12 python3.11; do \
	  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && found=$$python && break; \
	done; \
	if [ -z "$$found" ]; then \
	  echo 'No Python 3.11 or later was found as python3, python3.13, python3.12 or python3.11. Install one (Debian 12, Ubuntu 24.04: apt-get install python3-venv).' >&2; exit 1; \
	fi; \
	if ! $$found -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "$$found cannot make virtual environments. Install what is missing (Debian, Ubuntu: apt-get install $$found-venv)." >&2; exit 1; \
	fi; \
	echo "Setting up $(VENV) (once; a minute or two)" >&2; \
	$$found -m venv --clear $(VENV) && touch $@

$(VENV)/.base: $(VENV)/.made requirements/installer.txt requirements/base.txt pyproject.toml
	@$(PYTHON) $(PIP) --no-compile --require-hashes -r requirements/installer.txt
	$(call install,requirements/base.txt)
	@$(PYTHON) $(PIP) --no-deps --no-build-isolation --no-index -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base requirements/dev.txt
	$(call install,requirements/dev.txt)
	@touch $@

$(SOAK)/.made: requirements/soak.txt $(VENV)/.dev
	@echo "Setting up $(@D)" >&2
	@$(PYTHON) -m venv --clear $(@D)
	@$(VENV)/bin/uv pip install --quiet --python $(@D)/bin/python --require-hashes -r $<
	@touch $@

$(BENCH)/%/.made: requirements/bench-%.txt $(VENV)/.dev
	@echo "Setting up $(@D)" >&2
	@$(PYTHON) -m venv --clear $(@D)
	@$(VENV)/bin/uv pip install --quiet --python $(@D)/bin/python --require-hashes -r $<
	@touch $@
