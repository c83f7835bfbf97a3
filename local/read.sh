#!/bin/sh
# Pays for a page and reads it, with the published x402 client. Usage: read.sh [URL]
set -eu
cd "$(dirname "$0")/.."
[ -f .local/stack.json ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
url=${1:-}
[ -n "$url" ] || url=$(sed -E 's/.*"site_url":"([^"]*)".*/\1/' .local/stack.json)/article
local/client.sh
exec node tests/clients/v2/read.mjs .local/stack.json "$url"
