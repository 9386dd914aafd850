/* SPDX-License-Identifier: MIT */
/* Rules of cards, row by row: what a member may be, how it must fit the program, and the whole text
 * of each refusal. Also files beside a card and a program. */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/load/load.h"
#include "server/model/card/beside.h"
#include "server/model/card/card.h"
#include "server/model/card/derive.h"
#include "server/model/card/warm_up.h"
#include "tests/unit/call_support.h"

#define PATH_BYTES 4096
#define NAME "card.json"

static const struct document_limits limits = {.bytes_max = CARD_BYTES_MAX,
                                              .values_max = CARD_VALUES_MAX};

static struct hal_device *device;
static struct hal_pool *pool;

static int open_device(void **state)
{
    (void)state;
    open_two_workers(&device, &pool);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    close_two_workers(device, pool);
    return 0;
}

/* ---- a card that meets a program ------------------------------------------------------------- */

struct fixture {
    struct rt_program *program;
    struct card *card;
    struct document document;
    struct error err;
};

static enum status load(struct fixture *f, const char *path)
{
    const struct rt_load_options options = {
        .device = device, .precision = PRECISION_FAST, .adapt = card_adapt, .adapt_arg = f->card};
    TRY(rt_load_program(path, &options, &f->program, &f->err));
    TRY(card_apply(f->card, f->program, &f->err));
    return card_warm_up(f->card, f->program, device, &f->err);
}

static void path_of(const char *model, char path[PATH_BYTES])
{
    const char *top = getenv("top_srcdir");
    snprintf(path, PATH_BYTES, "%s/tests/models/%s.pte", top ? top : ".", model);
}

/* Everything that a daemon does with a card. */
static enum status use(struct fixture *f, const char *model, const char *text)
{
    char path[PATH_BYTES];
    path_of(model, path);
    *f = (struct fixture){.card = card_new()};
    TRY(document_parse(span_str(text), &limits, &f->document, &f->err));
    TRY(card_read_members(f->card, &f->document, f->document.root, NAME, &f->err));
    return load(f, path);
}

static void close_fixture(struct fixture *f)
{
    card_free(f->card);
    document_close(&f->document);
    rt_program_unref(f->program);
}

static const struct card_method *open_fixture(struct fixture *f, const char *model,
                                              const char *text)
{
    assert_ok(f->err, use(f, model, text));
    return card_find_method(f->card, rt_program_default_method(f->program));
}

struct rule {
    const char *card;
    const char *refusal; /* behind "card.json:LINE:COLUMN: " */
};

static void check_rules(const char *model, const struct rule *rules, size_t count)
{
    bool is_right = true;
    for (size_t i = 0; i < count; i++) {
        struct fixture f;
        int line, column, len = 0;
        enum status status = use(&f, model, rules[i].card);
        bool has_place =
            status != ST_OK && sscanf(f.err.text, NAME ":%d:%d: %n", &line, &column, &len) == 2;
        if (!has_place || strcmp(f.err.text + len, rules[i].refusal) != 0) {
            print_error("%s\n  got      %s\n  expected %s\n", rules[i].card,
                        status == ST_OK ? "no refusal" : f.err.text + len, rules[i].refusal);
            is_right = false;
        }
        close_fixture(&f);
    }
    assert_true(is_right);
}

#define RULES(model, ...)                                                                          \
    do {                                                                                           \
        static const struct rule rules[] = {__VA_ARGS__};                                          \
        check_rules(model, rules, sizeof(rules) / sizeof(rules[0]));                               \
    } while (0)

/* ---- pictures -------------------------------------------------------------------------------- */

#define PICTURE "yolo/detect_executorch_model/model" /* float32 [1, 3, 96, 128] */
#define AT "inputs[0].image"
#define IMAGE(members) "{\"inputs\": [{\"image\": {" members "}}]}"
#define DRAWN "\"resize\": [96, 128]"

