/* SPDX-License-Identifier: MIT */
/* An input or a result, as the command line sees it: of a method of a file, or of a model at a
 * server. One thread. */
#ifndef PTED_SERVER_CLI_IO_H
#define PTED_SERVER_CLI_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/names.h"
#include "base/shape.h"
#include "base/status.h"
#include "lib/pted.h"

struct cli_io {
    enum pted_kind kind;
    const char *name;      /* unique among the method's inputs or results */
    const char *alias;     /* "input_0", "output_0" */
    const char *label;     /* for messages: "input 'mask'" */
    enum dtype dtype;      /* of a tensor; I64, F64 and BOOL for scalars */
    struct shape shape;    /* upper bounds; rank 0 for scalars */
    uint32_t dynamic_dims; /* bit d is set: dim d may be anything up to shape.dims[d] */
    bool is_fixed;         /* of scalars: the value is known, and may be left out */
};

/* A result before it is computed. */
struct cli_size {
    struct shape shape;
    size_t bytes;
    bool is_known; /* else a dim depends on data, and the others are bounds */
};

/* Describes all inputs or all outputs of |method|, in |arena|. ST_EXHAUSTED. */
MUST_CHECK enum status cli_io_read_inputs(const struct pted_method *method, struct arena *arena,
                                          struct cli_io **out_ios, struct error *err);
MUST_CHECK enum status cli_io_read_outputs(const struct pted_method *method, struct arena *arena,
                                           struct cli_io **out_ios, struct error *err);

/* Tells whether |name| is its name or its alias. */
bool cli_io_is_called(const struct cli_io *io, struct span name);

/* Tells whether dim |dim| may be less than shape.dims[dim]. */
static inline bool cli_io_is_dynamic(const struct cli_io *io, uint32_t dim)
{
    return io->dynamic_dims >> dim & 1;
}

/* Prints their names: names_print(). */
const char *cli_io_print_names(const struct cli_io *ios, uint32_t count, char text[NAMES_TEXT_MAX]);

/* Turn shapes of pted.h into ours, and back. */
struct shape cli_shape_take(const struct pted_shape *shape);
struct pted_shape cli_shape_give(const struct shape *shape);

#endif
