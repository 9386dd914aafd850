/* SPDX-License-Identifier: MIT */
/*
 * Loop nests. A nest is built once for a plan. Cursors run in kernels, on any worker, and use only
 * the constants they are given. Dims come from allocated tensors, so their products do not
 * overflow.
 */
#include "config.h"

#include "runtime/kernels/loop.h"

#include "base/check.h"
#include "runtime/emit/emit.h"

void rt_loop_init(struct rt_loop *loop, uint8_t rank, const int64_t *dims)
{
    *loop = (struct rt_loop){.rank = rank, .numel = 1};
    for (uint8_t d = 0; d < rank; d++) {
        loop->dims[d] = dims[d];
        loop->numel *= dims[d];
    }
}

void rt_loop_add_strides(struct rt_loop *loop, const int64_t *strides, int64_t offset)
{
    must(loop->operands < RT_LOOP_OPERANDS_MAX);
    uint32_t operand = loop->operands++;

    loop->offsets[operand] = offset;
    for (uint32_t d = 0; d < loop->rank; d++) {
        loop->strides[operand][d] = strides[d];
    }
}

void rt_loop_add(struct rt_loop *loop, const struct rt_tensor *tensor)
{
    int64_t strides[SHAPE_RANK_MAX] = {0};
    must(tensor->rank <= loop->rank);
    uint32_t skip = loop->rank - tensor->rank;

    for (uint32_t d = 0; d < tensor->rank; d++) {
        must(tensor->dims[d] == 1 || tensor->dims[d] == loop->dims[skip + d]);
        if (tensor->dims[d] != 1) {
            strides[skip + d] = tensor->strides[d] * (int64_t)dtype_bytes(tensor->dtype);
        }
    }
    rt_loop_add_strides(loop, strides, 0);
}

static void move_dim(struct rt_loop *loop, uint32_t to, uint32_t from)
{
    loop->dims[to] = loop->dims[from];
    for (uint32_t o = 0; o < loop->operands; o++) {
        loop->strides[o][to] = loop->strides[o][from];
    }
}

void rt_loop_swap(struct rt_loop *loop, uint32_t a, uint32_t b)
{
    int64_t dim = loop->dims[a];
    loop->dims[a] = loop->dims[b];
    loop->dims[b] = dim;
    for (uint32_t o = 0; o < loop->operands; o++) {
        int64_t stride = loop->strides[o][a];
        loop->strides[o][a] = loop->strides[o][b];
        loop->strides[o][b] = stride;
    }
}

static void drop_ones(struct rt_loop *loop)
{
    uint32_t kept = 0;
    for (uint32_t d = 0; d < loop->rank; d++) {
        if (loop->dims[d] != 1) {
            move_dim(loop, kept++, d);
        }
    }
    loop->rank = kept;
}

/* Insertion sort: stable, and there are at most SHAPE_RANK_MAX dims. */
static void sort_dims(struct rt_loop *loop)
{
    for (uint32_t d = 1; d < loop->rank; d++) {
        for (uint32_t e = d; e > 0; e--) {
            int64_t outer = loop->strides[0][e - 1], inner = loop->strides[0][e];
            if ((outer < 0 ? -outer : outer) >= (inner < 0 ? -inner : inner)) {
                break;
            }
            rt_loop_swap(loop, e - 1, e);
        }
    }
}

static bool is_walked_as_one(const struct rt_loop *loop, uint32_t outer, uint32_t inner)
{
    for (uint32_t o = 0; o < loop->operands; o++) {
        if (loop->strides[o][outer] != loop->strides[o][inner] * loop->dims[inner]) {
            return false;
        }
    }
    return true;
}

static void merge_dims(struct rt_loop *loop)
{
    uint32_t last = 0;
    for (uint32_t d = 1; d < loop->rank; d++) {
        if (is_walked_as_one(loop, last, d)) {
            int64_t dim = loop->dims[last];
            move_dim(loop, last, d);
            loop->dims[last] *= dim;
        } else {
            move_dim(loop, ++last, d);
        }
    }
    loop->rank = last + 1;
}

