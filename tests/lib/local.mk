# SPDX-License-Identifier: MIT
# Tests of the shared library through its public header.
TESTS += %D%/run_library.sh
EXTRA_DIST += %D%/run_library.sh
if HAVE_LIBRARY
if HAVE_CMOCKA
LIBRARY_TESTS = %D%/test_inside %D%/test_libpted
check_PROGRAMS += $(LIBRARY_TESTS)
TESTS += $(LIBRARY_TESTS)
LIBRARY_SUPPORT = %D%/support.c %D%/support.h
LIBRARY_LINK = $(AM_LDFLAGS) -Wl,-rpath,$(abs_top_builddir)/lib
%C%_test_inside_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_inside_SOURCES = %D%/test_inside.c $(LIBRARY_SUPPORT)
%C%_test_inside_LDFLAGS = $(LIBRARY_LINK)
%C%_test_inside_LDADD = lib/libpted.so $(CMOCKA_LIBS)
%C%_test_libpted_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_libpted_SOURCES = %D%/test_libpted.c $(LIBRARY_SUPPORT)
%C%_test_libpted_LDFLAGS = $(LIBRARY_LINK)
%C%_test_libpted_LDADD = lib/libpted.so $(CMOCKA_LIBS)
endif
endif
