/* SPDX-License-Identifier: MIT */
/*
 * Calls in a method's own structure, as sip.h describes it:
 *
 *     {"args": [[1, 2], {"bar": 0.5}], "kwargs": {"bias": [0, 0]}}    either may be missing
 *     {"result": {"sum": [1, 2]}}
 *
 * with "parameters" beside them, as in a request of the Open Inference Protocol.
 *
 * An argument with a name (struct call_io) may be a member of "kwargs" instead, wherever its place
 * is; of a positional one that is as in Python. With the parameter "top_k" a result is the highest
 * scores of each row:
 *
 *     {"result": [[{"label": "zero", "index": 0, "score": 0.93}, ...], ...]}
 *
 * A leaf is a number, a bool, a string or null where the method takes one, arrays nested as the
 * tensor's shape says, or a typed object whose bytes are little-endian and row-major:
 *
 *     {"dtype": "float32", "shape": [2, 3], "base64": "..."}
 *     {"dtype": "float32", "shape": [2, 3], "binary_data_size": 24}
 *     {"dtype": "float32", "shape": [2, 3], "fill": 0.5}               every element is that
 *
 * The bytes of the first two may hold the elements in another way, see oip_layout.h:
 *
 *     {"dtype": "float32", "shape": [3, 2], "strides": [4, 12], "offset": 0, "base64": "..."}
 *
 * An input whose medium is known (struct call_io) also takes files and texts, one or a list of them
 * as rows:
 *
 *     {"base64": "..."}   {"binary_data_size": 24}   "..."     a file; the last one is base64, too
 *     "..."                                                     a text
 *
 * "b64" says the same as "base64" there, as in TensorFlow Serving's protocol.
 *
 * The bytes of typed objects with a size stand behind the JSON (oip_split_body()), in the order of
 * the text. In a list of requests a leaf may be {"$from": ...} as well, with or without the type
 * and the shape, and so may a sequence or a dict, which then is a structure of results.
 *
 * Two phases as in oip.h: call_parse() finds each leaf's text, type and shape and checks everything
 * but the elements; call_decode_leaf() then writes one leaf into the caller's memory. Errors begin
 * with the path: args[0]["bar"]: expected float32[?,128], got a string. Members that the structure
 * does not have are refused.
 *
 * Loop thread or worker: no state is shared.
 */
#ifndef PTED_PROTOCOL_CALL_H
#define PTED_PROTOCOL_CALL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "protocol/oip.h"
#include "protocol/oip_classes.h"
#include "protocol/oip_reply.h"
#include "protocol/sip.h"

enum call_kind { CALL_NONE, CALL_TENSOR, CALL_SCALAR, CALL_STRING };

/* A tensor may also be made from a file or from texts. */
enum call_medium { CALL_NO_MEDIUM, CALL_FILE, CALL_WORDS };

/* Answers for people in place of a result's numbers, see server/model/answer/answer.h. */
enum call_answer { CALL_NUMBERS, CALL_CLASSES, CALL_BOXES, CALL_MAP, CALL_SAYING };

/* The input or result at a leaf. */
struct call_io {
    enum call_kind kind;
    enum dtype dtype;    /* of a tensor; I64, F64 or BOOL of a scalar */
    struct shape shape;  /* of a tensor; a dim of -1 is any size up to the bound */
    struct shape bounds; /* of a tensor: the largest it can be */
    const char *fixed;   /* JSON of the only value that is taken, which may be left out; or NULL */
    const char *name;    /* of an argument: "kwargs" may have it by this name; or NULL.
                            Of every result */
    enum call_medium medium; /* of a tensor */
    bool is_filled; /* it is made together with the medium of another input, and may be left out */
    enum call_answer answer; /* of a result, which is a tensor; classes also if it has labels */
    bool is_part; /* a result that goes into the answer of another one, and is null then */
};

struct call_method {
    const struct sip *structure;            /* the inputs' root is a sequence, a dict or nothing */
    const struct call_io *inputs, *results; /* by raw index */
    uint32_t input_count, result_count;
};

struct call_limits {
    struct oip_limits oip; /* shared with the protocol's requests */
    uint64_t element_count_max;
    bool shapes_only; /* typed objects may come without data, tensors of one size not at all, and
                         results have extents: "outputs" as in oip_parse_shapes() */
};

/* CALL_SHAPE: without data. CALL_MEDIA: files or texts. CALL_ROWS: numbers, row by row. */
enum call_encoding {
    CALL_ABSENT,
    CALL_TEXT,
    CALL_BASE64,
    CALL_BINARY,
    CALL_FILL,
    CALL_SHAPE,
    CALL_PROMISE,
    CALL_MEDIA,
    CALL_ROWS
};

/* A file or a text: CALL_BASE64, CALL_BINARY; of a text CALL_TEXT, without escapes. A row of
 * numbers: CALL_TEXT, the JSON value. */
struct call_item {
    enum call_encoding encoding;
    struct span data;
};

