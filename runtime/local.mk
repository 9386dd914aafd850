# SPDX-License-Identifier: MIT
# The layers of the runtime, from the top down: RUNTIME_LIBS in Makefile.am has the same order.
include runtime/load/local.mk
include runtime/pipeline/local.mk
include runtime/vm/local.mk
include runtime/sched/local.mk
include runtime/call/local.mk
include runtime/program/local.mk
include runtime/import/local.mk
include runtime/code/local.mk
include runtime/plan/local.mk
include runtime/passes/local.mk
include runtime/ops/local.mk
include runtime/kernels/local.mk
include runtime/emit/local.mk
include runtime/graph/local.mk
include runtime/pte/local.mk
