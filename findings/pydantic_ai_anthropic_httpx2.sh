#!/bin/sh
# SPDX-License-Identifier: MIT
#
# pydantic-ai's extra for Anthropic installs a client that its own provider cannot make.
#
# From version 2 on the package anthropic is built on httpx2 and refuses a client of httpx. The
# requirement of pydantic-ai-slim[anthropic] admits that version, but its AnthropicProvider makes a
# client of httpx and hands it on. So pip's choice raises TypeError before any request, for every
# server. With the client made by hand, the same model class works.
#
# Seen: pydantic-ai-slim 2.31.1 with anthropic 2.14.0: "Invalid `http_client` argument"; the model
# made with AsyncAnthropic() of the caller is there.
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    'pydantic-ai-slim[anthropic]==2.31.1' 'anthropic==2.14.0'
cat >"$folder/make.py" <<'END'
import sys
from importlib.metadata import version

from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

print(*(f"{name} {version(name)}" for name in ("pydantic-ai-slim", "anthropic")))
try:
    AnthropicProvider(api_key="key", base_url="http://127.0.0.1:1")
    refusal = ""
except TypeError as error:
    refusal = str(error)
print("AnthropicProvider(api_key=..., base_url=...):", refusal or "made")
own = AsyncAnthropic(api_key="key", base_url="http://127.0.0.1:1")
model = AnthropicModel("name", provider=AnthropicProvider(anthropic_client=own))
print("with a client of one's own:", type(model).__name__)
sys.exit("httpx2" not in refusal)
END
"$folder/venv/bin/python" "$folder/make.py"
