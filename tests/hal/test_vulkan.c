/* SPDX-License-Identifier: MIT */
/* Tests that the suite cannot make with every device: memory in blocks, and compiled kernels on
 * disk. */
#include "config.h"

#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/kernel.h"

#define SKIP 77
#define BUFFERS 200

static struct hal_device *open_device(const char *cache_directory)
{
    struct error err;
    struct hal_device *device = NULL;
    const struct hal_device_options options = {.cache_directory = cache_directory};
    assert_ok(err, hal_device_open("vulkan", &options, &device, &err));
    return device;
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* Each buffer keeps its own bytes while others come and go around it, and begins as zeros. */
static void test_ranges_do_not_meet(void **state)
{
    struct hal_buffer *buffers[BUFFERS] = {NULL};
    uint32_t random = 1;
    (void)state;
    struct hal_device *device = open_device(NULL);
    for (unsigned turn = 0; turn < 5000; turn++) {
        unsigned i = next(&random) % BUFFERS;
        if (buffers[i]) {
            const uint8_t *host = hal_buffer_map(buffers[i]);
            size_t size = hal_buffer_size(buffers[i]);
            assert_int_equal(host[0], i);
            assert_int_equal(host[size / 2], i);
            assert_int_equal(host[size - 1], i);
            hal_buffer_unref(buffers[i]);
            buffers[i] = NULL;
            continue;
        }
        struct error err;
        size_t size = 1 + next(&random) % (turn % 64 == 0 ? 6000000 : 300000);
        assert_ok(err, hal_buffer_new(device, size, &buffers[i], &err));
        uint8_t *host = hal_buffer_map(buffers[i]);
        assert_int_equal((uintptr_t)host % hal_device_props(device)->buffer_align, 0);
        assert_int_equal(host[0] | host[size / 2] | host[size - 1], 0);
        memset(host, (int)i, size);
    }
    for (unsigned i = 0; i < BUFFERS; i++) {
        hal_buffer_unref(buffers[i]);
    }
    hal_device_unref(device);
}

/* Makes the device compile a kernel: the one for copies. */
static void compile_something(struct hal_device *device)
{
    struct error err;
    struct hal_command *command;
    struct hal_buffer *buffer;
    assert_ok(err, hal_buffer_new(device, 512, &buffer, &err));
    assert_ok(err, hal_command_new(device, 0, &command, &err));
    const struct hal_binding from = {.buffer = buffer, .length = 32};
    const struct hal_binding to = {.buffer = buffer, .offset = 256, .length = 32};
    assert_ok(err, hal_command_copy(command, from, to, &err));
    assert_ok(err, hal_command_end(command, &err));
    hal_command_unref(command);
    hal_buffer_unref(buffer);
}

/* The name of the only file in |directory|; false when there is none. */
static bool only_file(const char *directory, char *out_path, size_t size)
{
    bool found = false;
    DIR *listing = opendir(directory);
    assert_non_null(listing);
    for (const struct dirent *entry; (entry = readdir(listing));) {
        if (entry->d_name[0] != '.') {
            assert_false(found);
            found = true;
            snprintf(out_path, size, "%s/%s", directory, entry->d_name);
        }
    }
    closedir(listing);
    return found;
}

static void test_kernels_are_kept(void **state)
{
    char directory[] = "/tmp/pted-test-XXXXXX", path[512];
    (void)state;
    assert_non_null(mkdtemp(directory));
    struct hal_device *device = open_device(directory);
    hal_device_unref(device);
    assert_false(only_file(directory, path, sizeof(path))); /* nothing was compiled */
    for (int turn = 0; turn < 3; turn++) {
        device = open_device(directory);
        compile_something(device);
        hal_device_unref(device);
        assert_true(only_file(directory, path, sizeof(path)));
        if (turn == 1) { /* a damaged file is no reason to fail */
            FILE *file = fopen(path, "w");
            assert_non_null(file);
            assert_int_equal(fputs("not a pipeline cache, but longer than its header", file) < 0,
                             0);
            assert_int_equal(fclose(file), 0);
        }
    }
    assert_int_equal(unlink(path), 0);
    device = open_device("/nonexistent/directory");
    compile_something(device);
    hal_device_unref(device);
    assert_int_equal(rmdir(directory), 0);
}

static void test_open_refuses(void **state)
{
    struct error err;
    struct hal_device *device;
    (void)state;
    assert_fails(err, hal_device_open("vulkan:99", NULL, &device, &err), ST_UNSUPPORTED,
                 "vulkan:99: the machine has");
    assert_fails(err, hal_device_open("vulkan:", NULL, &device, &err), ST_NOT_FOUND, "'vulkan:'");
    assert_fails(err, hal_device_open("vulkan:0x", NULL, &device, &err), ST_NOT_FOUND, "0x");
    assert_fails(err, hal_device_open("vulkan:-1", NULL, &device, &err), ST_NOT_FOUND, "-1");
}

/* Of forms best first, a device gets the first that it has everything for. */
static void test_forms(void **state)
{
    static const uint32_t words[3];
    const struct hal_kernel kernel = {.spirv = {HAL_SPIRV_FORM(words, HAL_GPU | HAL_F16),
                                                HAL_SPIRV_FORM(words, HAL_GPU),
                                                HAL_SPIRV_FORM(words, HAL_SUBGROUPS)}};
    const struct hal_kernel plain = {.spirv = HAL_SPIRV(words)}, none = {.name = "none"};
    (void)state;
    assert_ptr_equal(hal_kernel_spirv(&kernel, ~0u), &kernel.spirv[0]);
    assert_ptr_equal(hal_kernel_spirv(&kernel, HAL_GPU | HAL_SUBGROUPS), &kernel.spirv[1]);
    assert_ptr_equal(hal_kernel_spirv(&kernel, HAL_F16 | HAL_SUBGROUPS), &kernel.spirv[2]);
    assert_null(hal_kernel_spirv(&kernel, HAL_F16 | HAL_F64));
    assert_ptr_equal(hal_kernel_spirv(&plain, 0), &plain.spirv[0]);
    assert_null(hal_kernel_spirv(&none, ~0u));
    assert_false(hal_kernel_has_spirv(&none));
}

/* The environment takes capabilities away and gives those that do not pay, but none that is not
 * there. */
static void test_capabilities(void **state)
{
    const char *inherited = getenv("PTED_VULKAN_CAPABILITIES");
    char *saved = inherited ? strdup(inherited) : NULL;
    static const char *const wanted[] = {"-all", "-all,+gpu", "+all", "-gpu,+,-nonsense,,+gpu"};
    uint32_t has[4];
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(setenv("PTED_VULKAN_CAPABILITIES", wanted[i], 1), 0);
        struct hal_device *device = open_device(NULL);
        has[i] = hal_device_props(device)->capabilities;
        hal_device_unref(device);
    }
    if (saved) {
        setenv("PTED_VULKAN_CAPABILITIES", saved, 1);
        free(saved);
    } else {
        unsetenv("PTED_VULKAN_CAPABILITIES");
    }
    assert_int_equal(has[0], 0);
    assert_int_equal(has[1], HAL_GPU);
    assert_int_equal(has[2] & HAL_GPU, HAL_GPU);
    assert_int_equal(has[3] & HAL_GPU, HAL_GPU);
    assert_int_equal(has[3] & ~has[2], 0);
}

int main(void)
{
    struct error err;
    struct hal_device *device;
    if (hal_device_open("vulkan", NULL, &device, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return SKIP;
    }
    hal_device_unref(device);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_refuses),     cmocka_unit_test(test_forms),
        cmocka_unit_test(test_capabilities),     cmocka_unit_test(test_ranges_do_not_meet),
        cmocka_unit_test(test_kernels_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
