/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/import/liveness.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/code/scalar.h"
#include "runtime/ops/op.h"

/* Reads in a method, including those through other names of the same memory. */
#define READS_MAX (1u << 22)

uint32_t rt_liveness_read_count(const struct pte_plan *plan, const struct pte_instr *instr)
{
    struct span kernel;
    uint32_t count = 0;
    if (instr->kind != PTE_KERNEL) {
        return instr->kind == PTE_DELEGATE ? instr->arg_count : 1;
    }
    kernel = span_str(plan->operators[instr->index]);
    const struct rt_op *op = rt_op_find_kernel(kernel);
    enum rt_scalar_op scalar = rt_scalar_find(kernel);
    if (scalar != RT_SCALAR_COUNT) {
        count = rt_scalar_arg_count(scalar);
    } else if (op) {
        for (const char *letter = op->args; *letter != '>'; letter++) {
            count += *letter != '?' && *letter != '!';
        }
    } else {
        count = span_is(kernel, "aten::_local_scalar_dense") ? 1 : instr->arg_count;
    }
    return count < instr->arg_count ? count : instr->arg_count;
}

/* Iterates over the values of an argument: the items of a list, or the argument itself. */
struct items {
    const struct pte_plan *plan;
    uint32_t index, at;
};

static bool next_item(struct items *it, uint32_t *out_value)
{
    const struct pte_value *v = &it->plan->values[it->index];
    bool is_list = v->kind == PTE_INT_LIST || v->kind == PTE_TENSOR_LIST ||
                   v->kind == PTE_OPTIONAL_TENSOR_LIST;
    uint32_t count = is_list ? v->list.count : 1;
    while (it->at < count) {
        *out_value = is_list ? v->list.values[it->at] : it->index;
        it->at++;
        if (*out_value != PTE_NO_VALUE) {
            return true;
        }
    }
    return false;
}

typedef void visit_f(void *arg, uint32_t position, uint32_t value);

static void visit(const struct pte_plan *plan, visit_f *on_use, visit_f *on_write, void *arg)
{
    for (uint32_t p = 0; p < plan->instr_count; p++) {
        const struct pte_instr *instr = &plan->instrs[p];
        uint32_t reads = rt_liveness_read_count(plan, instr), value;
        if (instr->kind == PTE_FREE) {
            continue;
        }
        for (uint32_t i = 0; i < reads; i++) {
            for (struct items it = {plan, instr->args[i], 0}; next_item(&it, &value);) {
                on_use(arg, p, value);
            }
        }
        bool is_both = reads == instr->arg_count && instr->kind != PTE_JUMP_FALSE;
        for (uint32_t i = is_both ? 0 : reads; i < instr->arg_count; i++) {
            for (struct items it = {plan, instr->args[i], 0}; next_item(&it, &value);) {
                on_write(arg, p, value);
            }
        }
    }
}

/* ---- other names of the same memory ---------------------------------------------------------- */

/* Planned tensors sorted by place: tensors at the same place are neighbours. */
struct names {
    const struct pte_plan *plan;
    uint32_t *sorted, count;
    uint32_t *group; /* by value: where the group of its place begins in |sorted|, or UINT32_MAX */
};

static int compare_places(const struct pte_tensor *a, const struct pte_tensor *b)
{
    if (a->memory != b->memory) {
        return a->memory < b->memory ? -1 : 1;
    }
    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    return a->byte_count < b->byte_count ? -1 : a->byte_count > b->byte_count;
}

struct named {
    const struct pte_tensor *tensor;
    uint32_t value;
};

