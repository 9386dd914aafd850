/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/signature.h"

#include "base/buf.h"
#include "base/check.h"
#include "protocol/pytree.h"
#include "protocol/rawsig.h"
#include "runtime/program/method.h"

#define TEXT_BYTES_MAX (16u << 20)

/* Bool has no code in the ABI: it is a byte. */
static enum status describe(const struct rt_io *io, struct arena *arena, struct rawsig_type *out,
                            struct error *err)
{
    *out = (struct rawsig_type){.dtype = io->dtype, .kind = RAWSIG_UNRECOGNIZED};
    if (io->kind == RT_IO_TENSOR && !dtype_is_public(io->dtype)) {
        return ST_OK;
    }
    switch (io->kind) {
    case RT_IO_TENSOR: {
        int64_t *dims = arena_array(arena, io->shape.rank, sizeof(*dims));
        if (!dims) {
            return arena_fail(arena, "a signature", err);
        }
        for (uint8_t d = 0; d < io->shape.rank; d++) {
            bool is_dynamic = rt_io_is_dynamic(io, d);
            dims[d] = is_dynamic ? RAWSIG_DIM_DYNAMIC : io->shape.dims[d];
        }
        out->kind = RAWSIG_BUFFER;
        out->rank = io->shape.rank;
        out->dims = dims;
        out->order = io->order             ? RAWSIG_CHANNELS_LAST
                     : io->shape.rank >= 2 ? RAWSIG_ROW_MAJOR
                                           : RAWSIG_ANY_ORDER;
        break;
    }
    case RT_IO_INT:
    case RT_IO_FLOAT:
    case RT_IO_BOOL:
        out->kind = RAWSIG_SCALAR;
        break;
    case RT_IO_NONE:
    case RT_IO_STRING:
        out->kind = RAWSIG_UNRECOGNIZED;
        break;
    }
    return ST_OK;
}

static enum status describe_all(const struct rt_io *ios, uint32_t count, struct arena *arena,
                                struct rawsig_type **out, struct error *err)
{
    struct rawsig_type *types = arena_array(arena, count, sizeof(*types));
    if (!types) {
        return arena_fail(arena, "a signature", err);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(describe(&ios[i], arena, &types[i], err));
    }
    *out = types;
    return ST_OK;
}

/* The content of |buf| as a text in |arena|; empties |buf|. */
static enum status keep(struct buf *buf, struct arena *arena, const char **out, struct error *err)
{
    *out = buf_failed(buf) ? NULL : arena_strdup(arena, buf->ptr, buf->len);
    buf_reset(buf);
    return *out ? ST_OK : arena_fail(arena, "a signature", err);
}

static enum status make_version(const struct rawsig *sig, enum rawsig_version version,
                                struct buf *text, struct arena *arena, const char **out_f,
                                const char **out_readable, struct error *err)
{
    rawsig_mangle(sig, version, text);
    TRY(keep(text, arena, out_f, err));
    rawsig_print(sig, version, text);
    return keep(text, arena, out_readable, err);
}

static enum status make_raw(struct rt_method *method, struct buf *text, struct error *err)
{
    struct arena *arena = &method->signature_arena;
    struct rt_signature *out = &method->signature;
    struct rawsig sig = {
        .input_count = rt_method_input_count(method),
        .result_count = rt_method_result_count(method),
    };
    bool has_dynamic = false;
    TRY(describe_all(method->inputs, sig.input_count, arena, &sig.inputs, err));
    TRY(describe_all(method->results, sig.result_count, arena, &sig.results, err));
    TRY(make_version(&sig, RAWSIG_1, text, arena, &out->f, &out->readable, err));
    TRY(make_version(&sig, RAWSIG_2, text, arena, &out->f2, &out->readable_f2, err));
    for (uint32_t i = 0; i < sig.result_count; i++) {
        has_dynamic |= method->results[i].dynamic_dims != 0;
    }
    if (has_dynamic) {
        buf_printf(text, "%s$results", rt_method_name(method));
        TRY(keep(text, arena, &out->fbr, err));
    }
    return ST_OK;
}

static enum status read_structure(struct rt_method *method, struct error *err)
{
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    const struct pytree_source source = {
        .inputs = span_str(method->plan ? method->plan->encoded_inputs : ""),
        .results = span_str(method->plan ? method->plan->encoded_outputs : ""),
    };
    struct rt_signature *out = &method->signature;
    struct arena *arena = &method->signature_arena;
    TRY(pytree_parse_method(&source, inputs, results, arena, &out->structure, err));
    return sip_bind(&out->structure, inputs, results, arena, &out->leaves, err);
}

enum status rt_signature_make_structure(struct rt_method *method, const struct sip *given,
                                        struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    struct rt_signature *out = &method->signature;
    struct arena *arena = &method->signature_arena;
    struct error why;
    *out = (struct rt_signature){0};
    if (given) {
        out->structure = *given;
        return sip_bind(&out->structure, inputs, results, arena, &out->leaves, err);
    }
    enum status status = read_structure(method, &why);
    if (status == ST_OK) {
        return ST_OK;
    }
    if (status == ST_EXHAUSTED) {
        *err = why;
        return status;
    }
    out->is_positional = true;
    TRY(pytree_positional(inputs, results, arena, &out->structure, err));
    return sip_bind(&out->structure, inputs, results, arena, &out->leaves, err);
}

static enum status make_texts(struct rt_method *method, struct buf *text, struct error *err)
{
    struct arena *arena = &method->signature_arena;
    struct rt_signature *out = &method->signature;
    sip_mangle(&out->structure, text);
    TRY(keep(text, arena, &out->sip, err));
    sip_print_signature(&out->structure, text);
    return keep(text, arena, &out->readable_sip, err);
}

enum status rt_signature_make(struct rt_method *method, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    enum status status = make_raw(method, &text, err);
    if (status == ST_OK) {
        status = make_texts(method, &text, err);
    }
    buf_fini(&text);
    return status;
}

enum status rt_signature_rename(struct rt_method *method, const struct sip *given,
                                struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_signature *out = &method->signature;
    struct buf text;
    out->structure = *given;
    TRY(sip_bind(&out->structure, rt_method_input_count(method), rt_method_result_count(method),
                 &method->signature_arena, &out->leaves, err));
    buf_init(&text, TEXT_BYTES_MAX);
    enum status status = make_texts(method, &text, err);
    buf_fini(&text);
    return status;
}

const struct rt_signature *rt_method_signature(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return &method->signature;
}
