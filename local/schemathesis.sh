#!/bin/sh
# Checks the running service against its own description with Schemathesis: as a stranger, and as somebody with an
# access token, a soul's key and a wallet. Starts a stack of its own, in a folder of its own, on a free port. With the token it
# really buys: half a dollar of the local chain's test money at most, and 0.05 a day unless a generated budget says otherwise.
# Non-zero if there is any finding. EXAMPLES=n for more or fewer cases an operation (default 6); ROUTES=regex for some paths.
set -eu
cd "$(dirname "$0")/.."
here=$(pwd)
tools=$here/.tools/schemathesis
pinned="schemathesis==4.32.5 eth-account==0.13.7"
if [ "$(cat "$tools/.installed" 2>/dev/null)" != "$pinned" ]; then
  echo "installing Schemathesis (once)" >&2
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check $pinned
  echo "$pinned" >"$tools/.installed"
fi
local/client.sh
agora="${AGORA_LOCAL:-$(local/target-dir.sh)/debug/agora-local}"
[ -x "$agora" ] || { echo "$agora is not built: cargo build -p local" >&2; exit 1; }

work=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# Stands in for the card processor: every session it is asked for is opened.
python3 local/schemathesis/cards.py >"$work/cards.port" &
processor=$!
until [ -s "$work/cards.port" ]; do sleep 0.1; done
cards=$(cat "$work/cards.port")
mkdir -p .tools/anvil
ln -s "$here/.tools" "$work/.tools"
# Keys and a provider, so that what wants them has a price here.
(cd "$work" && PORT=$port RATE_LIMIT_SCALE=100000 CARD_PROCESSOR_KEY=sk CARD_WEBHOOK_SECRET=whsec \
    CARD_PROCESSOR_URL=http://127.0.0.1:$cards PLACES_PROVIDERS=overpass \
    PROVIDER_KEYS='{"courtlistener":"k","fmcsa":"k","sam":"k"}' exec "$agora" >stack.log 2>&1) &
stack=$!
trap 'kill $stack $processor 2>/dev/null; wait $stack 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
for _ in $(seq 600); do
  [ -f "$work/.local/stack.json" ] && break
  kill -0 $stack 2>/dev/null || { cat "$work/stack.log" >&2; exit 1; }
  sleep 0.2
done

curl -sf "http://127.0.0.1:$port/openapi.json" >"$work/openapi.json"
[ "${EXAMPLES:-6}" -ge 6 ] || python3 local/schemathesis/thin.py "$work/openapi.json"
python3 local/schemathesis/configure.py "$work/openapi.json" "$here/local/schemathesis/hooks.py" >"$work/st.toml"
phases=examples,coverage,fuzzing,stateful
# usage: pass NAME [OPTION...]; $PASSES leaves out passes that it does not name.
pass() {
  name=$1
  shift
  case " ${PASSES:-stranger tools others} " in *" $name "*) ;; *) return 0 ;; esac
  export CREDENTIALS
  found=0
  (cd "$work" && PYTHONDONTWRITEBYTECODE=1 "$tools/bin/schemathesis" --config-file st.toml run openapi.json \
      -u "http://127.0.0.1:$port" -c all -n "${EXAMPLES:-6}" --seed 1 --generation-deterministic --continue-on-failure \
      --phases "$phases" --warnings off --report junit --report-dir "report-$name" \
      "$@" >"$name.txt" 2>&1) || found=1
  # The score, and all of it where there is something to mend.
  echo "== Schemathesis, $name"
  sed -n '/= SUMMARY =/,$p' "$work/$name.txt"
  [ "$found" = 0 ] || cat "$work/$name.txt"
  [ -z "${KEEP:-}" ] || cp "$work/$name.txt" "$KEEP"
  return "$found"
}
# Before all passes, so that the soul of the examples is there.
credentials=$(node local/schemathesis/credentials.mjs "$work/.local/stack.json")
if [ -n "${ROUTES:-}" ]; then
  # Links lead to operations that are left out.
  phases=examples,coverage,fuzzing
  failed=0
  (CREDENTIALS='' pass stranger --include-path-regex "$ROUTES" >"$work/stranger.out") &
  stranger=$!
  CREDENTIALS=$credentials pass tools --include-path-regex "$ROUTES" || failed=1
  wait "$stranger" || failed=1
  cat "$work/stranger.out"
  exit $failed
fi
# At once: each spends its time on making up data, on one core. With credentials the tools take as long as all the rest.
(CREDENTIALS='' pass stranger >"$work/stranger.out") &
stranger=$!
(CREDENTIALS=$credentials pass tools --include-path-regex '^/v1/tools/' >"$work/tools.out") &
with_tools=$!
failed=0
CREDENTIALS=$credentials pass others --exclude-path-regex '^/v1/tools/' || failed=1
wait "$stranger" || failed=1
wait "$with_tools" || failed=1
cat "$work/tools.out" "$work/stranger.out"
exit $failed
