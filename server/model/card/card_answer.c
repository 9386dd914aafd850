/* SPDX-License-Identifier: MIT */
/*
 * "answer" of an output: the kind as a word, or as the only member of an object that says more:
 * {"boxes": {"form": "xyxy", "score": 0.5}}. And how it meets the program.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/table.h"
#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"
#include "server/model/card/card_steps.h"

#define KINDS "classes, boxes, map or text"

static const char *const kinds[] = {
    [ANSWER_TENSOR] = NULL, [ANSWER_CLASSES] = "classes", [ANSWER_BOXES] = "boxes",
    [ANSWER_MAP] = "map",   [ANSWER_TEXT] = "text",
};
TABLE_ENDS_WITH(kinds, ANSWER_TEXT);
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

const char *card_answer_word(enum answer_kind kind)
{
    return kinds[kind];
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct card *card;
    const struct document *in;
    struct card_answer *out;
};

/* The number of the word |value| among |words|. */
static enum status read_word(const struct reader *r, const struct cJSON *value,
                             const char *const *words, uint32_t count, const char *expected,
                             uint32_t *out, struct error *err)
{
    const char *text;
    TRY(document_text(r->in, value, &text, err));
    for (*out = 0; *out < count; (*out)++) {
        if (words[*out] && strcmp(words[*out], text) == 0) {
            return ST_OK;
        }
    }
    return document_fail(r->in, value, err, ST_INVALID, "expected %s, got '%.40s'", expected, text);
}

static enum status read_share(const struct reader *r, const struct cJSON *value, double *out,
                              struct error *err)
{
    TRY(document_f64(r->in, value, out, err));
    return *out >= 0 && *out <= 1
               ? ST_OK
               : document_fail(r->in, value, err, ST_INVALID, "expected a number from 0 to 1");
}

static enum status read_name(const struct reader *r, const struct cJSON *value, const char **out,
                             struct error *err)
{
    const char *text;
    TRY(document_text(r->in, value, &text, err));
    *out = arena_strdup(&r->card->arena, text, strlen(text));
    return *out ? ST_OK : arena_fail(&r->card->arena, "the card", err);
}

static enum status read_form(const struct reader *r, const struct cJSON *value, struct error *err)
{
    static const char *const words[] = {
        [BOXES_CENTER] = "cxcywh", [BOXES_CORNERS] = "xyxy", [BOXES_SIZE] = "xywh"};
    uint32_t word;
    TRY(read_word(r, value, words, 3, "cxcywh, xyxy or xywh", &word, err));
    r->out->answer.rules.form = (enum boxes_form)word;
    r->out->has_form = true;
    return ST_OK;
}

static enum status read_order(const struct reader *r, const struct cJSON *value, struct error *err)
{
    static const char *const words[] = {[ANSWER_CANDIDATES_FIRST] = "candidates_first",
                                        [ANSWER_CANDIDATES_LAST] = "candidates_last"};
    uint32_t word;
    TRY(read_word(r, value, words, 3, "candidates_first or candidates_last", &word, err));
    r->out->answer.order = (enum answer_order)word;
    return ST_OK;
}

static const char *const picture_words[ANSWER_PICTURES] = {
    [ANSWER_STORED] = "sent", [ANSWER_SHOWN] = "shown", [ANSWER_OF_MODEL] = "model"};

const char *card_picture_word(enum answer_picture picture)
{
    return picture_words[picture];
}

static enum status read_picture(const struct reader *r, const struct cJSON *value,
                                struct error *err)
{
    uint32_t word;
    TRY(read_word(r, value, picture_words, ANSWER_PICTURES, "sent, shown or model", &word, err));
    r->out->answer.picture = (enum answer_picture)word;
    r->out->needs_picture |= word != ANSWER_OF_MODEL;
    return ST_OK;
}

static enum status read_u32(const struct reader *r, const struct cJSON *value, uint64_t least,
                            uint64_t most, uint32_t *out, struct error *err)
{
    uint64_t number;
    TRY(document_u64_from(r->in, value, least, most, &number, err));
    *out = (uint32_t)number;
    return ST_OK;
}

