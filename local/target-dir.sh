#!/bin/sh
# Prints cargo's target folder: CARGO_TARGET_DIR, cargo's own configuration, or ./target.
set -eu
cargo metadata --format-version 1 --no-deps --offline 2>/dev/null | sed -E 's/.*"target_directory":"([^"]*)".*/\1/'
