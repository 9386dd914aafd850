/* SPDX-License-Identifier: MIT */
/* Statements that the host executes: scalars, conditions, rows of accumulators. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "runtime/call/inside.h"
#include "runtime/kernels/convert.h"
#include "runtime/vm/vm.h"

static enum status refuse_empty(struct rt_invocation *inv)
{
    return error_set(&inv->error, ST_INVALID, "a value is read before anything wrote it");
}

static enum status need_tensor(struct rt_invocation *inv, uint32_t reg,
                               const struct vm_value **out_value)
{
    const struct vm_value *value = &vm_of(inv)->registers[reg];
    *out_value = value;
    return value->kind == RT_TENSOR ? ST_OK : refuse_empty(inv);
}

static void put_scalar(struct vm *vm, uint32_t reg, struct rt_scalar scalar)
{
    vm_put(vm, reg, (struct vm_value){.kind = scalar.kind, .number = scalar.number});
}

static enum status compute(struct rt_invocation *inv, const struct rt_stmt *stmt)
{
    const uint32_t regs[] = {stmt->a, stmt->b, stmt->c};
    enum rt_scalar_op op = (enum rt_scalar_op)stmt->op;
    struct rt_scalar args[3], result;
    for (uint32_t i = 0; i < rt_scalar_arg_count(op); i++) {
        const struct vm_value *value = &vm_of(inv)->registers[regs[i]];
        args[i] = (struct rt_scalar){value->kind, value->number};
        if (value->kind != vm_of(inv)->code->registers[regs[i]].kind) {
            return refuse_empty(inv);
        }
    }
    TRY(rt_scalar_apply(op, args, &result, &inv->error));
    put_scalar(vm_of(inv), stmt->target, result);
    return ST_OK;
}

static enum status measure(struct rt_invocation *inv, const struct rt_stmt *stmt)
{
    const struct vm_value *tensor;
    TRY(need_tensor(inv, stmt->a, &tensor));
    int64_t size =
        stmt->op == RT_STMT_NUMEL ? shape_numel(&tensor->shape) : tensor->shape.dims[stmt->op];
    put_scalar(vm_of(inv), stmt->target, (struct rt_scalar){RT_INT, size});
    return ST_OK;
}

/* Reads any element type as the scalar of its family. */
static struct rt_scalar load(enum dtype dtype, const char *from)
{
    double f;
    int64_t i;
    switch (dtype_infos[dtype].kind) {
    case DTYPE_FLOAT:
        rt_convert_load(dtype, RT_CLASS_F64)(&f, from, 0, 1);
        return rt_scalar_of_double(f);
    case DTYPE_BOOL:
        return (struct rt_scalar){RT_BOOL, *from != 0};
    default:
        rt_convert_load(dtype, RT_CLASS_I64)(&i, from, 0, 1);
        return (struct rt_scalar){RT_INT, i};
    }
}

static enum status read_element(struct rt_invocation *inv, const struct rt_stmt *stmt)
{
    const struct vm_value *tensor;
    TRY(need_tensor(inv, stmt->a, &tensor));
    const uint8_t *bytes = vm_map(tensor->memory);
    if (shape_numel(&tensor->shape) == 0 || !bytes) {
        return error_set(&inv->error, ST_INVALID, "a tensor without elements is read as a number");
    }
    put_scalar(vm_of(inv), stmt->target,
               load(vm_of(inv)->code->registers[stmt->a].dtype, (const char *)bytes));
    return ST_OK;
}