/* [COUNT, NUMBERS]: points of 2 or 3 numbers. */
static enum status read_points(const struct reader *r, const struct cJSON *value, struct error *err)
{
    struct answer_form *answer = &r->out->answer;
    const struct cJSON *count = document_type(value) == JSON_ARRAY ? document_first(value) : NULL;
    const struct cJSON *numbers = count ? document_next(count) : NULL;
    if (!numbers || document_next(numbers)) {
        return document_fail(r->in, value, err, ST_INVALID,
                             "expected [COUNT, NUMBERS], such as [17, 3]");
    }
    TRY(read_u32(r, count, 1, CARD_POINTS_MAX, &answer->points, err));
    return read_u32(r, numbers, 2, 3, &answer->point_numbers, err);
}

/* Masks are as large as the picture that they are in. */
static enum status read_masks(const struct reader *r, const struct cJSON *value, struct error *err)
{
    r->out->needs_picture = true;
    return read_name(r, value, &r->out->masks, err);
}

static enum status read_boxes_member(const struct reader *r, const struct cJSON *at,
                                     struct error *err)
{
    struct answer_form *answer = &r->out->answer;
    struct boxes_rules *rules = &answer->rules;
    return document_is(at, "form")         ? read_form(r, at, err)
           : document_is(at, "order")      ? read_order(r, at, err)
           : document_is(at, "relative")   ? document_bool(r->in, at, &answer->is_relative, err)
           : document_is(at, "picture")    ? read_picture(r, at, err)
           : document_is(at, "normalized") ? document_bool(r->in, at, &answer->is_normalized, err)
           : document_is(at, "objectness") ? document_bool(r->in, at, &answer->has_objectness, err)
           : document_is(at, "scores")     ? read_name(r, at, &r->out->scores, err)
           : document_is(at, "classes")    ? read_name(r, at, &r->out->classes, err)
           : document_is(at, "points")     ? read_points(r, at, err)
           : document_is(at, "angle")      ? document_bool(r->in, at, &answer->has_angle, err)
           : document_is(at, "masks")      ? read_masks(r, at, err)
           : document_is(at, "class_count")
               ? read_u32(r, at, 1, CARD_LABELS_MAX, &answer->box_classes, err)
           : document_is(at, "background")
               ? document_i64(r->in, at, 0, UINT32_MAX, &rules->background, err)
           : document_is(at, "score") ? read_share(r, at, &rules->score_least, err)
           : document_is(at, "iou")   ? read_share(r, at, &rules->overlap_most, err)
           : document_is(at, "count") ? read_u32(r, at, 1, BOXES_COUNT_MAX, &rules->count_max, err)
           : document_is(at, "across_classes")
               ? document_bool(r->in, at, &rules->ignores_classes, err)
               : document_refuse_member(r->in, at,
                                        "form, order, relative, picture, normalized, objectness, "
                                        "scores, classes, points, angle, masks, class_count, "
                                        "background, score, iou, count or across_classes",
                                        err);
}

static enum status read_boxes(const struct reader *r, const struct cJSON *value, struct error *err)
{
    TRY(document_need(r->in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_boxes_member(r, at, err));
    }
    const struct answer_form *answer = &r->out->answer;
    int more = (answer->points > 0) + answer->has_angle + (r->out->masks != NULL);
    if (more > 1 || (more > 0 && r->out->scores)) {
        return document_fail(r->in, value, err, ST_INVALID,
                             "expected one of points, angle and masks, and none beside scores");
    }
    return r->out->classes && !r->out->scores
               ? document_fail(r->in, value, err, ST_INVALID,
                               "\"classes\" needs \"scores\", the output that has their scores")
               : ST_OK;
}

