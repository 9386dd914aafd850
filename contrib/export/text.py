#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains small tokenizers in the shapes of published ones and compares pted's with the libraries.

    text.py compare BUILD [COUNT [NAME...]]   compare on COUNT texts; prints a table
    text.py time BUILD [NAME...]              speed beside the Python libraries
    text.py store FOLDER                      write the files of tests/text/

Needs the packages tokenizers, sentencepiece and tiktoken. BUILD is a build tree with
tests/text/tokenizer_replay.
"""

import base64
import functools
import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import sentencepiece
import tiktoken
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# ---- texts -------------------------------------------------------------------------------------

WORDS = {
    "latin": "the of and to in is that it was for on are with as his they be at one have this from "
             "hello world language model token number people which would there don't we're I'll "
             "it's you've he'd ISN'T résumé naïve Straße coöperate façade Ærø žluťoučký kůň çok "
             "İstanbul ISTANBUL ſtreet Kelvin ﬁne ﬃ ﬆyle",
    "cyrillic": "и в не на что я быть он с как это по но они мы привет мир язык модель слово",
    "greek": "και το να του η της με που την από για είναι ΟΔΟΣ ὀδός γλῶσσα μοντέλο",
    "cjk": "你好 世界 语言 模型 的 一 是 不 了 在 人 有 我 他 这 中国 日本語 東京 豈 𠀀𠀁 㐀",
    "kana": "こんにちは 世界 です ます カタカナ ﾊﾝｶｸ が ガ パ ゔ",
    "hangul": "안녕하세요 세계 언어 모델 한국어 가 각 ᄀ ᅡ ᆨ",
    "arabic": "السلام عليكم في من على أن هذا لغة نموذج ١٢٣ ﷺ لا",
    "hebrew": "שלום עולם של את לא שָׁלוֹם",
    "indic": "नमस्ते दुनिया क्षत्रिय ज्ञान है में வணக்கம் உலகம் বাংলা ক্ষ ಕನ್ನಡ १२३",
    "thai": "สวัสดี โลก ภาษา กำลัง น้ำ ၁၂၃ မြန်မာ ភាសា",
}
PIECES = ["🙂", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "🏳️‍🌈", "❤️", "1️⃣", "™", "½", "Ⅷ", "①", "²", "¼", "٣", "½x",
          "e\u0301", "a\u0308\u0323", "q\u0323\u0307", "o\u0302\u0301", "\u0301",
          "z\u0335\u0336\u0334",
          "\u200b", "\u200d", "\u00a0", "\u3000", "\u2003", "\u180e", "\u0085", "\u2028", "\ufeff",
          "\ufffd", "\u00ad", "\u202e", "\x00", "\x07", "\x1b", "\x7f", "\x9f", "\x0b", "\x0c",
          "\ue000", "\U000f0000", "\u0378", "\ufdd0", "…", "—", "„", "“", "'", "’", "'S", "'ſ",
          "'ll",
          "...", "!!!", "?!", "#", "##", "##a", "@", "$", "%", "&", "*", "(", ")", "_", "__",
          "-", "+",
          "/", "\\", "<", ">", "<|", "|>", "<s>", "</s>", "[CLS]", "[SEP]", "[MASK]", "<unk>",
          "<pad>",
          "<|endoftext|>", "<|im_start|>", "<|eot_id|>", "<0x0A>", "▁", "▁▁", "Ġ", "Ċ", "<extra>",
          "http://a.b/c?d=e&f=1", "x=3.14159;", "{\"k\": [1, 2]}", "0", "7", "42", "1234567",
          "3,000",
          "\t", "\n", "\r", "\r\n", "\n\n", " ", "  ", "   ", "        ", " \n ", "\t\t", " .",
          " n't",
          " do not"]


def make_texts(count, seed):
    """Mostly words of one or two scripts; with everything that is unusual in between."""
    rng = random.Random(seed)
    scripts = {name: words.split() for name, words in WORDS.items()}
    names = sorted(scripts)
    texts = ["", " ", "  ", "a", "\n", "▁", "\x00", "é", "e\u0301", "🙂", "A" * 300, " " * 300,
             "ab" * 200, "\u0301" * 60, "🙂" * 90, "<s>", "  <s>  a", "你" * 200, "\ufffd"]
    while len(texts) < count:
        kind = rng.random()
        if kind < 0.08:
            parts = [chr(rng.choice([rng.randrange(1, 0x300), rng.randrange(0x300, 0xd800),
                                     rng.randrange(0xe000, 0x30000)]))
                     for _ in range(rng.randrange(1, 30))]
            texts.append("".join(c for c in parts if is_old(c)))
            continue
        chosen = rng.sample(names, rng.randrange(1, 3))
        out = []
        for _ in range(rng.randrange(1, 40)):
            word = rng.choice(scripts[rng.choice(chosen)])
            what = rng.random()
            if what < 0.1:
                word = rng.choice(PIECES)
            elif what < 0.15:
                word = word.upper()
            elif what < 0.2:
                word = word.capitalize()
            elif what < 0.23:
                word = rng.choice("ab .-1\n☃é") * rng.randrange(2, 70)
            out.append(word + ("" if rng.random() < 0.25 else " "))
            if rng.random() < 0.06:
                out.append(rng.choice(PIECES))
        texts.append("".join(out))
    return texts[:count]


@functools.lru_cache(None)
def is_old(char):
    """Do the tables of tokenizers and those of Unicode 14 say the same of it? Those of tokenizers
    are older for marks, punctuation and compatibility; tokenizers.md of docs/ has the numbers."""
    category = unicodedata.category(char)
    if category in ("Cn", "Cs"):
        return False
    kept = normalizers.StripAccents().normalize_str(char) != ""
    nfd = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False,
                                     strip_accents=True, lowercase=False).normalize_str(char)
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False,
                                       strip_accents=False, lowercase=False).normalize_str(char)
    is_split = len(pre_tokenizers.Punctuation().pre_tokenize_str("a" + char)) == 2
    is_mark = category == "Mn" and unicodedata.normalize("NFD", char) == char
    is_other = category in ("Cc", "Cf", "Co") and char not in "\t\n\r"
    return (kept != (category[0] == "M") and (nfd == "") == is_mark
            and (ord(char) < 128 or is_split == (category[0] == "P"))
            and (char == "\ufffd" or (clean == "") == is_other)
            and normalizers.NFKD().normalize_str(char) == unicodedata.normalize("NFKD", char))


def make_corpus(seed=7, count=3000):
    return [text for text in make_texts(count, seed) if "\x00" not in text]


# ---- tokenizers --------------------------------------------------------------------------------


def alphabet():
    return pre_tokenizers.ByteLevel.alphabet()


def train_bpe(tokenizer, size, special, with_bytes=True, **options):
    tokenizer.train_from_iterator(make_corpus(), trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, show_progress=False,
        initial_alphabet=alphabet() if with_bytes else [], **options))
    return tokenizer


def template(bos, eos, tokenizer):
    pieces = [bos] if bos else []
    single = " ".join(pieces + ["$A"] + ([eos] if eos else []))
    ending = ["$B:1"] + ([eos + ":1"] if eos else [])
    pair = " ".join(pieces + ["$A"] + ([eos] if eos else []) + ending)
    special = [(t, tokenizer.token_to_id(t)) for t in (bos, eos) if t]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=special)


def gpt2(size):
    t = tokenizers.Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return train_bpe(t, size, ["<|endoftext|>"])


def roberta(size):
    t = tokenizers.Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    train_bpe(t, size, ["<s>", "<pad>", "</s>", "<unk>"])
    t.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t


def llama3(size):
    t = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    train_bpe(t, size, [])
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), template("<|begin_of_text|>", None, t)])
    return t


def qwen25(size):
    t = tokenizers.Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(QWEN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    train_bpe(t, size, [])
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens([tokenizers.AddedToken("<tool_call>", normalized=False)])
    return t


def o200k(size):
    t = tokenizers.Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(O200K), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    return train_bpe(t, size, ["<|endoftext|>"])


def smollm(size):
    t = tokenizers.Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    return train_bpe(t, size, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])


def deepseek(size):
    t = tokenizers.Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(r"\p{N}{1,3}"), "isolated"),
        pre_tokenizers.Split(tokenizers.Regex("[一-龥\u3040-ゟ゠-ヿ]+"), "isolated"),
        pre_tokenizers.Split(tokenizers.Regex(
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    train_bpe(t, size, ["<s>", "</s>"])
    t.post_processor = template("<s>", None, t)
    return t


def falcon(size):
    t = tokenizers.Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.Split(tokenizers.Regex("[0-9][0-9][0-9]"), "isolated")])
    t.decoder = decoders.ByteLevel()
    return train_bpe(t, size, ["<|endoftext|>"])


def bloom(size):
    t = tokenizers.Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(" ?[^(\\s|[.,!?…。，、।۔،])]+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    return train_bpe(t, size, ["<unk>", "<s>", "</s>", "<pad>"])


def phi(size):
    t = gpt2(size)
    t.add_special_tokens(["<|im_start|>"])
    t.add_tokens([tokenizers.AddedToken(" " * n, normalized=False) for n in range(31, 1, -1)]
                 + [tokenizers.AddedToken("\t" * n, normalized=False) for n in range(9, 1, -1)])
    return t


def bytes_of():
    return ["<0x%02X>" % i for i in range(256)]


def with_model(t, **options):
    """The same vocabulary with other options of the model."""
    model = json.loads(t.to_str())
    model["model"].update(options)
    return tokenizers.Tokenizer.from_str(json.dumps(model))


def llama2(size, scheme="legacy"):
    t = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    train_bpe(t, size, ["<unk>", "<s>", "</s>"] + bytes_of(), False, limit_alphabet=400)
    data = json.loads(t.to_str())
    data["pre_tokenizer"] = None
    data["added_tokens"] = data["added_tokens"][:3]
    if scheme != "legacy":
        data["normalizer"] = None
        data["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
                                 "split": False}
    t = tokenizers.Tokenizer.from_str(json.dumps(data))
    t.post_processor = template("<s>", None, t)
    return t


def mistral(size):
    return llama2(size, "first")


def gemma(size):
    t = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse()])
    train_bpe(t, size, ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "\n\n", "▁▁"] +
              bytes_of(), False, limit_alphabet=400)
    data = json.loads(t.to_str())
    data["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "},
                             "behavior": "MergedWithPrevious", "invert": False}
    keep = {"<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "\n\n", "▁▁"}
    data["added_tokens"] = [a for a in data["added_tokens"] if a["content"] in keep]
    for a in data["added_tokens"]:
        a["special"] = a["content"][0] == "<"
    t = tokenizers.Tokenizer.from_str(json.dumps(data))
    t.post_processor = template("<bos>", None, t)
    return t


def bert(size, lower=True):
    t = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(make_corpus(), trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        show_progress=False, limit_alphabet=500))
    t.post_processor = template("[CLS]", "[SEP]", t)
    return t


def bert_cased(size):
    t = bert(size, False)
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def fields_of(message):
    """The fields of a protocol buffer that are bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            shift += 7
            at += 1
            if message[at - 1] < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, message[at:at + size]
            at += size
        elif key & 7 == 0:
            varint()
        else:
            at += 4 if key & 7 == 5 else 8


