/* SPDX-License-Identifier: MIT */
/* Numbers of JSON between bounds, digit by digit, and multiples. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "server/text/grammar/grammar_priv.h"

static const struct part *digit(struct grammar_builder *builder, uint32_t lo, uint32_t hi)
{
    return lo > hi || hi > 9 ? grammar_never(builder)
                             : grammar_bytes(builder, (uint8_t)('0' + lo), (uint8_t)('0' + hi));
}

static const struct part *digits(struct grammar_builder *builder, uint32_t min, uint32_t max)
{
    return grammar_repeat(builder, digit(builder, 0, 9), min, max);
}

static const struct part *word(struct grammar_builder *builder, const char *text)
{
    return grammar_text(builder, span_str(text));
}

static const struct part *then(struct grammar_builder *builder, const struct part *a,
                               const struct part *b)
{
    return a && b && (a->kind == PART_NEVER || b->kind == PART_NEVER) ? grammar_never(builder)
                                                                      : grammar_then(builder, a, b);
}

static const struct part *either(struct grammar_builder *builder, const struct part *a,
                                 const struct part *b)
{
    return grammar_or(builder, a, b);
}

/* ---- decimals -------------------------------------------------------------------------------- */

static bool add_digits(struct grammar_decimal *out, const char *text, size_t len, int exponent)
{
    char all[GRAMMAR_DIGITS_MAX + 1];
    size_t count = 0, point = 0;
    bool has_point = false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '.') {
            has_point = true;
        } else if (count == GRAMMAR_DIGITS_MAX) {
            return false;
        } else {
            all[count++] = (char)(text[i] - '0');
            point += !has_point;
        }
    }
    long at = (long)point + exponent; /* where the point stands in |all| */
    long first = at < 1 ? at - 1 : 0, last = at > (long)count ? at : (long)count;
    if (last - first > GRAMMAR_DIGITS_MAX) {
        return false;
    }
    for (long i = first; i < last; i++) {
        char value = i >= 0 && i < (long)count ? all[i] : 0;
        if (i < at && (value || out->whole > 0)) {
            out->digits[out->whole++] = value;
        } else if (i >= at) {
            out->digits[out->whole + out->places++] = value;
        }
    }
    while (out->places > 0 && out->digits[out->whole + out->places - 1] == 0) {
        out->places--;
    }
    return true;
}

bool grammar_decimal_read(const char *text, struct grammar_decimal *out)
{
    const char *e = strpbrk(text, "eE");
    int exponent = 0;
    *out = (struct grammar_decimal){.is_negative = text[0] == '-'};
    text += out->is_negative;
    if (e && sscanf(e + 1, "%d", &exponent) != 1) {
        return false;
    }
    size_t len = e ? (size_t)(e - text) : strlen(text);
    if (strspn(text, "0123456789.") < len || exponent > 10000 || exponent < -10000 ||
        !add_digits(out, text, len, exponent)) {
        return false;
    }
    out->is_negative = out->is_negative && (out->whole > 0 || out->places > 0);
    return true;
}

/* -1, 0 or 1, without signs. */
static int compare_sizes(const struct grammar_decimal *a, const struct grammar_decimal *b)
{
    if (a->whole != b->whole) {
        return a->whole < b->whole ? -1 : 1;
    }
    uint32_t places = a->places < b->places ? a->places : b->places;
    int order = memcmp(a->digits, b->digits, a->whole + places);
    return order ? order : (a->places > b->places) - (a->places < b->places);
}

int grammar_decimal_compare(const struct grammar_decimal *a, const struct grammar_decimal *b)
{
    if (a->is_negative != b->is_negative) {
        return a->is_negative ? -1 : 1;
    }
    return a->is_negative ? compare_sizes(b, a) : compare_sizes(a, b);
}

/* The next integer up, of a number without a sign; its fraction goes. */
static void step_up(struct grammar_decimal *number)
{
    uint32_t i = number->whole;
    number->places = 0;
    while (i > 0 && number->digits[i - 1] == 9) {
        number->digits[--i] = 0;
    }
    if (i > 0) {
        number->digits[i - 1]++;
    } else {
        memmove(number->digits + 1, number->digits, number->whole);
        number->digits[0] = 1;
        number->whole++;
    }
}

