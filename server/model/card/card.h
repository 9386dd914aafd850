/* SPDX-License-Identifier: MIT */
/*
 * The card of a model: facts about a program that its file does not say. A card is a document
 * (server/process/document.h) beside the program, NAME.card.json for NAME.pte, or the same members
 * at the model in pted.json:
 *
 *     {"description": "digits in pictures of 8x8",
 *      "inputs": ["image"],
 *      "outputs": {"output_0": {"name": "scores", "labels": ["zero", "one", ...]}},
 *      "methods": {"encode": {"inputs": ["text"]}},
 *      "warm_up": [{"shapes": {"image": [4, 1, 8, 8]}}, {"args": [[[[0, ...]]]]}],
 *      "max_batch": 8, "precision": "exact"}
 *
 * Every member is optional. server/model/card/card.def has the members; the parameters of a model
 * in server/process/params.def are members, too. "inputs" and "outputs" are a list in the program's
 * order or an object by present names or aliases. An entry is a name, null, or an object. Members
 * beside "methods" are about the default method.
 *
 * Reading a card opens no other file. card_apply() compares it with a program, reads files of
 * labels, and gives the program its names. What exporters write beside a program is a card, too
 * (server/model/card/derive.h): its members count where no other source has them.
 *
 * A card belongs to one thread until card_settle(); from then on it is constant.
 */
#ifndef PTED_SERVER_MODEL_CARD_CARD_H
#define PTED_SERVER_MODEL_CARD_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "runtime/program/adapt.h"
#include "runtime/program/names.h"
#include "server/media/format.h"
#include "server/media/image.h"
#include "server/model/answer/answer.h"
#include "server/process/document.h"
#include "server/process/options.h"

struct beside;
struct card_medium;
struct card_source;
struct derive;
struct rt_method;
struct rt_program;

#define CARD_MAGIC 0x63617264u
#define CARD_SUFFIX ".card.json"
#define CARD_BYTES_MAX ((size_t)8 << 20)
#define CARD_VALUES_MAX (1u << 17)
#define CARD_LABELS_MAX (1u << 16) /* of one output */
#define CARD_IOS_MAX 1024          /* inputs or outputs of a method */
#define CARD_METHODS_MAX 256
#define CARD_WARM_UPS_MAX 64 /* of a method */
#define CARD_TOKENS_MAX (1u << 20)
#define CARD_NOTES_MAX 8
#define CARD_POINTS_MAX 1024 /* behind a box */

/* The document that a value of a card comes from. Its place is needed for messages only. */
struct card_place {
    const struct document *document;
    const struct cJSON *value;
    const char *path; /* the document's name in messages */
};

/* Names of classes: texts, or the file that has them, a line for each. Both NULL: none. */
struct card_labels {
    const struct span *items; /* in the arena of the card */
    uint32_t count;
    const char *path;
    struct card_place place;
};

/* A step that is compiled behind the output. */
struct card_step {
    struct rt_adapt_step step;
    struct card_place place;
};

#define CARD_STEPS_MAX 16 /* of an output */

/* How an output is written for people. */
struct card_answer {
    struct answer_form answer;            /* its indices are known after card_apply() */
    bool has_form;                        /* of boxes */
    bool needs_picture;                   /* among the inputs */
    const char *scores, *classes, *masks; /* of boxes: names of outputs, or NULL */
    struct card_place place;
};

enum card_colors { CARD_COLORS_UNSAID, CARD_RGB, CARD_BGR, CARD_GRAY };
enum card_layout { CARD_LAYOUT_UNSAID, CARD_NCHW, CARD_NHWC };

/* Pictures, as pixels [n, height, width, channels] of 8 bits and then as what the program takes. */
struct card_image {
    uint32_t resize[2], crop[2]; /* height, width; 0: not */
    bool is_resized_to_pair;     /* "resize" has two sides */
    bool crop_rounds_down;
    enum image_fit fit;
    enum image_filter filter;
    uint8_t fill[3];
    enum card_colors colors; /* settled by card_apply() */
    bool is_draft;           /* JPEG may be decoded at a reduced scale */
    bool has_scale;
    double scale;
    double mean[RT_PIXEL_CHANNELS_MAX], std[RT_PIXEL_CHANNELS_MAX];
    uint32_t mean_count, std_count; /* 0: not said; 1: of all channels */
    enum card_layout layout;
    uint32_t height, width, channels; /* of the pixels, settled by card_apply(): bounds where ... */
    bool has_any_height, has_any_width; /* ... they vary from call to call */
};

