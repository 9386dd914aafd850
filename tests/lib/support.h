/* SPDX-License-Identifier: MIT */
/* For tests of the library: its device, programs of tests/models, calls. An unexpected failure ends
 * the test. */
#ifndef PTED_TESTS_LIB_SUPPORT_H
#define PTED_TESTS_LIB_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "lib/pted.h"

#define PATH_BYTES 512

extern struct pted_error err;
extern struct pted_device *device; /* of two workers, for tests that need no other */

#define assert_ok(expr)                                                                            \
    do {                                                                                           \
        if ((expr) != PTED_OK) {                                                                   \
            fail_msg("%s: %s", #expr, err.text);                                                   \
        }                                                                                          \
    } while (0)

#define assert_fails(expr, number, part)                                                           \
    do {                                                                                           \
        assert_int_equal((expr), (number));                                                        \
        assert_int_equal(err.status, (number));                                                    \
        if (!strstr(err.text, (part))) {                                                           \
            fail_msg("%s: text is '%s', expected '%s' in it", #expr, err.text, (part));            \
        }                                                                                          \
    } while (0)

/* The path of a file of tests/models. */
const char *path_of(const char *model, char path[PATH_BYTES]);
struct pted_program *load(const char *model);
/* NULL: the default method. */
const struct pted_method *find(const struct pted_program *program, const char *name);
struct pted_call *new_call(const struct pted_method *method);
struct pted_tensor tensor_of(void *data, size_t bytes, enum pted_dtype dtype, uint32_t rank,
                             const int64_t *dims);
/* The floats of output |index|. */
const float *output(const struct pted_call *call, size_t index);
/* add: float32[2,3] + float32[2,3]. */
extern float ones[6], digits[6];
struct pted_tensor add_tensor(float *data);
/* Adds ones to |digits|. */
void fill_add(struct pted_call *call);
void check_add(const struct pted_call *call);

/* For cmocka_run_group_tests(). */
int open_shared_device(void **state);
int close_shared_device(void **state);

#endif
