/* SPDX-License-Identifier: MIT */
/*
 * Requests of the Open Inference Protocol v2 with the binary tensor extension.
 *
 * Parsing has two phases, so that the memory of the inputs is reserved at its exact size in
 * between: oip_parse_infer() reads the envelope and checks everything but the elements of JSON
 * arrays; oip_decode_input() then writes one input into memory of the caller. Memory that a request
 * makes us allocate comes from the arena, which the caller bounds. Everything else borrows from the
 * body, which has to outlive the request.
 *
 * A body is JSON, or JSON followed by raw tensor bytes (oip_split_body() tells by the request
 * header Inference-Header-Content-Length), or only the bytes of a single input (oip_parse_raw()).
 *
 * Loop thread or worker: no state is shared.
 */
#ifndef PTED_PROTOCOL_OIP_H
#define PTED_PROTOCOL_OIP_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"
#include "protocol/oip_layout.h"
#include "protocol/pick.h"
#include "protocol/tensor_text.h"

/* An element type on the wire. Only BYTES is not a dtype. */
struct oip_type {
    bool is_bytes;
    enum dtype dtype; /* without meaning when is_bytes */
};

const char *oip_type_name(struct oip_type type);

/* An input or an output in a model's metadata; a dim of -1 is any size. */
struct oip_tensor_meta {
    const char *name;
    struct oip_type type;
    struct shape shape;
    bool is_optional;        /* an input that a request may leave out */
    const char *description; /* the words of a person, or NULL */
    uint32_t label_count;    /* names of its classes; 0: none are known */
    const char *media;       /* an input may come as "image", "sound" or "text"; or NULL */
    const char *media_form;  /* JSON: how the tensor is made from it; or NULL */
    const char *answer;      /* an output is written as "boxes" or the like for people; or NULL */
    const char *answer_form; /* JSON: where that lies in a picture; or NULL */
};

struct oip_limits {
    size_t inputs_max, outputs_max, parameters_max;
    size_t name_bytes_max; /* names, id and string parameters */
    size_t tensor_bytes_max;
    size_t json_depth_max; /* 0, or anything above: JSON_DEPTH_MAX */
    bool is_listed;        /* the request is one of a list: inputs may be results of others */
};

enum oip_parameter_type { OIP_BOOL, OIP_INT, OIP_UINT, OIP_FLOAT, OIP_STRING };

struct oip_parameter {
    struct span name;
    enum oip_parameter_type type;
    union {
        bool b;
        int64_t i;
        uint64_t u; /* OIP_UINT: an integer above INT64_MAX */
        double f;
        struct span s;
    };
};

/* Parameters of a request, whatever form its tensors have. */
struct oip_parameters {
    bool sequence_start, sequence_end;
    bool binary_data_output; /* form of outputs that do not say; all of them when none is listed */
    uint64_t sequence_id;    /* 0 = none or a string */
    struct span sequence_name; /* a sequence_id that is a string */
    bool has_nan;              /* the request says how NaN and the infinities are written */
    enum number_nan nan;
    uint64_t priority, timeout_us;
    bool has_top_k;        /* the request says how many classes */
    uint32_t top_k;        /* classes in place of scores, so many of each row; 0: no classes */
    bool wants_tensors;    /* "answer": false, numbers where there is an answer for people */
    bool is_channels_last; /* "order" of the results that do not say, of 3 to 5 dims */
    struct oip_parameter *others; /* in the arena */
    size_t other_count;
};

/* {"$from": {"id": ..., "output": ...}}: a result of another request of the same list. */
struct oip_promise {
    struct span id;
    struct pick output;       /* of the other request's results */
    bool has_type, has_shape; /* the request says which the result has */
};

/* Where a tensor lies in shared memory: the extension's members of "parameters". */
struct oip_shared {
    bool is_given;      /* one of the members below was there */
    bool has_bytes;     /* |bytes| was there */
    struct span region; /* name of a registered region */
    uint64_t offset;    /* in the region */
    uint64_t bytes;     /* of the tensor; of an output, room for it */
};

/* For the caller: which of its inputs that one is, as it has found for whatever has the number |by|
 * and checked. It stays in the pattern of a request. */
struct oip_bound {
    uint64_t by; /* 0: nothing has been found yet */
    uint32_t index;
};

struct oip_request_input {
    struct span name;
    size_t index;         /* in the request, for error paths */
    struct oip_type type; /* of a promise: if it says so, likewise |shape| */
    struct shape shape;
    bool is_promise;
    struct oip_promise promise; /* then; there is no data */
    size_t bytes;               /* shape x type; for BYTES 0 */
    bool is_binary;
    bool is_one_string;       /* BYTES of a request without JSON: |data| is the element itself */
    bool is_message;          /* of gRPC: unless |is_binary|, |data| is an InferTensorContents */
    struct oip_layout layout; /* of the elements in |data|, which are binary */
    struct oip_shared shared; /* if given: the caller reads data.len bytes there, and data.ptr is
                                 NULL until then */
    struct span data;         /* the JSON array, or the tensor's bytes, or of gRPC a message */
    struct oip_bound bound;
};

