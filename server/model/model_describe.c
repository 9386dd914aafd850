/* SPDX-License-Identifier: MIT */
/* The description of a model's method for clients: inputs, outputs, structure, an example,
 * placement. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/oip_classes.h"
#include "protocol/oip_reply.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/example.h"
#include "server/model/card/call_method.h"
#include "server/model/card/card.h"
#include "server/model/intake/medium.h"
#include "server/model/model.h"
#include "server/model/placement.h"

#define FORM_TEXT_MAX (64 << 10)

/* The text in |form|, which is freed, as one of |model|; NULL: no memory. */
static const char *keep_form(struct model *model, struct buf *form)
{
    const char *kept = buf_failed(form) ? NULL : arena_strdup(&model->arena, form->ptr, form->len);
    buf_fini(form);
    return kept;
}

static struct oip_type type_of(const struct rt_io *io)
{
    return (struct oip_type){.is_bytes = io->kind == RT_IO_STRING, .dtype = io->dtype};
}

/* All but None, which has no entry in the protocol. */
static enum status describe(struct arena *arena, const struct rt_method *method, bool is_input,
                            struct model_io **out_ios, uint32_t *out_count, struct error *err)
{
    uint32_t count = is_input ? rt_method_input_count(method) : rt_method_result_count(method);
    struct model_io *ios = arena_array(arena, count, sizeof(*ios));
    if (!ios) {
        return error_no_memory(err, "the description of a model");
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io =
            is_input ? rt_method_input(method, i) : rt_method_result(method, i);
        if (io->kind != RT_IO_NONE) {
            ios[used++] = (struct model_io){
                .index = i,
                .kind = io->kind,
                .io = io,
                .meta = {.name = io->name,
                         .type = type_of(io),
                         .shape = card_shape_of(io),
                         .is_optional = io->is_fixed},
            };
        }
    }
    *out_ios = ios;
    *out_count = used;
    return ST_OK;
}

/* Shapes that a call may have, for those who have none of their own. */
static enum status choose_example(struct model *model, struct error *err)
{
    uint32_t count = rt_method_input_count(model->method);
    struct shape *shapes = arena_array(&model->arena, count, sizeof(*shapes));
    struct error ignored;
    if (!shapes) {
        return error_no_memory(err, "the description of a model");
    }
    if (rt_method_failure(model->method) ||
        rt_example_shapes(model->method, NULL, shapes, &ignored) != ST_OK) {
        return ST_OK;
    }
    model->example = shapes;
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct model_io *io = &model->inputs[i];
        bool is_dynamic = rt_method_input(model->method, io->index)->dynamic_dims != 0;
        model->inputs[i].example = is_dynamic ? &shapes[io->index] : NULL;
    }
    return ST_OK;
}

/* The labels of an output, by the strongest source that has some. */
static void take_labels(const struct model *model, struct model_io *io)
{
    const struct origin *origin = model->origin;
    const struct card *card = origin->card;
    const struct card_labels *said = card ? card_find_labels(card, model->method, io->index) : NULL;
    bool is_card =
        said && (!origin->labels || (!origin->outranks_members && card_is_of_members(card, said)));
    io->labels = is_card ? said->items : origin->labels;
    io->label_count = is_card ? said->count : origin->label_count;
    io->meta.label_count = io->kind == RT_IO_TENSOR ? io->label_count : 0;
}

/* An output that boxes are made from, too. */
static void print_part(const struct model *model, const char *key, uint32_t index, struct buf *out)
{
    if (index != ANSWER_NO_INDEX) {
        buf_printf(out, ",\"%s\":", key);
        json_print_string(out, span_str(rt_method_result(model->method, index)->name));
    }
}

