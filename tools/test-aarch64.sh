#!/usr/bin/env bash
# Cross-compiles the Rust crates' tests for aarch64 and runs them under emulation:
#
#   test-aarch64.sh [--if-possible] [arguments of cargo test, instead of --tests --workspace --exclude latlab-python]
#
# It runs them with the least Rust that Cargo.toml promises. What it needs is fetched or installed as the two scripts
# say that it sources and calls; where it cannot be, one line says so and no error. A failing test always is one.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/least-rust.sh

target=aarch64-unknown-linux-gnu

[[ ${1-} == --if-possible ]] && shift

if [[ $(uname -m) == aarch64 ]]; then
    echo "this machine is aarch64: nothing to emulate"
    [[ $# -gt 0 ]] || set -- --locked --tests --workspace --exclude latlab-python
    exec cargo test "$@"
fi

tools/debian-packages.sh --or-fail gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static || exit 0
least_rust 'the aarch64 tests' "$target"

# Apart from the other builds: another compiler would make cargo rebuild those every time.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/aarch64
export CARGO_TARGET_DIR
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$PWD/tools/run-aarch64.sh
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER
EMULATOR=$(command -v qemu-aarch64-static)
# Where libc6:arm64 is installed, programs find it by themselves. Elsewhere they name the cross compiler's loader and libraries: with the
# emulator's option for that, every path of the tests, also /, would be looked for in its folder first.
if [[ ! -e /lib/ld-linux-aarch64.so.1 ]]; then
    sysroot=/usr/aarch64-linux-gnu/lib
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Clink-arg=-Wl,--dynamic-linker=$sysroot/ld-linux-aarch64.so.1,-rpath=$sysroot"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS
fi
export EMULATOR
# Code for the machine that compiles would be an unknown CPU to the other compiler.
unset RUSTFLAGS CARGO_BUILD_RUSTFLAGS
# Lines in backtraces and quick second builds are for the native tests.
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0

echo "aarch64 tests: $(rustc --version), run by $EMULATOR"
if [[ $# -gt 0 ]]; then
    export STUDIES=yes
else
    # What holds for any input is tried natively with 256 of them; here a quarter shows what the architecture changes.
    export PROPTEST_CASES=${PROPTEST_CASES-64} LATLAB_FUZZ=${LATLAB_FUZZ-1000}
    # All crates at once: apart, each selection would have its libraries compiled with other features.
    set -- --locked --tests --workspace --exclude latlab-python
fi
cargo test --no-fail-fast --target "$target" "$@" || {
    echo "failed: the aarch64 tests" >&2
    exit 1
}
