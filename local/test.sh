#!/bin/sh
# The whole of `make test`, and the seconds of its parts. `local/test.sh build` only builds.
set -eu
cd "$(dirname "$0")/.."
started=$(date +%s)
say() { echo "== $1 (after $(($(date +%s) - started)) s)"; }

say "building the tests: 10 minutes the first time, seconds when nothing changed"
# Of the binaries only those that tests start; the rehearsal links the functions.
cargo build --workspace --tests --bin agora-local --bin doctor --bin verify-receipts
[ "${1:-}" = build ] && exit
say "testing: about 20 minutes. First the journeys over the whole service, then each crate's own tests"
# Journeys record which permissions they use; the last command lists those that no journey used.
rm -rf "$(local/target-dir.sh)/tmp/permissions"
# Most of a journey is waiting.
# What fails does not keep the other crates' tests from running; cargo lists the targets that failed at the end.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-4} cargo test --workspace --no-fail-fast
say "permissions: each is used by a journey or explained"
cargo test --quiet --package tests --test integration -- --ignored --exact permissions::every_permission_is_used_or_explained
# A child process that shares our standard output can make it non-blocking; then whoever writes next fails.
python3 -c 'import fcntl, os, sys
if fcntl.fcntl(1, fcntl.F_GETFL) & os.O_NONBLOCK: sys.exit("a test made the standard output non-blocking: tests/support/children.rs says why that is wrong")'
say "all tests passed"
