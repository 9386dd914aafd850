#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of s3:// URLs: `pte fetch` against a store that is as strict as Amazon's.

The store computes the signature of each request as Amazon's page on version 4 says
(https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html), from the key that
was asked for, not from the bytes of the path. If this interpreter or the one of PYTHON has botocore
(tests/requirements.txt), its path and its signature of each request are compared as well.

usage: run_s3.py, with top_srcdir and top_builddir in the environment. LD_LIBRARY_PATH chooses a
version of libcurl.
"""
import hashlib
import hmac
import sys
import tempfile
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import interpreter
from run_fetch import BIG, DATA, Origin, fetched, pte_fetch
from run_http import Failure, Report, expect

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_REGION": "eu-west-3", "AWS_SESSION_TOKEN": "",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
DOTS = ("a/../b.pte", "./m.pte", "..")
VERSION = "3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY_MTRCxf3vjVBH40Nr8X8gdRQBpUMLUo"
SESSION = "FwoGZXIvYXdzE/+=" * 100  # as long as those of Amazon's services are
EMPTY = hashlib.sha256(b"").hexdigest()
NAMES = ("m.pte", "lr=0.1/m.pte", "a+b.pte", "v1@2.pte", "with two spaces.pte", "100%.pte",
         "a%20b.pte", "a//b.pte", "...", "..a/b..", "tilde~-_.pte", "what?.pte",
         "größe/λ.pte", "!$&'()*,;:[]\"<>\\^`{|}.pte", "x" * 1020 + ".pte", "é" * 508 + ".pte")


def encode(text, safe):
    """UriEncode() of Amazon's page."""
    return quote(text, safe=safe + "-._~")


