#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: contrib/packages.sh [DISTRIBUTION]
#
# Prints the command that installs what a build takes, for this system or a distribution of
# packages.tsv. Other scripts source this file after they have set PACKAGES to that table's path.

: "${PACKAGES:=$(dirname "$0")/packages.tsv}"

# Prints the distribution, a column of the table, that this system is; nothing if it is none.
distribution() {
    # shellcheck disable=SC1091 # a file of the system
    (
        ID='' VERSION_ID=''
        [ ! -r /etc/os-release ] || . /etc/os-release
        case $ID:$VERSION_ID in
        debian:12) echo debian12 ;;
        debian:*) echo debian13 ;; # and newer
        ubuntu:* | fedora:* | arch:* | alpine:*) echo "$ID" ;;
        esac
    )
}

# packages_of USES DISTRIBUTION: prints the packages in the rows of the uses, as "build media".
packages_of() {
    awk -F '\t' -v uses=" $1 " -v wanted="$2" '
        /^#/ { next }
        !column { for (i = 3; i <= NF; i++) if ($i == wanted) column = i; next }
        index(uses, " " $1 " ") { line = line " " $column }
        END { print substr(line, 2) }' "$PACKAGES"
}

# All that a build and contrib/quickstart.sh take.
build_packages() {
    packages_of 'build media vulkan try' "$1"
}

# install_command DISTRIBUTION: prints it.
install_command() {
    case $1 in
    debian* | ubuntu) set -- "$1" apt-get install ;;
    fedora) set -- "$1" dnf install ;;
    arch) set -- "$1" pacman -S --needed ;;
    alpine) set -- "$1" apk add ;;
    *) return 1 ;;
    esac
    column=$1
    shift
    echo "$* $(build_packages "$column")" | fold -s -w 86 |
        sed -e 's/ $/ \\/' -e '2,$s/^/    /'
}

# Installs the named packages that are missing, as root or through sudo; only where dpkg is.
install_packages() {
    command -v dpkg >/dev/null || return 0
    missing=
    for package; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    root=
    [ "$(id -u)" -eq 0 ] || root=sudo
    echo "installing$missing"
    # shellcheck disable=SC2086 # both are lists of words
    $root apt-get -qq update && $root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
        --no-install-recommends $missing </dev/null >/dev/null
}

# Installs what a build takes, or says what to install.
install_build_packages() {
    column=$(distribution)
    case $column in
    debian* | ubuntu)
        # shellcheck disable=SC2046 # a list of words
        install_packages $(build_packages "$column")
        ;;
    ?*)
        printf 'the build needs these packages:\n\n%s\n\n' "$(install_command "$column")"
        ;;
    *)
        echo 'the build needs the libraries that docs/how-to/building.md lists'
        ;;
    esac
}

if [ "${0##*/}" = packages.sh ]; then
    install_command "${1:-$(distribution)}" ||
        {
            names=$(sed -n 's/^use.library.//p' "$PACKAGES" | tr '\t' '|')
            echo "usage: contrib/packages.sh [$names]" >&2
            exit 64
        }
fi
