/* SPDX-License-Identifier: MIT */
/* What handlers say of calls before there is one: signatures, sizes of results, the graph, and the
 * tokens of a text. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/api_support.h"

static struct api_world world;
static char files[3][64]; /* of the pipeline; of two cards */

/* ---- models ---------------------------------------------------------------------------------- */

static FILE *make_file(char path[64])
{
    snprintf(path, 64, "/tmp/test_api_calls_XXXXXX");
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    assert_non_null(file);
    return file;
}

static void write_card(FILE *file, const char *label)
{
    fputs("{\"outputs\":{\"output_0\":{\"name\":\"scores\",\"labels\":[", file);
    for (int i = 0; i < 10; i++) {
        fprintf(file, "%s\"%d%s\"", i ? "," : "", i, label);
    }
    fputs("]}}}", file);
    assert_int_equal(fclose(file), 0);
}

static int open_world(void **state)
{
    static char label[8000]; /* ten of them are more than an answer has */
    char pipeline[96], short_card[96], long_card[96];
    FILE *file = make_file(files[0]);
    (void)state;
    fputs("{\"twice\":{\"steps\":["
          "{\"model\":\"add\",\"inputs\":[{\"input\":0},{\"input\":1}]},"
          "{\"model\":\"add\",\"inputs\":[{\"from\":0,\"output\":0},{\"input\":1}]}]}}",
          file);
    assert_int_equal(fclose(file), 0);
    write_card(make_file(files[1]), "\\\"\\u2028<");
    memset(label, 'x', sizeof(label) - 1);
    write_card(make_file(files[2]), label);
    snprintf(pipeline, sizeof(pipeline), "--pipeline=%s", files[0]);
    snprintf(short_card, sizeof(short_card), "--card=digits=%s", files[1]);
    snprintf(long_card, sizeof(long_card), "--card=long=%s", files[2]);
    const char *const arguments[] = {"@add.pte",
                                     "@shapes.pte",
                                     "@found.pte",
                                     "@scalars.pte",
                                     "@sizes.pte",
                                     "@digits.pte",
                                     short_card,
                                     "--model=long=@digits.pte",
                                     long_card,
                                     pipeline,
                                     "--model=chat=@chat/model.pte",
                                     "--model=encoder=@encoder/model.pte",
                                     NULL};
    api_world_open(&world, arguments);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    api_world_close(&world);
    return unlink(files[0]) || unlink(files[1]) || unlink(files[2]);
}

static void check(api_handler_f *handler, const char *model, const char *body, const char *expected)
{
    assert_ok(world.err, api_world_ask(&world, handler, model, body));
    api_world_check(&world, expected);
}

static void refuses(api_handler_f *handler, const char *model, const char *body, const char *why)
{
    assert_fails(world.err, api_world_ask(&world, handler, model, body), ST_INVALID, why);
}

/* ---- signatures ------------------------------------------------------------------------------ */

static void a_signature_has_both_forms_and_the_names(void **state)
{
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_signature, "add", ""));
    api_world_check_members(
        &world,
        "{`name`:`add`,`version`:`1`,`abi`:`sip`,`abiv`:1,`fv`:`1`,"
        "`f`:`I15!B5!d2d3B5!d2d3R8!B5!d2d3`,`fbr`:null,`sipv`:1,`sip`:`I12!S9!k0_0k1_1R3!_0`,"
        "`readable`:{`f`:`(float32[2,3], float32[2,3]) -> (float32[2,3])`,"
        "`sip`:`[r0, r1] -> r0`},"
        "`inputs`:[`float32[2,3]`,`float32[2,3]`],`results`:[`float32[2,3]`],"
        "`input_names`:[`input_0`,`input_1`],`result_names`:[`output_0`],"
        "`in_place`:{`byte_order`:`little`,`body_bytes_min`:65537,`inputs`:["
        "{`alignment`:4,`strides`:[12,4]},{`alignment`:4,`strides`:[12,4]}]},"
        "`labels`:{},`has_words`:false,"
        "`example`:{`args`:[[[0,0,0],[0,0,0]],[[0,0,0],[0,0,0]]]}}");
}

