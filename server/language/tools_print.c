/* SPDX-License-Identifier: MIT */
/* Calls as a family writes them, for grammars of calls that have to be. */
#include "config.h"

#include "server/language/tools_priv.h"
#include "server/language/words.h"

#define CALL_BYTES_MAX 1024

/* What stands around the arguments of a form; keys and bare texts need no quotes. */
static const struct printed {
    bool is_listed, has_bare_texts, is_by_schema, keeps_lines, is_python;
    const char *before_key, *before_text, *behind_text, *before_value, *behind_value, *between;
    const char *stop; /* ends a bare text */
} printed[] = {
    [TOOLS_JSON] = {.is_listed = false},
    [TOOLS_NAMED] = {.is_listed = false},
    [TOOLS_TAGS] = {true, true, true, true, false, "<parameter=", ">\n", "\n</parameter>\n", ">\n",
                    "\n</parameter>\n", "", "</parameter>"},
    [TOOLS_KEYS] = {true, true, true, false, false, "<arg_key>", "</arg_key>\n<arg_value>",
                    "</arg_value>\n", "</arg_key>\n<arg_value>", "</arg_value>\n", "",
                    "</arg_value>"},
    [TOOLS_INVOKE] = {true, true, true, false, false, "<parameter name=\"", "\">", "</parameter>\n",
                      "\">", "</parameter>\n", "", "</parameter>"},
    [TOOLS_MARKED] = {true, true, false, true, false, "<" TOOLS_DSML "parameter name=\"",
                      "\" string=\"true\">", "</" TOOLS_DSML "parameter>\n", "\" string=\"false\">",
                      "</" TOOLS_DSML "parameter>\n", "", "</" TOOLS_DSML "parameter>"},
    [TOOLS_PYTHON] = {true, false, false, true, true, "", "", "", "=", "", ", ", ""},
    [TOOLS_BRACES] = {true, true, false, true, false, "", ":", "", ":", "", ",", ""},
};

/* The mark of the rules that stands at |text|, and is a special token; empty: none. */
static struct span special_at(const struct tools_rules *rules, const struct words *words,
                              const char *text)
{
    const struct tools_family *family = rules->family;
    const char *const marks[] = {family->begin, family->open, family->separator, family->close,
                                 family->quote};
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        struct span mark = span_str(marks[i]);
        uint32_t id;
        if (mark.len > 0 && strncmp(text, marks[i], mark.len) == 0 &&
            words_find(words, mark, &id) && tools_rules_have(rules, id)) {
            return mark;
        }
    }
    return span_str("");
}

/* Appends |text|, with a byte that no text has before special tokens. */
static struct span add(const struct tools_rules *rules, const struct words *words, const char *text,
                       struct buf *out)
{
    size_t begin = out->len;
    while (*text) {
        struct span mark = special_at(rules, words, text);
        size_t len = mark.len > 0 ? mark.len : 1;
        if (mark.len > 0) {
            buf_add_char(out, (char)TOOLS_TOKEN_BYTE);
        }
        buf_add(out, text, len);
        text += len;
    }
    return span_of(NULL, out->len - begin); /* its place is set when all of them are there */
}

enum status tools_call_form(const struct tools_rules *rules, const struct words *words,
                            struct buf *text, struct grammar_call_form *out, struct error *err)
{
    const struct printed *from = &printed[rules->family->form];
    const char *quote = rules->family->quote;
    buf_init(text, CALL_BYTES_MAX);
    *out = (struct grammar_call_form){
        .is_listed = from->is_listed,
        .has_bare_texts = from->has_bare_texts,
        .is_by_schema = from->is_by_schema,
        .keeps_lines = from->keeps_lines,
        .is_python = from->is_python,
        .call = add(rules, words, rules->family->call, text),
        .before_text = add(rules, words, from->before_text ? from->before_text : "", text),
    };
    out->before_text.len += add(rules, words, quote, text).len;
    out->behind_text = add(rules, words, from->behind_text ? from->behind_text : "", text);
    out->behind_text.len += add(rules, words, quote, text).len;
    if (buf_failed(text)) {
        return error_no_memory(err, "constrained output");
    }
    out->call.ptr = text->ptr;
    out->before_text.ptr = out->call.ptr + out->call.len;
    out->behind_text.ptr = out->before_text.ptr + out->before_text.len;
    out->before_key = span_str(from->before_key ? from->before_key : "");
    out->before_value = span_str(from->before_value ? from->before_value : "");
    out->behind_value = span_str(from->behind_value ? from->behind_value : "");
    out->between = span_str(from->between ? from->between : "");
    out->stops[0] = span_str(*quote ? quote : from->stop ? from->stop : "");
    out->stops[1] = span_str(*quote ? "" : rules->family->close);
    return ST_OK;
}
