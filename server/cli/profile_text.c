/* SPDX-License-Identifier: MIT */
/* The tables of `pte profile`. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/cli/call.h"
#include "server/cli/profile.h"

#define LAYER_COLUMNS 36

/* The sums of a row of a table. */
struct sum {
    const char *op;
    uint32_t number;                    /* of |row| */
    const struct pted_profile_row *row; /* NULL: several */
    uint64_t dispatches, busy_ns, host_ns;
    double macs, bytes;
    enum pted_numbers numbers;
};

static int compare_sums(const void *a, const void *b)
{
    const struct sum *left = a, *right = b;
    return left->busy_ns > right->busy_ns ? -1 : left->busy_ns < right->busy_ns;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* |amount| of work for each nanosecond in which a thread was busy. */
static double rate(double amount, uint64_t busy_ns)
{
    return busy_ns > 0 ? amount / (double)busy_ns : 0;
}

/* "120.1  63%", with the part of one worker's peak, or "120.1" if the peak is 0; a dash if there is
 * nothing to count. */
static void print_rate(double amount, uint64_t busy_ns, double peak_per_second, struct buf *out)
{
    double reached = rate(amount, busy_ns);
    if (amount == 0 || busy_ns == 0) {
        buf_printf(out, "  %7s %4s", "-", "");
    } else if (peak_per_second == 0) {
        buf_printf(out, "  %7.1f %4s", reached, "");
    } else {
        buf_printf(out, "  %7.1f %3.0f%%", reached, percent(reached, peak_per_second / 1e9));
    }
}

static void print_layer(const struct pted_profile_row *row, struct buf *out)
{
    const char *layer = row->layer[0] ? row->layer : row->source;
    size_t len = strlen(layer);
    if (len <= LAYER_COLUMNS) {
        buf_add_str(out, layer);
    } else {
        buf_printf(out, "%.*s...", LAYER_COLUMNS - 3, layer);
    }
}

static void print_sum(const struct cli_profile *p, const struct sum *sum, struct buf *out)
{
    double workers = pted_device_workers(p->device);
    const double macs_peaks[] = {[PTED_NUMBERS_FLOAT32] = p->peaks.float32_macs,
                                 [PTED_NUMBERS_INT8] = p->peaks.int8_macs,
                                 [PTED_NUMBERS_BFLOAT16] = p->peaks.bfloat16_macs};
    buf_printf(out, "%6.1f%% %10.1f", percent((double)sum->busy_ns, (double)p->busy_ns),
               (double)sum->busy_ns / (double)p->call_count / 1000);
    print_rate(2 * sum->macs, sum->busy_ns, 2 * macs_peaks[sum->numbers] / workers, out);
    print_rate(sum->bytes, sum->busy_ns, p->peaks.read_bytes / workers, out);
}

/* On a device other than the CPU: a mark for work that the CPU did, or took part in by copies. */
static void print_place(const struct cli_profile *p, const struct sum *sum, struct buf *out)
{
    if (!pted_device_is_cpu(p->device) && sum->host_ns > 0) {
        buf_add_str(out, sum->host_ns == sum->busy_ns ? " (host)" : " (partly host)");
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *heading_of(const struct cli_profile *p)
{
    return p->has_peaks ? "  share    us/call  GFLOP/s   of     GB/s   of"
                        : "  share    us/call  GFLOP/s          GB/s     ";
}

/* Takes away the blanks at the end of |out|, but nothing before |start|. */
static void trim(struct buf *out, size_t start)
{
    while (!buf_failed(out) && out->len > start && out->ptr[out->len - 1] == ' ') {
        out->len--;
    }
}

static void print_layers(const struct cli_profile *p, const struct sum *sums, uint32_t shown,
                         struct buf *out)
{
    buf_printf(out, "%s     # %-18s %s\n", heading_of(p), "operator", "layer");
    uint64_t rest_ns = 0;
    for (uint32_t i = 0; i < p->row_count; i++) {
        if (i >= shown) {
            rest_ns += sums[i].busy_ns;
            continue;
        }
        print_sum(p, &sums[i], out);
        size_t start = out->len;
        buf_printf(out, " %5u %-18s ", sums[i].number, sums[i].op);
        print_layer(sums[i].row, out);
        trim(out, start);
        print_place(p, &sums[i], out);
        buf_add_char(out, '\n');
    }
    if (shown < p->row_count) {
        buf_printf(out, "%6.1f%% %10.1f  %u further layers (--all prints them)\n",
                   percent((double)rest_ns, (double)p->busy_ns),
                   (double)rest_ns / (double)p->call_count / 1000, p->row_count - shown);
    }
}

/* Sums the rows of each operator into |sums|; returns how many operators there are. */
static uint32_t sum_operators(const struct cli_profile *p, struct sum *sums)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->row_count; i++) {
        const struct pted_profile_row *row = cli_profile_row(p, i);
        uint32_t at = 0;
        while (at < count &&
               (strcmp(sums[at].op, row->operation) != 0 || sums[at].numbers != row->numbers)) {
            at++;
        }
        if (at == count) {
            sums[count++] = (struct sum){.op = row->operation, .numbers = row->numbers};
        }
        sums[at].dispatches += row->dispatches;
        sums[at].busy_ns += row->busy_ns;
        sums[at].host_ns += row->host_ns;
        sums[at].macs += row->macs;
        sums[at].bytes += row->bytes;
    }
    return count;
}

static void print_operators(const struct cli_profile *p, struct sum *sums, struct buf *out)
{
    uint32_t count = sum_operators(p, sums);
    qsort(sums, count, sizeof(*sums), compare_sums);
    buf_printf(out, "\n%s  %-18s %s\n", heading_of(p), "operator", "dispatches/call");
    for (uint32_t i = 0; i < count; i++) {
        print_sum(p, &sums[i], out);
        buf_printf(out, "  %-18s %.0f", sums[i].op,
                   (double)sums[i].dispatches / (double)p->call_count);
        print_place(p, &sums[i], out);
        buf_add_char(out, '\n');
    }
}

static void print_peaks(const struct cli_profile *p, struct buf *out)
{
    uint32_t workers = pted_device_workers(p->device);
    buf_printf(out, "one worker reaches %.1f GFLOP/s in float32, ",
               2 * p->peaks.float32_macs / workers / 1e9);
    if (p->peaks.bfloat16_macs > 0) {
        buf_printf(out, "%.1f in bfloat16, ", 2 * p->peaks.bfloat16_macs / workers / 1e9);
    }
    buf_printf(out, "%.1f in 8-bit integers, and reads %.1f GB/s\n\n",
               2 * p->peaks.int8_macs / workers / 1e9, p->peaks.read_bytes / workers / 1e9);
}

/* The end of a line: how busy a device other than the CPU is, and its host. */
static void print_device_use(const struct cli_profile *p, struct buf *out)
{
    double device_ns = (double)(p->busy_ns - p->host_ns);
    buf_printf(out, "the device is busy %.0f%% of it", percent(device_ns, (double)p->calls_ns));
    if (p->host_ns > 0) {
        buf_printf(out, ", threads of the host %.1f us",
                   (double)p->host_ns / (double)p->call_count / 1000);
    }
    buf_add_str(out, "\n\n");
}

static void print_head(const struct cli_profile *p, struct buf *out)
{
    uint32_t workers = pted_device_workers(p->device);
    double median = (double)cli_call_quantile(p->sorted_ns, p->call_count, 0.5) / 1000;
    buf_printf(out, "%s, method %s, on %s (%s)\n", p->program, p->method,
               pted_device_name(p->device), pted_device_description(p->device));
    buf_printf(out, "%llu call%s of %.1f us (median); ", (unsigned long long)p->call_count,
               p->call_count == 1 ? "" : "s", median);
    if (!p->has_peaks) {
        print_device_use(p, out);
        return;
    }
    buf_printf(out, "kernels keep the workers busy %.0f%% of it\n",
               percent((double)p->busy_ns, (double)p->calls_ns * workers));
    print_peaks(p, out);
}

void cli_profile_print_text(const struct cli_profile *p, bool shows_all, struct buf *out)
{
    must(p->call_count > 0);
    uint32_t shown = shows_all || p->row_count < CLI_PROFILE_ROWS ? p->row_count : CLI_PROFILE_ROWS;
    struct sum *sums = calloc((size_t)p->row_count + 1, sizeof(*sums));
    if (!sums) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < p->row_count; i++) {
        const struct pted_profile_row *row = cli_profile_row(p, i);
        sums[i] = (struct sum){.op = row->operation,
                               .number = i,
                               .row = row,
                               .dispatches = row->dispatches,
                               .busy_ns = row->busy_ns,
                               .host_ns = row->host_ns,
                               .macs = row->macs,
                               .bytes = row->bytes,
                               .numbers = row->numbers};
    }
    if (!shows_all) {
        qsort(sums, p->row_count, sizeof(*sums), compare_sums);
    }
    print_head(p, out);
    if (p->row_count > 0) {
        print_layers(p, sums, shown, out);
        print_operators(p, sums, out);
    } else {
        buf_add_str(out, "no operator runs in this method: its results are constants or inputs\n");
    }
    free(sums);
}
