#!/bin/sh
# Proves e-mail against programs that share no code with it: Debian's Postfix as the relay, as a mail host that answers
# and that bounces, and moto as SES. Each gets a stack of its own in a temporary folder; nothing of the machine is
# configured. Non-zero if a fact is not as it should be. Needs root on Debian for Postfix, which drops privileges itself.
# What cannot be installed is skipped, with a message. KEEP=folder keeps mails and logs.
# Usage: mail-peers.sh [postfix|ses] (default: both). Ports: PORT, SMTP_LISTEN_PORT, POSTFIX_PORT, MOTO_PORT, DNS_PORT.
set -eu
cd "$(dirname "$0")/.."
here=$(pwd)
tools=$here/.tools/mail-peers
port=${PORT:-8521}
smtp=${SMTP_LISTEN_PORT:-2526}
postfix_port=${POSTFIX_PORT:-2625}
moto_port=${MOTO_PORT:-5225}
dns_port=${DNS_PORT:-5533}

# dkimpy checks signatures, dnslib is the name server of peer.test.
pinned="moto[server]==5.2.5 dkimpy[ed25519]==1.1.8 dnslib==0.9.26"
if [ "$(cat "$tools/installed" 2>/dev/null)" != "$pinned" ]; then
  echo "installing $pinned into .tools/mail-peers (once)" >&2
  rm -rf "$tools/python"
  python3 -m venv "$tools/python"
  # shellcheck disable=SC2086
  "$tools/python/bin/pip" install --quiet --disable-pip-version-check $pinned ||
    { echo "SKIPPED: the Python packages cannot be installed" >&2; exit 0; }
  echo "$pinned" >"$tools/installed"
fi
local/client.sh
agora="${AGORA_LOCAL:-$(local/target-dir.sh)/debug/agora-local}"
[ -x "$agora" ] || { echo "$agora is not built: cargo build -p local" >&2; exit 1; }

# Sets `postfix` to the folder where the package is unpacked; false, with a message, if it cannot run here.
postfix_ready() {
  postfix=$tools/postfix
  [ "$(id -u)" = 0 ] || { echo "SKIPPED: Postfix starts as root only" >&2; return 1; }
  command -v apt-get >/dev/null && command -v dpkg >/dev/null ||
    { echo "SKIPPED: no Debian, so no package of Postfix" >&2; return 1; }
  if [ ! -x "$postfix/usr/sbin/postfix" ]; then
    echo "downloading Debian's Postfix into .tools/mail-peers (once, 1.5 MB)" >&2
    mkdir -p "$tools/deb"
    (cd "$tools/deb" && { apt-get download -qq postfix || { apt-get update -qq && apt-get download -qq postfix; }; }) \
      >/dev/null 2>&1 && dpkg -x "$tools"/deb/postfix_*.deb "$postfix" ||
      { echo "SKIPPED: Postfix cannot be downloaded" >&2; return 1; }
  fi
  missing=$(LD_LIBRARY_PATH=$postfix/usr/lib/postfix ldd "$postfix/usr/lib/postfix/sbin/smtpd" | grep 'not found' || true)
  [ -z "$missing" ] || { echo "SKIPPED: Postfix needs libraries that are not here: $missing" >&2; return 1; }
}

