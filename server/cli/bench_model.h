/* SPDX-License-Identifier: MIT */
/*
 * What `pte bench` learns from a server: a model's inputs, by way of server/cli/remote.h; whether
 * their first dim counts rows (GET .../config), the model's statistics (.../stats), and the
 * server's name and version (GET /v2). A server may send anything: answers are bounded, and its
 * texts are escaped before they are shown. The formats belong to the Open Inference Protocol and
 * its extensions.
 */
#ifndef PTED_SERVER_CLI_BENCH_MODEL_H
#define PTED_SERVER_CLI_BENCH_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"
#include "server/cli/remote.h"

#define BENCH_SERVER_MAX 96 /* bytes of "pted 1.0.0" */

struct bench_input {
    const char *name; /* borrowed */
    bool is_bytes;    /* strings; else elements of |dtype| */
    enum dtype dtype;
    bool is_optional;
    struct shape shape;   /* -1: a dim that varies */
    struct shape example; /* the same without such dims */
};

struct bench_model {
    struct bench_input inputs[CLI_REMOTE_TENSORS_MAX];
    uint32_t input_count;
    bool has_rows; /* dim 0 of the inputs counts rows; else a request is one row */
};

/* Sums over all versions in the answer; times in ns. |decode_ns|: of files and texts. */
struct bench_stats {
    uint64_t inferences, executions; /* rows, and runs of the model */
    uint64_t requests, failed;
    uint64_t total_ns, prepare_ns, decode_ns, queue_ns, compute_ns, encode_ns;
};

/* Takes the inputs over from |remote|, which outlives |model| and has asked for the metadata. */
void bench_model_init(struct bench_model *model, const struct cli_remote *remote);

/* Reads max_batch_size. */
MUST_CHECK enum status bench_model_read_config(struct span text, struct bench_model *model,
                                               struct error *err);

MUST_CHECK enum status bench_stats_read(struct span text, struct bench_stats *out,
                                        struct error *err);

/* Returns the increase between two readings; 0 if a number has become smaller, as after a restart
 * of the server. */
struct bench_stats bench_stats_between(const struct bench_stats *before,
                                       const struct bench_stats *after);

/* "pted 1.0.0". */
MUST_CHECK enum status bench_server_read(struct span text, char out[BENCH_SERVER_MAX],
                                         struct error *err);

#endif
