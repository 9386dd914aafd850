/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/program.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/device.h"
#include "protocol/rawsig.h"
#include "runtime/program/method.h"
#include "runtime/program/oracle.h"
#include "runtime/program/state_cells.h"
#include "runtime/pte/file.h"
#include "runtime/pte/files.h"
#include "runtime/pte/packed.h"
#include "runtime/pte/pte.h"

void rt_program_free(struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    rt_held_fini(&program->held);
    for (uint32_t i = 0; i < program->method_count; i++) {
        rt_method_fini(&program->methods[i]);
    }
    free(program->methods);
    rt_state_cells_fini(&program->state_cells);
    arena_fini(&program->plans);
    rt_files_fini(&program->files);
    hal_device_unref(program->device);
    program->magic = 0;
    free(program);
}

enum status rt_program_new_empty(struct hal_device *device, const struct rt_callable *callable,
                                 struct rt_program **out_program, struct error *err)
{
    must(callable != NULL);
    struct rt_program *program = calloc(1, sizeof(*program));
    struct rt_method *method = calloc(1, sizeof(*method));
    if (!program || !method) {
        free(program);
        free(method);
        return error_no_memory(err, "a program");
    }
    program->magic = RT_PROGRAM_MAGIC;
    refs_init(&program->refs);
    program->device = hal_device_ref(device);
    program->methods = method;
    program->method_count = 1;
    method->callable = callable;
    method->program = program;
    method->device = device;
    rt_method_init(method);
    *out_program = program;
    return ST_OK;
}

struct rt_program *rt_program_ref(struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    refs_take(&program->refs);
    return program;
}

void rt_program_unref(struct rt_program *program)
{
    if (!program) {
        return;
    }
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    if (refs_drop(&program->refs)) {
        rt_program_free(program);
    }
}

uint32_t rt_program_descriptors(void)
{
    return pte_file_descriptors();
}

enum status rt_program_verify_own_files(const struct rt_program *program, struct error *err)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    return rt_files_verify(&program->files, err);
}

enum status rt_program_verify_files(const struct rt_program *program, struct error *err)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    TRY(rt_program_verify_own_files(program, err));
    for (uint32_t i = 0; i < program->method_count; i++) {
        const struct rt_method *method = &program->methods[i];
        for (uint32_t k = 0; k < method->part_count; k++) {
            TRY(rt_program_verify_files(rt_method_program(method->parts[k]), err));
        }
    }
    return ST_OK;
}

struct rt_state_cells *rt_program_state_cells(struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    return &program->state_cells;
}

const struct rt_files *rt_program_files(const struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    return &program->files;
}

const struct rt_method *rt_program_const_method(const struct rt_program *program, uint32_t index)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    must(index < program->method_count);
    return &program->methods[index];
}

void rt_program_print_packed(const struct rt_program *program, struct buf *out)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    const struct rt_packed *packed = program->files.packed;
    if (!packed) {
        return;
    }
    if (rt_packed_state(packed) == RT_PACKED_BROKEN) {
        buf_add_str(out, rt_packed_error(packed)->text);
    } else if (rt_packed_taken(packed) > 0) {
        buf_add_str(out, "packed weights from a file");
    } else {
        buf_add_str(out, "packed weights computed");
    }
}

enum precision rt_program_precision(const struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    return program->precision;
}

bool rt_program_has_int8_caches(const struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    bool has = false;
    for (uint32_t i = 0; i < program->state_cells.count; i++) {
        has |= program->state_cells.items[i].is_int8;
    }
    return has;
}

uint32_t rt_program_method_count(const struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    return program->method_count;
}

struct rt_method *rt_program_method(const struct rt_program *program, uint32_t index)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    must(index < program->method_count);
    return &program->methods[index];
}

struct rt_method *rt_program_find_method(const struct rt_program *program, struct span name)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    for (uint32_t i = 0; i < program->method_count; i++) {
        if (span_is(name, program->methods[i].name)) {
            return &program->methods[i];
        }
    }
    return NULL;
}

struct rt_method *rt_program_default_method(const struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    struct rt_method *forward = rt_program_find_method(program, span_str("forward"));
    return forward || program->method_count != 1 ? forward : &program->methods[0];
}

static void print_ios(const struct rt_io *ios, uint32_t count, struct buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        bool has_name = ios[i].name != ios[i].alias;
        buf_printf(out, has_name ? "  %s (%s): " : "  %s: ", ios[i].name, ios[i].alias);
        rt_io_print(&ios[i], out);
        buf_add_str(out, ios[i].is_fixed ? ", fixed\n" : "\n");
    }
}

static void print_signature(const struct rt_signature *signature, struct buf *out)
{
    buf_printf(out, "  f (fv %s): %s\n", RAWSIG_VERSION, signature->f);
    buf_printf(out, "  readable: %s\n", signature->readable);
    buf_printf(out, "  f (fv %s): %s\n", RAWSIG_VERSION_ORDERS, signature->f2);
    buf_printf(out, "  readable: %s\n", signature->readable_f2);
    buf_printf(out, "  sip (sipv %s): %s%s\n", SIP_VERSION, signature->sip,
               signature->is_positional ? " (positional: the file has no usable structure)" : "");
    buf_printf(out, "  readable: %s\n", signature->readable_sip);
    if (signature->fbr) {
        buf_printf(out, "  fbr: %s\n", signature->fbr);
    }
}

static void print_data_file(const struct rt_data_file *data, struct buf *out)
{
    buf_printf(out, "data file %s: ", data->path);
    if (data->ptd) {
        buf_printf(out, "%u entries\n", ptd_names(data->ptd)->count);
    } else {
        buf_add_str(out, "not needed\n");
    }
}

void rt_program_print(const struct rt_program *program, struct buf *out)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    pte_print(program->files.pte, out);
    for (uint32_t i = 0; i < program->files.data_count; i++) {
        print_data_file(&program->files.data[i], out);
    }
    for (uint32_t i = 0; i < program->method_count; i++) {
        const struct rt_method *method = &program->methods[i];
        const struct error *failure = rt_method_failure(method);
        buf_printf(out, "signature of %s\n", rt_method_name(method));
        print_ios(method->inputs, rt_method_input_count(method), out);
        print_ios(method->results, rt_method_result_count(method), out);
        print_signature(&method->signature, out);
        if (failure) {
            buf_printf(out, "  cannot be called: %s\n", failure->text);
        }
    }
}
