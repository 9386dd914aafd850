/* SPDX-License-Identifier: MIT */
/* Convolutions by Winograd's algorithm, for the operators and for the pass that chooses them. */
#ifndef PTED_RUNTIME_OPS_WINOGRAD_H
#define PTED_RUNTIME_OPS_WINOGRAD_H

/* Arguments of "conv_winograd": packed weights of "pack_winograd", padding at the top and at the
 * left (as much as at the bottom and at the right), the side of a tile: 2 or 4. */
enum rt_winograd_arg {
    RT_WINOGRAD_X,
    RT_WINOGRAD_W,
    RT_WINOGRAD_BIAS,
    RT_WINOGRAD_RESIDUAL,
    RT_WINOGRAD_PADDING,
    RT_WINOGRAD_OUTS,
    RT_WINOGRAD_SIDE,
    RT_WINOGRAD_MIN,
    RT_WINOGRAD_MAX,
    RT_WINOGRAD_ACTIVATION, /* or none */
    RT_WINOGRAD_ARGS
};

/* A worker's scratch has room for a register tile of patches with so many channels. */
#define RT_WINOGRAD_CHANNELS_MAX 4096

#endif
