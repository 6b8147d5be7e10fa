# Sourced by the scripts in this folder: where things are, and one environment for every cargo call, since cargo
# rebuilds PyO3 whenever a variable that its build script looked at differs.
# shellcheck shell=bash disable=SC2034

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
VENV=$ROOT/.venv
STATIC_TARGET=x86_64-unknown-linux-gnu
CRASHDISK=$ROOT/target/release/crashdisk
CALLS=$ROOT/target/release/postcrash-calls
AGENT=$ROOT/target/$STATIC_TARGET/release/postcrash-agent
XSYNC=$ROOT/target/$STATIC_TARGET/release/xsync
XSYNC_CANARY=$ROOT/target/$STATIC_TARGET/release/xsync-canary
XSTATE=$ROOT/target/release/libpostcrash_xstate.so

say() { printf 'postcrash: %s\n' "$*" >&2; }

# Exit code 3 is an infrastructure error, as on the command line of postcrash.
die() {
    say "$@"
    exit 3
}

# version_at_least HAVE NEED
version_at_least() { printf '%s\n%s\n' "$2" "$1" | sort --check=quiet --version-sort; }

rust_needed() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$ROOT/Cargo.toml"; }

# Puts the first sufficient cargo in front of PATH; fails if there is none.
use_cargo() {
    local folder version
    for folder in "$(dirname "$(command -v cargo || echo /nowhere/cargo)")" "${CARGO_HOME:-$HOME/.cargo}/bin" /usr/bin; do
        version=$("$folder/cargo" --version 2>/dev/null | cut -d' ' -f2) || continue
        version_at_least "${version:-0}" "$(rust_needed)" || continue
        export PATH=$folder:$PATH
        return 0
    done
    return 1
}

require_cargo() {
    use_cargo || die "cargo $(rust_needed) or later is needed: run  curl -sSf https://sh.rustup.rs | sh -s -- -y"
    unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
    export CARGO_TARGET_DIR=$ROOT/target PYO3_BUILD_EXTENSION_MODULE=1
    if [[ -x $VENV/bin/python ]]; then export PYO3_PYTHON=$VENV/bin/python; fi
    cd "$ROOT" || exit 3
}

build_programs() {
    cargo build --release --quiet --package crashdisk --bin crashdisk
    cargo build --release --quiet --package postcrash-calls --bin postcrash-calls
    cargo build --release --quiet --package postcrash-xstate --lib
    RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --quiet --package postcrash-agent \
        --bin postcrash-agent --target "$STATIC_TARGET"
    RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --quiet --package xsync --bin xsync \
        --target "$STATIC_TARGET"
}

# Broken versions for tests, which nothing ships.
build_canaries() {
    RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --quiet --package xsync --bin xsync-canary \
        --features canaries --target "$STATIC_TARGET"
}
