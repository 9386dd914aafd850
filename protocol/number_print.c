/* SPDX-License-Identifier: MIT */
/*
 * Numbers -> text. The shortest decimal that reads back to a float is found as R. Giulietti
 * describes it in "The Schubfach way to render doubles" (2020): the interval of all reals that
 * round to the float is scaled by a power of ten that leaves it between 2 and 20 units wide, so
 * that at most a few whole numbers have to be looked at. One routine serves both widths; a float32
 * differs only in its interval.
 */
#include "config.h"

#include "protocol/number.h"

#include <math.h>
#include <string.h>

#include "protocol/number_priv.h"

const struct pow10 number_pow10[POW10_MAX - POW10_MIN + 1] = {
#define POW10(high, low) {high, low},
#include "protocol/number_pow10.def"
#undef POW10
};

/* Fixed notation for values in [1e-5, 1e16), scientific outside. */
#define POINT_MIN (-4)
#define POINT_MAX 16

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

struct shortest {
    uint64_t digits;
    int exponent;
};

/* floor(g x cp / 2^128) with the lowest bit saying whether anything was cut off. */
static uint64_t multiply_to_odd(struct pow10 g, uint64_t cp)
{
    struct wide_product high = wide_multiply(g.high, cp);
    uint64_t low = high.low + wide_multiply(g.low, cp).high;
    return (high.high + (low < high.low)) | (low > 1);
}

/* Of all decimals that round to c x 2^q: the shortest, and of these the closest. |is_lopsided|: the
 * float below is at half the distance, because c is the first of its binade. */
static struct shortest find_shortest(uint64_t c, int q, bool is_lopsided)
{
    bool is_odd = c & 1; /* then the ends of the interval round to other floats */
    int k = (q * 1262611 - (is_lopsided ? 524031 : 0)) >> 22;
    int shift = q + floor_log2_pow10(-k) + 1;
    struct pow10 g = pow10_ceil(-k);
    uint64_t middle = multiply_to_odd(g, (4 * c) << shift);
    uint64_t lower = multiply_to_odd(g, (4 * c - 2 + is_lopsided) << shift) + is_odd;
    uint64_t upper = multiply_to_odd(g, (4 * c + 2) << shift) - is_odd;
    uint64_t s = middle / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool under_fits = lower <= 40 * tens;
        bool over_fits = 40 * tens + 40 <= upper;
        if (under_fits != over_fits) {
            return (struct shortest){tens + over_fits, k + 1};
        }
    }
    bool under_fits = lower <= 4 * s;
    bool over_fits = 4 * s + 4 <= upper;
    if (under_fits != over_fits) {
        return (struct shortest){s + over_fits, k};
    }
    uint64_t half = 4 * s + 2;
    return (struct shortest){s + (middle > half || (middle == half && (s & 1))), k};
}

