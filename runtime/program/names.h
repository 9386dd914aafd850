/* SPDX-License-Identifier: MIT */
/*
 * The names of a method's inputs and results. They are chosen here, once, when a method is loaded;
 * metadata, requests, answers, command lines and messages take it from struct rt_io.
 *
 * Each has an alias by its raw index: input_0, output_2. Its name is better than that where the
 * stored structure has a dict above it: the keys and positions of its path, joined by dots, from
 * the first key on.
 *
 *     mask              kwargs["mask"]                   logits      {"logits": ...}
 *     features.image    kwargs["features"]["image"]      boxes.0     {"boxes": [...]}
 *     image             args[1]["image"]                 boxes       [{"boxes": ...}]
 *     input_1           args[1], args[0][1]              output_1    a tuple's
 *
 * Where several paths are the same from their first key on, their names begin at the root instead:
 * 0.image and 1.image. If the path is no valid name (rt_name_is_valid()) or is still the name of
 * another value, the alias is the name.
 *
 * So names of inputs are unique, names of results are unique, and no name is the alias of another
 * value.
 */
#ifndef PTED_RUNTIME_PROGRAM_NAMES_H
#define PTED_RUNTIME_PROGRAM_NAMES_H

#include "base/bytes.h"
#include "base/names.h"
#include "base/status.h"

struct pick;
struct rt_io;
struct rt_method;

#define RT_NAME_BYTES_MAX 128

enum rt_side { RT_INPUT, RT_RESULT };

/*
 * 1 to RT_NAME_BYTES_MAX of A-Z a-z 0-9 _ - . : with a character beside each dot, no dash first,
 * and nothing that reads like an alias, such as input_7 of an input.
 */
bool rt_name_is_valid(struct span name, enum rt_side side);

/* Finds the number that an alias has: 7 of "input_7". */
bool rt_alias_index(struct span name, enum rt_side side, uint32_t *out_index);

/* Gives an array of |count| values whose names are their aliases; one allocation. */
MUST_CHECK enum status rt_names_allocate(struct rt_io **out_ios, uint32_t count, enum rt_side side,
                                         struct error *err);

/*
 * Chooses the names of a method whose structure is known, and the names of its inputs and results
 * in messages. |hints|, by side and raw index, are names for values to which the structure gives
 * none; a list and its entries may be NULL. The texts live in the arena of the method's signature.
 */
MUST_CHECK enum status rt_names_settle(struct rt_method *method, const char *const *const hints[2],
                                       struct error *err);

/*
 * Gives values on |side| other names: |names| by raw index, NULL for a value that keeps its own.
 * The texts are copied. A value in a dict has its name as its key from then on, without what leads
 * to the dict: "features.picture", and "picture" as well, make kwargs["features"]["picture"].
 * Nobody else uses the method yet. ST_INVALID: a name that is not valid, that another value has,
 * that is the key of another value in the same dict or the keyword of another argument, or that is
 * for a None; |*out_index| is the raw index that it was for, and nothing has changed.
 */
MUST_CHECK enum status rt_names_give(struct rt_method *method, enum rt_side side,
                                     const char *const *names, uint32_t *out_index,
                                     struct error *err);

/* Gives the raw index of the result that |pick| names. ST_INVALID says which results there are; the
 * text follows the place of the pick. */
MUST_CHECK enum status rt_method_pick_result(const struct rt_method *method,
                                             const struct pick *pick, uint32_t *out_index,
                                             struct error *err);

/* Prints the names on one side, for "expected ...": names_print(). */
const char *rt_names_print(const struct rt_method *method, enum rt_side side,
                           char text[NAMES_TEXT_MAX]);

#endif
