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

SCHEMAS += [
    {'type': 'integer', 'minimum': 3}, {'type': 'integer', 'minimum': -12, 'maximum': 105},
    {'type': 'integer', 'exclusiveMinimum': 0, 'maximum': 1000}, {'type': 'integer', 'maximum': -7},
    {'type': 'integer', 'minimum': 9, 'exclusiveMaximum': 12.0},
    {'type': 'integer', 'minimum': 99999, 'maximum': 9007199254740992},
    {'type': 'number', 'minimum': 0, 'maximum': 1}, {'type': 'number', 'exclusiveMinimum': -2},
    {'type': 'number', 'exclusiveMinimum': 0, 'exclusiveMaximum': 10},
    {'type': 'number', 'maximum': -1, 'minimum': -30}, {'type': 'number', 'exclusiveMaximum': 0},
    {'type': 'integer', 'multipleOf': 5}, {'type': 'integer', 'multipleOf': 7},
    {'type': 'string', 'format': 'email'}, {'type': 'string', 'format': 'ipv6'},
    {'oneOf': [{'type': 'string'}, {'type': 'integer', 'minimum': 0}, {'type': 'null'}]},
    {'oneOf': [
        {'type': 'object', 'properties': {'kind': {'const': 'circle'}, 'r': {'type': 'number'}},
         'required': ['kind', 'r'], 'additionalProperties': False},
        {'type': 'object', 'properties': {'kind': {'enum': ['box', 'line']}},
         'required': ['kind'], 'additionalProperties': False}],
     'discriminator': {'propertyName': 'kind', 'mapping': {'circle': '#/oneOf/0'}}},
]

SCHEMAS += [  # as pydantic writes tuples and timedelta
    {'type': 'array', 'prefixItems': [{'type': 'integer'}, {'type': 'string'}],
     'minItems': 2, 'maxItems': 2},
    {'type': 'array', 'prefixItems': [{'type': 'integer'}, {'type': 'integer'},
                                      {'type': 'integer'}], 'minItems': 1, 'items': False},
    {'type': 'array', 'prefixItems': [True, {'type': 'null'}], 'maxItems': 1},
    {'type': 'string', 'format': 'duration'},
]


SCHEMAS += [  # of strings: what has to hold at one time, look-ahead, anchors
    {'type': 'string', 'pattern': '^[a-z]+$', 'minLength': 2, 'maxLength': 4},
    {'type': 'string', 'pattern': 'b', 'minLength': 3},
    {'type': 'string', 'format': 'uri', 'minLength': 1, 'maxLength': 5},
    {'type': 'string', 'format': 'email', 'maxLength': 7},
    {'type': 'string', 'format': 'duration', 'pattern':
     '^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)(\\d+Y)?(\\d+M)?(\\d+D)?'
     '(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+S)?)?)$'},
    {'type': 'string', 'pattern': '^(?=.*[0-9]).{2,5}$'},
    {'allOf': [{'type': 'string', 'pattern': '^a'}, {'pattern': 'c$', 'maxLength': 4}]},
    {'type': 'string', 'format': 'made-up', 'pattern': '^x[0-9]$'},
    {'type': 'string', 'contentEncoding': 'base64', 'x-order': 3, 'example': 'a', '$comment': 'c'},
]

SCHEMAS += [  # of numbers
    {'type': 'number', 'minimum': 0.5, 'maximum': 1.5},
    {'type': 'number', 'minimum': 0.5, 'exclusiveMaximum': 2.5},
    {'type': 'number', 'exclusiveMinimum': -2.5, 'exclusiveMaximum': -0.5},
    {'type': 'number', 'minimum': -29.75, 'maximum': 0.001}, {'type': 'number', 'maximum': 9.99},
    {'type': 'number', 'minimum': 0.001, 'maximum': 0.001},
    {'type': 'integer', 'minimum': 9.25, 'maximum': 12.75},
    {'type': 'integer', 'maximum': 9007199254740992, 'minimum': -9223372036854775808},
    {'type': 'number', 'minimum': -1.7976931348623157e308, 'maximum': 1.7976931348623157e308},
    {'type': 'integer', 'minimum': 0, 'maximum': 100, 'multipleOf': 5},
    {'type': 'integer', 'minimum': -50, 'multipleOf': 7},
    {'type': 'number', 'multipleOf': 0.25, 'minimum': 0}, {'type': 'integer', 'multipleOf': 1000},
]

