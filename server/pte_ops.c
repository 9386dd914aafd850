/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/pte_ops.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/dtype.h"
#include "protocol/json.h"
#include "runtime/operators.h"

#define TEXT_BYTES_MAX ((size_t)4 << 20)

/* "f32,f64", each between two |quote|s. */
static void print_dtypes(const struct rt_operator *op, const char *quote, struct buf *out)
{
    const char *comma = "";
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (op->dtypes >> dtype & 1) {
            buf_printf(out, "%s%s%s%s", comma, quote, dtype_text(dtype), quote);
            comma = ",";
        }
    }
}

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

static void print_line(const struct rt_operator *op, void *arg)
{
    struct buf *out = arg;
    buf_printf(out, "%-32s %-20s %-10s %-9s ", or_dash(op->name), or_dash(op->args),
               op->has_vulkan ? "cpu,vulkan" : "cpu", op->kind);
    print_dtypes(op, "", out);
    buf_printf(out, "%s %s\n", op->dtypes ? "" : "-", or_dash(op->kernels));
}

static void print_names(struct buf *out, const char *names)
{
    buf_add_char(out, '[');
    for (const char *name = names; name && *name;) {
        size_t len = strcspn(name, " ");
        buf_add_str(out, name == names ? "" : ",");
        json_print_string(out, span_of(name, len));
        name += len + strspn(name + len, " ");
    }
    buf_add_char(out, ']');
}

static void print_text(struct buf *out, const char *text)
{
    if (text) {
        json_print_string(out, span_str(text));
    } else {
        buf_add_str(out, "null");
    }
}

static void print_object(const struct rt_operator *op, void *arg)
{
    struct buf *out = arg;
    buf_add_str(out, out->len > 1 ? ",\n{\"name\":" : "\n{\"name\":");
    print_text(out, op->name);
    buf_add_str(out, ",\"kernels\":");
    print_names(out, op->kernels);
    buf_add_str(out, ",\"args\":");
    print_text(out, op->args);
    buf_printf(out, ",\"kind\":\"%s\",\"devices\":[\"cpu\"%s],\"dtypes\":[", op->kind,
               op->has_vulkan ? ",\"vulkan\"" : "");
    print_dtypes(op, "\"", out);
    buf_add_str(out, "]}");
}

enum status pte_ops(int argc, char *const argv[], struct error *err)
{
    bool is_json = argc == 1 && strcmp(argv[0], "--json") == 0;
    struct buf out;
    if (argc > is_json) {
        return error_set(err, ST_INVALID, "ops takes --json or nothing, got '%s'", argv[0]);
    }
    buf_init(&out, TEXT_BYTES_MAX);
    if (is_json) {
        buf_add_char(&out, '[');
        rt_operators_each(print_object, &out);
        buf_add_str(&out, "\n]\n");
    } else {
        rt_operators_each(print_line, &out);
    }
    bool is_written = !buf_failed(&out) && fwrite(out.ptr, 1, out.len, stdout) == out.len;
    buf_fini(&out);
    return is_written ? ST_OK : error_set(err, ST_SYSTEM, "the text cannot be printed");
}
