#!/bin/sh
# Buys the goal in OBJECTIVE with the published x402 client, shows its tasks as they change, and prints the result, what was
# spent and what came back. (BUDGET=2, in USDC; PARAMS, APPROVALS: JSON objects; DEADLINE: docs/COMPUTE.md. GOAL=goal_… follows
# one that was bought before. STACK=… for a file other than .local/stack.json. PAYER=4: the stack's fourth payer pays)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
GOAL=${GOAL:-}
if [ -z "$GOAL" ]; then
  OBJECTIVE=${OBJECTIVE:-Decode the VIN 1HGCM82633A004352. Then verify ada@example.com.}
  export OBJECTIVE
  BUDGET=${BUDGET:-} PARAMS=${PARAMS:-} APPROVALS=${APPROVALS:-} DEADLINE=${DEADLINE:-}
  export BUDGET PARAMS APPROVALS DEADLINE
  body=$(python3 -c 'import json, os
body = {"objective": os.environ["OBJECTIVE"]}
for name, variable, read in [("budget_usdc", "BUDGET", str), ("params", "PARAMS", json.loads),
                             ("approvals", "APPROVALS", json.loads), ("deadline", "DEADLINE", str)]:
    if os.environ[variable]:
        body[name] = read(os.environ[variable])
print(json.dumps(body))')
  # A refusal is JSON on stdout, too.
  answer=$(WAIT=0 local/buy.sh --json /v1/compute "$body") || { printf '%s\n' "$answer" >&2; exit 1; }
  GOAL=$(printf '%s\n' "$answer" | python3 -c 'import json, sys
print(json.loads(sys.stdin.read())["goal_id"])')
  echo "bought $GOAL"
else
  [ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
  local/client.sh
fi
exec node tests/clients/v2/goal.mjs "$GOAL" "$stack"
