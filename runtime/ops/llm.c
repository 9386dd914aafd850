/* SPDX-License-Identifier: MIT */
/*
 * The operators of language models beside attention: caches of keys and values, rotations, linear
 * attention. Caches are [batch, rows, heads, depth]. "write_rows" and "write_rows_at" are the
 * graph's forms: there a changed cache is a new value. The file's forms have no kernels: the lower
 * pass replaces them with these nodes, attention, and views of them.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "hal/fault.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/keep.h"
#include "runtime/ops/llm.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

/* ---- caches -------------------------------------------------------------------------------- */

enum { CACHE, CACHE_VALUE, CACHE_PLACE };

static enum status need_cache(struct rt_shape_call *call, uint32_t cache, uint32_t value)
{
    const struct rt_value *c = rt_shape_arg(call, cache), *v = rt_shape_arg(call, value);

    TRY(rt_shape_need_dtype(call, value, 1u << c->dtype));
    if (c->rank != 4 || v->rank != 4) {
        return rt_shape_refuse(call,
                               "the cache has rank %u and the rows rank %u, expected 4 for both",
                               c->rank, v->rank);
    }
    for (uint8_t d = 0; d < 4; d++) {
        if (d != 1) {
            TRY(rt_dim_require_equal(&call->graph->dims, v->dims[d], c->dims[d],
                                     "size of the rows (must equal the cache's)", call->err));
        }
    }
    return ST_OK;
}

static enum status write_rows_shape(struct rt_shape_call *call)
{
    TRY(need_cache(call, CACHE, CACHE_VALUE));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << rt_shape_arg(call, CACHE)->dtype));
    return rt_shape_set_out_like(call, 0, CACHE);
}

static enum status need_places(struct rt_shape_call *call, uint32_t index, uint32_t value)
{
    const struct rt_value *places = rt_shape_arg(call, index), *v = rt_shape_arg(call, value);

    TRY(rt_shape_need_dtype(call, index, 1u << DT_I64));
    if (places->rank != 2) {
        return rt_shape_refuse(call, "the places have rank %u, expected 2", places->rank);
    }
    for (uint8_t d = 0; d < 2; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, places->dims[d], v->dims[d],
                                 "places (one for each row)", call->err));
    }
    return ST_OK;
}

static enum status write_rows_at_shape(struct rt_shape_call *call)
{
    TRY(write_rows_shape(call));
    return need_places(call, CACHE_PLACE, CACHE_VALUE);
}

static enum status write_rows_place(struct rt_shape_call *call, uint32_t arg,
                                    struct rt_dim *out_place)
{
    const struct rt_value *cache = rt_shape_arg(call, CACHE),
                          *value = rt_shape_arg(call, CACHE_VALUE);

    *out_place = rt_shape_arg(call, arg)->i;
    TRY(rt_shape_need_at_least(call, *out_place, rt_dim_of(0), "first row of the cache to write"));
    return rt_shape_need_at_least(call, cache->dims[1],
                                  rt_dim_add(&call->graph->dims, *out_place, value->dims[1]),
                                  "rows of the cache");
}

static enum status write_rows_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0), *value = rt_emit_arg(emit, CACHE_VALUE);
    struct rt_place start = rt_emit_place(emit, CACHE_PLACE);
    int64_t rows = out->dims[1], count = value->dims[1];
    struct rt_copy copy = rt_copy_to(out);

    if (start.known < 0 || start.known > rows || count > rows - start.known) {
        return error_set(
            err, ST_INVALID,
            "update_cache: %lld rows from position %lld on, but the cache has only %lld",
            (long long)count, (long long)start.known, (long long)rows);
    }
    copy.dims[1] = count;
    for (uint8_t d = 0; d < 4; d++) {
        copy.src[d] = value->strides[d];
    }
    rt_copy_move(&copy, start, out->strides[1], 0);
    TRY(rt_copy_emit(emit, out, value, &copy, err));
    return rt_keep_emit(emit, 1, start, count, err);
}

