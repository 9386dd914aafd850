/* SPDX-License-Identifier: MIT */
/*
 * What bodies and answers consist of beside JSON: tensors behind it, files, forms, texts, classes,
 * boxes, shared memory; sequences, profiles and statistics. The methods of tests/models/media give
 * back what they are given, and boxes are those of PyTorch (tests/http/answers.json).
 */
#include "config.h"

#include "tests/unit/infer_support.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cJSON.h>

#include "protocol/base64.h"
#include "server/daemon/infer/bundle.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer_one.h"
#include "server/daemon/infer/stats.h"
#include "server/media/libpng.h"
#include "tests/unit/unit.h"

#define PATH_BYTES_MAX 4096
#define BODY_BYTES_MAX (1 << 16)

static struct world world;
static char folder[] = "/tmp/pted-test-codecs-XXXXXX";
static bool is_able; /* libpng is there */

/* ---- models with cards ----------------------------------------------------------------------- */

static const char media_card[] = "{\"methods\":{\"pixels\":{\"inputs\":[{\"name\":\"picture\","
                                 "\"image\":{\"resize\":[4,6],\"layout\":\"nhwc\"}}]}}}";
static const char text_card[] =
    "{\"inputs\":{\"input_ids\":{\"text\":{\"tokenizer\":\"tokenizer.json\","
    "\"mask\":\"attention_mask\",\"types\":\"token_type_ids\"}}}}";
static const char answer_card[] =
    "{\"methods\":{\"joined\":{\"outputs\":[{\"name\":\"found\",\"labels\":[\"cat\",\"dog\","
    "\"bird\"],\"answer\":{\"boxes\":{}}}]}}}";

static void path_of(char *out, const char *name, const char *file)
{
    snprintf(out, PATH_BYTES_MAX, "%s/%s/%s", folder, name, file);
}

/* A folder |name| with |program| of tests/models, a card, and a tokenizer if |has_words|. */
static void add_model(const char *name, const char *program, const char *card, bool has_words)
{
    const char *top = getenv("top_srcdir");
    char path[PATH_BYTES_MAX], target[PATH_BYTES_MAX];
    char *here = realpath(top ? top : "..", NULL);
    assert_non_null(here);
    path_of(path, name, "");
    assert_int_equal(mkdir(path, 0700), 0);
    path_of(path, name, "model.pte");
    snprintf(target, sizeof(target), "%s/tests/models/%s", here, program);
    assert_int_equal(symlink(target, path), 0);
    path_of(path, name, "model.card.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(card, file);
    fclose(file);
    if (has_words) {
        path_of(path, name, "tokenizer.json");
        snprintf(target, sizeof(target), "%s/tests/models/encoder/tokenizer.json", here);
        assert_int_equal(symlink(target, path), 0);
    }
    free(here);
}

static void remove_model(const char *name)
{
    static const char *const files[] = {"model.pte", "model.card.json", "tokenizer.json", ""};
    char path[PATH_BYTES_MAX];
    for (int i = 0; i < 4; i++) {
        path_of(path, name, files[i]);
        if (remove(path) != 0) {
            assert_string_equal(files[i], "tokenizer.json");
        }
    }
}

static int open_world(void **state)
{
    static const char *const models[] = {"add=add.pte", "digits=digits.pte", "running=running.pte",
                                         "scalars=scalars.pte", NULL};
    char paths[3][PATH_BYTES_MAX + 64];
    const struct libpng *libpng;
    struct error err;
    (void)state;
    is_able = libpng_load(&libpng, &err) == ST_OK;
    assert_non_null(mkdtemp(folder));
    add_model("media", "media/model.pte", media_card, false);
    add_model("texts", "encoder/model.pte", text_card, true);
    add_model("answers", "answers.pte", answer_card, false);
    snprintf(paths[0], sizeof(paths[0]), "--model=media=%s/media/model.pte", folder);
    snprintf(paths[1], sizeof(paths[1]), "--model=texts=%s/texts/model.pte", folder);
    snprintf(paths[2], sizeof(paths[2]), "--model=answers=%s/answers/model.pte", folder);
    const char *const options[] = {"--shared-memory=loopback",
                                   "--profile-spans-max=10000",
                                   paths[0],
                                   paths[1],
                                   paths[2],
                                   NULL};
    world_open(&world, models, options);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    world_close(&world);
    remove_model("media");
    remove_model("texts");
    remove_model("answers");
    assert_int_equal(rmdir(folder), 0);
    return 0;
}

/* ---- requests and answers -------------------------------------------------------------------- */

static void begin(const char *name, const char *query, const struct codec *codec, struct span body)
{
    int status = world_begin(&world, name, query, &infer_one_ops, codec);
    if (status != 200) {
        fail_msg("%d %s", status, world.err.text);
    }
    world_receive(&world, body);
}

static void go(const char *what)
{
    if (world_go(&world) != OUTCOME_DONE) {
        fail_msg("%s: %s", what, world.err.text);
    }
}

static cJSON *answer(void)
{
    struct span text = world_answer(&world);
    cJSON *json = cJSON_ParseWithLength((const char *)text.ptr, text.len);
    assert_non_null(json);
    return json;
}

static void expect_refused(const char *name, const struct codec *codec, struct span body,
                           const char *text)
{
    begin(name, "", codec, body);
    assert_int_equal(world_go(&world), OUTCOME_FAILED);
    if (!strstr(world.err.text, text)) {
        fail_msg("'%s', expected '%s'", world.err.text, text);
    }
    world_end(&world, 400);
}

/* All numbers of |json|, which may be nested, one after the other; returns how many. */
static int numbers_of(const cJSON *json, double *out, int max)
{
    if (cJSON_IsNumber(json)) {
        assert_true(max > 0);
        *out = json->valuedouble;
        return 1;
    }
    int count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, json)
    {
        count += numbers_of(item, out + count, max - count);
    }
    return count;
}

