/* SPDX-License-Identifier: MIT */
/*
 * The listing of `pte inspect`. All names were checked when the program was decoded, so they are
 * printed as they are; the contents of string values are not.
 */
#include "config.h"

#include "base/check.h"
#include "base/table.h"
#include "runtime/pte/pte.h"

#include <inttypes.h>
#include <stdlib.h>

#include "runtime/pte/pte_priv.h"

static void print_container(const struct pte_program *program, struct buf *out)
{
    const struct pte_container *container = &program->container;
    buf_printf(out, "file: %zu bytes\n", program->file.bytes.len);
    if (container->header_bytes) {
        buf_printf(out, "extended header: %" PRIu32 " bytes\n", container->header_bytes);
    } else {
        buf_add_str(out, "extended header: none\n");
    }
    buf_printf(out, "flatbuffer: %zu bytes\n", container->flatbuffer.len);
    for (uint32_t i = 0; i < program->segment_count; i++) {
        const struct pte_segment *segment = &program->segments[i];
        buf_printf(out, "segment %" PRIu32 ": %zu bytes at %" PRIu64 "\n", i, segment->bytes.len,
                   container->segment_base + segment->offset);
    }
    buf_printf(out,
               "constants: %" PRIu32 " in a segment, %" PRIu32 " inline, %" PRIu32
               " initial states\n",
               program->segment_constant_count, program->inline_constant_count,
               program->mutable_constant_count);
    for (uint32_t i = 0; i < program->named.count; i++) {
        const struct pte_named_data *named = &program->named.entries[i];
        buf_printf(out, "named data \"%s\": %zu bytes\n", named->key, named->bytes.len);
    }
}

static void print_tensor(const struct pte_tensor *tensor, struct buf *out)
{
    static const char *const dynamism[] = {"", " dynamic", " unbounded"};
    static const char *const external[] = {"", " external"};
    enum dtype dtype;
    char shape[SHAPE_TEXT_MAX];
    if (dtype_from_executorch(tensor->scalar_type, &dtype)) {
        buf_add_str(out, dtype_text(dtype));
    } else {
        buf_printf(out, "type%d", tensor->scalar_type);
    }
    buf_printf(out, "%s%s", shape_print(&tensor->shape, shape), dynamism[tensor->dynamism]);
    switch (tensor->storage) {
    case PTE_UNBOUND:
        break;
    case PTE_CONSTANT:
        buf_printf(out, " constant%s", external[tensor->is_external]);
        break;
    case PTE_PLANNED:
        buf_printf(out, " memory %" PRIu32 " at %" PRIu64 "%s%s", tensor->memory + 1,
                   tensor->offset, external[tensor->is_external],
                   tensor->bytes.ptr || tensor->is_external ? " initial state" : "");
        break;
    }
    if (*tensor->name) {
        buf_printf(out, " \"%s\"", tensor->name);
    }
}

static void print_value(const struct pte_value *value, struct buf *out)
{
    switch (value->kind) {
    case PTE_INT:
        buf_printf(out, "int %" PRId64, value->int_value);
        break;
    case PTE_BOOL:
        buf_printf(out, "bool %s", value->bool_value ? "true" : "false");
        break;
    case PTE_DOUBLE:
        buf_printf(out, "double %.17g", value->double_value);
        break;
    case PTE_STRING:
        buf_printf(out, "string of %zu bytes", value->string.len);
        break;
    case PTE_TENSOR:
        print_tensor(value->tensor, out);
        break;
    default:
        buf_add_str(out, pte_kind_name(value->kind));
        break;
    }
}

static void print_interface(const struct pte_plan *plan, const char *what, const uint32_t *indices,
                            uint32_t count, struct buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, "  %s %" PRIu32 ": value %" PRIu32 ", ", what, i, indices[i]);
        print_value(&plan->values[indices[i]], out);
        buf_add_char(out, '\n');
    }
}

