#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: contrib/cross.sh ARCH DIR [OPTION]...
#
# Configures pted in DIR for another architecture of Debian, such as arm64, with Debian's compiler
# for it and options of configure. The libraries are that architecture's own packages, unpacked into
# build/cross/ARCH once: no program of them has to start. `make -C DIR` builds then. Programs that
# it builds run in an emulator with QEMU_LD_PREFIX=build/cross/ARCH: see contrib/emulated.sh. It
# takes mmdebstrap and the compiler, such as gcc-aarch64-linux-gnu. Exits with 77 where packages of
# that architecture cannot be had.

set -eu
cd "$(dirname "$0")/.."
top=$(pwd)
PACKAGES=contrib/packages.tsv
# shellcheck source=contrib/packages.sh
. contrib/packages.sh
arch=$1 dir=$2
shift 2
root=$top/build/cross/$arch

# The architecture, the triplet of its compiler, and the first release of Debian that has it, if
# Debian 12 has not.
ARCHITECTURES='arm64 aarch64-linux-gnu
    armhf arm-linux-gnueabihf
    riscv64 riscv64-linux-gnu debian13:trixie'
row=$(echo "$ARCHITECTURES" | awk -v arch="$arch" '$1 == arch { print $2, $3 }')
if [ -z "$row" ]; then
    known=$(echo "$ARCHITECTURES" | awk '{ printf "%s%s", NR > 1 ? ", " : "", $1 }')
    echo "cross: expected one of $known, got '$arch'" >&2
    exit 64
fi
host=${row% *} first=${row#* }
# shellcheck disable=SC1091 # a file of the system
release=$(distribution):$(. /etc/os-release && echo "$VERSION_CODENAME")
[ "$release" != debian12:bookworm ] || release=${first:-$release}

# What is linked, opened or included; tools are this machine's own. gcc links libatomic on riscv64.
packages() {
    packages_of 'build media vulkan' "${release%:*}" | tr ' ' '\n' | grep -e '-dev$' -e llhttp
    printf '%s\n' libatomic1 libc6-dev libcmocka-dev libedit2
}

# Links of packages lead from the root of the system, which is another one here.
make_links_relative() {
    find "$1" -type l -lname '/*' | while read -r link; do
        ln -sfn --relative "$1$(readlink "$link")" "$link"
    done
}

make_root() {
    mirror=$(apt-get indextargets --format "\$(LABEL) \$(REPO_URI)" 'Created-By: Packages' |
        sed -n 's/^Debian //p' | head -n 1)
    rm -rf "$root.new"
    # shellcheck disable=SC2086 # without a mirror, mmdebstrap's own
    if ! mmdebstrap --quiet --variant=extract --architectures="$arch" \
        --include="$(packages | paste -sd,)" "${release#*:}" "$root.new" $mirror; then
        echo "skipped: apt has no packages for $arch" >&2
        exit 77
    fi
    # The emulator looks here first for each file that a program opens. Those of the system itself
    # are this machine's.
    rm -rf "$root.new/dev" "$root.new/tmp" "$root.new/var"
    make_links_relative "$root.new"
    # Where Debian has merged them, a package that is not needed here has this link.
    [ -e "$root.new/lib" ] || ln -s usr/lib "$root.new/lib"
    rm -rf "$root"
    mv "$root.new" "$root"
}

mkdir -p build/cross "$dir"
# Once more if a package was added.
if [ "$(packages)" != "$(cat "$root.packages" 2>/dev/null)" ]; then
    make_root
    packages >"$root.packages"
fi
[ -x configure ] || autoreconf -fi
cd "$dir"
libdir=$root/usr/lib/$host
PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$libdir/pkgconfig:$root/usr/share/pkgconfig \
    "$top/configure" --quiet --host="$host" CC="$host-gcc --sysroot=$root" \
    --with-llhttp-sources="$root/usr/share/llhttp" \
    --with-llhttp-include="$root/usr/share/include/llhttp" "$@"
