/* SPDX-License-Identifier: MIT */
/* Functions for tests of passes: they build a small graph in a few words, and print it. */
#ifndef PTED_TESTS_UNIT_GRAPH_SUPPORT_H
#define PTED_TESTS_UNIT_GRAPH_SUPPORT_H

#include <stdint.h>

#include "hal/device.h"
#include "runtime/graph/graph.h"

enum { FIXTURE_ENDS_MAX = 8 }; /* of inputs, and of outputs */

struct fixture {
    struct hal_device *device; /* NULL if no pass runs a kernel */
    struct rt_graph graph;
    struct error err;
    uint32_t inputs[FIXTURE_ENDS_MAX], outputs[FIXTURE_ENDS_MAX];
};

/* An empty graph "m", with room for its inputs and outputs in |f|. */
void graph_begin(struct fixture *f);
int graph_tear_down(void **state);

/* The lists end with -1. Everything is float32. */
uint32_t graph_input(struct fixture *f, const int64_t *sizes);
uint32_t graph_ints(struct fixture *f, const int64_t *items);
uint8_t graph_dims(const int64_t *sizes, struct rt_dim *dims);

#define INPUT(...) graph_input(f, (const int64_t[]){__VA_ARGS__, -1})
#define INTS(...) graph_ints(f, (const int64_t[]){__VA_ARGS__, -1})

uint32_t number(struct fixture *f, int64_t value);
uint32_t apply(struct fixture *f, const char *op, const uint32_t *args, uint32_t count);
void give(struct fixture *f, uint32_t value); /* as the next output */

void assert_graph(const struct fixture *f, const char *expected);

#endif
