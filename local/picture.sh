#!/bin/sh
# Buys one thing on the local stack, records what is sent and answered (docs/pictures/paid-call.json), and draws the README's
# picture of it (docs/pictures/paid-call.svg). Usage: picture.sh, or picture.sh draw to draw the recording there is
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ "${1:-}" != draw ] || stack=-
[ "$stack" = - ] || [ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
local/client.sh
exec node tests/clients/v2/record.mjs "$stack" docs/pictures/paid-call.json docs/pictures/paid-call.svg
