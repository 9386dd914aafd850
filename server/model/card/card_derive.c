/* SPDX-License-Identifier: MIT */
/* What exporters write beside a program becomes a part of its card. */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"
#include "server/model/card/derive.h"

static void note(struct card *card, const struct error *why)
{
    if (why->code != ST_OK && card->note_count < CARD_NOTES_MAX) {
        card->notes[card->note_count++] = *why;
    }
}

enum status card_read_beside(struct card *card, const char *path, struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    must(!card->beside && !card->is_settled);
    card->beside = calloc(1, sizeof(*card->beside));
    if (!card->beside) {
        return error_no_memory(err, "the card");
    }
    beside_open(card->beside, path);
    for (int file = 0; file < BESIDE_FILES; file++) {
        note(card, &card->beside->notes[file]);
    }
    return ST_OK;
}

static enum status read_facts(struct card *card, const struct derive *derive,
                              const struct rt_method *method, struct error *err)
{
    const struct document_limits limits = {.bytes_max = CARD_BYTES_MAX,
                                           .values_max = CARD_VALUES_MAX};
    struct buf text;
    buf_init(&text, CARD_BYTES_MAX);
    derive_print(derive, method, &text);
    enum status status = buf_failed(&text)
                             ? error_no_memory(err, "the card")
                             : document_parse(buf_span(&text), &limits, &card->derived, err);
    buf_fini(&text);
    TRY(status);
    return card_read_derived(card, err);
}

static struct derive_own find_own(const struct card *card)
{
    const struct card_ios *inputs = &card->methods[0].ios[RT_INPUT];
    struct derive_own own = {.has_inputs = inputs->place.value != NULL};
    for (uint32_t i = 0; i < inputs->count; i++) {
        const struct card_medium *kind = inputs->items[i].media.kind;
        own.has_picture |= kind && kind->has_pixels;
    }
    return own;
}

enum status card_derive(struct card *card, const struct rt_method *method, struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    struct derive derive;
    struct span name = span_str(rt_method_name(method));
    bool has_entry = card_find_named(card, name, true) != &card->methods[0];
    if (has_entry || card->derived.root) {
        return ST_OK; /* the card itself has an entry for the method */
    }
    const struct derive_own own = find_own(card);
    enum status status = derive_init(&derive, card->beside, &own, method, err);
    for (uint32_t i = 0; i < derive.note_count; i++) {
        note(card, &derive.notes[i]);
    }
    if (status == ST_OK && derive_has_any(&derive)) {
        status = read_facts(card, &derive, method, err);
    }
    derive_fini(&derive);
    return status;
}
