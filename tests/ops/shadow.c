/* SPDX-License-Identifier: MIT */
/*
 * test_ops as a test of shaders: each dispatch whose kernel has SPIR-V forms runs on the first
 * Vulkan device as well, in every form, on a copy of the same memory, and what comes out is
 * compared with what the CPU form wrote. A difference is printed and fails the call like a fault
 * does.
 *
 * At the end the kernels are listed, with the dispatches of each that were compared, times the
 * forms that the device can run; 0 are those of kernels without a SPIR-V form.
 *
 * rt_emit_dispatch() is wrapped by the linker; the dispatch that it records instead is one tile,
 * which runs both forms. Without a device the program says so and exits with 77.
 */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/dtype.h"
#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/queue.h"
#include "hal/semaphore.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/gemm.h"
#include "runtime/ops/op.h"

#define SKIP 77
#define NAMES_MAX 256
#define TIMEOUT_NS ((uint64_t)60 * 1000000000)

enum status __real_rt_emit_dispatch(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                                    struct error *err);
enum status __wrap_rt_emit_dispatch(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                                    struct error *err);

/* A kernel as kernels of one SPIR-V form each; the device tells kernels apart by their address. */
struct forms {
    struct forms *next;
    const struct hal_kernel *original;
    struct hal_kernel kernels[HAL_SPIRV_FORMS_MAX];
    uint32_t count;
};

/* A dispatch to run twice; kept until the end, as plans are. */
struct shadow {
    struct shadow *next;
    struct hal_kernel kernel; /* what is recorded */
    const struct hal_kernel *original;
    const struct forms *forms; /* what is run on the device */
    const char *label;
    uint32_t grid[3];
    size_t constants_bytes;
    enum dtype dtypes[HAL_BINDINGS_MAX]; /* DTYPE_COUNT: not an output, has to be the same */
    _Alignas(16) uint8_t constants[HAL_CONSTANTS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything here */
static struct shadow *shadows;
static struct forms *all_forms;
static struct hal_device *device;

/* Kernels by name, and how often each was compared. */
static struct {
    const char *name;
    unsigned runs;
} counts[NAMES_MAX];

static void count_kernel(const struct hal_kernel *kernel, unsigned runs)
{
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (!counts[i].name || strcmp(counts[i].name, kernel->name) == 0) {
            counts[i].name = kernel->name;
            counts[i].runs += runs;
            return;
        }
    }
}

/* Bytes of bindings that overlap, and their copy on the device. */
struct region {
    uint8_t *begin, *end;
    uint8_t *before; /* the bytes before anything ran */
    struct hal_buffer *buffer;
    size_t skip; /* so that the copy is aligned as the bytes are */
};

static const struct region *region_of(const struct region *regions, const uint8_t *at)
{
    while (at < regions->begin || at >= regions->end) {
        regions++;
    }
    return regions;
}

static uint32_t find_regions(const struct hal_args *args, struct region *regions)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < args->binding_count; i++) {
        uint8_t *begin = args->bindings[i], *end = begin + args->lengths[i];
        if (!begin) {
            continue;
        }
        for (uint32_t r = 0; r < count;) {
            if (begin < regions[r].end && regions[r].begin < end) {
                begin = begin < regions[r].begin ? begin : regions[r].begin;
                end = end > regions[r].end ? end : regions[r].end;
                regions[r] = regions[--count];
                r = 0;
            } else {
                r++;
            }
        }
        regions[count++] = (struct region){.begin = begin, .end = end};
    }
    return count;
}

static uint8_t *copy_of(const struct region *region)
{
    return (uint8_t *)hal_buffer_map(region->buffer) + region->skip;
}

static enum status copy_regions(struct region *regions, uint32_t count, struct error *err)
{
    for (uint32_t r = 0; r < count; r++) {
        size_t bytes = (size_t)(regions[r].end - regions[r].begin);
        regions[r].skip = (uintptr_t)regions[r].begin % 64;
        TRY(hal_buffer_new(device, regions[r].skip + bytes, &regions[r].buffer, err));
        regions[r].before = malloc(bytes);
        must(regions[r].before);
        memcpy(regions[r].before, regions[r].begin, bytes);
    }
    return ST_OK;
}

