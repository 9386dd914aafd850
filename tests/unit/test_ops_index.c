/* SPDX-License-Identifier: MIT */
/*
 * Compares indexing with loops over single elements. The indexed dims, the broadcast of the index
 * tensors and the places of their dims are random. Some indices are outside of the table, which is
 * a fault.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#include "tests/unit/ops_call.h"

#define ROOM 8192
#define RANK 4

static struct rt_emit call;
static struct error err;
static int32_t table[ROOM], list[ROOM], want[ROOM], got[ROOM];
static int64_t places[RANK][ROOM];
static int32_t places_32[ROOM];

/* One random case: a table, index tensors for some of its dims, and the dims of the result. */
struct scene {
    int64_t dims[RANK];
    bool is_indexed[RANK];
    int64_t index_dims[2];
    int64_t own_dims[RANK][2]; /* of each index tensor */
    uint8_t index_rank, result_rank;
    int64_t result[RANK + 2];
    uint8_t first; /* of the index dims in the result */
};

static void draw_tensors(struct scene *s)
{
    bool is_wrong = draw(4) == 0;

    for (uint8_t d = 0; d < RANK; d++) {
        s->dims[d] = 1 + draw(5);
        s->is_indexed[d] = draw(2) == 0;
        for (uint8_t i = 0; i < s->index_rank; i++) {
            s->own_dims[d][i] = draw(4) == 0 ? 1 : s->index_dims[i];
        }
        for (int64_t i = 0; i < 64; i++) {
            bool is_outside = is_wrong && draw(12) == 0;
            int64_t outside = draw(2) ? s->dims[d] + draw(3) : -s->dims[d] - 1 - draw(3);
            places[d][i] = is_outside ? outside : draw(2 * s->dims[d]) - s->dims[d];
        }
    }
}

/* All index tensors may have a dim of 1. Then the result has it too. */
static void broadcast(struct scene *s)
{
    for (uint8_t i = 0; i < s->index_rank; i++) {
        s->index_dims[i] = 1;
        for (uint8_t d = 0; d < RANK; d++) {
            if (s->is_indexed[d] && s->own_dims[d][i] > s->index_dims[i]) {
                s->index_dims[i] = s->own_dims[d][i];
            }
        }
    }
}

static bool draw_scene(struct scene *s)
{
    uint8_t count = 0, first = RANK, last = 0;

    *s = (struct scene){.index_dims = {1 + draw(4), 1 + draw(4)}, .index_rank = (uint8_t)draw(3)};
    draw_tensors(s);
    broadcast(s);
    for (uint8_t d = 0; d < RANK; d++) {
        if (s->is_indexed[d]) {
            first = count++ ? first : d;
            last = d;
        }
    }
    if (count == 0) {
        return false;
    }
    s->first = last - first == count - 1 ? first : 0;
    for (uint8_t d = 0, rest = 0; d <= RANK; d++) {
        if (rest == s->first && s->result_rank == rest) {
            for (uint8_t i = 0; i < s->index_rank; i++) {
                s->result[s->result_rank++] = s->index_dims[i];
            }
        }
        if (d < RANK && !s->is_indexed[d]) {
            s->result[s->result_rank++] = s->dims[d];
            rest++;
        }
    }
    return true;
}

/* The position in the table of element |at| of the result; -1: outside of the table. */
static int64_t find(const struct scene *s, int64_t at)
{
    int64_t index[RANK + 2], offset = 0;
    uint8_t rest = 0;

    for (uint8_t d = s->result_rank; d-- > 0;) {
        index[d] = at % s->result[d];
        at /= s->result[d];
    }
    for (uint8_t d = 0; d < RANK; d++) {
        int64_t place = 0;
        if (s->is_indexed[d]) {
            for (uint8_t i = 0; i < s->index_rank; i++) {
                int64_t own = s->own_dims[d][i] == 1 ? 0 : index[s->first + i];
                place = place * s->own_dims[d][i] + own;
            }
            place = places[d][place];
            place = place < 0 ? place + s->dims[d] : place;
            if (place < 0 || place >= s->dims[d]) {
                return -1;
            }
        } else {
            place = index[rest < s->first ? rest : rest + s->index_rank];
            rest++;
        }
        offset = offset * s->dims[d] + place;
    }
    return offset;
}

