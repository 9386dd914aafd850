/* SPDX-License-Identifier: MIT */
/* Cards of what exporters write beside a program: which facts are taken from each file, and why
 * others are left out. The files are texts of this test. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/load/load.h"
#include "server/model/card/beside.h"
#include "server/model/card/card.h"
#include "server/model/card/derive.h"
#include "tests/unit/call_support.h"

#define CARD_BYTES 8192

static const struct document_limits limits = {.bytes_max = BESIDE_BYTES_MAX,
                                              .values_max = BESIDE_VALUES_MAX};

static struct hal_device *device;
static struct hal_pool *pool;
static struct rt_program *program;
static const char *program_name = "";

static int open_device(void **state)
{
    (void)state;
    open_two_workers(&device, &pool);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    rt_program_unref(program);
    close_two_workers(device, pool);
    return 0;
}

/* ---- one card -------------------------------------------------------------------------------- */

static const struct rt_method *method_of(const char *name)
{
    if (strcmp(name, program_name) != 0) {
        const struct rt_load_options options = {.device = device, .precision = PRECISION_FAST};
        rt_program_unref(program);
        program = load_model(name, &options);
        program_name = name;
    }
    return rt_program_default_method(program);
}

struct says {
    const char *program;
    const char *files[BESIDE_FILES]; /* JSON; NULL: there is no such file */
    const char *card;                /* "": no fact */
    const char *note;                /* NULL: none */
};

static void check_text(const char *what, const struct says *says, const char *got,
                       const char *wanted)
{
    if (strcmp(got, wanted) != 0) {
        for (int file = 0; file < BESIDE_FILES; file++) {
            print_error("%s\n", says->files[file] ? says->files[file] : "-");
        }
        fail_msg("%s: %s: got\n%s\nexpected\n%s", says->program, what, got, wanted);
    }
}

static void check_own(const struct says *says, const struct derive_own *own)
{
    const struct rt_method *method = method_of(says->program);
    struct beside beside = {.notes = {{.code = ST_OK}}};
    struct derive derive;
    struct error err;
    struct buf out;
    for (int file = 0; file < BESIDE_FILES; file++) {
        if (says->files[file]) {
            assert_ok(err, document_parse(span_str(says->files[file]), &limits, &beside.files[file],
                                          &err));
        }
    }
    assert_ok(err, derive_init(&derive, &beside, own, method, &err));
    buf_init(&out, CARD_BYTES);
    if (derive_has_any(&derive)) {
        derive_print(&derive, method, &out);
    }
    buf_add(&out, "", 1);
    check_text("note", says, derive.note_count ? derive.notes[0].text : "",
               says->note ? says->note : "");
    check_text("card", says, (const char *)out.ptr, says->card);
    buf_fini(&out);
    derive_fini(&derive);
    beside_close(&beside);
}

static void check(const struct says *says, size_t count)
{
    const struct derive_own nothing = {.has_inputs = false};
    for (size_t i = 0; i < count; i++) {
        check_own(&says[i], &nothing);
    }
}

#define CHECK(...)                                                                                 \
    do {                                                                                           \
        static const struct says says[] = {__VA_ARGS__};                                           \
        check(says, sizeof(says) / sizeof(says[0]));                                               \
    } while (0)

/* ---- Ultralytics ----------------------------------------------------------------------------- */

#define DETECT "yolo/detect_executorch_model/model"
#define CLASSIFY "yolo/classify_executorch_model/model"
#define POSE "yolo/pose_executorch_model/model"
#define SEGMENT "yolo/segment_executorch_model/model"
#define OBB "yolo/obb_executorch_model/model"
#define YOLO(text)                                                                                 \
    {                                                                                              \
        [BESIDE_METADATA] = (text)                                                                 \
    }
#define LETTERBOX                                                                                  \
    "\"inputs\": {\"input_0\": {\"image\": {\"resize\": [96, 128], \"fit\": \"letterbox\", "       \
    "\"fill\": 114, \"interpolation\": \"linear\"}}}"
#define BOXES(more)                                                                                \
    "\"outputs\": {\"output_0\": {\"labels\": [\"a\", \"b\", \"c\"], \"answer\": {\"boxes\": "     \
    "{\"form\": \"cxcywh\", \"order\": \"candidates_last\", \"class_count\": 3, " more             \
    "\"score\": 0.25, \"iou\": 0.7, \"count\": 300}}}}"