#define SLICE_UNITS 256 /* bytes of a row in a worker's tile */

/* The range of rows that places name, empty if no row is named. A place outside the cache fails the
 * call. */
static void note_written(int64_t *words, const int64_t *places, int64_t count, int64_t rows)
{
    int64_t first = count > 0 ? INT64_MAX : 0, end = 0;

    for (int64_t i = 0; i < count; i++) {
        int64_t place = rt_max(0, rt_min(places[i], rows - 1));
        first = rt_min(first, place);
        end = rt_max(end, place + 1);
    }
    words[RT_UPDATE_WRITTEN] = first;
    words[RT_UPDATE_WRITTEN_END] = end;
}

/* Bindings: output, cache, rows, places, words. Grid: slices of a row, batch. A slice sees all
 * rows, so that the last of several rows for one place stays. */
static void write_rows_at_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_write_rows *k = args->constants;
    int64_t units = (k->row_bytes - 1) / RT_SLICE_UNIT / args->grid[0] + 1;
    int64_t first = rt_min(tile.x * units * RT_SLICE_UNIT, k->row_bytes);
    size_t bytes = (size_t)rt_min(units * RT_SLICE_UNIT, k->row_bytes - first);
    int64_t begin = tile.y * k->rows * k->row_bytes + first;
    char *out = (char *)args->bindings[0] + begin;
    const int64_t *places = (const int64_t *)args->bindings[3] + tile.y * k->count;
    int64_t *words = args->bindings[4];
    int64_t stale = words ? words[RT_UPDATE_STALE] : 0;
    int64_t stale_end = words ? words[RT_UPDATE_STALE_END] : k->rows;

    if (words && tile.x == 0 && tile.y == 0) {
        note_written(words, args->bindings[3], k->count * args->grid[1], k->rows);
    }
    for (int64_t r = stale; args->bindings[0] != args->bindings[1] && r < stale_end; r++) {
        memcpy(out + r * k->row_bytes, (const char *)args->bindings[1] + begin + r * k->row_bytes,
               bytes);
    }
    for (int64_t i = 0; i < k->count; i++) {
        const char *from =
            (const char *)args->bindings[2] + (tile.y * k->count + i) * k->row_bytes + first;
        if (places[i] < 0 || places[i] >= k->rows) {
            hal_fault(args, HAL_FAULT_INDEX,
                      &(struct hal_fault_number){&places[i], places[i], 0, k->rows - 1});
            continue;
        }
        char *to = out + places[i] * k->row_bytes;
        rt_update_log(words, tile.y * args->grid[0] + tile.x, places[i], args->bindings[0], to,
                      bytes);
        memcpy(to, from, bytes);
    }
}

static const struct hal_kernel write_rows_at_kernel = {
    .name = "write_rows_at", .cpu = write_rows_at_tile, .spirv = HAL_SPIRV(write_rows_spirv)};

static enum status write_rows_at_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *cache = rt_emit_arg(emit, CACHE), *out = rt_emit_out(emit, 0);
    const struct rt_tensor *value = rt_emit_arg(emit, CACHE_VALUE);
    int64_t width = (int64_t)dtype_bytes(cache->dtype);
    struct rt_write_rows k = {cache->dims[1], value->dims[1],
                              cache->dims[2] * cache->dims[3] * width};
    struct hal_binding bindings[5] = {out->binding, cache->binding, value->binding,
                                      rt_emit_arg(emit, CACHE_PLACE)->binding};
    int64_t slice = RT_SLICE_UNIT * rt_cut_block(rt_emit_machine(emit, &write_rows_at_kernel),
                                                 cache->dims[0] * k.row_bytes / RT_SLICE_UNIT,
                                                 RT_SLICE_UNIT / 4, SLICE_UNITS);
    struct hal_dispatch dispatch = {
        .kernel = &write_rows_at_kernel,
        .grid = {(uint32_t)((k.row_bytes + slice - 1) / slice),
                 k.rows > 0 ? (uint32_t)cache->dims[0] : 0, 1},
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 5,
        .cost = (uint64_t)cache->bytes / 8,
    };
    const struct rt_update update = {
        .rows = k.rows,
        .row_bytes = k.row_bytes,
        .count = k.count,
        .tiles = dispatch.grid[0] * dispatch.grid[1],
        .entries = k.count,
        .entry_bytes = rt_min(slice, k.row_bytes),
    };
    TRY(rt_emit_update(emit, &update, &bindings[4], err));
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* ---- the file's forms ---------------------------------------------------------------------- */

