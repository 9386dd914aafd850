#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/text/schemas.jsonl: JSON Schemas as pydantic and zod write them, each with texts.

    npm install zod                          # version 4, anywhere above schemas.mjs
    pip install jsonschema 'pydantic[email]' # pydantic 2
    python3 contrib/export/schemas.py TEST_GRAMMAR >tests/text/schemas.jsonl

TEST_GRAMMAR is tests/text/test_grammar, which samples each schema. Samples that jsonschema takes
are kept, and the others are printed to standard error.
"""

import datetime
import decimal
import enum
import ipaddress
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import uuid
from typing import Annotated, Any, Literal, Optional, Union

import jsonschema
import pydantic
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field

Letter = enum.Enum('Letter', {'x': 'x', 'y': 'y'})
Number = enum.IntEnum('Number', {'a': 1, 'b': 2})


class Inner(BaseModel):
    v: int


class Cat(BaseModel):
    kind: Literal['cat'] = 'cat'
    m: int


class Dog(BaseModel):
    kind: Literal['dog'] = 'dog'
    b: str = ''


class Cow(BaseModel):
    kind: Literal['cow']
    b: str = ''


class Pig(BaseModel):
    kind: Literal['pig']
    m: int


class Typed(typing_extensions.TypedDict):
    a: int
    b: str


class Open(BaseModel):
    model_config = ConfigDict(extra='allow')
    a: int


class OpenTyped(Open):
    __pydantic_extra__: dict[str, int]


class Strict(BaseModel):
    model_config = ConfigDict(extra='forbid')
    a: int


class Node(BaseModel):
    v: int
    kids: list['Node'] = []


def string(**limits):
    return Annotated[str, Field(**limits)]


TYPES = [
    decimal.Decimal, Annotated[decimal.Decimal, Field(ge=0, le=100, decimal_places=2)],
    datetime.datetime, datetime.date, datetime.time, datetime.timedelta, uuid.UUID, pydantic.UUID4,
    ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, pydantic.IPvAnyAddress,
    pathlib.Path, pydantic.FilePath, pydantic.DirectoryPath, bytes, pydantic.Base64Str,
    pydantic.SecretStr, pydantic.EmailStr, pydantic.NameEmail, pydantic.AnyUrl, pydantic.HttpUrl,
    pydantic.PostgresDsn, pydantic.Json, pydantic.Json[int], re.Pattern,
    list[int], set[Letter], set[Literal['a', 'b']], frozenset[bool], tuple[int, str],
    tuple[int, ...], dict[str, int], dict[Letter, int], dict[Literal['p', 'q'], int],
    dict[string(pattern='^[a-z]+$'), int], dict[uuid.UUID, int], dict[int, str],
    dict[string(min_length=1, max_length=5), int],
    Annotated[dict[str, int], Field(min_length=1, max_length=3)], dict, list, Any,
    float, Annotated[float, Field(ge=0.5, lt=2.5)], Annotated[float, Field(multiple_of=0.1)],
    Annotated[float, Field(multiple_of=0.25, ge=0, le=10)],
    Annotated[int, Field(multiple_of=15, ge=0)],
    Annotated[int, Field(multiple_of=1000, gt=0, lt=100000)],
    Annotated[int, Field(ge=0, le=2 ** 63 - 1)], Annotated[float, Field(gt=1e-9)],
    pydantic.PositiveInt, pydantic.NegativeFloat, string(pattern='^[a-z]+$', min_length=2,
    max_length=8), string(min_length=1), string(pattern=r'^\d{3}-\d{4}$'),
    string(pattern='foo|bar'), string(max_length=10), string(pattern='^#(?:[0-9a-f]{3}){1,2}$'),
    Optional[int], Optional[Letter], Optional[Inner], Union[int, str, Inner], Literal['a'],
    Literal['a', 1, None, True], Letter, Number, bool, None, Inner, pydantic.ByteSize,
    Annotated[Inner, Field(description='d', examples=[{'v': 1}])],
    Annotated[Union[Cat, Dog], Field(discriminator='kind')],
    list[Annotated[Union[Cow, Pig], Field(discriminator='kind')]], Typed, Open, OpenTyped, Strict,
    Node, Annotated[int, Field(deprecated=True)],
    Annotated[int, Field(json_schema_extra={'x-order': 1, 'example': 3})],
    Annotated[list[int], Field(min_length=1, max_length=3)],
]


def schemas():
    """All schemas: the wrapper has one member, a."""
    for kind in TYPES:
        yield pydantic.create_model('M', a=(kind, ...)).model_json_schema()
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'schemas.mjs')
    text = subprocess.run(['node', script], check=True, capture_output=True, text=True).stdout
    yield from map(json.loads, text.splitlines())


def exact(schema):
    """The schema for jsonschema, which computes multiples of floats as floats."""
    if isinstance(schema, dict):
        return {key: exact(value) for key, value in schema.items()
                if key != 'multipleOf' or isinstance(value, int)}
    return [exact(value) for value in schema] if isinstance(schema, list) else schema


def takes(schema, text):
    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError:
        return True  # of a draft that jsonschema does not know
    try:
        jsonschema.validate(json.loads(text), exact(schema))
        return True
    except (ValueError, TypeError, jsonschema.ValidationError) as error:
        print(text[:200], str(error)[:200], file=sys.stderr)
        return False


def main():
    unique = {json.dumps(schema): schema for schema in schemas()}
    known = list(unique.values())
    with tempfile.NamedTemporaryFile('w', suffix='.jsonl') as file:
        file.writelines(json.dumps({'schema': schema}) + '\n' for schema in known)
        file.flush()
        out = subprocess.run([sys.argv[1], file.name, '20'], capture_output=True, text=True,
                             check=False).stdout
    accepts = [[] for _ in known]
    for line in filter(None, out.split('\n')):
        if not line.startswith('{'):
            print(line, file=sys.stderr)
            continue
        sample = json.loads(line)
        if takes(known[sample['case']], sample['text']):
            accepts[sample['case']].append(sample['text'])
    for schema, texts in zip(known, accepts):
        print(json.dumps({'schema': schema, 'accepts': sorted(texts, key=len)[:2],
                          'rejects': ['[]', '{"a"}']}))


main()
