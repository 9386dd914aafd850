/* SPDX-License-Identifier: MIT */
/* Shared by the files of `pte profile`: the measurements, as text, as JSON and as a trace. One
 * thread. */
#ifndef PTED_SERVER_CLI_PROFILE_H
#define PTED_SERVER_CLI_PROFILE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "lib/pted.h"
#include "server/process/model_name.h"

/* A call that was measured: CLOCK_MONOTONIC. */
struct cli_profile_call {
    uint64_t begin_ns, end_ns;
};

struct cli_profile {
    char program[MODEL_NAME_MAX + 1]; /* its name */
    const char *method;
    const struct pted_device *device;
    bool has_peaks;          /* false on a device other than the CPU */
    struct pted_peaks peaks; /* of all workers together */
    struct cli_profile_call *calls;
    uint64_t call_count;
    uint64_t *sorted_ns; /* of the calls */
    struct pted_profile *profile;
    uint32_t row_count;                  /* of |profile| */
    uint64_t busy_ns, host_ns, calls_ns; /* sums over the rows, and over the calls */
};

/* Returns row |index| of the profile, which has it. */
static inline const struct pted_profile_row *cli_profile_row(const struct cli_profile *p,
                                                             uint32_t index)
{
    return pted_profile_row(p->profile, index);
}

/* Rows that the text shows unless it is asked for all. */
#define CLI_PROFILE_ROWS 20

/* Prints two tables: by layer, the slowest first, or all in their order; and by operator. */
void cli_profile_print_text(const struct cli_profile *p, bool shows_all, struct buf *out);

/* Prints one object; pte(1) describes its members. */
void cli_profile_print_json(const struct cli_profile *p, struct buf *out);

/*
 * Prints every span, in the format of Chrome's tracing, which Perfetto reads, too. Source: "Trace
 * Event Format", the JSON object format with complete events ("ph": "X").
 */
void cli_profile_print_trace(const struct cli_profile *p, struct buf *out);

#endif
