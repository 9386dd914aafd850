/* SPDX-License-Identifier: MIT */
/*
 * On one instruction set level a call gives the same bytes whoever computes it: one worker or
 * several, alone or joined with others, in workspaces that were filled with 0xff or not. Levels
 * with bfloat16 numbers compute with them, because their floats are those of another level. All
 * methods of all programs of this folder are called so, and of the larger collection where it is in
 * or beside the source tree; there, programs of more than LARGE_BYTES on the best level only.
 *
 * With files as arguments, those and nothing else, on every level.
 */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "hal/cpu/isa.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "tests/hal/levels.h"
#include "tests/unit/call_support.h"

#define POOL_BYTES ((size_t)1 << 27)
#define LARGE_BYTES (1024 * 1024)
#define FILES_MAX 512
#define CALLS 4 /* of a method; one after the other in one sequence where it has state */
#define METHODS_MAX 32
#define PROOF_NS 600000000000u

/* Each also stands for a workspace that is filled before each run, or is not. */
static const struct {
    uint32_t workers;
    bool poison;
} ways[] = {{1, false}, {2, true}, {3, false}, {64, true}};

/* Dims that vary are at most these, whichever the method takes first. */
static const int64_t caps[] = {64, 4, 1, INT64_MAX};
#define CAPS (sizeof(caps) / sizeof(caps[0]))

/* Of a call: results by their lengths and a hash of their bytes. */
struct outcome {
    enum status status;
    size_t len;
    uint64_t hash;
};

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct rt_method *method;
    struct rt_state *state;
    size_t cap;
    struct error err;
};

/* The results of the first way, and the cap that it found. */
struct wanted {
    size_t cap;
    struct outcome calls[CALLS];
};

static unsigned compared, joined, failed;

/* ---- one call -------------------------------------------------------------------------------- */

/* Numbers of both signs; ints that may be an index of nearly anything; the last bits differ. */
static void fill(uint8_t *bytes, enum dtype dtype, size_t count, uint32_t number)
{
    size_t size = dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        uint32_t mixed = ((uint32_t)i * 37 + number * 101 + 11) % 251;
        double f64 = (double)mixed / 125 - 1;
        float f32 = (float)f64;
        uint16_t f16 = (uint16_t)(0x3800 + mixed), bf16 = (uint16_t)(0x3f00 + mixed);
        int64_t integer = mixed % 2;
        const void *from = dtype == DT_F64    ? (const void *)&f64
                           : dtype == DT_F32  ? (const void *)&f32
                           : dtype == DT_F16  ? (const void *)&f16
                           : dtype == DT_BF16 ? (const void *)&bf16
                                              : (const void *)&integer;
        memcpy(bytes + i * size, from, size);
    }
}

static enum status give_tensor(struct world *w, struct rt_invocation *inv, uint32_t index,
                               uint32_t number, int64_t first_dim)
{
    const struct rt_io *io = rt_method_input(w->method, index);
    struct shape shape = io->shape;
    void *at;
    for (uint8_t d = 0; d < shape.rank; d++) {
        bool varies = rt_io_is_dynamic(io, d);
        shape.dims[d] = varies && shape.dims[d] > caps[w->cap] ? caps[w->cap] : shape.dims[d];
    }
    if (first_dim > 0) {
        shape.dims[0] = first_dim;
    }
    TRY(rt_invocation_input(inv, index, io->dtype, &shape, &at, &w->err));
    fill(at, io->dtype, (size_t)shape_numel(&shape), number);
    return ST_OK;
}

static enum status give_inputs(struct world *w, struct rt_invocation *inv, uint32_t number,
                               int64_t first_dim)
{
    for (uint32_t i = 0; i < rt_method_input_count(w->method); i++) {
        const struct rt_io *io = rt_method_input(w->method, i);
        if (io->kind == RT_IO_TENSOR) {
            TRY(give_tensor(w, inv, i, number, first_dim));
        } else if (io->kind == RT_IO_INT && !io->is_fixed) {
            TRY(rt_invocation_int(inv, i, 1 + number % 2, &w->err));
        }
    }
    return ST_OK;
}

/* A prepared call; NULL: the method refuses it, and w->err says why. */
static struct rt_invocation *prepare(struct world *w, uint32_t number, int64_t first_dim)
{
    struct rt_invocation *inv;
    if (rt_invocation_new(w->method, w->pool, &inv, &w->err) != ST_OK) {
        return NULL;
    }
    if (w->state) {
        rt_invocation_set_state(inv, w->state);
    }
    if (give_inputs(w, inv, number, first_dim) != ST_OK ||
        rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err) != ST_OK) {
        rt_invocation_free(inv);
        return NULL;
    }
    return inv;
}

