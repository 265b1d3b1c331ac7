# Everything happens in .venv and target/: nothing outside this folder is changed, except by `make test` as root on
# Debian, which installs what the tests need. Stamp files in .venv say what is up to date.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# cargo and maturin are started without make's flags: its -j describes this file's recipes, not theirs.
ALONE := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL
CARGO := $(ALONE) cargo

# rustup finds its toolchains through HOME. With another HOME (a service account, a clean-room build) those that
# stand beside the cargo on the PATH are used.
ifeq ($(shell cargo --version 2>/dev/null),)
BESIDE_CARGO := $(abspath $(dir $(shell command -v cargo))../../.rustup)
ifneq ($(wildcard $(BESIDE_CARGO)/toolchains),)
export RUSTUP_HOME := $(BESIDE_CARGO)
endif
endif

# What measured stands in every run file; Rust code cannot ask git itself.
LATLAB_COMMIT := $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
ifneq ($(LATLAB_COMMIT),)
export LATLAB_COMMIT
endif

# The binding crate is compiled against the interpreter of .venv, whoever calls cargo.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

# Most tests of Python wait for processes that measure for a given time: as many more as there are CPUs.
SIDE_BY_SIDE := $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 4 ? n + 1 : 4)))

RUST_SOURCES := Cargo.toml Cargo.lock pyproject.toml \
                $(shell find crates \( -name '*.rs' -o -name Cargo.toml \) -not -path '*/target/*' 2>/dev/null)

.PHONY: help build run wheel check test test-all lint docs kills fuzz flaky mutants times bench test-aarch64 generate pins clean \
        rust-tests native python-tests emulated optimised other-systems some-kills some-fuzz lints

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---------------------------------------------------------------------------------------------- the environment

$(VENV)/.made:
	@tools/prerequisites.sh '$(PYTHON)'
	'$(PYTHON)' -m venv $(VENV)
	@touch $@

$(VENV)/.run: requirements/run.txt | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --require-hashes -r $<
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	$(BIN)/python -m pip install --quiet --require-hashes -r $<
	@touch $@

$(VENV)/.extension: $(RUST_SOURCES) $(VENV)/.run
	@echo 'building the measuring core (release; some minutes the first time)'
	PIP_QUIET=1 VIRTUAL_ENV='$(CURDIR)/$(VENV)' $(ALONE) $(BIN)/maturin develop --release --locked --quiet
	@touch $@

build: $(VENV)/.extension ## bring .venv up to date with the sources

# ------------------------------------------------------------------------------------------------- for everybody

run: build ## measure this machine: prints the ladder, saves one run file and one report
	@$(BIN)/latlab measure

wheel: $(VENV)/.run ## dist/*.whl, for machines like this one without Rust
	rm -rf dist
	$(ALONE) $(BIN)/maturin build --release --locked --out dist
	@printf '\n%s\n' 'install it with: python3 -m pip install dist/*.whl'

# ------------------------------------------------------------------------------------------------ for developers

# No crate's documentation has examples to run.
RUST_TESTS := $(CARGO) test --workspace --tests --locked
PYTEST     := $(BIN)/python -m pytest
AT_ONCE    := --numprocesses=$(SIDE_BY_SIDE) --dist=loadscope --no-loadscope-reorder

# Tests of Python run on the core that is there, for a new one takes a minute: `make build`.
check: $(VENV)/.dev $(if $(wildcard python/latlab/_core*.so),,build) ## formatting, lints, types, and quick tests of what changed: measures nothing
	@$(MAKE) --no-print-directory lints
	$(ALONE) $(BIN)/python tools/check.py

rust-tests: | $(VENV)/.made
	$(RUST_TESTS) --no-run

test: ## all tests of this machine; says what it has to skip
# Side by side: compiling often comes down to one crate on one CPU.
	@$(MAKE) --no-print-directory --jobs=3 build rust-tests $(VENV)/.dev
	@tools/debian-packages.sh chromium poppler-utils fio iproute2
	@failed=0; $(MAKE) --no-print-directory --jobs=2 python-tests native || failed=1; \
	cat $(VENV)/native.log; \
	exit $$failed
	@echo 'left to make test-all: emulated aarch64, macOS and Windows, the strongest optimiser, 40 kills, 100,000 random inputs'

