#!/usr/bin/env bash
# Cross-compiles the Rust crates' tests for aarch64 and runs them under emulation:
#
#   test-aarch64.sh [--if-possible] [arguments of cargo test, instead of --tests --workspace --exclude latlab-python]
#
# As root on Debian it installs what it needs. Anywhere else, and with --if-possible or without, missing programs
# are named and no error; a failing test always is. The user's Rust toolchain is used if it has the aarch64
# standard library, and is never changed; otherwise Debian's /usr/bin/rustc compiles.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
sysroot=/usr/aarch64-linux-gnu
least_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

[[ ${1-} == --if-possible ]] && shift

if [[ $(uname -m) == aarch64 ]]; then
    echo "this machine is aarch64: nothing to emulate"
    [[ $# -gt 0 ]] || set -- --locked --tests --workspace --exclude latlab-python
    exec cargo test "$@"
fi

# at_least VERSION LEAST
at_least() {
    [[ $(printf '%s\n' "$1" "$2" | sort --version-sort | head -n 1) == "$2" ]]
}

# Whether compiler $1 is new enough and has the target's standard library.
compiles_for_target() {
    local version library
    version=$("$1" --version 2>/dev/null | cut -d ' ' -f 2) && at_least "$version" "$least_rust" || return 1
    library=$("$1" --print target-libdir --target "$target" 2>/dev/null) || return 1
    compgen -G "$library/libstd-*.rlib" >/dev/null
}

# The first compiler that will do: the user's, then Debian's.
compiler() {
    local candidate
    for candidate in "$(command -v rustc || true)" /usr/bin/rustc; do
        if [[ -n $candidate ]] && compiles_for_target "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

emulator() {
    command -v qemu-aarch64-static || command -v qemu-aarch64
}

# What is missing, one line each, with the Debian packages that have it.
missing() {
    cargo --version >/dev/null 2>&1 || echo "cargo (https://rustup.rs)"
    command -v aarch64-linux-gnu-gcc >/dev/null || echo "a linker for aarch64 (gcc-aarch64-linux-gnu)"
    [[ -e $sysroot/lib/libc.so.6 && -e $sysroot/lib/crt1.o ]] || echo "aarch64's C library (libc6-dev-arm64-cross)"
    emulator >/dev/null || echo "the emulator qemu-aarch64 (qemu-user-static)"
    compiler >/dev/null || echo "Rust $least_rust or newer with the standard library of $target \
(rustc-web and libstd-rust-web-dev:arm64, or: rustup target add $target)"
}

# apt-get, waiting for others that install at the same time. Removes nothing: where a package would displace one
# that the user chose, the tests are skipped instead.
apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

# The newest version that apt would install, without Debian's suffixes; empty if there is none.
available() {
    apt-cache policy "$1" | sed -n 's/^ *Candidate: \([0-9][0-9.]*\).*/\1/p'
}

install() {
    apt update
    local packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static) rust added=
    if ! compiler >/dev/null; then
        if ! dpkg --print-foreign-architectures | grep -qx arm64; then
            dpkg --add-architecture arm64
            added=yes
            apt update
        fi
        # bookworm's rustc is too old and its rustc-web is kept new for the browsers; later releases may differ.
        for rust in rustc-web:libstd-rust-web-dev rustc:libstd-rust-dev; do
            if at_least "$(available "${rust%:*}")" "$least_rust"; then
                packages+=("${rust%:*}" "${rust#*:}:arm64")
                break
            fi
        done
    fi
    echo "installing for the aarch64 tests: ${packages[*]}"
    apt install -y --no-install-recommends --no-remove "${packages[@]}" && return
    [[ -z $added ]] || dpkg --remove-architecture arm64 || true
    return 1
}

is_debian() {
    # shellcheck source=/dev/null
    [[ -r /etc/os-release ]] && (source /etc/os-release && [[ ${ID-} == debian ]])
}

if [[ -n $(missing) ]] && [[ $(id -u) -eq 0 ]] && is_debian; then
    install || echo "the packages could not be installed (see above)"
fi
if [[ -n $(missing) ]]; then
    echo "skipped: the aarch64 tests. Missing:"
    missing | sed 's/^/  /'
    [[ $(id -u) -eq 0 ]] && is_debian || echo "as root on Debian this script installs all but cargo by itself"
    exit 0
fi

rustc=$(compiler)
if [[ $rustc == /usr/bin/rustc ]]; then
    # Both from the same release: rustdoc reads the compiler's metadata.
    export RUSTC=$rustc RUSTDOC=/usr/bin/rustdoc
fi
# Apart from the other builds: another compiler would make cargo rebuild those every time.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/aarch64
export CARGO_TARGET_DIR
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$PWD/tools/run-aarch64.sh
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER
EMULATOR=$(emulator)
# Where libc6:arm64 is installed (with Debian's standard library), programs find it by themselves; a loader from the
# cross compiler's folder would join it with that libc, and the first thread to be started hangs.
if [[ ! -e /lib/ld-linux-aarch64.so.1 ]]; then
    EMULATOR+=" -L $sysroot"
fi
export EMULATOR
# Code for the machine that compiles would be an unknown CPU to the other compiler.
unset RUSTFLAGS CARGO_BUILD_RUSTFLAGS
# Lines in backtraces and quick second builds are for the native tests.
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0

echo "aarch64 tests: $("$rustc" --version), run by $(emulator)"
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