/* How many classes there are, or where boxes and maps lie. */
static enum status print_answer(struct model *model, struct model_io *io, struct error *err)
{
    const struct answer_form *answer = io->answer;
    struct buf text;
    if (answer->kind == ANSWER_TEXT) {
        return ST_OK;
    }
    buf_init(&text, FORM_TEXT_MAX);
    if (answer->kind == ANSWER_CLASSES) {
        buf_printf(&text, "{\"count\":%" PRIu32 "}", answer->class_count);
    } else {
        buf_printf(&text, "{\"picture\":\"%s\"%s", card_picture_word(answer->picture),
                   answer->is_normalized ? ",\"normalized\":true" : "");
        print_part(model, "scores", answer->scores, &text);
        print_part(model, "classes", answer->classes, &text);
        print_part(model, "masks", answer->masks, &text);
        buf_add_char(&text, '}');
    }
    io->meta.answer_form = keep_form(model, &text);
    return io->meta.answer_form ? ST_OK : error_no_memory(err, "the description of a model");
}

/* Takes the card's entries; their texts live as long as the origin. */
static enum status take_card(struct model *model, struct error *err)
{
    const struct card *card = model->origin->card;
    const struct card_method *said = card ? card_find_method(card, model->method) : NULL;
    for (uint32_t i = 0; i < model->output_count; i++) {
        struct model_io *io = &model->outputs[i];
        take_labels(model, io);
        io->answer = card ? card_find_answer(card, model->method, io->index) : NULL;
        if (io->answer) {
            io->meta.answer = card_answer_word(io->answer->kind);
            TRY(print_answer(model, io, err));
        }
    }
    for (uint32_t i = 0; said && i < model->input_count + model->output_count; i++) {
        bool is_input = i < model->input_count;
        struct model_io *io =
            is_input ? &model->inputs[i] : &model->outputs[i - model->input_count];
        const struct card_io *about =
            card_find_io(said, is_input ? RT_INPUT : RT_RESULT, io->index);
        io->meta.description = about ? about->description : NULL;
    }
    model->description = said ? said->description : NULL;
    return ST_OK;
}

/* Notes the answer for people that a call gives in place of the numbers of |io|, for the
 * descriptions of calls. */
static void note_answer(const struct model_io *io, struct call_io *results, uint32_t result_count)
{
    static const enum call_answer answers[] = {
        [ANSWER_TENSOR] = CALL_NUMBERS, [ANSWER_CLASSES] = CALL_CLASSES,
        [ANSWER_BOXES] = CALL_BOXES,    [ANSWER_MAP] = CALL_MAP,
        [ANSWER_TEXT] = CALL_SAYING,
    };
    bool is_labelled = io->kind == RT_IO_TENSOR && io->labels && io->meta.shape.rank > 0 &&
                       oip_is_score(io->meta.type.dtype);
    results[io->index].answer = io->answer    ? answers[io->answer->kind]
                                : is_labelled ? CALL_CLASSES
                                              : CALL_NUMBERS;
    for (uint32_t i = 0; i < result_count; i++) {
        results[i].is_part |= answer_has_part(io->answer, i);
    }
}

static enum status take_answers(struct model *model, struct error *err)
{
    uint32_t count = model->call.result_count;
    struct call_io *results = arena_array(&model->arena, count, sizeof(*results));
    if (!results) {
        return error_no_memory(err, "the description of a model");
    }
    if (count > 0) {
        memcpy(results, model->call.results, count * sizeof(*results));
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        results[model->outputs[i].index].name = model->outputs[i].meta.name;
        note_answer(&model->outputs[i], results, count);
    }
    model->call.results = results;
    return ST_OK;
}

/* The text in |text|, which is freed, as one of |model|. */
static enum status keep_head(struct model *model, struct buf *text, struct span *out,
                             struct error *err)
{
    size_t len = text->len;
    const char *kept = keep_form(model, text);
    *out = span_of(kept, kept ? len : 0);
    return kept ? ST_OK : error_no_memory(err, "the description of a model");
}

