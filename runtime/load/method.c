/* SPDX-License-Identifier: MIT */
/*
 * From one method of a file to something that can be called: its description, the import of its
 * instructions, the compilation of its blocks, and the note of the bytes that it borrows.
 */
#include "config.h"

#include "runtime/load/method.h"

#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "runtime/call/inside.h"
#include "runtime/code/caches.h"
#include "runtime/code/unify.h"
#include "runtime/graph/op.h"
#include "runtime/import/kernels.h"
#include "runtime/load/carry.h"
#include "runtime/load/cells_int8.h"
#include "runtime/program/names.h"
#include "runtime/program/state_cells.h"
#include "runtime/vm/vm.h"

/* ---- description ----------------------------------------------------------------------------- */

/* Does the file declare an order with the bytes of row-major? Dims of 1 do not matter. */
static bool is_row_major(const struct pte_tensor *t)
{
    int before = -1;
    bool is = true;
    for (uint8_t i = 0; i < t->shape.rank; i++) {
        uint8_t d = t->dim_order[i];
        if (t->shape.dims[d] != 1) {
            is = is && d > before;
            before = d;
        }
    }
    return is;
}

/* One of an element type that this build lacks is nothing: the method has a failure. */
static void describe_tensor(struct rt_io *io, const struct pte_tensor *t)
{
    enum dtype ignored;
    if (!dtype_from_executorch(t->scalar_type, &ignored)) {
        return;
    }
    io->kind = RT_IO_TENSOR;
    io->dtype = t->dtype;
    io->shape = t->shape;
    io->file_order = is_row_major(t) ? NULL : t->dim_order;
    for (uint8_t d = 0; t->dynamism != PTE_STATIC && d < t->shape.rank; d++) {
        io->dynamic_dims |= t->shape.dims[d] > 1 ? 1u << d : 0;
    }
}

/* The file's description; refine() adds later what inference found out about a tensor's dims. */
static void describe(struct rt_io *io, const struct pte_value *v)
{
    switch (v->kind) {
    case PTE_TENSOR:
        describe_tensor(io, v->tensor);
        return;
    case PTE_INT:
        io->kind = RT_IO_INT;
        io->dtype = DT_I64;
        io->value.i = v->int_value;
        break;
    case PTE_DOUBLE:
        io->kind = RT_IO_FLOAT;
        io->dtype = DT_F64;
        io->value.f = v->double_value;
        break;
    case PTE_BOOL:
        io->kind = RT_IO_BOOL;
        io->dtype = DT_BOOL;
        io->value.b = v->bool_value;
        break;
    case PTE_STRING:
        io->kind = RT_IO_STRING;
        io->value.s = v->string;
        break;
    default:
        io->kind = RT_IO_NONE;
        return;
    }
    io->is_fixed = true;
}

static enum status describe_all(struct rt_method *method, struct error *err)
{
    const struct pte_plan *plan = method->plan;
    TRY(rt_names_allocate(&method->inputs, plan->input_count, RT_INPUT, err));
    TRY(rt_names_allocate(&method->results, plan->output_count, RT_RESULT, err));
    for (uint32_t i = 0; i < plan->input_count; i++) {
        describe(&method->inputs[i], &plan->values[plan->inputs[i]]);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        describe(&method->results[i], &plan->values[plan->outputs[i]]);
    }
    return ST_OK;
}

/* The compiled graph knows better than the file which dims vary, and which ints. Sizes that depend
 * on numbers of a run may have no bound there. */
static void refine(struct rt_io *io, const struct rt_value *v)
{
    io->is_fixed = io->is_fixed && !(v->kind == RT_INT && !rt_dim_is_const(v->i));
    if (io->kind != RT_IO_TENSOR || v->kind != RT_TENSOR) {
        return;
    }
    io->dynamic_dims = 0;
    for (uint8_t d = 0; d < v->rank; d++) {
        bool is_fixed = rt_dim_is_const(v->dims[d]);
        if (is_fixed || v->dims[d].value < INT64_MAX) {
            io->shape.dims[d] = v->dims[d].value;
        }
        io->dynamic_dims |= is_fixed ? 0 : 1u << d;
    }
}

