/* SPDX-License-Identifier: MIT */
/* pte profile: where the time of calls goes. */
#include "config.h"

#include "server/cli/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/cli/call.h"
#include "server/cli/cli.h"
#include "server/process/model_name.h"

#define REPEAT_MAX 1000000
#define REPEAT_DEFAULT_MAX 1000
#define REPEAT_DEFAULT_MIN 3
#define REPEAT_DEFAULT_NS 1000000000 /* that the calls take together */
#define SPANS_MAX (1u << 22)
#define TEXT_BYTES_MAX ((size_t)4 << 30)

struct profile_options {
    struct cli_call_options call;
    const char *trace;
    uint64_t repeat;
    bool shows_all, is_json;
};

static const struct cli_option own_options[] = {
    {.name = "all",
     .type = OPTION_SWITCH,
     .at = offsetof(struct profile_options, shows_all),
     .preset = "the slowest 20",
     .doc = "every layer, in the order of execution"},
    {.name = "json",
     .type = OPTION_SWITCH,
     .at = offsetof(struct profile_options, is_json),
     .doc = "one object for programs; see pte(1)",
     .more = "Its members are below."},
    {.name = "trace",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct profile_options, trace),
     .doc = "also write what every thread did and when, for Perfetto or chrome://tracing"},
    {.name = "repeat",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct profile_options, repeat),
     .min = 1,
     .max = REPEAT_MAX,
     .preset = "as many as take a second, 3 to 1000",
     .doc = "measure N calls",
     .more = "Three calls before these are not measured."},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "profile", .options = own_options},
    {.name = "call",
     .options = cli_call_option_table,
     .at = offsetof(struct profile_options, call)},
    {.name = "device",
     .options = cli_device_option_table,
     .at = offsetof(struct profile_options, call)},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct profile_options *options = own;
    return cli_call_take(&options->call, text, err);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Calls that are not measured; *|out_ns| is the time of the last one. */
static enum status warm_up(struct cli_call *call, uint64_t *out_ns, struct error *err)
{
    for (int i = 0; i < CLI_CALL_WARM_UPS; i++) {
        TRY(cli_call_once(call, out_ns, err));
    }
    return ST_OK;
}

static uint64_t choose_repeat(uint64_t call_ns)
{
    uint64_t fit = REPEAT_DEFAULT_NS / (call_ns + 1);
    return fit < REPEAT_DEFAULT_MIN   ? REPEAT_DEFAULT_MIN
           : fit > REPEAT_DEFAULT_MAX ? REPEAT_DEFAULT_MAX
                                      : fit;
}

/* |p| has room for its calls. */
static enum status measure(struct cli_call *call, struct cli_profile *p, struct error *err)
{
    call->profile = p->profile;
    for (uint64_t i = 0; i < p->call_count; i++) {
        uint64_t ns;
        TRY(cli_call_once(call, &ns, err));
        p->calls[i] = (struct cli_profile_call){call->began_ns, call->began_ns + ns};
        p->sorted_ns[i] = ns;
        p->calls_ns += ns;
    }
    qsort(p->sorted_ns, p->call_count, sizeof(p->sorted_ns[0]), cli_call_compare_ns);
    struct pted_error why;
    TRY(cli_take_status(pted_profile_read(p->profile, &why), &why, err));
    p->row_count = (uint32_t)pted_profile_row_count(p->profile);
    for (uint32_t i = 0; i < p->row_count; i++) {
        p->busy_ns += cli_profile_row(p, i)->busy_ns;
        p->host_ns += cli_profile_row(p, i)->host_ns;
    }
    return ST_OK;
}