static void tasks_of_ultralytics(void **state)
{
    (void)state;
    CHECK({DETECT,
           YOLO("{\"task\": \"detect\", \"imgsz\": [96, 128], \"names\": [\"a\", \"b\", \"c\"]}"),
           "{" LETTERBOX ",\n " BOXES("") "}\n", NULL},
          /* the order of names is that of their numbers; spaces behind a description go */
          {DETECT,
           YOLO("{\"task\": \"detect\", \"imgsz\": [96, 128], \"description\": \"boxes  \", "
                "\"names\": {\"2\": \"c\", \"0\": \"a\", \"1\": \"b\"}}"),
           "{\"description\": \"boxes\", " LETTERBOX ",\n " BOXES("") "}\n", NULL},
          {POSE,
           YOLO("{\"task\": \"pose\", \"imgsz\": [96, 128], \"kpt_shape\": [3, 3], \"names\": "
                "[\"a\", \"b\", \"c\"]}"),
           "{" LETTERBOX ",\n " BOXES("\"points\": [3, 3], ") "}\n", NULL},
          {OBB, YOLO("{\"task\": \"obb\", \"imgsz\": [96, 128], \"names\": [\"a\", \"b\", \"c\"]}"),
           "{" LETTERBOX ",\n " BOXES("\"angle\": true, ") "}\n", NULL},
          {SEGMENT,
           YOLO("{\"task\": \"segment\", \"imgsz\": [96, 128], \"names\": [\"a\", \"b\", \"c\"]}"),
           "{" LETTERBOX ",\n " BOXES("\"masks\": \"output_1\", ") "}\n", NULL},
          {CLASSIFY,
           YOLO("{\"task\": \"classify\", \"imgsz\": 64, \"names\": [\"a\", \"b\", \"c\"]}"),
           "{\"inputs\": {\"input_0\": {\"image\": {\"resize\": 64, \"crop\": 64}}},\n "
           "\"outputs\": {\"output_0\": {\"labels\": [\"a\", \"b\", \"c\"]}}}\n",
           NULL});
}

static void what_does_not_fit_ultralytics_is_noted(void **state)
{
    (void)state;
    CHECK({DETECT,
           YOLO("{\"task\": \"detect\", \"imgsz\": [96, 96], \"names\": [\"a\", \"b\", \"c\"]}"),
           "{" BOXES("") "}\n",
           "metadata.yaml: imgsz: pictures of 96 x 96 (height x width), but the program takes 96 x "
           "128"},
          {DETECT,
           YOLO("{\"task\": \"detect\", \"imgsz\": [96], \"names\": [\"a\", \"b\", \"c\"]}"),
           "{" BOXES("") "}\n", "metadata.yaml: imgsz: expected [height, width]"},
          {DETECT, YOLO("{\"task\": \"detect\", \"imgsz\": [96, 128], \"names\": [\"a\"]}"),
           "{" LETTERBOX "}\n",
           "metadata.yaml: task detect with 1 names: expected [1, 5, candidates] as first output"},
          {DETECT,
           YOLO("{\"task\": \"detect\", \"imgsz\": [96, 128], \"end2end\": true, \"names\": "
                "[\"a\", \"b\", \"c\"]}"),
           "{" LETTERBOX "}\n", "metadata.yaml: end2end: its boxes are left as they are"},
          {POSE,
           YOLO("{\"task\": \"pose\", \"imgsz\": [96, 128], \"kpt_shape\": [3, 4], \"names\": "
                "[\"a\", \"b\", \"c\"]}"),
           "{" LETTERBOX "}\n", "metadata.yaml: kpt_shape: expected [points, 2 or 3]"},
          {POSE,
           YOLO("{\"task\": \"pose\", \"imgsz\": [96, 128], \"kpt_shape\": [3, 1], \"names\": "
                "[\"a\", \"b\", \"c\"]}"),
           "{" LETTERBOX "}\n", "metadata.yaml: kpt_shape: expected [points, 2 or 3]"},
          {DETECT,
           YOLO("{\"task\": \"segment\", \"imgsz\": [96, 128], \"names\": [\"a\", \"b\", \"c\"]}"),
           "{" LETTERBOX "}\n",
           "metadata.yaml: expected [1, coefficients, height, width] as second output"},
          {DETECT,
           YOLO("{\"task\": \"classify\", \"imgsz\": [96, 128], \"names\": [\"a\", \"b\", \"c\"]}"),
           "{\"inputs\": {\"input_0\": {\"image\": {\"resize\": [96, 128]}}}}\n",
           "metadata.yaml: expected [n, 3] as first output, one for each name"},
          {DETECT, YOLO("{\"task\": \"depth\", \"names\": [\"a\"]}"), "",
           "metadata.yaml: task 'depth' is not known"},
          {"optimum/text/model", YOLO("{\"task\": \"depth\", \"names\": [\"a\"]}"), "",
           "metadata.yaml: task 'depth' is not known"},
          {"optimum/text/model", YOLO("{\"task\": \"classify\", \"names\": [\"a\"]}"), "",
           "metadata.yaml: the program takes no pictures of 1 or 3 channels"},
          /* files of somebody else */
          {DETECT, YOLO("{\"names\": [\"a\"]}"), "", NULL},
          {DETECT, YOLO("{\"task\": \"detect\"}"), "", NULL},
          {DETECT, YOLO("{\"task\": \"detect\", \"names\": []}"), "", NULL},
          {DETECT, YOLO("{\"task\": \"detect\", \"names\": [1]}"), "", NULL},
          {DETECT, YOLO("{\"task\": \"detect\", \"names\": {\"1\": \"a\"}}"), "", NULL},
          {DETECT, YOLO("{\"task\": \"detect\", \"names\": {\"00\": \"a\"}}"), "", NULL},
          {DETECT, YOLO("{\"task\": \"detect\", \"names\": {\"0\": \"a\", \"0 \": \"b\"}}"), "",
           NULL},
          {DETECT, YOLO("[\"detect\"]"), "", NULL});
}

