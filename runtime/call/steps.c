/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/call/steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/reason.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/messages.h"
#include "runtime/call/overwrite.h"
#include "runtime/call/siblings.h"
#include "runtime/program/state_cells.h"

/* ---- forms ----------------------------------------------------------------------------------- */

enum status rt_steps_open(struct rt_method *method, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(!method->steps);
    if (!hal_device_props(method->device)->host_visible) {
        return reason_set(err, REASON_BUFFERS_ELSEWHERE);
    }
    method->steps = calloc(1, sizeof(*method->steps));
    return method->steps ? ST_OK : error_no_memory(err, "joined steps");
}

static void free_forms(struct rt_method *const *forms, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (forms[i]) {
            rt_method_fini(forms[i]);
            free(forms[i]);
        }
    }
}

void rt_steps_free(struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_steps *steps = method->steps;
    if (!steps) {
        return;
    }
    free_forms(steps->forms, RT_STEPS_ROWS_MAX + 1);
    free_forms(steps->mixed, RT_STEPS_ROWS_MAX + 1);
    free_forms(steps->speculation, RT_SPECULATION_STEPS_MAX + 1);
    if (steps->has_step) {
        rt_step_fini(&steps->step);
    }
    rt_siblings_unref(steps->siblings);
    free(steps->is_private);
    free(steps);
    method->steps = NULL;
}

static enum status make_step(struct rt_method *method, struct error *err)
{
    struct rt_steps *steps = method->steps;
    uint32_t states = method->state_count, inputs = rt_method_input_count(method);
    uint32_t *regs = calloc((size_t)states + 1, sizeof(*regs));
    bool *is_written = calloc((size_t)states + 1, sizeof(*is_written));
    steps->is_private = calloc(2 * (size_t)inputs + states + 1, sizeof(*steps->is_private));
    enum status status = ST_OK;
    if (!regs || !is_written || !steps->is_private) {
        status = error_no_memory(err, "joined steps");
    }
    for (uint32_t i = 0; status == ST_OK && i < states; i++) {
        regs[i] = method->states[i].reg;
        is_written[i] = method->states[i].is_written;
        steps->is_private[inputs + i] = true;
    }
    if (status == ST_OK) {
        const struct rt_step_form form = {
            .input_count = inputs,
            .result_count = rt_method_result_count(method),
            .state_count = states,
            .state_regs = regs,
            .is_written = is_written,
        };
        status = rt_step_init(&steps->step, &method->code, &form, err);
        steps->has_step = status == ST_OK;
    }
    free(regs);
    free(is_written);
    return status;
}

/* Describes the inputs and results of a form like those of a method: each row has all of them. The
 * inputs behind those of the rows are constants that rows give. */
void rt_steps_describe(struct rt_io *io, const struct rt_graph *graph, uint32_t value,
                       const char *label)
{
    const struct rt_value *v = &graph->values[value];
    *io = (struct rt_io){.name = label, .alias = label, .label = label, .path = label};
    if (v->kind == RT_TENSOR) {
        bool is_known = rt_value_shape(v, &io->shape);
        must(is_known);
        io->kind = RT_IO_TENSOR;
        io->dtype = v->dtype;
    } else if (v->kind == RT_INT) {
        io->kind = RT_IO_INT;
        io->dtype = DT_I64;
    } else {
        io->kind = RT_IO_NONE;
    }
}

static const char *label_input(const struct rt_method *method, uint32_t rows, uint32_t index)
{
    const struct rt_step *step = &method->steps->step;
    uint32_t input = index % step->graph.input_count;
    if (index >= rows * step->graph.input_count) {
        return "a weight";
    }
    return input < step->input_count ? method->inputs[input].label : "a mutable buffer";
}

