#!/bin/sh
# Compares how a deployment is set with what it needs. With AWS in the environment that deployment, else the local stack.
# Usage: doctor.sh [--json]
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet --package local --bin doctor
doctor="$(local/target-dir.sh)/debug/doctor"
if [ -n "${TABLE_PREFIX:-}" ]; then
    exec "$doctor" "$@"
fi
[ -f .local/stack.json ] || { echo "nothing is running here: make run first, or set what the functions have (docs/DEPLOY.md, The doctor)" >&2; exit 1; }
exec "$doctor" --stack .local/stack.json "$@"