static void members_of_pictures(void **state)
{
    (void)state;
    RULES(PICTURE, {"{\"inputs\": [{\"image\": 3}]}", AT ": expected an object, got a number"},
          {IMAGE("\"resize\": \"a\""), AT ".resize: expected a whole number, got a string"},
          {IMAGE("\"resize\": [1]"), AT ".resize: expected a number, or [height, width]"},
          {IMAGE("\"crop\": [1, 2, 3]"), AT ".crop: expected a number, or [height, width]"},
          {IMAGE("\"fit\": \"shorter\""),
           AT ".fit: it says how to resize, but \"resize\" is missing"},
          {IMAGE("\"resize\": [96, 128], \"fit\": \"shorter\""),
           AT ".fit: shorter is for \"resize\" with one number"},
          {IMAGE(DRAWN ", \"fit\": \"fill\""),
           AT ".fit: expected shorter, stretch, inside or letterbox"},
          {IMAGE("\"interpolation\": \"best\""),
           AT ".interpolation: expected nearest, box, bilinear, bicubic, lanczos or linear"},
          {IMAGE("\"colors\": \"cmyk\""), AT ".colors: expected rgb, bgr or gray"},
          {IMAGE("\"layout\": \"chw\""), AT ".layout: expected nchw or nhwc"},
          {IMAGE("\"crop_rounding\": \"up\""), AT ".crop_rounding: expected even or down"},
          {IMAGE("\"fill\": [1, 2]"), AT ".fill: expected 0 to 255, or three of them"},
          {IMAGE("\"fill\": [1, 2, 3, 4]"), AT ".fill: expected 0 to 255, or three of them"},
          {IMAGE("\"fill\": 256"), AT ".fill: expected a whole number from 0 to 255, got 256"},
          {IMAGE("\"mean\": []"), AT ".mean: expected a number, or 1 to 4 of them"},
          {IMAGE("\"mean\": [1, 2, 3, 4, 5]"), AT ".mean: expected a number, or 1 to 4 of them"},
          {IMAGE("\"std\": [1, 0, 1]"), AT ".std: expected another number than 0"},
          {IMAGE("\"draft\": 1"), AT ".draft: expected a boolean, got a number"},
          {IMAGE("\"size\": 1"),
           AT ".size: unknown member, expected resize, fit, interpolation, "
              "crop, crop_rounding, fill, colors, scale, mean, std, layout or "
              "draft"},
          {"{\"inputs\": [{\"image\": {}, \"sound\": {}}]}",
           "inputs[0].sound: expected one of image, sound and text, got image, too"});
}

static void pictures_fit_the_program(void **state)
{
    (void)state;
    RULES(PICTURE,
          {IMAGE("\"resize\": 90"), AT ": resize: the shorter side becomes 90, the program takes "
                                       "[96, 128]; expected a crop, too"},
          {IMAGE("\"resize\": [96, 96]"), AT ": width: expected 128, got 96"},
          {IMAGE("\"crop\": [90, 128]"), AT ": height: expected 96, got 90"},
          {IMAGE(DRAWN ", \"colors\": \"gray\""), AT ": colors: the program has 3 channels"},
          {IMAGE(DRAWN ", \"mean\": [0, 0]"),
           AT ": mean: expected 3 numbers, one for each channel, got 2"},
          {IMAGE(DRAWN ", \"std\": [1, 1, 1, 1]"),
           AT ": std: expected 3 numbers, one for each channel, got 4"});
    RULES("optimum/text/model",
          {"{\"inputs\": [{\"image\": {}}]}",
           "inputs[0].image: expected an input of floats or 8-bit integers with four dims, such as "
           "float32[1,3,224,224], got int64[1,?]"});
    RULES("media/sizes",
          {"{\"methods\": {\"forward\": {\"inputs\": [{\"image\": {\"resize\": 31}}]}}}",
           "methods.forward.inputs[0].image: resize: the shorter side becomes 31, the program "
           "takes at most [30, 40]"});
}

