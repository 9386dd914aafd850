/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include "base/check.h"
#include "base/utf8.h"
#include "protocol/json.h"
#include "protocol/tensor_text.h"
#include "server/process/file.h"

#define DESCRIPTION_BYTES_MAX ((size_t)64 << 20)
#define DATA_BYTES_MAX ((size_t)4 << 30) /* of an input */
#define STRINGS_MAX (1 << 20)            /* that are all one text */
#define RESULTS_BYTES ((size_t)4 << 20)  /* for descriptions of results */
#define PATH_BYTES_MAX (4 << 10)

bool cli_remote_is_name(struct span name)
{
    const uint8_t *p = name.ptr, *end = name.ptr + name.len;
    if (name.len == 0 || name.len > TARGET_NAME_MAX) {
        return false;
    }
    while (p < end) {
        size_t len = *p < 0x80 ? 1 : utf8_sequence(p, end);
        if (len == 0 || *p < 0x20 || *p == 0x7f ||
            (len > 1 && utf8_is_disruptive(utf8_code(p, len)))) {
            return false;
        }
        p += len;
    }
    return true;
}

enum status cli_remote_blame(const struct cli_remote *remote, const char *path, struct error *err)
{
    return transfer_blame(&remote->transfer, path, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A program's method has a model of its own, which is called NAME.METHOD; "forward" is NAME. */
static enum status add_method(struct target *target, const char *method, struct error *err)
{
    size_t len = strlen(target->model);
    if (!method || strcmp(method, "forward") == 0) {
        return ST_OK;
    }
    int more = snprintf(target->model + len, sizeof(target->model) - len, ".%s", method);
    return more > 0 && (size_t)more < sizeof(target->model) - len
               ? ST_OK
               : error_set(err, ST_INVALID, "--method: the name of the model is too long");
}

static enum status open_inputs(struct cli_remote *remote, const struct cli_inputs_options *inputs,
                               struct error *err)
{
    size_t count = remote->io_count;
    TRY(cli_inputs_assign(&remote->inputs, remote->ios, remote->mediums, remote->io_count, inputs,
                          err));
    struct cli_remote_value *values = arena_array(&remote->arena, count + 1, sizeof(*values));
    remote->pieces = arena_array(&remote->arena, count + 1, sizeof(*remote->pieces));
    if (!values || !remote->pieces) {
        return arena_fail(&remote->arena, "the inputs", err);
    }
    for (size_t i = 0; i < count; i++) {
        buf_init(&values[i].data, DATA_BYTES_MAX);
    }
    remote->values = values;
    return ST_OK;
}

enum status cli_remote_connect(struct cli_remote *remote, const struct target *target,
                               const struct client_options *options, struct error *err)
{
    *remote = (struct cli_remote){.takes_binary = true};
    arena_init(&remote->arena, DESCRIPTION_BYTES_MAX);
    arena_init(&remote->answer, SIZE_MAX);
    buf_init(&remote->path, PATH_BYTES_MAX);
    buf_init(&remote->head, PATH_BYTES_MAX);
    buf_init(&remote->json, DATA_BYTES_MAX);
    TRY(client_init(&remote->client, target, options, err));
    return transfer_init(&remote->transfer, &remote->client, err);
}

enum status cli_remote_open(struct cli_remote *remote, const char *url, const char *method,
                            const struct client_options *options,
                            const struct cli_inputs_options *inputs, uint64_t answer_bytes_max,
                            struct error *err)
{
    struct target target;
    *remote = (struct cli_remote){.values = NULL};
    TRY(target_parse_model(url, &target, err));
    TRY(add_method(&target, method, err));
    TRY(cli_remote_connect(remote, &target, options, err));
    remote->answer_bytes_max = (size_t)answer_bytes_max;
    /* A number of two characters may be an element of eight bytes. */
    if (!mul_size(remote->answer_bytes_max, 5, &remote->answer.max_bytes) ||
        !add_size(remote->answer.max_bytes, RESULTS_BYTES, &remote->answer.max_bytes)) {
        remote->answer.max_bytes = SIZE_MAX;
    }
    TRY(cli_remote_describe(remote, err));
    return open_inputs(remote, inputs, err);
}

void cli_remote_close(struct cli_remote *remote)
{
    for (uint32_t i = 0; remote->values && i < remote->io_count; i++) {
        buf_fini(&remote->values[i].data);
    }
    cli_inputs_fini(&remote->inputs);
    transfer_fini(&remote->transfer);
    buf_fini(&remote->json);
    buf_fini(&remote->head);
    buf_fini(&remote->path);
    arena_fini(&remote->answer);
    arena_fini(&remote->arena);
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum status set_tensor(void *own, uint32_t index, enum dtype dtype,
                              const struct shape *shape, void **out_ptr, struct error *err)
{
    struct cli_remote *remote = own;
    struct cli_remote_value *value = &remote->values[index];
    size_t bytes;
    TRY(shape_bytes(shape, dtype, &bytes, err));
    buf_reset(&value->data);
    uint8_t *room = bytes <= DATA_BYTES_MAX ? buf_reserve(&value->data, bytes) : NULL;
    if (bytes > DATA_BYTES_MAX) {
        return error_set(err, ST_TOO_LARGE, "expected at most %zu bytes, got %zu", DATA_BYTES_MAX,
                         bytes);
    }
    if (bytes > 0 && !room) {
        return error_no_memory(err, "%zu bytes", bytes);
    }
    buf_commit(&value->data, bytes);
    value->shape = *shape;
    value->dtype = dtype;
    value->is_set = true;
    *out_ptr = bytes ? room : NULL;
    return ST_OK;
}

static enum status set_scalar(void *own, uint32_t index, enum dtype dtype, const void *bytes,
                              struct error *err)
{
    const struct shape shape = {0};
    void *memory;
    TRY(set_tensor(own, index, dtype, &shape, &memory, err));
    memcpy(memory, bytes, dtype_bytes(dtype));
    return ST_OK;
}

static enum status set_integer(void *own, uint32_t index, int64_t value, struct error *err)
{
    return set_scalar(own, index, DT_I64, &value, err);
}

static enum status set_number(void *own, uint32_t index, double value, struct error *err)
{
    return set_scalar(own, index, DT_F64, &value, err);
}

static enum status set_flag(void *own, uint32_t index, bool value, struct error *err)
{
    const uint8_t byte = value;
    return set_scalar(own, index, DT_BOOL, &byte, err);
}

/* As they travel: each behind its length, 4 bytes in little-endian order. */
static enum status add_string(struct buf *data, struct span string, struct error *err)
{
    if (string.len > UINT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "a string of more than %" PRIu32 " bytes", UINT32_MAX);
    }
    const uint8_t length[4] = {(uint8_t)string.len, (uint8_t)(string.len >> 8),
                               (uint8_t)(string.len >> 16), (uint8_t)(string.len >> 24)};
    buf_add(data, length, sizeof(length));
    buf_add(data, string.ptr, string.len);
    return buf_failed(data) ? error_set(err, ST_TOO_LARGE, "no room for the strings") : ST_OK;
}

static enum status set_strings(void *own, uint32_t index, const struct shape *shape,
                               const struct span *strings, struct error *err)
{
    struct cli_remote *remote = own;
    struct cli_remote_value *value = &remote->values[index];
    buf_reset(&value->data);
    for (int64_t i = 0; i < shape_numel(shape); i++) {
        TRY(add_string(&value->data, strings[i], err));
    }
    value->shape = *shape;
    value->is_set = true;
    return ST_OK;
}

/* In a tensor of several strings each is |string|. */
static enum status set_string(void *own, uint32_t index, struct span string, struct error *err)
{
    struct cli_remote *remote = own;
    struct cli_remote_value *value = &remote->values[index];
    const struct cli_inputs_item *item = &remote->inputs.items[index];
    size_t count;
    value->shape = item->has_shape ? item->shape : remote->ios[index].shape;
    TRY(shape_bytes(&value->shape, DT_U8, &count, err));
    if (count > STRINGS_MAX) {
        return error_set(err, ST_TOO_LARGE, "expected at most %d strings, got %zu", STRINGS_MAX,
                         count);
    }
    buf_reset(&value->data);
    for (size_t i = 0; i < count; i++) {
        TRY(add_string(&value->data, string, err));
    }
    value->is_set = true;
    return ST_OK;
}

static enum status add_file(struct buf *data, const char *path, struct error *err)
{
    struct buf file;
    buf_init(&file, DATA_BYTES_MAX);
    enum status status = file_read(path, &file, err);
    if (status == ST_OK) {
        status = add_string(data, buf_span(&file), err);
    }
    buf_fini(&file);
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", path);
}

/* They travel as they are; the server knows what becomes of them. */
static enum status set_media(void *own, uint32_t index, const char *const *items, uint32_t count,
                             struct shape *out_shape, struct error *err)
{
    struct cli_remote *remote = own;
    struct cli_remote_value *value = &remote->values[index];
    if (!remote->takes_binary) {
        return error_set(err, ST_UNSUPPORTED, "files and texts need a server with binary tensors");
    }
    buf_reset(&value->data);
    for (uint32_t i = 0; i < count; i++) {
        TRY(remote->mediums[index]->is_text ? add_string(&value->data, span_str(items[i]), err)
                                            : add_file(&value->data, items[i], err));
    }
    value->shape = (struct shape){.rank = 1, .dims = {count}};
    value->is_set = value->is_bytes = true;
    *out_shape = remote->ios[index].shape;
    if (out_shape->rank > 0) {
        out_shape->dims[0] = count;
    }
    return ST_OK;
}

static const struct cli_input_ops request_ops = {
    .tensor = set_tensor,
    .integer = set_integer,
    .number = set_number,
    .flag = set_flag,
    .string = set_string,
    .strings = set_strings,
    .media = set_media,
};

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The size that a given input has where its example is |size| long; first looked for among dims
 * that are first in their tensor, too, or not. */
static int64_t follow(const struct cli_remote *remote, const struct shape *const *given,
                      bool is_first, int64_t size)
{
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < remote->io_count; i++) {
            const struct cli_io *io = &remote->ios[i];
            for (uint8_t d = 0; given[i] && d < given[i]->rank && d < io->shape.rank; d++) {
                bool is_alike = (d == 0) == is_first || pass == 1;
                if ((io->dynamic_dims & 1u << d) && is_alike &&
                    remote->examples[i].dims[d] == size) {
                    return given[i]->dims[d];
                }
            }
        }
    }
    return size;
}

