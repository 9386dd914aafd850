/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/text/tokenizer/pattern.h"

#include <stddef.h>
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/buf.h"
#include "server/process/library.h"
#include "server/text/tokenizer/pattern_translate.h"
#include "server/text/tokenizer/unicode.h"

#define JIT_STACK_MIN ((size_t)32 << 10)
#define JIT_STACK_MAX ((size_t)4 << 20)
#define HEAP_KIB_MAX 20000

static struct {
    __typeof__(pcre2_compile) *compile;
    __typeof__(pcre2_code_free) *code_free;
    __typeof__(pcre2_get_error_message) *get_error_message;
    __typeof__(pcre2_jit_compile) *jit_compile;
    __typeof__(pcre2_match) *match;
    __typeof__(pcre2_jit_match) *jit_match;
    __typeof__(pcre2_compile_context_create) *compile_context_create;
    __typeof__(pcre2_compile_context_free) *compile_context_free;
    __typeof__(pcre2_set_newline) *set_newline;
    __typeof__(pcre2_match_context_create) *match_context_create;
    __typeof__(pcre2_match_context_free) *match_context_free;
    __typeof__(pcre2_set_match_limit) *set_match_limit;
    __typeof__(pcre2_set_heap_limit) *set_heap_limit;
    __typeof__(pcre2_match_data_create) *match_data_create;
    __typeof__(pcre2_match_data_free) *match_data_free;
    __typeof__(pcre2_get_ovector_pointer) *get_ovector_pointer;
    __typeof__(pcre2_jit_stack_create) *jit_stack_create;
    __typeof__(pcre2_jit_stack_assign) *jit_stack_assign;
    __typeof__(pcre2_jit_stack_free) *jit_stack_free;
} pcre2;

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(pcre2_##member, __typeof__(pcre2), member)
    SYMBOL(compile),
    SYMBOL(code_free),
    SYMBOL(get_error_message),
    SYMBOL(jit_compile),
    SYMBOL(match),
    SYMBOL(jit_match),
    SYMBOL(compile_context_create),
    SYMBOL(compile_context_free),
    SYMBOL(set_newline),
    SYMBOL(match_context_create),
    SYMBOL(match_context_free),
    SYMBOL(set_match_limit),
    SYMBOL(set_heap_limit),
    SYMBOL(match_data_create),
    SYMBOL(match_data_free),
    SYMBOL(get_ovector_pointer),
    SYMBOL(jit_stack_create),
    SYMBOL(jit_stack_assign),
    SYMBOL(jit_stack_free),
#undef SYMBOL
};

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_PCRE2, PTED_PACKAGE_PCRE2, symbols, &pcre2, ST_UNAVAILABLE),
};

struct pattern {
    pcre2_code *code;
    bool has_jit;
};

struct pattern_scratch {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack; /* NULL: the library's own 32 KiB */
};

static enum status compile(struct pattern *pattern, const struct pattern_translation *translation,
                           struct error *err)
{
    pcre2_compile_context *context = pcre2.compile_context_create(NULL);
    if (!context) {
        return error_no_memory(err, "a regular expression");
    }
    pcre2.set_newline(context, PCRE2_NEWLINE_LF);
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK;
    /* The JIT of PCRE2 10.42 looks for beginnings that |e(?:t|)b*t| does not need in "et". */
    options |= translation->has_empty_choice ? PCRE2_NO_START_OPTIMIZE : 0;
    const uint8_t *text = translation->text.len > 0 ? translation->text.ptr : (const uint8_t *)"";
    pattern->code = pcre2.compile(text, translation->text.len, options, &code, &at, context);
    pcre2.compile_context_free(context);
    if (!pattern->code) {
        PCRE2_UCHAR reason[128] = "";
        pcre2.get_error_message(code, reason, sizeof(reason));
        return code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED
                   ? error_no_memory(err, "a regular expression")
                   : error_set(err, ST_CORRUPT, "regular expression, byte %zu: %.120s",
                               pattern_translation_place(translation, at), reason);
    }
    pattern->has_jit = pcre2.jit_compile(pattern->code, PCRE2_JIT_COMPLETE) == 0;
    return ST_OK;
}

