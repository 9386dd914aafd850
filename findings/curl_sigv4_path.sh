#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libcurl: what CURLOPT_AWS_SIGV4 signs of a path depends on the version, and since 8.16 it refuses
# CURLOPT_PATH_AS_IS.
#
# Amazon S3 signs the key with all bytes but letters, digits and - . _ ~ / escaped, whatever the
# request line has. libcurl 8.12 signs such a path and sends the URL as it was given, so
# GET /lr=0.1/m.pte is accepted. libcurl 8.23 signs the path as it sends it: the same URL is now
# answered with SignatureDoesNotMatch, and the caller has to write /lr%3D0.1/m.pte, which both
# versions sign alike. A key with the part "..", which S3 allows, needs CURLOPT_PATH_AS_IS: 8.12
# signs and sends it, 8.16 and 8.23 fail with CURLE_BAD_FUNCTION_ARGUMENT (43), so no key of that
# kind can be asked for. libcurl 7.88 (Debian 12) signs none of the requests as S3 wants it, because
# it sends no x-amz-content-sha256.
#
# The server here computes the signature from its own canonical request, as S3 does.
#
# Seen: 8.12.1 and 8.16.0 and 8.23.0 of pycurl 7.45.6, 7.45.7 and 7.49.0; curl 7.88.1 of Debian 12.
# Needs: python3 with venv, pip with PyPI; curl 7.88 for the last part, which is left out without
# it. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/store.py" <<'END'
import hashlib
import hmac
import http.server
import re
import threading
from urllib.parse import quote, unquote

SECRET = "secret"
EMPTY = hashlib.sha256(b"").hexdigest()


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def verdict(path, fields):
    """What S3 says of a GET without a query: the signature is that of the escaped key."""
    if "x-amz-content-sha256" not in fields:
        return "MissingSecurityHeader"
    day, region, service, names, signature = re.match(
        r"AWS4-HMAC-SHA256 Credential=id/(\d+)/([^/]+)/([^/]+)/aws4_request, ?"
        r"SignedHeaders=([^,]+), ?Signature=(\w+)", fields["authorization"]).groups()
    canonical = "\n".join(["GET", quote(unquote(path), safe="/-._~"), "",
                           *[f"{name}:{fields[name].strip()}" for name in names.split(";")], "",
                           names, EMPTY])
    scope = f"{day}/{region}/{service}/aws4_request"
    key = ("AWS4" + SECRET).encode()
    for part in scope.split("/"):
        key = mac(key, part)
    text = "\n".join(["AWS4-HMAC-SHA256", fields["x-amz-date"], scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    return "well" if mac(key, text).hex() == signature else "SignatureDoesNotMatch"


class Handler(http.server.BaseHTTPRequestHandler):
    said = []

    def do_GET(self):
        fields = {name.lower(): value for name, value in self.headers.items()}
        self.said.append((self.path, verdict(self.path, fields)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def start():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
END

cat >"$folder/easy.py" <<'END'
import sys

import pycurl
import store

base, got = store.start(), []
for path, as_is in (("/lr=0.1/m.pte", 0), ("/lr%3D0.1/m.pte", 0), ("/a/../b.pte", 1)):
    easy = pycurl.Curl()
    easy.setopt(easy.URL, base + path)
    easy.setopt(easy.PATH_AS_IS, as_is)
    easy.setopt(easy.AWS_SIGV4, "aws:amz:eu-west-1:s3")
    easy.setopt(easy.USERPWD, "id:" + store.SECRET)
    try:
        easy.perform()
        got.append(store.Handler.said[-1][1])
    except pycurl.error as error:
        got.append(str(error.args[0]))
print(pycurl.version.split()[1], got)
sys.exit(got != sys.argv[1:])
END

cat >"$folder/command.py" <<'END'
import subprocess
import sys

import store

subprocess.run(["curl", "-s", "--aws-sigv4", "aws:amz:eu-west-1:s3", "--user", "id:" + store.SECRET,
                store.start() + "/m.pte"], check=True)
print("curl 7.88", store.Handler.said)
sys.exit(store.Handler.said != [("/m.pte", "MissingSecurityHeader")])
END

# try VERSION OF_RAW OF_ESCAPED OF_DOTS
try() {
    python3 -m venv "$folder/$1"
    "$folder/$1/bin/pip" install -q --disable-pip-version-check --only-binary :all: "pycurl==$1"
    "$folder/$1/bin/python" "$folder/easy.py" "$2" "$3" "$4"
}

try 7.45.6 well well well
try 7.45.7 SignatureDoesNotMatch well 43
try 7.49.0 SignatureDoesNotMatch well 43
case $(curl --version) in
"curl 7.88."*) python3 "$folder/command.py" ;;
*) echo "curl 7.88 is not here: left out" ;;
esac
