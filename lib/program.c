/* SPDX-License-Identifier: MIT */
/* Programs and their methods. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/names.h"
#include "base/table.h"
#include "hal/device.h"
#include "lib/cards.h"
#include "lib/inside.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "runtime/program/signature.h"
#include "runtime/program/state.h"
#include "runtime/pte/files.h"

#define BORROW_ALIGN 64
#define ORIGIN_TEXT_MAX 1025 /* longer ones are cut */
#define TYPE_TEXT_MAX 257

/* ---- loading --------------------------------------------------------------------------------- */

static const enum pte_file_use uses[] = {
    [PTED_FILES_READ] = PTE_FILE_COPIED,
    [PTED_FILES_MAPPED] = PTE_FILE_MAPPED,
    [PTED_FILES_GUARDED] = PTE_FILE_GUARDED,
};
TABLE_ENDS_WITH(uses, PTED_FILES_GUARDED);

static const enum precision precisions[] = {
    [PTED_PRECISION_EXACT] = PRECISION_EXACT,
    [PTED_PRECISION_FAST] = PRECISION_FAST,
    [PTED_PRECISION_BF16] = PRECISION_BF16,
};
TABLE_ENDS_WITH(precisions, PTED_PRECISION_BF16);

/* The caller's choice of intermediate values. */
struct keeping {
    pted_keep_f *wants;
    void *arg;
};

static bool wants(void *arg, const struct rt_method *method, const struct rt_keep_value *value)
{
    const struct keeping *keeping = arg;
    char origin[ORIGIN_TEXT_MAX], type[TYPE_TEXT_MAX];
    snprintf(origin, sizeof(origin), "%.*s", SPAN_FMT(value->origin));
    snprintf(type, sizeof(type), "%.*s", SPAN_FMT(value->type));
    const struct pted_value told = {
        .method = rt_method_name(method), .name = value->name, .origin = origin, .type = type};
    return keeping->wants(&told, keeping->arg);
}

static enum status translate(const struct pted_load_options *options, struct rt_load_options *out,
                             struct keeping *out_keeping, struct error *err)
{
    struct pted_load_options all = PTED_LOAD_OPTIONS_INIT;
    TRY(lib_options_take(&all, sizeof(all), options, err));
    if ((unsigned)all.files >= sizeof(uses) / sizeof(uses[0])) {
        return error_set(err, ST_INVALID, "options: files %d, expected 0 to %d", (int)all.files,
                         PTED_FILES_GUARDED);
    }
    if ((unsigned)all.precision >= sizeof(precisions) / sizeof(precisions[0])) {
        return error_set(err, ST_INVALID, "options: precision %d, expected 0 to %d",
                         (int)all.precision, PTED_PRECISION_BF16);
    }
    if (all.data_count > RT_DATA_FILES_MAX) {
        return error_set(err, ST_INVALID, "options: %zu data files, at most %d are possible",
                         all.data_count, RT_DATA_FILES_MAX);
    }
    if (all.files != PTED_FILES_READ && (uintptr_t)out->bytes.ptr % BORROW_ALIGN != 0) {
        return error_set(err, ST_INVALID,
                         "the bytes of a program are at %p, expected a multiple of %d",
                         (const void *)out->bytes.ptr, BORROW_ALIGN);
    }
    out->file_use = uses[all.files];
    out->precision = precisions[all.precision];
    out->data_paths = all.data_paths;
    out->data_count = (uint32_t)all.data_count;
    *out_keeping = (struct keeping){all.keep, all.keep_arg};
    return ST_OK;
}

enum status lib_program_new(struct pted_device *device, struct rt_program *rt,
                            struct pted_program **out_program, struct error *err)
{
    size_t count = rt_program_method_count(rt);
    struct pted_program *program = calloc(1, sizeof(*program));
    struct pted_method *methods = calloc(count + 1, sizeof(*methods));
    if (!program || !methods) {
        free(program);
        free(methods);
        return error_no_memory(err, "a program");
    }
    *program = (struct pted_program){.magic = LIB_PROGRAM_MAGIC,
                                     .device = lib_device_ref(device),
                                     .rt = rt,
                                     .methods = methods,
                                     .method_count = count};
    refs_init(&program->refs);
    for (size_t i = 0; i < count; i++) {
        methods[i] = (struct pted_method){program, rt_program_method(rt, (uint32_t)i)};
    }
    *out_program = program;
    return ST_OK;
}

/* |adapter| may be NULL. */
static enum status load_runtime(const char *path, struct rt_load_options *options,
                                const struct lib_adapter *adapter, struct rt_program **out_program,
                                struct error *err)
{
    if (adapter) {
        adapter->begin(adapter->own, options);
    }
    TRY(rt_load_program(path, options, out_program, err));
    if (adapter && adapter->end(adapter->own, *out_program, err) != ST_OK) {
        rt_program_unref(*out_program);
        return err->code;
    }
    return ST_OK;
}

