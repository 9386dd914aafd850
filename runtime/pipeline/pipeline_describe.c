/* SPDX-License-Identifier: MIT */
/* How callers see a pipeline: its inputs and results, from the inputs and results of its steps;
 * their structure and their names. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "protocol/sip_build.h"
#include "runtime/pipeline/pipeline_priv.h"
#include "runtime/program/names.h"

/* A pipeline that is being described. */
struct describer {
    const struct rt_pipeline_desc *desc;
    struct rt_pipeline *pipeline;
    struct rt_method *method;
};

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Leaves the sizes that both steps take: the smaller bound, and a fixed size if one of them has
 * only that. */
static enum status intersect(struct rt_io *io, const struct rt_io *other, struct error *err)
{
    TRY(rt_cascade_verify_edge(io, other, err));
    for (uint8_t d = 0; io->kind == RT_IO_TENSOR && d < io->shape.rank; d++) {
        uint32_t bit = 1u << d;
        int64_t bound = other->shape.dims[d];
        if (!(other->dynamic_dims & bit) || bound < io->shape.dims[d]) {
            must(io->dynamic_dims & bit || io->shape.dims[d] <= bound);
            io->shape.dims[d] = io->dynamic_dims & bit ? bound : io->shape.dims[d];
        }
        io->dynamic_dims &= other->dynamic_dims & bit ? UINT32_MAX : ~bit;
    }
    return ST_OK;
}

static void copy_io(struct rt_io *to, const struct rt_io *from)
{
    const char *alias = to->alias;
    *to = *from;
    to->name = to->alias = alias;
    to->order = NULL; /* until the pipeline chooses its own */
    to->order_bit = 0;
}

static enum status describe_input(struct describer *d, const struct rt_pipeline_input *input,
                                  struct error *err)
{
    const struct rt_io *wanted = rt_method_input(d->pipeline->methods[input->step], input->input);
    struct rt_io *io = &d->method->inputs[input->from];
    if (io->kind == RT_IO_NONE) {
        copy_io(io, wanted);
        return ST_OK;
    }
    if (intersect(io, wanted, err) != ST_OK) {
        error_prefix(err, "%s: ", wanted->label);
        return rt_pipeline_prefix(d->pipeline, input->step, err);
    }
    return ST_OK;
}

/* |count| inputs are known: each must be taken by a step. */
static enum status check_taken(const struct describer *d, uint32_t count, struct error *err)
{
    const char *const *names = d->desc->input_names;
    for (uint32_t i = 0; i < count; i++) {
        if (d->method->inputs[i].kind != RT_IO_NONE) {
            continue;
        }
        return names ? error_set(err, ST_INVALID, "no step takes input '%s'", names[i])
                     : error_set(err, ST_INVALID, "inputs have a gap: %u is unused, %u is used", i,
                                 count - 1);
    }
    return ST_OK;
}

static enum status describe_inputs(struct describer *d, struct error *err)
{
    struct rt_pipeline *pipeline = d->pipeline;
    uint32_t count = d->desc->input_name_count;
    for (uint32_t i = 0; i < pipeline->input_count; i++) {
        uint32_t from = pipeline->inputs[i].from;
        count = from >= count ? from + 1 : count;
    }
    must(!d->desc->input_names || count == d->desc->input_name_count);
    d->method->input_count = count;
    TRY(rt_names_allocate(&d->method->inputs, count, RT_INPUT, err));
    for (uint32_t i = 0; i < pipeline->input_count; i++) {
        TRY(describe_input(d, &pipeline->inputs[i], err));
    }
    return check_taken(d, count, err);
}

/* ---- results --------------------------------------------------------------------------------- */

static enum status describe_results(struct describer *d, struct error *err)
{
    const struct rt_pipeline *pipeline = d->pipeline;
    uint32_t count = d->method->result_count;
    TRY(rt_names_allocate(&d->method->results, count, RT_RESULT, err));
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_pipeline_output *output = &pipeline->outputs[i];
        copy_io(&d->method->results[i],
                rt_method_result(pipeline->methods[output->step], output->output));
    }
    return ST_OK;
}

