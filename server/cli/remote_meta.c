/* SPDX-License-Identifier: MIT */
/* A server's metadata of a model. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "server/cli/remote.h"
#include "server/process/document.h"

#define DOCUMENT_BYTES_MAX TRANSFER_TEXT_BYTES_MAX
#define DOCUMENT_VALUES_MAX 1000000
#define DIM_MAX ((int64_t)1 << 40)

static const struct document_limits limits = {DOCUMENT_BYTES_MAX, DOCUMENT_VALUES_MAX};

/* One answer while it is read. */
struct reader {
    struct cli_remote *remote;
    struct document document;
};

static enum status no_memory(const struct reader *r, struct error *err)
{
    return arena_fail(&r->remote->arena, "the description of the model", err);
}

/* The member |key| of an object, of a type. */
static enum status need(const struct reader *r, const struct cJSON *object, const char *key,
                        enum json_type type, const struct cJSON **out, struct error *err)
{
    TRY(document_need(&r->document, object, JSON_OBJECT, err));
    *out = document_find(object, key);
    if (!*out) {
        return document_fail(&r->document, object, err, ST_INVALID, "expected a member '%s'", key);
    }
    return document_need(&r->document, *out, type, err);
}

/* A member's text; NULL: it has none. */
static const char *text_of(const struct reader *r, const struct cJSON *object, const char *key)
{
    const struct cJSON *member = document_find(object, key);
    struct error ignored;
    const char *text;
    return member && document_text(&r->document, member, &text, &ignored) == ST_OK ? text : NULL;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static enum status read_name(const struct reader *r, const struct cJSON *item, const char **out,
                             struct error *err)
{
    const struct cJSON *member;
    const char *text;
    TRY(need(r, item, "name", JSON_STRING, &member, err));
    TRY(document_text(&r->document, member, &text, err));
    if (!cli_remote_is_name(span_str(text))) {
        return document_fail(&r->document, member, err, ST_INVALID,
                             "expected a name of 1 to %d bytes without control characters",
                             TARGET_NAME_MAX);
    }
    *out = arena_strdup(&r->remote->arena, text, strlen(text));
    return *out ? ST_OK : no_memory(r, err);
}

static enum status read_type(const struct reader *r, const struct cJSON *item, struct cli_io *io,
                             struct error *err)
{
    const struct cJSON *member;
    const char *text;
    TRY(need(r, item, "datatype", JSON_STRING, &member, err));
    TRY(document_text(&r->document, member, &text, err));
    io->kind = strcmp(text, "BYTES") == 0 ? PTED_KIND_STRING : PTED_KIND_TENSOR;
    bool is_known = io->kind == PTED_KIND_STRING ||
                    (dtype_from_oip(span_str(text), &io->dtype) && dtype_is_public(io->dtype));
    return is_known ? ST_OK
                    : document_fail(&r->document, member, err, ST_UNSUPPORTED,
                                    "the element type is not known");
}

/* Dims from |min| to DIM_MAX. */
static enum status read_shape(const struct reader *r, const struct cJSON *list, int64_t min,
                              struct shape *out, struct error *err)
{
    *out = (struct shape){0};
    for (const struct cJSON *dim = document_first(list); dim; dim = document_next(dim)) {
        if (out->rank == SHAPE_RANK_MAX) {
            return document_fail(&r->document, list, err, ST_INVALID, "expected at most %d dims",
                                 SHAPE_RANK_MAX);
        }
        TRY(document_i64(&r->document, dim, min, DIM_MAX, &out->dims[out->rank], err));
        out->rank++;
    }
    return ST_OK;
}

/* A dim that varies is 1 in a call, if the server has no example. */
static enum status read_shapes(const struct reader *r, const struct cJSON *item, struct cli_io *io,
                               struct shape *example, struct error *err)
{
    const struct cJSON *member, *chosen = document_find(item, "example_shape");
    TRY(need(r, item, "shape", JSON_ARRAY, &member, err));
    TRY(read_shape(r, member, -1, &io->shape, err));
    for (uint8_t d = 0; d < io->shape.rank; d++) {
        io->dynamic_dims |= io->shape.dims[d] < 0 ? 1u << d : 0;
        io->shape.dims[d] = io->shape.dims[d] < 0 ? 1 : io->shape.dims[d];
    }
    *example = io->shape;
    if (chosen && document_type(chosen) == JSON_ARRAY) {
        TRY(read_shape(r, chosen, 0, example, err));
        if (example->rank != io->shape.rank) {
            return document_fail(&r->document, chosen, err, ST_INVALID,
                                 "expected as many dims as in the shape");
        }
        io->shape = *example;
    }
    return ST_OK;
}

static const char *print(const struct reader *r, const char *before, const char *text,
                         const char *behind)
{
    char line[TARGET_NAME_MAX + 32];
    int len = snprintf(line, sizeof(line), "%s%s%s", before, text, behind);
    return arena_strdup(&r->remote->arena, line, (size_t)len);
}

static enum status read_tensor(const struct reader *r, const struct cJSON *item, const char *side,
                               uint32_t index, struct cli_io *io, struct shape *example,
                               struct error *err)
{
    char number[16];
    const struct cJSON *optional = NULL;
    TRY(read_name(r, item, &io->name, err));
    TRY(read_type(r, item, io, err));
    TRY(read_shapes(r, item, io, example, err));
    optional = document_find(item, "optional");
    if (optional && document_type(optional) == JSON_BOOL) {
        TRY(document_bool(&r->document, optional, &io->is_fixed, err));
    }
    snprintf(number, sizeof(number), "_%u", index);
    io->alias = print(r, side, number, "");
    io->label = print(r, side, " '", io->name);
    io->label = io->label ? print(r, "", io->label, "'") : NULL;
    return io->alias && io->label ? ST_OK : no_memory(r, err);
}

/* "media": the input may be sent as such. From a server with other words it is a tensor. */
static const struct card_medium *read_medium(const struct reader *r, const struct cJSON *item)
{
    const char *text = text_of(r, item, "media");
    return text ? card_find_medium(text) : NULL;
}

static enum status read_mediums(const struct reader *r, struct error *err)
{
    struct cli_remote *remote = r->remote;
    const struct cJSON *list = document_find(r->document.root, "inputs");
    uint32_t index = 0;
    remote->mediums = arena_array(&remote->arena, (size_t)remote->io_count + 1,
                                  sizeof(const struct card_medium *));
    if (!remote->mediums) {
        return no_memory(r, err);
    }
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        remote->mediums[index++] = read_medium(r, item);
    }
    return ST_OK;
}

