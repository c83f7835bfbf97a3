#!/bin/sh
# Makes a request as the wallet that local/buy.sh pays with, authenticated by its agent proof: reads its own data (requests,
# balance, receipts, the audit's export) or, with a body, posts (a rating). Usage: ask.sh PATH [BODY]
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
case "${1:-}" in
  /*) ;;
  *) echo "usage: local/ask.sh /v1/requests/ID (or another path that begins with a slash) [BODY]" >&2; exit 2 ;;
esac
local/client.sh
exec node tests/clients/v2/ask.mjs "$stack" "$@"