/* A size that is fixed in every step that feeds a result is fixed in the result. It is known from
 * the steps' sizes, evaluated once for inputs whose dims do not vary. */
static enum status settle_sizes(struct describer *d, struct error *err)
{
    struct rt_method *method = d->method;
    uint32_t results = d->method->result_count;
    uint32_t inputs = d->method->input_count, dynamic = 0;
    struct rt_result_info *infos = arena_array(&d->pipeline->arena, results, sizeof(*infos));
    const struct shape **shapes = arena_array(&d->pipeline->arena, inputs, sizeof(*shapes));
    if (!infos || !shapes) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < inputs; i++) {
        dynamic |= method->inputs[i].dynamic_dims;
        shapes[i] = method->inputs[i].kind == RT_IO_TENSOR ? &method->inputs[i].shape : NULL;
    }
    if (dynamic) {
        return ST_OK;
    }
    TRY(rt_pipeline_measure(method, shapes, false, infos, NULL, err));
    for (uint32_t i = 0; i < results; i++) {
        if (infos[i].is_tensor && infos[i].is_known) {
            method->results[i].shape = infos[i].shape;
            method->results[i].dynamic_dims = 0;
        }
    }
    return ST_OK;
}

/* ---- structure ------------------------------------------------------------------------------- */

/* A dict of the |names|, or a sequence without them; a single value without a name stands for
 * itself. */
static enum status build_tree(struct arena *arena, const char *const *names, uint32_t count,
                              bool is_single, struct sip_tree *out, struct error *err)
{
    struct sip_assignment *leaves = arena_array(arena, count, sizeof(*leaves));
    struct sip_path_key *steps = arena_array(arena, count, sizeof(*steps));
    if (!leaves || !steps) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < count; i++) {
        steps[i].is_name = names != NULL;
        steps[i].key.position = i;
        if (names) {
            steps[i].key.name = span_str(names[i]);
        }
        leaves[i] = (struct sip_assignment){&steps[i], !is_single, SIP_LEAF, i};
    }
    return sip_assign(leaves, count, arena, out, err);
}

/* Names live as long as the tree in which they are keys. */
static enum status copy_names(struct arena *arena, const char *const *names, uint32_t count,
                              const char *const **out, struct error *err)
{
    const char **copies = arena_array(arena, count, sizeof(*copies));
    if (!copies) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < count; i++) {
        copies[i] = names[i] ? arena_strdup(arena, names[i], strlen(names[i])) : NULL;
        if (names[i] && !copies[i]) {
            return error_no_memory(err, "a pipeline");
        }
    }
    *out = copies;
    return ST_OK;
}

static enum status verify_names(const char *const *names, uint32_t count, enum rt_side side,
                                struct error *err)
{
    const char *what = side == RT_INPUT ? "input" : "output";
    for (uint32_t i = 0; i < count; i++) {
        if (names[i] && !rt_name_is_valid(span_str(names[i]), side)) {
            return error_set(err, ST_INVALID,
                             "%s '%.64s': expected a name of 1 to %d of A-Z a-z 0-9 _ - . :, and "
                             "not one like %s_0",
                             what, names[i], RT_NAME_BYTES_MAX, what);
        }
        for (uint32_t k = 0; names[i] && k < i; k++) {
            if (names[k] && strcmp(names[k], names[i]) == 0) {
                return error_set(err, ST_INVALID, "%s %u: repeats the name '%.64s' of %s %u", what,
                                 i, names[i], what, k);
            }
        }
    }
    return ST_OK;
}

static bool are_all_named(const char *const *names, uint32_t count)
{
    uint32_t i = 0;
    while (names && i < count && names[i]) {
        i++;
    }
    return names && i == count;
}

static enum status nest_inputs(const struct describer *d, struct sip_tree *out, struct error *err)
{
    const struct rt_pipeline_desc *desc = d->desc;
    struct arena *arena = &d->pipeline->arena;
    const char *const *names = NULL;
    if (desc->input_names) {
        TRY(copy_names(arena, desc->input_names, desc->input_name_count, &names, err));
    }
    return build_tree(arena, names, d->method->input_count, false, out, err);
}

