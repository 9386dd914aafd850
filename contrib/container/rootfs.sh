#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes a folder that has all that an image of pted needs: the stripped program, its libraries and
# nothing else. There is no shell in it. The image computes on the CPU.
#
#   contrib/container/rootfs.sh PTED FOLDER
set -eu

program=$1
root=$2
[ ! -e "$root" ] || { echo "$root: expected a new folder" >&2; exit 64; }
mkdir -p "$root/usr/bin" "$root/etc" "$root/models" "$root/tmp"
cp "$program" "$root/usr/bin/pted"
strip "$root/usr/bin/pted"
copy_library() {
    mkdir -p "$root$(dirname "$1")"
    cp -L "$1" "$root$1"
}

# Lines of ldd are "NAME => PATH (ADDRESS)" or "PATH (ADDRESS)".
ldd "$program" | awk '{ print $2 == "=>" ? $3 : $1 }' | grep '^/' | while read -r library; do
    copy_library "$library"
done
# The program loads these when it needs them, for tokens and TLS.
for name in libcrypto.so.3 libssl.so.3; do
    library=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p |
        awk -v name="$name" '$1 == name && !found { print $NF; found = 1 }')
    [ -n "$library" ] || { echo "$name: expected OpenSSL 3 on this machine" >&2; exit 69; }
    copy_library "$library"
done
echo 'pted:x:65532:65532::/:/nonexistent' >"$root/etc/passwd"
echo 'pted:x:65532:' >"$root/etc/group"
chmod 1777 "$root/tmp"
