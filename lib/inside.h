/* SPDX-License-Identifier: MIT */
/* The inside of the objects of lib/pted.h. */
#ifndef PTED_LIB_INSIDE_H
#define PTED_LIB_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/refs.h"
#include "base/status.h"
#include "lib/pted.h"

struct hal_buffer;
struct hal_device;
struct hal_pool;
struct rt_invocation;
struct rt_load_options;
struct rt_method;
struct rt_profile;
struct rt_program;
struct rt_state;
struct shape;

#define LIB_DEVICE_MAGIC 0x11bde71cu
#define LIB_PROGRAM_MAGIC 0x11b9709au
#define LIB_STATE_MAGIC 0x11b57a7eu
#define LIB_CALL_MAGIC 0x11bca115u
#define LIB_PROFILE_MAGIC 0x11b970f1u

struct pted_device {
    uint32_t magic;
    struct refs refs;
    struct hal_device *hal; /* shared: ref held */
    struct hal_pool *pool;  /* owned */
};

struct pted_method {
    struct pted_program *program; /* the one that it is in */
    struct rt_method *rt;
};

struct pted_program {
    uint32_t magic;
    struct refs refs;
    struct pted_device *device;  /* shared: ref held */
    struct rt_program *rt;       /* likewise */
    struct pted_method *methods; /* owned */
    size_t method_count;
};

struct pted_state {
    uint32_t magic;
    struct refs refs;
    struct pted_program *program; /* shared: ref held */
    struct rt_state *rt;          /* likewise */
    pthread_mutex_t mutex;        /* guards what follows */
    struct list waiting;          /* calls, in their order */
    bool is_busy;                 /* a call runs, or is about to */
    bool is_turn_over;            /* the call that ran last has ended, none was begun since */
    bool goes_on;                 /* a thread is in lib_state_go_on() and begins the next call */
};

struct pted_profile {
    uint32_t magic;
    struct refs refs;
    const struct pted_method *method; /* its program is shared: ref held */
    struct rt_profile *rt;            /* owned */
    struct pted_call *call;           /* the one that has it, which holds a ref; or NULL */
    struct pted_profile_row *rows;    /* owned; of the last read, like the counts */
    size_t row_count, row_capacity, span_count;
};

enum lib_phase { LIB_PHASE_FILLING, LIB_PHASE_RUNNING, LIB_PHASE_ENDED };

struct pted_call {
    uint32_t magic;
    const struct pted_method *method; /* its program is shared: ref held */
    struct pted_state *state;         /* shared: ref held; or NULL */
    struct pted_profile *profile;     /* likewise */
    struct hal_buffer **placed;       /* owned; by output: the caller's memory, or NULL */
    _Atomic enum lib_phase phase;
    struct rt_state *joined; /* of the invocation; NULL: not yet */
    struct list link;        /* of |state->waiting| */
    pted_done_f *done;
    void *arg;
    struct error error;    /* how it ended; ST_OK: well */
    pthread_mutex_t mutex; /* guards what follows; |invocation| for those that are not its thread */
    pthread_cond_t changed;
    struct rt_invocation *invocation; /* owned */
    bool is_over, is_cancelled;       /* over: it has ended, and |done| has returned */
};

/* Copies |err|, or the general text of |status|, to |out_err|, which may be NULL. Returns the
 * public number. |err| may be NULL if |status| is ST_OK. */
enum pted_status lib_give(enum status status, const struct error *err, struct pted_error *out_err);

/* Makes a refusal of the library's own. */
enum pted_status lib_refuse(struct pted_error *err, enum status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct pted_device *lib_device_ref(struct pted_device *device);
struct pted_program *lib_program_ref(struct pted_program *program);
struct pted_state *lib_state_ref(struct pted_state *state);

struct pted_shape lib_shape_give(const struct shape *shape);

/* Tells whether it has been submitted and is not over. Any thread. */
bool lib_call_is_in_flight(struct pted_call *call);

/* Takes the profile away from |call|, which is not in flight. */
void lib_profile_leave(struct pted_call *call);

/* Takes over |rt| on success. */
enum status lib_program_new(struct pted_device *device, struct rt_program *rt,
                            struct pted_program **out_program, struct error *err);

/* Takes the turn of |call|, which is planned. True: it runs now; the caller begins it. False: it
 * waits, and will be begun by lib_state_go_on(). */
bool lib_state_take_turn(struct pted_state *state, struct pted_call *call);

/* Call when the call whose turn it was is over: the next one runs. */
void lib_state_go_on(struct pted_state *state);

/* Begins a call that has waited. If it cannot, it has ended, and so has its turn. */
void lib_call_begin_late(struct pted_call *call);

/* Copies the caller's struct of options, which begins with its size, over the |size| bytes of
 * |all|, our own with its defaults. ST_UNSUPPORTED: it has members that this version does not know,
 * and they are not zero. */
enum status lib_options_take(void *all, size_t size, const void *given, struct error *err);

#endif
