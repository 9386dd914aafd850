/* SPDX-License-Identifier: MIT */
/*
 * The form that a request demands of the text of an answer (response_format, guided_json,
 * guided_regex): before each token the set of tokens that may come, and behind it the move.
 *
 * Tokens that end an answer are allowed exactly where the text may end. Special tokens stand for no
 * text and are never allowed otherwise. docs/reference/grammars.md has the forms and the bounds.
 *
 * A constraint belongs to one generation and one thread at a time. Masks take milliseconds with
 * large vocabularies, so the loop may not make them.
 */
#ifndef PTED_SERVER_LANGUAGE_CONSTRAINT_H
#define PTED_SERVER_LANGUAGE_CONSTRAINT_H

#include "server/language/ask.h"
#include "server/language/generator.h"

struct constraint;

/*
 * |*out| is NULL if any text will do. Both |ask| and |generator| are borrowed and must outlive it.
 * ST_INVALID: the grammar is not understood, or is too large, with its path; ST_EXHAUSTED. Takes
 * long: it compiles the grammar, and the first call makes the generator's vocabulary.
 */
MUST_CHECK enum status constraint_new(const struct ask *ask, struct generator *generator,
                                      struct constraint **out, struct error *err);
void constraint_free(struct constraint *constraint); /* NULL is fine */

/* Call when an answer begins. ST_EXHAUSTED. */
MUST_CHECK enum status constraint_begin(struct constraint *constraint, struct error *err);

/*
 * Finds the tokens that may come next, a bit for each one of the model's vocabulary, valid until
 * the next call. |also|: a token that may come although the form has none such; NULL: none. NULL:
 * there is none, and the text is complete. ST_INVALID: there is none, and it is not; ST_TOO_LARGE:
 * a bound of one text; ST_EXHAUSTED.
 */
MUST_CHECK enum status constraint_mask(struct constraint *constraint, const uint32_t *also,
                                       const uint64_t **out, struct error *err);

/* Works on the next mask for a few milliseconds. ST_WOULD_BE_HEAVY: it takes more, so the next
 * call, which goes on, should be in a heavy task. Of any other status constraint_mask() tells. */
MUST_CHECK enum status constraint_weigh(struct constraint *constraint, struct error *err);

/* Returns the memory that it takes now, about. A hostile grammar can take some 80 MB. */
size_t constraint_bytes(const struct constraint *constraint);

/* Call when text behind a thought has come. Without |*out_is_taken| it may not come, and nothing
 * has changed. */
MUST_CHECK enum status constraint_advance_text(struct constraint *constraint, struct span text,
                                               bool *out_is_taken, bool *out_is_complete,
                                               struct error *err);

/* Call when the token, which was allowed and does not end the answer, has come. |*out_is_complete|:
 * nothing may come behind it. */
MUST_CHECK enum status constraint_advance(struct constraint *constraint, uint32_t id,
                                          bool *out_is_complete, struct error *err);

#endif
