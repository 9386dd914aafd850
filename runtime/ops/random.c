/* SPDX-License-Identifier: MIT */
/*
 * Random numbers: rand (uniform in [0, 1)), randn (normal, by Box and Muller) and dropout.
 *
 * The generator is Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", 2011). Block b of a stream is a function of b and of the stream's key, so an element
 * needs no state. Every tile of every call draws from a stream of its own. The stream's key is the
 * stream's number, counted by the process and enciphered like a block under a key from the system.
 * These are the only kernels whose results differ from run to run; a node that depends on them is
 * not folded.
 *
 * A uniform number has as many random bits as its type has digits, so it never rounds up to 1.
 */
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/create.h"
#include "runtime/ops/op.h"
#include "runtime/ops/view_priv.h"

#define TILE 4096
#define CHUNK 256 /* numbers; two a block */
#define ROUNDS 10

/* ---- Philox ---------------------------------------------------------------------------------- */

static void philox(const uint32_t in[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t x[4] = {in[0], in[1], in[2], in[3]}, k0 = key[0], k1 = key[1];

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * x[0], b = (uint64_t)0xCD9E8D57 * x[2];
        x[0] = (uint32_t)(b >> 32) ^ x[1] ^ k0;
        x[1] = (uint32_t)b;
        x[2] = (uint32_t)(a >> 32) ^ x[3] ^ k1;
        x[3] = (uint32_t)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    memcpy(out, x, sizeof(x));
}

/* The process's key, drawn once. Without random bytes from the system it still differs from run to
 * run. */
static uint64_t process_key(void)
{
    static _Atomic uint64_t key;
    uint64_t mine = atomic_load(&key), none = 0;

    if (mine == 0) {
        if (getrandom(&mine, sizeof(mine), GRND_NONBLOCK) != (ssize_t)sizeof(mine)) {
            struct timespec now = {0};
            (void)clock_gettime(CLOCK_REALTIME, &now);
            mine = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        }
        mine |= 1;
        if (!atomic_compare_exchange_strong(&key, &none, mine)) {
            mine = none;
        }
    }
    return mine;
}

struct stream {
    uint32_t key[2];
    uint64_t block;
};

static struct stream new_stream(void)
{
    static _Atomic uint64_t streams;
    uint64_t key = process_key(), number = atomic_fetch_add(&streams, 1);
    uint32_t keys[2] = {(uint32_t)key, (uint32_t)(key >> 32)}, out[4];
    uint32_t in[4] = {(uint32_t)number, (uint32_t)(number >> 32)};

    philox(in, keys, out);
    return (struct stream){.key = {out[0], out[1]}};
}

/* The next two numbers of 64 bits. */
static void draw(struct stream *stream, uint64_t out[2])
{
    uint32_t in[4] = {(uint32_t)stream->block, (uint32_t)(stream->block >> 32)}, words[4];

    philox(in, stream->key, words);
    stream->block++;
    out[0] = (uint64_t)words[1] << 32 | words[0];
    out[1] = (uint64_t)words[3] << 32 | words[2];
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void fill_uniform(struct stream *stream, int digits, double values[CHUNK])
{
    uint64_t bits[2];

    for (int i = 0; i < CHUNK; i += 2) {
        draw(stream, bits);
        values[i] = ldexp((double)(bits[0] >> (64 - digits)), -digits);
        values[i + 1] = ldexp((double)(bits[1] >> (64 - digits)), -digits);
    }
}

static void fill_normal(struct stream *stream, double values[CHUNK])
{
    static const double turn = 6.283185307179586;

    fill_uniform(stream, 53, values);
    for (int i = 0; i < CHUNK; i += 2) {
        double radius = sqrt(-2 * log(1 - values[i])), angle = turn * values[i + 1];
        values[i] = radius * cos(angle);
        values[i + 1] = radius * sin(angle);
    }
}

struct random_constants {
    enum dtype dtype;
    bool is_normal;
    int64_t numel;
};

static void random_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct random_constants *k = args->constants;
    int64_t width = (int64_t)dtype_bytes(k->dtype);
    int64_t begin = (int64_t)tile.x * TILE, end = rt_min(begin + TILE, k->numel);
    struct stream stream = new_stream();
    double values[CHUNK];

    for (; begin < end; begin += CHUNK) {
        if (k->is_normal) {
            fill_normal(&stream, values);
        } else {
            fill_uniform(&stream, (int)dtype_precision(k->dtype), values);
        }
        rt_convert_store(RT_CLASS_F64, k->dtype)((char *)args->bindings[0] + begin * width, width,
                                                 values, rt_min(CHUNK, end - begin));
    }
}

static const struct hal_kernel random_kernel = {.name = "random", .cpu = random_tile};

static enum status random_shape(struct rt_shape_call *call)
{
    return rt_create_size_shape(call);
}

static enum status random_like_shape(struct rt_shape_call *call)
{
    return rt_shape_set_out_like(call, 0, 0);
}

static enum status emit_random(struct rt_emit *emit, bool is_normal, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    struct random_constants k = {out->dtype, is_normal, out->numel};

    return rt_emit_tiles(emit, out->numel, TILE,
                         &(struct hal_dispatch){
                             .kernel = &random_kernel,
                             .constants = &k,
                             .constants_bytes = sizeof(k),
                             .bindings = &out->binding,
                             .binding_count = 1,
                             .cost = (uint64_t)out->numel * (is_normal ? 25 : 8),
                         },
                         err);
}

static enum status rand_emit(struct rt_emit *emit, struct error *err)
{
    return emit_random(emit, false, err);
}

static enum status randn_emit(struct rt_emit *emit, struct error *err)
{
    return emit_random(emit, true, err);
}

/* ---- dropout --------------------------------------------------------------------------------- */

struct dropout_constants {
    enum dtype dtype;
    int64_t numel;
    double p;     /* probability that an element becomes 0; with 0 the kernel is a copy */
    double scale; /* factor of the elements that stay */
};

static void dropout_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct dropout_constants *k = args->constants;
    enum rt_class class = k->dtype == DT_F64 ? RT_CLASS_F64 : RT_CLASS_F32;
    int64_t width = (int64_t)dtype_bytes(k->dtype);
    int64_t begin = (int64_t)tile.x * TILE, end = rt_min(begin + TILE, k->numel);
    struct stream stream = new_stream();
    double chances[CHUNK];
    union {
        float f32[CHUNK];
        double f64[CHUNK];
    } x;

    for (; begin < end; begin += CHUNK) {
        int64_t count = rt_min(CHUNK, end - begin);
        fill_uniform(&stream, 53, chances);
        rt_convert_load(k->dtype, class)(&x, (const char *)args->bindings[2] + begin * width, width,
                                         count);
        for (int64_t i = 0; i < count; i++) {
            double factor = chances[i] >= k->p ? k->scale : 0;
            if (class == RT_CLASS_F64) {
                x.f64[i] *= factor;
            } else {
                x.f32[i] *= (float)factor;
            }
            if (args->bindings[1]) {
                ((uint8_t *)args->bindings[1])[begin + i] = factor != 0;
            }
        }
        rt_convert_store(class, k->dtype)((char *)args->bindings[0] + begin * width, width, &x,
                                          count);
    }
}

