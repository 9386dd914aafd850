/* SPDX-License-Identifier: MIT */
/*
 * The header is a Python dictionary in text. Ours are written with the three keys in NumPy's order;
 * read ones may have them in any order and with any spacing, because other writers do.
 */
#include "config.h"

#include "server/npy.h"

#include <stdio.h>

static const char magic[] = "\x93NUMPY";

#define MAGIC_BYTES 6
#define HEAD_ALIGN 64

/* ---- element types --------------------------------------------------------------------------- */

/* bfloat16 has no NumPy type: its files hold two raw bytes an element. Complex numbers are NULL. */
static const char *const descrs[DTYPE_COUNT] = {
    [DT_F32] = "<f4", [DT_F16] = "<f2", [DT_F64] = "<f8",  [DT_BF16] = "<V2", [DT_I8] = "|i1",
    [DT_I16] = "<i2", [DT_I32] = "<i4", [DT_I64] = "<i8",  [DT_U8] = "|u1",   [DT_U16] = "<u2",
    [DT_U32] = "<u4", [DT_U64] = "<u8", [DT_BOOL] = "|b1",
};

static bool find_dtype(struct span descr, enum dtype *out_dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if ((descrs[i] && span_is(descr, descrs[i])) ||
            (i == DT_BF16 && span_is(descr, "|V2"))) { /* NumPy drops the byte order */
            *out_dtype = (enum dtype)i;
            return true;
        }
    }
    return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct span rest;
};

static void skip_blanks(struct reader *in)
{
    while (in->rest.len && (in->rest.ptr[0] == ' ' || in->rest.ptr[0] == '\n')) {
        in->rest = span_of(in->rest.ptr + 1, in->rest.len - 1);
    }
}

/* Takes |text| when it is next, behind blanks. */
static bool accept(struct reader *in, const char *text)
{
    size_t len = strlen(text);
    skip_blanks(in);
    if (in->rest.len < len || memcmp(in->rest.ptr, text, len) != 0) {
        return false;
    }
    in->rest = span_of(in->rest.ptr + len, in->rest.len - len);
    return true;
}

/* 'text' without escapes. */
static bool read_string(struct reader *in, struct span *out)
{
    if (!accept(in, "'")) {
        return false;
    }
    const uint8_t *end = memchr(in->rest.ptr, '\'', in->rest.len);
    if (!end) {
        return false;
    }
    *out = span_of(in->rest.ptr, (size_t)(end - in->rest.ptr));
    in->rest = span_of(end + 1, in->rest.len - out->len - 1);
    return true;
}

static bool read_dim(struct reader *in, int64_t *out)
{
    skip_blanks(in);
    int64_t value = 0;
    size_t digits = 0;
    while (digits < in->rest.len && in->rest.ptr[digits] >= '0' && in->rest.ptr[digits] <= '9') {
        if (!mul_i64(value, 10, &value) || !add_i64(value, in->rest.ptr[digits] - '0', &value)) {
            return false;
        }
        digits++;
    }
    in->rest = span_of(in->rest.ptr + digits, in->rest.len - digits);
    *out = value;
    return digits > 0;
}

/* (), (3,) or (2, 3). */
static bool read_shape(struct reader *in, struct shape *out)
{
    *out = (struct shape){0};
    if (!accept(in, "(")) {
        return false;
    }
    while (!accept(in, ")")) {
        if (out->rank == SHAPE_RANK_MAX || !read_dim(in, &out->dims[out->rank])) {
            return false;
        }
        out->rank++;
        if (!accept(in, ",")) {
            return accept(in, ")");
        }
    }
    return true;
}

static enum status bad_head(struct error *err, const char *what)
{
    return error_set(err, ST_INVALID, ".npy header: %s", what);
}

