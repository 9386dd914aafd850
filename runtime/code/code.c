/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/code.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"

void rt_code_measure(struct rt_code *code)
{
    for (uint32_t i = 0; i < code->block_count; i++) {
        const struct rt_block *block = code->blocks[i];
        OBJ_CHECK(block, RT_BLOCK_MAGIC);
        uint32_t ins = block->graph.input_count, outs = block->graph.output_count;
        outs = outs > block->out_count ? outs : block->out_count;
        code->ins_max = ins > code->ins_max ? ins : code->ins_max;
        code->outs_max = outs > code->outs_max ? outs : code->outs_max;
        uint32_t words = block->numbers.word_count;
        code->words_max = words > code->words_max ? words : code->words_max;
    }
}

static void free_blocks(struct rt_code *code)
{
    for (uint32_t i = 0; i < code->block_count; i++) {
        rt_block_fini(code->blocks[i]);
        free(code->blocks[i]);
    }
}

void rt_code_fini(struct rt_code *code)
{
    free_blocks(code);
    arena_fini(&code->arena);
}

void rt_code_clear(struct rt_code *code)
{
    struct arena arena = code->arena;
    free_blocks(code);
    *code = (struct rt_code){.arena = arena};
}

bool rt_code_reaches(const struct rt_code *code, uint32_t block)
{
    return code->stmt_count == 0 || code->blocks[block]->out_count > 0;
}

static void print_scalar_stmt(const struct rt_stmt *stmt, struct buf *out)
{
    const char *separator = "";
    const uint32_t args[] = {stmt->a, stmt->b, stmt->c};
    buf_printf(out, "r%u = %s(", stmt->target, rt_scalar_name((enum rt_scalar_op)stmt->op));
    for (uint32_t i = 0; i < rt_scalar_arg_count((enum rt_scalar_op)stmt->op); i++) {
        buf_printf(out, "%sr%u", separator, args[i]);
        separator = ", ";
    }
    buf_add_char(out, ')');
}

static void print_block_stmt(const struct rt_code *code, const struct rt_stmt *stmt,
                             struct buf *out)
{
    const struct rt_block *block = code->blocks[stmt->target];
    for (uint32_t i = 0; i < block->out_count; i++) {
        buf_printf(out, "%sr%u", i ? ", " : "", block->outs[i].reg);
    }
    buf_printf(out, " = block %u(", stmt->target);
    for (uint32_t i = 0; i < block->graph.input_count; i++) {
        buf_printf(out, "%sr%u", i ? ", " : "", block->ins[i]);
    }
    buf_add_char(out, ')');
}

static void print_stmt(const struct rt_code *code, const struct rt_stmt *stmt, struct buf *out)
{
    switch (stmt->kind) {
    case RT_STMT_BLOCK:
        print_block_stmt(code, stmt, out);
        break;
    case RT_STMT_JUMP:
        buf_printf(out, "jump %u", stmt->target);
        break;
    case RT_STMT_JUMP_FALSE:
        buf_printf(out, "jump %u unless r%u", stmt->target, stmt->a);
        break;
    case RT_STMT_SCALAR:
        print_scalar_stmt(stmt, out);
        break;
    case RT_STMT_SIZE:
        if (stmt->op == RT_STMT_NUMEL) {
            buf_printf(out, "r%u = numel(r%u)", stmt->target, stmt->a);
        } else {
            buf_printf(out, "r%u = size(r%u, %u)", stmt->target, stmt->a, stmt->op);
        }
        break;
    case RT_STMT_READ:
        buf_printf(out, "r%u = read(r%u)", stmt->target, stmt->a);
        break;
    case RT_STMT_COPY_INDEX:
        buf_printf(out, "r%u[r%u] = r%u", stmt->target, stmt->c, stmt->b);
        break;
    }
}

static void print_register(const struct rt_code *code, uint32_t reg, struct buf *out)
{
    const struct rt_register *r = &code->registers[reg];
    char text[SHAPE_TEXT_MAX];
    if (r->kind == RT_TENSOR) {
        buf_printf(out, "  r%u: %s%s\n", reg, dtype_text(r->dtype), shape_print(&r->bound, text));
    } else if (r->initial.kind == RT_INT || r->initial.kind == RT_BOOL) {
        buf_printf(out, "  r%u = %" PRId64 "\n", reg, r->initial.number);
    } else if (r->initial.kind == RT_FLOAT) {
        buf_printf(out, "  r%u = %.9g\n", reg, rt_scalar_to_double(r->initial));
    }
}

void rt_code_print(const struct rt_code *code, const struct rt_notes *notes, struct buf *out)
{
    must(code->block_count > 0);
    if (code->stmt_count == 0) {
        rt_graph_print(&code->blocks[0]->graph, notes, out);
        return;
    }
    buf_printf(out, "statements of %s\n", code->blocks[0]->graph.name);
    for (uint32_t i = 0; i < code->register_count; i++) {
        print_register(code, i, out);
    }
    for (uint32_t i = 0; i < code->stmt_count; i++) {
        buf_printf(out, "  %u: ", i);
        print_stmt(code, &code->stmts[i], out);
        buf_add_char(out, '\n');
    }
    buf_add_str(out, "  return ");
    for (uint32_t i = 0; i < code->result_count; i++) {
        buf_printf(out, "%sr%u", i ? ", " : "", code->results[i].reg);
    }
    buf_add_char(out, '\n');
    for (uint32_t i = 0; i < code->block_count; i++) {
        if (rt_code_reaches(code, i)) {
            buf_printf(out, "block %u: ", i);
            rt_graph_print(&code->blocks[i]->graph, notes, out);
        }
    }
}

uint32_t rt_stmt_operands(const struct rt_stmt *stmt, uint32_t operands[RT_STMT_OPERANDS])
{
    switch (stmt->kind) {
    case RT_STMT_SCALAR:
        operands[0] = stmt->a;
        operands[1] = stmt->b;
        operands[2] = stmt->c;
        return rt_scalar_arg_count((enum rt_scalar_op)stmt->op);
    case RT_STMT_SIZE:
    case RT_STMT_READ:
    case RT_STMT_JUMP_FALSE:
        operands[0] = stmt->a;
        return 1;
    case RT_STMT_COPY_INDEX:
        operands[0] = stmt->target;
        operands[1] = stmt->b;
        operands[2] = stmt->c;
        return 3;
    case RT_STMT_BLOCK:
    case RT_STMT_JUMP:
        break;
    }
    return 0;
}

bool rt_stmt_uses(const struct rt_stmt *stmt, uint32_t reg)
{
    uint32_t operands[RT_STMT_OPERANDS], count = rt_stmt_operands(stmt, operands);
    bool has_target = stmt->kind == RT_STMT_SIZE || stmt->kind == RT_STMT_READ ||
                      stmt->kind == RT_STMT_SCALAR || stmt->kind == RT_STMT_COPY_INDEX;
    bool uses = has_target && stmt->target == reg;
    for (uint32_t i = 0; i < count; i++) {
        uses |= operands[i] == reg;
    }
    return uses;
}
