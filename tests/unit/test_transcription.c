/* SPDX-License-Identifier: MIT */
/*
 * Requests to speech models, with a tiny model whose words are tones (tests/http/tones.py). Its
 * answers are those of transformers (tests/models/whisper/answers.json, contrib/export/whisper.py).
 */
#include "config.h"

#include "tests/unit/infer_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cJSON.h>

#include "runtime/sched/sequence.h"
#include "server/daemon/generation/transcription_priv.h"
#include "server/language/transcriber.h"
#include "server/media/sndfile.h"
#include "server/media/soxr.h"
#include "tests/unit/unit.h"

#define RATE 16000
#define SAMPLES_MAX (RATE * 12)
#define HEAD_BYTES 44
#define WORDS_MAX 3

static struct world world;
static cJSON *answers; /* of transformers */
static bool is_able;   /* libsndfile and libsoxr are there */

static int open_world(void **state)
{
    static const char *const models[] = {"whisper=whisper/model.pte", "add=add.pte", NULL};
    static const char *const options[] = {"--sound-seconds-max=12", NULL};
    const struct sndfile *sndfile;
    const struct soxr_library *soxr;
    struct error err;
    (void)state;
    is_able = sndfile_load(&sndfile, &err) == ST_OK && soxr_load(&soxr, &err) == ST_OK;
    world_open(&world, models, options);
    answers = world_read_json("whisper/answers.json");
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    cJSON_Delete(answers);
    world_close(&world);
    return 0;
}

/* ---- sounds ---------------------------------------------------------------------------------- */

/* A file of 16 bits a sample, which is made here. */
struct sound {
    uint8_t bytes[HEAD_BYTES + 2 * SAMPLES_MAX];
    uint32_t count; /* of samples */
};

static void put(uint8_t *at, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> 8 * i);
    }
}

static void add_sample(struct sound *sound, double value)
{
    assert_true(sound->count < SAMPLES_MAX);
    put(sound->bytes + HEAD_BYTES + 2 * sound->count++, (uint32_t)(int32_t)rint(32767 * value), 2);
}

static void add_silence(struct sound *sound, int count)
{
    for (int i = 0; i < count; i++) {
        add_sample(sound, 0);
    }
}

/* A word is a tone; German has an overtone. */
static void add_word(struct sound *sound, bool is_german, int word)
{
    static const double pitches[] = {310, 560, 980, 1730};
    const double pi = 3.14159265358979323846;
    const int count = RATE * 24 / 100;
    for (int i = 0; i < count; i++) {
        double t = 2 * pi * pitches[word] * i / RATE;
        double wave = is_german ? 0.5 * sin(t) + 0.5 * sin(3 * t + 0.4) : sin(t);
        double edge = fmin(1, fmin(i / 160.0, (count - i) / 160.0));
        add_sample(sound, 0.6 * wave * edge);
    }
}

/* Words end with -1. */
static void add_phrase(struct sound *sound, bool is_german, const int *words)
{
    for (int i = 0; words[i] >= 0; i++) {
        add_silence(sound, i ? RATE * 6 / 100 : 0);
        add_word(sound, is_german, words[i]);
    }
}

static void end_sound(struct sound *sound)
{
    uint8_t *head = sound->bytes;
    memcpy(head, "RIFF....WAVEfmt ", 16);
    put(head + 4, 36 + 2 * sound->count, 4);
    put(head + 16, 16, 4);
    put(head + 20, 1, 2);
    put(head + 22, 1, 2);
    put(head + 24, RATE, 4);
    put(head + 28, 2 * RATE, 4);
    put(head + 32, 2, 2);
    put(head + 34, 16, 2);
    memcpy(head + 36, "data", 4);
    put(head + 40, 2 * sound->count, 4);
}

static struct sound sound;

static void make_short(unsigned index)
{
    static const int words[][WORDS_MAX + 1] = {{0, 1, 2, -1}, {3, -1}, {1, 3, 0, -1}, {2, 1, -1}};
    sound.count = 0;
    add_silence(&sound, RATE / 10);
    add_phrase(&sound, index >= 2, words[index]);
    end_sound(&sound);
}

