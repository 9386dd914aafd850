#!/bin/sh
# SPDX-License-Identifier: MIT
#
# httpx and requests: iter_lines() cuts server-sent events within their JSON.
#
# JSON may have U+2028 and U+0085 in a string as they are, and in server-sent events lines end with
# CR, LF or both and with nothing else. Response.iter_lines() of httpx, and that of requests with
# decode_unicode=True, split text as str.splitlines() does, which ends lines at these characters,
# too. A client of a language model that reads a stream by "for line in response.iter_lines()" gets
# a line with half of a JSON text as soon as the model writes such a character. Bytes are cut at CR
# and LF alone (requests without decode_unicode), and so are the events of openai's own decoder.
#
# Seen: httpx 0.28.1, requests 2.34.2, openai 3.57.0.
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/read.py" <<'END'
import io
import json
import sys

import httpx
import requests
from openai._streaming import SSEDecoder

TEXTS = [{"text": "one\u2028two"}, {"text": "one\u0085two"}]
BODY = "".join(f"data: {json.dumps(text, ensure_ascii=False)}\n\n" for text in TEXTS).encode()


def by_requests(**options):
    response = requests.Response()
    response.raw, response.status_code, response.encoding = io.BytesIO(BODY), 200, "utf-8"
    return response.iter_lines(**options)


def whole(lines):
    """Are the texts those of the lines with data?"""
    try:
        return [json.loads(line[len("data: "):]) for line in lines if line] == TEXTS
    except ValueError:
        return False


got = {"httpx": whole(httpx.Response(200, content=BODY).iter_lines()),
       "requests, decoded": whole(by_requests(decode_unicode=True)),
       "requests, bytes": whole(by_requests()),
       "openai": [event.json() for event in SSEDecoder().iter_bytes(iter([BODY]))] == TEXTS}
for name, is_whole in got.items():
    print(f"{name}: {'whole' if is_whole else 'cut'}")
sys.exit(list(got.values()) != [False, False, True, True])
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check httpx==0.28.1 requests==2.34.2 \
    openai==3.57.0
"$folder/venv/bin/python" "$folder/read.py"
