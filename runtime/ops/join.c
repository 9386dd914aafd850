/* SPDX-License-Identifier: MIT */
/*
 * Parts of several tensors side by side in one tensor, as "cat" of many slices would make it. The
 * channels pass (runtime/passes/channels.c) makes this operator. For images that have their
 * channels next to each other the kernel copies whole pixels at a time; all else is one strided
 * copy for each part.
 */
#include "config.h"

#include "runtime/ops/join.h"

#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/copy.h"
#include "runtime/ops/op.h"

/* A part of each pixel. */
struct part {
    uint32_t image, row; /* its number; channels of its pixels */
    uint32_t begin, count;
};

struct join {
    int64_t pixels, tile; /* of all images of a batch; of a tile */
    uint32_t channels, part_count;
    struct part parts[RT_JOIN_PARTS_MAX];
};
_Static_assert(sizeof(struct join) <= HAL_CONSTANTS_MAX, "constants are copied whole");

/* Bindings: the output, then the images. Grid: blocks of pixels. */
static void join_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct join *j = args->constants;
    int64_t begin = tile.x * j->tile, end = rt_min(begin + j->tile, j->pixels);
    float *out = (float *)args->bindings[0] + begin * j->channels;
    for (uint32_t i = 0; i < j->part_count; i++) {
        const struct part *part = &j->parts[i];
        const float *from = (const float *)args->bindings[1 + part->image] + part->begin;
        float *to = out;
        from += begin * part->row;
        for (int64_t pixel = begin; pixel < end; pixel++) {
            memcpy(to, from, part->count * sizeof(*to));
            to += j->channels;
            from += part->row;
        }
        out += part->count;
    }
}

static const struct hal_kernel kernel = {.name = "join_parts", .cpu = join_cpu};

static int64_t number_at(struct rt_emit *emit, uint32_t part, uint32_t number)
{
    return rt_emit_ints(emit, RT_JOIN_PARTS, part * RT_JOIN_NUMBERS + number);
}

static uint32_t count_parts(const struct rt_value *parts)
{
    must(parts->count % RT_JOIN_NUMBERS == 0);
    return parts->count / RT_JOIN_NUMBERS;
}

/* Only a pass makes such nodes, of tensors that agree: a malformed one is a defect of ours. */
static enum status join_shape(struct rt_shape_call *call)
{
    const struct rt_value *list = rt_shape_arg(call, RT_JOIN_LIST);
    const struct rt_value *parts = rt_shape_arg(call, RT_JOIN_PARTS);
    const struct rt_value *first = rt_graph_value(call->graph, list->values[0]);
    int64_t dim = rt_shape_arg(call, RT_JOIN_DIM)->i.value, sum = 0;
    struct rt_dim out[SHAPE_RANK_MAX];
    must(list->count > 0 && list->count <= RT_JOIN_TENSORS_MAX);
    must(count_parts(parts) <= RT_JOIN_PARTS_MAX && dim >= 0 && dim < first->rank);
    for (uint32_t i = 0; i < count_parts(parts); i++) {
        sum += parts->ints[i * RT_JOIN_NUMBERS + RT_JOIN_COUNT].value;
    }
    for (uint8_t d = 0; d < first->rank; d++) {
        out[d] = d == dim ? rt_dim_of(sum) : first->dims[d];
    }
    return rt_shape_set_out(call, 0, first->rank, out);
}

/* Do images consist of pixels whose channels lie next to each other? */
static bool has_pixels(const struct rt_tensor *t)
{
    static const uint8_t inwards[] = {1, 3, 2, 0};
    bool has = t->rank == 4;
    int64_t distance = 1;
    for (uint8_t i = 0; has && i < 4; i++) {
        int64_t size = t->dims[inwards[i]];
        has = size == 1 || t->strides[inwards[i]] == distance;
        distance *= size;
    }
    return has;
}