SCHEMAS += [  # of lists and maps
    {'type': 'array', 'items': {'enum': ['a', 'b', 1]}, 'uniqueItems': True, 'minItems': 1},
    {'type': 'array', 'items': {'type': 'boolean'}, 'uniqueItems': True, 'maxItems': 1},
    {'type': 'array', 'prefixItems': [{'type': 'integer'}], 'items': {'type': 'string'},
     'maxItems': 2}, {'type': 'array', 'items': False},
    {'type': 'object', 'propertyNames': {'type': 'string'},
     'additionalProperties': {'type': 'number'}},
    {'type': 'object', 'propertyNames': {'enum': ['a', 'b']}, 'required': ['a'],
     'additionalProperties': {'type': 'integer'}},
    {'type': 'object', 'propertyNames': {'enum': ['x', 'a']}, 'additionalProperties': {}},
    {'type': 'object', 'propertyNames': {'pattern': '^[a-f]$'}, 'additionalProperties': True},
    {'type': 'object', 'patternProperties': {'^[a-d]+$': {'type': 'integer'}},
     'additionalProperties': False},
    {'type': 'object', 'properties': {'a': {'type': 'string'}}, 'required': ['a'],
     'additionalProperties': {'type': 'integer'}},
    {'type': 'object', 'minProperties': 1, 'maxProperties': 1},
    {'type': 'object', 'unevaluatedProperties': False},
    {'type': 'array', 'items': {'enum': ['a', 1, 2], 'type': 'integer'}, 'uniqueItems': True},
    {'type': 'object', 'properties': {'a': {'not': {}}, 'b': {'type': 'integer'}},
     'additionalProperties': False},
    {'type': 'object', 'required': ['b'], 'additionalProperties': {'type': 'integer'}},
]

SCHEMAS += [  # of more than one schema
    {'allOf': [{'$ref': '#/$defs/a~1b'}], 'description': 'd',
     '$defs': {'a/b': {'type': 'integer'}}},
    {'$ref': '#/$defs/n', 'maximum': 12, 'default': 3,
     '$defs': {'n': {'type': 'integer', 'minimum': 9}}},
    {'type': 'object', 'properties': {'a': {'type': 'string'}, 'b': {'type': 'integer'}},
     'additionalProperties': False, 'anyOf': [{'required': ['a']}, {'required': ['b']}]},
    {'oneOf': [{'type': 'object', 'properties': {'a': {'type': 'string'}}, 'required': ['a'],
                'additionalProperties': False},
               {'type': 'object', 'properties': {'b': {'type': 'integer'}}, 'required': ['b'],
                'additionalProperties': False}]},
    {'type': ['string', 'integer'], 'minLength': 2, 'minimum': 100},
    {'type': 'string', 'enum': ['a', 1, None]},
    {'type': ['integer', 'null'], 'enum': [1, 'a', None]},
]

SCHEMAS += [  # of more than one schema, where one speaks of what another names
    {'allOf': [{'type': 'object', 'additionalProperties': {'type': 'string'}},
               {'properties': {'a': True}, 'required': ['a']}]},
    {'allOf': [{'type': 'string', 'nullable': True}, {'type': 'string', 'maxLength': 2}]},
    {'type': 'array', 'items': {'$ref': '#/$defs/c', 'const': 'b'}, 'uniqueItems': True,
     'maxItems': 1, '$defs': {'c': {'enum': ['a', 'b']}}},
    {'type': 'object', 'propertyNames': {'$ref': '#/$defs/n', 'maxLength': 1},
     'additionalProperties': True, '$defs': {'n': {'pattern': '^[ab]'}}},
    {'oneOf': [{'type': 'object', 'required': ['kind'],
                'properties': {'kind': {'const': 'circle'}, 'r': {'type': 'number'}}},
               {'type': 'object', 'properties': {'kind': {'const': 'box', 'nullable': True}},
                'required': ['kind']}]},
]

CLOSED = {'type': 'object', 'properties': {'a': {'type': 'string'}, 'b': {'type': 'integer'}},
          'required': ['a'], 'additionalProperties': False}

