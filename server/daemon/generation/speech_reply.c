/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/generation/speech_reply.h"

#include <inttypes.h>
#include <math.h>
#include <zlib.h>

#include "protocol/json.h"
#include "protocol/number.h"
#include "server/language/reply_marks.h"
#include "server/language/transcriber.h"

static const char *const types[SPEECH_FORMS] = {
    [SPEECH_JSON] = "application/json",         [SPEECH_TEXT] = "text/plain; charset=utf-8",
    [SPEECH_VERBOSE_JSON] = "application/json", [SPEECH_SRT] = "text/plain; charset=utf-8",
    [SPEECH_VTT] = "text/vtt; charset=utf-8",
};

const char *speech_reply_type(enum speech_form form)
{
    return types[form];
}

#define LOGPROB_TEXT_BYTES 80 /* of a token with its logarithm and its bytes */
#define ID_TEXT_BYTES 7
#define CUE_TEXT_BYTES 40 /* of a subtitle: its number and its times */
/* What is around the text of a segment, some 200 bytes, and packing it, as long as printing more.
 */
#define SEGMENT_TEXT_BYTES 1000

size_t speech_reply_bytes(const struct speech_reply *reply)
{
    const struct transcript *transcript = reply->transcript;
    size_t tokens = transcript->tokens.len / sizeof(uint32_t);
    size_t segments = transcript->segment_count, text = transcript->text.len;
    switch (reply->form) {
    case SPEECH_VERBOSE_JSON:
        return 2 * text + tokens * ID_TEXT_BYTES + segments * SEGMENT_TEXT_BYTES;
    case SPEECH_SRT:
    case SPEECH_VTT:
        return text + segments * CUE_TEXT_BYTES;
    default:
        return text + (reply->wants_logprobs ? tokens * LOGPROB_TEXT_BYTES : 0);
    }
}

static struct span text_of(const struct transcript *transcript,
                           const struct transcript_segment *segment)
{
    return span_of(transcript->text.ptr + segment->text_at, segment->text_len);
}

static double seconds(const struct speech_reply *reply, uint64_t samples)
{
    return (double)samples / reply->rate;
}

static void print_number(struct buf *out, double value)
{
    uint8_t text[NUMBER_TEXT_MAX];
    buf_add(out, text, number_print_f64(text, value, NUMBER_NAN_NULL));
}

/* In tokens. Sound has none: the encoder's positions are no input of the decoder. */
static void print_usage(const struct speech_reply *reply, struct buf *out)
{
    buf_printf(out,
               ",\"usage\":{\"type\":\"tokens\",\"input_tokens\":%" PRIu64
               ",\"input_token_details\":{\"text_tokens\":%" PRIu64 ",\"audio_tokens\":0}"
               ",\"output_tokens\":%" PRIu64 ",\"total_tokens\":%" PRIu64 "}",
               reply->prompt_tokens, reply->prompt_tokens, reply->answer_tokens,
               reply->prompt_tokens + reply->answer_tokens);
}

/* In seconds, as OpenAI's Whisper has it beside the duration. */
static void print_duration(const struct speech_reply *reply, struct buf *out)
{
    buf_add_str(out, ",\"usage\":{\"type\":\"duration\",\"seconds\":");
    print_number(out, seconds(reply, reply->sample_count));
    buf_add_char(out, '}');
}

/* ---- verbose_json ---------------------------------------------------------------------------- */

/* How many times smaller the text becomes: a text that repeats itself is nonsense. */
static double compression_ratio(struct span text)
{
    uint8_t packed[4096];
    uLongf len = sizeof(packed);
    bool fits = text.len > 0 && compressBound((uLong)text.len) <= sizeof(packed) &&
                compress(packed, &len, text.ptr, (uLong)text.len) == Z_OK;
    return fits ? (double)text.len / (double)len : NAN;
}

static const uint32_t *tokens_of(const struct transcript *transcript)
{
    return (const uint32_t *)(const void *)transcript->tokens.ptr;
}

static void print_tokens(const struct transcript *transcript,
                         const struct transcript_segment *segment, struct buf *out)
{
    const uint32_t *ids = tokens_of(transcript) + segment->token_at;
    for (size_t i = 0; i < segment->token_count; i++) {
        buf_printf(out, "%s%" PRIu32, i ? "," : "", ids[i]);
    }
}

static void print_segment(const struct speech_reply *reply, uint32_t index, struct buf *out)
{
    const struct transcript *transcript = reply->transcript;
    const struct transcript_segment *segment = &transcript->segments[index];
    buf_printf(out, "%s{\"id\":%" PRIu32 ",\"seek\":%" PRIu64 ",\"start\":", index ? "," : "",
               index, segment->window * 100 / reply->rate);
    print_number(out, seconds(reply, segment->begin));
    buf_add_str(out, ",\"end\":");
    print_number(out, seconds(reply, segment->end));
    buf_add_str(out, ",\"text\":");
    json_print_string(out, text_of(transcript, segment));
    buf_add_str(out, ",\"tokens\":[");
    print_tokens(transcript, segment, out);
    buf_add_str(out, "],\"temperature\":");
    print_number(out, reply->temperature);
    buf_add_str(out, ",\"avg_logprob\":");
    print_number(out, (double)segment->logprob);
    buf_add_str(out, ",\"compression_ratio\":");
    print_number(out, compression_ratio(text_of(transcript, segment)));
    buf_add_str(out, ",\"no_speech_prob\":");
    print_number(out, (double)segment->no_speech);
    buf_add_char(out, '}');
}