/* Masks need a picture: the card of the model itself says that there is none. */
static void a_card_of_its_own_outranks_the_file(void **state)
{
    static const struct says says = {
        SEGMENT,
        YOLO("{\"task\": \"segment\", \"imgsz\": [96, 128], \"names\": [\"a\", \"b\", \"c\"]}"),
        "{" LETTERBOX ",\n " BOXES("") "}\n", NULL};
    const struct derive_own own = {.has_inputs = true};
    (void)state;
    check_own(&says, &own);
}

/* ---- Hugging Face ---------------------------------------------------------------------------- */

#define PICTURE "optimum/picture/model"
#define HUB(members)                                                                               \
    {                                                                                              \
        [BESIDE_PREPROCESSOR] = "{" members "}"                                                    \
    }
#define IMAGE(members) "{\"inputs\": {\"input_0\": {\"image\": {" members "}}}}\n"
#define SCALE ", \"scale\": 0.0039215686274509803"
#define HALVES ", \"mean\": [0.5, 0.5, 0.5], \"std\": [0.5, 0.5, 0.5]"
#define SIZE16 ", \"size\": {\"height\": 16, \"width\": 16}"

/* What each class of transformers makes of a size, as its own processor does it
 * (tests/models/hub/pictures.json has the pixels). */
