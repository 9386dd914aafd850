/* SPDX-License-Identifier: MIT */
/*
 * The medium of an input: how files of pictures or sound, or texts, become its tensor, as the card
 * of the model says (server/model/card/card.h). One item is one row.
 *
 *     pictures    uint8 [n, height, width, channels]; the rest is compiled with the program
 *     sound       float32 [n, samples], or [n, bands, frames] of log_mel; cut, or filled with
 *                 silence, to the length of the input or, where that varies, of the longest item
 *     texts       ids of tokens [n, tokens], cut and padded likewise, with mask and types
 *
 * Constant after medium_new(); any thread. Files are hostile: they are compared with the limits
 * before memory is taken, and all memory is accounted for before it is taken.
 */
#ifndef PTED_SERVER_MODEL_INTAKE_MEDIUM_H
#define PTED_SERVER_MODEL_INTAKE_MEDIUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/refs.h"
#include "base/shape.h"
#include "base/status.h"
#include "server/language/texts.h"
#include "server/media/image.h"
#include "server/media/sound.h"
#include "server/model/card/card.h"

struct log_mel;
struct medium_ops;
struct rt_invocation;
struct rt_io;
struct rt_method;
struct words;

#define MEDIUM_MAGIC 0x6d65646du

/* Inputs beside the ids of a text. */
enum medium_part { MEDIUM_IDS, MEDIUM_MASK, MEDIUM_TYPES, MEDIUM_PARTS };

#define MEDIUM_ABSENT UINT32_MAX

struct medium_image {
    struct image_form form; /* |height|, |width|: 0 where they vary from call to call */
    uint32_t sides_max[2];  /* height and width; of varying ones the bounds */
};

struct medium_sound {
    uint32_t rate;
    struct log_mel *log_mel; /* owned; NULL: samples */
    uint64_t length;         /* samples or frames of each row; 0: it varies */
    uint64_t length_max;
};

struct medium_text {
    struct words *words; /* owned */
    uint32_t tokens;     /* of each row; 0: it varies */
    uint32_t tokens_max; /* of a text; longer ones are cut */
    uint32_t pad;
};

struct medium {
    uint32_t magic;
    struct refs refs;
    const struct card_medium *kind; /* what cards know of it */
    const struct medium_ops *ops;   /* of that kind */
    uint32_t input;                 /* raw index */
    const struct rt_io *io;         /* of the method; borrowed */
    uint8_t item_rank;              /* dims of an item; an input of that rank has one row */
    uint32_t parts[MEDIUM_PARTS];   /* raw indices; MEDIUM_ABSENT, but of texts and of the ids */
    enum dtype dtypes[MEDIUM_PARTS];
    struct medium *base; /* of medium_relay(): ref held, it owns what |kind| has; or NULL */
    union {              /* by |kind| */
        struct medium_image image;
        struct medium_sound sound;
        struct medium_text text;
    };
};

/* Prints how a file or a text becomes the input, as JSON:
 * {"resize":256,"fit":"shorter","crop":[224,224]}, {"rate":16000}, {"max_tokens":128}. */
void medium_print(const struct medium *medium, struct buf *out);

/*
 * Makes the medium that |said|, an entry of a card that has been applied to |method|, gives its
 * input; |*out| is NULL if it gives none. |path|, |tokenizer|: as of generator_new().
 * ST_UNSUPPORTED: a library is missing; ST_INVALID; ST_EXHAUSTED. Blocks.
 */
MUST_CHECK enum status medium_new(struct rt_method *method, const struct card_io *said,
                                  const char *path, const char *tokenizer, struct medium **out,
                                  struct error *err);
/*
 * |medium| for |input| of |method|, a pipeline that hands the input on to the input that |medium|
 * was made for. |parts|: the inputs of the pipeline that become the inputs beside the ids, or
 * MEDIUM_ABSENT. ST_EXHAUSTED.
 */
MUST_CHECK enum status medium_relay(struct medium *medium, const struct rt_method *method,
                                    uint32_t input, const uint32_t parts[MEDIUM_PARTS],
                                    struct medium **out, struct error *err);

/* Do both make the same tensor from a file or a text? If not, |out_what| is the member of a card
 * in which they differ: "resize". Blocks. */
bool medium_is_alike(const struct medium *a, const struct medium *b,
                     char out_what[CARD_MEDIA_TEXT_MAX]);

void medium_unref(struct medium *medium); /* NULL is fine */

