/* SPDX-License-Identifier: MIT */
/* Numbers of JSON between bounds, digit by digit, and multiples. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "server/text/grammar/grammar_priv.h"

#define DIGITS_MAX 20 /* of a bound */
#define ENDLESS UINT64_MAX

static const struct part *digit(struct grammar_builder *builder, uint32_t lo, uint32_t hi)
{
    return grammar_bytes(builder, (uint8_t)('0' + lo), (uint8_t)('0' + hi));
}

static const struct part *digits(struct grammar_builder *builder, uint32_t min, uint32_t max)
{
    return grammar_repeat(builder, digit(builder, 0, 9), min, max);
}

static const struct part *word(struct grammar_builder *builder, const char *text)
{
    return grammar_text(builder, span_str(text));
}

/* ---- integers -------------------------------------------------------------------------------- */

/* Between |lo| and |hi|, of |count| digits each. One of them is at its extreme after the first
 * digits that differ, so there are not many parts. */
static const struct part *of_one_length(struct grammar_builder *builder, const uint8_t *lo,
                                        const uint8_t *hi, uint32_t count)
{
    static const uint8_t least[DIGITS_MAX] = {0};
    static const uint8_t most[DIGITS_MAX] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
                                             9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    if (count == 0) {
        return grammar_empty(builder);
    }
    if (memcmp(lo, least, count) == 0 && memcmp(hi, most, count) == 0) {
        return digits(builder, count, count);
    }
    if (lo[0] == hi[0]) {
        return grammar_then(builder, digit(builder, lo[0], lo[0]),
                            of_one_length(builder, lo + 1, hi + 1, count - 1));
    }
    const struct part *out = grammar_then(builder, digit(builder, lo[0], lo[0]),
                                          of_one_length(builder, lo + 1, most, count - 1));
    if (lo[0] + 1 < hi[0]) {
        out = grammar_or(builder, out,
                         grammar_then(builder, digit(builder, lo[0] + 1u, hi[0] - 1u),
                                      digits(builder, count - 1, count - 1)));
    }
    return grammar_or(builder, out,
                      grammar_then(builder, digit(builder, hi[0], hi[0]),
                                   of_one_length(builder, least, hi + 1, count - 1)));
}

static void split(uint64_t value, uint32_t count, uint8_t out[DIGITS_MAX])
{
    for (uint32_t i = count; i-- > 0;) {
        out[i] = (uint8_t)(value % 10);
        value /= 10;
    }
}

/* Integers from |lo| to |hi| without sign; |hi| may be ENDLESS, otherwise both have at most 19
 * digits. */
static const struct part *naturals(struct grammar_builder *builder, uint64_t lo, uint64_t hi)
{
    const struct part *out = grammar_never(builder);
    uint64_t first = 0, last = 9;
    for (uint32_t count = 1; count < DIGITS_MAX && first <= hi && out; count++) {
        uint64_t from = lo > first ? lo : first, to = hi < last ? hi : last;
        uint8_t a[DIGITS_MAX], b[DIGITS_MAX];
        if (from <= to) {
            split(from, count, a);
            split(to, count, b);
            out = grammar_or(builder, out, of_one_length(builder, a, b, count));
        }
        first = last + 1;
        last = count + 1 < DIGITS_MAX - 1 ? last * 10 + 9 : UINT64_C(9999999999999999999);
    }
    return hi == ENDLESS ? grammar_or(builder, out,
                                      grammar_then(builder, digit(builder, 1, 9),
                                                   digits(builder, DIGITS_MAX - 1, UINT32_MAX)))
                         : out;
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
}

/* Integers from min to max. */
static const struct part *between(struct grammar_builder *builder,
                                  const struct grammar_bounds *bounds)
{
    const struct part *out = grammar_never(builder);
    if (!bounds->has_max || bounds->max >= 0) {
        uint64_t lo = bounds->has_min && bounds->min > 0 ? (uint64_t)bounds->min : 0;
        out = naturals(builder, lo, bounds->has_max ? (uint64_t)bounds->max : ENDLESS);
    }
    if (!bounds->has_min || bounds->min < 0) {
        uint64_t lo = bounds->has_max && bounds->max < 0 ? magnitude(bounds->max) : 1;
        uint64_t hi = bounds->has_min ? magnitude(bounds->min) : ENDLESS;
        out = grammar_or(builder, out,
                         grammar_then(builder, word(builder, "-"), naturals(builder, lo, hi)));
    }
    return out;
}