# Schemas that let less through here than by their letter, with what they stand for.
NARROWER = [
    ({'pattern': '^a|y$'}, {'type': 'string', 'pattern': '^a|y$'}),
    ({'minimum': 99998.5}, {'type': 'number', 'minimum': 99998.5}),
    ({'type': 'integer', 'format': 'uint8'}, {'type': 'integer', 'minimum': 0, 'maximum': 255}),
    ({'type': 'integer', 'nullable': True, 'minimum': 9},
     {'anyOf': [{'type': 'null'}, {'type': 'integer', 'minimum': 9}]}),
    ({'type': 'number', 'minimum': 9, 'exclusiveMinimum': True},
     {'type': 'number', 'exclusiveMinimum': 9}),
    ({'type': 'string', 'pattern': '^(?:(?!bc)[ -~])*$'},
     {'type': 'string', 'pattern': '^(?:(?!bc)[ -~])*\\Z'}),
    ({'type': 'string', 'format': 'base64', 'pattern':
      '^$|^(?:[0-9a-zA-Z+/]{4})*(?:(?:[0-9a-zA-Z+/]{2}==)|(?:[0-9a-zA-Z+/]{3}=))?$'},
     {'type': 'string', 'pattern':
      '^(?:[a-zA-Z0-9+/]{4})*(?:[a-zA-Z0-9+/]{2}==|[a-zA-Z0-9+/]{3}=)?\\Z'}),
    ({'allOf': [{'type': 'object', 'properties': {'a': {'type': 'string'}}, 'required': ['a'],
                 'additionalProperties': False},
                {'type': 'object', 'properties': {'b': {'type': 'integer'}},
                 'additionalProperties': False}]}, CLOSED),
    ({'$ref': '#/$defs/c', '$defs': {'c': {'properties': CLOSED['properties'], 'required': ['a']}}},
     CLOSED),
    ({'oneOf': [{'$ref': '#/$defs/Circle'}, {'$ref': '#/$defs/Box'}],
      'discriminator': {'propertyName': 'kind', 'mapping': {'circle': '#/$defs/Circle'}},
      '$defs': {'Circle': {'type': 'object', 'properties': {
          'kind': {'const': 'circle', 'default': 'circle'}, 'r': {'type': 'number'}},
          'required': ['r']},
          'Box': {'type': 'object', 'properties': {'kind': {'const': 'box', 'default': 'box'}}}}},
     {'enum': [{'kind': 'circle', 'r': 1.5}, {'kind': 'box'}]}),
]


def is_balanced(text):
    """(()()) and the like, not empty."""
    depth = 0
    for character in text:
        depth += {'(': 1, ')': -1}.get(character, 1000)
        if depth < 0:
            return False
    return depth == 0 and text != ''


def is_sum(text):
    """Numbers, sums and products with parentheses, as Python reads them without signs."""
    wrong = r'\b0[0-9]|(^|[+*(])[+*]|[0-9]\(|\)[0-9(]'
    if not re.fullmatch(r'[0-9+*()]+', text) or re.search(wrong, text):
        return False
    try:
        compile(text, '', 'eval')
        return '()' not in text
    except (SyntaxError, ValueError, MemoryError):
        return False


GBNF = [
    ('root ::= "abc"', 'abc'), ('root ::= "a"* "b"+ "c"?', 'a*b+c?'),
    ('root ::= x{2,3}\nx ::= "ab" | "cd"', '(ab|cd){2,3}'), ('root ::= [^a-c] "x"', '[^a-c]x'),
    ('# a comment\nroot ::= digit{3} "-" [a-zA-Z0-9_]+ [ \\t]?\ndigit ::= [0-9] # more\n',
     r'[0-9]{3}-[a-zA-Z0-9_]+[ \t]?'),
    ('root ::=\n  "a"\n  | "b" |\n  ( "c"\n    "d" )*\n', 'a|b|(cd)*'),
    ('root ::= "\\x41" "\\u00e9"', 'Aé'), ('root ::= "é" | "東"+', 'é|東+'),
    ('root ::= .', '(?s:.)'), ('root ::= ""', ''), ('root ::= "\\\\" "." "*"', r'\\\.\*'),
    ('root ::= (((("" "b"{0}){65536}){65536}){65536}){65536} "a"', 'a'),
    ('root ::= "(" root? ")" root?', is_balanced),
    ('root ::= term ("+" term)*\nterm ::= item ("*" item)*\n'
     'item ::= number | "(" root ")"\nnumber ::= "0" | [1-9] [0-9]*\n', is_sum),
]

REGEXES = ['abc', 'a*b+c?', '(ab|cd){2,3}', '[^a-c]x', r'\d{3}-\w+\s?', '.', 'é|東+', '', 'a|',
           r'\\\.\*', '[\\]\\-x]+', '^ab$', '(?:a|b)*?c', r'[\d_]+', r'\x41\u00e9', '(a*)*b',
           '(a|a|aa)*c', '[0-9]{1,50}', 'a{2,}', '[a-zé-ü🙂]{1,3}',
           '(?=.*b)[a-c]{2,4}', '(?!a)..', '^ab$|^c$|d', '(?:(?!ab).)+',
           'a(?=b|c)[bd]?', '(^a|b)(c|$)']

