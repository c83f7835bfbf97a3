#!/bin/sh
# Rehearses the deployment on this machine (local/rehearse/run.py says how). Builds and installs what that needs.
# Usage: rehearse.sh [--only JOURNEY,…] [--without ROLE/SID] [--keep]
set -eu
cd "$(dirname "$0")/.."
local/sam/install.sh ministack
echo "building the functions"
# shellcheck disable=SC2046
cargo build $(for one in functions/*; do echo "--package=$(basename "$one")"; done) --bins
cargo build --quiet --package devchain --example chain_run
exec .tools/ministack/bin/python local/rehearse/run.py --target "$(local/target-dir.sh)/debug" "$@"
