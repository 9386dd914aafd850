# SPDX-License-Identifier: MIT
# What pte and pted both say of a profile.
noinst_LIBRARIES += %D%/libprofile.a
%C%_libprofile_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libprofile_a_SOURCES = %D%/layers.c %D%/layers.h
