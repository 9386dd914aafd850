/* SPDX-License-Identifier: MIT */
/* Reads a good program, and refuses each kind of bad program with a text that names the place. */
#include "config.h"

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/pte/pte.h"
#include "tests/unit/pte_sample.h"

static struct sample sample;
static struct error err;

static int setup(void **state)
{
    (void)state;
    sample_make(&sample, SAMPLE_SEGMENTS);
    return 0;
}

/* Parses a copy of exactly that size, so that AddressSanitizer finds a read beyond it. */
static enum status try_parse(const struct writer *writer, struct pte_program **out_program,
                             uint8_t **out_copy)
{
    *out_copy = malloc(writer->len ? writer->len : 1);
    assert_non_null(*out_copy);
    memcpy(*out_copy, writer->bytes, writer->len);
    return pte_parse(span_of(*out_copy, writer->len), PTE_FILE_MAPPED, out_program, &err);
}

static void expect_refused(enum status status, const char *part)
{
    struct pte_program *program;
    uint8_t *copy;
    enum status got = try_parse(&sample.writer, &program, &copy);
    if (got == ST_OK) {
        pte_free(program);
    }
    free(copy);
    assert_fails(err, got, status, part);
}

/* Checks that a number at |at| makes the program corrupt. Then restores the old one. */
static void expect_corrupt(size_t at, size_t width, uint64_t value, const char *part)
{
    struct sample good = sample;
    writer_put(&sample.writer, at, value, width);
    expect_refused(ST_CORRUPT, part);
    sample = good;
}

static void expect_corrupt_field(size_t table, size_t id, size_t width, uint64_t value,
                                 const char *part)
{
    expect_corrupt(writer_field(&sample.writer, table, id), width, value, part);
}

static void expect_corrupt_without(size_t table, size_t id, const char *part)
{
    struct sample good = sample;
    sample_remove(&sample, table, id);
    expect_refused(ST_CORRUPT, part);
    sample = good;
}

/* "forward" is the sample's first method, "width" its second. */
static const struct pte_plan *method_of(const struct pte_program *program, size_t index)
{
    size_t count;
    const struct pte_plan *plans = pte_plans(program, &count);
    assert_true(index < count);
    return &plans[index];
}

/* Checks that the number makes only "forward" unusable, for the reason |part|. */
static void expect_unsupported(size_t table, size_t id, size_t width, uint64_t value,
                               const char *part)
{
    struct sample good = sample;
    struct pte_program *program;
    uint8_t *copy;
    sample_set(&sample, table, id, value, width);
    assert_ok(err, try_parse(&sample.writer, &program, &copy));
    const struct pte_plan *plan = method_of(program, 0);
    assert_non_null(plan->failure);
    assert_int_equal(plan->failure->code, ST_UNSUPPORTED);
    assert_non_null(strstr(plan->failure->text, part));
    assert_null(method_of(program, 1)->failure);
    pte_free(program);
    free(copy);
    sample = good;
}

static void check_tensors(const struct pte_value *values)
{
    const struct pte_tensor *input = values[SV_INPUT].tensor;
    assert_int_equal(input->dtype, DT_F32);
    assert_int_equal(input->shape.rank, 2);
    assert_int_equal(input->shape.dims[1], 3);
    assert_int_equal(input->dim_order[1], 1);
    assert_int_equal(input->byte_count, 24);
    assert_int_equal(input->storage, PTE_PLANNED);
    assert_null(input->bytes.ptr);
    const struct pte_tensor *constant = values[SV_CONSTANT].tensor;
    assert_int_equal(constant->storage, PTE_CONSTANT);
    assert_int_equal(constant->bytes.len, 24);
    const struct pte_tensor *state = values[SV_STATE].tensor;
    assert_int_equal(state->storage, PTE_PLANNED);
    assert_int_equal(state->memory, 0);
    assert_int_equal(state->offset, 64);
    assert_string_equal(state->name, "module.state");
    assert_int_equal(values[SV_UNBOUND].tensor->storage, PTE_UNBOUND);
}

static void check_lists(const struct pte_value *values)
{
    const struct pte_list *optional = &values[SV_OPTIONAL_LIST].list;
    assert_int_equal(optional->count, 3);
    assert_int_equal(optional->values[0], PTE_NO_VALUE);
    assert_int_equal(optional->values[1], SV_INPUT);
    assert_int_equal(optional->values[2], PTE_NO_VALUE);
    assert_int_equal(values[SV_INT_LIST].list.values[1], SV_INT);
    assert_int_equal(values[SV_TENSOR_LIST].list.values[1], SV_UNBOUND);
    assert_true(values[SV_DOUBLE_LIST].list.doubles[0] == 1.5);
    assert_false(values[SV_BOOL_LIST].list.bools[0]);
    assert_true(values[SV_BOOL_LIST].list.bools[2]);
}

