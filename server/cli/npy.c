/* SPDX-License-Identifier: MIT */
/* The header is a Python dictionary as text. The writer puts the three keys in NumPy's order; the
 * reader accepts them in any order and with any spacing, because other writers use them. */
#include "config.h"

#include "server/cli/npy.h"

#include <stdio.h>

static const char magic[] = "\x93NUMPY";

#define MAGIC_BYTES 6
#define HEAD_ALIGN 64
#define DESCR_TEXT_MAX 60 /* of an element type, in an error */

/* ---- element types --------------------------------------------------------------------------- */

/* bfloat16 has no NumPy type: its files hold two raw bytes for each element. Complex types are
 * NULL. */
static const char *const descrs[DTYPE_COUNT] = {
    [DT_F32] = "<f4", [DT_F16] = "<f2", [DT_F64] = "<f8",  [DT_BF16] = "<V2", [DT_I8] = "|i1",
    [DT_I16] = "<i2", [DT_I32] = "<i4", [DT_I64] = "<i8",  [DT_U8] = "|u1",   [DT_U16] = "<u2",
    [DT_U32] = "<u4", [DT_U64] = "<u8", [DT_BOOL] = "|b1",
};

/* The first letter is the byte order, which types of one byte and raw bytes do not have. */
static bool find_dtype(struct span descr, struct npy *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const char *text = descrs[i];
        bool is_same = text && descr.len == strlen(text) &&
                       memcmp(descr.ptr + 1, text + 1, descr.len - 1) == 0;
        if (is_same && memchr("<>|=", descr.ptr[0], 4)) {
            out->dtype = (enum dtype)i;
            out->is_big_endian = descr.ptr[0] == '>' && i != DT_BF16 && dtype_bytes(out->dtype) > 1;
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

/* Takes |text| if it comes next, after blanks. */
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

/* For an error: the text in place of an element type, up to the end of the line. */
static struct span rest_of_descr(struct span rest)
{
    struct span text = rest;
    while (text.len && text.ptr[0] == ' ') {
        text = span_of(text.ptr + 1, text.len - 1);
    }
    const uint8_t *end = memchr(text.ptr, text.len && text.ptr[0] == '[' ? ']' : ',', text.len);
    size_t len = end ? (size_t)(end - text.ptr) + (*end == ']') : text.len;
    for (size_t i = 0; i < len; i++) {
        if (text.ptr[i] < ' ' || text.ptr[i] > '~') {
            len = i;
        }
    }
    return span_of(text.ptr, len < DESCR_TEXT_MAX ? len : DESCR_TEXT_MAX);
}

static enum status read_descr(struct reader *in, struct npy *out, struct error *err)
{
    struct span descr, text = rest_of_descr(in->rest);
    if (accept(in, "[")) {
        return error_set(err, ST_INVALID,
                         ".npy: a structured array, of elements %.*s: save one of its fields",
                         SPAN_FMT(text));
    }
    if (!read_string(in, &descr) || !find_dtype(descr, out)) {
        return error_set(err, ST_INVALID,
                         ".npy: elements are %.*s, expected floats, integers or bools",
                         SPAN_FMT(text));
    }
    return ST_OK;
}

static enum status read_order(struct reader *in, struct npy *out, struct error *err)
{
    out->is_fortran = accept(in, "True");
    return out->is_fortran || accept(in, "False")
               ? ST_OK
               : bad_head(err, "fortran_order is neither True nor False");
}

/* One "key: value" of the dictionary. */
static enum status read_member(struct reader *in, struct npy *out, unsigned *seen,
                               struct error *err)
{
    struct span key;
    if (!read_string(in, &key) || !accept(in, ":")) {
        return bad_head(err, "expected 'key': value");
    }
    if (span_is(key, "descr")) {
        *seen |= 1;
        TRY(read_descr(in, out, err));
    } else if (span_is(key, "fortran_order")) {
        *seen |= 2;
        TRY(read_order(in, out, err));
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

bool npy_is_one(struct span file)
{
    return file.len >= MAGIC_BYTES + 4 && memcmp(file.ptr, magic, MAGIC_BYTES) == 0;
}

enum status npy_parse(struct span file, struct npy *out, struct error *err)
{
    if (file.len >= 4 && memcmp(file.ptr, "PK\3\4", 4) == 0) {
        return error_set(err, ST_INVALID, NPY_IS_NPZ);
    }
    if (!npy_is_one(file)) {
        return error_set(err, ST_INVALID, "not an .npy file");
    }
    *out = (struct npy){0};
    bool is_long = file.ptr[MAGIC_BYTES] > 1; /* versions 2 and 3 have four bytes of length */
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

/* ---- elements -------------------------------------------------------------------------------- */

static void copy_element(uint8_t *to, const uint8_t *from, size_t size, bool is_swapped)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = from[is_swapped ? size - 1 - i : i];
    }
}

void npy_copy(const struct npy *array, void *dst)
{
    size_t size = dtype_bytes(array->dtype), count = array->data.len / size;
    const struct shape *shape = &array->shape;
    size_t strides[SHAPE_RANK_MAX], stride = 1, at = 0;
    int64_t index[SHAPE_RANK_MAX] = {0};
    if (!array->is_big_endian && (!array->is_fortran || shape->rank < 2)) {
        if (array->data.len) {
            memcpy(dst, array->data.ptr, array->data.len);
        }
        return;
    }
    for (int i = 0; i < shape->rank; i++) {
        int d = array->is_fortran ? i : shape->rank - 1 - i;
        strides[d] = stride;
        stride *= (size_t)shape->dims[d];
    }
    for (size_t n = 0; n < count; n++) {
        copy_element((uint8_t *)dst + n * size, array->data.ptr + at * size, size,
                     array->is_big_endian);
        for (int d = shape->rank - 1; d >= 0; d--) {
            at += strides[d];
            if (++index[d] < shape->dims[d]) {
                break;
            }
            at -= strides[d] * (size_t)shape->dims[d];
            index[d] = 0;
        }
    }
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

static void print_shape(const struct shape *shape, char text[SHAPE_TEXT_MAX + 8])
{
    size_t len = 1, size = SHAPE_TEXT_MAX + 8;
    text[0] = '(';
    for (int i = 0; i < shape->rank; i++) {
        len += (size_t)snprintf(text + len, size - len, "%lld,", (long long)shape->dims[i]);
    }
    snprintf(text + len, size - len, ")");
}

void npy_print_head(struct buf *out, enum dtype dtype, const struct shape *shape)
{
    char text[SHAPE_TEXT_MAX + 8];
    print_shape(shape, text);
    print_head(out, descrs[dtype], text);
}

void npy_print_strings_head(struct buf *out, size_t len, const struct shape *shape)
{
    char descr[24], text[SHAPE_TEXT_MAX + 8];
    snprintf(descr, sizeof(descr), "|S%zu", len);
    print_shape(shape, text);
    print_head(out, descr, text);
}
