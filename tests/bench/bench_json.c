/* SPDX-License-Identifier: MIT */
/*
 * Tensors as text, compared with the usual alternatives on the same text in the same run: decoding
 * against cJSON_Parse() and strtof(), printing against snprintf("%.9g"). Each figure is the fastest
 * of ROUNDS runs.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cJSON.h>

#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/tensor_text.h"

#define COUNT (3 * 224 * 224)
#define ROUNDS 25

struct bench {
    struct buf text; /* terminated, for the C library and cJSON */
    struct buf printed;
    float *values, *decoded;
    struct shape shape;
};

typedef bool bench_f(struct bench *bench);

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool decode_ours(struct bench *bench)
{
    struct tensor_nan nan = {.takes_null = false};
    struct error err;
    struct json in;
    struct span array;
    json_init(&in, span_of(bench->text.ptr, bench->text.len - 1));
    return json_array_text(&in, &array, &err) == ST_OK &&
           tensor_text_parse(array, DT_F32, &bench->shape, &nan, bench->decoded,
                             COUNT * sizeof(float), &err) == ST_OK &&
           memcmp(bench->decoded, bench->values, COUNT * sizeof(float)) == 0;
}

static bool decode_cjson(struct bench *bench)
{
    cJSON *tree = cJSON_Parse((const char *)bench->text.ptr);
    bool is_parsed = tree != NULL;
    cJSON_Delete(tree);
    return is_parsed;
}

static bool decode_strtof(struct bench *bench)
{
    char *p = (char *)bench->text.ptr + 1;
    for (int i = 0; i < COUNT; i++) {
        bench->decoded[i] = strtof(p, &p);
        p++;
    }
    return bench->decoded[COUNT - 1] == bench->values[COUNT - 1];
}

static bool print_ours(struct bench *bench)
{
    buf_reset(&bench->printed);
    tensor_text_print(&bench->printed, DT_F32, bench->values, COUNT, NUMBER_NAN_STRING);
    return !buf_failed(&bench->printed);
}

static bool print_snprintf(struct bench *bench)
{
    char text[32];
    buf_reset(&bench->printed);
    for (int i = 0; i < COUNT; i++) {
        int len = snprintf(text, sizeof(text), "%.9g,", (double)bench->values[i]);
        buf_add(&bench->printed, text, (size_t)len);
    }
    return !buf_failed(&bench->printed);
}

enum { DECODE, CJSON, STRTOF, PRINT, SNPRINTF, CONTENDER_COUNT };

static const struct contender {
    const char *name;
    bench_f *run;
} contenders[CONTENDER_COUNT] = {
    [DECODE] = {"decode", decode_ours},
    [CJSON] = {"cJSON_Parse", decode_cjson},
    [STRTOF] = {"strtof loop", decode_strtof},
    [PRINT] = {"print", print_ours},
    [SNPRINTF] = {"snprintf \"%.9g\"", print_snprintf},
};

static double run_once(struct bench *bench, const struct contender *contender)
{
    double start = now_ms();
    if (!contender->run(bench)) {
        fprintf(stderr, "bench_json: %s failed\n", contender->name);
        exit(EXIT_FAILURE);
    }
    return now_ms() - start;
}

/* The contenders take turns, so that a busy moment of the machine affects all of them. */
static void compare(struct bench *bench)
{
    double best[CONTENDER_COUNT];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CONTENDER_COUNT; i++) {
            double spent = run_once(bench, &contenders[i]);
            best[i] = round == 0 || spent < best[i] ? spent : best[i];
        }
    }
    double megabytes = (double)bench->text.len / 1e6;
    printf("  %d numbers, %.2f MB\n", COUNT, megabytes);
    for (int i = 0; i < CONTENDER_COUNT; i++) {
        int ours = i < PRINT ? DECODE : PRINT;
        printf("  %-16s %8.2f ms %7.2f GB/s %7.1f ns a number %6.1f times %s\n", contenders[i].name,
               best[i], megabytes / best[i], best[i] * 1e6 / COUNT, best[i] / best[ours],
               contenders[ours].name);
    }
}

/* An image as clients send it: numbers with few decimals, or with all bits of a float. */
static void fill(struct bench *bench, bool is_rounded)
{
    uint32_t state = 1;
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525 + 1013904223;
        float value = (float)(state >> 8) * 0x1p-22f - 2;
        bench->values[i] = is_rounded ? (float)(int)(value * 1e4f) / 1e4f : value;
    }
    buf_reset(&bench->text);
    tensor_text_print(&bench->text, DT_F32, bench->values, COUNT, NUMBER_NAN_STRING);
    buf_add_char(&bench->text, '\0');
}

int main(void)
{
    struct bench bench = {.shape = {.rank = 1, .dims = {COUNT}}};
    buf_init(&bench.text, (size_t)1 << 26);
    buf_init(&bench.printed, (size_t)1 << 26);
    bench.values = malloc(COUNT * sizeof(float));
    bench.decoded = malloc(COUNT * sizeof(float));
    if (!bench.values || !bench.decoded) {
        return EXIT_FAILURE;
    }
    puts("1x3x224x224 FP32, all digits");
    fill(&bench, false);
    compare(&bench);
    puts("1x3x224x224 FP32, four decimals");
    fill(&bench, true);
    compare(&bench);
    free(bench.values);
    free(bench.decoded);
    buf_fini(&bench.text);
    buf_fini(&bench.printed);
    return EXIT_SUCCESS;
}
