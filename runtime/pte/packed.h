/* SPDX-License-Identifier: MIT */
/*
 * Packed weights that outlive the process. The results that loading computes from a program's
 * constants are kept in a file of a folder, so that the next load maps the results instead of
 * computing them.
 *
 * Loading computes constants in rounds (runtime/code/fold.h), always in the same order. A round has
 * a fingerprint: a digest of its operators and of their inputs. The file has the results of all
 * rounds, one after the other, and a table of them at its end. While a load meets the rounds of the
 * table it takes their results from the mapping, which processes share. At the first difference the
 * load computes again, and a new file takes the place of the old one when loading has ended.
 * Results that several rounds have are in the file once. Results that the file of another program
 * has, which is loaded, too, are not stored again: a part may refer to that file. It names the
 * digest of the other file's table; if that file has gone or changed, the load computes again.
 *
 * The name of a file consists of the digest of the program's bytes and of a digest of everything
 * else that decides the bytes of results: this very build of pted, the instruction set, the
 * precision. The contents are trusted like the program itself, so the folder and its files must
 * belong to the user and be writable for nobody else.
 *
 * runtime/pte/kept.h says how files are written.
 *
 * No failure here makes a load fail: without the file, constants are computed as always.
 *
 * One thread, while a program is loaded.
 */
#ifndef PTED_RUNTIME_PTE_PACKED_H
#define PTED_RUNTIME_PTE_PACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct hal_buffer;
struct hal_device;
struct rt_packed;

enum rt_packed_state {
    RT_PACKED_READING, /* the file's results are used so far */
    RT_PACKED_WRITING, /* results are computed and written */
    RT_PACKED_BROKEN,  /* the file can be neither read nor written: rt_packed_error() */
    RT_PACKED_DONE,    /* loading has ended, and there is a file for the next one */
};

/*
 * For the program whose bytes have the digest |program| on what |machine| describes, in |folder|,
 * which need not exist. The caller owns |*out_packed|. Fails only for want of memory.
 */
MUST_CHECK enum status rt_packed_open(const char *folder, const uint64_t program[2],
                                      const char *machine, struct rt_packed **out_packed,
                                      struct error *err);

/* Spans that were taken must not be used any more; buffers may. NULL is fine. */
void rt_packed_free(struct rt_packed *packed);

/* The results of the next round, |count| of them with |bytes| bytes, in the file's mapping, aligned
 * to RT_PACKED_ALIGN. False: they are not there; the caller computes them and puts them. */
#define RT_PACKED_ALIGN 64
bool rt_packed_take(struct rt_packed *packed, const uint64_t fingerprint[2], const size_t *bytes,
                    uint32_t count, struct span *out_results);

/* Imports the bytes of the mapping as a buffer, which keeps the mapping. False: |device| cannot use
 * them. */
MUST_CHECK bool rt_packed_import(struct rt_packed *packed, struct hal_device *device,
                                 struct span bytes, struct hal_buffer **out_buffer);

/* A result that is put. Results with one name have the same bytes, and the file has them once. */
struct rt_packed_result {
    struct span bytes;
    bool has_name;
    uint64_t name[4];
};

void rt_packed_put(struct rt_packed *packed, const uint64_t fingerprint[2],
                   const struct rt_packed_result *results, uint32_t count);

/* In whose mapping |bytes| lie: |packed|, or one that it relies on. NULL: in none. */
struct rt_packed *rt_packed_source(struct rt_packed *packed, struct span bytes);

/* Notes that the program uses results of |other|, too, by buffers that keep its mapping:
 * rt_packed_verify() looks at its file. False: there is no memory. */
MUST_CHECK bool rt_packed_rely_on(struct rt_packed *packed, struct rt_packed *other);

/* Gives up a file that is being written: it is removed, and |why| is the error. */
void rt_packed_abandon(struct rt_packed *packed, const char *why);

/* Call when all rounds are over: a file that is being written becomes the file of its name. */
void rt_packed_settle(struct rt_packed *packed);

enum rt_packed_state rt_packed_state(const struct rt_packed *packed);

/* Of the file, which need not exist if nothing is packed; NULL: loading has not ended, or the
 * folder cannot be used. */
const char *rt_packed_path(const struct rt_packed *packed);

/* Rounds whose results came from the file. */
uint32_t rt_packed_taken(const struct rt_packed *packed);
const struct error *rt_packed_error(const struct rt_packed *packed);

/* Fails with ST_UNAVAILABLE if a file has changed since results were taken from it. Any thread. */
MUST_CHECK enum status rt_packed_verify(const struct rt_packed *packed, struct error *err);

#endif
