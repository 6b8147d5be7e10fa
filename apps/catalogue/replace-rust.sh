# Builds the driver $3 with the crates of the manifest $1 and the lock file $2, into the folder $4: one program for each
# crate. Names of source files in debugging information begin at the driver's folder.
set -e
cp "$1" Cargo.toml
cp "$2" Cargo.lock
cp "$3" replace-rust.rs
export CARGO_TARGET_DIR="$PWD/target" RUSTFLAGS="--remap-path-prefix=$PWD/="
cargo build --quiet --locked
for crate in atomicwrites atomic-write-file tempfile tempfile-synced; do cp target/debug/replace-rust "$4/$crate"; done
cargo build --quiet --locked --features unnamed
cp target/debug/replace-rust "$4/atomic-write-file-unnamed"
