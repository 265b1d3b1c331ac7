#!/usr/bin/env bash
# Checks every shell script of the project, where shellcheck is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v shellcheck >/dev/null; then
    echo "skipped: shellcheck is not installed (Debian: apt-get install shellcheck)"
    exit 0
fi
mapfile -t scripts < <(git grep -lE '^#!.*\b(ba)?sh$' -- tools .ci 2>/dev/null || grep -rlE '^#!.*\b(ba)?sh$' tools .ci)
shellcheck --severity=style --external-sources --check-sourced "${scripts[@]}"
