#!/usr/bin/env bash
# How cargo starts a test program under emulation, for test-aarch64.sh: $EMULATOR PROGRAM [ARGUMENT...]
set -euo pipefail

case ${1##*/} in
coverage-*)
    # Studies repeated thousands of times: arithmetic, the same on every machine, for which the emulator takes minutes.
    if [[ ${STUDIES-} != yes ]]; then
        echo "skipped: the studies of latlab-stats, whose unit tests do run"
        exit 0
    fi
    ;;
latlab_probes*)
    # One at a time: the emulator makes children by fork, which write-protects every page of the tests beside it, and
    # those that count page faults would count that. (posix_spawn proper copies no page tables.)
    export RUST_TEST_THREADS=1
    ;;
esac
# The emulator and its options are words.
# shellcheck disable=SC2086
exec $EMULATOR "$@"
