/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"

#define ITEM_BYTES_MAX (1 << 20)
#define COLUMNS 100
#define EDGE 3 /* elements and rows that are shown at each end */
#define ELEMENT_TEXT_MAX 40

/* Rows whose largest values are shown, at each end. */
#define TOP_ROWS 4
/* Rows with fewer elements are numbers, not scores of classes. */
#define TOP_CLASSES_MIN 10

/* ---- elements -------------------------------------------------------------------------------- */

double cli_print_element(enum dtype dtype, const void *bytes, size_t i)
{
    const uint8_t *at = (const uint8_t *)bytes + i * dtype_bytes(dtype);
    union {
        float f32;
        double f64;
        uint16_t half;
        int64_t i64;
        uint64_t u64;
    } v = {.u64 = 0};
    memcpy(&v, at, dtype_bytes(dtype)); /* little-endian, like every tensor here */
    switch (dtype) {
    case DT_F32:
        return (double)v.f32;
    case DT_F64:
        return v.f64;
    case DT_F16:
        return (double)number_from_f16(v.half);
    case DT_BF16:
        return (double)number_from_bf16(v.half);
    case DT_I8:
        return (double)(int8_t)v.u64;
    case DT_I16:
        return (double)(int16_t)v.u64;
    case DT_I32:
        return (double)(int32_t)v.u64;
    case DT_I64:
        return (double)v.i64;
    default:
        return (double)v.u64;
    }
}

/* Integers to the last digit; floats to the last digit, or to six if many are shown. */
static int print_element(char text[ELEMENT_TEXT_MAX], enum dtype dtype, const void *bytes, size_t i,
                         bool is_exact)
{
    const uint8_t *at = (const uint8_t *)bytes + i * dtype_bytes(dtype);
    double d = cli_print_element(dtype, bytes, i);
    int64_t i64;
    uint64_t u64;
    if (dtype == DT_BOOL) {
        return snprintf(text, ELEMENT_TEXT_MAX, "%s", d != 0 ? "true" : "false");
    }
    if (dtype == DT_I64) {
        memcpy(&i64, at, sizeof(i64));
        return snprintf(text, ELEMENT_TEXT_MAX, "%" PRId64, i64);
    }
    if (dtype == DT_U64) {
        memcpy(&u64, at, sizeof(u64));
        return snprintf(text, ELEMENT_TEXT_MAX, "%" PRIu64, u64);
    }
    if (!dtype_is_float(dtype)) {
        return snprintf(text, ELEMENT_TEXT_MAX, "%.0f", d);
    }
    if (isnan(d) || isinf(d)) {
        return snprintf(text, ELEMENT_TEXT_MAX, "%s", isnan(d) ? "nan" : d > 0 ? "inf" : "-inf");
    }
    if (!is_exact || dtype == DT_F16 ||
        dtype == DT_BF16) { /* enough digits to tell two halves apart */
        return snprintf(text, ELEMENT_TEXT_MAX, "%.*g",
                        dtype == DT_F16    ? 5
                        : dtype == DT_BF16 ? 4
                                           : 6,
                        d);
    }
    size_t len = dtype == DT_F64 ? number_print_f64((uint8_t *)text, d, NUMBER_NAN_TOKEN)
                                 : number_print_f32((uint8_t *)text, (float)d, NUMBER_NAN_TOKEN);
    text[len] = '\0';
    return (int)len;
}

/* ---- rows of elements ------------------------------------------------------------------------ */

struct printer {
    struct buf *out;
    enum dtype dtype;
    const struct shape *shape;
    const void *bytes;
    int64_t strides[SHAPE_RANK_MAX];
    bool is_whole;
    int width;         /* width of an element; 0: each has its own width */
    size_t line_start; /* in |out| */
};

/* Number of entries of a dim that are shown at its beginning and at its end. */
struct shown {
    int64_t count, head, tail;
};

