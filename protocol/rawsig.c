/* SPDX-License-Identifier: MIT */
/*
 * Types of a raw signature. Each list is read twice: first to count its types, then to fill one
 * array of exactly that size. A type needs at least 3 bytes of text and a dim 2, so the memory is
 * at most a small multiple of the text. The arena's maximum bounds it in any case.
 */
#include "config.h"

#include "protocol/rawsig.h"

#include <inttypes.h>
#include <string.h>

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

/* Integers |tag| from here to another component or the end. The reader is a copy. */
static enum status count_integers(struct sig_reader in, char tag, uint32_t *out, struct error *err)
{
    struct sig_item item;
    for (*out = 0; !sig_is_at_end(&in) && *in.at == (uint8_t)tag; (*out)++) {
        TRY(sig_next(&in, &item, err));
    }
    return ST_OK;
}

static enum status read_dims(struct sig_reader *in, struct arena *arena, struct rawsig_type *type,
                             struct error *err)
{
    TRY(count_integers(*in, 'd', &type->rank, err));
    int64_t *dims = arena_array(arena, type->rank, sizeof(*dims));
    if (!dims) {
        return arena_fail(arena, "the signature", err);
    }
    for (uint32_t i = 0; i < type->rank; i++) {
        struct sig_item item;
        TRY(sig_next(in, &item, err));
        if (item.value < RAWSIG_DIM_DYNAMIC) {
            return sig_fail(in, item.text.ptr, err,
                            "expected a dim of -1 (dynamic) or more, got %" PRId64, item.value);
        }
        dims[i] = item.value;
    }
    type->dims = dims;
    return ST_OK;
}

/* ---- orders of memory ------------------------------------------------------------------------ */

/* The order that a permutation is, if it has a short form. */
static enum rawsig_order name_order(const uint32_t *axes, uint32_t rank)
{
    bool is_row_major = true, is_channels_last = rank >= 3;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t channels_last = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
        is_row_major &= axes[i] == i;
        is_channels_last &= axes[i] == channels_last;
    }
    return is_row_major       ? RAWSIG_ROW_MAJOR
           : is_channels_last ? RAWSIG_CHANNELS_LAST
                              : RAWSIG_PERMUTED;
}

static enum status read_axis(struct sig_reader *in, bool *is_taken, uint32_t rank, uint32_t *out,
                             struct error *err)
{
    struct sig_item item;
    TRY(sig_next(in, &item, err));
    bool is_axis = item.tag == 'a' && item.value >= 0 && item.value < rank &&
                   item.text.len == sig_integer_bytes(item.value) && !is_taken[item.value];
    if (!is_axis) {
        return sig_fail(in, item.text.ptr, err, "expected each axis a0 to a%u once, got '%.*s'",
                        rank - 1, SPAN_FMT(item.text));
    }
    is_taken[item.value] = true;
    *out = (uint32_t)item.value;
    return ST_OK;
}

static enum status read_axes(struct sig_reader *in, struct arena *arena, struct rawsig_type *type,
                             struct error *err)
{
    struct sig_item item;
    uint32_t count, rank = type->rank;
    TRY(sig_expect_span(in, 'C', &item, err));
    struct sig_reader inside = sig_inside(in, &item);
    TRY(count_items(inside, &count, err));
    if (count != rank) {
        return sig_fail(in, item.text.ptr, err, "expected %u axes, one for each dim, got %u", rank,
                        count);
    }
    uint32_t *axes = arena_array(arena, rank, sizeof(*axes));
    bool *is_taken = arena_array(arena, rank, sizeof(*is_taken));
    if (!axes || !is_taken) {
        return arena_fail(arena, "the signature", err);
    }
    memset(is_taken, 0, rank * sizeof(*is_taken));
    for (uint32_t i = 0; i < rank; i++) {
        TRY(read_axis(&inside, is_taken, rank, &axes[i], err));
    }
    type->order = name_order(axes, rank);
    type->axes = axes;
    return type->order == RAWSIG_PERMUTED
               ? ST_OK
               : sig_fail(in, item.text.ptr, err, "expected the short form c%d of this order",
                          type->order == RAWSIG_CHANNELS_LAST);
}

