/* SPDX-License-Identifier: MIT */
/*
 * The operator "chain" (chain.h) and its kernel. For each piece of a run the kernel executes one
 * loop after the other over buffers that stay in the nearest cache; only the last loop writes to
 * the output.
 *
 * A tensor that repeats one row (a gate, or one bias for each channel), or that has one number for
 * each row, would make runs as short as a row. When rows are short, the two innermost dims are
 * walked as one instead, in pieces of whole rows, and buffers hold what is repeated.
 */
#include "config.h"

#include "runtime/ops/chain.h"

#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define PIECE 512    /* positions at a time */
#define NOWHERE 0xFF /* a value that has no buffer */

/* ---- loops --------------------------------------------------------------------------------- */

/* The micro-kernel of a loop that has one for a constant operand, or -1. */
static int binary_of(enum rt_pointwise_op op)
{
    switch (op) {
    case RT_PW_add:
        return UK_ADD;
    case RT_PW_sub:
        return UK_SUB;
    case RT_PW_mul:
        return UK_MUL;
    case RT_PW_div:
        return UK_DIV;
    case RT_PW_minimum:
        return UK_MIN;
    case RT_PW_maximum:
        return UK_MAX;
    default:
        return -1;
    }
}

static uint32_t param_count(enum rt_pointwise_op op)
{
    switch (op) {
    case RT_PW_leaky_relu:
    case RT_PW_logit:
        return 1;
    case RT_PW_clamp:
        return 2;
    case RT_PW_elu:
        return 3;
    default:
        return 0;
    }
}

uint32_t rt_chain_arg_count(enum rt_pointwise_op op)
{
    return rt_pointwise_infos[op].inputs + param_count(op);
}

bool rt_chain_takes(enum rt_pointwise_op op, uint32_t numbers)
{
    const struct rt_pointwise_info *info = &rt_pointwise_infos[op];
    return rt_pointwise_has_loop(op, RT_CLASS_F32) && info->truths == 0 && !info->gives_truth &&
           op != RT_PW_copy && op != RT_PW_glu &&
           (numbers == 0 || (binary_of(op) >= 0 && numbers != 3));
}

/* ---- the operator -------------------------------------------------------------------------- */

static enum status chain_shape(struct rt_shape_call *call)
{
    struct rt_dim dims[SHAPE_RANK_MAX], both[SHAPE_RANK_MAX];
    uint8_t rank = 0;

    for (uint32_t i = 0; i < RT_CHAIN_TENSORS_MAX; i++) {
        if (!rt_shape_arg_is_none(call, i)) {
            const struct rt_value *v = rt_shape_arg(call, i);
            TRY(rt_shape_need_dtype(call, i, 1u << DT_F32));
            TRY(rt_shape_broadcast(call, rank, dims, v->rank, v->dims, both, &rank));
            memcpy(dims, both, rank * sizeof(*dims));
        }
    }
    return rt_shape_set_out(call, 0, rank, dims);
}

enum rt_pointwise_op rt_chain_op_named(struct span name)
{
#define PW(name_, ...)                                                                             \
    if (span_is(name, #name_)) {                                                                   \
        return RT_PW_##name_;                                                                      \
    }
    RT_PW_LOOPS(PW)
#undef PW
    unreachable();
}

bool rt_chain_find_only_step(const struct rt_graph *graph, const struct rt_node *chain,
                             uint32_t *out_input, uint32_t *out_name)
{
    const struct rt_value *names = rt_node_arg(graph, chain, RT_CHAIN_TENSORS_MAX);
    const struct rt_value *args = rt_node_arg(graph, chain, RT_CHAIN_TENSORS_MAX + 1);
    *out_input = chain->args[0];
    *out_name = chain->args[RT_CHAIN_TENSORS_MAX];
    return names->bytes.len > 0 && !memchr(names->bytes.ptr, ' ', names->bytes.len) &&
           rt_node_arg(graph, chain, 1)->kind == RT_NONE && args->count == 1 &&
           rt_dim_is(args->ints[0], 0);
}

/* The next word of |text|; moves |text| past it. */
static struct span next_word(struct span *text)
{
    const void *space = memchr(text->ptr, ' ', text->len);
    size_t len = space ? (size_t)((const uint8_t *)space - text->ptr) : text->len;
    struct span word = span_of(text->ptr, len);

