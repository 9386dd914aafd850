#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints the commit of a source tree in 12 digits, with "-dirty" behind it if files of git have been
# changed since. In an archive of `make dist` the file COMMIT has it. Prints nothing where neither
# git nor an archive knows it.
#
#   contrib/commit.sh FOLDER            prints it
#   contrib/commit.sh FOLDER HEADER     writes it as PTED_COMMIT, if HEADER has another one
#
# If git refuses the tree, as it does to a user who does not own it, HEADER stays as it is.

set -u
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
folder=$1
header=${2-}
commit=
if [ -e "$folder/.git" ]; then
    # The index belongs to whoever works in the tree: never written here.
    commit=$(git --no-optional-locks -C "$folder" describe --always --dirty --abbrev=12 \
        --exclude '*' 2>/dev/null)
    if [ -z "$commit" ] && [ -e "${header:-/nonexistent}" ]; then
        exit 0
    fi
elif [ -e "$folder/COMMIT" ]; then
    commit=$(tr -cd '0-9a-z-' <"$folder/COMMIT")
fi
if [ -z "$header" ]; then
    [ -z "$commit" ] || echo "$commit"
    exit 0
fi
line="#define PTED_COMMIT \"$commit\""
[ "$(tail -n 1 "$header" 2>/dev/null)" = "$line" ] ||
    printf '/* of contrib/commit.sh */\n%s\n' "$line" >"$header"
