/* SPDX-License-Identifier: MIT */
/*
 * A loaded program: one `.pte` file compiled for one device. Immutable after loading and shared by
 * reference count; weights that need no other form are borrowed from the mapped file.
 *
 * A damaged file does not load. A method that needs something this build lacks (an operator, a
 * delegate, an element type) is kept with the reason, and the other methods work.
 *
 * Everything here may be called from any thread.
 */
#ifndef PTED_RUNTIME_PROGRAM_PROGRAM_H
#define PTED_RUNTIME_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/precision.h"
#include "base/reason.h"
#include "base/shape.h"
#include "base/status.h"
#include "hal/command.h"

struct hal_device;
struct rt_method;
struct rt_program;

struct rt_program *rt_program_ref(struct rt_program *program);
void rt_program_unref(struct rt_program *program); /* NULL is fine */

/*
 * Fails with ST_UNAVAILABLE when a file that calls read weights from has been written to or cut
 * short since it was loaded: no call can be trusted any more, and each ends with that status. Of a
 * pipeline: when that is true of a step. A system call for each such file. Any thread.
 */
MUST_CHECK enum status rt_program_verify_files(const struct rt_program *program, struct error *err);

/* Descriptors that all loaded programs hold, of files that rt_program_verify_files() looks at. */
uint32_t rt_program_descriptors(void);

/*
 * Returns how precisely the floats of its methods are computed: the mode that rt_load_program() was
 * asked for, or the next more precise mode of the device. Meaningless for a pipeline: the program
 * of each step has its own.
 */
enum precision rt_program_precision(const struct rt_program *program);

/* Are caches of it kept in 8 bits? See runtime/load/cells_int8.h. */
bool rt_program_has_int8_caches(const struct rt_program *program);

/* Appends what became of packed weights (struct rt_load_options): nothing if they are not kept. */
void rt_program_print_packed(const struct rt_program *program, struct buf *out);

/* Returns the methods in the file's order. They live as long as the program. */
uint32_t rt_program_method_count(const struct rt_program *program);
struct rt_method *rt_program_method(const struct rt_program *program, uint32_t index);
struct rt_method *rt_program_find_method(const struct rt_program *program, struct span name);

/* Returns the method called when none is named: "forward", or the only one; NULL when there is
 * neither. */
struct rt_method *rt_program_default_method(const struct rt_program *program);

/* Prints the text of `pte inspect FILE`: the container, its methods and their operators. */
void rt_program_print(const struct rt_program *program, struct buf *out);

/* ---- methods --------------------------------------------------------------------------------- */

enum rt_io_kind { RT_IO_NONE, RT_IO_TENSOR, RT_IO_INT, RT_IO_FLOAT, RT_IO_BOOL, RT_IO_STRING };

/* One raw input or result, as the file declares it. */
struct rt_io {
    enum rt_io_kind kind;
    const char *name; /* unique among the method's inputs or results: see runtime/program/names.h */
    const char *alias;     /* "input_0", "output_0": the raw index, which counts all kinds */
    const char *label;     /* for messages: "input 'mask'" */
    const char *path;      /* the same to callers that know arguments: kwargs["mask"] */
    enum dtype dtype;      /* of a tensor; I64, F64 and BOOL for scalars */
    struct shape shape;    /* upper bounds; rank 0 for scalars */
    uint32_t dynamic_dims; /* bit d is set: dim d may be anything up to shape.dims[d] */
    bool is_fixed;         /* the exporter fixed the value: only that one is accepted */
    /* Of a tensor: the order of memory that spares the method a reorder, as dims from outermost to
     * innermost; NULL: row-major. Its bit tells calls apart by orders: runtime/program/orders.h. */
    const uint8_t *order;
    uint32_t order_bit;
    const uint8_t *file_order; /* that the file declares, likewise; it decides nothing */
    union {
        int64_t i;
        double f;
        bool b;
        struct span s; /* borrowed from the file */
    } value;           /* when is_fixed */
};