/* ---- tensors behind the JSON ----------------------------------------------------------------- */

static const float tensor[6] = {1, 2, 3, 4, 5, 6};

/* |head| with the bytes of the numbers |six| behind it, twice. */
static void begin_binary(const char *query, const struct codec *codec, const char *head,
                         const float *six)
{
    struct buf body;
    char length[32];
    buf_init(&body, BODY_BYTES_MAX);
    buf_add_str(&body, head);
    for (int i = 0; i < 2; i++) {
        buf_add(&body, six, sizeof(tensor));
    }
    snprintf(length, sizeof(length), "%zu", strlen(head));
    world_add_field(&world, "Inference-Header-Content-Length", length);
    begin("add", query, codec, buf_span(&body));
    buf_fini(&body);
}

/* The bytes at the end of the answer are twice |tensor|. */
static void expect_doubled(void)
{
    struct span all = world_answer(&world);
    float got[6];
    assert_true(world.infer.encoded.has_binary && all.len > sizeof(got));
    memcpy(got, all.ptr + all.len - sizeof(got), sizeof(got));
    for (int i = 0; i < 6; i++) {
        assert_true(got[i] == 2 * tensor[i]);
    }
}

#define BINARY(name, size)                                                                         \
    "{\"name\":\"" name "\",\"datatype\":\"FP32\",\"shape\":[2,3],\"parameters\":"                 \
    "{\"binary_data_size\":" size "}}"

static void tensors_lie_behind_the_text(void **state)
{
    (void)state;
    begin_binary("", &codec_oip,
                 "{\"inputs\":[" BINARY("input_0", "24") "," BINARY(
                     "input_1", "24") "],"
                                      "\"parameters\":{\"binary_data_output\":true}}",
                 tensor);
    go("binary");
    expect_doubled();
    assert_true(infer_hand_over(&world.infer)); /* the pool of clients holds it now */
    expect_doubled();
    world_end(&world, 200);
    begin_binary("?binary=1", &codec_call,
                 "{\"args\":[{\"dtype\":\"float32\",\"shape\":[2,3],\"binary_data_size\":24},{"
                 "\"dtype\":\"float32\",\"shape\":[2,3],\"binary_data_size\":24}]}",
                 tensor);
    go("binary call");
    expect_doubled();
    world_end(&world, 200);
}

#define BY_COLUMN(name)                                                                            \
    "{\"name\":\"" name "\",\"datatype\":\"FP32\",\"shape\":[2,3],\"parameters\":"                 \
    "{\"binary_data_size\":24,\"strides\":[4,8]}}"