/* What a person probably did not mean is told, but used. */
static void doubts_about_pictures(void **state)
{
    static const struct {
        const char *card, *doubt;
    } rows[] = {
        {IMAGE(""), NAME ":1:23: " AT ": only pictures of 96 x 128 are taken; with a resize to "
                         "[96, 128], or with a crop, all are"},
        {IMAGE("\"resize\": 96"), NAME ":1:23: " AT ": only pictures with the proportions of 96 x "
                                       "128 are taken; with a resize to [96, 128], or with a crop, "
                                       "all are"},
        {IMAGE("\"resize\": 90, \"crop\": [96, 128]"),
         NAME ":1:23: " AT ": the crop is larger than the shorter side, which becomes 90: the rest "
              "is filled"},
        {IMAGE("\"resize\": 130, \"crop\": [96, 128]"), NULL},
        {IMAGE(DRAWN), NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        struct error doubt = {.code = ST_OK};
        const struct card_method *said = open_fixture(&f, PICTURE, rows[i].card);
        bool has_doubt = card_find_doubt(card_find_io(said, RT_INPUT, 0), &doubt);
        assert_int_equal(has_doubt, rows[i].doubt != NULL);
        assert_string_equal(doubt.text, rows[i].doubt ? rows[i].doubt : "");
        close_fixture(&f);
    }
}

static void members_of_pictures_are_taken(void **state)
{
    struct fixture f;
    (void)state;
    const struct card_method *said = open_fixture(
        &f, PICTURE,
        IMAGE(
            "\"resize\": [100, 130], \"fit\": \"letterbox\", \"crop\": [96, 128], "
            "\"crop_rounding\": \"down\", \"fill\": [1, 2, 3], \"colors\": \"bgr\", \"scale\": 2, "
            "\"mean\": [1, 2, 3], \"std\": 4, \"layout\": \"nchw\", \"draft\": true, "
            "\"interpolation\": \"bicubic\""));
    const struct card_image *image = &card_find_io(said, RT_INPUT, 0)->media.image;
    assert_true(image->resize[0] == 100 && image->resize[1] == 130);
    assert_true(image->crop[0] == 96 && image->crop[1] == 128 && image->crop_rounds_down);
    assert_true(image->fill[0] == 1 && image->fill[1] == 2 && image->fill[2] == 3);
    assert_true(image->fit == IMAGE_LETTERBOX && image->filter == IMAGE_BICUBIC);
    assert_true(image->colors == CARD_BGR && image->is_draft && image->scale == 2);
    assert_true(image->height == 96 && image->width == 128 && image->channels == 3);
    assert_ptr_equal(card_find_picture(f.card, rt_program_default_method(f.program)),
                     card_find_io(said, RT_INPUT, 0));
    close_fixture(&f);
    said = open_fixture(&f, PICTURE, IMAGE(DRAWN ", \"fill\": 7"));
    image = &card_find_io(said, RT_INPUT, 0)->media.image;
    assert_true(image->fit == IMAGE_STRETCH && image->fill[0] == 7 && image->fill[2] == 7);
    close_fixture(&f);
}

/* ---- sounds and texts ------------------------------------------------------------------------ */

#define SOUND(members) "{\"methods\": {\"sound\": {\"inputs\": [{\"sound\": {" members "}}]}}}"
#define SOUND_IN "methods.sound.inputs[0].sound"

static void members_of_sounds(void **state)
{
    (void)state;
    RULES("media/model",
          {SOUND("\"rate\": 0"),
           SOUND_IN ".rate: expected a whole number from 1000 to 768000, got 0"},
          {SOUND("\"features\": \"mfcc\""), SOUND_IN ".features: expected samples or log_mel"},
          {SOUND("\"seconds\": 0"), SOUND_IN ".seconds: expected more than 0, up to 86400"},
          {SOUND("\"channels\": 1"),
           SOUND_IN ".channels: unknown member, expected rate, features or seconds"});
}

/* ---- answers --------------------------------------------------------------------------------- */

#define OUT "outputs[0].answer"
#define ANSWER(value) "{\"outputs\": [{\"answer\": " value "}]}"
#define DRAWN_ANSWER(value)                                                                        \
    "{\"inputs\": [{\"image\": {" DRAWN "}}], \"outputs\": [{\"answer\": " value "}]}"
#define BOXES(members) ANSWER("{\"boxes\": {" members "}}")
#define THREE "\"class_count\": 3"

static void members_of_answers(void **state)
{
    (void)state;
    RULES(
        PICTURE, {ANSWER("\"mask\""), OUT ": expected classes, boxes, map or text, got 'mask'"},
        {ANSWER("{\"classes\": 0}"), OUT ".classes: expected a whole number from 1 to 1000, got 0"},
        {ANSWER("{\"boxes\": 1}"), OUT ".boxes: expected an object, got a number"},
        {BOXES("\"form\": \"yxyx\""), OUT ".boxes.form: expected cxcywh, xyxy or xywh, got 'yxyx'"},
        {BOXES("\"order\": \"first\""),
         OUT ".boxes.order: expected candidates_first or candidates_last, got 'first'"},
        {BOXES("\"picture\": \"best\""),
         OUT ".boxes.picture: expected sent, shown or model, got 'best'"},
        {BOXES("\"score\": 1.5"), OUT ".boxes.score: expected a number from 0 to 1"},
        {BOXES("\"iou\": -1"), OUT ".boxes.iou: expected a number from 0 to 1"},
        {BOXES("\"count\": 1001"),
         OUT ".boxes.count: expected a whole number from 1 to 1000, got 1001"},
        {BOXES("\"points\": [3]"), OUT ".boxes.points: expected [COUNT, NUMBERS], such as [17, 3]"},
        {BOXES("\"points\": [3, 2, 1]"),
         OUT ".boxes.points: expected [COUNT, NUMBERS], such as [17, 3]"},
        {BOXES("\"points\": [3, 4]"),
         OUT ".boxes.points[1]: expected a whole number from 2 to 3, got 4"},
        {BOXES("\"points\": [3, 2], \"angle\": true"),
         OUT ".boxes: expected one of points, angle and masks, and none beside scores"},
        {BOXES("\"angle\": true, \"scores\": \"output_0\""),
         OUT ".boxes: expected one of points, angle and masks, and none beside scores"},
        {BOXES("\"classes\": \"output_0\""),
         OUT ".boxes: \"classes\" needs \"scores\", the output that has their scores"},
        {BOXES("\"background\": -1"),
         OUT ".boxes.background: expected a whole number from 0 to 4294967295, got -1"},
        {BOXES("\"nms\": 1"),
         OUT ".boxes.nms: unknown member, expected form, order, relative, "
             "picture, normalized, objectness, scores, classes, points, angle, "
             "masks, class_count, background, score, iou, count or "
             "across_classes"},
        {ANSWER("{\"map\": {\"size\": 1}}"), OUT ".map.size: unknown member, expected picture"},
        {ANSWER("{\"text\": {\"space\": 1}}"), OUT ".text.space: unknown member, expected blank"});
}

static void answers_fit_the_program(void **state)
{
    (void)state;
    RULES(PICTURE,
          {BOXES("\"scores\": \"nothing\""),
           OUT ": 'nothing' is no output with a tensor, expected output_0"},
          {BOXES(THREE ", \"picture\": \"sent\""),
           OUT ": picture needs an input that the card says to be an image"},
          {BOXES(THREE ", \"normalized\": true"),
           OUT ": normalized needs an input that the card says to be an image"},
          {BOXES(THREE ", \"masks\": \"output_0\""),
           OUT ": masks needs an input that the card says to be an image"},
          {BOXES("\"class_count\": 4"), OUT ": class_count: expected at most 3, got 4"},
          {BOXES(""), OUT ": 'output_0' has 3 numbers behind each box, got 0 labels; class_count "
                          "says how many are scores"},
          {"{\"outputs\": [{\"labels\": [\"a\", \"b\"], \"answer\": \"boxes\"}]}",
           "outputs[0].labels: 'output_0' has 3 numbers behind each box, got 2 labels; class_count "
           "says how many are scores"},
          {"{\"outputs\": [{\"labels\": [\"a\", \"b\"], \"answer\": {\"boxes\": {" THREE "}}}]}",
           "outputs[0].labels: 'output_0' has 3 classes, got 2 labels"},
          {DRAWN_ANSWER("\"map\""), OUT
           ": map: expected floats [n, classes, height, width], or integers [n, height, width], "
           "got float32[1,7,192]"});
    RULES("methods", {"{\"methods\": {\"get_name\": {\"outputs\": [{\"answer\": \"boxes\"}]}}}",
                      "methods.get_name.outputs[0].answer: 'output_0' is no tensor"});
}

static void members_of_answers_are_taken(void **state)
{
    struct fixture f;
    (void)state;
    const struct card_method *said = open_fixture(
        &f, PICTURE,
        DRAWN_ANSWER("{\"boxes\": {" THREE ", \"form\": \"xywh\", \"order\": \"candidates_last\", "
                     "\"relative\": true, \"picture\": \"shown\", \"normalized\": true, "
                     "\"background\": 2, \"score\": 0.5, \"iou\": 0.75, \"count\": 9, "
                     "\"across_classes\": true}}"));
    const struct answer_form *answer =
        card_find_answer(f.card, rt_program_default_method(f.program), 0);
    assert_non_null(said);
    assert_true(answer->kind == ANSWER_BOXES && answer->rules.form == BOXES_SIZE);
    assert_true(answer->order == ANSWER_CANDIDATES_LAST && answer->picture == ANSWER_SHOWN);
    assert_true(answer->is_relative && answer->is_normalized && answer->rules.ignores_classes);
    assert_true(answer->rules.background == 2 && answer->rules.count_max == 9);
    assert_true(answer->rules.score_least == 0.5 && answer->rules.overlap_most == 0.75);
    assert_int_equal(answer->box_classes, 3);
    close_fixture(&f);
    static const char *const words[] = {"classes", "boxes", "map", "text"};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(card_answer_word(card_find_answer_kind(words[i])), words[i]);
    }
    assert_int_equal(card_find_answer_kind("tensor"), ANSWER_TENSOR);
    assert_null(card_answer_word(ANSWER_TENSOR));
}

