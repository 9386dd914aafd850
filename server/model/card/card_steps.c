/* SPDX-License-Identifier: MIT */
/*
 * "steps" of an output: a list of words, "softmax", or of objects with one member, {"softmax": 1}.
 */
#include "config.h"

#include "server/model/card/card_steps.h"

#include <string.h>

#include "base/check.h"

#define DIM_MAX 16 /* of the greatest rank */

/* The form of the value in a step's object. */
enum step_form { FORM_DIM, FORM_NUMBER, FORM_MEAN, FORM_NOTHING };

static const struct {
    const char *name;
    enum rt_adapt_kind kind;
    enum step_form form;
    bool is_word; /* the name alone will do: the last dim, or the mean */
} words[] = {
    {"softmax", RT_ADAPT_SOFTMAX, FORM_DIM, true},
    {"sigmoid", RT_ADAPT_SIGMOID, FORM_NOTHING, true},
    {"normalize", RT_ADAPT_NORMALIZE, FORM_DIM, true},
    {"pool", RT_ADAPT_POOL, FORM_MEAN, false},
    {"arg_max", RT_ADAPT_ARG_MAX, FORM_DIM, true},
    {"threshold", RT_ADAPT_THRESHOLD, FORM_NUMBER, false},
};
#define WORD_COUNT (sizeof(words) / sizeof(words[0]))
#define WORDS "softmax, sigmoid, normalize, pool, arg_max or threshold"

/* ---- reading --------------------------------------------------------------------------------- */

static size_t find_word(const char *text)
{
    size_t i = 0;
    while (i < WORD_COUNT && strcmp(words[i].name, text) != 0) {
        i++;
    }
    return i;
}

static enum status read_word(const struct document *in, const struct cJSON *value,
                             struct rt_adapt_step *out, struct error *err)
{
    const char *text;
    TRY(document_text(in, value, &text, err));
    size_t word = find_word(text);
    if (word == WORD_COUNT) {
        return document_fail(in, value, err, ST_INVALID, "expected " WORDS ", got '%.40s'", text);
    }
    if (!words[word].is_word) {
        return document_fail(in, value, err, ST_INVALID, "expected an object: {\"%s\": %s}",
                             words[word].name,
                             words[word].form == FORM_MEAN ? "\"mean\"" : "NUMBER");
    }
    *out = (struct rt_adapt_step){.kind = words[word].kind, .dim = -1};
    return ST_OK;
}

static enum status read_mean(const struct document *in, const struct cJSON *value,
                             struct error *err)
{
    const char *text;
    TRY(document_text(in, value, &text, err));
    return strcmp(text, "mean") == 0
               ? ST_OK
               : document_fail(in, value, err, ST_INVALID, "expected mean, got '%.40s'", text);
}

static enum status read_member(const struct document *in, const struct cJSON *member,
                               struct rt_adapt_step *out, struct error *err)
{
    size_t word = find_word(document_key(member));
    if (word == WORD_COUNT) {
        return document_refuse_member(in, member, WORDS, err);
    }
    *out = (struct rt_adapt_step){.kind = words[word].kind, .dim = -1};
    switch (words[word].form) {
    case FORM_DIM:
        return document_i64(in, member, -DIM_MAX, DIM_MAX - 1, &out->dim, err);
    case FORM_NUMBER:
        return document_f64(in, member, &out->number, err);
    case FORM_MEAN:
        return read_mean(in, member, err);
    case FORM_NOTHING:
        return document_fail(in, member, err, ST_INVALID, "expected the word \"%s\" alone",
                             words[word].name);
    }
    unreachable();
}

static enum status read_step(const struct document *in, const struct cJSON *value,
                             struct rt_adapt_step *out, struct error *err)
{
    enum json_type type = document_type(value);
    const struct cJSON *first = type == JSON_OBJECT ? document_first(value) : NULL;
    if (type == JSON_STRING) {
        return read_word(in, value, out, err);
    }
    if (!first || document_next(first)) {
        return document_fail(in, value, err, ST_INVALID,
                             "expected a word or an object with one member");
    }
    return read_member(in, first, out, err);
}

enum status card_read_steps(struct card *card, const struct document *in, const char *path,
                            const struct cJSON *value, struct card_io *io, struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    TRY(document_need(in, value, JSON_ARRAY, err));
    io->steps = arena_array(&card->arena, CARD_STEPS_MAX, sizeof(*io->steps));
    if (!io->steps) {
        return arena_fail(&card->arena, "the card", err);
    }
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        if (io->step_count == CARD_STEPS_MAX) {
            return document_fail(in, value, err, ST_TOO_LARGE, "expected at most %d steps",
                                 CARD_STEPS_MAX);
        }
        struct card_step *step = &io->steps[io->step_count];
        TRY(read_step(in, at, &step->step, err));
        step->place = (struct card_place){.document = in, .value = at, .path = path};
        io->step_count++;
    }
    return ST_OK;
}
