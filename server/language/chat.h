/* SPDX-License-Identifier: MIT */
/*
 * From the messages of a chat to a prompt: the template that a model comes with, in
 * tokenizer_config.json or chat_template.jinja, and the texts of special tokens that it may use.
 *
 * Constant after chat_open(); any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_CHAT_H
#define PTED_SERVER_LANGUAGE_CHAT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

struct ask;
struct template;
struct thinking_family;
struct tools_family;

/* The failure of a model without one, written here once. */
#define CHAT_NO_TEMPLATE                                                                           \
    "there is no chat template: expected chat_template.jinja, or tokenizer_config.json with "      \
    "chat_template, beside the tokenizer"

/* Names of tokens that tokenizer_config.json may give texts for, and templates may use. */
enum chat_token { CHAT_BOS, CHAT_EOS, CHAT_PAD, CHAT_UNK, CHAT_TOKENS };

struct chat {
    struct template *template; /* owned; NULL: there is none, for the reason |failure| */
    char *source;              /* owned: the text of |template|; or NULL */
    struct error failure;
    bool is_refused;           /* there is one, and it is not understood */
    bool knows_developer;      /* it speaks of that role; others get system in its place */
    char *tokens[CHAT_TOKENS]; /* owned; NULL: not given */
    const struct thinking_family *thinking; /* NULL: the template knows no thoughts */
    const struct tools_family *tools;       /* how its model writes calls; NULL: no template */
};

/*
 * Reads tokenizer_config.json at |config|, which may be missing, and the template at |jinja|, which
 * is used if the first has none. A template that is not understood is no error here: chats then get
 * the reason, with ST_UNSUPPORTED whatever is wrong in it. ST_INVALID: the file is no such
 * document; ST_EXHAUSTED. Blocks. chat_close() in each case.
 */
MUST_CHECK enum status chat_open(struct chat *chat, const char *config, const char *jinja,
                                 struct error *err);
void chat_close(struct chat *chat);

/*
 * Appends the prompt for the messages and tools of |ask|, with the beginning of an answer. Memory
 * comes from |arena|. ST_INVALID: the template refuses the messages; ST_UNSUPPORTED: there is no
 * template; ST_TOO_LARGE: a limit of templates.
 */
MUST_CHECK enum status chat_render(const struct chat *chat, const struct ask *ask,
                                   struct arena *arena, struct buf *out, struct error *err);

#endif
