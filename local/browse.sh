#!/bin/sh
# Does the task in TASK in a browser, with the published x402 client, and prints what it read and did.
# (URL=… begins there; SESSION=… goes on with a session: docs/BROWSER.md. STACK=… for a file other than .local/stack.json)
set -eu
cd "$(dirname "$0")/.."
TASK=${TASK:-Open https://example.com. Read the heading.}
export TASK
URL=${URL:-} SESSION=${SESSION:-}
export URL SESSION
body=$(python3 -c 'import json, os
body = {"task": os.environ["TASK"]}
for name, variable in [("start_url", "URL"), ("session_id", "SESSION")]:
    if os.environ[variable]:
        body[name] = os.environ[variable]
print(json.dumps(body))')
answer=$(local/buy.sh --json /v1/tools/browser "$body")
printf '%s\n' "$answer" | python3 -c 'import json, sys
answer = json.loads(sys.stdin.read().strip().splitlines()[-1])
result = answer.get("result") or {}
if "steps" not in result:
    sys.exit("nothing was done: " + json.dumps(answer))
for step in result["steps"]:
    print("{number:3}. {goal}  ({url})".format(**step))
print("success:", json.dumps(result.get("success")), result.get("error") or "")
if "output" in result:
    print(json.dumps(result["output"], indent=2, ensure_ascii=False))
print("at", result.get("final_url"), "- charged", result.get("billed_cost"), "USDC - session_id", result.get("session_id"))'
