/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/pte_ops.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "protocol/json.h"
#include "runtime/import/kernels.h"
#include "runtime/ops/op.h"

#define TEXT_BYTES_MAX ((size_t)4 << 20)

/* The row that has the kernel: |op|, or what stands for it in the end. */
static const struct rt_op *row_that_runs(const struct rt_op *op)
{
    while (op->becomes) {
        op = rt_op_find(op->becomes);
        must(op);
    }
    return op;
}

/* What has no kernel, sizes and views, is the same wherever the bytes are. */
static bool has_vulkan(const struct rt_op *op)
{
    const struct hal_kernel *kernel = row_that_runs(op)->runs;
    return !kernel || kernel->spirv.len > 0;
}

/* "f32,f64", each between two |quote|s. */
static void print_dtypes(const struct rt_op *op, const char *quote, struct buf *out)
{
    const char *comma = "";
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (op->dtypes >> dtype & 1) {
            buf_printf(out, "%s%s%s%s", comma, quote, dtype_text(dtype), quote);
            comma = ",";
        }
    }
}

static const char *kind_of(const struct rt_op *op)
{
    return op->flags & RT_OP_VIEW       ? "view"
           : op->flags & RT_OP_SCALAR   ? "scalar"
           : op->flags & RT_OP_IN_PLACE ? "in place"
                                        : "";
}

static void print_line(const struct rt_op *op, void *arg)
{
    struct buf *out = arg;
    buf_printf(out, "%-32s %-20s %-10s %-9s ", op->name, op->args,
               has_vulkan(op) ? "cpu,vulkan" : "cpu", kind_of(op));
    print_dtypes(op, "", out);
    buf_printf(out, "%s %s\n", op->dtypes ? "" : "-", op->kernels ? op->kernels : "-");
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

static void print_object(const struct rt_op *op, void *arg)
{
    struct buf *out = arg;
    buf_add_str(out, out->len > 1 ? ",\n{\"name\":" : "\n{\"name\":");
    json_print_string(out, span_str(op->name));
    buf_add_str(out, ",\"kernels\":");
    print_names(out, op->kernels);
    buf_add_str(out, ",\"args\":");
    json_print_string(out, span_str(op->args));
    buf_printf(out, ",\"kind\":\"%s\",\"devices\":[\"cpu\"%s],\"dtypes\":[", kind_of(op),
               has_vulkan(op) ? ",\"vulkan\"" : "");
    print_dtypes(op, "\"", out);
    buf_add_str(out, "]}");
}

/* Kernel calls that no row means: numbers that the host computes while a program runs. */
static void print_host_line(const char *kernel, void *arg)
{
    if (!rt_op_find_kernel(span_str(kernel))) {
        buf_printf(arg, "%-32s %-20s %-10s %-9s - %s\n", "-", "-", "cpu", "host", kernel);
    }
}

static void print_host_object(const char *kernel, void *arg)
{
    if (!rt_op_find_kernel(span_str(kernel))) {
        buf_printf(arg,
                   ",\n{\"name\":null,\"kernels\":[\"%s\"],\"args\":null,\"kind\":\"host\","
                   "\"devices\":[\"cpu\"],\"dtypes\":[]}",
                   kernel);
    }
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
        rt_op_each(print_object, &out);
        rt_host_call_each(print_host_object, &out);
        buf_add_str(&out, "\n]\n");
    } else {
        rt_op_each(print_line, &out);
        rt_host_call_each(print_host_line, &out);
    }
    bool is_written = !buf_failed(&out) && fwrite(out.ptr, 1, out.len, stdout) == out.len;
    buf_fini(&out);
    return is_written ? ST_OK : error_set(err, ST_SYSTEM, "the text cannot be printed");
}
