#!/usr/bin/env bash
# Mutation check of the arithmetic in Rust, for `make mutants`; installs cargo-mutants into target/ where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH=$PATH:$PWD/target/tools/bin
command -v cargo-mutants >/dev/null || cargo install cargo-mutants --locked --root target/tools
exec .venv/bin/python tools/mutants_rust.py