def charsmap(rule):
    """The map that sentencepiece compiles into each model."""
    model = train_sentencepiece("unigram", 60, corpus=["the quick brown fox"] * 20,
                                normalization_rule_name=rule)
    spec = dict(fields_of(model))[3]
    return dict(fields_of(spec))[2]


def t5(size):
    t = tokenizers.Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([
        normalizers.Precompiled(charsmap("nmt_nfkc")),
        normalizers.Strip(left=False, right=True),
        normalizers.Replace(tokenizers.Regex(" {2,}"), "▁")])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(make_corpus(), trainers.UnigramTrainer(
        vocab_size=size, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>",
        show_progress=False))
    t.post_processor = template(None, "</s>", t)
    return t


def xlmr(size, corpus=None):
    t = tokenizers.Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([
        normalizers.Precompiled(charsmap("nmt_nfkc")),
        normalizers.Replace(tokenizers.Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(corpus or make_corpus(), trainers.UnigramTrainer(
        vocab_size=size, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>",
        show_progress=False))
    t.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)])
    return t


def unigram(size):
    """xlmr() without the map, which takes 300 KB in a file."""
    t = xlmr(size, [text for text in make_corpus() if max(text, default="") < "\u0500"])
    t.normalizer = normalizers.Sequence([
        normalizers.NFKC(), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")])
    return t


def albert(size):
    t = t5(size)
    t.normalizer = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase(), normalizers.Precompiled(charsmap("nmt_nfkc"))])
    return with_model(t, byte_fallback=True)


