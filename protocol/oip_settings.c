/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/oip_settings.h"

#include <inttypes.h>

#include "base/table.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/oip_priv.h"

/* The lines of our log begin with such a time, unless the journal adds its own. */
#define LOG_FORMAT "ISO8601"

#define TRACE_MODE "opentelemetry"

/* A value that can only be what it is. */
static enum status read_fixed(struct json *in, const char *value, const char *why,
                              struct error *err)
{
    struct json_string text;
    TRY(json_read_string(in, &text, err));
    return json_string_is(&text, value)
               ? ST_OK
               : json_fail(in, err, ST_UNSUPPORTED, "expected \"%s\": %s", value, why);
}

/* ---- log ------------------------------------------------------------------------------------- */

static const char *const log_kinds[] = {
    [OIP_LOG_ERRORS] = "log_error",
    [OIP_LOG_WARNINGS] = "log_warning",
    [OIP_LOG_INFOS] = "log_info",
    [OIP_LOG_VERBOSE] = "log_verbose_level",
};
TABLE_ENDS_WITH(log_kinds, OIP_LOG_VERBOSE);

#define LOG_KINDS (sizeof(log_kinds) / sizeof(log_kinds[0]))

void oip_print_log(struct buf *out, const struct oip_log_settings *settings)
{
    buf_add_char(out, '{');
    oip_print_member(out, "log_file", settings->file);
    for (size_t i = 0; i < LOG_KINDS; i++) {
        bool is_logged = i <= (size_t)settings->kind;
        buf_printf(out, ",\"%s\":%s", log_kinds[i],
                   i == OIP_LOG_VERBOSE ? is_logged ? "1" : "0"
                   : is_logged          ? "true"
                                        : "false");
    }
    buf_add_char(out, ',');
    oip_print_member(out, "log_format", LOG_FORMAT);
    buf_add_char(out, '}');
}

/* By kind of line: does the request name it, and does it want such lines? */
struct log_order {
    const struct oip_log_settings *now;
    bool is_named[LOG_KINDS], is_wanted[LOG_KINDS];
};

static enum status read_kind(struct json *in, size_t kind, struct log_order *order,
                             struct error *err)
{
    uint64_t level;
    order->is_named[kind] = true;
    if (kind != OIP_LOG_VERBOSE) {
        return json_read_bool(in, &order->is_wanted[kind], err);
    }
    TRY(json_read_u64(in, &level, err));
    order->is_wanted[kind] = level > 0;
    return ST_OK;
}

static enum status read_log_member(struct json *in, const struct json_string *key, void *out,
                                   struct error *err)
{
    struct log_order *order = out;
    for (size_t i = 0; i < LOG_KINDS; i++) {
        if (json_string_is(key, log_kinds[i])) {
            return read_kind(in, i, order, err);
        }
    }
    if (json_string_is(key, "log_file")) {
        return read_fixed(in, order->now->file, "the daemon's start decides it, see --log-file",
                          err);
    }
    if (json_string_is(key, "log_format")) {
        return read_fixed(in, LOG_FORMAT, "the log has no other format", err);
    }
    return json_fail(in, err, ST_INVALID,
                     "unknown member, expected log_error, log_warning, log_info, "
                     "log_verbose_level, log_file or log_format");
}

/* A kind that is named decides about those beside it that are not. */
static enum status settle_kind(const struct log_order *order, enum oip_log_kind now,
                               enum oip_log_kind *out_kind, struct error *err)
{
    size_t refused = LOG_KINDS, kind = (size_t)now;
    for (size_t i = LOG_KINDS; i-- > 0;) {
        refused = order->is_named[i] && !order->is_wanted[i] ? i : refused;
    }
    if (refused == OIP_LOG_ERRORS) {
        return error_set(err, ST_INVALID, "log_error: expected true, errors are always logged");
    }
    for (size_t i = 0; i < LOG_KINDS; i++) {
        if (order->is_named[i] && order->is_wanted[i] && i > refused) {
            return error_set(err, ST_INVALID, "%s: the log has one level, so it needs %s",
                             log_kinds[i], log_kinds[refused]);
        }
        kind = order->is_named[i] && order->is_wanted[i] && i > kind ? i : kind;
    }
    *out_kind = (enum oip_log_kind)(kind < refused ? kind : refused - 1);
    return ST_OK;
}

enum status oip_parse_log(struct span body, const struct oip_log_settings *now,
                          enum oip_log_kind *out_kind, struct error *err)
{
    struct log_order order = {.now = now};
    TRY(json_read_members(body, read_log_member, &order, err));
    return settle_kind(&order, now->kind, out_kind, err);
}

/* ---- traces ---------------------------------------------------------------------------------- */

