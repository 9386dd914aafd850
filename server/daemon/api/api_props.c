/* SPDX-License-Identifier: MIT */
/* GET /props: what a language model is set to, as llama.cpp's server says it. Nothing is changed by
 * this route. */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "server/daemon/api/api.h"
#include "server/daemon/infer/query.h"
#include "server/daemon/request/request.h"
#include "server/language/chat.h"
#include "server/language/generator.h"

static void print_number(struct buf *out, const char *name, double value)
{
    uint8_t text[NUMBER_TEXT_MAX];
    buf_printf(out, ",\"%s\":", name);
    buf_add(out, text, number_print_f64(text, value, NUMBER_NAN_NULL));
}

/* What counts where a request says nothing. */
static void print_sampling(struct buf *out, const struct generator *generator)
{
    struct ask ask = ask_new(ASK_COMPLETION);
    ask_take_defaults(&ask, &generator->defaults);
    buf_printf(out, "\"params\":{\"n_predict\":%" PRId64 ",\"top_k\":%u",
               ask.max_tokens == UINT32_MAX ? INT64_C(-1) : (int64_t)ask.max_tokens,
               ask.sampler.top_k);
    print_number(out, "temperature", ask.sampler.temperature);
    print_number(out, "top_p", ask.sampler.top_p);
    print_number(out, "min_p", ask.sampler.min_p);
    print_number(out, "repeat_penalty", ask.sampler.repetition);
    buf_add_char(out, '}');
}

static void print_text(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, ",\"%s\":", name);
    json_print_string(out, span_str(text ? text : ""));
}

static void print_props(struct buf *out, const struct model *model)
{
    const struct generator *generator = model->generator;
    const struct chat *chat = &generator->chat;
    buf_printf(out, "{\"default_generation_settings\":{\"n_ctx\":%u,", generator->context);
    print_sampling(out, generator);
    buf_printf(out, "},\"total_slots\":%" PRIu64, model->params.generation_count_max);
    print_text(out, "model_alias", model->name);
    print_text(out, "chat_template", chat->source);
    print_text(out, "bos_token", chat->tokens[CHAT_BOS]);
    print_text(out, "eos_token", chat->tokens[CHAT_EOS]);
    buf_add_str(out,
                ",\"modalities\":{\"vision\":false,\"audio\":false},\"build_info\":\"" PACKAGE_NAME
                " " PACKAGE_VERSION "\"}");
}

enum status api_props(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    char name[MODEL_NAME_MAX + 1];
    TRY(query_find(head_target(&request->head), "model", name, MODEL_NAME_MAX, err));
    const struct model *model =
        api_find_named(request, name[0] ? name : NULL, api_generates, "language model", err);
    if (!model) {
        return err->code;
    }
    if (!model->generator) {
        return model_refuse_texts(model, "language model", err);
    }
    print_props(&request->out, model);
    return api_check_printed(request, err);
}
