# SPDX-License-Identifier: MIT
# Chat templates.
noinst_LIBRARIES += %D%/libtemplate.a
%C%_libtemplate_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libtemplate_a_SOURCES = \
	%D%/pytext.c %D%/pytext.def %D%/pytext.h \
	%D%/template.h \
	%D%/template_arithmetic.c \
	%D%/template_call.c \
	%D%/template_eval.c \
	%D%/template_expression.c \
	%D%/template_filters.c \
	%D%/template_filters_list.c \
	%D%/template_filters_priv.h \
	%D%/template_lex.c \
	%D%/template_literal.c \
	%D%/template_methods.c \
	%D%/template_parse.c \
	%D%/template_parse_priv.h \
	%D%/template_parser.c \
	%D%/template_priv.h \
	%D%/template_render.c \
	%D%/template_tests.c \
	%D%/template_value.c
