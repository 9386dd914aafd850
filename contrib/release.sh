#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes a release of the commit that is checked out, in build/release/VERSION. It publishes nothing.
# docs/project/releases.md says what has to be done before and after.
#
#   contrib/release.sh VERSION [OPTION]...
#
#   --key ID          sign files, tag and apt folder with this key of gpg
#   --targets LIST    of contrib/portable.sh, with blanks between them; "": none
#   --apt DIR         add to the apt folder DIR, not to a new one beside the files
#   --no-checks       leave contrib/check.sh out
#   --placeholders    accept addresses that are not filled in
#
# Packages of PyPI for the bill of materials (contrib/release/requirements.txt) are installed in
# build/release/python. The tag is made last, so a release that fails has none.

set -eu
caller=$PWD
cd "$(dirname "$0")/.."
source=$PWD

fail() {
    echo "release.sh: $*" >&2
    exit 1
}

usage() {
    sed -n 's/^# \{0,1\}//; 7,13p' "$source/contrib/release.sh" >&2
    exit 64
}

version=
key=
targets='x86_64-linux-musl aarch64-linux-musl x86_64-linux-gnu aarch64-linux-gnu'
apt=
checks=yes
placeholders=
while [ $# -gt 0 ]; do
    case $1 in
    --key | --targets | --apt)
        [ $# -gt 1 ] || usage
        case $1 in
        --key) key=$2 ;;
        --targets) targets=$2 ;;
        --apt)
            case $2 in
            /*) apt=$2 ;;
            *) apt=$caller/$2 ;;
            esac
            ;;
        esac
        shift
        ;;
    --no-checks) checks= ;;
    --placeholders) placeholders=yes ;;
    -*) usage ;;
    *)
        [ -z "$version" ] || usage
        version=$1
        ;;
    esac
    shift
done
[ -n "$version" ] || usage
case $version in
*[!0-9.]* | .* | *. | *..*) fail "version '$version': expected MAJOR.MINOR.PATCH" ;;
*.*.*.*) fail "version '$version': expected MAJOR.MINOR.PATCH" ;;
*.*.*) ;;
*) fail "version '$version': expected MAJOR.MINOR.PATCH" ;;
esac

# ---- what has to be right before anything is made ----

# same PLACE FOUND: the version there is the one that is made.
same() {
    [ "$2" = "$version" ] || fail "$1: version '$2', expected '$version'"
}

check_tree() {
    [ -z "$(git status --porcelain)" ] || fail "the tree is not clean: see git status"
    ! git rev-parse -q --verify "refs/tags/v$version" >/dev/null ||
        fail "there is a tag v$version already"
    same configure.ac "$(sed -n 's/^AC_INIT(\[pted\], \[\(.*\)\])$/\1/p' configure.ac)"
    same debian/changelog "$(sed -n '1s/^pted (\(.*\)) .*/\1/p' debian/changelog)"
    heading=$(grep -m 1 '^## \[[0-9]' CHANGELOG.md)
    same CHANGELOG.md "$(echo "$heading" | sed 's/^## \[\(.*\)\].*/\1/')"
    echo "$heading" | grep -qxE '## \[.*\] - [0-9]{4}-[0-9]{2}-[0-9]{2}' ||
        fail "CHANGELOG.md: '$heading' has no date, expected '## [$version] - YYYY-MM-DD'"
    if [ -z "$placeholders" ]; then
        ! grep -n 'to be filled in' SECURITY.md || fail "SECURITY.md: who gets reports?"
        ! grep -n 'example\.org' debian/control || fail "debian/control: who is the maintainer?"
        ! sed -n '/^ -- /{p;q}' debian/changelog | grep 'example\.org' ||
            fail "debian/changelog: who made this version?"
    fi
}

check_tools() {
    for tool in apt-ftparchive autoreconf dpkg-buildpackage git python3 sha256sum; do
        command -v "$tool" >/dev/null || fail "there is no $tool: see docs/project/releases.md"
    done
    [ -z "$targets" ] || contrib/portable.sh --check ||
        fail "portable programs need these, or --targets ''"
    git var GIT_COMMITTER_IDENT >/dev/null 2>&1 ||
        fail "git cannot make a tag: set user.name and user.email by git config"
    [ -z "$key" ] || gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 ||
        fail "gpg has no secret key '$key'"
    [ -n "$key" ] || [ ! -e "${apt:-/nonexistent}/InRelease" ] ||
        fail "$apt is signed: expected --key"
}

