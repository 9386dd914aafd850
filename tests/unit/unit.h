/* SPDX-License-Identifier: MIT */
/* The headers that cmocka's own header needs, in one place. */
#ifndef PTED_TESTS_UNIT_H
#define PTED_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"

/* None of the three numbers is negative. cmocka's own name of this check changed in version 2. */
#define assert_between(value, least, most)                                                         \
    do {                                                                                           \
        uintmax_t value_ = (uintmax_t)(value);                                                     \
        if (value_ < (uintmax_t)(least) || value_ > (uintmax_t)(most)) {                           \
            fail_msg("%s is %ju, expected %s to %s", #value, value_, #least, #most);               \
        }                                                                                          \
    } while (0)

/* Checks that the call succeeds. Otherwise the test fails with the text of |err|. */
#define assert_ok(err, expr)                                                                       \
    do {                                                                                           \
        if ((expr) != ST_OK) {                                                                     \
            fail_msg("%s: %s", #expr, (err).text);                                                 \
        }                                                                                          \
    } while (0)

/* Checks that the call fails with |status| and that its text contains |part|. */
#define assert_fails(err, expr, status, part)                                                      \
    do {                                                                                           \
        assert_int_equal((expr), (status));                                                        \
        if (!strstr((err).text, (part))) {                                                         \
            fail_msg("%s: text is '%s', expected '%s' in it", #expr, (err).text, (part));          \
        }                                                                                          \
    } while (0)

#endif