/* The two innermost dims show some entries at each end; of an outer dim only the first is shown. */
static struct shown shown_of(const struct printer *p, uint8_t d)
{
    uint8_t from_inside = (uint8_t)(p->shape->rank - 1 - d);
    int64_t count = p->shape->dims[d];
    struct shown shown = {count, count, 0};
    if (!p->is_whole && from_inside < 2 && count > 2 * EDGE) {
        shown = (struct shown){count, EDGE, EDGE};
    } else if (!p->is_whole && from_inside >= 2) {
        int64_t tail = from_inside == 2 && count > 1;
        shown = (struct shown){count, 1, tail};
    }
    return shown;
}

static bool is_gap(struct shown shown, int64_t i)
{
    return i == shown.head && shown.head + shown.tail < shown.count;
}

static void break_line(struct printer *p, uint8_t level)
{
    buf_add_char(p->out, '\n');
    p->line_start = p->out->len;
    buf_add_fill(p->out, ' ', 2u + level);
}

/* The elements of one row, on several lines if one is too short. */
static void print_row(struct printer *p, uint8_t level, size_t offset)
{
    struct shown shown = shown_of(p, level);
    for (int64_t i = 0; i < shown.count; i++) {
        char text[ELEMENT_TEXT_MAX] = "...";
        int len = 3, width = 3;
        if (is_gap(shown, i)) {
            i = shown.count - shown.tail - 1;
        } else {
            len = print_element(text, p->dtype, p->bytes, offset + (size_t)i, p->is_whole);
            width = p->width < len ? len : p->width;
        }
        bool fits = p->width == 0 || p->out->len - p->line_start + (size_t)width + 4 <= COLUMNS;
        if (i > 0 && !fits) {
            buf_add_char(p->out, ',');
            break_line(p, (uint8_t)(level + 1));
        } else if (i > 0) {
            buf_add_str(p->out, ", ");
        }
        buf_add_fill(p->out, ' ', (size_t)(width - len));
        buf_add_str(p->out, text);
    }
}

static void separate(struct printer *p, uint8_t level)
{
    buf_add_str(p->out, p->width > 0 ? "," : ", ");
    if (p->width > 0) {
        break_line(p, (uint8_t)(level + 1));
    }
}

/* Recursive, one call for each dim; there are at most SHAPE_RANK_MAX. */
static void print_level(struct printer *p, uint8_t level, size_t offset)
{
    if (level == p->shape->rank) { /* rank 0 */
        char text[ELEMENT_TEXT_MAX];
        print_element(text, p->dtype, p->bytes, offset, p->is_whole);
        buf_add_str(p->out, text);
        return;
    }
    struct shown shown = shown_of(p, level);
    buf_add_char(p->out, '[');
    if (level + 1 == p->shape->rank) {
        print_row(p, level, offset);
        shown.count = 0;
    }
    for (int64_t i = 0; i < shown.count; i++) {
        if (i > 0) {
            separate(p, level);
        }
        if (is_gap(shown, i)) {
            buf_add_str(p->out, "...");
            i = shown.count - shown.tail - 1;
        } else {
            print_level(p, (uint8_t)(level + 1), offset + (size_t)(i * p->strides[level]));
        }
    }
    buf_add_char(p->out, ']');
}

/* The greatest width among the shown elements; walks as print_level() does. */
static int widest(const struct printer *p, uint8_t level, size_t offset)
{
    char text[ELEMENT_TEXT_MAX];
    if (level == p->shape->rank) {
        return print_element(text, p->dtype, p->bytes, offset, p->is_whole);
    }
    struct shown shown = shown_of(p, level);
    int width = 1;
    for (int64_t i = 0; i < shown.count; i++) {
        if (is_gap(shown, i)) {
            i = shown.count - shown.tail - 1;
        } else {
            int w = widest(p, (uint8_t)(level + 1), offset + (size_t)(i * p->strides[level]));
            width = w > width ? w : width;
        }
    }
    return width;
}

