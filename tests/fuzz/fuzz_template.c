/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a chat template. What is accepted is rendered, with small limits, twice: both times
 * the text or the refusal is the same, is UTF-8 and is within the limits.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/text/template/template.h"

#define OUTPUT_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char context_text[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \" be brief \"},"
    "{\"role\": \"user\", \"content\": \"h\\u00e9llo <think>x</think> \\ud83d\\ude42\"},"
    "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"abcdef123\","
    "\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"a\": [1, 2.5]}}}]},"
    "{\"role\": \"tool\", \"content\": \"4\", \"tool_call_id\": \"abcdef123\"}],"
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}],"
    "\"x\": [1, -2, 2.5, \"s\", null, true, [[], {}]], \"s\": \"text\", \"i\": 7, \"d\": {\"k\": "
    "1},"
    "\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"add_generation_prompt\": true}";

static enum status render(const struct template *template, struct arena *arena, struct buf *out,
                          struct error *err)
{
    static const struct tm now = {.tm_year = 126, .tm_mon = 10, .tm_mday = 25, .tm_wday = 3};
    const struct template_limits limits = {
        .steps_max = 20000, .depth_max = 16, .output_max = OUTPUT_MAX, .now = &now};
    struct value context;
    must(value_parse(span_str(context_text), &VALUE_LIMITS_DEFAULT, arena, &context, err) == ST_OK);
    enum status status = template_render(template, &context, &limits, arena, out, err);
    must(status == ST_OK ? !buf_failed(out) && out->len <= OUTPUT_MAX : err->text[0] != '\0');
    must(status == ST_OK || (status == err->code && status != ST_INTERNAL));
    must(status != ST_OK || json_is_utf8(buf_span(out)));
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct template *template;
    struct error err = {0}, again = {0};
    struct arena arena;
    struct buf first, second;
    if (template_parse(span_of(data, size), &template, &err) != ST_OK) {
        must(template == NULL && err.text[0] != '\0' && err.code != ST_INTERNAL);
        return 0;
    }
    arena_init(&arena, 8u << 20);
    buf_init(&first, 2 * OUTPUT_MAX);
    buf_init(&second, 2 * OUTPUT_MAX);
    enum status status = render(template, &arena, &first, &err);
    arena_reset(&arena);
    must(render(template, &arena, &second, &again) == status && !strcmp(err.text, again.text));
    must(status != ST_OK || span_equal(buf_span(&first), buf_span(&second)));
    buf_fini(&first);
    buf_fini(&second);
    arena_fini(&arena);
    template_free(template);
    return 0;
}
