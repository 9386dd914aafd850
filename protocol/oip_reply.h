/* SPDX-License-Identifier: MIT */
/*
 * Answers of the Open Inference Protocol v2: plain structs in, bytes out. Printing fails only if
 * the buffer is too small, and buf_failed() tells so. Binary tensors are not copied: the reply is a
 * list of spans, the JSON first and then the memory of the results.
 *
 * Loop thread or worker: no state is shared.
 */
#ifndef PTED_PROTOCOL_OIP_REPLY_H
#define PTED_PROTOCOL_OIP_REPLY_H

#include "base/buf.h"
#include "protocol/oip.h"

struct oip_server_meta {
    const char *name, *version;
    const char *const *extensions;
    size_t extension_count;
    const char *const *scopes; /* what the client may ask for; an extension of our own */
    size_t scope_count;        /* 0: not said */
};

struct oip_model_meta {
    const char *name, *platform;
    const char *const *versions;
    const struct oip_tensor_meta *inputs, *outputs;
    /* By input: a shape without -1 that agrees with the other inputs' shapes; or NULL. */
    const struct shape *const *examples;
    const struct shape *const *maxima; /* likewise: with the largest sizes of an input */
    size_t version_count, input_count, output_count;
    const char *description; /* the words of a person, or NULL; an extension of our own */
    const char *precision;   /* a word of base/precision.h, or NULL; an extension of our own */
    const char *cache;       /* "int8": how caches are kept, or NULL; likewise */
    const char *constants, *placement, *lacks; /* JSON of extensions of our own, or NULL */
};

/* One row of the repository index; NULL members are left out. */
struct oip_index_row {
    const char *name, *version, *state, *reason;
    const char *kind, *id; /* extensions of our own: what people use it for, its other name */
    const char *lacks;     /* JSON, or NULL */
    bool is_constant;      /* "constant": it takes nothing, and its results are always the same */
};

struct oip_result {
    struct span head; /* by oip_print_result_head(), of what follows; empty: not printed yet */
    struct span name;
    struct oip_type type;
    struct shape shape;
    bool is_binary;
    bool is_channels_last; /* the elements of |data|, else row-major */
    bool is_shared; /* the client finds it in shared memory: the reply says where, in |shared| */
    struct oip_shared shared;
    struct span data;           /* the tensor's memory; borrowed until the reply is written */
    const struct span *strings; /* BYTES: shape_numel() of them */
};

/* Returns what |string| takes in binary form: its length in four bytes, and its own bytes. */
static inline size_t oip_string_bytes(struct span string)
{
    return sizeof(uint32_t) + string.len;
}

/* Returns the bytes of the tensor as binary data. */
size_t oip_result_bytes(const struct oip_result *result);

struct oip_reply {
    struct span head; /* by oip_print_reply_head(); empty: not printed yet */
    const char *model_name, *model_version;
    const struct oip_result *results;
    size_t result_count;
    enum number_nan nan;
};

/* An answer that can be sent. Spans point into its buffer and into the results' memory. */
struct oip_encoded {
    size_t json_bytes;  /* value of Inference-Header-Content-Length */
    bool has_binary;    /* the header is sent, and the type is application/octet-stream */
    bool is_message;    /* of gRPC: what stands for the JSON is the beginning of a message */
    size_t total_bytes; /* Content-Length */
    size_t span_count;  /* JSON and blobs, in the order of the wire */
    struct span *spans; /* the caller's: room for 1 + result_count */
};

/* Prints the beginning of the replies of a model, and of a result in them: the same in each. */
void oip_print_reply_head(struct buf *out, const char *model_name, const char *model_version);
void oip_print_result_head(struct buf *out, struct span name, struct oip_type type);

#define OIP_BLOB_ALIGN 64 /* of the first blob behind the JSON, by trailing spaces */

/*
 * Begins an answer that is made in pieces, because it may be one to several requests.
 * |encoded->spans| is the caller's. First oip_encode_begin(); then the text, with the members of
 * each reply ("model_name", "model_version", "outputs") and whatever stands around them; then
 * oip_encode_end_json(); then what of each result stands behind the JSON and has no memory of its
 * own, in the same order; then oip_encode_end(), which is ST_TOO_LARGE when |out| had no room.
 */
void oip_encode_begin(struct oip_encoded *encoded);
void oip_print_members(const struct oip_reply *reply, struct buf *out, struct oip_encoded *encoded);
void oip_encode_blob(struct oip_encoded *encoded, struct span bytes); /* goes out behind the JSON */
void oip_encode_end_json(struct buf *out, struct oip_encoded *encoded);
void oip_print_strings(const struct oip_result *result, struct buf *out);
MUST_CHECK enum status oip_encode_end(struct buf *out, struct oip_encoded *encoded,
                                      struct error *err);

void oip_print_server(struct buf *out, const struct oip_server_meta *meta);
void oip_print_model(struct buf *out, const struct oip_model_meta *meta);
void oip_print_model_ready(struct buf *out, const char *name, bool is_ready);
void oip_print_index(struct buf *out, const struct oip_index_row *rows, size_t count);
void oip_print_error(struct buf *out, const char *text);
void oip_print_error_member(struct buf *out, const char *text);
void oip_print_id(struct buf *out, struct span id); /* the member, with a comma behind it */

#endif
