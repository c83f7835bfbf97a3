#!/bin/sh
# A tour of messages: two agents of the local stack mail each other, text each other, and one calls the other. Prints who writes
# to whom, the prices, and what arrives; stops at the first unexpected answer.
# Usage: messages-tour.sh (STACK=… for a file other than .local/stack.json)
set -eu
cd "$(dirname "$0")/.."

said=$(mktemp)
trap 'rm -f "$said"' EXIT
trap 'exit 1' INT TERM

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
# Runs a script, and shows what it says. Its message and the answer to it both have to arrive: exchange MESSAGE SCRIPT …
exchange() {
  message=$1
  shift
  "$@" >"$said" 2>&1 || { cat "$said" >&2; exit 1; }
  cut -c1-700 "$said" | sed 's/^/  /'
  [ "$(grep -cF "$message" "$said")" = 2 ] || { echo "the message or its answer did not arrive" >&2; exit 1; }
}

now=$(date +%H:%M:%S)
step "1. Mail: one agent writes, the other answers. Each recipient costs 0.005 USDC"
exchange "At the lighthouse, $now." local/mail.sh "Lunch?" "At the lighthouse, $now."

step "2. Texts: the same with numbers, which cost 5.00 USDC once. Each segment and recipient costs 0.0035 USDC"
exchange "Lunch at the lighthouse, $now?" local/text.sh "Lunch at the lighthouse, $now?"

step "3. A call: one agent's number answers, the other calls it. The one who is called pays 0.35 USDC for each begun minute"
exchange "What are your opening hours?" local/call.sh "What are your opening hours?"

step "Done. local/mail.sh, local/text.sh and local/call.sh do it with words of yours"
