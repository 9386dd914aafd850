/* SPDX-License-Identifier: MIT */
/*
 * A method that comes from a file has a symbol for each size that may vary, so sizes that have to
 * be equal are chosen once; other requirements are met by trying the sizes that they read, one
 * after the other. A kind of method may choose by itself first (runtime/program/callable.h).
 */
#include "config.h"

#include "runtime/program/example.h"

#include <stdlib.h>

#include "base/check.h"
#include "runtime/program/method.h"
#include "runtime/program/results.h"

/* Expressions that may be evaluated for one choice: this takes a fraction of a second. */
#define EVALUATIONS_MAX ((uint64_t)1 << 25)

/* Sizes tried for one symbol, beginning with its current size. */
#define TRIES_MAX 512

/* A size that is ours to choose. */
struct size {
    uint32_t expr;
    int64_t bound;
    bool is_batch, is_token;
};

/* How sizes are chosen at first: by the rules, and, if that fails, in other ways. */
struct manner {
    int64_t batch; /* at most */
    int64_t other; /* likewise */
    bool takes_tokens;
};

struct choice {
    struct rt_method *method;
    const struct shape *const *given; /* by raw input, entries may be NULL */
    struct shape *shapes;             /* by raw input: the result */
    const struct shape **pointers;    /* by raw input: the shapes that are tried */
    struct rt_result_info *infos;     /* by raw result */
    /* Of a method that comes from a file: */
    const struct rt_graph *graph;
    struct size *sizes;
    uint32_t size_count;
    int64_t *values; /* by expression */
    bool *is_known;
    uint64_t evaluations;
};

static const struct manner manners[] = {
    {1, INT64_MAX, true}, {2, INT64_MAX, true}, {INT64_MAX, INT64_MAX, false},
    {1, 1, false},        {2, 2, false},        {4, 4, false},
    {8, 8, false},        {16, 16, false},      {32, 32, false},
};

static int64_t at_most(int64_t value, int64_t bound)
{
    return value < bound ? value : bound;
}

/* ---- which sizes there are ------------------------------------------------------------------- */

static const struct rt_graph *graph_of(const struct rt_method *method)
{
    return method->code.block_count > 0 ? &method->code.blocks[0]->graph : NULL;
}

/* The symbol of dim |d| of input |i|, or 0. */
static uint32_t symbol_of(const struct rt_graph *graph, uint32_t i, uint8_t d)
{
    const struct rt_value *v = &graph->values[graph->inputs[i]];
    return v->kind == RT_TENSOR ? v->dims[d].expr : 0;
}

/* A square matrix has no batch. */
static bool is_twice(const struct rt_graph *graph, uint32_t i, uint8_t d, uint8_t rank)
{
    for (uint8_t k = 0; k < rank; k++) {
        if (k != d && symbol_of(graph, i, k) == symbol_of(graph, i, d)) {
            return true;
        }
    }
    return false;
}

/* A dim of a vector does not say what it counts: another input may know better. */
static bool is_first_place(const struct rt_method *method, uint32_t input, uint8_t dim)
{
    const struct rt_graph *graph = graph_of(method);
    uint32_t symbol = symbol_of(graph, input, dim);
    for (uint32_t i = 0; i < input; i++) {
        const struct rt_io *io = rt_method_input(method, i);
        for (uint8_t d = 0; io->shape.rank >= 2 && d < io->shape.rank; d++) {
            if (symbol_of(graph, i, d) == symbol) {
                return false;
            }
        }
    }
    return true;
}

bool rt_example_is_batch(const struct rt_method *method, uint32_t input, uint8_t dim)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_io *io = rt_method_input(method, input);
    const struct rt_graph *graph = graph_of(method);
    if (dim != 0 || io->shape.rank < 2 || !(io->dynamic_dims & 1)) {
        return false;
    }
    if (!graph || symbol_of(graph, input, 0) == 0) {
        return true;
    }
    return !is_twice(graph, input, 0, io->shape.rank) && is_first_place(method, input, 0);
}

static bool is_integer(enum dtype dtype)
{
    return dtype_infos[dtype].kind == DTYPE_INT || dtype_infos[dtype].kind == DTYPE_UINT;
}

static bool is_token(const struct choice *choice, const struct rt_io *io)
{
    return choice->method->state_count > 0 && is_integer(io->dtype);
}

