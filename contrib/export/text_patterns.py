#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Patterns that PCRE2 and Oniguruma read differently, and what tokenizers finds with them.

    text_patterns.py folds                print server/text/tokenizer/pattern_fold.def
    text_patterns.py store FOLDER         write patterns.jsonl of tests/text/
    text_patterns.py fuzz BUILD [COUNT]   compare COUNT patterns made at random

Needs the package tokenizers, version 0.23.1. BUILD is a build tree with tests/text/test_rules.
"""

import json
import os
import random
import re
import sys

from text_rules import main, test_rules
from tokenizers import Regex, normalizers, pre_tokenizers

MARK = "\ue123"  # in no text

# (construct, pattern, texts). Without texts: pted refuses it with an error that has the third part.
ROWS = [
    (r"\w outside of classes", r"\w+", ["m²x", "³¹¼½¾", "aª_é\u0301\u200dⓐ٣Ⅷ"]),
    (r"\w outside of classes", r"\W+", ["m² é-"]),
    (r"\w outside of classes", r"\p{Word}|\P{^Word}", ["²a"]),
    (r"\w in classes", r"[\w]+", ["m²x¼é_"]),
    (r"\w in classes", r"[\W]+|[^\W]", ["m²x é"]),
    (r"\w in classes", r"[[:word:]]+|[\p{Word}\-]", ["m²x-é"]),
    (r"\b", r"\b", ["ab ²c é\u0301x", "", "a"]),
    (r"\b", r"\B.", ["ab c²x"]),
    (r"\h is a digit of hexadecimal", r"\h+|\H", ["aFgG0 \t"]),
    (r"\h is a digit of hexadecimal", r"[\h_]+|[\H]", ["aF_gG0 \t"]),
    (r"\s", r"\s+|\S", ["\x1c a\u180e\u200b\u3000\x85\u2028\x0b"]),
    (r"\d", r"\d+|[\D]", ["1٣²Ⅷ"]),
    (r"\R", r"\R", ["a\r\n\n\r\x0b\x85\u2028\u2029b"]),
    (r"\N and \O", r"\N+", ["a\nb\r"]),
    (r"\N and \O", r"\O+", ["a\nb\r"]),
    (r"\N and \O", r"a\O*", r"byte 3: a repeat of \O"),
    (r"\v is one character", r"\v|[\v]", ["\x0b\n\x0c"]),
    (r"\pL without braces is no property", r"\pL|[\pL]", ["pL LxéP"]),
    ("names of properties", r"\p{^Alpha}|\P{^ letter }", ["a1é²"]),
    ("names of properties", r"\p{Upper}|\p{lower}|\p{ASCII}", ["aA1éÉ²"]),
    ("names of properties", r"\p{LC}|\p{Sc}|\p{Currency_Symbol}", ["aªʰ€A"]),
    ("names of properties", r"\p{Assigned}|\p{cntrl}|\p{Blank}", ["a\x01\t\u00a0\u0378"]),
    ("scripts are no extensions", r"\p{Greek}|\p{Han}|\p{Common}", ["αa\u0345中。1"]),
    ("scripts are no extensions", r"\p{Hiragana}+|\p{Kata kana}", ["あーア、ｱ"]),
    ("scripts are no extensions", r"\p{Inherited}", ["a\u0301"]),
    ("POSIX brackets", r"[[:punct:]]", ["!$+<=>^`|~a—§©€"]),
    ("POSIX brackets", r"\p{Punct}", ["!$+<=>^`|~a—§©€"]),
    ("POSIX brackets", r"[[:alnum:]_]|[[:^alpha:]]", ["aé1²Ⅷ٣_ "]),
    ("POSIX brackets", r"[[:blank:]]|[[:cntrl:]]", [" \t\u00a0\u3000\x00\x7f\x85\xad"]),
    ("POSIX brackets", r"[[:graph:]]", ["a \x85é\u00a0\u2028\xad\u0378"]),
    ("POSIX brackets", r"[[:print:]]", ["a \x85é\u00a0\t\u2028"]),
    ("POSIX brackets", r"[[:xdigit:]]|[[:ascii:]]|[[:upper:]]", ["aFgé１ÉⅧⒶ"]),
    ("POSIX brackets", r"[[:^punct:][:space:]]", ["a! $"]),
    ("POSIX brackets", r"[:alpha:]", ["alph:"]),
    ("classes in classes", r"[a[bc]]+|[^[d]e]", ["abcde f"]),
    ("classes in classes", r"[a[^b]]", ["abc"]),
    ("classes in classes", r"[^[^a]]", ["ab"]),
    ("classes in classes", r"[^\s[,.[;]]]+", ["a,b. c;d"]),
    ("classes in classes", r"[[.a.]]|[[=b=]]", ["a.b=c"]),
    ("classes in classes", r" ?[^(\s|[.,!?…。，、।۔،])]+", ["a, b|c (d) [e] ]f"]),
    ("intersections", r"[a-z&&[^aeiou]]+", ["abcde"]),
    ("intersections", r"[^a-z&&[^aeiou]]", ["abcE1"]),
    ("intersections", r"[a-d&&b-e&&c-f]", ["abcdef"]),
    ("intersections", r"[\p{L}&&\p{ASCII}]+|[\w&&[^\d_]]", ["abé1_x"]),
    ("intersections", r"x|[a&&]|[&&a]", ["a&x"]),
    ("intersections", r"[a&&&b]|[a&b]", ["ab&"]),
    ("brackets and dashes in classes", r"[]a]|[^]b]", ["a]bc"]),
    ("brackets and dashes in classes", r"[a-c-e]|[x-]|[-y]", ["abcde-xyz"]),
    ("brackets and dashes in classes", r"[\w-]+|[+\-/.]", ["a-b+/c.d"]),
    ("escapes in classes", r"[\A\z\B\R\X\N]", ["AzBRXNab\n"]),
    (r"\b in ranges of classes", r"[\b-\r]|[\x00-\b]", ["\x00\x08\t\r-Ab"]),
    ("ends of patterns", "", ["ab"]),
    ("ends of patterns", r"(?#c)", ["ab"]),
    ("ends of patterns", r"a\x", ["axa\x00"]),
    ("ends of patterns", "a(?#b", "byte 1: a comment does not end"),
    ("letters that are several", r"(?i)(?<=ß)a", "byte 8: this letter without case"),
    ("escapes in classes", r"[\b\1\101\x42-\x{43}\u0044]", ["\x08\x01ABCDE1b"]),
    ("{,n} is {0,n}", r"a{,2}", ["aaaab"]),
    ("{,n} is {0,n}", r"ba{,1}a", ["baab"]),
    ("braces that stand for themselves", r"a{,}|a{x}|b{|c{ 1}|}", ["a{,}a{x}b{c{ 1}a"]),
    ("{n,m}+ is no possessive", r"a{1,2}+a", ["aaaaa"]),
    ("{n,m}+ is no possessive", r"a{2}+", ["aaaaa"]),
    ("{n,m}+ is no possessive", r"\p{N}{1,3}+", ["12345678"]),
    ("{n}? is optional", r"a{2}?", ["aaaaa"]),
    ("{n}? is optional", r"ba{2}?a", ["baaab"]),
    ("{m,n} with m above n is possessive", r"a{2,1}", ["aaa"]),
    ("{m,n} with m above n is possessive", r"a{2,1}a", ["aaaa"]),
    ("repeats of repeats", r"a**|b*{2}|c{2}{3}", ["aabbbcccccccc"]),
    ("repeats of repeats", r"a+?b|a?+a|a*+a|a++", ["aaab a"]),
    ("repeats of repeats", r"(?:a?){2}+b", ["aaaab"]),
    ("(?i) runs on over bars", r"a(?i)b|c", ["aB C ac aC"]),
    ("(?i) runs on over bars", r"(?:x(?i)y|z)Z|a", ["xY xYZ xzZ XyZ xzz A a"]),
    ("(?i) runs on over bars", r"(?i)a(?-i)b|c", ["Ab AB AC ac"]),
    ("letters that are several", r"(?i)ss", ["ßSSsẞ", "sſ"]),
    ("letters that are several", r"(?i)stra(?:ß)e|strasse", ["STRASSE Straße STRAẞE"]),
    ("letters that are several", r"(?i)ß|ﬁ", ["ss SS ß ẞ fi FI ﬁ"]),
    ("letters that are several", r"(?i:ffi)x|st+", ["ﬃx ﬀix fﬁx FFIX ﬆ STT"]),
    ("letters that are several", r"(?i)ß+", ["ssßSSx"]),
    ("letters that are several", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", ["'ſ 'S 'RE 'Ll"]),
    ("letters that are several", r"(?i)ǰ|\u0130", ["ǰ j\u030c i\u0307 İ"]),
    ("cases", r"(?i)k|[a-z]|σ", ["K\u212aKſςΣ1"]),
    ("cases", r"(?i)\p{Lu}|[^a-z\s]", ["aA1é ²"]),
    ("cases", r"(?i)i|ı", ["İIıi"]),
    ("(?m) is for dots", r"(?m:a.)|b.", ["a\nb\nbc"]),
    ("(?m) is for dots", r"(?m)^a.(?-m)$|.", ["xa\nab"]),
    ("^ and $ are of lines", r"^a|b$|^$", ["a\na\n\nb\nb"]),
    ("^ and $ are of lines", r"\Aa|b\Z|b\z", ["a\na b\nb\n"]),
    ("^ and $ are of lines", r"\Ga", ["aab a"]),
    ("(?x)", "(?x) a b # c)\n d|[ ]|\\ x ", ["abd a b x"]),
    ("(?x)", "(?x:a +)b|a(?-x: )", ["aaab a b"]),
    ("comments", r"a(?#b)c|(?# ) d", ["ac abc d"]),
    ("names of groups", r"(?<n>a)(?'m'b)|(c)", ["abc"]),
    ("escapes of characters", r"\x41\x{42}\u0043\104|\0|\07|\o{105}", ["ABCD\x00\x07E"]),
    ("escapes of characters", r"\a\e\f\t|\x4|\xé", ["\x07\x1b\x0c\t\x04\x00é"]),
    ("escapes of characters", r"\q\i\j\l\m\E\F\I\J\L\U\T\Q\-\é", ["qijlmEFIJLUTQ-é"]),
    ("lookarounds", r"\s+(?!\S)|(?<=a|bc)d|(?<!a|bc)e|(?=x)", ["a  b", "ad bcd ae e bce x"]),
    ("lookarounds", r"(?>a+)b|(?>a|ab)c", ["aab abc ac"]),
    ("choices that take nothing", r"e(?:t|)b*t|e(?:x|\B)b*?x|e(?:a|(?:))b*a", ["et ex ea"]),
    ("brackets", r"a]|b}|]", ["a] b} ]"]),
    ("absent operators", r"(?~ab)", "byte 0: an absent operator"),
    ("callouts", r"a(*FAIL)", "byte 1: a callout"),
    ("callouts", r"ab(?{c})", "byte 2: a callout"),
    ("conditions", r"(a)?(?(1)b|c)", "byte 4: a condition"),
    ("references", r"(a)\1", "byte 3: a reference"),
    ("references", r"(?<n>a)\k<n>", "byte 7: a reference"),
    ("references", r"(?<n>a)\g<n>", "byte 7: a subexpression call"),
    ("text segments", r"ab\X", "byte 2: a text segment"),
    ("text segments", r"\y", "byte 0: a text segment"),
    (r"\K", r"a\Kb", r"byte 1: a kept match (\K)"),
    ("options of ASCII", r"(?W:\w)", "byte 0: an option"),
    ("options of ASCII", r"(?P)\w", "byte 0: an option"),
    ("options that are none", r"a(?s:.)", "byte 1: an option (?s)"),
    ("lookbehinds without a fixed length", r"xy(?<=a+)b", "byte 2: lookbehind"),
    ("names that are no scripts", r"a\p{InBasicLatin}", "byte 1: unknown property"),
    ("names that are no scripts", r"\p{Foo}", "byte 0: unknown property"),
    ("bytes of characters", r"a\xc3\xa9", "byte 1: this escape"),
    ("control and meta", r"\C-a", "byte 0: this escape"),
    ("control and meta", r"a\M-a", "byte 1: this escape"),
    ("sets without case", r"(?i)[\p{Lu}]", "byte 5: this set in a class without case"),
    ("sets without case", r"(?i)[ß]", "byte 5: this letter in a class without case"),
    ("sets without case", r"(?i)[a&&b]", "byte 4: this class without case"),
    ("letters that are several", r"(?i)sß|fffi|ßs", ["sß sss ßs ﬀﬁ fﬃ ẞs"]),
    ("letters that are several", r"(?i)ss+|(?<=ss)a", ["ß sss ßs ßa ssa"]),
    ("letters across a group", r"(?i)s(?:s)", "byte 8: a group in a row of letters"),
    ("letters across a group", r"(?i:s)s|s(?i)s|(?:(?i)s)s", ["ß ss sS SS"]),
    ("ranges", r"[\d-a]", "byte 3: '-' behind a set"),
    ("ranges", r"[a-\d]", "byte 1: this range"),
    ("negations of negations", r"[^[^\D\P{L}]]", "the negation of such a negation"),
    ("negations of negations", r"[^[^\D]a]|[^\D\d]", ["aé1 "]),
    ("repeats of nothing", r"a|*", "byte 2: a repeat of nothing"),
    ("repeats of nothing", r"^*", "byte 1: a repeat of an assertion"),
    ("repeats beyond the maximum", r"a{70000}", "byte 1: a repeat of more than 65535"),
    ("what does not end", r"[[:alpha]", "byte 1: this bracket"),
    ("what does not end", r"a(b", "byte 3: ')' is missing"),
    ("what does not end", r"ab[c", "byte 2: ']' is missing"),
]

# Of published tokenizers.
KNOWN = {
    "GPT-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "Llama 3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
               r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "Qwen": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
            r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
             r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
             r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
             r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "DeepSeek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"
                r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|"
                r"\s+(?!\S)|\s+",
    "DeepSeek, CJK": "[一-龥\u3040-ゟ゠-ヿ]+",
    "Bloom": " ?[^(\\s|[.,!?…。，、।۔،])]+",
    "CLIP": r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "Falcon": "[0-9][0-9][0-9]",
    "T5": " {2,}",
}
PROSE = ["Hello, world's  12345 x²\n\n  it'S  don'T  ", "Straße 你好 世界ー42 naïve e\u0301\r\n\t!?",
         "I'LL   x=3.14; {a: [1]} 🙂 ½ ٣ ", "日本語 かな カナ, 3 000 --> <b>\n"]


def matches(pattern, text):
    """Begins and ends in bytes; None if the answers leave a doubt. Fails if the library does."""
    regex = Regex(pattern)
    rest = {place for _, place in pre_tokenizers.Split(regex, "removed").pre_tokenize_str(text)}
    out, marked, is_behind_rest = [], "", False
    for part, place in pre_tokenizers.Split(regex, "isolated").pre_tokenize_str(text):
        if place in rest:
            if is_behind_rest:  # an empty match between
                out.append((place[0], place[0]))
                marked += MARK
            marked += part
        else:
            out.append(place)
            marked += MARK
        is_behind_rest = place in rest
    end = (len(text), len(text))
    want = normalizers.Replace(regex, MARK).normalize_str(text)
    for before, behind in (([], []), ([(0, 0)], []), ([], [end]), ([(0, 0)], [end])):
        if want == MARK * len(before) + marked + MARK * len(behind):
            places = before + out + behind
            return [len(text[:at].encode()) for place in places for at in place]
    return None


def line(about, pattern, texts):
    if isinstance(texts, str):
        answer = {"refused": texts}
    else:
        rows = [[text, matches(pattern, text)] for text in texts]
        answer = {"texts": [row for row in rows if row[1] is not None]}
    return json.dumps({"about": about, "pattern": pattern, **answer}, ensure_ascii=False)


def print_folds():
    """server/text/tokenizer/pattern_fold.def"""
    print("/* SPDX-License-Identifier: MIT */")
    print("/* Made by contrib/export/text_patterns.py: characters that are several letters if\n"
          " * case is ignored. FOLD(code, letters). */")
    for code in range(0x80, 0x110000):
        letters = [] if 0xD800 <= code < 0xE000 else [hex(ord(c)) for c in chr(code).casefold()]
        if len(letters) > 1:
            print("FOLD(%#x, %s)" % (code, ", ".join((letters + ["0"])[:3])))
    return 0


def store(folder):
    lines = [line(*row) for row in ROWS]
    lines += [line(name, pattern, PROSE) for name, pattern in KNOWN.items()]
    with open(os.path.join(folder, "patterns.jsonl"), "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    print("%d patterns" % len(lines))
    return 0


# ---- at random ---------------------------------------------------------------------------------

CHARS = ["a", "b", "s", "S", "ß", "é", "²", " ", "\\n", "1", "-", "_", "\\x41", "\\u00e9", "k", "f",
         "i", "ﬁ", "\\.", "t", "中", "K", "ſ", ",", "}", "]", "\\101", "#"]
SETS = ["\\w", "\\W", "\\s", "\\S", "\\d", "\\D", "\\h", "\\H", "\\p{L}", "\\P{L}", "\\p{Lu}",
        "\\p{^N}", "\\p{Han}", "\\p{Alpha}", "\\p{Punct}", "\\p{Word}", "\\p{Lower}", "\\pL"]
POSIX = ["[:alpha:]", "[:^alnum:]", "[:punct:]", "[:word:]", "[:space:]", "[:upper:]", "[:graph:]"]
LETTERS = "abcsSKkfit1²é \n-_ßﬁſA中.,é\u0301½x!$K"


def random_class(rng, depth=0):
    out = "[" + rng.choice(["", "", "^"])
    for _ in range(rng.randrange(1, 4)):
        kind = rng.random()
        if kind < 0.4:
            out += rng.choice(CHARS[:17])
        elif kind < 0.55:
            out += rng.choice(["a-c", "0-9", "a-z", "é-ü", "A-Z", "\\x41-\\x43"])
        elif kind < 0.75:
            out += rng.choice(SETS)
        elif kind < 0.85:
            out += rng.choice(POSIX)
        elif depth < 2:
            out += random_class(rng, depth + 1)
        if rng.random() < 0.1:
            out += "&&"
    return out + "]"


def random_atom(rng, depth):
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(CHARS)
    if kind < 0.55:
        return rng.choice(SETS + [".", "\\R", "\\N", "\\O"])
    if kind < 0.7:
        return random_class(rng)
    if kind < 0.78:
        return rng.choice(["^", "$", "\\b", "\\B", "\\A", "\\z", "\\Z", "\\G"])
    if kind < 0.82:
        return rng.choice(["(?i)", "(?m)", "(?-i)", "(?x)", "(?#c)"])
    if depth > 2:
        return "a"
    opening = rng.choice(["(", "(?:", "(?i:", "(?m:", "(?x: ", "(?=", "(?!", "(?>", "(?<n>",
                          "(?-i:"])
    return opening + random_pattern(rng, depth + 1) + ")"


def random_pattern(rng, depth=0):
    out = ""
    for _ in range(rng.randrange(1, 5)):
        out += random_atom(rng, depth)
        if rng.random() < 0.35:
            out += rng.choice(["*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,2}",
                               "{,2}", "{1,}", "{2}?", "{1,2}?", "{1,2}+", "{2,1}", "{0}", "{1}{2}",
                               "**",
                               "+*", "?*", "{,}"])
        if rng.random() < 0.12:
            out += "|"
    return out


def random_line(rng):
    pattern = random_pattern(rng)
    texts = ["".join(rng.choice(LETTERS) for _ in range(rng.randrange(1, 8))) for _ in range(8)]
    try:
        return line("random", pattern, texts)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def fuzz(build, count):
    rng = random.Random(count)
    lines = [one for one in (random_line(rng) for _ in range(count)) if one]
    done = test_rules(build, lines, capture_output=True, text=True)
    refused = wrong = 0
    for row in done.stdout.splitlines():
        if "): refused: " in row:
            refused += 1
        elif row.startswith("line "):
            wrong += 1
            number = int(re.match(r"line (\d+)", row)[1])
            print(json.loads(lines[number - 1])["pattern"], row)
    print(done.stdout.splitlines()[-1])
    print("%d of %d patterns; %d refused, %d other answers" % (len(lines), count, refused, wrong))
    return wrong > 0 or done.returncode < 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], __doc__, store, fuzz, [("folds", print_folds)]))
