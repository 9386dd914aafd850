/* SPDX-License-Identifier: MIT */
/* Cards: which texts are accepted, what they do to a program, and where an error is said to be. */
#include "config.h"

#include "server/model/card/card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/device.h"
#include "protocol/call.h"
#include "runtime/load/load.h"
#include "server/model/card/call_method.h"
#include "server/model/card/card_schema.h"
#include "server/model/card/warm_up.h"
#include "tests/unit/unit.h"

#define PATH_BYTES 4096

static const struct document_limits limits = {.bytes_max = CARD_BYTES_MAX,
                                              .values_max = CARD_VALUES_MAX};

static struct hal_device *device;

static int open_device(void **state)
{
    struct error err;
    (void)state;
    return hal_device_open("cpu", &(struct hal_device_options){.workers = 1}, &device, &err) !=
           ST_OK;
}

static int close_device(void **state)
{
    (void)state;
    hal_device_unref(device);
    return 0;
}

/* ---- a card that meets a program ------------------------------------------------------------- */

struct fixture {
    struct rt_program *program;
    struct card *card;
    struct document document;
    struct error err;
};

static void open_program(struct fixture *f, const char *name)
{
    char path[PATH_BYTES];
    const char *top = getenv("top_srcdir");
    const struct rt_load_options options = {.device = device, .precision = PRECISION_FAST};
    snprintf(path, sizeof(path), "%s/tests/models/%s.pte", top ? top : ".", name);
    *f = (struct fixture){.program = NULL};
    assert_ok(f->err, rt_load_program(path, &options, &f->program, &f->err));
    f->card = card_new();
    assert_non_null(f->card);
}

static void close_program(struct fixture *f)
{
    card_free(f->card);
    document_close(&f->document);
    rt_program_unref(f->program);
}

/* Everything that a daemon does with a card. */
static enum status use(struct fixture *f, const char *name, const char *text)
{
    open_program(f, name);
    TRY(document_parse(span_str(text), &limits, &f->document, &f->err));
    TRY(card_read_members(f->card, &f->document, f->document.root, "dir/pted.json", &f->err));
    TRY(card_apply(f->card, f->program, &f->err));
    return card_warm_up(f->card, f->program, device, &f->err);
}

static void check_refused(const char *name, const char *text, const char *message)
{
    struct fixture f;
    assert_int_not_equal(use(&f, name, text), ST_OK);
    if (!strstr(f.err.text, message)) {
        print_error("%s\n", text);
        assert_string_equal(f.err.text, message);
    }
    close_program(&f);
}

static void check_used(struct fixture *f, const char *name, const char *text)
{
    assert_ok(f->err, use(f, name, text));
}

static void test_names(void **state)
{
    struct fixture f;
    (void)state;
    check_used(&f, "add", "{\"inputs\": [\"left\", \"right\"], \"outputs\": [null]}");
    const struct rt_method *method = rt_program_default_method(f.program);
    assert_string_equal(rt_method_input(method, 0)->name, "left");
    assert_string_equal(rt_method_input(method, 1)->alias, "input_1");
    assert_string_equal(rt_method_input(method, 1)->label, "input 'right'");
    assert_string_equal(rt_method_input(method, 1)->path, "args[1]");
    assert_string_equal(rt_method_result(method, 0)->name, "output_0");
    close_program(&f);
    /* Names change places; names that the card does not mention stay. */
    check_used(&f, "keywords",
               "{\"inputs\": {\"ids\": \"positions\", \"input_2\": {\"name\": \"ids\"},"
               " \"mask\": {\"description\": \"which\"}}}");
    method = rt_program_default_method(f.program);
    assert_string_equal(rt_method_input(method, 1)->name, "positions");
    assert_string_equal(rt_method_input(method, 2)->name, "ids");
    assert_string_equal(rt_method_input(method, 3)->name, "mask");
    const struct card_method *said = card_find_method(f.card, method);
    assert_string_equal(card_find_io(said, RT_INPUT, 3)->description, "which");
    assert_null(card_find_io(said, RT_INPUT, 0));
    close_program(&f);
    /* The keyword of one argument becomes free for another. */
    check_used(&f, "keywords", "{\"inputs\": {\"input_0\": \"mask\", \"mask\": \"other\"}}");
    method = rt_program_default_method(f.program);
    assert_string_equal(rt_method_input(method, 3)->path, "kwargs[\"other\"]");
    close_program(&f);
    /* The name that a value has already. */
    check_used(&f, "keywords", "{\"inputs\": {\"ids\": \"ids\"}}");
    close_program(&f);
}

