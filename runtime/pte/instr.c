/* SPDX-License-Identifier: MIT */
/* Instructions. The chains of a plan run one after another, so they are joined here, and the
 * destinations of jumps, which count within their chain, are adjusted. */
#include "config.h"

#include "runtime/pte/decode.h"

#include <inttypes.h>

#include "runtime/pte/limits.h"
#include "runtime/pte/schema.h"

struct chain {
    uint32_t start; /* among the plan's instructions */
    uint32_t count;
};

static enum status decode_args(struct pte_decoder *decoder, const struct flatbuf_table *table,
                               struct flatbuf_field field, struct pte_instr *instr,
                               struct error *err)
{
    struct flatbuf_vector args;
    TRY(pte_decode_required(decoder, table, field, 4, PTE_ARGS_MAX, &args, err));
    TRY(pte_decode_indices(decoder, args, "argument", &instr->args, err));
    instr->arg_count = args.count;
    return ST_OK;
}

/* The called operator or delegate: an index into a list of |count|. */
static enum status decode_callee(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                 struct flatbuf_field field, uint32_t count,
                                 struct pte_instr *instr, struct error *err)
{
    int32_t index = 0;
    TRY(flatbuf_i32(&decoder->fb, table, field, &index, err));
    if (index < 0 || (uint32_t)index >= count) {
        return error_set(err, ST_CORRUPT, "%s: %" PRId32 " of %" PRIu32, field.name, index, count);
    }
    instr->index = (uint32_t)index;
    return ST_OK;
}

/* Instructions whose arguments are fields instead of a vector. */
static enum status decode_operands(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                   const struct flatbuf_field *fields, uint32_t count,
                                   struct pte_instr *instr, struct error *err)
{
    uint32_t *args = pte_decode_array(decoder, count, sizeof(*args), err);
    if (!args) {
        return err->code;
    }
    for (uint32_t i = 0; i < count; i++) {
        int32_t index = 0;
        TRY(flatbuf_i32(&decoder->fb, table, fields[i], &index, err));
        TRY(pte_decode_index(decoder, index, "argument", i, &args[i], err));
    }
    instr->args = args;
    instr->arg_count = count;
    return ST_OK;
}

static enum status decode_jump(struct pte_decoder *decoder, const struct flatbuf_table *table,
                               struct chain chain, struct pte_instr *instr, struct error *err)
{
    int32_t destination = 0;
    TRY(decode_operands(decoder, table, &jump_cond_value_index, 1, instr, err));
    TRY(flatbuf_i32(&decoder->fb, table, jump_destination_instruction, &destination, err));
    if (destination < 0 || (uint32_t)destination > chain.count) {
        return error_set(err, ST_CORRUPT,
                         "destination_instruction: %" PRId32 ", expected 0 to %" PRIu32,
                         destination, chain.count);
    }
    instr->index = chain.start + (uint32_t)destination;
    return ST_OK;
}

static enum status decode_call(struct pte_decoder *decoder, const struct flatbuf_table *table,
                               struct chain chain, uint8_t tag, struct pte_instr *instr,
                               struct error *err)
{
    const struct flatbuf_field moved[] = {move_move_from, move_move_to};
    switch (tag) {
    case 1:
        instr->kind = PTE_KERNEL;
        TRY(decode_callee(decoder, table, kernel_op_index, decoder->plan->operator_count, instr,
                          err));
        return decode_args(decoder, table, kernel_args, instr, err);
    case 2:
        instr->kind = PTE_DELEGATE;
        TRY(decode_callee(decoder, table, call_delegate_index, decoder->plan->delegate_count, instr,
                          err));
        return decode_args(decoder, table, call_args, instr, err);
    case 3:
        instr->kind = PTE_MOVE;
        return decode_operands(decoder, table, moved, 2, instr, err);
    case 4:
        instr->kind = PTE_JUMP_FALSE;
        return decode_jump(decoder, table, chain, instr, err);
    case 5:
        instr->kind = PTE_FREE;
        return decode_operands(decoder, table, &free_value_index, 1, instr, err);
    default:
        return error_set(err, ST_CORRUPT, "instr_args: tag %u, expected 1 to 5", tag);
    }
}

static enum status decode_instr(struct pte_decoder *decoder, struct flatbuf_vector vector,
                                uint32_t i, struct chain chain, struct pte_instr *instr,
                                struct error *err)
{
    struct flatbuf_table entry, call;
    uint8_t tag;
    TRY(flatbuf_table_at(&decoder->fb, vector, i, &entry, err));
    TRY(flatbuf_union(&decoder->fb, &entry, instruction_instr_args, &tag, &call, err));
    return decode_call(decoder, &call, chain, tag, instr, err);
}

static enum status open_chain(struct pte_decoder *decoder, struct flatbuf_vector chains, uint32_t i,
                              struct flatbuf_vector *out_instrs, struct error *err)
{
    struct flatbuf_table table;
    TRY(flatbuf_table_at(&decoder->fb, chains, i, &table, err));
    return pte_decode_required(decoder, &table, chain_instructions, 4, PTE_INSTRS_MAX, out_instrs,
                               err);
}

/* First the sum, then the instructions: there are few chains. */
static enum status count_instrs(struct pte_decoder *decoder, struct flatbuf_vector chains,
                                uint32_t *out_count, struct error *err)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < chains.count; i++) {
        struct flatbuf_vector instrs;
        if (open_chain(decoder, chains, i, &instrs, err) != ST_OK) {
            return error_prefix(err, "chain %" PRIu32 ": ", i);
        }
        if (instrs.count > PTE_INSTRS_MAX - count) {
            return error_set(err, ST_TOO_LARGE, "instructions: at most %u are allowed in all",
                             PTE_INSTRS_MAX);
        }
        count += instrs.count;
    }
    *out_count = count;
    return ST_OK;
}

static enum status decode_chains(struct pte_decoder *decoder, struct flatbuf_vector chains,
                                 struct pte_instr *instrs, struct error *err)
{
    struct chain chain = {0};
    for (uint32_t c = 0; c < chains.count; c++) {
        struct flatbuf_vector vector;
        TRY(open_chain(decoder, chains, c, &vector, err));
        chain.count = vector.count;
        for (uint32_t i = 0; i < vector.count; i++) {
            uint32_t n = chain.start + i;
            if (decode_instr(decoder, vector, i, chain, &instrs[n], err) != ST_OK) {
                return error_prefix(err, "instruction %" PRIu32 ": ", n);
            }
        }
        chain.start += vector.count;
    }
    return ST_OK;
}

enum status pte_decode_instrs(struct pte_decoder *decoder, const struct flatbuf_table *table,
                              struct error *err)
{
    struct flatbuf_vector chains;
    uint32_t count = 0;
    TRY(pte_decode_required(decoder, table, plan_chains, 4, PTE_CHAINS_MAX, &chains, err));
    if (chains.count == 0) {
        return error_set(err, ST_CORRUPT, "chains: empty");
    }
    TRY(count_instrs(decoder, chains, &count, err));
    struct pte_instr *instrs = pte_decode_array(decoder, count, sizeof(*instrs), err);
    if (!instrs) {
        return err->code;
    }
    TRY(decode_chains(decoder, chains, instrs, err));
    decoder->plan->instrs = instrs;
    decoder->plan->instr_count = count;
    return ST_OK;
}