/* Prints what all answers of the model begin with. */
static enum status print_heads(struct model *model, struct error *err)
{
    struct buf text;
    buf_init(&text, FORM_TEXT_MAX);
    oip_print_reply_head(&text, model->name, model->version_text);
    TRY(keep_head(model, &text, &model->reply_head, err));
    for (uint32_t i = 0; i < model->output_count; i++) {
        struct model_io *io = &model->outputs[i];
        buf_init(&text, FORM_TEXT_MAX);
        oip_print_result_head(&text, span_str(io->meta.name), io->meta.type);
        TRY(keep_head(model, &text, &io->head, err));
    }
    return ST_OK;
}

enum status model_describe(struct model *model, struct rt_method *method,
                           const struct hal_device *device, struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    must(model_state(model) == MODEL_LOADING && !model->method);
    struct arena *arena = &model->arena;
    const char *name = rt_method_name(method);
    model->program = rt_program_ref(rt_method_program(method));
    model->method = method;
    model->method_name = arena_strdup(arena, name, strlen(name));
    uint32_t steps = rt_pipeline_step_count(method);
    model->steps_before = arena_array(arena, steps, sizeof(*model->steps_before));
    if (!model->steps_before || !model->method_name) {
        return error_no_memory(err, "the description of a model");
    }
    model->step_count = steps;
    TRY(describe(arena, method, true, &model->inputs, &model->input_count, err));
    TRY(describe(arena, method, false, &model->outputs, &model->output_count, err));
    TRY(card_describe_call(arena, method, &model->call, err));
    TRY(take_card(model, err));
    TRY(take_answers(model, err));
    TRY(print_heads(model, err));
    model->placement = placement_print(arena, device, method);
    return choose_example(model, err);
}

/* Inputs beside the ids of a text may be left out: they are filled with it. */
static void note_filled(struct model *model, const struct medium *medium, struct call_io *inputs)
{
    for (uint32_t i = 0; i < model->input_count; i++) {
        struct model_io *io = &model->inputs[i];
        bool is_filled =
            io->index == medium->parts[MEDIUM_MASK] || io->index == medium->parts[MEDIUM_TYPES];
        io->is_filled |= is_filled;
        io->meta.is_optional |= is_filled;
        inputs[io->index].is_filled |= is_filled;
    }
}

static enum status print_medium(struct model *model, struct model_io *io, struct error *err)
{
    struct buf text;
    buf_init(&text, FORM_TEXT_MAX);
    medium_print(io->medium, &text);
    io->meta.media = io->medium->kind->word;
    io->meta.media_form = keep_form(model, &text);
    return io->meta.media_form ? ST_OK : error_no_memory(err, "the description of a model");
}

/* The call's descriptions of inputs change, too. */
enum status model_give_medium(struct model *model, struct model_io *io, struct medium *medium,
                              struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    must(!io->medium);
    uint32_t count = model->call.input_count;
    struct call_io *inputs = arena_array(&model->arena, count, sizeof(*inputs));
    io->medium = medium;
    if (!inputs) {
        return error_no_memory(err, "the description of a model");
    }
    memcpy(inputs, model->call.inputs, count * sizeof(*inputs));
    model->call.inputs = inputs;
    TRY(print_medium(model, io, err));
    inputs[io->index].medium = medium->kind->is_text ? CALL_WORDS : CALL_FILE;
    note_filled(model, medium, inputs);
    return ST_OK;
}

enum status model_open_media(struct model *model, struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    const struct origin *origin = model->origin;
    const struct card_method *said =
        origin->card ? card_find_method(origin->card, model->method) : NULL;
    const struct card_io *picture =
        origin->card ? card_find_picture(origin->card, model->method) : NULL;
    for (uint32_t i = 0; said && i < model->input_count; i++) {
        struct model_io *io = &model->inputs[i];
        const struct card_io *about = card_find_io(said, RT_INPUT, io->index);
        struct medium *medium;
        TRY(medium_new(model->method, about, origin->path, origin->tokenizer_path, &medium, err));
        TRY(medium ? model_give_medium(model, io, medium, err) : ST_OK);
        model->picture = about && about == picture ? medium : model->picture;
    }
    return ST_OK;
}
