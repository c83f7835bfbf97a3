#!/bin/sh
# Gives an agent money without a wallet, and a limit to it. Usage: spend.sh (STACK=… for another file than .local/stack.json)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "nothing is running: make run first, in another terminal" >&2; exit 1; }
local/client.sh
exec node tests/clients/v2/spend.mjs "$stack"