static size_t count_decimals(uint64_t value)
{
    size_t count = 1;
    for (; value >= 10000; value /= 10000) {
        count += 4;
    }
    return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

/* Writes |value| so that it ends before |end|. */
static void write_backwards(uint8_t *end, uint64_t value)
{
    while (value >= 100) {
        end -= 2;
        memcpy(end, digit_pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        memcpy(end - 2, digit_pairs + value * 2, 2);
    } else {
        end[-1] = (uint8_t)('0' + value);
    }
}

size_t number_print_u64(uint8_t *text, uint64_t value)
{
    size_t len = count_decimals(value);
    write_backwards(text + len, value);
    return len;
}

size_t number_print_i64(uint8_t *text, int64_t value)
{
    if (value >= 0) {
        return number_print_u64(text, (uint64_t)value);
    }
    *text = '-';
    return 1 + number_print_u64(text + 1, 0 - (uint64_t)value);
}

/* d.ddde-12; |point| is where the decimal point stands, counted from the first digit. */
static size_t write_scientific(uint8_t *text, uint64_t digits, size_t count, int point)
{
    uint8_t *p = text;
    write_backwards(p + 1 + count, digits);
    p[0] = p[1];
    if (count > 1) {
        p[1] = '.';
        p += 1 + count;
    } else {
        p += 1;
    }
    *p++ = 'e';
    p += number_print_i64(p, point - 1);
    return (size_t)(p - text);
}

static size_t write_shortest(uint8_t *text, struct shortest value)
{
    while (value.digits % 10 == 0) {
        value.digits /= 10;
        value.exponent++;
    }
    size_t count = count_decimals(value.digits);
    int point = (int)count + value.exponent;
    if (point < POINT_MIN || point > POINT_MAX) {
        return write_scientific(text, value.digits, count, point);
    }
    if (point <= 0) {
        memcpy(text, "0.000000", 8);
        size_t zeros = 2 + (size_t)-point;
        write_backwards(text + zeros + count, value.digits);
        return zeros + count;
    }
    size_t before = (size_t)point;
    if (before >= count) {
        memset(text + count, '0', before - count);
        write_backwards(text + count, value.digits);
        memcpy(text + before, ".0", 2);
        return before + 2;
    }
    write_backwards(text + 1 + count, value.digits);
    memmove(text, text + 1, before);
    text[before] = '.';
    return count + 1;
}

static size_t write_nonfinite(uint8_t *text, double value, enum number_nan nan)
{
    const char *word = isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
    if (nan == NUMBER_NAN_NULL) {
        word = "null";
    }
    bool is_unquoted = nan == NUMBER_NAN_TOKEN;
    size_t len = strlen(word) - 2 * is_unquoted;
    memcpy(text, word + is_unquoted, len);
    return len;
}

/* An integer below the numbers whose neighbours are more than one away. */
static size_t write_integer(uint8_t *text, uint64_t value)
{
    size_t count = number_print_u64(text, value);
    memcpy(text + count, ".0", 2);
    return count + 2;
}

/* Multiples of an eighth below this have no shorter decimal that reads back to them. */
#define EIGHTHS_BELOW 16

static bool is_few_eighths(double value)
{
    double eighths = fabs(value) * 8;
    return eighths < EIGHTHS_BELOW * 8 && eighths == (double)(int)eighths;
}

static size_t write_eighths(uint8_t *text, unsigned eighths)
{
    static const char fractions[8][4] = {"0", "125", "25", "375", "5", "625", "75", "875"};
    static const uint8_t lengths[8] = {1, 3, 2, 3, 1, 3, 2, 3};
    unsigned whole = eighths / 8;
    size_t count = 1 + (whole >= 10);
    text[0] = '1'; /* overwritten unless there are two digits */
    text[count - 1] = (uint8_t)('0' + whole % 10);
    text[count] = '.';
    memcpy(text + count + 1, fractions[eighths % 8], 4);
    return count + 1 + lengths[eighths % 8];
}

/* A positive finite float, for which is_few_eighths() is false, by the fields of its bits. */
static size_t write_float(uint8_t *text, uint64_t mantissa, int field, int mantissa_bits, int bias)
{
    uint64_t c = field ? mantissa | (uint64_t)1 << mantissa_bits : mantissa;
    int q = (field ? field : 1) - bias - mantissa_bits;
    if (q <= 0 && q >= -mantissa_bits && (c & (((uint64_t)1 << -q) - 1)) == 0) {
        return write_integer(text, c >> -q);
    }
    return write_shortest(text, find_shortest(c, q, mantissa == 0 && field > 1));
}

size_t number_print_f64(uint8_t *text, double value, enum number_nan nan)
{
    if (!isfinite(value)) {
        return write_nonfinite(text, value, nan);
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    size_t sign = (size_t)(bits >> 63);
    *text = '-'; /* overwritten unless negative */
    if (is_few_eighths(value)) {
        return sign + write_eighths(text + sign, (unsigned)(fabs(value) * 8));
    }
    return sign +
           write_float(text + sign, bits & 0xfffffffffffff, (int)(bits >> 52 & 0x7ff), 52, 1023);
}

size_t number_print_f32(uint8_t *text, float value, enum number_nan nan)
{
    if (!isfinite(value)) {
        return write_nonfinite(text, (double)value, nan);
    }
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    size_t sign = bits >> 31;
    *text = '-';
    if (is_few_eighths((double)value)) {
        return sign + write_eighths(text + sign, (unsigned)(fabsf(value) * 8));
    }
    return sign + write_float(text + sign, bits & 0x7fffff, (int)(bits >> 23 & 0xff), 23, 127);
}
