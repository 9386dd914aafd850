/* SPDX-License-Identifier: MIT */
/* Options of pte from a table: values of each type, what is refused and how, help and manual. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/precision.h"
#include "server/cli/cli.h"
#include "server/cli/option.h"

#define WORDS_MAX 24
#define LIST_MAX 2

struct inner {
    bool is_quiet;
    const char *name;
};

struct sample {
    struct inner inner;
    const char *list[LIST_MAX], *file;
    uint32_t list_count;
    uint64_t count, time, bytes;
    enum precision precision;
    unsigned word;
    double half;
};

static enum status set_half(void *own, const char *value, struct error *err)
{
    struct sample *sample = own;
    if (strcmp(value, "0.5") != 0) {
        return error_set(err, ST_INVALID, "expected 0.5, got '%.20s'", value);
    }
    sample->half = 0.5;
    return ST_OK;
}

static const struct cli_option inner_options[] = {
    {.name = "quiet",
     .type = OPTION_SWITCH,
     .at = offsetof(struct inner, is_quiet),
     .only = CLI_ONLY_URL,
     .doc = "say less"},
    {.name = "name",
     .value = "NAME",
     .type = OPTION_TEXT,
     .at = offsetof(struct inner, name),
     .only = CLI_ONLY_FILE,
     .doc = "its name, x-y",
     .more = "More of\n.Ar NAME ."},
    {.name = NULL},
};

static const struct cli_option own_options[] = {
    {.name = "list",
     .value = "X",
     .type = OPTION_TEXTS,
     .at = offsetof(struct sample, list),
     .count_at = offsetof(struct sample, list_count),
     .max = LIST_MAX,
     .doc = "repeatable"},
    {.name = "count",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct sample, count),
     .min = 1,
     .max = 9,
     .preset = "3",
     .doc = "a number of which so much is to be said that it does not fit into one line of the "
            "help of a command"},
    {.name = "time",
     .value = "TIME",
     .type = OPTION_MS,
     .at = offsetof(struct sample, time),
     .min = 1,
     .max = 10000,
     .doc = "a time"},
    {.name = "bytes",
     .value = "N",
     .type = OPTION_BYTES,
     .at = offsetof(struct sample, bytes),
     .max = 1 << 20,
     .doc = "a size"},
    {.name = "precision",
     .value = "MODE",
     .type = OPTION_PRECISION,
     .at = offsetof(struct sample, precision),
     .doc = "a mode"},
    {.name = "word",
     .value = "WORD",
     .type = OPTION_WORD,
     .at = offsetof(struct sample, word),
     .words = "one two three",
     .doc = "a word"},
    {.name = "half", .value = "X", .type = OPTION_TEXT, .set = set_half, .doc = "a half"},
    {.name = "a-name-that-is-very-long", .type = OPTION_SWITCH, .doc = "a switch"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "own", .options = own_options},
    {.name = "inner",
     .options = inner_options,
     .at = offsetof(struct sample, inner),
     .head = "Of the inside:"},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct sample *sample = own;
    return cli_take_only(&sample->file, "FILE", text, err);
}

static const struct cli_command command = {.name = "sample", .groups = groups, .take = take};
static const struct cli_command bare = {.name = "bare"};

/* The words of a line, with blanks between them. */
struct line {
    char text[256];
    char *words[WORDS_MAX];
    int count;
};