static void print_verbose(const struct speech_reply *reply, struct buf *out)
{
    buf_printf(
        out, "{\"task\":\"%s\",\"language\":", reply->is_translation ? "translate" : "transcribe");
    if (reply->language) {
        json_print_string(out, span_str(reply->language));
    } else {
        buf_add_str(out, "null");
    }
    buf_add_str(out, ",\"duration\":");
    print_number(out, seconds(reply, reply->sample_count));
    buf_add_str(out, ",\"text\":");
    json_print_string(out, span_trim(buf_span(&reply->transcript->text), " "));
    buf_add_str(out, ",\"segments\":[");
    for (uint32_t i = 0; i < reply->transcript->segment_count; i++) {
        print_segment(reply, i, out);
    }
    buf_add_char(out, ']');
    print_duration(reply, out);
    buf_add_char(out, '}');
}

/* ---- subtitles ------------------------------------------------------------------------------- */

static void print_clock(const struct speech_reply *reply, uint64_t samples, struct buf *out)
{
    uint64_t ms = (samples * 1000 + reply->rate / 2) / reply->rate;
    buf_printf(out, "%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "%c%03" PRIu64, ms / 3600000,
               ms / 60000 % 60, ms / 1000 % 60, reply->form == SPEECH_SRT ? ',' : '.', ms % 1000);
}

static void print_subtitles(const struct speech_reply *reply, struct buf *out)
{
    const struct transcript *transcript = reply->transcript;
    buf_add_str(out, reply->form == SPEECH_VTT ? "WEBVTT\n\n" : "");
    for (uint32_t i = 0; i < transcript->segment_count; i++) {
        const struct transcript_segment *segment = &transcript->segments[i];
        struct span text = span_trim(text_of(transcript, segment), " ");
        if (reply->form == SPEECH_SRT) {
            buf_printf(out, "%" PRIu32 "\n", i + 1);
        }
        print_clock(reply, segment->begin, out);
        buf_add_str(out, " --> ");
        print_clock(reply, segment->end, out);
        buf_printf(out, "\n%.*s\n\n", SPAN_FMT(text));
    }
}

/* ---- logarithms of probabilities ------------------------------------------------------------- */

/* Of the tokens of text from |from| to |to|, if they are wanted. */
static void print_logprobs(const struct speech_reply *reply, size_t from, size_t to,
                           struct buf *out)
{
    const struct transcript *transcript = reply->transcript;
    const float *logprobs = (const float *)(const void *)transcript->logprobs.ptr;
    struct buf word;
    if (!reply->wants_logprobs) {
        return;
    }
    buf_init(&word, REPLY_WORD_BYTES_MAX);
    buf_add_str(out, ",\"logprobs\":[");
    const char *before = "{";
    for (size_t i = from; i < to; i++) {
        struct sampler_choice choice = {.id = tokens_of(transcript)[i], .logprob = logprobs[i]};
        if (transcript_is_text(transcript, choice.id)) {
            buf_add_str(out, before);
            reply_marks_print_token(transcript->transcriber->words, &choice, &word, out);
            buf_add_char(out, '}');
            before = ",{";
        }
    }
    buf_add_char(out, ']');
    buf_fini(&word);
}

static void print_all_logprobs(const struct speech_reply *reply, struct buf *out)
{
    print_logprobs(reply, 0, reply->transcript->tokens.len / sizeof(uint32_t), out);
}

void speech_reply_print(const struct speech_reply *reply, struct buf *out)
{
    struct span text = span_trim(buf_span(&reply->transcript->text), " ");
    switch (reply->form) {
    case SPEECH_VERBOSE_JSON:
        print_verbose(reply, out);
        break;
    case SPEECH_SRT:
    case SPEECH_VTT:
        print_subtitles(reply, out);
        break;
    case SPEECH_TEXT:
        buf_add(out, text.ptr, text.len);
        buf_add_char(out, '\n');
        break;
    default:
        buf_add_str(out, "{\"text\":");
        json_print_string(out, text);
        print_all_logprobs(reply, out);
        print_usage(reply, out);
        buf_add_char(out, '}');
        break;
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

void speech_reply_print_piece(const struct speech_reply *reply, struct span text, size_t from,
                              size_t to, struct buf *out)
{
    buf_add_str(out, "event: transcript.text.delta\n"
                     "data: {\"type\":\"transcript.text.delta\",\"delta\":");
    json_print_string(out, text);
    print_logprobs(reply, from, to, out);
    buf_add_str(out, "}\n\n");
}

void speech_reply_print_end(const struct speech_reply *reply, struct buf *out)
{
    buf_add_str(out, "event: transcript.text.done\n"
                     "data: {\"type\":\"transcript.text.done\",\"text\":");
    json_print_string(out, span_trim(buf_span(&reply->transcript->text), " "));
    print_all_logprobs(reply, out);
    print_usage(reply, out);
    buf_add_str(out, "}\n\n");
}
