#!/bin/sh
# Makes a request as the wallet that local/buy.sh pays with, authenticated by its agent proof: reads its own data (requests,
# balance, receipts, the audit's export) or, with a body, posts (a rating). Any other method is named: PUT for a budget.
# Usage: ask.sh [--json] [--all] [METHOD] PATH [BODY] (--json: as the service answers, also on a terminal. --all: every page of
# the audit's export, as one file. PAYER=4: the stack's fourth payer asks, not the third)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
usage() {
  echo "usage: local/ask.sh [--json] [--all] [GET|POST|PUT|PATCH|DELETE] /v1/PATH ['{\"body\": \"as JSON\"}'], like local/ask.sh /v1/tools/balance" >&2
  exit 2
}
options=
while :; do
  case "${1:-}" in --json | --all) options="$options $1"; shift ;; *) break ;; esac
done
case "${1:-}" in
  GET | POST | PUT | PATCH | DELETE) case "${2:-}" in /*) ;; *) usage ;; esac ;;
  /*) ;;
  *) usage ;;
esac
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
local/client.sh
exec node tests/clients/v2/ask.mjs "$stack" $options "$@"