static void make_long(void)
{
    static const int phrases[][WORDS_MAX + 1] = {{0, 1, -1}, {2, 3, 0, -1}, {1, -1},
                                                 {3, 2, -1}, {0, 0, -1},    {2, 1, 3, -1}};
    sound.count = 0;
    add_silence(&sound, RATE / 10);
    for (int i = 0; i < 6; i++) {
        add_phrase(&sound, false, phrases[i]);
        add_silence(&sound, RATE * 4 / 10);
    }
    end_sound(&sound);
}

/* ---- requests and answers -------------------------------------------------------------------- */

/* A form with the fields |fields|, "name=value" lines, and |file|. */
static void begin(const struct codec *codec, const char *fields, struct span file)
{
    struct buf body;
    char copy[512], *rest = copy;
    buf_init(&body, 1 << 20);
    snprintf(copy, sizeof(copy), "%s", fields);
    for (char *field = strsep(&rest, "\n"); field && *field; field = strsep(&rest, "\n")) {
        char *value = strchr(field, '=');
        *value++ = '\0';
        buf_printf(&body, "--xx\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n",
                   field, value);
    }
    if (file.len > 0) {
        buf_add_str(&body, "--xx\r\nContent-Disposition: form-data; name=\"file\"; "
                           "filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n");
        buf_add(&body, file.ptr, file.len);
        buf_add_str(&body, "\r\n");
    }
    buf_add_str(&body, "--xx--\r\n");
    assert_false(buf_failed(&body));
    world_add_field(&world, "Content-Type", "multipart/form-data; boundary=xx");
    assert_int_equal(world_begin(&world, "", "", &transcription_ops, codec), 200);
    world_receive(&world, buf_span(&body));
    buf_fini(&body);
}

static struct span file_of_sound(void)
{
    return span_of(sound.bytes, HEAD_BYTES + 2 * sound.count);
}

static void hear(const struct codec *codec, const char *fields)
{
    begin(codec, fields, file_of_sound());
    if (world_go(&world) != OUTCOME_DONE) {
        fail_msg("%s: %s", fields, world.err.text);
    }
}

static cJSON *answer(void)
{
    struct span text = world_answer(&world);
    cJSON *json = cJSON_ParseWithLength((const char *)text.ptr, text.len);
    assert_non_null(json);
    return json;
}

static const char *text_of(const cJSON *row, const char *member)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(row, member));
    assert_non_null(text);
    return text;
}

static void expect_idle(void)
{
    struct model *model = world_model(&world, "whisper.text_decoder");
    assert_int_equal(share_used(&model->transcriber->seats), 0);
    assert_int_equal(rt_sequences_load(world.serving->sequences).count, 0);
    model_unref(model);
}

/* ---- answers of transformers ----------------------------------------------------------------- */

/* The tokens of the segments that have text. */
static void expect_segments(const cJSON *got, const cJSON *wanted)
{
    const cJSON *row;
    int index = 0;
    cJSON_ArrayForEach(row, wanted)
    {
        const cJSON *tokens = cJSON_GetObjectItem(row, "tokens");
        if (cJSON_GetArraySize(tokens) > 1) {
            const cJSON *mine = cJSON_GetArrayItem(got, index++);
            assert_true(cJSON_Compare(cJSON_GetObjectItem(mine, "tokens"), tokens, true));
            double end = cJSON_GetObjectItem(mine, "end")->valuedouble;
            assert_true(fabs(end - cJSON_GetObjectItem(row, "end")->valuedouble) < 0.006);
        }
    }
    assert_int_equal(cJSON_GetArraySize(got), index);
}

