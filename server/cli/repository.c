/* SPDX-License-Identifier: MIT */
/* The commands `pte ls`, `pte load` and `pte unload`: the models of a server, by the protocol's
 * repository extension. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/json.h"
#include "server/cli/cli.h"
#include "server/cli/remote.h"
#include "server/process/document.h"

#define INDEX_PATH "/v2/repository/index"
#define INDEX_VALUES_MAX 1000000
#define TEXT_BYTES_MAX ((size_t)256 << 20)
#define REASON_BYTES_MAX 400
#define CELL_BYTES_MAX 64 /* of a name that others are aligned with */

struct repository_options {
    const char *url;
    struct client_options client;
    bool is_json, with_dependents;
};

/* ---- the command line ------------------------------------------------------------------------ */

static enum status take(void *own, const char *text, struct error *err)
{
    struct repository_options *options = own;
    return cli_take_only(&options->url, "URL", text, err);
}

static const struct cli_option ls_options[] = {
    {.name = "json",
     .type = OPTION_SWITCH,
     .at = offsetof(struct repository_options, is_json),
     .doc = "print an array of objects"},
    {.name = NULL},
};

static const struct cli_option unload_options[] = {
    {.name = "dependents",
     .type = OPTION_SWITCH,
     .at = offsetof(struct repository_options, with_dependents),
     .doc = "also unload what uses the model, such as a pipeline"},
    {.name = NULL},
};

static const struct cli_option_group ls_groups[] = {
    {.name = "ls", .options = ls_options},
    {.name = "client",
     .options = client_option_table,
     .at = offsetof(struct repository_options, client)},
    {.name = NULL},
};

static const struct cli_option_group load_groups[] = {
    {.name = "client",
     .options = client_option_table,
     .at = offsetof(struct repository_options, client)},
    {.name = NULL},
};

static const struct cli_option_group unload_groups[] = {
    {.name = "unload", .options = unload_options},
    {.name = "client",
     .options = client_option_table,
     .at = offsetof(struct repository_options, client)},
    {.name = NULL},
};

static enum status parse(const struct cli_command *command, int argc, char *const argv[],
                         struct repository_options *options, struct error *err)
{
    options->client = (struct client_options)CLIENT_OPTIONS_DEFAULT;
    TRY(cli_option_parse(command, argc, argv, options, err));
    return options->url ? ST_OK : error_set(err, ST_INVALID, "expected a URL");
}

/* ---- ls: rows of the index ------------------------------------------------------------------- */

/* Borrowed from the document; NULL: not given. */
struct row {
    const char *name, *version, *state, *reason;
    bool is_constant;
};

struct listing {
    struct cli_remote *remote; /* asks for each model in turn */
    struct document document;
    struct buf out;
    struct target wanted; /* its model and version: only these are listed */
    size_t name_width, version_width, state_width;
    bool is_json, is_begun;
};

static enum status text_of(const struct listing *l, const struct cJSON *row, const char *key,
                           const char **out, struct error *err)
{
    const struct cJSON *member = document_find(row, key);
    *out = NULL;
    return member && document_type(member) != JSON_NULL
               ? document_text(&l->document, member, out, err)
               : ST_OK;
}

static enum status read_row(const struct listing *l, const struct cJSON *item, struct row *out,
                            struct error *err)
{
    TRY(document_need(&l->document, item, JSON_OBJECT, err));
    TRY(text_of(l, item, "name", &out->name, err));
    TRY(text_of(l, item, "version", &out->version, err));
    TRY(text_of(l, item, "state", &out->state, err));
    TRY(text_of(l, item, "reason", &out->reason, err));
    const struct cJSON *constant = document_find(item, "constant");
    out->is_constant = false;
    if (constant) {
        TRY(document_bool(&l->document, constant, &out->is_constant, err));
    }
    if (!out->name || !cli_remote_is_name(span_str(out->name))) {
        return document_fail(&l->document, item, err, ST_INVALID,
                             "expected a name of 1 to %d bytes without control characters",
                             TARGET_NAME_MAX);
    }
    return ST_OK;
}

/* Constants of programs have no line in a table of all models, only their names below it. */
static bool is_aside(const struct listing *l, const struct row *row)
{
    return row->is_constant && !l->is_json && !l->wanted.model[0];
}

