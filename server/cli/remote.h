/* SPDX-License-Identifier: MIT */
/*
 * A model at a server, and calls of it as the command line describes them; server/cli/call.h is the
 * same for a method of a file. The server is pted, or another server of the Open Inference
 * Protocol.
 *
 * The model's metadata list its inputs. pted's signature also tells numbers from tensors without
 * dims, and which inputs are None; a server without signatures has only tensors. Tensors travel in
 * binary form, unless the server lists its extensions without that one.
 *
 * Everything that the server sends is checked: an error names the path of the request and the place
 * in the answer. ST_CORRUPT: it is no answer of the protocol. One thread.
 */
#ifndef PTED_SERVER_CLI_REMOTE_H
#define PTED_SERVER_CLI_REMOTE_H

#include "base/arena.h"
#include "base/buf.h"
#include "server/cli/inputs.h"
#include "server/cli/io.h"
#include "server/cli/result.h"
#include "server/cli/transfer.h"
#include "server/model/card/card.h"

#define CLI_REMOTE_TENSORS_MAX 1024 /* inputs of a model, and likewise results */
#define CLI_REMOTE_ANSWER_BYTES ((uint64_t)1 << 30)

/* The value of an input. */
struct cli_remote_value {
    struct shape shape;
    enum dtype dtype;
    struct buf data; /* owned; as it travels */
    bool is_set;
    bool is_bytes; /* strings, or files and texts that the server makes tensors of */
};

/* The answer that a result is written as, by the metadata. */
struct cli_remote_form {
    enum answer_kind kind;
    uint32_t class_count; /* of CLASSES, or 0 */
    bool is_part;         /* another result's answer says what this one has */
};

/* The results of a call for which the server has an answer for people; classes are not meant. */
enum cli_remote_wish { CLI_REMOTE_TENSORS, CLI_REMOTE_ANSWERS, CLI_REMOTE_BOTH };

struct cli_remote {
    struct client client;
    struct transfer transfer;
    size_t answer_bytes_max;
    bool takes_binary;

    struct arena arena; /* has the metadata */
    struct cli_io *ios, *result_ios;
    uint32_t io_count, result_io_count;
    struct shape *examples;             /* by input: a shape for a call */
    const struct card_medium **mediums; /* by input: the server also makes it from this */
    struct card_labels *result_labels;  /* by result: names of its classes; none if |count| is 0 */
    struct cli_remote_form *forms;      /* by result: how the server writes it for people */
    struct cli_size *sizes;             /* by result; NULL before cli_remote_foresee() */
    enum cli_remote_wish wish;

    struct cli_inputs inputs;
    struct cli_remote_value *values; /* by input; in |arena| */

    struct buf path, head,
        json;            /* of a request: the path, the field with json's length, the JSON */
    struct span *pieces; /* the body; in |arena| */
    struct transfer_request request;
    bool is_built;

    struct arena answer; /* has the results of the last call */
    struct cli_result *results;
    uint32_t result_count;
};

/* Asks the server for the model. |method| is part of the model's name at pted, or NULL. |remote|
 * can be closed in any case; |options| and |inputs| outlive it. */
MUST_CHECK enum status cli_remote_open(struct cli_remote *remote, const char *url,
                                       const char *method, const struct client_options *options,
                                       const struct cli_inputs_options *inputs,
                                       uint64_t answer_bytes_max, struct error *err);
void cli_remote_close(struct cli_remote *remote);

/* Makes one call, with |*out_ns| from the request's first byte to the answer's last; its results
 * stay until the next one. */
MUST_CHECK enum status cli_remote_once(struct cli_remote *remote, uint64_t *out_ns,
                                       struct error *err);

/* In place of calls: asks for the sizes of the results, into |remote->sizes|. */
MUST_CHECK enum status cli_remote_foresee(struct cli_remote *remote, struct error *err);

/* Call before the first call: chooses the results. The default is tensors. */
void cli_remote_wish(struct cli_remote *remote, enum cli_remote_wish wish);

/* Returns the names of the classes of a result, or NULL. */
const struct card_labels *cli_remote_find_labels(const struct cli_remote *remote,
                                                 const char *result);

/* Returns how the server writes a result for people; NULL: it has no such result. */
const struct cli_remote_form *cli_remote_find_form(const struct cli_remote *remote,
                                                   const char *result);

/* Prints a result that is an answer as `pte run` prints answers of a file, or writes it to FOLDER:
 * NAME.0.json, .png or .txt. */
MUST_CHECK enum status cli_remote_print_answer(const struct cli_remote *remote,
                                               const struct cli_result *result, struct error *err);
MUST_CHECK enum status cli_remote_write_answer(const struct cli_remote *remote,
                                               const struct cli_result *result, const char *folder,
                                               struct error *err);

/* Makes |remote| ready to ask |target|, and asks nothing. It can be closed in any case. */
MUST_CHECK enum status cli_remote_connect(struct cli_remote *remote, const struct target *target,
                                          const struct client_options *options, struct error *err);

/* ---- for the parts of it --------------------------------------------------------------------- */

/* Reads what the server says of the model into |remote|. */
MUST_CHECK enum status cli_remote_describe(struct cli_remote *remote, struct error *err);

/* Does the same for its metadata alone. */
MUST_CHECK enum status cli_remote_ask_metadata(struct cli_remote *remote, struct error *err);

/* Asks for the sizes of the results of a call with such inputs; |body| has their shapes. */
MUST_CHECK enum status cli_remote_ask_sizes(struct cli_remote *remote, struct span body,
                                            struct error *err);

/* Reads the results out of the answer that has come. */
MUST_CHECK enum status cli_remote_read(struct cli_remote *remote, struct error *err);

/* transfer_blame() for the model's transfer. */
enum status cli_remote_blame(const struct cli_remote *remote, const char *path, struct error *err);

/* Is a name fit for a terminal, and not too long? */
bool cli_remote_is_name(struct span name);

#endif