static enum pted_status load(struct pted_device *device, const char *path, struct span bytes,
                             const struct pted_load_options *options,
                             const struct lib_adapter *adapter, struct pted_program **out_program,
                             struct pted_error *err)
{
    OBJ_CHECK(device, LIB_DEVICE_MAGIC);
    struct rt_load_options rt_options = {.device = device->hal, .bytes = bytes};
    struct rt_program *rt = NULL;
    struct keeping keeping;
    const struct rt_keep keep = {wants, &keeping};
    struct error own;
    enum status status = translate(options, &rt_options, &keeping, &own);
    *out_program = NULL;
    if (status == ST_OK) {
        rt_options.keep = keeping.wants ? &keep : NULL;
        status = load_runtime(path, &rt_options, adapter, &rt, &own);
    }
    if (status == ST_OK) {
        status = lib_program_new(device, rt, out_program, &own);
        if (status != ST_OK) {
            rt_program_unref(rt);
        }
    }
    return lib_give(status, &own, err);
}

enum pted_status pted_program_load(struct pted_device *device, const char *path,
                                   const struct pted_load_options *options,
                                   struct pted_program **out_program, struct pted_error *err)
{
    return load(device, path, span_of(NULL, 0), options, NULL, out_program, err);
}

enum pted_status pted_program_load_memory(struct pted_device *device, const void *bytes,
                                          size_t size, const struct pted_load_options *options,
                                          struct pted_program **out_program, struct pted_error *err)
{
    return load(device, NULL, span_of(bytes, size), options, NULL, out_program, err);
}

enum pted_status lib_program_load(struct pted_device *device, const char *path,
                                  const struct pted_load_options *options,
                                  const struct lib_adapter *adapter,
                                  struct pted_program **out_program, struct pted_error *err)
{
    return load(device, path, span_of(NULL, 0), options, adapter, out_program, err);
}

struct pted_program *lib_program_ref(struct pted_program *program)
{
    OBJ_CHECK(program, LIB_PROGRAM_MAGIC);
    refs_take(&program->refs);
    return program;
}

void pted_program_free(struct pted_program *program)
{
    if (!program) {
        return;
    }
    OBJ_CHECK(program, LIB_PROGRAM_MAGIC);
    if (!refs_drop(&program->refs)) {
        return;
    }
    rt_program_unref(program->rt);
    pted_device_free(program->device);
    program->magic = 0;
    free(program->methods);
    free(program);
}

size_t pted_program_state_bytes(struct pted_program *program)
{
    OBJ_CHECK(program, LIB_PROGRAM_MAGIC);
    return rt_program_state_bytes(program->rt);
}

/* ---- methods --------------------------------------------------------------------------------- */

size_t pted_program_method_count(const struct pted_program *program)
{
    OBJ_CHECK(program, LIB_PROGRAM_MAGIC);
    return program->method_count;
}

const struct pted_method *pted_program_method(const struct pted_program *program, size_t index)
{
    OBJ_CHECK(program, LIB_PROGRAM_MAGIC);
    return index < program->method_count ? &program->methods[index] : NULL;
}

static const char *name_at(const void *of, uint32_t index)
{
    const struct pted_program *program = of;
    return rt_method_name(program->methods[index].rt);
}

enum pted_status pted_program_find_method(const struct pted_program *program, const char *name,
                                          const struct pted_method **out_method,
                                          struct pted_error *err)
{
    OBJ_CHECK(program, LIB_PROGRAM_MAGIC);
    char names[NAMES_TEXT_MAX];
    const struct rt_method *found = name ? rt_program_find_method(program->rt, span_str(name))
                                         : rt_program_default_method(program->rt);
    for (size_t i = 0; found && i < program->method_count; i++) {
        if (program->methods[i].rt == found) {
            *out_method = &program->methods[i];
            return PTED_OK;
        }
    }
    *out_method = NULL;
    return lib_refuse(err, ST_NOT_FOUND, "no method '%.60s'%s; the methods are %s",
                      name ? name : "forward", name ? "" : ", expected a name",
                      names_join(name_at, program, (uint32_t)program->method_count, names));
}

const char *pted_method_name(const struct pted_method *method)
{
    return rt_method_name(method->rt);
}

const char *pted_method_signature(const struct pted_method *method)
{
    return rt_method_signature(method->rt)->readable;
}

enum pted_status pted_method_verify(const struct pted_method *method, struct pted_error *err)
{
    const struct error *failure = rt_method_failure(method->rt);
    return failure ? lib_refuse(err, failure->code, "method '%.60s': %s",
                                rt_method_name(method->rt), failure->text)
                   : PTED_OK;
}

bool pted_method_is_constant(const struct pted_method *method)
{
    return rt_method_is_constant(method->rt);
}

struct rt_method *lib_method_runtime(const struct pted_method *method)
{
    return method->rt;
}
