/* SPDX-License-Identifier: MIT */
/*
 * Strided copies. rt_copy_emit() lets a loop nest order and merge the dims by the target's strides
 * and then picks one of two kernels: runs along the innermost dim (memcpy where both sides are
 * contiguous) or, where source and target are contiguous along different dims, blocks of a
 * transposition that fit the first-level cache.
 *
 * Elements are only moved, so an element is a unit of bytes, and a short contiguous run of elements
 * counts as one wider element. Kernels assume no alignment and run on any worker.
 */
#include "config.h"

#include "runtime/kernels/copy.h"

#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/loop.h"
#include "runtime/kernels/shaders/generated/spirv.h"
#include "runtime/kernels/turn.h"

#define WIDTH_MAX 16
#define RUN_SHORT 512 /* bytes */
#define RUN_STEP 32
#define LINES_FEW 8
#define BLOCK 16 /* a cache line of f32 in each direction; 2 x 16 lines fit L1 */

struct wide {
    uint64_t half[2];
};

/* ---- runs ------------------------------------------------------------------------------------ */

/* memcpy() of a constant size compiles to one unaligned move. */
#define DEFINE_RUN(name, type)                                                                     \
    static void name(char *dst, int64_t dst_stride, const char *src, int64_t src_stride,           \
                     int64_t n)                                                                    \
    {                                                                                              \
        type value;                                                                                \
        if (src_stride == 0) {                                                                     \
            memcpy(&value, src, sizeof(value));                                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                memcpy(dst + i * dst_stride, &value, sizeof(value));                               \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            memcpy(&value, src + i * src_stride, sizeof(value));                                   \
            memcpy(dst + i * dst_stride, &value, sizeof(value));                                   \
        }                                                                                          \
    }

DEFINE_RUN(run_1, uint8_t)
DEFINE_RUN(run_2, uint16_t)
DEFINE_RUN(run_4, uint32_t)
DEFINE_RUN(run_8, uint64_t)
DEFINE_RUN(run_16, struct wide)

void rt_copy_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n,
                 uint32_t width)
{
    if (dst_stride == width && src_stride == width) {
        memcpy(dst, src, (size_t)n * width);
        return;
    }
    switch (width) {
    case 1:
        run_1(dst, dst_stride, src, src_stride, n);
        break;
    case 2:
        run_2(dst, dst_stride, src, src_stride, n);
        break;
    case 4:
        run_4(dst, dst_stride, src, src_stride, n);
        break;
    case 8:
        run_8(dst, dst_stride, src, src_stride, n);
        break;
    default:
        run_16(dst, dst_stride, src, src_stride, n);
        break;
    }
}

/* Offsets of target and source in this run. */
static void find_sides(const struct hal_args *args, void *sides[2])
{
    const struct rt_copy_constants *c = args->constants;
    bool is_placed = c->steps[0] != 0 || c->steps[1] != 0;
    int64_t place = is_placed ? *(const int64_t *)args->bindings[2] : 0;

    for (uint32_t o = 0; o < 2; o++) {
        sides[o] = (char *)args->bindings[o] + place * c->steps[o];
    }
}

/* Short runs are copied faster than memcpy() can choose how. */
static inline void copy_bytes(char *dst, const char *src, int64_t bytes)
{
    if (bytes > RUN_SHORT || bytes % RUN_STEP != 0) {
        memcpy(dst, src, (size_t)bytes);
        return;
    }
    for (int64_t at = 0; at < bytes; at += RUN_STEP) {
        memcpy(dst + at, src + at, RUN_STEP);
    }
}

/* Runs that are contiguous on both sides, whole lines of them at a time. */
static void copy_lines(struct rt_cursor *cursor, int64_t width)
{
    const struct rt_loop *loop = cursor->loop;
    uint32_t d = loop->rank >= 2 ? loop->rank - 2 : 0;
    int64_t dst_line = loop->strides[0][d], src_line = loop->strides[1][d];
    while (rt_loop_cursor_next(cursor)) {
        char *dst = cursor->ptrs[0];
        const char *src = cursor->ptrs[1];
        int64_t bytes = cursor->count * width;
        for (int64_t more = rt_loop_cursor_lines(cursor); more >= 0; more--) {
            copy_bytes(dst, src, bytes);
            dst += dst_line;
            src += src_line;
        }
    }
}