static void test_collisions(void **state)
{
    (void)state;
    check_refused("add", "{\"inputs\": [\"a\", \"a\"]}",
                  "pted.json:1:13: inputs[0]: 'a' is the name of input_1, too");
    check_refused("keywords", "{\"inputs\": {\"ids\": \"positions\"}}",
                  "inputs.ids: 'positions' is the name of input_2, too");
    check_refused("keywords", "{\"inputs\": {\"ids\": \"a\", \"input_1\": \"b\"}}",
                  "inputs.input_1: input_1 is given twice");
    check_refused("keywords", "{\"inputs\": {\"input_0\": \"features\"}}",
                  "inputs.input_0: 'features' is the keyword of another argument");
    check_refused("keywords", "{\"inputs\": {\"mask\": \"features\"}}",
                  "inputs.mask: 'features' is the key of another value there");
    check_refused("keywords", "{\"outputs\": {\"logits\": \"boxes\"}}",
                  "outputs.logits: 'boxes' is the key of another value there");
    check_refused("keywords", "{\"inputs\": {\"input_9\": \"a\"}}",
                  "the program has no such input");
    check_refused("methods", "{\"inputs\": []}", "the program has several methods");
    check_refused("methods", "{\"methods\": {\"encode\": {\"inputs\": [null, null]}}}",
                  "methods.encode.inputs: the program has 1, got 2");
}

