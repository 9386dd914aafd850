/* SPDX-License-Identifier: MIT */
/*
 * Quantisation that no kernel call of a program reaches: dynamic rows, groups of weights, packed
 * integers of 4 bits. Also cases that the golden cases leave out: channels innermost in memory, and
 * scales that are NaN or infinite.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "hal/cpu/uk.h"
#include "runtime/ops/op.h"
#include "tests/hal/levels.h"
#include "tests/unit/ops_call.h"

static struct rt_emit call;
static struct error err;

/* ---- dynamic quantisation ------------------------------------------------------------------ */

struct dynamic {
    float scale;
    int32_t zero_point;
};

/* As in the reference, with its order of roundings. */
static struct dynamic choose(const float *x, int64_t n)
{
    float min = 0, max = 0;
    for (int64_t i = 0; i < n; i++) {
        min = fminf(min, x[i]);
        max = fmaxf(max, x[i]);
    }
    float scale = min == max ? 1.0f : 255.0f / (max - min);
    float low = min * scale, high = max * scale;
    float zero = -128.0f + low + (127.0f + high) > 0 ? -128.0f - low : 127.0f - high;
    zero = fminf(fmaxf(zero, -128.0f), 127.0f);
    return (struct dynamic){scale, (int32_t)nearbyintf(zero)};
}

static void check_dynamic(const float *x, int64_t rows, int64_t length, const int8_t *q,
                          const float *scales, const int32_t *zero_points)
{
    for (int64_t r = 0; r < rows; r++) {
        struct dynamic d = choose(x + r * length, length);
        assert_true(scales[r] == 1.0f / d.scale);
        assert_int_equal(zero_points[r], d.zero_point);
        for (int64_t i = 0; i < length; i++) {
            float want = nearbyintf(x[r * length + i] * d.scale) + (float)d.zero_point;
            want = fminf(fmaxf(want, -128.0f), 127.0f);
            assert_int_equal(q[r * length + i], (int)want);
        }
    }
}

static void test_dynamic(void **state)
{
    enum { ROWS = 6, LENGTH = 1037 };
    static float x[ROWS * LENGTH], scales[ROWS];
    static int8_t q[ROWS * LENGTH];
    static int32_t zero_points[ROWS];
    static const float spreads[ROWS] = {1, 1e-6f, 1e6f, 0, 3, 3},
                       shifts[ROWS] = {0, 0, 0, 0, 9, -9};
    (void)state;

    for (int i = 0; i < ROWS * LENGTH; i++) {
        float v = sinf((float)(i * i % 7919));
        x[i] = v * spreads[i / LENGTH] + shifts[i / LENGTH];
    }
    for (int trailing = 1; trailing <= 2; trailing++) {
        int64_t rows = trailing == 1 ? ROWS : 2, length = ROWS * LENGTH / rows;
        call_init(&call, rt_ops_quant, "quantize_dynamic");
        call_arg(&call, call_tensor(&call, DT_F32, 3, INTS(2, 3, LENGTH), x));
        call_arg_int(&call, trailing);
        call_out(&call, call_tensor(&call, DT_I8, 3, INTS(2, 3, LENGTH), q));
        call_out(&call, call_tensor(&call, DT_F32, 1, &rows, scales));
        call_out(&call, call_tensor(&call, DT_I32, 1, &rows, zero_points));
        assert_int_equal(call_run(&call, &err), ST_OK);
        check_dynamic(x, rows, length, q, scales, zero_points);
    }
}

/* ---- weights ------------------------------------------------------------------------------- */

static void test_groups(void **state)
{
    enum { ROWS = 3, LENGTH = 96, GROUP = 32 };
    int8_t w[ROWS * LENGTH];
    uint16_t scales[ROWS * LENGTH / GROUP];
    float y[ROWS * LENGTH];
    (void)state;

    for (int i = 0; i < ROWS * LENGTH; i++) {
        w[i] = (int8_t)(i * 7 % 16 - 8);
    }
    for (int g = 0; g < ROWS * LENGTH / GROUP; g++) {
        scales[g] = (uint16_t)(0x3f80 + 8 * g); /* bf16 from 1 on, in steps of 1/16 */
    }
    call_init(&call, rt_ops_quant, "dequantize_groups");
    call_arg(&call, call_tensor(&call, DT_I8, 2, INTS(ROWS, LENGTH), w));
    call_arg(&call, call_tensor(&call, DT_BF16, 2, INTS(ROWS, LENGTH / GROUP), scales));
    call_arg_int(&call, GROUP);
    call_out(&call, call_tensor(&call, DT_F32, 2, INTS(ROWS, LENGTH), y));
    assert_int_equal(call_run(&call, &err), ST_OK);
    for (int i = 0; i < ROWS * LENGTH; i++) {
        assert_true(y[i] == (float)w[i] * (1.0f + (float)(i / GROUP) / 16));
    }
}

