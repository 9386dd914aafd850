/* SPDX-License-Identifier: MIT */
/*
 * The two formats differ in the comments, which name a counter and an info without their endings in
 * OpenMetrics, and in the last line. A series looks the same in both, so that a change of the
 * format changes no series.
 */
#include "config.h"

#include "protocol/prom.h"

#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/utf8.h"

#define DIGITS_MAX 20 /* of a uint64_t */

/* ---- which format ---------------------------------------------------------------------------- */

#define QUALITY_MAX 1000 /* q is counted in thousandths */

/* The text up to |end| or to the end of |*rest|, without blanks around it; takes both away. */
static struct span take(struct span *rest, char end)
{
    const uint8_t *at = rest->len ? memchr(rest->ptr, end, rest->len) : NULL;
    struct span part = span_of(rest->ptr, at ? (size_t)(at - rest->ptr) : rest->len);
    *rest = at ? span_of(at + 1, rest->len - part.len - 1) : span_of(rest->ptr + rest->len, 0);
    while (part.len && (part.ptr[0] == ' ' || part.ptr[0] == '\t')) {
        part = span_of(part.ptr + 1, part.len - 1);
    }
    while (part.len && (part.ptr[part.len - 1] == ' ' || part.ptr[part.len - 1] == '\t')) {
        part.len--;
    }
    return part;
}

static bool is_word(struct span text, const char *word)
{
    return text.len == strlen(word) && strncasecmp((const char *)text.ptr, word, text.len) == 0;
}

/* "0.75" in thousandths; 0 if it is none. */
static unsigned read_quality(struct span text)
{
    unsigned value = 0, scale = QUALITY_MAX;
    for (size_t i = 0; i < text.len; i++) {
        if (i == 1 ? text.ptr[i] != '.' : text.ptr[i] < '0' || text.ptr[i] > '9') {
            return 0;
        }
        value += i == 1 ? 0 : (unsigned)(text.ptr[i] - '0') * scale;
        scale /= i == 1 ? 1 : 10;
    }
    return value < QUALITY_MAX ? value : QUALITY_MAX;
}

/* How much the client wants |type| in |version| by this range of its list; 0: the range is about
 * something else. */
static unsigned quality_of(struct span range, const char *type, const char *version)
{
    unsigned quality = QUALITY_MAX;
    if (!is_word(take(&range, ';'), type)) {
        return 0;
    }
    while (range.len) {
        struct span value = take(&range, ';');
        struct span name = take(&value, '=');
        if (is_word(name, "q")) {
            quality = read_quality(value);
        } else if (is_word(name, "version") && !is_word(value, version)) {
            return 0;
        }
    }
    return quality;
}

enum prom_format prom_accept(struct span accept)
{
    unsigned open = 0, text = 0;
    while (accept.len) {
        struct span range = take(&accept, ',');
        unsigned as_open = quality_of(range, "application/openmetrics-text", "1.0.0"),
                 as_text = quality_of(range, "text/plain", "0.0.4");
        open = as_open > open ? as_open : open;
        text = as_text > text ? as_text : text;
    }
    return open > 0 && open >= text ? PROM_OPENMETRICS : PROM_TEXT;
}

