#!/bin/sh
# Buys one item in a checkout session, paid with the published x402 client. Prints what becomes of it, with --json the sessions.
# Usage: checkout.sh [--json] ITEM [INPUT]
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
json=
[ "${1:-}" != --json ] || { json=--json; shift; }
case "${1:-}" in
  '' | -*) echo "usage: local/checkout.sh ITEM ['{\"input\": \"as JSON\"}'], like local/checkout.sh agora-credits" >&2; exit 2 ;;
esac
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
local/client.sh
input=${2:-}
[ -n "$input" ] || input='{}'
exec node tests/clients/v2/checkout.mjs ${json:+--json} "$1" "$input" "$stack"
