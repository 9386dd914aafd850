/* SPDX-License-Identifier: MIT */
/* Depthwise convolution. */
#include "config.h"

#include "hal/cpu/uk/conv_dw_f32.h"

void UK_NAME(dw_f32)(const struct uk_dw_f32 *d)
{
    run(d);
}
