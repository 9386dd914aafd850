/* SPDX-License-Identifier: MIT */
/*
 * A `.pte` file as plain arrays.
 *
 * pte_open() maps the file, checks all of it once and copies everything with structure into one
 * bounded arena. Afterwards every index, count and range here is valid, and a file that is
 * rewritten or cut short in place can change weights but not safety: runtime/pte/file.h. Only bytes
 * without structure are borrowed from the mapping: constants, delegate payloads, compile specs and
 * named data. In old files they may be unaligned; code that reads them as numbers checks the
 * pointer first.
 *
 * Immutable once made; any thread may read it until pte_free().
 */
#ifndef PTED_RUNTIME_PTE_PTE_H
#define PTED_RUNTIME_PTE_PTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"
#include "runtime/pte/file_use.h"

struct pte_file;
struct pte_program;

#define PTE_NO_VALUE UINT32_MAX /* an absent entry of an optional tensor list */

enum pte_kind {
    PTE_NULL, /* an absent optional argument */
    PTE_INT,
    PTE_BOOL,
    PTE_DOUBLE,
    PTE_STRING,
    PTE_TENSOR,
    PTE_INT_LIST, /* indices of values that are PTE_INT, read at the moment of use */
    PTE_DOUBLE_LIST,
    PTE_BOOL_LIST,
    PTE_TENSOR_LIST,          /* indices of values that are PTE_TENSOR */
    PTE_OPTIONAL_TENSOR_LIST, /* indices of values that are PTE_TENSOR, or PTE_NO_VALUE */
    PTE_KIND_COUNT
};

enum pte_dynamism { PTE_STATIC, PTE_DYNAMIC_BOUND, PTE_DYNAMIC_UNBOUND };

enum pte_storage {
    PTE_UNBOUND,  /* none in the file: the caller's memory, or another tensor's during a run */
    PTE_CONSTANT, /* |bytes|, or the entry |name| of a `.ptd` when external; never written */
    PTE_PLANNED, /* |memory| at |offset|; |bytes| (external: |name|) is the initial state, if any */
};

struct pte_tensor {
    enum dtype dtype;
    int8_t scalar_type; /* number of |dtype| in the file */
    enum pte_dynamism dynamism;
    enum pte_storage storage;
    bool is_external;                  /* the bytes are in a `.ptd` */
    uint8_t dim_order[SHAPE_RANK_MAX]; /* a permutation: outermost to innermost in memory */
    struct shape shape;                /* upper bounds unless static */
    size_t byte_count;                 /* of |shape| */
    uint32_t memory;                   /* planned: index into the plan's memory_bytes */
    uint64_t offset;                   /* planned: |byte_count| from here lie in the memory */
    struct span bytes; /* |byte_count| long, borrowed; ptr is NULL when there are none */
    const char *name;  /* fully qualified; "" when the file has none */
};

struct pte_list {
    uint32_t count;
    union {
        const uint32_t *values; /* indices into the plan's values: int and tensor lists */
        const double *doubles;
        const bool *bools;
    };
};

struct pte_value {
    enum pte_kind kind;
    union {
        int64_t int_value; /* the initial value: a program may overwrite its scalars */
        bool bool_value;
        double double_value;
        struct span string;
        const struct pte_tensor *tensor;
        struct pte_list list;
    };
};

enum pte_instr_kind { PTE_KERNEL, PTE_DELEGATE, PTE_MOVE, PTE_JUMP_FALSE, PTE_FREE };

/*
 *              index                  args
 * KERNEL       of the operator        all schema arguments, outs, then the returned values
 * DELEGATE     of the delegate        its inputs, then its outputs
 * MOVE         -                      from, to
 * JUMP_FALSE   of the destination     the condition (a Bool, or a bool tensor)
 * FREE         -                      the tensor
 * A destination may equal the number of instructions: the end.
 */
struct pte_instr {
    enum pte_instr_kind kind;
    uint32_t index;
    uint32_t arg_count;
    const uint32_t *args; /* indices into the plan's values */
};

