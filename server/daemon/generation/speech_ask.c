/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/generation/speech_ask.h"

#include <string.h>

#include "protocol/number.h"
#include "server/http/multipart.h"

/* Of a value in a message. */
#define SHOWN_BYTES_MAX 64

typedef enum status take_f(struct speech_ask *ask, struct span value, struct error *err);

static const char *const forms[SPEECH_FORMS] = {
    [SPEECH_JSON] = "json", [SPEECH_TEXT] = "text", [SPEECH_VERBOSE_JSON] = "verbose_json",
    [SPEECH_SRT] = "srt",   [SPEECH_VTT] = "vtt",
};

static struct span shown(struct span value)
{
    return span_of(value.ptr, value.len < SHOWN_BYTES_MAX ? value.len : SHOWN_BYTES_MAX);
}

static enum status refuse(const char *field, const char *expected, struct span value,
                          struct error *err)
{
    return error_set(err, ST_INVALID, "%s: expected %s, got '%.*s'", field, expected,
                     SPAN_FMT(shown(value)));
}

static enum status copy(const char *field, struct span value, char *out, size_t size,
                        struct error *err)
{
    if (value.len >= size || memchr(value.ptr, '\0', value.len)) {
        return error_set(err, ST_INVALID, "%s: expected at most %zu bytes without NUL, got %zu",
                         field, size - 1, value.len);
    }
    memcpy(out, value.ptr, value.len);
    out[value.len] = '\0';
    return ST_OK;
}

static enum status take_file(struct speech_ask *ask, struct span value, struct error *err)
{
    (void)err;
    ask->file = value;
    return ST_OK;
}

static enum status take_model(struct speech_ask *ask, struct span value, struct error *err)
{
    return copy("model", value, ask->model, sizeof(ask->model), err);
}

static enum status take_language(struct speech_ask *ask, struct span value, struct error *err)
{
    return copy("language", value, ask->language, sizeof(ask->language), err);
}

static enum status take_prompt(struct speech_ask *ask, struct span value, struct error *err)
{
    (void)err;
    ask->prompt = value;
    return ST_OK;
}

static enum status take_response_format(struct speech_ask *ask, struct span value,
                                        struct error *err)
{
    for (int i = 0; i < SPEECH_FORMS; i++) {
        if (span_is(value, forms[i])) {
            ask->form = (enum speech_form)i;
            return ST_OK;
        }
    }
    return refuse("response_format", "json, text, verbose_json, srt or vtt", value, err);
}

static enum status take_temperature(struct speech_ask *ask, struct span value, struct error *err)
{
    const uint8_t *at = value.ptr, *end = value.ptr + value.len;
    bool is_number = number_parse_f64(&at, end, &ask->temperature) == NUMBER_OK && at == end;
    return is_number && ask->temperature >= 0 && ask->temperature <= 1
               ? ST_OK
               : refuse("temperature", "a number from 0 to 1", value, err);
}

static enum status take_stream(struct speech_ask *ask, struct span value, struct error *err)
{
    ask->is_stream = span_is(value, "true") || span_is(value, "True") || span_is(value, "1");
    bool is_known =
        ask->is_stream || span_is(value, "false") || span_is(value, "False") || span_is(value, "0");
    return is_known ? ST_OK : refuse("stream", "true or false", value, err);
}

static enum status take_granularity(struct speech_ask *ask, struct span value, struct error *err)
{
    (void)ask;
    if (span_is(value, "word")) {
        return error_set(
            err, ST_UNSUPPORTED,
            "timestamp_granularities: expected segment: the times of words are not known");
    }
    return span_is(value, "segment") ? ST_OK
                                     : refuse("timestamp_granularities", "segment", value, err);
}

static enum status take_include(struct speech_ask *ask, struct span value, struct error *err)
{
    ask->wants_logprobs = span_is(value, "logprobs");
    return ask->wants_logprobs ? ST_OK : refuse("include", "logprobs", value, err);
}

/* |seen|: a bit for each field that the form has had. A second one, which a proxy or a filter may
 * have read in place of the first, is refused, except for lists. */
static enum status take_part(struct speech_ask *ask, const struct multipart_part *part,
                             uint32_t *seen, struct error *err)
{
    static const struct {
        const char *name;
        take_f *take;
        bool is_list;
    } fields[] = {
#define FIELD(id, name, is_list) {name, take_##id, is_list},
#include "server/daemon/generation/speech_ask.def"
#undef FIELD
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (span_is(part->name, fields[i].name)) {
            bool is_again = *seen >> i & 1 && !fields[i].is_list;
            *seen |= 1U << i;
            return is_again ? error_set(err, ST_INVALID, "%s: given more than once", fields[i].name)
                            : fields[i].take(ask, part->data, err);
        }
    }
    return ST_OK;
}

enum status speech_ask_parse(struct span content_type, struct span body, struct speech_ask *out,
                             struct error *err)
{
    struct multipart multipart;
    struct multipart_part part;
    bool is_found = true;
    uint32_t seen = 0;
    *out = (struct speech_ask){.form = SPEECH_JSON};
    TRY(multipart_init(&multipart, content_type, body, err));
    while (is_found) {
        TRY(multipart_next(&multipart, &part, &is_found, err));
        if (is_found) {
            TRY(take_part(out, &part, &seen, err));
        }
    }
    if (out->file.len == 0) {
        return error_set(err, ST_INVALID, "file is missing or empty");
    }
    if (out->wants_logprobs && out->form != SPEECH_JSON) {
        return error_set(err, ST_INVALID, "include: logprobs come with response_format json alone");
    }
    bool is_text = out->form == SPEECH_JSON || out->form == SPEECH_TEXT;
    return is_text || !out->is_stream
               ? ST_OK
               : error_set(err, ST_INVALID, "stream: expected response_format json or text");
}
