#!/bin/sh
# A container engine for `make sam` on a Debian or Ubuntu machine that has none. Opt-in, because it installs packages:
#
#   sudo local/sam/podman.sh start     installs podman if it is missing, makes the base image, starts the service
#   sudo local/sam/podman.sh stop      stops the service; images stay
#
# Everything but the packages lies in .tools/podman (ignored by git), with an image store of its own, so that images of
# the same name you may have elsewhere are left alone. local/sam/invoke.py finds the service there by itself.
set -eu

cd "$(dirname "$0")/../.."
home=$PWD/.tools/podman
socket=$home/podman.sock
export CONTAINERS_CONF=$home/containers.conf
podman="podman --root $home/storage --runroot $home/run"

packages='podman runc netavark aardvark-dns iptables uidmap busybox-static'

install() {
    command -v podman >/dev/null && command -v runc >/dev/null && return
    echo "installing $packages"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
}

# runc and these limits also work on hosts where crun may not raise RLIMIT_NOFILE or where cgroups are in hybrid mode.
configure() {
    mkdir -p "$home"
    cat >"$CONTAINERS_CONF" <<CONF
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
[network]
network_backend = "netavark"
CONF
}

start() {
    install
    configure
    if running; then
        echo "already running on $socket"
        return
    fi
    "$PWD/local/sam/base-image.sh" "$podman"
    rm -f "$socket"
    setsid $podman system service --time=0 "unix://$socket" >"$home/service.log" 2>&1 </dev/null &
    echo $! >"$home/service.pid"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -S "$socket" ] && break
        sleep 0.5
    done
    [ -S "$socket" ] || { cat "$home/service.log" >&2; exit 1; }
    echo "podman answers on $socket"
}

running() {
    [ -S "$socket" ] && [ -f "$home/service.pid" ] && kill -0 "$(cat "$home/service.pid")" 2>/dev/null
}

stop() {
    if running; then kill "$(cat "$home/service.pid")"; fi
    rm -f "$socket" "$home/service.pid"
}

case ${1:-} in
start) start ;;
stop) stop ;;
*)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
