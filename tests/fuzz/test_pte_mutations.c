/* SPDX-License-Identifier: MIT */
/*
 * Twenty thousand damaged programs, the same ones in each run. Each must be refused with a reason
 * or be exactly what its decoded form says: every index in range, every byte present.
 * AddressSanitizer finds reads beyond the file.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "runtime/pte/pte.h"
#include "tests/unit/pte_sample.h"

#define ROUNDS 20000
#define DAMAGES_MAX 4
#define LISTING_BYTES_MAX (16u << 20)

static uint64_t random_state = 0x9e3779b97f4a7c15;
static volatile uint8_t sink; /* keeps the compiler from removing the reads */

static uint32_t random_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) % limit);
}

static void touch(struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        sink ^= bytes.ptr[i];
    }
}

static void check_indices(const struct pte_plan *plan, const uint32_t *indices, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        must(indices[i] < plan->value_count);
    }
}

static void check_tensor(const struct pte_plan *plan, const struct pte_tensor *tensor)
{
    enum dtype dtype;
    must(tensor->shape.rank <= SHAPE_RANK_MAX);
    if (!dtype_from_executorch(tensor->scalar_type, &dtype)) {
        must(plan->failure);
        return;
    }
    must(tensor->byte_count == (size_t)shape_numel(&tensor->shape) * dtype_bytes(dtype));
    if (tensor->storage == PTE_PLANNED) {
        must(in_range(tensor->offset, tensor->byte_count, plan->memory_bytes[tensor->memory]));
    }
    must(tensor->bytes.len == (tensor->bytes.ptr ? tensor->byte_count : 0));
    must(!tensor->is_external || *tensor->name);
    touch(tensor->bytes);
}

static void check_value(const struct pte_plan *plan, const struct pte_value *value)
{
    const struct pte_list *list = &value->list;
    switch (value->kind) {
    case PTE_STRING:
        touch(value->string);
        break;
    case PTE_TENSOR:
        check_tensor(plan, value->tensor);
        break;
    case PTE_INT_LIST:
    case PTE_TENSOR_LIST:
        check_indices(plan, list->values, list->count);
        for (uint32_t i = 0; i < list->count; i++) {
            must(plan->values[list->values[i]].kind ==
                 (value->kind == PTE_INT_LIST ? PTE_INT : PTE_TENSOR));
        }
        break;
    case PTE_OPTIONAL_TENSOR_LIST:
        for (uint32_t i = 0; i < list->count; i++) {
            must(list->values[i] == PTE_NO_VALUE ||
                 plan->values[list->values[i]].kind == PTE_TENSOR);
        }
        break;
    default:
        break;
    }
}

static void check_plan(const struct pte_plan *plan)
{
    for (uint32_t i = 0; i < plan->value_count; i++) {
        check_value(plan, &plan->values[i]);
    }
    check_indices(plan, plan->inputs, plan->input_count);
    check_indices(plan, plan->outputs, plan->output_count);
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        const struct pte_instr *instr = &plan->instrs[i];
        check_indices(plan, instr->args, instr->arg_count);
        must(instr->kind != PTE_KERNEL || instr->index < plan->operator_count);
        must(instr->kind != PTE_DELEGATE || instr->index < plan->delegate_count);
        must(instr->kind != PTE_JUMP_FALSE || instr->index <= plan->instr_count);
    }
    for (uint32_t i = 0; i < plan->delegate_count; i++) {
        touch(plan->delegates[i].payload);
        for (uint32_t k = 0; k < plan->delegates[i].spec_count; k++) {
            touch(plan->delegates[i].specs[k].value);
        }
    }
}

static void check_program(const struct pte_program *program)
{
    size_t count;
    const struct pte_plan *plans = pte_plans(program, &count);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            must(strcmp(plans[i].name, plans[k].name) != 0);
        }
        check_plan(&plans[i]);
    }
    const struct pte_names *named = pte_named_data(program);
    for (uint32_t i = 0; i < named->count; i++) {
        const struct pte_named_data *entry = &named->entries[i];
        must(pte_names_find(named, span_str(entry->key)) == entry);
        touch(entry->bytes);
    }
    struct buf listing;
    buf_init(&listing, LISTING_BYTES_MAX);
    pte_print(program, &listing);
    must(!buf_failed(&listing));
    buf_fini(&listing);
}

static bool try_program(const struct writer *writer)
{
    struct pte_program *program;
    struct error err = {0};
    uint8_t *copy = malloc(writer->len + 1);
    must(copy != NULL);
    /* At an odd address, so that UBSan finds loads that assume alignment. */
    memcpy(copy + 1, writer->bytes, writer->len);
    bool is_accepted =
        pte_parse(span_of(copy + 1, writer->len), PTE_FILE_MAPPED, &program, &err) == ST_OK;
    if (is_accepted) {
        check_program(program);
        pte_free(program);
    } else {
        must(err.text[0] != '\0');
    }
    free(copy);
    return is_accepted;
}

static void damage(struct writer *writer)
{
    static const uint32_t numbers[] = {0,    1,          2,          4,          16,   31,
                                       0xff, 0xffff,     0x7fffffff, 0x80000000, 9999, 0x20000001,
                                       64,   0x40000000, 0xfffffff0, 0xffffffff};
    uint32_t number = numbers[random_below(sizeof(numbers) / sizeof(numbers[0]))];
    size_t at = random_below(writer->len - 4);
    switch (random_below(6)) {
    case 0:
        writer->bytes[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1:
        writer_put(writer, at, number, 1);
        break;
    case 2:
        writer_put(writer, at & ~(size_t)1, number, 2);
        break;
    case 3:
        writer_put(writer, at & ~(size_t)3, number, 4);
        break;
    case 4: /* a bit more or less: likely to stay plausible */
        writer->bytes[at] = (uint8_t)(writer->bytes[at] + random_below(9) - 4);
        break;
    case 5: /* another site's offset or number */
        writer_put(writer, at & ~(size_t)3,
                   load_le32(writer->bytes + (random_below(writer->len - 4) & ~3u)), 4);
        break;
    }
}

int main(void)
{
    static const enum sample_kind kinds[] = {SAMPLE_SEGMENTS, SAMPLE_OLD, SAMPLE_INLINE};
    static struct sample good[3], bad;
    uint32_t accepted = 0;
    for (size_t i = 0; i < 3; i++) {
        sample_make(&good[i], kinds[i]);
        must(try_program(&good[i].writer));
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        bad = good[round % 3];
        for (uint32_t n = random_below(DAMAGES_MAX); n < DAMAGES_MAX; n++) {
            damage(&bad.writer);
        }
        accepted += try_program(&bad.writer);
    }
    printf("%" PRIu32 " of %d damaged programs are still programs\n", accepted, ROUNDS);
    /* If all or none were refused, the damage would test nothing. */
    return accepted > ROUNDS / 100 && accepted < ROUNDS * 9 / 10 ? 0 : 1;
}