static enum status make_profile(struct cli_call *call, const struct profile_options *options,
                                struct cli_profile *p, struct error *err)
{
    uint64_t call_ns;
    struct pted_error why;
    p->device = call->device;
    enum pted_status made = pted_profile_new(call->method, SPANS_MAX, &p->profile, &why);
    if (made == PTED_UNSUPPORTED) {
        return error_set(err, ST_UNSUPPORTED,
                         "--device %s: the device has no timestamps, so it has no profiles",
                         options->call.device);
    }
    TRY(cli_take_status(made, &why, err));
    TRY(warm_up(call, &call_ns, err));
    model_name_of_file(options->call.path, p->program);
    p->method = pted_method_name(call->method);
    p->call_count = options->repeat ? options->repeat : choose_repeat(call_ns);
    p->calls = calloc(p->call_count, sizeof(*p->calls));
    p->sorted_ns = calloc(p->call_count, sizeof(*p->sorted_ns));
    if (!p->calls || !p->sorted_ns) {
        return error_no_memory(err, "the times of %llu calls", (unsigned long long)p->call_count);
    }
    TRY(measure(call, p, err));
    p->has_peaks = pted_device_is_cpu(call->device);
    return p->has_peaks ? cli_take_status(pted_device_measure_peaks(call->device, &p->peaks, &why),
                                          &why, err)
                        : ST_OK;
}

/* ---- showing --------------------------------------------------------------------------------- */

static enum status write_trace(const struct cli_profile *p, const char *path, struct error *err)
{
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    cli_profile_print_trace(p, &out);
    enum status status =
        buf_failed(&out) ? error_no_memory(err, "the trace")
                         : cli_write_file("--trace", path, buf_span(&out), (struct span){0}, err);
    buf_fini(&out);
    return status;
}

static enum status show(const struct cli_profile *p, const struct profile_options *options,
                        struct error *err)
{
    struct buf out;
    size_t lost = pted_profile_lost(p->profile);
    if (lost > 0) {
        fprintf(stderr, "pte: %zu spans found no room, so times are too small: lower --repeat\n",
                lost);
    }
    TRY(options->trace ? write_trace(p, options->trace, err) : ST_OK);
    buf_init(&out, TEXT_BYTES_MAX);
    if (options->is_json) {
        cli_profile_print_json(p, &out);
    } else {
        cli_profile_print_text(p, options->shows_all, &out);
    }
    enum status status = cli_write(&out, err);
    buf_fini(&out);
    return status;
}

static enum status profile_and_show(struct cli_call *call, struct cli_profile *p,
                                    const struct profile_options *options, struct error *err)
{
    TRY(cli_call_open(call, &options->call, err));
    TRY(make_profile(call, options, p, err));
    return show(p, options, err);
}

static enum status profile(int argc, char *const argv[], struct error *err)
{
    static struct profile_options options = {.call.precision = PRECISION_FAST};
    struct cli_profile p = {0};
    struct cli_call call;
    TRY(cli_option_parse(&cli_profile_command, argc, argv, &options, err));
    TRY(cli_call_settle(&options.call, err));
    enum status status = profile_and_show(&call, &p, &options, err);
    pted_profile_free(p.profile);
    cli_call_close(&call);
    free(p.calls);
    free(p.sorted_ns);
    return status;
}

static int run(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_profile_command, profile(argc, argv, &err), &err);
}

const struct cli_command cli_profile_command = {
    .name = "profile",
    .usage = "profile [OPTION]... FILE.pte",
    .summary = "show which operators and layers take the time of a call",
    .about =
        "Calls a method repeatedly and prints which layers and operators take the time. GFLOP/s\n"
        "and GB/s are those of one worker while it is busy; beside them is their part of what one\n"
        "worker reaches, measured in the same run. More than 100% of the reads: from caches.\n"
        "On a GPU the times and rates are those of the device, without its peaks; kernels that "
        "run\n"
        "on the CPU are marked \"(host)\".\n",
    .after = "Examples:\n"
             "  pte profile mobilenet.pte --workers 1\n"
             "  pte profile bert.pte --shape input_0=1x128 --json >bert.json\n"
             "  pte profile resnet.pte --repeat 3 --trace resnet.trace.json\n"
             "  pte profile resnet.pte --device auto\n",
    .groups = groups,
    .take = take,
    .run = run,
};