static void check_plan(const struct pte_plan *plan)
{
    assert_null(plan->failure);
    assert_string_equal(plan->encoded_inputs, "(in)");
    assert_string_equal(plan->encoded_outputs, "(out)");
    assert_int_equal(plan->value_count, SV_COUNT);
    assert_int_equal(plan->values[SV_INT].int_value, -5);
    assert_true(plan->values[SV_BOOL].bool_value);
    assert_true(plan->values[SV_DOUBLE].double_value == 2.5);
    assert_true(span_is(plan->values[SV_STRING].string, "hello"));
    check_tensors(plan->values);
    check_lists(plan->values);
    assert_int_equal(plan->output_count, 2);
    assert_int_equal(plan->outputs[1], SV_STRING);
    assert_string_equal(plan->operators[0], "aten::add.out");
    assert_int_equal(plan->memory_count, 1);
    assert_int_equal(plan->memory_bytes[0], 88);
    assert_int_equal(plan->instr_count, SI_COUNT);
    assert_int_equal(plan->instrs[SI_KERNEL].kind, PTE_KERNEL);
    assert_int_equal(plan->instrs[SI_KERNEL].arg_count, 5);
    assert_int_equal(plan->instrs[SI_KERNEL].args[2], SV_INT);
    assert_int_equal(plan->instrs[SI_JUMP].index, SI_COUNT);
    assert_int_equal(plan->instrs[SI_JUMP].args[0], SV_BOOL);
    assert_int_equal(plan->instrs[SI_MOVE].args[1], SV_OUTPUT);
    assert_string_equal(plan->delegates[0].id, "TestBackend");
    assert_string_equal(plan->delegates[0].specs[0].key, "level");
    assert_int_equal(plan->delegates[0].specs[0].value.len, 3);
}

static void test_reads_programs_of_every_age(void **state)
{
    static const enum sample_kind kinds[] = {SAMPLE_SEGMENTS, SAMPLE_OLD, SAMPLE_INLINE};
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct pte_program *program;
        uint8_t *copy;
        size_t count;
        bool is_inline = kinds[i] == SAMPLE_INLINE;
        sample_make(&sample, kinds[i]);
        assert_ok(err, try_parse(&sample.writer, &program, &copy));
        const struct pte_plan *plans = pte_plans(program, &count);
        assert_int_equal(count, 2);
        check_plan(&plans[0]);
        assert_int_equal(plans[0].delegates[0].payload.len, is_inline ? 3 : 32);
        assert_int_equal(plans[0].values[SV_STATE].tensor->bytes.len, is_inline ? 0 : 24);
        assert_string_equal(plans[1].name, "width");
        pte_free(program);
        free(copy);
    }
}

static void test_named_data(void **state)
{
    struct pte_program *program;
    uint8_t *copy;
    (void)state;
    assert_ok(err, try_parse(&sample.writer, &program, &copy));
    const struct pte_names *names = pte_named_data(program);
    assert_string_equal(names->entries[0].key, "weights");
    assert_int_equal(names->count, 2);
    const struct pte_named_data *found = pte_names_find(names, span_str("weights"));
    assert_non_null(found);
    assert_int_equal(found->bytes.len, 64);
    assert_int_equal(found->bytes.ptr[63], 63);
    assert_int_equal(pte_names_find(names, span_of("alphabet", 5))->bytes.len, 32);
    assert_null(pte_names_find(names, span_str("weight")));
    assert_null(pte_names_find(names, span_str("weightss")));
    assert_null(pte_names_find(names, span_of("alpha\0bet", 9)));
    assert_null(pte_names_find(names, span_of("", 0)));
    pte_free(program);
    free(copy);
}

static void test_trailing_bytes_are_ignored(void **state)
{
    struct pte_program *program;
    uint8_t *copy;
    (void)state;
    writer_add(&sample.writer, "garbage", 7);
    assert_ok(err, try_parse(&sample.writer, &program, &copy));
    pte_free(program);
    free(copy);
}

static void test_truncated_everywhere(void **state)
{
    (void)state;
    while (sample.writer.len > 0) {
        sample.writer.len--;
        struct pte_program *program;
        uint8_t *copy;
        enum status status = try_parse(&sample.writer, &program, &copy);
        free(copy);
        assert_int_equal(status, ST_CORRUPT);
        assert_true(strlen(err.text) > 0);
    }
}