/* Rows whose number depends on data: each run checks the dims that the file fixes. */
static void refine_extent(struct rt_io *io, const struct rt_register *r)
{
    if (r->fixed_dims & 1) {
        io->shape.dims[0] = r->bound.dims[0];
    } else {
        io->dynamic_dims |= 1;
    }
}

/* A result of several statements: the code that computes it decides the kind. */
static void refine_scalar(struct rt_io *io, const struct rt_register *r, bool is_computed)
{
    static const struct {
        enum rt_io_kind kind;
        enum dtype dtype;
    } kinds[] = {
        [RT_INT] = {RT_IO_INT, DT_I64},
        [RT_FLOAT] = {RT_IO_FLOAT, DT_F64},
        [RT_BOOL] = {RT_IO_BOOL, DT_BOOL},
    };
    if (is_computed && (r->kind == RT_INT || r->kind == RT_FLOAT || r->kind == RT_BOOL)) {
        io->kind = kinds[r->kind].kind;
        io->dtype = kinds[r->kind].dtype;
        io->is_fixed = false;
    }
}

/* ---- compilation ----------------------------------------------------------------------------- */

/* Cells go by name, and the importer tells buffers apart by place: two that a call writes would be
 * written to one cell. */
static enum status check_own_cell(const struct rt_method *method, uint32_t state,
                                  const struct pte_tensor *tensor, struct error *err)
{
    const struct rt_method_state *use = &method->states[state];
    for (uint32_t i = 0; i < state; i++) {
        const struct rt_method_state *other = &method->states[i];
        if (other->cell == use->cell && (other->is_written || use->is_written)) {
            return error_set(err, ST_UNSUPPORTED, "two mutable buffers have the name '%.64s'",
                             tensor->name);
        }
    }
    return ST_OK;
}

/* The method's mutable buffers as cells of the program. */
static enum status find_states(struct rt_method *method, const struct rt_state_uses *uses,
                               struct error *err)
{
    struct rt_state_cells *cells = rt_program_state_cells(method->program);
    method->states = arena_array(&method->code.arena, uses->count, sizeof(*method->states));
    if (!method->states) {
        return arena_fail(&method->code.arena, "the method", err);
    }
    for (uint32_t i = 0; i < uses->count; i++) {
        const struct rt_state_use *use = &uses->items[i];
        method->states[i].is_written = use->is_written;
        method->states[i].reg = use->reg;
        TRY(rt_state_cells_add(cells, method->device, method->plan, use->tensor, use->is_written,
                               &method->states[i].cell, err));
        TRY(check_own_cell(method, i, use->tensor, err));
    }
    method->state_count = uses->count;
    return ST_OK;
}

/* Nothing that calls a method has complex numbers. */
static enum status check_public(const struct rt_io *ios, uint32_t count, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ios[i].kind == RT_IO_TENSOR && !dtype_is_public(ios[i].dtype)) {
            return error_set(err, ST_UNSUPPORTED,
                             "%s is %s: complex numbers may occur inside of a program, but the "
                             "protocol has none; view_as_real makes pairs of numbers of them",
                             ios[i].name, dtype_name(ios[i].dtype));
        }
    }
    return ST_OK;
}

/* The type that an operator infers from its arguments has to be the result's type in the file. */
static enum status check_results(const struct rt_method *method, struct error *err)
{
    const struct rt_code *code = &method->code;
    for (uint32_t i = 0; i < code->result_count; i++) {
        const struct rt_code_result *result = &code->results[i];
        const struct rt_io *io = &method->results[i];
        if (!result->has_source) {
            continue;
        }
        const struct rt_graph *graph = &code->blocks[result->block]->graph;
        const struct rt_value *v = &graph->values[graph->outputs[result->output]];
        bool is_tensor = v->kind == RT_TENSOR;
        if (is_tensor != (io->kind == RT_IO_TENSOR) ||
            (is_tensor && (v->dtype != io->dtype || v->rank != io->shape.rank))) {
            return error_set(err, ST_INVALID,
                             "%s: what computes it has another type or rank than the file says",
                             io->name);
        }
    }
    return ST_OK;
}

