/* SPDX-License-Identifier: MIT */
/* Shared by template_filters.c and template_filters_list.c. */
#ifndef PTED_SERVER_TEXT_TEMPLATE_TEMPLATE_FILTERS_PRIV_H
#define PTED_SERVER_TEXT_TEMPLATE_TEMPLATE_FILTERS_PRIV_H

#include "server/text/template/template_priv.h"

/* A function of struct builtin. */
#define TEMPLATE_FILTER(name)                                                                      \
    enum status filter_##name(struct render *render, const struct node *node, struct value self,   \
                              const struct value *args, struct value *out)

bool filter_is_given(const struct value *value);
bool filter_is_true(const struct value *value, bool otherwise);

/* Fails with "'sort' does not take a number" */
MUST_CHECK enum status filter_refuse(struct render *render, const struct node *node,
                                     const char *filter, const struct value *value);

/* Gives the method |name| of strings, on str() of |self|. */
MUST_CHECK enum status filter_by_method(struct render *render, const struct node *node,
                                        const char *name, const struct value *self,
                                        const struct value *args, struct value *out);

/* |text| as Python's int() or float() reads it; false: it is no number. */
bool filter_read_number(struct span text, bool is_float, struct value *out);

/* ---- template_filters_list.c ----------------------------------------------------------------- */

TEMPLATE_FILTER(dictsort);
TEMPLATE_FILTER(items);
TEMPLATE_FILTER(join);
TEMPLATE_FILTER(list);
TEMPLATE_FILTER(map);
TEMPLATE_FILTER(max);
TEMPLATE_FILTER(min);
TEMPLATE_FILTER(reject);
TEMPLATE_FILTER(rejectattr);
TEMPLATE_FILTER(reverse);
TEMPLATE_FILTER(select);
TEMPLATE_FILTER(selectattr);
TEMPLATE_FILTER(sort);
TEMPLATE_FILTER(sum);
TEMPLATE_FILTER(unique);

#endif