/* The server's example, or 1 for each dim that varies. Dims that are as long in the examples as a
 * given dim follow it; the server knows whether that is right. */
static enum status choose(void *own, const struct shape *const *given, struct shape *shapes,
                          struct error *err)
{
    const struct cli_remote *remote = own;
    (void)err;
    for (uint32_t i = 0; i < remote->io_count; i++) {
        const struct cli_io *io = &remote->ios[i];
        shapes[i] = given[i] ? *given[i] : remote->examples[i];
        for (uint8_t d = 0; !given[i] && d < shapes[i].rank; d++) {
            if (io->dynamic_dims & 1u << d) {
                shapes[i].dims[d] = follow(remote, given, d == 0, shapes[i].dims[d]);
            }
        }
    }
    return ST_OK;
}

/* ---- the request ----------------------------------------------------------------------------- */

/* The strings of |data| as JSON. We have put them there, so they are whole. */
static void print_strings(const struct buf *data, struct buf *out)
{
    size_t at = 0;
    buf_add_char(out, '[');
    while (at < data->len) {
        size_t len = load_le32(data->ptr + at);
        must(in_range(at + 4, len, data->len));
        buf_add_str(out, at ? "," : "");
        json_print_string(out, span_of(data->ptr + at + 4, len));
        at += 4 + len;
    }
    buf_add_char(out, ']');
}

