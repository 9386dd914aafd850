/* SPDX-License-Identifier: MIT */
/*
 * A method of a file and calls of it, as the command line describes them. Shared by `pte run`,
 * `pte compare` and `pte profile`, which are programs of the library (lib/pted.h) like others: what
 * they see of the runtime are the functions of that header. Only cards, which the library does not
 * have, see more (server/cli/media.h). One thread.
 */
#ifndef PTED_SERVER_CLI_CALL_H
#define PTED_SERVER_CLI_CALL_H

#include <limits.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/precision.h"
#include "base/status.h"
#include "lib/pted.h"
#include "server/cli/inputs.h"
#include "server/cli/io.h"
#include "server/cli/media.h"
#include "server/cli/option.h"

struct card;
struct cli_result;

#define CLI_CALL_WARM_UPS 3
#define CLI_DATA_FILES_MAX 64 /* as many as the library takes */

struct cli_call_options {
    const char *path, *method, *device, *cpu_level, *card;
    char place[PATH_MAX]; /* of |path|, if a folder was given */
    pted_keep_f *keep;    /* values that become results, or NULL */
    void *keep_arg;
    struct cli_inputs_options inputs;
    const char *data[CLI_DATA_FILES_MAX];
    uint32_t data_count;
    uint64_t workers;
    enum precision precision;
};

struct cli_call {
    const struct cli_call_options *options;
    struct pted_device *device;            /* owned */
    struct pted_program *program;          /* owned */
    const struct pted_method *method;      /* borrowed from |program| */
    struct arena arena;                    /* has the next two */
    struct cli_io *input_ios, *result_ios; /* results, and behind them values that are kept */
    uint32_t input_count, result_count;    /* all of them */
    struct card *card;                     /* owned; NULL: there is none */
    struct cli_media media;
    struct cli_inputs inputs;
    struct pted_call *call;       /* owned; the last one */
    struct pted_profile *profile; /* borrowed; of the next calls; NULL: none */
    uint64_t began_ns;            /* CLOCK_MONOTONIC: the begin of the last call */
    union {
        int64_t i;
        double f;
        bool b;
    } scalar; /* of the result that was read last */
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

/* Makes one call, which took *|out_ns| without the decoding of its inputs. Its results stay until
 * the next one. */
MUST_CHECK enum status cli_call_once(struct cli_call *call, uint64_t *out_ns, struct error *err);

/* Reads result |index| of the call, which has run; its bytes are valid until the next result is
 * read. A None and a value that was not computed have no bytes (NULL). */
MUST_CHECK enum status cli_call_result(struct cli_call *call, uint32_t index,
                                       struct cli_result *out, struct error *err);

/* Tells what the result allocator does: what each result will be, for inputs with these shapes.
 * Nothing is run. */
MUST_CHECK enum status cli_call_foresee(struct cli_call *call, struct cli_size *out_sizes,
                                        struct error *err);

/* Gives memory of the call that is being filled, for the elements of input |index|; NULL for 0
 * bytes. */
MUST_CHECK enum status cli_call_allocate(struct cli_call *call, uint32_t index, enum dtype dtype,
                                         const struct shape *shape, void **out_ptr,
                                         struct error *err);

/* Returns the value below which the part |q| of |count| > 0 sorted times lies. */
uint64_t cli_call_quantile(const uint64_t *sorted, uint64_t count, double q);

/* For qsort() of times. */
int cli_call_compare_ns(const void *a, const void *b);

#endif
