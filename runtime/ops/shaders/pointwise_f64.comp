/* SPDX-License-Identifier: MIT */
/* The loops of the pointwise family that involve doubles: the loops on doubles that need only
 * arithmetic, RT_PW_F64_LOOPS, and loops of other classes with operands or results of doubles. */
#define WITH_F64
#include "runtime/ops/shaders/pointwise.comp"
