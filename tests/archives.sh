#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks that the archives have one order, the link order of pted, and that each archive needs only
# later ones. Linking alone does not prove that: an upward call succeeds if its object is already
# part of the program. So this script asks nm which archive defines each symbol that an archive
# needs. No archive may be named twice. `make check` passes the order in $archives.

set -u
cd "${top_builddir:-.}" || exit 1
LC_ALL=C
export LC_ALL
: "${archives:?is set by make: run make check TESTS=tests/archives.sh}"
NM=${NM:-nm}
command -v "$NM" >/dev/null || { echo "SKIP: there is no $NM"; exit 77; }

# ARCHIVE SYMBOL TYPE of each global symbol, in link order, with a line of the archive alone first.
symbols() {
    for archive in $archives; do
        case $archive in
        *.a)
            echo "$archive"
            "$NM" -g -P "$archive" | awk -v archive="$archive" 'NF > 1 { print archive, $1, $2 }'
            ;;
        esac
    done
}

symbols | awk '
    function complain(text) { print "archives: " text; wrong++ }
    NF == 1 && $1 in place { complain($1 " is named twice in link order") }
    NF == 1 { place[$1] = ++count; next }
    $3 ~ /^[Uvw]$/ { needs[$1 " " $2]; next }
    $3 ~ /^[A-Z]$/ { home[$2] = $1 }
    END {
        for (need in needs) {
            split(need, part, " ")
            if (!(part[2] in home) || home[part[2]] == part[1]) continue
            if (place[home[part[2]]] < place[part[1]])
                complain(part[1] " needs " part[2] " of " home[part[2]] ", which stands above it")
            else
                below++
        }
        # Archives that nm cannot read would break no rule.
        if (!below) complain("no archive needs another: nm has read nothing")
        printf "archives: %d, which take %d symbols from below, ", count, below
        printf "%d violations\n", wrong
        exit wrong > 0
    }'
