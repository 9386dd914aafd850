/* SPDX-License-Identifier: MIT */
/*
 * Payloads of the XNNPACK delegate with one error each. They are refused with a text that names the
 * place and the error. The tests load whole programs, as a user does.
 */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include "hal/device.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "tests/unit/unit.h"
#include "tests/unit/xnn_sample.h"

struct world {
    struct hal_device *device;
    char path[64];
    struct error err;
};

static int set_up(void **state)
{
    static const struct hal_device_options options = {.workers = 1};
    static struct world w;
    snprintf(w.path, sizeof(w.path), "xnnpack-%ld.pte", (long)getpid());
    assert_ok(w.err, hal_device_open("cpu", &options, &w.device, &w.err));
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    unlink(w->path);
    hal_device_unref(w->device);
    return 0;
}

/* The reason why |sample| cannot be called; "" if it can. */
static const char *failure_of(struct world *w, const struct xnn_sample *sample)
{
    static struct writer program;
    struct rt_load_options options = {.device = w->device};
    struct rt_program *loaded = NULL;
    xnn_sample_program(sample, &program);
    FILE *file = fopen(w->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(program.bytes, 1, program.len, file), program.len);
    assert_int_equal(fclose(file), 0);
    assert_ok(w->err, rt_load_program(w->path, &options, &loaded, &w->err));
    const struct error *failure = rt_method_failure(rt_program_default_method(loaded));
    w->err = failure ? *failure : (struct error){0};
    rt_program_unref(loaded);
    return w->err.text;
}

/* One change: field |id| of the table at a position of the sample, or bytes after the position. */
struct damage {
    size_t at; /* offsetof(struct xnn_sample, ...) */
    int id, plus;
    uint64_t value;
    size_t width;
    const char *text;
};
#define BYTES (-1) /* not a field: |plus| bytes after the position */

#define FIELD(member, id, value, width, text)                                                      \
    {                                                                                              \
        offsetof(struct xnn_sample, member), id, 0, value, width, text                             \
    }
#define RAW(member, plus, value, width, text)                                                      \
    {                                                                                              \
        offsetof(struct xnn_sample, member), BYTES, plus, value, width, text                       \
    }
#define PREFIX "instruction 0: XnnpackBackend, "
#define F32_NAN 0x7fc00000u
#define F32_INF 0x7f800000u
#define F32_MINUS_ONE 0xbf800000u

static void check(struct world *w, const struct damage *damages, size_t count)
{
    static struct xnn_sample sample;
    int failures = 0;
    for (size_t i = 0; i < count; i++) {
        const struct damage *d = &damages[i];
        size_t at;
        xnn_sample_make(&sample);
        memcpy(&at, (const uint8_t *)&sample + d->at, sizeof(at));
        at = d->id == BYTES ? (size_t)((int64_t)at + d->plus)
                            : writer_field(&sample.payload, at, (size_t)d->id);
        writer_put(&sample.payload, at, d->value, d->width);
        const char *text = failure_of(w, &sample);
        if (strncmp(text, PREFIX, strlen(PREFIX)) != 0 ||
            strcmp(text + strlen(PREFIX), d->text) != 0) {
            print_error("%zu: '%s'\nexpected: '" PREFIX "%s'\n", i, text, d->text);
            failures++;
        }
    }
    assert_int_equal(failures, 0);
}
#define CHECK(w, damages) check(w, damages, sizeof(damages) / sizeof((damages)[0]))

static void test_whole(void **state)
{
    static struct xnn_sample sample;
    xnn_sample_make(&sample);
    assert_string_equal(failure_of(*state, &sample), "");
}

/* ---- the frame ------------------------------------------------------------------------------- */

