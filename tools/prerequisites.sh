#!/usr/bin/env bash
# Says what is missing before anything is built: prerequisites.sh PYTHON
set -euo pipefail

python=$1

fail() {
    printf 'latlab cannot be built here: %s\n' "$@" >&2
    exit 1
}

command -v "$python" >/dev/null ||
    fail "no $python. It needs CPython 3.11 or newer (Debian: apt-get install python3 python3-venv)."

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is $("$python" -V). It needs CPython 3.11 or newer; name another one with make PYTHON=python3.12."

"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv"

cargo --version >/dev/null 2>&1 ||
    fail "no working cargo. Install Rust 1.91 or newer from https://rustup.rs, or make the wheel on a machine that has
it (make wheel) and install that here: it needs no build tools."

if ! command -v cc >/dev/null; then
    fail "no C linker. On Debian and Ubuntu: apt-get install gcc libc6-dev"
fi
