#!/bin/sh
# Rehearses the deployment on this machine (local/rehearse/run.py says how). Builds and installs what that needs.
# Usage: rehearse.sh [--only JOURNEY,...] [--without ROLE/SID] [--keep], or rehearse.sh test
set -eu
cd "$(dirname "$0")/.."
python=.tools/ministack/bin/python
target=$(local/target-dir.sh)/debug
local/sam/install.sh ministack
echo "building the functions as they are deployed (the first time takes some minutes)"
packages=
for function in functions/*; do packages="$packages --package $(basename "$function")"; done
# shellcheck disable=SC2086 # one word for each
cargo build --quiet $packages --package build-features --package devchain --bins --example chain_run
if [ "${1:-}" = test ]; then
  REHEARSAL_TARGET=$target exec "$python" local/rehearse/tests.py
fi
exec "$python" local/rehearse/run.py --target "$target" "$@"
