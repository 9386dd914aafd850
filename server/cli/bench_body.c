/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/folder.h"
#include "base/names.h"
#include "protocol/json.h"
#include "protocol/tensor_text.h"
#include "server/cli/bench_random.h"
#include "server/cli/input.h"
#include "server/cli/npy.h"
#include "server/process/file.h"

#define STRING_VALUE "text" /* of an element of BYTES */
#define INTEGERS 4 /* random integers are below it, so that indices into tables are valid */

/* The state from which the functions below make bodies. */
struct builder {
    const struct bench_model *model;
    const struct bench_body_options *options;
    struct bench_bodies *out;
    struct bench_random random;
};

static enum status lack_memory(const struct builder *m, struct error *err)
{
    return arena_fail(&m->out->arena, "what is sent", err);
}

/* A further value of |to|, zeroed; NULL: no memory. */
static struct bench_value *add_value(struct builder *m, struct bench_body_input *to)
{
    return ARENA_ROOM(&m->out->arena, to->values, to->capacity, to->count + 1)
               ? &to->values[to->count++]
               : NULL;
}

/* ---- options --------------------------------------------------------------------------------- */

static const char *name_at(const void *model, uint32_t index)
{
    return ((const struct bench_model *)model)->inputs[index].name;
}

/* The input that |text|, NAME=X, names, and X. */
static enum status find_input(const struct builder *m, const char *option, const char *text,
                              const char *form, uint32_t *out_index, const char **out_value,
                              struct error *err)
{
    char names[NAMES_TEXT_MAX];
    const char *equals = strchr(text, '=');
    struct span name = equals ? span_of(text, (size_t)(equals - text)) : span_of(text, 0);
    for (uint32_t i = 0; i < m->model->input_count; i++) {
        if (span_is(name, m->model->inputs[i].name)) {
            *out_index = i;
            *out_value = equals + 1;
            return ST_OK;
        }
    }
    return error_set(err, ST_INVALID, "%s %.64s: expected NAME=%s, where NAME is one of %s", option,
                     text, form, names_join(name_at, m->model, m->model->input_count, names));
}

/* The shape that --shape gives to an input; false: none. */
static enum status find_shape(const struct builder *m, uint32_t input, struct shape *out,
                              bool *out_is_given, struct error *err)
{
    *out_is_given = false;
    for (uint32_t i = 0; i < m->options->shape_count; i++) {
        const char *text = m->options->shapes[i], *value;
        uint32_t index;
        TRY(find_input(m, "--shape", text, "2x3x4", &index, &value, err));
        if (index != input) {
            continue;
        }
        if (*out_is_given) {
            return error_set(err, ST_INVALID, "--shape %.64s: %s is given twice", text,
                             m->model->inputs[index].name);
        }
        if (cli_input_parse_dims(value, out, err) != ST_OK) {
            return error_prefix(err, "--shape %.64s: ", text);
        }
        *out_is_given = true;
    }
    return ST_OK;
}

/* ---- values from files ----------------------------------------------------------------------- */

/* The files of an input, as their values are made. */
struct files {
    struct builder *builder;
    struct bench_body_input *to;
    struct shape shape;
    bool has_shape; /* all must have that one */
};

