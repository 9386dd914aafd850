/* SPDX-License-Identifier: MIT */
/*
 * The inputs of a call as the command line gives them, --input NAME=X or NAME=X alone, a file
 * alone, and --shape NAME=2x3x4, of a file's method and of a model at a server alike. One thread.
 */
#ifndef PTED_SERVER_CLI_INPUTS_H
#define PTED_SERVER_CLI_INPUTS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/shape.h"
#include "base/status.h"
#include "server/cli/input.h"
#include "server/cli/io.h"
#include "server/model/card/card.h"

#define CLI_INPUTS_MAX 256 /* options of each kind */

/* The options about inputs; borrowed from the command line. */
struct cli_inputs_options {
    const char *inputs[CLI_INPUTS_MAX]; /* NAME=X */
    const char *shapes[CLI_INPUTS_MAX]; /* NAME=2x3x4 */
    const char *files[CLI_INPUTS_MAX];  /* for the only input of that kind */
    uint32_t input_count, shape_count, file_count;
};

struct cli_inputs_item {
    const char *text;        /* X, or NULL: a pattern */
    const struct npy *array; /* borrowed, in place of |text|; or NULL */
    const char **media;      /* owned: each X that is a file or a text, a row each; NULL: none is */
    uint32_t medium_count;   /* with these, |text| is NULL */
    bool is_filled;          /* with the medium of another input, such as the mask of a text */
    bool has_shape;          /* shape from --shape, or of the content */
    struct shape shape;
};

struct cli_inputs {
    const struct cli_io *ios;                 /* borrowed; by raw input */
    const struct card_medium *const *mediums; /* borrowed; likewise; NULL: no input takes any */
    uint32_t count;
    struct cli_inputs_item *items; /* owned; likewise */
    bool is_chosen;                /* all inputs have their shapes */
};

/* Chooses a shape for each tensor for which |given| has NULL, to match the others. |shapes| has
 * room for all inputs. */
typedef enum status cli_inputs_choose_f(void *own, const struct shape *const *given,
                                        struct shape *shapes, struct error *err);

/* Takes an argument without option that follows the model: NAME=X, or a file alone. */
MUST_CHECK enum status cli_inputs_add(struct cli_inputs_options *options, const char *text,
                                      struct error *err);

/* Finds the input of each option. ST_INVALID: there is no such input, or it is given twice, though
 * it takes no media. |inputs| can be freed in any case. */
MUST_CHECK enum status cli_inputs_assign(struct cli_inputs *inputs, const struct cli_io *ios,
                                         const struct card_medium *const *mediums, uint32_t count,
                                         const struct cli_inputs_options *options,
                                         struct error *err);
void cli_inputs_fini(struct cli_inputs *inputs);

/* Gives all inputs their values. The first time, |choose| finds the shapes that nobody has given;
 * both functions get |own|. */
MUST_CHECK enum status cli_inputs_set(struct cli_inputs *inputs, const struct cli_input_ops *ops,
                                      cli_inputs_choose_f *choose, void *own, struct error *err);

/* Prints " input_0=1x3x224x224" for each tensor. */
void cli_inputs_print_shapes(const struct cli_inputs *inputs, FILE *to);

#endif