/* Output 0 of an update is an element that no node reads. */
static enum status set_unread(struct rt_shape_call *call)
{
    static const struct rt_dim one = {.value = 1};
    return rt_shape_set_out(call, 0, 1, &one);
}

static enum status update_shape(struct rt_shape_call *call)
{
    TRY(need_cache(call, 1, 0));
    TRY(set_unread(call));
    return rt_shape_set_out_like(call, 1, 1);
}

static enum status update_at_shape(struct rt_shape_call *call)
{
    TRY(update_shape(call));
    return need_places(call, 3, 0);
}

/* q, k, v, both caches, ... */
static enum status attention_cached_shape(struct rt_shape_call *call)
{
    TRY(need_cache(call, 3, 1));
    TRY(need_cache(call, 4, 2));
    TRY(rt_shape_set_out_like(call, 0, 0));
    TRY(rt_shape_set_out_like(call, 1, 3));
    return rt_shape_set_out_like(call, 2, 4);
}

/* q, k, v, ..., and from index 8 on the zero points and scales of each */
static enum status attention_quantized_shape(struct rt_shape_call *call)
{
    for (uint32_t i = 0; i < 6; i++) {
        if (rt_shape_arg_is_none(call, 8 + i)) {
            return rt_shape_unsupported(call, "scales and zero points are missing");
        }
    }
    return rt_shape_set_out_like(call, 0, 0);
}

/* Turns [c, h, w] into [tiles, c, t, t]. */
static enum status tile_crop_shape(struct rt_shape_call *call)
{
    const struct rt_value *in = rt_shape_arg(call, 0);
    int64_t side;

    TRY(rt_shape_need_const(call, 1, &side));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << in->dtype));
    if (in->rank != 3 || side <= 0) {
        return rt_shape_refuse(
            call, "the image has rank %u and tiles have size %lld, expected 3 and at least 1",
            in->rank, (long long)side);
    }
    if (!rt_dim_is_const(in->dims[1]) || !rt_dim_is_const(in->dims[2])) {
        return rt_shape_unsupported(call, "the size of the image must not vary");
    }
    int64_t high = in->dims[1].value, wide = in->dims[2].value;
    if (high % side != 0 || wide % side != 0) {
        return rt_shape_refuse(call, "an image of %lld x %lld cannot be cut into tiles of %lld",
                               (long long)high, (long long)wide, (long long)side);
    }
    struct rt_dim dims[4] = {
        rt_dim_mul(&call->graph->dims, rt_dim_of(high / side), rt_dim_of(wide / side)),
        in->dims[0],
        rt_dim_of(side),
        rt_dim_of(side),
    };
    return rt_shape_set_out(call, 0, 4, dims);
}

/* ---- Hadamard transform -------------------------------------------------------------------- */

#define HADAMARD_MAX ((int64_t)1 << 16)

static void butterfly(float *restrict a, float *restrict b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = a[i] + b[i];
        b[i] = a[i] - b[i];
        a[i] = sum;
    }
}