const char *prom_media_type(enum prom_format format)
{
    return format == PROM_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                      : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- families -------------------------------------------------------------------------------- */

void prom_init(struct prom *prom, enum prom_format format, struct buf *out)
{
    *prom = (struct prom){.out = out, .format = format};
}

static const char *ending_of(enum prom_type type)
{
    return type == PROM_COUNTER ? "_total" : type == PROM_INFO ? "_info" : "";
}

static const char *type_word(const struct prom *prom)
{
    static const char *const words[] = {
        [PROM_COUNTER] = "counter", [PROM_GAUGE] = "gauge", [PROM_HISTOGRAM] = "histogram",
        [PROM_SUMMARY] = "summary", [PROM_INFO] = "info",
    };
    bool is_unknown = prom->family->type == PROM_INFO && prom->format == PROM_TEXT;
    return words[is_unknown ? PROM_GAUGE : prom->family->type];
}

/* The family's name, as comments have it. */
static struct span name_of(const struct prom *prom)
{
    struct span name = span_str(prom->family->name);
    const char *ending = ending_of(prom->family->type);
    size_t len = strlen(ending);
    must(name.len > len && strcmp(prom->family->name + name.len - len, ending) == 0);
    return prom->format == PROM_OPENMETRICS ? span_of(name.ptr, name.len - len) : name;
}

static void comment(const struct prom *prom, const char *what, const char *text)
{
    struct span name = name_of(prom);
    buf_add_str(prom->out, what);
    buf_add(prom->out, name.ptr, name.len);
    buf_add_char(prom->out, ' ');
    buf_add_str(prom->out, text);
    buf_add_char(prom->out, '\n');
}

void prom_family(struct prom *prom, const struct prom_family *family)
{
    prom->family = family;
    comment(prom, "# HELP ", family->help);
    comment(prom, "# TYPE ", type_word(prom));
    if (prom->format == PROM_OPENMETRICS && *family->unit) {
        comment(prom, "# UNIT ", family->unit);
    }
    prom_unlabel(prom);
}

void prom_end(struct prom *prom)
{
    if (prom->format == PROM_OPENMETRICS) {
        buf_add_str(prom->out, "# EOF\n");
    }
}

/* ---- labels ---------------------------------------------------------------------------------- */

void prom_unlabel(struct prom *prom)
{
    prom->label_bytes = 0;
}

size_t prom_label_mark(const struct prom *prom)
{
    return prom->label_bytes;
}

void prom_unlabel_to(struct prom *prom, size_t mark)
{
    must(mark <= prom->label_bytes);
    prom->label_bytes = mark;
}

/* The form of the |len| bytes at |p|, which are a sequence, or of one byte if |len| is 0. */
static struct span shown(const uint8_t *p, size_t len)
{
    switch (len == 1 ? *p : 0) {
    case '"':
        return span_str("\\\"");
    case '\\':
        return span_str("\\\\");
    case '\n':
        return span_str("\\n");
    default:
        return len ? span_of(p, len) : span_str("\xef\xbf\xbd");
    }
}

static void put(struct prom *prom, const void *bytes, size_t len)
{
    must(in_range(prom->label_bytes, len, sizeof(prom->labels)));
    memcpy(prom->labels + prom->label_bytes, bytes, len);
    prom->label_bytes += len;
}

/* Room for the sign, the quotes and the comma is kept. */
static void put_value(struct prom *prom, struct span value)
{
    const uint8_t *p = value.ptr, *end = p + value.len;
    size_t limit = sizeof(prom->labels) - 1;
    while (p < end) {
        size_t len = *p < 0x80 ? 1 : utf8_sequence(p, end);
        struct span form = shown(p, len);
        if (!in_range(prom->label_bytes, form.len, limit) ||
            (size_t)(p - value.ptr) + len > PROM_VALUE_BYTES_MAX) {
            return;
        }
        put(prom, form.ptr, form.len);
        p += len ? len : 1;
    }
}

void prom_label(struct prom *prom, const char *name, struct span value)
{
    if (prom->label_bytes) {
        put(prom, ",", 1);
    }
    put(prom, name, strlen(name));
    put(prom, "=\"", 2);
    put_value(prom, value);
    put(prom, "\"", 1);
}

/* ---- series ---------------------------------------------------------------------------------- */

/* |value| / 10^|decimals| to |out|, without zeros at the end; returns its length. */
static size_t print_number(char out[DIGITS_MAX + 2], uint64_t value, unsigned decimals)
{
    char digits[DIGITS_MAX + 2];
    size_t at = sizeof(digits), len;
    must(decimals < DIGITS_MAX);
    while (decimals > 0 && value % 10 == 0) {
        value /= 10;
        decimals--;
    }
    for (unsigned i = 0; i == 0 || value > 0 || i <= decimals; i++) {
        if (i == decimals && i > 0) {
            digits[--at] = '.';
        }
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    }
    len = sizeof(digits) - at;
    memcpy(out, digits + at, len);
    return len;
}

/* A line: the name with |ending|, the labels, and the label |le| unless it is NULL. */
static void line(struct prom *prom, const char *ending, const char *le, uint64_t value,
                 unsigned decimals)
{
    struct buf *out = prom->out;
    char number[DIGITS_MAX + 2];
    buf_add_str(out, prom->family->name);
    buf_add_str(out, ending);
    if (prom->label_bytes || le) {
        buf_add_char(out, '{');
        buf_add(out, prom->labels, prom->label_bytes);
        if (le) {
            buf_add_str(out, prom->label_bytes ? ",le=\"" : "le=\"");
            buf_add_str(out, le);
            buf_add_char(out, '"');
        }
        buf_add_char(out, '}');
    }
    buf_add_char(out, ' ');
    buf_add(out, number, print_number(number, value, decimals));
    buf_add_char(out, '\n');
}

void prom_number(struct prom *prom, uint64_t value, unsigned decimals)
{
    line(prom, "", NULL, value, decimals);
}

void prom_histogram(struct prom *prom, const struct histogram *histogram,
                    const struct histogram_scale *scale)
{
    must(prom->family->type == PROM_HISTOGRAM);
    uint64_t count = 0;
    for (uint32_t i = 0; i <= scale->bound_count; i++) {
        count += counter_get(&histogram->buckets[i]);
        line(prom, "_bucket", i < scale->bound_count ? scale->texts[i] : "+Inf", count, 0);
    }
    line(prom, "_sum", NULL, counter_get(&histogram->sum), scale->decimals);
    line(prom, "_count", NULL, count, 0);
}

void prom_summary(struct prom *prom, uint64_t count, uint64_t sum, unsigned decimals)
{
    must(prom->family->type == PROM_SUMMARY);
    line(prom, "_sum", NULL, sum, decimals);
    line(prom, "_count", NULL, count, 0);
}
