#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Figures of the daemon, each a line "name: value":
#   requests a second on the model `add` over 32 kept connections, next to the bare server's,
#   their ratio (the median of ROUNDS pairs), the time from start to the first correct answer of
#   the digits model, the resident memory after it, and the size of the stripped binary.
#
# usage: http.sh [SECONDS a run]; needs wrk, curl; top_builddir and top_srcdir as in make check.

set -eu
top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
top_builddir=${top_builddir:-.}
seconds=${1:-3}
ROUNDS=3
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

# rate URL: requests a second.
rate() {
    wrk -t1 -c32 -d"${seconds}s" -s "$work/add.lua" "$1" >"$work/wrk" || {
        cat "$work/wrk"
        exit 1
    }
    if grep -q -e 'Socket errors' -e 'Non-2xx' "$work/wrk"; then
        cat "$work/wrk" >&2
        exit 1
    fi
    awk '/^Requests\/sec/ { print $2 }' "$work/wrk"
}

start "$work/bare.log" "$top_builddir/tests/bench/bare_server" "$ANSWER"
bare=$address
start "$work/pted.log" "$top_builddir/pted" --listen 127.0.0.1:0 "$MODELS/add.pte"
pted=$address
round=0
while [ $round -lt $ROUNDS ]; do
    floor=$(rate "http://$bare/")
    served=$(rate "http://$pted/v2/models/add/infer")
    echo "$served $floor" | awk '{ printf "%.3f %.0f %.0f\n", $1 / $2, $1, $2 }'
    round=$((round + 1))
done | sort -n >"$work/rates"
sed -n "$(((ROUNDS + 1) / 2))p" "$work/rates" |
    awk '{ print "add_requests_per_s: " $2 "\nbare_requests_per_s: " $3 "\nratio: " $1 }'

# Start to the first answer: the daemon's own log tells the port, so the loop begins with exec.
printf '{"inputs":[{"name":"input_0","shape":[1,1,8,8],"datatype":"FP32","data":[%s]}]}' \
    "$(od -An -v -tu1 -N64 "$MODELS/digits/images.u8" |
        awk '{ for (i = 1; i <= NF; i++) printf "%s%g", n++ ? "," : "", $i / 16 }')" >"$work/digit"
begin=$(date +%s%N)
start "$work/digits.log" "$top_builddir/pted" --listen 127.0.0.1:0 "$MODELS/digits.pte"
curl -sSf -o "$work/answer" --data-binary "@$work/digit" "http://$address/v2/models/digits/infer"
end=$(date +%s%N)
grep -q '"shape":\[1,10\]' "$work/answer"
echo "first_answer_ms: $(((end - begin) / 1000000)) (with the start of sh's helpers and of curl)"
awk '/^VmRSS/ { printf "resident_kb: %d\n", $2 }' "/proc/$pid/status"
strip -o "$work/stripped" "$top_builddir/pted"
echo "stripped_bytes: $(wc -c <"$work/stripped")"
