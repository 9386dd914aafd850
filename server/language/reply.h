/* SPDX-License-Identifier: MIT */
/*
 * Answers of language models as text: one JSON object, or a stream of server-sent events. A row of
 * functions for each form (server/language/ask.h) prints them.
 *
 *     not a stream    reply_print_choice() for each choice, when it is complete; after the last one
 *                     reply_print_rest()
 *     a stream        reply_print_event() for each piece of a choice, with the reason at its end;
 *                     after the last choice reply_print_end()
 */
#ifndef PTED_SERVER_LANGUAGE_REPLY_H
#define PTED_SERVER_LANGUAGE_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "server/language/ask.h"
#include "server/language/sampler.h"

struct tools_calls;
struct words;

/* Why a choice ended. */
enum reply_reason { REPLY_GOES_ON, REPLY_STOP, REPLY_LENGTH, REPLY_TOOLS };

/* What the present block of a message is. */
enum reply_block { REPLY_NO_BLOCK, REPLY_THOUGHT, REPLY_TEXT, REPLY_CALL };

#define REPLY_ID_CHARS 16

struct reply {
    const struct ask *ask;
    const struct words *words;
    const char *model, *version;
    char id[REPLY_ID_CHARS + 1];
    int64_t created; /* s since 1970 */
    uint64_t prompt_tokens, answer_tokens;
    uint64_t cached_tokens;  /* tokens of the prompts that were not computed again */
    bool thinks;             /* the model has thoughts (server/language/thinking.h) */
    uint64_t thought_tokens; /* of |answer_tokens| */
    uint64_t accepted_tokens, rejected_tokens; /* tokens of the prediction that were checked */
    enum reply_reason reason;                  /* of the last choice that has ended */
    struct span stop;                          /* the stop text that has ended it, or empty */
    /* Of Ollama's form: when it is printed, since 1970; how long all of it, the load of the model,
     * the prompt and the answer have taken so far; ns. */
    uint64_t wall_ns, total_ns, load_ns, prompt_ns, answer_ns;
    /* Of a message. */
    enum reply_block block;
    uint32_t block_count; /* that the stream has told of */
    /* Of a response. */
    uint32_t event_count;
    bool has_item;             /* the stream has told of a message */
    bool has_thought;          /* and of a thought, before it */
    bool ends_thought;         /* and that it is over */
    bool ends_item;            /* and that the message is */
    uint32_t ended_calls;      /* and that so many calls are; of Cohere's form, too */
    size_t told_thought_bytes; /* of it */
};

/* A piece of a choice, or all of it. */
struct reply_piece {
    uint32_t choice;
    struct span text;
    const struct sampler_mark *marks; /* if logarithms are wanted */
    uint32_t mark_count;
    /* If those of the prompt are wanted, and in the first piece: its ids, a mark for each but the
     * first, and, if it is echoed, the characters of the text before each. */
    const uint32_t *prompt;
    const uint32_t *prompt_offsets;
    const struct sampler_mark *prompt_marks;
    uint32_t prompt_count;
    size_t text_offset;    /* bytes of the choice before |text| */
    struct span thought;   /* likewise, of the thoughts */
    size_t thought_offset; /* bytes of the thoughts before |thought| */
    bool is_first;
    const struct tools_calls *calls; /* behind the text, so far; NULL: none */
    uint32_t told_calls;             /* of them: earlier events have told that they began */
    size_t told_argument_bytes;      /* of the last of these */
    enum reply_reason reason;
};

/* Returns the number of characters that begin in |text|, which may end in the middle of one. */
size_t reply_count_characters(struct span text);

/* Returns the arguments of call |index| of |piece| that earlier events have not told. */
struct span reply_untold_arguments(const struct reply_piece *piece, uint32_t index);

/* Has |piece| something of its calls to tell? */
bool reply_has_news_of_calls(const struct reply_piece *piece);

/* Returns the first call of which |piece| may have something to tell. */
uint32_t reply_first_untold_call(const struct reply_piece *piece);

void reply_print_choice(const struct reply *reply, const struct reply_piece *piece,
                        struct buf *out);
void reply_print_rest(const struct reply *reply, struct buf *out);

void reply_print_event(struct reply *reply, const struct reply_piece *piece, struct buf *out);
void reply_print_end(const struct reply *reply, struct buf *out);

/* Prints an error as clients of OpenAI's API know it; the same as an event without a name; and as
 * the last event of a stream of |reply|, in its form. */
void reply_print_error(struct buf *out, const char *text, int http_status);
void reply_print_error_data(struct buf *out, const char *text, int http_status);
void reply_print_error_event(struct reply *reply, struct buf *out, const char *text,
                             int http_status);

#endif
