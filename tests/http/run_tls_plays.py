#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plays of run_http.py over TLS: what a client sees of HTTP is the same.

usage: run_tls_plays.py [FILE.t...], with top_srcdir and top_builddir in the environment.
"""
import sys
from functools import partial
from pathlib import Path

from run_http import Report, run_file
from tls_client import Authority, TlsClient, need_openssl

# The files whose plays are about connections, sizes and bodies.
NAMES = ("00_basic.t", "10_connection.t", "40_limits.t", "60_binary.t", "70_coding.t", "80_call.t")


def main(names):
    need_openssl()
    report = Report()
    authority = Authority()
    certificate, key = authority.sign("server")
    listen = ("--listen", "tls:127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key)
    connect = partial(TlsClient, context=authority.context())
    for path in [Path(name) for name in names] or [Path(__file__).parent / n for n in NAMES]:
        run_file(report, path, connect, listen=listen)
    authority.close()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