struct medium_limits {
    struct image_limits image;
    struct sound_limits sound;
};

/* Bounds the memory that reading takes. take() is false if there is none now. */
struct medium_account {
    bool (*take)(void *user, size_t bytes);
    void (*give)(void *user, size_t bytes);
    void *user;
};

/* The item is read with these; |wanted| says, with ST_EXHAUSTED, how much |account| refused. */
struct medium_reader {
    const struct medium_limits *limits;
    const struct medium_account *account;
    struct image_place *place; /* gets where the pixels of a picture come from; NULL: not wanted */
    size_t wanted;
    uint64_t work;     /* bytes of files, or of pixels or samples in them, so far */
    uint64_t work_max; /* beyond it nothing is decoded: ST_WOULD_BE_HEAVY; 0: no limit */
};

/* How the items of a call become rows. */
enum medium_way {
    MEDIUM_ROWS,    /* files, each by itself: medium_shape(), or medium_measure() all of them and
                     * medium_shape_sides(); then medium_read() each */
    MEDIUM_LONGEST, /* files, all of which are held first: medium_hold(), medium_put_held() */
    MEDIUM_TEXTS,   /* medium_encode(), medium_put_texts() */
};

enum medium_way medium_way(const struct medium *medium);

/* ---- files ----------------------------------------------------------------------------------- */

/* Is the shape of the tensor known by the number of rows alone? Of texts never, of pictures unless
 * the program takes several sizes. */
bool medium_is_fixed(const struct medium *medium);

/* Finds the shape of |rows| rows, which are |length| samples, frames or tokens long where that
 * varies. ST_INVALID: the program does not take so many rows, or none so long. */
MUST_CHECK enum status medium_shape(const struct medium *medium, int64_t rows, uint64_t length,
                                    struct shape *out, struct error *err);

/* Measures the height and the width that the picture in |file| gets, which must not be read for
 * that: all pictures of a call have one size. Errors as of image_open() and image_size();
 * ST_INVALID: the program does not take such large ones. */
MUST_CHECK enum status medium_measure(const struct medium *medium, struct span file,
                                      struct medium_reader *reader, uint32_t out_sides[2],
                                      struct error *err);

/* Does picture |index|, which has |sides|, fit to the first one, which has |first|? ST_INVALID. */
MUST_CHECK enum status medium_compare(const struct medium *medium, uint32_t index,
                                      const uint32_t sides[2], const uint32_t first[2],
                                      struct error *err);

/* Finds the shape of |rows| pictures that have |sides|; otherwise as medium_shape(). */
MUST_CHECK enum status medium_shape_sides(const struct medium *medium, int64_t rows,
                                          const uint32_t sides[2], struct shape *out,
                                          struct error *err);

/* Writes one row of |bytes| at |dst|. Errors as of image_open() and sound_open(). */
MUST_CHECK enum status medium_read(const struct medium *medium, struct span file,
                                   struct medium_reader *reader, void *dst, size_t bytes,
                                   struct error *err);

/* A decoded file, such as the samples of a sound, in memory that medium_drop() frees. */
struct medium_held {
    float *values;
    uint64_t count;
    size_t bytes; /* accounted for */
};

/* Holds a file whose row is written when the longest one is known. */
MUST_CHECK enum status medium_hold(const struct medium *medium, struct span file,
                                   struct medium_reader *reader, struct medium_held *out,
                                   struct error *err);
void medium_drop(struct medium_held *held, const struct medium_reader *reader);

/* Puts the input of |invocation| from |count| > 0 files, as long as the longest one. */
MUST_CHECK enum status medium_put_held(const struct medium *medium, const struct medium_held *held,
                                       uint32_t count, struct rt_invocation *invocation,
                                       struct shape *out_shape, struct error *err);

/* ---- texts ----------------------------------------------------------------------------------- */

MUST_CHECK enum status medium_encode(const struct medium *medium, struct span text,
                                     struct arena *arena, struct texts_ids *out, struct error *err);

/* Puts the inputs of |invocation| from |count| > 0 texts: the ids and, unless the caller has them,
 * the mask and the types. */
MUST_CHECK enum status medium_put_texts(const struct medium *medium, const struct texts_ids *ids,
                                        uint32_t count, const bool are_given[MEDIUM_PARTS],
                                        struct rt_invocation *invocation, struct shape *out_shape,
                                        struct error *err);

#endif