static enum status read_short_order(struct sig_reader *in, struct rawsig_type *type,
                                    struct error *err)
{
    struct sig_item item;
    TRY(sig_next(in, &item, err));
    bool is_channels_last = item.value == 1;
    if (item.text.len != 2 || (item.value != 0 && !is_channels_last)) {
        return sig_fail(in, item.text.ptr, err, "expected the order c0 or c1, got '%.*s'",
                        SPAN_FMT(item.text));
    }
    if (is_channels_last && type->rank < 3) {
        return sig_fail(in, item.text.ptr, err, "channels last, but %u dims", type->rank);
    }
    type->order = is_channels_last ? RAWSIG_CHANNELS_LAST : RAWSIG_ROW_MAJOR;
    return ST_OK;
}

/* An order, if one comes next. */
static enum status read_order(struct sig_reader *in, struct arena *arena, struct rawsig_type *type,
                              struct error *err)
{
    bool is_short = !sig_is_at_end(in) && *in->at == 'c';
    if (!is_short && (sig_is_at_end(in) || *in->at != 'C')) {
        return ST_OK;
    }
    if (type->rank < 2) {
        return sig_fail(in, in->at, err, "an order of memory of %u dims", type->rank);
    }
    return is_short ? read_short_order(in, type, err) : read_axes(in, arena, type, err);
}

/* ---- types ----------------------------------------------------------------------------------- */

/* Checks that nothing is left of a buffer. */
static enum status end_buffer(struct sig_reader *in, struct error *err)
{
    struct sig_item item;
    if (sig_is_at_end(in)) {
        return ST_OK;
    }
    const uint8_t *at = in->at;
    TRY(sig_next(in, &item, err));
    return sig_fail(in, at, err, "expected a dim 'd', got '%c'", item.tag);
}

static enum status read_type(struct sig_reader *in, enum rawsig_version version,
                             struct arena *arena, struct rawsig_type *type, struct error *err)
{
    struct sig_item item;
    *type = (struct rawsig_type){.order = RAWSIG_ANY_ORDER};
    TRY(sig_next(in, &item, err));
    if (!find_kind(item.tag, &type->kind)) {
        return sig_fail(in, item.text.ptr, err, "expected a type (B, S, O, U), got '%c'", item.tag);
    }
    struct sig_reader inside = sig_inside(in, &item);
    if (has_dtype(type)) {
        TRY(read_dtype(&inside, &type->dtype, err));
    }
    if (type->kind != RAWSIG_BUFFER) {
        return sig_end(&inside, err);
    }
    TRY(read_dims(&inside, arena, type, err));
    if (version == RAWSIG_2) {
        TRY(read_order(&inside, arena, type, err));
    }
    return end_buffer(&inside, err);
}

static enum status read_types(struct sig_reader *in, enum rawsig_version version,
                              struct arena *arena, struct rawsig_type **out_types,
                              uint32_t *out_count, struct error *err)
{
    TRY(count_items(*in, out_count, err));
    *out_types = arena_array(arena, *out_count, sizeof(**out_types));
    if (!*out_types) {
        return arena_fail(arena, "the signature", err);
    }
    for (uint32_t i = 0; i < *out_count; i++) {
        TRY(read_type(in, version, arena, &(*out_types)[i], err));
    }
    return ST_OK;
}

enum status rawsig_parse(struct span text, enum rawsig_version version, struct arena *arena,
                         struct rawsig *out, struct error *err)
{
    struct sig_reader inputs, results;
    struct rawsig sig;
    TRY(sig_split(text, &inputs, &results, err));
    TRY(read_types(&inputs, version, arena, &sig.inputs, &sig.input_count, err));
    TRY(read_types(&results, version, arena, &sig.results, &sig.result_count, err));
    *out = sig;
    return ST_OK;
}

/* The signature's code for |dtype|. Signatures have no bool: it is written as sint8. */
static int64_t dtype_code(enum dtype dtype)
{
    return dtype_infos[dtype == DT_BOOL ? DT_I8 : dtype].signature;
}

static size_t axes_bytes(const struct rawsig_type *type)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        bytes += sig_integer_bytes(type->axes[i]);
    }
    return bytes;
}