static void answers_are_those_of_transformers(void **state)
{
    const cJSON *row;
    (void)state;
    if (!is_able) {
        skip();
    }
    cJSON_ArrayForEach(row, answers)
    {
        bool has_times = cJSON_IsTrue(cJSON_GetObjectItem(row, "times"));
        bool is_translation = strcmp(text_of(row, "task"), "translate") == 0;
        char fields[256];
        if (cJSON_IsTrue(cJSON_GetObjectItem(row, "is_long"))) {
            make_long();
        } else {
            make_short((unsigned)cJSON_GetObjectItem(row, "sound")->valueint / 4);
        }
        snprintf(fields, sizeof(fields), "model=whisper\nlanguage=%s\nresponse_format=%s",
                 text_of(row, "language"), has_times ? "verbose_json" : "json");
        hear(is_translation ? &transcription_translate : &transcription_transcribe, fields);
        cJSON *json = answer();
        assert_string_equal(text_of(json, "text"), text_of(row, "text"));
        if (has_times) {
            assert_string_equal(text_of(json, "task"), text_of(row, "task"));
            expect_segments(cJSON_GetObjectItem(json, "segments"),
                            cJSON_GetObjectItem(row, "segments"));
        }
        cJSON_Delete(json);
        world_end(&world, 200);
        expect_idle();
    }
}

static void a_language_is_heard(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    make_short(2);
    hear(&transcription_transcribe, "response_format=verbose_json"); /* of the only speech model */
    assert_true(world_says(&world, "\"language\":\"german\""));
    assert_true(world_says(&world, "grün weiß rot"));
    world_end(&world, 200);
}

static void forms_have_their_times(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    make_short(0);
    hear(&transcription_transcribe, "response_format=srt");
    assert_true(
        span_is(world_answer(&world), "1\n00:00:00,080 --> 00:00:00,920\nred green blue\n\n"));
    world_end(&world, 200);
    make_long();
    hear(&transcription_transcribe, "response_format=vtt");
    assert_true(world_says(&world, "WEBVTT\n\n00:00:00.080 --> 00:00:00.620\nred green\n\n"));
    assert_string_equal(world.infer.content_type, "text/vtt; charset=utf-8");
    world_end(&world, 200);
}

/* Text is told when it will not change any more: with times, a segment at a time. */
static void a_stream_has_the_same_text(void **state)
{
    char *all, *rest;
    struct buf text;
    int pieces = 0;
    (void)state;
    if (!is_able) {
        skip();
    }
    buf_init(&text, 1 << 16);
    make_long();
    hear(&transcription_transcribe, "stream=true");
    all = rest = strndup((const char *)world.events.ptr, world.events.len);
    for (char *event = strsep(&rest, "\n"); event; event = strsep(&rest, "\n")) {
        cJSON *json = strncmp(event, "data: ", 6) == 0 ? cJSON_Parse(event + 6) : NULL;
        const char *piece = cJSON_GetStringValue(cJSON_GetObjectItem(json, "delta"));
        const char *whole = cJSON_GetStringValue(cJSON_GetObjectItem(json, "text"));
        if (piece) {
            buf_add_str(&text, piece);
            pieces++;
        }
        if (whole) {
            assert_true(span_is(buf_span(&text), whole));
        }
        cJSON_Delete(json);
    }
    assert_true(pieces >= 6);
    assert_true(text.len > 9 && memcmp(text.ptr, "red green", 9) == 0);
    buf_fini(&text);
    free(all);
    world_end(&world, 200);
    expect_idle();
}

static unsigned long_steps;

/* Does SAMPLE of the present run of the decoder take longer than 1000 bytes do? */
static void count_long(struct world *w)
{
    uint64_t was = w->options.params.inline_bytes_max;
    w->options.params.inline_bytes_max = 1000;
    long_steps += infer_is_long(&w->infer, INFER_SAMPLE);
    w->options.params.inline_bytes_max = was;
}

/* Steps of a sound that are long; the encoder's always are. */
static unsigned hear_long_steps(const char *fields)
{
    long_steps = 0;
    begin(&transcription_transcribe, fields, file_of_sound());
    world.meanwhile = count_long;
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    return long_steps;
}

