# SPDX-License-Identifier: MIT
include runtime/ops/local.mk
include runtime/emit/local.mk

noinst_LIBRARIES += %D%/libruntime.a
%C%_libruntime_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libruntime_a_SOURCES =

# The .pte container
%C%_libruntime_a_SOURCES += \
	%D%/pte/container.c %D%/pte/container.h \
	%D%/pte/decode.c %D%/pte/decode.h \
	%D%/pte/file.c %D%/pte/file.h \
	%D%/pte/flatbuf.c %D%/pte/flatbuf.h \
	%D%/pte/instr.c %D%/pte/interface.c \
	%D%/pte/limits.h \
	%D%/pte/link.c \
	%D%/pte/plan.c \
	%D%/pte/print.c \
	%D%/pte/ptd.c %D%/pte/ptd.h \
	%D%/pte/pte.c %D%/pte/pte.h %D%/pte/pte_priv.h \
	%D%/pte/schema.h \
	%D%/pte/source.c \
	%D%/pte/tensor.c \
	%D%/pte/text.c %D%/pte/text.h \
	%D%/pte/value.c \
	%D%/pte/verify.c

# Programs and methods, the graph and its passes, plans, calls
%C%_libruntime_a_SOURCES += \
	%D%/files.c %D%/files.h \
	%D%/batch.h \
	%D%/invocation.h \
	%D%/block.c %D%/block.h \
	%D%/callable.h \
	%D%/cascade.c %D%/cascade.h \
	%D%/cascade_prepare.c \
	%D%/cascade_priv.h \
	%D%/cascade_sizes.c %D%/cascade_sizes.h \
	%D%/code.c %D%/code.h \
	%D%/example.c %D%/example.h \
	%D%/foresee.c %D%/foresee.h \
	%D%/method.c %D%/method.h \
	%D%/method_print.c \
	%D%/names.c %D%/names.h \
	%D%/operators.c %D%/operators.h \
	%D%/oracle.c %D%/oracle.h \
	%D%/pipeline.c %D%/pipeline.h %D%/pipeline_describe.c %D%/pipeline_example.c %D%/pipeline_priv.h \
	%D%/resident.c %D%/resident.h \
	%D%/program.c %D%/program.h \
	%D%/results.c %D%/results.h \
	%D%/scalar.c %D%/scalar.def %D%/scalar.h \
	%D%/signature.c %D%/signature.h \
	%D%/state.c %D%/state.h %D%/state_priv.h \
	%D%/summary.c %D%/summary.h \
	%D%/weights.c %D%/weights.h \
	%D%/import/delegate.h %D%/import/delegate.c %D%/import/delegates.c \
	%D%/import/blocks.c \
	%D%/import/control.c %D%/import/import_priv.h \
	%D%/import/host_calls.c \
	%D%/import/kernels.c %D%/import/kernels.h \
	%D%/import/masks.c \
	%D%/import/payload.c %D%/import/payload.h \
	%D%/import/registers.c \
	%D%/import/vulkan.c %D%/import/vulkan.h \
	%D%/import/vulkan_conv.c %D%/import/vulkan_llm.c %D%/import/vulkan_ops.c \
	%D%/import/vulkan_quant.c \
	%D%/import/vulkan_read.c \
	%D%/import/liveness.c %D%/import/liveness.h \
	%D%/import/values.c \
	%D%/import/xnnpack.c %D%/import/xnnpack.h \
	%D%/import/xnnpack_conv.c \
	%D%/import/xnnpack_nodes.c \
	%D%/import/xnnpack_quant.c \
	%D%/import/xnnpack_read.c %D%/import/xnnpack_read.h \
	%D%/import/xnnpack_values.c \
	%D%/graph/batch.c %D%/graph/batch.h \
	%D%/graph/dim.c %D%/graph/dim.h %D%/graph/dim_priv.h \
	%D%/graph/dim_eval.c %D%/graph/dim_solve.c \
	%D%/graph/elide.c \
	%D%/graph/fold.c \
	%D%/graph/fuse.c \
	%D%/graph/chain.c \
	%D%/graph/graph.c %D%/graph/graph.h \
	%D%/graph/layout.c \
	%D%/graph/lower.c %D%/graph/lower.h %D%/graph/lower_conv.c %D%/graph/lower_fft.c \
	%D%/graph/lower_llm.c %D%/graph/lower_quant.c \
	%D%/graph/normalize.c \
	%D%/graph/passes.h \
	%D%/graph/permute.c \
	%D%/graph/print.c \
	%D%/graph/quantize.c %D%/graph/quantize.h \
	%D%/graph/quantize_between.c %D%/graph/quantize_moves.c \
	%D%/graph/quantize_products.c %D%/graph/quantize_scales.c \
	%D%/graph/resolve.c \
	%D%/graph/rewrite.c %D%/graph/rewrite.h \
	%D%/plan/alloc.c %D%/plan/alloc.h \
	%D%/plan/exec.c \
	%D%/plan/flow.c %D%/plan/flow.h \
	%D%/plan/numbers.c %D%/plan/numbers.h \
	%D%/plan/plan.h \
	%D%/sched/deadline.c %D%/sched/deadline.h \
	%D%/sched/queue.c %D%/sched/queue.h \
	%D%/sched/sched.c %D%/sched/sched.h \
	%D%/sched/sequence.c %D%/sched/sequence.h \
	%D%/vm/batch.c %D%/vm/batch_proof.c \
	%D%/vm/block.c \
	%D%/vm/host.c \
	%D%/vm/inputs.c \
	%D%/vm/invocation.c %D%/vm/invocation_priv.h \
	%D%/vm/memory.c \
	%D%/vm/pipelined.c \
	%D%/vm/prepare.c \
	%D%/vm/results.c \
	%D%/vm/single.c \
	%D%/vm/states.c \
	%D%/vm/vm.c %D%/vm/vm.h %D%/vm/walk.c \
	%D%/vm/words.c %D%/vm/words.h