work=$(mktemp -d /tmp/mail-peers.XXXXXX)
chmod 755 "$work"
stack='' peer='' dns='' relay=''
ended() {
  # shellcheck disable=SC2086
  kill $stack $peer $dns 2>/dev/null || true
  [ -z "$relay" ] || LD_LIBRARY_PATH=$postfix/usr/lib/postfix "$postfix/usr/sbin/postfix" -c "$work/etc" stop 2>/dev/null || true
  wait 2>/dev/null || true
  if [ -n "${KEEP:-}" ]; then
    mkdir -p "$KEEP"
    cp -r "$work"/*.log "$work/mail" "$work/seen" "$KEEP" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap ended EXIT
trap 'exit 1' INT TERM

# usage: start NAME [VARIABLE=value...]; a stack with a state of its own
start() {
  name=$1
  shift
  folder=$work/$name
  mkdir -p "$folder" "$here/.tools/anvil"
  ln -s "$here/.tools" "$folder/.tools"
  (cd "$folder" && exec env PORT="$port" SMTP_LISTEN_PORT="$smtp" "$@" "$agora" >"$work/stack-$name.log" 2>&1) &
  stack=$!
  for _ in $(seq 600); do
    [ ! -f "$folder/.local/stack.json" ] || break
    kill -0 "$stack" 2>/dev/null || { cat "$work/stack-$name.log" >&2; exit 1; }
    sleep 0.2
  done
  export STACK="$folder/.local/stack.json"
}
stop() {
  kill "$stack"
  wait "$stack" 2>/dev/null || true
  stack=''
}
# usage: await PORT PID LOG; waits until something listens
await() {
  for _ in $(seq 120); do
    python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)" 2>/dev/null && return
    kill -0 "$2" 2>/dev/null || break
    sleep 0.25
  done
  cat "$3" >&2
  exit 1
}

failed=0
mkdir "$work/seen"
case "${1:-both}" in both | postfix)
  if postfix_ready; then
    # The mail host of peer.test: delivers to two system users, refuses `refused@` while the relay listens, takes everything
    # else, and bounces it when it finds no such user.
    libraries=$postfix/usr/lib/postfix
    mkdir -p "$work/etc" "$work/queue" "$work/data" "$work/mail"
    chmod 1777 "$work/mail"
    chown uucp "$work/data"
    sed -e "s|@WORK@|$work|g" -e "s|@POSTFIX@|$postfix|g" local/mail-peers/main.cf >"$work/etc/main.cf"
    sed -e "s|@PORT@|$postfix_port|g" local/mail-peers/master.cf >"$work/etc/master.cf"
    grep queue_directory "$postfix/etc/postfix/postfix-files" >"$work/etc/postfix-files"
    # The service's domains; and a host where nobody listens.
    printf '%s smtp:[127.0.0.1]:%s\n' agents.test "$smtp" own.test "$smtp" gone.test 1 >"$work/etc/transport"
    relay=yes
    LD_LIBRARY_PATH=$libraries "$postfix/usr/sbin/postfix" -c "$work/etc" start >"$work/postfix-start.log" 2>&1 ||
      { cat "$work/postfix-start.log" "$work/postfix.log" >&2; exit 1; }
    "$tools/python/bin/python" local/mail-peers/zone.py "$dns_port" "$work/zone.json" >"$work/dns.log" 2>&1 &
    dns=$!
    start postfix EMAIL_PROVIDERS=smtp SMTP_URL="smtp://127.0.0.1:$postfix_port" MAIL_FROM=approvals@agents.test \
      DNS_SERVER="127.0.0.1:$dns_port"
    echo "== Postfix $(LD_LIBRARY_PATH=$libraries "$postfix/usr/sbin/postconf" -c "$work/etc" -h mail_version)"
    LD_LIBRARY_PATH=$libraries SENDMAIL="$postfix/usr/sbin/sendmail -C $work/etc" \
      "$tools/python/bin/python" local/mail-peers/check.py postfix "$work" || failed=1
    stop
  fi ;;
esac
case "${1:-both}" in both | ses)
  "$tools/python/bin/moto_server" -p "$moto_port" >"$work/moto.log" 2>&1 &
  peer=$!
  await "$moto_port" "$peer" "$work/moto.log"
  start ses EMAIL_PROVIDERS=ses PROVIDER_URLS="{\"ses\": \"http://127.0.0.1:$moto_port\"}"
  echo "== moto as SES"
  MOTO="http://127.0.0.1:$moto_port" "$tools/python/bin/python" local/mail-peers/check.py ses "$work" || failed=1
  stop
  ;;
esac
exit $failed
