#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures requests a second on the model `add` over 32 kept connections, in JSON and with binary
# tensors. A bare server that answers every request with the same JSON is measured beside it. Also
# prints the processor time of a request in each server, which is the better figure if the load and
# the server share cores. The servers take turns, and the medians of ROUNDS rounds are printed as
# lines "name: value".
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
    until address=$(sed -n 's|.*listening on http://\(127\.0\.0\.1:[0-9]*\)$|\1|p' "$log") &&
        [ -n "$address" ]; do
        kill -0 "$pid" || { cat "$log" >&2; exit 1; }
    done
}

cat >"$work/json.lua" <<'END'
wrk.method = "POST"
wrk.body = '{"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},' ..
    '{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}'
END
cat >"$work/binary.lua" <<'END'
local head = '{"parameters":{"binary_data_output":true},"inputs":[' ..
    '{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},' ..
    '{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}'
wrk.method = "POST"
wrk.headers["Inference-Header-Content-Length"] = #head
wrk.body = head .. string.rep("\0\0\128\63", 12) -- ones
END

# ticks PID: processor time so far, in clock ticks.
ticks() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# rate PID URL FORM: requests a second, and microseconds of PID's processor time for each.
rate() {
    before=$(ticks "$1")
    wrk -t1 -c32 -d"${seconds}s" -s "$work/$3.lua" "$2" >"$work/wrk" || {
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
    floor=$(rate "$bare_pid" "http://$bare/" json)
    json=$(rate "$pid" "http://$address/v2/models/add/infer" json)
    binary=$(rate "$pid" "http://$address/v2/models/add/infer" binary)
    echo "$floor $json $binary"
    round=$((round + 1))
done >"$work/turns"
awk '{ printf "%d %.1f %d %.2f %.1f %.2f %d %.2f %.1f %.2f\n", $1, $2,
    $3, $3 / $1, $4, $2 / $4, $5, $5 / $1, $6, $2 / $6 }' "$work/turns" >"$work/rounds"
column=0
for name in bare_requests_per_s bare_cpu_us add_requests_per_s add_ratio add_cpu_us add_cpu_ratio \
    add_binary_requests_per_s add_binary_ratio add_binary_cpu_us add_binary_cpu_ratio; do
    column=$((column + 1))
    echo "$name: $(median $column)"
done
