/* SPDX-License-Identifier: MIT */
/* The life of a card, and finding entries in it. */
#include "config.h"

#include "server/model/card/card.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/model/card/beside.h"
#include "server/model/card/card_steps.h"

#define ARENA_BYTES_MAX (64 << 20)
#define SUFFIX ".pte"

struct card *card_new(void)
{
    struct card *card = calloc(1, sizeof(*card));
    if (!card) {
        return NULL;
    }
    card->magic = CARD_MAGIC;
    arena_init(&card->arena, ARENA_BYTES_MAX);
    card->methods = arena_array(&card->arena, CARD_METHODS_MAX + 1, sizeof(*card->methods));
    if (!card->methods) {
        card_free(card);
        return NULL;
    }
    card->method_count = 1;
    return card;
}

void card_settle(struct card *card)
{
    OBJ_CHECK(card, CARD_MAGIC);
    if (card->own.root) {
        document_close(&card->own);
    }
    if (card->derived.root) {
        document_close(&card->derived);
    }
    if (card->beside) {
        beside_close(card->beside);
        free(card->beside);
        card->beside = NULL;
    }
    card->is_settled = true;
}

void card_free(struct card *card)
{
    if (!card) {
        return;
    }
    card_settle(card);
    arena_fini(&card->arena);
    card->magic = 0;
    free(card);
}

bool card_has_int8_cache(const struct card *card)
{
    return card && card->has_int8_cache;
}

bool card_path_of(const char *program, char *out, size_t size)
{
    size_t len = strlen(program), suffix = strlen(SUFFIX);
    if (len > suffix && strcmp(program + len - suffix, SUFFIX) == 0) {
        len -= suffix;
    }
    int written = snprintf(out, size, "%.*s" CARD_SUFFIX, (int)len, program);
    return written >= 0 && (size_t)written < size;
}

/* ---- messages -------------------------------------------------------------------------------- */

enum status card_put_in_front(const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    struct error bare = *err;
    struct buf text;
    buf_init(&text, ERROR_TEXT_MAX);
    document_print_error(&text, slash ? slash + 1 : path, &bare);
    error_set(err, bare.code, "%.*s", SPAN_FMT(buf_span(&text)));
    buf_fini(&text);
    return err->code;
}

enum status card_fail(const struct card_place *place, struct error *err, enum status code,
                      const char *fmt, ...)
{
    char what[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    document_fail(place->document, place->value, err, code, "%s", what);
    return card_put_in_front(place->path, err);
}

enum status card_blame(const struct card_place *place, struct error *err)
{
    struct error why = *err;
    return card_fail(place, err, why.code, "%s", why.text);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Is |method| the default method of its program? */
static bool is_default(const struct rt_method *method)
{
    return rt_program_default_method(rt_method_program(method)) == method;
}

const struct card_method *card_find_named(const struct card *card, struct span name,
                                          bool is_default)
{
    OBJ_CHECK(card, CARD_MAGIC);
    for (uint32_t i = 1; i < card->method_count; i++) {
        if (span_is(name, card->methods[i].name)) {
            return &card->methods[i];
        }
    }
    return is_default ? &card->methods[0] : NULL;
}

const struct card_method *card_find_method(const struct card *card, const struct rt_method *method)
{
    return card_find_named(card, span_str(rt_method_name(method)), is_default(method));
}

const struct card_io *card_find_io(const struct card_method *method, enum rt_side side,
                                   uint32_t index)
{
    const struct card_ios *ios = &method->ios[side];
    for (uint32_t i = 0; i < ios->count; i++) {
        if (ios->items[i].index == index) {
            return &ios->items[i];
        }
    }
    return NULL;
}

uint64_t card_class_count(const struct rt_method *method, uint32_t index)
{
    const struct rt_io *io = rt_method_result(method, index);
    uint64_t count = 1;
    uint8_t first = io->shape.rank > 1; /* rows */
    for (uint8_t dim = first; dim < io->shape.rank; dim++) {
        if (rt_io_is_dynamic(io, dim)) {
            return 0;
        }
        /* no overflow: the elements of a tensor can be counted */
        count *= (uint64_t)io->shape.dims[dim];
    }
    return io->kind == RT_IO_TENSOR ? count : 0;
}

uint64_t card_label_count(const struct rt_method *method, uint32_t index, const struct card_io *io)
{
    enum answer_kind kind = io ? io->answer.answer.kind : ANSWER_TENSOR;
    return io && io->class_count > 0                   ? io->class_count
           : kind == ANSWER_BOXES                      ? io->answer.answer.box_classes
           : kind == ANSWER_MAP || kind == ANSWER_TEXT ? 0
                                                       : card_class_count(method, index);
}

/* Sources by rank: what lies beside the program, the card's file, pted.json. */
static int rank_of(const struct card *card, const struct card_labels *labels)
{
    const struct document *in = labels->place.document;
    return in == &card->derived ? 0 : in == &card->own ? 1 : 2;
}

bool card_is_of_members(const struct card *card, const struct card_labels *labels)
{
    return rank_of(card, labels) == 2;
}

const struct card_labels *card_find_labels(const struct card *card, const struct rt_method *method,
                                           uint32_t index)
{
    OBJ_CHECK(card, CARD_MAGIC);
    const struct card_method *said = card_find_method(card, method);
    const struct card_io *io = said ? card_find_io(said, RT_RESULT, index) : NULL;
    uint64_t classes = card_label_count(method, index, io);
    bool fits = card->labels.items && (classes == 0 || classes == card->labels.count);
    bool has_own = io && io->labels.items;
    bool is_outranked =
        has_own && fits && rank_of(card, &card->labels) > rank_of(card, &io->labels);
    return has_own && !is_outranked ? &io->labels : fits ? &card->labels : NULL;
}

const struct answer_form *card_find_answer(const struct card *card, const struct rt_method *method,
                                           uint32_t index)
{
    OBJ_CHECK(card, CARD_MAGIC);
    const struct card_method *said = card_find_method(card, method);
    const struct card_io *io = said ? card_find_io(said, RT_RESULT, index) : NULL;
    return io && io->answer.answer.kind ? &io->answer.answer : NULL;
}

void card_put_params(const struct card *card, const struct options *options, struct params *params)
{
    for (uint32_t i = 0; card && i < card->param_count; i++) {
        const struct card_param *param = &card->params[i];
        const char *said = (const char *)&options->said + param->offset;
        if (*(const uint64_t *)(const void *)said == 0) {
            *(uint64_t *)(void *)((char *)params + param->offset) = param->value;
        }
    }
}
