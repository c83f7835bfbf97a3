#!/bin/sh
# Compiles and tests each crate of common/ alone. The workspace hides a missing feature: another crate may ask for it.
set -eu
cd "$(dirname "$0")/.."
for manifest in common/*/Cargo.toml; do
  crate=$(basename "$(dirname "$manifest")")
  echo "== $crate"
  cargo test --quiet --package "$crate" --lib
done