static void hadamard_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_hadamard *k = args->constants;
    int64_t width = (int64_t)dtype_bytes(k->dtype), first = tile.x * k->tile;
    int64_t end = k->rows - first < k->tile ? k->rows : first + k->tile;
    float *x = args->scratch;

    for (int64_t row = first; row < end; row++) {
        int64_t at = row * k->length * width;
        rt_convert_load(k->dtype, RT_CLASS_F32)(x, (const char *)args->bindings[1] + at, width,
                                                k->length);
        for (int64_t half = 1; half < k->length; half *= 2) {
            for (int64_t i = 0; i < k->length; i += 2 * half) {
                butterfly(x + i, x + i + half, half);
            }
        }
        hal_cpu_uk()->scalar_f32[UK_MUL](x, x, k->scale, (size_t)k->length);
        rt_convert_store(RT_CLASS_F32, k->dtype)((char *)args->bindings[0] + at, width, x,
                                                 k->length);
    }
}

static const struct hal_kernel hadamard_kernel = {
    .name = "hadamard", .cpu = hadamard_tile, .spirv = HAL_SPIRV(hadamard_spirv)};
static const struct hal_kernel hadamard_host_kernel = {.name = "hadamard", .cpu = hadamard_tile};

static enum status hadamard_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, 0);

    TRY(rt_shape_need_out_dtype(call, 0, 1u << x->dtype));
    if (x->rank == 0) {
        return rt_shape_refuse(call, "the input has rank 0, expected 1 or more");
    }
    return rt_shape_set_out_like(call, 0, 0);
}

static enum status hadamard_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, 0);
    int64_t n = x->dims[x->rank - 1];
    if (n < 1 || n > HADAMARD_MAX || (n & (n - 1)) != 0) {
        return error_set(err, ST_UNSUPPORTED,
                         "fast_hadamard_transform: length %lld, expected a power of two up to %lld",
                         (long long)n, (long long)HADAMARD_MAX);
    }
    struct rt_hadamard k = {x->numel / n, n, 8192 / n + 1, (float)(1 / sqrt((double)n)), x->dtype};
    struct hal_binding bindings[] = {rt_emit_out(emit, 0)->binding, x->binding};
    struct hal_dispatch dispatch = {
        .kernel = n <= RT_HADAMARD_SHARED_MAX ? &hadamard_kernel : &hadamard_host_kernel,
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 2,
        .scratch_bytes = (size_t)n * sizeof(float),
        .cost = (uint64_t)x->numel * 4,
    };
    return rt_emit_tiles(emit, k.rows, k.tile, &dispatch, err);
}

/* ---- gated delta rule ---------------------------------------------------------------------- */

enum { DELTA_Q, DELTA_K, DELTA_V, DELTA_DECAY, DELTA_BETA, DELTA_STATE };

#define DELTA_STATE_MAX                                                                            \
    ((int64_t)1 << 21) /* floats of a head's state, in scratch if no node reads it */

struct delta {
    int64_t steps, group, kv_heads, depth, width; /* a state is [depth, width] */
    bool by_channel;                              /* one decay for each row of the state */
};

/* One head of queries at one position: out = state transposed times q. */
static void read_state(const struct delta *k, const float *state, const float *q, float *out)
{
    memset(out, 0, (size_t)k->width * sizeof(float));
    for (int64_t i = 0; i < k->depth; i++) {
        hal_cpu_uk()->add_scaled_f32(out, out, state + i * k->width, q[i], (size_t)k->width);
    }
}

/* state = decay * state, then state += key (x) (beta * (value - state transposed times key)). */
static void step_state(const struct delta *k, float *state, const float *key, const float *value,
                       const float *decay, float beta, float *delta)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    size_t width = (size_t)k->width;

    for (int64_t i = 0; i < k->depth; i++) {
        float *row = state + i * k->width;
        uk->scalar_f32[UK_MUL](row, row, decay[k->by_channel ? i : 0], width);
    }
    read_state(k, state, key, delta);
    uk->binary_f32[UK_SUB](delta, value, delta, width);
    uk->scalar_f32[UK_MUL](delta, delta, beta, width);
    for (int64_t i = 0; i < k->depth; i++) {
        float *row = state + i * k->width;
        uk->add_scaled_f32(row, row, delta, key[i], width);
    }
}

