#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small tokenizers, each for a rule of tokenizer.json, and what the library says of them.

    text_rules.py store FOLDER         write rules.jsonl of tests/text/
    text_rules.py fuzz BUILD [COUNT]   compare COUNT tokenizers made at random

Needs the package tokenizers, version 0.23.1. BUILD is a build tree with tests/text/test_rules.
"""

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

import tokenizers

CHARS = [chr(code) for code in range(33, 127)] + list("▁Ġé\u0301ﬁ²中 \t")


def bpe(**members):
    """A BPE of single characters, with an unknown token."""
    vocab = {"<u>": 0}
    for char in CHARS:
        vocab[char] = len(vocab)
    return {"version": "1.0", "model": {"type": "BPE", "vocab": vocab, "merges": [],
                                        "unk_token": "<u>"}, **members}


def words(*texts, **members):
    """A list of words, cut at white space."""
    vocab = {text: place for place, text in enumerate(("?",) + texts)}
    return {"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
            "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "?"}, **members}


def merging(merges):
    vocab = {}
    for text in list("abcd#version:0.2 ") + ["ab", "cd", "abcd", "#v"]:
        vocab.setdefault(text, len(vocab))
    return {"version": "1.0", "model": {"type": "BPE", "vocab": vocab, "merges": merges}}


def added(first, *tokens):
    """Added tokens (content, options); the ids of new ones begin at |first|."""
    out = []
    for content, options in tokens:
        is_known = first > len(CHARS) and content in CHARS
        token = {"id": 1 + CHARS.index(content) if is_known else first, "content": content,
                 "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                 "special": False}
        first += not is_known
        token.update({name: True for name in options.split()})
        out.append(token)
    return out


def step(kind, **members):
    return {"type": kind, **members}


def chain(*steps):
    return step("Sequence", normalizers=list(steps)) if len(steps) != 1 else steps[0]


def replace(pattern, content, kind="Regex"):
    return step("Replace", pattern={kind: pattern}, content=content)


def split(pattern, behavior, invert=False, kind="Regex"):
    return step("Split", pattern={kind: pattern}, behavior=behavior, invert=invert)


FIRST = step("Metaspace", replacement="▁", prepend_scheme="first", split=True)
STRIP = step("Strip", strip_left=True, strip_right=True)
NORMALIZERS = [STRIP, step("Prepend", prepend="X"), step("Prepend", prepend="▁"),
               replace("ab", "Z", "String"), replace("a", "ZZ", "String"),
               replace("a", "", "String"), replace("^", "Q"), replace(r"^\s+", "Q"),
               replace(r"\s*", "Q"), step("NFD"), step("NFC"), step("NFKD"), step("NFKC"),
               step("Lowercase"), step("StripAccents"), step("Nmt"), step("ByteLevel"),
               replace(" ", "▁", "String"), replace("", "X", "String"),
               step("BertNormalizer", clean_text=True, handle_chinese_chars=True,
                    strip_accents=None, lowercase=True)]
INSERTS = [replace("^", "Q"), replace(r"\s*", "Q"), replace("", "X", "String")]
SPLITS = [step("WhitespaceSplit"), step("Whitespace"), step("Punctuation", behavior="Isolated"),
          step("ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True),
          step("Digits", individual_digits=True), split("X", "Isolated", kind="String"),
          split("a*", "MergedWithNext"), split(r"\s*", "MergedWithPrevious"),
          split("", "Removed", kind="String"), split("(?=b)", "Contiguous"),
          step("Metaspace", replacement="▁", prepend_scheme="always", split=False)]
TEXTS = ["ab c", "  ab c", " a", "é a", "e\u0301 a", "\u0301a b", "ﬁx a", "\x01ab", "中a b",
         "ba a aX", "a  b   c", "   ", "\t a\t\tb", "HELLO hello <B> <b> </s>", "x<e>  <e>x",
         "aab aXb-1 "]


def rules():
    """(about, file, texts)"""
    plain = ["a b", "a  b", "a   b", "   a   ", "a \t b", " x x ", "a  <e>  b", "<e>   <e>"]
    for content, options in itertools.product(
            (" ", "\t", " x", "x "), ("", "lstrip", "rstrip", "lstrip rstrip")):
        yield ("added '%s' %s" % (content, options),
               words("a", "b", added_tokens=added(3, (content, options), ("<e>", "rstrip"))), plain)
    lower = step("Lowercase")
    for decoder in (None, step("WordPiece", prefix="##", cleanup=False),
                    step("ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True)):
        yield ("normalized tokens decode to their normal form",
               words("a", "b", "HELLO", normalizer=lower, decoder=decoder, added_tokens=added(
                   3, ("HELLO", "normalized"), ("<B>", "normalized special"), ("</s>", "special"),
                   ("</S>x", "normalized"), ("RaW", ""))),
               ["a HELLO hello <B> <b> </s> b", "</s>x </S>x RaW raw", "hello"])
    yield ("normalized tokens decode to their normal form",
           words("a", normalizer=step("Prepend", prepend="x"),
                 added_tokens=added(2, ("FOO", "normalized"))), ["FOO xFOO aFOO"])
    yield ("a token whose normal form is a special token",
           words("a", normalizer=lower, added_tokens=added(
               2, ("</S>", "normalized"), ("</s>", "special"))), ["</S> </s> a"])
    for one in NORMALIZERS:
        yield ("Metaspace at the first character", bpe(normalizer=one, pre_tokenizer=FIRST), TEXTS)
    yield ("Metaspace at the first character",
           bpe(normalizer=chain(STRIP, step("Prepend", prepend="X")), pre_tokenizer=FIRST), TEXTS)
    for one in SPLITS:
        yield ("Metaspace at the first character", bpe(
            pre_tokenizer=step("Sequence", pretokenizers=[one, FIRST])), TEXTS)
    yield ("Metaspace at the first character behind added tokens", bpe(
        pre_tokenizer=FIRST, normalizer=STRIP,
        added_tokens=added(len(CHARS) + 1, ("<e>", "rstrip"), ("<B>", "normalized"))),
        TEXTS + ["<e> a b", "<B> a b", " <B> a"])
    for merges in (["#version: 0.2", "a b", "c d"], ["a b", "#version: 0.2", "c d", "ab cd"],
                   ["#versionx", "a b"], ["# v", "a b"], ["#version", "a b"],
                   ["a b", "#version:1 2 3"]):
        yield ("a version among the merges", merging(merges), ["abcd#version:0.2", "#v"])
    for behavior, invert in itertools.product(
            ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"),
            (False, True)):
        for pattern, kind in (("a*", "Regex"), ("(?=b)", "Regex"), ("", "String"), ("a", "String")):
            yield ("empty matches of Split", bpe(pre_tokenizer=split(
                pattern, behavior, invert, kind)), ["abcaab", "bb", "aXa"])
    for pattern, kind in (("a*", "Regex"), ("", "String"), ("^", "Regex"), ("$", "Regex")):
        yield ("empty matches of Replace", bpe(normalizer=replace(pattern, "X", kind)),
               ["abcaab", "bb", "a\nXa", "é"])
        yield ("empty matches of a decoder", words("aab", "b", decoder=replace(pattern, "X", kind)),
               ["aab b", "b"])


def random_rule(rng):
    tokens = [(content, " ".join(o for o in ("lstrip", "rstrip", "special", "normalized",
                                             "single_word") if rng.random() < 0.4))
              for content in rng.sample([" ", "a", " a", "b ", "<e>", "<B>", "é", "▁", "X", "C d"],
                                        rng.randrange(4))]
    steps = [rng.choice(NORMALIZERS) for _ in range(rng.randrange(4))]
    # What an empty match inserts comes from no character: the library doubles it if anything else
    # happens to it.
    inserts = [place for place, one in enumerate(steps) if one in INSERTS]
    steps = steps[:inserts[0] + 1] if inserts else steps
    parts = [rng.choice(SPLITS) for _ in range(0 if inserts else rng.randrange(2))] + [FIRST]
    return ("random", bpe(normalizer=chain(*steps), added_tokens=added(len(CHARS) + 1, *tokens),
                          pre_tokenizer=step("Sequence", pretokenizers=parts)),
            ["".join(rng.choice(" \taabbcCdeEé\u0301▁X<>中²ﬁ\x01\n")
                     for _ in range(rng.randrange(1, 9))) for _ in range(12)]
            + [rng.choice(TEXTS)])


def attempt(call):
    """None: the library fails. Its panics are no Exceptions."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def answer_text(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    return [text, ids, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids)]


