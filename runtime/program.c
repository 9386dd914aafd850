/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "protocol/rawsig.h"
#include "runtime/method.h"
#include "runtime/oracle.h"
#include "runtime/pte/pte.h"

struct rt_program {
    atomic_uint refs;
    struct pte_program *pte;   /* owned */
    struct hal_device *device; /* shared: ref held */
    struct hal_buffer *file;   /* owned: the mapping, as memory that dispatches can read */
    struct rt_method *methods; /* owned */
    uint32_t method_count;
};

/*
 * Binds the mapping to the device. The const goes here and nowhere else: the buffer is read-only,
 * and recording a write to it is an invariant violation.
 */
static enum status import_file(struct rt_program *program, struct error *err)
{
    struct span bytes = pte_file_bytes(program->pte);
    union {
        const uint8_t *from;
        void *to;
    } cast = {.from = bytes.ptr};
    return hal_buffer_import(program->device, cast.to, bytes.len, true, NULL, NULL, &program->file,
                             err);
}

static enum status compile_methods(struct rt_program *program,
                                   const struct rt_program_options *options, struct error *err)
{
    size_t count;
    const struct pte_plan *plans = pte_plans(program->pte, &count);
    program->methods = calloc(count, sizeof(*program->methods));
    if (!program->methods) {
        return error_set(err, ST_EXHAUSTED, "no memory for %zu methods", count);
    }
    for (size_t i = 0; i < count; i++) {
        struct rt_method *method = &program->methods[i];
        program->method_count++;
        TRY(rt_method_compile(method, program, &plans[i], options->device, program->file, err));
        method->poison_arenas = options->poison_arenas;
    }
    return ST_OK;
}

static void program_free(struct rt_program *program)
{
    for (uint32_t i = 0; i < program->method_count; i++) {
        rt_method_fini(&program->methods[i]);
    }
    free(program->methods);
    hal_buffer_unref(program->file);
    pte_program_unref(program->pte);
    hal_device_unref(program->device);
    free(program);
}

enum status rt_program_load(const char *path, const struct rt_program_options *options,
                            struct rt_program **out_program, struct error *err)
{
    struct rt_program *program = calloc(1, sizeof(*program));
    if (!program) {
        return error_set(err, ST_EXHAUSTED, "no memory for a program");
    }
    atomic_init(&program->refs, 1);
    program->device = hal_device_ref(options->device);
    enum status status = pte_open(path, &program->pte, err);
    if (status == ST_OK) {
        status = import_file(program, err);
    }
    if (status == ST_OK) {
        status = compile_methods(program, options, err);
    }
    if (status != ST_OK) {
        program_free(program);
        return status;
    }
    *out_program = program;
    return ST_OK;
}

struct rt_program *rt_program_ref(struct rt_program *program)
{
    atomic_fetch_add_explicit(&program->refs, 1, memory_order_relaxed);
    return program;
}

void rt_program_unref(struct rt_program *program)
{
    if (program && atomic_fetch_sub_explicit(&program->refs, 1, memory_order_acq_rel) == 1) {
        program_free(program);
    }
}

uint32_t rt_program_method_count(const struct rt_program *program)
{
    return program->method_count;
}

struct rt_method *rt_program_method(const struct rt_program *program, uint32_t index)
{
    must(index < program->method_count);
    return &program->methods[index];
}

struct rt_method *rt_program_find_method(const struct rt_program *program, struct span name)
{
    for (uint32_t i = 0; i < program->method_count; i++) {
        if (span_is(name, program->methods[i].plan->name)) {
            return &program->methods[i];
        }
    }
    return NULL;
}

struct rt_method *rt_program_default_method(const struct rt_program *program)
{
    struct rt_method *forward = rt_program_find_method(program, span_str("forward"));
    return forward || program->method_count != 1 ? forward : &program->methods[0];
}

static void print_ios(const struct rt_io *ios, uint32_t count, struct buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, "  %s: ", ios[i].name);
        rt_io_print(&ios[i], out);
        buf_add_str(out, ios[i].is_fixed ? ", fixed\n" : "\n");
    }
}

static void print_signature(const struct rt_signature *signature, struct buf *out)
{
    buf_printf(out, "  f (fv %s): %s\n", RAWSIG_VERSION, signature->f);
    buf_printf(out, "  readable: %s\n", signature->readable);
    buf_printf(out, "  sip (sipv %s): %s%s\n", SIP_VERSION, signature->sip,
               signature->is_positional ? " (positional: the file has no usable structure)" : "");
    buf_printf(out, "  readable: %s\n", signature->readable_sip);
    if (signature->fbr) {
        buf_printf(out, "  fbr: %s\n", signature->fbr);
    }
}

void rt_program_print(const struct rt_program *program, struct buf *out)
{
    pte_print(program->pte, out);
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
