/* SPDX-License-Identifier: MIT */
/* Functions for tests of passes and plans: a fixture with a device, the usual operators, and the
 * first passes. */
#ifndef PTED_TESTS_UNIT_PASS_SUPPORT_H
#define PTED_TESTS_UNIT_PASS_SUPPORT_H

#include "tests/unit/graph_support.h"

/* The numbers of all weights. Set-up makes them 1 to 5, again and again. */
#define FLOATS_MAX 32768
extern float floats[FLOATS_MAX];

extern uint32_t one; /* the value 1 of the fixture's graph */

/* An empty graph, and a device with the level "generic"; graph_tear_down() ends it. */
int pass_set_up(void **state);
void start_again(void **state); /* the same within a test */

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, pass_set_up, graph_tear_down)

/* A constant of up to four sizes; the list ends with -1. */
uint32_t weights_of(struct fixture *f, const int64_t sizes[4]);

#define WEIGHTS(...) weights_of(f, (const int64_t[4]){__VA_ARGS__, -1})
#define WEIGHTS4(...) weights_of(f, (const int64_t[4]){__VA_ARGS__})

uint32_t relu(struct fixture *f, uint32_t x);
uint32_t add(struct fixture *f, uint32_t a, uint32_t b);
uint32_t clamp(struct fixture *f, const char *op, uint32_t x, double min, double max);
uint32_t convert(struct fixture *f, uint32_t value, enum dtype dtype);

/* With kernels other than 1x1, the padding is 1. */
uint32_t convolve(struct fixture *f, uint32_t x, uint32_t w, uint32_t bias, int64_t groups,
                  bool is_transposed);

/* x @ a constant matrix of 16 x 16. */
uint32_t multiply(struct fixture *f, uint32_t x);

/* The passes up to lower, fuse or layout. */
void lower(struct fixture *f);
void fuse(struct fixture *f);
void lay_out(struct fixture *f);

/* Narrows the graph in precision bf16. Returns the type of argument 0 of the last product. */
enum dtype narrowed(struct fixture *f);

/* The only node with operator |op|. */
const struct rt_node *node_of(const struct fixture *f, const char *op);

#endif
