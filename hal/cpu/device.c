/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/cpu/cpus.h"
#include "hal/cpu/routine.h"
#include "hal/cpu/uk.h"

static void cpu_free(struct hal_device *base)
{
    struct hal_cpu_device *device = hal_cpu_device_of(base);
    hal_cpu_queue_drain(device);
    must(atomic_load(&base->objects) == 0);
    hal_cpu_workers_free(device->workers);
    hal_cpu_queue_fini(device);
    hal_cpu_pages_fini_file(&device->pages);
    hal_cpu_isa_release();
    hal_device_fini(base);
    free(device);
}

static enum status command_compile(struct hal_command *command, struct error *err)
{
    const struct hal_cpu_routine *routine;
    TRY(hal_cpu_routine_new(command, command->device->props.workers, &routine, err));
    command->compiled = (void *)(uintptr_t)routine;
    return ST_OK;
}

/* Workspace |index| of the device: first the workers' ones, then those of callers. */
static struct hal_cpu_thread_memory *memory_at(struct hal_cpu_device *device, uint32_t index)
{
    uint32_t workers = device->base.props.workers;
    return index < workers ? hal_cpu_worker_memory(device->workers, index)
                           : &device->callers.memories[index - workers];
}

/* A call goes on where the last one has stopped. The system takes memory without the lock. */
static bool trim(struct hal_device *base, size_t bytes_max)
{
    struct hal_cpu_device *device = hal_cpu_device_of(base);
    uint32_t count = base->props.workers + hal_cpu_callers_count(&device->callers);
    pthread_mutex_lock(&device->lock);
    uint32_t i = device->trimmed;
    pthread_mutex_unlock(&device->lock);
    for (size_t left = bytes_max; i < count; i++) {
        size_t given = hal_cpu_workspace_trim(memory_at(device, i), left);
        if (given >= left) {
            break; /* it may have more */
        }
        left -= given;
    }
    pthread_mutex_lock(&device->lock);
    device->trimmed = i < count ? i : 0;
    pthread_mutex_unlock(&device->lock);
    return i < count;
}

static bool has_form(const struct hal_kernel *kernel)
{
    return kernel->cpu != NULL;
}

const struct hal_device_ops hal_cpu_ops = {
    .free = cpu_free,
    .buffer_new = hal_cpu_buffer_new,
    .buffers_new = hal_cpu_buffers_new,
    .buffer_import = hal_cpu_buffer_import,
    .buffer_free = hal_cpu_buffer_free,
    .buffer_discard = hal_cpu_buffer_discard,
    .buffer_page_bytes = hal_cpu_buffer_page_bytes,
    .buffer_compact = hal_cpu_buffer_compact,
    .buffer_clear = hal_cpu_buffer_clear,
    .pages_new = hal_cpu_pages_new,
    .pages_free = hal_cpu_pages_free,
    .pages_take = hal_cpu_pages_take,
    .pages_map = hal_cpu_pages_map,
    .command_compile = command_compile,
    .submit = hal_cpu_queue_submit,
    .progress = hal_cpu_queue_progress,
    .trim = trim,
    .probe = hal_cpu_probe,
    .can_run = has_form,
};

static void describe(char *text, size_t size, enum hal_cpu_isa isa, uint32_t workers)
{
    snprintf(text, size, "%s, %u worker%s", hal_cpu_isa_name(isa), workers,
             workers == 1 ? "" : "s");
}

static void fill_props(struct hal_cpu_device *device, uint32_t workers)
{
    struct hal_device_props *props = &device->base.props;
    *props = (struct hal_device_props){
        .is_host = true,
        .name = "cpu",
        .kind = "cpu",
        .workers = workers,
        .buffer_align = HAL_CPU_BUFFER_ALIGN,
        .offset_align = 1,
        .memory_bytes_max = PTRDIFF_MAX,
        .scratch_bytes_max = HAL_CPU_SCRATCH_BYTES,
        .f32_per_read = hal_cpu_uk()->f32_per_read,
        .bf16_speed = hal_cpu_uk()->bf16_speed,
        .group_max = hal_cpu_uk()->group_max,
        .has_profile = true,
        .host_visible = true,
    };
    describe(props->description, sizeof(props->description), device->isa, workers);
}

/* Everything that can fail; on failure, frees what it has allocated. */
static enum status init(struct hal_cpu_device *device, uint32_t workers,
                        const struct hal_device_options *options, struct error *err)
{
    TRY(hal_cpu_isa_acquire(options->cpu_level, &device->isa, err));
    enum status status = hal_cpu_queue_init(device, err);
    if (status != ST_OK) {
        hal_cpu_isa_release();
        return status;
    }
    status = hal_cpu_workers_new(workers, options->nice, &device->workers, err);
    if (status != ST_OK) {
        hal_cpu_queue_fini(device);
        hal_cpu_isa_release();
    }
    return status;
}

static uint32_t default_workers(void)
{
    unsigned cpus = hal_cpu_count();
    return cpus < HAL_CPU_WORKERS_MAX ? cpus : HAL_CPU_WORKERS_MAX;
}

static enum status cpu_open(const char *name, const struct hal_device_options *options,
                            struct hal_device **out_device, struct error *err)
{
    uint32_t workers = options->workers ? options->workers : default_workers();
    if (strcmp(name, "cpu") != 0) {
        return error_set(err, ST_NOT_FOUND, "device '%.64s': there is one CPU device, 'cpu'", name);
    }
    if (workers > HAL_CPU_WORKERS_MAX) {
        return error_set(err, ST_INVALID, "cpu: %u workers, expected at most %d", workers,
                         HAL_CPU_WORKERS_MAX);
    }
    struct hal_cpu_device *device = calloc(1, sizeof(*device));
    if (!device) {
        return error_no_memory(err, "the CPU device");
    }
    enum status status = init(device, workers, options, err);
    if (status != ST_OK) {
        free(device);
        return status;
    }
    hal_device_init(&device->base, &hal_cpu_ops);
    hal_cpu_pages_init_file(&device->pages);
    fill_props(device, workers);
    *out_device = &device->base;
    return ST_OK;
}

static void cpu_list(struct buf *out)
{
    char text[96];
    describe(text, sizeof(text), hal_cpu_isa(), default_workers());
    buf_printf(out, "cpu\t%s\n", text);
}

const struct hal_driver hal_cpu_driver = {
    .name = "cpu", .open = cpu_open, .list = cpu_list, .has_form = has_form};
