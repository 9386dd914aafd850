/* SPDX-License-Identifier: MIT */
/* The inside of programs and methods, shared by loading, planning and calling. Everything but the
 * blocks' plan caches and the free invocations is immutable once rt_load_method() has returned. */
#ifndef PTED_RUNTIME_PROGRAM_METHOD_H
#define PTED_RUNTIME_PROGRAM_METHOD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/refs.h"
#include "base/spare.h"
#include "runtime/code/block.h"
#include "runtime/code/code.h"
#include "runtime/code/weights.h"
#include "runtime/program/callable.h"
#include "runtime/program/held.h"
#include "runtime/program/orders.h"
#include "runtime/program/program.h"
#include "runtime/program/signature.h"
#include "runtime/program/state_cells.h"
#include "runtime/pte/files.h"
#include "runtime/pte/pte.h"

struct hal_device;
struct rt_files;
struct rt_steps;

/* A mutable buffer that a method uses. If the code is one block, number i is input input_count + i
 * of the graph, and the written buffers are, in order, the outputs after the method's own. */
struct rt_method_state {
    uint32_t cell; /* of the program */
    uint32_t reg;  /* in code of several statements: the register that holds it at the beginning and
                      at  the end */
    bool is_written;
};

#define RT_METHOD_MAGIC 0x3e7806d1u

struct rt_method {
    uint32_t magic;
    const struct rt_callable *callable; /* its kind: the functions in which kinds differ */
    struct rt_program *program;         /* borrowed: the method is part of it */
    const char *name;                   /* borrowed, like the next two, from the file or the kind */
    struct rt_files *files;             /* NULL: it comes from no file */
    const struct pte_plan *plan;        /* likewise */
    uint32_t input_count, result_count;
    uint32_t kept_count;       /* of the results: the last ones are kept values */
    struct hal_device *device; /* borrowed from the program */
    uint32_t share;            /* of the device (hal/queue.h): each method is a party */
    uint32_t weight;           /* of that share; 0 is 1 */
    bool poison_workspaces;
    uint64_t statements_max;        /* of a call */
    struct error failure;           /* code ST_OK: none */
    struct rt_io *inputs, *results; /* owned */
    struct rt_code code;            /* meaningful without failure; no blocks without a file */
    struct rt_block *batched;       /* owned; the entry for several rows, see rt_batch_prove() */
    struct rt_orders orders;        /* forms for other orders of memory */
    struct rt_steps *steps;         /* owned; joined steps of several states, see rt_batch_open() */
    void *own;                      /* of its kind, which frees it */
    struct rt_method *const *parts; /* that its calls call, of programs which |own| keeps */
    uint32_t part_count;
    struct rt_weights weights;      /* likewise, in code.arena */
    struct rt_method_state *states; /* in code.arena: the program's buffers that it uses */
    uint32_t state_count;
    struct arena signature_arena;
    struct rt_signature signature; /* storage in signature_arena */

    atomic_uint_fast64_t inputs_in_place, converted_inputs; /* bound so far */

    pthread_mutex_t mutex;   /* guards what follows */
    struct list invocations; /* free ones, struct rt_invocation */
    uint32_t invocation_count;
    struct spare invocation; /* one more; not guarded */
    struct list batches;     /* free ones, of runtime/call/batch.c */
};

#define RT_PROGRAM_MAGIC 0x9709c0deu

/* The inside of a program. Only rt_load_program() and rt_program_new_empty() make one. */
struct rt_program {
    uint32_t magic;
    struct refs refs;
    struct hal_device *device; /* shared: ref held */
    enum precision precision;  /* of the floats of its methods */
    struct rt_files files;     /* methods borrow bytes from these */
    struct arena plans;        /* of methods that the file has not */
    bool is_composed;          /* there may be such a method; it shares buffers with the others */
    struct rt_method *methods; /* owned */
    uint32_t method_count;
    struct rt_state_cells state_cells;
    struct rt_held held; /* the memory of its constants */
};

/* Frees a program without references, also a partly made one. */
void rt_program_free(struct rt_program *program);

/* Makes the lists, arenas and the lock of a zeroed method. */
void rt_method_init(struct rt_method *method);

void rt_method_fini(struct rt_method *method);

/* Returns the source lines that the method's file knows; borrows |method|, which comes from a
 * file. */
struct rt_notes rt_method_notes(const struct rt_method *method);

/* Adds the plans of |block| to |stats|. Any thread. */
void rt_plan_stats_add(struct rt_plan_stats *stats, struct rt_block *block);

/* Makes a program without files whose only method has just its kind and its device. */
MUST_CHECK enum status rt_program_new_empty(struct hal_device *device,
                                            const struct rt_callable *callable,
                                            struct rt_program **out_program, struct error *err);

/* rt_program_verify_files() without the programs of the parts of its methods. */
MUST_CHECK enum status rt_program_verify_own_files(const struct rt_program *program,
                                                   struct error *err);

/* Returns the inside of a program: the cells of its mutable buffers, its files, its methods. */
struct rt_state_cells *rt_program_state_cells(struct rt_program *program);
const struct rt_files *rt_program_files(const struct rt_program *program);
const struct rt_method *rt_program_const_method(const struct rt_program *program, uint32_t index);

#endif
