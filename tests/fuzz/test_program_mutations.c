/* SPDX-License-Identifier: MIT */
/*
 * Real programs with numbers in their tables exchanged: attributes, sizes, element types, indices,
 * list lengths. What still parses is compiled and called; it is refused with a reason or computes
 * something. Crashes and reads of the wrong memory are the sanitizers' to find; the file that did
 * it stays behind.
 *
 *     test_program_mutations [ROUNDS [SEED [PREFIX]]]
 *
 * damages only the programs whose names begin with PREFIX, "xnn_" for one.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "tests/fuzz/call_program.h"

#define ROUNDS 400
#define DAMAGES_MAX 2
#define FILE_BYTES_MAX (128u << 10)
#define LOAD_SECONDS_MAX 30

/* Of a payload: where its header names itself, and how long header and tables are. */
#define AT_PAYLOAD_MAGIC 4
#define AT_PAYLOAD_TABLES 14
#define PAYLOAD_HEADER_BYTES 32

/* Of the extended header, if there is one, and of the number of bytes of tables in it. */
#define AT_HEADER 8
#define AT_PROGRAM_BYTES 16

/* Small, with many operators, and together with all families, control flow and state. */
static const char *const names[] = {
    "conv_ops",        "linear",     "methods",    "mlp",        "pointwise",
    "pointwise_types", "promotion",  "reduce_ops", "scalars",    "add",
    "view_ops",        "view_types", "zero_size",  "zero_batch", "residual",
    "mobile",          "unet",       "select_ops", "xnn_images", "xnn_numbers",
    "xnn_attention",   "xnn_half",   "xnn_int8",   "xnn_rows",   "xnn_int4",
    "xnn_forms",       "vk_images",  "vk_int4",    "vk_numbers", "vk_tokens",
    "vk_rotations",    "branches",   "loops",      "found",      "sizes",
    "running",         "ledger",     "tally",      "vk_caches",  "xnn_row_images",
};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

/*
 * The program's tables, which come first, those of delegates' payloads in the segments, and all of
 * the segments: weights, scales, what payloads keep behind their tables.
 */
#define AREAS_MAX 16

struct area {
    size_t begin, end;
};

struct program {
    uint8_t bytes[FILE_BYTES_MAX];
    size_t len;
    struct area areas[AREAS_MAX];
    uint32_t area_count;
};

static struct program programs[NAME_COUNT], damaged;
static size_t program_count;
/* A tensor of more tiles than 32 bits count; a step times a stride that wraps. */
static const char *const regressions[] = {"huge_tensor", "slice_step"};
#define REGRESSION_COUNT (sizeof(regressions) / sizeof(regressions[0]))

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint32_t random_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) % limit);
}

static void path_of(char *path, size_t size, const char *folder, const char *name)
{
    const char *top = getenv("top_srcdir");
    snprintf(path, size, "%s/tests/%s/%s.pte", top ? top : ".", folder, name);
}

static void find_payloads(struct program *program, size_t from)
{
    for (size_t at = from; at + PAYLOAD_HEADER_BYTES < program->len; at += 4) {
        const uint8_t *payload = program->bytes + at;
        size_t bytes = PAYLOAD_HEADER_BYTES + load_le32(payload + AT_PAYLOAD_TABLES);
        bool is_payload = memcmp(payload + AT_PAYLOAD_MAGIC, "XH00", 4) == 0 ||
                          memcmp(payload + AT_PAYLOAD_MAGIC, "VH00", 4) == 0;
        if (is_payload && in_range(at, bytes, program->len) && program->area_count < AREAS_MAX) {
            program->areas[program->area_count++] = (struct area){at, at + bytes};
        }
    }
}

static bool read_program(struct program *program, const char *name)
{
    char path[1024];
    path_of(path, sizeof(path), "models", name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    program->len = fread(program->bytes, 1, sizeof(program->bytes), file);
    fclose(file);
    bool has_header = memcmp(program->bytes + AT_HEADER, "eh00", 4) == 0;
    size_t tables =
        has_header ? (size_t)load_le64(program->bytes + AT_PROGRAM_BYTES) : program->len;
    must(tables <= program->len && tables > 128);
    program->areas[0] = (struct area){32, tables - 32};
    program->area_count = 1;
    if (program->len - tables > 8) {
        program->areas[program->area_count++] = (struct area){tables, program->len};
    }
    find_payloads(program, tables);
    return true;
}

/* Those whose names begin with |prefix|; false when one cannot be read, or there is none. */
static bool read_programs(const char *prefix)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (strncmp(names[i], prefix, strlen(prefix)) == 0 &&
            !read_program(&programs[program_count++], names[i])) {
            return false;
        }
    }
    return program_count > 0;
}