static void print_input(struct cli_remote *remote, uint32_t index)
{
    struct buf *out = &remote->json;
    const struct cli_io *io = &remote->ios[index];
    const struct cli_remote_value *value = &remote->values[index];
    bool is_text = io->kind == PTED_KIND_STRING || value->is_bytes;
    buf_add_str(out, "{\"name\":");
    json_print_string(out, span_str(io->name));
    buf_add_str(out, ",\"shape\":");
    tensor_text_print(out, DT_I64, value->shape.dims, value->shape.rank, NUMBER_NAN_TOKEN);
    buf_printf(out, ",\"datatype\":\"%s\",", is_text ? "BYTES" : dtype_infos[value->dtype].oip);
    if (remote->takes_binary) {
        buf_printf(out, "\"parameters\":{\"binary_data_size\":%zu}", value->data.len);
    } else {
        buf_add_str(out, "\"data\":");
    }
    if (!remote->takes_binary && is_text) {
        print_strings(&value->data, out);
    } else if (!remote->takes_binary) {
        tensor_text_print(out, value->dtype, value->data.ptr,
                          value->data.len / dtype_bytes(value->dtype), NUMBER_NAN_TOKEN);
    }
    buf_add_char(out, '}');
}

/* Has the server an answer that is not made of the tensor here? */
static bool is_answered(const struct cli_remote_form *form)
{
    return form->kind != ANSWER_TENSOR && form->kind != ANSWER_CLASSES;
}

static void print_output(struct cli_remote *remote, uint32_t index, bool is_answer, bool *is_first)
{
    struct buf *out = &remote->json;
    buf_add_str(out, *is_first ? "{\"name\":" : ",{\"name\":");
    json_print_string(out, span_str(remote->result_ios[index].name));
    buf_printf(out, ",\"parameters\":{\"binary_data\":%s%s}}",
               remote->takes_binary ? "true" : "false", is_answer ? ",\"answer\":\"json\"" : "");
    *is_first = false;
}

/* Lists the wanted results and their forms. If the server has no answers for people it lists
 * nothing: then all results come as tensors. */
