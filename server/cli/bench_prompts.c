/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_prompts.h"

#include <string.h>

#include "protocol/json.h"
#include "server/cli/bench_random.h"
#include "server/process/file.h"

#define DRAWN_COUNT 256 /* different prompts, so that none is found again soon */
#define FILE_BYTES_MAX ((size_t)1 << 30)
/* Every vocabulary has these ids, and special tokens are not among them. */
#define ID_FIRST 32
#define ID_COUNT 224

/* ---- lengths --------------------------------------------------------------------------------- */

static bool read_count(const uint8_t **at, const uint8_t *end, uint32_t *out)
{
    const uint8_t *begin = *at;
    uint32_t value = 0;
    while (*at < end && **at >= '0' && **at <= '9' && value <= BENCH_TOKENS_MAX) {
        value = 10 * value + (*(*at)++ - (uint32_t)'0');
    }
    *out = value;
    return *at > begin && value >= 1 && value <= BENCH_TOKENS_MAX;
}

static bool read_range(const uint8_t **at, const uint8_t *end, struct bench_range *out)
{
    if (!read_count(at, end, &out->least)) {
        return false;
    }
    out->most = out->least;
    if (end - *at < 2 || memcmp(*at, "..", 2) != 0) {
        return true;
    }
    *at += 2;
    return read_count(at, end, &out->most) && out->least <= out->most;
}

enum status bench_lengths_parse(const char *text, struct bench_lengths *out, struct error *err)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
    bool is_good = true;
    for (out->count = 0; is_good && out->count < BENCH_LENGTHS_MAX;) {
        is_good = read_range(&at, end, &out->ranges[out->count++]);
        if (!is_good || at == end) {
            break;
        }
        is_good = *at == ',';
        at++;
    }
    return is_good && at == end
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected up to %d numbers or ranges from 1 to %d, such as 128 or "
                           "100..500,2048",
                           BENCH_LENGTHS_MAX, BENCH_TOKENS_MAX);
}

void bench_lengths_print(const struct bench_lengths *lengths, struct buf *out)
{
    for (uint32_t i = 0; i < lengths->count; i++) {
        const struct bench_range *range = &lengths->ranges[i];
        buf_printf(out, "%s%u", i ? ", " : "", range->least);
        if (range->most > range->least) {
            buf_printf(out, "..%u", range->most);
        }
    }
    buf_add_str(out, " tokens");
}

static uint32_t below(struct bench_random *random, uint32_t count)
{
    return (uint32_t)((bench_random_bits(random) >> 32) * count >> 32);
}