static int64_t result_count(const struct scene *s)
{
    int64_t count = 1;
    for (uint8_t d = 0; d < s->result_rank; d++) {
        count *= s->result[d];
    }
    return count;
}

static void begin(const struct scene *s, const char *name)
{
    call_init(&call, rt_ops_index, name);
    for (int32_t i = 0; i < ROOM; i++) {
        table[i] = i + 1;
        list[i] = -i - 1;
        got[i] = want[i] = 77;
    }
    call_arg(&call, call_tensor(&call, DT_I32, RANK, s->dims, table));
}

/* Checks the outcome of the call: a fault if |is_wrong|, otherwise the expected elements. */
static void check_run(bool is_wrong, const char *text, const int32_t *to, size_t bytes)
{
    if (is_wrong) {
        assert_fails(err, call_run(&call, &err), ST_INVALID, text);
    } else {
        assert_ok(err, call_run(&call, &err));
        assert_memory_equal(to, want, bytes);
    }
}

/* A leading dim of 1 may be missing, as long as one tensor has all index dims. */
static void add_indices(const struct scene *s)
{
    bool is_whole = false;

    for (uint8_t d = 0; d < RANK; d++) {
        bool may_skip = is_whole && s->index_rank > 0 && s->own_dims[d][0] == 1;
        uint8_t skip = may_skip ? (uint8_t)draw(2) : 0;
        struct rt_tensor t =
            call_tensor(&call, DT_I64, s->index_rank - skip, s->own_dims[d] + skip, places[d]);
        call_item(&call, s->is_indexed[d] ? &t : NULL);
        is_whole = is_whole || s->is_indexed[d];
    }
    call_arg_items(&call);
}

static void test_take(void **ctx)
{
    struct scene s;

    (void)ctx;
    for (int round = 0; round < 3000; round++) {
        if (!draw_scene(&s)) {
            continue;
        }
        begin(&s, "index");
        add_indices(&s);
        call_out(&call, call_tensor(&call, DT_I32, s.result_rank, s.result, got));
        bool is_wrong = false;
        for (int64_t i = 0; i < result_count(&s); i++) {
            int64_t from = find(&s, i);
            is_wrong |= from < 0;
            want[i] = from < 0 ? 0 : table[from];
        }
        check_run(is_wrong, "index: an index is out of range", got, sizeof(got));
    }
}

/* The value for element |at| of the result, if dims of the values may be 1. */
static int64_t value_of(const struct scene *s, const int64_t *dims, uint8_t skip, int64_t at)
{
    int64_t index[RANK + 2], place = 0;

    for (uint8_t d = s->result_rank; d-- > 0;) {
        index[d] = at % s->result[d];
        at /= s->result[d];
    }
    for (uint8_t d = skip; d < s->result_rank; d++) {
        place = place * dims[d] + (dims[d] == 1 ? 0 : index[d]);
    }
    return place;
}

/* Puts elements one by one in the order of the result. Of several values for one place the last one
 * stays, or all are added. */
static void test_put(void **ctx)
{
    struct scene s;

    (void)ctx;
    for (int round = 0; round < 3000; round++) {
        bool adds = draw(2), is_in_place = draw(2);
        int64_t dims[RANK + 2];
        if (!draw_scene(&s)) {
            continue;
        }
        for (uint8_t d = 0; d < s.result_rank; d++) {
            dims[d] = draw(4) == 0 ? 1 : s.result[d];
        }
        uint8_t skip = s.result_rank > 0 && dims[0] == 1;
        begin(&s, "index_put");
        add_indices(&s);
        call_arg(&call, call_tensor(&call, DT_I32, s.result_rank - skip, dims + skip, list));
        call_arg_bool(&call, adds);
        int32_t *to = is_in_place ? table : got;
        call_out(&call, call_tensor(&call, DT_I32, RANK, s.dims, to));
        size_t bytes = call.outs[0].bytes;
        bool is_wrong = false;
        memcpy(want, table, bytes);
        for (int64_t i = 0; i < result_count(&s); i++) {
            int64_t at = find(&s, i);
            is_wrong |= at < 0;
            if (at >= 0) {
                want[at] = list[value_of(&s, dims, skip, i)] + (adds ? want[at] : 0);
            }
        }
        check_run(is_wrong, "index_put: an index is out of range", to, bytes);
    }
}

