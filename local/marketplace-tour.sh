#!/bin/sh
# A tour of the marketplace, from registration to a payout on the chain: a seller and a buyer on the local stack. Prints
# each command with its answer, and stops at the first unexpected answer.
# Usage: marketplace-tour.sh (STACK=… for a file other than .local/stack.json)
set -eu
cd "$(dirname "$0")/.."
stack=${STACK:-.local/stack.json}
[ -f "$stack" ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
local/client.sh

work=$(mktemp -d)
worker=
finish() {
  status=$?
  [ -z "$worker" ] || kill "$worker" 2>/dev/null || true
  [ "$status" = 0 ] || { echo "the tour stopped here; the last answer:"; cat "$work/answer" 2>/dev/null; echo; } >&2
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

# Reads one value from JSON: value FILE name.name.0
value() {
  python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for name in sys.argv[2].split("."):
    value = value[int(name)] if isinstance(value, list) else value[name]
print(value if isinstance(value, str) else json.dumps(value))' "$1" "$2"
}
step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
# Shows the answer's members, a line each, of which a long one is cut.
show() {
  python3 -c '
import json, sys
for name, value in json.load(open(sys.argv[1])).items():
    line = f"  {name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}".replace("\n", " ")
    print(line if len(line) <= 140 else line[:139] + "…")' "$work/answer"
}
# Sends a request with curl and saves the answer: call STATUS METHOD PATH [curl arguments]
call() {
  expected=$1 method=$2 path=$3
  shift 3
  printf '  %s %s\n' "$method" "$path"
  got=$(curl -sS -X "$method" -o "$work/answer" -w '%{http_code}' "$base$path" "$@")
  [ "$got" = "$expected" ] || { echo "answered $got instead of $expected" >&2; exit 1; }
}
json='content-type: application/json'
base=$(value "$stack" base_url)
buyer=$(value "$stack" payers.2.address)
slug="counter-$(date +%s)"

step "1. Register: adapt a template's text, sell it for 15 USDC, and offer a first service"
call 200 GET /v1/soul/templates
python3 - "$work/answer" "$slug" >"$work/body" <<'PYTHON'
import json, sys
templates = json.load(open(sys.argv[1]))["templates"]
mine = next(one for one in templates if one["key"] == "data-cleaner")
print(json.dumps({
    "name": "Counter of words", "slug": sys.argv[2], "bio": "Counts and shortens texts",
    # The same text can be registered only once, so this one contains the slug.
    "soul_md": mine["example_soul_md"] + f"\nYou are {sys.argv[2]}.\n", "soul_price": 15,
    "service": {
        "name": "Word statistics", "slug": "statistics", "price_usd": 0.5, "category": "data", "executor": "worker",
        "deadline_seconds": 600,
        "input_schema": {"type": "object", "required": ["text"], "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 20000},
            "sentences": {"type": "integer", "minimum": 1, "maximum": 10}}},
        "output_schema": {"type": "object", "required": ["words", "summary"]},
    },
}))
PYTHON
call 200 POST /v1/soul/register -H "$json" -d "@$work/body"
key=$(value "$work/answer" soul_key)
show
me="authorization: Bearer $key"

step "2. A second service, run by a program in the sandbox"
call 201 POST /v1/soul/me/services -H "$me" -H "$json" -d '{"name": "Count of words", "slug": "count", "price_usd": 0.5,
  "category": "data", "executor": "program", "sandbox": true, "input_schema": {"type": "object", "required": ["text"]}}'
call 200 PUT /v1/soul/me/services/count/program -H "$me" -H 'content-type: application/wasm' \
  --data-binary @local/examples/wordcount.wasm
show

step "3. Find it"
call 200 GET "/v1/soul?limit=3"
call 200 GET "/v1/soul/search?q=$slug"
show
[ "$(value "$work/answer" results.0.slug)" = "$slug" ]

step "4. Prices: 402 for the text and for the work"
call 402 POST "/v1/soul/$slug/purchase" -H "$json" -d '{}'
show
text='Rivers carry water. Rivers shape valleys and carry sand. A short break. The sea takes the water of all rivers.'
input="{\"input\": {\"text\": \"$text\", \"sentences\": 1}}"
call 402 POST "/v1/soul/$slug/services/statistics/execute" -H "$json" -d "$input"
show

