/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/dump.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "server/cli/call.h"

/* What a call keeps: of the values that match, those from |first| on. */
struct window {
    struct dump *dump;
    const struct cli_call_options *options;
    const char *pattern;
    uint32_t first, seen; /* values that match */
    uint32_t began;       /* where the window's values are in |dump| */
    bool failed;          /* no memory for one */
};

/* ---- values ---------------------------------------------------------------------------------- */

static struct dump_value *add(struct dump *dump, const char *name, struct span origin)
{
    if (!ARRAY_ROOM(dump->items, dump->capacity, dump->count + 1)) {
        return NULL;
    }
    struct dump_value value = {
        .name = strdup(name),
        .origin = origin.len ? strndup((const char *)origin.ptr, origin.len) : strdup(""),
    };
    if (!value.name || !value.origin) {
        free(value.name);
        free(value.origin);
        return NULL;
    }
    dump->items[dump->count] = value;
    return &dump->items[dump->count++];
}

void dump_fini(struct dump *dump)
{
    for (uint32_t i = 0; i < dump->count; i++) {
        free(dump->items[i].name);
        free(dump->items[i].origin);
        free(dump->items[i].bytes);
    }
    free(dump->items);
    *dump = (struct dump){0};
}

/* ---- names ----------------------------------------------------------------------------------- */

/* "conv.12" of "stem.0.conv.12": operators have no dots in their names. */
static const char *find_operator(const char *name)
{
    uint32_t dots = 0;
    const char *at = name + strlen(name);
    while (at > name && dots + (at[-1] == '.') < 2) {
        dots += *--at == '.';
    }
    return at;
}

static bool matches(const char *pattern, const char *name)
{
    return strcmp(pattern, "all") == 0 || fnmatch(pattern, name, 0) == 0 ||
           fnmatch(pattern, find_operator(name), 0) == 0;
}

static bool is_method(const struct window *window, const struct rt_method *method)
{
    const char *wanted = window->options->method, *name = rt_method_name(method);
    return !wanted || strcmp(wanted, name) == 0;
}

static bool wants(void *arg, const struct rt_method *method, const struct rt_keep_value *value)
{
    struct window *window = arg;
    if (!is_method(window, method) || !matches(window->pattern, value->name)) {
        return false;
    }
    uint32_t number = window->seen++;
    if (number < window->first || number >= window->first + DUMP_CALL_VALUES) {
        return false;
    }
    window->failed |= !add(window->dump, value->name, value->origin);
    return !window->failed;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Copies result |index| of |call| to |to|. */
static enum status take(struct dump *dump, const struct cli_call *call, uint32_t index,
                        struct dump_value *to, struct error *err)
{
    const struct rt_io *io = rt_method_result(call->method, index);
    const struct rt_result *result = rt_invocation_result(call->invocation, index);
    bool is_there = io->kind != RT_IO_NONE && (result->bytes.ptr || result->bytes.len == 0);
    to->dtype = io->dtype;
    to->shape = result->shape;
    if (!is_there ||
        (io->kind == RT_IO_TENSOR && !result->bytes.ptr && shape_numel(&result->shape) > 0)) {
        return ST_OK;
    }
    if (result->bytes.len > DUMP_BYTES_MAX - dump->bytes) {
        return error_set(err, ST_TOO_LARGE,
                         "%s: with it the values take more than %zu bytes: choose fewer of them",
                         to->name, DUMP_BYTES_MAX);
    }
    to->bytes = malloc(result->bytes.len + 1);
    if (!to->bytes) {
        return error_no_memory(err, "intermediate values");
    }
    if (result->bytes.len) {
        memcpy(to->bytes, result->bytes.ptr, result->bytes.len);
    }
    to->len = result->bytes.len;
    dump->bytes += to->len;
    return ST_OK;
}

/* The call's results are the method's own, which the first call gives, and then the values. */
static enum status take_all(const struct window *window, const struct cli_call *call,
                            struct error *err)
{
    struct dump *dump = window->dump;
    uint32_t values = dump->count - window->began;
    uint32_t own = rt_method_result_count(call->method) - values;
    for (uint32_t i = 0; i < values; i++) {
        TRY(take(dump, call, own + i, &dump->items[window->began + i], err));
    }
    if (window->first > 0) {
        return ST_OK;
    }
    for (uint32_t i = 0; i < own; i++) {
        struct dump_value *value = add(dump, rt_method_result(call->method, i)->name, span_str(""));
        TRY(value ? take(dump, call, i, value, err) : error_no_memory(err, "intermediate values"));
    }
    dump->result_count = own;
    return ST_OK;
}

static enum status run_window(struct window *window, dump_open_f *open, void *own,
                              struct error *err)
{
    const struct rt_keep keep = {wants, window};
    struct cli_call_options options = *window->options;
    struct cli_call call;
    uint64_t ignored;
    options.keep = &keep;
    window->seen = 0;
    window->began = window->dump->count;
    enum status status = cli_call_open(&call, &options, err);
    if (status == ST_OK && window->failed) {
        status = error_no_memory(err, "intermediate values");
    }
    if (status == ST_OK && open) {
        status = open(own, &call, err);
    }
    if (status == ST_OK) {
        status = cli_call_once(&call, &ignored, err);
    }
    if (status == ST_OK) {
        status = take_all(window, &call, err);
    }
    cli_call_close(&call);
    return status;
}

/* The results, which lie behind the values of the first call, come first. */
static enum status put_results_first(struct dump *dump, uint32_t values, struct error *err)
{
    uint32_t own = dump->result_count;
    struct dump_value *items = malloc((size_t)(values + own + 1) * sizeof(*items));
    if (!items) {
        return error_no_memory(err, "intermediate values");
    }
    memcpy(items, dump->items + values, own * sizeof(*items));
    memcpy(items + own, dump->items, values * sizeof(*items));
    memcpy(dump->items, items, (size_t)(values + own) * sizeof(*items));
    free(items);
    return ST_OK;
}

enum status dump_run(struct dump *dump, const struct cli_call_options *options, const char *pattern,
                     dump_open_f *open, void *own, struct error *err)
{
    struct window window = {.dump = dump, .options = options, .pattern = pattern};
    *dump = (struct dump){0};
    do {
        TRY(run_window(&window, open, own, err));
        if (window.first == 0) {
            TRY(put_results_first(dump, dump->count - dump->result_count, err));
        }
        window.first += DUMP_CALL_VALUES;
    } while (window.first < window.seen);
    return window.seen > 0 || strcmp(pattern, "all") == 0
               ? ST_OK
               : error_set(err, ST_NOT_FOUND,
                           "--dump: no value is called '%.64s'; "
                           "`pte inspect --values` shows their names",
                           pattern);
}
