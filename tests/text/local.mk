# SPDX-License-Identifier: MIT
# Tokenizers: files that contrib/export/tokenizers.py has trained, with what the Python libraries say.
check_PROGRAMS += %D%/tokenizer_replay
%C%_tokenizer_replay_CFLAGS = $(SERVER_CFLAGS)
%C%_tokenizer_replay_LDADD = $(SERVER_LIBS)