static void copy_runs(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_copy_constants *c = args->constants;
    struct rt_cursor cursor;
    void *sides[2];

    find_sides(args, sides);
    rt_loop_cursor_init(&cursor, &c->loop, sides, tile.x);
    if (rt_loop_cursor_stride(&cursor, 0) == c->width &&
        rt_loop_cursor_stride(&cursor, 1) == c->width) {
        copy_lines(&cursor, c->width);
        return;
    }
    while (rt_loop_cursor_next(&cursor)) {
        rt_copy_run(cursor.ptrs[0], rt_loop_cursor_stride(&cursor, 0), cursor.ptrs[1],
                    rt_loop_cursor_stride(&cursor, 1), cursor.count, c->width);
    }
}

const struct hal_kernel rt_copy_kernel = {.name = "copy",
                                          .cpu = copy_runs,
                                          .spirv = HAL_SPIRV(strided_copy_spirv),
                                          .variant = RT_COPY_RUNS};

/* ---- transposition --------------------------------------------------------------------------- */

/*
 * A plane of n_i x n_j elements: the target is contiguous along i and steps |dst_j| bytes along j,
 * the source is contiguous along j and steps |src_i| bytes along i.
 */
struct plane {
    char *dst;
    const char *src;
    int64_t n_i, n_j, dst_j, src_i;
};