static void describe_all(struct rt_method *form, const struct rt_method *method, uint32_t rows)
{
    const struct rt_graph *graph = &form->code.blocks[0]->graph;
    const struct rt_step *step = &method->steps->step;
    for (uint32_t i = 0; i < form->input_count; i++) {
        rt_steps_describe(&form->inputs[i], graph, graph->inputs[i], label_input(method, rows, i));
    }
    for (uint32_t i = 0; i < form->result_count; i++) {
        uint32_t result = i % step->graph.output_count;
        rt_steps_describe(&form->results[i], graph, graph->outputs[i],
                          result < step->result_count ? method->results[result].label
                                                      : "a mutable buffer");
    }
}

/* |siblings|: the rows are of these; NULL: all are of |method|. */
static enum status fill_form(struct rt_method *form, const struct rt_method *method, uint32_t rows,
                             const struct rt_siblings *siblings, struct error *err)
{
    const struct rt_steps *steps = method->steps;
    const struct rt_rows_own own = {steps->is_private, siblings ? siblings->varies : NULL};
    struct rt_block **blocks = arena_array(&form->code.arena, 1, sizeof(struct rt_block *));
    struct rt_block *block = malloc(sizeof(*block));
    if (!blocks || !block) {
        free(block);
        return error_no_memory(err, "joined steps");
    }
    if (rt_block_rows(block, method->device, &steps->step.graph, rows, &own, err) != ST_OK) {
        free(block);
        return err->code;
    }
    blocks[0] = block;
    form->code.blocks = blocks;
    form->code.block_count = 1;
    form->input_count = block->graph.input_count;
    form->result_count = block->graph.output_count;
    form->inputs = calloc((size_t)form->input_count + 1, sizeof(*form->inputs));
    form->results = calloc((size_t)form->result_count + 1, sizeof(*form->results));
    if (!form->inputs || !form->results) {
        return error_no_memory(err, "joined steps");
    }
    describe_all(form, method, rows);
    return ST_OK;
}

static enum status check_results(const struct rt_method *method, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        if (rt_method_result(method, i)->kind != RT_IO_TENSOR) {
            return error_set(err, ST_UNSUPPORTED, "%s is no tensor",
                             rt_method_result(method, i)->label);
        }
    }
    return ST_OK;
}

struct rt_method *rt_steps_new_form(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_method *form = malloc(sizeof(*form));
    if (form) {
        *form = (struct rt_method){
            .callable = &rt_single_callable,
            .program = method->program,
            .name = method->name,
            .files = method->files,
            .device = method->device,
            .share = method->share,
            .weight = method->weight,
            .poison_workspaces = method->poison_workspaces,
        };
        rt_method_init(form);
    }
    return form;
}

static enum status new_form(const struct rt_method *method, uint32_t rows,
                            const struct rt_siblings *siblings, struct rt_method **out_form,
                            struct error *err)
{
    struct rt_method *form = rt_steps_new_form(method);
    if (!form) {
        return error_no_memory(err, "joined steps");
    }
    if (fill_form(form, method, rows, siblings, err) != ST_OK) {
        rt_method_fini(form);
        free(form);
        return err->code;
    }
    *out_form = form;
    return ST_OK;
}

enum status rt_steps_make_form(struct rt_method *method, uint32_t rows, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_steps *steps = method->steps;
    must(rows > 1 && rows <= RT_STEPS_ROWS_MAX);
    if (steps->forms[rows]) {
        return ST_OK;
    }
    TRY(check_results(method, err));
    if (!steps->has_step) {
        free(steps->is_private);
        steps->is_private = NULL;
        TRY(make_step(method, err));
    }
    return new_form(method, rows, NULL, &steps->forms[rows], err);
}

enum status rt_steps_make_mixed_form(struct rt_method *method, uint32_t rows, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_steps *steps = method->steps;
    must(rows > 1 && rows <= RT_STEPS_ROWS_MAX && steps->siblings);
    return steps->mixed[rows] ? ST_OK
                              : new_form(method, rows, steps->siblings, &steps->mixed[rows], err);
}

/* ---- what can be joined ---------------------------------------------------------------------- */

