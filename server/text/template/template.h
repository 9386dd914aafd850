/* SPDX-License-Identifier: MIT */
/*
 * Chat templates: the part of Jinja 3.1 that templates of published language models use, as
 * transformers' apply_chat_template() sets it up: trim_blocks and lstrip_blocks, loop controls,
 * `generation` blocks, raise_exception(), strftime_now(), an immutable sandbox, no automatic
 * escapes. docs/reference/templates.md lists what is understood.
 *
 * A template is compiled once. Whatever it contains that is not understood is refused then, with
 * line and column. A compiled template is immutable, and any number of threads may render it at
 * one time.
 *
 *     TRY(template_parse(source, &template, err));
 *     TRY(template_render(template, &context, &limits, &arena, &text, err));
 *     template_free(template);
 */
#ifndef PTED_SERVER_TEXT_TEMPLATE_TEMPLATE_H
#define PTED_SERVER_TEXT_TEMPLATE_TEMPLATE_H

#include <time.h>

#include "server/text/value/value.h"

#define TEMPLATE_SOURCE_MAX (1u << 20) /* bytes */

struct template;

/* Limits of one rendering. A template that needs more, such as a loop over range(10**9), ends with
 * ST_TOO_LARGE and the limit in the text. Memory is bounded by the arena's maximum. */
struct template_limits {
    uint64_t steps_max;   /* nodes evaluated, and one more for every 64 bytes that a node makes */
    uint32_t depth_max;   /* macros that call each other, and nested expressions */
    size_t output_max;    /* bytes of text */
    const struct tm *now; /* for strftime_now(); NULL: the local time of the call */
};

#define TEMPLATE_LIMITS_DEFAULT                                                                    \
    ((struct template_limits){.steps_max = 20000000, .depth_max = 64, .output_max = 16u << 20})

/* Compiles |source|, which is copied. ST_INVALID: a syntax error, or bytes that are not UTF-8;
 * ST_UNSUPPORTED: a construct that is Jinja but not understood here; ST_TOO_LARGE: more than
 * TEMPLATE_SOURCE_MAX bytes, or nested too deep; ST_EXHAUSTED: no memory. */
MUST_CHECK enum status template_parse(struct span source, struct template **out, struct error *err);

/* Accepts NULL. */
void template_free(struct template *template);

/* Appends the text to |out|. |context| is a map: messages, tools, add_generation_prompt,
 * bos_token and so on; a name that it lacks is undefined. Everything that the rendering makes lives
 * in |arena|, which the caller resets.
 *
 * ST_INVALID: raise_exception(), whose text is the error's, if it has one; an undefined value that
 * was used; a type error. These name the line. A text that quotes a value is hidden from logs, see
 * error_hide(). ST_TOO_LARGE: a limit. ST_EXHAUSTED: no memory. |out| then holds
 * the beginning of the text. */
MUST_CHECK enum status template_render(const struct template *template, const struct value *context,
                                       const struct template_limits *limits, struct arena *arena,
                                       struct buf *out, struct error *err);

#endif
