#!/bin/sh
# Costs as ratios, in one run.
set -eu
cd "$(dirname "$0")/.."
cargo run --release --package bench
echo
PRINT_COST=1 cargo test --quiet --package tests -- --nocapture --exact cost::print_what_calls_cost 2>/dev/null |
  grep -E '^(DynamoDB|direct|queued)' || { echo "the cost table could not be printed" >&2; exit 1; }
