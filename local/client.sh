#!/bin/sh
# Installs the published x402 client for `make read`, `make spend` and `make tour`, unless it is installed.
set -eu
cd "$(dirname "$0")/../tests/clients/v2"
# npm's own record of what is installed must be newer than the lock file.
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  echo "installing the published x402 client (once, about 90 MB)" >&2
  npm ci --ignore-scripts --no-audit --no-fund --silent
fi
