/* SPDX-License-Identifier: MIT */
/*
 * The lexical layer of function signatures: a run of components, each a tag of one byte and a
 * decimal number.
 *
 *     _ a..z   an integer:  tag, optional '-', digits                  "d-1"
 *     A..Z     a span:      tag, digits, '!', content                  "K4!foo"
 *
 * The number of a span counts the bytes of '!' and content, so that it is never 0. Nothing is
 * escaped: content may hold any byte. The content of a span is again a run of components, or plain
 * bytes; the caller knows which.
 *
 * Refused: any other tag, a number without digits, an integer beyond 64 bits, a span longer than
 * the rest of the text. Every failure is ST_INVALID and reads "byte 7: ...", counted from the
 * beginning of the whole signature. Texts are (pointer, length) and borrowed. Any thread.
 */
#ifndef PTED_PROTOCOL_SIG_H
#define PTED_PROTOCOL_SIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

#define SIG_BYTES_MAX ((size_t)1 << 30) /* so that components can be counted in 32 bits */

struct sig_reader {
    const uint8_t *start; /* of the whole signature, for positions */
    const uint8_t *at, *end;
};

struct sig_item {
    struct span text; /* the component as it is spelled; the first byte is its tag */
    char tag;
    int64_t value;       /* of an integer */
    struct span content; /* of a span, behind the '!' */
};

void sig_init(struct sig_reader *in, struct span text);

static inline bool sig_is_at_end(const struct sig_reader *in)
{
    return in->at == in->end;
}

/* Reads the next component, of any tag. */
MUST_CHECK enum status sig_next(struct sig_reader *in, struct sig_item *out, struct error *err);

/* Reads the next component, which must be a span with |tag|. */
MUST_CHECK enum status sig_expect_span(struct sig_reader *in, char tag, struct sig_item *out,
                                       struct error *err);

/* Checks that nothing is left. */
MUST_CHECK enum status sig_end(const struct sig_reader *in, struct error *err);

/* Reads the components in |span|, which |in| handed out. */
struct sig_reader sig_inside(const struct sig_reader *in, const struct sig_item *span);

/* Reports an error of the caller's about the byte at |where|. */
enum status sig_fail(const struct sig_reader *in, const uint8_t *where, struct error *err,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Splits the whole signature of a function, |text|: a span I, a span R, and nothing else. The
 * readers that it gives read their contents. */
MUST_CHECK enum status sig_split(struct span text, struct sig_reader *out_inputs,
                                 struct sig_reader *out_results, struct error *err);

/* Writes in the one canonical spelling. sig_add_head() begins a span; the caller then appends
 * exactly |content_bytes| bytes. */
void sig_add_integer(struct buf *out, char tag, int64_t value);
void sig_add_head(struct buf *out, char tag, size_t content_bytes);
void sig_add_span(struct buf *out, char tag, struct span content);

/* Returns the bytes that these append; for a span, with its content. */
size_t sig_integer_bytes(int64_t value);
size_t sig_span_bytes(size_t content_bytes);

#endif
