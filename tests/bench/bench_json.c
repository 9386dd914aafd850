/* SPDX-License-Identifier: MIT */
/*
 * Tensor text against what one would reach for otherwise, on the same text in the same run:
 * decoding against cJSON_Parse() and strtof(), printing against snprintf("%.9g"). Each figure is
 * the fastest of ROUNDS runs.
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
#define ROUNDS 15

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
    struct error err;
    struct json in;
    struct span array;
    json_init(&in, span_of(bench->text.ptr, bench->text.len - 1));
    return json_array_text(&in, &array, &err) == ST_OK &&
           tensor_text_parse(array, DT_F32, &bench->shape, bench->decoded, COUNT * sizeof(float),
                             &err) == ST_OK &&
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
    tensor_text_print(&bench->printed, DT_F32, bench->values, COUNT);
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

/* Milliseconds of the fastest round. */
static double measure(struct bench *bench, const char *name, bench_f *run)
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_ms();
        if (!run(bench)) {
            fprintf(stderr, "bench_json: %s failed\n", name);
            exit(EXIT_FAILURE);
        }
        double spent = now_ms() - start;
        best = spent < best ? spent : best;
    }
    return best;
}

static void compare(struct bench *bench)
{
    double megabytes = (double)bench->text.len / 1e6;
    double ours = measure(bench, "decode", decode_ours);
    double cjson = measure(bench, "cJSON_Parse", decode_cjson);
    double by_strtof = measure(bench, "strtof", decode_strtof);
    double print = measure(bench, "print", print_ours);
    double by_snprintf = measure(bench, "snprintf", print_snprintf);
    printf("  text                 %8.2f MB, %d numbers\n", megabytes, COUNT);
    printf("  decode               %8.2f ms  %6.2f GB/s\n", ours, megabytes / ours);
    printf("  cJSON_Parse          %8.2f ms  %6.1f times decode\n", cjson, cjson / ours);
    printf("  strtof loop          %8.2f ms  %6.1f times decode\n", by_strtof, by_strtof / ours);
    printf("  print                %8.2f ms  %6.1f ns a number\n", print, print * 1e6 / COUNT);
    printf("  snprintf \"%%.9g\"      %8.2f ms  %6.1f times print\n", by_snprintf,
           by_snprintf / print);
}

/* An image as clients send it: values of a known number of decimals, or every bit of a float. */
static void fill(struct bench *bench, bool is_rounded)
{
    uint32_t state = 1;
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525 + 1013904223;
        float value = (float)(state >> 8) * 0x1p-22f - 2;
        bench->values[i] = is_rounded ? (float)(int)(value * 1e4f) / 1e4f : value;
    }
    buf_reset(&bench->text);
    tensor_text_print(&bench->text, DT_F32, bench->values, COUNT);
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
