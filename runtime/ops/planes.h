/* SPDX-License-Identifier: MIT */
/* The number of channels that "planes" makes: see planes.c. */
#ifndef PTED_RUNTIME_OPS_PLANES_H
#define PTED_RUNTIME_OPS_PLANES_H

#define RT_PLANES 4

#endif
