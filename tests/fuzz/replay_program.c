/* SPDX-License-Identifier: MIT */
/* Loads and calls each named program, and prints the result in one line each. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "tests/fuzz/call_program.h"

int main(int argc, char **argv)
{
    struct caller caller;
    struct error err;
    int failures = 0;
    if (caller_init(&caller, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        struct call_counts counts = {0};
        err.text[0] = '\0';
        if (call_program(&caller, argv[i], &counts, &err) != ST_OK || counts.runs == 0) {
            printf("%s: refused: %s\n", argv[i], err.text);
        } else {
            printf("%s: %" PRIu32 " methods, %" PRIu32 " runs, %" PRIu32 " too long\n", argv[i],
                   counts.methods, counts.runs, counts.cancelled);
        }
        failures += counts.late > 0;
        fflush(stdout);
    }
    caller_fini(&caller);
    return failures ? 1 : 0;
}