enum status pattern_new(struct span source, enum pattern_dialect dialect, struct pattern **out,
                        struct error *err)
{
    struct pattern_translation translation;
    TRY(library_load(&library, err));
    struct pattern *pattern = calloc(1, sizeof(*pattern));
    if (!pattern) {
        return error_no_memory(err, "a regular expression");
    }
    pattern_translation_init(&translation);
    enum status status = pattern_translate(source, dialect, &translation, err);
    status = status == ST_OK ? compile(pattern, &translation, err) : status;
    pattern_translation_fini(&translation);
    if (status != ST_OK) {
        free(pattern);
        return status;
    }
    *out = pattern;
    return ST_OK;
}

void pattern_free(struct pattern *pattern)
{
    if (pattern) {
        pcre2.code_free(pattern->code);
        free(pattern);
    }
}

void pattern_scratch_free(struct pattern_scratch *scratch)
{
    if (scratch) {
        pcre2.match_data_free(scratch->data);
        pcre2.match_context_free(scratch->context);
        pcre2.jit_stack_free(scratch->stack);
        free(scratch);
    }
}

static struct pattern_scratch *scratch_new(void)
{
    struct pattern_scratch *scratch = calloc(1, sizeof(*scratch));
    if (!scratch) {
        return NULL;
    }
    scratch->data = pcre2.match_data_create(1, NULL);
    scratch->context = pcre2.match_context_create(NULL);
    if (!scratch->data || !scratch->context) {
        pattern_scratch_free(scratch);
        return NULL;
    }
    pcre2.set_match_limit(scratch->context, PATTERN_STEPS_MAX);
    pcre2.set_heap_limit(scratch->context, HEAP_KIB_MAX);
    scratch->stack = pcre2.jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
    if (scratch->stack) {
        pcre2.jit_stack_assign(scratch->context, NULL, scratch->stack);
    }
    return scratch;
}

static enum status find_match(const struct pattern *pattern, struct pattern_scratch **scratch,
                              struct span text, size_t from, size_t *out_start, size_t *out_end,
                              struct error *err)
{
    if (!*scratch && !(*scratch = scratch_new())) {
        return error_no_memory(err, "a regular expression");
    }
    struct pattern_scratch *own = *scratch;
    int found = pattern->has_jit ? pcre2.jit_match(pattern->code, text.ptr, text.len, from, 0,
                                                   own->data, own->context)
                                 : pcre2.match(pattern->code, text.ptr, text.len, from,
                                               PCRE2_NO_UTF_CHECK, own->data, own->context);
    if (found >= 0) {
        const PCRE2_SIZE *place = pcre2.get_ovector_pointer(own->data);
        *out_start = place[0];
        *out_end = place[1];
        return ST_OK;
    }
    if (found == PCRE2_ERROR_NOMATCH) {
        *out_start = SIZE_MAX;
        return ST_OK;
    }
    if (found == PCRE2_ERROR_NOMEMORY) {
        return error_no_memory(err, "a regular expression");
    }
    return error_set(err, ST_INVALID,
                     "a regular expression of the tokenizer needs more than %d steps at byte %zu "
                     "of the text",
                     PATTERN_STEPS_MAX, from);
}

void pattern_search_begin(struct pattern_search *search, const struct pattern *pattern,
                          struct span literal, struct span text)
{
    *search = (struct pattern_search){
        .pattern = pattern, .literal = literal, .text = text, .last_end = SIZE_MAX};
}

static void find_literal(struct span text, size_t from, struct span literal, size_t *out_start,
                         size_t *out_end)
{
    const uint8_t *found = memmem(text.ptr + from, text.len - from, literal.ptr, literal.len);
    *out_start = found ? (size_t)(found - text.ptr) : SIZE_MAX;
    *out_end = *out_start + literal.len;
}

enum status pattern_search_next(struct pattern_search *search, struct pattern_scratch **scratch,
                                size_t *out_start, size_t *out_end, struct error *err)
{
    struct span text = search->text;
    *out_start = SIZE_MAX;
    while (search->from <= text.len && text.len > 0) {
        if (search->pattern) {
            TRY(find_match(search->pattern, scratch, text, search->from, out_start, out_end, err));
        } else {
            find_literal(text, search->from, search->literal, out_start, out_end);
        }
        if (*out_start == SIZE_MAX) {
            return ST_OK;
        }
        if (*out_start < *out_end || *out_end != search->last_end) {
            search->from = search->last_end = *out_end;
            return ST_OK;
        }
        size_t len = 1;
        if (*out_end < text.len) {
            (void)unicode_next(text.ptr + *out_end, &len);
        }
        search->from = *out_end + len;
        *out_start = SIZE_MAX;
    }
    return ST_OK;
}
