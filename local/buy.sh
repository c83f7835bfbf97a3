#!/bin/sh
# Buys one thing with the published x402 client and prints the result, if it has to be waited for too.
# Usage: buy.sh PATH [BODY] (WAIT=seconds to wait for a job, 300 if not said, 0 for the first answer as it is)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "nothing is running: make run first, in another terminal" >&2; exit 1; }
local/client.sh
case "${1:-}" in
  /*) ;;
  *) echo "usage: local/buy.sh /v1/tools/PATH ['{\"body\": \"as JSON\"}']" >&2; exit 2 ;;
esac
body=${2:-}
[ -n "$body" ] || body='{}'
exec node tests/clients/v2/buy.mjs "$1" "$body" "$stack"
