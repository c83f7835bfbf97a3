#!/bin/sh
# Buys one call with the published x402 client, waits for the job if there is one, and prints the result.
# Usage: buy.sh [--json] PATH [BODY] (--json: one line, also on a terminal. WAIT=seconds to wait for a job, default 300; 0 prints
# the first answer. PAYER=4: the stack's fourth payer pays, not the third. KEY=again: the Idempotency-Key, else a new one)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
json=
[ "${1:-}" != --json ] || { json=--json; shift; }
case "${1:-}" in
  /*) ;;
  *) echo "usage: local/buy.sh /v1/tools/PATH ['{\"body\": \"as JSON\"}']" >&2; exit 2 ;;
esac
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
local/client.sh
body=${2:-}
[ -n "$body" ] || body='{}'
exec node tests/clients/v2/buy.mjs ${json:+--json} "$1" "$body" "$stack"