def clip(size):
    t = tokenizers.Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Replace(tokenizers.Regex(r"\s+"), " "),
        normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(
            r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    train_bpe(t, size, ["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>")
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0))
    return t


def classic_bpe(size):
    t = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##",
                                        end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip(),
                                         normalizers.Nmt()])
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.decoder = decoders.BPEDecoder("</w>")
    train_bpe(t, size, ["[UNK]", "[PAD]"], False, continuing_subword_prefix="##",
              end_of_word_suffix="</w>", limit_alphabet=300)
    t.add_tokens([tokenizers.AddedToken("world", single_word=True),
                  tokenizers.AddedToken("Language", rstrip=True, normalized=True)])
    return t


def wordlevel(size):
    t = tokenizers.Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.CharDelimiterSplit("-"), pre_tokenizers.Punctuation("merged_with_previous"),
        pre_tokenizers.Digits(), pre_tokenizers.WhitespaceSplit()])
    t.train_from_iterator(make_corpus(), trainers.WordLevelTrainer(
        vocab_size=size, special_tokens=["<unk>"], show_progress=False))
    return t


def ctc(size):
    t = wordlevel(size)
    t.normalizer = normalizers.NFKD()
    t.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r"\w"), "merged_with_next")
    t.decoder = decoders.CTC(pad_token="a", word_delimiter_token="|", cleanup=True)
    return t