static void run_cpu(const struct shadow *shadow, const struct hal_args *args)
{
    struct hal_args own = *args;
    own.constants = shadow->constants;
    memcpy(own.grid, shadow->grid, sizeof(own.grid));
    for (uint32_t z = 0; z < own.grid[2]; z++) {
        for (uint32_t y = 0; y < own.grid[1]; y++) {
            for (uint32_t x = 0; x < own.grid[0]; x++) {
                shadow->original->cpu(&own, (struct hal_tile){x, y, z});
            }
        }
    }
}

static enum status record(struct hal_command *command, const struct shadow *shadow,
                          const struct hal_kernel *form, const struct hal_args *args,
                          const struct region *regions, struct error *err)
{
    struct hal_binding bindings[HAL_BINDINGS_MAX] = {0};
    for (uint32_t i = 0; i < args->binding_count; i++) {
        const uint8_t *at = args->bindings[i];
        if (at) {
            const struct region *region = region_of(regions, at);
            bindings[i].buffer = region->buffer;
            bindings[i].offset = region->skip + (size_t)(at - region->begin);
            bindings[i].length = args->lengths[i];
        } else {
            bindings[i].buffer = regions->buffer; /* no bytes of it */
        }
    }
    TRY(hal_command_dispatch(command,
                             &(struct hal_dispatch){
                                 .kernel = form,
                                 .grid = {shadow->grid[0], shadow->grid[1], shadow->grid[2]},
                                 .constants = shadow->constants,
                                 .constants_bytes = shadow->constants_bytes,
                                 .bindings = bindings,
                                 .binding_count = args->binding_count,
                             },
                             err));
    return hal_command_end(command, err);
}

static enum status run_device(const struct shadow *shadow, const struct hal_kernel *form,
                              const struct hal_args *args, const struct region *regions,
                              struct error *err)
{
    struct hal_command *command;
    struct hal_semaphore *semaphore;
    TRY(hal_semaphore_new(0, &semaphore, err));
    TRY(hal_command_new(device, 0, &command, err));
    enum status status = record(command, shadow, form, args, regions, err);
    if (status == ST_OK) {
        const struct hal_submission submission = {
            .command = command, .signal = {{semaphore, 1}}, .signal_count = 1};
        status = hal_queue_submit(device, &submission, err);
    }
    if (status == ST_OK) {
        status = hal_semaphore_wait(semaphore, 1, TIMEOUT_NS);
        status = status == ST_OK ? ST_OK : error_set(err, status, "the device does not answer");
    }
    hal_command_unref(command);
    hal_semaphore_unref(semaphore);
    return status;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* What is rounded to halves by the kernel, where the forms may fall to either side. */
static bool is_rounded(const struct shadow *shadow)
{
    const struct rt_gemm *gemm = (const void *)shadow->constants;
    const char *name = shadow->original->name; /* of several kernels, for sizes of tiles */
    bool is_gemm =
        strcmp(name, rt_gemm_kernel.name) == 0 || strcmp(name, rt_gemm_halves_kernel.name) == 0;
    return is_gemm && gemm->is_rounded;
}

/* Of a float, relative to itself, and to the largest of all. The errors of forms that compute in
 * halves are bounded in tests/unit/test_halves.c. */
static double tolerance_of(const struct shadow *shadow, enum dtype dtype,
                           const struct hal_kernel *form)
{
    double least = form->spirv[0].needs & HAL_F16 ? 1.0 / 100 : is_rounded(shadow) ? 1e-3 : 1e-5;
    return dtype == DT_F16 ? 1.0 / 1000 : dtype == DT_BF16 ? 1.0 / 120 : least;
}

static double number_at(const uint8_t *at, enum dtype dtype)
{
    double value;
    rt_convert_load(dtype, RT_CLASS_F64)(&value, (const char *)at, 0, 1);
    return value;
}

static double largest_of(const uint8_t *at, size_t count, enum dtype dtype)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        double v = fabs(number_at(at + i * dtype_bytes(dtype), dtype));
        largest = v > largest && isfinite(v) ? v : largest;
    }
    return largest;
}

