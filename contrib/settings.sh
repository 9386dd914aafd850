#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Writes what server/process/params.def says into the files that people and programs read: the
# document with all defaults, its schema, the schema of cards (server/model/card/card.def), and the
# list of limits in pted(8). The lists of options in pte(1) are those of the commands' tables
# (server/cli/option.h). With --check it writes nothing and fails if a file is not what it would
# write.
#
# usage: settings.sh [--check], in the build tree after make.

set -u
: "${top_builddir:=.}"
print=$(cd "$top_builddir" && pwd)/contrib/settings || exit 1
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 1
is_check=${1:-}
MANUAL=contrib/man/pted.8
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# put FILE: the new content of FILE is in $work/new.
put() {
    if [ "$is_check" = --check ]; then
        diff -u "$1" "$work/new" || status=1
    elif ! cmp -s "$1" "$work/new"; then
        cp "$work/new" "$1"
        echo "$1"
    fi
}

"$print" document >"$work/new" && put conf/pted.json || exit 1
"$print" schema >"$work/new" && put conf/pted.schema.json || exit 1
"$print" card-schema >"$work/new" && put conf/pted-card.schema.json || exit 1
"$print" manual >"$work/items" || exit 1
awk -v items="$work/items" '
    /^\.\\" end of limits/ { is_inside = 0 }
    !is_inside { print }
    /^\.\\" limits, by contrib\/settings\.sh/ {
        is_inside = 1
        while ((getline line <items) > 0) print line
    }' "$MANUAL" >"$work/new"
put "$MANUAL"

# Between "options of GROUP, by contrib/settings.sh" and "end of options".
sed -n 's/^\.\\" options of \([a-z]*\), by .*/\1/p' contrib/man/pte.1 >"$work/groups"
while read -r group; do
    "$print" options "$group" >"$work/options.$group" || exit 1
done <"$work/groups"
awk -v work="$work" '
    /^\.\\" end of options/ { is_inside = 0 }
    !is_inside { print }
    /^\.\\" options of [a-z]*, by contrib\/settings\.sh/ {
        is_inside = 1
        items = work "/options." substr($4, 1, length($4) - 1)
        while ((getline line <items) > 0) print line
    }' contrib/man/pte.1 >"$work/new"
put contrib/man/pte.1
exit $status
