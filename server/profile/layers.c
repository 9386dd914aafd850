/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/profile/layers.h"

#include "protocol/json.h"

static void print_text(struct buf *out, const char *before, const char *key, const char *text)
{
    buf_printf(out, "%s\"%s\":", before, key);
    json_print_string(out, span_str(text));
}

static void print_row(const struct layers_row *row, double calls, struct buf *out)
{
    print_text(out, "{", "operator", row->operation);
    print_text(out, ",", "layer", row->layer);
    print_text(out, ",", "source", row->source);
    print_text(out, ",", "kernel", row->kernel);
    buf_printf(out, ",\"block\":%u", row->block);
    if (row->node != UINT32_MAX) {
        buf_printf(out, ",\"node\":%u", row->node);
    }
    buf_printf(out, ",\"dispatches\":%.2f,\"busy_us\":%.3f,\"host_us\":%.3f",
               (double)row->dispatches / calls, (double)row->busy_ns / calls / 1000,
               (double)row->host_ns / calls / 1000);
    buf_printf(out, ",\"flops\":%.0f,\"numbers\":\"%s\",\"bytes\":%.0f}", 2 * row->macs / calls,
               row->numbers, row->bytes / calls);
}

void layers_print_json(size_t lost_spans, layers_at_f *at, const void *profile, uint32_t row_count,
                       uint64_t calls, struct buf *out)
{
    buf_printf(out, "\"lost_spans\":%zu,\"layers\":[", lost_spans);
    for (uint32_t i = 0; i < row_count; i++) {
        const struct layers_row row = at(profile, i);
        buf_add_str(out, i ? ",\n" : "\n");
        print_row(&row, (double)calls, out);
    }
    buf_add_char(out, ']');
}
