#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What contrib/completions offers: in bash, and in fish if it is installed. zsh completes only at a
# terminal; its file is parsed.
#
# usage: completions.sh, with top_srcdir and top_builddir in the environment.

set -u
cd "${top_srcdir:=$(dirname "$0")/..}" || exit 1
completions=$PWD/contrib/completions
build=$(cd "${top_builddir:-.}" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/files" "$work/files/folder" && cd "$work/files" || exit 1
ln -s "$build/pte" "$build/pted" "$work/bin/"
PATH=$work/bin:$PATH
touch a.pte cat.jpg x.card.json y.json words.txt
failed=0 count=0

# expect WANTED GOT WHAT: each word of WANTED is in GOT; of "^WORD" that it is not.
expect() {
    local word is_wrong=
    for word in $1; do
        if [[ $word == ^* ]]; then
            [[ " $2 " != *" ${word#^} "* ]] || is_wrong=yes
        else
            [[ " $2 " == *" $word "* ]] || is_wrong=yes
        fi
    done
    count=$((count + 1))
    [ -z "$is_wrong" ] || failed=$((failed + 1))
    echo "${is_wrong:+not }ok $count - $3: $2"
}

# in_bash WANTED WORD...: what is offered for the last word, words as readline has them.
in_bash() {
    local wanted=$1 got
    shift
    # shellcheck disable=SC2016 # for the other bash
    got=$(bash -c '. "$0/bash/pted"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        "_$1" "$1" 2>/dev/null; echo "${COMPREPLY[*]}"' "$completions" "$@")
    expect "$wanted" "$got" "bash: $*"
}

in_bash 'run inspect card bench' pte ''
in_bash 'a.pte folder ^cat.jpg' pte run ''
in_bash 'cat.jpg words.txt a.pte' pte run a.pte ''
in_bash 'cat.jpg ^a.pte' pte run a.pte c
in_bash 'cat.jpg ^a.pte' pte run a.pte image = ca
in_bash 'cat.jpg a.pte folder' pte run a.pte image =
in_bash 'image=cat.jpg' pte run a.pte image=ca
in_bash 'cat.jpg' pte run a.pte --input image = ca
in_bash 'cat.jpg' pte run http : //127.0.0.1 : 8000/m ca
in_bash '--top-k --output' pte run a.pte --
in_bash 'cpu' pte run --device = c
in_bash 'x.card.json folder ^y.json' pte card --check ''
in_bash 'a.pte ^x.card.json' pte card --check x.card.json ''
in_bash 'a.pte ^cat.jpg' pted ''
in_bash 'x.card.json ^y.json' pted --card digits = ''
in_bash 'words.txt' pted --tokenizer digits = w
in_bash 'http:// unix:' pte ls ''
in_bash 'http:// unix:' pte ping ''
in_bash '--live --timeout' pte ping --

# in_fish WANTED LINE
in_fish() {
    local got
    # shellcheck disable=SC2016 # for fish
    got=$(fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \
        "$completions/fish/pted.fish" "$2" 2>/dev/null | cut -f1 | tr '\n' ' ')
    expect "$1" "$got" "fish: $2"
}

if command -v fish >/dev/null; then
    in_fish 'run inspect card bench' 'pte '
    in_fish 'a.pte' 'pte run '
    in_fish 'cat.jpg' 'pte run a.pte c'
    in_fish 'image=cat.jpg' 'pte run a.pte image=c'
    in_fish 'x.card.json' 'pte card --check '
    in_fish 'x.card.json' 'pted --card '
    in_fish '--top-k --output' 'pte run a.pte --'
fi
if command -v zsh >/dev/null; then
    zsh -n "$completions/zsh/_pted" || failed=$((failed + 1))
fi
echo "1..$count"
[ "$failed" = 0 ]