    *text = space ? span_of(text->ptr + len + 1, text->len - len - 1) : span_of(NULL, 0);
    return word;
}

static void read_chain(struct rt_emit *emit, struct rt_chain *chain)
{
    struct span names = rt_emit_value(emit, RT_CHAIN_TENSORS_MAX)->bytes;
    const struct rt_value *args = rt_emit_value(emit, RT_CHAIN_TENSORS_MAX + 1);
    const struct rt_value *numbers = rt_emit_value(emit, RT_CHAIN_TENSORS_MAX + 2);
    uint32_t at = 0;

    *chain = (struct rt_chain){.number_count = numbers->count};
    must(numbers->count <= RT_CHAIN_NUMBERS_MAX);
    for (uint32_t i = 0; i < numbers->count; i++) {
        chain->numbers[i] = numbers->floats[i];
    }
    while (chain->tensors < RT_CHAIN_TENSORS_MAX && rt_emit_arg(emit, chain->tensors)) {
        chain->tensors++;
    }
    while (names.len > 0) {
        must(chain->step_count < RT_CHAIN_STEPS_MAX);
        struct rt_chain_step *s = &chain->steps[chain->step_count++];
        s->op = rt_chain_op_named(next_word(&names));
        for (uint32_t a = 0; a < rt_chain_arg_count(s->op); a++) {
            must(at < args->count);
            s->args[a] = (int)args->ints[at++].value;
        }
    }
}

/* For each value the last step that reads it. */
static void find_last_uses(const struct rt_chain *c, uint32_t last[RT_CHAIN_VALUES_MAX])
{
    for (uint32_t i = 0; i < c->step_count; i++) {
        for (uint32_t a = 0; a < rt_pointwise_infos[c->steps[i].op].inputs; a++) {
            if (c->steps[i].args[a] >= 0) {
                last[c->steps[i].args[a]] = i;
            }
        }
    }
}

static struct rt_chain_run form_of(const struct rt_chain_step *s)
{
    uint32_t inputs = rt_pointwise_infos[s->op].inputs;
    struct rt_chain_run step = {.op = (uint8_t)s->op, .form = RT_CHAIN_LOOP};

    if (binary_of(s->op) >= 0) {
        bool first = s->args[0] < 0, second = s->args[1] < 0;
        step.form = first ? RT_CHAIN_REVERSED : second ? RT_CHAIN_SCALAR : RT_CHAIN_BINARY;
        step.params = (uint8_t)(first ? -1 - s->args[0] : second ? -1 - s->args[1] : 0);
    } else if (param_count(s->op) > 0) {
        step.params = (uint8_t)(-1 - s->args[inputs]);
    }
    return step;
}

/* Assigns buffers: first the tensors', then as many as values are alive at a time. A result may
 * reuse the buffer of an operand that no later step reads, but never the memory of a tensor. */
static void assign_buffers(const struct rt_chain *c, struct rt_chain_constants *k)
{
    uint32_t last[RT_CHAIN_VALUES_MAX] = {0};
    uint8_t where[RT_CHAIN_VALUES_MAX];
    bool taken[RT_CHAIN_VALUES_MAX] = {false};

    find_last_uses(c, last);
    for (uint32_t t = 0; t < c->tensors; t++) {
        where[t] = (uint8_t)t;
    }
    for (uint32_t i = 0; i < c->step_count; i++) {
        const struct rt_chain_step *s = &c->steps[i];
        struct rt_chain_run *step = &k->steps[i];
        uint8_t out = (uint8_t)c->tensors;
        *step = form_of(s);
        for (uint32_t a = 0, n = 0; a < rt_pointwise_infos[s->op].inputs; a++) {
            if (s->args[a] >= 0) {
                uint8_t buffer = where[s->args[a]];
                step->in[n++] = buffer;
                if (buffer >= c->tensors && last[s->args[a]] == i) {
                    taken[buffer] = false;
                }
            }
        }
        while (taken[out]) {
            out++;
        }
        taken[out] = true;
        where[c->tensors + i] = step->out = out;
    }
}

static uint32_t buffer_count(const struct rt_chain_constants *k)
{
    uint32_t count = k->tensors;
    for (uint32_t i = 0; i < k->step_count; i++) {
        count = k->steps[i].out >= count ? k->steps[i].out + 1U : count;
    }
    return count;
}

/* Reads how the operands of a loop lie in its two innermost dims; false if one is another way. */
static bool read_rows(struct rt_chain_constants *k)
{
    const struct rt_loop *loop = &k->loop;
    uint32_t inner = loop->rank - 1, outer = inner - 1;
    for (uint32_t o = 0; o < loop->operands; o++) {
        int64_t stride = loop->strides[o][inner], row = loop->strides[o][outer];
        if (row == 0 && stride == (int64_t)sizeof(float)) {
            k->repeated |= 1u << o;
        } else if (stride == 0 && row > 0 && row <= UINT32_MAX) {
            k->spread |= 1u << o;
            k->row_strides[o] = (uint32_t)row;
        } else if (row != stride * loop->dims[inner]) {
            return false;
        }
    }
    return true;
}

/* Merges the two innermost dims when an operand repeats something; see the head of this file. */
static void repeat_rows(struct rt_chain_constants *k)
{
    struct rt_loop *loop = &k->loop;
    uint32_t inner = loop->rank - 1, outer = inner - 1;

    if (loop->rank < 2 || loop->dims[inner] > PIECE / 2 || loop->dims[outer] == 1 ||
        !read_rows(k) || (k->repeated | k->spread) == 0) {
        k->repeated = k->spread = 0;
        return;
    }
    k->period = (uint32_t)loop->dims[inner];
    k->piece = PIECE / k->period * k->period;
    loop->dims[outer] *= loop->dims[inner];
    for (uint32_t o = 0; o < loop->operands; o++) {
        bool repeats = (k->repeated | k->spread) >> o & 1;
        loop->strides[o][outer] = repeats ? 0 : loop->strides[o][inner];
    }
    loop->rank--;
    loop->tile = (loop->tile / k->period + 1) * k->period;
}

static uint32_t cost_of(const struct rt_chain *c)
{
    uint32_t cost = 0;
    for (uint32_t i = 0; i < c->step_count; i++) {
        cost += rt_pointwise_infos[c->steps[i].op].cost;
    }
    return cost;
}

static void chain_tile(const struct hal_args *args, struct hal_tile tile);

static const struct hal_kernel kernel = {
    .name = "chain", .cpu = chain_tile, .spirv = HAL_SPIRV(chain_spirv)};

static enum status chain_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[RT_LOOP_OPERANDS_MAX] = {out->binding};
    struct rt_chain_constants k = {.piece = PIECE};
    struct rt_chain chain;

