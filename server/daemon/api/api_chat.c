/* SPDX-License-Identifier: MIT */
/* Prompts of chats, as a language model would get them: their text, and how many tokens they have.
 */
#include "config.h"

#include "base/check.h"
#include "protocol/json.h"
#include "server/daemon/api/api.h"
#include "server/daemon/request/request.h"
#include "server/language/ask_message.h"
#include "server/language/chat.h"
#include "server/language/generator.h"
#include "server/language/words.h"
#include "server/process/options.h"

/* Templates may build much while they render. */
#define CHAT_BYTES_MAX (64 << 20)

static enum status find_chat(struct request *request, const struct ask *ask,
                             const struct model **out, struct error *err)
{
    *out = api_find_named(request, ask->model, api_generates, "language model", err);
    if (!*out) {
        return err->code;
    }
    return (*out)->generator ? ST_OK : model_refuse_texts(*out, "language model", err);
}

enum status api_render_chat(struct request *request, unsigned form, struct buf *text,
                            struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct arena arena;
    struct ask ask;
    const struct model *model;
    uint32_t depth_max = (uint32_t)request->api->params->json_depth_max;
    TRY(ask_parse((enum ask_form)form, body_span(&request->body), depth_max, &request->infer.arena,
                  &ask, err));
    TRY(find_chat(request, &ask, &model, err));
    arena_init(&arena, CHAT_BYTES_MAX);
    enum status status = chat_render(&model->generator->chat, &ask, &arena, text, err);
    arena_fini(&arena);
    if (status == ST_UNSUPPORTED) {
        return error_prefix(err, "model '%s': ", model->name);
    }
    return status == ST_OK ? buf_check(text, "the prompt", err) : status;
}

enum status api_apply_template(struct request *request, struct error *err)
{
    struct buf text;
    buf_init(&text, CHAT_BYTES_MAX);
    enum status status = api_render_chat(request, ASK_CHAT, &text, err);
    if (status == ST_OK) {
        buf_add_str(&request->out, "{\"prompt\":");
        json_print_string(&request->out, buf_span(&text));
        buf_add_char(&request->out, '}');
        status = api_check_printed(request, err);
    }
    buf_fini(&text);
    return status;
}

/* POST /v1/messages/count_tokens */
enum status api_count_tokens(struct request *request, struct error *err)
{
    struct buf text;
    struct words_room none = {.max = 0};
    TRY(ask_message_verify_version(head_value(&request->head, HTTP_ANTHROPIC_VERSION), err));
    buf_init(&text, CHAT_BYTES_MAX);
    enum status status = api_render_chat(request, ASK_MESSAGE, &text, err);
    if (status == ST_OK) {
        const struct generator *generator = request->infer.call.model->generator;
        status = words_encode(generator->words, buf_span(&text), true, &none, err);
    }
    buf_fini(&text);
    TRY(status);
    if (none.count > WORDS_COUNT_MAX) {
        return error_set(err, ST_TOO_LARGE, "the prompt has more than %u tokens", WORDS_COUNT_MAX);
    }
    buf_printf(&request->out, "{\"input_tokens\":%u}", none.count);
    return api_check_printed(request, err);
}
