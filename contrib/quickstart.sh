#!/bin/sh
# SPDX-License-Identifier: MIT
#
# From a clone to a prediction on a bare Debian: installs what the build needs (without dpkg, it
# says what to install), builds in build/, starts pted with the bundled digits model, shows one
# handwritten digit of the test set, asks the server which digit it is, and leaves the request on
# screen. The server runs until Ctrl-C.

set -eu
cd "$(dirname "$0")/.."
PACKAGES=contrib/packages.tsv
# shellcheck source=contrib/packages.sh
. contrib/packages.sh

usage() {
    cat <<'EOF'
usage: contrib/quickstart.sh [--once] [IMAGE]
  IMAGE   which of the 360 test images to send, 0 to 359 (default 9)
  --once  stop the server after the answer
EOF
}

die() {
    echo "quickstart: $*" >&2
    exit 1
}

DIGITS=tests/models/digits
LOG=build/quickstart.log
image=9
once=no
server=

while [ $# -gt 0 ]; do
    case $1 in
    --once) once=yes ;;
    --help) usage; exit 0 ;;
    *[!0-9]* | '') usage >&2; exit 64 ;;
    *) image=$1 ;;
    esac
    shift
done
[ "$image" -le 359 ] || { usage >&2; exit 64; }

build() {
    echo 'building in build/'
    mkdir -p build
    [ -x configure ] || autoreconf -fi >build/autoreconf.log 2>&1 || die 'see build/autoreconf.log'
    (
        cd build
        [ -f Makefile ] || ../configure --quiet >configure.log 2>&1 || die 'see build/configure.log'
        make -s -j"$(nproc)" >make.log 2>&1 || die 'see build/make.log'
    )
}

# With port 0 the system chooses a free port; the log shows it.
start_server() {
    build/pted --listen 127.0.0.1:0 "$DIGITS.pte" 2>"$LOG" &
    server=$!
    trap 'kill "$server" 2>/dev/null || :' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    tries=0
    until address=$(sed -n 's|.*listening on \(http://127\.0\.0\.1:[0-9]*\)$|\1|p' "$LOG") &&
        [ -n "$address" ] && curl -sf -o /dev/null "$address/v2/health/ready"; do
        tries=$((tries + 1))
        if [ $tries -gt 100 ] || ! kill -0 "$server" 2>/dev/null; then
            die "pted did not start: $(cat "$LOG")"
        fi
        sleep 0.1
    done
}

pixels() {
    od -An -v -tu1 -j $((image * 64)) -N 64 "$DIGITS/images.u8"
}

show_picture() {
    case ${LC_ALL:-${LC_CTYPE:-${LANG:-}}} in
    *[Uu][Tt][Ff]*) shades='  |░░|▒▒|▓▓|██' ;;
    *) shades='  |..|oo|##|@@' ;;
    esac
    pixels | awk -v shades="$shades" '
        BEGIN { split(shades, shade, "|") }
        { for (i = 1; i <= NF; i++) {
            line = line shade[int($i / 4 + 0.5) + 1]
            if (++column % 8 == 0) { print "    " line; line = "" } } }'
}

request() {
    printf '{"inputs":[{"name":"input_0","shape":[1,1,8,8],"datatype":"FP32","data":['
    pixels | awk '{ for (i = 1; i <= NF; i++) { printf "%s%g", comma, $i / 16; comma = "," } }'
    printf ']}]}'
}

# The answer holds ten logits; a softmax makes them probabilities.
show_prediction() {
    printf '%s\n' "$1" | sed -n 's/.*"data":\[\([^]]*\)\].*/\1/p' | awk -F, '
        { for (i = 1; i <= NF; i++) { if (i == 1 || $i > $best) { best = i } }
          for (i = 1; i <= NF; i++) { sum += exp($i - $best) }
          printf "prediction: %d, probability %.1f %%", best - 1, 100 / sum; found = 1 }
        END { exit !found }' || die "no prediction in the answer: $1"
    od -An -tu1 -j "$image" -N 1 "$DIGITS/labels.u8" | awk '{ print " (written as " $1 ")" }'
}

install_build_packages
build
start_server
url="$address/v2/models/digits/infer"
body=$(request)
echo "test image $image:"
show_picture
answer=$(curl -sS --json "$body" "$url") || die "no answer from $url"
show_prediction "$answer"
printf '\ncurl --json '\''%s'\'' %s\n\n' "$body" "$url"
[ $once = no ] || exit 0
echo 'The server runs until Ctrl-C; paste the line above into another terminal.'
wait "$server"