/* ---- the model ------------------------------------------------------------------------------- */

static void members_of_methods(void **state)
{
    (void)state;
    RULES(
        "add", {"{\"embedding\": 1}", "embedding: expected an object, got a number"},
        {"{\"embedding\": {\"pooling\": \"max\"}}",
         "embedding.pooling: expected mean, cls, last, splade or none"},
        {"{\"embedding\": {\"max_tokens\": 0}}", "embedding.max_tokens: expected at least 1"},
        {"{\"embedding\": {\"normalize\": 1}}",
         "embedding.normalize: expected a boolean, got a number"},
        {"{\"embedding\": {\"size\": 1}}",
         "embedding.size: unknown member, expected pooling, normalize, max_tokens or prefix"},
        {"{\"cache\": \"int4\"}", "cache: expected float or int8, got 'int4'"},
        {"{\"generation\": []}", "generation: expected an object, got an array"},
        {"{\"generation\": {\"temperature\": 101}}",
         "generation.temperature: expected a number from 0 to 100"},
        {"{\"generation\": {\"temperature\": \"hot\"}}",
         "generation.temperature: expected a number from 0 to 100"},
        {"{\"generation\": {\"repetition_penalty\": 0}}",
         "generation.repetition_penalty: expected a number from 0.01 to 100"},
        {"{\"generation\": {\"max_tokens\": 1.5}}",
         "generation.max_tokens: expected an integer from 1 to 16777216"},
        {"{\"generation\": {\"stop_token_ids\": 3}}",
         "generation.stop_token_ids: expected an array, got a number"},
        {"{\"generation\": {\"stop_token_ids\": [-1]}}",
         "generation.stop_token_ids[0]: expected a whole number from 0 to 16777216, got -1"},
        {"{\"generation\": {\"stop_token_ids\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
         "1,1,1,1,1,1,1,1,1]}}",
         "generation.stop_token_ids[32]: expected at most 32 ids"},
        {"{\"generation\": {\"seed\": 1}}",
         "generation.seed: unknown member, expected temperature, top_p, top_k, min_p, "
         "repetition_penalty, max_tokens, thinking, tools, infill or stop_token_ids"},
        {"{\"methods\": {\"forward\": {\"warmup\": []}}}",
         "methods.forward.warmup: expected a member of a method, got an unknown one; did you mean "
         "'warm_up'?"});
}