static bool is_wanted(const struct listing *l, const struct row *row)
{
    const struct target *wanted = &l->wanted;
    return (!wanted->model[0] || strcmp(wanted->model, row->name) == 0) &&
           (!wanted->version[0] || (row->version && strcmp(wanted->version, row->version) == 0));
}

static void widen(size_t *width, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    len = len > CELL_BYTES_MAX ? CELL_BYTES_MAX : len;
    *width = len > *width ? len : *width;
}

/* ---- ls: the inputs and results of a model --------------------------------------------------- */

/* False: the server does not say; the model may just have gone. */
static enum status describe(const struct listing *l, const struct row *row, bool *out_is_known,
                            struct error *err)
{
    struct cli_remote *remote = l->remote;
    struct target *target = &remote->client.target;
    struct error why;
    *out_is_known = false;
    if (row->state && strcmp(row->state, "READY") != 0) {
        return ST_OK;
    }
    arena_reset(&remote->arena);
    snprintf(target->model, sizeof(target->model), "%s", row->name);
    snprintf(target->version, sizeof(target->version), "%.*s", TARGET_VERSION_MAX,
             row->version ? row->version : "");
    enum status status = cli_remote_ask_metadata(remote, &why);
    *out_is_known = status == ST_OK;
    if (status == ST_OK || remote->transfer.status >= 400) {
        return ST_OK;
    }
    *err = why;
    return status;
}

static const char *type_of(const struct cli_io *io)
{
    return io->kind == PTED_KIND_STRING ? "string" : dtype_name(io->dtype);
}

/* "input_0 float32[?,3], mask bool[]" */
static void print_tensors(struct buf *out, const struct cli_io *ios, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, "%s%s %s[", i ? ", " : "", ios[i].name, type_of(&ios[i]));
        for (uint8_t d = 0; d < ios[i].shape.rank; d++) {
            buf_add_str(out, d ? "," : "");
            if (ios[i].dynamic_dims & 1u << d) {
                buf_add_char(out, '?');
            } else {
                buf_printf(out, "%" PRId64, ios[i].shape.dims[d]);
            }
        }
        buf_add_char(out, ']');
    }
}

static void print_tensors_json(struct buf *out, const char *key, const struct cli_io *ios,
                               uint32_t count)
{
    buf_printf(out, ",\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? ",{\"name\":" : "{\"name\":");
        json_print_string(out, span_str(ios[i].name));
        buf_printf(out, ",\"datatype\":\"%s\",\"shape\":[",
                   ios[i].kind == PTED_KIND_STRING ? "BYTES" : dtype_infos[ios[i].dtype].oip);
        for (uint8_t d = 0; d < ios[i].shape.rank; d++) {
            bool varies = ios[i].dynamic_dims & 1u << d;
            buf_printf(out, "%s%" PRId64, d ? "," : "", varies ? -1 : ios[i].shape.dims[d]);
        }
        buf_add_str(out, "]}");
    }
    buf_add_char(out, ']');
}

/* ---- ls: printing ---------------------------------------------------------------------------- */

static void print_member(struct buf *out, const char *key, const char *text)
{
    if (text) {
        buf_printf(out, "%s\"%s\":", strcmp(key, "name") == 0 ? "" : ",", key);
        json_print_string(out, span_str(text));
    }
}

static void print_json(struct listing *l, const struct row *row, bool is_known)
{
    struct buf *out = &l->out;
    buf_add_str(out, l->is_begun ? ",\n {" : "[{");
    print_member(out, "name", row->name);
    print_member(out, "version", row->version);
    print_member(out, "state", row->state);
    print_member(out, "reason", row->reason);
    buf_add_str(out, row->is_constant ? ",\"constant\":true" : "");
    if (is_known) {
        print_tensors_json(out, "inputs", l->remote->ios, l->remote->io_count);
        print_tensors_json(out, "outputs", l->remote->result_ios, l->remote->result_io_count);
    }
    buf_add_char(out, '}');
}

static void print_cell(struct buf *out, const char *text, size_t width)
{
    size_t before = out->len;
    transfer_show(span_str(text ? text : "-"), REASON_BYTES_MAX, out);
    size_t len = out->len - before;
    buf_add_fill(out, ' ', (len < width ? width - len : 0) + 2);
}

