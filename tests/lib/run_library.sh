#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Installs the library into a folder and uses it from there, as other programs do: by pkg-config,
# in C and C++, shared and static. Checks what it exports, and that a program which was linked with
# this version runs with the next one.

set -eu
: "${top_srcdir:=$(dirname "$0")/../..}" "${top_builddir:=.}"
LC_ALL=C
export LC_ALL
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
model=$top_srcdir/tests/models/digits.pte
examples=$top_srcdir/docs/examples

fail() {
    echo "library: $*" >&2
    exit 1
}

of_make() {
    sed -n "s/^$1 = *//p" "$top_builddir/Makefile"
}

[ -e "$top_builddir/lib/libpted.so" ] || { echo "SKIP: built without libpted"; exit 77; }
CC=$(of_make CC)
flags="$(of_make SANITIZE_CFLAGS) $(of_make CFLAGS)"
CXX=${CXX:-c++}
command -v "$CXX" >/dev/null || CXX=

# configure may have been given other folders than those below the prefix.
places="libdir=$folder/usr/lib includedir=$folder/usr/include"
# shellcheck disable=SC2086 # a list of words
MAKEFLAGS='' make -s -C "$top_builddir" prefix="$folder/usr" $places install-libpted \
    install-includeHEADERS install-nodist_pkgconfigDATA >"$folder/out" 2>&1 ||
    fail "make install: $(cat "$folder/out")"
lib=$folder/usr/lib
PKG_CONFIG_PATH=$lib/pkgconfig
export PKG_CONFIG_PATH

config() {
    pkg-config --define-variable=prefix="$folder/usr" --define-variable=libdir="$lib" \
        --define-variable=includedir="$folder/usr/include" "$@" pted
}
[ "$(config --modversion)" = "$(of_make VERSION)" ] || fail "pted.pc has another version"

# ---- what the library exports --------------------------------------------------------------------
header=$folder/usr/include/pted.h
grep -o 'pted_[a-z0-9_]*(' "$header" | grep -v '_f($' | tr -d '(' | sort -u >"$folder/declared"
nm -D --defined-only "$lib/libpted.so" | sed -n 's/.* T \(.*\)@@PTED_0\.1$/\1/p' |
    sort >"$folder/exported"
sed 's/(.*//' "$folder/declared" | comm -3 - "$folder/exported" >"$folder/differ"
[ ! -s "$folder/differ" ] || fail "not both in pted.h and in pted.map: $(cat "$folder/differ")"
nm -D --defined-only "$lib/libpted.so" | grep -v '@@PTED_0\.1$' | grep -v ' A PTED_0\.1$' &&
    fail "libpted.so exports more"
nm -g --defined-only "$lib/libpted.a" | awk 'NF == 3 && $3 !~ /^pted_/' | grep . &&
    fail "libpted.a has global names that are not those of pted.h"
readelf -d "$lib/libpted.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' >"$folder/needed"
grep -vE '^(lib(c|m|dl|pthread|asan|ubsan|tsan|gcov)|ld-linux.*)\.so' "$folder/needed" &&
    fail "libpted.so needs more than the C library"

# ---- the header alone ----------------------------------------------------------------------------
echo '#include <pted.h>' >"$folder/header.c"
cp "$folder/header.c" "$folder/header.cpp"
strict='-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Werror -fsyntax-only'
# shellcheck disable=SC2086,SC2046 # lists of words
$CC -std=c11 $strict $(config --cflags) "$folder/header.c" || fail "pted.h is no C11"
# shellcheck disable=SC2086,SC2046
[ -z "$CXX" ] || $CXX -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
    $(config --cflags) "$folder/header.cpp" || fail "pted.h is no C++11"

# ---- the examples --------------------------------------------------------------------------------
expect() {
    wanted=$1
    shift
    got=$("$@" 2>&1 | tr '\n' ' ') || true
    [ "$got" = "$wanted" ] || fail "$* prints '$got', expected '$wanted'"
}
LD_LIBRARY_PATH=$lib
export LD_LIBRARY_PATH
# shellcheck disable=SC2086,SC2046
$CC $flags "$examples/digits.c" $(config --cflags --libs) -o "$folder/shared"
expect '1 ' "$folder/shared" "$model"
expect 'digits: no.pte: No such file or directory ' "$folder/shared" no.pte
if [ -n "$CXX" ]; then
    # shellcheck disable=SC2086,SC2046
    $CXX $flags -std=c++17 "$examples/digits.cpp" $(config --cflags --libs) -o "$folder/plus"
    expect '8 1 ' "$folder/plus" "$model"
fi

# Names of the runtime are not in the way of a program's own.
cat >"$folder/own.c" <<'END'
int buf_init, error_set, hal_device_open, rt_load_program, must;
END
# shellcheck disable=SC2086,SC2046
$CC $flags "$examples/digits.c" "$folder/own.c" $(config --cflags) "$lib/libpted.a" \
    $(config --static --libs | sed 's/-lpted//') -o "$folder/static"
expect '1 ' "$folder/static" "$model"

# ---- the next version ----------------------------------------------------------------------------
# The same functions, one more, and a node for that.
mkdir "$folder/next"
{
    cat "$top_srcdir/lib/pted.map"
    echo 'PTED_0.2 { global: pted_next; } PTED_0.1;'
} >"$folder/next.map"
cat >"$folder/next.c" <<'END'
__attribute__((visibility("default"))) int pted_next(void);
int pted_next(void) { return 2; }
END
# shellcheck disable=SC2086,SC2046
$CC $flags -fPIC -shared "$folder/next.c" -Wl,-soname,libpted.so.1 \
    -Wl,--version-script,"$folder/next.map" -Wl,--whole-archive "$lib/libpted.a" \
    -Wl,--no-whole-archive $(of_make LIBS) -pthread -o "$folder/next/libpted.so.1"
ln -s libpted.so.1 "$folder/next/libpted.so"
LD_LIBRARY_PATH=$folder/next expect '1 ' "$folder/shared" "$model"

# A program that needs the next version says so with this one.
cat >"$folder/newer.c" <<'END'
#include <pted.h>
#include <stdio.h>
int pted_next(void);
int main(void)
{
    struct pted_device *device;
    if (pted_device_open(NULL, &device, NULL) == PTED_OK) {
        printf("%d\n", pted_next());
        pted_device_free(device);
    }
}
END
# shellcheck disable=SC2086,SC2046
$CC $flags "$folder/newer.c" $(config --cflags) "$folder/next/libpted.so" -o "$folder/newer"
LD_LIBRARY_PATH=$folder/next expect '2 ' "$folder/newer"
"$folder/newer" >"$folder/out" 2>&1 && fail "a program for the next version runs with this one"
grep -q "PTED_0.2' not found" "$folder/out" || fail "of the next version: $(cat "$folder/out")"

# shellcheck disable=SC2086
MAKEFLAGS='' make -s -C "$top_builddir" prefix="$folder/usr" $places uninstall-libpted
ls "$lib"/libpted* 2>/dev/null && fail "make uninstall leaves files"
echo "library: $(grep -c . "$folder/exported") functions, C${CXX:+ and C++}"
