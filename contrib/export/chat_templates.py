#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Asks jinja2, set up as transformers does it, what chat templates make of conversations.

    python3 contrib/export/chat_templates.py >tests/text/cases.jsonl
    python3 contrib/export/chat_templates.py --conversations 600 >all.jsonl
    tests/text/test_templates all.jsonl

Each line is a case of tests/text/test_templates.c. Without --conversations the set is small enough
for the repository: a few conversations for each template, and each construct of constructs.txt.
"""

import argparse
import datetime
import json
import pathlib
import random
import sys

from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).resolve().parent.parent.parent / 'tests' / 'text'
NOW = datetime.datetime(2026, 11, 25, 13, 45, 6)

WORDS = ['hello', 'Weather', 'in', 'Łódź', '東京', '🙂🇵🇱', '', ' ', '\n', '\t x \t', '<|begin|>',
         '{{ x }}', '{% if %}', '"quoted"', "it's", 'a\\b', 'é\u0301', '\u00a0', '\u200b', '\u2028',
         '<b>&amp;', 'two\r\nlines', '<think>\nhm\n</think>\n\nso', '</think>',
         '<tool_response>x</tool_response>', 'مرحبا', 'ß', '0', '-1.5e-7', '\x7f', 'x' * 40,
         '/no_think', '/system_override', '/think']


def text(rng):
    """A text of a few words, which may be empty or white space."""
    return rng.choice(['', ' ', '\n', ' ']).join(rng.choice(WORDS)
                                                for _ in range(rng.choice([0, 1, 2, 3, 5, 8])))


def plain(rng, depth=0):
    """Any value of JSON."""
    kind = rng.randrange(9 if depth < 3 else 7)
    if kind == 7:
        return [plain(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 8:
        return {text(rng)[:12] + str(i): plain(rng, depth + 1) for i in range(rng.randrange(4))}
    return [None, True, False, rng.randrange(-10**6, 10**6),
            rng.uniform(-1, 1) * 10**rng.randrange(-9, 20), text(rng), 'plain'][kind]


def tool(rng):
    """The description of a function."""
    name = rng.choice(['get_weather', 'search', 'brave_search', 'wolfram_alpha', 'add-numbers'])
    properties = {key: {'type': rng.choice(['string', 'number', 'integer', 'boolean']),
                        'description': text(rng),
                        **({'enum': ['a', 'ü']} if rng.random() < .3 else {})}
                  for key in rng.sample(['city', 'unit', 'größe', 'items', 'n'], rng.randrange(4))}
    function = {'name': name, 'description': text(rng),
                'parameters': {'type': 'object', 'properties': properties,
                               'required': list(properties)}}
    if rng.random() < .3:
        function['return'] = {'type': 'string'}
    if rng.random() < .2:
        function['strict'] = plain(rng)
    return {'type': 'function', 'function': function}


def call(rng):
    """A call of a function."""
    arguments = plain(rng) if rng.random() < .3 else {'city': text(rng), 'n': 'x'}
    function = {'name': rng.choice(['get_weather', 'brave_search', 'search']),
                'arguments': arguments}
    if rng.random() < .3:
        function['arguments'] = json.dumps(arguments)
    out = {'type': 'function', 'function': function}
    if rng.random() < .8:
        out['id'] = rng.choice(['abcdef123', 'call_1', '123456789'])
    return function if rng.random() < .1 else out


def content(rng):
    """The content of a message, now and then in parts."""
    if rng.random() < .06:
        return [{'type': 'image'} if rng.random() < .3 else {'type': 'text', 'text': text(rng)}
                for _ in range(rng.randrange(1, 4))]
    return None if rng.random() < .03 else text(rng)


def conversation(rng):
    """Messages in an order that most templates take; now and then in any."""
    out = []
    if rng.random() < .6:
        out.append({'role': 'system', 'content': content(rng)})
        if rng.random() < .1:
            out[0]['tools'] = rng.choice([None, json.dumps([tool(rng)])])
    for _ in range(rng.choice([0, 1, 1, 2, 3, 6])):
        out.append({'role': 'user', 'content': content(rng)})
        if rng.random() < .3:
            calls = [call(rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
            message = {'role': 'assistant', 'tool_calls': calls}
            if rng.random() < .7:
                message['content'] = content(rng)
            out.append(message)
            for each in calls:
                out.append({'role': rng.choice(['tool', 'tool', 'ipython']),
                            'content': content(rng), 'name': 'search',
                            'tool_call_id': each.get('id', 'x')})
        out.append({'role': 'assistant', 'content': content(rng)})
        if rng.random() < .2:
            out[-1]['reasoning_content'] = text(rng)
        if rng.random() < .1:
            out[-1]['tool_calls'] = rng.choice([None, []])
    if rng.random() < .6:
        out.append({'role': 'user', 'content': content(rng)})
    if rng.random() < .08:
        rng.shuffle(out)
    if rng.random() < .02:
        out = out * 60
    if rng.random() < .02 and out:
        out[-1]['content'] = 'long ' * 20000
    return out


def context(rng):
    """All that a template gets."""
    out = {'messages': conversation(rng), 'bos_token': '<s>', 'eos_token': '</s>',
           'add_generation_prompt': rng.random() < .6}
    if rng.random() < .5:
        out['tools'] = rng.choice([None, [tool(rng) for _ in range(rng.randrange(4))]])
    for name, value in (('enable_thinking', rng.random() < .5), ('date_string', '1 Jan 2026'),
                        ('tools_in_user_message', rng.random() < .5),
                        ('builtin_tools', ['brave_search', 'code_interpreter'])):
        if rng.random() < .2:
            out[name] = value
    return out


def render(source, values):
    """What jinja2 makes of it: members of a case."""
    try:
        template = chat_template_utils._compile_jinja_template(source)
        template.globals['strftime_now'] = NOW.strftime
        return {'text': template.render(**values)}
    except Exception as error:  # pylint: disable=broad-except
        if type(error).__name__ == 'TemplateError':
            return {'raised': str(error)}
        return {'fails': True, 'why': f'{type(error).__name__}: {error}'[:200]}


def emit(case):
    line = json.dumps(case, ensure_ascii=False)
    line.encode()
    print(line)


def constructs():
    """Small templates, one a line of constructs.txt, with a context that they share. What jinja2
    takes and pted refuses begins with an exclamation mark."""
    shared = json.loads((HERE / 'constructs.json').read_text())
    for line in (HERE / 'constructs.txt').read_text().splitlines():
        if line and not line.startswith('## '):
            source = line.lstrip('!').replace('⏎', '\n').replace('␍', '\r')
            made = render(source, shared) if line[0] != '!' else {'fails': True}
            yield {'source': source, 'context': shared, **made}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--conversations', type=int, default=0)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    sys.stdout.reconfigure(newline='\n')
    for case in constructs():
        emit(case)
    rng = random.Random(options.seed)
    contexts = [context(rng) for _ in range(options.conversations)]
    for path in sorted((HERE / 'templates').glob('*.jinja')):
        source = path.read_text()
        if not options.conversations:
            contexts = [context(rng) for _ in range(12)]
            contexts = [each for each in contexts if len(json.dumps(each)) < 3000]
        for each in contexts:
            emit({'template': path.stem, 'context': each, **render(source, each)})


main()