/* Sizes that vary have no stride that is known; a number, a bool and nothing lie nowhere. */
static void a_signature_says_how_inputs_have_to_lie(void **state)
{
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_signature, "shapes.step", ""));
    api_world_check_members(&world,
                            "{`fbr`:`step$results`,`in_place`:{`byte_order`:`little`,"
                            "`body_bytes_min`:65537,`inputs`:[{`alignment`:8,`strides`:[-1,8]}]}}");
    assert_ok(world.err, api_world_ask(&world, api_signature, "scalars", ""));
    api_world_check_members(
        &world, "{`inputs`:[`float32[6]`,`int64`,`float64`,`bool`,`null`,`float32[]`],"
                "`in_place`:{`byte_order`:`little`,`body_bytes_min`:65537,`inputs`:["
                "{`alignment`:4,`strides`:[4]},null,null,null,null,{`alignment`:4,`strides`:[]}]},"
                "`example`:{`args`:[[0,0,0,0,0,0],4,0.5,true,null,0]}}");
}

static void a_signature_has_the_labels_unless_they_are_long(void **state)
{
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_signature, "digits", ""));
    for (int i = 0; i < 10; i++) {
        char label[32];
        snprintf(label, sizeof(label), "%s\"%d\\\"\u2028<\"", i ? "," : "\"scores\":[", i);
        assert_non_null(strstr(api_world_answer(&world), label));
    }
    assert_ok(world.err, api_world_ask(&world, api_signature, "long", ""));
    api_world_check_members(&world, "{`labels`:{},`result_names`:[`scores`]}");
}

static void a_language_model_has_words(void **state)
{
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_signature, "chat", ""));
    api_world_check_members(&world, "{`has_words`:true}");
}

/* ---- sizes of results ------------------------------------------------------------------------ */

#define STEP_SHAPE                                                                                 \
    "{`model_name`:`shapes.step`,`model_version`:`1`,`outputs`:["                                  \
    "{`name`:`output_0`,`datatype`:`FP32`,`shape`:[1,3,4],`bytes`:48}]}"

static void sizes_follow_from_a_body_of_either_form(void **state)
{
    (void)state;
    check(api_shape, "shapes.step", "{\"inputs\":[{\"name\":\"input_0\",\"shape\":[1,3]}]}",
          STEP_SHAPE);
    check(api_shape, "shapes.step", "{\"args\":[[[1,2,3]]]}", STEP_SHAPE);
    check(api_shape, "shapes.step", "{\"args\":[{\"dtype\":\"int64\",\"shape\":[1,3]}]}",
          STEP_SHAPE);
}

#define FOUND(first)                                                                               \
    "{`model_name`:`found`,`model_version`:`1`,`outputs`:["                                        \
    "{`name`:`output_0`,`datatype`:`INT64`," first "},"                                            \
    "{`name`:`output_1`,`datatype`:`FP32`,`shape`:[-1],`bounds`:[20],`bytes_max`:80},"             \
    "{`name`:`output_2`,`datatype`:`INT64`,`shape`:[],`bytes`:8},"                                 \
    "{`name`:`output_3`,`datatype`:`FP32`,`shape`:[2],`bytes`:8},"                                 \
    "{`name`:`output_4`,`datatype`:`FP32`,`shape`:[],`bytes`:4}]}"

static void a_size_that_depends_on_data_has_a_bound_until_it_is_given(void **state)
{
    (void)state;
    check(api_shape, "found", "{\"inputs\":[]}",
          FOUND("`shape`:[-1,2],`bounds`:[20,2],`bytes_max`:320"));
    check(api_shape, "found",
          "{\"inputs\":[],\"outputs\":[{\"name\":\"output_0\",\"shape\":[7,2]}]}",
          FOUND("`shape`:[7,2],`bytes`:112"));
    refuses(api_shape, "found",
            "{\"inputs\":[],\"outputs\":[{\"name\":\"output_0\",\"shape\":[21,2]}]}",
            "outputs[0] 'output_0': dim 0 is 21, expected 0 to 20");
    refuses(api_shape, "found",
            "{\"inputs\":[],\"outputs\":[{\"name\":\"output_9\",\"shape\":[7,2]}]}",
            "outputs[0].name: model 'found' has no output 'output_9', expected one of output_0");
}

static void results_that_are_no_tensors_have_the_bytes_of_their_type(void **state)
{
    (void)state;
    check(api_shape, "scalars", "{\"inputs\":[]}",
          "{`model_name`:`scalars`,`model_version`:`1`,`outputs`:["
          "{`name`:`output_0`,`datatype`:`FP32`,`shape`:[4],`bytes`:16},"
          "{`name`:`output_1`,`datatype`:`INT64`,`shape`:[],`bytes`:8},"
          "{`name`:`output_3`,`datatype`:`FP64`,`shape`:[],`bytes`:8},"
          "{`name`:`output_4`,`datatype`:`BOOL`,`shape`:[],`bytes`:1},"
          "{`name`:`output_5`,`datatype`:`FP32`,`shape`:[],`bytes`:4},"
          "{`name`:`output_6`,`datatype`:`FP32`,`shape`:[],`bytes`:4}]}");
}