static void methods_are_bounded(void **state)
{
    struct fixture f;
    struct buf text;
    (void)state;
    buf_init(&text, CARD_BYTES_MAX);
    for (int i = 0; i <= CARD_METHODS_MAX; i++) {
        buf_printf(&text, "%s\"m%d\": {}", i ? ", " : "{\"methods\": {", i);
    }
    buf_add(&text, "}}", 3);
    assert_int_equal(use(&f, "add", (const char *)text.ptr), ST_TOO_LARGE);
    assert_non_null(strstr(f.err.text, ": methods.m256: expected at most 256 methods"));
    close_fixture(&f);
    buf_fini(&text);
}

static void steps_of_outputs(void **state)
{
#define STEPS(list) "{\"outputs\": [{\"steps\": " list "}]}"
#define STEP "outputs[0].steps"
    (void)state;
    RULES("digits", {STEPS("3"), STEP ": expected an array, got a number"},
          {STEPS("[3]"), STEP "[0]: expected a word or an object with one member"},
          {STEPS("[{}]"), STEP "[0]: expected a word or an object with one member"},
          {STEPS("[{\"softmax\": 1, \"sigmoid\": 1}]"),
           STEP "[0]: expected a word or an object with one member"});
#undef STEPS
#undef STEP
}

/* ---- first calls ----------------------------------------------------------------------------- */

