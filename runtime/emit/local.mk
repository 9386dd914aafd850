# SPDX-License-Identifier: MIT
# Part of the operators' archive.
runtime_ops_libops_a_SOURCES += \
	%D%/block.h \
	%D%/emit.c %D%/emit.h \
	%D%/planner.h \
	%D%/tiles.c \
	%D%/update.h
