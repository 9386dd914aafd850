/* SPDX-License-Identifier: MIT */
/*
 * Compares real programs with the facts that the exporter's own tools print. NAME.json beside
 * NAME.pte has a "program" object with the operators of each method and the numbers of their calls.
 * Those of the shared corpus also have counts of instructions, values and segments, and the memory.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/pte/pte_priv.h"

#define PATH_BYTES 4096
#define FACTS_BYTES_MAX (8u << 20)

static void print_path(char path[PATH_BYTES], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void print_path(char path[PATH_BYTES], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(path, PATH_BYTES, fmt, args);
    va_end(args);
    assert_between(len, 1, PATH_BYTES - 1);
}

static cJSON *read_json(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        return NULL;
    }
    char *text = malloc(FACTS_BYTES_MAX);
    assert_non_null(text);
    size_t len = fread(text, 1, FACTS_BYTES_MAX, file);
    fclose(file);
    cJSON *json = cJSON_ParseWithLength(text, len);
    free(text);
    assert_non_null(json);
    return json;
}

static uint64_t number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return item ? (uint64_t)item->valuedouble : 0;
}

/* The sum of an object's numbers. */
static uint64_t total(const cJSON *object)
{
    const cJSON *item;
    uint64_t sum = 0;
    cJSON_ArrayForEach(item, object)
    {
        sum += (uint64_t)item->valuedouble;
    }
    return sum;
}

static void check_segments(const struct pte_program *program, const cJSON *facts)
{
    const cJSON *segments = cJSON_GetObjectItem(facts, "segments");
    assert_int_equal(program->container.flatbuffer.len, number(facts, "flatbuffer_size"));
    assert_int_equal(program->container.header_bytes != 0,
                     cJSON_IsTrue(cJSON_GetObjectItem(facts, "extended_header")));
    assert_int_equal(program->segment_count, cJSON_GetArraySize(segments));
    for (int i = 0; i < cJSON_GetArraySize(segments); i++) {
        const struct pte_segment *segment = &program->segments[i];
        const cJSON *want = cJSON_GetArrayItem(segments, i);
        assert_int_equal(segment->bytes.len, number(want, "size"));
        assert_int_equal(program->container.segment_base + segment->offset, number(want, "offset"));
        if (segment->bytes.len) {
            assert_int_equal(segment->bytes.ptr - program->file.bytes.ptr, number(want, "offset"));
        }
    }
    uint64_t constants = number(facts, "constants");
    assert_int_equal(program->segment_constant_count, constants > 1 ? constants : 0);
    assert_int_equal(program->inline_constant_count, number(facts, "inline_constants"));
    assert_int_equal(program->named.count, number(facts, "named_data"));
}

static void check_values(const struct pte_plan *plan, const cJSON *facts)
{
    static const char *const names[PTE_KIND_COUNT] = {
        [PTE_NULL] = "Null",
        [PTE_INT] = "Int",
        [PTE_BOOL] = "Bool",
        [PTE_DOUBLE] = "Double",
        [PTE_STRING] = "String",
        [PTE_TENSOR] = "Tensor",
        [PTE_INT_LIST] = "IntList",
        [PTE_DOUBLE_LIST] = "DoubleList",
        [PTE_BOOL_LIST] = "BoolList",
        [PTE_TENSOR_LIST] = "TensorList",
        [PTE_OPTIONAL_TENSOR_LIST] = "OptionalTensorList",
    };
    uint64_t counts[PTE_KIND_COUNT] = {0}, dynamic = 0, external = 0;
    for (uint32_t i = 0; i < plan->value_count; i++) {
        const struct pte_value *value = &plan->values[i];
        counts[value->kind]++;
        if (value->kind == PTE_TENSOR) {
            dynamic += value->tensor->dynamism == PTE_DYNAMIC_BOUND;
            external += value->tensor->is_external;
        }
    }
    const cJSON *want = cJSON_GetObjectItem(facts, "values");
    for (int kind = 0; kind < PTE_KIND_COUNT; kind++) {
        assert_int_equal(counts[kind], number(want, names[kind]));
    }
    assert_int_equal(plan->value_count, total(want));
    assert_int_equal(dynamic, number(facts, "dynamic_tensors"));
    assert_int_equal(external, number(facts, "external_tensors"));
}

static void check_operators(const struct pte_plan *plan, const cJSON *facts)
{
    cJSON *calls = cJSON_CreateObject();
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        if (plan->instrs[i].kind == PTE_KERNEL) {
            const char *name = plan->operators[plan->instrs[i].index];
            uint64_t before = number(calls, name);
            cJSON_DeleteItemFromObjectCaseSensitive(calls, name);
            cJSON_AddNumberToObject(calls, name, (double)before + 1);
        }
    }
    assert_true(cJSON_Compare(calls, cJSON_GetObjectItem(facts, "operators"), true));
    cJSON_Delete(calls);
}