static void first_calls_are_made(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, "scalars",
                 "{\"warm_up\": [{\"shapes\": {}}, {\"args\": [[1, 2, 3, 4, 5, 6], 4, 0.5, true, "
                 "null, 1]}]}");
    close_fixture(&f);
    RULES("scalars",
          {"{\"warm_up\": [{\"shapes\": {\"input_1\": []}}]}",
           "warm_up[0]: shapes: there is no tensor 'input_1', expected one of input_0, "
           "input_1, input_2, input_3 and input_5"},
          {"{\"warm_up\": [{\"shapes\": {}, \"args\": []}]}",
           "warm_up[0]: expected shapes or args and kwargs, got both"});
    RULES("faults", {"{\"warm_up\": [{\"args\": [[[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, "
                     "0, 0]], [0, 0, 9], [[0, 0, 0]]]}]}",
                     "warm_up[0]: embedding: an index is out of range: got 9, expected 0 to 4"});
}

/* ---- files ----------------------------------------------------------------------------------- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test_card_rules_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static const char *path_in(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put_text(const char *name, const char *text)
{
    FILE *file = fopen(path_in(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put_program(const char *name, const char *model)
{
    char from[PATH_BYTES], real[PATH_BYTES];
    path_of(model, from);
    assert_non_null(realpath(from, real));
    assert_int_equal(symlink(real, path_in(name)), 0);
}

/* A card in the folder, with the program and all that lies beside it. */
static enum status use_folder(struct fixture *f, const char *model, const char *text)
{
    put_program("model.pte", model);
    *f = (struct fixture){.card = card_new()};
    if (text) {
        put_text(NAME, text);
        TRY(card_read_file(f->card, path_in(NAME), &f->err));
    }
    TRY(card_read_beside(f->card, path_in("model.pte"), &f->err));
    return load(f, path_in("model.pte"));
}

static void labels_may_be_a_file(void **state)
{
    struct fixture f;
    (void)state;
    put_text("names", "a\nb\nc\nd\ne\n");
    assert_ok(f.err, use_folder(&f, "optimum/picture/model", "{\"labels\": \"names\"}"));
    const struct card_labels *labels =
        card_find_labels(f.card, rt_program_default_method(f.program), 0);
    assert_int_equal(labels->count, 5);
    assert_true(span_is(labels->items[4], "e"));
    assert_false(card_is_of_members(f.card, labels));
    card_settle(f.card);
    close_fixture(&f);
}

static void a_file_of_labels_may_be_missing_or_bad(void **state)
{
    struct fixture f;
    char wanted[512];
    (void)state;
    assert_int_equal(use_folder(&f, "optimum/picture/model", "{\"labels\": \"names\"}"),
                     ST_CORRUPT);
    snprintf(wanted, sizeof(wanted), "card.json:1:12: labels: %s/names: ", folder);
    if (strncmp(f.err.text, wanted, strlen(wanted)) != 0) {
        fail_msg("got '%s', expected '%s' in front", f.err.text, wanted);
    }
    close_fixture(&f);
    assert_int_equal(unlink(path_in("model.pte")), 0);
    put_text("names", "a\nb\xff");
    assert_int_equal(use_folder(&f, "optimum/picture/model", "{\"labels\": \"names\"}"),
                     ST_CORRUPT);
    close_fixture(&f);
}

