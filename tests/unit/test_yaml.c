/* SPDX-License-Identifier: MIT */
/* YAML: what its values become, and files that are hostile or damaged. */
#include "config.h"

#include "server/process/yaml.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static const struct document_limits limits = {.bytes_max = 1 << 14, .values_max = 1000};

/* |text| becomes the JSON |json|, but for blanks. */
static void check(const char *text, const char *json)
{
    struct document document;
    struct error err = {0};
    char got[512];
    size_t len = 0;
    assert_ok(err, yaml_parse(span_str(text), &limits, &document, &err));
    for (size_t i = 0; i < document.text.len && len + 1 < sizeof(got); i++) {
        uint8_t c = document.text.ptr[i];
        if (c != '\n' && c != '\0') {
            got[len++] = (char)c;
        }
    }
    got[len] = '\0';
    assert_string_equal(got, json);
    document_close(&document);
}

static void check_refused(struct span text, enum status status, const char *part)
{
    struct document document;
    struct error err = {0};
    assert_int_equal(yaml_parse(text, &limits, &document, &err), status);
    if (!strstr(err.text, part)) {
        fail_msg("expected '%s' in '%s'", part, err.text);
    }
    assert_null(document.root);
}

static void test_values(void **state)
{
    (void)state;
    check("a: 1\nb: [x, 'y', \"z\\n\"]\n", "{\"a\":1,\"b\":[\"x\",\"y\",\"z\\n\"]}");
    check("names:\n  0: person\n  1: '1'\n  2: null\n",
          "{\"names\":{\"0\":\"person\",\"1\":\"1\",\"2\":null}}");
    check("- -1.5e3\n- 01\n- 1.\n- 0x10\n- ~\n- True\n- 'true'\n-\n- -\n",
          "[-1.5e3,\"01\",\"1.\",\"0x10\",null,true,\"true\",null,[null]]");
    check("a: >\n  two\n  words\n", "{\"a\":\"two words\\n\"}");
    check("", "null");
    check("# only a comment\n", "null");
    check("{}", "{}");
    check("--- text\n...\n", "\"text\"");
    check("a: .nan\nb: 8.4.190\n", "{\"a\":\".nan\",\"b\":\"8.4.190\"}");
}

static void test_aliases(void **state)
{
    (void)state;
    check("a: &x [1, 2]\nb: *x\n", "{\"a\":[1,2],\"b\":[1,2]}");
    check("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}");
    check("&k key: *k\n", "{\"key\":\"key\"}");
    check_refused(span_str("a: *x\n"), ST_INVALID, "an alias without an anchor (line 1, column 4)");
    check_refused(span_str("a: &x [1,\n *x]\n"), ST_INVALID,
                  "an alias within the anchor that it names (line 2, column 2)");
    check_refused(span_str("a: &x [1]\n*x : 2\n"), ST_INVALID, "expected a key that is a text");
}

/* Ten aliases of ten aliases of ten ...: the text has no room. */
static void test_bomb(void **state)
{
    char text[4096];
    int len = snprintf(text, sizeof(text), "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    (void)state;
    for (int i = 1; i < 10; i++) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++) {
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%s*a%d", k ? ", " : "", i - 1);
        }
        len += snprintf(text + len, sizeof(text) - (size_t)len, "]\n");
    }
    check_refused(span_str(text), ST_TOO_LARGE, "the values take more than 16384 bytes");
}

static void test_bounds(void **state)
{
    char text[4096] = "";
    int len = 0;
    (void)state;
    memset(text, '[', DOCUMENT_DEPTH_MAX + 1);
    check_refused(span_str(text), ST_TOO_LARGE, "nested too deep (line 1, column 65)");
    for (int i = 0; i <= YAML_ANCHORS_MAX; i++) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, "- &a%d 1\n", i);
    }
    check_refused(span_str(text), ST_TOO_LARGE, "expected at most 64 anchors (line 65");
    check_refused(span_str("a: 1\na: 2\n"), ST_INVALID, "line 2");
    check_refused(span_str("a: 1\n---\nb: 1\n"), ST_INVALID, "expected one document");
    check_refused(span_str("[1, 2]: 3\n"), ST_INVALID, "expected a key that is a text");
}

static void test_syntax(void **state)
{
    (void)state;
    check_refused(span_str("a: [1\nb: 2\n"), ST_INVALID, "no YAML: ");
    check_refused(span_str("a: 'x\n"), ST_INVALID, "no YAML: ");
    check_refused(span_str("\tx: 1\n"), ST_INVALID, "(line 1, column 1)");
    check_refused(span_of("a: \xff\n", 5), ST_INVALID, "no YAML: ");
    check_refused(span_of("a: \x01\n", 5), ST_INVALID, "no YAML: ");
    check_refused(span_of("a: \"\\0\"\n", 8), ST_INVALID, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_aliases), cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_bounds), cmocka_unit_test(test_syntax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
