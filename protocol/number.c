/* SPDX-License-Identifier: MIT */
/*
 * Text -> numbers. A float becomes a whole number of up to 19 digits times a power of ten,
 * and then a float by the cheapest way that is certain to round correctly:
 *
 *   1. a float32 by one multiplication of doubles, unless that ends too close to a tie; a double by
 *      one division of exact doubles (W. D. Clinger, "How to read floating point numbers
 * accurately", 1990). Only for tokens without an exponent, the usual elements of tensors;
 *   2. a 128 bit product with a table of powers of ten, good unless the result is within the
 * table's error of a tie (D. Lemire, "Number parsing at a gigabyte per second", 2021);
 *   3. whole numbers of any length, in number_exact.c.
 *
 * The first way spends its time in mispredicted branches, because the signs and lengths of tensor
 * elements are random. So it takes digits eight at a time, without a branch on their number.
 *
 * Assumes the rounding mode "to nearest", which this program never changes.
 */
#include "config.h"

#include "protocol/number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "protocol/number_priv.h"

#define MANTISSA_DIGITS 19 /* any such number fits in 64 bits */
#define EXPONENT_CAP 1000000000000

static const struct float_format format_f32 = {
    .mantissa_bits = 23,
    .exponent_min = -127,
    .exponent_infinite = 0xff,
    .round_even_min = -17,
    .round_even_max = 10,
};
static const struct float_format format_f64 = {
    .mantissa_bits = 52,
    .exponent_min = -1023,
    .exponent_infinite = 0x7ff,
    .round_even_min = -4,
    .round_even_max = 23,
};

/* Powers of ten that a double holds exactly, and reciprocals to the last bit. */
static const double exact_pow10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                     1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
static const double near_pow10[] = {1e-0,  1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,
                                    1e-7,  1e-8,  1e-9,  1e-10, 1e-11, 1e-12, 1e-13,
                                    1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19};

static const uint32_t small_pow10[] = {1,      10,      100,      1000,     10000,
                                       100000, 1000000, 10000000, 100000000};

struct numeral {
    struct span digits;    /* may hold a '.' */
    int64_t text_exponent; /* of the last digit in |digits| */
    bool is_negative;
    /* Set by cut_mantissa(): */
    bool is_cut; /* there are more than 19 significant digits */
    uint64_t mantissa;
    int64_t exponent; /* of the mantissa's last digit */
};

static bool is_digit(uint8_t c)
{
    return (uint8_t)(c - '0') < 10;
}

static bool ends_element(uint8_t c)
{
    return c == ',' || c == ']';
}

/* How many of the eight characters in |word|, lowest byte first, are digits before the first that
 * is not? A non-digit carries only into higher bytes, so the lowest mark is always right. */
static inline unsigned count_digits(uint64_t word)
{
    uint64_t value = word ^ 0x3030303030303030u;
    uint64_t marks = ((value + 0x7676767676767676u) | value) & 0x8080808080808080u;
    return marks ? (unsigned)__builtin_ctzll(marks) / 8 : 8;
}

/* The value of the first |count| characters of |word|, 0 to 8 digits. The digits are shifted to the
 * high end behind zeros; then neighbours are combined in pairs, three times. */
static inline uint64_t join_digits(uint64_t word, unsigned count)
{
    uint64_t v = word ^ 0x3030303030303030u;
    v = count ? v << (64 - 8 * count) : 0;
    v = (v * 10 + (v >> 8)) & 0x00ff00ff00ff00ffu;
    v = (v * 100 + (v >> 16)) & 0x0000ffff0000ffffu;
    return (v * 10000 + (v >> 32)) & 0xffffffffu;
}

/* The first 19 digits that count. */
static void cut_mantissa(struct numeral *numeral)
{
    const uint8_t *p = numeral->digits.ptr, *end = p + numeral->digits.len;
    while (p < end && (*p == '0' || *p == '.')) {
        p++;
    }
    uint64_t mantissa = 0;
    int64_t kept = 0, count = 0;
    for (; p < end; p++) {
        if (*p == '.') {
            continue;
        }
        count++;
        if (kept < MANTISSA_DIGITS) {
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
            kept++;
        }
    }
    numeral->mantissa = mantissa;
    numeral->exponent = numeral->text_exponent + count - kept;
    numeral->is_cut = count > kept;
}

/* "e+12" at |p|, which is at the 'e'. NULL when malformed. */
static const uint8_t *read_exponent(const uint8_t *p, const uint8_t *end, int64_t *exponent)
{
    p++;
    bool is_negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    if (p == end || !is_digit(*p)) {
        return NULL;
    }
    int64_t value = 0;
    for (; p < end && is_digit(*p); p++) {
        if (value < EXPONENT_CAP) {
            value = value * 10 + (*p - '0');
        }
    }
    *exponent += is_negative ? -value : value;
    return p;
}