/* With a header the length of the file is known. Up to ExecuTorch 0.7 only its minimum is known. */
static void test_truncation_says_how_much_is_there(void **state)
{
    (void)state;
    size_t end = sample.writer.len;
    char text[80];
    sample.writer.len = end - 1;
    snprintf(text, sizeof(text), "the file ends at %zu of %zu bytes: truncated", end - 1, end);
    expect_refused(ST_CORRUPT, text);
    sample.writer.len = 100;
    snprintf(text, sizeof(text), "the file ends at 100 of %zu bytes: truncated", end);
    expect_refused(ST_CORRUPT, text);
    sample.writer.len = 63;
    expect_refused(ST_CORRUPT, "the file ends at 63 of at least 64 bytes: truncated");
    sample.writer.len = 7;
    expect_refused(ST_CORRUPT, "7 bytes are too few for a program, expected at least 64");
    sample_make(&sample, SAMPLE_OLD);
    sample.writer.len = 100;
    snprintf(text, sizeof(text), "the file ends at 100 of at least %zu bytes: truncated",
             sample.segment_base);
    expect_refused(ST_CORRUPT, text);
}

/* A header of another version differs from no header. */
static void test_header_versions(void **state)
{
    (void)state;
    memcpy(sample.writer.bytes + 8, "eh01", 4);
    expect_refused(ST_UNSUPPORTED,
                   "unsupported header version: \"eh01\" at byte 8, expected \"eh00\"");
    memcpy(sample.writer.bytes + 8, "eh42", 4);
    expect_refused(ST_UNSUPPORTED, "unsupported header version: \"eh42\"");
}

static void test_names_related_formats(void **state)
{
    (void)state;
    struct sample good = sample;
    memcpy(sample.writer.bytes + 4, "FT01", 4);
    expect_refused(ST_UNSUPPORTED, ".ptd");
    memcpy(sample.writer.bytes + 4, "BP08", 4);
    expect_refused(ST_UNSUPPORTED, ".bpte");
    memcpy(sample.writer.bytes + 4, "ET13", 4);
    expect_refused(ST_UNSUPPORTED, "\"ET13\", expected \"ET12\"");
    memcpy(sample.writer.bytes + 4, "\x01\x02zz", 4);
    expect_refused(ST_CORRUPT, "\"??zz\"");
    sample = good;
    memcpy(sample.writer.bytes, "PK\x03\x04zip", 8);
    expect_refused(ST_UNSUPPORTED, "zip");
}

static void test_extended_header(void **state)
{
    (void)state;
    size_t end = sample.writer.len;
    char text[80];
    expect_corrupt(12, 4, 23, "length is 23");
    expect_corrupt(12, 4, UINT32_MAX, "length is 4294967295");
    expect_corrupt(16, 8, 0, "the program has 0 bytes");
    expect_corrupt(16, 8, 7, "the program has 7 bytes, expected at least 8");
    expect_corrupt(16, 8, end + 1, "expected the program's end at");
    expect_corrupt(16, 8, UINT64_MAX, "expected the program's end at");
    expect_corrupt(24, 8, 0, "no place for them");
    expect_corrupt(24, 8, 64, "segments begin at byte 64");
    snprintf(text, sizeof(text), "the file ends at %zu of %zu bytes: truncated", end, end + 1);
    expect_corrupt(24, 8, sample.segment_base + 1, text);
    expect_corrupt(32, 8, 97, text);
    expect_corrupt(24, 8, INT64_MAX, "its sizes come to more than any file has");
    expect_corrupt(32, 8, UINT64_MAX, "its sizes come to more than any file has");
    expect_corrupt(32, 8, 95, "segment 1: 32 bytes at offset 64 of an area of 95");
}

static void test_segments(void **state)
{
    (void)state;
    expect_corrupt_field(sample.segments[0], 0, 8, UINT64_MAX, "segment 0: 64 bytes at offset");
    expect_corrupt_field(sample.segments[1], 1, 8, 33, "segment 1: 33 bytes at offset 64");
    expect_corrupt_field(sample.segments[1], 1, 8, UINT64_MAX - 63, "segment 1: ");
    expect_corrupt(8, 4, 0, "segment 0: 64 bytes, but the file has no header");
    expect_corrupt_field(sample.constant_segment, 0, 4, 2,
                         "constant_segment: segment_index: segment 2 of 2");
    expect_corrupt_field(sample.mutable_segment, 0, 4, 9,
                         "mutable_data_segments 0: segment_index: segment 9 of 2");
    expect_corrupt_field(sample.named[1], 1, 4, 2, "named_data 1: segment_index: segment 2 of 2");
    expect_corrupt_without(sample.named[1], 0, "named_data 1: key: missing");
    memcpy(sample.writer.bytes + sample.named_keys[1] - 4, "\x07\0\0\0weights", 12);
    expect_refused(ST_CORRUPT, "two entries have the key \"weights\"");
}

