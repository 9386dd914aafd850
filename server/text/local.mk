# SPDX-License-Identifier: MIT
# Text of language models: four libraries. Only templates and grammars need another one: values.
TEXT_LIBS = %D%/tokenizer/libtokenizer.a %D%/template/libtemplate.a %D%/grammar/libgrammar.a \
	%D%/value/libvalue.a

include server/text/tokenizer/local.mk
include server/text/template/local.mk
include server/text/grammar/local.mk
include server/text/value/local.mk
