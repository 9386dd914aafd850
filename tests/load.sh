#!/bin/sh
# SPDX-License-Identifier: MIT
#
# contrib/load/load.sh against a real daemon: loads that are answered, on a model with a dynamic
# dimension and on one with an input of every type, and the ways in which it must say no.

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

"$pted" --listen 127.0.0.1:0 "$models/mlp.pte" "$models/pointwise_types.pte" \
    2>"$folder/log" &
server=$!
tries=0
until url=$(sed -n 's|.*listening on \(127\.0\.0\.1:[0-9]*\)$|http://\1|p' "$folder/log") &&
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

"$load" absent --url "$url" >"$folder/out" 2>&1 && fail 'a model that is not there was measured'
"$load" mlp --url "$url" --parallel 0 >"$folder/out" 2>&1 && fail '--parallel 0 was accepted'
"$load" >"$folder/out" 2>&1 && fail 'a call without a model was accepted'
kill "$server"
wait "$server"
server=
