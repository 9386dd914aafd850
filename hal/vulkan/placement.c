/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a kernel runs on the GPU or on the host. If the GPU has shaders for all kernels,
 * it runs all of them. Otherwise each change of sides costs time, and bytes have to be copied; so
 * it may be cheaper to run short stretches between two host kernels, or all of a small model, on
 * the host. Dynamic programming over the records finds the cheapest assignment.
 *
 * The costs of a mid-range GPU serve for every device, so that the software drivers of tests decide
 * like hardware.
 */
#include "config.h"

#include "base/check.h"
#include "hal/vulkan/routine_priv.h"

#define LAUNCH_NS 5000  /* a dispatch and its barrier */
#define SWITCH_NS 60000 /* to change sides: a submission, a wait, a thread wake-up */
#define GPU_CORES 64    /* the speed of the GPU, in cores of the host */
#define BUS_BYTES_PER_NS 8

enum { GPU, HOST, SIDES };

/* For one dispatch, by side: the least time until it ends there, and the side of the dispatch
 * before it. */
struct trellis {
    uint64_t ns[SIDES];
    uint8_t from[SIDES];
};

/* A time for "cannot run there". Other times saturate below it, so they always win against it. */
#define NEVER (UINT64_MAX / 2)
#define TIME_MAX (NEVER - 1)

static uint64_t bytes_bound(const struct hal_record *record)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < record->binding_count; i++) {
        bytes += record->bindings[i].buffer ? 0 : record->bindings[i].length;
    }
    return bytes;
}

/* Has the kernel a SPIR-V form that this device supports? */
static bool has_form(const struct hal_vulkan_device *device, const struct hal_record *record)
{
    return hal_kernel_spirv(record->kernel, device->base.props.capabilities) != NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The sum of two times. */
static uint64_t plus(uint64_t a, uint64_t b)
{
    return a == NEVER || b == NEVER ? NEVER : least(a + b, TIME_MAX);
}

static bool can_run_on(const struct hal_vulkan_device *device, const struct hal_record *record,
                       int side)
{
    return side == GPU ? has_form(device, record) : record->kernel->cpu != NULL;
}

static uint64_t price(const struct hal_vulkan_device *device, const struct hal_record *record,
                      int side)
{
    if (!can_run_on(device, record, side)) {
        return NEVER;
    }
    return side == GPU ? LAUNCH_NS + record->cost / GPU_CORES
                       : least(record->cost / device->host->props.workers, TIME_MAX);
}

/* |before| is NULL for the first dispatch, which has nothing to wait for. */
static void extend(const struct hal_vulkan_device *device, const struct hal_record *record,
                   const struct trellis *before, struct trellis *now)
{
    uint64_t change = SWITCH_NS;
    if (!device->base.props.host_visible) {
        change += bytes_bound(record) / BUS_BYTES_PER_NS;
    }
    for (int side = 0; side < SIDES; side++) {
        uint64_t stay = before ? before->ns[side] : 0;
        uint64_t come = before ? plus(before->ns[!side], change) : 0;
        now->from[side] = (uint8_t)(come < stay ? !side : side);
        now->ns[side] = plus(least(stay, come), price(device, record, side));
    }
}

/* Writes the cheapest assignment into the |count| > 0 dispatches, from the last to the first. Both
 * sides may run the last dispatch: results lie in shared memory. */
static void assign(const struct hal_vulkan_device *device, struct hal_record **dispatches,
                   const struct trellis *trellis, uint32_t count)
{
    int side = trellis[count - 1].ns[HOST] < trellis[count - 1].ns[GPU] ? HOST : GPU;
    for (uint32_t i = count; i-- > 0;) {
        struct hal_record *record = dispatches[i];
        must(can_run_on(device, record, side));
        if (side == HOST) {
            record->placement =
                has_form(device, record) ? HAL_PLACEMENT_CHEAPER : HAL_PLACEMENT_NO_FORM;
        }
        side = trellis[i].from[side];
    }
}

enum status hal_vulkan_place(const struct hal_vulkan_device *device, struct hal_command *command,
                             struct error *err)
{
    uint32_t count = 0, host_count = 0;
    for (struct hal_record *r = command->records; r; r = r->next) {
        count += r->kind == HAL_DISPATCH;
        host_count += r->kind == HAL_DISPATCH && !has_form(device, r);
    }
    if (host_count == 0) {
        return ST_OK;
    }
    struct hal_record **dispatches = arena_array(&command->arena, count, sizeof(*dispatches));
    struct trellis *trellis = arena_array(&command->arena, count, sizeof(*trellis));
    if (!dispatches || !trellis) {
        return error_no_memory(err, "a command buffer");
    }
    uint32_t i = 0;
    for (struct hal_record *r = command->records; r; r = r->next) {
        if (r->kind == HAL_DISPATCH) {
            dispatches[i] = r;
            extend(device, r, i ? &trellis[i - 1] : NULL, &trellis[i]);
            i++;
        }
    }
    assign(device, dispatches, trellis, count);
    return ST_OK;
}
