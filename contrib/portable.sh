#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds a program that runs on any Linux: build/portable/TARGET/pted; pte, which is a link to it;
# and THIRD_PARTY, the licences of what is in it. The libraries that pted otherwise opens at run
# time are linked in. Their sources are those of contrib/portable/sources.tsv, the compiler is that
# of contrib/portable/requirements.txt. What is built stays there: the next run builds what changed.
#
#   contrib/portable.sh [TARGET]...
#   contrib/portable.sh --again [TARGET]...
#                                   builds once more in another folder, from nothing, and compares
#   contrib/portable.sh --check     says which programs are missing that it needs
#
# TARGET: x86_64-linux-musl or aarch64-linux-musl, which are static (the default is this machine's);
# x86_64-linux-gnu or aarch64-linux-gnu, for glibc 2.28 and newer. Variables:
#
#   PTED_SOURCES  a folder that has the files of libraries already
#   PTED_MIRRORS  addresses of Debian's mirrors, in place of those that apt knows
#   ZIG           a compiler that is there already: a name in PATH, or a whole path
#   JOBS          for make

set -eu
cd "$(dirname "$0")/.."
top=$(pwd)
work=$top/build/portable
table=$top/contrib/portable/sources.tsv
jobs=${JOBS:-$(nproc)}
# shellcheck source=contrib/portable/libraries.sh
. contrib/portable/libraries.sh

die() {
    echo "portable: $*" >&2
    exit 1
}

need() {
    missing=
    for program; do
        command -v "$program" >/dev/null || missing="$missing $program"
    done
    [ -z "$missing" ] || die "needs$missing (Debian: autoconf automake cmake curl dpkg libtool" \
        "make nasm patch perl pkg-config python3-venv xz-utils)"
}

# apt-get knows the mirrors, if nobody names them or has the files.
check_tools() {
    need autoreconf cmake curl dpkg-deb make nasm patch perl pkg-config python3 xz
    [ -n "${PTED_MIRRORS-}${PTED_SOURCES-}" ] || need apt-get
}

# ---- the compiler --------------------------------------------------------------------------------

find_zig() {
    if [ -n "${ZIG-}" ]; then
        zig=$(command -v "$ZIG" || true)
        case $zig in
        /*) ;;
        *) die "ZIG: expected a program, by a name in PATH or a whole path, got '$ZIG'" ;;
        esac
    else
        zig=$work/venv/bin/zig
        install_zig
    fi
    compiler=$("$zig" version) || die "$zig: expected a compiler"
}

install_zig() {
    requirements=contrib/portable/requirements.txt
    ! cmp -s $requirements "$work/venv/requirements.txt" || return 0
    echo 'portable: installing the compiler'
    rm -rf "$work/venv"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --require-hashes -r $requirements
    # The program itself: `python -m ziglang` starts a Python for each file that is compiled.
    ln -s "$("$work/venv/bin/python" -c 'import ziglang; print(ziglang.__path__[0])')/zig" "$zig"
    cp $requirements "$work/venv/"
}

zig_lib() {
    "$zig" env | sed -n 's/^ *\.lib_dir = "\(.*\)",$/\1/p'
}

# write_tool NAME COMMAND...
write_tool() {
    name=$1
    shift
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$tools/$name"
    chmod +x "$tools/$name"
}

# The target's own, so that nothing of this machine gets in, the names of its folders either.
write_tools() {
    mkdir -p "$tools"
    write_tool cc "$zig" cc -target "$zig_target" -mcpu=baseline -ffile-prefix-map="$top"=.
    write_tool ar "$zig" ar
    write_tool ranlib "$zig" ranlib
    write_tool pkg-config env PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig" pkg-config --static
    CC=$tools/cc AR=$tools/ar RANLIB=$tools/ranlib PKG_CONFIG=$tools/pkg-config
    CFLAGS='-O2 -fPIC -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2'
    CFLAGS="$CFLAGS -ffunction-sections -fdata-sections"
    LDFLAGS='-s -Wl,--gc-sections -Wl,--build-id=none -Wl,-z,relro -Wl,-z,now'
    SOURCE_DATE_EPOCH=0 # the same program, whenever a library was built
    ZIG_GLOBAL_CACHE_DIR=$work/zig-cache ZIG_LOCAL_CACHE_DIR=$work/zig-cache
    LC_ALL=C TZ=UTC
    export CC AR RANLIB PKG_CONFIG CFLAGS LDFLAGS SOURCE_DATE_EPOCH LC_ALL TZ
    export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
}

# ---- sources -------------------------------------------------------------------------------------

# The libraries of a target: name, version, licence. A static program has no Vulkan.
library_rows() {
    awk -F '\t' -v unused="${vulkan:+vulkan-headers}" '
        !/^#/ && $2 != "-" && $1 != unused { printf "%s\t%s\t%s\n", $1, $2, $3 }' "$table"
}

libraries() {
    library_rows | cut -f 1
}

# Each file of a library with its hash.
rows() {
    awk -F '\t' -v name="$1" '!/^#/ && $1 == name { print $5, $6 }' "$table"
}

# The files with the texts of a library's licence, one a line.
licence_texts() {
    awk -F '\t' -v name="$1" '!/^#/ && $1 == name && $2 != "-" { print $4 }' "$table" | tr ' ' '\n'
}

mirrors() {
    # shellcheck disable=SC2016 # for apt-get, not for the shell
    echo "${PTED_MIRRORS:-$(apt-get indextargets --format '$(REPO_URI)' | sort -u)}"
}

is_right() {
    [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status
}

# Prints the path of a file of a row: PATH SHA256.
fetch() {
    file=$work/sources/$(basename "$1")
    given=${PTED_SOURCES:-$work/sources}/$(basename "$1")
    if is_right "$given" "$2"; then
        echo "$given"
        return
    fi
    for mirror in $(mirrors); do
        curl -fsSL --retry 2 -o "$file" "${mirror%/}/$1" 2>/dev/null || continue
        is_right "$file" "$2" || die "$1: expected the SHA-256 $2"
        echo "$file"
        return
    done
    die "$1: no mirror has it. Correct contrib/portable/sources.tsv, or put it into PTED_SOURCES"
}

# Patches for OpenSSL's rivals, of which Debian builds libcurl once more, do not belong here.
apply_patches() {
    [ -f debian/patches/series ] || return 0
    sed 's/[[:space:]]*#.*//; /^90_gnutls/d; /^99_nss/d' debian/patches/series |
        while read -r name _; do
            [ -z "$name" ] || patch -s -p1 <"debian/patches/$name" || die "$name does not apply"
        done
}

