/* SPDX-License-Identifier: MIT */
/*
 * The kernels of indexing by tensors (index.c). A tile finds the places of some index elements in
 * the table, and moves its rows of the rest to them or from them.
 */
#include "config.h"

#include <string.h>

#include "runtime/emit/minmax.h"
#include "runtime/kernels/element.h"
#include "runtime/kernels/keep.h"
#include "runtime/ops/index_priv.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define NOWHERE (-1)

static int64_t read_place(const struct hal_args *args, const struct rt_index_constants *c,
                          uint32_t k, int64_t at)
{
    bool is_i32 = c->i32 >> k & 1;
    const void *from = (const char *)args->bindings[c->first + k] + at * (is_i32 ? 4 : 8);
    int64_t got = is_i32 ? *(const int32_t *)from : *(const int64_t *)from;
    int64_t place = got < 0 && c->wraps ? got + c->sizes[k] : got;
    if (place < 0 || place >= c->sizes[k]) {
        hal_fault(
            args, HAL_FAULT_INDEX,
            &(struct hal_fault_number){from, got, c->wraps ? -c->sizes[k] : 0, c->sizes[k] - 1});
        return NOWHERE;
    }
    return place * c->steps[k];
}

/* Row-major strides of each index tensor over the index dims; 0 where it is broadcast. */
static void index_strides(const struct rt_index_constants *c,
                          int64_t strides[SHAPE_RANK_MAX][SHAPE_RANK_MAX])
{
    for (uint32_t k = 0; k < c->count; k++) {
        int64_t stride = 1;
        for (uint32_t d = c->rank; d-- > c->rest;) {
            bool has = c->masks[k] >> d & 1;
            strides[k][d] = has ? stride : 0;
            stride *= has ? c->dims[d] : 1;
        }
    }
}

/* The same for a mask; the caller asks for chunks in order. */
static void find_trues(const struct hal_args *args, int64_t begin, int64_t count,
                       struct rt_index_places *places)
{
    const struct rt_index_constants *c = args->constants;
    const uint8_t *mask = (const uint8_t *)args->bindings[c->first] + begin;
    bool at_end = begin + count == c->places;
    int64_t coords[SHAPE_RANK_MAX], table = 0;

    places->trues = begin == 0 ? 0 : places->trues;
    for (uint32_t k = c->count; k-- > 0; begin /= c->sizes[k]) {
        coords[k] = begin % c->sizes[k];
        table += coords[k] * c->steps[k];
    }
    for (int64_t b = 0; b < count; b++) {
        bool is_left = c->values == RT_INDEX_NO_LIMIT || places->trues < c->values;
        places->table[b] = mask[b] && is_left ? table : NOWHERE;
        places->list[b] = places->trues * c->list[c->rest];
        places->trues += mask[b] != 0;
        for (uint32_t k = c->count; k-- > 0;) {
            table += c->steps[k];
            if (++coords[k] < c->sizes[k]) {
                break;
            }
            table -= coords[k] * c->steps[k];
            coords[k] = 0;
        }
    }
    if (at_end && c->values != RT_INDEX_NO_LIMIT && places->trues != c->values) {
        hal_fault(args, HAL_FAULT_VALUES,
                  &(struct hal_fault_number){NULL, places->trues, c->values, c->values});
    }
}

static void find_places(const struct hal_args *args, int64_t begin, int64_t count,
                        struct rt_index_places *places)
{
    const struct rt_index_constants *c = args->constants;
    int64_t strides[SHAPE_RANK_MAX][SHAPE_RANK_MAX], coords[SHAPE_RANK_MAX];

    index_strides(c, strides);
    for (uint32_t d = c->rank; d-- > c->rest;) {
        coords[d] = begin % c->dims[d];
        begin /= c->dims[d];
    }
    for (int64_t b = 0; b < count; b++) {
        int64_t table = 0, list = 0;
        for (uint32_t k = 0; k < c->count; k++) {
            int64_t at = 0;
            for (uint32_t d = c->rest; d < c->rank; d++) {
                at += coords[d] * strides[k][d];
            }
            int64_t offset = read_place(args, c, k, at);
            table = offset == NOWHERE || table == NOWHERE ? NOWHERE : table + offset;
        }
        for (uint32_t d = c->rest; d < c->rank; d++) {
            list += coords[d] * c->list[d];
        }
        places->table[b] = table;
        places->list[b] = list;
        for (uint32_t d = c->rank; d-- > c->rest && ++coords[d] == c->dims[d];) {
            coords[d] = 0;
        }
    }
}

/* The offset of row |row| of the rest on both sides. */
static void find_row(const struct rt_index_constants *c, int64_t row, int64_t *table, int64_t *list)
{
    *table = *list = 0;
    for (uint32_t d = c->rest; d-- > 0;) {
        int64_t index = row % c->dims[d];
        row /= c->dims[d];
        *table += index * c->table[d];
        *list += index * c->list[d];
    }
}

static inline void copy_bytes(char *dst, const char *src, size_t n)
{
    if (n == 4) {
        memcpy(dst, src, 4);
    } else if (n == 8) {
        memcpy(dst, src, 8);
    } else {
        memcpy(dst, src, n);
    }
}

static void take_row(const struct rt_index_places *places, int64_t count, char *list,
                     const char *table, size_t bytes)
{
    for (int64_t b = 0; b < count; b++) {
        if (places->table[b] != NOWHERE) {
            copy_bytes(list + places->list[b], table + places->table[b], bytes);
        } else {
            memset(list + places->list[b], 0, bytes);
        }
    }
}

