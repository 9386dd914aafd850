/* SPDX-License-Identifier: MIT */
/* Any bytes as the body of a call: JSON up to the first zero, binary data after it. Each accepted
 * leaf is decoded into memory of exactly its size; each refusal has a reason. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/call.h"

#define ARENA_BYTES (1 << 20)
#define INPUTS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* [{"bar": r1, "foo": r0}, None, r2, r4, r5, {"kw": r3}] -> r0 */
#define SIGNATURE "I51!S47!k0D17!K4!bar_1K4!foo_0k2_2k3_4k4_5k5D8!K3!kw_3R3!_0"

static const struct call_io ios[INPUTS] = {
    {.kind = CALL_TENSOR,
     .dtype = DT_F32,
     .shape = {2, {-1, 3}},
     .bounds = {2, {64, 3}},
     .name = "x"},
    {.kind = CALL_TENSOR, .dtype = DT_I64, .shape = {0, {0}}},
    {.kind = CALL_SCALAR, .dtype = DT_I64, .fixed = "5"},
    {.kind = CALL_STRING},
    {.kind = CALL_TENSOR, .dtype = DT_BOOL, .shape = {1, {-1}}, .bounds = {1, {64}}},
    {.kind = CALL_SCALAR, .dtype = DT_F64},
};

static void check_leaves(const struct call_method *method, const struct call_leaf *leaves)
{
    struct tensor_nan nan = {.takes_null = true};
    struct error err = {0};
    for (uint32_t i = 0; i < INPUTS; i++) {
        const struct call_leaf *leaf = &leaves[i];
        if (leaf->encoding == CALL_ABSENT || leaf->encoding == CALL_SHAPE ||
            leaf->encoding == CALL_PROMISE || ios[i].kind == CALL_STRING) {
            continue;
        }
        uint8_t *exact = malloc(leaf->bytes ? leaf->bytes : 1);
        must(exact);
        if (call_decode_leaf(leaf, ios[i].dtype, &nan, exact, &err) != ST_OK) {
            must(call_prefix(method, leaf, i, "", &err) != ST_OK && err.text[0] != '\0');
        }
        free(exact);
    }
}

static void parse(const struct call_method *method, const struct oip_body *body, bool is_listed,
                  bool shapes_only)
{
    const struct call_limits limits = {.oip = {.tensor_bytes_max = 1 << 16,
                                               .json_depth_max = 64,
                                               .name_bytes_max = 256,
                                               .parameters_max = 16,
                                               .is_listed = is_listed},
                                       .element_count_max = 1 << 12,
                                       .shapes_only = shapes_only};
    struct arena arena;
    struct call_request request;
    struct error err = {0};
    arena_init(&arena, ARENA_BYTES);
    if (call_parse(body, method, &limits, &arena, &request, NULL, &err) == ST_OK) {
        check_leaves(method, request.leaves);
    } else {
        must(err.text[0] != '\0');
    }
    arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    struct oip_body body = {.json = span_of(data, zero ? (size_t)(zero - data) : size)};
    struct arena arena;
    struct sip sip;
    struct error err = {0};
    if (zero) {
        body.binary = span_of(zero + 1, size - body.json.len - 1);
    }
    arena_init(&arena, ARENA_BYTES);
    must(sip_parse(span_str(SIGNATURE), &arena, &sip, &err) == ST_OK);
    sip.has_kwargs = true;
    const struct call_method method = {&sip, ios, ios, INPUTS, 1};
    parse(&method, &body, false, false);
    parse(&method, &body, true, false);
    if (call_is_body(body.json)) {
        parse(&method, &body, false, true);
    }
    arena_fini(&arena);
    return 0;
}