static void test_method_names(void **state)
{
    (void)state;
    size_t name = sample.plan_name;
    expect_corrupt(name + 2, 1, '/', "plan 0: name: \"fo/ward\"");
    expect_corrupt(name + 2, 1, '\n', "plan 0: name: not UTF-8, or with control");
    expect_corrupt(name + 2, 1, 0, "control");
    expect_corrupt(name + 2, 2, 0x80c0, "not UTF-8");   /* an overlong form */
    expect_corrupt(name + 2, 3, 0x80a0ed, "not UTF-8"); /* a surrogate */
    expect_corrupt(name + 2, 2, 0x85c2, "not UTF-8");   /* a control character of two bytes */
    expect_corrupt(name - 4, 4, 6, "plan 0: name: the string of 6 bytes");
    expect_corrupt_without(sample.plan, 0, "plan 0: name: \"\" cannot");
    writer_link(&sample.writer, writer_field(&sample.writer, sample.plan, 0),
                sample.other_name - 4);
    expect_refused(ST_CORRUPT, "plan 1: name: plan 0 is called \"width\" as well");
}

static void test_plans(void **state)
{
    (void)state;
    expect_corrupt(sample.plans - 4, 4, 0, "the program has no methods");
    expect_corrupt_without(sample.program, 1, "execution_plan: missing");
    for (size_t id = 2; id <= 5; id++) {
        expect_corrupt_without(sample.plan, id, ": missing");
    }
    expect_corrupt_without(sample.plan, 6, "instruction 0: op_index: 0 of 0");
    expect_corrupt_without(sample.plan, 7, "instruction 1: delegate_index: 0 of 0");
    expect_corrupt_without(sample.plan, 8, "memory_id: 1, expected 1 to 0");
    expect_corrupt(sample.inputs, 4, (uint64_t)-1, "plan \"forward\", input 0 is value -1 of 15");
    expect_corrupt(sample.inputs, 4, SV_CONSTANT, "input 0 is value 2, a constant");
    expect_corrupt(sample.outputs + 4, 4, SV_COUNT, "output 1 is value 15 of 15");
    expect_corrupt(sample.buffer_sizes + 8, 8, UINT64_MAX, "memory 1 has -1 bytes");
    expect_corrupt(sample.buffer_sizes + 8, 8, UINT64_C(1) << 60, "expected 0 to");
    expect_corrupt_without(sample.operator_table, 0, "operator 0: name: missing");
    expect_corrupt_without(sample.delegate, 0, "delegate 0: id: missing");
    expect_corrupt_without(sample.delegate, 1, "delegate 0: processed: missing");
    expect_corrupt_field(sample.processed, 1, 4, 2, "delegate 0: processed: segment 2 of 2");
    expect_corrupt_field(sample.processed, 0, 1, 0, "processed: inline payload 1 of 0");
    expect_corrupt_field(sample.processed, 0, 1, 2, "processed: location 2");
}

static void test_instructions(void **state)
{
    const size_t *args = sample.args, *calls = sample.calls;
    (void)state;
    expect_corrupt(args[SI_KERNEL] + 12, 4, 912,
                   "plan \"forward\", instruction 0: argument 3 is value 912 of 15");
    expect_corrupt(args[SI_DELEGATE], 4, (uint64_t)INT32_MIN,
                   "plan \"forward\", instruction 1: argument 0 is value -2147483648 of 15");
    expect_corrupt_field(calls[SI_KERNEL], 0, 4, 1, "instruction 0: op_index: 1 of 1");
    expect_corrupt_field(calls[SI_KERNEL], 0, 4, UINT32_MAX, "op_index: -1 of 1");
    expect_corrupt_field(calls[SI_DELEGATE], 0, 4, 5, "instruction 1: delegate_index: 5 of 1");
    expect_corrupt_without(calls[SI_KERNEL], 1, "instruction 0: args: missing");
    expect_corrupt_field(sample.instrs[SI_FREE], 0, 1, 6, "instr_args: tag 6, expected 1 to 5");
    expect_corrupt_field(sample.instrs[SI_FREE], 0, 1, 0, "tag is 0 but there is a table");
    expect_corrupt_field(calls[SI_JUMP], 0, 4, SV_STRING, "condition is of kind string");
    expect_corrupt_field(calls[SI_JUMP], 0, 4, SV_INPUT, "condition is of kind tensor");
    expect_corrupt_field(calls[SI_JUMP], 1, 4, SI_COUNT + 1, "destination_instruction: 6");
    expect_corrupt_field(calls[SI_JUMP], 1, 4, UINT32_MAX, "destination_instruction: -1");
    expect_corrupt_field(calls[SI_MOVE], 0, 4, 99, "instruction 3: argument 0 is value 99");
    expect_corrupt_field(calls[SI_MOVE], 0, 4, SV_INT, "moves a value of kind int over one");
    expect_corrupt_field(calls[SI_MOVE], 1, 4, SV_CONSTANT, "moves over a constant");
    expect_corrupt_field(calls[SI_FREE], 0, 4, SV_INT, "frees a value of kind int");
    expect_corrupt_field(calls[SI_FREE], 0, 4, SV_INPUT, "neither constant nor planned");
    expect_corrupt_field(calls[SI_FREE], 0, 4, SV_CONSTANT, "neither constant nor planned");
}

