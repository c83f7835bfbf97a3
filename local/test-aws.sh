#!/bin/sh
# Runs the journeys and the store tests against ministack, an emulator of AWS that shares no code with the embedded
# DynamoDB. A test that passes with both is more likely to pass with AWS.
set -eu
cd "$(dirname "$0")/.."
port=${MINISTACK_PORT:-4566}
venv=.tools/ministack
local/sam/install.sh ministack
GATEWAY_PORT=$port "$venv/bin/ministack" >.tools/ministack.log 2>&1 &
ministack=$!
trap 'kill $ministack 2>/dev/null || true' EXIT INT TERM
for _ in $(seq 1 60); do
  python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 1)" 2>/dev/null && break
  kill -0 $ministack 2>/dev/null || { echo "ministack did not start; see .tools/ministack.log" >&2; exit 1; }
  sleep 0.5
done
# Skipped, because they are about the embedded database or a process, not about AWS:
#   cost     counts capacity units, which ministack computes differently (half units for items over 4 KB)
#   crash    puts a proxy in front of a database of its own
#   kill     starts the local runner with its embedded database
#   clients  are about callers
AWS_TEST_ENDPOINT=http://127.0.0.1:$port cargo test --package tests -- \
  --skip cost:: --skip crash:: --skip kill:: --skip clients::