/* One "key: value" of the dictionary. */
static enum status read_member(struct reader *in, struct npy *out, unsigned *seen,
                               struct error *err)
{
    struct span key, descr;
    if (!read_string(in, &key) || !accept(in, ":")) {
        return bad_head(err, "expected 'key': value");
    }
    if (span_is(key, "descr")) {
        *seen |= 1;
        if (!read_string(in, &descr) || !find_dtype(descr, &out->dtype)) {
            return bad_head(err, "the element type is not a little-endian number or bool");
        }
    } else if (span_is(key, "fortran_order")) {
        *seen |= 2;
        if (!accept(in, "False")) {
            return bad_head(err, "expected fortran_order False");
        }
    } else if (span_is(key, "shape")) {
        *seen |= 4;
        if (!read_shape(in, &out->shape)) {
            return bad_head(err, "the shape is not a tuple of at most 16 sizes");
        }
    } else {
        return bad_head(err, "unknown key");
    }
    return ST_OK;
}

static enum status parse_head(struct span text, struct npy *out, struct error *err)
{
    struct reader in = {text};
    unsigned seen = 0;
    if (!accept(&in, "{")) {
        return bad_head(err, "expected a dictionary");
    }
    while (!accept(&in, "}")) {
        TRY(read_member(&in, out, &seen, err));
        if (!accept(&in, ",") && !(in.rest.len && in.rest.ptr[0] == '}')) {
            return bad_head(err, "expected ',' or '}'");
        }
    }
    return seen == 7 ? ST_OK : bad_head(err, "expected descr, fortran_order and shape");
}

enum status npy_parse(struct span file, struct npy *out, struct error *err)
{
    if (file.len < MAGIC_BYTES + 4 || memcmp(file.ptr, magic, MAGIC_BYTES) != 0) {
        return error_set(err, ST_INVALID, "not an .npy file");
    }
    bool is_long = file.ptr[MAGIC_BYTES] > 1; /* versions 2 and 3: four bytes of length */
    size_t fixed = MAGIC_BYTES + 2 + (is_long ? 4u : 2u);
    if (file.ptr[MAGIC_BYTES] < 1 || file.ptr[MAGIC_BYTES] > 3 || file.len < fixed) {
        return error_set(err, ST_INVALID, ".npy version: expected 1 to 3, got %d",
                         file.ptr[MAGIC_BYTES]);
    }
    const uint8_t *at = file.ptr + MAGIC_BYTES + 2;
    size_t head = is_long ? load_le32(at) : load_le16(at);
    if (!in_range(fixed, head, file.len)) {
        return bad_head(err, "longer than the file");
    }
    TRY(parse_head(span_of(file.ptr + fixed, head), out, err));
    size_t bytes;
    TRY(shape_bytes(&out->shape, out->dtype, &bytes, err));
    if (file.len - fixed - head != bytes) {
        return error_set(err, ST_INVALID, ".npy: expected %zu bytes of elements, got %zu", bytes,
                         file.len - fixed - head);
    }
    out->data = span_of(file.ptr + fixed + head, bytes);
    return ST_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void print_head(struct buf *out, const char *descr, const char *shape)
{
    char text[512];
    int len = snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                       descr, shape);
    size_t fixed = MAGIC_BYTES + 4;
    size_t total = align_up(fixed + (size_t)len + 1, HEAD_ALIGN);
    size_t head = total - fixed;
    uint8_t version_and_length[] = {1, 0, (uint8_t)head, (uint8_t)(head >> 8)};
    buf_add(out, magic, MAGIC_BYTES);
    buf_add(out, version_and_length, sizeof(version_and_length));
    buf_add(out, text, (size_t)len);
    for (size_t i = (size_t)len; i + 1 < head; i++) {
        buf_add_char(out, ' ');
    }
    buf_add_char(out, '\n');
}

void npy_print_head(struct buf *out, enum dtype dtype, const struct shape *shape)
{
    char text[SHAPE_TEXT_MAX + 8] = "(";
    size_t len = 1;
    for (int i = 0; i < shape->rank; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%lld,", (long long)shape->dims[i]);
    }
    snprintf(text + len, sizeof(text) - len, ")");
    print_head(out, descrs[dtype], text);
}

void npy_print_string_head(struct buf *out, size_t len)
{
    char descr[24];
    snprintf(descr, sizeof(descr), "|S%zu", len);
    print_head(out, descr, "(1,)");
}
