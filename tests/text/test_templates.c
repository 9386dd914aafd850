/* SPDX-License-Identifier: MIT */
/*
 * Chat templates: the text is byte for byte that of jinja2, and so are the refusals.
 *
 *     test_templates [CASES]
 *
 * Each line of CASES, tests/text/cases.jsonl if it is not given, is an object: "template" (a file
 * in tests/text/templates) or "source", "context", and what jinja2 made of it: "text", "raised"
 * (the text of raise_exception()) or "fails": true.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/text/template/template.h"

#define PATH_BYTES 4096
#define FAILURES_SHOWN 20

/* 2026-11-25 13:45:06, a Wednesday */
static const struct tm now = {.tm_year = 126,
                              .tm_mon = 10,
                              .tm_mday = 25,
                              .tm_hour = 13,
                              .tm_min = 45,
                              .tm_sec = 6,
                              .tm_wday = 3,
                              .tm_yday = 328};

static int failures, passed;

static int read_file(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    for (uint8_t *to; (to = buf_reserve(out, 65536)) != NULL;) {
        size_t len = fread(to, 1, 65536, file);
        buf_commit(out, len);
        if (len == 0) {
            break;
        }
    }
    fclose(file);
    return buf_failed(out) ? -1 : 0;
}

static void complain(const struct value *test, const char *what, struct span got)
{
    const struct value *name = value_map_get(test, span_str("template"));
    if (failures++ < FAILURES_SHOWN) {
        struct buf text;
        struct error err;
        buf_init(&text, 1 << 20);
        printf("%s\n", what);
        if (value_print_json(test, &VALUE_JSON_DEFAULT, &text, &err) == ST_OK) {
            printf("  case: %.*s\n", (int)text.len, (const char *)text.ptr);
        }
        printf("  %.*s got: <%.*s>\n", name ? (int)name->string.len : 0,
               name ? (const char *)name->string.ptr : "", (int)got.len, (const char *)got.ptr);
        buf_fini(&text);
    }
}

static void check_error(const struct value *test, enum status status, const struct error *err)
{
    const struct value *raised = value_map_get(test, span_str("raised"));
    const struct span text = span_str(err->text);
    must(status == err->code && err->text[0] && status != ST_INTERNAL);
    if (raised) {
        size_t len =
            raised->string.len < ERROR_TEXT_MAX - 1 ? raised->string.len : ERROR_TEXT_MAX - 1;
        if (!span_equal(text, span_of(raised->string.ptr, len))) {
            complain(test, "another refusal", text);
            return;
        }
        if (err->hidden_len != text.len) {
            complain(test, "logged, and may quote a client", text);
            return;
        }
    } else if (!value_map_get(test, span_str("fails"))) {
        complain(test, "refused", text);
        return;
    }
    passed++;
}

static void check_render(const struct value *test, struct template *template, struct arena *arena)
{
    struct template_limits limits = TEMPLATE_LIMITS_DEFAULT;
    struct error err = {0};
    struct buf out;
    limits.now = &now;
    buf_init(&out, 32 << 20);
    enum status status = template_render(template, value_map_get(test, span_str("context")),
                                         &limits, arena, &out, &err);
    const struct value *want = value_map_get(test, span_str("text"));
    if (status != ST_OK) {
        check_error(test, status, &err);
    } else if (!want || !span_equal(want->string, buf_span(&out))) {
        complain(test, "another text", buf_span(&out));
    } else {
        passed++;
    }
    buf_fini(&out);
}

static void check_source(const struct value *test, struct span source, struct arena *arena)
{
    struct template *template;
    struct error err = {0};
    enum status status = template_parse(source, &template, &err);
    if (status != ST_OK) {
        check_error(test, status, &err);
        return;
    }
    check_render(test, template, arena);
    template_free(template);
}

static void check_case(const char *top, struct span line, struct arena *arena)
{
    struct value test;
    struct error err = {0};
    struct buf source;
    char path[PATH_BYTES];
    if (value_parse(line, &VALUE_LIMITS_DEFAULT, arena, &test, &err) != ST_OK) {
        printf("a case is not read: %s\n", err.text);
        failures++;
        return;
    }
    const struct value *text = value_map_get(&test, span_str("source"));
    if (text) {
        check_source(&test, text->string, arena);
        return;
    }
    const struct value *name = value_map_get(&test, span_str("template"));
    must(name && name->kind == VALUE_STRING);
    snprintf(path, sizeof(path), "%s/tests/text/templates/%.*s.jinja", top, (int)name->string.len,
             (const char *)name->string.ptr);
    buf_init(&source, 1 << 20);
    if (read_file(path, &source) == 0) {
        check_source(&test, buf_span(&source), arena);
    } else {
        failures++;
    }
    buf_fini(&source);
}

int main(int argc, char **argv)
{
    const char *top = getenv("top_srcdir");
    char path[PATH_BYTES];
    struct buf cases;
    struct arena arena;
    top = top ? top : ".";
    snprintf(path, sizeof(path), "%s/tests/text/cases.jsonl", top);
    buf_init(&cases, 1u << 30);
    arena_init(&arena, 256u << 20);
    if (read_file(argc > 1 ? argv[1] : path, &cases) != 0) {
        return 1;
    }
    for (const uint8_t *at = cases.ptr, *end = at + cases.len; at < end;) {
        const uint8_t *line = memchr(at, '\n', (size_t)(end - at));
        line = line ? line : end;
        check_case(top, span_of(at, (size_t)(line - at)), &arena);
        arena_reset(&arena);
        at = line + 1;
    }
    arena_fini(&arena);
    buf_fini(&cases);
    printf("%d cases as jinja2 has them, %d not\n", passed, failures);
    return failures || passed == 0;
}