/* Bindings: output, final state, then the arguments. Grid: key heads of all the batch. */
static void delta_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct delta *k = args->constants;
    int64_t head = tile.x, keys = k->steps * k->depth, values = k->steps * k->width;
    int64_t decays = k->by_channel ? k->depth : 1, size = k->depth * k->width;
    const float *q = (const float *)args->bindings[2 + DELTA_Q] + head * k->group * keys;
    const float *key = (const float *)args->bindings[2 + DELTA_K] + head * keys;
    const float *value = (const float *)args->bindings[2 + DELTA_V] + head * values;
    const float *decay = (const float *)args->bindings[2 + DELTA_DECAY] + head * k->steps * decays;
    const float *beta = (const float *)args->bindings[2 + DELTA_BETA] + head * k->steps;
    float *out = (float *)args->bindings[0] + head * k->group * values;
    float *delta = args->scratch, *final = args->bindings[1];
    float *state = final ? final + head * size : delta + k->width;

    if (size > 0) { /* else there is no depth, and the outputs are sums of nothing */
        memcpy(state, (const float *)args->bindings[2 + DELTA_STATE] + head * size,
               (size_t)size * sizeof(float));
    }
    for (int64_t t = 0; t < k->steps; t++) {
        step_state(k, state, key + t * k->depth, value + t * k->width, decay + t * decays, beta[t],
                   delta);
        for (int64_t g = 0; g < k->group; g++) {
            read_state(k, state, q + g * keys + t * k->depth, out + g * values + t * k->width);
        }
    }
}

static const struct hal_kernel delta_kernel = {.name = "gated_delta_rule", .cpu = delta_tile};

static enum status delta_shape(struct rt_shape_call *call)
{
    const struct rt_value *q = rt_shape_arg(call, DELTA_Q), *k = rt_shape_arg(call, DELTA_K);
    const struct rt_value *v = rt_shape_arg(call, DELTA_V),
                          *decay = rt_shape_arg(call, DELTA_DECAY);
    struct rt_dims *dims = &call->graph->dims;

    if (q->rank != 4 || k->rank != 4 || v->rank != 4) {
        return rt_shape_refuse(call,
                               "queries, keys and values have ranks %u, %u and %u, expected 4",
                               q->rank, k->rank, v->rank);
    }
    const struct rt_dim depth = k->dims[3], width = v->dims[3], heads = k->dims[1];
    const struct rt_dim like_k[4] = {q->dims[0], heads, q->dims[2], q->dims[3]};
    const struct rt_dim like_v[4] = {q->dims[0], heads, q->dims[2], width};
    const struct rt_dim state[4] = {q->dims[0], heads, depth, width};
    const struct rt_dim out[4] = {q->dims[0], q->dims[1], q->dims[2], width};
    TRY(rt_shape_need_dims(call, DELTA_Q, 4, q->dims));
    TRY(rt_shape_need_dims(call, DELTA_K, 4, like_k));
    TRY(rt_shape_need_dims(call, DELTA_V, 4, like_v));
    TRY(rt_shape_need_dims(call, DELTA_DECAY, decay->rank == 3 ? 3 : 4, like_k));
    TRY(rt_shape_need_dims(call, DELTA_BETA, 3, like_k));
    TRY(rt_shape_need_dims(call, DELTA_STATE, 4, state));
    if (rt_dim_is(heads, 0)) {
        return rt_shape_refuse(call, "there are no heads");
    }
    TRY(rt_dim_require_equal(dims, rt_dim_mod(dims, q->dims[1], heads), rt_dim_of(0),
                             "query heads modulo key heads", call->err));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << DT_F32));
    TRY(rt_shape_need_out_dtype(call, 1, 1u << DT_F32));
    TRY(rt_shape_set_out(call, 0, 4, out));
    return rt_shape_set_out(call, 1, 4, state);
}