/* All results of the last step, in its structure. */
static enum status nest_results(const struct describer *d, struct sip_tree *out, struct error *err)
{
    const struct rt_pipeline_desc *desc = d->desc;
    const struct rt_pipeline *pipeline = d->pipeline;
    uint32_t count = d->method->result_count;
    const char *const *names = NULL;
    if (desc->output_count == 0) {
        const struct rt_method *last = pipeline->methods[pipeline->layout.step_count - 1];
        *out = rt_method_signature(last)->structure.results;
        return ST_OK;
    }
    if (are_all_named(desc->output_names, count)) {
        TRY(copy_names(&d->pipeline->arena, desc->output_names, count, &names, err));
    }
    return build_tree(&d->pipeline->arena, names, count, count == 1 && !names, out, err);
}

/* ---- names that steps give ------------------------------------------------------------------- */

static bool has_name(const struct rt_io *io)
{
    return strcmp(io->name, io->alias) != 0;
}

/* An input takes the name that its steps have for it, if all steps with a name agree. */
static enum status hint_inputs(const struct describer *d, const char *const **out,
                               struct error *err)
{
    const struct rt_pipeline *pipeline = d->pipeline;
    uint32_t count = d->method->input_count;
    const char **hints = arena_array(&d->pipeline->arena, count, sizeof(*hints));
    bool *is_unclear = arena_array(&d->pipeline->arena, count, sizeof(*is_unclear));
    if (!hints || !is_unclear) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < pipeline->input_count; i++) {
        const struct rt_pipeline_input *input = &pipeline->inputs[i];
        const struct rt_io *io = rt_method_input(pipeline->methods[input->step], input->input);
        const char **hint = &hints[input->from];
        if (has_name(io)) {
            is_unclear[input->from] |= *hint && strcmp(*hint, io->name) != 0;
            *hint = io->name;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        hints[i] = is_unclear[i] ? NULL : hints[i];
    }
    *out = hints;
    return ST_OK;
}

/* Does the document give |name| to another result? */
static bool is_given(const struct rt_pipeline_desc *desc, const char *name)
{
    for (uint32_t i = 0; desc->output_names && i < desc->output_count; i++) {
        if (desc->output_names[i] && strcmp(desc->output_names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* A result has the name that it is given, or else its step's name for it. */
static enum status hint_results(const struct describer *d, const char *const **out,
                                struct error *err)
{
    const struct rt_pipeline *pipeline = d->pipeline;
    uint32_t count = d->method->result_count;
    const char **hints = arena_array(&d->pipeline->arena, count, sizeof(*hints));
    if (!hints) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_pipeline_output *output = &pipeline->outputs[i];
        const struct rt_io *io = rt_method_result(pipeline->methods[output->step], output->output);
        bool is_named = d->desc->output_names && d->desc->output_names[i];
        if (is_named) {
            hints[i] = d->desc->output_names[i];
        } else if (has_name(io) && !is_given(d->desc, io->name)) {
            hints[i] = io->name;
        }
    }
    *out = hints;
    return ST_OK;
}

enum status rt_pipeline_describe(struct rt_method *method, const struct rt_pipeline_desc *desc,
                                 struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct describer d = {desc, rt_pipeline_of(method), method};
    const char *const *hints[2] = {NULL, NULL};
    struct sip structure = {.has_kwargs = false};
    TRY(verify_names(desc->input_names, desc->input_name_count, RT_INPUT, err));
    TRY(verify_names(desc->output_names, desc->output_names ? desc->output_count : 0, RT_RESULT,
                     err));
    TRY(describe_inputs(&d, err));
    TRY(describe_results(&d, err));
    TRY(nest_inputs(&d, &structure.inputs, err));
    TRY(nest_results(&d, &structure.results, err));
    TRY(rt_signature_make_structure(method, &structure, err));
    TRY(hint_inputs(&d, &hints[RT_INPUT], err));
    TRY(hint_results(&d, &hints[RT_RESULT], err));
    TRY(rt_names_settle(method, hints, err));
    TRY(settle_sizes(&d, err));
    TRY(rt_pipeline_choose_orders(method, err));
    return rt_signature_make(method, err);
}
