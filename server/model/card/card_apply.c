/* SPDX-License-Identifier: MIT */
/* A card meets its program: everything that it says has to be about something that exists. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "runtime/program/program.h"
#include "runtime/program/signature.h"
#include "server/model/card/card.h"
#include "server/model/card/card_priv.h"
#include "server/model/card/card_steps.h"
#include "server/process/file.h"

#define LABELS_BYTES_MAX ((size_t)8 << 20)

static enum status exhausted(const struct card *card, struct error *err)
{
    return arena_fail(&card->arena, "the card", err);
}

/* ---- files of labels ------------------------------------------------------------------------- */

static uint32_t count_lines(struct span text)
{
    uint32_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += text.ptr[i] == '\n' || i + 1 == text.len;
    }
    return count;
}

enum status card_take_lines(struct arena *arena, struct span text, const struct span **out_items,
                            uint32_t *out_count, struct error *err)
{
    uint32_t count = count_lines(text), at = 0;
    if (!json_is_utf8(text)) {
        return error_set(err, ST_INVALID, "expected labels in UTF-8");
    }
    if (count > CARD_LABELS_MAX) {
        return error_set(err, ST_TOO_LARGE, "expected at most %u labels, got %u", CARD_LABELS_MAX,
                         count);
    }
    struct span *items = arena_array(arena, (size_t)count + 1, sizeof(*items));
    const char *copy = arena_strdup(arena, text.ptr, text.len);
    if (!items || !copy) {
        return arena_fail(arena, "labels", err);
    }
    const char *line = copy, *end = copy + text.len;
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        size_t len = (size_t)(stop - line);
        items[at++] = span_of(line, len > 0 && stop[-1] == '\r' ? len - 1 : len);
        line = stop + 1;
    }
    must(at == count);
    *out_items = items;
    *out_count = count;
    return ST_OK;
}