def answer(about, file, texts):
    """The line of a rule, without texts for which the library has no answer. None: it has none."""
    rows = []
    tokenizer = attempt(lambda: tokenizers.Tokenizer.from_str(json.dumps(file)))
    for text in texts:
        row = attempt(lambda text=text: answer_text(tokenizer, text))
        rows += [row] if row else []
    if not rows:
        return None
    compact = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
    return json.dumps({"about": about, "file": compact, "texts": rows}, ensure_ascii=False)


def store(folder):
    lines = [answer(*rule) for rule in rules()]
    if None in lines:
        raise SystemExit("the library refuses rule %d" % lines.index(None))
    with open(os.path.join(folder, "rules.jsonl"), "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    print("%d rules" % len(lines))
    return 0


def test_rules(build, lines, **options):
    """Runs tests/text/test_rules on these lines."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        return subprocess.run([os.path.join(build, "tests/text/test_rules"), file.name],
                              check=False, **options)


def fuzz(build, count):
    rng = random.Random(count)
    lines = [line for line in (answer(*random_rule(rng)) for _ in range(count)) if line]
    print("%d of %d tokenizers" % (len(lines), count))
    return test_rules(build, lines).returncode


def main(argv, doc, store_in, fuzz_with, others=()):
    if tokenizers.__version__ != "0.23.1":
        raise SystemExit("needs tokenizers 0.23.1, got " + tokenizers.__version__)
    if argv[:1] == ["store"] and len(argv) == 2:
        return store_in(argv[1])
    if argv[:1] == ["fuzz"] and len(argv) >= 2:
        return fuzz_with(argv[1], int(argv[2]) if len(argv) > 2 else 1000)
    for name, run in others:
        if argv == [name]:
            return run()
    print(doc, file=sys.stderr)
    return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], __doc__, store, fuzz))
