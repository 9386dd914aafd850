/* SPDX-License-Identifier: MIT */
/*
 * The inner loops of resizing. Pixels are 4 bytes (three colours and one that does not count) or 1
 * byte. All sets of loops have the same results.
 */
#ifndef PTED_SERVER_MEDIA_RESIZE_ROWS_H
#define PTED_SERVER_MEDIA_RESIZE_ROWS_H

#include "server/media/resize_axis.h"

/* Bytes after the end of a row that are readable, and writable if the row is. */
#define RESIZE_ROW_PAD 64

struct resize_rows {
    bool is_packed; /* it reads the blocks of the axis, if they are filled */
    /* Outputs of |axis|, which is no copy, from one row of pixels of 4 bytes. Writes up to
     * RESIZE_ROW_PAD bytes more. */
    void (*across)(const struct axis *axis, const uint8_t *row, uint8_t *out);
    /* The same from |len| bytes of several rows: output |i| of |axis|, no copy. Row k of its inputs
     * is rows[k]. Writes up to RESIZE_ROW_PAD bytes more than |len|. */
    void (*down)(const struct axis *axis, uint32_t i, const uint8_t *const *rows, size_t len,
                 uint8_t *out);
    /* Pixels of 4 bytes as 3; |is_bgr|: the first and the third change places. */
    void (*pack)(const uint8_t *row, uint32_t count, bool is_bgr, uint8_t *out);
};

extern const struct resize_rows resize_rows_plain; /* for any machine */
#ifdef PTED_CPU_X86
extern const struct resize_rows resize_rows_avx2;   /* with AVX2 */
extern const struct resize_rows resize_rows_avx512; /* with AVX512 and its VNNI */
#endif

/* Can this machine run the set? */
bool resize_rows_is_run(const struct resize_rows *rows);

/* The fastest set of this machine. Any thread. */
const struct resize_rows *resize_rows_best(void);

/* Like across(), for pixels of |pixel_bytes|; |axis| may be a copy. */
void resize_across(const struct resize_rows *rows, const struct axis *axis, uint32_t pixel_bytes,
                   const uint8_t *row, uint8_t *out);

#endif