static void test_types(void **state)
{
    static const char *const rows[][2] = {
        {"[]", "1:1: expected an object, got an array"},
        {"{\"description\": 1}", "description: expected a string, got a number"},
        {"{\"inputs\": \"a\"}", "inputs: expected a list or an object, got a string"},
        {"{\"inputs\": [1]}", "inputs[0]: expected a name, an object or null, got a number"},
        {"{\"inputs\": [[]]}", "inputs[0]: expected a name, an object or null, got an array"},
        {"{\"inputs\": [{\"name\": null}]}", "inputs[0].name: expected a string, got null"},
        {"{\"inputs\": [{\"labels\": [\"a\"]}]}",
         "unknown member, expected name, description, image, sound or text"},
        {"{\"outputs\": [{\"labels\": 3}]}", "expected a list of labels or the path of a file"},
        {"{\"outputs\": [{\"labels\": \"\"}]}", "expected a path, got an empty text"},
        {"{\"labels\": [\"a\", 1]}", "labels[1]: expected a string, got a number"},
        {"{\"methods\": []}", "methods: expected an object, got an array"},
        {"{\"methods\": {\"forward\": 1}}", "methods.forward: expected an object, got a number"},
        {"{\"methods\": {\"forward\": {\"labels\": []}}}", "expected a member of a method"},
        {"{\"warm_up\": {}}", "warm_up: expected an array, got an object"},
        {"{\"warm_up\": [[]]}", "warm_up[0]: expected an object, got an array"},
        {"{\"warm_up\": [{\"shapes\": []}]}", "warm_up[0].shapes: expected an object"},
        {"{\"warm_up\": [{\"shapes\": {\"input_0\": 1}}]}", "warm_up[0]: "},
        {"{\"warm_up\": [{\"shapes\": {\"input_0\": [-1]}}]}", "warm_up[0]: "},
        {"{\"warm_up\": [{\"shapes\": {\"input_0\": [99999999999]}}]}", "warm_up[0]: "},
        {"{\"warm_up\": [{\"shapes\": {\"input_0\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}]}",
         "warm_up[0]: "},
        {"{\"warm_up\": [{\"args\": {}}]}", "warm_up[0]: args: expected an array of 1"},
        {"{\"warm_up\": [{\"parameters\": {}}]}", "unknown member, expected shapes, or args and"},
        {"{\"device\": 1}", "a model has no device of its own"},
        {"{\"instances\": []}", "there are no instances"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_refused("digits", rows[i][0], rows[i][1]);
    }
}

/* |head|, |count| times |item| with commas between them, and |tail|. */
static char *repeat(const char *head, const char *item, size_t count, const char *tail)
{
    struct buf text;
    buf_init(&text, CARD_BYTES_MAX);
    buf_add_str(&text, head);
    for (size_t i = 0; i < count; i++) {
        buf_add_str(&text, i ? "," : "");
        buf_add_str(&text, item);
    }
    buf_add_str(&text, tail);
    buf_add_char(&text, '\0');
    assert_false(buf_failed(&text));
    return (char *)text.ptr;
}

static void check_many(const char *head, const char *item, size_t count, const char *tail,
                       const char *message)
{
    char *text = repeat(head, item, count, tail);
    check_refused("digits", text, message);
    free(text);
}

static void test_many(void **state)
{
    (void)state;
    check_many("{\"inputs\": [", "null", CARD_IOS_MAX + 1, "]}",
               "inputs: expected at most 1024 entries, got 1025");
    check_many("{\"inputs\": [", "null", CARD_IOS_MAX, "]}", "inputs: the program has 1, got 1024");
    check_many("{\"labels\": [", "\"\"", CARD_LABELS_MAX + 1, "]}",
               "labels: expected at most 65536 entries, got 65537");
    check_many("{\"labels\": [", "\"\"", CARD_LABELS_MAX, "]}",
               "labels: there are 65536 labels, and no output has as many classes");
    check_many("{\"warm_up\": [", "{}", CARD_WARM_UPS_MAX + 1, "]}",
               "warm_up: expected at most 64 entries, got 65");
    check_many("{\"labels\": [", "\"\"", CARD_VALUES_MAX, "]}", "values");
    check_many("{\"labels\": ", "[[[[[[[[", 9, "", "");
}

/* ---- labels ---------------------------------------------------------------------------------- */

#define TEN "\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\""

static void test_labels(void **state)
{
    struct fixture f;
    (void)state;
    check_used(&f, "digits", "{\"outputs\": [{\"labels\": [" TEN "]}]}");
    const struct rt_method *method = rt_program_default_method(f.program);
    const struct card_labels *labels = card_find_labels(f.card, method, 0);
    assert_int_equal(labels->count, 10);
    assert_true(span_is(labels->items[7], "7"));
    assert_int_equal(card_class_count(method, 0), 10);
    close_program(&f);
    check_used(&f, "digits", "{\"labels\": [" TEN "]}");
    method = rt_program_default_method(f.program);
    assert_ptr_equal(card_find_labels(f.card, method, 0), &f.card->labels);
    close_program(&f);
    check_refused("digits", "{\"outputs\": [{\"labels\": [" TEN ", \"10\"]}]}",
                  "outputs[0].labels: 'output_0' has 10 classes, got 11 labels");
    check_refused("methods",
                  "{\"methods\": {\"get_name\": {\"outputs\": [{\"labels\": [\"a\"]}]}}}",
                  "methods.get_name.outputs[0].labels: 'output_0' is no tensor");
}

static void test_lines(void **state)
{
    static const struct {
        const char *text;
        uint32_t count;
        const char *last;
    } rows[] = {
        {"", 0, NULL},          {"a", 1, "a"},   {"a\n", 1, "a"},
        {"a\r\nb\r\n", 2, "b"}, {"\n\n", 2, ""}, {"a\n\xc3\xa9", 2, "\xc3\xa9"},
        {"a\r", 1, "a"},
    };
    const struct span *items;
    struct arena arena;
    struct error err;
    uint32_t count;
    (void)state;
    arena_init(&arena, CARD_BYTES_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_ok(err, card_take_lines(&arena, span_str(rows[i].text), &items, &count, &err));
        assert_int_equal(count, rows[i].count);
        assert_true(count == 0 || span_is(items[count - 1], rows[i].last));
    }
    assert_int_equal(card_take_lines(&arena, span_str("a\n\xff"), &items, &count, &err),
                     ST_INVALID);
    char *many = repeat("", "\n", CARD_LABELS_MAX + 1, "");
    assert_int_equal(card_take_lines(&arena, span_str(many), &items, &count, &err), ST_TOO_LARGE);
    free(many);
    arena_fini(&arena);
}

/* ---- parameters, paths, texts ---------------------------------------------------------------- */

static void test_params(void **state)
{
    struct options *options = calloc(1, sizeof(*options));
    struct fixture f;
    char path[64], folder[] = "/tmp/test_card_XXXXXX";
    (void)state;
    open_program(&f, "add");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.card.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"max_batch\": 3, \"queue_bytes_max\": \"2M\", \"precision\": \"exact\"}", file);
    fclose(file);
    assert_ok(f.err, card_read_file(f.card, path, &f.err));
    options_init(options);
    options->said.max_batch = 1;
    struct params params = options->params;
    card_put_params(f.card, options, &params);
    assert_int_equal(params.max_batch, options->params.max_batch);
    assert_int_equal(params.queue_bytes_max, 2 << 20);
    assert_int_equal(params.precision, PRECISION_EXACT);
    card_put_params(NULL, options, &params);
    remove(path);
    remove(folder);
    close_program(&f);
    free(options);
}