make_python() {
    venv=$source/build/release/python
    if ! cmp -s contrib/release/requirements.txt "$venv/requirements.txt"; then
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
            -r contrib/release/requirements.txt
        cp contrib/release/requirements.txt "$venv/"
    fi
}

# ---- what is made; each in the folder $work ----

# Of the files of git alone. Two archives of one commit are the same: order, owner and times of the
# files are those of the commit.
make_archive() {
    git clone -q --no-hardlinks "$source" "$work/clone"
    (
        cd "$work/clone"
        autoreconf -fi >"$work/autoreconf.log" 2>&1 || { cat "$work/autoreconf.log"; exit 1; }
        mkdir tree
        cd tree
        ../configure --quiet >/dev/null
        TAR_OPTIONS="--sort=name --owner=0 --group=0 --numeric-owner --mtime=@$SOURCE_DATE_EPOCH
            --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime" \
            make -s dist GZIP_ENV=-9n
    )
    mv "$work/clone/tree/pted-$version.tar.gz" "$out/"
    rm -rf "$work/clone"
    # All that follows is made of the archive, as others would.
    tar -C "$work" -xzf "$out/pted-$version.tar.gz"
    mv "$work/pted-$version" "$work/pted"
}

make_package() {
    (
        cd "$work/pted"
        unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS
        DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym" \
            dpkg-buildpackage -b -us -uc >"$work/package.log" 2>&1 ||
            { tail -n 40 "$work/package.log"; exit 1; }
    )
    mv "$work"/*.deb "$out/"
}

# pack TARGET: the program of build/portable/TARGET as an archive, in which pte is a link.
pack() {
    name=pted-$version-$1
    mkdir "$work/$name"
    for file in pted pte THIRD_PARTY; do
        [ ! -e "build/portable/$1/$file" ] || cp -P "build/portable/$1/$file" "$work/$name/"
    done
    cp LICENSE README.md CHANGELOG.md "$work/$name/"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$SOURCE_DATE_EPOCH" -c "$name" | gzip -9n >"$out/$name.tar.gz"
}

make_portable() {
    [ -n "$targets" ] || return 0
    cd "$work/pted"
    # shellcheck disable=SC2086 # a list of words
    contrib/portable.sh $targets
    for target in $targets; do
        pack "$target"
    done
    # shellcheck disable=SC2086 # a list of words
    python3 python/wheels.py --out "$out" $targets
    cd "$source"
}

make_apt() {
    mkdir -p "$apt"
    cp "$out"/*.deb "$apt/"
    contrib/release/apt.sh "$apt" "$key"
}

sign() {
    for file in "$out"/*pted* "$out/SHA256SUMS"; do
        gpg --batch --yes --local-user "$key" --armor --detach-sign "$file"
    done
    gpg --batch --export "$key" >"$out/pted-archive-keyring.gpg"
}

make_tag() {
    if [ -n "$key" ]; then
        git tag -s -u "$key" -m "pted $version" "v$version"
    else
        git tag -a -m "pted $version" "v$version"
    fi
}

say() {
    printf '%s %s\n' "$(date +%H:%M:%S)" "$*"
}

check_tree
check_tools
out=$source/build/release/$version
work=$source/build/release/work
apt=${apt:-$out/apt}
rm -rf "$out" "$work"
mkdir -p "$out" "$work"
trap 'rm -rf "$work"' EXIT
make_python
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
if [ -n "$checks" ]; then
    say "contrib/check.sh"
    contrib/check.sh
fi
say "the archive"
make_archive
say "the package"
make_package
say "portable programs"
make_portable
say "the bill of materials, sums and the apt folder"
"$venv/bin/python" contrib/release/sbom.py "$version" "$(cat "$work/pted/COMMIT")" "$out"
(cd "$out" && sha256sum ./*pted* | sed 's, \./, ,' >SHA256SUMS)
make_apt
[ -z "$key" ] || sign
make_tag
say "tag v$version, files in $out:"
ls -l "$out"