static enum status check_shape(const struct files *f, const struct shape *shape, struct error *err)
{
    char wanted[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
    const struct shape *declared = &f->to->input->shape;
    bool is_same = shape->rank == declared->rank;
    for (uint8_t d = 0; d < shape->rank && is_same; d++) {
        is_same = declared->dims[d] < 0 || declared->dims[d] == shape->dims[d];
    }
    if (!is_same) {
        return error_set(err, ST_INVALID, "the model takes %s, the file has %s",
                         shape_print(declared, wanted), shape_print(shape, got));
    }
    if (f->has_shape && !shape_equal(&f->shape, shape)) {
        return error_set(err, ST_INVALID, "--shape says %s, the file has %s",
                         shape_print(&f->shape, wanted), shape_print(shape, got));
    }
    return ST_OK;
}

static enum status take_array(const struct files *f, struct span file, struct bench_value *value,
                              struct error *err)
{
    enum dtype dtype = f->to->input->dtype;
    struct npy array;
    TRY(npy_parse(file, &array, err));
    if (array.dtype != dtype) {
        return error_set(err, ST_INVALID, "expected %s, got %s: convert it by .astype('%s')",
                         dtype_name(dtype), dtype_name(array.dtype), dtype_name(dtype));
    }
    TRY(check_shape(f, &array.shape, err));
    void *memory = arena_alloc(&f->builder->out->arena, array.data.len);
    if (!memory) {
        return lack_memory(f->builder, err);
    }
    npy_copy(&array, memory);
    *value = (struct bench_value){array.shape, span_of(memory, array.data.len)};
    return ST_OK;
}

/* The whole file is the text of each element. */
static enum status take_string(const struct files *f, struct span file, struct bench_value *value,
                               struct error *err)
{
    if (file.len > UINT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "expected at most %u bytes", UINT32_MAX);
    }
    char *text = arena_strdup(&f->builder->out->arena, file.ptr, file.len);
    value->shape = f->shape;
    value->bytes = span_of(text, file.len);
    return text ? ST_OK : lack_memory(f->builder, err);
}

static enum status take_file(struct files *f, const char *path, struct error *err)
{
    if (f->to->count == BENCH_BODIES_MAX) {
        return error_set(err, ST_INVALID, "%.128s: expected at most %d files for an input", path,
                         BENCH_BODIES_MAX);
    }
    struct bench_value *value = add_value(f->builder, f->to);
    if (!value) {
        return lack_memory(f->builder, err);
    }
    struct buf file;
    buf_init(&file, BENCH_BODIES_BYTES_MAX);
    enum status status = file_read(path, &file, err);
    if (status == ST_OK) {
        status = f->to->input->is_bytes ? take_string(f, buf_span(&file), value, err)
                                        : take_array(f, buf_span(&file), value, err);
    }
    buf_fini(&file);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.128s: ", path);
}

static bool is_wanted(const struct files *f, const char *name)
{
    return name[0] != '.' && (ends_with(name, ".npy") || f->to->input->is_bytes);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The paths of the files in a folder, in the order of their names. */
static enum status list_folder(const struct files *f, const char *folder, DIR *dir, char **paths,
                               uint32_t *count, struct error *err)
{
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (!is_wanted(f, entry->d_name)) {
            continue;
        }
        size_t size = strlen(folder) + strlen(entry->d_name) + 2;
        char *path = arena_alloc(&f->builder->out->arena, size);
        if (!path) {
            return lack_memory(f->builder, err);
        }
        if (*count == BENCH_BODIES_MAX) {
            return error_set(err, ST_INVALID, "expected at most %d files", BENCH_BODIES_MAX);
        }
        snprintf(path, size, "%s/%s", folder, entry->d_name);
        paths[(*count)++] = path;
    }
    qsort(paths, *count, sizeof(*paths), compare_names);
    return *count ? ST_OK
                  : error_set(err, ST_NOT_FOUND, "expected files%s",
                              f->to->input->is_bytes ? "" : " that end in .npy");
}

static enum status take_folder(struct files *f, const char *folder, struct error *err)
{
    char **paths = arena_array(&f->builder->out->arena, BENCH_BODIES_MAX, sizeof(*paths));
    uint32_t count = 0;
    DIR *dir = paths ? folder_open(folder) : NULL;
    if (!dir) {
        return paths ? error_set(err, status_of_errno(errno), "%.128s: %s", folder, strerror(errno))
                     : lack_memory(f->builder, err);
    }
    enum status status = list_folder(f, folder, dir, paths, &count, err);
    closedir(dir);
    if (status != ST_OK) {
        return error_prefix(err, "%.128s: ", folder);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(take_file(f, paths[i], err));
    }
    return ST_OK;
}

static enum status take_path(struct files *f, const char *path, struct error *err)
{
    struct stat info;
    bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    return is_folder ? take_folder(f, path, err) : take_file(f, path, err);
}