struct card_sound {
    uint32_t rate;
    bool is_log_mel;
    double seconds; /* 0: as the program's input says, or as long as the sound is */
};

struct card_text {
    const char *tokenizer;            /* a path, or NULL: the one beside the program */
    uint32_t max_tokens;              /* 0: as many as the program takes */
    bool is_padded;                   /* every text gets |max_tokens| tokens */
    const char *mask, *types;         /* names of inputs, or NULL */
    uint32_t mask_index, types_index; /* raw; settled by card_apply() */
};

/* By |kind|. */
struct card_media {
    const struct card_medium *kind; /* NULL: none */
    union {
        struct card_image image;
        struct card_sound sound;
        struct card_text text;
    };
    struct card_place place;
};

/* A card's entry for an input or output. */
struct card_io {
    const char *present; /* the name or alias that it had; NULL: it is the one at |index| */
    uint32_t index;      /* raw */
    const char *name, *description; /* or NULL */
    struct card_labels labels;      /* of an output, like what follows */
    struct card_step *steps;
    uint32_t step_count;
    struct card_answer answer;
    uint64_t class_count; /* that a step behind the program has counted; 0: there is no such step */
    struct card_media media; /* of an input */
    struct card_place place;
};

#define CARD_MEDIUM_TYPES_MAX 4
#define CARD_MEDIA_TEXT_MAX 128

/*
 * A kind of media, which an input may be sent as (docs/how-to/media.md): a row. How rows of tensors
 * are made of it says its other row, of server/model/intake/medium_priv.h.
 */
struct card_medium {
    const char *word; /* the member of an input that says it, and "media" in metadata: "image" */
    const char *noun; /* for messages, behind "a": "picture" */
    /* Media types of bodies, "*" at the end for anything; the first is for descriptions. */
    const char *types[CARD_MEDIUM_TYPES_MAX];
    enum media_kind formats; /* of files */
    bool is_text;            /* it comes as a text, not as a file */
    bool has_pixels;         /* answers may be places in it */

    /* Reads |value|, an object, into the kind's member of |out|. */
    enum status (*read)(const struct card_source *s, const struct cJSON *value,
                        struct card_media *out, struct error *err);
    /* (optional) As card_adapt_media(): puts steps in front of the program. */
    enum status (*adapt)(struct rt_method *method, const struct card_io *io, uint32_t index,
                         struct error *err);
    /* As card_apply_media(), for a method that can be called. */
    enum status (*apply)(const struct rt_method *method, struct card_io *io, struct error *err);
    /* (optional) As card_find_doubt(). */
    bool (*find_doubt)(const struct card_io *io, struct error *out);
};

/* A list of them. |place.value| is NULL: the card does not say it. */
struct card_ios {
    struct card_io *items;
    uint32_t count;
    struct card_place place;
};

/* A call to make before the model is called by others. */
struct card_warm_up {
    struct span text; /* the call as in protocol/call.h; of shapes, the object of them */
    bool is_shapes;
    struct card_place place;
};

struct card_warm_ups {
    struct card_warm_up *items;
    uint32_t count;
    struct card_place place; /* as in struct card_ios */
};

/* A card's settings for an encoder of texts (server/language/embedder.h). */
enum card_pooling { CARD_POOLING_UNSAID, CARD_MEAN, CARD_CLS, CARD_LAST, CARD_SPLADE, CARD_NONE };

struct card_embedding {
    bool is_said;
    enum card_pooling pooling;
    bool is_not_normalized;
    uint64_t max_tokens; /* 0: as many as the program takes */
    const char *prefix;  /* before each text, or NULL */
    struct card_place place;
};

/* Tokens that end an answer, at most; the greatest ids and counts of tokens. */
#define CARD_ENDS_MAX 32
#define CARD_IDS_MAX DOCUMENT_TOKEN_ID_MAX

