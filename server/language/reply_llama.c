/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/reply_llama.h"

#include <inttypes.h>

#include "protocol/json.h"
#include "server/language/reply_marks.h"

#define NS_PER_MS 1e6

/* An object with "id", "token", "logprob" and "bytes", without the brace that closes it. */
static void print_token(const struct reply *reply, const struct sampler_choice *choice,
                        struct buf *word, struct buf *out)
{
    buf_printf(out, "{\"id\":%" PRIu32 ",", choice->id);
    reply_marks_print_token(reply->words, choice, word, out);
}

static void print_marks(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    struct buf word;
    if (!reply->ask->wants_logprobs) {
        return;
    }
    buf_init(&word, REPLY_WORD_BYTES_MAX);
    buf_add_str(out, ",\"completion_probabilities\":[");
    for (uint32_t i = 0; i < piece->mark_count; i++) {
        const struct sampler_mark *mark = &piece->marks[i];
        buf_add_str(out, i ? "," : "");
        print_token(reply, &mark->chosen, &word, out);
        buf_add_str(out, ",\"top_logprobs\":[");
        for (uint32_t j = 0; j < mark->top_count; j++) {
            buf_add_str(out, j ? "," : "");
            print_token(reply, &mark->top[j], &word, out);
            buf_add_char(out, '}');
        }
        buf_add_str(out, "]}");
    }
    buf_add_char(out, ']');
    buf_fini(&word);
}

static void print_stop(const struct reply *reply, enum reply_reason reason, struct buf *out)
{
    const char *type = reason == REPLY_LENGTH ? "limit" : reply->stop.len ? "word" : "eos";
    buf_printf(out, ",\"stop_type\":\"%s\",\"stopping_word\":", type);
    json_print_string(out, reason == REPLY_LENGTH ? span_str("") : reply->stop);
}

/* Of |count| tokens that took |ns|. */
static void print_times(const char *name, uint64_t count, uint64_t ns, struct buf *out)
{
    double ms = (double)ns / NS_PER_MS;
    buf_printf(out,
               ",\"%s_n\":%" PRIu64 ",\"%s_ms\":%.3f,\"%s_per_token_ms\":%.6f,"
               "\"%s_per_second\":%.3f",
               name, count, name, ms, name, count ? ms / (double)count : 0, name,
               ms > 0 ? 1e3 * (double)count / ms : 0);
}

static void print_timings(const struct reply *reply, struct buf *out)
{
    buf_printf(out, ",\"timings\":{\"cache_n\":%" PRIu64, reply->cached_tokens);
    print_times("prompt", reply->prompt_tokens - reply->cached_tokens, reply->prompt_ns, out);
    print_times("predicted", reply->answer_tokens, reply->answer_ns, out);
    buf_add_char(out, '}');
}

static void print_content(const struct reply *reply, const struct reply_piece *piece, bool is_last,
                          struct buf *out)
{
    buf_add_str(out, "{\"index\":0,\"content\":");
    json_print_string(out, piece->text);
    buf_printf(out,
               ",\"tokens\":[],\"id_slot\":-1,\"stop\":%s,\"tokens_predicted\":%" PRIu64
               ",\"tokens_evaluated\":%" PRIu64,
               is_last ? "true" : "false", reply->answer_tokens, reply->prompt_tokens);
    print_marks(reply, piece, out);
}

void reply_llama_print(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    print_content(reply, piece, true, out);
    buf_add_str(out, ",\"model\":");
    json_print_string(out, span_str(reply->model));
    buf_printf(out, ",\"tokens_cached\":%" PRIu64 ",\"truncated\":false",
               reply->prompt_tokens + reply->answer_tokens);
    print_stop(reply, piece->reason, out);
    print_timings(reply, out);
    buf_add_char(out, '}');
}

/* The last event has no text: clients add up those before it. */
void reply_llama_print_events(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    if (piece->text.len > 0 || piece->mark_count > 0) {
        buf_add_str(out, "data: ");
        print_content(reply, piece, false, out);
        buf_add_str(out, "}\n\n");
    }
    if (piece->reason != REPLY_GOES_ON) {
        const struct reply_piece end = {.reason = piece->reason};
        buf_add_str(out, "data: ");
        reply_llama_print(reply, &end, out);
        buf_add_str(out, "\n\n");
    }
}
