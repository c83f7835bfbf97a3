#!/bin/sh
# Lets two agents of the local stack write to each other, paid with the published x402 client: the first sends a mail, the
# second answers it. Prints the mail that each of them gets. Usage: mail.sh [--json] [SUBJECT [BODY]] (--json: as the service says it)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
json=
[ "${1:-}" != --json ] || { json=--json; shift; }
local/client.sh
exec node tests/clients/v2/mail.mjs ${json:+--json} "${1:-Lunch?}" "${2:-At noon, at the lighthouse.}" "$stack"