static enum status read_tensors(const struct reader *r, const char *key, const char *side,
                                struct cli_io **out_ios, struct shape **out_examples,
                                uint32_t *out_count, struct error *err)
{
    const struct cJSON *list;
    uint32_t count = 0, index = 0;
    TRY(need(r, r->document.root, key, JSON_ARRAY, &list, err));
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        count++;
    }
    if (count > CLI_REMOTE_TENSORS_MAX) {
        return document_fail(&r->document, list, err, ST_UNSUPPORTED, "expected at most %d, got %u",
                             CLI_REMOTE_TENSORS_MAX, count);
    }
    *out_ios = arena_array(&r->remote->arena, (size_t)count + 1, sizeof(**out_ios));
    *out_examples = arena_array(&r->remote->arena, (size_t)count + 1, sizeof(**out_examples));
    if (!*out_ios || !*out_examples) {
        return no_memory(r, err);
    }
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        TRY(read_tensor(r, item, side, index, &(*out_ios)[index], &(*out_examples)[index], err));
        index++;
    }
    *out_count = count;
    return ST_OK;
}

/* ---- answers for people ---------------------------------------------------------------------- */

/* The result that |form| calls |key|, by its name, is a part of the answer. */
static void mark_part(const struct reader *r, const struct cJSON *form, const char *key)
{
    const char *name = text_of(r, form, key);
    for (uint32_t i = 0; name && i < r->remote->result_io_count; i++) {
        r->remote->forms[i].is_part |= strcmp(r->remote->result_ios[i].name, name) == 0;
    }
}