# Into the current folder.
unpack() {
    rows "$1" | while read -r path hash; do
        file=$(fetch "$path" "$hash")
        case $file in
        *.deb) dpkg-deb -x "$file" . ;;
        *.debian.tar.*) tar -xf "$file" ;;
        *) tar -xf "$file" --strip-components=1 ;;
        esac
    done
    apply_patches
    mkdir -p "$prefix/licences/$1"
    licence_texts "$1" | while read -r text; do
        cp "$text" "$prefix/licences/$1/"
    done
}

# ---- a target ------------------------------------------------------------------------------------

function_of() {
    echo "build_$1" | tr - _
}

# A library is built anew when its rows, its recipe, the flags or the compiler change.
stamp_of() {
    {
        echo "$compiler"
        echo "$CFLAGS"
        rows "$1"
        for recipe in smaller autotools cmake_static "$(function_of "$1")"; do
            sed -n "/^$recipe()/,/^}/p" "$top/contrib/portable/libraries.sh"
        done
    } | sha256sum | cut -d ' ' -f 1
}

# finish STATUS NAME LOG: behind a subshell, in which a condition would switch set -e off.
finish() {
    set -e
    [ "$1" -eq 0 ] || { tail -n 20 "$3" >&2; die "$target: $2: see $3"; }
}

build_library() {
    stamp=$target_dir/stamps/$1
    [ "$(cat "$stamp" 2>/dev/null)" != "$(stamp_of "$1")" ] || return 0
    echo "portable: $target: $1"
    log=$target_dir/logs/$1.log
    rm -rf "$target_dir/src/$1"
    mkdir -p "$target_dir/src/$1"
    set +e
    (set -e; cd "$target_dir/src/$1"; unpack "$1"; "$(function_of "$1")") >"$log" 2>&1 </dev/null
    finish $? "$1" "$log"
    stamp_of "$1" >"$stamp"
}

set_target() {
    target=$1
    target_dir=$work/$1
    prefix=$target_dir/root
    tools=$target_dir/tools
    cpu=${1%%-*}
    case $1 in
    *-gnu) zig_target=$1.2.28 vulkan='' link=-pie libc='' ;;
    *) zig_target=$1 vulkan=--without-vulkan link='-static -pie' libc=musl ;;
    esac
    mkdir -p "$target_dir/stamps" "$target_dir/logs" "$target_dir/build" "$work/sources"
}

