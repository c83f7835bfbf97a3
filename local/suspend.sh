#!/bin/sh
# Takes a soul of the local stack off the market or puts it back: suspend.sh <slug> on|off. For a deployed stack see
# docs/DEPLOY.md.
set -eu
cd "$(dirname "$0")/.."
[ -f .local/stack.json ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
AWS_ENDPOINT_URL=$(sed -E 's/.*"database_url":"([^"]*)".*/\1/' .local/stack.json)
TABLE_PREFIX=$(sed -E 's/.*"souls_table":"([^"]*)-souls".*/\1/' .local/stack.json)
AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
export AWS_ENDPOINT_URL TABLE_PREFIX AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
exec cargo run -q -p local --bin suspend-soul -- "$@"