/* The caches of |carried| become buffers of |states|. */
static enum status note_caches(struct rt_method *method, const struct rt_carried *carried,
                               const struct rt_code_states *found, struct rt_state_uses *states,
                               struct error *err)
{
    struct arena *arena = &method->code.arena;
    states->items = arena_array(arena, found->count, sizeof(*states->items));
    if (!states->items) {
        return arena_fail(arena, "the method", err);
    }
    for (uint32_t i = 0; i < carried->count; i++) {
        uint32_t state = states->count;
        if (carried->caches[i].grows) {
            states->items[states->count++] =
                (struct rt_state_use){.tensor = carried->caches[i].buffer,
                                      .reg = found->regs[state],
                                      .is_written = found->is_written[state]};
        }
    }
    return ST_OK;
}

/* |plan|, as the file has it, in whose graph caches that grow become those of attention. False:
 * they are none, and the code is empty. */
static enum status import_growing(struct rt_method *method, const struct pte_plan *plan,
                                  const struct rt_carried *carried, struct rt_state_uses *states,
                                  bool *out_is_done, struct error *err)
{
    struct rt_code *code = &method->code;
    struct arena *arena = &code->arena;
    uint32_t count = carried->count;
    struct rt_code_cache *caches = arena_array(arena, count, sizeof(*caches));
    struct rt_code_states found = {
        .count = count,
        .regs = arena_array(arena, count, sizeof(*found.regs)),
        .is_written = arena_array(arena, count, sizeof(*found.is_written)),
        .are_own = true,
    };
    if (!caches || !found.regs || !found.is_written) {
        return arena_fail(arena, "the method", err);
    }
    found.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_carried_cache *cache = &carried->caches[i];
        caches[i] = (struct rt_code_cache){cache->input, cache->result, NULL};
        if (cache->grows) {
            caches[i].shape = &cache->buffer->shape;
            found.count++;
        }
    }
    enum status status = rt_import_kernels(method->files, plan, method->device, code, states, err);
    if (status == ST_OK && states->count == 0) {
        status = rt_code_find_growing(code, caches, count, &found, out_is_done, err);
    }
    if (status == ST_OK && *out_is_done) {
        return note_caches(method, carried, &found, states, err);
    }
    rt_code_clear(code);
    *states = (struct rt_state_uses){0};
    return status == ST_EXHAUSTED ? status : ST_OK; /* others come again */
}

/* The graphs as the file has them. */
static enum status import(struct rt_method *method, const struct pte_plan *own,
                          const struct rt_carried *carried, struct error *err)
{
    struct rt_code *code = &method->code;
    struct rt_state_uses states = {0};
    bool is_done = false;
    if (method->plan->failure) {
        *err = *method->plan->failure;
        return err->code;
    }
    TRY(check_public(method->inputs, method->input_count, err));
    TRY(check_public(method->results, method->result_count, err));
    if (carried) {
        TRY(import_growing(method, own, carried, &states, &is_done, err));
    }
    if (!is_done) {
        TRY(rt_import_kernels(method->files, method->plan, method->device, code, &states, err));
    }
    return find_states(method, &states, err);
}

/* Equal nodes and equal registers become one. */
static enum status unify(struct rt_method *method, struct error *err)
{
    struct rt_code *code = &method->code;
    bool *is_state = arena_array(&code->arena, code->register_count, sizeof(*is_state));
    if (!is_state) {
        return arena_fail(&code->arena, "the method", err);
    }
    for (uint32_t i = 0; code->stmt_count > 0 && i < method->state_count; i++) {
        is_state[method->states[i].reg] = true;
    }
    return rt_code_unify(code, is_state, err);
}

/* Is output |output| of |graph| an input but for some rows? */
static bool is_of_rows(const struct rt_graph *graph, uint32_t output)
{
    const struct rt_value *v = &graph->values[graph->outputs[output]];
    bool has_rows = false;
    while (v->kind == RT_TENSOR && v->node != RT_NO_NODE) {
        const struct rt_node *node = &graph->nodes[v->node];
        has_rows |= (node->op->flags & RT_OP_ROWS) != 0;
        if (!(node->op->flags & (RT_OP_ROWS | RT_OP_VIEW))) {
            return false;
        }
        v = &graph->values[node->args[0]];
    }
    return has_rows;
}