static void index_take(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_index_constants *c = args->constants;
    struct rt_index_places *places = args->scratch;
    int64_t begin = tile.x * c->tile_places, count = rt_min(c->tile_places, c->places - begin);
    int64_t first = tile.y * c->tile_rows, behind = rt_min(first + c->tile_rows, c->rows);
    int64_t offset = tile.z * c->piece, bytes = rt_min(c->piece, c->run - offset);

    find_places(args, begin, count, places);
    for (int64_t row = first; row < behind; row++) {
        int64_t table, list;
        find_row(c, row, &table, &list);
        take_row(places, count, (char *)args->bindings[0] + list + offset,
                 (const char *)args->bindings[1] + table + offset, (size_t)bytes);
    }
}

const struct hal_kernel rt_index_take_kernel = {
    .name = "index", .cpu = index_take, .spirv = HAL_SPIRV(index_take_spirv)};

/* Keeps the table's content in all places of one row, in the order of the indexed dims. */
static void keep_all(const struct rt_index_constants *c, char *dst, const char *src, size_t bytes)
{
    int64_t coords[SHAPE_RANK_MAX] = {0}, offset = 0;
    uint32_t k;

    for (;;) {
        copy_bytes(dst + offset, src + offset, bytes);
        for (k = c->count; k-- > 0;) {
            offset += c->steps[k];
            if (++coords[k] < c->sizes[k]) {
                break;
            }
            offset -= coords[k] * c->steps[k];
            coords[k] = 0;
        }
        if (k == UINT32_MAX) {
            return;
        }
    }
}

/* With one indexed dim only the places that may differ are kept. */
static void keep_row(const struct rt_index_constants *c, const int64_t *words, char *dst,
                     const char *src, size_t bytes)
{
    if (!words) {
        keep_all(c, dst, src, bytes);
        return;
    }
    for (int64_t at = words[RT_UPDATE_STALE]; at < words[RT_UPDATE_STALE_END]; at++) {
        copy_bytes(dst + at * c->steps[0], src + at * c->steps[0], bytes);
    }
}

/* From the first to the last of |places|, which belong to one indexed dim. */
static void note_written(const struct rt_index_constants *c, const struct rt_index_places *places,
                         int64_t count, int64_t *words)
{
    for (int64_t b = 0; b < count; b++) {
        int64_t place = places->table[b] == NOWHERE ? 0 : places->table[b] / c->steps[0];
        words[RT_UPDATE_WRITTEN] = rt_min(words[RT_UPDATE_WRITTEN], place);
        words[RT_UPDATE_WRITTEN_END] = rt_max(words[RT_UPDATE_WRITTEN_END], place + 1);
    }
}

/* What a tile puts: pieces of |bytes| into |out|. */
struct put {
    const struct rt_index_constants *c;
    const int64_t *words;
    uint32_t tile;
    const char *out;
    size_t bytes;
};

static void put_row(const struct put *put, const struct rt_index_places *places, int64_t count,
                    char *table, const char *list)
{
    const struct rt_index_constants *c = put->c;
    size_t bytes = put->bytes;
    for (int64_t b = 0; b < count; b++) {
        if (places->table[b] == NOWHERE) {
            continue;
        }
        rt_update_log(put->words, put->tile, places->table[b] / c->steps[0], put->out,
                      table + places->table[b], bytes);
        if (c->mode == RT_INDEX_PUT) {
            copy_bytes(table + places->table[b], list + places->list[b], bytes);
        } else {
            rt_element_add(table + places->table[b], list + places->list[b],
                           (int64_t)(bytes / dtype_bytes(c->dtype)), c->dtype);
        }
    }
}

/* A tile owns some rows of the rest: it keeps them first and then puts in order. */
static void index_put(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_index_constants *c = args->constants;
    struct rt_index_places *places = args->scratch;
    char *out = args->bindings[0];
    const char *self = args->bindings[1], *values = args->bindings[2];
    int64_t first = tile.y * c->tile_rows, behind = rt_min(first + c->tile_rows, c->rows);
    int64_t offset = tile.z * c->piece, table, list;
    size_t bytes = (size_t)rt_min(c->piece, c->run - offset);
    int64_t *words = args->bindings[c->words];
    bool notes = words && tile.y == 0 && tile.z == 0;
    const struct put put = {c, words, tile.z * args->grid[1] + tile.y, out, bytes};

    if (notes) {
        words[RT_UPDATE_WRITTEN] = c->sizes[0];
        words[RT_UPDATE_WRITTEN_END] = 0;
    }
    for (int64_t row = first; out != self && row < behind; row++) {
        find_row(c, row, &table, &list);
        keep_row(c, words, out + table + offset, self + table + offset, bytes);
    }
    for (int64_t begin = 0; begin < c->places; begin += RT_INDEX_PLACES) {
        int64_t count = rt_min(RT_INDEX_PLACES, c->places - begin);
        (c->is_mask ? find_trues : find_places)(args, begin, count, places);
        if (notes) {
            note_written(c, places, count, words);
        }
        for (int64_t row = first; row < behind; row++) {
            find_row(c, row, &table, &list);
            put_row(&put, places, count, out + table + offset, values + list + offset);
        }
    }
}

const struct hal_kernel rt_index_put_kernel = {
    .name = "index_put", .cpu = index_put, .spirv = HAL_SPIRV(index_put_spirv)};
static const struct hal_kernel kernel_put_host = {.name = "index_put", .cpu = index_put};

const struct hal_kernel *rt_index_choose_put(const struct rt_index_constants *c)
{
    bool is_wide = c->dtype == DT_F64 || dtype_infos[c->dtype].kind == DTYPE_COMPLEX;
    return c->mode == RT_INDEX_ADD && is_wide ? &kernel_put_host : &rt_index_put_kernel;
}
