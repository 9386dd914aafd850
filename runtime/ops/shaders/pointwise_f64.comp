/* SPDX-License-Identifier: MIT */
/*
 * The loops of the pointwise family where a double takes part: those of doubles that need no more
 * than arithmetic, RT_PW_F64_LOOPS, and those of other classes with operands or results of doubles.
 */
#define WITH_F64
#include "runtime/ops/shaders/pointwise.comp"
