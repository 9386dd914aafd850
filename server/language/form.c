/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/form.h"

#include <string.h>

#include "base/bytes.h"
#include "runtime/program/composition.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"

/* Numbers beyond these are not believed. */
#define TOKENS_MAX (1 << 20)
#define VOCAB_MAX (1 << 22)

/* Tokens, and one of each kind of read_input(). */
#define INPUTS_MAX 4

/* As ExecuTorch's extension/llm/runner/constants.h has them. */
#define EMBEDDING "token_embedding"
#define DECODER "text_decoder"

/* ---- one method ------------------------------------------------------------------------------ */

static bool takes_tokens(const struct rt_io *io)
{
    return io->kind == RT_IO_TENSOR && io->dtype == DT_I64 && io->shape.rank == 2 &&
           io->shape.dims[0] == 1 && io->shape.dims[1] >= 1 && io->shape.dims[1] <= TOKENS_MAX;
}

static bool takes_position(const struct rt_io *io, const struct rt_io *tokens)
{
    return io->kind == RT_IO_TENSOR && io->dtype == DT_I64 && io->shape.rank == 1 &&
           (io->shape.dims[0] == 1 || io->shape.dims[0] == tokens->shape.dims[1]);
}

static bool takes_row(const struct rt_io *io, const struct rt_io *tokens)
{
    return io->kind == RT_IO_TENSOR && io->dtype == DT_I64 && io->shape.rank == 2 &&
           io->shape.dims[0] == 1 && io->shape.dims[1] == tokens->shape.dims[1];
}

static bool takes_mask(const struct rt_io *io, const struct rt_io *tokens)
{
    const struct shape *shape = &io->shape;
    return io->kind == RT_IO_TENSOR && io->dtype == DT_BOOL && shape->rank == 4 &&
           shape->dims[0] == 1 && shape->dims[1] == 1 && shape->dims[2] == tokens->shape.dims[1] &&
           shape->dims[3] >= 1 && shape->dims[3] <= TOKENS_MAX;
}

/* What input |index|, behind the tokens, is. False: it is none of a language model, or there is one
 * of its kind already. */
static bool read_input(const struct rt_method *method, uint32_t index, struct form *form)
{
    const struct rt_io *tokens = rt_method_input(method, 0), *io = rt_method_input(method, index);
    uint32_t *place = NULL;
    if (takes_row(io, tokens)) {
        place = &form->row_input;
    } else if (takes_mask(io, tokens)) {
        place = &form->mask_input;
        form->mask_columns = rt_io_is_dynamic(io, 3) ? 0 : (uint32_t)io->shape.dims[3];
    } else if (takes_position(io, tokens)) {
        place = &form->position_input;
        form->has_positions = io->shape.dims[0] > 1 || rt_io_is_dynamic(io, 0);
    }
    if (!place || *place != 0) {
        return false;
    }
    *place = index;
    return true;
}

bool form_has_cache(const struct form *form)
{
    return form->position_input != 0 || form->row_input != 0 || form->mask_input != 0;
}

int64_t form_columns_max(const struct form *form)
{
    return form->mask_input ? rt_method_input(form->method, form->mask_input)->shape.dims[3]
                            : INT64_MAX;
}

bool form_is_certain(const struct form *form)
{
    return form->row_input != 0 || form->mask_input != 0;
}

enum reason form_why_not_positional(const struct form *form)
{
    return form->mask_input != 0       ? REASON_MASK_IS_INPUT
           : form->position_input != 0 ? REASON_NONE
           : form->row_input != 0      ? REASON_MASK_IS_INPUT
                                       : REASON_NO_POSITION;
}

static bool gives_logits(const struct rt_io *io)
{
    uint8_t rank = io->shape.rank;
    bool is_float = io->dtype == DT_F32 || io->dtype == DT_F16 || io->dtype == DT_BF16;
    return io->kind == RT_IO_TENSOR && is_float && (rank == 2 || rank == 3) &&
           io->shape.dims[rank - 1] > 1 && io->shape.dims[rank - 1] <= VOCAB_MAX &&
           !rt_io_is_dynamic(io, rank - 1u);
}