/* A rule for each remainder; a digit leads to another one. Where it is 0 the number may end. */
static const struct part *multiples(struct grammar_builder *builder, uint32_t divisor)
{
    uint32_t rules[GRAMMAR_MULTIPLE_MAX];
    const struct part *first = grammar_never(builder);
    must(divisor > 0 && divisor <= GRAMMAR_MULTIPLE_MAX);
    for (uint32_t i = 0; i < divisor; i++) {
        rules[i] = grammar_rule_new(builder);
    }
    for (uint32_t i = 0; i < divisor && builder->status == ST_OK; i++) {
        const struct part *part = i ? grammar_never(builder) : grammar_empty(builder);
        for (uint32_t d = 0; d < 10; d++) {
            part = grammar_or(builder, part,
                              grammar_then(builder, digit(builder, d, d),
                                           grammar_rule(builder, rules[(i * 10 + d) % divisor])));
        }
        grammar_rule_set(builder, rules[i], part);
    }
    for (uint32_t d = 1; d < 10 && builder->status == ST_OK; d++) {
        first = grammar_or(
            builder, first,
            grammar_then(builder, digit(builder, d, d), grammar_rule(builder, rules[d % divisor])));
    }
    if (builder->status != ST_OK) {
        return NULL;
    }
    const struct part *sign = grammar_repeat(builder, word(builder, "-"), 0, 1);
    return grammar_or(builder, word(builder, "0"), grammar_then(builder, sign, first));
}

const struct part *grammar_integers(struct grammar_builder *builder,
                                    const struct grammar_bounds *bounds)
{
    struct grammar_bounds closed = *bounds;
    if (bounds->multiple) {
        return multiples(builder, bounds->multiple);
    }
    closed.min += bounds->is_min_open;
    closed.max -= bounds->is_max_open;
    return between(builder, &closed);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* ".5", not ".0". */
static const struct part *fraction(struct grammar_builder *builder)
{
    return grammar_then(
        builder, word(builder, "."),
        grammar_then(builder, digits(builder, 0, UINT32_MAX),
                     grammar_then(builder, digit(builder, 1, 9), digits(builder, 0, UINT32_MAX))));
}

static const struct part *zeros(struct grammar_builder *builder)
{
    const struct part *zero = grammar_repeat(builder, digit(builder, 0, 0), 1, UINT32_MAX);
    return grammar_repeat(builder, grammar_then(builder, word(builder, "."), zero), 0, 1);
}

/* Integers that may have zeros behind a point, and numbers that have more, between two integers. */
const struct part *grammar_numbers(struct grammar_builder *builder,
                                   const struct grammar_bounds *bounds)
{
    const struct part *out =
        grammar_then(builder, grammar_integers(builder, bounds), zeros(builder));
    if (!bounds->has_max || bounds->max > 0) {
        uint64_t lo = bounds->has_min && bounds->min > 0 ? (uint64_t)bounds->min : 0;
        uint64_t hi = bounds->has_max ? (uint64_t)bounds->max - 1 : ENDLESS;
        out = grammar_or(builder, out,
                         grammar_then(builder, naturals(builder, lo, hi), fraction(builder)));
    }
    if (!bounds->has_min || bounds->min < 0) {
        uint64_t lo = bounds->has_max && bounds->max < 0 ? magnitude(bounds->max) : 0;
        uint64_t hi = bounds->has_min ? magnitude(bounds->min) - 1 : ENDLESS;
        const struct part *whole = naturals(builder, lo, hi);
        out = grammar_or(builder, out,
                         grammar_then(builder, word(builder, "-"),
                                      grammar_then(builder, whole, fraction(builder))));
    }
    return out;
}
