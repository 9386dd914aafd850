/* SPDX-License-Identifier: MIT */
/*
 * Convolution of groups of a few channels. As a matrix product, each group would fill only a part
 * of a register tile.
 */
#include "config.h"

#define GROUPS
#include "hal/cpu/uk/conv_dw_f32.h"

void UK_NAME(group_f32)(const struct uk_dw_f32 *d)
{
    must(d->group > 0 && UK_VL % d->group == 0 && d->channels % d->group == 0);
    must(d->channels >= UK_VL);
    run(d);
}
