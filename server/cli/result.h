/* SPDX-License-Identifier: MIT */
/* A result of `pte run`, wherever it comes from: printed for people, or written as a .npy file. */
#ifndef PTED_SERVER_CLI_RESULT_H
#define PTED_SERVER_CLI_RESULT_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/shape.h"
#include "base/status.h"
#include "server/cli/io.h"
#include "server/cli/print.h"
#include "server/model/card/card.h"

/* Borrows everything. */
struct cli_result {
    const char *name;      /* fit for a terminal */
    const char *file_name; /* fit for a file, without ".npy" */
    enum pted_kind kind;
    enum dtype dtype; /* of a tensor or a scalar */
    struct shape shape;
    struct span bytes;          /* a tensor's or a string's content; a scalar's I64, F64 or BOOL */
    const struct span *strings; /* a tensor of them: shape_numel() many; else NULL */
    enum answer_kind answer;    /* not ANSWER_TENSOR: |strings| are JSON, an answer for each row */
};

/* Appends |json|, which is valid, on one line and without what disturbs a terminal. */
void cli_result_print_json(struct buf *out, struct span json);

/* To standard output. */
MUST_CHECK enum status cli_result_print(const struct cli_result *result,
                                        const struct cli_print_top *top, struct error *err);

/* Writes |bytes|, the answer of a row, to FOLDER/NAME.ROW.json, .png or .txt. */
MUST_CHECK enum status cli_result_write_row(const char *folder, const char *name, size_t row,
                                            enum answer_kind kind, struct span bytes,
                                            struct error *err);

/* To FOLDER/NAME.npy. */
MUST_CHECK enum status cli_result_write(const struct cli_result *result, const char *folder,
                                        struct error *err);

#endif
