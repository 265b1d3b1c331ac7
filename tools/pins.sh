#!/usr/bin/env bash
# Resolves the dependencies of pyproject.toml into requirements/*.txt: exact versions with their hashes, for all
# systems, naming no package index. Needs uv, which is fetched into a temporary environment.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
.venv/bin/python -m venv "$scratch"
"$scratch/bin/pip" install --quiet uv

compile() {
    "$scratch/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
        --no-emit-index-url --no-emit-find-links --no-annotate --upgrade pyproject.toml requirements/build.in "$@"
}

compile --all-extras --output-file requirements/dev.txt
# The same versions, fewer packages.
compile --extra export --constraints requirements/dev.txt --output-file requirements/run.txt
