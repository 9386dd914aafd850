/* SPDX-License-Identifier: MIT */
/*
 * Types of a raw signature. Each list is read twice: first to count its types, then to fill one
 * array of exactly that size. A type needs at least 3 bytes of text and a dim 2, so the memory is
 * at most a small multiple of the text. The arena's maximum bounds it in any case.
 */
#include "config.h"

#include "protocol/rawsig.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/table.h"
#include "protocol/sig.h"

static const char kind_tags[] = {
    [RAWSIG_BUFFER] = 'B',
    [RAWSIG_SCALAR] = 'S',
    [RAWSIG_REF] = 'O',
    [RAWSIG_UNRECOGNIZED] = 'U',
};
TABLE_ENDS_WITH(kind_tags, RAWSIG_UNRECOGNIZED);

static bool find_kind(char tag, enum rawsig_kind *out)
{
    const char *at = memchr(kind_tags, tag, sizeof(kind_tags));
    if (at) {
        *out = (enum rawsig_kind)(at - kind_tags);
    }
    return at != NULL;
}

static bool has_dtype(const struct rawsig_type *type)
{
    return type->kind == RAWSIG_BUFFER || type->kind == RAWSIG_SCALAR;
}

/* Components from here to the end. The reader is a copy. */
static enum status count_items(struct sig_reader in, uint32_t *out, struct error *err)
{
    struct sig_item item;
    for (*out = 0; !sig_is_at_end(&in); (*out)++) {
        TRY(sig_next(&in, &item, err));
    }
    return ST_OK;
}

/* An element type if one comes next, else float32. */
static enum status read_dtype(struct sig_reader *in, enum dtype *out, struct error *err)
{
    struct sig_item item;
    *out = DT_F32;
    if (sig_is_at_end(in) || *in->at != 't') {
        return ST_OK;
    }
    TRY(sig_next(in, &item, err));
    /* Codes are words, not numbers: t06 is refused. */
    if (item.text.len != sig_integer_bytes(item.value) || !dtype_from_signature(item.value, out)) {
        return sig_fail(in, item.text.ptr, err, "expected an element type t0 to t11, got '%.*s'",
                        SPAN_FMT(item.text));
    }
    return ST_OK;
}

static enum status read_dims(struct sig_reader *in, struct arena *arena, struct rawsig_type *type,
                             struct error *err)
{
    TRY(count_items(*in, &type->rank, err));
    int64_t *dims = arena_array(arena, type->rank, sizeof(*dims));
    if (!dims) {
        return arena_fail(arena, "the signature", err);
    }
    for (uint32_t i = 0; i < type->rank; i++) {
        struct sig_item item;
        TRY(sig_next(in, &item, err));
        if (item.tag != 'd') {
            return sig_fail(in, item.text.ptr, err, "expected a dim 'd', got '%c'", item.tag);
        }
        if (item.value < RAWSIG_DIM_DYNAMIC) {
            return sig_fail(in, item.text.ptr, err,
                            "expected a dim of -1 (dynamic) or more, got %" PRId64, item.value);
        }
        dims[i] = item.value;
    }
    type->dims = dims;
    return ST_OK;
}

static enum status read_type(struct sig_reader *in, struct arena *arena, struct rawsig_type *type,
                             struct error *err)
{
    struct sig_item item;
    TRY(sig_next(in, &item, err));
    if (!find_kind(item.tag, &type->kind)) {
        return sig_fail(in, item.text.ptr, err, "expected a type (B, S, O, U), got '%c'", item.tag);
    }
    struct sig_reader inside = sig_inside(in, &item);
    if (has_dtype(type)) {
        TRY(read_dtype(&inside, &type->dtype, err));
    }
    if (type->kind == RAWSIG_BUFFER) {
        TRY(read_dims(&inside, arena, type, err));
    }
    return sig_end(&inside, err);
}