static bool write_program(const struct program *program, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        return false;
    }
    bool is_written = fwrite(program->bytes, 1, program->len, file) == program->len;
    return fclose(file) == 0 && is_written;
}

static void put(struct program *program, size_t at, int64_t number, size_t size)
{
    for (size_t i = 0; i < size && at + i < program->len; i++) {
        program->bytes[at + i] = (uint8_t)((uint64_t)number >> (8 * i));
    }
}

/* A place that holds a small number, which offsets into the tables mostly are not. */
static size_t find_number(const struct program *program)
{
    const struct area *area = &program->areas[random_below(program->area_count)];
    size_t at = 0;
    for (int tries = 0; tries < 64; tries++) {
        at = area->begin + (random_below(area->end - area->begin - 4) & ~3u);
        uint32_t number = load_le32(program->bytes + at);
        if (number < 72 || number == UINT32_MAX) {
            break;
        }
    }
    return at;
}

static void damage(struct program *program)
{
    static const int64_t numbers[] = {
        0,
        1,
        2,
        3,
        -1,
        -2,
        -3,
        5,
        7,
        16,
        17,
        33,
        64,
        1000,
        -1000,
        1 << 20,
        INT32_MAX,
        INT32_MIN,
        INT64_MAX,
        INT64_MIN,
        (int64_t)1 << 32,
        (int64_t)1 << 62,
        UINT32_MAX,
        65536,
        100000007,
        -((int64_t)1 << 40),
    };
    int64_t number = numbers[random_below(sizeof(numbers) / sizeof(numbers[0]))];
    size_t at = find_number(program);
    switch (random_below(5)) {
    case 0:
        put(program, at, number, 8);
        break;
    case 1:
        put(program, at, number, 4);
        break;
    case 2: /* an element type, a flag */
        put(program, at + random_below(4), random_below(16), 1);
        break;
    case 3: /* a bit more or less */
        put(program, at, (int64_t)load_le32(program->bytes + at) + random_below(9) - 4, 4);
        break;
    case 4: /* another place's number */
        put(program, at, load_le32(program->bytes + find_number(program)), 4);
        break;
    }
}

/* Milliseconds of a clock that is not set back. */
static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int try_program(struct caller *caller, const char *path, struct call_counts *total)
{
    struct call_counts counts = {0};
    struct error err = {0};
    int64_t begin = now_ms();
    enum status status = call_program(caller, path, &counts, &err);
    int64_t took = now_ms() - begin;
    total->methods += status == ST_OK && counts.runs > 0;
    total->runs += counts.runs;
    if (counts.timeouts > 0 || took > LOAD_SECONDS_MAX * 1000) {
        fprintf(stderr, "%s takes %" PRId64 " ms, %" PRIu32 " calls too long\n", path, took,
                counts.timeouts);
        return 1;
    }
    if ((status != ST_OK || counts.runs == 0) && err.text[0] == '\0') {
        fprintf(stderr, "%s is refused without a reason\n", path);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct caller caller;
    struct error err;
    struct call_counts total = {0};
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS;
    int failures = 0;
    char path[1024];
    if (argc > 2) {
        random_state ^= strtoull(argv[2], NULL, 0) * 0x2545f4914f6cdd1d;
    }
    if (!read_programs(argc > 3 ? argv[3] : "")) {
        return 1;
    }
    must(caller_init(&caller, &err) == ST_OK);
    for (size_t i = 0; i < REGRESSION_COUNT; i++) {
        path_of(path, sizeof(path), "fuzz/corpus/program", regressions[i]);
        failures += try_program(&caller, path, &total);
    }
    total = (struct call_counts){0};
    snprintf(path, sizeof(path), "mutated-%ld.pte", (long)getpid());
    for (long round = 0; round < rounds && failures == 0; round++) {
        damaged = programs[(size_t)round % program_count];
        for (uint32_t n = random_below(DAMAGES_MAX); n < DAMAGES_MAX; n++) {
            damage(&damaged);
        }
        failures += !write_program(&damaged, path) || try_program(&caller, path, &total);
    }
    caller_fini(&caller);
    if (failures == 0) {
        unlink(path);
    }
    printf("%" PRIu32 " of %ld damaged programs could be called, %" PRIu32 " calls\n",
           total.methods, rounds, total.runs);
    return failures || total.methods < rounds / 20 ? 1 : 0;
}
