#!/bin/sh
# Reads something of the wallet's own that local/buy.sh pays with: requests, balance, receipts, the audit's export.
# Usage: get.sh PATH
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "nothing is running: make run first, in another terminal" >&2; exit 1; }
case "${1:-}" in
  /*) ;;
  *) echo "usage: local/get.sh /v1/requests/ID (or another path that begins with a slash)" >&2; exit 2 ;;
esac
local/client.sh
exec node tests/clients/v2/get.mjs "$1" "$stack"
