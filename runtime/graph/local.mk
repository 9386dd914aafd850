# SPDX-License-Identifier: MIT
# The structure of a graph: values, nodes, symbolic sizes, the row of an operator.
noinst_LIBRARIES += %D%/libgraph.a
%C%_libgraph_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libgraph_a_SOURCES = \
	%D%/dim.c %D%/dim.h \
	%D%/dim_double.c \
	%D%/dim_eval.c \
	%D%/dim_priv.h \
	%D%/dim_solve.c \
	%D%/graph.c %D%/graph.h \
	%D%/op.h \
	%D%/print.c
