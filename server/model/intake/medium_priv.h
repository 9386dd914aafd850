/* SPDX-License-Identifier: MIT */
/* What a kind of media does on its way to a tensor: a row, in a file of its own. */
#ifndef PTED_SERVER_MODEL_INTAKE_MEDIUM_PRIV_H
#define PTED_SERVER_MODEL_INTAKE_MEDIUM_PRIV_H

#include "server/model/intake/medium.h"

/* What a medium is made from. |path|, |tokenizer|: as of medium_new(). */
struct medium_origin {
    struct rt_method *method;
    const struct card_media *said;
    const char *path, *tokenizer;
};

/*
 * Texts have no functions to read files: medium_encode() is their way. Of files, what shape()
 * gives is either fixed, or measured from the head of a file, or the length of the longest one.
 */
struct medium_ops {
    const char *word; /* of the kind in cards */

    /* Fills in the kind's member, |item_rank| and, where the kind has some, |parts|. The rest of
     * |medium| is complete. What it leaves after an error, fini() frees. */
    enum status (*take)(struct medium *medium, const struct medium_origin *origin,
                        struct error *err);
    void (*fini)(struct medium *medium); /* (optional) */
    /* Of a medium that has become an input of a pipeline, which may take less than the step. */
    void (*bound)(struct medium *relay);
    /* The member of a card in which two of the kind differ, or NULL. */
    const char *(*compare)(const struct medium *a, const struct medium *b);
    void (*print)(const struct medium *medium, struct buf *out);

    bool (*is_fixed)(const struct medium *medium); /* medium_is_fixed() */
    /* The dims of |out| behind the one of rows; |length|: of an item that is not fixed. */
    void (*shape)(const struct medium *medium, uint64_t length, struct shape *out);

    /* MEDIUM_ROWS: medium_read(). */
    enum status (*read)(const struct medium *medium, struct span file, struct medium_reader *reader,
                        void *dst, size_t bytes, struct error *err);
    /* (optional) medium_measure(): then the way is MEDIUM_ROWS, fixed or not. */
    enum status (*measure)(const struct medium *medium, struct span file,
                           struct medium_reader *reader, uint32_t out_sides[2], struct error *err);
    /* MEDIUM_LONGEST: hold() as medium_hold(), but what it leaves after an error is dropped by the
     * caller; the length of a file's row, within what the program takes; and the row itself. */
    enum status (*hold)(const struct medium *medium, struct span file, struct medium_reader *reader,
                        struct medium_held *out, struct error *err);
    uint64_t (*length)(const struct medium *medium, const struct medium_held *held);
    enum status (*write)(const struct medium *medium, const struct medium_held *held,
                         uint64_t length, float *dst, struct error *err);
};

/* medium.c lists them. */
extern const struct medium_ops medium_image_ops, medium_sound_ops, medium_text_ops;

/* Of each kind that cards know there is one. */
const struct medium_ops *medium_find_ops(const struct card_medium *kind);

/* ---- helpers of kinds ------------------------------------------------------------------------ */

/* Accounts for memory of a file, or gives it back. */
MUST_CHECK enum status medium_take(struct medium_reader *reader, size_t bytes, struct error *err);
void medium_give(const struct medium_reader *reader, size_t bytes);

/* Counts the work of decoding |file| to |decoded| bytes. ST_WOULD_BE_HEAVY. */
MUST_CHECK enum status medium_weigh(struct medium_reader *reader, struct span file,
                                    uint64_t decoded, struct error *err);

/* Has the last dim of the input one length? A file that has any dims which vary does not say which.
 */
bool medium_has_length(const struct medium *medium, struct rt_method *method);

/* Returns the last dim of the input, and whether it is the only length. */
uint64_t medium_last_dim(const struct medium *medium, bool *out_is_fixed);

/* Finds the types of the inputs that |parts| are. */
void medium_find_dtypes(struct medium *medium, const struct rt_method *method);

static inline uint64_t medium_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