/* Inputs that the caller gives: their symbols are known and not to be chosen. */
static void take_given(struct choice *choice)
{
    for (uint32_t i = 0; choice->graph && i < rt_method_input_count(choice->method); i++) {
        const struct shape *given = choice->given[i];
        const struct rt_io *io = rt_method_input(choice->method, i);
        bool fits = given && io->kind == RT_IO_TENSOR && given->rank == io->shape.rank;
        for (uint8_t d = 0; fits && d < given->rank; d++) {
            uint32_t symbol = symbol_of(choice->graph, i, d);
            if (symbol && !choice->is_known[symbol]) {
                choice->values[symbol] = given->dims[d];
                choice->is_known[symbol] = true;
            }
        }
    }
}

/*
 * Vectors come last: a size that they share with another input has the meaning that it has there.
 */
static void collect_sizes(struct choice *choice, bool takes_vectors)
{
    for (uint32_t i = 0; i < rt_method_input_count(choice->method); i++) {
        const struct rt_io *io = rt_method_input(choice->method, i);
        if (io->kind != RT_IO_TENSOR || (io->shape.rank < 2) != takes_vectors) {
            continue;
        }
        for (uint8_t d = 0; d < io->shape.rank; d++) {
            uint32_t symbol = symbol_of(choice->graph, i, d);
            if (symbol && !choice->is_known[symbol]) {
                choice->is_known[symbol] = true;
                choice->sizes[choice->size_count++] = (struct size){
                    .expr = symbol,
                    .bound = io->shape.dims[d],
                    .is_batch = rt_example_is_batch(choice->method, i, d),
                    .is_token = is_token(choice, io),
                };
            }
        }
    }
}

/* Integer inputs have the values that rt_method_measure() assumes. */
static void take_numbers(struct choice *choice)
{
    for (uint32_t i = 0; i < choice->graph->input_count; i++) {
        const struct rt_value *v = &choice->graph->values[choice->graph->inputs[i]];
        if (v->kind == RT_INT && v->i.expr) {
            choice->is_known[v->i.expr] = true;
        }
    }
}

/* ---- requirements ---------------------------------------------------------------------------- */

/* The first requirement that does not hold; requirement_count: all hold, as far as known. */
static uint32_t first_broken(struct choice *choice)
{
    const struct rt_dims *dims = &choice->graph->dims;
    uint32_t i = 0;
    choice->evaluations += (uint64_t)dims->expr_count + dims->requirement_count;
    rt_dims_eval_known(dims, choice->values, choice->is_known);
    for (; i < dims->requirement_count; i++) {
        const struct rt_requirement *r = &dims->requirements[i];
        bool is_open = (r->a.expr && !choice->is_known[r->a.expr]) ||
                       (r->b.expr && !choice->is_known[r->b.expr]);
        if (!is_open && rt_dim_at(r->a, choice->values) != rt_dim_at(r->b, choice->values)) {
            break;
        }
    }
    return i;
}

/* The |n|th size to try: upwards from 1, or downwards from the bound. */
static int64_t nth_try(const struct size *size, uint32_t n)
{
    return size->is_batch || size->is_token ? 1 + (int64_t)n : size->bound - (int64_t)n;
}

/* Changes one size so that requirement |broken| and all earlier ones hold. */
static bool mend_by(struct choice *choice, const struct size *size, uint32_t broken)
{
    int64_t before = choice->values[size->expr];
    for (uint32_t n = 0; n < TRIES_MAX && n < size->bound; n++) {
        choice->values[size->expr] = nth_try(size, n);
        if (choice->evaluations > EVALUATIONS_MAX || first_broken(choice) > broken) {
            return choice->evaluations <= EVALUATIONS_MAX;
        }
    }
    choice->values[size->expr] = before;
    return false;
}

/*
 * Sizes that had their bound by default change before batches do, later ones before earlier ones.
 */
static bool mend(struct choice *choice, uint32_t broken)
{
    for (int batches = 0; batches < 2; batches++) {
        for (uint32_t i = choice->size_count; i-- > 0;) {
            if (choice->sizes[i].is_batch == batches &&
                mend_by(choice, &choice->sizes[i], broken)) {
                return true;
            }
        }
    }
    return false;
}

