/* SPDX-License-Identifier: MIT */
#ifndef PTED_RUNTIME_CODE_RECIPE_H
#define PTED_RUNTIME_CODE_RECIPE_H

#include <stdbool.h>

#include "runtime/code/shared.h"

struct hal_device;
struct rt_graph;

/* Of one value. */
struct rt_value_recipe {
    struct rt_recipe recipe;
    bool is_known; /* it is made of bytes whose places are known */
};

/*
 * Finds the recipes of what the nodes of |graph| make, into |out| (by value; zeroed). All arguments
 * of the nodes are constants or made by nodes before. A place is the number of a mapped file
 * (runtime/pte/file.h) and an offset, so a recipe is good for one process and as long as files do
 * not change.
 */
void rt_recipes_find(const struct rt_graph *graph, const struct hal_device *device,
                     struct rt_value_recipe *out);

#endif