static uint32_t draw(struct bench_random *random, const struct bench_lengths *lengths)
{
    const struct bench_range *range = &lengths->ranges[below(random, lengths->count)];
    return range->least + below(random, range->most - range->least + 1);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* |answer|: tokens. |prompt| is JSON. */
static enum status add_body(struct bench_bodies *out, const char *model, struct span prompt,
                            uint64_t answer, struct error *err)
{
    struct buf text;
    buf_init(&text, BENCH_BODIES_BYTES_MAX);
    buf_add_str(&text, "{\"model\":");
    json_print_string(&text, span_str(model));
    buf_add_str(&text, ",\"prompt\":");
    buf_add(&text, prompt.ptr, prompt.len);
    buf_printf(&text,
               ",\"max_tokens\":%u,\"temperature\":0,\"ignore_eos\":true,\"cache_prompt\":false,"
               "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
               (unsigned)answer);
    char *copy = buf_failed(&text) ? NULL : arena_alloc(&out->arena, text.len);
    if (copy) {
        memcpy(copy, text.ptr, text.len);
        out->items[out->count++] = (struct bench_body){.bytes = span_of(copy, text.len)};
    }
    buf_fini(&text);
    return copy ? ST_OK : arena_fail(&out->arena, "the requests", err);
}

static enum status make_items(struct bench_bodies *out, uint32_t count, struct error *err)
{
    out->items = arena_array(&out->arena, count, sizeof(out->items[0]));
    return out->items ? ST_OK : arena_fail(&out->arena, "the requests", err);
}

static enum status draw_bodies(const char *model, const struct bench_prompts_options *options,
                               struct bench_bodies *out, struct error *err)
{
    struct bench_random random = bench_random_of(options->seed);
    enum status status = make_items(out, DRAWN_COUNT, err);
    struct buf ids;
    buf_init(&ids, BENCH_BODIES_BYTES_MAX);
    while (status == ST_OK && out->count < DRAWN_COUNT) {
        uint32_t count = draw(&random, &options->prompts);
        buf_reset(&ids);
        for (uint32_t i = 0; i < count; i++) {
            buf_printf(&ids, "%c%u", i ? ',' : '[', ID_FIRST + below(&random, ID_COUNT));
        }
        buf_add_char(&ids, ']');
        status = buf_failed(&ids)
                     ? error_no_memory(err, "the requests")
                     : add_body(out, model, buf_span(&ids), draw(&random, &options->answers), err);
    }
    buf_fini(&ids);
    return status;
}

/* ---- a file ---------------------------------------------------------------------------------- */

struct line {
    struct span prompt; /* JSON */
    uint64_t answer;    /* tokens; 0: not given */
};

static enum status take_prompt(struct json *in, struct line *line, struct error *err)
{
    enum json_type type = json_peek(in);
    const uint8_t *begin = in->at;
    if (type != JSON_STRING && type != JSON_ARRAY) {
        return json_fail(in, err, ST_INVALID, "expected a text, or ids of tokens");
    }
    TRY(json_skip(in, err));
    line->prompt = span_of(begin, (size_t)(in->at - begin));
    return ST_OK;
}

static enum status read_member(struct json *in, const struct json_string *key, void *user,
                               struct error *err)
{
    struct line *line = user;
    if (json_string_is(key, "prompt")) {
        return take_prompt(in, line, err);
    }
    if (!json_string_is(key, "output_tokens") && !json_string_is(key, "max_tokens")) {
        return json_skip(in, err);
    }
    TRY(json_read_u64(in, &line->answer, err));
    return line->answer >= 1 && line->answer <= BENCH_TOKENS_MAX
               ? ST_OK
               : json_fail(in, err, ST_INVALID, "expected a number from 1 to %d", BENCH_TOKENS_MAX);
}

/* A text, or an object with a prompt and perhaps a number of tokens. */
static enum status read_line(struct span text, struct line *out, struct error *err)
{
    struct json in;
    json_init(&in, text);
    *out = (struct line){.answer = 0};
    if (json_peek(&in) == JSON_OBJECT) {
        TRY(json_read_members(text, read_member, out, err));
    } else {
        TRY(take_prompt(&in, out, err));
        TRY(json_end(&in, err));
    }
    return out->prompt.len > 0 ? ST_OK : error_set(err, ST_INVALID, "prompt is missing");
}

static bool is_blank(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!strchr(" \t\r", text.ptr[i])) {
            return false;
        }
    }
    return true;
}

static enum status read_lines(const char *model, const struct bench_prompts_options *options,
                              struct span text, struct bench_bodies *out, struct error *err)
{
    struct bench_random random = bench_random_of(options->seed);
    const uint8_t *at = text.ptr, *end = at + text.len;
    TRY(make_items(out, BENCH_BODIES_MAX, err));
    for (uint32_t number = 1; at < end && out->count < BENCH_BODIES_MAX; number++) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *stop = newline ? newline : end;
        struct span piece = span_of(at, (size_t)(stop - at));
        struct line line;
        at = newline ? newline + 1 : end;
        if (is_blank(piece)) {
            continue;
        }
        if (read_line(piece, &line, err) != ST_OK) {
            return error_prefix(err, "line %u: ", number);
        }
        uint32_t drawn = draw(&random, &options->answers);
        TRY(add_body(out, model, line.prompt, line.answer ? line.answer : drawn, err));
    }
    return out->count > 0 ? ST_OK : error_set(err, ST_INVALID, "there is no prompt in it");
}

static enum status read_bodies(const char *model, const struct bench_prompts_options *options,
                               struct bench_bodies *out, struct error *err)
{
    struct buf text;
    buf_init(&text, FILE_BYTES_MAX);
    enum status status = file_read(options->file, &text, err);
    if (status == ST_OK) {
        status = read_lines(model, options, buf_span(&text), out, err);
    }
    buf_fini(&text);
    return status == ST_OK ? ST_OK : error_prefix(err, "--prompts: %s: ", options->file);
}

enum status bench_prompts_make(const char *model, const struct bench_prompts_options *options,
                               struct bench_bodies *out, struct error *err)
{
    arena_init(&out->arena, BENCH_BODIES_BYTES_MAX);
    out->is_json = true;
    return options->file ? read_bodies(model, options, out, err)
                         : draw_bodies(model, options, out, err);
}
