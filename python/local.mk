# SPDX-License-Identifier: MIT
# The Python package pted-server; wheels.py makes it.
EXTRA_DIST += %D%/README.md %D%/pyproject.toml %D%/wheel_elf.py %D%/wheels.py \
	%D%/pted_server/__init__.py %D%/pted_server/__main__.py %D%/pted_server/client.py \
	%D%/pted_server/programs.py %D%/pted_server/py.typed %D%/pted_server/tensors.py \
	%D%/pted_server/transport.py \
	%D%/pted_server/export/__init__.py %D%/pted_server/export/__main__.py \
	%D%/pted_server/export/card.py %D%/pted_server/export/chat.py \
	%D%/pted_server/export/check.py %D%/pted_server/export/describe.py \
	%D%/pted_server/export/exporter.py %D%/pted_server/export/folder.py \
	%D%/pted_server/export/kinds.py %D%/pted_server/export/speech.py
