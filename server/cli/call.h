/* SPDX-License-Identifier: MIT */
/*
 * A method of a file and calls of it, as the command line describes them. Shared by `pte run` and
 * `pte profile`. One thread.
 */
#ifndef PTED_SERVER_CLI_CALL_H
#define PTED_SERVER_CLI_CALL_H

#include <limits.h>
#include <stdio.h>

#include <uv.h>

#include "base/shape.h"
#include "base/status.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "runtime/program/results.h"
#include "runtime/pte/files.h"
#include "server/process/args.h"
#include "server/cli/inputs.h"
#include "server/cli/media.h"

struct card;
struct hal_device;
struct hal_pool;
struct rt_profile;

#define CLI_CALL_WARM_UPS 3

struct cli_call_options {
    const char *path, *method, *device, *cpu_level, *card;
    char place[PATH_MAX];       /* of |path|, if a folder was given */
    const struct rt_keep *keep; /* values that become results, or NULL */
    const char *of_file;        /* the name of an option that means nothing for a URL, or NULL */
    struct cli_inputs_options inputs;
    const char *data[RT_DATA_FILES_MAX];
    uint32_t data_count;
    uint64_t workers;
    enum precision precision;
};

struct cli_call {
    const struct cli_call_options *options;
    struct hal_device *device;  /* shared: ref held */
    struct hal_pool *pool;      /* owned */
    struct rt_program *program; /* shared: ref held */
    struct rt_method *method;   /* borrowed from |program| */
    struct card *card;          /* owned; NULL: there is none */
    struct cli_media media;
    struct cli_inputs inputs;
    struct rt_invocation *invocation; /* owned; the last invocation */
    struct rt_profile *profile;       /* borrowed; of the next calls; NULL: none */
    uint64_t began_ns;                /* CLOCK_MONOTONIC: the begin of the last call */
    uv_sem_t done;
    enum status done_status;
};

/*
 * Reads a command line into |options|. An option that is not one of them goes to |take|, which
 * refuses it (cli_refuse()) if it is none of the command's own. ST_INVALID also without FILE.
 */
typedef enum status cli_call_take_f(void *own, struct args *args, const struct arg *arg,
                                    struct error *err);
MUST_CHECK enum status cli_call_parse(int argc, char *const argv[],
                                      struct cli_call_options *options, cli_call_take_f *take,
                                      void *own, struct error *err);

/* The number that |arg| gives, from |min| to |max|. */
MUST_CHECK enum status cli_call_number(struct args *args, const struct arg *arg, uint64_t min,
                                       uint64_t max, uint64_t *out, struct error *err);

/* The help of these options. */
#define CLI_CALL_HELP                                                                              \
    "  --method NAME        the method (forward, or the only one)\n"                               \
    "  --input NAME=X       X is FILE.npy, FILE.bin:2x3x4 (raw little-endian and dims) or JSON\n"  \
    "                       text; of an input that the card says to be made from a picture, a\n"   \
    "                       sound or a text, X is a file or a text; repeatable, then each of\n"    \
    "                       these is a row. NAME=X alone is the same, and X alone for the only\n"  \
    "                       input, or the only such one. Inputs that are not given get a fixed\n"  \
    "                       pattern\n"                                                             \
    "  --shape NAME=2x3x4   the shape of an input; repeatable (the content's; of a pattern: 1\n"   \
    "                       for a batch, else what the file allows; printed)\n"                    \
    "  --card FILE          names, steps and answers are in this card (FILE.card.json beside\n"    \
    "                       FILE.pte, if there is one)\n"
#define CLI_CALL_DEVICE_HELP                                                                       \
    "  --data FILE          look for external weights in this .ptd file instead of beside\n"       \
    "                       FILE.pte; repeatable\n"                                                \
    "  --workers N          threads that compute (as many as the process may use)\n"               \
    "  --cpu LEVEL          highest instruction set: generic, avx2, avx512, ... (the best)\n"      \
    "  --precision MODE     how floats are computed: exact, fast or bf16 (fast)\n"

/* Opens the device and loads the program. |call| can be closed also after a failure, and
 * |options| outlives it. */
MUST_CHECK enum status cli_call_open(struct cli_call *call, const struct cli_call_options *options,
                                     struct error *err);
void cli_call_close(struct cli_call *call);

/* One call, from preparing to its end, which took *|out_ns|. Its invocation is kept for its results
 * until the next one. */
MUST_CHECK enum status cli_call_once(struct cli_call *call, uint64_t *out_ns, struct error *err);

/* The result allocator: what each result will be, by raw index, for inputs with these shapes.
 * Nothing is run. */
MUST_CHECK enum status cli_call_foresee(struct cli_call *call, struct rt_result_info *out_infos,
                                        struct error *err);

/* The value below which the part |q| of |count| > 0 sorted times lies. */
uint64_t cli_call_quantile(const uint64_t *sorted, uint64_t count, double q);

/* For qsort() of times. */
int cli_call_compare_ns(const void *a, const void *b);

#endif