static uint64_t add_hash(uint64_t hash, struct span bytes)
{
    size_t i = 0;
    for (; i + sizeof(hash) <= bytes.len; i += sizeof(hash)) {
        uint64_t word;
        memcpy(&word, bytes.ptr + i, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    for (; i < bytes.len; i++) {
        hash = (hash ^ bytes.ptr[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static struct outcome take(struct rt_invocation *inv, enum status status)
{
    struct outcome out = {.status = status};
    uint32_t results = rt_method_result_count(rt_invocation_method(inv));
    for (uint32_t i = 0; status == ST_OK && i < results; i++) {
        struct span bytes = rt_invocation_result(inv, i)->bytes;
        out.len += bytes.len;
        out.hash = add_hash(out.hash + i, bytes);
    }
    rt_invocation_free(inv);
    return out;
}

static struct outcome call(struct world *w, uint32_t number, int64_t first_dim)
{
    struct rt_invocation *inv = prepare(w, number, first_dim);
    return inv ? take(inv, submit_and_wait(inv, false)) : (struct outcome){.status = w->err.code};
}

/* ---- a method in one way --------------------------------------------------------------------- */

static bool is_same(const struct outcome *a, const struct outcome *b)
{
    return a->status == b->status && a->len == b->len && a->hash == b->hash;
}

/* The first cap that the method takes. */
static size_t find_cap(struct world *w)
{
    for (w->cap = 0; w->cap + 1 < CAPS; w->cap++) {
        struct rt_invocation *inv = prepare(w, 0, 0);
        if (inv) {
            rt_invocation_free(inv);
            break;
        }
    }
    return w->cap;
}

static bool check_alone(struct world *w, bool is_first, struct wanted *wanted)
{
    w->cap = wanted->cap = is_first ? find_cap(w) : wanted->cap;
    for (uint32_t i = 0; i < CALLS; i++) {
        struct outcome got = call(w, i, 0);
        if (is_first) {
            wanted->calls[i] = got;
        } else if (!is_same(&got, &wanted->calls[i])) {
            fprintf(stderr, "call %u differs\n", i);
            return false;
        }
        compared += !is_first && got.status == ST_OK;
        failed += got.status != ST_OK;
    }
    return true;
}

/* Rows one by one and then together, at the bounds of the other dims. */
static bool check_together(struct world *w, uint32_t count)
{
    struct rt_invocation *calls[CALLS];
    struct outcome wanted[CALLS];
    struct done done[CALLS];
    void *args[CALLS];
    w->cap = CAPS - 1;
    for (uint32_t i = 0; i < count; i++) {
        wanted[i] = call(w, i, 1);
        calls[i] = prepare(w, i, 1);
        must(calls[i] && rt_batch_rows(calls[i]) == 1);
        done[i] = (struct done)DONE_INIT;
        args[i] = &done[i];
    }
    struct error err;
    must(rt_batch_submit(calls, args, count, on_done, &err) == ST_OK);
    bool is_right = true;
    for (uint32_t i = 0; i < count; i++) {
        struct outcome got = take(calls[i], await_done(&done[i]));
        is_right &= is_same(&got, &wanted[i]);
        joined++;
    }
    if (!is_right) {
        fprintf(stderr, "joined calls differ from those alone\n");
    }
    return is_right;
}

static bool check_method(struct world *w, bool is_first, struct wanted *wanted)
{
    int64_t form, rows = 1;
    if (rt_method_failure(w->method)) {
        return true;
    }
    if (rt_batch_open(w->method, &form, &w->err) == ST_OK) {
        const struct rt_pace pace = {.budget_ns = PROOF_NS};
        enum status status =
            rt_batch_prove(w->method, w->pool, &pace, form < CALLS ? form : CALLS, &rows, &w->err);
        must(status != ST_TIMEOUT);
    }
    /* Calls of one state follow each other; tests/unit/test_steps.c joins those of several. */
    return check_alone(w, is_first, wanted) &&
           (rows < 2 || w->state || check_together(w, rows < CALLS ? (uint32_t)rows : CALLS));
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool check_program(struct world *w, bool is_first, struct wanted *wanted)
{
    bool is_right = true;
    uint32_t count = rt_program_method_count(w->program);
    if (rt_program_state_bytes(w->program) > 0) {
        must(rt_state_new(w->program, &w->state, &w->err) == ST_OK);
    }
    for (uint32_t i = 0; is_right && i < count && i < METHODS_MAX; i++) {
        w->method = rt_program_method(w->program, i);
        is_right = check_method(w, is_first, &wanted[i]);
    }
    rt_state_unref(w->state);
    rt_program_unref(w->program);
    return is_right;
}

/* A file that does not load, for want of another one, say, is none of this test's concerns. */
static bool check_way(const char *path, const char *level, size_t way, struct wanted *wanted)
{
    const struct hal_device_options options = {.workers = ways[way].workers, .cpu_level = level};
    struct world w = {0};
    bool is_right = true;
    must(hal_device_open("cpu", &options, &w.device, &w.err) == ST_OK);
    must(hal_pool_new(w.device, POOL_BYTES, &w.pool, &w.err) == ST_OK);
    const struct rt_load_options load = {
        .device = w.device,
        .precision = hal_device_props(w.device)->bf16_speed ? PRECISION_BF16 : PRECISION_FAST,
        .poison_workspaces = ways[way].poison,
    };
    if (rt_load_program(path, &load, &w.program, &w.err) == ST_OK) {
        is_right = check_program(&w, way == 0, wanted);
    }
    hal_pool_free(w.pool);
    hal_device_unref(w.device);
    return is_right;
}

static bool check_level(const char *path, const char *level)
{
    struct wanted wanted[METHODS_MAX] = {0};
    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
        if (!check_way(path, level, way, wanted)) {
            fprintf(stderr, "%s: level %s, %u workers, workspaces%s filled\n", path, level,
                    ways[way].workers, ways[way].poison ? "" : " not");
            return false;
        }
    }
    return true;
}

/* From the best level down; |all|: not only that one. */
static bool check_file(const char *path, bool all)
{
    bool is_right = true, is_done = false;
    for (unsigned i = HAL_CPU_ISA_COUNT; i-- > 0 && (all || !is_done);) {
        enum hal_cpu_isa isa = (enum hal_cpu_isa)i;
        if (all ? has_level(isa) : hal_cpu_isa_supported(isa)) {
            is_right &= check_level(path, hal_cpu_isa_name(isa));
            is_done = true;
        }
    }
    return is_right;
}

/* ---- folders --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

struct folder {
    char paths[FILES_MAX][1024];
    size_t count;
};

static void list_programs(const char *path, struct folder *folder)
{
    DIR *dir = opendir(path);
    folder->count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len > 4 && strcmp(entry->d_name + len - 4, ".pte") == 0 && folder->count < FILES_MAX) {
            int written = snprintf(folder->paths[folder->count], sizeof(folder->paths[0]), "%s/%s",
                                   path, entry->d_name);
            folder->count += written > 0 && (size_t)written < sizeof(folder->paths[0]);
        }
    }
    if (dir) {
        closedir(dir);
    }
    qsort(folder->paths, folder->count, sizeof(folder->paths[0]), by_name);
}

static bool check_folder(const char *path, size_t *out_count)
{
    static struct folder folder;
    bool is_right = true;
    list_programs(path, &folder);
    for (size_t i = 0; i < folder.count; i++) {
        struct stat info;
        bool is_small = stat(folder.paths[i], &info) == 0 && info.st_size <= LARGE_BYTES;
        is_right &= check_file(folder.paths[i], is_small);
    }
    *out_count = folder.count;
    return is_right;
}

static bool check_folders(void)
{
    static const char *const collections[] = {"shared/models/public", "../shared/models/public"};
    const char *top = getenv("top_srcdir");
    char path[1024];
    size_t bundled, more = 0;
    snprintf(path, sizeof(path), "%s/tests/models", top ? top : ".");
    bool is_right = check_folder(path, &bundled);
    for (size_t i = 0; more == 0 && i < sizeof(collections) / sizeof(collections[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", top ? top : ".", collections[i]);
        is_right &= check_folder(path, &more);
    }
    must(bundled > 0);
    printf("%zu bundled programs, %zu more%s\n", bundled, more,
           more ? "" : ": the larger collection is not here, it was left out");
    return is_right;
}

int main(int argc, char *argv[])
{
    bool is_right = argc > 1 || check_folders();
    for (int i = 1; i < argc; i++) {
        is_right &= check_file(argv[i], true);
    }
    printf("%u calls compared, %u joined ones; %u were refused or failed, the same way each time\n",
           compared, joined, failed);
    must(compared > 0);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