/* "answer": "boxes", with the member of that name. Other words are for other clients. */
static void read_form(const struct reader *r, const struct cJSON *item, struct cli_remote_form *out)
{
    const char *word = text_of(r, item, "answer");
    const struct cJSON *form = word ? document_find(item, word) : NULL;
    struct error ignored;
    int64_t count;
    out->kind = word ? card_find_answer_kind(word) : ANSWER_TENSOR;
    if (form && out->kind == ANSWER_BOXES) {
        mark_part(r, form, "scores");
        mark_part(r, form, "classes");
    }
    const struct cJSON *number = out->kind == ANSWER_CLASSES ? document_find(form, "count") : NULL;
    if (number &&
        document_i64(&r->document, number, 1, ANSWER_CLASSES_MAX, &count, &ignored) == ST_OK) {
        out->class_count = (uint32_t)count;
    }
}

static enum status read_forms(const struct reader *r, struct error *err)
{
    struct cli_remote *remote = r->remote;
    const struct cJSON *list = document_find(r->document.root, "outputs");
    uint32_t index = 0;
    remote->forms =
        arena_array(&remote->arena, (size_t)remote->result_io_count + 1, sizeof(*remote->forms));
    if (!remote->forms) {
        return no_memory(r, err);
    }
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        read_form(r, item, &remote->forms[index++]);
    }
    return ST_OK;
}

/* ---- the three answers ----------------------------------------------------------------------- */

static enum status read_metadata(const struct reader *r, struct error *err)
{
    struct cli_remote *remote = r->remote;
    struct shape *unused;
    TRY(read_tensors(r, "inputs", "input", &remote->ios, &remote->examples, &remote->io_count,
                     err));
    TRY(read_mediums(r, err));
    TRY(read_tensors(r, "outputs", "output", &remote->result_ios, &unused, &remote->result_io_count,
                     err));
    TRY(read_forms(r, err));
    remote->result_labels = arena_array(&remote->arena, (size_t)remote->result_io_count + 1,
                                        sizeof(*remote->result_labels));
    return remote->result_labels ? ST_OK : no_memory(r, err);
}

/* "int64" is a number, "float32[2,3]" a tensor. */
static void settle_kind(struct cli_io *io, const char *text)
{
    bool is_scalar = !strchr(text, '[') && io->kind == PTED_KIND_TENSOR && io->shape.rank == 0;
    if (is_scalar && io->dtype == DT_I64) {
        io->kind = PTED_KIND_INT;
    } else if (is_scalar && io->dtype == DT_F64) {
        io->kind = PTED_KIND_FLOAT;
    } else if (is_scalar && io->dtype == DT_BOOL) {
        io->kind = PTED_KIND_BOOL;
    }
}

/* A list of the signature counts None too, which the metadata leave out. It is only believed if it
 * has as many entries as they. */
static void settle_kinds(const struct reader *r, const char *key, const char *side,
                         struct cli_io *ios, uint32_t count)
{
    const struct cJSON *list = document_find(r->document.root, key);
    uint32_t used = 0, raw = 0;
    if (!list || document_type(list) != JSON_ARRAY) {
        return;
    }
    for (int pass = 0; pass < 2; pass++, used = raw = 0) {
        for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
            const char *text;
            struct error ignored;
            if (document_text(&r->document, item, &text, &ignored) != ST_OK) {
                return;
            }
            bool is_none = strcmp(text, "null") == 0;
            if (pass == 1 && !is_none) {
                char number[16];
                snprintf(number, sizeof(number), "_%u", raw);
                const char *alias = print(r, side, number, "");
                ios[used].alias = alias ? alias : ios[used].alias;
                settle_kind(&ios[used], text);
            }
            used += !is_none;
            raw++;
        }
        if (used != count) {
            return;
        }
    }
}