/* Bytes of a marker of thoughts, with their end. */
#define CARD_MARKER_MAX 64

/* What requests to a language model get where they say nothing. NaN: the card says nothing. */
struct card_generation {
    bool is_said;
    double temperature, top_p, top_k, min_p, repetition_penalty, max_tokens;
    const uint32_t *ends; /* ids of tokens that end an answer; NULL: the card says nothing */
    uint32_t end_count;
    /* How thoughts are marked: the name of a row of server/language/thinking.def, or the markers.
     * NULL: the card says nothing. */
    const char *thinking, *thinking_open, *thinking_close;
    const char *tools; /* the name of a row of server/language/tools.def, likewise */
    /* The name of a row of server/language/infill.def, or the tokens, likewise. */
    const char *infill, *infill_prefix, *infill_suffix, *infill_middle;
};

struct card_method {
    const char *name; /* NULL: the default method */
    const char *description;
    struct card_ios ios[2]; /* by enum rt_side */
    struct card_warm_ups warm_ups;
    struct card_embedding embedding;
    struct card_generation generation;
    struct card_place place;
};

/* A parameter of the model. */
struct card_param {
    size_t offset; /* in struct params */
    uint64_t value;
};

struct card {
    uint32_t magic;
    struct arena arena;
    struct document own; /* of the file; closed by card_settle() */
    const char *path;    /* of the file, or NULL */
    /* what exporters write beside the program, and the card that card_adapt() makes of it */
    struct beside *beside; /* owned; NULL: there is none */
    struct document derived;
    struct error notes[CARD_NOTES_MAX]; /* what of it is left out, and why */
    uint32_t note_count;
    /* its members in pted.json as one text, or NULL: to see whether they change */
    const char *members;
    struct card_labels labels;   /* of outputs without labels of their own */
    struct card_method *methods; /* the first is the one without a name */
    uint32_t method_count;
    struct card_param *params;
    uint32_t param_count;
    bool has_int8_cache; /* see struct rt_load_options */
    bool is_settled;
};

/* Makes an empty card. NULL: no memory. */
struct card *card_new(void);
void card_free(struct card *card); /* NULL is fine */

/* Adds what the file at |path| says. Errors, without the folders of the path, are
 * "digits.card.json:7:5: outputs[0].labels: expected ..., got ...". */
MUST_CHECK enum status card_read_file(struct card *card, const char *path, struct error *err);

/*
 * Adds the members of |object|, the model's object in the document |path|; they take the place of
 * members of the file. Settings of a model are not read. |document| lives until card_settle().
 * Errors as above.
 */
MUST_CHECK enum status card_read_members(struct card *card, const struct document *document,
                                         const struct cJSON *object, const char *path,
                                         struct error *err);

/*
 * Reads the files that exporters write beside the program at |path| (server/model/card/derive.h).
 * They are the last source: while the program is loaded, card_adapt() takes the members that
 * neither the file nor the document has. Nothing in them is an error; card->notes say what is left
 * out.
 */
MUST_CHECK enum status card_read_beside(struct card *card, const char *path, struct error *err);

/* Returns "shorter", "stretch", "inside". */
const char *card_fit_word(enum image_fit fit);

/* Returns "classes", "boxes", "map", "text"; NULL: the tensor. */
const char *card_answer_word(enum answer_kind kind);
enum answer_kind card_find_answer_kind(const char *word); /* ANSWER_TENSOR: none of them */

/* Returns "sent", "shown", "model". */
const char *card_picture_word(enum answer_picture picture);

/* Does card_read_members() read the member |member| of a model in pted.json? */
bool card_has_member(const struct cJSON *member);

/* Checks the members of a model in pted.json. The error has no place in front, but one at its end,
 * as document.h says. */
MUST_CHECK enum status card_verify_members(const struct document *document,
                                           const struct cJSON *object, struct error *err);

/*
 * Is a rt_adapt_f, whose |card| is a struct card that has been read, or NULL: for each method that
 * is loaded, the steps that the card declares become a part of the program. Errors are about the
 * card, as above. The program gets its names later, by card_apply().
 */
