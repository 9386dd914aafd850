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
#include "server/cli/inputs.h"
#include "server/cli/media.h"
#include "server/cli/option.h"

struct card;
struct hal_device;
struct hal_pool;
struct rt_profile;

#define CLI_CALL_WARM_UPS 3

struct cli_call_options {
    const char *path, *method, *device, *cpu_level, *card;
    char place[PATH_MAX];       /* of |path|, if a folder was given */
    const struct rt_keep *keep; /* values that become results, or NULL */
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

/* The options that set them: of the call, and of the device. */
extern const struct cli_option cli_call_option_table[], cli_device_option_table[];

/* For |take| of a command: the path, then what follows it. */
MUST_CHECK enum status cli_call_take(struct cli_call_options *options, const char *text,
                                     struct error *err);

/* Call when the command line has been read. ST_INVALID without FILE. */
MUST_CHECK enum status cli_call_settle(struct cli_call_options *options, struct error *err);

/* Opens the device and loads the program. |call| can be closed also after a failure, and
 * |options| outlives it. */
MUST_CHECK enum status cli_call_open(struct cli_call *call, const struct cli_call_options *options,
                                     struct error *err);
void cli_call_close(struct cli_call *call);

/* Makes one call, from preparing to its end, which took *|out_ns|. Its invocation is kept for its
 * results until the next one. */
MUST_CHECK enum status cli_call_once(struct cli_call *call, uint64_t *out_ns, struct error *err);

/* Tells the result allocator: what each result will be, by raw index, for inputs with these shapes.
 * Nothing is run. */
MUST_CHECK enum status cli_call_foresee(struct cli_call *call, struct rt_result_info *out_infos,
                                        struct error *err);

/* Returns the value below which the part |q| of |count| > 0 sorted times lies. */
uint64_t cli_call_quantile(const uint64_t *sorted, uint64_t count, double q);

/* For qsort() of times. */
int cli_call_compare_ns(const void *a, const void *b);

#endif
