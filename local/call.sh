#!/bin/sh
# Lets one agent of the local stack call the number of another: the wallet of local/buy.sh buys a number and says how it answers,
# a second calls it and talks to it, the first reads what was said. Prints the conversation, and the call as the first gets it.
# Usage: call.sh [--json] [SENTENCE …]: what the caller says (--json: the call as the service says it)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
json=
[ "${1:-}" != --json ] || { json=--json; shift; }
local/client.sh
[ $# -gt 0 ] || set -- "What are your opening hours?" "How much does rye cost?" "No, thank you. Bye!"
exec node tests/clients/v2/call.mjs "$stack" ${json:+--json} "$@"