static void test_values(void **state)
{
    const size_t *items = sample.items;
    (void)state;
    expect_corrupt_field(sample.entries[SV_INT], 0, 1, 0, "value 1: val: the tag is 0");
    expect_corrupt_field(sample.entries[SV_INT], 0, 1, 12, "value 1: val: tag 12");
    expect_corrupt_without(sample.entries[SV_INT], 1, "value 1: val: the tag is 2 but");
    expect_corrupt(items[SV_INT_LIST], 8, UINT64_MAX, "value 5: item 0 is value -1 of 15");
    expect_corrupt(items[SV_INT_LIST], 8, UINT64_C(1) << 32, "item 0 is value 4294967296 of 15");
    expect_corrupt(items[SV_INT_LIST] + 8, 8, SV_INT_LIST,
                   "item 1 is value 5, of kind int list, expected int");
    expect_corrupt(items[SV_TENSOR_LIST] + 4, 4, UINT32_MAX, "value 6: item 1 is value -1");
    expect_corrupt(items[SV_TENSOR_LIST], 4, SV_INT, "of kind int, expected tensor");
    expect_corrupt(items[SV_OPTIONAL_LIST], 4, (uint32_t)-2, "value 7: item 0 is value -2");
    expect_corrupt(items[SV_OPTIONAL_LIST], 4, SV_BOOL, "of kind bool, expected tensor");
    expect_corrupt_without(sample.values[SV_STRING], 0, "string_val: missing");
    expect_corrupt_without(sample.values[SV_BOOL_LIST], 0, "value 12: items: missing");
}

static void test_tensors(void **state)
{
    size_t tensor = sample.values[SV_INPUT], sizes = sample.sizes[SV_INPUT];
    (void)state;
    expect_corrupt_field(tensor, 0, 1, 30, "value 0: scalar_type: 30");
    expect_corrupt_field(tensor, 0, 1, 0xff, "scalar_type: -1");
    expect_corrupt_field(tensor, 1, 4, 4, "storage_offset: 4");
    expect_corrupt_field(tensor, 8, 1, 3, "shape_dynamism: 3");
    expect_corrupt_without(tensor, 2, "sizes: missing");
    expect_corrupt_without(tensor, 3, "dim_order: 0 entries for 2 dims");
    expect_corrupt(sizes, 4, UINT32_MAX, "sizes: dim 0 is -1");
    expect_corrupt(sizes, 8, 0x7fffffff7fffffff, "has too many bytes");
    expect_corrupt(sizes - 4, 4, 17, "sizes: 17 dims");
    expect_corrupt(sizes - 4, 4, 1, "dim_order: 2 entries for 1 dims");
    expect_corrupt(sample.dim_orders[SV_INPUT] + 1, 1, 2, "dim_order: entry 1 is 2");
    expect_corrupt(sample.dim_orders[SV_INPUT] + 1, 1, 0, "dim_order: entry 1 is 0");
}

static void test_tensor_bytes(void **state)
{
    size_t constant = sample.values[SV_CONSTANT], allocation = sample.allocations[SV_INPUT];
    (void)state;
    expect_corrupt_field(allocation, 0, 4, 0, "memory_id: 0, expected 1 to 1");
    expect_corrupt_field(allocation, 0, 4, 2, "memory_id: 2, expected 1 to 1");
    expect_corrupt_field(allocation, 1, 4, 68, "24 bytes at 68 of memory 1, which has 88");
    expect_corrupt_field(allocation, 1, 4, 2, "memory_offset: 2 is not aligned for f32");
    expect_corrupt_field(allocation, 2, 4, UINT32_MAX, "memory_offset: 24 bytes at");
    expect_corrupt(sample.sizes[SV_CONSTANT], 4, 100, "constant 1 is 1200 bytes at 16");
    expect_corrupt(sample.constant_offsets + 8, 8, UINT64_MAX, "constant 1 is 24 bytes at");
    expect_corrupt(sample.constant_offsets + 8, 8, 41, "24 bytes at 41 of a segment of 64");
    expect_corrupt_field(constant, 5, 4, 2, "data_buffer_idx: constant 2 of 2");
    expect_corrupt(sample.mutable_offsets + 8, 8, 9, "value 13: data_buffer_idx: constant 1 is");
    expect_corrupt_field(sample.values[SV_STATE], 5, 4, 7, "constant 7 of 2");
    expect_corrupt_field(sample.state_extra, 0, 8, 1, "mutable_data_segments_idx: 1, expected 0");
    expect_corrupt_field(sample.state_extra, 2, 1, 2, "location: 2");
    sample_set(&sample, sample.state_extra, 2, 1, 1);
    sample_remove(&sample, sample.state_extra, 1);
    expect_refused(ST_CORRUPT, "fully_qualified_name: missing for an external tensor");
}