HUGGING = {f.__name__: f for f in (
    gpt2, roberta, llama3, qwen25, o200k, smollm, deepseek, falcon, bloom, phi, llama2, mistral,
    gemma, bert, bert_cased, t5, xlmr, unigram, albert, clip, classic_bpe, wordlevel, ctc)}


def train_sentencepiece(kind, size, corpus=None, **options):
    out = io.BytesIO()
    options = {"normalization_rule_name": "nmt_nfkc", **options}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus or make_corpus()), model_writer=out, vocab_size=size,
        model_type=kind,
        hard_vocab_limit=False, minloglevel=2, num_threads=1, **options)
    return out.getvalue()


SENTENCEPIECE = {
    "spm_llama": lambda size: train_sentencepiece(
        "bpe", size, byte_fallback=True, normalization_rule_name="identity", split_digits=True,
        remove_extra_whitespaces=False, allow_whitespace_only_pieces=True,
        character_coverage=0.995),
    "spm_gemma": lambda size: train_sentencepiece(
        "bpe", size, byte_fallback=True, normalization_rule_name="identity", split_digits=True,
        remove_extra_whitespaces=False, add_dummy_prefix=False, character_coverage=0.995,
        user_defined_symbols=["\n\n", "▁▁", "<start_of_turn>", "<table>"]),
    "spm_bpe": lambda size: train_sentencepiece("bpe", size, character_coverage=0.99),
    "spm_t5": lambda size: train_sentencepiece(
        "unigram", size, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.99),
    "spm_unigram": lambda size: train_sentencepiece(
        "unigram", size, byte_fallback=True, normalization_rule_name="identity",
        user_defined_symbols=["<table>", "don't"], control_symbols=["<ctl>"],
        character_coverage=0.98),
    "spm_suffix": lambda size: train_sentencepiece(
        "unigram", size, treat_whitespace_as_suffix=True, character_coverage=0.99),
}


def bytes_to_chars():
    table = {}
    rest = 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or 174 <= byte <= 255:
            table[chr(byte)] = byte
        else:
            table[chr(rest)] = byte
            rest += 1
    return table


def ranks_of(size):
    """Ranks of a trained byte level BPE: the bytes first, then the merges in their order."""
    data = json.loads(llama3(size).to_str())["model"]
    table = bytes_to_chars()
    ranks = {bytes([byte]): byte for byte in range(256)}
    for merge in data["merges"]:
        token = bytes(table[c] for c in "".join(merge))
        if token not in ranks:
            ranks[token] = len(ranks)
    return ranks


def print_ranks(ranks):
    return b"".join(base64.b64encode(t) + b" %d\n" % r for t, r in ranks.items())


TIKTOKEN_PATTERNS = {"cl100k": "cl100k_base", "o200k": "o200k_base", "gpt2": "gpt2"}


def tiktoken_pattern(name):
    """The patterns of the package, without its downloads."""
    import tiktoken_ext.openai_public as public
    if name == "llama3":
        return LLAMA3
    if name == "gpt2":
        return public.r50k_pat_str
    saved = public.load_tiktoken_bpe
    public.load_tiktoken_bpe = lambda *a, **k: {}
    try:
        return getattr(public, TIKTOKEN_PATTERNS[name])()["pat_str"]
    finally:
        public.load_tiktoken_bpe = saved


# ---- comparing ---------------------------------------------------------------------------------