static bool is_of_pixels(struct rt_emit *emit)
{
    bool are = rt_emit_is_host(emit) && rt_emit_int(emit, RT_JOIN_DIM) == 1 &&
               has_pixels(rt_emit_out(emit, 0));
    for (uint32_t i = 0; are && i < rt_emit_value(emit, RT_JOIN_LIST)->count; i++) {
        are = has_pixels(rt_emit_arg_item(emit, RT_JOIN_LIST, i));
    }
    for (uint32_t i = 0; are && i < count_parts(rt_emit_value(emit, RT_JOIN_PARTS)); i++) {
        are = number_at(emit, i, RT_JOIN_STEP) == 1;
    }
    return are;
}

static enum status emit_pixels(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[1 + RT_JOIN_TENSORS_MAX] = {out->binding};
    uint32_t count = rt_emit_value(emit, RT_JOIN_LIST)->count;
    struct join j = {
        .pixels = out->numel / out->dims[1],
        .channels = (uint32_t)out->dims[1],
        .part_count = count_parts(rt_emit_value(emit, RT_JOIN_PARTS)),
    };
    for (uint32_t i = 0; i < count; i++) {
        bindings[1 + i] = rt_emit_arg_item(emit, RT_JOIN_LIST, i)->binding;
    }
    for (uint32_t i = 0; i < j.part_count; i++) {
        uint32_t image = (uint32_t)number_at(emit, i, RT_JOIN_ITEM);
        j.parts[i] = (struct part){
            .image = image,
            .row = (uint32_t)rt_emit_arg_item(emit, RT_JOIN_LIST, image)->dims[1],
            .begin = (uint32_t)number_at(emit, i, RT_JOIN_BEGIN),
            .count = (uint32_t)number_at(emit, i, RT_JOIN_COUNT),
        };
    }
    int64_t bytes = 2 * j.channels * (int64_t)sizeof(float);
    j.tile = rt_cut_things(rt_emit_machine(emit, &kernel), RT_WORK_COPY, j.pixels, bytes, 1);
    struct hal_dispatch dispatch = {
        .kernel = &kernel,
        .constants = &j,
        .constants_bytes = sizeof(j),
        .bindings = bindings,
        .binding_count = 1 + count,
        .cost = (uint64_t)out->bytes / 16,
    };
    return rt_emit_tiles(emit, j.pixels, j.tile, &dispatch, err);
}

static enum status join_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    int64_t dim = rt_emit_int(emit, RT_JOIN_DIM), offset = 0;
    if (out->numel == 0) {
        return ST_OK;
    }
    if (is_of_pixels(emit)) {
        return emit_pixels(emit, err);
    }
    for (uint32_t i = 0; i < count_parts(rt_emit_value(emit, RT_JOIN_PARTS)); i++) {
        const struct rt_tensor *from =
            rt_emit_arg_item(emit, RT_JOIN_LIST, (uint32_t)number_at(emit, i, RT_JOIN_ITEM));
        struct rt_copy copy = {.rank = out->rank, .dst_offset = offset * out->strides[dim]};
        for (uint8_t d = 0; d < out->rank; d++) {
            copy.dims[d] = d == dim ? number_at(emit, i, RT_JOIN_COUNT) : out->dims[d];
            copy.dst[d] = out->strides[d];
            copy.src[d] = from->strides[d] * (d == dim ? number_at(emit, i, RT_JOIN_STEP) : 1);
        }
        copy.src_offset = number_at(emit, i, RT_JOIN_BEGIN) * from->strides[dim];
        TRY(rt_copy_emit(emit, out, from, &copy, err));
        offset += copy.dims[dim];
    }
    return ST_OK;
}

const struct rt_op rt_ops_join[] = {
    {.name = "join_parts",
     .args = "XIL>T",
     .shape = join_shape,
     .emit = join_emit,
     .flags = RT_OP_MOVES,
     .layout = RT_LAYOUT_ELEMENTWISE,
     .batch = rt_batch_list,
     .dtypes = 1u << DT_F32,
     .runs = &rt_copy_kernel},
    {.name = NULL},
};