static void tensors_may_lie_in_another_order(void **state)
{
    static const float columns[6] = {1, 4, 2, 5, 3, 6};
    (void)state;
    begin_binary("?binary=1", &codec_oip,
                 "{\"inputs\":[" BY_COLUMN("input_0") "," BY_COLUMN("input_1") "]}", columns);
    go("strides");
    expect_doubled();
    world_end(&world, 200);
}

#define SCALARS(count, scale)                                                                      \
    "{\"inputs\":[{\"name\":\"input_0\",\"shape\":[6],\"datatype\":\"FP32\",\"data\":[1,2,3,4,5,"  \
    "6]},{\"name\":\"input_1\",\"shape\":[],\"datatype\":\"INT64\",\"data\":[" count "]},"         \
    "{\"name\":\"input_2\",\"shape\":[],\"datatype\":\"FP64\",\"data\":[" scale "]},"              \
    "{\"name\":\"input_3\",\"shape\":[],\"datatype\":\"BOOL\",\"data\":[true]},"                   \
    "{\"name\":\"input_5\",\"shape\":[],\"datatype\":\"FP32\",\"data\":[1]}]}"

/* A number that the exporter has fixed may be given with its value, and no other. */
static void fixed_scalars_have_one_value(void **state)
{
    (void)state;
    begin("scalars", "", &codec_oip, span_str(SCALARS("4", "0.5")));
    go("scalars");
    world_end(&world, 200);
    expect_refused("scalars", &codec_oip, span_str(SCALARS("5", "0.5")), "inputs[1] 'input_1'");
    expect_refused("scalars", &codec_oip, span_str(SCALARS("4", "0.75")), "inputs[2] 'input_2'");
}

static void tensors_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *head, *text;
    } rows[] = {
        {"{\"inputs\":[" BINARY("input_0", "24") "," BINARY("input_1", "20") "]}", "20"},
        {"{\"inputs\":[" BINARY("input_0", "24") "," BINARY("input_1", "999") "]}", ""},
        {"{\"inputs\":[" BINARY("input_0", "24") "]}", ""},
        {"{\"inputs\":[" BINARY("input_0", "24") "," BINARY("input_0", "24") "]}",
         "inputs[1]: repeats the name of inputs[0]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin_binary("", &codec_oip, rows[i].head, tensor);
        assert_int_equal(world_go(&world), OUTCOME_FAILED);
        assert_int_equal(world.err.code, ST_INVALID);
        if (!strstr(world.err.text, rows[i].text)) {
            fail_msg("%s: '%s'", rows[i].head, world.err.text);
        }
        world_end(&world, 400);
    }
}

/* ---- pictures -------------------------------------------------------------------------------- */

static void put_u32(struct buf *out, uint32_t value)
{
    const uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                              (uint8_t)value};
    buf_add(out, bytes, sizeof(bytes));
}

/* The tail of a gzip stream has the checksum that chunks of PNG have. */
static void put_chunk(struct buf *out, const char *kind, struct span data)
{
    struct buf packed;
    struct error err;
    const struct span parts[2] = {span_str(kind), data};
    buf_init(&packed, BODY_BYTES_MAX);
    assert_ok(err, coding_deflate(CODING_GZIP, parts, 2, &packed, &err));
    const uint8_t *tail = packed.ptr + packed.len - 8;
    put_u32(out, (uint32_t)data.len);
    buf_add_str(out, kind);
    buf_add(out, data.ptr, data.len);
    put_u32(out,
            tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24);
    buf_fini(&packed);
}

static int color_of(int seed, int index)
{
    return (seed * 41 + index * 7) % 256;
}

