/* SPDX-License-Identifier: MIT */
/*
 * Inputs of a call that came as files or texts (server/model/intake/medium.h). A codec hands its
 * items to infer_media_decode() in the step DECODE, on a thread. Files whose rows have a known size
 * become jobs, each of which writes one row:
 *
 *     one file      it is read at once
 *     several       the request goes to the step MEDIA: several threads of the pool read a file
 *                   each, at the same time, and queue up behind other requests for the next one
 *
 * A large file is heavy (server/process/offload.h): a single file makes the step heavy, one
 * of several files only the task that reads it. Calls of a list (server/daemon/infer/bundle.h) read
 * their files one after the other. The body stays until all files are read. Memory that reading
 * takes is counted in the request's pool, so it is bounded like the memory for requests; where it
 * is short the request waits, and decodes again.
 */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_MEDIA_H
#define PTED_SERVER_DAEMON_INFER_INFER_MEDIA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"
#include "protocol/call.h"

struct infer_call;
struct infer_media_job;
struct infer_media_thread;
struct infer;

struct infer_media {
    uint64_t began_ns, ended_ns;  /* the time of reading them; 0: it has not begun, or ended */
    struct infer_media_job *jobs; /* in the arena */
    uint32_t count;
    size_t capacity;
    size_t wanted; /* bytes that there was no room for */
    uint64_t work; /* as in struct medium_reader, for files that are read in step DECODE */
    /* ---- while threads read ---- */
    struct infer_media_thread *threads; /* in the arena */
    atomic_uint next;                   /* index of the job that is taken next */
    atomic_bool is_over;                /* no more jobs are to be taken */
    uint32_t thread_count;
    uint32_t open; /* threads that are not back; the loop's */
    bool is_read;  /* they have all been back; the loop's */
    bool is_late;  /* a heavy file has waited for too long; the loop's */
};

/*
 * Decodes on a thread (work_leave_loop()): the items of raw input |index|. Texts fill the inputs
 * beside it that the call has not given. Errors have the client's name for the input in front.
 */
MUST_CHECK enum status infer_media_decode(struct infer *infer, struct infer_call *call,
                                          uint32_t index, const struct call_item *items,
                                          uint32_t count, bool is_list, struct error *err);

/* Begins the time of reading files and texts, unless it has begun; it ends when all inputs are
 * decoded, or begins again because memory was short (|is_done| is false). */
void infer_media_start(struct infer *infer);
void infer_media_stop(struct infer *infer, bool is_done);

/* ns that it has taken; 0: there were none. */
uint64_t infer_media_ns(const struct infer_media *media);

/* Call after all codecs: reads what is to be read at once. */
MUST_CHECK enum status infer_media_read(struct infer *infer, struct error *err);

/* Is there more than one file, so that threads have to read them? */
bool infer_media_needs_threads(const struct infer *infer);

/* Starts the threads, at least one; server/daemon/request/request.c is told by turns_add() when all
 * of them are back. ST_EXHAUSTED. */
MUST_CHECK enum status infer_media_begin(struct infer *infer, struct error *err);

/* Call when the client has gone, and threads read its files: they take no other one. True: none has
 * one any more. The loop. */
bool infer_media_leave(struct infer *infer);

/* Returns the first error, in the order of the request. */
MUST_CHECK enum status infer_media_end(struct infer *infer, struct error *err);

void infer_media_reset(struct infer_media *media);

#endif
