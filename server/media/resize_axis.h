/* SPDX-License-Identifier: MIT */
/*
 * Resizing along one side of a picture: which inputs an output is made of, and with which weights.
 * They are the numbers of Pillow's Image.resize() for pixels of 8 bits: weights are computed in
 * double precision, made to sum up to 1, and rounded to HAL_RESIZE_BITS binary places. hal/resize.h
 * says what becomes of them.
 * Source: Pillow's documentation of filters; its results, with which tests/unit/test_pictures.c
 * compares.
 */
#ifndef PTED_SERVER_MEDIA_RESIZE_AXIS_H
#define PTED_SERVER_MEDIA_RESIZE_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/resize.h"
#include "server/media/image.h"

/* The task of an axis. Inputs are pixels 0 ... in_count - 1 of a side; they are resized as if they
 * were in_length pixels, and outputs first ... first + count - 1 of out_count are computed. */
struct axis_task {
    uint32_t in_count;
    double in_length; /* in_count, or less by less than 1 */
    uint64_t out_count;
    uint64_t first;
    uint32_t count;
    enum image_filter filter;
    bool is_reversed; /* the inputs come in the opposite order */
};

/* Returns the weights of an output; 0 of copies. */
uint32_t axis_stride(const struct axis_task *task);

/* Returns the bytes that axis_init() needs, a multiple of 64. The task's numbers are at most
 * IMAGE_SIDE_MAX, except out_count and first. */
size_t axis_bytes(const struct axis_task *task);

/* |memory| has axis_bytes() of zeros, is aligned to 64, and outlives the axis. */
void axis_init(struct hal_resize_axis *axis, const struct axis_task *task, void *memory);

/* Fills the blocks if each weight has few enough digits. Places in blocks are more than taps: they
 * read no input from |end| on, but up to it; |end| is at least 3 more than the taps need. Where the
 * first input must be the one of the first tap, |end| is UINT32_MAX. */
void axis_pack(struct hal_resize_axis *axis, uint32_t end);

/* Finds the inputs that some output needs: |*first| ... |*end| - 1. */
void axis_find_range(const struct hal_resize_axis *axis, uint32_t *first, uint32_t *end);

#endif
