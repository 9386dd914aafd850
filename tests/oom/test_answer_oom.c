/* SPDX-License-Identifier: MIT */
/*
 * Answers when memory runs out: the first allocation fails, then the second, and so on until the
 * answer is printed. Each time the error says so, or the buffer of the answer has failed for it,
 * and nothing leaks (LeakSanitizer finds what does).
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/model/answer/answer.h"
#include "tests/oom/failing.h"

#define ALLOCATIONS_MAX 1000
#define OUT_BYTES_MAX 65536

#define BOXES                                                                                      \
    {                                                                                              \
        .kind = ANSWER_BOXES,                                                                      \
        .rules = {.form = BOXES_CENTER, .overlap_most = 0.5, .count_max = 4, .background = -1},    \
        .order = ANSWER_CANDIDATES_FIRST, .box_classes = 1, .scores = ANSWER_NO_INDEX,             \
        .classes = ANSWER_NO_INDEX, .masks = ANSWER_NO_INDEX                                       \
    }

/* Halves of 1: one box of 1 x 1 around (1, 1) with a score, and two numbers more. */
static const uint16_t ones[] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00};
static const int64_t labels_of_steps[] = {0, 1};
static const uint8_t classes_of_pixels[] = {0, 1, 2, 3};
static const struct image_place place = {.height = 4, .width = 4, .orientation = 1, .step = {1, 1}};

static struct answer_tensor tensor_of(enum dtype dtype, uint8_t rank, const int64_t *dims,
                                      const void *bytes, size_t len)
{
    struct answer_tensor tensor = {
        .dtype = dtype, .shape = {.rank = rank}, .bytes = span_of(bytes, len)};
    memcpy(tensor.shape.dims, dims, rank * sizeof(*dims));
    return tensor;
}

/* Returns ST_EXHAUSTED too if the buffer lacks memory. */
static enum status print(const struct answer_source *source, long allocations, struct error *err)
{
    struct buf out;
    buf_init(&out, OUT_BYTES_MAX);
    allocations_left = allocations;
    enum status status = answer_print(source, 0, &out, err);
    allocations_left = -1;
    if (status == ST_OK && out.lacks_memory) {
        status = error_no_memory(err, "the answer");
    }
    must(status != ST_OK || (!buf_failed(&out) && out.len > 0));
    buf_fini(&out);
    return status;
}

/* False: some lack of memory is said otherwise. */
static bool exhaust(const char *what, const struct answer_source *source)
{
    struct error err = {.code = ST_OK};
    enum status status;
    long count = 0;
    for (; (status = print(source, count, &err)) != ST_OK; count++) {
        if (status != ST_EXHAUSTED || !strstr(err.text, "memory") || count == ALLOCATIONS_MAX) {
            fprintf(stderr, "%s: allocation %ld fails: status %d, \"%s\"\n", what, count,
                    (int)status, err.text);
            return false;
        }
    }
    printf("%s: %ld allocations, each failed\n", what, count);
    return count > 1;
}

int main(void)
{
    static const int64_t boxes_dims[] = {1, 1, 7}, scores_dims[] = {1, 1, 1},
                         mask_dims[] = {1, 1, 1, 1}, place_dims[] = {1, 1, 4},
                         steps_dims[] = {1, 2}, map_dims[] = {1, 2, 2};
    struct answer_form turned = BOXES, masked = BOXES, apart = BOXES;
    const struct answer_form map = {.kind = ANSWER_MAP, .picture = ANSWER_SHOWN};
    const struct answer_form text = {.kind = ANSWER_TEXT, .blank = 1};
    const struct span labels[] = {span_str("a"), span_str("b")};
    const struct answer_tensor boxes = tensor_of(DT_F16, 3, boxes_dims, ones, sizeof(ones));
    turned.has_angle = true;
    masked.masks = 1;
    apart.scores = 1;
    const struct answer_source sources[] = {
        {.answer = &turned, .tensor = boxes},
        {.answer = &masked,
         .tensor = boxes,
         .masks = tensor_of(DT_F16, 4, mask_dims, ones, 2),
         .pixels = {4, 4}},
        {.answer = &apart,
         .tensor = tensor_of(DT_F16, 3, place_dims, ones, 8),
         .scores = tensor_of(DT_F16, 3, scores_dims, ones, 2)},
        {.answer = &map,
         .tensor = tensor_of(DT_U8, 3, map_dims, classes_of_pixels, sizeof(classes_of_pixels)),
         .pixels = {2, 2},
         .places = &place,
         .place_count = 1},
        {.answer = &text,
         .tensor = tensor_of(DT_I64, 2, steps_dims, labels_of_steps, sizeof(labels_of_steps)),
         .labels = labels,
         .label_count = 2},
    };
    static const char *const names[] = {"turned boxes", "masks", "boxes and scores", "map", "text"};
    bool is_right = true;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        is_right = exhaust(names[i], &sources[i]) && is_right;
    }
    return is_right ? 0 : 1;
}
