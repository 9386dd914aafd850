/* SPDX-License-Identifier: MIT */
/*
 * What makes two nodes of graphs compute the same, as bytes for a hash: the one of a fingerprint
 * (runtime/code/fingerprint.h) or of a recipe (runtime/code/recipe.h). Different contents give
 * different bytes. Numbers are in the machine's byte order.
 */
#ifndef PTED_RUNTIME_CODE_CONTENT_H
#define PTED_RUNTIME_CODE_CONTENT_H

#include "base/bytes.h"

struct rt_graph;
struct rt_node;
struct rt_value;

struct rt_content {
    void (*add)(void *to, struct span bytes); /* adds to the hash |to| */
    void *to;
};

void rt_content_number(const struct rt_content *content, uint64_t number);
/* Adds a text with its length. */
void rt_content_text(const struct rt_content *content, struct span text);

/* Says how the bytes of the tensor |v| are to be read: type, sizes and order. */
void rt_content_form(const struct rt_content *content, const struct rt_value *v);
/* Adds an argument that is no tensor: its kind and all that it says. Of a tensor the kind, and of a
 * list of them which of its items are there. */
void rt_content_argument(const struct rt_content *content, const struct rt_graph *graph,
                         const struct rt_value *v);
/* Adds the operator of |node| and its arguments, as above. */
void rt_content_operator(const struct rt_content *content, const struct rt_graph *graph,
                         const struct rt_node *node);

#endif