const int64_t *rt_steps_element(const struct rt_invocation *inv, uint32_t input)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct hal_binding *binding = &inv->inputs[input].binding;
    const uint8_t *base = binding->buffer ? hal_buffer_map(binding->buffer) : NULL;
    return base ? (const int64_t *)(const void *)(base + binding->offset) : NULL;
}

/* Number |index| of a call; false: joined steps do not take it. */
static bool read_number(const struct rt_invocation *inv, uint32_t index, int64_t *out)
{
    const struct rt_step_number *number = &inv->method->steps->step.numbers[index];
    const int64_t *element = rt_steps_element(inv, number->input);
    if (!element) {
        return false;
    }
    memcpy(out, element, sizeof(*out));
    return *out >= 0 && *out <= inv->method->steps->step.number_max;
}

int64_t rt_steps_rows(const struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_steps *steps = inv->method->steps;
    if (!inv->state || inv->state->part_count || !steps->has_step || inv->conversion_count > 0 ||
        inv->wait_count > 0 || inv->is_awaited) {
        return 0;
    }
    for (uint32_t i = 0; i < steps->step.input_count; i++) {
        const struct rt_value *v = &steps->step.graph.values[steps->step.graph.inputs[i]];
        struct shape shape;
        if (v->kind == RT_TENSOR &&
            (!rt_value_shape(v, &shape) || !shape_equal(&shape, &inv->inputs[i].shape))) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < steps->step.number_count; i++) {
        int64_t number;
        if (!read_number(inv, i, &number)) {
            return 0;
        }
    }
    return 1;
}

/* ---- joining --------------------------------------------------------------------------------- */

static struct hal_binding share(struct hal_binding binding)
{
    binding.buffer = binding.buffer ? hal_buffer_ref(binding.buffer) : NULL;
    return binding;
}

static void bind_input(struct rt_invocation *joined, uint32_t index, struct hal_binding binding)
{
    struct rt_bound_input *input = &joined->inputs[index];
    input->shape = rt_method_input(joined->method, index)->shape;
    input->binding = share(binding);
    input->is_given = true;
}

static enum status bind_inputs(const struct rt_steps_run *run, struct rt_invocation *joined,
                               uint32_t row, struct error *err)
{
    const struct rt_step *step = &run->steps->step;
    const struct rt_invocation *part = run->parts[row];
    uint32_t first = row * step->graph.input_count;
    for (uint32_t i = 0; i < step->input_count; i++) {
        if (rt_method_input(joined->method, first + i)->kind == RT_IO_TENSOR) {
            bind_input(joined, first + i, part->inputs[i].binding);
        }
    }
    first += step->input_count + step->state_count;
    for (uint32_t i = 0; i < step->number_count; i++) {
        if (!read_number(part, i, &joined->given[first + i].number)) {
            return error_set(err, ST_UNSUPPORTED, "a number is out of range");
        }
    }
    return ST_OK;
}

/* The constants of a row that are not those of all rows. */
static void bind_constants(const struct rt_steps_run *run, struct rt_invocation *joined,
                           uint32_t row)
{
    const struct rt_siblings *siblings = run->steps->siblings;
    const struct rt_graph *graph = &run->parts[row]->method->steps->step.graph;
    uint32_t input = run->count * graph->input_count + row * siblings->varying_count;
    for (uint32_t i = 0; i < siblings->value_count; i++) {
        if (siblings->varies[i]) {
            bind_input(joined, input++, rt_plan_locate(graph, &graph->values[i]));
        }
    }
}

static void bind_states(const struct rt_steps_run *run, struct rt_invocation *joined, uint32_t row)
{
    const struct rt_step *step = &run->steps->step;
    const struct rt_invocation *part = run->parts[row];
    uint32_t input = row * step->graph.input_count + step->input_count;
    for (uint32_t i = 0; i < step->state_count; i++) {
        uint32_t cell = part->method->states[i].cell;
        bind_input(joined, input + i, hal_binding_whole(part->state->current[cell]));
    }
}

/* State |index| of row |row|, as an input and a result of the joined call. False: no step writes
 * it. */
