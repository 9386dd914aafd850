#!/bin/sh
# SPDX-License-Identifier: MIT
#
# contrib/load/load.sh and open_load against a real daemon: loads that are answered, on a model with
# a dynamic dimension and on one with an input of every type, and how they must say no.

set -eu
: "${top_srcdir:=$(dirname "$0")/..}" "${top_builddir:=.}"
pted=${PTED:-$top_builddir/pted}
load=$top_srcdir/contrib/load/load.sh
open_load=$top_builddir/contrib/load/open_load
models=$top_srcdir/tests/models
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT

fail() {
    echo "load: $*" >&2
    exit 1
}

: >"$folder/log"
"$pted" --listen 127.0.0.1:0 "$models/mlp.pte" "$models/pointwise_types.pte" \
    "$models/residual.pte" "$models/shapes.pte" "$models/scalars.pte" 2>"$folder/log" &
server=$!
tries=0
until url=$(sed -n 's|.*listening on \(http://127\.0\.0\.1:[0-9]*\)$|\1|p' "$folder/log") &&
    [ -n "$url" ] && curl -sf -o /dev/null "$url/v2/health/ready"; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || fail "pted did not start: $(cat "$folder/log")"
    sleep 0.1
done

for model in mlp pointwise_types; do
    "$load" "$model" --url "$url" --parallel 4 --requests 40 >"$folder/out" 2>&1 ||
        fail "$model: $(cat "$folder/out")"
    for line in '^requests 40, not answered by 200 0, ' '^req/s [1-9]' \
        '^ms p50 [0-9.]*  p90 [0-9.]*  p99 [0-9.]*  max [0-9.]*$'; do
        grep -q "$line" "$folder/out" || fail "$model prints $(cat "$folder/out"), not $line"
    done
done

# Shapes: the server's choice, which is printed, unless one is given.
body() {
    curl -sf "$url/v2/models/$1" | awk -v shapes="$2" -f "$top_srcdir/contrib/load/body.awk" \
        >"$folder/body" 2>"$folder/said"
}
expect_body() {
    body "$1" "$2" || fail "no body of $1 with '$2': $(cat "$folder/said")"
    got=$(grep -o '"shape":\[[0-9,]*\]' "$folder/body" | tr -d '\n')
    [ "$got" = "$3" ] || fail "body of $1 with '$2': $got, expected $3"
}
expect_body residual '' '"shape":[1,3,33,33]'
grep -qx "input_0: shape 1x3x33x33, the server's example (--shape sets another)" "$folder/said" ||
    fail "body.awk says $(cat "$folder/said")"
expect_body residual 'input_0=2x3x17x9' '"shape":[2,3,17,9]'
[ ! -s "$folder/said" ] || fail "body.awk says $(cat "$folder/said")"
expect_body shapes.recall '' '"shape":[1,5,6]"shape":[2,1,8]'
expect_body scalars '' '"shape":[6]"shape":[]' # but for what the exporter fixed
body residual 'x=1' && fail 'the shape of an input that is not there was taken'
grep -q 'the model has no input x' "$folder/said" || fail "body.awk says $(cat "$folder/said")"
for shape in 'input_0' 'input_0=2,3' 'input_0=2x'; do
    body residual "$shape" && fail "the shape '$shape' was taken"
    grep -q "shape '$shape': expected NAME=2x3x4" "$folder/said" ||
        fail "body.awk says $(cat "$folder/said") of '$shape'"
done
"$load" residual --url "$url" --requests 4 --shape input_0=2x3x17x9 >"$folder/out" 2>&1 ||
    fail "--shape: $(cat "$folder/out")"
"$load" residual --url "$url" --requests 4 >"$folder/out" 2>&1 || fail "$(cat "$folder/out")"
grep -q '^input_0: shape 1x3x33x33' "$folder/out" || fail "no shape: $(cat "$folder/out")"
"$load" residual --url "$url" --shape input_0=1x4x1x1 >"$folder/out" 2>&1 &&
    fail 'a shape that the model refuses was measured'
"$load" residual --url "$url" --shape 2x3 >"$folder/out" 2>&1 && fail '--shape 2x3 was accepted'

"$load" absent --url "$url" >"$folder/out" 2>&1 && fail 'a model that is not there was measured'
grep -q '^load: absent: {"error":".*absent.*"}$' "$folder/out" ||
    fail "load.sh says of a model that is not there $(cat "$folder/out")"
"$load" mlp --url "$url" --parallel 0 >"$folder/out" 2>&1 && fail '--parallel 0 was accepted'
"$load" >"$folder/out" 2>&1 && fail 'a call without a model was accepted'

curl -sf "$url/v2/models/mlp" | awk -f "$top_srcdir/contrib/load/body.awk" \
    >"$folder/body" 2>"$folder/said"
infer="${url#http://} /v2/models/mlp/infer"
for gaps in '' --constant; do
    # shellcheck disable=SC2086 # lists of words
    "$open_load" --rate 200 --seconds 0.5 --warmup 0.1 $gaps --connections 3 $infer \
        <"$folder/body" >"$folder/out" 2>&1 || fail "open_load: $(cat "$folder/out")"
    for line in '^requests [1-9][0-9]*, not answered by 200 0, ' \
        '^req/s [1-9][0-9.]* over [1-3] connections, at most [0-9]* us late$' \
        '^us p50 [0-9]*  p90 [0-9]*  p99 [0-9]*  p99.9 [0-9]*  max [0-9]*$'; do
        grep -q "$line" "$folder/out" || fail "open_load prints $(cat "$folder/out"), not $line"
    done
done
grep -q '^requests 119,' "$folder/out" || fail "even gaps: $(cat "$folder/out"), not 119"

# A second in which the server is stopped counts for everything that should have been sent in it.
kill -STOP "$server"
# shellcheck disable=SC2086
"$open_load" --rate 100 --constant --seconds 2 --warmup 0 --connections 1 $infer \
    <"$folder/body" >"$folder/out" 2>&1 &
sleep 1.5
kill -CONT "$server"
wait $! || fail "open_load, a pause: $(cat "$folder/out")"
awk '/^us / { slow = $5 > 500000 } END { exit !slow }' "$folder/out" ||
    fail "open_load does not see a pause of a second: $(cat "$folder/out")"

# shellcheck disable=SC2086
echo '{}' | "$open_load" --seconds 0.1 --warmup 0 $infer >"$folder/out" 2>&1 &&
    fail 'open_load: refused requests were measured'
grep -q 'not answered by 200 [1-9]' "$folder/out" || fail "open_load: $(cat "$folder/out")"
"$open_load" --rate 0 a:1 / </dev/null >"$folder/out" 2>&1 &&
    fail 'open_load: --rate 0 was accepted'

kill "$server"
wait "$server"
server=
