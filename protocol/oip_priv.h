/* SPDX-License-Identifier: MIT */
/* Shared by the files that read requests, and by the files that print answers. */
#ifndef PTED_PROTOCOL_OIP_PRIV_H
#define PTED_PROTOCOL_OIP_PRIV_H

#include "base/buf.h"
#include "protocol/json.h"
#include "protocol/oip.h"

/* A text that is read, and the arena and limits for what is kept of it. */
struct oip_reader {
    struct json *in;
    const struct oip_limits *limits; /* |name_bytes_max|, |parameters_max|, |is_listed| */
    struct arena *arena;
    struct error *err;
    bool takes_extents; /* outputs may have shapes, which a call found out */
    bool is_call; /* top_k, answer and order are parameters of their own, else they are others */
};

struct oip_parser {
    struct json in;
    struct oip_reader reader; /* of |in| */
    const struct oip_limits *limits;
    struct arena *arena;
    struct oip_request *request;
    struct error *err;
    bool is_shapes_only; /* inputs need no datatype and no data */
};

/* Makes room for one more behind |count| items: doubles at powers of two, NULL when the arena is
 * full. */
void *oip_grow(struct arena *arena, void *items, size_t count, size_t size);

/* Of a request beyond the limits, in any form. */
#define OIP_MANY_INPUTS "more than %zu inputs"
#define OIP_MANY_OUTPUTS "more than %zu outputs"

/* Adds an input that knows its place alone. NULL: |arena| has no memory. */
struct oip_request_input *oip_add_input(struct arena *arena, struct oip_request *request);

/* Passes a null, which stands for an optional member that is absent. */
bool oip_take_null(const struct oip_reader *reader);

/* Reads a name, an id or a text, bounded; it borrows from the body where nothing is escaped. */
MUST_CHECK enum status oip_read_string(const struct oip_reader *reader, struct span *out);

/* Reads the values of the members "parameters" and "$from". */
MUST_CHECK enum status oip_read_parameters(const struct oip_reader *reader,
                                           struct oip_parameters *out);
MUST_CHECK enum status oip_read_promise(const struct oip_reader *reader, struct oip_promise *out);

/* If |key| is a member of the shared memory extension: reads its value and sets |*out_is_read|. */
MUST_CHECK enum status oip_read_shared(const struct oip_reader *reader,
                                       const struct json_string *key, struct oip_shared *out,
                                       bool *out_is_read);

/* Checks, when all members are read, that none is missing. */
MUST_CHECK enum status oip_check_shared(const struct oip_reader *reader,
                                        const struct oip_shared *shared);

/* Reads an array of dims that are 0 or more. */
MUST_CHECK enum status oip_read_shape(struct json *in, struct shape *out, struct error *err);

/* Parses the values of the members "inputs" and "outputs". */
MUST_CHECK enum status oip_parse_inputs(struct oip_parser *p);
MUST_CHECK enum status oip_read_outputs(const struct oip_reader *reader, struct oip_outputs *out);

/* Reads the parameters of an input and of an output, an object or null. */
MUST_CHECK enum status oip_read_input_parameters(const struct oip_reader *reader,
                                                 struct oip_request_input *input);
MUST_CHECK enum status oip_read_output_parameters(const struct oip_reader *reader,
                                                  struct oip_request_output *output);

/* Checks that the parameters of an output suit each other; adds it, unless it is listed already. */
MUST_CHECK enum status oip_check_output(const struct oip_reader *reader,
                                        const struct oip_request_output *output);
MUST_CHECK enum status oip_add_output(const struct oip_reader *reader,
                                      const struct oip_request_output *output,
                                      struct oip_outputs *out);

/* Settles the sizes, sources and binary spans of all inputs, which are known only when all are
 * read. */
MUST_CHECK enum status oip_finish_inputs(struct oip_request *request, struct span *binary,
                                         const struct oip_limits *limits, struct error *err);

/* Settles the sizes of inputs that came as messages, and compares them with the bytes that came. */
MUST_CHECK enum status oip_finish_messages(struct oip_request *request,
                                           const struct oip_limits *limits, struct error *err);

/* Checks that nothing of the binary data is left. */
MUST_CHECK enum status oip_verify_rest(struct span binary, struct error *err);

/* Appends "name":"text"; the name is one of ours, which need no escapes. */
void oip_print_member(struct buf *out, const char *name, const char *text);

#endif
