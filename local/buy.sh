#!/bin/sh
# Buys one call with the published x402 client, waits for the job if there is one, and prints the result.
# Usage: buy.sh PATH [BODY] (WAIT=seconds to wait for a job, default 300; 0 prints the first answer. PAYER=4: the stack's
# fourth payer pays, not the third)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
local/client.sh
case "${1:-}" in
  /*) ;;
  *) echo "usage: local/buy.sh /v1/tools/PATH ['{\"body\": \"as JSON\"}']" >&2; exit 2 ;;
esac
body=${2:-}
[ -n "$body" ] || body='{}'
exec node tests/clients/v2/buy.mjs "$1" "$body" "$stack"
