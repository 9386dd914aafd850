# SPDX-License-Identifier: MIT
if HAVE_CMOCKA
check_PROGRAMS += %D%/test_uk_gemm
TESTS += %D%/test_uk_gemm

%C%_test_uk_gemm_SOURCES = %D%/test_uk_gemm.c %D%/uk_levels.h
%C%_test_uk_gemm_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_gemm_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
endif
