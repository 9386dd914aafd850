#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The commit in --version: what contrib/commit.sh prints of a tree of git, of an archive and of
# neither, when it writes its header anew, and whether both programs have what the build wrote.

set -u
source=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
build=${top_builddir:-$source/build}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

expect() {
    [ "$2" = "$3" ] || { echo "$1: got '$2', expected '$3'"; failed=$((failed + 1)); }
}

commit_of() {
    "$source/contrib/commit.sh" "$@"
}

in_tree() {
    git -C "$folder/tree" -c user.name=test -c user.email=test -c commit.gpgsign=false "$@"
}

# The programs have what the build's header has.
for program in pted pte; do
    expect "the commit of $program" "$("$build/$program" --version | sed -n 's/^commit: //p')" \
        "$(sed -n 's/.*PTED_COMMIT "\(.*\)"/\1/p' "$build/commit.h")"
done

# An archive, and a tree without anything, even inside of a tree of git.
mkdir -p "$folder/tree/archive"
expect "no commit" "$(commit_of "$folder/tree/archive")" ""
echo 0123456789ab >"$folder/tree/archive/COMMIT"
expect "an archive" "$(commit_of "$folder/tree/archive")" 0123456789ab
commit_of "$folder/tree/archive" "$folder/header.h"
expect "the header" "$(sed -n 2p "$folder/header.h")" '#define PTED_COMMIT "0123456789ab"'
touch -d '2001-01-01' "$folder/header.h"
commit_of "$folder/tree/archive" "$folder/header.h"
expect "the year of a header that stays" "$(date -r "$folder/header.h" +%Y)" 2001

if command -v git >/dev/null; then
    in_tree init -q
    : >"$folder/tree/file"
    in_tree add file
    in_tree commit -qm one
    in_tree tag -am one v1.0.0
    digits=$(in_tree rev-parse --short=12 HEAD)
    expect "a tree of git" "$(commit_of "$folder/tree")" "$digits"
    expect "another one's GIT_DIR" "$(GIT_DIR=/nonexistent commit_of "$folder/tree")" "$digits"
    expect "an archive in a tree" "$(commit_of "$folder/tree/archive")" 0123456789ab
    echo more >"$folder/tree/file"
    expect "a changed tree" "$(commit_of "$folder/tree")" "$digits-dirty"
    commit_of "$folder/tree" "$folder/header.h"
    expect "a changed header" "$(sed -n 2p "$folder/header.h")" \
        "#define PTED_COMMIT \"$digits-dirty\""
    mv "$folder/tree/.git/HEAD" "$folder/tree/.git/NONE"
    commit_of "$folder/tree" "$folder/header.h"
    expect "a header where git refuses" "$(sed -n 2p "$folder/header.h")" \
        "#define PTED_COMMIT \"$digits-dirty\""
fi
echo "version: $failed failed"
[ "$failed" -eq 0 ]