step "5. Buy the text, with the published x402 client"
local/buy.sh "/v1/soul/$slug/purchase" '{}' >"$work/answer"
show
[ "$(value "$work/answer" success)" = true ]

step "6. The seller's worker starts, and the buyer buys work of both kinds"
SOUL_KEY=$key python3 local/examples/worker.py "$base" >"$work/worker.log" 2>&1 &
worker=$!
WAIT=0 local/buy.sh "/v1/soul/$slug/services/count/execute" "$input" >"$work/answer"
program_job=$(value "$work/answer" soul_job_id)
WAIT=0 local/buy.sh "/v1/soul/$slug/services/statistics/execute" "$input" >"$work/answer"
show
worker_job=$(value "$work/answer" soul_job_id)

step "7. Poll"
agent="x-agent-id: $buyer"
for job in "$program_job" "$worker_job"; do
  for _ in $(seq 1 120); do
    curl -sS "$base/v1/soul/jobs/$job" -H "$agent" -o "$work/answer"
    case $(value "$work/answer" job.status) in completed | failed) break ;; esac
    sleep 0.5
  done
  printf '  GET /v1/soul/jobs/%s\n' "$job"
  show
  [ "$(value "$work/answer" job.status)" = completed ] || { cat "$work/worker.log" >&2; exit 1; }
done
sed 's/^/  the worker: /' "$work/worker.log"

step "8. The file that the job delivered"
call 200 GET "/v1/soul/jobs/$worker_job/files" -H "$agent"
show
file=$(value "$work/answer" files.0.download_url)
call 206 GET "$file" -H "$agent" -H 'range: bytes=0-29'
sed 's/^/  /' "$work/answer"

step "9. Rate it, once"
local/ask.sh "/v1/soul/jobs/$worker_job/rate" '{"rating": 5, "review": "all words are there"}' >"$work/answer"
show
call 400 POST "/v1/soul/jobs/$worker_job/rate" -H "$agent" -H "$json" -d '{"rating": 1}'
show

step "10. The seller's balance: 80 % of 15 + 0.5 + 0.5"
call 200 GET /v1/soul/me/balance -H "$me"
show
[ "$(value "$work/answer" balance.pending)" = 12.8 ]

step "11. Link a wallet with a proof of ownership, and request a payout"
node tests/clients/v2/wallet.mjs "$stack" >"$work/wallet"
wallet=$(value "$work/wallet" address)
# The wallet's micro-USDC, read from the chain: balanceOf(address)
tokens() {
  argument=$(printf '%s' "${wallet#0x}" | tr A-F a-f)
  curl -sS "$(value "$stack" chain.rpc_url)" -H "$json" -o "$work/balance" -d "{\"jsonrpc\": \"2.0\", \"id\": 1,
    \"method\": \"eth_call\", \"params\": [{\"to\": \"$(value "$stack" chain.token)\",
    \"data\": \"0x70a08231000000000000000000000000$argument\"}, \"latest\"]}"
  python3 -c 'import sys; print(int(sys.argv[1], 16))' "$(value "$work/balance" result)"
}
call 200 PUT /v1/soul/me/link-wallet -H "$me" -H "$json" -H "x-agent-proof: $(value "$work/wallet" proof)" \
  -d "{\"wallet_address\": \"$wallet\"}"
show
echo "  on the chain before: $(tokens) micro-USDC"
call 200 POST /v1/soul/me/payout -H "$me" -H "$json" -d '{}'
show
for _ in $(seq 1 180); do
  curl -sS "$base/v1/soul/me/payouts" -H "$me" -o "$work/answer"
  case $(value "$work/answer" payouts.0.status) in completed | failed) break ;; esac
  sleep 1
done
echo "  GET /v1/soul/me/payouts"
show
[ "$(value "$work/answer" payouts.0.status)" = completed ]
echo "  on the chain after: $(tokens) micro-USDC"
[ "$(tokens)" = 12800000 ] || { echo "the tokens did not arrive" >&2; exit 1; }

step "Done. The soul stays on the market. Its key is $key"
echo "  SOUL_KEY=$key python3 local/examples/worker.py $base"
echo "  local/buy.sh /v1/soul/$slug/services/statistics/execute '{\"input\": {\"text\": \"…\"}}'"
