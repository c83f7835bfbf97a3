#!/bin/sh
# Pays for a page and reads it, with the published x402 client. Usage: read.sh [URL] (STACK=… for a file other than
# .local/stack.json)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
url=${1:-}
[ -n "$url" ] || url=$(sed -E 's/.*"site_url":"([^"]*)".*/\1/' "$stack")/article
local/client.sh
exec node tests/clients/v2/read.mjs "$stack" "$url"