static enum status open_labels(struct card *card, struct card_labels *labels, struct error *err)
{
    struct buf text;
    if (!labels->path || labels->items) {
        return ST_OK;
    }
    buf_init(&text, LABELS_BYTES_MAX);
    enum status status = file_read(labels->path, &text, err);
    if (status != ST_OK) {
        error_prefix(err, "%.200s: ", labels->path);
    } else {
        status =
            card_take_lines(&card->arena, buf_span(&text), &labels->items, &labels->count, err);
    }
    buf_fini(&text);
    if (status != ST_OK && status != ST_EXHAUSTED) {
        err->code = ST_CORRUPT; /* the card says that there is such a file */
    }
    return status == ST_OK ? ST_OK : card_blame(&labels->place, err);
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

static const struct rt_io *io_at(const struct rt_method *method, enum rt_side side, uint32_t index)
{
    return side == RT_INPUT ? rt_method_input(method, index) : rt_method_result(method, index);
}

static uint32_t count_of(const struct rt_method *method, enum rt_side side)
{
    return side == RT_INPUT ? rt_method_input_count(method) : rt_method_result_count(method);
}

/* Entries by present name get the index that they are about. */
enum status card_find_index(const struct rt_method *method, enum rt_side side, struct card_io *io,
                            struct error *err)
{
    char names[NAMES_TEXT_MAX];
    uint32_t count = count_of(method, side), i = 0;
    if (!io->present) {
        return ST_OK;
    }
    while (i < count && !rt_io_is_called(io_at(method, side, i), span_str(io->present))) {
        i++;
    }
    io->index = i;
    return i < count ? ST_OK
                     : card_fail(&io->place, err, ST_INVALID,
                                 "the program has no such %s, "
                                 "expected %s",
                                 side == RT_INPUT ? "input" : "output",
                                 rt_names_print(method, side, names));
}

static enum status find_indices(const struct rt_method *method, enum rt_side side,
                                struct card_ios *ios, struct card_io **by_index, struct error *err)
{
    uint32_t count = count_of(method, side);
    if (ios->count > count) {
        return card_fail(&ios->place, err, ST_INVALID, "the program has %u, got %u", count,
                         ios->count);
    }
    for (uint32_t i = 0; i < ios->count; i++) {
        struct card_io *io = &ios->items[i];
        TRY(card_find_index(method, side, io, err));
        if (by_index[io->index]) {
            return card_fail(&io->place, err, ST_INVALID, "%s is given twice",
                             io_at(method, side, io->index)->alias);
        }
        by_index[io->index] = io;
    }
    return ST_OK;
}

/* A name that an entry gives may be the present one. */
static enum status give_names(struct rt_method *method, enum rt_side side,
                              struct card_io *const *by_index, const char **names,
                              struct error *err)
{
    uint32_t count = count_of(method, side), wrong;
    bool has_any = false;
    for (uint32_t i = 0; i < count; i++) {
        names[i] = by_index[i] ? by_index[i]->name : NULL;
        has_any |= names[i] != NULL;
    }
    if (!has_any || rt_names_give(method, side, names, &wrong, err) == ST_OK) {
        return ST_OK;
    }
    return err->code == ST_INVALID ? card_blame(&by_index[wrong]->place, err) : err->code;
}

static enum status check_labels(struct card *card, const struct rt_method *method,
                                struct card_io *io, struct error *err)
{
    uint64_t classes = card_label_count(method, io->index, io);
    TRY(open_labels(card, &io->labels, err));
    if (!io->labels.items) {
        return ST_OK;
    }
    if (rt_method_result(method, io->index)->kind != RT_IO_TENSOR) {
        return card_fail(&io->labels.place, err, ST_INVALID, "'%s' is no tensor",
                         rt_method_result(method, io->index)->name);
    }
    return classes == 0 || classes == io->labels.count
               ? ST_OK
               : card_fail(&io->labels.place, err, ST_INVALID,
                           "'%s' has %" PRIu64 " classes, got %u labels",
                           rt_method_result(method, io->index)->name, classes, io->labels.count);
}

static enum status apply_side(struct card *card, struct rt_method *method, enum rt_side side,
                              struct card_ios *ios, struct error *err)
{
    size_t count = (size_t)count_of(method, side) + 1;
    struct card_io **by_index = calloc(count, sizeof(struct card_io *));
    const char **names = calloc(count, sizeof(*names));
    enum status status = by_index && names ? ST_OK : exhausted(card, err);
    if (status == ST_OK) {
        status = find_indices(method, side, ios, by_index, err);
    }
    if (status == ST_OK) {
        status = give_names(method, side, by_index, names, err);
    }
    free(by_index);
    free(names);
    for (uint32_t i = 0; i < ios->count && status == ST_OK; i++) {
        status = side == RT_RESULT ? check_labels(card, method, &ios->items[i], err)
                                   : card_apply_media(method, &ios->items[i], err);
    }
    for (uint32_t i = 0; i < ios->count && status == ST_OK && side == RT_RESULT; i++) {
        status = card_apply_answer(card, method, &ios->items[i], err);
    }
    return status;
}

/* ---- methods --------------------------------------------------------------------------------- */

static enum status apply_method(struct card *card, struct rt_method *method,
                                struct card_method *said, struct error *err)
{
    for (int side = RT_INPUT; side <= RT_RESULT; side++) {
        if (said->ios[side].place.value) {
            TRY(apply_side(card, method, (enum rt_side)side, &said->ios[side], err));
        }
    }
    return ST_OK;
}

static const struct card_place *first_place(const struct card_method *said)
{
    return said->ios[RT_INPUT].place.value    ? &said->ios[RT_INPUT].place
           : said->ios[RT_RESULT].place.value ? &said->ios[RT_RESULT].place
           : said->warm_ups.place.value       ? &said->warm_ups.place
                                              : NULL;
}

/* Members beside "methods" are about the default method. So "methods" must not name it, too. */
static enum status apply_default(struct card *card, struct rt_program *program, struct error *err)
{
    struct rt_method *method = rt_program_default_method(program);
    const struct card_place *place = first_place(&card->methods[0]);
    if (!place) {
        return ST_OK;
    }
    if (!method) {
        return card_fail(place, err, ST_INVALID,
                         "the program has several methods and none is called forward: expected "
                         "this in \"methods\"");
    }
    if (card_find_method(card, method) != &card->methods[0]) {
        return card_fail(place, err, ST_INVALID, "method '%s' has an entry in \"methods\", too",
                         rt_method_name(method));
    }
    return apply_method(card, method, &card->methods[0], err);
}

static enum status apply_named(struct card *card, struct rt_program *program,
                               struct card_method *said, struct error *err)
{
    struct rt_method *method = rt_program_find_method(program, span_str(said->name));
    return method ? apply_method(card, method, said, err)
                  : card_fail(&said->place, err, ST_INVALID, "the program has no such method");
}

/* Labels of the whole card are of at least one output. */
static enum status check_shared_labels(struct card *card, struct rt_program *program,
                                       struct error *err)
{
    const struct rt_method *any = NULL;
    TRY(open_labels(card, &card->labels, err));
    if (!card->labels.items) {
        return ST_OK;
    }
    for (uint32_t i = 0; i < rt_program_method_count(program) && !any; i++) {
        const struct rt_method *method = rt_program_method(program, i);
        for (uint32_t k = 0; k < rt_method_result_count(method) && !any; k++) {
            any = card_find_labels(card, method, k) == &card->labels &&
                          rt_method_result(method, k)->kind == RT_IO_TENSOR
                      ? method
                      : NULL;
        }
    }
    return any ? ST_OK
               : card_fail(&card->labels.place, err, ST_INVALID,
                           "there are %u labels, and no output has as many classes",
                           card->labels.count);
}

enum status card_apply(struct card *card, struct rt_program *program, struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    must(!card->is_settled);
    TRY(apply_default(card, program, err));
    for (uint32_t i = 1; i < card->method_count; i++) {
        TRY(apply_named(card, program, &card->methods[i], err));
    }
    return check_shared_labels(card, program, err);
}