static void sizes_of_wrong_inputs_are_refused(void **state)
{
    (void)state;
    refuses(api_shape, "sizes", "{\"inputs\":[]}",
            "input 'input_0' is missing, expected float32[?]");
    refuses(api_shape, "sizes", "{\"args\":[{\"dtype\":\"float32\",\"shape\":[5]}]}",
            "args[1]: missing, expected float32[?]");
    refuses(api_shape, "sizes",
            "{\"args\":[{\"dtype\":\"float32\",\"shape\":[500]},"
            "{\"dtype\":\"float32\",\"shape\":[4]}]}",
            "args[0]: dim 0 is 500, expected at most 9");
    refuses(api_shape, "sizes", "{\"inputs\":[{\"name\":\"no\\\"ne\",\"shape\":[1]}]}", "no\"ne");
}

/* ---- the result allocator -------------------------------------------------------------------- */

static enum status ask_allocator(const char *model, const char *allocator, const char *body)
{
    api_world_begin(&world, model, body);
    snprintf(world.request.match.region, sizeof(world.request.match.region), "%s", allocator);
    return api_results(&world.request, &world.err);
}

static void the_allocator_has_the_buffers_of_results_that_vary(void **state)
{
    (void)state;
    assert_ok(world.err, ask_allocator("shapes.step", "step$results", "{\"args\":[3]}"));
    api_world_check(&world, "{`result`:[{`dtype`:`float32`,`shape`:[1,3,4],`bytes`:48}]}");
    assert_ok(world.err, ask_allocator("sizes", "forward$results", "{\"args\":[5,4]}"));
    api_world_check(&world, "{`result`:[{`dtype`:`float32`,`shape`:[4],`bytes`:16},"
                            "{`dtype`:`float32`,`shape`:[5],`bytes`:20}]}");
    assert_ok(world.err, ask_allocator("found", "forward$results", "{\"args\":[]}"));
    api_world_check(&world, "{`result`:[null,null]}");
}

static void the_allocator_refuses_other_sizes_and_names(void **state)
{
    static const struct {
        const char *body, *why;
    } bad[] = {
        {"{\"args\":[6]}", "args[0]: dim 1 of input 'input_0': expected 0 to 5, got 6"},
        {"{\"args\":[-1]}", "args[0]: dim 1 of input 'input_0': expected 0 to 5, got -1"},
        {"{\"args\":[1.5]}", "args[0]: expected an integer, got 1.5"},
        {"{\"args\":[1,2]}", "args[1]: unexpected"},
        {"{\"args\":[]}", "args[0]: missing"},
        {"{\"args\":[1]", "byte 11"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_fails(world.err, ask_allocator("shapes.step", "step$results", bad[i].body),
                     ST_INVALID, bad[i].why);
    }
    assert_fails(world.err, ask_allocator("shapes.step", "forward$results", "{\"args\":[1]}"),
                 ST_NOT_FOUND, "has no 'forward$results', expected step$results");
    assert_fails(world.err, ask_allocator("add", "forward$results", "{\"args\":[]}"), ST_NOT_FOUND,
                 "expected none: the sizes of its results do not vary");
}

/* ---- the graph ------------------------------------------------------------------------------- */

static void a_graph_has_its_nodes_and_the_types_of_values(void **state)
{
    (void)state;
    check(api_graph, "add", "",
          "{`name`:`add`,`version`:`1`,`kind`:`graph`,`nodes`:["
          "{`block`:0,`operator`:`input`,`inputs`:[],"
          "`outputs`:[{`value`:1,`type`:`f32[2,3]`},{`value`:2,`type`:`f32[2,3]`}]},"
          "{`block`:0,`node`:0,`operator`:`add`,"
          "`inputs`:[{`value`:1,`type`:`f32[2,3]`},{`value`:2,`type`:`f32[2,3]`}],"
          "`outputs`:[{`value`:4,`type`:`f32[2,3]`}]},"
          "{`block`:0,`operator`:`output`,`inputs`:[{`value`:4,`type`:`f32[2,3]`}],"
          "`outputs`:[]}]}");
}

static void a_graph_marks_constants_and_blocks(void **state)
{
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_graph, "found", ""));
    const char *answer = api_world_answer(&world);
    assert_non_null(strstr(answer, "{\"value\":14,\"type\":\"f32[]\",\"constant\":true}"));
    assert_non_null(strstr(answer, "\n{\"block\":2,\"operator\":\"output\","));
}