void oip_print_trace(struct buf *out, const struct oip_trace_settings *settings)
{
    buf_printf(out,
               "{\"trace_level\":[\"%s\"],\"trace_rate\":\"%" PRIu64 "\",\"trace_count\":\"%" PRId64
               "\",\"log_frequency\":\"0\",\"trace_file\":\"\",\"trace_mode\":\"" TRACE_MODE "\"}",
               settings->is_on ? "TIMESTAMPS" : "OFF", settings->rate, settings->count);
}

static enum status read_level(struct json *in, bool *is_off, bool *is_on, struct error *err)
{
    struct json_string text;
    TRY(json_read_string(in, &text, err));
    if (json_string_is(&text, "TENSORS")) {
        return json_fail(in, err, ST_UNSUPPORTED, "tensors are not part of traces");
    }
    *is_off |= json_string_is(&text, "OFF");
    *is_on |= json_string_is(&text, "TIMESTAMPS");
    return json_string_is(&text, "OFF") || json_string_is(&text, "TIMESTAMPS")
               ? ST_OK
               : json_fail(in, err, ST_INVALID, "expected \"OFF\" or \"TIMESTAMPS\"");
}

/* An array of levels, or the one level of gRPC. OFF beside another level is a contradiction. */
static enum status read_levels(struct json *in, struct oip_trace_change *out, struct error *err)
{
    bool is_off = false, is_on = false;
    if (json_peek(in) == JSON_STRING) {
        TRY(read_level(in, &is_off, &is_on, err));
        out->level = is_on ? OIP_TRACE_ON : OIP_TRACE_OFF;
        return ST_OK;
    }
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            break;
        }
        TRY(read_level(in, &is_off, &is_on, err));
    }
    if (is_off == is_on) {
        return json_fail(in, err, ST_INVALID, "expected one of \"OFF\" and \"TIMESTAMPS\"");
    }
    out->level = is_on ? OIP_TRACE_ON : OIP_TRACE_OFF;
    return ST_OK;
}

/* The protocol has numbers as strings. */
static enum status read_number(struct json *in, int64_t min, struct oip_trace_number *out,
                               struct error *err)
{
    struct json_string text;
    out->is_set = true;
    if (json_peek(in) == JSON_NUMBER) {
        TRY(json_read_i64(in, &out->value, err));
    } else {
        TRY(json_read_string(in, &text, err));
        const uint8_t *at = text.raw.ptr, *end = at + text.raw.len;
        if (number_parse_i64(&at, end, &out->value) != NUMBER_OK || at != end) {
            out->value = min - 1;
        }
    }
    return out->value >= min
               ? ST_OK
               : json_fail(in, err, ST_INVALID, "expected a number from %" PRId64 " on", min);
}

/* null asks for the default of a setting that can change; any other setting has only one value. */
static enum status read_trace_null(struct json *in, const struct json_string *key,
                                   struct oip_trace_change *out, struct error *err)
{
    TRY(json_read_null(in, err));
    if (json_string_is(key, "trace_level")) {
        out->level = OIP_TRACE_DEFAULT;
    }
    out->rate.is_default |= json_string_is(key, "trace_rate");
    out->count.is_default |= json_string_is(key, "trace_count");
    return ST_OK;
}

static bool is_trace_member(const struct json_string *key)
{
    static const char *const names[] = {"trace_level",   "trace_rate", "trace_count",
                                        "log_frequency", "trace_file", "trace_mode"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (json_string_is(key, names[i])) {
            return true;
        }
    }
    return false;
}

static enum status read_trace_member(struct json *in, const struct json_string *key, void *user,
                                     struct error *err)
{
    struct oip_trace_change *out = user;
    if (!is_trace_member(key)) {
        return json_fail(in, err, ST_INVALID,
                         "unknown member, expected trace_level, trace_rate, trace_count, "
                         "log_frequency, trace_file or trace_mode");
    }
    if (json_peek(in) == JSON_NULL) {
        return read_trace_null(in, key, out, err);
    }
    if (json_string_is(key, "trace_level")) {
        return read_levels(in, out, err);
    }
    if (json_string_is(key, "trace_rate")) {
        return read_number(in, 0, &out->rate, err);
    }
    if (json_string_is(key, "trace_count")) {
        return read_number(in, -1, &out->count, err);
    }
    if (json_string_is(key, "log_frequency")) {
        return read_fixed(in, "0", "spans go to the collector as they come", err);
    }
    return json_string_is(key, "trace_file")
               ? read_fixed(in, "", "spans go to a collector, see --otlp-endpoint", err)
               : read_fixed(in, TRACE_MODE, "spans go to a collector, see --otlp-endpoint", err);
}

enum status oip_parse_trace(struct span body, struct oip_trace_change *out, struct error *err)
{
    *out = (struct oip_trace_change){.level = OIP_TRACE_SAME};
    return body.len ? json_read_members(body, read_trace_member, out, err) : ST_OK;
}
