#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Puts a closed-loop load on one model and needs only curl: N transfers at a time over kept
# connections, and a new transfer as soon as one is answered. The body is made from the model's
# metadata.

set -eu

usage() {
    cat <<'EOF'
usage: contrib/load/load.sh MODEL [OPTION]...
  --shape NAME=2x3x4   shape of an input (default: example_shape in the model's metadata, which is
                       printed); repeatable
  --url URL            the server (default http://127.0.0.1:8000)
  --parallel N         requests under way at once, 1 to 300 (default 16)
  --requests N         requests in all (default 2000)
EOF
}

misuse() {
    usage >&2
    exit 64
}

here=$(dirname "$0")
model=
shapes=
url=http://127.0.0.1:8000
parallel=16
requests=2000

while [ $# -gt 0 ]; do
    case $1 in
    --help) usage; exit 0 ;;
    --shape | --url | --parallel | --requests)
        [ $# -ge 2 ] || misuse
        case $1=$2 in
        --shape=*[[:space:]]*) misuse ;;
        --shape=?*=?*) shapes="$shapes $2" ;;
        --shape=*) misuse ;;
        --url=?*) url=${2%/} ;;
        --*=*[!0-9]* | --*=0* | --*=) misuse ;;
        --parallel=*) parallel=$2 ;;
        --requests=*) requests=$2 ;;
        esac
        shift
        ;;
    -* | '') misuse ;;
    *) [ -z "$model" ] || misuse; model=$1 ;;
    esac
    shift
done
if [ -z "$model" ] || [ "$parallel" -gt 300 ]; then
    misuse
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

curl -sS --fail-with-body "$url/v2/models/$model" >"$folder/metadata" || {
    [ ! -s "$folder/metadata" ] || echo "load: $model: $(cat "$folder/metadata")" >&2
    exit 1
}
awk -v shapes="$shapes" -f "$here/body.awk" "$folder/metadata" >"$folder/body"

# One request first, with its answer: a load of refused requests measures nothing.
status=$(curl -sS -o "$folder/answer" -w '%{http_code}' -H 'Content-Type: application/json' \
    --data-binary "@$folder/body" "$url/v2/models/$model/infer")
if [ "$status" != 200 ]; then
    echo "load: $model answers $status: $(cat "$folder/answer")" >&2
    exit 1
fi

awk -v url="$url/v2/models/$model/infer" -v requests="$requests" 'BEGIN {
    for (i = 0; i < requests; i++) { printf "url = \"%s\"\noutput = \"/dev/null\"\n", url } }' \
    >"$folder/config"
start=$(date +%s.%N)
curl --no-progress-meter --parallel --parallel-max "$parallel" -H 'Content-Type: application/json' \
    --data-binary "@$folder/body" -w '%{http_code} %{time_total}\n' -K "$folder/config" \
    >"$folder/times" || echo 'load: some transfers failed' >&2
end=$(date +%s.%N)

sort -n -k 2 "$folder/times" | awk -v seconds="$(echo "$end $start" | awk '{ print $1 - $2 }')" '
    $1 == 200 { ms[++ok] = $2 * 1000 }
    $1 != 200 { other++ }
    function percentile(share,  i) { i = int(ok * share + 0.999999); return ms[i < 1 ? 1 : i] }
    END {
        printf "requests %d, not answered by 200 %d, seconds %.3f\n", NR, other, seconds
        if (!ok) { exit 1 }
        printf "req/s %.1f\n", ok / seconds
        printf "ms p50 %.3f  p90 %.3f  p99 %.3f  max %.3f\n",
            percentile(0.5), percentile(0.9), percentile(0.99), ms[ok]
        exit other > 0 }'
