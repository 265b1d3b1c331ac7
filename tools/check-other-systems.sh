#!/usr/bin/env bash
# Type-checks every crate for macOS and Windows, with the least Rust that Cargo.toml promises. Nothing is linked or run.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/least-rust.sh

targets=(aarch64-apple-darwin x86_64-pc-windows-gnu)
least_rust 'the type check for macOS and Windows' "${targets[@]}"

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/other-systems CARGO_INCREMENTAL=0
# ring's C code needs no compiler where nothing is linked, nor does the binding crate need an interpreter. The lints
# are `make lint`'s, of the code for Linux.
export CC=true AR=true PYO3_NO_PYTHON=1 RUSTFLAGS=-Awarnings
cargo check --quiet --locked --workspace --exclude latlab-recording "${targets[@]/#/--target=}"
echo "type-checked with $(rustc --version): ${targets[*]}"
