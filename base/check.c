/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

/* The only line that a library of ours prints (lib/pted.h). */
_Noreturn void check_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "%s:%d: invariant does not hold: %s\n", file, line, expr);
    abort();
}
