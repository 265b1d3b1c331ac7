#!/usr/bin/env bash
# Installs the named Debian packages where that is possible, otherwise says which tests go without them:
# debian-packages.sh PACKAGE...
set -euo pipefail

missing=()
for package in "$@"; do
    case $package in
    chromium) program=chromium ;;
    poppler-utils) program=pdftotext ;;
    *) program=$package ;;
    esac
    command -v "$program" >/dev/null || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "installing for the tests: ${missing[*]}"
    if { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
        "${missing[@]}"; } >/dev/null; then
        exit 0
    fi
    echo "could not be installed: ${missing[*]}"
fi
echo "skipped: the tests that need ${missing[*]} (as root on Debian they are installed by themselves)"