    read_chain(emit, &chain);
    k.tensors = chain.tensors;
    k.step_count = chain.step_count;
    for (uint32_t i = 0; i < chain.number_count; i++) {
        k.numbers[i] = (float)chain.numbers[i];
    }
    assign_buffers(&chain, &k);
    rt_loop_init(&k.loop, out->rank, out->dims);
    rt_loop_add(&k.loop, out);
    for (uint32_t i = 0; i < chain.tensors; i++) {
        const struct rt_tensor *tensor = rt_emit_arg(emit, i);
        bindings[i + 1] = tensor->binding;
        rt_loop_add(&k.loop, tensor);
    }
    uint32_t cost = cost_of(&chain);
    rt_loop_cut(&k.loop, rt_emit_machine(emit, &kernel), rt_pointwise_work(cost));
    if (k.loop.numel > 0) {
        repeat_rows(&k);
    }
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = &kernel,
                                .grid = {rt_loop_tiles(&k.loop), 1, 1},
                                .constants = &k,
                                .constants_bytes = sizeof(k),
                                .bindings = bindings,
                                .binding_count = k.loop.operands,
                                .scratch_bytes = (size_t)buffer_count(&k) * PIECE * sizeof(float),
                                .cost = (uint64_t)k.loop.numel * cost / 10,
                            },
                            err);
}

/* ---- the kernel ---------------------------------------------------------------------------- */

struct piece {
    const struct rt_chain_constants *k;
    struct rt_cursor cursor;
    float *space;
    const float *values[RT_CHAIN_VALUES_MAX]; /* by buffer */
    struct rt_number numbers[RT_CHAIN_NUMBERS_MAX];
};

static float *buffer_at(const struct piece *p, uint32_t buffer)
{
    return p->space + (size_t)buffer * PIECE;
}

/* State that all pieces of a run share. */
static void begin_run(struct piece *p)
{
    const struct rt_chain_constants *k = p->k;
    int64_t count = p->cursor.count < k->piece ? p->cursor.count : k->piece;

    for (uint32_t t = 0; t < k->tensors; t++) {
        const float *from = (const float *)(const void *)p->cursor.ptrs[t + 1];
        if (rt_loop_cursor_stride(&p->cursor, t + 1) != 0 || k->spread >> (t + 1) & 1) {
            continue;
        }
        float *to = buffer_at(p, t);
        bool is_row = k->repeated >> (t + 1) & 1;
        for (int64_t i = 0; is_row && i < count; i += k->period) {
            memcpy(to + i, from, k->period * sizeof(*to));
        }
        for (int64_t i = 0; !is_row && i < count; i++) {
            to[i] = *from;
        }
        p->values[t] = to;
    }
}

