/* SPDX-License-Identifier: MIT */
/*
 * Names come from the command line and from the folder, never from a request: a request's name is
 * only looked up here. Names outside [A-Za-z0-9._-]{1,128} are refused, so that each can stand in a
 * path and in a log line as it is.
 */
#include "config.h"

#include "server/model.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "runtime/signature.h"
#include "server/log.h"
#include "server/route.h"

#define MODELS_ARENA_MAX (64 << 20)
#define MODELS_MAX 65536
#define SUFFIX ".pte"
#define FIXED_BYTES_MAX (1 << 20)

void models_init(struct models *models, struct hal_device *device)
{
    *models = (struct models){.device = device};
    arena_init(&models->arena, MODELS_ARENA_MAX);
}

void models_fini(struct models *models)
{
    for (uint32_t i = 0; i < models->item_count; i++) {
        rt_program_unref(models->items[i].program);
    }
    free(models->items);
    models->items = NULL;
    models->item_count = 0;
    arena_fini(&models->arena);
}

/* ---- one model ------------------------------------------------------------------------------- */

static bool name_is_valid(struct span name)
{
    if (name.len == 0 || name.len > ROUTE_MODEL_MAX || name.ptr[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!isalnum(name.ptr[i]) && !strchr("._-", name.ptr[i])) {
            return false;
        }
    }
    return true;
}

static enum status add_item(struct models *models, struct span name, uint32_t version,
                            struct model **out_model, struct error *err)
{
    if (!name_is_valid(name)) {
        return error_set(err, ST_INVALID,
                         "model name '%.*s': expected 1 to %d of A-Z a-z 0-9 . _ -, no dot first",
                         SPAN_FMT(name), ROUTE_MODEL_MAX);
    }
    if (models->item_count == models->item_capacity) {
        uint32_t capacity = models->item_capacity ? models->item_capacity * 2 : 16;
        struct model *items =
            capacity > MODELS_MAX ? NULL : realloc(models->items, capacity * sizeof(*items));
        if (!items) {
            return error_set(err, ST_EXHAUSTED, "models: no room for more than %u",
                             models->item_count);
        }
        models->items = items;
        models->item_capacity = capacity;
    }
    struct model *model = &models->items[models->item_count++];
    *model = (struct model){.version = version, .failure = {.code = ST_OK}};
    memcpy(model->name, name.ptr, name.len);
    snprintf(model->version_text, sizeof(model->version_text), "%u", version);
    *out_model = model;
    return ST_OK;
}

static struct oip_type type_of(const struct rt_io *io)
{
    return (struct oip_type){.is_bytes = io->kind == RT_IO_STRING, .dtype = io->dtype};
}

static struct shape shape_of(const struct rt_io *io)
{
    struct shape shape = io->shape;
    if (io->kind == RT_IO_STRING) {
        return (struct shape){.rank = 1, .dims = {1}};
    }
    for (int dim = 0; dim < shape.rank; dim++) {
        if (io->dynamic_dims & 1u << dim) {
            shape.dims[dim] = -1;
        }
    }
    return shape;
}

/* All but None, which has no entry in the protocol. */
static enum status describe(struct models *models, const struct rt_method *method, bool is_input,
                            struct model_io **out_ios, uint32_t *out_count, struct error *err)
{
    uint32_t count = is_input ? rt_method_input_count(method) : rt_method_result_count(method);
    struct model_io *ios = arena_array(&models->arena, count, sizeof(*ios));
    if (!ios) {
        return error_set(err, ST_EXHAUSTED, "model description: out of memory");
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io =
            is_input ? rt_method_input(method, i) : rt_method_result(method, i);
        if (io->kind != RT_IO_NONE) {
            ios[used++] = (struct model_io){
                .index = i,
                .kind = io->kind,
                .meta = {.name = io->name, .type = type_of(io), .shape = shape_of(io)},
            };
        }
    }
    *out_ios = ios;
    *out_count = used;
    return ST_OK;
}

/* The one value that is taken, as JSON; NULL where any is, or without memory. */
static const char *print_fixed(struct arena *arena, const struct rt_io *io)
{
    struct buf text;
    uint8_t number[NUMBER_TEXT_MAX];
    if (!io->is_fixed) {
        return NULL;
    }
    buf_init(&text, FIXED_BYTES_MAX);
    if (io->kind == RT_IO_STRING) {
        json_print_string(&text, io->value.s);
    } else if (io->kind == RT_IO_BOOL) {
        buf_add_str(&text, io->value.b ? "true" : "false");
    } else {
        buf_add(&text, number,
                io->kind == RT_IO_INT ? number_print_i64(number, io->value.i)
                                      : number_print_f64(number, io->value.f));
    }
    const char *fixed = buf_failed(&text) ? NULL : arena_strdup(arena, text.ptr, text.len);
    buf_fini(&text);
    return fixed;
}

