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
latlab_explain-* | latlab_probes*)
    # One at a time: the emulator makes every child by fork. That write-protects the pages of the tests beside it, and those that
    # count page faults would count that; and a lock of the emulator that a test beside it holds is held in the child for ever.
    export RUST_TEST_THREADS=1
    ;;
esac
# What hangs is a failure. A test that starts itself again kills what it started, and that is then the emulator itself.
limit=(timeout --foreground 1200)
[[ -z ${LATLAB_EMULATED-} ]] || limit=()
export LATLAB_EMULATED=yes
# The emulator and its options are words.
# shellcheck disable=SC2086
exec "${limit[@]}" $EMULATOR "$@"
