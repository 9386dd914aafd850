/* SPDX-License-Identifier: MIT */
/*
 * Text -> numbers. A float token becomes a whole number of up to 19 digits times a power of ten,
 * and then a float by the cheapest of three ways that is certain to round correctly:
 *
 *   1. both factors are exact doubles, so one multiplication or division rounds once (W. D.
 * Clinger, "How to read floating point numbers accurately", 1990);
 *   2. a 128 bit product with a table of powers of ten, good unless the result is within the
 * table's error of a tie (D. Lemire, "Number parsing at a gigabyte per second", 2021);
 *   3. whole numbers of any length, in number_exact.c.
 *
 * Assumes round to nearest, which nobody here changes.
 */
#include "config.h"

#include "protocol/number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
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

/* The powers of ten that a double holds exactly. */
static const double exact_pow10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#define EXACT_POW10_MAX 22

static const uint32_t small_pow10[] = {1,      10,      100,      1000,     10000,
                                       100000, 1000000, 10000000, 100000000};

struct token {
    struct span digits; /* may hold a '.' */
    uint64_t mantissa;
    int64_t exponent;      /* of the mantissa's last digit */
    int64_t text_exponent; /* of the last digit in |digits| */
    bool is_negative;
    bool is_cut; /* |digits| has more digits than the mantissa */
};

static bool is_digit(uint8_t c)
{
    return (uint8_t)(c - '0') < 10;
}

/* How many of the eight characters in |word|, first in the lowest byte, are digits before the first
 * that is not? A byte that is none carries upwards only, so that the lowest mark is right. */
static inline unsigned count_digits(uint64_t word)
{
    uint64_t value = word ^ 0x3030303030303030u;
    uint64_t marks = ((value + 0x7676767676767676u) | value) & 0x8080808080808080u;
    return marks ? (unsigned)__builtin_ctzll(marks) / 8 : 8;
}

/* The value of the first |count| characters of |word|, 1 to 8, all digits: they move to the high
 * end, zeros fill up, and neighbours are joined in pairs three times. */
static inline uint64_t join_digits(uint64_t word, unsigned count)
{
    uint64_t v = (word ^ 0x3030303030303030u) << (64 - 8 * count);
    v = (v * 10 + (v >> 8)) & 0x00ff00ff00ff00ffu;
    v = (v * 100 + (v >> 16)) & 0x0000ffff0000ffffu;
    return (v * 10000 + (v >> 32)) & 0xffffffffu;
}

/* Reads digits behind those in |*mantissa|, which wraps when there are more than 19. */
static inline const uint8_t *read_digits(const uint8_t *p, const uint8_t *end, uint64_t *mantissa)
{
    while (end - p >= 8) {
        uint64_t word = load_le64(p);
        unsigned count = count_digits(word);
        if (count) {
            *mantissa = *mantissa * small_pow10[count] + join_digits(word, count);
        }
        p += count;
        if (count < 8) {
            return p;
        }
    }
    for (; p < end && is_digit(*p); p++) {
        *mantissa = *mantissa * 10 + (uint64_t)(*p - '0');
    }
    return p;
}