/* Continues the current line if all of it fits there; otherwise begins a new one. */
static void print_content(struct printer *p)
{
    struct buf *out = p->out, line;
    struct printer flat = *p;
    buf_init(&line, COLUMNS + ELEMENT_TEXT_MAX);
    flat.out = &line;
    print_level(&flat, 0, 0);
    size_t used = out->len - p->line_start;
    if (p->is_whole && !buf_failed(&line) && used + 1 + line.len <= COLUMNS) {
        buf_add_char(out, ' ');
        buf_add(out, line.ptr, line.len);
    } else {
        p->width = widest(p, 0, 0);
        break_line(p, 0);
        print_level(p, 0, 0);
    }
    buf_add_char(out, '\n');
    buf_fini(&line);
}

/* ---- range ----------------------------------------------------------------------------------- */

/* Exact also for integers that a double cannot represent. */
static bool is_less(enum dtype dtype, const void *bytes, size_t a, size_t b)
{
    int64_t i[2];
    uint64_t u[2];
    size_t size = dtype_bytes(dtype);
    if (dtype == DT_I64 || dtype == DT_U64) {
        memcpy(&i[0], (const uint8_t *)bytes + a * size, size);
        memcpy(&i[1], (const uint8_t *)bytes + b * size, size);
        memcpy(u, i, sizeof(u));
        return dtype == DT_I64 ? i[0] < i[1] : u[0] < u[1];
    }
    return cli_print_element(dtype, bytes, a) < cli_print_element(dtype, bytes, b);
}

static void print_bools(struct buf *out, const void *bytes, size_t count)
{
    size_t set = 0;
    for (size_t i = 0; i < count; i++) {
        set += ((const uint8_t *)bytes)[i] != 0;
    }
    buf_printf(out, ", %zu of %zu true", set, count);
}

