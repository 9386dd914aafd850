# SPDX-License-Identifier: MIT
include runtime/ops/local.mk
