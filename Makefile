# Everything that is made lives under build/. What all checkouts share is in ~/.cache/holdfast-lab and
# ~/.cache/holdfast-sanity. `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := build/venv
PY := $(VENV)/bin/python
NODES ?= 3
SIMULATED ?= 0
# What pytest is to run, and how: make unit ARGS='-k drain -x'
ARGS ?=
# How many random histories the model plays; empty for its default, or for all histories of a scope.
HISTORIES ?=
RELEASE_DATE ?= $(shell date +%F)

# Last, the directory in which Go's installation guide puts it: the PATH of a CI job often lacks it.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH):/usr/local/go/bin
# Bytecode is under build/, too. Without it, each Ansible process compiles the collection again: 20 % more CPU time.
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/cache/pycache
unexport PYTHONDONTWRITEBYTECODE
export HOLDFAST_LAB ?= $(CURDIR)/build/lab
LAB := PYTHONPATH=tests $(PY) -m lab
STAGE := $(PY) tools/stages.py

.PHONY: help venv lint format tables sanity unit integration long matrix molecule lab lab-setup lab-down demo pictures test test-all measure mutants mutants-by-hand mutants-rules model bench bench-venv eda-venv build docs docs-venv changelog clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: ## build/venv: Ansible, the test tools, and the collection on their path
	@tools/venv.sh $(VENV) requirements/test.txt --constraint requirements/constraints.txt

lint: venv ## Style, types, YAML, documentation, changelog
	@$(STAGE) lint

format: venv ## Let ruff put right what it can
	@ruff check --fix --quiet . || true
	@ruff format --quiet .

tables: venv ## Write the tables of the READMEs from the documentation
	@$(PY) tools/tables.py

sanity: venv ## ansible-test sanity
	@$(STAGE) sanity

unit: venv ## Unit tests (ARGS='-k drain -x')
	@$(PY) -m pytest tests/unit tests/lab $(ARGS)

integration: venv ## Tests against the lab, which is started if it is not up (ARGS=...)
	@$(STAGE) --pytest-args='$(ARGS)' integration

long: venv ## Integration tests that are not in `make test`: variants, and runs that are killed and paused
	@$(STAGE) --pytest-args='$(ARGS)' long

matrix: venv ## Sanity and the core of the integration tests with the oldest and the newest versions (ARGS=oldest)
	@$(PY) tools/matrix.py $(ARGS)

molecule: venv ## Molecule scenarios on the lab, which is started if it is not up
	@$(STAGE) molecule

test: venv ## Lint, sanity, unit, integration, one Molecule scenario; makes the lab and removes it
	@$(STAGE) test

test-all: venv ## Everything: also the long tests, every Molecule scenario, more examples
	@$(STAGE) test-all

measure: venv ## Write the tables of docs/testing.md from what the last run of the tests left
	@$(PY) tools/measure.py

lab: venv ## Start the lab: make lab NODES=3 SIMULATED=0
	@$(LAB) up --nodes $(NODES) --simulated $(SIMULATED)

lab-setup: venv ## Build what such a lab is made of, without starting it
	@$(LAB) setup --nodes $(NODES) --simulated $(SIMULATED)

lab-down: venv ## Remove the lab
	@$(LAB) down

demo: venv ## A rolling reboot of three real nodes; leaves build/demo/report.html and report.json
	@$(PY) tests/demo/demo.py

pictures: venv ## Make docs/images from real runs: the demo, a run with a failure, a failover
	@$(PY) tests/demo/pictures.py

mutants: mutants-by-hand mutants-rules ## Break one rule at a time, and see that a test notices

mutants-by-hand: venv ## The mutants that are made by hand (ARGS=--unit for those that need no lab)
	@$(PY) tests/mutants/run.py $(ARGS)

mutants-rules: venv ## mutmut on the pure rules (ARGS=ledger_rules for one module)
	@$(PY) tests/mutants/rules.py $(ARGS)

model: venv ## Histories of runs that die, race and revive: HISTORIES=10000 random ones, or ARGS='--runs 2 --faults death' for all
	@PYTHONPATH=tests:build/collections $(PY) -m model $(if $(HISTORIES),--histories $(HISTORIES)) $(ARGS)

bench-venv: venv ## build/venv-peers: what the benchmarks compare with
	@tools/venv.sh build/venv-peers requirements/peers.txt --constraint requirements/constraints.txt

eda-venv: ## build/venv-eda: ansible-rulebook, which the tests of rulebooks make when they need it
	@tools/eda.sh build/venv-eda

bench: bench-venv ## Side by side with others
	@$(PY) benchmarks/run.py $(ARGS)
	@[ -n "$(ARGS)" ] || $(PY) benchmarks/agent_latency.py
	@[ -n "$(ARGS)" ] || $(PY) benchmarks/failover.py

build: venv ## The collection artefact: build/holdfast-kubernetes-VERSION.tar.gz
	@$(VENV)/bin/ansible-galaxy collection build --force --output-path build .

docs-venv: ## build/venv-docs: Sphinx and antsibull-docs
	@tools/venv.sh build/venv-docs requirements/docs.txt --constraint requirements/constraints.txt

docs: docs-venv ## The documentation site: build/site/index.html
	@build/venv-docs/bin/python tools/docs.py
	@echo build/site/index.html

changelog: venv ## Write CHANGELOG.md from changelogs/fragments and the plugins, for the version in galaxy.yml
	@antsibull-changelog release --update-existing --reload-plugins --refresh-fragments --date $(RELEASE_DATE) \
		--version "$$(sed -n 's/^version: *//p' galaxy.yml)"

clean: ## Remove build/, after taking the lab down
	@if [ -x $(PY) ] && [ -d build/lab ]; then $(LAB) down; fi
	@rm -rf build
