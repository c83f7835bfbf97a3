#!/bin/sh
# Deletes the local state. A running stack is stopped first; installed tools stay.
set -eu
cd "$(dirname "$0")/.."
if [ -f .local/stack.json ]; then
  pid=$(sed -E 's/.*"pid":([0-9]+).*/\1/' .local/stack.json)
  if kill -0 "$pid" 2>/dev/null && ps -p "$pid" -o command= | grep -q agora-local; then
    echo "stopping the stack (pid $pid)"
    kill -TERM "$pid"
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.5
    done
    kill -KILL "$pid" 2>/dev/null || true
  fi
fi
# The chain's node ends a moment after its stack, and keeps its log open until then.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf .local 2>/dev/null && break
  sleep 0.5
done
rm -rf .local
echo "the local state has been deleted"
