/* SPDX-License-Identifier: MIT */
/* Values of settings as people write them: read, from the command line or a document, and printed.
 */
#include "config.h"

#include "server/process/setting.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/precision.h"
#include "server/process/document.h"
#include "server/process/nearest.h"

#define WORDS_MAX 128
#define WORDS_BYTES_MAX 256 /* of a list of words in an error */

struct suffix {
    const char *text;
    uint64_t factor;
};

static const struct suffix byte_suffixes[] = {
    {"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {NULL, 0}};

static const struct suffix ms_suffixes[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {NULL, 0}};

static const struct suffix count_suffixes[] = {{"", 1}, {NULL, 0}};

static const struct suffix *suffixes_of(enum option_type type)
{
    return type == OPTION_BYTES ? byte_suffixes : type == OPTION_MS ? ms_suffixes : count_suffixes;
}

/* The form of a number, for errors. */
static const char *form_of(enum option_type type)
{
    return type == OPTION_BYTES ? "a size such as 65536 or 64M"
           : type == OPTION_MS  ? "a time such as 500ms or 10s"
                                : "a number";
}

enum status options_parse_number(const char *text, enum option_type type, uint64_t min,
                                 uint64_t max, uint64_t *out_value, struct error *err)
{
    const char *p = text;
    uint64_t value = 0;
    bool fits = true;
    for (; *p >= '0' && *p <= '9'; p++) {
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    }
    static const struct suffix none = {"", 1};
    bool needs_no_unit = value == 0 && fits && p != text && *p == '\0';
    const struct suffix *suffix = needs_no_unit ? &none : suffixes_of(type);
    while (suffix->text && strcmp(suffix->text, p) != 0) {
        suffix++;
    }
    if (p == text || !suffix->text) {
        return error_set(err, ST_INVALID, "expected %s, got '%.64s'", form_of(type), text);
    }
    fits = fits && !__builtin_mul_overflow(value, suffix->factor, &value);
    if (!fits || value < min || value > max) {
        const char *name = type == OPTION_BYTES ? " bytes" : type == OPTION_MS ? " ms" : "";
        return error_set(err, ST_INVALID, "expected %llu to %llu%s, got '%.64s'",
                         (unsigned long long)min, (unsigned long long)max, name, text);
    }
    *out_value = value;
    return ST_OK;
}

/* The length of the first of some words. */
static size_t word_bytes(const char *word)
{
    return strcspn(word, " ");
}

/* "a, b or c" */
static void print_words(const char *words, struct buf *out)
{
    for (const char *word = words; *word;) {
        size_t len = word_bytes(word);
        bool is_last = !word[len];
        buf_add_str(out, word == words ? "" : is_last ? " or " : ", ");
        buf_add(out, word, len);
        word += len + !is_last;
    }
}

enum status options_parse_word(const char *text, const char *words, unsigned *out_number,
                               struct error *err)
{
    unsigned number = 0;
    for (const char *word = words; *word; number++) {
        size_t len = word_bytes(word);
        if (span_is(span_of(word, len), text)) {
            *out_number = number;
            return ST_OK;
        }
        word += len + (word[len] != '\0');
    }
    struct buf list;
    buf_init(&list, WORDS_BYTES_MAX);
    print_words(words, &list);
    error_set(err, ST_INVALID, "expected %.*s, got '%.64s'", SPAN_FMT(buf_span(&list)), text);
    buf_fini(&list);
    return ST_INVALID;
}

enum status options_parse_precision(const char *text, enum precision *out_precision,
                                    struct error *err)
{
    if (!precision_find(span_str(text), out_precision)) {
        return error_set(err, ST_INVALID, "expected exact, fast or bf16, got '%.64s'", text);
    }
    return ST_OK;
}

enum status setting_parse(const struct setting *setting, const char *text, uint64_t *out_value,
                          struct error *err)
{
    enum precision precision;
    if (setting->type != OPTION_PRECISION) {
        return options_parse_number(text, setting->type, setting->min, setting->max, out_value,
                                    err);
    }
    TRY(options_parse_precision(text, &precision, err));
    *out_value = precision;
    return ST_OK;
}

enum status setting_read(const struct setting *setting, const struct document *document,
                         const struct cJSON *value, char room[SETTING_NUMBER_BYTES],
                         const char **out, struct error *err)
{
    bool is_size = setting->type == OPTION_BYTES;
    enum json_type type = document_type(value);
    *out = room;
    if (setting->type == OPTION_SWITCH) {
        bool is_on;
        TRY(document_bool(document, value, &is_on, err));
        *out = is_on ? "true" : "false";
        return ST_OK;
    }
    if (setting->type == OPTION_COUNT || (is_size && type == JSON_NUMBER)) {
        uint64_t number;
        TRY(document_u64_from(document, value, setting->min, setting->max, &number, err));
        snprintf(room, SETTING_NUMBER_BYTES, "%" PRIu64, number);
        return ST_OK;
    }
    if ((is_size || setting->type == OPTION_MS) && type != JSON_STRING) {
        return document_fail(document, value, err, ST_INVALID, "expected %s, got %s",
                             form_of(setting->type), json_type_text(type));
    }
    return document_text_filled(document, value, out, err);
}

void setting_print_option(const struct setting *setting, struct buf *out)
{
    for (const char *c = setting->name; *c; c++) {
        buf_add_char(out, *c == '_' ? '-' : *c);
    }
}

void setting_hint(struct span option, bool is_of_model, char hint[SETTING_HINT_MAX])
{
    const char *words[WORDS_MAX];
    uint32_t count = 0;
    char name[SETTING_VARIABLE_MAX];
    hint[0] = '\0';
    if (option.len >= sizeof(name)) {
        return;
    }
    for (size_t i = 0; i < option.len; i++) {
        name[i] = option.ptr[i] == '-' ? '_' : (char)option.ptr[i];
    }
    name[option.len] = '\0';
    must(setting_count <= WORDS_MAX);
    for (uint32_t i = 0; i < setting_count; i++) {
        if (settings[i].is_of_model || !is_of_model) {
            words[count++] = settings[i].name;
        }
    }
    const char *near = nearest_word(name, words, count);
    if (near) {
        const char *dashes = is_of_model ? "" : "--";
        int len = snprintf(hint, SETTING_HINT_MAX, "; did you mean '%s%s'?", dashes, near);
        must(len > 0 && len < SETTING_HINT_MAX);
        for (char *c = hint; *c; c++) {
            *c = *c == '_' ? '-' : *c;
        }
    }
}

void setting_variable(const struct setting *setting, char name[SETTING_VARIABLE_MAX])
{
    int len = snprintf(name, SETTING_VARIABLE_MAX, "PTED_%s", setting->name);
    must(len > 0 && len < SETTING_VARIABLE_MAX);
    for (char *c = name; *c; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
}

void setting_print_number(const struct setting *setting, uint64_t value, struct buf *out)
{
    if (setting->type == OPTION_PRECISION) {
        buf_add_str(out, precision_word((enum precision)value));
        return;
    }
    const struct suffix *best = suffixes_of(setting->type);
    for (const struct suffix *s = best; s->text; s++) {
        if (value % s->factor == 0 && value >= s->factor) {
            best = s;
        }
    }
    buf_printf(out, "%llu%s", (unsigned long long)(value / best->factor), best->text);
}

void setting_print_preset(const struct setting *setting, struct buf *out)
{
    if (!setting->set) {
        setting_print_number(setting, setting->preset, out);
    } else if (setting->preset_text) {
        buf_add_str(out, setting->preset_text);
    }
}