/* Does a block of code with statements give register |reg| more than new rows? */
static bool is_replaced(const struct rt_code *code, uint32_t reg)
{
    bool is_of_all = false;
    for (uint32_t b = 0; b < code->block_count; b++) {
        const struct rt_block *block = code->blocks[b];
        for (uint32_t k = 0; k < block->out_count; k++) {
            const struct rt_block_out *out = &block->outs[k];
            is_of_all |=
                out->reg == reg && !out->is_input && !is_of_rows(&block->graph, out->index);
        }
    }
    return is_of_all;
}

/* Cells of which the method replaces more than rows. */
static void note_replaced(const struct rt_method *method)
{
    const struct rt_code *code = &method->code;
    struct rt_state_cells *cells = rt_program_state_cells(method->program);
    uint32_t output = method->result_count;
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct rt_method_state *use = &method->states[i];
        if (use->is_written) {
            cells->items[use->cell].is_replaced |=
                code->stmt_count == 0 ? !is_of_rows(&code->blocks[0]->graph, output++)
                                      : is_replaced(code, use->reg);
        }
    }
}

/* Do other methods of the program do anything? */
static bool is_only_work(const struct rt_method *method)
{
    size_t count, working = method->program->is_composed;
    const struct pte_plan *plans = pte_plans(method->files->pte, &count);
    for (size_t i = 0; i < count; i++) {
        working += plans[i].instr_count > 0;
    }
    return working == 1;
}

/* Caches that are written by index get the form of those that are written row by row. */
static enum status find_caches(struct rt_method *method, struct error *err)
{
    struct arena *arena = &method->code.arena;
    uint32_t count = method->state_count;
    struct rt_code_states states = {
        .count = count,
        .regs = arena_array(arena, count, sizeof(*states.regs)),
        .is_written = arena_array(arena, count, sizeof(*states.is_written)),
        .are_own = is_only_work(method),
    };
    if (!states.regs || !states.is_written) {
        return arena_fail(arena, "the method", err);
    }
    for (uint32_t i = 0; i < count; i++) {
        states.regs[i] = method->states[i].reg;
        states.is_written[i] = method->states[i].is_written;
    }
    TRY(rt_code_find_caches(&method->code, method->input_count, &states, err));
    for (uint32_t i = 0; i < count; i++) {
        method->states[i].reg = states.regs[i];
        method->states[i].is_written = states.is_written[i];
    }
    return ST_OK;
}

static enum status compile(struct rt_method *method, enum precision precision,
                           const struct rt_load_options *options, struct error *err)
{
    struct rt_code *code = &method->code;
    struct rt_caches_int8 *caches = NULL;
    bool fuses = !options->is_unfused;
    TRY(rt_weights_find(code, &code->arena, &method->weights, err));
    TRY(unify(method, err));
    TRY(fuses ? find_caches(method, err) : ST_OK);
    code->blocks[0]->given_count = method->input_count;
    code->blocks[0]->result_count = code->stmt_count == 0 ? method->result_count : 0;
    TRY(options->has_int8_caches ? rt_cells_int8_list(method, &caches, err) : ST_OK);
    for (uint32_t i = 0; i < code->block_count; i++) {
        TRY(rt_block_compile(code->blocks[i], precision, fuses, caches ? &caches[i] : NULL, err));
    }
    TRY(caches ? rt_cells_int8_note(method, caches, err) : ST_OK);
    rt_code_measure(code);
    if (code->stmt_count > 0) {
        method->callable = &vm_callable;
    }
    note_replaced(method);
    return check_results(method, err);
}

static void describe_results(struct rt_method *method)
{
    const struct rt_code *code = &method->code;
    for (uint32_t i = 0; i < code->result_count; i++) {
        const struct rt_code_result *result = &code->results[i];
        if (result->has_source) {
            const struct rt_graph *graph = &code->blocks[result->block]->graph;
            refine(&method->results[i], &graph->values[graph->outputs[result->output]]);
        }
        if (result->is_extent) {
            refine_extent(&method->results[i], &code->registers[result->reg]);
        }
        if (code->stmt_count > 0) {
            refine_scalar(&method->results[i], &code->registers[result->reg], result->is_computed);
        }
    }
}

/* ---- what is still read from the files ------------------------------------------------------- */

static void note_value(struct rt_files *files, const struct rt_value *v)
{
    bool is_borrowed = v->kind == RT_STRING || (v->kind == RT_TENSOR && v->is_constant);
    if (is_borrowed && !v->buffer) {
        rt_files_note_use(files, v->bytes);
    }
}

