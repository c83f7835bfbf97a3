#!/bin/sh
# Installs what `make sam` needs into .tools (ignored by git), once: the SAM command line with the compiler driver for
# Lambda (about 800 MB, most of it the Zig compiler that links for Amazon Linux), and an emulator of AWS (110 MB). The two
# have folders of their own, because they need different versions of the same library.
# Usage: install.sh [sam|ministack] (default: both)
set -eu

cd "$(dirname "$0")/../.."

install() { # folder, then packages
    folder=$1
    shift
    if [ "$(cat "$folder/installed" 2>/dev/null)" = "$*" ]; then
        return
    fi
    echo "installing $* into $folder"
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --disable-pip-version-check --progress-bar on "$@"
    echo "$*" >"$folder/installed"
}

[ "${1:-sam}" != sam ] || install .tools/sam aws-sam-cli==1.170.0 cargo-lambda==1.9.2 ziglang==0.17.0
# Without the translator, ministack cannot expand SAM's resources.
[ "${1:-ministack}" != ministack ] || install .tools/ministack ministack==1.5.33 aws-sam-translator==1.115.0
