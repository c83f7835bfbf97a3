#!/bin/sh
# Buys one item in a checkout session, paid with the published x402 client. Usage: checkout.sh ITEM [INPUT]
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
local/client.sh
input=${2:-}
[ -n "$input" ] || input='{}'
exec node tests/clients/v2/checkout.mjs "$1" "$input" "$stack"
