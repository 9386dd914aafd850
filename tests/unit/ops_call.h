/* SPDX-License-Identifier: MIT */
/*
 * One call of an operator's emit function without graph and plan. Arguments are set one by one. The
 * operator's dispatches run at once, with their tiles from the last to the first, so that a test
 * fails if tiles depend on each other. Replaces runtime/emit/emit.c: a program that links this file
 * uses nothing from there.
 */
#ifndef PTED_TESTS_OPS_CALL_H
#define PTED_TESTS_OPS_CALL_H

#include "runtime/emit/cut.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/keep.h"
#include "runtime/ops/op.h"

#define CALL_VALUES_MAX 16

struct rt_emit {
    const struct rt_op *op;
    struct rt_value args[CALL_VALUES_MAX];
    struct rt_tensor tensors[CALL_VALUES_MAX]; /* of the arguments that are tensors */
    struct rt_dim ints[CALL_VALUES_MAX][SHAPE_RANK_MAX];
    struct rt_tensor items[CALL_VALUES_MAX]; /* of the only argument or output that is a list */
    bool has_item[CALL_VALUES_MAX];
    struct rt_tensor outs[CALL_VALUES_MAX];
    uint32_t arg_count, item_count, out_count;
    void *memory[3 * CALL_VALUES_MAX]; /* by slot */
    uint16_t slot_count;
    bool reads_places;              /* rt_emit_place() returns words and what is known of them */
    int64_t words[CALL_VALUES_MAX]; /* their numbers, by argument */
    bool has_update;                /* returned by rt_emit_update(): */
    int64_t update[RT_UPDATE_WORDS];
    struct rt_update asked;           /* the last argument of rt_emit_update() */
    const struct rt_machine *machine; /* NULL: workers */
    void *workspace;                  /* returned last by rt_emit_workspace() */
    size_t scratch_bytes;             /* the most of its dispatches */
    uint32_t dispatch_count;
    const char *kernel; /* the last dispatch's */
    struct hal_fault_record fault;
};

/* A list of numbers, for dims and arguments. */
#define INTS(...)                                                                                  \
    (const int64_t[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* A number in [0, below), the same ones in every run. */
int64_t draw(int64_t below);

void call_init(struct rt_emit *call, const struct rt_op *family, const char *name);

/* A row-major tensor over |data|. The caller owns |data|, which must have room for the dims. */
struct rt_tensor call_tensor(struct rt_emit *call, enum dtype dtype, uint8_t rank,
                             const int64_t *dims, void *data);
/* The same with its channels innermost; rank 4. */
struct rt_tensor call_channels_last(struct rt_emit *call, enum dtype dtype, const int64_t *dims,
                                    void *data);

/* The next argument. */
void call_arg(struct rt_emit *call, struct rt_tensor tensor);
void call_arg_none(struct rt_emit *call);
void call_arg_int(struct rt_emit *call, int64_t value);
void call_arg_bool(struct rt_emit *call, bool value);
void call_arg_float(struct rt_emit *call, double value);
void call_arg_ints(struct rt_emit *call, uint32_t count, const int64_t *values);
/* A list of the items added before. The operator's list of outputs, if it has one, is a list
 * too. */
void call_item(struct rt_emit *call, const struct rt_tensor *tensor); /* NULL: none */
void call_arg_items(struct rt_emit *call);
void call_out(struct rt_emit *call, struct rt_tensor tensor);

/* Records and runs the dispatches. A fault is ST_INVALID with its text. */
MUST_CHECK enum status call_run(struct rt_emit *call, struct error *err);

#endif
