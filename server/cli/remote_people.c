/* SPDX-License-Identifier: MIT */
/*
 * Answers for people that a server has made: each row is JSON as `call` writes it. It is checked
 * before it reaches a terminal or a file.
 */
#include "config.h"

#include <inttypes.h>

#include "protocol/base64.h"
#include "protocol/json.h"
#include "server/cli/cli.h"
#include "server/cli/remote.h"

#define TEXT_BYTES_MAX ((size_t)1 << 30)

/* ---- a row ----------------------------------------------------------------------------------- */

/* A map is described by its members except the picture, which goes to |*out_png|. */
static enum status read_map(struct json *in, struct buf *out, struct json_string *out_png,
                            struct error *err)
{
    struct json_string key;
    bool is_first = true;
    TRY(json_object(in, err));
    buf_add_char(out, '{');
    while (true) {
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            buf_add_char(out, '}');
            return ST_OK;
        }
        if (json_string_is(&key, "png")) {
            TRY(json_read_string(in, out_png, err));
            continue;
        }
        (void)json_peek(in); /* over white space */
        const uint8_t *begin = in->at;
        TRY(json_skip(in, err));
        buf_printf(out, "%s\"", is_first ? "" : ",");
        cli_result_print_json(out, key.raw);
        buf_add_str(out, "\":");
        cli_result_print_json(out, span_of(begin, (size_t)(in->at - begin)));
        is_first = false;
    }
}

/* |out| gets the text for people of |json|; |*out_string|: the text itself, or a map's picture. */
static enum status read_row(enum answer_kind kind, struct span json, struct buf *out,
                            struct json_string *out_string, struct error *err)
{
    struct json in;
    json_init(&in, json);
    *out_string = (struct json_string){.bytes = 0};
    if (kind == ANSWER_MAP) {
        TRY(read_map(&in, out, out_string, err));
    } else if (kind == ANSWER_TEXT) {
        TRY(json_read_string(&in, out_string, err));
        cli_result_print_json(out, json);
    } else {
        if (json_peek(&in) != JSON_ARRAY) {
            return json_array(&in, err); /* it says so */
        }
        TRY(json_skip(&in, err));
        cli_result_print_json(out, json);
    }
    return json_end(&in, err);
}

static enum status blame(const struct cli_remote *remote, const struct cli_result *result,
                         size_t row, struct error *err)
{
    error_prefix(err, "output '%.64s': row %zu: ", result->name, row);
    return cli_remote_blame(remote, (const char *)remote->path.ptr, err);
}

static size_t row_count(const struct cli_result *result)
{
    return (size_t)shape_numel(&result->shape);
}

/* ---- to standard output ---------------------------------------------------------------------- */

enum status cli_remote_print_answer(const struct cli_remote *remote,
                                    const struct cli_result *result, struct error *err)
{
    enum status status = ST_OK;
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    for (size_t row = 0; status == ST_OK && row < row_count(result); row++) {
        struct json_string ignored;
        buf_printf(&out, "%s[%zu]: ", result->name, row);
        status = read_row(result->answer, result->strings[row], &out, &ignored, err) == ST_OK
                     ? ST_OK
                     : blame(remote, result, row, err);
        buf_add_char(&out, '\n');
    }
    status = status == ST_OK ? cli_write(&out, err) : status;
    buf_fini(&out);
    return status;
}

/* ---- to files -------------------------------------------------------------------------------- */

static enum status decode(const struct cli_result *result, const struct json_string *string,
                          struct buf *out, struct error *err)
{
    uint8_t *text = buf_reserve(out, string->bytes);
    if (string->bytes > 0 && !text) {
        return error_set(err, ST_TOO_LARGE, "no room for %zu bytes", string->bytes);
    }
    if (string->bytes > 0) {
        json_string_decode(string, text);
    }
    if (result->answer == ANSWER_TEXT) {
        buf_commit(out, string->bytes);
        return ST_OK;
    }
    /* Base64 is decoded in its own place, which is longer. */
    size_t bytes = base64_bytes(span_of(text, string->bytes));
    if (bytes == 0 || base64_text_bytes(bytes) != string->bytes) {
        return error_set(err, ST_CORRUPT, "expected a member 'png' in base64");
    }
    if (base64_decode(span_of(text, string->bytes), text, bytes, err) != ST_OK) {
        return error_prefix(err, "png");
    }
    buf_commit(out, bytes);
    return ST_OK;
}

static enum status write_row(const struct cli_remote *remote, const struct cli_result *result,
                             size_t row, const char *folder, struct error *err)
{
    struct span json = result->strings[row];
    struct json_string string;
    struct buf text, bytes;
    buf_init(&text, TEXT_BYTES_MAX);
    buf_init(&bytes, TEXT_BYTES_MAX);
    enum status status = read_row(result->answer, json, &text, &string, err);
    if (status == ST_OK && result->answer != ANSWER_BOXES) {
        status = decode(result, &string, &bytes, err);
    }
    if (status != ST_OK) {
        status = blame(remote, result, row, err);
    } else {
        status =
            cli_result_write_row(folder, result->file_name, row, result->answer,
                                 result->answer == ANSWER_BOXES ? json : buf_span(&bytes), err);
    }
    buf_fini(&bytes);
    buf_fini(&text);
    return status;
}

enum status cli_remote_write_answer(const struct cli_remote *remote,
                                    const struct cli_result *result, const char *folder,
                                    struct error *err)
{
    for (size_t row = 0; row < row_count(result); row++) {
        TRY(write_row(remote, result, row, folder, err));
    }
    return ST_OK;
}
