# SPDX-License-Identifier: MIT
# Programs and PyTorch's results, made by contrib/export/ops.py, for each family.

check_PROGRAMS += %D%/test_ops
TESTS += %D%/test_ops
%C%_test_ops_SOURCES = %D%/test_ops.c %D%/cases.c %D%/cases.h \
	%D%/dispatches.c %D%/dispatches.h
%C%_test_ops_CFLAGS = $(AM_CFLAGS)
%C%_test_ops_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rt_emit_dispatch
%C%_test_ops_LDADD = $(RUNTIME_LIBS)

if HAVE_VULKAN
check_PROGRAMS += %D%/test_shaders
TESTS += %D%/shaders.sh
%C%_test_shaders_SOURCES = %D%/test_ops.c %D%/cases.c %D%/cases.h \
	%D%/dispatches.h %D%/shadow.c
%C%_test_shaders_CFLAGS = $(AM_CFLAGS)
%C%_test_shaders_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rt_emit_dispatch
%C%_test_shaders_LDADD = $(RUNTIME_LIBS)
endif
EXTRA_DIST += %D%/shaders.sh

EXTRA_DIST += \
	%D%/beyond.bin %D%/beyond.cases %D%/beyond.pte \
	%D%/complex.bin %D%/complex.cases %D%/complex.pte \
	%D%/differences.bin %D%/differences.cases %D%/differences.pte \
	%D%/extent.bin %D%/extent.cases %D%/extent.pte \
	%D%/conv.bin %D%/conv.cases %D%/conv.pte \
	%D%/conversions.bin %D%/conversions.cases %D%/conversions.pte \
	%D%/conv_types.bin %D%/conv_types.cases %D%/conv_types.pte \
	%D%/corners.bin %D%/corners.cases %D%/corners.pte \
	%D%/create.bin %D%/create.cases %D%/create.pte \
	%D%/formats.bin %D%/formats.cases %D%/formats.pte \
	%D%/gate.bin %D%/gate.cases %D%/gate.pte \
	%D%/index.bin %D%/index.cases %D%/index.pte \
	%D%/integers.bin %D%/integers.cases %D%/integers.pte \
	%D%/llm.bin %D%/llm.cases %D%/llm.pte \
	%D%/moe.bin %D%/moe.cases %D%/moe.pte \
	%D%/matmul.bin %D%/matmul.cases %D%/matmul.pte \
	%D%/norm.bin %D%/norm.cases %D%/norm.pte \
	%D%/order.bin %D%/order.cases %D%/order.pte \
	%D%/pointwise.bin %D%/pointwise.cases %D%/pointwise.pte \
	%D%/products.bin %D%/products.cases %D%/products.pte \
	%D%/pool.bin %D%/pool.cases %D%/pool.pte \
	%D%/quant_layers.bin %D%/quant_layers.cases %D%/quant_layers.pte \
	%D%/quantized.bin %D%/quantized.cases %D%/quantized.pte \
	%D%/random.bin %D%/random.cases %D%/random.pte \
	%D%/reduce.bin %D%/reduce.cases %D%/reduce.pte \
	%D%/sizes.bin %D%/sizes.cases %D%/sizes.pte \
	%D%/view.bin %D%/view.cases %D%/view.pte \
	%D%/vision.bin %D%/vision.cases %D%/vision.pte