static void classes_of_preprocessors(void **state)
{
    (void)state;
    CHECK(
        {PICTURE, HUB("\"image_processor_type\": \"ViTImageProcessor\"" SIZE16),
         IMAGE("\"resize\": [16, 16], \"interpolation\": \"bilinear\"" SCALE HALVES), NULL},
        {PICTURE, HUB("\"image_processor_type\": \"ViTImageProcessorFast\", \"size\": 16"),
         IMAGE("\"resize\": [16, 16], \"interpolation\": \"bilinear\"" SCALE HALVES), NULL},
        {PICTURE,
         HUB("\"feature_extractor_type\": \"ViTFeatureExtractor\", \"size\": [16, 16], "
             "\"resample\": 3, \"do_normalize\": false"),
         IMAGE("\"resize\": [16, 16], \"interpolation\": \"bicubic\"" SCALE), NULL},
        {PICTURE,
         HUB("\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"shortest_edge\": 20}, "
             "\"crop_size\": 16, \"resample\": 0, \"image_mean\": 0.5, \"image_std\": [0.25]"),
         IMAGE("\"resize\": 20, \"crop\": [16, 16], \"crop_rounding\": \"down\", "
               "\"interpolation\": \"nearest\"" SCALE
               ", \"mean\": [0.5, 0.5, 0.5], \"std\": [0.25, 0.25, 0.25]"),
         NULL},
        /* 18 is the shorter side of the picture before 16 are cut: int(18 / (224 / 256)) = 20 */
        {PICTURE,
         HUB("\"image_processor_type\": \"ConvNextImageProcessor\", \"size\": "
             "{\"shortest_edge\": 16}, \"crop_pct\": 0.8, \"do_normalize\": false"),
         IMAGE("\"resize\": 20, \"crop\": [16, 16], \"crop_rounding\": \"down\", "
               "\"interpolation\": \"bicubic\"" SCALE),
         NULL},
        /* int(256 / 224 * 16) = 18 */
        {PICTURE,
         HUB("\"image_processor_type\": \"LevitImageProcessor\", \"size\": 16, \"crop_size\": 16, "
             "\"do_normalize\": false"),
         IMAGE("\"resize\": 18, \"crop\": [16, 16], \"crop_rounding\": \"down\", "
               "\"interpolation\": \"bicubic\"" SCALE),
         NULL},
        /* int(16 / 0.5) = 32 */
        {PICTURE,
         HUB("\"image_processor_type\": \"PoolFormerImageProcessor\", \"size\": 16, "
             "\"crop_size\": 16, \"crop_pct\": 0.5, \"do_normalize\": false"),
         IMAGE("\"resize\": 32, \"crop\": [16, 16], \"crop_rounding\": \"down\", "
               "\"interpolation\": \"bicubic\"" SCALE),
         NULL},
        /* std divides twice */
        {PICTURE,
         HUB("\"image_processor_type\": \"EfficientNetImageProcessor\", \"size\": 16, "
             "\"image_mean\": [0.25, 0.5, 0.75], \"image_std\": [0.5, 0.25, 1]"),
         IMAGE("\"resize\": [16, 16], \"interpolation\": \"bicubic\"" SCALE
               ", \"mean\": [0.25, 0.5, 0.75], \"std\": [0.25, 0.0625, 1]"),
         NULL},
        {PICTURE,
         HUB("\"image_processor_type\": \"EfficientNetImageProcessor\", \"size\": 16, "
             "\"include_top\": false"),
         IMAGE("\"resize\": [16, 16], \"interpolation\": \"bicubic\"" SCALE HALVES), NULL},
        {PICTURE,
         HUB("\"image_processor_type\": \"MobileViTImageProcessor\", \"size\": 20, "
             "\"crop_size\": {\"height\": 16, \"width\": 16}"),
         IMAGE("\"resize\": 20, \"crop\": [16, 16], \"crop_rounding\": \"down\", "
               "\"interpolation\": \"bicubic\", \"colors\": \"bgr\"" SCALE),
         NULL},
        {PICTURE,
         HUB("\"image_processor_type\": \"MobileViTImageProcessor\", \"size\": 20, "
             "\"crop_size\": 16, \"do_flip_channel_order\": false, \"do_rescale\": false"),
         IMAGE("\"resize\": 20, \"crop\": [16, 16], \"crop_rounding\": \"down\", "
               "\"interpolation\": \"bicubic\", \"scale\": 1"),
         NULL},
        {PICTURE,
         HUB("\"image_processor_type\": \"SiglipImageProcessor\", \"do_resize\": false, "
             "\"rescale_factor\": 0.5"),
         IMAGE("\"interpolation\": \"bicubic\", \"scale\": 0.5" HALVES), NULL});
}

/* transformers 5 nests the preprocessor in a file about all media. */
static void the_preprocessor_may_be_nested(void **state)
{
    (void)state;
    CHECK({PICTURE,
           {[BESIDE_PROCESSOR] = "{\"image_processor\": {\"image_processor_type\": "
                                 "\"ViTImageProcessor\", \"size\": 16}}"},
           IMAGE("\"resize\": [16, 16], \"interpolation\": \"bilinear\"" SCALE HALVES),
           NULL},
          {PICTURE, {[BESIDE_PROCESSOR] = "{\"image_processor\": 3}"}, "", NULL});
}

#define CANNOT_SAY "preprocessor_config.json: ViTImageProcessor with members that no card can say"
#define VIT(members) HUB("\"image_processor_type\": \"ViTImageProcessor\", " members)