/* Segments and logarithms are printed, too; the end of a stream has all of them. */
static void an_answer_is_counted_as_it_is_printed(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    make_long();
    unsigned plain = hear_long_steps("model=whisper");
    assert_between(infer_encode_bytes(&world.infer), 40, 200);
    world_end(&world, 200);
    assert_int_equal(hear_long_steps("model=whisper\ninclude[]=logprobs"), plain);
    assert_true(infer_encode_bytes(&world.infer) > world_answer(&world).len * 2 / 3);
    world_end(&world, 200);
    assert_int_equal(hear_long_steps("model=whisper\nresponse_format=verbose_json"), plain);
    assert_true(infer_encode_bytes(&world.infer) > world_answer(&world).len * 2 / 3);
    world_end(&world, 200);
    assert_int_equal(hear_long_steps("model=whisper\nstream=true"), plain);
    world_end(&world, 200);
    assert_true(hear_long_steps("model=whisper\nstream=true\ninclude[]=logprobs") > plain);
    world_end(&world, 200);
}

static void statistics_count_seconds_and_tokens(void **state)
{
    struct model *model = world_model(&world, "whisper.text_decoder");
    const struct model_stats *stats = model->stats;
    uint64_t heard = counter_get(&stats->transcriptions), us = counter_get(&stats->sound_us);
    uint64_t tokens = counter_get(&stats->answer_tokens);
    (void)state;
    if (is_able) {
        make_short(0);
        hear(&transcription_transcribe, "language=en");
        world_end(&world, 200);
        assert_int_equal(counter_get(&stats->transcriptions), heard + 1);
        assert_int_equal(counter_get(&stats->sound_us) - us,
                         sound.count * UINT64_C(1000000) / RATE);
        assert_true(counter_get(&stats->answer_tokens) > tokens);
    }
    model_unref(model);
}

/* ---- mistakes and failures ------------------------------------------------------------------- */

static void mistakes_have_their_texts(void **state)
{
    static const struct {
        const char *fields, *text;
        enum status status;
    } rows[] = {
        {"model=nope", "no model 'nope'", ST_NOT_FOUND},
        {"model=add", "'add' is no speech model", ST_INVALID},
        {"temperature=loud", "got 'loud'", ST_INVALID},
        {"response_format=xml", "expected json, text", ST_INVALID},
        {"stream=maybe", "stream: ", ST_INVALID},
        {"stream=true\nresponse_format=srt", "stream: expected", ST_INVALID},
        {"timestamp_granularities[]=word", "times of words", ST_UNSUPPORTED},
        {"timestamp_granularities[]=letter", "expected segment", ST_INVALID},
        {"language=tlh", "none of the 2", ST_INVALID},
        {"prompt=<|startoftranscript|>", "a special token", ST_INVALID},
        {"model=whisper\nmodel=whisper", "model: given more than once", ST_INVALID},
    };
    unsigned wrong = 0;
    (void)state;
    make_short(1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(&transcription_transcribe, rows[i].fields, file_of_sound());
        if (world_go(&world) != OUTCOME_FAILED || world.err.code != rows[i].status ||
            !strstr(world.err.text, rows[i].text)) {
            print_error("%s: %d '%s', expected %d '%s'\n", rows[i].fields, world.err.code,
                        world.err.text, rows[i].status, rows[i].text);
            wrong++;
        }
        world_end(&world, 400);
        expect_idle();
    }
    assert_int_equal(wrong, 0);
}

static void expect_refused(struct span file, enum status status, const char *text)
{
    begin(&transcription_transcribe, "model=whisper", file);
    assert_int_equal(world_go(&world), OUTCOME_FAILED);
    if (world.err.code != status || !strstr(world.err.text, text)) {
        fail_msg("%d '%s', expected %d '%s'", world.err.code, world.err.text, status, text);
    }
    world_end(&world, 400);
    expect_idle();
}

static void files_that_are_no_sound_are_refused(void **state)
{
    (void)state;
    expect_refused(span_str(""), ST_INVALID, "file is missing");
    if (!is_able) {
        skip();
    }
    expect_refused(span_str("ID3 and more"), ST_INVALID, "a damaged MP3 file");
    sound.count = 0;
    end_sound(&sound);
    expect_refused(file_of_sound(), ST_INVALID, "no samples");
}

