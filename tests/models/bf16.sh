#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Models in precision bf16, if the processor has it: the outputs that PyTorch gave in float32, but
# for what rounding to bfloat16 changes. PTED_TEST_MODELS names models; the default is all.
here=$(dirname "$0")
"${PTE:-${top_builddir:-.}/pte}" devices | grep -q '^cpu.*\(avx512_bf16\|amx_\)' || {
    echo 'this processor has no products of bfloat16 numbers'
    exit 77
}
export PTED_PRECISION=bf16
# shellcheck disable=SC2086 # a list of words
exec "$here/run_models.py" $PTED_TEST_MODELS
