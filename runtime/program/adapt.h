/* SPDX-License-Identifier: MIT */
/*
 * Declared steps before and after a program, compiled with it. While a program is loaded, the
 * function of struct rt_load_options (runtime/load/load.h) is called for each method that has been
 * imported and is not compiled yet: its inputs and results have their names, and their types and
 * bounds as the file declares them. That function may call the functions of this header. They add
 * nodes to the method's graph, and its inputs and results become what clients see: the metadata,
 * signatures, examples, checks of requests, plans and batches follow from that.
 *
 * Only the thread that loads the program.
 */
#ifndef PTED_RUNTIME_PROGRAM_ADAPT_H
#define PTED_RUNTIME_PROGRAM_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"

struct rt_method;

/* Adds steps to |method| of the program that is being loaded. |is_default|: it is called when a
 * client names no method. An error ends the load. */
typedef enum status rt_adapt_f(void *arg, struct rt_method *method, bool is_default,
                               struct error *err);

/* ---- pixels ---------------------------------------------------------------------------------- */

#define RT_PIXEL_CHANNELS_MAX 4

/*
 * The pixels from which an input is made. The new input is uint8 [n, height, width, channels]; n is
 * the program's dim 0. For each channel the program gets (pixel * scale - mean) / std, or more
 * exactly pixel * (scale / std) - mean / std in float32, with both factors rounded once. Where the
 * program's input is of integers, the result is rounded to the nearest one (half to even) and
 * limited to the range of the type; pixels that need no arithmetic stay as they are.
 */
struct rt_pixels {
    uint32_t height, width, channels;   /* channels: at most RT_PIXEL_CHANNELS_MAX */
    bool has_any_height, has_any_width; /* the program's vary, and do so for pixels as well; the
                                           others above are bounds */
    double scale;
    double mean[RT_PIXEL_CHANNELS_MAX], std[RT_PIXEL_CHANNELS_MAX]; /* in the program's order of
                                                                       channels; std is not 0 */
    bool is_reversed; /* the program takes blue first, and the new input has red first */
    bool is_nhwc;     /* the program's input is [n, height, width, channels], not
                         [n, channels, height, width] */
};

/*
 * Finds where the channels of input |index| are, judged by its shape: 1, 3 or 4 in dim 1 (NCHW) or
 * in dim 3 (NHWC); NCHW where both would do. Fills height, width, channels with the upper bounds of
 * the program's dims, says which of them vary, fills scale with 1/255 for floats and 1 for
 * integers, and no mean. ST_UNSUPPORTED: it takes no pixels; the text says what it takes.
 */
MUST_CHECK enum status rt_adapt_find_pixels(const struct rt_method *method, uint32_t index,
                                            struct rt_pixels *out, struct error *err);

/* Does dim |dim| of input |index| vary from call to call? What the file declares as varying may be
 * settled by what the program computes. */
bool rt_adapt_varies(const struct rt_method *method, uint32_t index, uint32_t dim);

/*
 * Input |index| becomes pixels. ST_INVALID: the program's input has other dims or another number of
 * channels; the text, "expected 3 channels, got 1", continues a place. ST_UNSUPPORTED: the input is
 * no tensor of rank 4 of floats or 8-bit integers, or the program reads it at several places of
 * code with branches.
 */
MUST_CHECK enum status rt_adapt_pixels(struct rt_method *method, uint32_t index,
                                       const struct rt_pixels *pixels, struct error *err);

/* ---- results --------------------------------------------------------------------------------- */

enum rt_adapt_kind {
    RT_ADAPT_SOFTMAX,   /* along |dim|: floats */
    RT_ADAPT_SIGMOID,   /* of each number: floats */
    RT_ADAPT_NORMALIZE, /* divided by the L2 norm along |dim|, or by 1e-12 if that is less: floats
                         */
    RT_ADAPT_POOL,      /* the mean over what lies between rows and features: dim 1 of
                          [n, tokens, features], dims 2 and 3 of [n, features, height, width] */
    RT_ADAPT_ARG_MAX,   /* the index of the first maximum along |dim|, which goes: int64 */
    RT_ADAPT_THRESHOLD, /* is each number at least |number|: bool */
};

/* A step behind a result. */
struct rt_adapt_step {
    enum rt_adapt_kind kind;
    int64_t dim; /* of those that have one; negative: counted from the end */
    double number;
};

/*
 * Result |index| becomes what |step| makes of it; further steps go on from there. ST_INVALID: the
 * step is not for such a tensor. ST_UNSUPPORTED: the program has code with branches, where no
 * single graph makes the result.
 */
MUST_CHECK enum status rt_adapt_result(struct rt_method *method, uint32_t index,
                                       const struct rt_adapt_step *step, struct error *err);

#endif
