/* SPDX-License-Identifier: MIT */
/*
 * A card of what exporters write beside a program (server/model/card/beside.h), as far as it fits
 * the program. Each fact is a member of a card as JSON, with the place that it comes from:
 *
 *     derive_yolo.c   metadata.yaml: the letterbox or crop, labels, boxes
 *     derive_hub.c    preprocessor_config.json: the picture; config.json: labels, maps
 *     card_generation.c   generation_config.json: defaults of requests to a language model
 *
 * Facts are about one input and one output of the default method. What does not fit the program is
 * left out, with a note. One thread.
 */
#ifndef PTED_SERVER_MODEL_CARD_DERIVE_H
#define PTED_SERVER_MODEL_CARD_DERIVE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "server/model/card/beside.h"

struct card;
struct rt_method;

#define DERIVE_FROM_MAX 128
#define DERIVE_NOTES_MAX 4

enum derive_kind {
    DERIVE_DESCRIPTION, /* of the model */
    DERIVE_GENERATION,  /* of the default method */
    DERIVE_IMAGE,       /* of input |input| */
    DERIVE_LABELS,      /* of output |output|, as the next */
    DERIVE_ANSWER,
    DERIVE_KINDS,
};

/* A member of a card. */
struct derive_fact {
    struct buf json;            /* its value; empty: nobody says it */
    char from[DERIVE_FROM_MAX]; /* "metadata.yaml: names" */
};

/* What the model's own card says. It outranks the facts. */
struct derive_own {
    bool has_inputs;
    bool has_picture; /* one of them is an image */
};

struct derive {
    struct derive_own own;
    struct derive_fact facts[DERIVE_KINDS];
    uint32_t input, output; /* raw indices */
    struct error notes[DERIVE_NOTES_MAX];
    uint32_t note_count;
    uint32_t carry_count; /* inputs of the file that became mutable buffers, by export.json */
};

/* Returns "image" */
const char *derive_word(enum derive_kind kind);

/* Everything that |beside| says of |method|, the default method, whose inputs and results are still
 * those of the file. derive_fini() also after an error. ST_EXHAUSTED. */
MUST_CHECK enum status derive_init(struct derive *derive, const struct beside *beside,
                                   const struct derive_own *own, const struct rt_method *method,
                                   struct error *err);
void derive_fini(struct derive *derive);

static inline bool derive_has(const struct derive *derive, enum derive_kind kind)
{
    return derive->facts[kind].json.len > 0;
}

/* Does the model take a picture, by its own card or, if that has no inputs, by the facts? */
static inline bool derive_has_picture(const struct derive *derive)
{
    return derive->own.has_inputs ? derive->own.has_picture : derive_has(derive, DERIVE_IMAGE);
}

/* Has it any fact? */
bool derive_has_any(const struct derive *derive);

/* Appends the facts as a card. */
void derive_print(const struct derive *derive, const struct rt_method *method, struct buf *out);

#endif