python-tests:
	$(PYTEST) $(AT_ONCE)

# Many of the tests wait: these run beside those of Python.
native:
	@echo 'beside these the tests of Rust; what they say comes at the end'
	@$(RUST_TESTS) --no-fail-fast >$(VENV)/native.log 2>&1

test-all: ## make test, and what takes long: emulated aarch64, other systems, the optimiser, kills, random inputs
	@$(MAKE) --no-print-directory test
	@failed=0; $(MAKE) --no-print-directory --jobs=2 --keep-going emulated optimised some-kills some-fuzz other-systems || failed=1; \
	cat $(VENV)/aarch64.log; \
	exit $$failed

emulated:
	@echo 'beside these the aarch64 tests under emulation; what they say comes at the end'
	@$(ALONE) tools/test-aarch64.sh --if-possible >$(VENV)/aarch64.log 2>&1

optimised: build
	@echo 'every probe with the optimiser at its strongest: no work may be removed'
	$(CARGO) test --release --package latlab-python --test optimised --locked

other-systems:
	@$(ALONE) tools/check-other-systems.sh

# One after another: each takes all the CPUs that it can get.
some-kills: optimised
	@$(MAKE) --no-print-directory kills LATLAB_KILLS=40

some-fuzz: some-kills
# Of eleven such tests in Rust each gets so many, those of Python a share of them.
	LATLAB_FUZZ=10000 $(RUST_TESTS) fuzz
	LATLAB_FUZZ=10000 $(PYTEST) $(AT_ONCE) -k fuzz

lints: | $(VENV)/.dev
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

lint: build $(VENV)/.dev ## formatting, lints, types, generated files
	@$(MAKE) --no-print-directory lints
	$(CARGO) clippy --workspace --test optimised --locked -- -D warnings
	@tools/shellcheck.sh
	$(BIN)/python tools/generate.py --check

docs: build $(VENV)/.dev ## docs/_build/html
	$(BIN)/python tools/generate.py
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo 'docs/_build/html/index.html'

kills: export LATLAB_KILLS ?= 300
kills: build $(VENV)/.dev ## 300 kill -9 of measure, explain and serve: what is left (ten minutes)
	$(PYTEST) -q tests/robust/test_many_kills.py

fuzz: export LATLAB_FUZZ ?= 1000000
fuzz: build $(VENV)/.dev ## every fuzz test with a million inputs (some hours)
	$(CARGO) test --release --workspace --exclude latlab-python --tests --locked fuzz
	$(PYTEST) $(AT_ONCE) -k fuzz --override-ini=timeout=0

flaky: build $(VENV)/.dev ## each test that measures, twenty times beside a busy loop on every CPU (an hour or more)
	$(ALONE) $(BIN)/python tools/flaky.py

mutants: build $(VENV)/.dev ## whether the tests catch changed arithmetic, in Rust and in Python (an hour)
	tools/mutants.sh
	$(BIN)/python tools/mutants.py

times: ## what building and testing take in a fresh clone: benches/results/times.csv, CONTRIBUTING.md (an hour)
	'$(PYTHON)' tools/times.py

bench: build ## what the instrument itself costs on this machine
	$(CARGO) bench --workspace --exclude latlab-python --locked --bench '*'

test-aarch64: ## the Rust crates' tests, cross-compiled and run under emulation
	$(ALONE) tools/test-aarch64.sh

generate: build $(VENV)/.dev ## write again the schema and the reference pages
	$(BIN)/python tools/generate.py

pins: $(VENV)/.dev ## resolve the dependencies again into requirements/*.txt
	tools/pins.sh

clean: ## remove everything that was built
	rm -rf $(VENV) target dist build docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f python/latlab/_core*.so
