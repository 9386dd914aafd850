/* SPDX-License-Identifier: MIT */
/* What cmocka wants before its header, in one place. */
#ifndef PTED_TESTS_UNIT_H
#define PTED_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"

/* None of the three is negative. The name that cmocka itself has for it changed with version 2. */
#define assert_between(value, least, most)                                                         \
    do {                                                                                           \
        uintmax_t value_ = (uintmax_t)(value);                                                     \
        if (value_ < (uintmax_t)(least) || value_ > (uintmax_t)(most)) {                           \
            fail_msg("%s is %ju, expected %s to %s", #value, value_, #least, #most);               \
        }                                                                                          \
    } while (0)

/* The call succeeds, or the test fails with the text of |err|. */
#define assert_ok(err, expr)                                                                       \
    do {                                                                                           \
        if ((expr) != ST_OK) {                                                                     \
            fail_msg("%s: %s", #expr, (err).text);                                                 \
        }                                                                                          \
    } while (0)

/* The call fails with |status|, and its text contains |part|. */
#define assert_fails(err, expr, status, part)                                                      \
    do {                                                                                           \
        assert_int_equal((expr), (status));                                                        \
        if (!strstr((err).text, (part))) {                                                         \
            fail_msg("%s: text is '%s', expected '%s' in it", #expr, (err).text, (part));          \
        }                                                                                          \
    } while (0)

#endif