/* The numbers of the rows from position |at| of a run on, each for all positions of its row. */
static void spread_numbers(const struct piece *p, uint32_t tensor, int64_t at, int64_t count)
{
    const struct rt_chain_constants *k = p->k;
    int64_t stride = k->row_strides[tensor + 1], period = k->period;
    const char *from = p->cursor.ptrs[tensor + 1] +
                       (p->cursor.index[k->loop.rank - 1] + at) / period * stride;
    float *to = buffer_at(p, tensor);
    for (int64_t i = 0; i < count; i += period, from += stride) {
        float number = *(const float *)(const void *)from;
        for (int64_t j = 0; j < period; j++) {
            to[i + j] = number;
        }
    }
}

static void read_tensors(struct piece *p, int64_t done, int64_t count)
{
    for (uint32_t t = 0; t < p->k->tensors; t++) {
        int64_t stride = rt_loop_cursor_stride(&p->cursor, t + 1);
        const char *from = p->cursor.ptrs[t + 1] + done * stride;
        if (stride == (int64_t)sizeof(float)) {
            p->values[t] = (const float *)(const void *)from;
        } else if (p->k->spread >> (t + 1) & 1) {
            spread_numbers(p, t, done, count);
            p->values[t] = buffer_at(p, t);
        } else if (stride != 0) {
            float *to = buffer_at(p, t);
            rt_copy_run((char *)to, sizeof(float), from, stride, count, sizeof(float));
            p->values[t] = to;
        }
    }
}

static void run_step(const struct piece *p, const struct rt_chain_run *s, float *out, size_t count)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    const float *x = p->values[s->in[0]];
    int binary = s->form == RT_CHAIN_LOOP ? -1 : binary_of((enum rt_pointwise_op)s->op);

    if (s->form == RT_CHAIN_SCALAR) {
        uk->scalar_f32[binary](out, x, p->k->numbers[s->params], count);
    } else if (s->form == RT_CHAIN_REVERSED) {
        uk->reversed_f32[binary](out, x, p->k->numbers[s->params], count);
    } else if (s->form == RT_CHAIN_BINARY) {
        uk->binary_f32[binary](out, x, p->values[s->in[1]], count);
    } else {
        rt_pointwise_loop((enum rt_pointwise_op)s->op, RT_CLASS_F32)(&(struct rt_pointwise_run){
            .out = out,
            .in = {x, p->values[s->in[1]], p->values[s->in[2]]},
            .params = p->numbers + s->params,
            .count = count,
        });
    }
}

static void run_steps(struct piece *p, float *out, size_t count)
{
    const struct rt_chain_constants *k = p->k;

    for (uint32_t i = 0; i < k->step_count; i++) {
        const struct rt_chain_run *s = &k->steps[i];
        float *to = i + 1 < k->step_count ? buffer_at(p, s->out) : out;
        run_step(p, s, to, count);
        p->values[s->out] = to;
    }
}

/* The output has the smallest strides in the innermost dim, so that a run of it is contiguous. */
static void chain_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_chain_constants *k = args->constants;
    struct piece p = {.k = k, .space = args->scratch};

    for (uint32_t i = 0; i < RT_CHAIN_NUMBERS_MAX; i++) {
        p.numbers[i].f = k->numbers[i];
    }
    rt_loop_cursor_init(&p.cursor, &k->loop, args->bindings, tile.x);
    while (rt_loop_cursor_next(&p.cursor)) {
        begin_run(&p);
        for (int64_t done = 0; done < p.cursor.count; done += k->piece) {
            int64_t left = p.cursor.count - done, count = left < k->piece ? left : k->piece;
            read_tensors(&p, done, count);
            run_steps(&p, (float *)(void *)p.cursor.ptrs[0] + done, (size_t)count);
        }
    }
}

const struct rt_op rt_ops_chain[] = {
    {.name = "chain",
     .args = "TT?T?ZLD>T",
     .shape = chain_shape,
     .emit = chain_emit,
     .flags = RT_OP_IN_PLACE | RT_OP_POINTWISE,
     .layout = RT_LAYOUT_ELEMENTWISE,
     .dtypes = 1u << DT_F32,
     .runs = &kernel},
    {.name = NULL},
};
