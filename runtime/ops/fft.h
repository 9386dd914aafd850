/* SPDX-License-Identifier: MIT */
/* Shared by the operator "fft" and the pass that makes it. */
#ifndef PTED_RUNTIME_OPS_FFT_H
#define PTED_RUNTIME_OPS_FFT_H

#include "runtime/ops/op.h"

/* The side of the transform that has real numbers. */
enum rt_fft_mode { RT_FFT_FROM_REAL, RT_FFT_COMPLEX, RT_FFT_TO_REAL };

#endif