#define DEFINE_TURN(name, type)                                                                    \
    static void name(struct plane p)                                                               \
    {                                                                                              \
        for (int64_t j = 0; j < p.n_j; j++) {                                                      \
            char *dst = p.dst + j * p.dst_j;                                                       \
            const char *src = p.src + j * (int64_t)sizeof(type);                                   \
            for (int64_t i = 0; i < p.n_i; i++) {                                                  \
                memcpy(dst + i * (int64_t)sizeof(type), src + i * p.src_i, sizeof(type));          \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_TURN(turn_1, uint8_t)
DEFINE_TURN(turn_2, uint16_t)
DEFINE_TURN(turn_4, uint32_t)
DEFINE_TURN(turn_8, uint64_t)
DEFINE_TURN(turn_16, struct wide)

static void turn(struct plane p, uint32_t width)
{
    switch (width) {
    case 1:
        turn_1(p);
        break;
    case 2:
        turn_2(p);
        break;
    case 4:
        turn_4(p);
        break;
    case 8:
        turn_8(p);
        break;
    default:
        turn_16(p);
        break;
    }
}

/* A plane of at most BLOCK x BLOCK elements. */
static void turn_block(struct plane p, uint32_t width)
{
    if (width != 4) {
        turn(p, width);
        return;
    }
    int64_t whole_i = p.n_i & ~INT64_C(3), whole_j = p.n_j & ~INT64_C(3);
    for (int64_t j = 0; j < whole_j; j += 4) {
        for (int64_t i = 0; i < whole_i; i += 4) {
            rt_turn_4x4(p.dst + j * p.dst_j + i * 4, p.dst_j, p.src + i * p.src_i + j * 4, p.src_i);
        }
    }
    if (whole_i < p.n_i) {
        turn_4((struct plane){p.dst + whole_i * 4, p.src + whole_i * p.src_i, p.n_i - whole_i,
                              whole_j, p.dst_j, p.src_i});
    }
    if (whole_j < p.n_j) {
        turn_4((struct plane){p.dst + whole_j * p.dst_j, p.src + whole_j * 4, p.n_i,
                              p.n_j - whole_j, p.dst_j, p.src_i});
    }
}

/* Four pixels of three planes become twelve values, and back. */
static inline void join_3x4(char *dst, const char *src, int64_t src_i)
{
    rt_vec4 r = rt_load_vec4(src), g = rt_load_vec4(src + src_i), b = rt_load_vec4(src + 2 * src_i);
    rt_vec4 rg_low = __builtin_shufflevector(r, g, 0, 4, 1, 5);
    rt_vec4 gb = __builtin_shufflevector(g, b, 1, 5, 2, 6);
    rt_vec4 rg_high = __builtin_shufflevector(r, g, 2, 6, 3, 7);
    rt_vec4 out[3] = {__builtin_shufflevector(rg_low, b, 0, 1, 4, 2),
                      __builtin_shufflevector(gb, rg_high, 0, 1, 4, 5),
                      __builtin_shufflevector(rg_high, b, 6, 2, 3, 7)};
    memcpy(dst, out, sizeof(out));
}

static inline void part_4x3(char *dst, int64_t dst_j, const char *src)
{
    rt_vec4 a = rt_load_vec4(src), b = rt_load_vec4(src + 16), c = rt_load_vec4(src + 32);
    rt_vec4 r_low = __builtin_shufflevector(a, b, 0, 3, 6, 6);
    rt_vec4 g_low = __builtin_shufflevector(a, b, 1, 4, 7, 7);
    rt_vec4 b_high = __builtin_shufflevector(b, c, 1, 1, 4, 7);
    rt_vec4 planes[3] = {__builtin_shufflevector(r_low, c, 0, 1, 2, 5),
                         __builtin_shufflevector(g_low, c, 0, 1, 2, 6),
                         __builtin_shufflevector(a, b_high, 2, 5, 6, 7)};
    memcpy(dst, &planes[0], sizeof(rt_vec4));
    memcpy(dst + dst_j, &planes[1], sizeof(rt_vec4));
    memcpy(dst + 2 * dst_j, &planes[2], sizeof(rt_vec4));
}

/* Images: three planes of 4-byte values are joined into packed pixels, or separated. The rest, at
 * most three pixels, takes the plain path. */
static void turn_pixels(struct plane p)
{
    int64_t done = 0;

    if (p.n_i == 3) {
        for (; done + 4 <= p.n_j; done += 4) {
            join_3x4(p.dst + done * 12, p.src + done * 4, p.src_i);
        }
        p.dst += done * 12;
        p.src += done * 4;
        p.n_j -= done;
    } else {
        for (; done + 4 <= p.n_i; done += 4) {
            part_4x3(p.dst + done * 4, p.dst_j, p.src + done * 12);
        }
        p.dst += done * 4;
        p.src += done * 12;
        p.n_i -= done;
    }
    turn_4(p);
}

/* Joins three planes of bytes to packed pixels. */
static void join_bytes(struct plane p)
{
    const char *r = p.src, *g = r + p.src_i, *b = g + p.src_i;
    char *dst = p.dst;
#pragma GCC unroll 4
    for (int64_t j = 0; j < p.n_j; j++, dst += 3) {
        dst[0] = r[j];
        dst[1] = g[j];
        dst[2] = b[j];
    }
}

static void turn_plane(struct plane p, uint32_t width)
{
    bool is_join = p.n_i == 3 && p.dst_j == 12, is_part = p.n_j == 3 && p.src_i == 12;

    if (width == 1 && p.n_i == 3 && p.dst_j == 3) {
        join_bytes(p);
        return;
    }

    if (width == 4 && (is_join || is_part)) {
        turn_pixels(p);
        return;
    }
    /* When one side is narrower than a vector, whole lines of the other side are faster than
     * blocks. */
    if (p.n_i < 4 || p.n_j < 4) {
        turn(p, width);
        return;
    }
    for (int64_t j = 0; j < p.n_j; j += BLOCK) {
        for (int64_t i = 0; i < p.n_i; i += BLOCK) {
            turn_block((struct plane){p.dst + j * p.dst_j + i * width,
                                      p.src + i * p.src_i + j * width, rt_min(BLOCK, p.n_i - i),
                                      rt_min(BLOCK, p.n_j - j), p.dst_j, p.src_i},
                       width);
        }
    }
}

/* The plane is the two innermost dims j and i; tile z is a range of positions of the other dims. */
static void copy_transpose(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_copy_constants *c = args->constants;
    const struct rt_loop *loop = &c->loop;
    uint32_t i = loop->rank - 1, j = loop->rank - 2;
    int64_t begin_i = tile.x * c->tile_i, begin_j = tile.y * c->tile_j;
    int64_t outer_count = loop->numel / (loop->dims[i] * loop->dims[j]);
    int64_t begin = tile.z * c->tile_outer, end = rt_min(begin + c->tile_outer, outer_count);
    struct plane p = {.n_i = rt_min(c->tile_i, loop->dims[i] - begin_i),
                      .n_j = rt_min(c->tile_j, loop->dims[j] - begin_j),
                      .dst_j = loop->strides[0][j],
                      .src_i = loop->strides[1][i]};
    void *sides[2];

    find_sides(args, sides);
    for (int64_t outer = begin; outer < end; outer++) {
        int64_t dst = loop->offsets[0] + begin_j * p.dst_j + begin_i * c->width;
        int64_t src = loop->offsets[1] + begin_i * p.src_i + begin_j * c->width;
        int64_t rest = outer;
        for (uint32_t d = j; d-- > 0;) {
            int64_t index = rest % loop->dims[d];
            rest /= loop->dims[d];
            dst += index * loop->strides[0][d];
            src += index * loop->strides[1][d];
        }
        p.dst = (char *)sides[0] + dst;
        p.src = (const char *)sides[1] + src;
        turn_plane(p, c->width);
    }
}

static const struct hal_kernel kernel_transpose = {.name = "transpose",
                                                   .cpu = copy_transpose,
                                                   .spirv = HAL_SPIRV(strided_copy_spirv),
                                                   .variant = RT_COPY_TRANSPOSE};

/* ---- recording ------------------------------------------------------------------------------- */

struct rt_copy rt_copy_to(const struct rt_tensor *dst)
{
    struct rt_copy copy = {.rank = dst->rank};
    for (uint32_t d = 0; d < dst->rank; d++) {
        copy.dims[d] = dst->dims[d];
        copy.dst[d] = dst->strides[d];
    }
    return copy;
}

void rt_copy_move(struct rt_copy *copy, struct rt_place place, int64_t dst_step, int64_t src_step)
{
    if (!place.is_read) {
        copy->dst_offset += place.known * dst_step;
        copy->src_offset += place.known * src_step;
        return;
    }
    copy->place = place;
    copy->dst_step = dst_step;
    copy->src_step = src_step;
}

bool rt_copy_add_dim(struct rt_copy *copy, int64_t dim, int64_t dst, int64_t src)
{
    if (dim == 1) {
        return true;
    }
    if (copy->rank == SHAPE_RANK_MAX) {
        return false;
    }
    copy->dims[copy->rank] = dim;
    copy->dst[copy->rank] = dst;
    copy->src[copy->rank++] = src;
    return true;
}

/* Are all positions of the box inside |tensor|? */
static bool is_inside(const struct rt_tensor *tensor, const struct rt_copy *copy,
                      const int64_t *strides, int64_t offset)
{
    int64_t low = offset, high = offset;
    for (uint32_t d = 0; d < copy->rank; d++) {
        int64_t reach = (copy->dims[d] - 1) * strides[d];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    return low >= 0 && high < tensor->numel;
}

/* Makes one wider element of a short contiguous run. */
static void widen(struct rt_copy_constants *c)
{
    struct rt_loop *loop = &c->loop;
    uint32_t last = loop->rank - 1;
    int64_t bytes = c->width * loop->dims[last];

    if (last > 0 && loop->strides[0][last] == c->width && loop->strides[1][last] == c->width &&
        bytes <= WIDTH_MAX && (bytes & (bytes - 1)) == 0) {
        loop->numel /= loop->dims[last];
        loop->rank = last;
        c->width = (uint32_t)bytes;
    }
}

/* Moves the dim along which the source is contiguous next to the innermost dim, if there is such a
 * dim. */
static bool find_plane(struct rt_copy_constants *c)
{
    struct rt_loop *loop = &c->loop;
    uint32_t last = loop->rank - 1;

    if (loop->strides[0][last] != c->width) {
        return false;
    }
    for (uint32_t j = 0; j < last; j++) {
        if (loop->strides[1][j] != c->width) {
            continue;
        }
        int64_t dim = loop->dims[j], dst = loop->strides[0][j], src = loop->strides[1][j];
        for (uint32_t d = j; d + 1 < last; d++) {
            loop->dims[d] = loop->dims[d + 1];
            loop->strides[0][d] = loop->strides[0][d + 1];
            loop->strides[1][d] = loop->strides[1][d + 1];
        }
        loop->dims[last - 1] = dim;
        loop->strides[0][last - 1] = dst;
        loop->strides[1][last - 1] = src;
        return true;
    }
    return false;
}

/* A cursor takes longer to find short runs than they take to copy. Where only a few of them are
 * neighbours in the target, the next dim gives longer lines of them. */
static void lengthen_lines(struct rt_loop *loop, uint32_t width)
{
    uint32_t last = loop->rank - 1;
    if (last < 2 || loop->strides[0][last] != width || loop->strides[1][last] != width) {
        return;
    }
    bool is_short = loop->dims[last] * width <= RUN_SHORT && loop->dims[last - 1] < LINES_FEW;
    if (is_short && loop->dims[last - 2] > loop->dims[last - 1]) {
        rt_loop_swap(loop, last - 2, last - 1);
    }
}

static uint32_t tiles_of(int64_t n, int64_t tile)
{
    int64_t tiles = (n - 1) / tile + 1;
    must(tiles <= UINT32_MAX);
    return (uint32_t)tiles;
}

/* Sides of a near-square tile: lines of blocks that stay in cache; for lanes, the elements that are
 * read together. */
static int64_t side_of(const struct rt_machine *machine)
{
    return machine->lanes > 1 ? 8 : 8 * BLOCK;
}

/* Cuts near-square tiles: longer ones where the other dim is short, several planes where both dims
 * are short. */
static void tile_planes(struct rt_copy_constants *c, int64_t positions, int64_t side,
                        struct hal_dispatch *dispatch)
{
    const struct rt_loop *loop = &c->loop;
    int64_t n_i = loop->dims[loop->rank - 1], n_j = loop->dims[loop->rank - 2];

    c->tile_i = rt_min(n_i, positions / rt_min(n_j, side));
    if (n_j > side) {
        c->tile_i = rt_min(n_i, side);
    }
    c->tile_j = rt_min(n_j, positions / c->tile_i);
    c->tile_outer = positions / (c->tile_i * c->tile_j);
    dispatch->kernel = &kernel_transpose;
    dispatch->grid[0] = tiles_of(n_i, c->tile_i);
    dispatch->grid[1] = tiles_of(n_j, c->tile_j);
    dispatch->grid[2] = tiles_of(loop->numel / (n_i * n_j), c->tile_outer);
}

static void describe(const struct rt_copy *copy, const struct rt_machine *machine,
                     struct rt_copy_constants *c, struct hal_dispatch *dispatch)
{
    int64_t dst_strides[SHAPE_RANK_MAX], src_strides[SHAPE_RANK_MAX];

    for (uint32_t d = 0; d < copy->rank; d++) {
        dst_strides[d] = copy->dst[d] * c->width;
        src_strides[d] = copy->src[d] * c->width;
    }
    rt_loop_add_strides(&c->loop, dst_strides, copy->dst_offset * c->width);
    rt_loop_add_strides(&c->loop, src_strides, copy->src_offset * c->width);
    c->steps[0] = copy->dst_step * c->width;
    c->steps[1] = copy->src_step * c->width;
    dispatch->cost = (uint64_t)(c->loop.numel * c->width) / 5;
    rt_loop_close(&c->loop, 1);
    widen(c);
    int64_t bytes = rt_cut_units(machine, RT_WORK_COPY, c->loop.numel * c->width, c->width);
    if (find_plane(c)) {
        tile_planes(c, bytes / c->width, side_of(machine), dispatch);
    } else {
        if (machine->lanes == 1) {
            lengthen_lines(&c->loop, c->width);
        }
        c->loop.tile = bytes / c->width;
        dispatch->kernel = &rt_copy_kernel;
        dispatch->grid[0] = rt_loop_tiles(&c->loop);
        dispatch->grid[1] = dispatch->grid[2] = 1;
    }
}

/* Fills |dispatch| and its constants; false when there is nothing to copy. */
static bool make_dispatch(const struct rt_copy *copy, uint32_t width,
                          const struct rt_machine *machine, const struct hal_binding *bindings,
                          struct rt_copy_constants *c, struct hal_dispatch *dispatch)
{
    *c = (struct rt_copy_constants){.width = width};
    *dispatch = (struct hal_dispatch){
        .constants = c,
        .constants_bytes = sizeof(*c),
        .bindings = bindings,
        .binding_count = copy->dst_step != 0 || copy->src_step != 0 ? 3 : 2,
    };
    rt_loop_init(&c->loop, (uint8_t)copy->rank, copy->dims);
    if (c->loop.numel == 0) {
        return false;
    }
    describe(copy, machine, c, dispatch);
    return true;
}

enum status rt_copy_record(struct hal_command *command, const struct rt_copy *copy, uint32_t width,
                           const struct rt_machine *machine, const struct hal_binding bindings[2],
                           struct error *err)
{
    struct rt_copy_constants c;
    struct hal_dispatch dispatch;
    return make_dispatch(copy, width, machine, bindings, &c, &dispatch)
               ? hal_command_dispatch(command, &dispatch, err)
               : ST_OK;
}

static bool is_empty(const struct rt_copy *copy)
{
    for (uint32_t d = 0; d < copy->rank; d++) {
        if (copy->dims[d] == 0) {
            return true;
        }
    }
    return false;
}

enum status rt_copy_emit(struct rt_emit *emit, const struct rt_tensor *dst,
                         const struct rt_tensor *src, const struct rt_copy *copy, struct error *err)
{
    must(dtype_bytes(src->dtype) == dtype_bytes(dst->dtype));
    must(is_empty(copy) || (is_inside(dst, copy, copy->dst, copy->dst_offset) &&
                            is_inside(src, copy, copy->src, copy->src_offset)));
    const struct hal_binding bindings[] = {dst->binding, src->binding,
                                           rt_emit_word(emit, copy->place)};
    uint32_t width = (uint32_t)dtype_bytes(dst->dtype);
    struct rt_copy_constants c;
    struct hal_dispatch dispatch;
    const struct rt_machine *machine = rt_emit_machine(emit, &rt_copy_kernel);
    return make_dispatch(copy, width, machine, bindings, &c, &dispatch)
               ? rt_emit_dispatch(emit, &dispatch, err)
               : ST_OK;
}