/* More digits than fit: keeps the first 19 that count. */
static void cut_mantissa(struct token *token)
{
    const uint8_t *p = token->digits.ptr, *end = p + token->digits.len;
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
    token->mantissa = mantissa;
    token->exponent = token->text_exponent + count - kept;
    token->is_cut = count > kept;
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

/* One token of JSON's number grammar; the place behind it, or NULL. */
static inline const uint8_t *scan(const uint8_t *p, const uint8_t *end, struct token *token)
{
    token->is_negative = p < end && *p == '-';
    p += token->is_negative;
    const uint8_t *first = p;
    uint64_t mantissa = 0;
    if (p == end || !is_digit(*p)) {
        return NULL;
    }
    if (*p == '0') {
        p++;
        if (p < end && is_digit(*p)) {
            return NULL;
        }
    } else {
        for (; p < end && is_digit(*p); p++) {
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
        }
    }
    int64_t exponent = 0;
    if (p < end && *p == '.') {
        const uint8_t *fraction = ++p;
        p = read_digits(p, end, &mantissa);
        if (p == fraction) {
            return NULL;
        }
        exponent = fraction - p;
    }
    token->digits = span_of(first, (size_t)(p - first));
    if (p < end && (*p | 0x20) == 'e') {
        p = read_exponent(p, end, &exponent);
    }
    token->mantissa = mantissa;
    token->exponent = token->text_exponent = exponent;
    token->is_cut = false;
    if (token->digits.len > MANTISSA_DIGITS) {
        cut_mantissa(token);
    }
    return p;
}

/* Way 1: is the double nearest to the token certain after one operation? */
static inline bool convert_exactly(const struct token *token, double *out)
{
    if (FLT_EVAL_METHOD != 0 || token->is_cut || token->mantissa > (uint64_t)1 << 53 ||
        token->exponent > EXACT_POW10_MAX || token->exponent < -EXACT_POW10_MAX) {
        return false;
    }
    double value = (double)token->mantissa;
    *out = token->exponent < 0 ? value / exact_pow10[-token->exponent]
                               : value * exact_pow10[token->exponent];
    return true;
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
    unsigned __int128 first = (unsigned __int128)w * g.high;
    struct product out = {(uint64_t)(first >> 64), (uint64_t)first, true};
    uint64_t unneeded = ~(uint64_t)0 >> (format->mantissa_bits + 3);
    if ((out.high & unneeded) == unneeded) {
        uint64_t carry = (uint64_t)(((unsigned __int128)w * g.low) >> 64);
        out.low += carry;
        out.high += out.low < carry;
        out.is_certain = out.low != ~(uint64_t)0 || (q >= -27 && q <= 55);
    }
    return out;
}

/* Way 2: the bits of the float nearest to w x 10^q; |*certain| turns false when it may be the
 * neighbour of the nearest. */
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

static uint64_t convert(const struct token *token, const struct float_format *format)
{
    bool certain = true;
    uint64_t bits = round_product(token->mantissa, token->exponent, format, &certain);
    if (token->is_cut) {
        certain &= round_product(token->mantissa + 1, token->exponent, format, &certain) == bits;
    }
    if (certain) {
        return bits;
    }
    struct decimal decimal = {token->digits, token->text_exponent};
    return number_parse_exact(&decimal, format, bits);
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* NaN, Infinity, -Infinity; the place behind it, or NULL. */
static const uint8_t *scan_nonfinite(const uint8_t *p, const uint8_t *end, double *out)
{
    static const struct {
        const char *text;
        size_t len;
        double value;
    } words[] = {{"NaN", 3, NAN}, {"Infinity", 8, INFINITY}, {"-Infinity", 9, -INFINITY}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if ((size_t)(end - p) >= words[i].len && memcmp(p, words[i].text, words[i].len) == 0) {
            *out = words[i].value;
            return p + words[i].len;
        }
    }
    return NULL;
}

enum number_result number_parse_f64(const uint8_t **at, const uint8_t *end, double *out)
{
    struct token token;
    const uint8_t *behind = scan(*at, end, &token);
    double value;
    if (behind) {
        if (!convert_exactly(&token, &value)) {
            value = double_of(convert(&token, &format_f64));
            if (isinf(value)) {
                return NUMBER_RANGE;
            }
        }
        value = token.is_negative ? -value : value;
    } else {
        behind = scan_nonfinite(*at, end, &value);
        if (!behind) {
            return NUMBER_SYNTAX;
        }
    }
    *at = behind;
    *out = value;
    return NUMBER_OK;
}

/*
 * A double that was rounded once gives the right float when rounded again, except when it sits
 * exactly between two floats: then the first rounding may have hidden on which side the text is.
 * Below the normal floats the place of "between" moves, and that range is left to |convert|.
 */
static inline bool narrow_exactly(double value, float *out)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x1fffffff) == 0x10000000 || (value != 0 && value < FLT_MIN) || value > FLT_MAX) {
        return false;
    }
    *out = (float)value;
    return true;
}

enum number_result number_parse_f32(const uint8_t **at, const uint8_t *end, float *out)
{
    struct token token;
    const uint8_t *behind = scan(*at, end, &token);
    double wide;
    float value;
    if (behind) {
        if (!convert_exactly(&token, &wide) || !narrow_exactly(wide, &value)) {
            value = float_of((uint32_t)convert(&token, &format_f32));
            if (isinf(value)) {
                return NUMBER_RANGE;
            }
        }
        value = token.is_negative ? -value : value;
    } else {
        behind = scan_nonfinite(*at, end, &wide);
        if (!behind) {
            return NUMBER_SYNTAX;
        }
        value = (float)wide;
    }
    *at = behind;
    *out = value;
    return NUMBER_OK;
}

/* The digits of an integer; tells the other failures apart by looking at the whole token. */
static inline enum number_result scan_integer(const uint8_t **at, const uint8_t *end, uint64_t *out,
                                              bool *is_negative)
{
    const uint8_t *p = *at;
    *is_negative = p < end && *p == '-';
    p += *is_negative;
    const uint8_t *first = p;
    uint64_t value = 0;
    bool is_wrapped = false;
    for (; p < end && is_digit(*p); p++) {
        is_wrapped |= __builtin_mul_overflow(value, (uint64_t)10, &value);
        is_wrapped |= __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    }
    bool is_malformed = p == first || (*first == '0' && p - first > 1);
    if (is_malformed || (p < end && (*p == '.' || (*p | 0x20) == 'e'))) {
        struct token token;
        return scan(*at, end, &token) ? NUMBER_NOT_INTEGER : NUMBER_SYNTAX;
    }
    if (is_wrapped) {
        return NUMBER_RANGE;
    }
    *at = p;
    *out = value;
    return NUMBER_OK;
}

enum number_result number_parse_u64(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    const uint8_t *p = *at;
    uint64_t value;
    bool is_negative;
    enum number_result result = scan_integer(&p, end, &value, &is_negative);
    if (result != NUMBER_OK) {
        return result;
    }
    if (is_negative && value) {
        return NUMBER_RANGE;
    }
    *at = p;
    *out = value;
    return NUMBER_OK;
}

enum number_result number_parse_i64(const uint8_t **at, const uint8_t *end, int64_t *out)
{
    const uint8_t *p = *at;
    uint64_t value;
    bool is_negative;
    enum number_result result = scan_integer(&p, end, &value, &is_negative);
    if (result != NUMBER_OK) {
        return result;
    }
    if (value > (uint64_t)INT64_MAX + is_negative) {
        return NUMBER_RANGE;
    }
    *at = p;
    *out = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return NUMBER_OK;
}
