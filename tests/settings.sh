#!/bin/sh
# SPDX-License-Identifier: MIT
# The files that contrib/settings.sh writes are those that it would write now.
exec "${top_srcdir:-$(dirname "$0")/..}/contrib/settings.sh" --check
