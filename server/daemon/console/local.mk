# SPDX-License-Identifier: MIT
# The page at / and the description of all routes: files of the tree, inside of the daemon.
CONSOLE_FILES = \
	%D%/answer.js \
	%D%/api.js \
	%D%/chat.js \
	%D%/chat_message.js \
	%D%/chat_settings.js \
	%D%/chats.js \
	%D%/code.js \
	%D%/console.css \
	%D%/dom.js \
	%D%/form.js \
	%D%/graph.js \
	%D%/help.js \
	%D%/highlight.js \
	%D%/home.js \
	%D%/icon.svg \
	%D%/index.html \
	%D%/live.js \
	%D%/main.js \
	%D%/markdown.js \
	%D%/media.js \
	%D%/model.js \
	%D%/numbers.js \
	%D%/openapi.json \
	%D%/parts.css \
	%D%/people.js \
	%D%/speech.js \
	%D%/text.js \
	%D%/texts.js \
	%D%/turn.js \
	%D%/vectors.js
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
