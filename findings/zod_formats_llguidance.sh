#!/bin/sh
# SPDX-License-Identifier: MIT
#
# zod and llguidance: schemas that zod writes are refused for a format that it has invented.
#
# z.toJSONSchema() gives z.base64(), z.e164(), z.nanoid(), z.jwt() and z.cidrv4() a "format" of that
# name, beside a pattern. JSON Schema says that an unknown format is a note and refuses nothing.
# llguidance, which constrains the answers of several servers of language models, fails: "Unknown
# format". So an answer by such a schema cannot be asked for, although the pattern beside the format
# is one that llguidance knows. z.iso.duration() fails for its pattern, which looks ahead.
#
# Seen: zod 4.6.7, llguidance 1.9.1; z.uuid() and z.ipv4() are taken.
# Needs: node with npm, python3 with venv, pip with PyPI.
# Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >schema.mjs <<'END'
import { z } from "zod";

const fields = { uuid: z.uuid(), ipv4: z.ipv4(), base64: z.base64(), e164: z.e164(),
                 nanoid: z.nanoid(), jwt: z.jwt(), cidrv4: z.cidrv4(), duration: z.iso.duration() };
for (const [name, type] of Object.entries(fields)) {
    console.log(JSON.stringify([name, z.toJSONSchema(z.object({ [name]: type }))]));
}
END

cat >check.py <<'END'
import json
import sys

from llguidance import LLMatcher

EXPECTED = {"uuid": "", "ipv4": "", "base64": "Unknown format", "e164": "Unknown format",
            "nanoid": "Unknown format", "jwt": "Unknown format", "cidrv4": "Unknown format",
            "duration": "regex parse error"}
differs = False
for line in sys.stdin:
    name, schema = json.loads(line)
    error = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(json.dumps(schema)))
    error = error.splitlines()[0] if error else ""
    print(f"{name}: {error or 'taken'}")
    differs |= not error.startswith(EXPECTED[name]) or bool(error) != bool(EXPECTED[name])
sys.exit(differs)
END

npm install --silent --no-fund --no-audit zod@4.6.7 >npm.log 2>&1 || {
    cat npm.log
    exit 1
}
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check --only-binary :all: llguidance==1.9.1
node schema.mjs >schemas
venv/bin/python check.py <schemas