static void note_graph(struct rt_files *files, const struct rt_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        struct rt_tensors tensors = rt_node_arg_tensors(graph, node);
        for (uint32_t value; rt_tensors_next(&tensors, &value);) {
            note_value(files, &graph->values[value]);
        }
        for (uint32_t k = 0; k < node->arg_count; k++) {
            note_value(files, rt_node_arg(graph, node, k)); /* strings */
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        note_value(files, &graph->values[graph->outputs[i]]);
    }
}

static void note_strings(struct rt_files *files, const struct rt_io *ios, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ios[i].kind == RT_IO_STRING) {
            rt_files_note_use(files, ios[i].value.s);
        }
    }
}

static void note_uses(const struct rt_method *method)
{
    for (uint32_t i = 0; i < method->code.block_count; i++) {
        note_graph(method->files, &method->code.blocks[i]->graph);
    }
    note_strings(method->files, method->inputs, method->input_count);
    note_strings(method->files, method->results, method->result_count);
}

/* ---- the method ------------------------------------------------------------------------------ */

/* As rt_program_default_method() says when all methods are there. */
static bool is_default(const struct rt_files *files, const struct pte_plan *plan)
{
    size_t count;
    (void)pte_plans(files->pte, &count);
    return count == 1 || strcmp(plan->name, "forward") == 0;
}

/* The file was read, so a text that says what is wrong with a call says what this build cannot do:
 * the exporter had its reasons. ST_CORRUPT stays for payloads that contradict themselves. */
static void settle_failure(struct error *failure)
{
    if (failure->code == ST_INVALID || failure->code == ST_TOO_LARGE) {
        failure->code = ST_UNSUPPORTED;
    }
}

enum status rt_load_method(struct rt_method *method, struct rt_program *program,
                           struct rt_files *files, const struct pte_plan *plan,
                           const struct rt_load_options *options, struct error *err)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    static atomic_uint shares; /* 0 is for work that belongs to no method */
    *method = (struct rt_method){
        .callable = &rt_single_callable,
        .program = program,
        .name = plan->name,
        .files = files,
        .plan = plan,
        .input_count = plan->input_count,
        .result_count = plan->output_count,
        .device = options->device,
        .share = atomic_fetch_add(&shares, 1) + 1,
        .poison_workspaces = options->poison_workspaces,
        .statements_max = options->statements_max ? options->statements_max : RT_STATEMENTS_MAX,
    };
    rt_method_init(method);
    struct rt_carried carried = {0};
    if (options->carries && !plan->base && is_default(files, plan)) {
        TRY(rt_carry_apply(plan, options->carries, &method->code.arena, &carried, err));
        method->plan = carried.plan;
        method->input_count = method->plan->input_count;
        method->result_count = method->plan->output_count;
    }
    TRY(describe_all(method, err));
    TRY(rt_signature_make_structure(method, NULL, err));
    TRY(rt_names_settle(method, NULL, err));
    bool may_grow = carried.may_grow && !options->is_unfused && !options->keep;
    enum status status = import(method, plan, may_grow ? &carried : NULL, &method->failure);
    if (status == ST_OK && options->adapt) {
        TRY(options->adapt(options->adapt_arg, method, is_default(files, plan), err));
    }
    if (status == ST_OK && options->keep) {
        TRY(rt_keep_values(method, options->keep, err));
    }
    if (status == ST_OK) {
        status = compile(method, program->precision, options, &method->failure);
    }
    if (status == ST_EXHAUSTED) { /* it may succeed another time: no property of the method */
        *err = method->failure;
        return error_prefix(err, "method '%.64s': ", method->name);
    }
    if (status != ST_OK) {
        settle_failure(&method->failure);
        return rt_signature_make(method, err);
    }
    method->failure.code = ST_OK;
    for (uint32_t i = 0; i < method->input_count; i++) {
        const struct rt_graph *entry = &method->code.blocks[0]->graph;
        refine(&method->inputs[i], &entry->values[entry->inputs[i]]);
    }
    describe_results(method);
    note_uses(method);
    TRY(rt_orders_find(method, err));
    return rt_signature_make(method, err);
}