/* ", min -3.2, max 5.1, mean 0.2, 3 nan" */
static void print_range(struct buf *out, enum dtype dtype, const void *bytes, size_t count)
{
    size_t low = SIZE_MAX, high = SIZE_MAX, nans = 0;
    double sum = 0;
    char text[2][ELEMENT_TEXT_MAX];
    if (dtype == DT_BOOL) {
        print_bools(out, bytes, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double d = cli_print_element(dtype, bytes, i);
        if (isnan(d)) {
            nans++;
            continue;
        }
        low = low == SIZE_MAX || is_less(dtype, bytes, i, low) ? i : low;
        high = high == SIZE_MAX || is_less(dtype, bytes, high, i) ? i : high;
        sum += d;
    }
    if (low != SIZE_MAX) {
        print_element(text[0], dtype, bytes, low, false);
        print_element(text[1], dtype, bytes, high, false);
        buf_printf(out, ", min %s, max %s, mean %.6g", text[0], text[1],
                   sum / (double)(count - nans));
    }
    if (nans) {
        buf_printf(out, ", %zu nan", nans);
    }
}

/* ---- the largest values ---------------------------------------------------------------------- */

struct best {
    size_t *places; /* owned; indices into the row, largest value first */
    size_t count;
};

/* If values are equal, the smaller index comes first. */
static void find_best(struct best *best, size_t wanted, enum dtype dtype, const void *bytes,
                      size_t row, size_t len)
{
    best->count = 0;
    for (size_t i = row * len; i < (row + 1) * len; i++) {
        size_t at = best->count;
        if (isnan(cli_print_element(dtype, bytes, i))) {
            continue;
        }
        while (at > 0 && is_less(dtype, bytes, best->places[at - 1], i)) {
            at--;
        }
        if (at == wanted) {
            continue;
        }
        best->count += best->count < wanted;
        for (size_t k = best->count - 1; k > at; k--) {
            best->places[k] = best->places[k - 1];
        }
        best->places[at] = i;
    }
}

/* " 281 \"tabby\": 13.2," */
static void print_item(struct buf *out, size_t class, const char *value, const struct span *labels,
                       bool is_last)
{
    buf_printf(out, " %zu", class);
    if (labels) {
        buf_add_char(out, ' ');
        json_print_string(out, labels[class]); /* nothing in it moves the cursor */
    }
    buf_printf(out, ": %s%s", value, is_last ? "" : ",");
}

/* "281: 13.2, 282: 12.1": begins on the line that starts at |start| and continues below. */
static void print_best(struct buf *out, size_t start, const struct best *best, enum dtype dtype,
                       const void *bytes, size_t first, const struct span *labels)
{
    struct buf item;
    buf_init(&item, ITEM_BYTES_MAX);
    for (size_t i = 0; i < best->count; i++) {
        char text[ELEMENT_TEXT_MAX];
        print_element(text, dtype, bytes, best->places[i], false);
        buf_reset(&item);
        print_item(&item, best->places[i] - first, text, labels, i + 1 == best->count);
        if (out->len - start + item.len > COLUMNS) {
            buf_add_char(out, '\n');
            start = out->len;
            buf_add_str(out, "   ");
        }
        buf_add(out, item.ptr, item.len);
    }
    out->failed |= buf_failed(&item);
    buf_add_char(out, '\n');
    buf_fini(&item);
}

static bool looks_like_scores(const struct shape *shape)
{
    for (uint8_t d = 1; d + 1 < shape->rank; d++) {
        if (shape->dims[d] != 1) {
            return false;
        }
    }
    return shape->dims[shape->rank - 1] >= TOP_CLASSES_MIN;
}

static void print_top(struct buf *out, enum dtype dtype, const struct shape *shape,
                      const void *bytes, const struct cli_print_top *top)
{
    size_t count = (size_t)shape_numel(shape);
    if (!dtype_is_float(dtype) || shape->rank == 0 || count == 0 || top->count == 0 ||
        !(top->is_asked || looks_like_scores(shape))) {
        return;
    }
    size_t len = (size_t)shape->dims[shape->rank - 1], rows = count / len;
    size_t wanted = top->count < len ? top->count : len;
    struct best best = {.places = malloc(wanted * sizeof(*best.places))};
    for (size_t row = 0; best.places && row < rows; row++) {
        if (rows > 2 * TOP_ROWS && row == TOP_ROWS) {
            buf_add_str(out, "  ...\n");
            row = rows - TOP_ROWS;
        }
        size_t start = out->len;
        find_best(&best, wanted, dtype, bytes, row, len);
        buf_printf(out, "  top %zu", wanted);
        if (rows > 1) {
            buf_printf(out, " of row %zu", row);
        }
        buf_add_char(out, ':');
        print_best(out, start, &best, dtype, bytes, row * len,
                   top->label_count == len ? top->labels : NULL);
    }
    out->failed |= !best.places;
    free(best.places);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void cli_print_tensor(struct buf *out, const char *name, enum dtype dtype,
                      const struct shape *shape, const void *bytes, const struct cli_print_top *top)
{
    size_t count = (size_t)shape_numel(shape);
    char text[SHAPE_TEXT_MAX];
    struct printer p = {
        .out = out,
        .dtype = dtype,
        .shape = shape,
        .bytes = bytes,
        .is_whole = count <= CLI_PRINT_WHOLE_MAX,
        .line_start = out->len,
    };
    shape_strides(shape, p.strides);
    buf_printf(out, "%s: %s%s", name, dtype_name(dtype), shape_print(shape, text));
    if (count == 0) {
        buf_add_str(out, " []\n");
        return;
    }
    if (!p.is_whole) {
        print_range(out, dtype, bytes, count);
    }
    print_content(&p);
    print_top(out, dtype, shape, bytes, top);
}

void cli_print_scalar(struct buf *out, const char *name, enum dtype dtype, const void *bytes)
{
    static const char *const kinds[] = {
        [DTYPE_FLOAT] = "float", [DTYPE_INT] = "int", [DTYPE_UINT] = "int", [DTYPE_BOOL] = "bool"};
    char text[ELEMENT_TEXT_MAX];
    print_element(text, dtype, bytes, 0, true);
    buf_printf(out, "%s: %s %s\n", name, kinds[dtype_infos[dtype].kind], text);
}