void rt_loop_close(struct rt_loop *loop, int64_t tile)
{
    must(loop->operands > 0 && tile > 0);
    loop->tile = tile;
    if (loop->numel == 0) {
        return;
    }
    drop_ones(loop);
    if (loop->rank == 0) {
        loop->rank = 1;
        loop->dims[0] = 1;
        for (uint32_t o = 0; o < loop->operands; o++) {
            loop->strides[o][0] = 0;
        }
        return;
    }
    sort_dims(loop);
    merge_dims(loop);
}

void rt_loop_cut(struct rt_loop *loop, const struct rt_machine *machine, enum rt_work work)
{
    rt_loop_close(loop, rt_cut_things(machine, work, loop->numel, 1, 1));
}

uint32_t rt_loop_tiles(const struct rt_loop *loop)
{
    int64_t tiles = loop->numel / loop->tile + (loop->numel % loop->tile != 0);
    must(tiles <= UINT32_MAX);
    return (uint32_t)tiles;
}

void rt_loop_cursor_init(struct rt_cursor *cursor, const struct rt_loop *loop,
                         void *const *bindings, uint32_t tile)
{
    int64_t first = tile * loop->tile;
    int64_t behind = loop->numel - first;

    cursor->loop = loop;
    cursor->left = behind < loop->tile ? behind : loop->tile;
    cursor->count = 0;
    for (uint32_t o = 0; o < loop->operands; o++) {
        cursor->ptrs[o] = (char *)bindings[o] + loop->offsets[o];
    }
    for (uint32_t d = loop->rank; d-- > 0;) {
        cursor->index[d] = first % loop->dims[d];
        first /= loop->dims[d];
        for (uint32_t o = 0; o < loop->operands; o++) {
            cursor->ptrs[o] += cursor->index[d] * loop->strides[o][d];
        }
    }
}

/* Moves the pointers by |steps| positions along dim |d|. */
static void step(struct rt_cursor *cursor, uint32_t d, int64_t steps)
{
    cursor->index[d] += steps;
    for (uint32_t o = 0; o < cursor->loop->operands; o++) {
        cursor->ptrs[o] += steps * cursor->loop->strides[o][d];
    }
}

/* Moves to the beginning of the next line of the innermost dim. */
static void next_line(struct rt_cursor *cursor)
{
    const struct rt_loop *loop = cursor->loop;
    uint32_t d = loop->rank - 1;

    if (cursor->index[d] > 0) {
        step(cursor, d, -cursor->index[d]);
    }
    while (d-- > 0) {
        step(cursor, d, 1);
        if (cursor->index[d] < loop->dims[d]) {
            return;
        }
        step(cursor, d, -loop->dims[d]);
    }
}

int64_t rt_loop_cursor_lines(struct rt_cursor *cursor)
{
    const struct rt_loop *loop = cursor->loop;
    if (loop->rank < 2 || cursor->count < loop->dims[loop->rank - 1]) {
        return 0;
    }
    uint32_t d = loop->rank - 2;
    int64_t behind = loop->dims[d] - 1 - cursor->index[d], whole = cursor->left / cursor->count;
    int64_t lines = whole < behind ? whole : behind;
    cursor->left -= lines * cursor->count;
    step(cursor, d, lines);
    return lines;
}

bool rt_loop_cursor_next(struct rt_cursor *cursor)
{
    uint32_t inner = cursor->loop->rank - 1;

    if (cursor->left == 0) {
        return false;
    }
    if (cursor->count > 0) {
        next_line(cursor); /* a run that does not end the tile ends its line */
    }
    int64_t run = cursor->loop->dims[inner] - cursor->index[inner];
    cursor->count = run < cursor->left ? run : cursor->left;
    cursor->left -= cursor->count;
    return true;
}