static struct call_slot slot_of(struct arena *arena, const struct rt_io *io)
{
    static const enum call_kind kinds[] = {
        [RT_IO_NONE] = CALL_NONE,    [RT_IO_TENSOR] = CALL_TENSOR, [RT_IO_INT] = CALL_SCALAR,
        [RT_IO_FLOAT] = CALL_SCALAR, [RT_IO_BOOL] = CALL_SCALAR,   [RT_IO_STRING] = CALL_STRING,
    };
    return (struct call_slot){
        .kind = kinds[io->kind],
        .dtype = io->dtype,
        .shape = io->kind == RT_IO_TENSOR ? shape_of(io) : (struct shape){.rank = 0},
        .fixed = print_fixed(arena, io),
    };
}

static enum status describe_call(struct models *models, const struct rt_method *method,
                                 struct call_method *out, struct error *err)
{
    struct arena *arena = &models->arena;
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    struct call_slot *slots = arena_array(arena, (size_t)inputs + results, sizeof(*slots));
    if (!slots) {
        return error_set(err, ST_EXHAUSTED, "model description: out of memory");
    }
    for (uint32_t i = 0; i < inputs; i++) {
        slots[i] = slot_of(arena, rt_method_input(method, i));
    }
    for (uint32_t i = 0; i < results; i++) {
        slots[inputs + i] = slot_of(arena, rt_method_result(method, i));
    }
    *out = (struct call_method){&rt_method_signature(method)->structure, slots, slots + inputs,
                                inputs, results};
    return ST_OK;
}

static enum status add_method(struct models *models, struct span name, uint32_t version,
                              struct rt_method *method, struct error *err)
{
    struct model *model;
    TRY(add_item(models, name, version, &model, err));
    model->program = rt_program_ref(rt_method_program(method));
    model->method = method;
    const struct error *failure = rt_method_failure(method);
    if (failure) {
        model->failure = *failure;
    }
    TRY(describe(models, method, true, &model->inputs, &model->input_count, err));
    TRY(describe(models, method, false, &model->outputs, &model->output_count, err));
    return describe_call(models, method, &model->call, err);
}

/* ---- one file -------------------------------------------------------------------------------- */

static enum status add_program(struct models *models, struct span name, uint32_t version,
                               struct rt_program *program, struct error *err)
{
    uint32_t count = rt_program_method_count(program);
    struct rt_method *method = rt_program_default_method(program);
    if (method) {
        TRY(add_method(models, name, version, method, err));
    }
    for (uint32_t i = 0; i < count && count > 1; i++) {
        char text[2 * ROUTE_MODEL_MAX];
        method = rt_program_method(program, i);
        int len = snprintf(text, sizeof(text), "%.*s.%s", SPAN_FMT(name), rt_method_name(method));
        must(len > 0);
        TRY(add_method(models, span_of(text, (size_t)len), version, method, err));
    }
    return ST_OK;
}

/* Why nothing of the program can be called; ST_OK when something can. */
static enum status check_callable(const struct rt_program *program, struct error *err)
{
    const struct error *failure = NULL;
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        failure = rt_method_failure(rt_program_method(program, i));
        if (!failure) {
            return ST_OK;
        }
    }
    return failure ? error_set(err, ST_CORRUPT, "%s", failure->text)
                   : error_set(err, ST_CORRUPT, "the program has no methods");
}

/* The runtime's text begins with the path, cut to this; clients, who see the rest, need not know
 * where our files are. */
#define ERROR_PATH_MAX 160

static enum status forget_path(struct error *err, const char *path)
{
    size_t len = strnlen(path, ERROR_PATH_MAX);
    if (strncmp(err->text, path, len) == 0 && strncmp(err->text + len, ": ", 2) == 0) {
        memmove(err->text, err->text + len + 2, strlen(err->text + len + 2) + 1);
    }
    return err->code;
}

static enum status load(struct models *models, struct span name, uint32_t version, const char *path,
                        struct error *err)
{
    struct rt_program_options options = {.device = models->device};
    struct rt_program *program;
    if (rt_program_load(path, &options, &program, err) != ST_OK) {
        return forget_path(err, path);
    }
    enum status status = check_callable(program, err);
    if (status == ST_OK) {
        status = add_program(models, name, version, program, err);
    }
    rt_program_unref(program);
    return status;
}

/* A file that the user named: it loads, or the daemon does not start. */
static enum status load_named(struct models *models, struct span name, const char *path,
                              struct error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return error_set(err, errno == EACCES ? ST_UNAVAILABLE : ST_NOT_FOUND, "model file %s: %s",
                         path, strerror(errno));
    }
    if (!name_is_valid(name)) {
        struct model *model;
        return add_item(models, name, 1, &model, err); /* says why */
    }
    enum status status = load(models, name, 1, path, err);
    if (status == ST_OK || status == ST_EXHAUSTED) {
        return status;
    }
    err->code = ST_CORRUPT; /* whatever is wrong with it, it is this file */
    return error_prefix(err, "model file %s: ", path);
}

