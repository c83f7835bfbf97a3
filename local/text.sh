#!/bin/sh
# Lets two agents of the local stack text each other, paid with the published x402 client: the second buys a number, the first
# texts it, the second answers. Prints the text that each of them gets. Usage: text.sh [--json] [TEXT] (--json: as the service
# says it)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
json=
[ "${1:-}" != --json ] || { json=--json; shift; }
local/client.sh
exec node tests/clients/v2/text.mjs ${json:+--json} "${1:-Lunch at noon, at the lighthouse?}" "$stack"
