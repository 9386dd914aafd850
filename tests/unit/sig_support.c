/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/sig_support.h"

#include <stdio.h>
#include <stdlib.h>

#include "protocol/sig.h"
#include "tests/unit/unit.h"

#define DEEP_LEVELS 2000 /* of a vector whose text is built by a rule */

#define MEMORY_BYTES_MAX ((size_t)64 << 20)

int sig_set_up(void **state)
{
    struct sig_fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    arena_init(&f->arena, MEMORY_BYTES_MAX);
    buf_init(&f->out, SIG_TEXT_BYTES_MAX);
    *state = f;
    return 0;
}

int sig_tear_down(void **state)
{
    struct sig_fixture *f = *state;
    arena_fini(&f->arena);
    buf_fini(&f->out);
    free(f);
    return 0;
}

static uint64_t random_state = 0x2545f4914f6cdd1d;

uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) % limit);
}

struct span exact_copy(struct span text)
{
    uint8_t *bytes = malloc(text.len ? text.len : 1);
    assert_non_null(bytes);
    if (text.len) {
        memcpy(bytes, text.ptr, text.len);
    }
    return span_of(bytes, text.len);
}

void exact_free(struct span text)
{
    free((void *)(uintptr_t)text.ptr);
}

void damage(struct buf *text)
{
    static const char bytes[] = "_IRSDKBOUktd!-0129#(),'$TLNC[]{}\":\\ \xc3\xa9";
    for (uint32_t count = 1 + random_below(4); count > 0 && text->len > 0; count--) {
        size_t where = random_below((uint32_t)text->len);
        uint8_t byte = random_below(8) ? (uint8_t)bytes[random_below(sizeof(bytes))]
                                       : (uint8_t)random_below(256);
        switch (random_below(5)) {
        case 0:
            text->len = random_below(4) ? text->len : where;
            break;
        case 1:
            memmove(text->ptr + where, text->ptr + where + 1, text->len - where - 1);
            text->len--;
            break;
        case 2:
            buf_add_char(text, '\0');
            memmove(text->ptr + where + 1, text->ptr + where, text->len - where - 1);
            text->ptr[where] = byte;
            break;
        case 3:
            text->ptr[where] ^= (uint8_t)(1u << random_below(8));
            break;
        default:
            text->ptr[where] = byte;
        }
    }
    assert_false(buf_failed(text));
}

static cJSON *read_vectors(void)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof(path), "%s/tests/sig/vectors.json", top ? top : ".");
    FILE *file = fopen(path, "rb");
    char *text = malloc(VECTOR_BYTES_MAX);
    assert_non_null(file);
    assert_non_null(text);
    size_t len = fread(text, 1, VECTOR_BYTES_MAX, file);
    fclose(file);
    cJSON *json = cJSON_ParseWithLength(text, len);
    free(text);
    assert_non_null(json);
    return json;
}

const char *vector_text(const struct vector *vector, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(vector->json, name));
}

static void add_hex(struct buf *out, const char *hex)
{
    for (; *hex; hex += 2) {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        buf_add_char(out, (char)byte);
    }
}

void add_nested_sip(struct buf *out, int levels)
{
    struct buf inner;
    buf_init(&inner, out->max_bytes);
    buf_add_str(&inner, "_0");
    for (int i = 0; i < levels; i++) {
        struct span content = exact_copy(buf_span(&inner));
        buf_reset(&inner);
        sig_add_head(&inner, 'S', content.len + 2);
        buf_add_str(&inner, "k0");
        buf_add(&inner, content.ptr, content.len);
        exact_free(content);
    }
    sig_add_span(out, 'I', buf_span(&inner));
    buf_add_str(out, "R1!");
    buf_fini(&inner);
}

/* The text of a vector, which may be spelled in hex or be a rule. */
static void add_text(const struct vector *vector, struct buf *out)
{
    const char *hex = vector_text(vector, "encoded_hex");
    const char *text = vector_text(vector, "encoded");
    if (hex) {
        add_hex(out, hex);
    } else if (text) {
        buf_add_str(out, text);
    } else if (vector_text(vector, "encoded_builder")) {
        add_nested_sip(out, DEEP_LEVELS);
    }
}

static void check_vector(const char *kind, const cJSON *json, vector_check_f *check, void *user)
{
    struct vector vector = {.json = json};
    struct buf text;
    buf_init(&text, VECTOR_BYTES_MAX);
    vector.id = vector_text(&vector, "id");
    vector.is_valid = cJSON_IsTrue(cJSON_GetObjectItem(json, "valid"));
    add_text(&vector, &text);
    assert_false(buf_failed(&text));
    vector.text = exact_copy(buf_span(&text));
    const char *form = vector_text(&vector, "canonical_form");
    if (form) {
        vector.canonical = span_str(form);
    } else if (cJSON_IsTrue(cJSON_GetObjectItem(json, "canonical")) || strcmp(kind, "lex") == 0) {
        vector.canonical = vector.text;
    }
    check(&vector, user);
    exact_free(vector.text);
    buf_fini(&text);
}

void vector_check_status(const struct vector *vector, enum status status, const struct error *err)
{
    if ((status == ST_OK) != vector->is_valid) {
        fail_msg("%s: %s", vector->id, status == ST_OK ? "accepted" : err->text);
    }
    if (status != ST_OK) {
        assert_int_equal(status, ST_INVALID);
    }
}

void vectors_check(const char *kind, vector_check_f *check, void *user)
{
    cJSON *all = read_vectors();
    const cJSON *json;
    int count = 0;
    cJSON_ArrayForEach(json, cJSON_GetObjectItem(all, "vectors"))
    {
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(json, "kind")), kind) == 0) {
            check_vector(kind, json, check, user);
            count++;
        }
    }
    assert_true(count > 0);
    cJSON_Delete(all);
}