/* Four rows of six pixels; to be finished. */
static void make_png(struct buf *out, int seed)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const uint8_t head[13] = {0, 0, 0, 6, 0, 0, 0, 4, 8, 2, 0, 0, 0};
    uint8_t rows[4 * (1 + 18)] = {0};
    struct buf packed;
    struct error err;
    for (int i = 0; i < 72; i++) {
        rows[i / 18 * 19 + 1 + i % 18] = (uint8_t)color_of(seed, i);
    }
    const struct span all = span_of(rows, sizeof(rows));
    buf_init(out, BODY_BYTES_MAX);
    buf_init(&packed, BODY_BYTES_MAX);
    assert_ok(err, coding_deflate(CODING_DEFLATE, &all, 1, &packed, &err));
    buf_add(out, signature, sizeof(signature));
    put_chunk(out, "IHDR", span_of(head, sizeof(head)));
    put_chunk(out, "IDAT", buf_span(&packed));
    put_chunk(out, "IEND", span_str(""));
    buf_fini(&packed);
}

/* The numbers of the answer are the pixels of pictures |first|, |first| + 1 and so on. */
static void expect_pixels(const char *member, int first, int count)
{
    double got[72 * 4];
    cJSON *json = answer();
    assert_int_equal(numbers_of(cJSON_GetObjectItem(json, member), got, 72 * 4), 72 * count);
    for (int i = 0; i < 72 * count; i++) {
        assert_int_equal((int)got[i], color_of(first + i / 72, i % 72));
    }
    cJSON_Delete(json);
    world_end(&world, 200);
}

static void a_file_is_a_body(void **state)
{
    struct buf png;
    (void)state;
    if (!is_able) {
        skip();
    }
    make_png(&png, 1);
    world_add_field(&world, "Content-Type", "image/png");
    begin("media.pixels", "", &codec_call, buf_span(&png));
    go("a picture");
    expect_pixels("result", 1, 1);
    world_add_field(&world, "Content-Type", "application/octet-stream");
    begin("media.pixels", "", &codec_oip, buf_span(&png));
    go("bytes");
    assert_true(world_says(&world, "\"shape\":[1,4,6,3]"));
    world_end(&world, 200);
    world_add_field(&world, "Content-Type", "image/png");
    expect_refused("media.pixels", &codec_call, span_of(png.ptr, 40), "PNG");
    buf_fini(&png);
}

static void begin_base64(const struct codec *codec, const char *before, int count,
                         const char *behind)
{
    struct buf body, png;
    buf_init(&body, BODY_BYTES_MAX);
    buf_add_str(&body, before);
    for (int i = 0; i < count; i++) {
        make_png(&png, i);
        buf_add_str(&body, i ? ",\"" : "\"");
        base64_print(&body, buf_span(&png));
        buf_add_char(&body, '"');
        buf_fini(&png);
    }
    buf_add_str(&body, behind);
    begin("media.pixels", "", codec, buf_span(&body));
    buf_fini(&body);
}

/* Several files are read by threads, in any order. */
static void files_in_base64_are_rows(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    begin_base64(&codec_call, "{\"args\":[[", 1, "]]}");
    go("one");
    expect_pixels("result", 0, 1);
    begin_base64(&codec_call, "{\"args\":[[", 4, "]]}");
    go("four");
    expect_pixels("result", 0, 4);
    begin_base64(&codec_oip,
                 "{\"inputs\":[{\"name\":\"picture\",\"datatype\":\"BYTES\","
                 "\"shape\":[3],\"data\":[",
                 3, "]}]}");
    go("strings");
    assert_true(world_says(&world, "\"shape\":[3,4,6,3]"));
    world_end(&world, 200);
    begin_base64(&codec_call, "{\"args\":[[", 2, ",\"!!!!\"]]}");
    assert_int_equal(world_go(&world), OUTCOME_FAILED);
    assert_non_null(strstr(world.err.text, "args[0][2]: malformed base64"));
    world_end(&world, 400);
    begin_base64(&codec_call, "{\"args\":[[", 2, ",\"AAAA\"]]}");
    assert_int_equal(world_go(&world), OUTCOME_FAILED);
    assert_non_null(strstr(world.err.text, "args[0][2]"));
    world_end(&world, 400);
    expect_refused("media.pixels", &codec_call, span_str("{\"args\":[\"https://a/b.png\"]}"),
                   "expected a file in base64, got a URL");
    expect_refused("media.pixels", &codec_call, span_str("{\"args\":[true]}"),
                   "or a file in base64");
}