struct oip_request_output {
    struct span name;
    size_t index; /* in the request, for error paths */
    bool is_binary;
    bool has_form;            /* the request says |is_binary| of this output itself */
    uint32_t class_count;     /* of the classification extension; 0 = the tensor itself */
    bool has_order;           /* the request says |is_channels_last| of this output itself */
    bool is_channels_last;    /* "order": the tensor's elements, in binary and in JSON */
    bool wants_answer;        /* "answer": true, as the card of the model says */
    bool wants_json;          /* "answer": "json": then each row as `call` writes it */
    struct oip_shared shared; /* if given: the caller writes the tensor there */
    bool has_shape;           /* of a request for shapes: the client knows |shape| from a call */
    struct shape shape;
};

struct oip_outputs {
    struct oip_request_output *items; /* in the arena */
    size_t count;
};

struct oip_request {
    bool has_id;
    struct span id;
    struct oip_parameters parameters;
    struct oip_request_input *inputs; /* in the arena */
    size_t input_count;
    struct oip_outputs outputs;
};

struct oip_body {
    bool is_raw; /* no JSON: |binary| is the one input */
    struct span json, binary;
    size_t json_offset; /* bytes of text before |json|: messages count from there */
};

/* |json_bytes| is the value of Inference-Header-Content-Length, or NULL when it was not sent. */
MUST_CHECK enum status oip_split_body(struct span body, const struct span *json_bytes,
                                      struct oip_body *out, struct error *err);

/* |out_rest| gets the binary data that this request does not use, for the next request of a list.
 * If it is NULL, unused binary data is an error. */
MUST_CHECK enum status oip_parse_infer(const struct oip_body *body, const struct oip_limits *limits,
                                       struct arena *arena, struct oip_request *out,
                                       struct span *out_rest, struct error *err);

/* Parses a request for shapes: of an inference request only the names and shapes of the inputs, and
 * of outputs where it has any, which are neither checked against each other nor against a model. */
MUST_CHECK enum status oip_parse_shapes(struct span body, const struct oip_limits *limits,
                                        struct arena *arena, struct oip_request *out,
                                        struct error *err);

/* Parses a request without JSON for a model with the single input |meta|: at most one dim is -1. */
MUST_CHECK enum status oip_parse_raw(struct span binary, const struct oip_tensor_meta *meta,
                                     const struct oip_limits *limits, struct arena *arena,
                                     struct oip_request *out, struct error *err);

/* Checks that the model accepts the input's type and shape. */
MUST_CHECK enum status oip_verify_input(const struct oip_request_input *input,
                                        const struct oip_tensor_meta *meta, struct error *err);

/* Returns how the text of a request with |parameters| writes NaN, and how its answer is to. */
struct tensor_nan oip_request_nan(const struct oip_parameters *parameters);
enum number_nan oip_answer_nan(const struct oip_parameters *parameters,
                               const struct tensor_nan *request);

/* Returns the bytes that an input occupies before it is packed: the bytes of its elements or, if it
 * has a layout, all bytes that the client sent for it. */
size_t oip_input_stored_bytes(const struct oip_request_input *input);

/* Writes |bytes| bytes to |dst|; not for BYTES. Each binary BOOL becomes 0 or 1. */
MUST_CHECK enum status oip_decode_input(const struct oip_request_input *input,
                                        struct tensor_nan *nan, void *dst, size_t bytes,
                                        struct error *err);

/* Are bytes of |dtype| elements as they come? A bool may come as any number. */
static inline bool oip_is_direct(enum dtype dtype)
{
    return dtype != DT_BOOL;
}

/* Is |input->data| already the tensor's content, with nothing to decode? */
bool oip_input_is_direct(const struct oip_request_input *input);

/* Decodes the elements of a BYTES input; they borrow from the body or live in |arena|. */
MUST_CHECK enum status oip_decode_strings(const struct oip_request_input *input,
                                          struct arena *arena, struct span **out_strings,
                                          struct error *err);

/* Body of POST /v2/systemsharedmemory/region/{r}/register. The key may be in |arena|. */
struct oip_region {
    struct span key;
    uint64_t offset, bytes;
};

MUST_CHECK enum status oip_parse_region(struct span body, const struct oip_limits *limits,
                                        struct arena *arena, struct oip_region *out,
                                        struct error *err);

/* A request to load or unload a model. */
struct oip_change {
    bool has_files;       /* "config" or "file:...": a model that comes with the request */
    bool with_dependents; /* "unload_dependents" */
};

/* Parses the body of POST /v2/repository/models/{m}/load and unload: empty, or {"parameters":
 * {...}}. */
MUST_CHECK enum status oip_parse_change(struct span body, struct oip_change *out,
                                        struct error *err);

/* Parses the body of POST /v2/repository/index: empty, or {"ready": bool}. */
MUST_CHECK enum status oip_parse_index(struct span body, bool *out_ready_only, struct error *err);

#endif