class Hugging:
    pattern = "auto"

    def __init__(self, name, size):
        self.tokenizer = HUGGING[name](size)
        self.file = self.tokenizer.to_str(pretty=len(name) % 2 == 0).encode()
        self.tokenizer = tokenizers.Tokenizer.from_str(self.file.decode())

    def encode(self, text, flags):
        self.tokenizer.encode_special_tokens = not flags & 2
        return self.tokenizer.encode(text, add_special_tokens=bool(flags & 1)).ids

    def decode(self, ids, skip):
        return self.tokenizer.decode(ids, skip_special_tokens=skip)

    def load(self, path):
        tokenizers.Tokenizer.from_file(path)


class SentencePiece:
    pattern = "auto"

    def __init__(self, name, size):
        self.file = SENTENCEPIECE[name](size)
        self.tokenizer = sentencepiece.SentencePieceProcessor(model_proto=self.file)

    def encode(self, text, flags):
        return self.tokenizer.encode(text)

    def decode(self, ids, skip):
        return self.tokenizer.decode(ids)

    def load(self, path):
        sentencepiece.SentencePieceProcessor(model_file=path)


class Tiktoken:
    def __init__(self, name, size):
        self.pattern = name.split("_")[1]
        ranks = ranks_of(size)
        self.file = print_ranks(ranks)
        specials = {"cl100k": {"<|endoftext|>": 1, "<|endofprompt|>": 20},
                    "o200k": {"<|endoftext|>": 1}, "gpt2": {"<|endoftext|>": 0},
                    "llama3": {"<|begin_of_text|>": 0, "<|eot_id|>": 9}}[self.pattern]
        self.tokenizer = tiktoken.Encoding(
            name, pat_str=tiktoken_pattern(self.pattern), mergeable_ranks=ranks,
            special_tokens={text: len(ranks) + place for text, place in specials.items()})

    def encode(self, text, flags):
        if flags & 2:
            return self.tokenizer.encode(text, allowed_special="all", disallowed_special=())
        return self.tokenizer.encode_ordinary(text)

    def decode(self, ids, skip):
        ids = [i for i in ids if not skip or i < self.tokenizer.n_vocab - 300]
        return self.tokenizer.decode(ids)

    def load(self, path):
        tiktoken.load.load_tiktoken_bpe(path)


TIKTOKEN = ["tik_gpt2", "tik_cl100k", "tik_o200k", "tik_llama3"]


def make(name, size):
    kind = Hugging if name in HUGGING else SentencePiece if name in SENTENCEPIECE else Tiktoken
    return kind(name, size)


def all_names():
    return list(HUGGING) + list(SENTENCEPIECE) + TIKTOKEN