REFUSED = [({'schema': {'type': 'boolean', 'if': {}}}, "'if' is not supported"),
    ({'schema': {'allOf': [{'prefixItems': [{'type': 'integer'}]}, {'items': {'type': 'string'}}]}},
     "'items' is not supported beside 'prefixItems'"),
    ({'schema': {'allOf': [{'items': False}, {'prefixItems': [{'type': 'integer'}]}]}},
     "'items' is not supported beside 'prefixItems'"),
    ({'schema': {'allOf': [{'additionalProperties': {'type': 'string'}},
                           {'patternProperties': {'^a': {'type': 'integer'}}}]}},
     "'additionalProperties' is not supported beside 'patternProperties'"),
    ({'schema': {'allOf': [{'properties': {'b': True}},
                           {'properties': {'a': True},
                            'unevaluatedProperties': {'type': 'integer'}}]}},
     "'unevaluatedProperties' is not supported beside 'properties'"),
    ({'schema': {'allOf': [{'additionalProperties': {'type': 'string'}},
                           {'properties': {'a': {'type': 'null'}}, 'required': ['a']}]}},
     ".a: no value keeps to both 'type'"),
    ({'schema': {'propertyNames': {'enum': ['a', 'B'], 'pattern': '^[a-z]$'}}},
     "'enum' is not supported beside other keywords of 'propertyNames'"),
    ({'schema': {'propertyNames': {'$ref': '#/$defs/n', 'pattern': '^a$'},
                 '$defs': {'n': {'enum': ['a', 'b']}}}},
     "'enum' is not supported beside other keywords of 'propertyNames'"),
    ({'schema': {'oneOf': [{'minLength': 3}, {'minimum': 3}]}}, 'could fit two'),
    ({'schema': {'oneOf': [{'minimum': 3}, {'type': 'string'}]}}, 'could fit two'),
    ({'schema': {'oneOf': [{'enum': ['a'], 'nullable': True}, {'enum': ['b'], 'nullable': True}]}},
     'could fit two'),
    ({'schema': {'properties': {'a': True}, 'required': ['a', 'a'], 'minProperties': 2}},
     'have no names'),
    ({'schema': {'type': 'array', 'items': {'enum': [1, 1.0]}, 'uniqueItems': True,
                 'minItems': 2}}, "'minItems' is more"),
    ({'schema': {'type': 'object', 'properties': {'a': {'not': {'type': 'null'}}}}}, ".a: 'not'"),
    ({'schema': {'type': 'object', 'properties': {'a': False}, 'required': ['a']}}, '.a: a schema'),
    ({'schema': {'oneOf': []}}, 'not empty'), ({'schema': {'oneOf': 3}}, 'not empty'),
    ({'schema': {'oneOf': [{'type': 'integer'}, {'type': 'number'}]}}, 'could fit two'),
    ({'schema': {'oneOf': [{'type': 'object', 'properties': {'a': True}, 'required': ['a']},
                           {'type': 'object', 'properties': {'b': True}, 'required': ['b']}]}},
     'could fit two'),
    ({'schema': {'oneOf': [{'$ref': '#'}, {'type': 'null'}]}}, ''),
    ({'schema': {'oneOf': [True, {'type': 'null'}]}}, 'could fit two'),
    ({'schema': {'type': 'integer', 'maximum': 'x'}}, 'finite number'),
    ({'schema': {'type': 'integer', 'minimum': 3.2, 'maximum': 3.9}}, 'no number keeps'),
    ({'schema': {'type': 'number', 'minimum': 3, 'exclusiveMaximum': 3}}, 'no number keeps'),
    ({'schema': {'type': 'integer', 'minimum': 1, 'maximum': 4, 'multipleOf': 5}},
     'no number keeps'),
    ({'schema': {'type': 'integer', 'multipleOf': 0}}, 'multipleOf'),
    ({'schema': {'type': 'integer', 'multipleOf': 1025}}, 'multipleOf'),
    ({'schema': {'type': 'string', 'format': 'made-up'}}, "'format'"),
    ({'schema': {'type': 'string', 'pattern': '^a$', 'minLength': 2}}, 'no text keeps'),
    ({'schema': {'type': 'string', 'pattern': '^a', 'maxLength': 60000}}, 'too long'),
    ({'schema': {'type': 'string', 'pattern': '(a|b)*a(a|b){14}$', 'maxLength': 99}}, 'states'),
    ({'schema': {'type': 'string', 'minLength': 2, 'maxLength': 1}}, 'more than'),
    ({'schema': {'type': 'array', 'prefixItems': []}}, 'not empty'),
    ({'schema': {'type': 'array', 'prefixItems': [True], 'minItems': 2}}, "'minItems' is more"),
    ({'schema': {'type': 'array', 'items': {'enum': [1]}, 'uniqueItems': True, 'minItems': 2}},
     "'minItems' is more"),
    ({'schema': {'type': 'object', 'properties': {'a': True}, 'minProperties': 1}},
     'have no names'),
    ({'schema': {'allOf': [{'type': 'string'}, {'type': 'integer'}]}}, "both 'type'"),
    ({'schema': {'allOf': [{'enum': [1]}, {'enum': [2]}]}}, "both 'enum'"),
    ({'schema': {'allOf': [{'format': 'date'}, {'format': 'time'}]}}, "'format' stands in two"),
    ({'schema': {'allOf': []}}, 'not empty'), ({'schema': {'allOf': [3]}}, 'a map or true'),
    ({'schema': {'$ref': '#', 'minimum': 3}}, 'too deep'),
    ({'schema': {'type': 'string', 'enum': [1]}}, 'is of the'),
    ({'schema': {'enum': ['a', 'bb'], 'minLength': 2}}, "'minLength' is not supported here"),
    ({'schema': {'propertyNames': {'pattern': '^a'}, 'required': ['b']}}, 'not supported beside'),
    ({'schema': {'patternProperties': {'^a': True}, 'required': ['ab']}}, 'not supported beside'),
    ({'schema': {'propertyNames': {'enum': ['a']}, 'required': ['b']}}, "'required' names"),
    ({'schema': {'propertyNames': {'enum': ['a']}, 'properties': {'b': True}}}, 'beside'),
    ({'schema': {'type': 'object', 'patternProperties': {'a': True, 'b': True}}}, 'one pattern'),
    ({'schema': {'properties': {'a': {'anyOf': [{'type': 'string', 'format': 'x'}]}}}},
     'schema.a.anyOf: this'),
    ({'gbnf': ''}, "no rule 'root'"), ({'gbnf': 'a ::= "b"'}, "no rule 'root'"),
    ({'gbnf': 'root ::= b'}, "no rule 'b'"), ({'gbnf': 'root = "a"'}, 'expected NAME ::='),
    ({'gbnf': 'root ::= "a"\nroot ::= "b"'}, 'twice'), ({'gbnf': 'root ::= "a'}, 'not closed'),
    ({'gbnf': 'root ::= ("a"'}, 'not closed'), ({'gbnf': 'root ::= "a")'}, 'the end of the line'),
    ({'gbnf': 'root ::= root "a"'}, 'before its first'),
    ({'gbnf': 'root ::= a\na ::= "x"? b\nb ::= root "y"'}, 'before its first'),
    ({'gbnf': 'root ::= [a'}, 'not closed'), ({'gbnf': 'root ::= "\\q"'}, 'not supported'),
    ({'gbnf': 'root ::= ("a"{1000}){1000}'}, 'more than'),
    ({'gbnf': 'root ::= ' + '(' * 500}, 'too deep'),
    ({'gbnf': 'root ::= * "a"'}, 'the end of the line'),
    ({'schema': {'type': 'nope'}}, 'no such'), ({'schema': 5}, 'a map or true'),
    ({'schema': {'$ref': '#/nope'}}, 'nowhere'), ({'schema': {'$ref': 'http://x'}}, '$ref'),
    ({'schema': {'$ref': '#'}}, 'before its first'),
    ({'schema': {'anyOf': [{'$ref': '#'}, {'type': 'null'}]}}, 'before its first'),
    ({'schema': {'enum': []}}, 'not empty'),
    ({'schema': {'type': 'array', 'minItems': -1}}, '0 to'),
    ({'schema': {'type': 'string', 'pattern': '('}}, 'not closed'),
    ({'schema': {'type': 'object', 'properties': {'a': True}, 'required': ['b'],
                 'additionalProperties': False}}, 'required'),
    ({'regex': '(a'}, 'not closed'), ({'regex': 'a)'}, 'not open'), ({'regex': '*'}, 'repeat'),
    ({'regex': '[a'}, 'not closed'), ({'regex': '(?=a)'}, 'no text matches'),
    ({'regex': '(?<=a)b'}, 'not supported'), ({'regex': '(?=^a)'}, 'within a look-ahead'),
    ({'regex': '\\b'}, 'not supported'), ({'regex': '(a)\\1'}, 'not supported'),
    ({'regex': 'a{99999}'}, 'more than'), ({'regex': '((a{1000}){1000}){1000}'}, 'more than'),
    ({'regex': '[z-a]'}, 'order'), ({'regex': 'a$b'}, 'no text matches'),
 
      ({'regex': '(' * 500}, 'too deep')]

