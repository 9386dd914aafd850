#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Requests a second on the model `add` over 32 kept connections, next to those of a bare server
# that answers the same bytes to anything, and the processor time that a request costs either, which
# says more where the load and the server share their cores. The two take turns; of ROUNDS pairs the
# medians are printed, each figure as a line "name: value".
#
# usage: http.sh [SECONDS a run]; needs wrk; top_builddir and top_srcdir as in make check.

set -eu
top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
top_builddir=${top_builddir:-.}
seconds=${1:-2}
ROUNDS=5
MODELS=$top_srcdir/tests/models
ANSWER='{"model_name":"add","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32",'
ANSWER=$ANSWER'"shape":[2,3],"data":[11.0,22.0,33.0,44.0,55.0,66.0]}]}'
work=$(mktemp -d)
pids=
# shellcheck disable=SC2086 # a list of numbers
trap 'kill $pids 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# start LOG COMMAND...: runs it in the background and waits for its address, into $address.
start() {
    log=$1
    shift
    : >"$log"
    "$@" 2>"$log" >/dev/null &
    pid=$!
    pids="$pids $pid"
    until address=$(sed -n 's/.*listening on \(127\.0\.0\.1:[0-9]*\)$/\1/p' "$log") &&
        [ -n "$address" ]; do
        kill -0 "$pid" || { cat "$log" >&2; exit 1; }
    done
}

cat >"$work/add.lua" <<'END'
wrk.method = "POST"
wrk.body = '{"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},' ..
    '{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}'
END

# ticks PID: processor time so far, in clock ticks.
ticks() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# rate PID URL: requests a second, and microseconds of PID's processor time for each.
rate() {
    before=$(ticks "$1")
    wrk -t1 -c32 -d"${seconds}s" -s "$work/add.lua" "$2" >"$work/wrk" || {
        cat "$work/wrk"
        exit 1
    }
    after=$(ticks "$1")
    if grep -q -e 'Socket errors' -e 'Non-2xx' "$work/wrk"; then
        cat "$work/wrk" >&2
        exit 1
    fi
    awk -v ticks=$((after - before)) -v hertz="$(getconf CLK_TCK)" '
        / requests in / { requests = $1 }
        /^Requests\/sec/ { print $2, ticks / hertz * 1e6 / requests }' "$work/wrk"
}

# median COLUMN: of $work/rounds.
median() {
    sort -g -k "$1,$1" "$work/rounds" |
        awk -v column="$1" -v middle=$(((ROUNDS + 1) / 2)) 'NR == middle { print $column }'
}

start "$work/bare.log" "$top_builddir/tests/bench/bare_server" "$ANSWER"
bare=$address
bare_pid=$pid
start "$work/pted.log" "$top_builddir/pted" --listen 127.0.0.1:0 "$MODELS/add.pte"
round=0
while [ $round -lt $ROUNDS ]; do
    floor=$(rate "$bare_pid" "http://$bare/")
    served=$(rate "$pid" "http://$address/v2/models/add/infer")
    echo "$served $floor"
    round=$((round + 1))
done >"$work/pairs"
awk '{ printf "%d %d %.2f %.1f %.1f %.2f\n", $1, $3, $1 / $3, $2, $4, $4 / $2 }' "$work/pairs" \
    >"$work/rounds"
echo "add_requests_per_s: $(median 1)"
echo "bare_requests_per_s: $(median 2)"
echo "add_ratio: $(median 3)"
echo "add_cpu_us: $(median 4)"
echo "bare_cpu_us: $(median 5)"
echo "add_cpu_ratio: $(median 6)"