static void test_embedding(void **ctx)
{
    static const int64_t dims[] = {10, 300}, shape[] = {2, 3}, result[] = {2, 3, 300};
    static const int32_t rows[] = {9, 0, 4, 4, 1, 8};

    (void)ctx;
    memcpy(places_32, rows, sizeof(rows));
    begin(&(struct scene){.dims = {1, 1, 1, 1}}, "embedding");
    call.arg_count = 0;
    call_arg(&call, call_tensor(&call, DT_I32, 2, dims, table));
    call_arg(&call, call_tensor(&call, DT_I32, 2, shape, places_32));
    call_out(&call, call_tensor(&call, DT_I32, 3, result, got));
    assert_ok(err, call_run(&call, &err));
    for (int32_t i = 0; i < 1800; i++) {
        assert_int_equal(got[i], rows[i / 300] * 300 + i % 300 + 1);
    }
    for (int32_t wrong = -1; wrong <= 10; wrong += 11) {
        places_32[5] = wrong; /* unlike index, embedding has no negative indices */
        char text[80];
        snprintf(text, sizeof(text), "embedding: an index is out of range: got %d, expected 0 to 9",
                 wrong);
        assert_fails(err, call_run(&call, &err), ST_INVALID, text);
        assert_ptr_equal(call.fault.number.at, &places_32[5]);
    }
}

/* Each half type adds in float; bools are or-ed; bytes wrap. */
static void test_put_adds_in_its_type(void **ctx)
{
    static const int64_t one[] = {1}, two[] = {2};
    static struct {
        enum dtype dtype;
        uint16_t table, value, sum;
    } cases[] = {
        {DT_F16, 0x3c00, 0x1000, 0x3c00}, /* 1 + 2^-11 twice, rounded each time */
        {DT_BF16, 0x3f80, 0x3f80, 0x4040},
        {DT_BOOL, 0, 1, 1},
        {DT_U8, 200, 100, 400 & 255},
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint16_t result = 0, values[] = {cases[i].value, cases[i].value};
        if (dtype_bytes(cases[i].dtype) == 1) {
            values[0] |= (uint16_t)(cases[i].value << 8);
        }
        places[0][0] = places[0][1] = 0;
        call_init(&call, rt_ops_index, "index_put");
        call_arg(&call, call_tensor(&call, cases[i].dtype, 1, one, &cases[i].table));
        struct rt_tensor index = call_tensor(&call, DT_I64, 1, two, places[0]);
        call_item(&call, &index);
        call_arg_items(&call);
        call_arg(&call, call_tensor(&call, cases[i].dtype, 1, two, values));
        call_arg_bool(&call, true);
        call_out(&call, call_tensor(&call, cases[i].dtype, 1, one, &result));
        assert_ok(err, call_run(&call, &err));
        assert_int_equal(result, cases[i].sum);
    }
}

/* ---- along a dim ----------------------------------------------------------------------------- */

struct along {
    int64_t dims[3], index[3], list[3];
    uint8_t dim;
};

static void draw_along(struct along *a, bool is_scatter)
{
    bool is_wrong = draw(4) == 0;

    a->dim = (uint8_t)draw(3);
    for (uint8_t d = 0; d < 3; d++) {
        a->dims[d] = 1 + draw(7);
        a->index[d] = d == a->dim ? draw(9) : 1 + draw(a->dims[d]);
        a->list[d] = a->index[d] + (is_scatter ? draw(3) : 0);
    }
    for (int64_t i = 0; i < 512; i++) {
        bool is_outside = is_wrong && draw(10) == 0;
        places[0][i] = is_outside ? -1 - draw(3) + draw(2) * 20 : draw(a->dims[a->dim]);
        places_32[i] = (int32_t)places[0][i];
    }
}

