#!/bin/sh
# Checks the running service against its own description with Schemathesis, twice: as a stranger, and as somebody with an
# access token, a soul's key and a wallet. Starts a stack of its own, in a folder of its own, on a free port. With the token it
# really buys: half a dollar of the local chain's test money at most, and 0.05 a day unless a generated budget says otherwise.
# Non-zero if there is any finding. EXAMPLES=n for more or fewer cases an operation (default 12).
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
mkdir -p .tools/anvil
ln -s "$here/.tools" "$work/.tools"
(cd "$work" && PORT=$port RATE_LIMIT_SCALE=100000 exec "$agora" >stack.log 2>&1) &
stack=$!
trap 'kill $stack 2>/dev/null; wait $stack 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
for _ in $(seq 600); do
  [ -f "$work/.local/stack.json" ] && break
  kill -0 $stack 2>/dev/null || { cat "$work/stack.log" >&2; exit 1; }
  sleep 0.2
done

curl -sf "http://127.0.0.1:$port/openapi.json" >"$work/openapi.json"
python3 local/schemathesis/configure.py "$work/openapi.json" "$here/local/schemathesis/hooks.py" >"$work/st.toml"
failed=0
pass() {
  echo "== Schemathesis, $1"
  (cd "$work" && PYTHONDONTWRITEBYTECODE=1 "$tools/bin/schemathesis" --config-file st.toml run openapi.json \
      -u "http://127.0.0.1:$port" -c all -n "${EXAMPLES:-12}" --seed 1 --generation-deterministic --continue-on-failure \
      --phases examples,coverage,fuzzing,stateful -w "${WORKERS:-2}" --warnings off --report junit --report-dir "report-$1" \
      >"$1.txt" 2>&1) || failed=1
  # The score, and all of it where there is something to mend.
  sed -n '/= SUMMARY =/,$p' "$work/$1.txt"
  [ "$failed" = 0 ] || cat "$work/$1.txt"
  [ -z "${KEEP:-}" ] || cp "$work/$1.txt" "$KEEP"
}
CREDENTIALS='' && export CREDENTIALS
pass stranger
CREDENTIALS=$(node local/schemathesis/credentials.mjs "$work/.local/stack.json") && export CREDENTIALS
pass credentials
exit $failed