/* The samples are memory for requests: PARSE waits for it with nothing, and begins anew. */
static void without_memory_a_request_waits(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    make_short(0);
    begin(&transcription_transcribe, "language=en", file_of_sound());
    world_hold_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    assert_null(world.infer.own);
    expect_idle();
    world_give_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    assert_true(infer_held_bytes(&world.infer) >= sound.count * sizeof(float));
    assert_true(world_says(&world, "red green blue"));
    world_end(&world, 200);
}

static void a_client_that_goes_leaves_nothing(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    make_long();
    begin(&transcription_transcribe, "stream=true", file_of_sound());
    world.stop_after = 5;
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    assert_false(infer_is_over(&world.infer));
    world.err.code = ST_UNAVAILABLE;
    infer_print_error_event(&world.infer, &world.err, 503, &world.events);
    world_end(&world, 499);
    expect_idle();
}

/* ---- windows that are encoded ahead ---------------------------------------------------------- */

#define WINDOW (2 * RATE)
#define PATH_MAX_HERE 512

static char folder[] = "/tmp/pted-test-XXXXXX"; /* of the model without times */

static void copy_file(const char *name, const char *from, const char *to)
{
    const char *top = getenv("top_srcdir");
    char path[PATH_MAX_HERE];
    static char bytes[1 << 20];
    snprintf(path, sizeof(path), "%s/tests/models/whisper/%s", top ? top : "..", name);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    size_t len = fread(bytes, 1, sizeof(bytes), in);
    fclose(in);
    assert_true(len < sizeof(bytes));
    for (char *at = bytes;
         from && (at = memmem(at, len - (size_t)(at - bytes), from, strlen(from)));
         at += strlen(to)) {
        memcpy(at, to, strlen(to));
    }
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, len, out), len);
    fclose(out);
}

/* Serves the model as one that knows no times. */
static int open_timeless(void **state, const char *workers)
{
    static const char *const files[] = {"model.pte", "tokenizer.json", "generation_config.json"};
    static const char *const models[] = {NULL};
    char option[PATH_MAX_HERE];
    const char *options[] = {workers, option, "--sound-seconds-max=12", NULL};
    (void)state;
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        copy_file(files[i], "<|0.00|>", "<|zero|>");
    }
    snprintf(option, sizeof(option), "--model=whisper=%s/model.pte", folder);
    world_open(&world, models, options);
    return 0;
}

static int open_two(void **state)
{
    return open_timeless(state, "--workers=2");
}

static int open_one(void **state)
{
    return open_timeless(state, "--workers=1");
}

static int close_timeless(void **state)
{
    char command[PATH_MAX_HERE];
    (void)state;
    world_close(&world);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

static unsigned taken; /* runs that take what was encoded ahead */

static struct transcription_ahead *ahead_now(struct world *w)
{
    return &transcription_of(&w->infer)->ahead;
}

static void count_taken(struct world *w)
{
    taken += transcription_of(&w->infer)->is_taking;
}

/* The text of the long sound, which the caller frees. |meanwhile| is called in each run. */
static char *hear_windows(void (*meanwhile)(struct world *w))
{
    taken = 0;
    make_long();
    begin(&transcription_transcribe, "language=en\nresponse_format=text", file_of_sound());
    world.meanwhile = meanwhile;
    if (world_go(&world) != OUTCOME_DONE) {
        fail_msg("%s", world.err.text);
    }
    struct span text = world_answer(&world);
    char *copy = strndup((const char *)text.ptr, text.len);
    world_end(&world, 200);
    expect_idle();
    return copy;
}

static char *plain; /* what one worker hears */

static void one_worker_encodes_nothing_ahead(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    plain = hear_windows(count_taken);
    assert_int_equal(taken, 0);
    assert_true(strlen(plain) > 40);
}

static void windows_are_encoded_ahead(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    char *text = hear_windows(count_taken);
    assert_string_equal(text, plain);
    assert_int_equal(taken, (sound.count - 1) / WINDOW);
    free(text);
}

/* As if it had failed: the window is encoded in its turn. */
static void cut_ahead(struct world *w)
{
    struct transcription *t = transcription_of(&w->infer);
    taken += t->is_taking;
    if (atomic_load(&t->ahead.state) == AHEAD_RUNS) {
        rt_sched_cancel(&t->ahead.job);
    }
}

static void what_fails_ahead_is_encoded_in_its_turn(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    char *text = hear_windows(cut_ahead);
    assert_string_equal(text, plain);
    free(text);
}

/* When the first window has been encoded, others have all memory. */
static void take_room(struct world *w)
{
    count_taken(w);
    if (w->run_count == 1) {
        world_hold_memory(w);
    }
}

static void without_room_a_window_is_encoded_in_its_turn(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    taken = 0;
    make_long();
    begin(&transcription_transcribe, "language=en\nresponse_format=text", file_of_sound());
    world.meanwhile = take_room;
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY); /* the step behind it */
    assert_int_equal(transcription_ahead_bytes(transcription_of(&world.infer)), 0);
    world_give_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    assert_true(span_is(world_answer(&world), plain));
    assert_int_equal(taken, (sound.count - 1) / WINDOW - 1);
    world_end(&world, 200);
    expect_idle();
}

