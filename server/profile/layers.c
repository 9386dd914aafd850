/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/profile/layers.h"

#include "protocol/json.h"

static void print_text(struct buf *out, const char *before, const char *key, const char *text)
{
    buf_printf(out, "%s\"%s\":", before, key);
    json_print_string(out, span_str(text));
}

static void print_row(const struct rt_profile_row *row, double calls, struct buf *out)
{
    static const char *const numbers[] = {
        [HAL_MACS_F32] = "float32", [HAL_MACS_U8] = "int8", [HAL_MACS_BF16] = "bfloat16"};
    print_text(out, "{", "operator", row->op);
    print_text(out, ",", "layer", row->layer);
    print_text(out, ",", "source", row->source);
    print_text(out, ",", "kernel", row->kernel);
    buf_printf(out, ",\"block\":%u", row->block);
    if (row->node != UINT32_MAX) {
        buf_printf(out, ",\"node\":%u", row->node);
    }
    buf_printf(out, ",\"dispatches\":%.2f,\"busy_us\":%.3f,\"host_us\":%.3f",
               (double)row->commands / calls, (double)row->busy_ns / calls / 1000,
               (double)row->host_ns / calls / 1000);
    buf_printf(out, ",\"flops\":%.0f,\"numbers\":\"%s\",\"bytes\":%.0f}", 2 * row->macs / calls,
               numbers[row->macs_kind], row->bytes / calls);
}

void layers_print_json(const struct rt_profile *profile, const struct rt_profile_row *rows,
                       uint32_t row_count, uint64_t calls, struct buf *out)
{
    buf_printf(out, "\"lost_spans\":%zu,\"layers\":[", rt_profile_lost(profile));
    for (uint32_t i = 0; i < row_count; i++) {
        buf_add_str(out, i ? ",\n" : "\n");
        print_row(&rows[i], (double)calls, out);
    }
    buf_add_char(out, ']');
}