/* Reads one numeral of JSON's number grammar. Returns the place behind it, or NULL. */
static const uint8_t *scan(const uint8_t *p, const uint8_t *end, struct numeral *numeral)
{
    numeral->is_negative = p < end && *p == '-';
    p += numeral->is_negative;
    const uint8_t *first = p;
    for (; p < end && is_digit(*p); p++) {
    }
    if (p == first || (*first == '0' && p - first > 1)) {
        return NULL;
    }
    int64_t exponent = 0;
    if (p < end && *p == '.') {
        const uint8_t *fraction = ++p;
        for (; p < end && is_digit(*p); p++) {
        }
        if (p == fraction) {
            return NULL;
        }
        exponent = fraction - p;
    }
    numeral->digits = span_of(first, (size_t)(p - first));
    if (p < end && (*p | 0x20) == 'e') {
        p = read_exponent(p, end, &exponent);
    }
    numeral->text_exponent = exponent;
    return p;
}

/* A numeral without sign and exponent and with at most 19 digits: mantissa / 10^places. */
struct plain {
    uint64_t mantissa;
    unsigned places; /* at most 19 */
};

/* A random element has more digits behind its point than these; what people write, has fewer. */
#define PLACES_FEW 2

/* The digits behind the point at |p|, 16 at a time unless they are few. */
__attribute__((always_inline)) static inline const uint8_t *
scan_places(const uint8_t *p, const uint8_t *end, struct plain *out)
{
    p++;
    if (end - p >= 16) {
        uint64_t high = load_le64(p), low = load_le64(p + 8);
        unsigned high_count = count_digits(high);
        if (high_count <= PLACES_FEW) {
            for (unsigned i = 0; i < high_count; i++) {
                out->mantissa = out->mantissa * 10 + (uint64_t)(p[i] - '0');
            }
            out->places = high_count;
            return p + high_count;
        }
        unsigned low_count = high_count == 8 ? count_digits(low) : 0;
        out->places = high_count + low_count;
        out->mantissa = out->mantissa * small_pow10[high_count] + join_digits(high, high_count);
        out->mantissa = out->mantissa * small_pow10[low_count] + join_digits(low, low_count);
        p += out->places;
        if (out->places < 16) {
            return p;
        }
    }
    for (; p < end && is_digit(*p) && out->places < 19; p++, out->places++) {
        out->mantissa = out->mantissa * 10 + (uint64_t)(*p - '0');
    }
    return p;
}

/* The place behind the numeral, or NULL when it is none of these or ends the text. */
__attribute__((always_inline)) static inline const uint8_t *
scan_plain(const uint8_t *p, const uint8_t *end, struct plain *out)
{
    const uint8_t *first = p;
    struct plain plain = {.mantissa = 0};
    for (; p < end && is_digit(*p); p++) {
        plain.mantissa = plain.mantissa * 10 + (uint64_t)(*p - '0');
    }
    if (p == end || p == first || ((p - first > 1) & (*first == '0'))) {
        return NULL;
    }
    bool has_point = *p == '.';
    if (has_point) {
        p = scan_places(p, end, &plain);
        if (p == end || is_digit(*p) || plain.places == 0) {
            return NULL;
        }
    }
    if ((*p | 0x20) == 'e' || p - first - has_point > MANTISSA_DIGITS) {
        return NULL;
    }
    *out = plain;
    return p;
}

struct product {
    uint64_t high, low;
    bool is_certain;
};

/* The first 128 bits of w x 10^q, as many of them right as |format| needs. */
static struct product multiply_pow10(uint64_t w, int q, const struct float_format *format)
{
    /* Reciprocals of powers below 2^64 are rounded up: then exact quotients come out exact. */
    struct pow10 g = q < 0 && q >= -27 ? pow10_ceil(q) : number_pow10[q - POW10_MIN];
    struct wide_product first = wide_multiply(w, g.high);
    struct product out = {first.high, first.low, true};
    uint64_t unneeded = ~(uint64_t)0 >> (format->mantissa_bits + 3);
    if ((out.high & unneeded) == unneeded) {
        uint64_t carry = wide_multiply(w, g.low).high;
        out.low += carry;
        out.high += out.low < carry;
        out.is_certain = out.low != ~(uint64_t)0 || (q >= -27 && q <= 55);
    }
    return out;
}

/* The bits of the float nearest to w x 10^q. |*certain| becomes false if the result may be a
 * neighbour of the nearest float. */