static void print_line(struct listing *l, const struct row *row, bool is_known)
{
    struct buf *out = &l->out;
    bool has_reason = row->reason && row->reason[0];
    print_cell(out, row->name, l->name_width);
    print_cell(out, row->version, l->version_width);
    print_cell(out, row->state, l->state_width);
    if (is_known) {
        buf_add_char(out, '(');
        print_tensors(out, l->remote->ios, l->remote->io_count);
        buf_add_str(out, ") -> (");
        print_tensors(out, l->remote->result_ios, l->remote->result_io_count);
        buf_add_str(out, has_reason ? ")  " : ")");
    }
    if (has_reason) {
        transfer_show(span_str(row->reason), REASON_BYTES_MAX, out);
    }
    while (out->len > 0 && out->ptr[out->len - 1] == ' ') {
        out->len--;
    }
    buf_add_char(out, '\n');
}

static enum status measure(struct listing *l, uint32_t *out_count, struct error *err)
{
    const struct cJSON *item;
    struct row row;
    *out_count = 0;
    widen(&l->name_width, "MODEL");
    widen(&l->version_width, "VERSION");
    widen(&l->state_width, "STATE");
    for (item = document_first(l->document.root); item; item = document_next(item)) {
        TRY(read_row(l, item, &row, err));
        if (is_wanted(l, &row) && !is_aside(l, &row)) {
            widen(&l->name_width, row.name);
            widen(&l->version_width, row.version);
            widen(&l->state_width, row.state);
            ++*out_count;
        }
    }
    return ST_OK;
}

/* "constants: chat.get_eos_ids, chat.get_max_seq_len" */
static enum status print_constants(struct listing *l, struct error *err)
{
    const char *before = "constants: ";
    struct row row;
    const struct cJSON *item;
    for (item = document_first(l->document.root); item; item = document_next(item)) {
        TRY(read_row(l, item, &row, err));
        if (is_aside(l, &row)) {
            buf_add_str(&l->out, before);
            transfer_show(span_str(row.name), REASON_BYTES_MAX, &l->out);
            before = ", ";
        }
    }
    buf_add_str(&l->out, *before == ',' ? "\n" : "");
    return ST_OK;
}

static enum status print_rows(struct listing *l, struct error *err)
{
    const struct cJSON *item;
    struct row row;
    if (!l->is_json) {
        const struct row head = {"MODEL", "VERSION", "STATE", "INPUTS -> RESULTS", false};
        print_line(l, &head, false);
    }
    for (item = document_first(l->document.root); item; item = document_next(item)) {
        bool is_known;
        TRY(read_row(l, item, &row, err));
        if (is_wanted(l, &row) && !is_aside(l, &row)) {
            TRY(describe(l, &row, &is_known, err));
            (l->is_json ? print_json : print_line)(l, &row, is_known);
            l->is_begun = true;
        }
    }
    if (l->is_json) {
        buf_add_str(&l->out, l->is_begun ? "]\n" : "[]\n");
        return ST_OK;
    }
    return print_constants(l, err);
}

static enum status print_index(struct listing *l, struct error *err)
{
    uint32_t count;
    enum status status = document_need(&l->document, l->document.root, JSON_ARRAY, err);
    status = status == ST_OK ? measure(l, &count, err) : status;
    if (status != ST_OK) {
        return cli_remote_blame(l->remote, INDEX_PATH, err);
    }
    if (count == 0 && l->wanted.model[0]) {
        return error_set(err, ST_NOT_FOUND, "%.160s: no model '%.64s'", l->wanted.text,
                         l->wanted.model);
    }
    TRY(print_rows(l, err));
    return cli_write(&l->out, err);
}

static enum status list(struct listing *l, struct error *err)
{
    const struct document_limits limits = {TRANSFER_TEXT_BYTES_MAX, INDEX_VALUES_MAX};
    const struct transfer_request request = {
        .path = INDEX_PATH, .is_post = true, .answer_bytes_max = TRANSFER_TEXT_BYTES_MAX};
    struct transfer *t = &l->remote->transfer;
    TRY(transfer_run(t, &request, err));
    if (document_parse(buf_span(&t->body), &limits, &l->document, err) != ST_OK) {
        return cli_remote_blame(l->remote, INDEX_PATH, err);
    }
    buf_init(&l->out, TEXT_BYTES_MAX);
    enum status status = print_index(l, err);
    buf_fini(&l->out);
    document_close(&l->document);
    return status;
}

