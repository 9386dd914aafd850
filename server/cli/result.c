/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/result.h"

#include <limits.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "protocol/json.h"
#include "server/cli/cli.h"
#include "server/cli/npy.h"

#define TEXT_BYTES_MAX ((size_t)1 << 30)

/* ---- for people ------------------------------------------------------------------------------ */

void cli_result_print_json(struct buf *out, struct span json)
{
    const uint8_t *p = json.ptr, *end = json.ptr + json.len;
    while (p < end && !buf_failed(out)) {
        size_t len = *p < 0x80 ? 1 : utf8_sequence(p, end);
        uint32_t code = len > 1 ? utf8_code(p, len) : *p;
        if (code == 0x7f || (len > 1 && utf8_is_disruptive(code))) {
            buf_printf(out, "\\u%04x", code);
        } else if (code < 0x20) {
            buf_add_char(out, ' '); /* between tokens; controls in strings are escaped */
        } else {
            buf_add(out, p, len);
        }
        p += len ? len : 1;
    }
}

static void print_string(struct buf *out, struct span string)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    json_print_string(&text, string);
    cli_result_print_json(out, buf_span(&text));
    out->failed |= buf_failed(&text);
    buf_fini(&text);
}

/* "labels: string[2,3] ["a", "b", ...]": the first ones, in one list. */
static void print_strings(struct buf *out, const struct cli_result *result)
{
    char shape[SHAPE_TEXT_MAX];
    size_t count = (size_t)shape_numel(&result->shape);
    buf_printf(out, "%s: string%s [", result->name, shape_print(&result->shape, shape));
    for (size_t i = 0; i < count && i < CLI_PRINT_WHOLE_MAX; i++) {
        buf_add_str(out, i ? ", " : "");
        print_string(out, result->strings[i]);
    }
    buf_add_str(out, count > CLI_PRINT_WHOLE_MAX ? ", ...]\n" : "]\n");
}

enum status cli_result_print(const struct cli_result *result, const struct cli_print_top *top,
                             struct error *err)
{
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    if (result->kind == PTED_KIND_STRING && result->strings) {
        print_strings(&out, result);
    } else if (result->kind == PTED_KIND_STRING) {
        buf_printf(&out, "%s: string ", result->name);
        print_string(&out, result->bytes);
        buf_add_char(&out, '\n');
    } else if (result->kind != PTED_KIND_TENSOR) {
        cli_print_scalar(&out, result->name, result->dtype, result->bytes.ptr);
    } else {
        cli_print_tensor(&out, result->name, result->dtype, &result->shape, result->bytes.ptr, top);
    }
    enum status status = cli_write(&out, err);
    buf_fini(&out);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

enum status cli_result_write_row(const char *folder, const char *name, size_t row,
                                 enum answer_kind kind, struct span bytes, struct error *err)
{
    const char *suffix = kind == ANSWER_BOXES ? "json" : kind == ANSWER_MAP ? "png" : "txt";
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s.%zu.%s", folder, name, row, suffix) >= PATH_MAX) {
        return error_set(err, ST_UNWRITTEN, "--output: the path is too long");
    }
    return cli_write_file("--output", path, bytes, span_str(""), err);
}

/* NumPy's byte strings have one length: shorter ones are filled up with zeros. */
static void add_strings(struct buf *head, struct buf *content, const struct cli_result *result)
{
    size_t count = (size_t)shape_numel(&result->shape), longest = 1;
    for (size_t i = 0; i < count; i++) {
        longest = result->strings[i].len > longest ? result->strings[i].len : longest;
    }
    npy_print_strings_head(head, longest, &result->shape);
    for (size_t i = 0; i < count && !buf_failed(content); i++) {
        buf_add(content, result->strings[i].ptr, result->strings[i].len);
        buf_add_fill(content, '\0', longest - result->strings[i].len);
    }
}

enum status cli_result_write(const struct cli_result *result, const char *folder, struct error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s.npy", folder, result->file_name) >= PATH_MAX) {
        return error_set(err, ST_UNWRITTEN, "--output: the path is too long");
    }
    struct buf head, content;
    struct span bytes = result->bytes;
    buf_init(&head, 1024);
    buf_init(&content, TEXT_BYTES_MAX);
    if (result->kind == PTED_KIND_STRING && result->strings) {
        add_strings(&head, &content, result);
        bytes = buf_span(&content);
    } else if (result->kind == PTED_KIND_STRING) {
        npy_print_strings_head(&head, bytes.len, &(struct shape){.rank = 1, .dims = {1}});
    } else {
        npy_print_head(&head, result->dtype, &result->shape);
    }
    enum status status = buf_failed(&content)
                             ? error_set(err, ST_TOO_LARGE,
                                         "--output: %s: the strings need more "
                                         "than %zu bytes",
                                         path, TEXT_BYTES_MAX)
                             : cli_write_file("--output", path, buf_span(&head), bytes, err);
    buf_fini(&head);
    buf_fini(&content);
    return status;
}
