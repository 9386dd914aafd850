#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the cases of tests/text/test_grammar.c, and checks the texts that it makes.

    python3 contrib/export/grammars.py >tests/text/grammars.jsonl
    tests/text/test_grammar tests/text/grammars.jsonl 200 >samples.jsonl
    python3 contrib/export/grammars.py --check samples.jsonl

Accepted texts are valid by jsonschema, or match by re; rejected ones are not. --check says of texts
that a grammar let through whether json, jsonschema and re take them.
"""

import json
import random
import re
import sys

import jsonschema

TREE = {'$defs': {'node': {'type': 'object', 'properties': {
    'value': {'type': 'integer'}, 'children': {'type': 'array', 'items': {'$ref': '#/$defs/node'}}},
    'required': ['value', 'children'], 'additionalProperties': False}}, '$ref': '#/$defs/node'}

SCHEMAS = [
    {'type': 'string'}, {'type': 'integer'}, {'type': 'number'}, {'type': 'boolean'},
    {'type': 'null'}, {'type': ['string', 'null']}, {'type': ['integer', 'string', 'boolean']},
    {'enum': ['a', 'b"c', 1, None, [1, 'é']]}, {'const': {'a': [1, 2.5]}}, True, {},
    {'type': 'array', 'items': {'type': 'integer'}, 'minItems': 1, 'maxItems': 3},
    {'type': 'array', 'items': {'type': 'string', 'maxLength': 2}, 'maxItems': 0},
    {'type': 'array'}, {'type': 'array', 'minItems': 2},
    {'type': 'object', 'properties': {'a': {'type': 'string'}, 'b': {'type': 'integer'}},
     'required': ['a', 'b'], 'additionalProperties': False},
    {'type': 'object', 'properties': {'a': {'type': 'string'}, 'b é"': {'type': 'number'},
                                      'c': {'type': 'boolean'}}, 'required': ['b é"'],
     'additionalProperties': False},
    {'type': 'object', 'properties': {'a': {'type': 'null'}, 'b': {'type': 'null'}},
     'additionalProperties': False},
    {'type': 'object', 'additionalProperties': False}, {'type': 'object'},
    {'type': 'object', 'additionalProperties': {'type': 'integer'}},
    {'anyOf': [{'type': 'integer'}, {'type': 'object', 'properties': {'x': {'type': 'string'}},
                                     'required': ['x'], 'additionalProperties': False}]},
    TREE,
    {'type': 'string', 'minLength': 2, 'maxLength': 4}, {'type': 'string', 'minLength': 3},
    {'type': 'string', 'pattern': '^[a-z"\\\\]{2,4}$'}, {'type': 'string', 'pattern': 'x[0-9]+'},
    {'type': 'string', 'pattern': '^(ab|cd)*é?\\n$'},
    {'type': 'string', 'format': 'date'}, {'type': 'string', 'format': 'uuid'},
    {'type': 'string', 'format': 'ipv4'},
    {'title': 'T', 'description': 'd', 'type': 'object', 'required': ['who', 'tags'],
     'properties': {'who': {'type': 'object', 'required': ['name'], 'additionalProperties': False,
                            'properties': {'name': {'type': 'string'}, 'age': {'type': 'integer'}}},
                    'tags': {'type': 'array', 'items': {'enum': ['x', 'y']}},
                    'next': {'anyOf': [{'$ref': '#/properties/who'}, {'type': 'null'}]}},
     'additionalProperties': False},
]

REGEXES = ['abc', 'a*b+c?', '(ab|cd){2,3}', '[^a-c]x', r'\d{3}-\w+\s?', '.', 'é|東+', '', 'a|',
           r'\\\.\*', '[\\]\\-x]+', '^ab$', '(?:a|b)*?c', r'[\d_]+', r'\x41\u00e9', '(a*)*b',
           '(a|a|aa)*c', '[0-9]{1,50}', 'a{2,}', '[a-zé-ü🙂]{1,3}']

REFUSED = [({'schema': {'type': 'integer', 'minimum': 3}}, "'minimum' is not supported"),
    ({'schema': {'type': 'object', 'properties': {'a': {'oneOf': []}}}}, '.a: the keyword'),
    ({'schema': {'type': 'nope'}}, 'no such'), ({'schema': 5}, 'a map or true'),
    ({'schema': {'$ref': '#/nope'}}, 'nowhere'), ({'schema': {'$ref': 'http://x'}}, '$ref'),
    ({'schema': {'$ref': '#'}}, 'before its first'),
    ({'schema': {'anyOf': [{'$ref': '#'}, {'type': 'null'}]}}, 'before its first'),
    ({'schema': {'enum': []}}, 'not empty'),
    ({'schema': {'type': 'array', 'minItems': -1}}, '0 to'),
    ({'schema': {'type': 'string', 'pattern': '('}}, 'not closed'),
    ({'schema': {'type': 'object', 'properties': {'a': True}, 'required': ['b']}}, 'required'),
    ({'regex': '(a'}, 'not closed'), ({'regex': 'a)'}, 'not open'), ({'regex': '*'}, 'repeat'),
    ({'regex': '[a'}, 'not closed'), ({'regex': '(?=a)'}, 'not supported'),
    ({'regex': '\\b'}, 'not supported'), ({'regex': '(a)\\1'}, 'not supported'),
    ({'regex': 'a{99999}'}, 'more than'), ({'regex': '((a{1000}){1000}){1000}'}, 'more than'),
    ({'regex': '[z-a]'}, 'order'), ({'regex': 'a$b'}, 'anchor'),
 
      ({'regex': '(' * 500}, 'too deep')]

TEXTS = ['""', '"a"', '"ab"', '"abc"', '"é🙂"', '"\\n"', '"x1"', '"ax12y"', '"\\""', '"ab\\\\"',
    '"\\u00e9"', '"abcde"', '"abé\\n"', '"cdé\\n"', '"2026-11-25"', '"2026-13-25"',
    '"127.0.0.1"', '"1.2.3.456"', '"123e4567-e89b-12d3-a456-426614174000"', '0', '-1', '12',
    '1.5', '-0.5e-3', '15E-1', '01', '1.', '.5', '+1', 'true', 'false', 'null', 'nul', '[]',
    '[1]', '[1, 2]', '[1,2,3]', '[1, 2, 3, 4]', '[1, "é"]', '["a"]', '[[], {}]', '{}',
    '{"a": "x", "b": 1}', '{"a":"x","b":1}', '{"b": 1}', '{"a": "x"}', '{"a": null}',
    '{"b": null}', '{"a": null, "b": null}', '{"a": [1, 2.5]}', '{"b \\u00e9": 1}',
    '{"b é\\"": 1.5, "c": true}', '{"a": "", "b é\\"": 2}', '{"x": "y"}', '{"x": 1}',
    '{"value": 1, "children": []}', '{"value": 1, "children": [{"value": 2, "children": []}]}',
    '{"value": 1, "children": [2]}', '{"who": {"name": "n"}, "tags": ["x"]}',
    '{"who": {"name": "n"}, "tags": [], "next": null}',
    '{"who": {"name": "n", "age": 3}, "tags": ["x", "y"], "next": {"name": ""}}',
    '{"who": {}, "tags": []}', '[1', '{"a"', '"', '"\x01"', '"\\ud800"', '', ' ', '{"a": 1,}',
    '[,]']

PLAIN = ['', 'a', 'abc', 'b', 'bc', 'aabbc', 'abab', 'abcdab', 'ab', 'abababab', 'dx', 'ax',
    '\nx', '123-ab', '123-ab ', '12-ab', 'é', '東東', '\\.*', ']-x', 'c', 'abac', '1_2', 'Aé',
    'aaaaaaaaab', 'aac', '11111111111111111111111111111111111111111111111111',
    '111111111111111111111111111111111111111111111111111', 'aa', 'aaa', 'z🙂ü', 'zzzz', '\n',
    '🙂']


def is_valid(case, text):
    """What Python says of the text."""
    if 'regex' in case:
        pattern = case['regex'].replace('\\Z', '')
        return re.fullmatch(pattern, text, re.ASCII) is not None
    try:
        value = json.loads(text)
        text.encode()
        json.dumps(value, ensure_ascii=False).encode()
        schema = case.get('schema', {'type': 'object'})
        jsonschema.validate(value, schema, format_checker=jsonschema.FormatChecker())
        return True
    except (ValueError, jsonschema.ValidationError):
        return False


def cases():
    """Grammars with the texts that they take and do not take."""
    for case in [{'schema': schema} for schema in SCHEMAS] + [{}]:
        sure = {text for text in TEXTS if is_valid(case, text)}
        yield {**case, 'accepts': sorted(sure), 'rejects': sorted(set(TEXTS) - sure)}
    for regex in REGEXES:
        case = {'regex': regex}
        sure = {text for text in PLAIN if is_valid(case, text)}
        yield {**case, 'accepts': sorted(sure), 'rejects': sorted(set(PLAIN) - sure)}
    for case, why in REFUSED:
        yield {**case, 'refused': why}


def check(path):
    """Counts the texts that Python takes; prints the others."""
    known, good, bad = list(cases()), 0, 0
    for line in open(path, encoding='utf-8'):
        sample = json.loads(line)
        case = known[sample['case']]
        if is_valid(case, sample['text']):
            good += 1
        else:
            bad += 1
            print({key: case[key] for key in ('schema', 'regex') if key in case},
                  repr(sample['text']))
    print(f'{good} texts that Python takes, {bad} that it does not')
    return bad > 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == '--check':
        sys.exit(check(sys.argv[2]))
    for case in cases():
        print(json.dumps(case, ensure_ascii=False))


main()
