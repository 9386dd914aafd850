#!/bin/sh
# SPDX-License-Identifier: MIT
#
# PCRE2 10.42: the JIT does not find a match that the interpreter finds.
#
# "e(?:t|)b*t" matches "et": the choice is empty. When the pattern is compiled with the JIT, PCRE2
# up to 10.42, which Debian 12 has, says that nothing matches. The start optimization is the cause:
# with PCRE2_NO_START_OPTIMIZE both find it. 10.43 is right.
#
# Seen: pcre2 0.3.0 (PCRE2 10.42): interpreter True, JIT False; 0.4.0 (10.43): True, True.
# Needs: python3 (at most 3.11) with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/choice.py" <<'END'
import sys

import pcre2


def matches(jit):
    try:
        return bool(pcre2.compile("e(?:t|)b*t", jit=jit).match("et"))
    except pcre2.exceptions.MatchError:
        return False


found = [matches(False), matches(True)]
print(f"PCRE2 {pcre2.__libpcre2_version__}: interpreter {found[0]}, JIT {found[1]}")
sys.exit(found != [True, sys.argv[1] == "True"])
END

# try VERSION FOUND
try() {
    python3 -m venv "$folder/$1"
    "$folder/$1/bin/pip" install -q --disable-pip-version-check --only-binary :all: "pcre2==$1"
    "$folder/$1/bin/python" "$folder/choice.py" "$2"
}

try 0.3.0 False
try 0.4.0 True