/* A file that was found: the others are served without it, and its reason is kept. */
static enum status load_found(struct models *models, struct span name, uint32_t version,
                              const char *path, struct error *err)
{
    if (!name_is_valid(name)) {
        log_line(LOG_WARNING, "skipped %s: not a valid model name", path);
        return ST_OK;
    }
    uint32_t count = models->item_count;
    if (load(models, name, version, path, err) == ST_OK) {
        return ST_OK;
    }
    log_line(LOG_ERROR, "model file %s: %s", path, err->text);
    struct error failure = *err;
    while (models->item_count > count) {
        rt_program_unref(models->items[--models->item_count].program);
    }
    struct model *model;
    TRY(add_item(models, name, version, &model, err));
    model->failure = failure;
    return ST_OK;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* "12" to 12; false for anything that is not a version. */
/* |root|/|name|/model.pte, or |root|/|name|/VERSION/model.pte. */
static enum status scan_model(struct models *models, const char *root, const char *name,
                              struct error *err)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s/%s", root, name) >= PATH_MAX ||
        snprintf(path, sizeof(path), "%s/%s/model" SUFFIX, root, name) >= PATH_MAX) {
        return ST_OK;
    }
    if (is_regular(path)) {
        return load_found(models, span_str(name), 1, path, err);
    }
    DIR *dir = opendir(folder);
    enum status status = ST_OK;
    for (struct dirent *entry; dir && status == ST_OK && (entry = readdir(dir)) != NULL;) {
        uint32_t version;
        int len = snprintf(path, sizeof(path), "%s/%s/%s/model" SUFFIX, root, name, entry->d_name);
        if (len < PATH_MAX && route_parse_version(span_str(entry->d_name), &version) &&
            is_regular(path)) {
            status = load_found(models, span_str(name), version, path, err);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return status;
}

static enum status scan_entry(struct models *models, const char *root, const char *name,
                              struct error *err)
{
    char path[PATH_MAX];
    if (name[0] == '.' || snprintf(path, sizeof(path), "%s/%s", root, name) >= PATH_MAX) {
        return ST_OK;
    }
    size_t len = strlen(name), suffix = strlen(SUFFIX);
    if (len > suffix && strcmp(name + len - suffix, SUFFIX) == 0 && is_regular(path)) {
        return load_found(models, span_of(name, len - suffix), 1, path, err);
    }
    return scan_model(models, root, name, err);
}

static enum status scan(struct models *models, const char *root, struct error *err)
{
    DIR *dir = opendir(root);
    if (!dir) {
        return error_set(err, errno == EACCES ? ST_UNAVAILABLE : ST_NOT_FOUND, "--models %s: %s",
                         root, strerror(errno));
    }
    enum status status = ST_OK;
    for (struct dirent *entry; status == ST_OK && (entry = readdir(dir)) != NULL;) {
        status = scan_entry(models, root, entry->d_name, err);
    }
    closedir(dir);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct model *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    if (order == 0 && left->version != right->version) {
        return left->version > right->version ? -1 : 1;
    }
    return order;
}

/* "dir/name.pte" is called "name". */
static struct span name_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct span name = span_str(slash ? slash + 1 : path);
    size_t suffix = strlen(SUFFIX);
    if (name.len > suffix && memcmp(name.ptr + name.len - suffix, SUFFIX, suffix) == 0) {
        name.len -= suffix;
    }
    return name;
}

enum status models_load(struct models *models, const struct options *options, struct error *err)
{
    for (uint32_t i = 0; i < options->model_count; i++) {
        const struct option_model *model = &options->models[i];
        struct span name =
            model->name ? span_of(model->name, model->name_len) : name_of_path(model->path);
        TRY(load_named(models, name, model->path, err));
    }
    if (options->models_dir) {
        TRY(scan(models, options->models_dir, err));
    }
    if (models->item_count) {
        qsort(models->items, models->item_count, sizeof(models->items[0]), compare);
    }
    for (uint32_t i = 1; i < models->item_count; i++) {
        if (compare(&models->items[i - 1], &models->items[i]) == 0) {
            return error_set(err, ST_INVALID, "model '%s' version %u: there are two of them",
                             models->items[i].name, models->items[i].version);
        }
    }
    return ST_OK;
}

/* The first of |name|'s versions, which is the highest; or where it would be. */
static uint32_t lower_bound(const struct models *models, const char *name)
{
    uint32_t low = 0, high = models->item_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(models->items[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct model *models_find(const struct models *models, const char *name, uint32_t version,
                                struct error *err)
{
    uint32_t first = lower_bound(models, name);
    const struct model *highest = NULL;
    for (uint32_t i = first; i < models->item_count; i++) {
        const struct model *model = &models->items[i];
        if (strcmp(model->name, name) != 0) {
            break;
        }
        if (version ? model->version == version : model_is_ready(model)) {
            return model;
        }
        highest = highest ? highest : model;
    }
    if (highest && !version) {
        return highest; /* none is ready: the caller says why */
    }
    if (highest) {
        error_set(err, ST_NOT_FOUND, "model '%s' has no version %u", name, version);
    } else {
        error_set(err, ST_NOT_FOUND, "no model '%s'", name);
    }
    return NULL;
}
