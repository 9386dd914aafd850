/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/plan/alloc.h"

#include <stdlib.h>

#include "base/check.h"

struct tenant {
    uint32_t value; /* names the class */
    uint32_t first, last;
    size_t bytes, offset;
};

struct shape rt_concrete_shape(const struct rt_value *value, const int64_t *values)
{
    must(value->kind == RT_TENSOR && value->dims);
    struct shape shape = {.rank = value->rank};
    for (uint8_t i = 0; i < value->rank; i++) {
        shape.dims[i] = rt_dim_at(value->dims[i], values);
    }
    return shape;
}

/* Largest first; then in the order of the graph, so that the same graph packs the same way. */
static int by_size(const void *a, const void *b)
{
    const struct tenant *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? 1 : -1;
    }
    return x->value < y->value ? -1 : x->value > y->value;
}

static int by_offset(const void *a, const void *b)
{
    const struct tenant *const *x = a, *const *y = b;
    return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

/*
 * The lowest gap that is large enough between those placed tenants that are alive at the same time.
 * |neighbours| is scratch.
 */
static size_t lowest_gap(const struct tenant *t, struct tenant *placed, uint32_t count,
                         struct tenant **neighbours)
{
    uint32_t neighbour_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (placed[i].first <= t->last && t->first <= placed[i].last) {
            neighbours[neighbour_count++] = &placed[i];
        }
    }
    qsort(neighbours, neighbour_count, sizeof(struct tenant *), by_offset);
    size_t end = 0;
    for (uint32_t i = 0; i < neighbour_count; i++) {
        if (neighbours[i]->offset > end && neighbours[i]->offset - end >= t->bytes) {
            break;
        }
        size_t next = neighbours[i]->offset + neighbours[i]->bytes;
        end = next > end ? next : end;
    }
    return end;
}

/* Every tensor is looked at, since a view's dims can be wrong on their own. */
enum status rt_alloc_measure(const struct rt_flow *flow, const int64_t *values, size_t *out_bytes,
                             struct error *err)
{
    OBJ_CHECK(flow->graph, RT_GRAPH_MAGIC);
    for (uint32_t i = 0; i < flow->graph->value_count; i++) {
        const struct rt_value *v = &flow->graph->values[i];
        size_t bytes;
        if (v->kind != RT_TENSOR || rt_flow_class(flow, i)->home == RT_HOME_NONE) {
            continue;
        }
        struct shape shape = rt_concrete_shape(v, values);
        TRY(shape_bytes(&shape, v->dtype, &bytes, err));
        if (out_bytes && flow->class_of[i] == i) {
            out_bytes[i] = bytes;
        }
    }
    return ST_OK;
}

static enum status pack(struct rt_alloc *alloc, struct tenant *tenants, uint32_t count,
                        struct tenant **neighbours, struct error *err)
{
    qsort(tenants, count, sizeof(*tenants), by_size);
    for (uint32_t i = 0; i < count; i++) {
        struct tenant *t = &tenants[i];
        t->offset = lowest_gap(t, tenants, i, neighbours);
        must(t->bytes > 0 && t->offset % RT_WORKSPACE_ALIGN == 0);
        size_t end;
        if (!add_size(t->offset, t->bytes, &end)) {
            return error_set(err, ST_TOO_LARGE, "the intermediate values exceed memory");
        }
        alloc->offset[t->value] = t->offset;
        alloc->workspace_bytes = end > alloc->workspace_bytes ? end : alloc->workspace_bytes;
    }
    return ST_OK;
}

enum status rt_alloc_make(struct rt_alloc *alloc, const struct rt_flow *flow, const int64_t *values,
                          struct arena *arena, struct error *err)
{
    OBJ_CHECK(flow->graph, RT_GRAPH_MAGIC);
    uint32_t value_count = flow->graph->value_count, count = 0;
    *alloc = (struct rt_alloc){
        .bytes = arena_array(arena, value_count, sizeof(*alloc->bytes)),
        .offset = arena_array(arena, value_count, sizeof(*alloc->offset)),
    };
    struct tenant *tenants = arena_array(arena, value_count, sizeof(*tenants));
    struct tenant **neighbours = arena_array(arena, value_count, sizeof(struct tenant *));
    if (!alloc->bytes || !alloc->offset || !tenants || !neighbours) {
        return arena_fail(arena, "the method", err);
    }
    TRY(rt_alloc_measure(flow, values, alloc->bytes, err));
    for (uint32_t i = 0; i < value_count; i++) {
        const struct rt_storage *class = &flow->classes[i];
        if (flow->class_of[i] != i || class->home != RT_HOME_WORKSPACE || alloc->bytes[i] == 0) {
            continue;
        }
        if (alloc->bytes[i] > SIZE_MAX / 2) {
            return error_set(err, ST_TOO_LARGE, "an intermediate value exceeds memory");
        }
        tenants[count++] = (struct tenant){.value = i,
                                           .first = class->first,
                                           .last = class->last,
                                           .bytes = align_up(alloc->bytes[i], RT_WORKSPACE_ALIGN)};
    }
    return pack(alloc, tenants, count, neighbours, err);
}
