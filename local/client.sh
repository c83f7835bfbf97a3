#!/bin/sh
# Installs the published x402 client where `make read`, `make spend` and `make tour` look for it, unless it is there.
set -eu
cd "$(dirname "$0")/../tests/clients/v2"
# What npm itself says is installed is as new as what is wanted.
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  echo "installing the published x402 client (once, about 90 MB)" >&2
  npm ci --ignore-scripts --no-audit --no-fund --silent
fi