static void print_values(const struct pte_plan *plan, struct buf *out)
{
    uint32_t counts[PTE_KIND_COUNT] = {0};
    for (uint32_t i = 0; i < plan->value_count; i++) {
        counts[plan->values[i].kind]++;
    }
    buf_printf(out, "  values: %" PRIu32, plan->value_count);
    for (int kind = 0; kind < PTE_KIND_COUNT; kind++) {
        if (counts[kind]) {
            buf_printf(out, ", %" PRIu32 " %s", counts[kind], pte_kind_name(kind));
        }
    }
    buf_add_char(out, '\n');
}

static void print_instrs(const struct pte_plan *plan, struct buf *out)
{
    static const char *const names[] = {
        [PTE_KERNEL] = "kernel call", [PTE_DELEGATE] = "delegate call",
        [PTE_MOVE] = "move",          [PTE_JUMP_FALSE] = "jump if false",
        [PTE_FREE] = "free",
    };
    TABLE_ENDS_WITH(names, PTE_FREE);
    uint32_t counts[sizeof(names) / sizeof(names[0])] = {0};
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        counts[plan->instrs[i].kind]++;
    }
    buf_printf(out, "  instructions: %" PRIu32, plan->instr_count);
    for (size_t kind = 0; kind < sizeof(names) / sizeof(names[0]); kind++) {
        if (counts[kind]) {
            buf_printf(out, ", %" PRIu32 " %s", counts[kind], names[kind]);
        }
    }
    buf_add_char(out, '\n');
}

/* Calls of every operator and delegate, by index; false when there is no memory to count in. */
static bool count_calls(const struct pte_plan *plan, uint32_t **out_operators,
                        uint32_t **out_delegates)
{
    uint32_t *operators = calloc(plan->operator_count + 1u, sizeof(*operators));
    uint32_t *delegates = calloc(plan->delegate_count + 1u, sizeof(*delegates));
    *out_operators = operators;
    *out_delegates = delegates;
    if (!operators || !delegates) {
        return false;
    }
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        const struct pte_instr *instr = &plan->instrs[i];
        if (instr->kind == PTE_KERNEL) {
            operators[instr->index]++;
        } else if (instr->kind == PTE_DELEGATE) {
            delegates[instr->index]++;
        }
    }
    return true;
}

static void print_calls(const struct pte_plan *plan, struct buf *out)
{
    uint32_t *operators, *delegates;
    if (count_calls(plan, &operators, &delegates)) {
        for (uint32_t i = 0; i < plan->operator_count; i++) {
            buf_printf(out, "  operator %s: %" PRIu32 " calls\n", plan->operators[i], operators[i]);
        }
        for (uint32_t i = 0; i < plan->delegate_count; i++) {
            const struct pte_delegate *delegate = &plan->delegates[i];
            buf_printf(out, "  delegate %s: %" PRIu32 " calls, %zu bytes, %" PRIu32 " options\n",
                       delegate->id, delegates[i], delegate->payload.len, delegate->spec_count);
        }
    } else {
        out->failed = true;
    }
    free(operators);
    free(delegates);
}

static void print_plan(const struct pte_plan *plan, struct buf *out)
{
    buf_printf(out, "method \"%s\"\n", plan->name);
    if (plan->failure) {
        buf_printf(out, "  cannot be used: %s\n", plan->failure->text);
    }
    print_interface(plan, "input", plan->inputs, plan->input_count, out);
    print_interface(plan, "output", plan->outputs, plan->output_count, out);
    print_values(plan, out);
    print_instrs(plan, out);
    print_calls(plan, out);
    for (uint32_t i = 0; i < plan->memory_count; i++) {
        buf_printf(out, "  memory %" PRIu32 ": %" PRIu64 " bytes\n", i + 1, plan->memory_bytes[i]);
    }
    buf_printf(out, "  encoded inputs: %s\n", plan->encoded_inputs);
    buf_printf(out, "  encoded outputs: %s\n", plan->encoded_outputs);
}

void pte_print(const struct pte_program *program, struct buf *out)
{
    OBJ_CHECK(program, PTE_PROGRAM_MAGIC);
    print_container(program, out);
    for (uint32_t i = 0; i < program->plan_count; i++) {
        print_plan(&program->plans[i], out);
    }
}
