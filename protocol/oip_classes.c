/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/oip_classes.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/number.h"

/* "%f" of the largest double, a colon, an index and a colon. */
#define TEXT_BYTES 352
#define LABEL_BYTES_MAX 4096

#define READ(type, value)                                                                          \
    do {                                                                                           \
        type element;                                                                              \
        memcpy(&element, at, sizeof(element));                                                     \
        return (double)(value);                                                                    \
    } while (0)

double oip_score_at(enum dtype dtype, const uint8_t *at)
{
    switch (dtype) {
    case DT_F32:
        READ(float, element);
    case DT_F64:
        READ(double, element);
    case DT_F16:
        READ(uint16_t, number_from_f16(element));
    case DT_BF16:
        READ(uint16_t, number_from_bf16(element));
    case DT_I8:
        READ(int8_t, element);
    case DT_I16:
        READ(int16_t, element);
    case DT_I32:
        READ(int32_t, element);
    case DT_I64:
        READ(int64_t, element);
    case DT_U8:
    case DT_BOOL:
        READ(uint8_t, element);
    case DT_U16:
        READ(uint16_t, element);
    case DT_U32:
        READ(uint32_t, element);
    case DT_U64:
        READ(uint64_t, element);
    default:
        unreachable(); /* oip_is_score() is false of the rest */
    }
}

bool oip_is_score(enum dtype dtype)
{
    switch (dtype_infos[dtype].kind) {
    case DTYPE_FLOAT:
    case DTYPE_INT:
    case DTYPE_UINT:
    case DTYPE_BOOL:
        return true;
    default:
        return false;
    }
}

/* ---- the highest of a row -------------------------------------------------------------------- */

static bool is_before(const struct oip_class *a, const struct oip_class *b)
{
    if (isnan(a->score) || isnan(b->score)) {
        return isnan(a->score) == isnan(b->score) ? a->index < b->index : isnan(b->score) != 0;
    }
    return a->score != b->score ? a->score > b->score : a->index < b->index;
}

/* |heap| has the last of its places at its root; the root may be wrong. */
static void sift(struct oip_class *heap, uint32_t count)
{
    uint32_t at = 0;
    for (uint32_t child = 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && is_before(&heap[child], &heap[child + 1]);
        if (!is_before(&heap[at], &heap[child])) {
            return;
        }
        struct oip_class moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

/* The |count| first of |total| scores, in order. */
static void find_highest(enum dtype dtype, const uint8_t *scores, uint32_t total,
                         struct oip_class *places, uint32_t count)
{
    size_t size = dtype_bytes(dtype);
    for (uint32_t i = 0; i < count; i++) { /* the worst that can be, so all others go first */
        places[i] = (struct oip_class){(double)NAN, UINT32_MAX};
    }
    for (uint32_t i = 0; i < total; i++) {
        struct oip_class place = {oip_score_at(dtype, scores + i * size), i};
        if (is_before(&place, &places[0])) {
            places[0] = place;
            sift(places, count);
        }
    }
    for (uint32_t end = count; end > 1; end--) { /* the last one to the end, and so on */
        struct oip_class last = places[0];
        places[0] = places[end - 1];
        places[end - 1] = last;
        sift(places, end - 1);
    }
}

static bool print(const struct oip_classes *classes, const struct oip_class *place,
                  struct arena *arena, struct span *out)
{
    char text[TEXT_BYTES + LABEL_BYTES_MAX];
    int len = snprintf(text, TEXT_BYTES, "%f:%" PRIu32, place->score, place->index);
    must(len > 0 && len < TEXT_BYTES);
    size_t used = (size_t)len;
    if (place->index < classes->label_count) {
        struct span label = classes->labels[place->index];
        size_t bytes = label.len < LABEL_BYTES_MAX - 1 ? label.len : LABEL_BYTES_MAX - 1;
        text[used++] = ':';
        memcpy(text + used, label.ptr, bytes);
        used += bytes;
    }
    char *copy = arena_strdup(arena, text, used);
    *out = span_of(copy, used);
    return copy != NULL;
}

enum status oip_find_classes(const struct oip_classes *classes, struct arena *arena,
                             const struct oip_class **out_classes, struct shape *out_shape,
                             struct error *err)
{
    const struct shape *shape = classes->shape;
    enum dtype dtype = classes->dtype;
    uint32_t rows = 1;
    int64_t total = shape_numel(shape);
    if (!oip_is_score(dtype)) {
        return error_set(err, ST_INVALID,
                         "classification: expected real numbers, the output has %s",
                         dtype_infos[dtype].oip);
    }
    if (shape->rank > 1) {
        rows = (uint32_t)shape->dims[0];
        total = rows ? total / rows : 0;
    }
    if (total > OIP_CLASSES_MAX) {
        return error_set(err, ST_INVALID,
                         "classification: expected at most %d scores, the output has %" PRIi64,
                         OIP_CLASSES_MAX, total);
    }
    uint32_t count = total < classes->wanted ? (uint32_t)total : classes->wanted;
    struct oip_class *places = arena_array(arena, (size_t)rows * count + 1, sizeof(*places));
    if (!places) {
        return arena_fail(arena, "the classes", err);
    }
    for (uint32_t row = 0; row < rows && count > 0; row++) {
        const uint8_t *scores = classes->scores.ptr + row * (size_t)total * dtype_bytes(dtype);
        find_highest(dtype, scores, (uint32_t)total, &places[(size_t)row * count], count);
    }
    *out_classes = places;
    *out_shape = shape->rank > 1 ? (struct shape){.rank = 2, .dims = {rows, count}}
                                 : (struct shape){.rank = 1, .dims = {count}};
    return ST_OK;
}

enum status oip_classify(const struct oip_classes *classes, struct arena *arena,
                         const struct span **out_texts, struct shape *out_shape, struct error *err)
{
    const struct oip_class *places;
    TRY(oip_find_classes(classes, arena, &places, out_shape, err));
    size_t count = (size_t)shape_numel(out_shape);
    struct span *texts = arena_array(arena, count + 1, sizeof(*texts));
    bool is_printed = texts != NULL;
    for (size_t i = 0; i < count && is_printed; i++) {
        is_printed = print(classes, &places[i], arena, &texts[i]);
    }
    *out_texts = texts;
    return is_printed ? ST_OK : arena_fail(arena, "the classes", err);
}