/* The next integer down of one that is not 0. */
static void step_down(struct grammar_decimal *number)
{
    uint32_t i = number->whole;
    while (number->digits[i - 1] == 0) {
        number->digits[--i] = 9;
    }
    number->digits[i - 1]--;
    if (number->digits[0] == 0) {
        memmove(number->digits, number->digits + 1, --number->whole);
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The numbers without a sign from |lo| on, up to |hi|; NULL: no end. An open one is not one of
 * them. */
struct sizes {
    const struct grammar_decimal *lo, *hi;
    bool is_lo_open, is_hi_open;
};

static bool is_all(const char *digits, uint32_t count, char digit)
{
    uint32_t i = 0;
    while (i < count && digits[i] == digit) {
        i++;
    }
    return i == count;
}

/* Digits of |count| places that are at least |lo| and at most |hi|; either may be NULL. Just one
 * part goes on with both after each digit, and just while they are the same. */
static const struct part *of_one_length(struct grammar_builder *builder, const char *lo,
                                        const char *hi, uint32_t count)
{
    const struct part *out = grammar_never(builder);
    lo = lo && is_all(lo, count, 0) ? NULL : lo;
    hi = hi && is_all(hi, count, 9) ? NULL : hi;
    if (count == 0 || (!lo && !hi)) {
        return digits(builder, count, count);
    }
    uint32_t from = lo ? (uint32_t)lo[0] : 0, to = hi ? (uint32_t)hi[0] : 9;
    if (lo && hi && from == to) {
        return then(builder, digit(builder, from, from),
                    of_one_length(builder, lo + 1, hi + 1, count - 1));
    }
    if (lo) {
        out = then(builder, digit(builder, from, from),
                   of_one_length(builder, lo + 1, NULL, count - 1));
    }
    if (hi) {
        out = either(
            builder, out,
            then(builder, digit(builder, to, to), of_one_length(builder, NULL, hi + 1, count - 1)));
    }
    from += lo != NULL;
    if (from + (hi != NULL) <= to) {
        out = either(builder, out,
                     then(builder, digit(builder, from, to - (hi != NULL)),
                          digits(builder, count - 1, count - 1)));
    }
    return out;
}

/* Integers of |min| to |max| places, the first of which is not 0. */
static const struct part *of_lengths(struct grammar_builder *builder, uint32_t min, uint32_t max)
{
    if (min > max) {
        return grammar_never(builder);
    }
    return then(builder, digit(builder, 1, 9),
                digits(builder, min - 1, max == UINT32_MAX ? max : max - 1));
}

/* Integers from |lo| to |hi|, which have no fraction; NULL: no end. */
static const struct part *naturals(struct grammar_builder *builder,
                                   const struct grammar_decimal *lo,
                                   const struct grammar_decimal *hi)
{
    const struct part *out = grammar_never(builder);
    if (hi && compare_sizes(lo, hi) > 0) {
        return out;
    }
    if (lo->whole == 0) {
        static const struct grammar_decimal one = {.whole = 1, .digits = {1}};
        return either(builder, word(builder, "0"), naturals(builder, &one, hi));
    }
    if (hi && hi->whole == lo->whole) {
        return of_one_length(builder, lo->digits, hi->digits, lo->whole);
    }
    out = of_one_length(builder, lo->digits, NULL, lo->whole);
    out = either(builder, out, of_lengths(builder, lo->whole + 1, hi ? hi->whole - 1 : UINT32_MAX));
    if (hi) { /* the first digit is not 0 */
        char least[GRAMMAR_DIGITS_MAX] = {1};
        out = either(builder, out, of_one_length(builder, least, hi->digits, hi->whole));
    }
    return out;
}

/* The least integer that |sizes| has. */
static struct grammar_decimal ceiling(const struct sizes *sizes)
{
    struct grammar_decimal out = *sizes->lo;
    if (out.places > 0 || sizes->is_lo_open) {
        step_up(&out);
    }
    return out;
}

/* The greatest one; false: there is none. */
static bool take_floor(const struct sizes *sizes, struct grammar_decimal *out)
{
    *out = *sizes->hi;
    bool is_itself = out->places == 0 && sizes->is_hi_open;
    out->places = 0;
    if (is_itself && out->whole == 0) {
        return false;
    }
    if (is_itself) {
        step_down(out);
    }
    return true;
}

static const struct part *integers(struct grammar_builder *builder, const struct sizes *sizes)
{
    struct grammar_decimal lo = ceiling(sizes), hi;
    if (sizes->hi && !take_floor(sizes, &hi)) {
        return grammar_never(builder);
    }
    return naturals(builder, &lo, sizes->hi ? &hi : NULL);
}

/* ---- fractions ------------------------------------------------------------------------------- */

/* The digits of a fraction that are still to come, and whether it may be equal. */
struct tail {
    const char *digits; /* NULL: no bound */
    uint32_t count;
    bool is_open;
};

static struct tail tail_of(const struct grammar_decimal *number, bool is_open)
{
    return (struct tail){number->digits + number->whole, number->places, is_open};
}

static struct tail behind(const struct tail *tail)
{
    uint32_t step = tail->count > 0;
    return (struct tail){tail->digits ? tail->digits + step : NULL, tail->count - step,
                         tail->is_open};
}

/* The digits behind the point from here to the end, at least |lo| and at most |hi|, |min| of them
 * or more, which is 0 or 1. */
static const struct part *fraction(struct grammar_builder *builder, struct tail lo, struct tail hi,
                                   uint32_t min)
{
    static const struct tail none = {0};
    const struct part *zeros = grammar_repeat(builder, digit(builder, 0, 0), min, UINT32_MAX);
    if (lo.digits && lo.count == 0 && !lo.is_open) {
        lo.digits = NULL; /* whatever comes is as great */
    }
    if (!lo.digits && !hi.digits) {
        return digits(builder, min, UINT32_MAX);
    }
    if (hi.digits && hi.count == 0) {
        return lo.digits || hi.is_open ? grammar_never(builder) : zeros;
    }
    if (lo.digits && lo.count == 0 && !hi.digits) { /* more than 0 is to come */
        zeros = grammar_repeat(builder, digit(builder, 0, 0), 0, UINT32_MAX);
        return then(builder, zeros,
                    then(builder, digit(builder, 1, 9), digits(builder, 0, UINT32_MAX)));
    }
    bool is_lo = lo.digits != NULL, is_hi = hi.digits != NULL;
    uint32_t from = is_lo && lo.count > 0 ? (uint32_t)lo.digits[0] : 0;
    uint32_t to = is_hi ? (uint32_t)hi.digits[0] : 9;
    const struct part *out = is_lo || min > 0 ? grammar_never(builder) : grammar_empty(builder);
    if (is_lo && is_hi && from == to) {
        return then(builder, digit(builder, from, from),
                    fraction(builder, behind(&lo), behind(&hi), 0));
    }
    if (is_lo && from <= to) {
        out = either(
            builder, out,
            then(builder, digit(builder, from, from), fraction(builder, behind(&lo), none, 0)));
    }
    if (is_hi && from <= to) {
        out =
            either(builder, out,
                   then(builder, digit(builder, to, to), fraction(builder, none, behind(&hi), 0)));
    }
    from += is_lo;
    if (from + is_hi <= to) {
        out =
            either(builder, out,
                   then(builder, digit(builder, from, to - is_hi), digits(builder, 0, UINT32_MAX)));
    }
    return out;
}

/* A point and a fraction, or none if it may be 0. */
static const struct part *pointed(struct grammar_builder *builder, struct tail lo, struct tail hi)
{
    const struct part *part = then(builder, word(builder, "."), fraction(builder, lo, hi, 1));
    bool may_miss =
        !(lo.digits && (lo.count > 0 || lo.is_open)) && !(hi.digits && hi.count == 0 && hi.is_open);
    return may_miss ? grammar_repeat(builder, part, 0, 1) : part;
}

static const struct part *numbers(struct grammar_builder *builder, const struct sizes *sizes)
{
    static const struct tail none = {0};
    struct grammar_decimal lo = *sizes->lo, next, hi, last;
    struct tail least = tail_of(sizes->lo, sizes->is_lo_open);
    struct tail most = sizes->hi ? tail_of(sizes->hi, sizes->is_hi_open) : none;
    lo.places = 0;
    if (sizes->hi) {
        hi = *sizes->hi;
        hi.places = 0;
        if (compare_sizes(&lo, &hi) == 0) {
            return then(builder, naturals(builder, &lo, &lo), pointed(builder, least, most));
        }
    }
    const struct part *out =
        then(builder, naturals(builder, &lo, &lo), pointed(builder, least, none));
    next = lo;
    step_up(&next);
    if (!sizes->hi) {
        return either(builder, out,
                      then(builder, naturals(builder, &next, NULL), pointed(builder, none, none)));
    }
    if (compare_sizes(&lo, &hi) > 0) {
        return grammar_never(builder);
    }
    last = hi;
    step_down(&last);
    out = either(builder, out,
                 then(builder, naturals(builder, &next, &last), pointed(builder, none, none)));
    return either(builder, out,
                  then(builder, naturals(builder, &hi, &hi), pointed(builder, none, most)));
}

/* ---- both sides of 0 ------------------------------------------------------------------------- */

static const struct part *one_side(struct grammar_builder *builder, const struct sizes *sizes,
                                   bool is_integer)
{
    if (sizes->hi && compare_sizes(sizes->lo, sizes->hi) > 0) {
        return grammar_never(builder);
    }
    return is_integer ? integers(builder, sizes) : numbers(builder, sizes);
}

static const struct part *between(struct grammar_builder *builder,
                                  const struct grammar_bounds *bounds)
{
    static const struct grammar_decimal zero = {0};
    const struct part *out = grammar_never(builder);
    bool is_min_below = bounds->has_min && bounds->min.is_negative;
    bool is_max_below = bounds->has_max && bounds->max.is_negative;
    if (!is_max_below) {
        bool has_lo = bounds->has_min && !is_min_below;
        struct sizes sizes = {has_lo ? &bounds->min : &zero, bounds->has_max ? &bounds->max : NULL,
                              has_lo && bounds->is_min_open, bounds->is_max_open};
        out = one_side(builder, &sizes, bounds->is_integer);
    }
    if (!bounds->has_min || is_min_below) { /* -0 is not written */
        struct sizes sizes = {is_max_below ? &bounds->max : &zero,
                              bounds->has_min ? &bounds->min : NULL,
                              is_max_below ? bounds->is_max_open : true, bounds->is_min_open};
        out = either(
            builder, out,
            then(builder, word(builder, "-"), one_side(builder, &sizes, bounds->is_integer)));
    }
    return out;
}

/* ---- multiples ------------------------------------------------------------------------------- */

/* States: the remainder of the digits so far by the divisor, which is an integer, and how many of
 * them stand behind the point. The number may end where the places that lack, as zeros, lead to
 * remainder 0. */
struct multiples {
    struct graph_state *states; /* FIRST_OF_BLOCKS, then blocks of |divisor| */
    uint32_t divisor, places;
};

enum { FIRST_OF_BLOCKS = 3 }; /* before them: the begin, behind a sign, behind the digit 0 */

/* Block 0 has the integers, block 1 what ends with the point, the others one place more each. */
static uint32_t state_at(const struct multiples *of, uint32_t block, uint32_t remainder)
{
    return FIRST_OF_BLOCKS + block * of->divisor + remainder;
}

static bool may_end_at(const struct multiples *of, uint32_t place, uint32_t remainder)
{
    uint64_t value = remainder;
    for (uint32_t i = place; i < of->places; i++) {
        value = value * 10 % of->divisor;
    }
    return value == 0;
}

static void put(struct graph_state *state, uint8_t byte, uint32_t to)
{
    uint32_t at = state->edge_count++;
    while (at > 0 && state->edges[at - 1].lo > byte) {
        state->edges[at] = state->edges[at - 1];
        at--;
    }
    state->edges[at] = (struct graph_edge){byte, byte, to};
}

/* Digits from |first| on lead to block |to|. */
static void put_digits(const struct multiples *of, struct graph_state *state, uint32_t remainder,
                       uint32_t to, uint32_t first)
{
    for (uint32_t d = first; d < 10; d++) {
        put(state, (uint8_t)('0' + d), state_at(of, to, (remainder * 10 + d) % of->divisor));
    }
}

static void fill_blocks(const struct multiples *of)
{
    for (uint32_t block = 0; block < of->places + 2; block++) {
        uint32_t place = block > 1 ? block - 1 : 0;
        for (uint32_t r = 0; r < of->divisor; r++) {
            struct graph_state *state = &of->states[state_at(of, block, r)];
            state->may_end = block != 1 && may_end_at(of, place, r);
            if (block == 0) {
                put_digits(of, state, r, 0, 0);
            } else if (place < of->places) {
                put_digits(of, state, r, block + 1, 0);
            }
            if (block == 0 && of->places > 0) {
                put(state, '.', state_at(of, 1, r));
            }
        }
    }
}

static const struct part *multiples_of(struct grammar_builder *builder,
                                       const struct grammar_decimal *of)
{
    struct multiples made = {.places = of->places};
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < of->whole + of->places && divisor <= GRAMMAR_MULTIPLE_MAX; i++) {
        divisor = divisor * 10 + (uint64_t)of->digits[i];
    }
    uint64_t count = FIRST_OF_BLOCKS + divisor * (of->places + 2);
    if (of->is_negative || divisor == 0 || divisor > GRAMMAR_MULTIPLE_MAX ||
        of->places > GRAMMAR_PLACES_MAX) {
        return grammar_refuse(builder, ST_UNSUPPORTED,
                              "'multipleOf' is supported with up to %d places behind the point, "
                              "and digits up to %d",
                              GRAMMAR_PLACES_MAX, GRAMMAR_MULTIPLE_MAX);
    }
    made.divisor = (uint32_t)divisor;
    made.states = arena_alloc(&builder->arena, count * sizeof(*made.states));
    struct graph_edge *edges = arena_alloc(&builder->arena, count * 12 * sizeof(*edges));
    struct graph *graph = arena_alloc(&builder->arena, sizeof(*graph));
    if (!made.states || !edges || !graph) {
        return grammar_refuse(builder, ST_TOO_LARGE, "a grammar takes too much memory");
    }
    for (uint64_t i = 0; i < count; i++) {
        made.states[i] = (struct graph_state){.edges = edges + i * 12};
    }
    fill_blocks(&made);
    put_digits(&made, &made.states[0], 0, 0, 1);
    put_digits(&made, &made.states[1], 0, 0, 1);
    put(&made.states[0], '-', 1);
    put(&made.states[0], '0', 2);
    put(&made.states[1], '0', 2);
    made.states[2].may_end = true;
    if (made.places > 0) {
        put(&made.states[2], '.', state_at(&made, 1, 0));
    }
    *graph = (struct graph){.states = made.states, .count = (uint32_t)count};
    /* States from which nothing ends are there: grammar_meet() leaves them out. */
    const struct part *part =
        grammar_part(builder, (struct part){.kind = PART_GRAPH, .graph = graph});
    return part ? grammar_meet(builder, &part, 1) : NULL;
}

const struct part *grammar_numbers(struct grammar_builder *builder,
                                   const struct grammar_bounds *bounds)
{
    const struct part *parts[2];
    if (!bounds->has_multiple) {
        return between(builder, bounds);
    }
    parts[1] = multiples_of(builder, &bounds->multiple);
    if (!bounds->has_min && !bounds->has_max && !bounds->is_integer) {
        return parts[1];
    }
    parts[0] = parts[1] ? between(builder, bounds) : NULL;
    return parts[0] ? grammar_meet(builder, parts, 2) : NULL;
}