static void test_inline_constants(void **state)
{
    (void)state;
    sample_make(&sample, SAMPLE_INLINE);
    expect_corrupt(sample.sizes[SV_CONSTANT], 4, 3, "constant 1 has 24 bytes, expected 36");
    expect_corrupt_field(sample.values[SV_CONSTANT], 5, 4, 2, "constant 2 of 2");
    expect_corrupt_field(sample.processed, 1, 4, 1, "inline payload 1 of 1");
}

/* Replaces a data file: returns |user|, unless the key is another one. */
static enum status look_up(void *user, const char *key, const struct pte_named_data **out_data,
                           struct error *lookup_err)
{
    if (!user || strcmp(key, "module.state") != 0) {
        return error_set(lookup_err, ST_NOT_FOUND, "nobody has '%s'", key);
    }
    *out_data = user;
    return ST_OK;
}

/* Links the sample's state to |data|. Returns ST_OK or the error. */
static void check_link(const struct pte_named_data *data, enum status code, const char *text)
{
    struct pte_program *program;
    uint8_t *copy;
    struct pte_named_data given = data ? *data : (struct pte_named_data){.key = ""};
    assert_ok(err, try_parse(&sample.writer, &program, &copy));
    const struct pte_plan *plan = method_of(program, 0);
    const struct pte_tensor *tensor = plan->values[SV_STATE].tensor;
    assert_true(tensor->is_external);
    assert_int_equal(tensor->storage, PTE_PLANNED);
    assert_null(tensor->bytes.ptr);
    assert_ok(err, pte_link(program, look_up, data ? &given : NULL, &err));
    if (code != ST_OK) {
        assert_int_equal(plan->failure->code, code);
        assert_string_equal(plan->failure->text, text);
    } else {
        assert_null(plan->failure);
        assert_ptr_equal(tensor->bytes.ptr, given.bytes.ptr);
        assert_int_equal(tensor->bytes.len, 24);
    }
    pte_free(program);
    free(copy);
}

static void test_external_tensors(void **state)
{
    static const uint8_t bytes[32];
    (void)state;
    sample_set(&sample, sample.state_extra, 2, 1, 1);
    struct pte_layout layout = {6, {.rank = 2, .dims = {2, 3}}, {0, 1}};
    struct pte_named_data data = {"module.state", span_of(bytes, sizeof(bytes)), &layout};
    check_link(&data, ST_OK, NULL);
    check_link(NULL, ST_NOT_FOUND, "nobody has 'module.state'");
    data.bytes.len = 23;
    check_link(&data, ST_CORRUPT, "'module.state' is stored with 23 bytes, expected 24");
    data.bytes.len = 24;
    layout.dim_order[0] = 1;
    layout.dim_order[1] = 0;
    check_link(&data, ST_CORRUPT, "'module.state' is stored in another order of dims");
    layout.shape.dims[0] = 3;
    check_link(&data, ST_CORRUPT,
               "'module.state' is stored as type 6 [3,3], the program wants type 6 [2,3]");
    layout.shape.dims[0] = 2;
    layout.scalar_type = 3;
    check_link(&data, ST_CORRUPT,
               "'module.state' is stored as type 3 [2,3], the program wants type 6 [2,3]");
    data.layout = NULL;
    check_link(&data, ST_CORRUPT, "'module.state' is stored without a layout, so as no tensor");
}

static void test_constant_inputs(void **state)
{
    (void)state;
    writer_put(&sample.writer, sample.inputs, SV_CONSTANT, 4);
    expect_refused(ST_CORRUPT, "a constant tensor");
}