def replay(build, path, pattern, flags, texts):
    data = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    done = subprocess.run([os.path.join(build, "tests/text/tokenizer_replay"), path, pattern,
                           str(flags)], input=data, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit("%s: %s" % (path, done.stderr.decode(errors="replace")))
    return done.stdout


class Answers:
    def __init__(self, data):
        self.data, self.at = data, 0

    def u32(self):
        self.at += 4
        return struct.unpack_from("<I", self.data, self.at - 4)[0]

    def text(self):
        length = self.u32()
        self.at += length
        return self.data[self.at - length:self.at]

    def next(self):
        count = self.u32()
        if count == 0xffffffff:
            return self.text()
        ids = list(struct.unpack_from("<%dI" % count, self.data, self.at))
        self.at += 4 * count
        return ids, self.text(), self.text()


def broken(texts):
    """The texts as bytes; some with bytes that are not UTF-8."""
    rng = random.Random(3)
    out = [text.encode() for text in texts]
    for i in range(0, len(out), 9):
        data = bytearray(out[i])
        for _ in range(rng.randrange(1, 4)):
            wrong = rng.choice([b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98",
                b"\x80",
                                b"\xc0\xaf", b"\xf4\x90\x80\x80"])
            at = rng.randrange(len(data) + 1)
            data[at:at] = wrong
        # A byte in front of a character's last ones makes another character.
        new = set(data.decode(errors="replace")) - set(texts[i]) - {"\ufffd"}
        if all(is_old(char) for char in new):
            out[i] = bytes(data)
    return out


def flag_sets(name):
    return [0, 3] if name in HUGGING else [0] if name in SENTENCEPIECE else [2]


def compare(build, count, names, size=3000):
    raw = broken(make_texts(count, 1))
    texts = [text.decode(errors="replace") for text in raw]
    total = 0
    for name in names:
        one = make(name, size)
        with tempfile.NamedTemporaryFile() as file:
            file.write(one.file)
            file.flush()
            for flags in flag_sets(name):
                total += compare_one(build, one, name, file.name, flags, raw, texts)
    print("%d differences" % total)
    return total


def compare_one(build, one, name, path, flags, raw, texts):
    answers = Answers(replay(build, path, one.pattern, flags, raw))
    wrong_ids = wrong_texts = 0
    for text in texts:
        got = answers.next()
        want = one.encode(text, flags)
        if not isinstance(got, tuple) or got[0] != want:
            wrong_ids += 1
            if wrong_ids <= 2:
                print("  %s %d: %r\n    want %s\n    got  %s" % (
                    name, flags, text[:200], want[:60], got[0][:60] if isinstance(got,
                    tuple) else got))
            continue
        decoded = [one.decode(want, skip).encode(errors="replace") for skip in (False, True)]
        if name in TIKTOKEN:
            decoded[1] = got[2]
        if name in SENTENCEPIECE:
            decoded[1] = got[2]
        if list(got[1:]) != decoded:
            wrong_texts += 1
            if wrong_texts <= 2:
                print("  %s %d: decode %s\n    want %r\n    got  %r" % (name, flags, want[:60],
                    decoded[0][:200],
                                                                  got[1][:200]))
    print("%-12s flags %d: %6d texts, %d ids differ, %d decoded texts differ" % (
        name, flags, len(texts), wrong_ids, wrong_texts), flush=True)
    return wrong_ids + wrong_texts


def measure(build, names, size=20000):
    texts = [text for text in make_texts(4000, 5)]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print("%.2f MB of texts; seconds: load, encode, decode" % megabytes)
    for name in names:
        one = make(name, size)
        with tempfile.NamedTemporaryFile() as file:
            file.write(one.file)
            file.flush()
            data = [text.encode() for text in texts]
            own = [float(s) for s in replay(build, file.name, one.pattern, 256, data).split()]
            start = time.process_time()
            one.load(file.name)
            load = time.process_time() - start
        encode = decode = 1e9
        for _ in range(3):
            start = time.process_time()
            ids = [one.encode(text, 0) for text in texts]
            middle = time.process_time()
            for some in ids:
                one.decode(some, False)
            encode = min(encode, middle - start)
            decode = min(decode, time.process_time() - middle)
        print("%-12s load %.4f / %.4f = %.1f  encode %.4f / %.4f = %.1f (%.0f MB/s)  "
              "decode %.4f / %.4f = %.1f" % (
                  name, load, own[0], load / own[0], encode, own[1], encode / own[1],
                  megabytes / own[1], decode, own[2], decode / own[2]), flush=True)


STORED = ["gpt2", "llama3", "qwen25", "llama2", "gemma", "bert", "clip", "classic_bpe", "unigram",
          "wordlevel", "spm_gemma", "spm_unigram", "tik_cl100k"]


def store(folder):
    """NAME.json, NAME.model or NAME.tiktoken, and NAME.cases: each text, its tokens in 16 bits, and
    what they decode to, each behind its length; with the last flags of flag_sets()."""
    raw = [text[:60] for text in broken(make_texts(80, 11))]
    for name in STORED:
        one = make(name, {"unigram": 900, "spm_gemma": 2300, "spm_unigram": 2300}.get(name, 600))
        ending = "json" if name in HUGGING else "model" if name in SENTENCEPIECE else "tiktoken"
        file = one.file
        if ending == "json":
            file = json.dumps(json.loads(file), ensure_ascii=False, separators=(",", ":")).encode()
        out = b""
        for data in raw:
            text = data.decode(errors="replace")
            flags = flag_sets(name)[-1]
            ids = one.encode(text, flags)
            decoded = one.decode(ids, False).encode(errors="replace")
            out += struct.pack("<I", len(data)) + data + struct.pack("<I", len(ids))
            out += struct.pack("<%dH" % len(ids), *ids) + struct.pack("<I", len(decoded)) + decoded
        for suffix, content in ((ending, file), ("cases", out)):
            with open(os.path.join(folder, name + "." + suffix), "wb") as to:
                to.write(content)
        print("%-12s %d + %d bytes" % (name, len(file), len(out)))


def main(argv):
    if argv[:1] == ["compare"] and len(argv) >= 2:
        count = int(argv[2]) if len(argv) > 2 else 10000
        return compare(argv[1], count, argv[3:] or all_names()) > 0
    if argv[:1] == ["time"] and len(argv) >= 2:
        return measure(argv[1], argv[2:] or all_names())
    if argv[:1] == ["store"] and len(argv) == 2:
        return store(argv[1])
    print(__doc__, file=sys.stderr)
    return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
