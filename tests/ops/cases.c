/* SPDX-License-Identifier: MIT */
/* Reading golden cases, and comparing with an oracle of its own for halves. */
#include "config.h"

#include "tests/ops/cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* ---- files --------------------------------------------------------------------------------- */

static FILE *open_file(const char *family, const char *suffix)
{
    const char *top = getenv("top_srcdir");
    char path[1024];

    snprintf(path, sizeof(path), "%s/tests/ops/%s.%s", top ? top : ".", family, suffix);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: cannot be opened\n", path);
    }
    return file;
}

static void next_line(struct cases *cases)
{
    if (!fgets(cases->line, sizeof(cases->line), cases->text)) {
        cases->line[0] = '\0';
    }
}

bool cases_open(struct cases *cases, const char *family)
{
    FILE *file = open_file(family, "bin");
    long size;

    *cases = (struct cases){.text = open_file(family, "cases")};
    if (!file || !cases->text) {
        return false;
    }
    must(fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0);
    cases->byte_count = (size_t)size;
    cases->bytes = malloc(cases->byte_count + 1);
    rewind(file);
    must(cases->bytes && fread(cases->bytes, 1, cases->byte_count, file) == cases->byte_count);
    fclose(file);
    next_line(cases);
    return true;
}

void cases_close(struct cases *cases)
{
    must(cases->at == cases->byte_count);
    fclose(cases->text);
    free(cases->bytes);
}

static enum dtype parse_dtype(const char *text)
{
    for (enum dtype d = 0; d < DTYPE_COUNT; d++) {
        if (strcmp(dtype_text(d), text) == 0) {
            return d;
        }
    }
    unreachable();
}

static void parse_tensor(struct cases *cases, const char *dims, struct case_tensor *tensor)
{
    size_t bytes;

    while (*dims >= '0' && *dims <= '9') {
        char *end;
        tensor->shape.dims[tensor->shape.rank++] = strtoll(dims, &end, 10);
        dims = *end == ',' ? end + 1 : end;
    }
    must(shape_bytes(&tensor->shape, tensor->dtype, &bytes, NULL) == ST_OK);
    must(in_range(cases->at, bytes, cases->byte_count));
    tensor->bytes = span_of(cases->bytes + cases->at, bytes);
    cases->at += bytes;
}

static void parse_value(struct cases *cases, const char *type, const char *text,
                        struct case_tensor *value)
{
    if (strcmp(type, "int") == 0) {
        value->dtype = DT_I64;
        value->number = strtoll(text, NULL, 10);
        value->bytes = span_of(&value->number, sizeof(value->number));
        return;
    }
    value->dtype = parse_dtype(type);
    parse_tensor(cases, text, value);
}

bool cases_next(struct cases *cases, struct op_case *c)
{
    char word[8], type[8], text[128];

    if (cases->line[0] == '\0') {
        return false;
    }
    *c = (struct op_case){0};
    must(sscanf(cases->line, "case %63s %lf %lf", c->method, &c->rtol, &c->atol) == 3);
    for (next_line(cases);
         sscanf(cases->line, "%7s %7s %127s", word, type, text) == 3 && strcmp(word, "case") != 0;
         next_line(cases)) {
        bool is_input = strcmp(word, "in") == 0;
        uint32_t *count = is_input ? &c->input_count : &c->output_count;
        must(*count < CASE_VALUES_MAX);
        parse_value(cases, type, text, &(is_input ? c->inputs : c->outputs)[(*count)++]);
    }
    return true;
}

/* ---- comparison ---------------------------------------------------------------------------- */

static double from_f16(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double sign = h >> 15 ? -1 : 1;

    if (exponent == 31) {
        return fraction ? NAN : sign * INFINITY;
    }
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double from_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static double float_at(const uint8_t *bytes, enum dtype dtype, size_t index)
{
    float f;
    double d;

    switch (dtype) {
    case DT_F32:
        memcpy(&f, bytes + index * sizeof(f), sizeof(f));
        return (double)f;
    case DT_F64:
        memcpy(&d, bytes + index * sizeof(d), sizeof(d));
        return d;
    case DT_F16:
        return from_f16(load_le16(bytes + 2 * index));
    case DT_BF16:
        return from_bf16(load_le16(bytes + 2 * index));
    default:
        unreachable();
    }
}

static int64_t int_at(const uint8_t *bytes, enum dtype dtype, size_t index)
{
    size_t width = dtype_bytes(dtype);
    uint64_t bits = 0;

    memcpy(&bits, bytes + index * width, width);
    return (int64_t)bits;
}

static bool is_close(double got, double want, double rtol, double atol)
{
    if (isnan(want) || isinf(want)) {
        return isnan(want) ? isnan(got) : got == want;
    }
    return fabs(got - want) <= atol + rtol * fabs(want);
}

bool case_compare(const struct op_case *c, const struct case_tensor *want, const uint8_t *got,
                  char text[160])
{
    bool is_float = dtype_is_float(want->dtype);
    size_t count = (size_t)shape_numel(&want->shape);

    for (size_t i = 0; i < count; i++) {
        if (is_float) {
            double a = float_at(got, want->dtype, i), b = float_at(want->bytes.ptr, want->dtype, i);
            if (!is_close(a, b, c->rtol, c->atol)) {
                snprintf(text, 160, "element %zu is %.9g, expected %.9g", i, a, b);
                return false;
            }
        } else {
            int64_t a = int_at(got, want->dtype, i), b = int_at(want->bytes.ptr, want->dtype, i);
            if (a != b) {
                snprintf(text, 160, "element %zu is %" PRId64 ", expected %" PRId64, i, a, b);
                return false;
            }
        }
    }
    return true;
}
