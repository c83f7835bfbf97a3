#!/bin/sh
# Measures costs as ratios, all in one run.
set -eu
cd "$(dirname "$0")/.."
cargo run --release --package bench
echo
echo "concurrent caps: 200 parallel calls against a budget, and against credits, for 50 calls"
PRINT_CAPS=1 cargo test --quiet --package tests -- --nocapture for_fifty credits_pay_for_exactly 2>/dev/null | grep -E '^caps' ||
  { echo "the test of the caps failed" >&2; exit 1; }
echo
PRINT_COST=1 cargo test --quiet --package tests -- --nocapture --exact cost::print_what_calls_cost 2>/dev/null |
  grep -E '^(DynamoDB|direct|queued|quote|mail|text|call)' || { echo "the cost table could not be printed" >&2; exit 1; }
echo
PRINT_VIN=1 cargo test --quiet --package vin --lib -- --nocapture round_trip 2>/dev/null | grep -E '^vin' ||
  { echo "the test of vehicle numbers failed" >&2; exit 1; }