static void test_paths(void **state)
{
    char path[16];
    (void)state;
    assert_true(card_path_of("a.pte", path, sizeof(path)));
    assert_string_equal(path, "a.card.json");
    assert_true(card_path_of("d/.pte", path, sizeof(path)));
    assert_string_equal(path, "d/.card.json");
    assert_true(card_path_of("x", path, sizeof(path)));
    assert_string_equal(path, "x.card.json");
    assert_false(card_path_of("long/long/long.pte", path, sizeof(path)));
}

/* A first card changes nothing, and its warm-ups run. */
static void test_first_card(void **state)
{
    static const char *const names[] = {"add", "digits", "methods", "keywords", "odd_keys"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct fixture f, again;
        struct buf text;
        open_program(&f, names[i]);
        buf_init(&text, 1 << 20);
        card_print(f.program, NULL, &text);
        buf_add_char(&text, '\0');
        assert_false(buf_failed(&text));
        check_used(&again, names[i], (const char *)text.ptr);
        close_program(&again);
        close_program(&f);
        buf_fini(&text);
    }
}

/* An argument has a name unless that is its alias. */
static void test_arguments(void **state)
{
    struct call_method call;
    struct arena arena;
    struct fixture f;
    (void)state;
    check_used(&f, "keywords", "{\"inputs\": {\"input_0\": \"values\"}}");
    arena_init(&arena, 1 << 20);
    assert_ok(f.err,
              card_describe_call(&arena, rt_program_default_method(f.program), &call, &f.err));
    assert_string_equal(call.inputs[0].name, "values");
    assert_string_equal(call.inputs[1].name, "ids");
    arena_fini(&arena);
    close_program(&f);
    check_used(&f, "add", "{\"inputs\": [\"left\"]}");
    arena_init(&arena, 1 << 20);
    assert_ok(f.err,
              card_describe_call(&arena, rt_program_default_method(f.program), &call, &f.err));
    assert_string_equal(call.inputs[0].name, "left");
    assert_null(call.inputs[1].name);
    arena_fini(&arena);
    close_program(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_collisions),
        cmocka_unit_test(test_types),      cmocka_unit_test(test_many),
        cmocka_unit_test(test_labels),     cmocka_unit_test(test_lines),
        cmocka_unit_test(test_params),     cmocka_unit_test(test_paths),
        cmocka_unit_test(test_first_card), cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