static enum status take_files(struct builder *m, uint32_t input, const struct shape *shape,
                              bool has_shape, struct error *err)
{
    struct files f = {.builder = m, .to = &m->out->inputs[input], .has_shape = has_shape};
    f.shape = *shape;
    for (uint32_t i = 0; i < m->options->data_count; i++) {
        const char *path;
        uint32_t index;
        TRY(find_input(m, "--data", m->options->data[i], "FILE.npy", &index, &path, err));
        if (index == input && take_path(&f, path, err) != ST_OK) {
            return error_prefix(err, "--data %s=", f.to->input->name);
        }
    }
    return ST_OK;
}

/* ---- random values --------------------------------------------------------------------------- */

static double random_element(struct bench_random *random, enum dtype dtype)
{
    switch (dtype_infos[dtype].kind) {
    case DTYPE_FLOAT:
        return 2 * bench_random_unit(random) - 1;
    case DTYPE_BOOL:
        return (double)(bench_random_bits(random) >> 63);
    case DTYPE_INT:
    case DTYPE_UINT:
        return (double)(bench_random_bits(random) >> 32) * INTEGERS * 0x1p-32;
    case DTYPE_COMPLEX:
        break; /* no input has another kind */
    }
    unreachable();
}

static enum status make_random(struct builder *m, struct bench_body_input *to,
                               const struct shape *shape, struct error *err)
{
    const struct bench_input *input = to->input;
    struct bench_value *value = add_value(m, to);
    if (!value) {
        return lack_memory(m, err);
    }
    value->shape = *shape;
    if (input->is_bytes) {
        value->bytes = span_str(STRING_VALUE);
        return ST_OK;
    }
    size_t bytes;
    TRY(shape_bytes(shape, input->dtype, &bytes, err));
    void *memory = arena_alloc(&m->out->arena, bytes);
    if (!memory) {
        return lack_memory(m, err);
    }
    for (size_t i = 0; i < bytes / dtype_bytes(input->dtype); i++) {
        cli_input_store(memory, input->dtype, i, random_element(&m->random, input->dtype));
    }
    value->bytes = span_of(memory, bytes);
    return ST_OK;
}

/* ---- the inputs ------------------------------------------------------------------------------ */

static bool has_open_dims(const struct shape *shape)
{
    for (uint8_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] < 0) {
            return true;
        }
    }
    return false;
}

/* Without an option: the server's example, or the only shape that there is. */
static void choose_shape(struct bench_body_input *to, struct shape *out)
{
    to->is_chosen = has_open_dims(&to->input->shape);
    *out = to->input->example;
}

/* The shape decides how many strings there are, so it is bounded as the bodies are. */
static enum status check_strings(const struct bench_input *input, const struct shape *shape,
                                 struct error *err)
{
    size_t count;
    enum status status = shape_bytes(shape, DT_U8, &count, err);
    if (status == ST_OK && count > BENCH_BODIES_BYTES_MAX / sizeof(struct span)) {
        status = error_set(err, ST_TOO_LARGE, "%zu strings are too many", count);
    }
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", input->name);
}