static void a_card_may_be_missing(void **state)
{
    struct fixture f = {.card = card_new()};
    char wanted[256];
    (void)state;
    assert_int_equal(card_read_file(f.card, path_in(NAME), &f.err), ST_NOT_FOUND);
    snprintf(wanted, sizeof(wanted), "card card.json: ");
    if (strncmp(f.err.text, wanted, strlen(wanted)) != 0) {
        fail_msg("got '%s', expected '%s' in front", f.err.text, wanted);
    }
    close_fixture(&f);
}

#define PREPROCESSOR                                                                               \
    "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 16, \"width\": 16}}"
#define CONFIG                                                                                     \
    "{\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\", \"3\": \"d\", \"4\": \"e\"}}"

static void files_of_exporters_are_a_card(void **state)
{
    struct fixture f;
    (void)state;
    put_text("preprocessor_config.json", PREPROCESSOR);
    put_text("config.json", CONFIG);
    assert_true(beside_has_any(path_in("model.pte")));
    assert_ok(f.err, use_folder(&f, "optimum/picture/model", NULL));
    const struct rt_method *method = rt_program_default_method(f.program);
    assert_true(span_is(card_find_labels(f.card, method, 0)->items[1], "b"));
    assert_non_null(card_find_picture(f.card, method));
    assert_int_equal(rt_method_input(method, 0)->dtype, DT_U8); /* its steps are in front */
    assert_int_equal(f.card->note_count, 0);
    close_fixture(&f);
}

/* A card of a person outranks them, member by member. */
static void a_card_outranks_files_of_exporters(void **state)
{
    struct fixture f;
    (void)state;
    put_text("preprocessor_config.json", PREPROCESSOR);
    put_text("config.json", CONFIG);
    assert_ok(f.err, use_folder(&f, "optimum/picture/model", "{\"inputs\": [\"numbers\"]}"));
    const struct rt_method *method = rt_program_default_method(f.program);
    assert_string_equal(rt_method_input(method, 0)->name, "numbers");
    assert_int_equal(rt_method_input(method, 0)->dtype, DT_F32);
    assert_non_null(card_find_labels(f.card, method, 0));
    close_fixture(&f);
    assert_int_equal(unlink(path_in("model.pte")), 0);
    assert_ok(f.err, use_folder(&f, "optimum/picture/model",
                                "{\"methods\": {\"forward\": {\"description\": \"own\"}}}"));
    method = rt_program_default_method(f.program);
    assert_null(card_find_labels(f.card, method, 0)); /* the method has an entry of its own */
    close_fixture(&f);
}

static void bad_files_of_exporters_are_noted(void **state)
{
    struct fixture f;
    (void)state;
    put_text("preprocessor_config.json", "{\"image_processor_type\": ");
    put_text("config.json", "[1, 2");
    put_text("metadata.yaml", "task: [\n");
    put_text("generation_config.json", "{}");
    assert_ok(f.err, use_folder(&f, "optimum/picture/model", NULL));
    assert_int_equal(f.card->note_count, 3);
    assert_int_equal(strncmp(f.card->notes[0].text, "metadata.yaml is left out: ", 27), 0);
    assert_int_equal(strncmp(f.card->notes[1].text, "config.json is left out: ", 25), 0);
    close_fixture(&f);
}

/* What a card says counts, and the file says the rest. */
static void a_card_leaves_defaults_of_generations(void **state)
{
    struct fixture f;
    (void)state;
    put_text("generation_config.json", "{\"temperature\": 0.5, \"top_k\": 7, \"eos_token_id\": 3}");
    assert_ok(f.err, use_folder(&f, "chat/model", "{\"generation\": {\"temperature\": 0.25}}"));
    const struct card_generation *said =
        &card_find_named(f.card, span_str("forward"), true)->generation;
    assert_true(said->temperature == 0.25 && said->top_k == 7);
    assert_true(isnan(said->top_p));
    assert_int_equal(said->end_count, 1);
    assert_int_equal(said->ends[0], 3);
    close_fixture(&f);
}

/* ---- folders of programs --------------------------------------------------------------------- */

static void expect_program(const char *wanted)
{
    char path[256];
    struct error err;
    assert_ok(err, beside_find_program(folder, path, sizeof(path), &err));
    assert_string_equal(path, path_in(wanted));
}