static uint64_t round_product(uint64_t w, int64_t q64, const struct float_format *format,
                              bool *certain)
{
    uint64_t infinity = (uint64_t)format->exponent_infinite << format->mantissa_bits;
    if (w == 0 || q64 < POW10_MIN) {
        return 0;
    }
    if (q64 > 308) {
        return infinity;
    }
    int q = (int)q64;
    int leading = __builtin_clzll(w);
    struct product product = multiply_pow10(w << leading, q, format);
    *certain &= product.is_certain;
    int upper = (int)(product.high >> 63);
    int shift = upper + 64 - format->mantissa_bits - 3;
    uint64_t mantissa = product.high >> shift;
    int exponent = floor_log2_pow10(q) + 63 + upper - leading - format->exponent_min;
    if (exponent <= 0) {
        if (exponent < -62) {
            return 0;
        }
        mantissa >>= 1 - exponent;
        mantissa = (mantissa + (mantissa & 1)) >> 1;
        return mantissa; /* a carry into the hidden bit is the smallest normal number */
    }
    if (product.low <= 1 && q >= format->round_even_min && q <= format->round_even_max &&
        (mantissa & 3) == 1 && mantissa << shift == product.high) {
        mantissa &= ~(uint64_t)1; /* an exact tie: down to even */
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    /* The hidden bit adds one to the exponent field, and so does a carry out of the mantissa. */
    uint64_t bits = ((uint64_t)(exponent - 1) << format->mantissa_bits) + mantissa;
    return bits < infinity ? bits : infinity;
}

static uint64_t convert(struct numeral *numeral, const struct float_format *format)
{
    bool certain = true;
    cut_mantissa(numeral);
    uint64_t bits = round_product(numeral->mantissa, numeral->exponent, format, &certain);
    if (numeral->is_cut) {
        certain &=
            round_product(numeral->mantissa + 1, numeral->exponent, format, &certain) == bits;
    }
    if (certain) {
        return bits;
    }
    struct decimal decimal = {numeral->digits, numeral->text_exponent};
    return number_parse_exact(&decimal, format, bits);
}

/* Multiplied instead of chosen: no branch. */
static const float signs[] = {1, -1};

/* Reads any number to the bits of its float. NULL: it is malformed, or too large. */
static const uint8_t *read_bits(const uint8_t *at, const uint8_t *end,
                                const struct float_format *format, uint64_t *out)
{
    struct numeral numeral;
    const uint8_t *behind = scan(at, end, &numeral);
    if (!behind) {
        return NULL;
    }
    uint64_t infinity = (uint64_t)format->exponent_infinite << format->mantissa_bits;
    uint64_t bits = convert(&numeral, format);
    if (bits == infinity) {
        return NULL;
    }
    *out = numeral.is_negative ? bits | ((infinity << 1) & ~infinity) : bits;
    return behind;
}

/*
 * A double within a few units in its last place of the number gives the right float when narrowed,
 * unless the middle of two floats is as close: three roundings, of the mantissa, the power and the
 * product, are at most three units. Nothing here is as small as a subnormal float.
 */
static inline bool multiply_f32(const struct plain *plain, float *out)
{
    /* The conversion of signed numbers is one instruction; converting unsigned ones takes a branch.
     */
    double value = (double)(int64_t)plain->mantissa * near_pow10[plain->places];
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    *out = (float)value;
    return FLT_EVAL_METHOD == 0 && plain->mantissa <= INT64_MAX &&
           (bits & 0x1fffffff) - (0x10000000 - 4) > 8;
}

/* Any number; apart, so that the usual ones need no frame. */
__attribute__((noinline)) static const uint8_t *read_any_f32(const uint8_t *at, const uint8_t *end,
                                                             float *out)
{
    uint64_t bits;
    const uint8_t *behind = read_bits(at, end, &format_f32, &bits);
    if (behind) {
        uint32_t narrow = (uint32_t)bits;
        memcpy(out, &narrow, sizeof(*out));
    }
    return behind;
}

__attribute__((noinline)) static const uint8_t *read_plain_f32(const uint8_t *at,
                                                               const uint8_t *end, float *out)
{
    struct plain plain;
    bool is_negative = at < end && *at == '-';
    const uint8_t *behind = scan_plain(at + is_negative, end, &plain);
    float value;
    if (behind && multiply_f32(&plain, &value)) {
        *out = value * signs[is_negative];
        return behind;
    }
    return read_any_f32(at, end, out);
}

/* Masks and vectors written by hand are full of "0" and "1.5": two digits, or one. */
const uint8_t *number_read_f32(const uint8_t *at, const uint8_t *end, float *out)
{
    if (end - at >= 4 && is_digit(at[0])) {
        if (ends_element(at[1])) {
            *out = (float)(at[0] - '0');
            return at + 1;
        }
        if (at[1] == '.' && is_digit(at[2]) && ends_element(at[3])) {
            *out = (float)((at[0] - '0') * 10 + (at[2] - '0')) / 10;
            return at + 3;
        }
    }
    return read_plain_f32(at, end, out);
}

/* Finds the double by one division of exact doubles, or with the table. False: neither is certain.
 */
static inline bool divide_f64(const struct plain *plain, double *out)
{
    if (FLT_EVAL_METHOD == 0 && plain->mantissa <= (uint64_t)1 << 53) {
        *out = (double)(int64_t)plain->mantissa / exact_pow10[plain->places];
        return true;
    }
    bool certain = true;
    uint64_t bits = round_product(plain->mantissa, -(int64_t)plain->places, &format_f64, &certain);
    memcpy(out, &bits, sizeof(*out));
    return certain;
}

__attribute__((noinline)) static const uint8_t *read_any_f64(const uint8_t *at, const uint8_t *end,
                                                             double *out)
{
    uint64_t bits;
    const uint8_t *behind = read_bits(at, end, &format_f64, &bits);
    if (behind) {
        memcpy(out, &bits, sizeof(*out));
    }
    return behind;
}

const uint8_t *number_read_f64(const uint8_t *at, const uint8_t *end, double *out)
{
    struct plain plain;
    bool is_negative = at < end && *at == '-';
    const uint8_t *behind = scan_plain(at + is_negative, end, &plain);
    double value;
    if (behind && divide_f64(&plain, &value)) {
        *out = value * (double)signs[is_negative];
        return behind;
    }
    return read_any_f64(at, end, out);
}

const uint8_t *number_read_word(const uint8_t *at, const uint8_t *end, double *out)
{
    static const struct {
        const char *text;
        size_t len;
        double value;
    } words[] = {{"NaN", 3, NAN}, {"Infinity", 8, INFINITY}, {"-Infinity", 9, -INFINITY}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if ((size_t)(end - at) >= words[i].len && memcmp(at, words[i].text, words[i].len) == 0) {
            *out = words[i].value;
            return at + words[i].len;
        }
    }
    return NULL;
}

enum number_result number_parse_f64(const uint8_t **at, const uint8_t *end, double *out)
{
    const uint8_t *behind = number_read_f64(*at, end, out);
    if (!behind) {
        behind = number_read_word(*at, end, out);
    }
    if (!behind) {
        struct numeral numeral;
        return scan(*at, end, &numeral) ? NUMBER_RANGE : NUMBER_SYNTAX;
    }
    *at = behind;
    return NUMBER_OK;
}

/* The digits of an integer without its sign; NULL when malformed, followed by a fraction or an
 * exponent, or beyond 64 bits. */
static inline const uint8_t *read_whole(const uint8_t *at, const uint8_t *end, uint64_t *out)
{
    const uint8_t *p = at;
    uint64_t value = 0;
    bool is_wrapped = false;
    for (; p < end && is_digit(*p); p++) {
        is_wrapped |= __builtin_mul_overflow(value, (uint64_t)10, &value);
        is_wrapped |= __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    }
    if (p == at || (*at == '0' && p - at > 1) || is_wrapped ||
        (p < end && (*p == '.' || (*p | 0x20) == 'e'))) {
        return NULL;
    }
    *out = value;
    return p;
}

const uint8_t *number_read_u64(const uint8_t *at, const uint8_t *end, uint64_t *out)
{
    uint64_t value;
    bool is_negative = at < end && *at == '-';
    const uint8_t *behind = read_whole(at + is_negative, end, &value);
    if (!behind || (is_negative && value)) {
        return NULL;
    }
    *out = value;
    return behind;
}

const uint8_t *number_read_i64(const uint8_t *at, const uint8_t *end, int64_t *out)
{
    uint64_t value;
    bool is_negative = at < end && *at == '-';
    const uint8_t *behind = read_whole(at + is_negative, end, &value);
    if (!behind || value > (uint64_t)INT64_MAX + is_negative) {
        return NULL;
    }
    *out = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return behind;
}

/* Why reading an integer failed. */
static enum number_result explain_integer(const uint8_t *at, const uint8_t *end)
{
    struct numeral numeral;
    const uint8_t *behind = scan(at, end, &numeral);
    if (!behind) {
        return NUMBER_SYNTAX;
    }
    const uint8_t *digits_end = numeral.digits.ptr + numeral.digits.len;
    bool is_integer = behind == digits_end && !memchr(numeral.digits.ptr, '.', numeral.digits.len);
    return is_integer ? NUMBER_RANGE : NUMBER_NOT_INTEGER;
}

enum number_result number_parse_u64(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    const uint8_t *behind = number_read_u64(*at, end, out);
    if (!behind) {
        return explain_integer(*at, end);
    }
    *at = behind;
    return NUMBER_OK;
}

enum number_result number_parse_i64(const uint8_t **at, const uint8_t *end, int64_t *out)
{
    const uint8_t *behind = number_read_i64(*at, end, out);
    if (!behind) {
        return explain_integer(*at, end);
    }
    *at = behind;
    return NUMBER_OK;
}
