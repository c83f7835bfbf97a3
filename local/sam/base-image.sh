#!/bin/sh
# Makes the image in which `sam local` runs functions, from this machine's C library and busybox (5 MB), and tags it with
# the name that SAM looks for. Not needed where the public image can be pulled.
#
# It tests packaging, events and answers. It does not test that the binary finds the libraries of Amazon Linux: cargo-lambda
# links for those.
#
#   base-image.sh "podman --root …"
set -eu

engine=$1
case $(uname -m) in
x86_64) arch=x86_64 loader=lib64/ld-linux-x86-64.so.2 libs=lib/x86_64-linux-gnu ;;
aarch64) arch=arm64 loader=lib/ld-linux-aarch64.so.1 libs=lib/aarch64-linux-gnu ;;
*) echo "Lambda does not support $(uname -m)" >&2; exit 1 ;;
esac
image=public.ecr.aws/lambda/provided:al2023

if $engine image exists "$image-$arch"; then
    exit 0
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/$(dirname "$loader")" "$root/$libs" "$root/etc" "$root/opt" "$root/tmp" "$root/var/task" \
    "$root/var/runtime" "$root/var/rapid"
chmod 1777 "$root/tmp"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in sh mv chmod cp rm cat ls mkdir; do ln -s busybox "$root/bin/$applet"; done
cp -L "/$loader" "$root/$loader"
for library in libc.so.6 libm.so.6 libgcc_s.so.1 libpthread.so.0 libdl.so.2; do
    cp -L "/$libs/$library" "$root/$libs/$library"
done
# SAM's emulator runs the function as this user, like Lambda.
printf 'root:x:0:0:root:/:/bin/sh\nsbx_user1051:x:993:990::/:/bin/sh\n' >"$root/etc/passwd"
tar -C "$root" -cf - . | $engine import - "$image-$arch" >/dev/null
$engine tag "$image-$arch" "$image"
echo "made $image-$arch"
