/* SPDX-License-Identifier: MIT */
/*
 * The bodies of the requests of a bench: the inputs of a model with values from files, or else
 * random ones, as binary tensors or as JSON. Requests take them in turn.
 */
#ifndef PTED_SERVER_CLI_BENCH_BODY_H
#define PTED_SERVER_CLI_BENCH_BODY_H

#include "base/arena.h"
#include "base/buf.h"
#include "server/cli/bench_model.h"

#define BENCH_BODIES_MAX 4096
#define BENCH_BODIES_BYTES_MAX ((size_t)4 << 30) /* of all of them, and of their files */

struct bench_body {
    struct span bytes; /* owned by the arena */
    size_t json_bytes; /* that begin it; the tensors follow */
    uint64_t rows;
};

/* Values of an input: packed elements or, of BYTES, the text of each element. */
struct bench_value {
    struct shape shape;
    struct span bytes; /* owned by the arena */
};

struct bench_body_input {
    const struct bench_input *input; /* borrowed from the model */
    struct bench_value *values;      /* owned by the arena; used in turn */
    uint32_t count;                  /* 0: an optional input that is left out */
    size_t capacity;
    bool is_chosen; /* other shapes were possible, and no option says which */
};

struct bench_bodies {
    struct arena arena;
    struct bench_body_input *inputs; /* owned by the arena; in the order of the model's inputs */
    uint32_t input_count;
    struct bench_body *items; /* owned by the arena */
    uint32_t count;
    bool is_json;
};

struct bench_body_options {
    const char *const *shapes; /* NAME=2x3x4 */
    const char *const *data;   /* NAME=FILE.npy, or NAME=FOLDER of such files */
    uint32_t shape_count, data_count;
    bool is_json; /* else binary tensors */
    uint64_t seed;
};

/* Afterwards bench_bodies_fini() is due, also after a failure. */
MUST_CHECK enum status bench_bodies_make(const struct bench_model *model,
                                         const struct bench_body_options *options,
                                         struct bench_bodies *out, struct error *err);
void bench_bodies_fini(struct bench_bodies *bodies);

/* Appends the inputs of the first body, " input_0=1x3x224x224 FP32", or only the shapes that were
 * chosen. */
void bench_bodies_print_inputs(const struct bench_bodies *bodies, bool only_chosen,
                               struct buf *out);

#endif