static const struct hal_kernel dropout_kernel = {.name = "dropout", .cpu = dropout_tile};

static enum status dropout_shape(struct rt_shape_call *call)
{
    double p = rt_value_number(rt_shape_arg(call, 1));

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_out_dtype(call, 1, 1u << DT_BOOL));
    if (!(p >= 0 && p <= 1)) {
        return rt_shape_refuse(call, "probability %g, expected 0 to 1", p);
    }
    TRY(rt_shape_set_out_like(call, 0, 0));
    return rt_shape_set_out_like(call, 1, 0);
}

/* Files export dropout without training: elements stay as they are. */
static enum status dropout_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *in = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    const struct rt_tensor *mask = rt_emit_out(emit, 1);
    const struct rt_value *train = rt_emit_value(emit, 2);
    double p = train->kind == RT_BOOL && !train->b ? 0 : rt_emit_number(emit, 1);
    struct dropout_constants k = {in->dtype, in->numel, p, p < 1 ? 1 / (1 - p) : 0};
    struct hal_binding bindings[3] = {[0] = out->binding, [2] = in->binding};

    if (mask) {
        bindings[1] = mask->binding;
    }
    return rt_emit_tiles(emit, in->numel, TILE,
                         &(struct hal_dispatch){
                             .kernel = &dropout_kernel,
                             .constants = &k,
                             .constants_bytes = sizeof(k),
                             .bindings = bindings,
                             .binding_count = 3,
                             .cost = (uint64_t)in->numel * 10,
                         },
                         err);
}

/* clang-format off */
const struct rt_op rt_ops_random[] = {
    {.name = "rand", .kernels = "aten::rand.out",
     .args = "L>T", .shape = random_shape, .emit = rand_emit, .flags = RT_OP_RANDOM,
     .dtypes = RT_DTYPES_FLOAT, .runs = &random_kernel},
    {.name = "randn", .kernels = "aten::randn.out",
     .args = "L>T", .shape = random_shape, .emit = randn_emit, .flags = RT_OP_RANDOM,
     .dtypes = RT_DTYPES_FLOAT, .runs = &random_kernel},
    {.name = "rand_like", .kernels = "aten::rand_like.out",
     .args = "TI?>T", .shape = random_like_shape, .emit = rand_emit, .flags = RT_OP_RANDOM,
     .dtypes = RT_DTYPES_FLOAT, .runs = &random_kernel},
    {.name = "randn_like", .kernels = "aten::randn_like.out",
     .args = "TI?>T", .shape = random_like_shape, .emit = randn_emit, .flags = RT_OP_RANDOM,
     .dtypes = RT_DTYPES_FLOAT, .runs = &random_kernel},
    {.name = "dropout", .kernels = "aten::native_dropout.out",
     .args = "TFB?>TT", .shape = dropout_shape, .emit = dropout_emit,
     .flags = RT_OP_RANDOM | RT_OP_IN_PLACE, .dtypes = RT_DTYPES_FLOAT, .runs = &dropout_kernel},
    {.name = NULL},
};
/* clang-format on */
