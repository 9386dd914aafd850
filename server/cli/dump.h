/* SPDX-License-Identifier: MIT */
/*
 * The results of a call and its intermediate values (pted_keep_f). A call keeps at most
 * DUMP_CALL_VALUES of them, so many values take several calls with the same inputs, each of a
 * program that was loaded for its values. One thread.
 */
#ifndef PTED_SERVER_CLI_DUMP_H
#define PTED_SERVER_CLI_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"

struct cli_call;
struct cli_call_options;

#define DUMP_CALL_VALUES 128
#define DUMP_BYTES_MAX ((size_t)4 << 30) /* of all values */

struct dump_value {
    char *name;   /* owned, like the others */
    char *origin; /* "handle 7", a line of the source, or "" */
    enum dtype dtype;
    struct shape shape;
    void *bytes; /* row-major; NULL: the call did not compute it */
    size_t len;
};

struct dump {
    struct dump_value *items; /* owned; results, then values in the order of the program */
    uint32_t count, result_count;
    size_t capacity;
    size_t bytes;
};

/* Called with each call before it runs. */
typedef enum status dump_open_f(void *own, struct cli_call *call, struct error *err);

/*
 * Runs the calls of |options|, whose |keep| is NULL. Values are those of which the name, or its end
 * behind a layer, "conv.12", matches the pattern of a shell |pattern|; "all" is "*". ST_NOT_FOUND:
 * it matches none. |open| may be NULL. |dump| is to be finished in any case.
 */
MUST_CHECK enum status dump_run(struct dump *dump, const struct cli_call_options *options,
                                const char *pattern, dump_open_f *open, void *own,
                                struct error *err);
void dump_fini(struct dump *dump);

static inline struct span dump_bytes(const struct dump_value *value)
{
    return span_of(value->bytes, value->len);
}

#endif