static void add_field(struct buf *body, const char *name, bool is_file, struct span data)
{
    buf_printf(body, "--xx\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n\r\n", name,
               is_file ? "; filename=\"f\"" : "");
    buf_add(body, data.ptr, data.len);
    buf_add_str(body, "\r\n");
}

/* Fields, which are files if they say "png"; the last name is NULL. */
static void begin_form(const char *model, const struct codec *codec, const char *const *fields)
{
    struct buf body, png;
    make_png(&png, 2);
    buf_init(&body, BODY_BYTES_MAX);
    for (int i = 0; fields[i]; i += 2) {
        bool is_file = strcmp(fields[i + 1], "png") == 0;
        add_field(&body, fields[i], is_file, is_file ? buf_span(&png) : span_str(fields[i + 1]));
    }
    buf_add_str(&body, "--xx--\r\n");
    world_add_field(&world, "Content-Type", "multipart/form-data; boundary=xx");
    begin(model, "", codec, buf_span(&body));
    buf_fini(&body);
    buf_fini(&png);
}

static void a_form_has_a_field_for_each_input(void **state)
{
    static const char *const two[] = {"picture", "png", "picture", "png", NULL};
    static const char *const both[] = {"picture", "png", "parameters", "{\"priority\":2}", NULL};
    static const struct {
        const char *fields[5], *text;
    } wrong[] = {
        {{"cat", "png", NULL}, "no input 'cat'"},
        {{"parameters", "{}", NULL}, "missing"},
        {{"picture", "png", "parameters", "[", NULL},
         "field 'parameters': expected an object, got an array"},
    };
    (void)state;
    if (!is_able) {
        skip();
    }
    begin_form("media.pixels", &codec_oip, two);
    go("two rows");
    assert_true(world_says(&world, "\"shape\":[2,4,6,3]"));
    world_end(&world, 200);
    begin_form("media.pixels", &codec_call, both);
    go("with parameters");
    assert_int_equal(world.infer.priority, 2);
    expect_pixels("result", 2, 1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        begin_form("media.pixels", &codec_call, wrong[i].fields);
        assert_int_equal(world_go(&world), OUTCOME_FAILED);
        if (!strstr(world.err.text, wrong[i].text)) {
            fail_msg("'%s', expected '%s'", world.err.text, wrong[i].text);
        }
        world_end(&world, 400);
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* A text gives what its ids, mask and types give. */
static void a_text_is_an_input(void **state)
{
    double by_text[2048], by_ids[2048];
    (void)state;
    begin("texts", "", &codec_call,
          span_str("{\"kwargs\":{\"input_ids\":\"The cat sat on the mat.\"}}"));
    go("a text");
    cJSON *json = answer();
    int count = numbers_of(cJSON_GetObjectItem(json, "result"), by_text, 2048);
    cJSON_Delete(json);
    world_end(&world, 200);
    begin("texts", "", &codec_call,
          span_str("{\"kwargs\":{\"input_ids\":[[2,48,64,83,81,48,79,7,3]],"
                   "\"attention_mask\":[[1,1,1,1,1,1,1,1,1]],"
                   "\"token_type_ids\":[[0,0,0,0,0,0,0,0,0]]}}"));
    go("ids");
    json = answer();
    assert_int_equal(numbers_of(cJSON_GetObjectItem(json, "result"), by_ids, 2048), count);
    cJSON_Delete(json);
    world_end(&world, 200);
    assert_true(count > 0);
    assert_memory_equal(by_text, by_ids, (size_t)count * sizeof(double));
    world_add_field(&world, "Content-Type", "text/plain");
    begin("texts", "", &codec_oip, span_str("The cat sat on the mat."));
    go("a body of text");
    assert_true(world_says(&world, "\"outputs\":["));
    world_end(&world, 200);
}

/* ---- answers for people ---------------------------------------------------------------------- */

static void classes_are_the_best_ones(void **state)
{
    struct buf body;
    double scores[20];
    int best = 0;
    (void)state;
    buf_init(&body, BODY_BYTES_MAX);
    buf_add_str(&body, "{\"inputs\":[{\"name\":\"input_0\",\"datatype\":\"FP32\",\"shape\":[1,1,8,"
                       "8],\"data\":[");
    for (int i = 0; i < 64; i++) {
        buf_printf(&body, "%s%d", i ? "," : "", i * 5 % 16);
    }
    buf_add_str(&body, "]}]}");
    begin("digits", "", &codec_oip, buf_span(&body));
    go("scores");
    cJSON *json = answer();
    const cJSON *output = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "outputs"), 0);
    assert_int_equal(numbers_of(cJSON_GetObjectItem(output, "data"), scores, 20), 10);
    cJSON_Delete(json);
    world_end(&world, 200);
    for (int i = 1; i < 10; i++) {
        best = scores[i] > scores[best] ? i : best;
    }
    begin("digits", "?top_k=2", &codec_oip, buf_span(&body));
    go("classes");
    json = answer();
    output = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "outputs"), 0);
    const cJSON *texts = cJSON_GetObjectItem(output, "data");
    assert_int_equal(cJSON_GetArraySize(texts), 2);
    char *rest, *first = cJSON_GetStringValue(cJSON_GetArrayItem(texts, 0));
    assert_true(fabs(strtod(first, &rest) - scores[best]) < 1e-4);
    assert_int_equal(strtol(rest + 1, NULL, 10), best);
    cJSON_Delete(json);
    world_end(&world, 200);
    buf_fini(&body);
}