static void a_folder_stands_for_its_program(void **state)
{
    char path[256], small[24];
    struct error err;
    (void)state;
    assert_fails(
        err, beside_find_program(folder, path, sizeof(path), &err), ST_NOT_FOUND,
        ": a folder with no program, expected model.pte or one .pte file in it; --models ");
    assert_string_equal(path, path_in("model.pte"));
    put_text("net.pte", "");
    put_text(".hidden.pte", "");
    put_text("notes", "");
    expect_program("net.pte");
    put_text("decode.pte", "");
    assert_fails(err, beside_find_program(folder, path, sizeof(path), &err), ST_NOT_FOUND,
                 ": a folder with several programs, expected model.pte or one .pte file in it");
    put_text("export.json", "{}");
    expect_program("decode.pte");
    put_text("model.pte", "");
    expect_program("model.pte");
    assert_ok(err, beside_find_program(path_in("net.pte"), path, sizeof(path), &err));
    assert_string_equal(path, path_in("net.pte")); /* a file stands for itself */
    assert_fails(err, beside_find_program(folder, small, sizeof(small), &err), ST_INVALID,
                 "...: the path is too long");
    assert_fails(err, beside_find_program(path_in("net.pte"), small, sizeof(small), &err),
                 ST_INVALID, "...: the path is too long");
}

/* ---- a first card ---------------------------------------------------------------------------- */

/* It has what the files beside say, with their names, and is a card itself. */
static void a_first_card_says_where_facts_come_from(void **state)
{
    struct fixture f, again;
    struct beside beside;
    struct derive derive;
    struct buf text;
    const struct derive_own own = {.has_inputs = false};
    (void)state;
    put_text("preprocessor_config.json", PREPROCESSOR);
    put_text("config.json", CONFIG);
    put_text("generation_config.json", "{\"temperature\": 0.5}");
    assert_ok(f.err, use(&f, "optimum/picture/model", "{}"));
    beside_open(&beside, path_in("model.pte"));
    assert_ok(f.err,
              derive_init(&derive, &beside, &own, rt_program_default_method(f.program), &f.err));
    buf_init(&text, CARD_BYTES_MAX);
    card_print(f.program, &derive, &text);
    buf_add(&text, "", 1);
    const char *card = (const char *)text.ptr;
    assert_non_null(strstr(card, "// preprocessor_config.json: ViTImageProcessor\n"));
    assert_non_null(strstr(card, "// config.json: id2label\n"));
    assert_non_null(strstr(card, "\"labels\": [\"a\", \"b\", \"c\", \"d\", \"e\"]"));
    assert_ok(again.err, use(&again, "optimum/picture/model", card));
    assert_non_null(card_find_picture(again.card, rt_program_default_method(again.program)));
    close_fixture(&again);
    buf_fini(&text);
    derive_fini(&derive);
    beside_close(&beside);
    close_fixture(&f);
}

#define IN_FOLDER(fn) cmocka_unit_test_setup_teardown(fn, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_pictures),
        cmocka_unit_test(pictures_fit_the_program),
        cmocka_unit_test(doubts_about_pictures),
        cmocka_unit_test(members_of_pictures_are_taken),
        cmocka_unit_test(members_of_sounds),
        cmocka_unit_test(members_of_answers),
        cmocka_unit_test(answers_fit_the_program),
        cmocka_unit_test(members_of_answers_are_taken),
        cmocka_unit_test(members_of_methods),
        cmocka_unit_test(methods_are_bounded),
        cmocka_unit_test(steps_of_outputs),
        cmocka_unit_test(first_calls_are_made),
        IN_FOLDER(labels_may_be_a_file),
        IN_FOLDER(a_file_of_labels_may_be_missing_or_bad),
        IN_FOLDER(a_card_may_be_missing),
        IN_FOLDER(files_of_exporters_are_a_card),
        IN_FOLDER(a_card_outranks_files_of_exporters),
        IN_FOLDER(a_card_leaves_defaults_of_generations),
        IN_FOLDER(bad_files_of_exporters_are_noted),
        IN_FOLDER(a_folder_stands_for_its_program),
        IN_FOLDER(a_first_card_says_where_facts_come_from),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