/* The labels of a result, if all are texts that are fit for a terminal. */
static enum status read_labels(const struct reader *r, const struct cJSON *list,
                               struct card_labels *out, struct error *err)
{
    uint32_t count = 0;
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        count++;
    }
    struct span *items = arena_array(&r->remote->arena, (size_t)count + 1, sizeof(*items));
    if (!items) {
        return no_memory(r, err);
    }
    uint32_t used = 0;
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        const char *text;
        struct error ignored;
        if (document_text(&r->document, item, &text, &ignored) != ST_OK ||
            (*text && !cli_remote_is_name(span_str(text)))) {
            return ST_OK;
        }
        const char *copy = arena_strdup(&r->remote->arena, text, strlen(text));
        if (!copy) {
            return no_memory(r, err);
        }
        items[used++] = span_str(copy);
    }
    *out = (struct card_labels){.items = items, .count = count};
    return ST_OK;
}

static enum status read_all_labels(const struct reader *r, struct error *err)
{
    struct cli_remote *remote = r->remote;
    const struct cJSON *all = document_find(r->document.root, "labels");
    if (!all || document_type(all) != JSON_OBJECT) {
        return ST_OK;
    }
    for (uint32_t i = 0; i < remote->result_io_count; i++) {
        const struct cJSON *list = document_find(all, remote->result_ios[i].name);
        if (list && document_type(list) == JSON_ARRAY) {
            TRY(read_labels(r, list, &remote->result_labels[i], err));
        }
    }
    return ST_OK;
}

static enum status read_signature(const struct reader *r, struct error *err)
{
    struct cli_remote *remote = r->remote;
    TRY(document_need(&r->document, r->document.root, JSON_OBJECT, err));
    settle_kinds(r, "inputs", "input", remote->ios, remote->io_count);
    settle_kinds(r, "results", "output", remote->result_ios, remote->result_io_count);
    return read_all_labels(r, err);
}

/* Binary tensors are taken, unless the server has a list of extensions without them. */
static enum status read_extensions(const struct reader *r, struct error *err)
{
    TRY(document_need(&r->document, r->document.root, JSON_OBJECT, err));
    const struct cJSON *list = document_find(r->document.root, "extensions");
    if (!list || document_type(list) != JSON_ARRAY) {
        return ST_OK;
    }
    r->remote->takes_binary = false;
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        const char *text;
        TRY(document_text(&r->document, item, &text, err));
        r->remote->takes_binary |= strcmp(text, "binary_tensor_data") == 0;
    }
    return ST_OK;
}

typedef enum status read_f(const struct reader *r, struct error *err);

static enum status read_answer(struct cli_remote *remote, const char *path, read_f *read,
                               struct error *err)
{
    struct reader r = {.remote = remote};
    enum status status =
        document_parse(buf_span(&remote->transfer.body), &limits, &r.document, err);
    if (status == ST_OK) {
        status = read(&r, err);
        document_close(&r.document);
    }
    return status == ST_OK ? ST_OK : cli_remote_blame(remote, path, err);
}

static enum status ask(struct cli_remote *remote, const char *path, read_f *read, struct error *err)
{
    const struct transfer_request request = {.path = path,
                                             .answer_bytes_max = TRANSFER_TEXT_BYTES_MAX};
    TRY(transfer_run(&remote->transfer, &request, err));
    return read_answer(remote, path, read, err);
}

/* Asks for something that not every server has: a refusal, or an answer of another kind, only means
 * that. */
static enum status ask_if_known(struct cli_remote *remote, const char *path, read_f *read,
                                struct error *err)
{
    const struct transfer_request request = {.path = path,
                                             .answer_bytes_max = TRANSFER_TEXT_BYTES_MAX};
    struct transfer *t = &remote->transfer;
    struct error ignored;
    TRY(transfer_prepare(t, &request, err));
    TRY(transfer_end(t, remote->client.curl->easy_perform(t->easy), err));
    if (transfer_check(t, &ignored) == ST_OK &&
        read_answer(remote, path, read, &ignored) == ST_EXHAUSTED) {
        *err = ignored;
        return err->code;
    }
    return ST_OK;
}