/* One input as it was given. */
struct call_leaf {
    enum call_encoding encoding;
    struct shape shape;
    size_t bytes; /* shape x type; of a string 0 */
    /* size of the decoded |data|: |bytes|, or more if there is a layout */
    size_t stored;
    struct oip_layout layout; /* of the elements in that */
    struct span data; /* by encoding: the JSON value, base64 text, the tensor's bytes, the JSON
                         value of each element; a string's own */
    struct oip_promise promise; /* of a CALL_PROMISE; of a structure, the output is a path */
    bool begins_structure;      /* then: it is the first leaf of a promised structure ... */
    uint32_t structure;         /* ... at this node of the inputs */
    struct call_item *items;    /* of CALL_MEDIA and CALL_ROWS; in the arena */
    uint32_t item_count;
    bool is_list;  /* the items are the elements of a list: messages say which one */
    bool is_named; /* it was given by its name and not at its place: messages say that */
};

struct call_request {
    struct oip_parameters parameters;
    struct call_leaf *leaves;   /* one for each raw input; CALL_ABSENT if it is left out */
    struct oip_outputs outputs; /* with shapes_only: outputs whose shapes a call found out */
    bool are_rows;              /* of predict.h: the call gives rows of its input */
};

/* |out_rest| as in oip_parse_infer(). */
MUST_CHECK enum status call_parse(const struct oip_body *body, const struct call_method *method,
                                  const struct call_limits *limits, struct arena *arena,
                                  struct call_request *out, struct span *out_rest,
                                  struct error *err);

/*
 * Adds one more file or text to |leaf|. ST_TOO_LARGE: there is no room for so many; ST_EXHAUSTED.
 */
MUST_CHECK enum status call_add_item(struct arena *arena, struct call_leaf *leaf,
                                     const struct call_item *item, struct error *err);

/* Reads |json|, the value of raw input |index| alone, and of "parameters" alone. For requests that
 * have these texts apart, such as forms of several parts. Errors as of call_parse(). */
MUST_CHECK enum status call_parse_input(struct span json, const struct call_method *method,
                                        uint32_t index, const struct call_limits *limits,
                                        struct arena *arena, struct call_leaf *leaves,
                                        struct error *err);
MUST_CHECK enum status call_parse_parameters(struct span json, const struct call_limits *limits,
                                             struct arena *arena, struct oip_parameters *out,
                                             struct error *err);

/* Refuses |leaves| that miss an input which has no default. */
MUST_CHECK enum status call_verify_leaves(const struct call_method *method,
                                          const struct call_limits *limits,
                                          struct call_leaf *leaves, struct error *err);

/* Is the body a call in the method's own structure, rather than an Open Inference request? */
bool call_is_body(struct span json);

/* Decodes |leaf| into leaf->stored bytes of |dtype|. The error text continues a path. */
MUST_CHECK enum status call_decode_leaf(const struct call_leaf *leaf, enum dtype dtype,
                                        struct tensor_nan *nan, void *dst, struct error *err);

/* Puts the path of raw input |index| and |separator| before the text in |err|. |leaf|: how it was
 * given; or NULL. */
enum status call_prefix(const struct call_method *method, const struct call_leaf *leaf,
                        uint32_t index, const char *separator, struct error *err);

/* A result: a tensor, a scalar's I64, F64 or BOOL, or a string's bytes. */
struct call_result {
    struct shape shape;
    bool is_channels_last; /* the elements of |bytes|, of 3 to 5 dims; else they are row-major */
    struct span bytes;     /* borrowed until the answer is written */
    /* Classes in place of the tensor; NULL: the tensor. */
    const struct oip_class *classes;
    struct shape classes_shape;
    const struct span *labels; /* names of classes */
    uint32_t label_count;
    struct span json; /* the value as it is to be written; NULL: the tensor, or classes */
};

/*
 * Prints the member "result" of an answer that is made in pieces (oip_encode_begin()); |results| by
 * raw index. When |is_binary| tensors are typed objects and their memory goes out behind the JSON.
 */
MUST_CHECK enum status call_print(const struct call_method *method,
                                  const struct call_result *results, bool is_binary,
                                  enum number_nan nan, struct buf *out, struct oip_encoded *encoded,
                                  struct error *err);

/* Prints only the value of "result", without binary data. If |out| has no room, it fails. */
void call_print_value(const struct call_method *method, const struct call_result *results,
                      struct buf *out);

/* Prints a JSON Schema of the request, and a request with tensors of |shapes|, by raw input. */
void call_print_schema(const struct call_method *method, struct buf *out);
void call_print_example(const struct call_method *method, const struct shape *shapes,
                        struct buf *out);

/* Prints a JSON Schema of the member "result" of an answer without binary data; titles are names of
 * results. |base|: the URL of server/daemon/console/openapi.json as seen from the schema, or "" in
 * it. */
void call_print_result_schema(const struct call_method *method, const char *base, struct buf *out);

/* "float32[?,128]", "int64", "string". */
#define CALL_IO_TEXT_MAX 160
const char *call_print_io(const struct call_io *io, char text[CALL_IO_TEXT_MAX]);

#endif