/* [1, 7, n]: four sides, then the scores of three classes, of each candidate. */
static char *boxes_body(const cJSON *given)
{
    const cJSON *boxes = cJSON_GetObjectItem(given, "boxes");
    const cJSON *scores = cJSON_GetObjectItem(given, "scores");
    struct buf body;
    buf_init(&body, BODY_BYTES_MAX);
    buf_add_str(&body, "{\"args\":[[[");
    for (int row = 0; row < 7; row++) {
        buf_add_str(&body, row ? ",[" : "[");
        for (int i = 0; i < cJSON_GetArraySize(boxes); i++) {
            const cJSON *from = cJSON_GetArrayItem(row < 4 ? boxes : scores, i);
            buf_printf(&body, "%s%.17g", i ? "," : "",
                       cJSON_GetArrayItem(from, row < 4 ? row : row - 4)->valuedouble);
        }
        buf_add_char(&body, ']');
    }
    buf_add_str(&body, "]]]}");
    char *text = strndup((const char *)body.ptr, body.len);
    buf_fini(&body);
    return text;
}

static void boxes_are_those_of_pytorch(void **state)
{
    cJSON *cases = world_read_json("../http/answers.json");
    const cJSON *given = cJSON_GetObjectItem(cases, "cxcywh");
    const cJSON *wanted = cJSON_GetObjectItem(given, "usual");
    char *body = boxes_body(given);
    (void)state;
    begin("answers.joined", "", &codec_call, span_str(body));
    go("boxes");
    cJSON *json = answer();
    const cJSON *found = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "result"), 0);
    assert_int_equal(cJSON_GetArraySize(found), cJSON_GetArraySize(wanted));
    for (int i = 0; i < cJSON_GetArraySize(found); i++) {
        const cJSON *mine = cJSON_GetArrayItem(found, i), *right = cJSON_GetArrayItem(wanted, i);
        double score = cJSON_GetObjectItem(right, "score")->valuedouble;
        assert_int_equal(cJSON_GetObjectItem(mine, "index")->valueint,
                         cJSON_GetObjectItem(right, "index")->valueint);
        assert_true(fabs(cJSON_GetObjectItem(mine, "score")->valuedouble - score) < 1e-4);
    }
    cJSON_Delete(json);
    world_end(&world, 200);
    cJSON_Delete(cases);
    free(body);
}

/* ---- shared memory --------------------------------------------------------------------------- */

#define SHARED(name, region)                                                                       \
    "{\"name\":\"" name "\",\"datatype\":\"FP32\",\"shape\":[2,3],\"parameters\":"                 \
    "{\"shared_memory_region\":\"" region "\",\"shared_memory_byte_size\":24}}"
#define SHARED_BODY(region)                                                                        \
    "{\"inputs\":[" SHARED("input_0", region) "," SHARED(                                          \
        "input_1", region) "],"                                                                    \
                           "\"outputs\":[{\"name\":\"output_0\",\"parameters\":{\"shared_memory_"  \
                           "region\":\"out\","                                                     \
                           "\"shared_memory_byte_size\":24,\"shared_memory_offset\":8}}]}"