static size_t order_bytes(const struct rawsig_type *type, enum rawsig_version version)
{
    if (version == RAWSIG_1 || type->kind != RAWSIG_BUFFER || type->order == RAWSIG_ANY_ORDER) {
        return 0;
    }
    return type->order == RAWSIG_PERMUTED ? sig_span_bytes(axes_bytes(type)) : sig_integer_bytes(0);
}

static void mangle_order(const struct rawsig_type *type, struct buf *out)
{
    if (type->order != RAWSIG_PERMUTED) {
        sig_add_integer(out, 'c', type->order == RAWSIG_CHANNELS_LAST);
        return;
    }
    sig_add_head(out, 'C', axes_bytes(type));
    for (uint32_t i = 0; i < type->rank; i++) {
        sig_add_integer(out, 'a', type->axes[i]);
    }
}

static size_t content_bytes(const struct rawsig_type *type, enum rawsig_version version)
{
    size_t bytes = order_bytes(type, version);
    if (has_dtype(type) && type->dtype != DT_F32) {
        bytes += sig_integer_bytes(dtype_code(type->dtype));
    }
    for (uint32_t i = 0; type->kind == RAWSIG_BUFFER && i < type->rank; i++) {
        bytes += sig_integer_bytes(type->dims[i]);
    }
    return bytes;
}

static void mangle_type(const struct rawsig_type *type, enum rawsig_version version,
                        struct buf *out)
{
    sig_add_head(out, kind_tags[type->kind], content_bytes(type, version));
    if (has_dtype(type) && type->dtype != DT_F32) {
        sig_add_integer(out, 't', dtype_code(type->dtype));
    }
    for (uint32_t i = 0; type->kind == RAWSIG_BUFFER && i < type->rank; i++) {
        sig_add_integer(out, 'd', type->dims[i]);
    }
    if (order_bytes(type, version) > 0) {
        mangle_order(type, out);
    }
}

static void mangle_types(char tag, const struct rawsig_type *types, uint32_t count,
                         enum rawsig_version version, struct buf *out)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += sig_span_bytes(content_bytes(&types[i], version));
    }
    sig_add_head(out, tag, bytes);
    for (uint32_t i = 0; i < count; i++) {
        mangle_type(&types[i], version, out);
    }
}

void rawsig_mangle(const struct rawsig *sig, enum rawsig_version version, struct buf *out)
{
    mangle_types('I', sig->inputs, sig->input_count, version, out);
    mangle_types('R', sig->results, sig->result_count, version, out);
}

/* ---- text ------------------------------------------------------------------------------------ */

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

static void print_order(const struct rawsig_type *type, struct buf *out)
{
    static const char *const texts[] = {
        [RAWSIG_ROW_MAJOR] = " row-major",
        [RAWSIG_CHANNELS_LAST] = " channels-last",
        [RAWSIG_PERMUTED] = " in the order",
    };
    TABLE_ENDS_WITH(texts, RAWSIG_PERMUTED);
    buf_add_str(out, texts[type->order]);
    for (uint32_t i = 0; type->order == RAWSIG_PERMUTED && i < type->rank; i++) {
        buf_printf(out, " %" PRIu32, type->axes[i]);
    }
}

static void print_type(const struct rawsig_type *type, enum rawsig_version version, struct buf *out)
{
    switch (type->kind) {
    case RAWSIG_BUFFER:
        buf_add_str(out, dtype_infos[type->dtype].long_text);
        print_dims(type, out);
        if (order_bytes(type, version) > 0) {
            print_order(type, out);
        }
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

static void print_types(const struct rawsig_type *types, uint32_t count,
                        enum rawsig_version version, struct buf *out)
{
    buf_add_char(out, '(');
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? ", " : "");
        print_type(&types[i], version, out);
    }
    buf_add_char(out, ')');
}

void rawsig_print(const struct rawsig *sig, enum rawsig_version version, struct buf *out)
{
    print_types(sig->inputs, sig->input_count, version, out);
    buf_add_str(out, " -> ");
    print_types(sig->results, sig->result_count, version, out);
}
