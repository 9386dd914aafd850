/* SPDX-License-Identifier: MIT */
/* Shared by the files that derive a card. */
#ifndef PTED_SERVER_MODEL_CARD_DERIVE_PRIV_H
#define PTED_SERVER_MODEL_CARD_DERIVE_PRIV_H

#include "server/model/card/derive.h"

struct rt_pixels;

void derive_from_yolo(struct derive *derive, const struct document *metadata,
                      const struct rt_method *method);
void derive_from_hub(struct derive *derive, const struct beside *beside,
                     const struct rt_method *method);

void derive_from_generation(struct derive *derive, const struct document *config,
                            const struct rt_method *method);

/* Says where a fact comes from, and returns the buffer for its value. */
struct buf *derive_say(struct derive *derive, enum derive_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes why something is left out. */
void derive_note(struct derive *derive, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- values of documents; false: there is no such member, or it has another type ------------- */

bool derive_find_text(const struct document *in, const struct cJSON *object, const char *key,
                      const char **out);
bool derive_find_u32(const struct document *in, const struct cJSON *object, const char *key,
                     uint32_t max, uint32_t *out);
bool derive_find_f64(const struct document *in, const struct cJSON *object, const char *key,
                     double *out);
bool derive_find_bool(const struct document *in, const struct cJSON *object, const char *key,
                      bool *out);

/* |value| is two numbers, each at least 1. */
bool derive_read_pair(const struct document *in, const struct cJSON *value, uint32_t out[2]);

/* Names of classes: a list, or an object by their numbers "0", "1", ... in any order. */
struct derive_names {
    const char **items; /* owned; the texts are the document's */
    uint32_t count;
};

/* Reads a list of names. False: |value| is none, or the heap is exhausted. */
bool derive_read_names(const struct document *in, const struct cJSON *value,
                       struct derive_names *out);
void derive_free_names(struct derive_names *names);
void derive_print_names(const struct derive_names *names, struct buf *out);

/* ---- the program ----------------------------------------------------------------------------- */

/* Finds the input that takes pictures: "pixel_values", or else the first one that might. False:
 * none. */
bool derive_find_picture(const struct rt_method *method, uint32_t *out_index,
                         struct rt_pixels *out_pixels);

/* Are pictures of |height| x |width| what the input takes? Otherwise a note says so, of |from|. */
bool derive_check_sides(struct derive *derive, const struct rt_pixels *pixels, uint32_t height,
                        uint32_t width, const char *from);

#endif
