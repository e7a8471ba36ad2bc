# Kavka's commands. Only Python 3.11 or newer and make are needed; `make` alone shows the day of a developer.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# A set-up is done again when what it was made from has changed: its stamp carries the checksum of the files.
MEMBERS := pyproject.toml broker/pyproject.toml operator/pyproject.toml cli/pyproject.toml audit/pyproject.toml
key      = $(firstword $(shell cat $(1) $(MEMBERS) requirements/build.txt requirements/lock.txt | cksum))
RUN     := $(VENV)/stamps/run-$(call key,requirements/run.in)
DEV     := $(VENV)/stamps/dev-$(call key,requirements/dev.in requirements/run.in)
PIP     := PYTHONWARNINGS=ignore $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo setup check test test-all sim chaos bench e2e kafka-tests format generate package compat requirements clean

help: ## this page
	@echo 'The day of a developer:'
	@$(call targets,[1-3])
	@echo '  .venv/bin/pytest tests/unit/quota -k most_specific   one test alone; a failing one says its own line'
	@$(call targets,[4-9])
	@echo 'Then commit: one step, its title at most 72 characters that say what changes for a reader.'
	@echo
	@echo 'And besides:'
	@$(call targets,[^1-9])

# What is written behind `##`, of the targets whose text begins so; a figure tells the order, and is not shown.
targets = awk -F ':.*\#\# ' '/^[a-z0-9-]+:.*\#\# $(1)/ { print $$2 "@" $$1 }' $(firstword $(MAKEFILE_LIST)) | sort -t @ -k 1.1,1.2n -s \
    | awk -F @ '{ sub(/^[1-9] /, "", $$1); printf "  make %-13s %s\n", $$2, $$1 }'

demo: $(RUN) ## three brokers, real clients, a kill -9, a roll under load, a quota; under a minute
	@$(BIN)/kavka demo

setup: $(DEV) ## 1 the virtual environment with everything for check and test

check: $(DEV) ## 4 lint, types, layers, tidy, the quick unit and property tests, the measures; before every commit
	@$(BIN)/python -m tools.run_tests check

test: $(DEV) ## 5 check, and every suite that this machine can run, but the long tests; before a branch is merged
	@$(BIN)/python -m tools.run_tests test

test-all: $(DEV) ## 5 every test, the long ones too; before an issue is called resolved
	@$(BIN)/python -m tools.run_tests test-all

sim: $(DEV) ## 6 clusters under faults drawn from seeds: SEEDS=1000 FIRST=1 JOBS=2 ARGS="--nodes 3 --story"
	@$(BIN)/python -m tests.sim --seeds $(or $(SEEDS),100) --first $(or $(FIRST),1) --jobs $(or $(JOBS),1) $(ARGS)

chaos: $(DEV) ## 7 break real processes under load and judge what clients saw: MINUTES=30 SEED=1 NODES=3
	@$(BIN)/python -m tests.chaos --minutes $(or $(MINUTES),30) --seed $(or $(SEED),1) --nodes $(or $(NODES),3) $(ARGS)

bench: $(DEV) ## 8 Kavka beside Apache Kafka, same clients; minutes, needs a JDK: ARGS="--section latency"
	@$(BIN)/python -m bench $(ARGS)

e2e: $(DEV) ## 9 images, and pods of them; needs root: CLUSTER=own|kind|kubeconfig ARGS="--keep -k broker"
	@$(BIN)/python -m e2e $(ARGS)

kafka-tests: $(DEV) ## 7 Apache Kafka's own compiled tests on Kavka, all of the allow list: ARGS="--product both Transact"
	@$(BIN)/python -m tests.conformance.kafka_own $(ARGS)

format: $(DEV) ## 2 write the code as ruff wants it
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .

generate: $(DEV) ## 3 rewrite what is generated: messages, resource definitions, COMPAT.md; after a new key or config
	@$(BIN)/python -m tools.generate

package: $(DEV) ## wheels and source archives of every distribution, in dist/
	@$(BIN)/python -m tools.package

compat: $(DEV) ## rewrite COMPAT.md from the registered handlers
	@$(BIN)/python -m tools.compat_table

requirements: $(DEV) ## lock what requirements/*.in name again, with hashes
	@for lock in build lock; do $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url \
	    --no-header --no-annotate --allow-unsafe --universal --python-version 3.11 --output-file requirements/$$lock.txt \
	    $$([ $$lock = build ] && echo requirements/build.in || ls requirements/*.in | grep -v build.in); done

clean: ## remove what was built here; downloads in the cache stay
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Kavka needs Python 3.11 or newer; name one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

define install
	@echo "setting up $(VENV) from requirements/$(1).in"
	@$(PIP) install --require-hashes --requirement requirements/build.txt
	@$(PIP) install --require-hashes --constraint requirements/lock.txt --requirement requirements/$(1).in
	@$(PIP) install --no-build-isolation --no-deps --editable broker --editable operator --editable cli --editable audit --editable .
	@# What pip does for packages, but not for editable ones: without bytecode a broker starts in twice the time.
	@$(BIN)/python -m compileall -q -j 0 broker/kavka_broker operator/kavka_operator cli audit/kavka_audit
	@mkdir -p $(VENV)/stamps && rm -f $(VENV)/stamps/$(1)-* && touch $@
endef

$(RUN): | $(BIN)/python
	$(call install,run)

$(DEV): | $(BIN)/python
	$(call install,dev)
