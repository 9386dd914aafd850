/* SPDX-License-Identifier: MIT */
/*
 * Outcomes and their explanations.
 *
 * Every function that can fail returns an enum status and takes a struct error last. The text is
 * written once, by the function that knows what is wrong; callers may put a prefix before it and
 * never reword it. A struct error lives on the stack or in a request and owns nothing.
 */
#ifndef PTED_BASE_STATUS_H
#define PTED_BASE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

enum status {
#define STATUS(name, text) ST_##name,
#include "base/status.def"
#undef STATUS
    STATUS_COUNT
};

#define ERROR_TEXT_MAX 320

struct error {
    enum status code;
    char text[ERROR_TEXT_MAX]; /* always terminated; cut, never overrun */
    size_t hidden_len;         /* bytes at its end that logs leave out, see error_hide() */
};

#define MUST_CHECK __attribute__((warn_unused_result))

/* Stores |code| and the formatted reason in |err|; returns |code|. |err| may be NULL. */
enum status error_set(struct error *err, enum status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
enum status error_setv(struct error *err, enum status code, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Says "no memory for WHAT", where |what| and what follows are formatted: the heap has not given
 * enough. Returns ST_EXHAUSTED. |err| may be NULL. */
enum status error_no_memory(struct error *err, const char *what, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts a formatted prefix in front of the text in |err|; returns the code in |err|. */
enum status error_prefix(struct error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Call if the text in |err| quotes what a client has written, such as a message of a chat. The
 * client is told it; logs and traces leave it out, but not a prefix that comes later. Returns the
 * code in |err|. */
enum status error_hide(struct error *err);

/* Returns the text for logs and traces, in |out|. */
const char *error_log_text(const struct error *err, char out[ERROR_TEXT_MAX]);

/* Returns the status that stands for an errno of the C library. */
enum status status_of_errno(int number);

/* Returns a general text for |code|, for callers that have no better one. */
const char *status_text(enum status code);

/* Returns from the function if |expr| is not ST_OK. Use it only where there is nothing to clean up.
 */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        enum status try_status_ = (expr);                                                          \
        if (try_status_ != ST_OK) {                                                                \
            return try_status_;                                                                    \
        }                                                                                          \
    } while (0)

#endif
