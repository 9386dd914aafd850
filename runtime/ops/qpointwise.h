/* SPDX-License-Identifier: MIT */
/* Constants for the kernels of qpointwise.c. */
#ifndef PTED_RUNTIME_OPS_QPOINTWISE_H
#define PTED_RUNTIME_OPS_QPOINTWISE_H

#include "runtime/kernels/loop.h"

/* The operation; see struct uk_add_u8 and struct uk_mul_u8. */
enum rt_qbytes_kind { RT_QBYTES_ADD, RT_QBYTES_MUL, RT_QBYTES_LOOKUP, RT_QBYTES_FLIP };

/* Operands: out and one or two inputs. Bindings: the operands, then a table of 256 or nothing. */
struct rt_qbytes {
    struct rt_loop loop;
    enum rt_qbytes_kind kind;
    float a_scale, b_scale;      /* ADD */
    float a_zero, b_zero, scale; /* MUL */
    float bias, min, max;
};

/* The greatest number of channels in a tile. */
#define RT_QMEAN_CHANNELS 256

struct rt_qmean {
    uint32_t channels, tile;        /* pixels of an image, and of a tile */
    int64_t pixels, channel, pixel; /* bytes from one pixel to the next */
    float scale, bias, min, max;
};

#endif
