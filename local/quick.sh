#!/bin/sh
# `make quick`: formatting, one set of features, the unit tests of the crates that changed since main (or BASE), whether the rest
# compiles, and Schemathesis on the routes that changed (SCHEMATHESIS=no leaves it out).
# JOURNEYS=name also runs the journeys whose path contains the name; linking them takes a minute or two more.
set -eu
cd "$(dirname "$0")/.."
base=$(git merge-base HEAD "${BASE:-$(git rev-parse --verify --quiet origin/main || echo HEAD)}")
changed=$({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u)

cargo fmt --all --check
python3 local/features/check.py
packages=
for file in $changed; do
  folder=$(dirname "$file")
  while [ "$folder" != . ] && [ ! -f "$folder/Cargo.toml" ]; do folder=$(dirname "$folder"); done
  # Journeys and benches have no unit tests; functions neither.
  case $folder in . | tests | tests/* | functions/*) continue ;; esac
  name=$(sed -n 's/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml" | head -1)
  case "$packages " in *" $name "*) ;; *) packages="$packages --package $name" ;; esac
done
if [ -n "$packages" ]; then
  echo "== unit tests:$packages"
  # shellcheck disable=SC2086 # one word for each
  cargo test --quiet --lib $packages --package build-features
fi
echo "== does everything compile"
cargo check --quiet --workspace --all-targets
# shellcheck disable=SC2086 # one word for each
routes=$(python3 local/schemathesis/changed.py $changed)
if [ -n "$routes" ] && [ "${SCHEMATHESIS:-}" != no ]; then
  echo "== the API description on the routes that changed"
  cargo build --quiet --package local
  EXAMPLES=${EXAMPLES:-2} ROUTES=$routes local/schemathesis.sh
fi
if [ -n "${JOURNEYS:-}" ]; then
  cargo build --workspace --tests --bin agora-local --bin doctor --bin verify-receipts
  cargo test --quiet --workspace --test integration -- "$JOURNEYS"
else
  echo "passed; journeys are not run by this: JOURNEYS=webhooks make quick runs those of webhooks, make test all"
fi
