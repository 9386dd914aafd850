/* SPDX-License-Identifier: MIT */
/* What the operator "fft" and the pass that makes it agree on. */
#ifndef PTED_RUNTIME_OPS_FFT_H
#define PTED_RUNTIME_OPS_FFT_H

#include "runtime/ops/op.h"

/* Which side of the transform has real numbers. */
enum rt_fft_mode { RT_FFT_FROM_REAL, RT_FFT_COMPLEX, RT_FFT_TO_REAL };

#endif