static enum status make_input(struct builder *m, uint32_t index, struct error *err)
{
    struct bench_body_input *to = &m->out->inputs[index];
    const struct bench_input *input = &m->model->inputs[index];
    struct shape shape = {0};
    bool has_shape;
    to->input = input;
    TRY(find_shape(m, index, &shape, &has_shape, err));
    if (input->is_bytes && !has_shape) {
        choose_shape(to, &shape);
    }
    if (input->is_bytes) {
        TRY(check_strings(input, &shape, err));
    }
    TRY(take_files(m, index, &shape, has_shape, err));
    if (to->count > 0 || (input->is_optional && !has_shape)) {
        to->is_chosen = to->is_chosen && to->count == 0;
        return ST_OK;
    }
    if (!has_shape && !input->is_bytes) {
        choose_shape(to, &shape);
    }
    return make_random(m, to, &shape, err);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static size_t element_count(const struct bench_value *value)
{
    return (size_t)shape_numel(&value->shape);
}

/* Bytes on the wire: strings have their lengths in front of them. */
static enum status wire_bytes(const struct bench_body_input *from, const struct bench_value *value,
                              size_t *out, struct error *err)
{
    *out = value->bytes.len;
    if (from->input->is_bytes &&
        (!add_size(*out, sizeof(uint32_t), out) || !mul_size(*out, element_count(value), out))) {
        return error_set(err, ST_TOO_LARGE, "%s is too large", from->input->name);
    }
    return ST_OK;
}

static void print_strings(const struct bench_value *value, bool is_json, struct buf *out)
{
    size_t count = element_count(value);
    uint8_t len[4];
    for (int i = 0; i < 4; i++) {
        len[i] = (uint8_t)(value->bytes.len >> 8 * i);
    }
    buf_add_str(out, is_json ? "[" : "");
    for (size_t i = 0; i < count && !buf_failed(out); i++) {
        if (is_json) {
            buf_add_str(out, i ? "," : "");
            json_print_string(out, value->bytes);
        } else {
            buf_add(out, len, sizeof(len));
            buf_add(out, value->bytes.ptr, value->bytes.len);
        }
    }
    buf_add_str(out, is_json ? "]" : "");
}

static void print_data(const struct bench_body_input *from, const struct bench_value *value,
                       struct buf *out)
{
    enum dtype dtype = from->input->dtype;
    buf_add_str(out, ",\"data\":");
    if (from->input->is_bytes) {
        print_strings(value, true, out);
    } else {
        tensor_text_print(out, dtype, value->bytes.ptr, value->bytes.len / dtype_bytes(dtype),
                          NUMBER_NAN_STRING);
    }
}

static enum status print_tensor(const struct bench_body_input *from,
                                const struct bench_value *value, bool is_json, struct buf *out,
                                struct error *err)
{
    const struct bench_input *input = from->input;
    size_t bytes;
    buf_add_str(out, "{\"name\":");
    json_print_string(out, span_str(input->name));
    buf_printf(out, ",\"datatype\":\"%s\",\"shape\":",
               input->is_bytes ? "BYTES" : dtype_infos[input->dtype].oip);
    tensor_text_print(out, DT_I64, value->shape.dims, value->shape.rank, NUMBER_NAN_STRING);
    if (is_json) {
        print_data(from, value, out);
    } else {
        TRY(wire_bytes(from, value, &bytes, err));
        buf_printf(out, ",\"parameters\":{\"binary_data_size\":%zu}", bytes);
    }
    buf_add_char(out, '}');
    return ST_OK;
}

static const struct bench_value *value_of(const struct bench_body_input *from, uint32_t body)
{
    return from->count ? &from->values[body % from->count] : NULL;
}

static enum status print_document(const struct bench_bodies *bodies, uint32_t body, struct buf *out,
                                  struct error *err)
{
    const char *before = "";
    buf_add_char(out, '{');
    if (!bodies->is_json) {
        buf_add_str(out, "\"parameters\":{\"binary_data_output\":true},");
    }
    buf_add_str(out, "\"inputs\":[");
    for (uint32_t i = 0; i < bodies->input_count; i++) {
        const struct bench_value *value = value_of(&bodies->inputs[i], body);
        if (value) {
            buf_add_str(out, before);
            TRY(print_tensor(&bodies->inputs[i], value, bodies->is_json, out, err));
            before = ",";
        }
    }
    buf_add_str(out, "]}");
    return ST_OK;
}

/* Behind the document, in the order of the inputs. */
static void print_tensors(const struct bench_bodies *bodies, uint32_t body, struct buf *out)
{
    for (uint32_t i = 0; i < bodies->input_count; i++) {
        const struct bench_body_input *from = &bodies->inputs[i];
        const struct bench_value *value = value_of(from, body);
        if (value && from->input->is_bytes) {
            print_strings(value, false, out);
        } else if (value) {
            buf_add(out, value->bytes.ptr, value->bytes.len);
        }
    }
}

static uint64_t count_rows(const struct builder *m, uint32_t body)
{
    const struct bench_body_input *inputs = m->out->inputs;
    for (uint32_t i = 0; i < m->out->input_count && m->model->has_rows; i++) {
        const struct bench_value *value = value_of(&inputs[i], body);
        if (value && value->shape.rank > 0) {
            return (uint64_t)value->shape.dims[0];
        }
    }
    return 1;
}

static enum status make_body(struct builder *m, uint32_t index, struct buf *text, struct error *err)
{
    struct bench_body *body = &m->out->items[index];
    TRY(print_document(m->out, index, text, err));
    body->json_bytes = text->len;
    if (!m->out->is_json) {
        print_tensors(m->out, index, text);
    }
    if (buf_failed(text)) {
        return error_set(err, text->lacks_memory ? ST_EXHAUSTED : ST_TOO_LARGE,
                         "no room for a request of more than %zu bytes", text->len);
    }
    char *copy = arena_strdup(&m->out->arena, text->ptr, text->len);
    body->bytes = span_of(copy, text->len);
    body->rows = count_rows(m, index);
    return copy ? ST_OK : lack_memory(m, err);
}

static enum status make_bodies(struct builder *m, struct error *err)
{
    struct bench_bodies *out = m->out;
    out->count = 1;
    for (uint32_t i = 0; i < out->input_count; i++) {
        out->count = out->inputs[i].count > out->count ? out->inputs[i].count : out->count;
    }
    out->items = arena_array(&out->arena, out->count, sizeof(*out->items));
    if (!out->items) {
        return lack_memory(m, err);
    }
    enum status status = ST_OK;
    struct buf text;
    buf_init(&text, BENCH_BODIES_BYTES_MAX);
    for (uint32_t i = 0; i < out->count && status == ST_OK; i++) {
        buf_reset(&text);
        status = make_body(m, i, &text, err);
    }
    buf_fini(&text);
    return status;
}

/* An option for an unknown input is refused also if the model has none. */
static enum status check_options(const struct builder *m, struct error *err)
{
    const char *value;
    uint32_t index;
    for (uint32_t i = 0; i < m->options->shape_count; i++) {
        TRY(find_input(m, "--shape", m->options->shapes[i], "2x3x4", &index, &value, err));
    }
    for (uint32_t i = 0; i < m->options->data_count; i++) {
        TRY(find_input(m, "--data", m->options->data[i], "FILE.npy", &index, &value, err));
    }
    return ST_OK;
}

enum status bench_bodies_make(const struct bench_model *model,
                              const struct bench_body_options *options, struct bench_bodies *out,
                              struct error *err)
{
    struct builder m = {model, options, out, bench_random_of(options->seed)};
    *out = (struct bench_bodies){.is_json = options->is_json};
    arena_init(&out->arena, BENCH_BODIES_BYTES_MAX);
    out->inputs = arena_array(&out->arena, model->input_count, sizeof(*out->inputs));
    if (!out->inputs) {
        return lack_memory(&m, err);
    }
    TRY(check_options(&m, err));
    for (uint32_t i = 0; i < model->input_count; i++) {
        TRY(make_input(&m, i, err));
    }
    out->input_count = model->input_count;
    return make_bodies(&m, err);
}

void bench_bodies_fini(struct bench_bodies *bodies)
{
    arena_fini(&bodies->arena);
}

void bench_bodies_print_inputs(const struct bench_bodies *bodies, bool only_chosen, struct buf *out)
{
    for (uint32_t i = 0; i < bodies->input_count; i++) {
        const struct bench_body_input *from = &bodies->inputs[i];
        const struct bench_value *value = value_of(from, 0);
        if (!value || (only_chosen && !from->is_chosen)) {
            continue;
        }
        buf_printf(out, " %s=", from->input->name);
        for (uint8_t d = 0; d < value->shape.rank; d++) {
            buf_printf(out, "%s%lld", d ? "x" : "", (long long)value->shape.dims[d]);
        }
        if (!only_chosen) {
            buf_printf(out, " %s",
                       from->input->is_bytes ? "BYTES" : dtype_infos[from->input->dtype].oip);
        }
    }
}
