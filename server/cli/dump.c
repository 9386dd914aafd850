/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/dump.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "server/cli/call.h"
#include "server/cli/result.h"

/* What a call keeps: of the values that match, those from |first| on. */
struct window {
    struct dump *dump;
    const struct cli_call_options *options;
    const char *pattern;
    char *method;         /* owned; whose values are kept; NULL: not known before the first load */
    uint32_t first, seen; /* values that match */
    uint32_t began;       /* where the window's values are in |dump| */
    bool failed;          /* no memory for one */
};

/* ---- values ---------------------------------------------------------------------------------- */

static struct dump_value *add(struct dump *dump, const char *name, const char *origin)
{
    if (!ARRAY_ROOM(dump->items, dump->capacity, dump->count + 1)) {
        return NULL;
    }
    struct dump_value value = {
        .name = strdup(name),
        .origin = strdup(origin),
    };
    if (!value.name || !value.origin) {
        free(value.name);
        free(value.origin);
        return NULL;
    }
    dump->items[dump->count] = value;
    return &dump->items[dump->count++];
}

/* Drops the values from the one at |count| on. */
static void drop_from(struct dump *dump, uint32_t count)
{
    for (; dump->count > count; dump->count--) {
        free(dump->items[dump->count - 1].name);
        free(dump->items[dump->count - 1].origin);
        free(dump->items[dump->count - 1].bytes);
    }
}

void dump_fini(struct dump *dump)
{
    drop_from(dump, 0);
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

/* The default method is known only when the program is loaded. Until then it is taken for the first
 * one, which is right for programs with one method. */
static bool is_method(struct window *window, const char *name)
{
    window->method = window->method ? window->method : strdup(name);
    window->failed |= !window->method;
    return window->method && strcmp(window->method, name) == 0;
}

static bool wants(const struct pted_value *value, void *arg)
{
    struct window *window = arg;
    if (!is_method(window, value->method) || !matches(window->pattern, value->name)) {
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
static enum status take(struct dump *dump, struct cli_call *call, uint32_t index,
                        struct dump_value *to, struct error *err)
{
    struct cli_result result;
    TRY(cli_call_result(call, index, &result, err));
    to->dtype = result.dtype;
    to->shape = result.shape;
    bool is_empty = result.kind == PTED_KIND_STRING ||
                    (result.kind == PTED_KIND_TENSOR && shape_numel(&result.shape) == 0);
    if (!result.bytes.ptr && !is_empty) {
        return ST_OK;
    }
    if (result.bytes.len > DUMP_BYTES_MAX - dump->bytes) {
        return error_set(err, ST_TOO_LARGE,
                         "%s: with it the values take more than %zu bytes: choose fewer of them",
                         to->name, DUMP_BYTES_MAX);
    }
    to->bytes = malloc(result.bytes.len + 1);
    if (!to->bytes) {
        return error_no_memory(err, "intermediate values");
    }
    if (result.bytes.len) {
        memcpy(to->bytes, result.bytes.ptr, result.bytes.len);
    }
    to->len = result.bytes.len;
    dump->bytes += to->len;
    return ST_OK;
}

/* The call's results are the method's own, which the first call gives, and then the values. */
static enum status take_all(const struct window *window, struct cli_call *call, struct error *err)
{
    struct dump *dump = window->dump;
    uint32_t values = (uint32_t)pted_method_kept_count(call->method);
    uint32_t own = call->result_count - values;
    must(values == dump->count - window->began);
    for (uint32_t i = 0; i < values; i++) {
        TRY(take(dump, call, own + i, &dump->items[window->began + i], err));
    }
    if (window->first > 0) {
        return ST_OK;
    }
    for (uint32_t i = 0; i < own; i++) {
        struct dump_value *value = add(dump, call->result_ios[i].name, "");
        TRY(value ? take(dump, call, i, value, err) : error_no_memory(err, "intermediate values"));
    }
    dump->result_count = own;
    return ST_OK;
}

static enum status run_call(struct window *window, struct cli_call *call, dump_open_f *open,
                            void *own, struct error *err)
{
    uint64_t ignored;
    TRY(window->failed ? error_no_memory(err, "intermediate values") : ST_OK);
    TRY(open ? open(own, call, err) : ST_OK);
    TRY(cli_call_once(call, &ignored, err));
    return take_all(window, call, err);
}

/* Were the values those of |call|'s method? If not, they are dropped, and the method is known. */
static bool is_right(struct window *window, const struct cli_call *call)
{
    const char *name = pted_method_name(call->method);
    if (!window->method || strcmp(window->method, name) == 0) {
        return true;
    }
    drop_from(window->dump, window->began);
    free(window->method);
    window->method = strdup(name);
    window->failed |= !window->method;
    return !window->method;
}

static enum status run_window(struct window *window, dump_open_f *open, void *own,
                              struct error *err)
{
    struct cli_call_options options = *window->options;
    enum status status;
    bool is_done;
    options.keep = wants;
    options.keep_arg = window;
    window->began = window->dump->count;
    do {
        struct cli_call call;
        window->seen = 0;
        status = cli_call_open(&call, &options, err);
        is_done = status != ST_OK || is_right(window, &call);
        if (status == ST_OK && is_done) {
            status = run_call(window, &call, open, own, err);
        }
        cli_call_close(&call);
    } while (!is_done);
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

static enum status run_windows(struct window *window, dump_open_f *open, void *own,
                               struct error *err)
{
    struct dump *dump = window->dump;
    const char *method = window->options->method;
    window->method = method ? strdup(method) : NULL;
    if (method && !window->method) {
        return error_no_memory(err, "intermediate values");
    }
    do {
        TRY(run_window(window, open, own, err));
        if (window->first == 0) {
            TRY(put_results_first(dump, dump->count - dump->result_count, err));
        }
        window->first += DUMP_CALL_VALUES;
    } while (window->first < window->seen);
    return ST_OK;
}

enum status dump_run(struct dump *dump, const struct cli_call_options *options, const char *pattern,
                     dump_open_f *open, void *own, struct error *err)
{
    struct window window = {.dump = dump, .options = options, .pattern = pattern};
    *dump = (struct dump){0};
    enum status status = run_windows(&window, open, own, err);
    free(window.method);
    return status != ST_OK || window.seen > 0 || strcmp(pattern, "all") == 0
               ? status
               : error_set(err, ST_NOT_FOUND,
                           "--dump: no value is called '%.64s'; "
                           "`pte inspect --values` shows their names",
                           pattern);
}
