/* SPDX-License-Identifier: MIT */
/* The command `pte ops`: lists the operators of this build. */
#include "config.h"

#include <string.h>

#include "base/buf.h"
#include "base/dtype.h"
#include "hal/device.h"
#include "protocol/json.h"
#include "runtime/import/operators.h"
#include "server/cli/cli.h"
#include "server/cli/option.h"

#define TEXT_BYTES_MAX ((size_t)4 << 20)

/* "f32,f64", each within |quote|s. */
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

/* Names of the drivers whose devices run |op|, separated by commas, each within |quote|s. */
static void print_drivers(const struct rt_operator *op, const char *quote, struct buf *out)
{
    const char *comma = "";
    for (unsigned i = 0; hal_driver_name(i); i++) {
        if (op->drivers >> i & 1) {
            buf_printf(out, "%s%s%s%s", comma, quote, hal_driver_name(i), quote);
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
    struct buf drivers;
    buf_init(&drivers, TEXT_BYTES_MAX);
    print_drivers(op, "", &drivers);
    buf_printf(out, "%-32s %-20s %-10.*s %-9s ", or_dash(op->name), or_dash(op->args),
               SPAN_FMT(buf_span(&drivers)), op->kind);
    buf_fini(&drivers);
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
    buf_printf(out, ",\"kind\":\"%s\",\"devices\":[", op->kind);
    print_drivers(op, "\"", out);
    buf_add_str(out, "],\"dtypes\":[");
    print_dtypes(op, "\"", out);
    buf_add_str(out, "]}");
}

struct ops_options {
    bool is_json;
};

static const struct cli_option own_options[] = {
    {.name = "json",
     .type = OPTION_SWITCH,
     .at = offsetof(struct ops_options, is_json),
     .doc = "an array of objects instead"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "ops", .options = own_options},
    {.name = NULL},
};

static enum status list(int argc, char *const argv[], struct error *err)
{
    struct ops_options options = {.is_json = false};
    struct buf out;
    TRY(cli_option_parse(&cli_ops_command, argc, argv, &options, err));
    buf_init(&out, TEXT_BYTES_MAX);
    if (options.is_json) {
        buf_add_char(&out, '[');
        rt_operators_each(print_object, &out);
        buf_add_str(&out, "\n]\n");
    } else {
        rt_operators_each(print_line, &out);
    }
    enum status status = cli_write(&out, err);
    buf_fini(&out);
    return status;
}

static int run(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_ops_command, list(argc, argv, &err), &err);
}

const struct cli_command cli_ops_command = {
    .name = "ops",
    .usage = "ops [--json]",
    .summary = "the operators that programs may use",
    .about =
        "Lists the operators, one a line: the name in graphs, the kinds of its arguments and\n"
        "results (letters, see runtime/graph/op.h), the devices that have kernels for it, the\n"
        "element types of its first tensor, and the kernel calls of programs that mean it.\n",
    .after = "Example:\n"
             "  pte ops | grep aten::softmax\n",
    .groups = groups,
    .run = run,
};
