# SPDX-License-Identifier: MIT
# Tests of the shared library through its public header.
TESTS += %D%/run_library.sh
EXTRA_DIST += %D%/run_library.sh
if HAVE_LIBRARY
if HAVE_CMOCKA
check_PROGRAMS += %D%/test_libpted
TESTS += %D%/test_libpted
%C%_test_libpted_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_libpted_LDFLAGS = $(AM_LDFLAGS) -Wl,-rpath,$(abs_top_builddir)/lib
%C%_test_libpted_LDADD = lib/libpted.so $(CMOCKA_LIBS)
endif
endif
