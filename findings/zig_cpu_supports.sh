#!/bin/sh
# SPDX-License-Identifier: MIT
#
# zig cc: __builtin_cpu_supports() says of every instruction set that the processor lacks it.
#
# GCC and clang answer from CPUID, so libraries choose their kernels by this builtin. With zig cc the
# same program compiles and links without a warning and gets 0 even for SSE2, which each x86-64
# processor has, also after __builtin_cpu_init() and for the targets of musl and of glibc alike. So a
# library that is built with it runs its slowest code, and says nothing. CPUID itself, by
# __get_cpuid() of <cpuid.h>, answers rightly in the same program.
#
# Seen: ziglang 0.17.1, x86_64-linux-musl and x86_64-linux-gnu.2.28: builtin 0, CPUID 1.
# Needs: x86-64, python3 with venv, pip with PyPI; a minute for Zig to build its C library. Exit
# status 0: still so; 1: it has changed.
set -eu

[ "$(uname -m)" = x86_64 ] || { echo 'skipped: needs x86-64'; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ziglang==0.17.1
export ZIG_GLOBAL_CACHE_DIR="$folder/cache" ZIG_LOCAL_CACHE_DIR="$folder/cache"

cat >ask.c <<'END'
#include <cpuid.h>
#include <stdio.h>

int main(void)
{
    unsigned a, b, c, d = 0;
    __builtin_cpu_init();
    (void)__get_cpuid(1, &a, &b, &c, &d);
    printf("builtin %d, CPUID %u\n", __builtin_cpu_supports("sse2") != 0, d >> 26 & 1);
    return 0;
}
END

status=0
for target in x86_64-linux-musl x86_64-linux-gnu.2.28; do
    venv/bin/python -m ziglang cc -target $target ask.c -o ask
    said=$(./ask)
    echo "$target: $said"
    [ "$said" = 'builtin 0, CPUID 1' ] || status=1
done
exit $status