static enum status ls(int argc, char *const argv[], struct error *err)
{
    struct repository_options options = {.url = NULL};
    struct cli_remote remote;
    struct listing listing = {.remote = &remote};
    TRY(parse(&cli_ls_command, argc, argv, &options, err));
    TRY(target_parse(options.url, &listing.wanted, err));
    listing.is_json = options.is_json;
    enum status status = cli_remote_connect(&remote, &listing.wanted, &options.client, err);
    status = status == ST_OK ? list(&listing, err) : status;
    cli_remote_close(&remote);
    return status;
}

static int run_ls(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_ls_command, ls(argc, argv, &err), &err);
}

/* ---- load, unload ---------------------------------------------------------------------------- */

static enum status post(struct cli_remote *remote, const char *verb, const char *json,
                        struct error *err)
{
    const struct span body = span_str(json);
    buf_add_str(&remote->path, "/v2/repository/models/");
    target_print_escaped(remote->client.target.model, &remote->path);
    buf_printf(&remote->path, "/%s", verb);
    buf_add(&remote->path, "", 1);
    const struct transfer_request request = {
        .path = (const char *)remote->path.ptr,
        .is_post = true,
        .body = &body,
        .body_count = 1,
        .answer_bytes_max = TRANSFER_TEXT_BYTES_MAX,
    };
    TRY(transfer_run(&remote->transfer, &request, err));
    printf("%s: %sed\n", remote->client.target.model, verb);
    return ST_OK;
}

/* |verb| is "load" or "unload". */
static enum status change(const struct repository_options *options, const char *verb,
                          struct error *err)
{
    struct cli_remote remote;
    struct target target;
    TRY(target_parse_model(options->url, &target, err));
    if (target.version[0]) {
        return error_set(err, ST_INVALID, "expected a model without a version");
    }
    enum status status = cli_remote_connect(&remote, &target, &options->client, err);
    if (status == ST_OK) {
        status = post(
            &remote, verb,
            options->with_dependents ? "{\"parameters\":{\"unload_dependents\":true}}" : "{}", err);
    }
    cli_remote_close(&remote);
    return status;
}

static int run_load(int argc, char *const argv[])
{
    struct repository_options options = {.url = NULL};
    struct error err;
    enum status status = parse(&cli_load_command, argc, argv, &options, &err);
    return cli_finish(&cli_load_command, status == ST_OK ? change(&options, "load", &err) : status,
                      &err);
}

static int run_unload(int argc, char *const argv[])
{
    struct repository_options options = {.url = NULL};
    struct error err;
    enum status status = parse(&cli_unload_command, argc, argv, &options, &err);
    return cli_finish(&cli_unload_command,
                      status == ST_OK ? change(&options, "unload", &err) : status, &err);
}

const struct cli_command cli_ls_command = {
    .name = "ls",
    .usage = "ls [OPTION]... URL[/MODEL]",
    .summary = "list the models of a server",
    .about = "Prints a line for each model: name, version, state, inputs and results, and the\n"
             "reason if it cannot be called. Below are the names of the constants of programs.\n",
    .after = CLIENT_HELP "\n"
                         "Example:\n"
                         "  pte ls http://127.0.0.1:8000\n",
    .groups = ls_groups,
    .take = take,
    .run = run_ls,
};

const struct cli_command cli_load_command = {
    .name = "load",
    .usage = "load [OPTION]... URL/MODEL",
    .summary = "make a server load a model, or load it again",
    .about = "The server has to take such requests: pted does at --admin-listen, or from a token\n"
             "with the scope admin.\n",
    .after = CLIENT_HELP "\n"
                         "Example:\n"
                         "  pte load unix:/run/pted/admin.sock:/mobilenet\n",
    .groups = load_groups,
    .take = take,
    .run = run_load,
};

const struct cli_command cli_unload_command = {
    .name = "unload",
    .usage = "unload [OPTION]... URL/MODEL",
    .summary = "make a server unload a model",
    .about = "The server has to take such requests: pted does at --admin-listen, or from a token\n"
             "with the scope admin.\n",
    .after = CLIENT_HELP "\n"
                         "Example:\n"
                         "  pte unload unix:/run/pted/admin.sock:/mobilenet\n",
    .groups = unload_groups,
    .take = take,
    .run = run_unload,
};