static bool find_write(const struct rt_invocation *joined, uint32_t row, uint32_t index,
                       uint32_t *out_input, struct rt_overwrite *out)
{
    const struct rt_steps_run *run = joined->steps;
    const struct rt_step *step = &run->steps->step;
    *out_input = row * step->graph.input_count + step->input_count + index;
    *out = (struct rt_overwrite){
        .plan = joined->plan,
        .result = row * step->graph.output_count + step->state_outputs[index],
        .cell = run->parts[row]->method->states[index].cell,
        .state = run->parts[row]->state,
        .words = joined->words,
        .workspace = joined->workspace ? hal_buffer_map(joined->workspace) : NULL,
    };
    return step->state_outputs[index] != RT_NO_OUTPUT;
}

/* Binds and charges the memory that the row writes, and that of its logs. */
static enum status bind_written(const struct rt_steps_run *run, struct rt_invocation *joined,
                                uint32_t row, struct error *err)
{
    size_t bytes = 0, log_bytes = 0;
    for (uint32_t i = 0; i < run->steps->step.state_count; i++) {
        struct rt_overwrite write;
        struct hal_buffer *target;
        uint32_t input;
        if (!find_write(joined, row, i, &input, &write)) {
            continue;
        }
        const struct rt_plan_result *result = &joined->plan->results[write.result];
        TRY(rt_state_open(write.state, write.cell, result->base == input && result->may_overwrite,
                          &target, err));
        joined->bound[write.result] = share(hal_binding_whole(target));
        struct rt_growth growth = rt_growth_begin(write.state, write.cell);
        rt_overwrite_grow(&write, result->base == input, &growth, &bytes);
        rt_overwrite_measure(&write, &log_bytes);
    }
    TRY(rt_state_charge(run->parts[row]->state, bytes, log_bytes, err));
    return rt_state_reserve_log(run->parts[row]->state, log_bytes, err);
}

/* The results of a row: in the memory that the part has for them, or gets now. */
static enum status bind_results(const struct rt_steps_run *run, struct rt_invocation *joined,
                                uint32_t row, struct error *err)
{
    const struct rt_step *step = &run->steps->step;
    struct rt_invocation *part = run->parts[row];
    for (uint32_t i = 0; i < step->result_count; i++) {
        uint32_t result = row * step->graph.output_count + i;
        const struct rt_plan_result *planned = &joined->plan->results[result];
        struct hal_binding *bound = &part->bound[i];
        if (!bound->buffer && planned->bytes > 0) {
            TRY(hal_pool_reserve(part->run_pool, planned->bytes, &bound->buffer, err));
            part->bytes += planned->bytes;
        }
        if (bound->buffer &&
            !in_range(bound->offset, planned->bytes, hal_buffer_size(bound->buffer))) {
            return error_set(err, ST_UNSUPPORTED, "the memory of a result is too small");
        }
        bound->length = planned->bytes;
        joined->bound[result] = share(*bound);
        uint8_t *base = bound->buffer ? hal_buffer_map(bound->buffer) : NULL;
        part->results[i].shape = planned->shape;
        part->results[i].bytes = span_of(base ? base + bound->offset : NULL, planned->bytes);
    }
    return ST_OK;
}

static void enter_states(struct rt_steps_run *run)
{
    for (uint32_t row = 0; row < run->count; row++) {
        rt_state_enter(run->parts[row]->state);
        run->is_kept[row] = false;
    }
    run->has_states = true;
}

/* The form of |part|'s method for rows of siblings; NULL: it is not there, or not proven. */
static struct rt_method *mixed_form(const struct rt_invocation *part, uint32_t rows)
{
    const struct rt_steps *steps = part->method->steps;
    return part->is_trial || rows <= atomic_load(&steps->mixed_rows) ? steps->mixed[rows] : NULL;
}