static int by_place(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = compare_places(x->tensor, y->tensor);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

static bool find_names(struct names *names, struct arena *arena)
{
    const struct pte_plan *plan = names->plan;
    struct named *all = arena_array(arena, plan->value_count, sizeof(*all));
    names->sorted = arena_array(arena, plan->value_count, sizeof(*names->sorted));
    names->group = arena_array(arena, plan->value_count, sizeof(*names->group));
    if (!all || !names->sorted || !names->group) {
        return false;
    }
    for (uint32_t i = 0; i < plan->value_count; i++) {
        const struct pte_value *v = &plan->values[i];
        names->group[i] = UINT32_MAX;
        if (v->kind == PTE_TENSOR && v->tensor->storage == PTE_PLANNED) {
            all[names->count++] = (struct named){v->tensor, i};
        }
    }
    qsort(all, names->count, sizeof(*all), by_place);
    for (uint32_t i = 0, begin = 0; i < names->count; i++) {
        begin = i > 0 && compare_places(all[i - 1].tensor, all[i].tensor) == 0 ? begin : i;
        names->sorted[i] = all[i].value;
        names->group[all[i].value] = begin;
    }
    return true;
}

/* ---- reads ----------------------------------------------------------------------------------- */

struct reading {
    struct rt_liveness *live;
    struct names names;
    uint32_t *fill;    /* by value: where the next read goes; NULL: reads are only counted */
    uint32_t *stretch; /* by value: the end of the stretch that wrote it last, + 1 */
    size_t count;
};

static void note_write(void *arg, uint32_t position, uint32_t value)
{
    struct reading *r = arg;
    if (!r->live->is_written[value]) {
        r->live->is_written[value] = true;
        r->live->written[value] = position;
    }
    r->stretch[value] = r->live->end[position] + 1;
}

static void note_one_read(struct reading *r, uint32_t position, uint32_t value)
{
    r->live->is_exposed[value] |= r->stretch[value] != r->live->end[position] + 1;
    if (r->fill) {
        r->live->reads[r->fill[value]++] = position;
    } else {
        r->live->first[value + 1]++;
    }
    r->count++;
}

/* A tensor that nothing writes is a view of a tensor that is written at the same place. */
static void note_read(void *arg, uint32_t position, uint32_t value)
{
    struct reading *r = arg;
    const uint32_t *sorted = r->names.sorted, group = r->names.group[value];
    note_one_read(r, position, value);
    if (r->live->is_written[value] || group == UINT32_MAX) {
        return;
    }
    for (uint32_t i = group; i < r->names.count && r->names.group[sorted[i]] == group; i++) {
        if (r->live->is_written[sorted[i]] && r->count < READS_MAX) {
            note_one_read(r, position, sorted[i]);
        }
    }
}

static void ignore(void *arg, uint32_t position, uint32_t value)
{
    (void)arg;
    (void)position;
    (void)value;
}

/* ---- jumps ----------------------------------------------------------------------------------- */

static void find_stretches(struct rt_liveness *live, const struct pte_plan *plan)
{
    uint32_t end = plan->instr_count;
    for (uint32_t p = 0; p < plan->instr_count; p++) {
        const struct pte_instr *instr = &plan->instrs[p];
        if (instr->kind == PTE_JUMP_FALSE) {
            live->is_target[instr->index] = true;
            live->has_jumps = true;
            live->has_backward_jumps |= instr->index <= p;
        }
    }
    live->end[plan->instr_count] = end;
    for (uint32_t p = plan->instr_count; p-- > 0;) {
        if (live->is_target[p + 1] || plan->instrs[p].kind == PTE_JUMP_FALSE) {
            end = p + 1;
        }
        live->end[p] = end;
    }
}

/* By position: the end of the outermost loop around it; overlapping loops count as one. */
static void find_loop_ends(const struct pte_plan *plan, uint32_t *loop_end)
{
    for (uint32_t p = 0; p <= plan->instr_count; p++) {
        loop_end[p] = p;
    }
    /*
     * By the beginning of each loop, the furthest jump back to it; then one sweep merges overlaps.
     */
    for (uint32_t p = 0; p < plan->instr_count; p++) {
        const struct pte_instr *instr = &plan->instrs[p];
        if (instr->kind == PTE_JUMP_FALSE && instr->index <= p && loop_end[instr->index] < p) {
            loop_end[instr->index] = p;
        }
    }
    for (uint32_t p = 1; p <= plan->instr_count; p++) {
        if (loop_end[p - 1] >= p && loop_end[p - 1] > loop_end[p]) {
            loop_end[p] = loop_end[p - 1];
        }
    }
}

/* A position inside the first of several merged loops ends where the last of them ends. */
static void spread_loop_ends(uint32_t *loop_end, uint32_t count)
{
    for (uint32_t p = count; p-- > 0;) {
        uint32_t end = loop_end[p];
        loop_end[p] = end < count && loop_end[end] > end ? loop_end[end] : end;
    }
}

static enum status find_reads(struct rt_liveness *live, const struct pte_plan *plan,
                              struct arena *arena, struct error *err)
{
    struct reading r = {.live = live, .names = {.plan = plan}};
    uint32_t values = plan->value_count;
    r.stretch = arena_array(arena, values, sizeof(*r.stretch));
    if (!r.stretch || !find_names(&r.names, arena)) {
        return arena_fail(arena, "the method", err);
    }
    for (uint32_t i = 0; i < plan->input_count; i++) {
        live->is_written[plan->inputs[i]] = true;
    }
    visit(plan, ignore, note_write, &r);
    memset(r.stretch, 0, values * sizeof(*r.stretch));
    visit(plan, note_read, note_write, &r);
    if (r.count >= READS_MAX) {
        return error_set(err, ST_TOO_LARGE, "the method contains too many reads of values");
    }
    for (uint32_t i = 0; i < values; i++) {
        live->first[i + 1] += live->first[i];
    }
    live->reads = arena_array(arena, r.count, sizeof(*live->reads));
    r.fill = arena_array(arena, values, sizeof(*r.fill));
    if (!live->reads || !r.fill) {
        return arena_fail(arena, "the method", err);
    }
    memcpy(r.fill, live->first, values * sizeof(*r.fill));
    memset(r.stretch, 0, values * sizeof(*r.stretch));
    r.count = 0;
    visit(plan, note_read, note_write, &r);
    return ST_OK;
}

enum status rt_liveness_make(struct rt_liveness *live, const struct pte_plan *plan,
                             struct arena *arena, struct error *err)
{
    size_t values = plan->value_count, positions = (size_t)plan->instr_count + 1;
    *live = (struct rt_liveness){
        .first = arena_array(arena, values + 1, sizeof(*live->first)),
        .last = arena_array(arena, values, sizeof(*live->last)),
        .is_exposed = arena_array(arena, values, sizeof(bool)),
        .is_written = arena_array(arena, values, sizeof(bool)),
        .is_result = arena_array(arena, values, sizeof(bool)),
        .written = arena_array(arena, values, sizeof(*live->written)),
        .loop_end = arena_array(arena, positions, sizeof(*live->loop_end)),
        .is_target = arena_array(arena, positions, sizeof(bool)),
        .end = arena_array(arena, positions, sizeof(*live->end)),
    };
    if (!live->first || !live->last || !live->is_exposed || !live->is_written || !live->is_result ||
        !live->is_target || !live->end || !live->written || !live->loop_end) {
        return arena_fail(arena, "the method", err);
    }
    find_stretches(live, plan);
    TRY(find_reads(live, plan, arena, err));
    find_loop_ends(plan, live->loop_end);
    spread_loop_ends(live->loop_end, plan->instr_count);
    for (uint32_t i = 0; i < plan->value_count; i++) {
        bool is_read = live->first[i + 1] > live->first[i];
        live->last[i] = is_read ? live->loop_end[live->reads[live->first[i + 1] - 1]] : 0;
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        uint32_t value;
        for (struct items it = {plan, plan->outputs[i], 0}; next_item(&it, &value);) {
            live->is_result[value] = true;
        }
    }
    return ST_OK;
}

bool rt_liveness_may_hold(const struct rt_liveness *live, uint32_t value, uint32_t position)
{
    uint32_t end = live->loop_end[position], written = live->written[value];
    return live->is_written[value] && (written < position || (end > position && written <= end));
}

bool rt_liveness_is_needed(const struct rt_liveness *live, uint32_t value, uint32_t position)
{
    uint32_t begin = live->first[value], behind = live->first[value + 1];
    if (live->is_result[value] || begin == behind) {
        return live->is_result[value];
    }
    if (live->is_exposed[value]) {
        return live->last[value] >= position;
    }
    while (begin < behind) { /* finds the first read at or after |position| */
        uint32_t middle = begin + (behind - begin) / 2;
        if (live->reads[middle] < position) {
            begin = middle + 1;
        } else {
            behind = middle;
        }
    }
    return begin < live->first[value + 1] && live->reads[begin] < live->end[position];
}