static void test_unsupported_concerns_one_method(void **state)
{
    (void)state;
    expect_unsupported(sample.values[SV_STATE], 0, 1, 12, "element type 12 (quantized)");
    expect_unsupported(sample.values[SV_INPUT], 7, 1, 1, "layout 1");
    expect_unsupported(sample.state_extra, 3, 1, 1, "tensors on device type 1");
    expect_unsupported(sample.buffer_device, 1, 1, 1, "planned for device type 1");
}

/* The kinds of the inputs and outputs of "forward", for this input and this first output. */
static void expect_expanded(uint32_t input, uint32_t output, uint32_t input_count,
                            const enum pte_kind *inputs, uint32_t output_count,
                            const enum pte_kind *outputs)
{
    struct sample good = sample;
    struct pte_program *program;
    uint8_t *copy;
    writer_put(&sample.writer, sample.inputs, input, 4);
    writer_put(&sample.writer, sample.outputs, output, 4);
    assert_ok(err, try_parse(&sample.writer, &program, &copy));
    const struct pte_plan *plan = method_of(program, 0);
    assert_null(plan->failure);
    assert_int_equal(plan->input_count, input_count);
    assert_int_equal(plan->output_count, output_count);
    for (uint32_t i = 0; i < input_count; i++) {
        assert_int_equal(plan->values[plan->inputs[i]].kind, inputs[i]);
    }
    for (uint32_t i = 0; i < output_count; i++) {
        assert_int_equal(plan->values[plan->outputs[i]].kind, outputs[i]);
    }
    pte_free(program);
    free(copy);
    sample = good;
}

/* Lists among inputs and outputs are replaced by their items. A string follows the outputs. */
static void test_lists_are_expanded(void **state)
{
    (void)state;
    expect_expanded(SV_INT_LIST, SV_DOUBLE_LIST, 2, (enum pte_kind[]){PTE_INT, PTE_INT}, 3,
                    (enum pte_kind[]){PTE_DOUBLE, PTE_DOUBLE, PTE_STRING});
    expect_expanded(SV_OPTIONAL_LIST, SV_BOOL_LIST, 3,
                    (enum pte_kind[]){PTE_NULL, PTE_TENSOR, PTE_NULL}, 4,
                    (enum pte_kind[]){PTE_BOOL, PTE_BOOL, PTE_BOOL, PTE_STRING});
    expect_expanded(SV_TENSOR_LIST, SV_INT_LIST, 2, (enum pte_kind[]){PTE_TENSOR, PTE_TENSOR}, 3,
                    (enum pte_kind[]){PTE_INT, PTE_INT, PTE_STRING});
    expect_expanded(SV_DOUBLE_LIST, SV_OPTIONAL_LIST, 2, (enum pte_kind[]){PTE_DOUBLE, PTE_DOUBLE},
                    4, (enum pte_kind[]){PTE_NULL, PTE_TENSOR, PTE_NULL, PTE_STRING});
    writer_put(&sample.writer, sample.items[SV_TENSOR_LIST], SV_CONSTANT, 4);
    writer_put(&sample.writer, sample.inputs, SV_TENSOR_LIST, 4);
    expect_refused(ST_CORRUPT, "input 0 is value");
}

/* Damage after something unsupported is found as well. */
static void test_unsupported_hides_no_damage(void **state)
{
    (void)state;
    sample_set(&sample, sample.values[SV_STATE], 0, 12, 1);
    expect_corrupt(sample.constant_offsets + 8, 8, 41, "24 bytes at 41 of a segment of 64");
    expect_corrupt(sample.args[SI_KERNEL], 4, 15, "instruction 0: argument 0 is value 15 of 15");
}

/* A few bytes that describe much content: all keys share one string, all entries share one plan. */
static void test_sharing_is_bounded(void **state)
{
    struct writer *w = &sample.writer;
    (void)state;
    memset(&sample, 0, sizeof(sample));
    writer_add(w, "\0\0\0\0ET12", 8);
    size_t root = writer_child(w, 0, "44444444");
    for (size_t id = 2; id < 8; id++) {
        sample_remove(&sample, root, id);
    }
    sample_remove(&sample, root, 0);
    size_t plans = writer_vector(w, writer_field(w, root, 1), 1, 4);
    size_t plan = writer_child(w, plans, "4044444");
    writer_string(w, writer_field(w, plan, 0), "forward");
    for (size_t id = 3; id <= 6; id++) {
        writer_vector(w, writer_field(w, plan, id), 0, 4);
    }
    size_t values = writer_vector(w, writer_field(w, plan, 2), 3000, 4);
    size_t list = writer_table(w, "14");
    writer_put(w, writer_field(w, list, 0), 9, 1);
    for (size_t i = 0; i < 3000; i++) {
        writer_link(w, values + 4 * i, list);
    }
    writer_vector(w, writer_field(w, writer_child(w, writer_field(w, list, 1), "4"), 0), 400, 1);
    writer_pad(w, 4);
    expect_refused(ST_CORRUPT, "shared over and over");
}