/* Memory of a result and of an input is counted, and no more windows than one. */
static size_t most_bytes;

static void measure(struct world *w)
{
    const struct transcription *t = transcription_of(&w->infer);
    size_t bytes = transcription_ahead_bytes(t);
    most_bytes = bytes > most_bytes ? bytes : most_bytes;
    assert_true(infer_held_bytes(&w->infer) >= bytes + t->hidden_bytes);
}

static void one_window_is_counted(void **state)
{
    (void)state;
    if (!is_able) {
        skip();
    }
    free(hear_windows(measure));
    assert_between(most_bytes, 100 * 48 * sizeof(float), 2 * 100 * 48 * sizeof(float) + (1 << 17));
}

/* A client that goes at any step of a window takes the run ahead along. */
static void a_client_may_go_while_a_window_is_encoded_ahead(void **state)
{
    unsigned running = 0;
    (void)state;
    if (!is_able) {
        skip();
    }
    make_long();
    for (unsigned run = 1; run < 60; run++) {
        begin(&transcription_transcribe, "stream=true", file_of_sound());
        world.stop_after = run;
        assert_int_equal(world_go(&world), OUTCOME_DONE);
        running += atomic_load(&ahead_now(&world)->state) == AHEAD_RUNS;
        world_end(&world, 499);
        expect_idle();
    }
    assert_true(running > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_transformers),
        cmocka_unit_test(a_language_is_heard),
        cmocka_unit_test(forms_have_their_times),
        cmocka_unit_test(a_stream_has_the_same_text),
        cmocka_unit_test(an_answer_is_counted_as_it_is_printed),
        cmocka_unit_test(statistics_count_seconds_and_tokens),
        cmocka_unit_test(mistakes_have_their_texts),
        cmocka_unit_test(files_that_are_no_sound_are_refused),
        cmocka_unit_test(without_memory_a_request_waits),
        cmocka_unit_test(a_client_that_goes_leaves_nothing),
    };
    const struct CMUnitTest alone[] = {cmocka_unit_test(one_worker_encodes_nothing_ahead)};
    const struct CMUnitTest ahead[] = {
        cmocka_unit_test(windows_are_encoded_ahead),
        cmocka_unit_test(what_fails_ahead_is_encoded_in_its_turn),
        cmocka_unit_test(without_room_a_window_is_encoded_in_its_turn),
        cmocka_unit_test(one_window_is_counted),
        cmocka_unit_test(a_client_may_go_while_a_window_is_encoded_ahead),
    };
    int failed = cmocka_run_group_tests(tests, open_world, close_world);
    failed += cmocka_run_group_tests(alone, open_one, close_timeless);
    failed += cmocka_run_group_tests(ahead, open_two, close_timeless);
    free(plain);
    return failed;
}