static void tensors_lie_in_shared_memory(void **state)
{
    char key[64];
    struct oip_region order = {.bytes = 4096};
    struct error err;
    (void)state;
    snprintf(key, sizeof(key), "/pted-test-codecs-%ld", (long)getpid());
    int fd = shm_open(key, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0) {
        skip();
    }
    assert_int_equal(ftruncate(fd, 4096), 0);
    float *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(memory != MAP_FAILED);
    memcpy(memory, tensor, sizeof(tensor));
    order.key = span_str(key);
    assert_ok(err, regions_register(&world.regions, "in", &order, &err));
    order.offset = 1024;
    order.bytes = 1024;
    assert_ok(err, regions_register(&world.regions, "out", &order, &err));
    assert_fails(err, regions_register(&world.regions, "out", &order, &err), ST_INVALID, "out");
    assert_int_equal(regions_load(&world.regions).count, 2);

    expect_refused("add", &codec_oip, span_str(SHARED_BODY("in")), "shared memory");
    world.client.is_local = true;
    begin("add", "", &codec_oip, span_str(SHARED_BODY("in")));
    go("regions");
    assert_false(world_says(&world, "\"data\""));
    for (int i = 0; i < 6; i++) {
        assert_true(memory[(1024 + 8) / 4 + i] == 2 * tensor[i]);
    }
    world_end(&world, 200);
    expect_refused("add", &codec_oip, span_str(SHARED_BODY("nobody")), "nobody");
    world.client.is_local = false;

    struct buf out;
    buf_init(&out, BODY_BYTES_MAX);
    assert_ok(err, regions_print(&world.regions, "", &out, &err));
    assert_non_null(memmem(out.ptr, out.len, "\"name\":\"in\"", 11));
    assert_fails(err, regions_print(&world.regions, "nobody", &out, &err), ST_NOT_FOUND, "nobody");
    buf_fini(&out);
    regions_unregister(&world.regions, "");
    assert_int_equal(regions_load(&world.regions).count, 0);
    munmap(memory, 4096);
    close(fd);
    shm_unlink(key);
}

/* ---- sequences ------------------------------------------------------------------------------- */

#define COUNT(parameters) "{\"args\":[[1,2,3]],\"parameters\":{" parameters "}}"

/* The model counts the calls of a sequence. */
static void expect_count(const char *body, int wanted)
{
    double numbers[4];
    begin("running", "", &codec_call, span_str(body));
    go(body);
    cJSON *json = answer();
    const cJSON *count = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "result"), 1);
    assert_int_equal(numbers_of(count, numbers, 4), 1);
    assert_int_equal((int)numbers[0], wanted);
    cJSON_Delete(json);
    world_end(&world, 200);
}

static void a_sequence_remembers(void **state)
{
    (void)state;
    expect_count(COUNT("\"sequence_id\":1,\"sequence_start\":true"), 1);
    expect_count(COUNT("\"sequence_id\":\"b\",\"sequence_start\":true"), 1);
    expect_count(COUNT("\"sequence_id\":1"), 2);
    expect_count(COUNT("\"sequence_id\":1,\"sequence_end\":true"), 3);
    expect_count(COUNT("\"sequence_id\":\"b\",\"sequence_end\":true"), 2);
    expect_count(COUNT(""), 1);
    expect_refused("running", &codec_call, span_str(COUNT("\"sequence_id\":1")),
                   "parameters.sequence_id: ");
    expect_refused("running", &codec_call, span_str(COUNT("\"sequence_start\":true")),
                   "parameters.sequence_start: sequence_id is missing");
}

