#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints server/text/template/pytext.def: what Python's str says of code points, as ranges.

    python3 contrib/export/unicode_text.py >server/text/template/pytext.def
"""

import sys


def ranges(test):
    """Prints the inclusive ranges of code points for which test() is true."""
    out, first = [], None
    for code in range(0x110001):
        is_in = code < 0x110000 and test(code)
        if is_in and first is None:
            first = code
        elif not is_in and first is not None:
            out.append((first, code - 1))
            first = None
    return out


def mapped(change):
    """The code points that change() maps to one other: ranges with one distance and step."""
    pairs = []
    for code in range(0x80, 0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        text = change(chr(code))
        if len(text) == 1 and text != chr(code):
            pairs.append((code, ord(text) - code))
    out = []
    for code, distance in pairs:
        if out:
            first, last, step, old = out[-1]
            if old == distance and (code - last in (1, 2)) and (step in (0, code - last)):
                out[-1] = (first, code, code - last, distance)
                continue
        out.append((code, code, 0, distance))
    return [(first, last, step or 1, distance) for first, last, step, distance in out]


def special(change):
    """The code points that change() maps to several."""
    return [(code, change(chr(code))) for code in range(0x80, 0x110000)
            if not 0xD800 <= code < 0xE000 and len(change(chr(code))) > 1]


def is_cased_alone(code):
    """Does no word begin behind it, as behind a letter, though it has one form?"""
    one = chr(code)
    return (code >= 0x80 and not 0xD800 <= code < 0xE000 and one.lower() == one.upper() and
            (one + 'a').title()[-1] == 'a')


def escaped(text):
    return ''.join(f'\\{byte:03o}' for byte in text.encode())


def main():
    print('/* SPDX-License-Identifier: MIT */')
    print(f"""/* Made by contrib/export/unicode_text.py with Python {sys.version_info[0]}.
{sys.version_info[1]}. UNPRINTABLE(first, last);
 * LOWER and UPPER(first, last, step, distance); LOWER_SPECIAL and UPPER_SPECIAL(code, text);
 * TITLE_SPECIAL(code, text), where it is not the upper case; CASED(first, last), which have
 * one form. */""")
    for first, last in ranges(lambda code: code >= 0x7F and not chr(code).isprintable()):
        print(f'UNPRINTABLE({first:#x}, {last:#x})')
    for name, change in (('LOWER', str.lower), ('UPPER', str.upper)):
        for first, last, step, distance in mapped(change):
            print(f'{name}({first:#x}, {last:#x}, {step}, {distance})')
        for code, text in special(change):
            print(f'{name}_SPECIAL({code:#x}, "{escaped(text)}")')
    for code in range(0x80, 0x110000):
        if not 0xD800 <= code < 0xE000 and chr(code).title() != chr(code).upper():
            print(f'TITLE_SPECIAL({code:#x}, "{escaped(chr(code).title())}")')
    for first, last in ranges(is_cased_alone):
        print(f'CASED({first:#x}, {last:#x})')


main()