/* May dim |dim| be less than shape.dims[dim]? */
static inline bool rt_io_is_dynamic(const struct rt_io *io, uint32_t dim)
{
    return io->dynamic_dims >> dim & 1;
}

const char *rt_method_name(const struct rt_method *method);

/* Returns its kind, for clients: "executorch_pte", "pipeline". */
const char *rt_method_platform(const struct rt_method *method);

/* Does it have weights, plans and dispatches of its own? Otherwise only the methods that it calls
 * have them. */
bool rt_method_has_own_work(const struct rt_method *method);

/* Sets how much of the device's time the method gets beside others that want it too: 1, unless it
 * is set before the first call. */
void rt_method_set_weight(struct rt_method *method, uint32_t weight);
struct rt_program *rt_method_program(const struct rt_method *method); /* borrowed */

/* Returns why the method cannot be called, or NULL when it can. Its inputs and results are known
 * anyway. */
const struct error *rt_method_failure(const struct rt_method *method);

uint32_t rt_method_input_count(const struct rt_method *method);
uint32_t rt_method_result_count(const struct rt_method *method);
const struct rt_io *rt_method_input(const struct rt_method *method, uint32_t index);
const struct rt_io *rt_method_result(const struct rt_method *method, uint32_t index);

/* Is |name| its name or its alias? Not more than one input, and one result, of a method is. */
bool rt_io_is_called(const struct rt_io *io, struct span name);

/*
 * Finds the bytes of result |index| as an invocation would give them, if they are the same for
 * every call and known without one; false otherwise. They live as long as the program.
 */
bool rt_method_constant_result(const struct rt_method *method, uint32_t index,
                               struct span *out_bytes);

/* Does the method take nothing, and is each of its results known so? get_max_seq_len is one. */
bool rt_method_is_constant(const struct rt_method *method);

/* Tensors bound to memory that existed: used where they were, or converted by the device. */
struct rt_input_stats {
    uint64_t in_place, converted;
};

struct rt_input_stats rt_method_input_stats(const struct rt_method *method);

/* The plans of a method's calls, one for each set of dims, of orders of memory, and of rows that
 * run as one; those of joined steps are not among them. */
struct rt_plan_stats {
    uint64_t count, bytes; /* that are kept now */
    uint64_t found, made;  /* times that a call, or another look, found its plan or had it made */
};

struct rt_plan_stats rt_method_plan_stats(struct rt_method *method);

/* `pte inspect --graph` and `--plan`: deterministic texts; the plan is the one at
 * the upper bounds. */
MUST_CHECK enum status rt_method_print_graph(struct rt_method *method, struct buf *out,
                                             struct error *err);
MUST_CHECK enum status rt_method_print_plan(struct rt_method *method, struct buf *out,
                                            struct error *err);

/*
 * The parts of a submission of that plan, all blocks together; |fn|, if it is not NULL, is called
 * with the operator of each dispatch that the device leaves to the host. The names live as long as
 * the process.
 */
MUST_CHECK enum status
rt_method_place(struct rt_method *method,
                void (*fn)(void *arg, const char *op, enum hal_placement placement), void *arg,
                struct hal_command_stats *out_stats, struct error *err);

/* Does a call at some position need only the rows of its mutable buffers before that position, and
 * the rows that it writes? That is so if rt_state_wrote() says after each call that only the rows
 * of its position were written. False is always a safe answer. Of a method without failure; any
 * thread. */
bool rt_method_is_positional(const struct rt_method *method);

/* Returns the reason if it is not that; REASON_NONE: it is. */
enum reason rt_method_why_not_positional(const struct rt_method *method);

/* Returns the least number of rows, dim 2, of its mutable buffers of rank 4; 0: it has none. */
int64_t rt_method_state_rows(const struct rt_method *method);

/* Do calls of |a| and |b|, of one program, keep the same mutable buffers, and at least one, so that
 * a call of one of them goes on where a call of the other one has ended? */
bool rt_method_shares_states(const struct rt_method *a, const struct rt_method *b);

#endif