/* A bool, or a bool tensor all of whose elements are true; a tensor without elements is true. */
static enum status decide(struct rt_invocation *inv, uint32_t reg, bool *out_is_true)
{
    const struct vm_value *value = &vm_of(inv)->registers[reg];
    if (value->kind == RT_BOOL) {
        *out_is_true = value->number != 0;
        return ST_OK;
    }
    TRY(need_tensor(inv, reg, &value));
    const uint8_t *bytes = vm_map(value->memory);
    size_t count = (size_t)shape_numel(&value->shape);
    *out_is_true = count == 0 || !memchr(bytes, 0, count);
    return ST_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The accumulator's memory, with room for all of its bound: its own if no other register shares it,
 * otherwise a copy. So a loop copies each row once. */
static enum status own_accumulator(struct rt_invocation *inv, uint32_t reg, size_t used)
{
    struct vm *vm = vm_of(inv);
    struct vm_value *to = &vm->registers[reg];
    size_t bound = vm->code->registers[reg].bytes;
    struct vm_memory *memory;
    if (to->kind == RT_TENSOR && to->memory->refs == 1 && to->memory->owner == VM_OWNER_POOL &&
        to->memory->binding.length >= bound) {
        return ST_OK;
    }
    TRY(vm_allocate(inv, bound, &memory));
    if (to->kind == RT_TENSOR && used > 0) {
        memcpy(vm_map(memory), vm_map(to->memory), used);
    }
    vm_put(vm, reg, (struct vm_value){.kind = RT_TENSOR, .shape = to->shape, .memory = memory});
    return ST_OK;
}

static enum status copy_row(struct rt_invocation *inv, const struct rt_stmt *stmt)
{
    struct vm *vm = vm_of(inv);
    const struct rt_register *declared = &vm->code->registers[stmt->target];
    const struct vm_value *from, *index = &vm->registers[stmt->c];
    struct shape shape;
    size_t row, bytes, used = 0;
    TRY(need_tensor(inv, stmt->b, &from));
    if (index->kind != RT_INT) {
        return refuse_empty(inv);
    }
    shape.rank = (uint8_t)(from->shape.rank + 1);
    memcpy(&shape.dims[1], from->shape.dims, from->shape.rank * sizeof(shape.dims[0]));
    TRY(shape_bytes(&from->shape, declared->dtype, &row, &inv->error));
    if (index->number < 0 || index->number == INT64_MAX) {
        return error_set(&inv->error, ST_INVALID, "row %" PRId64 " of a result is to be written",
                         index->number);
    }
    shape.dims[0] = index->number + 1;
    TRY(shape_bytes(&shape, declared->dtype, &bytes, &inv->error));
    if (bytes > declared->bytes) {
        return error_set(&inv->error, ST_INVALID,
                         "row %" PRId64 " of a result takes it to %zu bytes, expected at most %zu",
                         index->number, bytes, declared->bytes);
    }
    if (vm->registers[stmt->target].kind == RT_TENSOR) {
        TRY(shape_bytes(&vm->registers[stmt->target].shape, declared->dtype, &used, &inv->error));
    }
    TRY(own_accumulator(inv, stmt->target, used < bytes - row ? used : bytes - row));
    uint8_t *rows = vm_map(vm->registers[stmt->target].memory);
    if (used < bytes - row) {
        memset(rows + used, 0, bytes - row - used); /* rows between the old end and the new one */
    }
    if (row > 0) {
        memmove(rows + (bytes - row), vm_map(from->memory), row);
    }
    vm->registers[stmt->target].shape = shape;
    return ST_OK;
}

enum status vm_host_stmt(struct rt_invocation *inv, const struct rt_stmt *stmt)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    struct vm *vm = vm_of(inv);
    bool is_true = false;
    vm->pc++;
    switch (stmt->kind) {
    case RT_STMT_JUMP:
        vm->pc = stmt->target;
        return ST_OK;
    case RT_STMT_JUMP_FALSE:
        TRY(decide(inv, stmt->a, &is_true));
        vm->pc = is_true ? vm->pc : stmt->target;
        return ST_OK;
    case RT_STMT_SCALAR:
        return compute(inv, stmt);
    case RT_STMT_SIZE:
        return measure(inv, stmt);
    case RT_STMT_READ:
        return read_element(inv, stmt);
    case RT_STMT_COPY_INDEX:
        return copy_row(inv, stmt);
    case RT_STMT_BLOCK:
        break;
    }
    unreachable();
}