static struct line *split(const char *text)
{
    static struct line line;
    char *rest;
    line.count = 0;
    snprintf(line.text, sizeof(line.text), "%s", text);
    for (char *word = strtok_r(line.text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        line.words[line.count++] = word;
    }
    return &line;
}

static enum status parse(const struct cli_command *of, const char *text, struct sample *sample,
                         struct error *err)
{
    struct line *line = split(text);
    return cli_option_parse(of, line->count, line->words, sample, err);
}

static const struct cli_option *said(const char *text, enum cli_option_only only)
{
    struct line *line = split(text);
    return cli_option_said(&command, line->count, line->words, only);
}

static void values_of_each_type(void **state)
{
    (void)state;
    struct sample sample = {.word = 0};
    struct error err;
    assert_ok(err, parse(&command,
                         "--list a file --list=b --count 4 --time=2s --bytes 4K --precision=bf16 "
                         "--word three --half 0.5 --quiet --name=x=y",
                         &sample, &err));
    assert_int_equal(sample.list_count, 2);
    assert_string_equal(sample.list[0], "a");
    assert_string_equal(sample.list[1], "b");
    assert_string_equal(sample.file, "file");
    assert_int_equal(sample.count, 4);
    assert_int_equal(sample.time, 2000);
    assert_int_equal(sample.bytes, 4096);
    assert_int_equal(sample.precision, PRECISION_BF16);
    assert_int_equal(sample.word, 2);
    assert_true(sample.half == 0.5);
    assert_true(sample.inner.is_quiet);
    assert_string_equal(sample.inner.name, "x=y");
}

/* Behind "--" there are no options, and "-" is none. */
static void arguments(void **state)
{
    (void)state;
    struct sample sample = {.word = 0};
    struct error err;
    assert_ok(err, parse(&command, "-- --quiet", &sample, &err));
    assert_string_equal(sample.file, "--quiet");
    assert_false(sample.inner.is_quiet);
    sample.file = NULL;
    assert_ok(err, parse(&command, "-", &sample, &err));
    assert_string_equal(sample.file, "-");
    assert_fails(err, parse(&command, "b", &sample, &err), ST_INVALID,
                 "one FILE only, got 'b' too");
    assert_fails(err, parse(&bare, "b", NULL, &err), ST_INVALID,
                 "bare takes no arguments, got 'b'");
    assert_fails(err, parse(&bare, "--quiet", NULL, &err), ST_INVALID, "unknown option '--quiet'");
}

static void wrong_options(void **state)
{
    (void)state;
    static const struct {
        const char *option, *text;
    } rows[] = {
        {"--coutn", "unknown option '--coutn'; did you mean '--count'?"},
        {"--naem=x", "unknown option '--naem'; did you mean '--name'?"},
        {"--xyzzy", "unknown option '--xyzzy'"},
        {"-c", "unknown option '-c'"},
        {"--count", "option '--count' needs a value"},
        {"--count=10", "--count: expected 1 to 9"},
        {"--time=2", "--time: expected a time"},
        {"--word=four", "--word: expected one, two or three, got 'four'"},
        {"--word=on", "--word: expected one, two or three, got 'on'"},
        {"--word=", "--word: expected one, two or three, got ''"},
        {"--precision=low", "--precision: expected exact, fast or bf16"},
        {"--half=1", "--half: expected 0.5, got '1'"},
        {"--quiet=yes", "--quiet: expected no value, got 'yes'"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sample sample = {.word = 0};
        struct error err;
        assert_fails(err, parse(&command, rows[i].option, &sample, &err), ST_INVALID, rows[i].text);
    }
    struct sample sample = {.word = 0};
    struct error err;
    assert_fails(err, parse(&command, "--list=a --list=b --list=c", &sample, &err), ST_INVALID,
                 "--list: given more than 2 times");
}

static void options_of_one_kind(void **state)
{
    (void)state;
    assert_string_equal(said("--name --quiet --count=1", CLI_ONLY_FILE)->name, "name");
    assert_null(said("--name --quiet --count=1", CLI_ONLY_URL)); /* the value of --name */
    assert_null(said("--quiet -- --name", CLI_ONLY_FILE));
    assert_string_equal(said("--quiet -- --name", CLI_ONLY_URL)->name, "quiet");
}

static void expect_text(const struct buf *got, const char *wanted)
{
    char text[2048];
    snprintf(text, sizeof(text), "%.*s", SPAN_FMT(buf_span(got)));
    assert_string_equal(text, wanted);
}

static void help_and_manual(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 4096);
    cli_option_print_help(&command, &out);
    expect_text(
        &out, "  --list X             repeatable\n"
              "  --count N            a number of which so much is to be said that it does not fit "
              "into\n"
              "                       one line of the help of a command (3)\n"
              "  --time TIME          a time\n"
              "  --bytes N            a size\n"
              "  --precision MODE     a mode\n"
              "  --word WORD          a word\n"
              "  --half X             a half\n"
              "  --a-name-that-is-very-long  a switch\n"
              "\n"
              "Of the inside:\n"
              "  --quiet              say less\n"
              "  --name NAME          its name, x-y\n");
    buf_reset(&out);
    cli_option_print_manual(inner_options, &out);
    expect_text(&out, ".It Fl -quiet\n"
                      "Say less.\n"
                      ".It Fl -name Ar NAME\n"
                      "Its name, x\\-y.\n"
                      "More of\n"
                      ".Ar NAME .\n");
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_each_type), cmocka_unit_test(arguments),
        cmocka_unit_test(wrong_options),       cmocka_unit_test(options_of_one_kind),
        cmocka_unit_test(help_and_manual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