static enum status read_text(const struct reader *r, const struct cJSON *value, struct error *err)
{
    TRY(document_need(r->in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(document_is(at, "blank")
                ? read_u32(r, at, 0, CARD_LABELS_MAX - 1, &r->out->answer.blank, err)
                : document_refuse_member(r->in, at, "blank", err));
    }
    return ST_OK;
}

static enum status read_map(const struct reader *r, const struct cJSON *value, struct error *err)
{
    TRY(document_need(r->in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(document_is(at, "picture") ? read_picture(r, at, err)
                                       : document_refuse_member(r->in, at, "picture", err));
    }
    return ST_OK;
}

static enum status read_details(const struct reader *r, const struct cJSON *value,
                                struct error *err)
{
    switch (r->out->answer.kind) {
    case ANSWER_CLASSES:
        return read_u32(r, value, 1, ANSWER_CLASSES_MAX, &r->out->answer.class_count, err);
    case ANSWER_BOXES:
        return read_boxes(r, value, err);
    case ANSWER_MAP:
        return read_map(r, value, err);
    case ANSWER_TEXT:
        return read_text(r, value, err);
    case ANSWER_TENSOR:
        break;
    }
    unreachable();
}

/* Maps are as large as the model's unless the card says otherwise. */
static void set_kind(struct card_answer *out, enum answer_kind kind)
{
    out->answer.kind = kind;
    out->answer.picture = kind == ANSWER_MAP ? ANSWER_OF_MODEL : ANSWER_STORED;
}

enum answer_kind card_find_answer_kind(const char *word)
{
    enum answer_kind kind = ANSWER_CLASSES;
    while (kind < KIND_COUNT && strcmp(kinds[kind], word) != 0) {
        kind++;
    }
    return kind < KIND_COUNT ? kind : ANSWER_TENSOR;
}

/* The defaults. */
static const struct answer_form usual = {
    .class_count = ANSWER_CLASSES_DEFAULT,
    .rules = {.score_least = 0.25, .overlap_most = 0.45, .count_max = 100, .background = -1},
    .scores = ANSWER_NO_INDEX,
    .classes = ANSWER_NO_INDEX,
    .masks = ANSWER_NO_INDEX,
};

enum status card_read_answer(struct card *card, const struct document *in, const char *path,
                             const struct cJSON *value, struct card_io *io, struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    const struct reader r = {card, in, &io->answer};
    enum json_type type = document_type(value);
    const struct cJSON *first = type == JSON_OBJECT ? document_first(value) : NULL;
    const char *text;
    io->answer = (struct card_answer){.answer = usual, .place = {in, value, path}};
    if (type != JSON_STRING && (!first || document_next(first))) {
        return document_fail(in, value, err, ST_INVALID,
                             "expected " KINDS ", or an object with one of these");
    }
    if (first) {
        set_kind(&io->answer, card_find_answer_kind(document_key(first)));
        return io->answer.answer.kind ? read_details(&r, first, err)
                                      : document_refuse_member(in, first, KINDS, err);
    }
    TRY(document_text(in, value, &text, err));
    set_kind(&io->answer, card_find_answer_kind(text));
    return io->answer.answer.kind
               ? ST_OK
               : document_fail(in, value, err, ST_INVALID, "expected " KINDS ", got '%.40s'", text);
}

/* ---- a program that is being loaded ---------------------------------------------------------- */

/* Maps and texts are of the best class: the device finds it. */
enum status card_adapt_answer(struct rt_method *method, struct card_io *io, struct error *err)
{
    const struct rt_io *is = rt_method_result(method, io->index);
    enum answer_kind kind = io->answer.answer.kind;
    bool is_map = kind == ANSWER_MAP && is->shape.rank == 4 && is->shape.dims[1] > 1;
    bool is_text = kind == ANSWER_TEXT && is->shape.rank == 3;
    if (is->kind != RT_IO_TENSOR || !dtype_is_float(is->dtype) || (!is_map && !is_text)) {
        return ST_OK;
    }
    io->class_count = (uint64_t)is->shape.dims[is_map ? 1 : 2];
    const struct rt_adapt_step best = {.kind = RT_ADAPT_ARG_MAX, .dim = is_map ? 1 : 2};
    enum status status = rt_adapt_result(method, io->index, &best, err);
    return status == ST_OK || status == ST_EXHAUSTED ? status : card_blame(&io->answer.place, err);
}

/* ---- a program ------------------------------------------------------------------------------- */

struct answer_tensor card_answer_tensor(const struct rt_method *method, uint32_t index)
{
    if (index == ANSWER_NO_INDEX) {
        return (struct answer_tensor){.dtype = DT_F32};
    }
    const struct rt_io *io = rt_method_result(method, index);
    return (struct answer_tensor){.dtype = io->dtype, .shape = io->shape};
}

static enum status find_result(const struct rt_method *method, const struct card_answer *said,
                               const char *name, uint32_t *out, struct error *err)
{
    char names[NAMES_TEXT_MAX];
    for (uint32_t i = 0; name && i < rt_method_result_count(method); i++) {
        const struct rt_io *io = rt_method_result(method, i);
        if (io->kind == RT_IO_TENSOR && rt_io_is_called(io, span_str(name))) {
            *out = i;
            return ST_OK;
        }
    }
    return name ? card_fail(&said->place, err, ST_INVALID,
                            "'%.60s' is no output with a tensor, expected %s", name,
                            rt_names_print(method, RT_RESULT, names))
                : ST_OK;
}

/* Boxes in one tensor are given by their centres, others by their corners, unless it is said. */
static void settle_form(struct card_answer *said)
{
    if (!said->has_form) {
        said->answer.rules.form = said->scores ? BOXES_CORNERS : BOXES_CENTER;
    }
}

const struct card_io *card_find_picture(const struct card *card, const struct rt_method *method)
{
    OBJ_CHECK(card, CARD_MAGIC);
    const struct card_method *said = card_find_method(card, method);
    for (uint32_t i = 0; said && i < rt_method_input_count(method); i++) {
        const struct card_io *io = card_find_io(said, RT_INPUT, i);
        if (io && io->media.kind && io->media.kind->has_pixels) {
            return io;
        }
    }
    return NULL;
}

/* Boxes can only be placed in a picture that there is. Sides of 1 stay so without one. */
static enum status check_picture(const struct card *card, const struct rt_method *method,
                                 const struct card_answer *said, struct error *err)
{
    bool needs_sides = said->answer.is_normalized && !said->answer.is_relative;
    return card_find_picture(card, method) || !(said->needs_picture || needs_sides)
               ? ST_OK
               : card_fail(&said->place, err, ST_INVALID,
                           "%s needs an input that the card says to be an image",
                           said->masks           ? "masks"
                           : said->needs_picture ? "picture"
                                                 : "normalized");
}

/* Numbers behind a box are scores of classes if the card says how many are, or has a label for each
 * of them. Others may be anything, such as coefficients of masks. */
static enum status check_scores(const struct answer_source *source, const struct rt_method *method,
                                const struct card_io *io, struct error *err)
{
    const struct card_answer *said = &io->answer;
    const char *name = rt_method_result(method, io->index)->name;
    uint64_t scores = answer_score_count(source), classes = said->answer.box_classes;
    bool is_joined = answer_has_joined_scores(&said->answer);
    if (classes > scores) {
        return card_fail(&said->place, err, ST_INVALID,
                         "class_count: expected at most %" PRIu64 ", got %" PRIu64, scores,
                         classes);
    }
    if (is_joined && !classes && source->label_count != scores) {
        return card_fail(io->labels.items ? &io->labels.place : &said->place, err, ST_INVALID,
                         "'%s' has %" PRIu64 " numbers behind each box, got %u labels; class_count "
                         "says how many are scores",
                         name, scores, source->label_count);
    }
    classes = classes ? classes : scores;
    return classes == 0 || !io->labels.items || classes == io->labels.count
               ? ST_OK
               : card_fail(&io->labels.place, err, ST_INVALID,
                           "'%s' has %" PRIu64 " classes, got %u labels", name, classes,
                           io->labels.count);
}

enum status card_apply_answer(struct card *card, const struct rt_method *method, struct card_io *io,
                              struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    struct card_answer *said = &io->answer;
    const struct card_labels *labels = card_find_labels(card, method, io->index);
    if (said->answer.kind == ANSWER_TENSOR) {
        return ST_OK;
    }
    if (rt_method_result(method, io->index)->kind != RT_IO_TENSOR) {
        return card_fail(&said->place, err, ST_INVALID, "'%s' is no tensor",
                         rt_method_result(method, io->index)->name);
    }
    TRY(find_result(method, said, said->scores, &said->answer.scores, err));
    TRY(find_result(method, said, said->classes, &said->answer.classes, err));
    TRY(find_result(method, said, said->masks, &said->answer.masks, err));
    TRY(check_picture(card, method, said, err));
    settle_form(said);
    const struct answer_source source = {
        .answer = &said->answer,
        .tensor = card_answer_tensor(method, io->index),
        .scores = card_answer_tensor(method, said->answer.scores),
        .classes = card_answer_tensor(method, said->answer.classes),
        .masks = card_answer_tensor(method, said->answer.masks),
        .labels = labels ? labels->items : NULL,
        .label_count = labels ? labels->count : 0,
    };
    if (answer_verify(&source, err) != ST_OK) {
        return card_blame(&said->place, err);
    }
    return check_scores(&source, method, io, err);
}