/* The form for the rows of |run|, by one of their methods, whose steps become those of |run|. */
static struct rt_method *choose_form(struct rt_steps_run *run, bool *out_is_mixed)
{
    struct rt_method *form = NULL;
    *out_is_mixed = false;
    for (uint32_t row = 1; row < run->count; row++) {
        *out_is_mixed |= run->parts[row]->method != run->parts[0]->method;
    }
    for (uint32_t row = 0; row < run->count && !form; row++) {
        run->steps = run->parts[row]->method->steps;
        form =
            *out_is_mixed ? mixed_form(run->parts[row], run->count) : run->steps->forms[run->count];
    }
    return form;
}

enum status rt_steps_join(struct rt_steps_run *run, struct hal_pool *pool,
                          struct rt_invocation **out_joined, struct error *err)
{
    bool is_mixed;
    struct rt_method *form = choose_form(run, &is_mixed);
    must(run->count <= RT_STEPS_ROWS_MAX);
    if (!form) {
        return error_set(err, ST_UNSUPPORTED, "%u steps cannot run as one", run->count);
    }
    TRY(rt_invocation_new(form, pool, out_joined, err));
    struct rt_invocation *joined = *out_joined;
    joined->steps = run;
    enter_states(run);
    for (uint32_t row = 0; row < run->count; row++) {
        TRY(bind_inputs(run, joined, row, err));
        bind_states(run, joined, row);
        if (is_mixed) {
            bind_constants(run, joined, row);
        }
    }
    TRY(rt_invocation_plan(joined, RT_PREPARE_ALL, err));
    for (uint32_t row = 0; row < run->count; row++) {
        TRY(bind_results(run, joined, row, err));
        TRY(bind_written(run, joined, row, err));
    }
    return rt_invocation_prepare(joined, RT_PREPARE_ALL, err);
}

void rt_steps_abandon(struct rt_steps_run *run)
{
    must(run->count <= RT_STEPS_ROWS_MAX);
    for (uint32_t row = 0; run->has_states && row < run->count; row++) {
        rt_state_leave(run->parts[row]->state, false);
    }
    run->has_states = false;
}

/* ---- the joined call ------------------------------------------------------------------------- */

static void begin_row(const struct rt_invocation *joined, uint32_t row)
{
    for (uint32_t i = 0; i < joined->steps->steps->step.state_count; i++) {
        struct rt_overwrite write;
        uint32_t input;
        if (!find_write(joined, row, i, &input, &write)) {
            continue;
        }
        if (joined->plan->results[write.result].base == input) {
            rt_overwrite_begin(&write);
        } else {
            (void)rt_state_spoil(write.state, write.cell);
        }
    }
}

void rt_steps_begin(struct rt_invocation *joined)
{
    OBJ_CHECK(joined, INVOCATION_MAGIC);
    must(joined->steps && joined->steps->has_states);
    for (uint32_t row = 0; row < joined->steps->count; row++) {
        begin_row(joined, row);
    }
}

static void advance_states(const struct rt_invocation *joined, uint32_t row)
{
    for (uint32_t i = 0; i < joined->steps->steps->step.state_count; i++) {
        struct rt_overwrite write;
        struct rt_rows written = {0};
        uint32_t input;
        if (!find_write(joined, row, i, &input, &write)) {
            continue;
        }
        if (joined->plan->results[write.result].base == input) {
            written = rt_messages_written(joined->plan, write.result, write.workspace);
        }
        rt_state_advance(write.state, write.cell, written);
    }
}

void rt_steps_end(struct rt_invocation *joined, enum status status)
{
    OBJ_CHECK(joined, INVOCATION_MAGIC);
    must(joined->steps && joined->steps->has_states);
    struct rt_steps_run *run = joined->steps;
    for (uint32_t row = 0; row < run->count; row++) {
        bool is_kept = status == ST_OK && !atomic_load(run->parts[row]->cancel);
        if (is_kept) {
            advance_states(joined, row);
        }
        run->is_kept[row] = is_kept;
        rt_state_leave(run->parts[row]->state, is_kept);
    }
    run->has_states = false;
}