static bool same_floats(const struct shadow *shadow, uint32_t binding, double tolerance,
                        const uint8_t *want, const uint8_t *got, size_t bytes)
{
    enum dtype dtype = shadow->dtypes[binding];
    size_t width = dtype_bytes(dtype), count = bytes / width;
    double largest = largest_of(want, count, dtype);
    for (size_t i = 0; i < count; i++) {
        double w = number_at(want + i * width, dtype), g = number_at(got + i * width, dtype);
        bool is_same = w == g || (isnan(w) && isnan(g)) ||
                       fabs(w - g) <= tolerance * (fabs(w) + largest / 10) + 1e-37;
        if (!is_same) {
            fprintf(stderr, "%s, %s: element %zu of binding %u is %.9g on the device, %.9g here\n",
                    shadow->label, shadow->original->name, i, binding, g, w);
            return false;
        }
    }
    return true;
}

static bool is_same(const struct shadow *shadow, const struct hal_kernel *form,
                    const struct hal_args *args, const struct region *regions)
{
    bool result = true;
    for (uint32_t i = 0; i < args->binding_count; i++) {
        const uint8_t *want = args->bindings[i];
        enum dtype dtype = shadow->dtypes[i];
        if (!want) {
            continue;
        }
        const struct region *region = region_of(regions, want);
        const uint8_t *got = copy_of(region) + (want - region->begin);
        size_t at = 0, bytes = args->lengths[i];
        if (dtype < DTYPE_COUNT && dtype_is_float(dtype)) {
            result &= same_floats(shadow, i, tolerance_of(shadow, dtype, form), want, got, bytes);
        } else if (memcmp(want, got, bytes) != 0) {
            while (want[at] == got[at]) {
                at++;
            }
            fprintf(stderr, "%s, %s: byte %zu of binding %u (%zu bytes%s%s) is %d, not %d\n",
                    shadow->label, shadow->original->name, at, i, bytes,
                    dtype < DTYPE_COUNT ? ", " : "", dtype < DTYPE_COUNT ? dtype_text(dtype) : "",
                    got[at], want[at]);
            result = false;
        }
    }
    return result;
}

/* Every form that the device can run, whether it would be chosen or not. */
static bool compare_forms(const struct shadow *shadow, const struct hal_args *args,
                          const struct region *regions, uint32_t count)
{
    struct error err;
    for (uint32_t f = 0; f < shadow->forms->count; f++) {
        for (uint32_t r = 0; r < count; r++) {
            memcpy(copy_of(&regions[r]), regions[r].before,
                   (size_t)(regions[r].end - regions[r].begin));
        }
        if (run_device(shadow, &shadow->forms->kernels[f], args, regions, &err) != ST_OK) {
            fprintf(stderr, "%s, %s: %s\n", shadow->label, shadow->original->name, err.text);
            return false;
        }
        if (!is_same(shadow, &shadow->forms->kernels[f], args, regions)) {
            fprintf(stderr, "it was form %u of those that the device has\n", f);
            return false;
        }
    }
    return true;
}

