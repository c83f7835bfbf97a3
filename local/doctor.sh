#!/bin/sh
# Checks a deployment's settings. With TABLE_PREFIX set, checks that deployment in AWS, otherwise the local stack.
# Usage: doctor.sh [--json]
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet --package local --bin doctor
doctor="$(local/target-dir.sh)/debug/doctor"
if [ -n "${TABLE_PREFIX:-}" ]; then
    exec "$doctor" "$@"
fi
[ -f .local/stack.json ] || { echo "no local stack is running: start one with make run, or set TABLE_PREFIX and AWS credentials to check a deployment (docs/DEPLOY.md, The doctor)" >&2; exit 1; }
exec "$doctor" --stack .local/stack.json "$@"