static void check_instrs(const struct pte_plan *plan, const cJSON *facts)
{
    static const char *const names[] = {
        [PTE_KERNEL] = "KernelCall", [PTE_DELEGATE] = "DelegateCall",
        [PTE_MOVE] = "MoveCall",     [PTE_JUMP_FALSE] = "JumpFalseCall",
        [PTE_FREE] = "FreeCall",
    };
    uint64_t counts[sizeof(names) / sizeof(names[0])] = {0};
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        counts[plan->instrs[i].kind]++;
    }
    for (size_t kind = 0; kind < sizeof(names) / sizeof(names[0]); kind++) {
        assert_int_equal(counts[kind],
                         number(cJSON_GetObjectItem(facts, "instructions"), names[kind]));
    }
}

static void check_delegates(const struct pte_plan *plan, const cJSON *facts)
{
    const cJSON *delegates = cJSON_GetObjectItem(facts, "delegates");
    assert_int_equal(plan->delegate_count, cJSON_GetArraySize(delegates));
    for (uint32_t i = 0; i < plan->delegate_count; i++) {
        const struct pte_delegate *delegate = &plan->delegates[i];
        const cJSON *want = cJSON_GetArrayItem(delegates, (int)i);
        assert_string_equal(delegate->id, cJSON_GetObjectItem(want, "id")->valuestring);
        assert_int_equal(delegate->payload.len, number(want, "size"));
        const cJSON *specs = cJSON_GetObjectItem(want, "compile_specs");
        for (uint32_t k = 0; k < delegate->spec_count; k++) {
            const struct pte_compile_spec *spec = &delegate->specs[k];
            const cJSON *value = cJSON_GetObjectItemCaseSensitive(specs, spec->key);
            assert_int_equal(spec->value.len, cJSON_GetArraySize(value));
        }
    }
}

static void check_plan(const struct pte_plan *plan, const cJSON *facts)
{
    const cJSON *memory = cJSON_GetObjectItem(facts, "memory");
    check_values(plan, facts);
    check_instrs(plan, facts);
    check_delegates(plan, facts);
    assert_int_equal(plan->memory_count + 1, cJSON_GetArraySize(memory));
    for (uint32_t i = 0; i < plan->memory_count; i++) {
        assert_int_equal(plan->memory_bytes[i],
                         (uint64_t)cJSON_GetArrayItem(memory, (int)i + 1)->valuedouble);
    }
    assert_string_equal(plan->encoded_inputs,
                        cJSON_GetObjectItem(facts, "encoded_inputs")->valuestring);
    assert_string_equal(plan->encoded_outputs,
                        cJSON_GetObjectItem(facts, "encoded_outputs")->valuestring);
    assert_null(plan->failure);
}

static const struct pte_plan *find_plan(const struct pte_program *program, const char *name)
{
    for (uint32_t i = 0; i < program->plan_count; i++) {
        if (strcmp(program->plans[i].name, name) == 0) {
            return &program->plans[i];
        }
    }
    return NULL;
}

static void check_program(const char *path, const cJSON *facts)
{
    const cJSON *methods = cJSON_GetObjectItem(facts, "methods"), *method;
    bool is_complete = cJSON_HasObjectItem(facts, "segments");
    struct pte_program *program;
    struct error err;
    assert_ok(err, pte_open(path, PTE_FILE_GUARDED, &program, &err));
    if (is_complete) {
        check_segments(program, facts);
        assert_int_equal(program->plan_count, cJSON_GetArraySize(methods));
    }
    cJSON_ArrayForEach(method, methods)
    {
        const struct pte_plan *plan = find_plan(program, method->string);
        assert_non_null(plan);
        check_operators(plan, method);
        if (is_complete) {
            check_plan(plan, method);
        }
    }
    struct buf listing;
    buf_init(&listing, 1u << 26);
    pte_print(program, &listing);
    assert_false(buf_failed(&listing));
    buf_fini(&listing);
    pte_free(program);
}

/* Checks every NAME.pte of |folder| that has facts. Returns their number. */
static size_t check_folder(const char *folder)
{
    char path[PATH_BYTES];
    size_t checked = 0;
    DIR *dir = opendir(folder);
    if (!dir) {
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len <= 4 || strcmp(entry->d_name + len - 4, ".pte") != 0) {
            continue;
        }
        print_path(path, "%s/%.*s.json", folder, (int)len - 4, entry->d_name);
        cJSON *json = read_json(path);
        const cJSON *facts = cJSON_GetObjectItem(json, "program");
        if (facts) {
            print_path(path, "%s/%s", folder, entry->d_name);
            print_message("%s\n", entry->d_name);
            check_program(path, facts);
            checked++;
        }
        cJSON_Delete(json);
    }
    closedir(dir);
    return checked;
}

static size_t check_below_source(const char *folder)
{
    const char *top = getenv("top_srcdir");
    char path[PATH_BYTES];
    print_path(path, "%s/%s", top ? top : ".", folder);
    return check_folder(path);
}

static void test_bundled_programs(void **state)
{
    (void)state;
    assert_true(check_below_source("tests/models") > 0);
}

static void test_shared_programs(void **state)
{
    (void)state;
    if (check_below_source("../shared/models/public") == 0) {
        print_message("skipped: there is no ../shared/models/public beside the sources\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundled_programs),
        cmocka_unit_test(test_shared_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