# Configures again after a library was built.
make_pted() {
    state=$(cat "$target_dir"/stamps/* "$top/configure" | sha256sum)
    if [ "$(cat configured 2>/dev/null)" != "$state" ]; then
        # shellcheck disable=SC2086 # an option or nothing
        "$top/configure" --quiet --host="$target" --enable-linked-libraries --disable-libpted \
            $vulkan --with-llhttp-sources="$prefix/share/llhttp" \
            --with-llhttp-include="$prefix/share/include/llhttp" LDFLAGS="$LDFLAGS $link" \
            CPPFLAGS="-isystem $prefix/include"
        echo "$state" >configured
    fi
    make -s -j"$jobs" pted
    cp pted "$target_dir"
    ln -sf pted "$target_dir/pte"
}

build_pted() {
    echo "portable: $target: pted"
    log=$target_dir/logs/pted.log
    set +e
    (set -e; cd "$target_dir/build"; make_pted) >"$log" 2>&1 </dev/null
    finish $? pted "$log"
}

# pted's own licence is LICENSE.
write_third_party() {
    echo 'Software of others in the program pted, with versions and licences:'
    echo
    library_rows | awk -F '\t' '{ printf "  %-14s %-8s %s\n", $1, $2, $3 }'
    printf '  %-14s %-8s %s\n' zig "$compiler" MIT
    [ -z "$libc" ] || printf '  %-14s %-8s %s\n' "$libc" '' MIT
    cat <<'EOF'

Zig, the compiler, brings functions for arithmetic, and in a static program those of C for memory
and others. A program for glibc has that library's start files, which are under the LGPL with an
exception for what is linked with them.

libsndfile, mpg123 and soxr are under the GNU Lesser General Public License. To link pted with
changed ones (section 6 of version 2.1): pted's sources, its contrib/portable.sh and all sources
that contrib/portable/sources.tsv names are public. Put the changed sources into the folder that
PTED_SOURCES names, their SHA-256 into the table, and run contrib/portable.sh.
EOF
    for library in $(libraries); do
        licence_texts "$library" | while read -r text; do
            printf '\n==== %s: %s ====\n\n' "$library" "${text##*/}"
            cat "$prefix/licences/$library/${text##*/}"
        done
    done
    printf '\n==== zig: LICENSE ====\n\n'
    cat "$(zig_lib)/../LICENSE"
    if [ -n "$libc" ]; then
        printf '\n==== musl: COPYRIGHT ====\n\n'
        cat "$(zig_lib)/libc/musl/COPYRIGHT"
    fi
}

build_target() {
    set_target "$1"
    write_tools
    for library in $(libraries); do
        build_library "$library"
    done
    build_pted
    write_third_party >"$target_dir/THIRD_PARTY"
}

# ---- once more ----------------------------------------------------------------------------------

# Names of folders, what was built before, and the compiler's cache are others there.
build_again() {
    copy=$(mktemp -d)/pted-again
    mkdir -p "$copy/build"
    tar -C "$top" --exclude=./build --exclude=./.git -cf - . | tar -C "$copy" -xf -
    contrib/commit.sh "$top" >"$copy/COMMIT"
    PTED_SOURCES=${PTED_SOURCES:-$work/sources} "$copy/contrib/portable.sh" "$@"
    for name; do
        for file in pted THIRD_PARTY; do
            cmp "$work/$name/$file" "$copy/build/portable/$name/$file" ||
                die "$name/$file: two builds differ: see $copy"
        done
        echo "portable: $name: two builds have the same bytes"
    done
    rm -rf "${copy%/*}"
}

again=
case ${1-} in
--help) sed -n '3,/^$/s/^# \{0,1\}//p' "$top/contrib/portable.sh"; exit 0 ;;
--check) check_tools; exit 0 ;;
--again) again=yes; shift ;;
esac
[ $# -gt 0 ] || set -- "$(uname -m)-linux-musl"
for name; do
    case $name in
    x86_64-linux-musl | aarch64-linux-musl | x86_64-linux-gnu | aarch64-linux-gnu) ;;
    *) die "expected a target such as x86_64-linux-musl, got '$name'" ;;
    esac
done
check_tools
mkdir -p "$work"
[ -x configure ] || autoreconf -fi
find_zig
for name; do
    (build_target "$name")
done
[ -z "$again" ] || build_again "$@"
