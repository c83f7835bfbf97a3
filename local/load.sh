#!/bin/sh
# Load test: paid calls of every kind against the release build. Ends after LOAD_SECONDS.
set -eu
cd "$(dirname "$0")/.."
cargo build --release --package local --bin agora-local
cargo build --release --package load
target="$(local/target-dir.sh)/release"
exec "$target/load" "$target/agora-local"
