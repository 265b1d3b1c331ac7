#!/usr/bin/env bash
# Installs Debian packages that tests need:
#
#   debian-packages.sh [--or-fail] PACKAGE...
#
# As root, with apt-get; what is installed and its size are said before. Where it cannot be, one line says which tests
# go without and why. That is an error only with --or-fail.
set -euo pipefail

failure=0
[[ $1 == --or-fail ]] && failure=1 && shift

missing=()
tests=()
for package in "$@"; do
    # What needs it, and the program or file by which it is known on every system.
    case $package in
    chromium) known=chromium need='the tests in a browser' ;;
    poppler-utils) known=pdftotext need='the tests that read a PDF' ;;
    fio) known=fio need='the test of the fio commands' ;;
    iproute2) known=ip need='the tests of network faults' ;;
    gcc-aarch64-linux-gnu) known=aarch64-linux-gnu-gcc need='the aarch64 tests' ;;
    libc6-dev-arm64-cross) known=/usr/aarch64-linux-gnu/lib/crt1.o need='the aarch64 tests' ;;
    qemu-user-static) known=qemu-aarch64-static need='the aarch64 tests' ;;
    *) echo "debian-packages.sh knows no package $package" >&2 && exit 2 ;;
    esac
    [[ -e $known ]] || command -v "$known" >/dev/null && continue
    missing+=("$package")
    [[ " ${tests[*]-} " == *"$need"* ]] || tests+=("${tests:+and }$need")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

# Waits for others that install at the same time. Removes nothing: where a package would displace one that the user
# chose, the tests are skipped instead.
apt() {
    LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        --no-install-recommends --no-remove "$@" 2>&1
}

reason='only root can install them, with apt-get'
if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    # Lists that could not be fetched are no error: those of last time may do.
    apt update >/dev/null || true
    size=$(apt --assume-no install "${missing[@]}" | sed -n 's/^Need to get \(.*\) of archives\.$/\1/p' || true)
    echo "installing for ${tests[*]}: ${missing[*]} (${size:-an unknown size} to fetch)"
    log=$(apt -qq --yes install "${missing[@]}") && exit 0
    reason=$(grep -m 1 '^E: ' <<<"$log" || echo 'apt-get failed')
fi
echo "skipped: ${tests[*]}: no ${missing[*]} ($reason)"
exit "$failure"
