/* SPDX-License-Identifier: MIT */
/* Members of /completion and /infill that other APIs do not have, or have in another form. Source:
 * the page of llama.cpp's server about itself, tools/server. */
#include "config.h"

#include "server/language/ask_priv.h"
#include "server/language/ask_values.h"

#define IDS_MAX (1 << 20)    /* of a prompt that is given as ids */
#define TOKENS_MAX (1 << 24) /* of an answer, as of other requests */

static enum status make_prompt(struct ask_reader *r)
{
    struct ask *ask = r->ask;
    ask->prompts = arena_array(r->arena, 1, sizeof(ask->prompts[0]));
    ask->prompt_count = 1;
    return ask->prompts ? ST_OK : arena_fail(r->arena, "the request", r->err);
}

enum status ask_llama_prompt(struct ask_reader *r)
{
    TRY(make_prompt(r));
    struct ask_prompt *prompt = &r->ask->prompts[0];
    if (json_peek(r->in) == JSON_STRING) {
        return ask_read_text(r->in, r->arena, &prompt->text, r->err);
    }
    if (!ask_is_list_of_ids(r->in)) {
        TRY(json_skip(r->in, r->err));
        return json_fail(r->in, r->err, ST_INVALID,
                         "expected a text or a list of ids: several prompts go to "
                         "/v1/completions");
    }
    return ask_read_ids(r->in, r->arena, IDS_MAX, &prompt->ids, &prompt->id_count, r->err);
}

/* ---- a gap ----------------------------------------------------------------------------------- */

enum status ask_llama_before(struct ask_reader *r)
{
    TRY(make_prompt(r));
    return ask_read_text(r->in, r->arena, &r->ask->prompts[0].text, r->err);
}

enum status ask_llama_after(struct ask_reader *r)
{
    return ask_read_text(r->in, r->arena, &r->ask->suffix, r->err);
}

enum status ask_llama_begun(struct ask_reader *r)
{
    return ask_read_text(r->in, r->arena, &r->ask->begun, r->err);
}

/* {"filename": "...", "text": "..."} */
static enum status read_extra(struct ask_reader *r, struct ask_extra *extra)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        struct span *at = json_string_is(&key, "filename") ? &extra->name
                          : json_string_is(&key, "text")   ? &extra->text
                                                           : NULL;
        TRY(at ? ask_read_text(r->in, r->arena, at, r->err) : json_skip(r->in, r->err));
    }
}

enum status ask_llama_extra(struct ask_reader *r)
{
    struct ask *ask = r->ask;
    ask->extras = arena_array(r->arena, ASK_EXTRAS_MAX, sizeof(ask->extras[0]));
    if (!ask->extras) {
        return arena_fail(r->arena, "the request", r->err);
    }
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        if (ask->extra_count == ASK_EXTRAS_MAX) {
            return json_fail(r->in, r->err, ST_INVALID, "expected at most %d texts",
                             ASK_EXTRAS_MAX);
        }
        ask->extras[ask->extra_count] = (struct ask_extra){.name = {0}};
        TRY(read_extra(r, &ask->extras[ask->extra_count++]));
    }
}

/* ---- other members --------------------------------------------------------------------------- */

enum status ask_llama_count(struct ask_reader *r)
{
    int64_t count;
    TRY(json_read_i64(r->in, &count, r->err));
    if (count > TOKENS_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a number up to %d", TOKENS_MAX);
    }
    r->ask->max_tokens = count < 0 ? UINT32_MAX : (uint32_t)count;
    return ST_OK;
}

enum status ask_llama_probabilities(struct ask_reader *r)
{
    uint64_t count;
    TRY(json_read_u64(r->in, &count, r->err));
    if (count > SAMPLER_TOP_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a number from 0 to %d",
                         SAMPLER_TOP_MAX);
    }
    r->ask->wants_logprobs = count > 0;
    r->ask->top_count = (uint32_t)count;
    return ST_OK;
}