static bool read(struct rt_method *method, struct form *form)
{
    uint32_t inputs = rt_method_input_count(method);
    if (rt_method_failure(method) || inputs < 1 || inputs > INPUTS_MAX ||
        rt_method_result_count(method) != 1) {
        return false;
    }
    const struct rt_io *tokens = rt_method_input(method, 0), *logits = rt_method_result(method, 0);
    if (!takes_tokens(tokens) || !gives_logits(logits)) {
        return false;
    }
    *form = (struct form){.method = method};
    for (uint32_t i = 1; i < inputs; i++) {
        if (!read_input(method, i, form)) {
            return false;
        }
    }
    if (form_is_certain(form) && rt_program_state_bytes(rt_method_program(method)) == 0) {
        return false; /* it would have to get its cache from the caller */
    }
    form->step_max = (uint32_t)tokens->shape.dims[1];
    form->is_step_fixed = !rt_io_is_dynamic(tokens, 1);
    form->has_all_logits = logits->shape.rank == 3;
    form->gives_all_logits = form->has_all_logits && logits->shape.dims[1] >= tokens->shape.dims[1];
    return true;
}

/* The first half of a decoder that takes embeddings: its results have the form of logits. */
static bool is_embedding(const struct rt_method *method)
{
    return strcmp(rt_method_name(method), EMBEDDING) == 0;
}

/* Can it do every step of an answer? A cache has no place for padding behind the last token. */
static bool does_all(const struct form *form)
{
    return !form_has_cache(form) || !form->is_step_fixed || form->step_max == 1;
}

/* ---- two methods ----------------------------------------------------------------------------- */

static const struct pair {
    const char *prefill, *decode;
} pairs[] = {{"prefill", "decode"}, {"prefill_forward", "kv_forward"}};

static bool gives_same_logits(const struct form *a, const struct form *b)
{
    const struct rt_io *left = rt_method_result(a->method, 0);
    const struct rt_io *right = rt_method_result(b->method, 0);
    return left->dtype == right->dtype &&
           left->shape.dims[left->shape.rank - 1] == right->shape.dims[right->shape.rank - 1];
}

/* False: the program has no such pair, or one of them is no method of a language model. */
static bool read_pair(struct rt_program *program, const struct pair *names, struct forms *out)
{
    struct rt_method *prefill = rt_program_find_method(program, span_str(names->prefill));
    struct rt_method *decode = rt_program_find_method(program, span_str(names->decode));
    return prefill && decode && read(prefill, &out->prefill) && read(decode, &out->step) &&
           form_has_cache(&out->prefill) && form_has_cache(&out->step) && does_all(&out->step) &&
           gives_same_logits(&out->prefill, &out->step);
}

bool forms_find(const struct rt_method *method, struct forms *out)
{
    struct rt_program *program = rt_method_program(method);
    struct rt_method *own = rt_program_find_method(program, span_str(rt_method_name(method)));
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        bool is_one = strcmp(rt_method_name(method), pairs[i].prefill) == 0 ||
                      strcmp(rt_method_name(method), pairs[i].decode) == 0;
        if (!is_one || !read_pair(program, &pairs[i], out)) {
            continue;
        }
        if (!rt_method_shares_states(out->prefill.method, out->step.method)) {
            out->step = does_all(&out->prefill) ? out->prefill : out->step;
            out->prefill = (struct form){.method = NULL};
        }
        return out->step.method == method;
    }
    *out = (struct forms){.prefill = {.method = NULL}};
    return !is_embedding(own) && read(own, &out->step) && does_all(&out->step);
}

const struct rt_composition *form_composition(void)
{
    static const struct rt_composition composition = {
        .first = EMBEDDING, .second = DECODER, .name = "forward"};
    return &composition;
}

const struct form *forms_choose(const struct forms *forms, uint32_t left)
{
    const struct form *prefill = &forms->prefill;
    uint32_t least = prefill->is_step_fixed ? prefill->step_max : 2;
    return prefill->method && left >= least ? prefill : &forms->step;
}

const struct form *forms_choose_scored(const struct forms *forms, uint32_t left)
{
    const struct form *form = forms_choose(forms, left);
    return form->gives_all_logits ? form : &forms->step;
}
