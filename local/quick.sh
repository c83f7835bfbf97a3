#!/bin/sh
# `make quick`: formatting, the unit tests of the crates that changed since main (or BASE), and whether the rest compiles.
# JOURNEYS=name also runs the journeys whose path contains the name; linking them takes a minute or two more.
set -eu
cd "$(dirname "$0")/.."
base=$(git merge-base HEAD "${BASE:-$(git rev-parse --verify --quiet origin/main || echo HEAD)}")
changed=$({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u)

cargo fmt --all --check
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
if [ -n "${JOURNEYS:-}" ]; then
  cargo build --workspace --tests --bin agora-local --bin doctor --bin verify-receipts
  cargo test --quiet --workspace --test integration -- "$JOURNEYS"
else
  echo "passed; journeys are not run by this: JOURNEYS=webhooks make quick runs those of webhooks, make test all"
fi