struct pte_compile_spec {
    const char *key;
    struct span value;
};

struct pte_delegate {
    const char *id; /* "XnnpackBackend" */
    struct span payload;
    const struct pte_compile_spec *specs;
    uint32_t spec_count;
};

/* One method. If a file has several chains of instructions, they follow each other here. */
struct pte_plan {
    const char *name;            /* 1 to 128 bytes of printable UTF-8 without '/'; unique */
    const struct error *failure; /* NULL, or the reason why this method cannot be used */
    const struct pte_plan *base; /* whose memory 0 it has, of a plan that was made of others; NULL:
                                    its own */
    const char *encoded_inputs, *encoded_outputs; /* how arguments nest; "" when not stored */
    const struct pte_value *values;
    const uint32_t *inputs, *outputs; /* indices into |values|; none is a list */
    const char *const *operators;     /* "aten::add.out" */
    const struct pte_delegate *delegates;
    const struct pte_instr *instrs;
    const uint64_t *memory_bytes; /* planned memory: entry i is the file's memory id i + 1 */
    uint32_t value_count, input_count, output_count, operator_count, delegate_count, instr_count;
    uint32_t memory_count;
};

/* The layout of an entry's bytes, as a `.ptd` describes it. */
struct pte_layout {
    int8_t scalar_type;
    struct shape shape;
    uint8_t dim_order[SHAPE_RANK_MAX];
};

struct pte_named_data {
    const char *key; /* unique */
    struct span bytes;
    const struct pte_layout *layout; /* NULL: not given; always NULL in a program */
};

/* Entries in the order of the file. */
struct pte_names {
    const struct pte_named_data *entries;
    const struct pte_named_data **sorted; /* by key */
    uint32_t count;
};

/* Returns NULL if there is none. */
const struct pte_named_data *pte_names_find(const struct pte_names *names, struct span key);

/* Maps or reads the regular file at |path|. ST_CORRUPT, ST_UNSUPPORTED or ST_TOO_LARGE say what is
 * wrong and where. */
MUST_CHECK enum status pte_open(const char *path, enum pte_file_use use,
                                struct pte_program **out_program, struct error *err);

/* Does the same for bytes in memory: for a copy of them, or for bytes that the caller keeps until
 * pte_free(). */
MUST_CHECK enum status pte_parse(struct span bytes, enum pte_file_use use,
                                 struct pte_program **out_program, struct error *err);

void pte_free(struct pte_program *program); /* NULL is fine */

/* Returns the whole file, which contains the borrowed bytes (runtime/pte/file.h). */
struct pte_file *pte_file_of(struct pte_program *program);

/* Returns all methods, in the order of the file. */
const struct pte_plan *pte_plans(const struct pte_program *program, size_t *out_count);

/* Data that delegates look up by key. */
const struct pte_names *pte_named_data(const struct pte_program *program);

/*
 * Finds the bytes of tensors in `.ptd` files; |lookup| sets |out_data| or the reason why it cannot.
 * If a tensor's bytes are missing, or have another layout, its plan cannot be used and keeps the
 * reason. To be called once, before the program is shared; the bytes outlive it.
 */
typedef enum status pte_lookup_f(void *user, const char *key,
                                 const struct pte_named_data **out_data, struct error *err);
MUST_CHECK enum status pte_link(struct pte_program *program, pte_lookup_f *lookup, void *user,
                                struct error *err);

/* A line of the exported model's source; text for a terminal, borrowed from the program. */
struct pte_source {
    struct span file, text;
    int32_t line;
};

/* Finds the source line of instruction |instr| of plan |plan|: the innermost one outside PyTorch.
 * False: the exporter kept none. */
bool pte_find_source(const struct pte_program *program, uint32_t plan, uint32_t instr,
                     struct pte_source *out_source);

const char *pte_kind_name(enum pte_kind kind);

/* Prints a listing for people, deterministic: container, segments, methods. */
void pte_print(const struct pte_program *program, struct buf *out);

#endif