static void test_prints_a_listing(void **state)
{
    static const char *const parts[] = {
        "extended header: 32 bytes\n",
        "segment 1: 32 bytes at ",
        "constants: 2 in a segment, 0 inline, 2 initial states\n",
        "named data \"weights\": 64 bytes\n",
        "method \"forward\"\n",
        "  input 0: value 0, f32[2,3] memory 1 at 0\n",
        "  output 0: value 13, f32[2,3] memory 1 at 64 initial state \"module.state\"\n",
        "  output 1: value 10, string of 5 bytes\n",
        "  values: 15, 1 null, 1 int, 1 bool, 1 double, 1 string, 5 tensor, 1 int list",
        "  instructions: 5, 1 kernel call, 1 delegate call, 1 move, 1 jump if false, 1 free\n",
        "  operator aten::add.out: 1 calls\n",
        "  delegate TestBackend: 1 calls, 32 bytes, 1 options\n",
        "  memory 1: 88 bytes\n",
        "method \"width\"\n",
        "  output 0: value 0, int 64\n",
    };
    struct pte_program *program;
    struct buf listing;
    uint8_t *copy;
    (void)state;
    writer_put(&sample.writer, sample.outputs, SV_STATE, 4);
    assert_ok(err, try_parse(&sample.writer, &program, &copy));
    buf_init(&listing, 1 << 16);
    pte_print(program, &listing);
    buf_add_char(&listing, '\0');
    assert_false(buf_failed(&listing));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!strstr((char *)listing.ptr, parts[i])) {
            fail_msg("'%s' is not in the listing:\n%s", parts[i], (char *)listing.ptr);
        }
    }
    buf_fini(&listing);
    pte_free(program);
    free(copy);
}

static void test_opens_regular_files_only(void **state)
{
    char path[] = "/tmp/test_pte.XXXXXX";
    struct pte_program *program;
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_fails(err, pte_open(path, PTE_FILE_GUARDED, &program, &err), ST_CORRUPT,
                 ": the file is empty, expected a program or data");
    assert_int_equal(write(fd, sample.writer.bytes, sample.writer.len), sample.writer.len);
    assert_ok(err, pte_open(path, PTE_FILE_GUARDED, &program, &err));
    check_plan(method_of(program, 0));
    pte_free(program);
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_fails(err, pte_open(path, PTE_FILE_GUARDED, &program, &err), ST_CORRUPT, path);
    close(fd);
    unlink(path);
    assert_fails(err, pte_open(path, PTE_FILE_GUARDED, &program, &err), ST_NOT_FOUND, path);
    assert_fails(err, pte_open("/", PTE_FILE_GUARDED, &program, &err), ST_INVALID,
                 "is a directory");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_fails(err, pte_open(path, PTE_FILE_GUARDED, &program, &err), ST_INVALID,
                 "not a regular file");
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_reads_programs_of_every_age, setup),
        cmocka_unit_test_setup(test_named_data, setup),
        cmocka_unit_test_setup(test_trailing_bytes_are_ignored, setup),
        cmocka_unit_test_setup(test_truncated_everywhere, setup),
        cmocka_unit_test_setup(test_names_related_formats, setup),
        cmocka_unit_test_setup(test_truncation_says_how_much_is_there, setup),
        cmocka_unit_test_setup(test_header_versions, setup),
        cmocka_unit_test_setup(test_extended_header, setup),
        cmocka_unit_test_setup(test_segments, setup),
        cmocka_unit_test_setup(test_method_names, setup),
        cmocka_unit_test_setup(test_plans, setup),
        cmocka_unit_test_setup(test_instructions, setup),
        cmocka_unit_test_setup(test_values, setup),
        cmocka_unit_test_setup(test_tensors, setup),
        cmocka_unit_test_setup(test_tensor_bytes, setup),
        cmocka_unit_test_setup(test_inline_constants, setup),
        cmocka_unit_test_setup(test_external_tensors, setup),
        cmocka_unit_test_setup(test_constant_inputs, setup),
        cmocka_unit_test_setup(test_lists_are_expanded, setup),
        cmocka_unit_test_setup(test_unsupported_concerns_one_method, setup),
        cmocka_unit_test_setup(test_unsupported_hides_no_damage, setup),
        cmocka_unit_test_setup(test_sharing_is_bounded, setup),
        cmocka_unit_test_setup(test_prints_a_listing, setup),
        cmocka_unit_test_setup(test_opens_regular_files_only, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
