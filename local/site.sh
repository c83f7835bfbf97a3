#!/bin/sh
# Builds a website from the brief in BRIEF, for NAME, with the published x402 client, and prints its address.
# (KIND=restaurant, …: docs/BUILD.md. STACK=… for a file other than .local/stack.json)
set -eu
cd "$(dirname "$0")/.."
BRIEF=${BRIEF:-A bakery in Lyon. We bake sourdough bread with flour from a mill nearby. Sourdough 4.50 EUR, croissant 1.30 EUR. Open Tuesday to Sunday, 7:00 to 19:00.}
NAME=${NAME:-Four Miche}
KIND=${KIND:-restaurant}
export BRIEF NAME KIND
body=$(python3 -c 'import json, os
print(json.dumps({"product": {"name": os.environ["NAME"], "description": os.environ["BRIEF"]}, "type": os.environ["KIND"]}))')
answer=$(local/buy.sh --json /v1/tools/build "$body")
printf '%s\n' "$answer" | python3 -c 'import json, sys
answer = json.loads(sys.stdin.read().strip().splitlines()[-1])
result = answer.get("result") or {}
if not result.get("production_url"):
    sys.exit("no site was built: " + json.dumps(answer))
print(result["production_url"])
print("design score", result["design_score"], "- build_id", result["build_id"])'
