# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# Sourced by quickstart.sh and check.sh: installs Debian's packages if the system has dpkg.

# shellcheck disable=SC2034 # for the script that sources this file
BUILD_PACKAGES='build-essential autoconf automake pkg-config libuv1-dev libllhttp-dev|node-llhttp
    zlib1g-dev libcjson-dev libpcre2-dev libutf8proc-dev libsndfile1-dev libsoxr-dev libssl-dev
    libcurl4-openssl-dev libjpeg62-turbo-dev libpng-dev libwebp-dev libyaml-dev
    libvulkan-dev curl'

# Is the package there? "new|old": the old one counts where the system does not know the new one.
is_installed() {
    dpkg -s "${1%|*}" >/dev/null 2>&1 ||
        { ! apt-cache show "${1%|*}" >/dev/null 2>&1 && dpkg -s "${1#*|}" >/dev/null 2>&1; }
}

# Installs the named packages that are missing, as root or through sudo.
install_packages() {
    command -v dpkg >/dev/null || return 0
    missing=
    for package; do
        is_installed "$package" || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    root=
    [ "$(id -u)" -eq 0 ] || root=sudo
    $root apt-get -qq update || return
    wanted=
    for package in $missing; do
        apt-cache show "${package%|*}" >/dev/null 2>&1 || package=${package#*|}
        wanted="$wanted ${package%|*}"
    done
    echo "installing$wanted"
    # shellcheck disable=SC2086 # both are lists of words
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
        --no-install-recommends $wanted </dev/null >/dev/null
}