static void test_frame(void **state)
{
    static const struct damage damages[] = {
        RAW(header, 4, 0x3030485a, 4, "the payload is not an XN00 or XN01 flatbuffer"), /* ZH00 */
        RAW(header, 8, 29, 2,
            "header of 29 bytes: a flatbuffer of 3696 bytes at byte 32 does not fit into 3920 "
            "bytes"),
        RAW(header, 10, 29, 4,
            "header of 30 bytes: a flatbuffer of 3696 bytes at byte 29 does not fit into 3920 "
            "bytes"),
        RAW(header, 10, UINT32_MAX, 4,
            "header of 30 bytes: a flatbuffer of 3696 bytes at byte 4294967295 does not fit into "
            "3920 bytes"),
        RAW(header, 14, 1u << 30, 4,
            "header of 30 bytes: a flatbuffer of 1073741824 bytes at byte 32 does not fit into "
            "3920 bytes"),
        RAW(header, 14, 7, 4, "a flatbuffer of 7 bytes, expected at least 8"),
        RAW(header, 18, 40, 4,
            "header: 192 bytes of constants at byte 40 do not fit into 3920 bytes"),
        RAW(header, 18, UINT32_MAX, 4,
            "header: 192 bytes of constants at byte 4294967295 do not fit into 3920 bytes"),
        RAW(header, 22, 1 << 20, 8,
            "header: 1048576 bytes of constants at byte 3728 do not fit into 3920 bytes"),
        RAW(header, 22, UINT64_MAX, 8,
            "header: 18446744073709551615 bytes of constants at byte 3728 do not fit into 3920 "
            "bytes"),
        RAW(flat, 4, 0x32304e58, 4, "the payload is not an XN00 or XN01 flatbuffer"), /* XN02 */
        RAW(flat, 0, 1u << 30, 4,
            "root: the offset at byte 0 leads to byte 1073741824, beyond the flatbuffer's 3696 "
            "bytes"),
        RAW(graph, 0, 0x7fffffff, 4,
            "root: the table at byte 32 has its vtable at byte -2147483615, expected an even one "
            "below 3696"),
        FIELD(graph, 1, 1u << 30, 4,
              "xnodes: the offset at byte 40 leads to byte 1073741864, beyond the flatbuffer's "
              "3696 bytes"),
        RAW(nodes_at, -4, 1u << 30, 4,
            "xnodes: 1073741824 elements of 4 bytes at byte 84 do not fit into the flatbuffer's "
            "3696 bytes"),
        RAW(nodes_at, 0, UINT32_MAX, 4,
            "node 0: xnodes: the offset at byte 84 leads to byte 4294967379, beyond the "
            "flatbuffer's 3696 bytes"),
        FIELD(graph, 3, 2, 4, "the payload has 2 arguments, the call has 3"),
        FIELD(graph, 3, 4097, 4, "the payload has 4097 arguments, the call has 3"),
    };
    CHECK(*state, damages);
}

