# For scripts of this folder, which source it: the least Rust that Cargo.toml promises.
# shellcheck shell=bash

# least_rust TESTS TARGET...: cargo is that Rust from here on, with these targets' standard libraries. rustup fetches
# them into target/rust, and says so before; the user's toolchains stay as they are. Where it cannot, one line says
# that TESTS are skipped, and the script ends without an error.
least_rust() {
    local tests=$1 rust target missing=() error
    shift
    rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    export RUSTUP_HOME=${CARGO_TARGET_DIR:-$PWD/target}/rust RUSTUP_TOOLCHAIN=$rust RUSTUP_AUTO_INSTALL=0
    if ! command -v rustup >/dev/null; then
        echo "skipped: $tests: no rustup (https://rustup.rs), which fetches Rust $rust"
        exit 0
    fi
    for target in "$@"; do
        compgen -G "$RUSTUP_HOME/toolchains/$rust-*/lib/rustlib/$target/lib/libstd-*.rlib" >/dev/null ||
            missing+=("$target")
    done
    [[ ${#missing[@]} -eq 0 ]] && return
    echo "fetching Rust $rust for ${missing[*]} into $RUSTUP_HOME (up to 180 MB, 840 MB unpacked)"
    mkdir -p "$RUSTUP_HOME"
    # One of the scripts at a time; a network that swallows everything ends it too.
    error=$(flock "$RUSTUP_HOME" timeout 900 rustup --quiet toolchain install "$rust" --profile minimal \
        --no-self-update "${missing[@]/#/--target=}" 2>&1) && return
    echo "skipped: $tests: rustup fetched no Rust $rust ($(grep -m 1 '^error: ' <<<"$error"))"
    exit 0
}