/* A list obeys the order of its calls. */
static void a_list_has_sequences(void **state)
{
    static const char body[] =
        "[{\"model_name\":\"running\",\"args\":[[1,2,3]],\"parameters\":{\"sequence_id\":7,"
        "\"sequence_start\":true}},"
        "{\"model_name\":\"running\",\"args\":[[1,2,3]],\"parameters\":{\"sequence_id\":7,"
        "\"sequence_end\":true}},"
        "{\"model_name\":\"running\",\"args\":[[1,2,3]],\"parameters\":{\"sequence_id\":7}}]";
    (void)state;
    assert_int_equal(world_ask(&world, "", "", &bundle_ops, &codec_oip, body), OUTCOME_DONE);
    cJSON *json = answer();
    for (int i = 0; i < 2; i++) {
        const cJSON *result = cJSON_GetObjectItem(cJSON_GetArrayItem(json, i), "result");
        double count[1];
        assert_int_equal(numbers_of(cJSON_GetArrayItem(result, 1), count, 1), 1);
        assert_int_equal((int)count[0], i + 1);
    }
    assert_non_null(
        strstr(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(json, 2), "error")),
               "is the last one of this sequence"));
    cJSON_Delete(json);
    world_end(&world, 200);
}

/* ---- profiles and statistics ----------------------------------------------------------------- */

#define ARGS "{\"args\":[[[1,2,3],[4,5,6]],[[10,20,30],[40,50,60]]]}"

static void a_profile_is_in_the_answer(void **state)
{
    (void)state;
    begin("add", "?profile=1", &codec_call, span_str(ARGS));
    go("a profile");
    assert_true(atomic_load(&world.env.is_profiling));
    cJSON *json = answer();
    const cJSON *profile = cJSON_GetObjectItem(json, "profile");
    assert_int_equal(cJSON_GetObjectItem(profile, "workers")->valueint, 1);
    assert_true(cJSON_GetObjectItem(profile, "call_us")->valuedouble > 0);
    cJSON_Delete(json);
    world_end(&world, 200);
    assert_false(atomic_load(&world.env.is_profiling));
    atomic_store(&world.env.is_profiling, true);
    begin("add", "?profile=1", &codec_call, span_str(ARGS));
    assert_int_equal(world_go(&world), OUTCOME_FAILED);
    assert_non_null(strstr(world.err.text, "another call is being profiled"));
    world_end(&world, 429);
    atomic_store(&world.env.is_profiling, false);
}

static void statistics_are_json(void **state)
{
    struct model *model = world_model(&world, "add");
    struct buf out;
    (void)state;
    begin("add", "", &codec_call, span_str(ARGS));
    go("a call");
    world_end(&world, 200);
    buf_init(&out, BODY_BYTES_MAX);
    stats_print(&out, model);
    cJSON *json = cJSON_ParseWithLength((const char *)out.ptr, out.len);
    assert_non_null(json);
    const cJSON *phases = cJSON_GetObjectItem(json, "inference_stats");
    const cJSON *ok = cJSON_GetObjectItem(cJSON_GetObjectItem(phases, "success"), "count");
    assert_int_equal(ok->valueint, (int)model->stats->ok.count);
    assert_true(cJSON_GetObjectItem(json, "last_inference")->valuedouble > 0);
    cJSON_Delete(json);
    buf_reset(&out);
    stats_print_memory(&out, world.serving, 3);
    json = cJSON_ParseWithLength((const char *)out.ptr, out.len);
    assert_int_equal(cJSON_GetObjectItem(json, "evicted")->valueint, 3);
    assert_true(cJSON_GetObjectItem(json, "bytes")->valuedouble > 0);
    cJSON_Delete(json);
    buf_fini(&out);
    model_unref(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_lie_behind_the_text),
        cmocka_unit_test(tensors_may_lie_in_another_order),
        cmocka_unit_test(fixed_scalars_have_one_value),
        cmocka_unit_test(tensors_that_do_not_fit_are_refused),
        cmocka_unit_test(a_file_is_a_body),
        cmocka_unit_test(files_in_base64_are_rows),
        cmocka_unit_test(a_form_has_a_field_for_each_input),
        cmocka_unit_test(a_text_is_an_input),
        cmocka_unit_test(classes_are_the_best_ones),
        cmocka_unit_test(boxes_are_those_of_pytorch),
        cmocka_unit_test(tensors_lie_in_shared_memory),
        cmocka_unit_test(a_sequence_remembers),
        cmocka_unit_test(a_list_has_sequences),
        cmocka_unit_test(a_profile_is_in_the_answer),
        cmocka_unit_test(statistics_are_json),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