static void test_truncated(void **state)
{
    static struct xnn_sample sample;
    xnn_sample_make(&sample);
    size_t whole = sample.payload.len;
    for (size_t len = 0; len < whole; len += len < 64 ? 1 : 37) {
        sample.payload.len = len;
        assert_string_not_equal(failure_of(*state, &sample), "");
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static void test_values(void **state)
{
    static const struct damage damages[] = {
        FIELD(outers[XV_IN], 0, 0, 1, "value 0: xvalue_union: the tag is 0 but there is a table"),
        FIELD(outers[XV_IN], 0, 3, 1, "value 0: xvalue_union of type 3, expected 1 or 2"),
        FIELD(outers[XV_IN], 0, 2, 1,
              "value 0: tensor_value: the offset at byte 1492 leads to byte 263637, beyond the "
              "flatbuffer's 3696 bytes"),
        FIELD(outers[XV_QUANTIZED], 0, 1, 1, "value 1: datatype 32 is not known"),
        FIELD(tensors[XV_IN], 0, 0, 2, "value 0: the datatype is missing"),
        FIELD(tensors[XV_IN], 0, 15, 2, "value 0: datatype 15 is not known"),
        FIELD(tensors[XV_IN], 0, 11, 2, "value 0: datatype 11 is not known"),
        FIELD(tensors[XV_IN], 0, 0xffff, 2, "value 0: datatype -1 is not known"),
        FIELD(tensors[XV_IN], 0, 2, 2, "argument 0 is float32, expected a tensor of fp16"),
        FIELD(tensors[XV_IN], 0, 3, 2, "value 0: qint8 with quantization 0, expected 2"),
        FIELD(tensors[XV_QUANTIZED], 0, 1, 2, "value 1: fp32 with quantization 2, expected 0"),
        FIELD(tensors[XV_FILTER], 0, 3, 2, "value 2: qint8 with quantization 1, expected 2"),
        FIELD(tensors[XV_NIBBLES], 0, 8, 2, "value 10: qcint4 with quantization 4, expected 1"),
        FIELD(tensors[XV_ROWS], 5, 1, 4,
              "value 9: external id 4294967295, the call has 3 arguments"),
        FIELD(tensors[XV_IN], 1, 3, 4,
              "value 0: num_dims is 3, but there are 4 dims; expected the same number, at most 6"),
        FIELD(tensors[XV_IN], 1, 7, 4,
              "value 0: num_dims is 7, but there are 4 dims; expected the same number, at most 6"),
        FIELD(tensors[XV_IN], 1, UINT32_MAX, 4,
              "value 0: num_dims is 4294967295, but there are 4 dims; expected the same number, at "
              "most 6"),
        FIELD(tensors[XV_IN], 3, 1, 4, "value 0: a constant is also an argument"),
        FIELD(tensors[XV_CONVOLVED], 3, XC_COUNT, 4,
              "value 4: constant 7 does not exist, there are 7"),
        FIELD(tensors[XV_FILTER], 3, 0, 4, "value 2: a qcint8 value is not a constant"),
        FIELD(tensors[XV_IN], 4, 3, 4, "value 0: external id 3, the call has 3 arguments"),
        FIELD(tensors[XV_IN], 4, UINT32_MAX, 4,
              "value 0: external id 4294967295, the call has 3 arguments"),
        FIELD(tensors[XV_OUT], 4, 0, 4,
              "value 15: external id 0, the call has 3 arguments; the id is used twice"),
        FIELD(tensors[XV_IN], 5, 4, 4, "value 0: flags 4, expected at most 3"),
        FIELD(tensors[XV_IN], 5, 0, 4,
              "argument 0 is not a constant and has no value in the payload"),
        FIELD(tensors[XV_OUT], 5, 0, 4,
              "argument 1 is not a constant and has no value in the payload"),
        FIELD(tensors[XV_LINEAR], 5, 2, 4,
              "value 11: external id 4294967295, the call has 3 arguments"),
        FIELD(tensors[XV_FLOATS], 6, XS_ID(XV_IN), 4, "two values have the id 10"),
        FIELD(tensors[XV_IN], 7, 4, 2,
              "value 0: dq_datatype 4 of a fp32 value, expected 3 of an fp32 input"),
        FIELD(tensors[XV_FLOATS], 7, 3, 2,
              "value 8: dq_datatype 3 of a fp32 value that is not an input, expected 3 of an fp32 "
              "input"),
        RAW(dims[XV_FILTER], 0, UINT32_MAX, 4, "value 2: 72 bytes, expected at least 77309411310"),
        RAW(dims[XV_FILTER], 4, 4, 4, "value 2: 72 bytes, expected at least 96"),
        RAW(dims[XV_FILTER], 4, 2, 4,
            "node 1: Conv2d: the filter is [4,2,3,2], expected [4,3,3,2]"),
        RAW(dims[XV_FILTER], 12, 0, 4,
            "node 1: Conv2d: the filter is [4,3,3,0], expected [4,3,3,2]"),
        RAW(dims[XV_BIAS], 0, 5, 4, "value 3: 16 bytes, expected at least 20"),
        RAW(dims[XV_BIAS], 0, 3, 4, "value 3: 4 scales in 16 bytes, expected 3"),
        RAW(dims[XV_NIBBLES], 0, 7, 4, "value 10: 48 bytes, expected at least 56"),
        RAW(dims[XV_NIBBLES], 4, 24, 4, "value 10: 48 bytes, expected at least 72"),
        RAW(dims[XV_NIBBLES], 4, UINT32_MAX, 4,
            "value 10: 48 bytes, expected at least 12884901888"),
    };
    CHECK(*state, damages);
}

static void test_constants(void **state)
{
    static const struct damage damages[] = {
        FIELD(constants[XC_FILTER], 0, 1 << 20, 8,
              "value 2: constant 1: 72 bytes at byte 1048576 do not fit into 192 bytes"),
        FIELD(
            constants[XC_FILTER], 0, UINT64_MAX, 8,
            "value 2: constant 1: 72 bytes at byte 18446744073709551615 do not fit into 192 bytes"),
        FIELD(constants[XC_FILTER], 1, 71, 8, "value 2: 71 bytes, expected at least 72"),
        FIELD(
            constants[XC_FILTER], 1, UINT64_MAX, 8,
            "value 2: constant 1: 18446744073709551615 bytes at byte 0 do not fit into 192 bytes"),
        FIELD(constants[XC_FILTER_SCALES], 1, 15, 8, "value 2: 4 scales in 15 bytes, expected 4"),
        FIELD(constants[XC_GROUP_SCALES], 1, 23, 8, "value 10: 12 scales in 23 bytes, expected 12"),
        FIELD(constants[XC_NIBBLES], 1, 47, 8, "value 10: 47 bytes, expected at least 48"),
    };
    CHECK(*state, damages);
}

static void test_named_constant(void **state)
{
    static struct xnn_sample sample;
    xnn_sample_make(&sample);
    struct writer *w = &sample.payload;
    size_t at = writer_field(w, sample.constants[XC_FILTER], 2);
    at += load_le32(w->bytes + at);
    writer_put(w, at, 3, 4); /* the string's padding is its text now */
    writer_put(w, at + 4, 0x636261, 4);
    assert_string_equal(failure_of(*state, &sample),
                        PREFIX "value 2: no data file has 'abc': none is beside the program");
}

static void test_quantization(void **state)
{
    static const struct damage damages[] = {
        FIELD(quantized[XV_QUANTIZED], 1, 0, 1,
              "value 1: quant_params: the tag is 0 but there is a table"),
        FIELD(quantized[XV_QUANTIZED], 1, 1, 1, "value 1: qint8 with quantization 1, expected 2"),
        FIELD(quantized[XV_FILTER], 1, 2, 1, "value 2: qcint8 with quantization 2, expected 1"),
        FIELD(quantized[XV_FILTER], 1, 9, 1, "value 2: qcint8 with quantization 9, expected 1"),
        FIELD(params[XV_QUANTIZED], 0, 0, 4,
              "value 1: scale 0 is 0, expected a finite number above 0"),
        FIELD(params[XV_QUANTIZED], 0, F32_NAN, 4,
              "value 1: scale 0 is nan, expected a finite number above 0"),
        FIELD(params[XV_QUANTIZED], 0, F32_INF, 4,
              "value 1: scale 0 is inf, expected a finite number above 0"),
        FIELD(params[XV_QUANTIZED], 0, F32_MINUS_ONE, 4,
              "value 1: scale 0 is -1, expected a finite number above 0"),
        FIELD(params[XV_QUANTIZED], 1, 128, 4, "value 1: zero point 128, expected -128 to 127"),
        FIELD(params[XV_QUANTIZED], 1, (uint32_t)-129, 4,
              "value 1: zero point -129, expected -128 to 127"),
        FIELD(params[XV_FILTER], 1, 4, 4,
              "value 2: channel_dim 4, expected 0 or more and less than the rank 4"),
        FIELD(params[XV_FILTER], 1, UINT32_MAX, 4,
              "value 2: channel_dim -1, expected 0 or more and less than the rank 4"),
        FIELD(params[XV_FILTER], 1, 3, 4, "value 2: 4 scales in 16 bytes, expected 2"),
        FIELD(params[XV_FILTER], 2, 0, 4, "value 2: 0 scales in 0 bytes, expected 4"),
        FIELD(params[XV_FILTER], 2, XC_COUNT, 4, "value 2: constant 7 does not exist, there are 7"),
        FIELD(params[XV_FILTER], 3, 3, 4, "value 2: 3 scales in 16 bytes, expected 4"),
        FIELD(params[XV_FILTER], 3, UINT32_MAX, 4,
              "value 2: 4294967295 scales in 16 bytes, expected 4"),
        RAW(behind_at[XC_FILTER_SCALES], 8, 0, 4,
            "value 2: scale 2 is 0, expected a finite number above 0"),
        RAW(behind_at[XC_FILTER_SCALES], 8, F32_NAN, 4,
            "value 2: scale 2 is nan, expected a finite number above 0"),
        FIELD(params[XV_ROWS], 0, 0, 4, "value 9: rows of 0 dims, expected 1 to 6"),
        FIELD(params[XV_ROWS], 0, 3, 4,
              "node 6: Convert: rows of 3 dims, but the value has rank 2"),
        FIELD(params[XV_ROWS], 0, 7, 4, "value 9: rows of 7 dims, expected 1 to 6"),
        FIELD(params[XV_NIBBLES], 1, 1, 4,
              "value 10: channel_dim 1 and rank 2 of a value with groups, expected 0 and 2"),
        FIELD(params[XV_NIBBLES], 2, 0, 4,
              "value 10: groups of 0 elements, expected a divisor of 16"),
        FIELD(params[XV_NIBBLES], 2, UINT32_MAX, 4,
              "value 10: groups of -1 elements, expected a divisor of 16"),
        FIELD(params[XV_NIBBLES], 2, 7, 4,
              "value 10: groups of 7 elements, expected a divisor of 16"),
        FIELD(params[XV_NIBBLES], 2, 16, 4, "value 10: 12 scales in 24 bytes, expected 6"),
        FIELD(params[XV_NIBBLES], 4, 0, 4, "value 10: 0 scales in 0 bytes, expected 12"),
        FIELD(params[XV_NIBBLES], 5, 11, 4, "value 10: 11 scales in 24 bytes, expected 12"),
        RAW(behind_at[XC_GROUP_SCALES], 2, 0x7fc0, 2,
            "value 10: scale 1 is nan, expected a finite number above 0"),
        RAW(behind_at[XC_GROUP_SCALES], 2, 0, 2,
            "value 10: scale 1 is 0, expected a finite number above 0"),
    };
    CHECK(*state, damages);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void test_nodes(void **state)
{
    static const struct damage damages[] = {
        FIELD(node_outers[XN_ADD], 0, 0, 1,
              "node 11: xnode_union: the tag is 0 but there is a table"),
        FIELD(node_outers[XN_ADD], 0, 48, 1, "node 11: xnode_union of type 48 is not known"),
        FIELD(node_outers[XN_ADD], 0, 36, 1,
              "node 11: ScaledDotProductAttention: field 3: no value has the id 0"),
        FIELD(nodes[XN_ADD], 0, 9, 4, "node 11: Add: field 0: no value has the id 9"),
        FIELD(nodes[XN_ADD], 2, UINT32_MAX, 4,
              "node 11: Add: field 2: no value has the id 4294967295"),
        FIELD(nodes[XN_QUANTIZE], 0, XS_ID(XV_OUT), 4,
              "node 0: Convert: id 25 is read before it is written"),
        FIELD(nodes[XN_ADD], 0, XS_ID(XV_OUT), 4,
              "node 11: Add: id 25 is read before it is written"),
        FIELD(nodes[XN_SLICE], 3, XS_ID(XV_JOINED), 4,
              "node 8: StaticSlice: id 24 is read before it is written"),
        FIELD(nodes[XN_ADD], 2, XS_ID(XV_JOINED), 4,
              "node 11: Add: id 24 is written a second time"),
        FIELD(nodes[XN_ADD], 2, XS_ID(XV_IN), 4, "node 11: Add: id 10 is written, but is an input"),
        FIELD(nodes[XN_ADD], 2, XS_ID(XV_BIAS), 4,
              "node 11: Add: an output cannot be of type qcint32"),
        FIELD(nodes[XN_LINEAR], 3, XS_ID(XV_FLAT), 4,
              "node 7: FullyConnected: id 17 is written a second time"),
        FIELD(nodes[XN_ADD], 3, 1, 4, "node 11: Add: flags 1, expected only flags of 0"),
        FIELD(nodes[XN_CONV], 19, 8, 4, "node 1: Conv2d: flags 8, expected only flags of 4"),
        FIELD(bounds[XN_CONV], 0, F32_NAN, 4,
              "node 1: Conv2d: bounds nan and 6, expected the lower one first"),
        FIELD(bounds[XN_CONV], 1, F32_MINUS_ONE, 4,
              "node 1: Conv2d: bounds 0 and -1, expected the lower one first"),
        FIELD(nodes[XN_CONV], 4, 0, 4,
              "node 1: Conv2d: the height of the window is 0, expected 1 to 16777216"),
        FIELD(nodes[XN_CONV], 4, 2, 4,
              "node 1: Conv2d: the filter is [4,3,3,2], expected [4,2,3,2]"),
        FIELD(nodes[XN_CONV], 4, UINT32_MAX, 4,
              "node 1: Conv2d: the height of the window is 4294967295, expected 1 to 16777216"),
        FIELD(nodes[XN_CONV], 6, 0, 4,
              "node 1: Conv2d: the vertical stride is 0, expected 1 to 16777216"),
        FIELD(nodes[XN_CONV], 8, 0, 4,
              "node 1: Conv2d: the vertical dilation is 0, expected 1 to 16777216"),
        FIELD(nodes[XN_CONV], 8, 1 << 20, 4,
              "node 1: Conv2d: convolution: the kernel is larger than the padded input"),
        FIELD(nodes[XN_CONV], 0, UINT32_MAX, 4,
              "node 1: Conv2d: the padding at the top is 4294967295, expected 0 to 16777216"),
        FIELD(nodes[XN_CONV], 10, 3, 4,
              "node 1: Conv2d: the filter is [4,3,3,2], expected [4,3,3,3]"),
        FIELD(nodes[XN_CONV], 11, 5, 4,
              "node 1: Conv2d: the filter is [4,3,3,2], expected [5,3,3,2]"),
        FIELD(nodes[XN_CONV], 12, 0, 4,
              "node 1: Conv2d: the number of groups is 0, expected 1 to 16777216"),
        FIELD(nodes[XN_CONV], 12, 2, 4,
              "node 1: Conv2d: the filter is [4,3,3,2], expected [8,3,3,2]"),
        FIELD(nodes[XN_CONV], 15, XS_ID(XV_BIAS), 4,
              "node 1: Conv2d: an image has rank 1, expected 4"),
        FIELD(nodes[XN_CONV], 16, XS_ID(XV_IN), 4,
              "node 1: Conv2d: the filter is [1,4,4,2], expected [4,3,3,2]"),
        FIELD(nodes[XN_CONV], 16, UINT32_MAX, 4,
              "node 1: Conv2d: field 16: no value has the id 4294967295"),
        FIELD(nodes[XN_CONV], 17, XS_ID(XV_FILTER), 4,
              "node 1: Conv2d: convolution: the bias has rank 4, expected 1"),
        FIELD(nodes[XN_CONV], 18, XS_ID(XV_ROWS), 4,
              "node 2: MaxPooling2d: id 14 is read before it is written"),
        FIELD(nodes[XN_POOL], 4, 5, 4,
              "node 2: MaxPooling2d: max_pool2d: windows of 5 do not fit the image"),
        FIELD(nodes[XN_POOL], 6, 0, 4,
              "node 2: MaxPooling2d: the vertical stride is 0, expected 1 to 16777216"),
        RAW(lists[XN_TRANSPOSE][0], 0, 3, 4,
            "node 3: StaticTranspose: dim 3 in a permutation of 4 dims, expected each dim once"),
        RAW(lists[XN_TRANSPOSE][0], 0, 4, 4,
            "node 3: StaticTranspose: dim 4 in a permutation of 4 dims, expected each dim once"),
        RAW(lists[XN_TRANSPOSE][0], -4, 3, 4,
            "node 3: StaticTranspose: 3 entries, expected 4 (one for each dim)"),
        RAW(lists[XN_TRANSPOSE][0], -4, 9, 4,
            "node 3: StaticTranspose: field 1: 9 entries, expected at most 8"),
        RAW(lists[XN_RESHAPE][0], 4, 15, 4,
            "node 4: StaticReshape: view: elements of a view (must equal the tensor's): got 15, "
            "expected 16"),
        RAW(lists[XN_RESHAPE][0], 4, UINT32_MAX, 4,
            "node 4: StaticReshape: view: elements of a view (must equal the tensor's): got "
            "4294967295, expected 16"),
        RAW(lists[XN_RESHAPE][0], 0, 0, 8,
            "node 4: StaticReshape: 2 sizes of 0 (to be inferred), expected at most 1"),
        FIELD(nodes[XN_LINEAR], 0, XS_ID(XV_IN), 4,
              "node 7: FullyConnected: linear: columns of the input (must equal those of the "
              "weights): "
              "got 2, expected 16"),
        FIELD(nodes[XN_LINEAR], 1, XS_ID(XV_FILTER), 4,
              "node 7: FullyConnected: linear: argument 1 has rank 4, expected 2"),
        FIELD(nodes[XN_LINEAR], 2, XS_ID(XV_BIAS), 4,
              "node 7: FullyConnected: linear: elements of the bias (one for each output channel): "
              "got 4, expected 6"),
        FIELD(nodes[XN_LINEAR], 4, 1, 4,
              "node 7: FullyConnected: qbint4 filter with scales along dim 0, transposed"),
        RAW(lists[XN_SLICE][0], -4, 1, 4,
            "node 8: StaticSlice: 1 entries, expected 2 (one for each dim)"),
        RAW(lists[XN_SLICE][1], -4, 1, 4,
            "node 8: StaticSlice: 1 entries, expected 2 (one for each dim)"),
        RAW(lists[XN_PAD][0], -4, 1, 4,
            "node 9: StaticConstantPad: 1 entries, expected 2 (one for each dim)"),
        RAW(lists[XN_PAD][1], 4, UINT32_MAX, 4, "output 1 does not fit what the program declares"),
        FIELD(nodes[XN_JOIN], 0, 2, 4,
              "node 10: Concatenate2: axis 2, expected less than the rank 2"),
        FIELD(nodes[XN_JOIN], 0, 0, 4,
              "node 10: Concatenate2: cat: size of the tensors to join (must be equal): got 4, "
              "expected 7"),
        FIELD(nodes[XN_ADD], 0, XS_ID(XV_LINEAR), 4,
              "node 11: Add: add: size of the operands (must match): got 6, expected 11"),
        FIELD(nodes[XN_ADD], 0, XS_ID(XV_IN), 4,
              "node 11: Add: add: size of the operands (must match): got 2, expected 11"),
    };
    CHECK(*state, damages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),        cmocka_unit_test(test_frame),
        cmocka_unit_test(test_truncated),    cmocka_unit_test(test_values),
        cmocka_unit_test(test_constants),    cmocka_unit_test(test_named_constant),
        cmocka_unit_test(test_quantization), cmocka_unit_test(test_nodes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