TEXTS = ['3', '2', '105', '106', '-12', '-13', '1000', '1001', '-7', '-6', '9', '10', '11',
    '99999', '99998', '9007199254740992', '9007199254740993', '100000', '0.5', '0.50',
    '1.5', '-1.5',
    '-2', '-2.5', '-1.999', '0.001', '9.99', '9.990', '-30', '-30.5', '-29.5', '-0.5', '-10',
    '35', '14', '-49', '15', '70', '"a@b.org"', '"1:2:3:4:5:6:7:8"', '"1:2:3"',
    '{"kind": "circle", "r": 1.5}', '{"kind": "circle"}', '{"kind": "box"}', '{"kind": "oval"}',
    '""', '"a"', '"ab"', '"abc"', '"é🙂"', '"\\n"', '"x1"', '"ax12y"', '"\\""', '"ab\\\\"',
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
    '[,]', '"P3Y6M4DT12H30M5S"', '"P1W"', '"PT0S"', '"P1D"', '"PT1H5M"', '"P"', '"PT"', '"P1S"',
    '"P1M2Y"']

PLAIN = ['()', '(()())', '(()', ')(', '1', '1+2', '1+2*(3+4)', '(1)', '1+', '01', '()1', '1(2)',
    'cdcd', 'd', 'A\u00e9x',
    '', 'a', 'abc', 'b', 'bc', 'aabbc', 'abab', 'abcdab', 'ab', 'abababab', 'dx', 'ax',
    '\nx', '123-ab', '123-ab ', '12-ab', 'é', '東東', '\\.*', ']-x', 'c', 'abac', '1_2', 'Aé',
    'aaaaaaaaab', 'aac', '11111111111111111111111111111111111111111111111111',
    '111111111111111111111111111111111111111111111111111', 'aa', 'aaa', 'z🙂ü', 'zzzz', '\n',
    '🙂']