def signature_of(scope, secret, when, canonical):
    """That of a canonical request."""
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = "\n".join(("AWS4-HMAC-SHA256", when, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Store(Origin):
    """A store with one bucket; |wrong| has what it does not take, and it then answers 403."""

    def __init__(self, region=KEYS["AWS_REGION"]):
        super().__init__()
        self.region, self.wrong, self.signed = region, [], 0
        self.files, self.redirects = {}, {}
        self.other_region = None

    def put(self, key, data=DATA, version=""):
        """Keeps a file."""
        self.files["models", key, version] = data

    def answer(self, handler):
        """One answer."""
        split = urlsplit(handler.path)
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        if split.path in self.redirects:
            self.head(handler, 307, {"Location": self.redirects[split.path], "Content-Length": "0"})
            return
        if self.other_region:
            self.head(handler, 301, {"x-amz-bucket-region": self.other_region,
                                     "Content-Length": "0"})
            return
        wrong = self.check(handler, split.path, query)
        bucket, _, key = unquote(split.path)[1:].partition("/")
        data = self.files.get((bucket, key, query.get("versionId", "")))
        if wrong:
            self.wrong.append(f"{handler.path}: {wrong}")
            self.head(handler, 403, {"Content-Length": "0"})
        elif data is None:
            self.head(handler, 404, {"Content-Length": "0"})
        else:
            self.send_file(handler, data)

    def check(self, handler, path, query):
        """What is wrong with the signature, or None."""
        fields = {name.lower(): " ".join(value.split()) for name, value in handler.headers.items()}
        kind, _, rest = fields.get("authorization", "").partition(" ")
        if kind != "AWS4-HMAC-SHA256":
            return f"not signed: {kind!r}"
        given = dict(part.strip().split("=", 1) for part in rest.split(","))
        if "x-amz-content-sha256" not in fields:
            return "MissingSecurityHeader: x-amz-content-sha256"
        names = given["SignedHeaders"].split(";")
        left = [name for name in fields if name.startswith("x-amz-") and name not in names]
        if left or "host" not in names or names != sorted(names):
            return f"not signed: {left}, signed: {names}"
        identity, scope = given["Credential"].split("/", 1)
        when = fields["x-amz-date"]
        if (identity, scope) != (KEYS["AWS_ACCESS_KEY_ID"],
                                 f"{when[:8]}/{self.region}/s3/aws4_request"):
            return f"credential {given['Credential']}"
        canonical = "\n".join((
            handler.command, encode(unquote(path), "/"),
            "&".join(f"{encode(name, '')}={encode(value, '')}"
                     for name, value in sorted(query.items())),
            *(f"{name}:{fields[name]}" for name in names), "", ";".join(names),
            fields["x-amz-content-sha256"]))
        want = signature_of(scope, KEYS["AWS_SECRET_ACCESS_KEY"], when, canonical)
        if given["Signature"] != want:
            return f"SignatureDoesNotMatch: {canonical!r}"
        self.signed += 1
        return self.compare_botocore(handler, {name: fields[name] for name in names}, given)

    def compare_botocore(self, handler, fields, given):
        """Amazon's own library signs the same request."""
        if not interpreter.has("botocore"):
            return None
        # pylint: disable=import-outside-toplevel
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        auth = S3SigV4Auth(Credentials(KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"]),
                           "s3", self.region)
        request = AWSRequest(handler.command, f"http://{fields['host']}{handler.path}",
                             headers=fields)
        request.context["timestamp"] = fields["x-amz-date"]
        text = auth.string_to_sign(request, auth.canonical_request(request))
        want = auth.signature(text, request)
        return None if given["Signature"] == want else f"botocore signs {want}: {text!r}"


def store_fetch(folder, store, url, **env):
    """The bytes of a file of the store."""
    done = pte_fetch(folder, "--s3-endpoint", store.url, url, env={**KEYS, **env})
    if done.returncode != 0:
        raise Failure(f"{url}: {done.stderr}{store.wrong}")
    return Path(done.stdout.strip()).read_bytes()


def known_signature(_):
    """The store's own arithmetic gives the signature of Amazon's page (GET Object)."""
    canonical = ("GET\n/test.txt\n\nhost:examplebucket.s3.amazonaws.com\nrange:bytes=0-9\n"
                 f"x-amz-content-sha256:{EMPTY}\nx-amz-date:20130524T000000Z\n\n"
                 f"host;range;x-amz-content-sha256;x-amz-date\n{EMPTY}")
    expect("the signature", signature_of("20130524/us-east-1/s3/aws4_request",
                                         "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                         "20130524T000000Z", canonical),
           "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")


def names(folder):
    """Keys of all kinds are signed and found."""
    with Store() as store:
        for i, name in enumerate(NAMES):
            data = DATA + bytes([i])
            store.put(name, data)
            expect(name, store_fetch(folder, store, f"s3://models/{name}") == data, True)
        store.put("m.pte", DATA + b"version", VERSION)
        expect("a version", store_fetch(folder, store, f"s3://models/m.pte?versionId={VERSION}"),
               DATA + b"version")
        expect("an endpoint that ends in a slash", fetched(
            folder, "--s3-endpoint", f"{store.url}/", "s3://models/v1@2.pte#sha256=" +
            hashlib.sha256(DATA + bytes([NAMES.index("v1@2.pte")])).hexdigest(), env=KEYS).suffix,
               ".pte")
        expect("no complaint", store.wrong, [])
        expect("each was signed", store.signed, len(NAMES) + 2)


def dots(folder):
    """Keys with parts that other paths lose; libcurl signs none of them since 8.16."""
    with Store() as store:
        for name in DOTS:
            store.put(name)
            done = pte_fetch(folder, "--s3-endpoint", store.url, f"s3://models/{name}", env=KEYS)
            if done.returncode != 77 or "this libcurl cannot sign a key with the part ." not in \
                    done.stderr:
                expect(name, Path(done.stdout.strip()).read_bytes() == DATA, True)
        expect("no complaint", store.wrong, [])


def same_path(_):
    """botocore asks for the same path."""
    if not interpreter.has("botocore"):
        print("# skip botocore is not installed, see tests/requirements.txt")
        return
    # pylint: disable=import-outside-toplevel
    import botocore.session
    from botocore.awsrequest import AWSResponse
    client = botocore.session.get_session().create_client(
        "s3", region_name=KEYS["AWS_REGION"], endpoint_url="http://127.0.0.1:1",
        aws_access_key_id="id", aws_secret_access_key="secret")
    asked = []

    def capture(request, **_):
        asked.append(urlsplit(request.url).path)
        return AWSResponse(request.url, 404, {}, None)

    client.meta.events.register("before-send.s3.GetObject", capture)
    for name in NAMES:
        try:
            client.get_object(Bucket="models", Key=name)
        except Exception as why:  # pylint: disable=broad-exception-caught
            expect("404", "404" in str(why) or "AttributeError" in repr(why), True)
    with Store() as store, tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            pte_fetch(folder, "--s3-endpoint", store.url, f"s3://models/{name}", env=KEYS)
        expect("paths", [path for path, _ in store.requests], asked)


def sessions_and_states(folder):
    """A long session token; a file that is cut, and one that has not changed."""
    with Store() as store:
        store.put("big.bin", BIG)
        store.cuts = 1
        expect("cut", store_fetch(folder, store, "s3://models/big.bin", AWS_SESSION_TOKEN=SESSION),
               BIG)
        expect("unchanged", store_fetch(folder, store, "s3://models/big.bin",
                                        AWS_SESSION_TOKEN=SESSION), BIG)
        fields = [{name.lower(): value for name, value in fields.items()}
                  for _, fields in store.requests]
        expect("the token", {each["x-amz-security-token"] for each in fields}, {SESSION})
        expect("conditions", ["range" in fields[1], "if-none-match" in fields[2]], [True, True])
        expect("no complaint", store.wrong, [])


SECRET = ("authorization", "x-amz-security-token", "cookie", "proxy-authorization")


def secrets_of(origin):
    """Names of header fields with secrets that came."""
    return [name.lower() for _, fields in origin.requests for name in fields
            if name.lower() in SECRET]


def redirects(folder):
    """What proves who asks does not go to another origin, but along within one."""
    with Store() as store, Origin() as other:
        other.files["/add.pte"] = DATA
        store.put("deep/add.pte", DATA + b"deep")
        store.redirects = {"/models/away.pte": f"{other.url}/add.pte",
                           "/models/near.pte": "/models/deep/add.pte",
                           "/models/far.pte": f"{other.url}/redirect/redirect/add.pte",
                           "/models/file.pte": "file:///etc/passwd",
                           "/models/loop.pte": "/models/loop.pte"}
        for name, data in (("away", DATA), ("far", DATA), ("near", DATA + b"deep")):
            expect(name, store_fetch(folder, store, f"s3://models/{name}.pte",
                                     AWS_SESSION_TOKEN=SESSION), data)
        expect("the other origin", (len(other.requests), secrets_of(other)), (4, []))
        expect("no complaint", store.wrong, [])
        for name in ("file", "loop"):
            done = pte_fetch(folder, "--s3-endpoint", store.url, f"s3://models/{name}.pte",
                             env=KEYS)
            expect(name, done.returncode, 77)
        store.redirects = {"/me/net/resolve/main/add.pte": f"{other.url}/add.pte",
                           "/add.pte": f"{other.url}/add.pte"}
        fetched(folder, "--hf-endpoint", store.url, "hf://me/net/add.pte",
                env={"HF_TOKEN": "secret"})
        expect("the hub gets its token", secrets_of(store)[-1], "authorization")
        fetched(folder, store.url.replace("//", "//me:secret@") + "/add.pte")
        expect("a user of a URL", secrets_of(store)[-1], "authorization")
        expect("the other origin", (len(other.requests), secrets_of(other)), (6, []))


def other_regions(folder):
    """Amazon says where a bucket is, and so does the error."""
    with Store() as store:
        store.other_region = "ap-south-1"
        done = pte_fetch(folder, "--s3-endpoint", store.url, "s3://models/m.pte", env=KEYS)
        expect("said", "got 301; the bucket is in AWS_REGION=ap-south-1" in done.stderr, True)


CHECKS = (known_signature, names, dots, same_path, sessions_and_states, redirects, other_regions)


def main():
    interpreter.has("botocore")  # may begin again with another one
    report = Report()
    for check in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            report.run(check.__name__, check, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