/* For element |at| of the index: its position in the table (-1: outside) and in the list. */
static int64_t place_along(const struct along *a, int64_t at, int64_t *in_list)
{
    int64_t i[3] = {at / (a->index[1] * a->index[2]), at / a->index[2] % a->index[1],
                    at % a->index[2]};
    int64_t place = places[0][at];

    *in_list = (i[0] * a->list[1] + i[1]) * a->list[2] + i[2];
    i[a->dim] = place;
    bool is_inside = place >= 0 && place < a->dims[a->dim];
    return is_inside ? (i[0] * a->dims[1] + i[1]) * a->dims[2] + i[2] : -1;
}

static void call_along(const char *name, const struct along *a)
{
    bool is_32 = draw(2);

    call_init(&call, rt_ops_gather, name);
    for (int32_t i = 0; i < ROOM; i++) {
        table[i] = i + 1;
        list[i] = -i - 1;
        got[i] = want[i] = 77;
    }
    call_arg(&call, call_tensor(&call, DT_I32, 3, a->dims, table));
    call_arg_int(&call, a->dim - 3);
    call_arg(&call, call_tensor(&call, is_32 ? DT_I32 : DT_I64, 3, a->index,
                                is_32 ? (void *)places_32 : (void *)places[0]));
}

static void test_gather(void **ctx)
{
    struct along a;
    int64_t in_list;

    (void)ctx;
    for (int round = 0; round < 1000; round++) {
        draw_along(&a, false);
        call_along("gather", &a);
        call_out(&call, call_tensor(&call, DT_I32, 3, a.index, got));
        bool is_wrong = false;
        for (int64_t i = 0; i < a.index[0] * a.index[1] * a.index[2]; i++) {
            int64_t from = place_along(&a, i, &in_list);
            is_wrong |= from < 0;
            want[i] = from < 0 ? 0 : table[from];
        }
        check_run(is_wrong, "gather: an index is out of range", got, sizeof(got));
    }
}

static void test_scatter(void **ctx)
{
    static const char *const names[] = {"scatter", "scatter_value", "scatter_add"};
    struct along a;
    int64_t in_list;

    (void)ctx;
    for (int round = 0; round < 3000; round++) {
        const char *name = names[round % 3];
        bool is_value = round % 3 == 1, adds = round % 3 == 2;
        draw_along(&a, true);
        call_along(name, &a);
        if (is_value) {
            call_arg_float(&call, 5);
        } else {
            call_arg(&call, call_tensor(&call, DT_I32, 3, a.list, list));
        }
        int32_t *to = draw(2) ? table : got;
        call_out(&call, call_tensor(&call, DT_I32, 3, a.dims, to));
        size_t bytes = call.outs[0].bytes;
        bool is_wrong = false;
        memcpy(want, table, bytes);
        for (int64_t i = 0; i < a.index[0] * a.index[1] * a.index[2]; i++) {
            int64_t at = place_along(&a, i, &in_list);
            is_wrong |= at < 0;
            if (at >= 0) {
                want[at] = is_value ? 5 : list[in_list] + (adds ? want[at] : 0);
            }
        }
        check_run(is_wrong, "an index is out of range", to, bytes);
    }
}

static void test_sizes_are_checked(void **ctx)
{
    struct along a = {.dims = {2, 3, 4}, .index = {2, 3, 5}, .dim = 1};

    (void)ctx;
    call_along("gather", &a);
    call_out(&call, call_tensor(&call, DT_I32, 3, a.index, got));
    assert_fails(err, call_run(&call, &err), ST_INVALID,
                 "the index has size 5 along dim 2, expected at most 4");
}

/* Tensors without elements, with a dim of 0 beside other dims. */
static void test_select_of_nothing(void **state)
{
    uint8_t mask[2] = {1, 1}, self[1], out[1];
    int64_t count = -1;
    (void)state;
    call_init(&call, rt_ops_extent, "masked_select");
    call_arg(&call, call_tensor(&call, DT_I8, 1, INTS(0), self));
    call_arg(&call, call_tensor(&call, DT_BOOL, 2, INTS(2, 1), mask));
    call_out(&call, call_tensor(&call, DT_I8, 1, INTS(0), out));
    call_out(&call, call_tensor(&call, DT_I64, 0, NULL, &count));
    assert_ok(err, call_run(&call, &err));
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_put_adds_in_its_type),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_sizes_are_checked),
        cmocka_unit_test(test_select_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