/* The model's path with |rest| behind it; stays until the next one. */
static const char *path_of(struct cli_remote *remote, const char *rest)
{
    buf_reset(&remote->path);
    target_print_path(&remote->client.target, rest, &remote->path);
    buf_add(&remote->path, "", 1);
    return buf_failed(&remote->path) ? "" : (const char *)remote->path.ptr;
}

enum status cli_remote_ask_metadata(struct cli_remote *remote, struct error *err)
{
    return ask(remote, path_of(remote, ""), read_metadata, err);
}

enum status cli_remote_describe(struct cli_remote *remote, struct error *err)
{
    TRY(cli_remote_ask_metadata(remote, err));
    TRY(ask_if_known(remote, path_of(remote, "/signature"), read_signature, err));
    return ask_if_known(remote, "/v2", read_extensions, err);
}

/* CLI_REMOTE_TENSORS_MAX: the server has none of that name. */
static uint32_t find_result(const struct cli_remote *remote, const char *name)
{
    for (uint32_t i = 0; i < remote->result_io_count; i++) {
        if (cli_io_is_called(&remote->result_ios[i], span_str(name))) {
            return i;
        }
    }
    return CLI_REMOTE_TENSORS_MAX;
}

const struct card_labels *cli_remote_find_labels(const struct cli_remote *remote,
                                                 const char *result)
{
    uint32_t i = find_result(remote, result);
    bool has_labels = i < CLI_REMOTE_TENSORS_MAX && remote->result_labels[i].count > 0;
    return has_labels ? &remote->result_labels[i] : NULL;
}

const struct cli_remote_form *cli_remote_find_form(const struct cli_remote *remote,
                                                   const char *result)
{
    uint32_t i = find_result(remote, result);
    return i < CLI_REMOTE_TENSORS_MAX ? &remote->forms[i] : NULL;
}

/* ---- sizes of results ------------------------------------------------------------------------ */

/* -1 stands for a dim that depends on data; "bounds" and "bytes_max" are its limits. */
static enum status read_size(const struct reader *r, const struct cJSON *item, struct cli_size *out,
                             struct error *err)
{
    const struct cJSON *member;
    uint64_t bytes;
    out->is_known = document_find(item, "bounds") == NULL;
    TRY(need(r, item, out->is_known ? "shape" : "bounds", JSON_ARRAY, &member, err));
    TRY(read_shape(r, member, 0, &out->shape, err));
    TRY(need(r, item, out->is_known ? "bytes" : "bytes_max", JSON_NUMBER, &member, err));
    TRY(document_u64(&r->document, member, SIZE_MAX, &bytes, err));
    out->bytes = (size_t)bytes;
    return ST_OK;
}

static enum status read_sizes(const struct reader *r, struct error *err)
{
    struct cli_remote *remote = r->remote;
    const struct cJSON *list;
    const char *name;
    TRY(need(r, r->document.root, "outputs", JSON_ARRAY, &list, err));
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        TRY(read_name(r, item, &name, err));
        uint32_t index = find_result(remote, name);
        if (index == CLI_REMOTE_TENSORS_MAX) {
            return document_fail(&r->document, item, err, ST_INVALID,
                                 "the model's metadata have no such output");
        }
        TRY(read_size(r, item, &remote->sizes[index], err));
    }
    return ST_OK;
}

enum status cli_remote_ask_sizes(struct cli_remote *remote, struct span body, struct error *err)
{
    const struct transfer_request request = {
        .path = path_of(remote, "/shape"),
        .is_post = true,
        .body = &body,
        .body_count = 1,
        .answer_bytes_max = TRANSFER_TEXT_BYTES_MAX,
    };
    remote->sizes =
        arena_array(&remote->arena, (size_t)remote->result_io_count + 1, sizeof(*remote->sizes));
    if (!remote->sizes) {
        return arena_fail(&remote->arena, "the sizes of the results", err);
    }
    TRY(transfer_run(&remote->transfer, &request, err));
    return read_answer(remote, request.path, read_sizes, err);
}
