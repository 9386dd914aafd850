# SPDX-License-Identifier: MIT
# The page at / and the description of all routes: files of the tree, inside of the daemon.
CONSOLE_FILES = \
	%D%/answer.js \
	%D%/api.js \
	%D%/chat.js \
	%D%/code.js \
	%D%/console.css \
	%D%/form.js \
	%D%/graph.js \
	%D%/index.html \
	%D%/main.js \
	%D%/media.js \
	%D%/models.js \
	%D%/openapi.json \
	%D%/people.js
EXTRA_DIST += $(CONSOLE_FILES)

noinst_LIBRARIES += %D%/libconsole.a
%C%_libconsole_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libconsole_a_CCASFLAGS = -Wa,-I$(srcdir)/%D%
%C%_libconsole_a_SOURCES = \
	%D%/console.c %D%/console.h \
	%D%/files.S \
	%D%/files.def

# The assembler reads the files, which the compiler's lists of dependencies do not know.
%D%/libconsole_a-files.$(OBJEXT): $(CONSOLE_FILES)