static enum status read_types(struct sig_reader *in, struct arena *arena,
                              struct rawsig_type **out_types, uint32_t *out_count,
                              struct error *err)
{
    TRY(count_items(*in, out_count, err));
    *out_types = arena_array(arena, *out_count, sizeof(**out_types));
    if (!*out_types) {
        return arena_fail(arena, "the signature", err);
    }
    for (uint32_t i = 0; i < *out_count; i++) {
        TRY(read_type(in, arena, &(*out_types)[i], err));
    }
    return ST_OK;
}

enum status rawsig_parse(struct span text, struct arena *arena, struct rawsig *out,
                         struct error *err)
{
    struct sig_reader inputs, results;
    struct rawsig sig;
    TRY(sig_split(text, &inputs, &results, err));
    TRY(read_types(&inputs, arena, &sig.inputs, &sig.input_count, err));
    TRY(read_types(&results, arena, &sig.results, &sig.result_count, err));
    *out = sig;
    return ST_OK;
}

/* The signature's code for |dtype|. Signatures have no bool: it is written as sint8. */
static int64_t dtype_code(enum dtype dtype)
{
    return dtype_infos[dtype == DT_BOOL ? DT_I8 : dtype].signature;
}

static size_t content_bytes(const struct rawsig_type *type)
{
    size_t bytes = 0;
    if (has_dtype(type) && type->dtype != DT_F32) {
        bytes += sig_integer_bytes(dtype_code(type->dtype));
    }
    for (uint32_t i = 0; type->kind == RAWSIG_BUFFER && i < type->rank; i++) {
        bytes += sig_integer_bytes(type->dims[i]);
    }
    return bytes;
}

static void mangle_type(const struct rawsig_type *type, struct buf *out)
{
    sig_add_head(out, kind_tags[type->kind], content_bytes(type));
    if (has_dtype(type) && type->dtype != DT_F32) {
        sig_add_integer(out, 't', dtype_code(type->dtype));
    }
    for (uint32_t i = 0; type->kind == RAWSIG_BUFFER && i < type->rank; i++) {
        sig_add_integer(out, 'd', type->dims[i]);
    }
}

static void mangle_types(char tag, const struct rawsig_type *types, uint32_t count, struct buf *out)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += sig_span_bytes(content_bytes(&types[i]));
    }
    sig_add_head(out, tag, bytes);
    for (uint32_t i = 0; i < count; i++) {
        mangle_type(&types[i], out);
    }
}

void rawsig_mangle(const struct rawsig *sig, struct buf *out)
{
    mangle_types('I', sig->inputs, sig->input_count, out);
    mangle_types('R', sig->results, sig->result_count, out);
}

static void print_dims(const struct rawsig_type *type, struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < type->rank; i++) {
        buf_add_str(out, i ? "," : "");
        if (type->dims[i] == RAWSIG_DIM_DYNAMIC) {
            buf_add_char(out, '?');
        } else {
            buf_printf(out, "%" PRId64, type->dims[i]);
        }
    }
    buf_add_char(out, ']');
}

static void print_type(const struct rawsig_type *type, struct buf *out)
{
    switch (type->kind) {
    case RAWSIG_BUFFER:
        buf_add_str(out, dtype_infos[type->dtype].long_text);
        print_dims(type, out);
        break;
    case RAWSIG_SCALAR:
        buf_add_str(out, dtype_infos[type->dtype].long_text);
        break;
    case RAWSIG_REF:
        buf_add_str(out, "ref");
        break;
    case RAWSIG_UNRECOGNIZED:
        buf_add_str(out, "unrecognized");
        break;
    default:
        unreachable();
    }
}

static void print_types(const struct rawsig_type *types, uint32_t count, struct buf *out)
{
    buf_add_char(out, '(');
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? ", " : "");
        print_type(&types[i], out);
    }
    buf_add_char(out, ')');
}

void rawsig_print(const struct rawsig *sig, struct buf *out)
{
    print_types(sig->inputs, sig->input_count, out);
    buf_add_str(out, " -> ");
    print_types(sig->results, sig->result_count, out);
}