static void test_int4(void **state)
{
    static const uint8_t bytes[6] = {0x10, 0x32, 0x04, 0xfe, 0xdc, 0x0b};
    static const int8_t low_first[10] = {-8, -7, -6, -5, -4, 6, 7, 4, 5, 3};
    static const int8_t high_first[10] = {-7, -8, -5, -6, -8, 7, 6, 5, 4, -8};
    int8_t q[10];
    (void)state;

    for (int first = 0; first < 2; first++) {
        call_init(&call, rt_ops_quant, "unpack_int4");
        call_arg(&call, call_tensor(&call, DT_U8, 2, INTS(2, 3), (void *)(uintptr_t)bytes));
        call_arg_int(&call, 5);
        call_arg_int(&call, first);
        call_out(&call, call_tensor(&call, DT_I8, 2, INTS(2, 5), q));
        assert_int_equal(call_run(&call, &err), ST_OK);
        assert_memory_equal(q, first ? high_first : low_first, sizeof(q));
    }
}

/* ---- cases beside the golden cases --------------------------------------------------------- */

/* Channels along dim 1, innermost in memory: neighbouring elements have different scales. */
static void test_channels_last(void **state)
{
    enum { N = 2, C = 700, HW = 6 };
    static float x[N * C * HW], scales[C];
    static int64_t zero_points[C];
    static int8_t q[N * C * HW];
    (void)state;

    for (int i = 0; i < N * C * HW; i++) {
        x[i] = (float)(i % 51) - 25;
    }
    for (int c = 0; c < C; c++) {
        scales[c] = 0.25f * (float)(1 + c % 3);
        zero_points[c] = c % 17 - 8;
    }
    call_init(&call, rt_ops_quant, "quantize_channels");
    call_arg(&call, call_channels_last(&call, DT_F32, INTS(N, C, 2, 3), x));
    call_arg(&call, call_tensor(&call, DT_F32, 1, INTS(C), scales));
    call_arg(&call, call_tensor(&call, DT_I64, 1, INTS(C), zero_points));
    call_arg_int(&call, 1);
    call_arg_int(&call, -100);
    call_arg_int(&call, 100);
    call_arg_int(&call, dtype_infos[DT_I8].executorch);
    call_out(&call, call_channels_last(&call, DT_I8, INTS(N, C, 2, 3), q));
    assert_int_equal(call_run(&call, &err), ST_OK);
    for (int i = 0; i < N * C * HW; i++) {
        float want = nearbyintf(x[i] * (1.0f / scales[i % C])) + (float)zero_points[i % C];
        assert_int_equal(q[i], (int)fminf(fmaxf(want, -100.0f), 100.0f));
    }
}

/* NaN and infinities saturate with every scale, without undefined behaviour. */
static void test_nan_and_infinities(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0.0f, 1e30f, -1e30f, 1, 0};
    static const float scales[] = {1, 0.0f, NAN, INFINITY, 1e-40f};
    static const enum dtype types[] = {DT_I8, DT_U8, DT_I16, DT_U16, DT_I32};
    int64_t q[8];
    (void)state;

    for (size_t s = 0; s < sizeof(scales) / sizeof(scales[0]); s++) {
        for (int t = 0; t < 5; t++) {
            bool has_sign = dtype_infos[types[t]].kind == DTYPE_INT;
            int bits = 8 * (int)dtype_bytes(types[t]);
            int64_t min = has_sign ? -((int64_t)1 << (bits - 1)) : 0;
            call_init(&call, rt_ops_quant, "quantize");
            call_arg(&call, call_tensor(&call, DT_F32, 1, INTS(8), (void *)(uintptr_t)bad));
            call_arg_float(&call, (double)scales[s]);
            call_arg_int(&call, 0);
            call_arg_int(&call, min);
            call_arg_int(&call, min + ((int64_t)1 << bits) - 1);
            call_arg_int(&call, dtype_infos[types[t]].executorch);
            call_out(&call, call_tensor(&call, types[t], 1, INTS(8), q));
            assert_int_equal(call_run(&call, &err), ST_OK);
            int32_t least = (int32_t)min, first = 0;
            memcpy(&first, q, dtype_bytes(types[t]));
            assert_memory_equal(&first, &least, dtype_bytes(types[t])); /* the NaN */
        }
    }
}

/* Each level gives the results of the generic one, tails included. */
static void test_levels(void **state)
{
    float x[77], want_y[77], y[77];
    int32_t want[77], got[77];
    (void)state;

    for (int i = 0; i < 77; i++) {
        x[i] = (float)(i - 30) * 0.375f * (i % 5 == 0 ? 1e6f : 1.0f);
    }
    for (int isa = 1; isa < HAL_CPU_ISA_COUNT; isa++) {
        const struct hal_cpu_uk *uk = hal_cpu_isa_kernels((enum hal_cpu_isa)isa);
        const struct hal_cpu_uk *generic = hal_cpu_isa_kernels(HAL_CPU_GENERIC);
        bool has = has_level((enum hal_cpu_isa)isa);
        for (int t = 0; t < UK_INT_COUNT && has; t++) {
            struct uk_quant p = {0.75f, 5, t == UK_U8 || t == UK_U16 ? 0 : -100, 100};
            for (size_t n = 0; n <= 77; n++) {
                memset(want, 1, sizeof(want));
                memset(got, 1, sizeof(got));
                generic->quantize[t](want, x, &p, n);
                uk->quantize[t](got, x, &p, n);
                assert_memory_equal(got, want, sizeof(want));
                generic->dequantize[t](want_y, want, &p, n);
                uk->dequantize[t](y, want, &p, n);
                assert_memory_equal(y, want_y, n * sizeof(float));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dynamic),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_int4),
        cmocka_unit_test(test_channels_last),
        cmocka_unit_test(test_nan_and_infinities),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