static void print_outputs(struct cli_remote *remote)
{
    bool has_answers = false, is_first = true, wants_all = remote->wish == CLI_REMOTE_BOTH;
    for (uint32_t i = 0; i < remote->result_io_count; i++) {
        has_answers |= is_answered(&remote->forms[i]);
    }
    if (remote->wish == CLI_REMOTE_TENSORS || !has_answers) {
        return;
    }
    buf_add_str(&remote->json, ",\"outputs\":[");
    for (uint32_t i = 0; i < remote->result_io_count; i++) {
        const struct cli_remote_form *form = &remote->forms[i];
        if (is_answered(form)) {
            print_output(remote, i, true, &is_first);
        }
        if (wants_all || !(is_answered(form) || form->is_part)) {
            print_output(remote, i, false, &is_first);
        }
    }
    buf_add_char(&remote->json, ']');
}

void cli_remote_wish(struct cli_remote *remote, enum cli_remote_wish wish)
{
    must(!remote->is_built);
    remote->wish = wish;
}

static void print_request(struct cli_remote *remote)
{
    struct buf *out = &remote->json;
    bool has_input = false;
    buf_add_str(out, "{\"inputs\":[");
    for (uint32_t i = 0; i < remote->io_count; i++) {
        if (remote->values[i].is_set) {
            buf_add_str(out, has_input ? "," : "");
            print_input(remote, i);
            has_input = true;
        }
    }
    buf_add_char(out, ']');
    print_outputs(remote);
    buf_add_str(out, remote->takes_binary ? ",\"parameters\":{\"binary_data_output\":true}}" : "}");
}

/* The JSON, and the tensors that stand behind it. */
static void add_pieces(struct cli_remote *remote)
{
    struct transfer_request *request = &remote->request;
    remote->pieces[0] = buf_span(&remote->json);
    request->body_count = 1;
    for (uint32_t i = 0; remote->takes_binary && i < remote->io_count; i++) {
        if (remote->values[i].is_set && remote->values[i].data.len > 0) {
            remote->pieces[request->body_count++] = buf_span(&remote->values[i].data);
        }
    }
    request->body = remote->pieces;
}

/* Makes remote->request of the inputs, once. Its parts stay where they are until close. */
static enum status make_request(struct cli_remote *remote, struct error *err)
{
    if (remote->is_built) {
        return ST_OK;
    }
    TRY(cli_inputs_set(&remote->inputs, &request_ops, choose, remote, err));
    buf_reset(&remote->path);
    target_print_path(&remote->client.target, "/infer", &remote->path);
    buf_add(&remote->path, "", 1);
    print_request(remote);
    buf_printf(&remote->head, "Inference-Header-Content-Length: %zu", remote->json.len);
    buf_add(&remote->head, "", 1);
    if (buf_failed(&remote->path) || buf_failed(&remote->json) || buf_failed(&remote->head)) {
        return error_set(err, ST_TOO_LARGE, "no room for the request");
    }
    remote->request = (struct transfer_request){
        .path = (const char *)remote->path.ptr,
        .content_type = remote->takes_binary ? "application/octet-stream" : NULL,
        .is_post = true,
        .headers = {remote->takes_binary ? (const char *)remote->head.ptr : NULL},
        .answer_bytes_max = remote->answer_bytes_max,
    };
    add_pieces(remote);
    remote->is_built = true;
    return transfer_prepare(&remote->transfer, &remote->request, err);
}

enum status cli_remote_foresee(struct cli_remote *remote, struct error *err)
{
    struct buf *out = &remote->json;
    const char *comma = "";
    must(!remote->is_built);
    TRY(cli_inputs_set(&remote->inputs, &request_ops, choose, remote, err));
    buf_add_str(out, "{\"inputs\":[");
    for (uint32_t i = 0; i < remote->io_count; i++) {
        char text[SHAPE_TEXT_MAX];
        if (remote->ios[i].kind == PTED_KIND_TENSOR && remote->values[i].is_set &&
            !remote->values[i].is_bytes) {
            buf_printf(out, "%s{\"name\":", comma);
            json_print_string(out, span_str(remote->ios[i].name));
            buf_printf(out, ",\"shape\":%s}", shape_print(&remote->values[i].shape, text));
            comma = ",";
        }
    }
    buf_add_str(out, "]}");
    return buf_failed(out) ? error_set(err, ST_TOO_LARGE, "no room for the request")
                           : cli_remote_ask_sizes(remote, buf_span(out), err);
}

enum status cli_remote_once(struct cli_remote *remote, uint64_t *out_ns, struct error *err)
{
    struct transfer *t = &remote->transfer;
    TRY(make_request(remote, err));
    transfer_rewind(t);
    uint64_t began_ns = uv_hrtime();
    CURLcode code = remote->client.curl->easy_perform(t->easy);
    *out_ns = uv_hrtime() - began_ns;
    TRY(transfer_end(t, code, err));
    TRY(transfer_check(t, err));
    return cli_remote_read(remote, err);
}
