#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the tests of shaders on the software driver of a newer Debian. That driver has features which
# the driver of Debian 12 lacks, for example matrices that subgroups multiply. Nothing is installed:
# packages are unpacked in DIR (about 400 MB), and the programs of this build use its C library.
#
#   contrib/newer_mesa.sh DIR [FAMILY...]    in the build tree, after make check TESTS=
#
# SUITE (forky) and MIRROR (http://deb.debian.org/debian) name the source of the packages. The exit
# status is 77 if they cannot be downloaded.

set -eu
[ $# -gt 0 ] || {
    echo "usage: newer_mesa.sh DIR [FAMILY...]" >&2
    exit 2
}
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
triplet=$(${CC:-cc} -print-multiarch)

apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State="$dir/state" -o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" \
        -o APT::Sandbox::User= -o Debug::NoLocking=1 "$@"
}

# Unpacks the packages into $dir/root. The folder exists only if it is complete.
fetch() {
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial"
    echo "deb [signed-by=$keys] ${MIRROR:-http://deb.debian.org/debian} ${SUITE:-forky} main" \
        >"$dir/sources.list"
    : >"$dir/status"
    apt update && apt install -y --download-only --no-install-recommends mesa-vulkan-drivers \
        libvulkan1 vulkan-validationlayers libcmocka0 || return
    rm -rf "$dir/part"
    for package in "$dir"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$dir/part" || return
    done
    rm -rf "$dir/cache"
    mv "$dir/part" "$dir/root"
}

[ -d "$dir/root" ] || fetch || {
    echo "the packages of ${SUITE:-forky} cannot be downloaded here"
    exit 77
}
libraries=$dir/root/usr/lib/$triplet
loader=$(find "$libraries" -name 'ld-linux*.so.*' | head -n 1)
export VK_DRIVER_FILES="$dir/root/usr/share/vulkan/icd.d/lvp_icd.json"
export VK_LAYER_PATH="$dir/root/usr/share/vulkan/explicit_layer.d"
export top_srcdir="$source" top_builddir="${top_builddir:-.}"
run="$loader --library-path $libraries:/usr/lib/$triplet"
# shellcheck disable=SC2086 # a command and its arguments
$run "$top_builddir/tests/unit/test_halves"
# shellcheck disable=SC2086
exec "$source/tests/validated.sh" $run "$top_builddir/tests/ops/test_shaders" --brief "$@"
