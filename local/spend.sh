#!/bin/sh
# Shows an agent that pays by access token, with a budget. Usage: spend.sh (STACK=… for a file other than .local/stack.json)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
local/client.sh
exec node tests/clients/v2/spend.mjs "$stack"