static void the_graph_of_a_pipeline_has_its_steps(void **state)
{
    (void)state;
    check(api_graph, "twice", "",
          "{`name`:`twice`,`version`:`1`,`kind`:`pipeline`,`nodes`:["
          "{`block`:0,`operator`:`input`,`inputs`:[],"
          "`outputs`:[{`value`:0,`name`:`input_0`},{`value`:1,`name`:`input_1`}]},"
          "{`block`:0,`node`:0,`operator`:`add`,`layer`:`add`,"
          "`inputs`:[{`value`:0,`name`:`input_0`},{`value`:1,`name`:`input_1`}],"
          "`outputs`:[{`value`:2,`name`:`output_0`}]},"
          "{`block`:0,`node`:1,`operator`:`add`,`layer`:`add`,"
          "`inputs`:[{`value`:2,`name`:`input_0`},{`value`:1,`name`:`input_1`}],"
          "`outputs`:[{`value`:3,`name`:`output_0`}]},"
          "{`block`:0,`operator`:`output`,`inputs`:[{`value`:3,`name`:`output_0`}],"
          "`outputs`:[]}]}");
}

/* ---- texts and tokens ------------------------------------------------------------------------ */

static void a_text_has_tokens(void **state)
{
    (void)state;
    check(api_tokenize, "chat", "{\"text\":\"hello <b>\"}",
          "{`count`:6,`context`:256,`tokens`:[277,297,222,29,67,31]}");
    check(api_tokenize, "chat", "{\"text\":\"\"}", "{`count`:0,`context`:256,`tokens`:[]}");
    check(api_tokenize, "encoder", "{\"text\":\"hello\"}",
          "{`count`:3,`context`:48,`tokens`:[2,1,3]}");
    check(api_tokenize, "encoder", "{\"text\":\"hello\",\"add_special\":false}",
          "{`count`:1,`context`:48,`tokens`:[1]}");
}

static void tokens_have_a_text(void **state)
{
    (void)state;
    check(api_detokenize, "chat", "{\"tokens\":[277,297,222,29,67,31]}", "{`text`:`hello <b>`}");
    check(api_detokenize, "chat", "{\"tokens\":[]}", "{`text`:``}");
}

static void bad_texts_and_tokens_are_refused(void **state)
{
    (void)state;
    refuses(api_tokenize, "chat", "{\"text\":\"\xff\"}", "text: invalid UTF-8 in a string");
    refuses(api_tokenize, "chat", "{\"text\":5}", "text: expected a string, got a number");
    refuses(api_tokenize, "chat", "{\"tokens\":[1]}", "expected text or add_special");
    refuses(api_tokenize, "chat", "{\"add_special\":true}", "text is missing");
    refuses(api_tokenize, "chat", "", "expected an object");
    refuses(api_tokenize, "add", "{\"text\":\"a\"}", "model 'add' is no language model");
    refuses(api_detokenize, "chat", "{\"text\":\"a\"}", "expected tokens");
    refuses(api_detokenize, "chat", "{}", "tokens is missing");
    refuses(api_detokenize, "chat", "{\"tokens\":[447,448]}",
            "tokens[1]: expected ids below 448, got 448");
    refuses(api_detokenize, "chat", "{\"tokens\":[-1]}", "tokens[0]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_has_both_forms_and_the_names),
        cmocka_unit_test(a_signature_says_how_inputs_have_to_lie),
        cmocka_unit_test(a_signature_has_the_labels_unless_they_are_long),
        cmocka_unit_test(a_language_model_has_words),
        cmocka_unit_test(sizes_follow_from_a_body_of_either_form),
        cmocka_unit_test(a_size_that_depends_on_data_has_a_bound_until_it_is_given),
        cmocka_unit_test(results_that_are_no_tensors_have_the_bytes_of_their_type),
        cmocka_unit_test(sizes_of_wrong_inputs_are_refused),
        cmocka_unit_test(the_allocator_has_the_buffers_of_results_that_vary),
        cmocka_unit_test(the_allocator_refuses_other_sizes_and_names),
        cmocka_unit_test(a_graph_has_its_nodes_and_the_types_of_values),
        cmocka_unit_test(a_graph_marks_constants_and_blocks),
        cmocka_unit_test(the_graph_of_a_pipeline_has_its_steps),
        cmocka_unit_test(a_text_has_tokens),
        cmocka_unit_test(tokens_have_a_text),
        cmocka_unit_test(bad_texts_and_tokens_are_refused),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
