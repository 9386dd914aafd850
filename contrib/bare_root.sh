#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: contrib/bare_root.sh [--arch ARCH] SUITE DIR [build] [PACKAGE...]
#
# Makes DIR a root of a suite of Debian, such as trixie, that has nothing but the essential
# packages, what a build takes ("build"), and those that are named. They come from the mirror that
# this system's apt uses. It takes root and debootstrap. ARCH is a name of Debian's, such as arm64,
# whose programs have to start here: see contrib/emulated.sh.

set -eu
arch=
if [ "$1" = --arch ]; then
    arch=--arch=$2
    shift 2
fi
suite=$1 root=$2
shift 2

# The first source that is Debian itself, not its security updates.
mirror=$(apt-get indextargets --format "\$(LABEL) \$(REPO_URI)" 'Created-By: Packages' |
    sed -n 's/^Debian //p' | head -n 1)
# shellcheck disable=SC2086 # without an option, this machine's; without a mirror, debootstrap's own
debootstrap $arch --variant=minbase "$suite" "$root" $mirror
# The root is removed soon: nothing has to reach the disk before the next step.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
[ $# -gt 0 ] || exit 0
for name in packages.sh packages.tsv; do
    cp "$(dirname "$0")/$name" "$root/$name"
done
# shellcheck disable=SC2016 # for the shell in the root
chroot "$root" sh -euc 'PACKAGES=/packages.tsv; . /packages.sh
    [ "$1" != build ] || { shift; set -- $(build_packages "$(distribution)") "$@"; }
    install_packages "$@"' sh "$@"
rm "$root/packages.sh" "$root/packages.tsv"