static void run_both(const struct hal_args *args, struct hal_tile tile)
{
    struct shadow *shadow;
    struct region regions[HAL_BINDINGS_MAX] = {0};
    struct error err;
    (void)tile;
    memcpy(&shadow, args->constants, sizeof(shadow));
    pthread_mutex_lock(&lock);
    uint32_t count = find_regions(args, regions);
    enum status status = copy_regions(regions, count, &err);
    run_cpu(shadow, args);
    if (status == ST_OK && hal_fault_code_of(args->fault) == HAL_FAULT_NONE) {
        if (status != ST_OK || !compare_forms(shadow, args, regions, count)) {
            hal_fault(args, HAL_FAULT_INDEX, NULL);
        }
        count_kernel(shadow->original, shadow->forms->count);
    }
    for (uint32_t r = 0; r < count; r++) {
        hal_buffer_unref(regions[r].buffer);
        free(regions[r].before);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- recording ----------------------------------------------------------------------------- */

static void close_device(void)
{
    printf("compared on %s:", hal_device_props(device)->description);
    for (size_t i = 0; i < NAMES_MAX && counts[i].name; i++) {
        printf(" %s %u", counts[i].name, counts[i].runs);
    }
    printf("\n");
    hal_device_unref(device);
    while (all_forms) {
        struct forms *next = all_forms->next;
        free(all_forms);
        all_forms = next;
    }
    while (shadows) {
        struct shadow *next = shadows->next;
        free(shadows);
        shadows = next;
    }
}

static void open_device(void)
{
    struct error err;
    /* The host's kernels of one process are of one level: that of "test_ops --brief". */
    const struct hal_device_options options = {.workers = 1, .cpu_level = "generic"};
    must(setenv("PTED_VULKAN_CAPABILITIES", "+all", 0) == 0); /* forms that do not pay, too */
    if (hal_device_open("vulkan", &options, &device, &err) != ST_OK) {
        printf("%s\n", err.text);
        exit(err.code == ST_UNSUPPORTED || err.code == ST_NOT_FOUND ? SKIP : EXIT_FAILURE);
    }
    atexit(close_device);
}

static bool is_part_of(const struct hal_binding *part, const struct hal_binding *whole)
{
    return part->buffer == whole->buffer && part->slot == whole->slot && part->length > 0 &&
           part->offset >= whole->offset && part->offset < whole->offset + whole->length;
}

static void find_dtypes(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                        enum dtype dtypes[HAL_BINDINGS_MAX])
{
    const char *outs = strchr(rt_emit_op(emit)->args, '>');
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        dtypes[i] = DTYPE_COUNT;
        for (uint32_t o = 0; outs[1 + o] == 'T'; o++) {
            const struct rt_tensor *out = rt_emit_out(emit, o);
            if (out && is_part_of(&dispatch->bindings[i], &out->binding)) {
                bool is_complex = dtype_infos[out->dtype].kind == DTYPE_COMPLEX;
                dtypes[i] = is_complex ? rt_convert_part(out->dtype) : out->dtype;
            }
        }
    }
}

static const struct forms *forms_of(const struct hal_kernel *kernel)
{
    struct forms *forms = all_forms;
    while (forms && forms->original != kernel) {
        forms = forms->next;
    }
    if (forms) {
        return forms;
    }
    forms = calloc(1, sizeof(*forms));
    must(forms);
    forms->next = all_forms;
    forms->original = kernel;
    all_forms = forms;
    for (uint32_t i = 0; i < HAL_SPIRV_FORMS_MAX && kernel->spirv[i].words.len > 0; i++) {
        if ((kernel->spirv[i].needs & ~hal_device_props(device)->capabilities) == 0) {
            struct hal_kernel *form = &forms->kernels[forms->count++];
            *form = *kernel;
            memset(form->spirv, 0, sizeof(form->spirv));
            form->spirv[0] = kernel->spirv[i];
        }
    }
    return forms;
}

enum status __wrap_rt_emit_dispatch(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                                    struct error *err)
{
    const uint32_t *grid = dispatch->grid;
    pthread_mutex_lock(&lock);
    count_kernel(dispatch->kernel, 0);
    pthread_mutex_unlock(&lock);
    if (!hal_kernel_has_spirv(dispatch->kernel) || grid[0] == 0 || grid[1] == 0 || grid[2] == 0) {
        return __real_rt_emit_dispatch(emit, dispatch, err);
    }
    pthread_mutex_lock(&lock);
    if (!device) {
        open_device();
    }
    struct shadow *shadow = aligned_alloc(_Alignof(struct shadow), sizeof(*shadow));
    must(shadow);
    *shadow = (struct shadow){
        .next = shadows,
        .kernel = {.name = dispatch->kernel->name, .cpu = run_both},
        .original = dispatch->kernel,
        .label = rt_emit_op(emit)->name,
        .grid = {grid[0], grid[1], grid[2]},
        .constants_bytes = dispatch->constants_bytes,
    };
    shadows = shadow;
    shadow->forms = forms_of(shadow->original);
    pthread_mutex_unlock(&lock);
    memcpy(shadow->constants, dispatch->constants, dispatch->constants_bytes);
    find_dtypes(emit, dispatch, shadow->dtypes);
    struct hal_dispatch both = *dispatch;
    both.kernel = &shadow->kernel;
    both.grid[0] = both.grid[1] = both.grid[2] = 1;
    both.constants = &shadow;
    both.constants_bytes = sizeof(shadow);
    return __real_rt_emit_dispatch(emit, &both, err);
}