static void choose_sizes(struct choice *choice, const struct manner *manner)
{
    for (uint32_t i = 0; i < choice->size_count; i++) {
        const struct size *size = &choice->sizes[i];
        int64_t wanted = size->is_batch                           ? manner->batch
                         : size->is_token && manner->takes_tokens ? 1
                                                                  : manner->other;
        choice->values[size->expr] = at_most(wanted, size->bound);
    }
    uint32_t count = choice->graph->dims.requirement_count;
    for (uint32_t broken = first_broken(choice); broken < count && mend(choice, broken);) {
        broken = first_broken(choice);
    }
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* A dim that may vary and is no symbol: of an input that nothing reads, or of a method without a
 * file. */
static int64_t plain_size(const struct choice *choice, uint32_t input, uint8_t d,
                          const struct manner *manner)
{
    const struct rt_io *io = rt_method_input(choice->method, input);
    bool is_batch = rt_example_is_batch(choice->method, input, d);
    bool is_one = is_token(choice, io) && manner->takes_tokens;
    return at_most(is_batch ? manner->batch : is_one ? 1 : manner->other, io->shape.dims[d]);
}

static int64_t size_of(const struct choice *choice, uint32_t input, uint8_t d,
                       const struct manner *manner)
{
    const struct rt_io *io = rt_method_input(choice->method, input);
    uint32_t symbol = choice->graph ? symbol_of(choice->graph, input, d) : 0;
    if (symbol) {
        return choice->values[symbol];
    }
    return rt_io_is_dynamic(io, d) ? plain_size(choice, input, d, manner) : io->shape.dims[d];
}

static void fill_shapes(struct choice *choice, const struct manner *manner)
{
    for (uint32_t i = 0; i < rt_method_input_count(choice->method); i++) {
        const struct rt_io *io = rt_method_input(choice->method, i);
        struct shape *shape = &choice->shapes[i];
        *shape = io->kind == RT_IO_TENSOR ? io->shape : (struct shape){.rank = 0};
        for (uint8_t d = 0; d < shape->rank; d++) {
            shape->dims[d] = size_of(choice, i, d, manner);
        }
        if (io->kind == RT_IO_TENSOR && choice->given[i]) {
            *shape = *choice->given[i];
        }
        choice->pointers[i] = io->kind == RT_IO_TENSOR ? shape : NULL;
    }
}

static enum status verify(struct choice *choice, struct error *err)
{
    return rt_method_result_shapes(choice->method, choice->pointers, choice->infos, err);
}

static enum status try_manner(struct choice *choice, const struct manner *manner, struct error *err)
{
    if (choice->graph) {
        choose_sizes(choice, manner);
    }
    fill_shapes(choice, manner);
    return verify(choice, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status choose(struct choice *choice, struct error *err)
{
    struct error first = {.code = ST_OK}, attempt = {.code = ST_OK};
    enum status status = ST_INVALID;
    if (choice->graph) {
        take_given(choice);
        take_numbers(choice);
        collect_sizes(choice, false);
        collect_sizes(choice, true);
    }
    if (choice->method->callable->choose) {
        status = choice->method->callable->choose(choice->method, choice->given, choice->shapes,
                                                  choice->infos, &first);
        attempt = first;
    }
    for (size_t i = 0; status == ST_INVALID && i < sizeof(manners) / sizeof(manners[0]); i++) {
        status = try_manner(choice, &manners[i], &attempt);
        if (first.code == ST_OK) {
            first = attempt;
        }
    }
    if (status != ST_OK) {
        *err = status == ST_INVALID ? first : attempt;
    }
    return status;
}

static bool allocate(struct choice *choice)
{
    size_t inputs = rt_method_input_count(choice->method), dims = 0, exprs = 0;
    for (uint32_t i = 0; i < inputs; i++) {
        dims += rt_method_input(choice->method, i)->shape.rank;
    }
    exprs = choice->graph ? choice->graph->dims.expr_count : 0;
    choice->pointers = calloc(inputs + 1, sizeof(struct shape *));
    choice->sizes = calloc(dims + 1, sizeof(*choice->sizes));
    choice->values = calloc(exprs + 1, sizeof(*choice->values));
    choice->is_known = calloc(exprs + 1, sizeof(*choice->is_known));
    return choice->pointers && choice->sizes && choice->values && choice->is_known;
}

enum status rt_example_find(struct rt_method *method, const struct shape *const *given,
                            struct shape *out_shapes, struct rt_result_info *out_infos,
                            struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct choice choice = {
        .method = method,
        .given = given,
        .shapes = out_shapes,
        .infos = out_infos,
        .graph = graph_of(method),
    };
    enum status status =
        allocate(&choice) ? choose(&choice, err) : error_no_memory(err, "an example");
    free(choice.pointers);
    free(choice.sizes);
    free(choice.values);
    free(choice.is_known);
    return status;
}

enum status rt_example_shapes(struct rt_method *method, const struct shape *const *given,
                              struct shape *out_shapes, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(method->failure.code == ST_OK);
    size_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    const struct shape **none = calloc(inputs + 1, sizeof(struct shape *));
    struct rt_result_info *infos = calloc(results + 1, sizeof(*infos));
    enum status status = none && infos
                             ? rt_example_find(method, given ? given : none, out_shapes, infos, err)
                             : error_no_memory(err, "an example");
    free(none);
    free(infos);
    return status;
}
