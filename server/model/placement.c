/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/placement.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/kernel.h"
#include "protocol/json.h"
#include "runtime/program/program.h"

#define PLACEMENT_TEXT_MAX (16 << 10)
#define HOSTED_MAX 64 /* operators listed one by one, with their reasons */

struct hosted {
    const char *op;
    enum hal_place place;
    uint32_t count;
};

struct tally {
    struct hosted rows[HOSTED_MAX];
    uint32_t row_count;
};

static const char *const reasons[HAL_PLACES] = {
    [HAL_PLACE_NO_FORM] = "no form for this device",
    [HAL_PLACE_CHEAPER] = "next to such operators; moving there and back would cost more",
};

static void count(void *arg, const char *op, enum hal_place place)
{
    struct tally *tally = arg;
    uint32_t i = 0;
    while (i < tally->row_count &&
           (tally->rows[i].place != place || strcmp(tally->rows[i].op, op) != 0)) {
        i++;
    }
    if (i == HOSTED_MAX) {
        return;
    }
    if (i == tally->row_count) {
        tally->rows[tally->row_count++] = (struct hosted){.op = op, .place = place};
    }
    tally->rows[i].count++;
}

static void print_hosted(const struct tally *tally, struct buf *out)
{
    buf_add_str(out, ",\"on_host\":[");
    for (uint32_t i = 0; i < tally->row_count; i++) {
        const struct hosted *row = &tally->rows[i];
        buf_add_str(out, i > 0 ? ",{\"op\":" : "{\"op\":");
        json_print_string(out, span_str(row->op));
        buf_printf(out, ",\"dispatches\":%u,\"reason\":", row->count);
        json_print_string(out, span_str(reasons[row->place]));
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

static void print_capabilities(const struct hal_device_props *props, struct buf *out)
{
    const char *separator = "";
    buf_add_str(out, ",\"capabilities\":[");
    for (unsigned i = 0; i < HAL_CAPABILITIES; i++) {
        if (props->capabilities >> i & 1) {
            buf_printf(out, "%s\"%s\"", separator, hal_capability_word(i));
            separator = ",";
        }
    }
    buf_add_char(out, ']');
}

const char *placement_print(struct arena *arena, const struct hal_device *device,
                            struct rt_method *method)
{
    const struct hal_device_props *props = hal_device_props(device);
    if (props->is_host || rt_method_failure(method) || !rt_method_has_own_work(method)) {
        return NULL;
    }
    struct tally tally = {.row_count = 0};
    struct hal_command_stats stats;
    struct error err = {0};
    struct buf text;
    buf_init(&text, PLACEMENT_TEXT_MAX);
    buf_add_str(&text, "{\"device\":");
    json_print_string(&text, span_str(props->name));
    buf_add_str(&text, ",\"kind\":");
    json_print_string(&text, span_str(props->kind));
    print_capabilities(props, &text);
    /*
     * If the upper bounds of a model exclude each other, it can be called, but not at those bounds.
     */
    if (rt_method_place(method, count, &tally, &stats, &err) == ST_OK) {
        buf_printf(&text, ",\"dispatches\":%u,\"transfers\":%u",
                   hal_command_stats_dispatches(&stats), stats.transfers);
        print_hosted(&tally, &text);
    }
    buf_add_char(&text, '}');
    const char *result = buf_failed(&text) ? NULL : arena_strdup(arena, text.ptr, text.len);
    buf_fini(&text);
    return result;
}
