/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/lib/support.h"

#include <stdio.h>
#include <stdlib.h>

struct pted_error err;
struct pted_device *device;
float ones[6] = {1, 1, 1, 1, 1, 1}, digits[6] = {0, 1, 2, 3, 4, 5};
static const int64_t add_dims[] = {2, 3};

const char *path_of(const char *model, char path[PATH_BYTES])
{
    const char *top = getenv("top_srcdir");
    snprintf(path, PATH_BYTES, "%s/tests/models/%s", top ? top : ".", model);
    return path;
}

struct pted_program *load(const char *model)
{
    char path[PATH_BYTES];
    struct pted_program *program;
    assert_ok(pted_program_load(device, path_of(model, path), NULL, &program, &err));
    return program;
}

const struct pted_method *find(const struct pted_program *program, const char *name)
{
    const struct pted_method *method;
    assert_ok(pted_program_find_method(program, name, &method, &err));
    return method;
}

struct pted_call *new_call(const struct pted_method *method)
{
    struct pted_call *call;
    assert_ok(pted_call_new(method, &call, &err));
    return call;
}

struct pted_tensor tensor_of(void *data, size_t bytes, enum pted_dtype dtype, uint32_t rank,
                             const int64_t *dims)
{
    return (struct pted_tensor){
        .data = data, .bytes = bytes, .dtype = dtype, .rank = rank, .dims = dims};
}

const float *output(const struct pted_call *call, size_t index)
{
    struct pted_tensor tensor;
    assert_ok(pted_call_output(call, index, &tensor, &err));
    assert_int_equal(tensor.dtype, PTED_FLOAT32);
    return tensor.data;
}

struct pted_tensor add_tensor(float *data)
{
    return tensor_of(data, 6 * sizeof(float), PTED_FLOAT32, 2, add_dims);
}

void fill_add(struct pted_call *call)
{
    struct pted_tensor a = add_tensor(digits), b = add_tensor(ones);
    assert_ok(pted_call_copy_input(call, 0, &a, &err));
    assert_ok(pted_call_borrow_input(call, 1, &b, &err));
}

void check_add(const struct pted_call *call)
{
    const float *sums = output(call, 0);
    for (int i = 0; i < 6; i++) {
        assert_true(sums[i] == (float)i + 1);
    }
}

int open_shared_device(void **state)
{
    struct pted_device_options options = PTED_DEVICE_OPTIONS_INIT;
    (void)state;
    options.workers = 2;
    return pted_device_open(&options, &device, NULL) == PTED_OK ? 0 : -1;
}

int close_shared_device(void **state)
{
    (void)state;
    pted_device_free(device);
    return 0;
}
