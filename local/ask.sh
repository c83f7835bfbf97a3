#!/bin/sh
# Asks as the wallet that local/buy.sh pays with, by its agent proof: reads what is its own (requests, balance, receipts, the
# audit's export), or, with a body, posts (a rating). Usage: ask.sh PATH [BODY]
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "nothing is running: make run first, in another terminal" >&2; exit 1; }
case "${1:-}" in
  /*) ;;
  *) echo "usage: local/ask.sh /v1/requests/ID (or another path that begins with a slash) [BODY]" >&2; exit 2 ;;
esac
local/client.sh
exec node tests/clients/v2/ask.mjs "$stack" "$@"