static void what_does_not_fit_transformers_is_noted(void **state)
{
    (void)state;
    CHECK(
        {PICTURE, VIT("\"size\": 20"), "",
         "preprocessor_config.json: pictures of 20 x 20 (height x width), but the program takes 16 "
         "x 16"},
        {PICTURE, HUB("\"image_processor_type\": \"ViTImageProcessor\""), "",
         "preprocessor_config.json: pictures of 224 x 224 (height x width), but the program takes "
         "16 x 16"},
        {PICTURE,
         HUB("\"image_processor_type\": \"BitImageProcessor\", \"size\": 20, \"do_center_crop\": "
             "false"),
         "",
         "preprocessor_config.json: the shorter side becomes 20, but the program takes 16 x 16"},
        {PICTURE, VIT("\"size\": {\"longest_edge\": 16}"), "", CANNOT_SAY},
        {PICTURE, VIT("\"size\": {\"shortest_edge\": 16, \"longest_edge\": 20}"), "", CANNOT_SAY},
        {PICTURE,
         VIT("\"size\": 16, \"crop_size\": {\"shortest_edge\": 16}, \"do_center_crop\": "
             "true"),
         "", CANNOT_SAY},
        {PICTURE, VIT("\"size\": 16, \"do_center_crop\": true"), "", CANNOT_SAY},
        {PICTURE, VIT("\"size\": 16, \"resample\": 5"), "", CANNOT_SAY},
        {PICTURE, VIT("\"size\": 16, \"image_std\": 0"), "", CANNOT_SAY},
        {PICTURE, VIT("\"size\": 16, \"image_std\": 1e-39"), "", CANNOT_SAY},
        {PICTURE, VIT("\"size\": 16, \"image_mean\": [0.5, 0.5]"), "", CANNOT_SAY},
        {PICTURE, VIT("\"size\": 16, \"image_mean\": [0.5, 0.5, 0.5, 0.5]"), "", CANNOT_SAY},
        {PICTURE, VIT("\"size\": 16, \"image_mean\": \"half\""), "", CANNOT_SAY},
        {PICTURE, VIT("\"size\": 16, \"rescale_offset\": true"), "", CANNOT_SAY},
        {PICTURE,
         HUB("\"image_processor_type\": \"PoolFormerImageProcessor\", \"size\": 16, "
             "\"crop_pct\": 0"),
         "",
         "preprocessor_config.json: PoolFormerImageProcessor with members that no card can say"},
        {PICTURE, HUB("\"image_processor_type\": \"DonutImageProcessor\""), "",
         "preprocessor_config.json: the class DonutImageProcessor is not known"},
        {PICTURE, HUB("\"image_processor_type\": \"ViTImage\""), "", NULL},
        {PICTURE, HUB("\"feature_extractor_type\": \"WhisperFeatureExtractor\""), "", NULL},
        {PICTURE, HUB("\"image_processor_type\": 3"), "", NULL},
        {"optimum/text/model", VIT("\"size\": 16"), "",
         "preprocessor_config.json: the program takes no pictures of 3 channels"});
}

static void labels_are_those_of_the_config(void **state)
{
    (void)state;
    CHECK({PICTURE,
           {[BESIDE_CONFIG] = "{\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\", "
                              "\"3\": \"d\", \"4\": \"\\\"e\\\"\"}}"},
           "{\"outputs\": {\"output_0\": {\"labels\": [\"a\", \"b\", \"c\", \"d\", "
           "\"\\\"e\\\"\"]}}}\n",
           NULL},
          {PICTURE, {[BESIDE_CONFIG] = "{\"id2label\": {\"0\": \"a\", \"1\": \"b\"}}"}, "", NULL},
          {PICTURE,
           {[BESIDE_CONFIG] = "{\"id2label\": [\"LABEL_0\", \"LABEL_1\", \"LABEL_2\", "
                              "\"LABEL_3\", \"LABEL_4\"]}"},
           "",
           NULL},
          {PICTURE, {[BESIDE_CONFIG] = "{\"id2label\": 5}"}, "", NULL},
          {"unet",
           {[BESIDE_CONFIG] = "{\"id2label\": [\"sky\", \"road\"]}"},
           "{\"outputs\": {\"output_0\": {\"labels\": [\"sky\", \"road\"], \"answer\": "
           "\"map\"}}}\n",
           NULL});
}

