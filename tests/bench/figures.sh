#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints every figure that the project watches as lines "name: value", from one run of some minutes.
# A comparison measures both sides in this run, so that a slow or busy machine affects both. The
# other figures are only as good as the machine is idle.
#
# The last line is "done: all". `make bench` passes the output to readme_figures.py.
#
# usage: figures.sh [MODEL.pte...]; top_builddir and top_srcdir as in make check. The models are
# timed on one thread. If Python has ExecuTorch, that is timed as well; PYTHON names the
# interpreter. Without arguments the models are those of this source tree. If COLLECTION names a
# folder of models with descriptions (contrib/export/README.md), they are those of the folder: in
# one table the models for ExecuTorch's portable kernels, in another those for XNNPACK.

set -eu
top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
top_builddir=${top_builddir:-.}
export top_srcdir top_builddir
here=$top_srcdir/tests/bench
built=$top_builddir/tests/bench
models=$top_srcdir/tests/models
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

collection=${COLLECTION:-}
[ $# -eq 0 ] || collection=
[ $# -gt 0 ] || set -- "$models"/add.pte "$models"/mlp.pte "$models"/conv_ops.pte \
    "$models"/digits.pte "$models"/mobile.pte "$models"/residual.pte "$models"/unet.pte

echo "load_at_start: $(cut -d ' ' -f 1 /proc/loadavg)"
echo '-- tiny model over HTTP, and over a server that does nothing'
if command -v wrk >/dev/null; then
    sh "$here/http.sh" 1
    echo '-- batches, arrivals at 70 % of saturation, a model beside a slow one, a pipeline'
    "$python" "$here/sched.py" ${collection:+--collection "$collection"}
else
    echo 'figures: no wrk: not measured' >&2
fi
echo '-- JSON tensors'
"$built/bench_json"
echo '-- models, one thread'
"$python" "$here/executorch_time.py" "$@"
for backend in ${collection:+portable xnnpack}; do
    threads=1
    [ "$backend" = portable ] || threads=1,2 # portable kernels use one thread
    echo "-- models of the collection beside ExecuTorch, threads $threads: $backend"
    grep -lE "\"backend\": *\"$backend\"" "$collection"/*.json | sed 's/json$/pte/' |
        ROUNDS=3 xargs "$python" "$here/executorch_time.py" --threads "$threads" ||
        echo "figures: the table of $backend is incomplete" >&2 # ExecuTorch crashed
done
echo '-- start and size'
python3 "$here/start_time.py"
strip -o "$work/stripped" "$top_builddir/pted"
echo "stripped_bytes: $(wc -c <"$work/stripped")"
echo '-- allocations of 100 warm requests in runtime and hal'
"$built/count_malloc" "$models"/add.pte "$models"/digits.pte "$models"/mobile.pte \
    "$models"/residual.pte "$models"/unet.pte "$models"/scalars.pte
echo 'done: all'
