# SPDX-License-Identifier: MIT
if HAVE_CMOCKA
UK_TESTS = %D%/test_uk_dw %D%/test_uk_gemm %D%/test_uk_math %D%/test_uk_vec
check_PROGRAMS += $(UK_TESTS)
TESTS += $(UK_TESTS)

%C%_test_uk_dw_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_dw_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_uk_gemm_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_gemm_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_uk_math_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_math_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_uk_vec_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_vec_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
endif
EXTRA_DIST += %D%/uk_levels.h
