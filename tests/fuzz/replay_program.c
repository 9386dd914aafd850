/* SPDX-License-Identifier: MIT */
/*
 * Loads and calls each named program, and prints the result in one line each.
 *
 *     replay_program FILE...
 *     replay_program PRECISION SEED FILE    with inputs as in the finding that named them; prints
 *                                           a digest of the results behind each call, for one
 *                                           worker and for two
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/program/method.h"
#include "tests/fuzz/call_program.h"

static bool replay(struct caller *caller, const char *path)
{
    struct call_counts counts = {0};
    struct error err = {0};
    if (call_program(caller, path, &counts, &err) != ST_OK || counts.runs == 0) {
        printf("%s: refused: %s\n", path, err.text);
    } else {
        printf("%s: %" PRIu32 " methods, %" PRIu32 " runs, %" PRIu32 " too long\n", path,
               counts.methods, counts.runs, counts.cancelled);
    }
    fflush(stdout);
    return counts.late == 0;
}

static void print_digest(void *arg, struct rt_method *method)
{
    const struct caller *caller = arg;
    printf("%016" PRIx64 " %s\n", caller->digest, rt_method_name(method));
}

/* Not zero: |word| is a precision, and the file was replayed with it. */
static int replay_finding(const char *word, const char *seed, const char *path)
{
    struct error err;
    struct caller caller;
    enum precision precision;
    if (!precision_find(span_str(word), &precision)) {
        return 0;
    }
    for (uint32_t workers = 1; workers <= 2; workers++) {
        if (caller_init(&caller, workers, &err) != ST_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        caller.precision = precision;
        caller.seed = strtoull(seed, NULL, 10);
        caller.on_result = print_digest;
        caller.arg = &caller;
        (void)replay(&caller, path);
        caller_fini(&caller);
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct caller caller;
    struct error err;
    int failures = 0;
    if (argc == 4 && replay_finding(argv[1], argv[2], argv[3])) {
        return 0;
    }
    if (caller_init(&caller, 2, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        failures += !replay(&caller, argv[i]);
    }
    caller_fini(&caller);
    return failures ? 1 : 0;
}