static enum status delta_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *q = rt_emit_arg(emit, DELTA_Q), *v = rt_emit_arg(emit, DELTA_V);
    const struct rt_tensor *final = rt_emit_out(emit, 1);
    struct delta k = {
        .steps = q->dims[2],
        .group = v->dims[1] ? q->dims[1] / v->dims[1] : 0,
        .kv_heads = v->dims[1],
        .depth = q->dims[3],
        .width = v->dims[3],
        .by_channel = rt_emit_arg(emit, DELTA_DECAY)->rank == 4,
    };
    struct hal_binding bindings[8] = {rt_emit_out(emit, 0)->binding,
                                      final ? final->binding : (struct hal_binding){0}};
    for (uint32_t i = 0; i < 6; i++) {
        bindings[2 + i] = rt_emit_arg(emit, i)->binding;
    }
    int64_t size = k.depth * k.width, heads = q->dims[0] * k.kv_heads;
    if (size > DELTA_STATE_MAX || heads > UINT32_MAX) {
        return error_set(err, ST_TOO_LARGE,
                         "gated_delta_rule: %lld states of %lld floats are too large",
                         (long long)heads, (long long)size);
    }
    struct hal_dispatch dispatch = {
        .kernel = &delta_kernel,
        .grid = {k.width > 0 ? (uint32_t)heads : 0, 1, 1},
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 8,
        .scratch_bytes = (size_t)(k.width + (final ? 0 : size)) * sizeof(float),
        .cost = (uint64_t)(heads * k.steps) * (uint64_t)size,
        .macs = 2 * (double)heads * (double)k.steps * (double)size,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Shapes only: see runtime/passes/lower_llm.c. */
/* Arguments of the attention kernel. */
#define FLOAT_TYPES (1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16)

#define LOWERED(name, kernel, args, shape, dtypes_, becomes_)                                      \
    {                                                                                              \
        name, kernel, args, shape, NULL, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = (dtypes_),  \
                                                                             .becomes = (becomes_) \
    }

const struct rt_op rt_ops_llm[] = {
    {"write_rows", NULL, "TTI>T", write_rows_shape, write_rows_emit, RT_OP_IN_PLACE | RT_OP_ROWS,
     RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = RT_DTYPES_ALL, .runs = &rt_copy_kernel,
     .read = 1 << CACHE_PLACE, .place = write_rows_place},
    {"write_rows_at", NULL, "TTT>T", write_rows_at_shape, write_rows_at_emit,
     RT_OP_IN_PLACE | RT_OP_ROWS, RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = RT_DTYPES_ALL,
     .runs = &write_rows_at_kernel},
    LOWERED("update_cache", "llama::update_cache.out", "TT!I>T", update_shape, RT_DTYPES_ALL,
            "write_rows"),
    LOWERED("update_cache_at", "llama::update_cache_with_indices.out", "TT!IT>T", update_at_shape,
            RT_DTYPES_ALL, "write_rows_at"),
    LOWERED("attention_cached", "llama::sdpa_with_kv_cache.out", "TTTT!T!IIT?FBF?>T",
            attention_cached_shape, FLOAT_TYPES, "attention"),
    LOWERED("attention_quantized", "llama::custom_quantized_sdpa.out", "TTTIT?FBF?T?T?T?T?T?T?B>T",
            attention_quantized_shape, 1u << DT_I8, "attention"),
    LOWERED("tile_crop", "preprocess::tile_crop.out", "TI>T", tile_crop_shape, RT_DTYPES_ALL,
            "permute"),
    {"hadamard", "llama::fast_hadamard_transform.out", "T>T", hadamard_shape, hadamard_emit, 0,
     RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = FLOAT_TYPES, .runs = &hadamard_kernel},
    {"gated_delta_rule", "llama::gated_delta_rule.out llama::channelwise_gated_delta_rule.out",
     "TTTTTT>TT", delta_shape, delta_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL,
     .dtypes = 1u << DT_F32, .runs = &delta_kernel},
    {0},
};
