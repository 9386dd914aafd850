/* SPDX-License-Identifier: MIT */
/*
 * The text of JSON as parts of a grammar. Between tokens there may be one blank, or a newline with
 * up to 20 blanks or tabs.
 */
#ifndef PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_JSON_PRIV_H
#define PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_JSON_PRIV_H

#include "server/text/grammar/grammar_priv.h"

enum grammar_word { GRAMMAR_NULL, GRAMMAR_TRUE, GRAMMAR_FALSE, GRAMMAR_WORDS };

/* Rules that a grammar of JSON has once. */
struct grammar_json {
    struct grammar_builder *builder;
    const char *words[GRAMMAR_WORDS]; /* as JSON has them, or Python */
    uint32_t space, character, string, number, integer, object, any;
};

/* Makes the rules; |builder| says whether that failed. */
void grammar_json_init(struct grammar_json *json, struct grammar_builder *builder, bool is_python);

/* Makes a character of JSON and the space behind it. */
const struct part *grammar_json_mark(struct grammar_json *json, const char *text);

/* |content| between quotation marks. */
const struct part *grammar_json_quoted(struct grammar_json *json, const struct part *content);

/* |open| item (, item){min-1,max-1} |close|; the list may be empty if min is 0. */
const struct part *grammar_json_listed(struct grammar_json *json, const char *open,
                                       const char *close, const struct part *item, uint32_t min,
                                       uint32_t max);

/* |key|: |value| */
const struct part *grammar_json_member(struct grammar_json *json, const struct part *key,
                                       const struct part *value);

/* Returns the rule for any object, such as {"a": [1]}. */
const struct part *grammar_json_object(struct grammar_json *json);

#endif