MUST_CHECK enum status card_adapt(void *card, struct rt_method *method, bool is_default,
                                  struct error *err);

/* Gives |program|, which nobody else uses yet, the names of the card, and checks all that the card
 * says of inputs, outputs and methods. Reads files of labels. */
MUST_CHECK enum status card_apply(struct card *card, struct rt_program *program, struct error *err);

/* Call when everything has been applied: no document is needed any more. */
void card_settle(struct card *card);

/* Returns the card's entry for the method called |name|, or NULL. |is_default|: it is the default
 * method. */
const struct card_method *card_find_named(const struct card *card, struct span name,
                                          bool is_default);

/* Returns the card's entry for |method|, or NULL. */
const struct card_method *card_find_method(const struct card *card, const struct rt_method *method);

/* Finds its entry for the input or output with the raw |index|, after card_apply(); or NULL. */
const struct card_io *card_find_io(const struct card_method *method, enum rt_side side,
                                   uint32_t index);

/* Returns the names of the classes of result |index| of |method|; NULL: none. After
 * card_apply(). */
const struct card_labels *card_find_labels(const struct card *card, const struct rt_method *method,
                                           uint32_t index);

/* Returns the answer that the card says for result |index| of |method|; NULL: the tensor. After
 * card_apply(). */
const struct answer_form *card_find_answer(const struct card *card, const struct rt_method *method,
                                           uint32_t index);

/* Returns the input whose pictures answers are about: the first one that is a picture. NULL: none
 * is. */
const struct card_io *card_find_picture(const struct card *card, const struct rt_method *method);

/* Is what the card says of an input likely to be a mistake, though it fits the program? |*out| says
 * why, with the place. After card_apply() and before card_settle(). */
bool card_find_doubt(const struct card_io *io, struct error *out);

/* Describes result |index| as answers see it, without bytes; ANSWER_NO_INDEX: an empty one. */
struct answer_tensor card_answer_tensor(const struct rt_method *method, uint32_t index);

/* Do they come from pted.json, not from files? */
bool card_is_of_members(const struct card *card, const struct card_labels *labels);

/* Does |card|, which may be NULL, ask for caches in 8 bits? */
bool card_has_int8_cache(const struct card *card);

/* Puts the card's parameters into |params|, except parameters that |options| set. */
void card_put_params(const struct card *card, const struct options *options, struct params *params);

/* Returns the kinds of media, one by one; NULL from their number on. */
const struct card_medium *card_medium_at(size_t index);

/* Finds a medium by word, by a body's media type without parameters, by the formats of its files.
 * NULL: none. */
const struct card_medium *card_find_medium(const char *word);
const struct card_medium *card_find_medium_type(struct span type);
const struct card_medium *card_find_medium_files(enum media_kind formats);

/* Lists their words, for messages: "image, sound or text" where |last| is " or "; or their nouns:
 * "a picture, a sound or a text". Returns |out|. */
const char *card_list_media(const char *last, bool are_nouns, char out[CARD_MEDIA_TEXT_MAX]);

/* "dir/NAME.card.json" of "dir/NAME.pte". False: too long for |size|. */
bool card_path_of(const char *program, char *out, size_t size);

/* |text| as a line each: the content of a file of labels. The texts are copied to |arena|. */
MUST_CHECK enum status card_take_lines(struct arena *arena, struct span text,
                                       const struct span **out_items, uint32_t *out_count,
                                       struct error *err);

/* Returns how many scores a row of result |index| has, as classes are counted; 0: it varies. */
uint64_t card_class_count(const struct rt_method *method, uint32_t index);

/* Sets the error about a value of a card, with the document and the place in front. */
enum status card_fail(const struct card_place *place, struct error *err, enum status code,
                      const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Errors of documents have their place at the end; it goes to the front, with the file's name. */
enum status card_put_in_front(const char *path, struct error *err);

/* Does the same for an error that is set already: "PLACE: PATH: TEXT". */
enum status card_blame(const struct card_place *place, struct error *err);

/* Prints a first card of |program|, with everything that the file says, and what |derive|, which
 * may be NULL, says of the default method; a person changes the rest. */
void card_print(const struct rt_program *program, const struct derive *derive, struct buf *out);

#endif