/* A map is one of the picture that was sent, if one is sent. */
static void a_map_is_of_the_picture_sent(void **state)
{
    static const struct says says = {"unet",
                                     {[BESIDE_CONFIG] = "{\"id2label\": [\"sky\", \"road\"]}"},
                                     "{\"outputs\": {\"output_0\": {\"labels\": [\"sky\", "
                                     "\"road\"], \"answer\": {\"map\": {\"picture\": \"sent\"}}}}}"
                                     "\n",
                                     NULL};
    const struct derive_own own = {.has_inputs = true, .has_picture = true};
    (void)state;
    check_own(&says, &own);
}

/* Facts of Ultralytics' file are enough; the others are not asked. */
static void one_exporter_is_asked(void **state)
{
    (void)state;
    CHECK({CLASSIFY,
           {[BESIDE_METADATA] =
                "{\"task\": \"classify\", \"imgsz\": 64, \"names\": [\"a\", \"b\", \"c\"]}",
            [BESIDE_CONFIG] = "{\"id2label\": [\"x\", \"y\", \"z\"]}"},
           "{\"inputs\": {\"input_0\": {\"image\": {\"resize\": 64, \"crop\": 64}}},\n "
           "\"outputs\": {\"output_0\": {\"labels\": [\"a\", \"b\", \"c\"]}}}\n",
           NULL},
          {CLASSIFY,
           {[BESIDE_METADATA] = "{\"names\": [\"a\", \"b\", \"c\"]}",
            [BESIDE_CONFIG] = "{\"id2label\": [\"x\", \"y\", \"z\"]}"},
           "{\"outputs\": {\"output_0\": {\"labels\": [\"x\", \"y\", \"z\"]}}}\n",
           NULL});
}

/* ---- generation_config.json ------------------------------------------------------------------ */

#define TEXT "optimum/text/model"
#define CONFIG(members)                                                                            \
    {                                                                                              \
        [BESIDE_GENERATION] = "{" members "}"                                                      \
    }

static void defaults_of_answers(void **state)
{
    (void)state;
    CHECK({TEXT,
           CONFIG("\"temperature\": 0.7, \"top_p\": 0.9, \"top_k\": 20, \"min_p\": 0.05, "
                  "\"repetition_penalty\": 1.1, \"max_new_tokens\": 64, \"eos_token_id\": [2, 7], "
                  "\"do_sample\": true"),
           "{\"generation\": {\"temperature\": 0.7, \"top_p\": 0.9, \"top_k\": 20, \"min_p\": "
           "0.05, \"repetition_penalty\": 1.1, \"max_tokens\": 64, \"stop_token_ids\": [2, 7]}}\n",
           NULL},
          {TEXT, CONFIG("\"eos_token_id\": 3, \"top_k\": null"),
           "{\"generation\": {\"stop_token_ids\": [3]}}\n", NULL},
          {TEXT, CONFIG("\"temperature\": -1, \"top_p\": 0.5"),
           "{\"generation\": {\"top_p\": 0.5}}\n",
           "generation_config.json: temperature: expected a number from 0 to 100"},
          {TEXT, CONFIG("\"top_k\": 1.5"), "",
           "generation_config.json: top_k: expected an integer from 0 to 16777216"},
          {TEXT, CONFIG("\"eos_token_id\": [\"</s>\"]"), "",
           "generation_config.json: eos_token_id: expected up to 32 ids of tokens"},
          {TEXT, CONFIG(""), "", NULL}, {TEXT, {[BESIDE_GENERATION] = "[1]"}, "", NULL},
          {PICTURE, CONFIG("\"temperature\": 0.7"), "", NULL}); /* no language model */
}

static void there_are_not_too_many_notes(void **state)
{
    (void)state;
    CHECK({TEXT,
           CONFIG("\"temperature\": -1, \"top_p\": 2, \"top_k\": -1, \"min_p\": 2, "
                  "\"repetition_penalty\": 0"),
           "", "generation_config.json: temperature: expected a number from 0 to 100"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_ultralytics),
        cmocka_unit_test(what_does_not_fit_ultralytics_is_noted),
        cmocka_unit_test(a_card_of_its_own_outranks_the_file),
        cmocka_unit_test(classes_of_preprocessors),
        cmocka_unit_test(the_preprocessor_may_be_nested),
        cmocka_unit_test(what_does_not_fit_transformers_is_noted),
        cmocka_unit_test(labels_are_those_of_the_config),
        cmocka_unit_test(a_map_is_of_the_picture_sent),
        cmocka_unit_test(one_exporter_is_asked),
        cmocka_unit_test(defaults_of_answers),
        cmocka_unit_test(there_are_not_too_many_notes),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
