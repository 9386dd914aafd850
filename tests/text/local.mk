# SPDX-License-Identifier: MIT
# Tokenizers: files that contrib/export/text.py has trained, with what the Python libraries say.
check_PROGRAMS += %D%/tokenizer_replay %D%/test_tokenizers
TESTS += %D%/test_tokenizers
%C%_tokenizer_replay_CFLAGS = $(SERVER_CFLAGS)
%C%_tokenizer_replay_LDADD = $(SERVER_LIBS)
%C%_test_tokenizers_CFLAGS = $(SERVER_CFLAGS)
%C%_test_tokenizers_LDADD = $(SERVER_LIBS)

TOKENIZERS = bert.json classic_bpe.json clip.json gemma.json gpt2.json llama2.json llama3.json \
	qwen25.json unigram.json wordlevel.json spm_gemma.model spm_unigram.model \
	tik_cl100k.tiktoken \
	bert.cases classic_bpe.cases clip.cases gemma.cases gpt2.cases llama2.cases llama3.cases \
	qwen25.cases unigram.cases wordlevel.cases spm_gemma.cases spm_unigram.cases \
	tik_cl100k.cases
EXTRA_DIST += $(TOKENIZERS:%=%D%/%)

# Grammars against what Python takes: grammars.py and schemas.py of contrib/export wrote
# grammars.jsonl and schemas.jsonl. Chat templates against what jinja2 made of them:
# chat_templates.py wrote cases.jsonl.
check_PROGRAMS += %D%/test_grammar %D%/test_templates
TESTS += %D%/test_grammar %D%/test_templates
%C%_test_templates_CFLAGS = $(SERVER_CFLAGS)
%C%_test_templates_LDADD = $(TEXT_LIBS) $(PROTOCOL_LIBS) -lm
%C%_test_grammar_CFLAGS = $(SERVER_CFLAGS)
%C%_test_grammar_LDADD = $(TEXT_LIBS) $(PROTOCOL_LIBS) -lm
EXTRA_DIST += %D%/grammars.jsonl %D%/schemas.jsonl %D%/templates %D%/cases.jsonl \
	%D%/constructs.json %D%/constructs.txt

# Rules of tokenizer.json and of its regular expressions: contrib/export/text_rules.py and
# text_patterns.py wrote the files.
check_PROGRAMS += %D%/test_rules
TESTS += %D%/test_rules
%C%_test_rules_CFLAGS = $(SERVER_CFLAGS)
%C%_test_rules_LDADD = $(SERVER_LIBS)
EXTRA_DIST += %D%/rules.jsonl %D%/patterns.jsonl
