/* SPDX-License-Identifier: MIT */
/*
 * Calls by the first version of KServe's protocol, which is TensorFlow Serving's
 * (https://kserve.github.io/website/latest/modelserving/data_plane/v1_protocol/):
 *
 *     {"instances": [[1, 2], [3, 4]]}                  rows of the only input
 *     {"instances": [{"a": [1, 2], "b": 0}, ...]}      rows of several inputs by name
 *     {"inputs": {"a": [[1, 2]], "b": [[0, 1]]}}       whole inputs by name, or the only one
 *     {"predictions": [[1, 3]]}
 *
 * Values are those of protocol/call.h. "parameters" and "signature_name" may stand beside them; the
 * second says nothing. Loop thread or worker: no state is shared.
 */
#ifndef PTED_PROTOCOL_PREDICT_H
#define PTED_PROTOCOL_PREDICT_H

#include "protocol/call.h"

/* How inputs are found by their names. */
struct predict_names {
    /* The raw index of the input |name|; false: there is none, and |err| says which there are. */
    bool (*find)(const void *user, struct span name, uint32_t *out_index, struct error *err);
    const void *user; /* borrowed */
};

/* Does as call_parse(), for a request that is not one of a list. */
MUST_CHECK enum status predict_parse(const struct oip_body *body, const struct call_method *method,
                                     const struct predict_names *names,
                                     const struct call_limits *limits, struct arena *arena,
                                     struct call_request *out, struct error *err);

struct predict_result {
    const char *name;
    const struct call_io *io;
    struct call_result value;
};

/*
 * Prints the member "predictions": the value of one result; of several an object by name, or with
 * |are_rows| and equal first dims a list of such objects, one for each row.
 */
void predict_print(const struct predict_result *results, size_t count, bool are_rows,
                   enum number_nan nan, struct buf *out);

#endif
