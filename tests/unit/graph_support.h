/* SPDX-License-Identifier: MIT */
/* Functions for tests of passes: they build a small graph in a few words, and print it. */
#ifndef PTED_TESTS_UNIT_GRAPH_SUPPORT_H
#define PTED_TESTS_UNIT_GRAPH_SUPPORT_H

#include <stdint.h>

#include "hal/cpu/isa.h"
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

/* From now on constants are parts of these |count| numbers. The first |random| of them become
 * random numbers from -1 to 1, the same in each run. */
void graph_use_numbers(float *numbers, size_t count, size_t random);

/* A constant whose numbers begin at |first|. If |f| has a device, the constant lies in a buffer, so
 * that kernels can read it. */
uint32_t graph_constant(struct fixture *f, const int64_t *sizes, size_t first);

#define CONSTANT(first, ...) graph_constant(f, (const int64_t[]){__VA_ARGS__, -1}, first)

uint32_t number(struct fixture *f, int64_t value);
uint32_t apply(struct fixture *f, const char *op, const uint32_t *args, uint32_t count);
void give(struct fixture *f, uint32_t value); /* as the next output */

uint32_t count_ops(const struct fixture *f, const char *op); /* nodes of that name */

struct hal_device *open_cpu(enum hal_cpu_isa isa, uint32_t workers);

void assert_graph(const struct fixture *f, const char *expected);

#endif
