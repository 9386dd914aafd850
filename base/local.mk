# SPDX-License-Identifier: MIT
noinst_LIBRARIES += %D%/libbase.a
# fft.c, and all else here, may be compiled for vectors: nothing looks at traps of floats.
%C%_libbase_a_CFLAGS = $(STRICT_CFLAGS) $(VECTOR_CFLAGS)
%C%_libbase_a_SOURCES = \
	%D%/arena.c %D%/arena.h \
	%D%/array.c %D%/array.h \
	%D%/asan.h \
	%D%/blake2b.c %D%/blake2b.h \
	%D%/buf.c %D%/buf.h \
	%D%/build_id.c %D%/build_id.h \
	%D%/bytes.h \
	%D%/check.c %D%/check.h \
	%D%/counter.h \
	%D%/digest.c %D%/digest.h \
	%D%/dtype.c %D%/dtype.def %D%/dtype.h \
	%D%/fft.c %D%/fft.h \
	%D%/folder.c %D%/folder.h \
	%D%/hash.h \
	%D%/histogram.c %D%/histogram.h \
	%D%/list.h \
	%D%/names.c %D%/names.h \
	%D%/precision.c %D%/precision.h \
	%D%/reason.c %D%/reason.def %D%/reason.h \
	%D%/refs.h \
	%D%/resource.c %D%/resource.def %D%/resource.h \
	%D%/shape.c %D%/shape.h \
	%D%/share.c %D%/share.h \
	%D%/spare.h \
	%D%/status.c %D%/status.def %D%/status.h \
	%D%/table.h \
	%D%/ticks.h \
	%D%/utf8.h \
	%D%/wide.h