def is_valid(case, text):
    """What Python says of the text."""
    if 'gbnf' in case:
        said = dict(GBNF)[case['gbnf']]
        return said(text) if callable(said) else re.fullmatch(said, text) is not None
    if 'regex' in case:
        pattern = case['regex'].replace('\\Z', '')
        return re.fullmatch(pattern, text, re.ASCII) is not None
    try:
        value = json.loads(text)
        text.encode()
        json.dumps(value, ensure_ascii=False).encode()
        schema = case.get('schema', {'type': 'object'})
        schema = next((as_meant for narrow, as_meant in NARROWER if narrow == schema), schema)
        jsonschema.validate(value, schema, format_checker=jsonschema.FormatChecker())
        return True
    except (ValueError, jsonschema.ValidationError):
        return False


def cases():
    """Grammars with the texts that they take and do not take."""
    narrower = [schema for schema, _ in NARROWER]
    for case in [{'schema': schema} for schema in SCHEMAS + narrower] + [{}]:
        # Numbers with bounds are not written with exponents.
        words = str(case.get('schema'))
        is_bounded = any(word in words for word in ('nimum', 'ximum', 'multipleOf', 'uint8'))
        texts = {text for text in TEXTS if not (is_bounded and re.search('[0-9][eE]', text))}
        sure = {text for text in texts if is_valid(case, text)}
        yield {**case, 'accepts': sorted(sure), 'rejects': sorted(texts - sure)}
    for regex in REGEXES:
        case = {'regex': regex}
        sure = {text for text in PLAIN if is_valid(case, text)}
        yield {**case, 'accepts': sorted(sure), 'rejects': sorted(set(PLAIN) - sure)}
    for source, _ in GBNF:
        case = {'gbnf': source}
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
            print({key: case[key] for key in ('schema', 'regex', 'gbnf') if key in case},
                  repr(sample['text']))
    print(f'{good} texts that Python takes, {bad} that it does not')
    return bad > 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == '--check':
        sys.exit(check(sys.argv[2]))
    for case in cases():
        print(json.dumps(case, ensure_ascii=False))


main()
