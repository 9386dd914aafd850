/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/load/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/device.h"
#include "runtime/load/cells_int8.h"
#include "runtime/load/compose.h"
#include "runtime/load/method.h"
#include "runtime/program/composition.h"
#include "runtime/program/method.h"

/* Joined from what a file has, which is bounded. */
#define PLANS_BYTES_MAX (512u << 20)

/* |*out_plan| is NULL if there is no method more than those of the file. */
static enum status find_more(struct rt_program *program, const struct rt_load_options *options,
                             const struct pte_plan **out_plan, struct error *err)
{
    size_t count;
    const struct pte_plan *plans = pte_plans(program->files.pte, &count);
    *out_plan = NULL;
    arena_init(&program->plans, PLANS_BYTES_MAX);
    return options->composition ? rt_compose(plans, (uint32_t)count, options->composition,
                                             &program->plans, out_plan, err)
                                : ST_OK;
}

/* A method of parts of which one cannot be used would be a default method that cannot, either. */
static bool are_usable(const struct rt_program *program, const struct rt_composition *of)
{
    bool are = true;
    for (uint32_t i = 0; i < program->method_count; i++) {
        const struct rt_method *method = &program->methods[i];
        bool is_part =
            strcmp(method->name, of->first) == 0 || strcmp(method->name, of->second) == 0;
        are = are && (!is_part || method->failure.code == ST_OK);
    }
    return are;
}

static enum status compile_methods(struct rt_program *program,
                                   const struct rt_load_options *options, struct error *err)
{
    size_t count;
    const struct pte_plan *plans = pte_plans(program->files.pte, &count), *more;
    TRY(find_more(program, options, &more, err));
    size_t all = count + (more ? 1 : 0);
    program->methods = calloc(all, sizeof(*program->methods));
    if (!program->methods) {
        return error_no_memory(err, "%zu methods", all);
    }
    program->is_composed = more != NULL;
    for (size_t i = 0; i < all; i++) {
        if (i == count && !are_usable(program, options->composition)) {
            break;
        }
        struct rt_method *method = &program->methods[i];
        program->method_count++;
        TRY(rt_load_method(method, program, &program->files, i < count ? &plans[i] : more, options,
                           err));
    }
    return ST_OK;
}

/*
 * |wanted|, as far as |device| has it: bfloat16 products are a property of processors, and other
 * devices have one form for each operator.
 */
static enum precision available(const struct hal_device *device, enum precision wanted)
{
    const struct hal_device_props *props = hal_device_props(device);
    if (!props->is_host) {
        return PRECISION_EXACT;
    }
    return wanted == PRECISION_BF16 && props->bf16_speed == 0 ? PRECISION_FAST : wanted;
}

/* Everything that decides the bytes of packed weights, beside the program and this build. */
static enum status keep_packed(struct rt_program *program, const struct rt_load_options *options,
                               struct error *err)
{
    const struct hal_device_props *props = hal_device_props(options->device);
    char machine[sizeof(props->description) + 32];
    if (!options->packed_folder || !props->is_host) {
        return ST_OK;
    }
    snprintf(machine, sizeof(machine), "%s, precision %d, fused %d", props->description,
             (int)program->precision, !options->is_unfused);
    return rt_files_keep_packed(&program->files, options->packed_folder, machine, err);
}

enum status rt_load_program(const char *path, const struct rt_load_options *options,
                            struct rt_program **out_program, struct error *err)
{
    struct rt_program *program = calloc(1, sizeof(*program));
    if (!program) {
        return error_no_memory(err, "a program");
    }
    program->magic = RT_PROGRAM_MAGIC;
    refs_init(&program->refs);
    program->device = hal_device_ref(options->device);
    program->precision = available(options->device, options->precision);
    const struct rt_files_source source = {
        .path = path,
        .bytes = options->bytes,
        .data_paths = options->data_paths,
        .data_count = options->data_count,
        .use = options->file_use,
    };
    enum status status = rt_files_open(&program->files, options->device, &source, err);
    if (status == ST_TOO_LARGE) { /* nobody can send less, and it is not damaged */
        err->code = status = ST_UNSUPPORTED;
    }
    if (status == ST_OK) {
        status = keep_packed(program, options, err);
    }
    if (status == ST_OK) {
        status = compile_methods(program, options, err);
    }
    if (status == ST_OK && options->has_int8_caches) {
        status = rt_cells_int8_settle(program, err);
    }
    if (status == ST_OK) {
        status = rt_files_settle(&program->files, err);
    }
    if (status == ST_OK) {
        status = rt_held_init(&program->held, program, err);
    }
    if (status != ST_OK) {
        rt_program_free(program);
        return status;
    }
    *out_program = program;
    return ST_OK;
}
