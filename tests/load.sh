#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs contrib/load/load.sh against a real daemon. It must measure a model with a dynamic dimension
# and one with an input of every type, and it must refuse wrong arguments.

set -eu
: "${top_srcdir:=$(dirname "$0")/..}" "${top_builddir:=.}"
pted=${PTED:-$top_builddir/pted}
load=$top_srcdir/contrib/load/load.sh
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
until url=$(sed -n 's|.*listening on \(http://127\.0\.0\.1:[0-9]*\)$|\1|p' "$folder/log") &&
    [ -n "$url" ] && curl -sf -o /dev/null "$url/v2/health/ready"; do
    kill -0 "$server" 2>/dev/null || fail "pted did not start: $(cat "$folder/log")"
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

# Without --shape the server chooses the shape of an input, and the choice is printed.
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
expect_body scalars '' '"shape":[6]"shape":[]' # without the arguments that the exporter fixed
body residual 'x=1' && fail 'body.awk accepted a shape for an unknown input'
grep -q 'the model has no input x' "$folder/said" || fail "body.awk says $(cat "$folder/said")"
for shape in 'input_0' 'input_0=2,3' 'input_0=2x'; do
    body residual "$shape" && fail "body.awk accepted the shape '$shape'"
    grep -q "shape '$shape': expected NAME=2x3x4" "$folder/said" ||
        fail "body.awk with '$shape' prints $(cat "$folder/said")"
done
"$load" residual --url "$url" --requests 4 --shape input_0=2x3x17x9 >"$folder/out" 2>&1 ||
    fail "--shape: $(cat "$folder/out")"
"$load" residual --url "$url" --requests 4 >"$folder/out" 2>&1 || fail "$(cat "$folder/out")"
grep -q '^input_0: shape 1x3x33x33' "$folder/out" || fail "no shape: $(cat "$folder/out")"
"$load" residual --url "$url" --shape input_0=1x4x1x1 >"$folder/out" 2>&1 &&
    fail 'load.sh measured requests that the model refuses'
"$load" residual --url "$url" --shape 2x3 >"$folder/out" 2>&1 && fail '--shape 2x3 was accepted'

"$load" absent --url "$url" >"$folder/out" 2>&1 && fail 'load.sh measured an unknown model'
grep -q '^load: absent: {"error":".*absent.*"}$' "$folder/out" ||
    fail "load.sh with an unknown model prints $(cat "$folder/out")"
"$load" mlp --url "$url" --parallel 0 >"$folder/out" 2>&1 && fail '--parallel 0 was accepted'
"$load" >"$folder/out" 2>&1 && fail 'a call without a model was accepted'

kill "$server"
wait "$server"
server=
