#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models that come from URLs: a real daemon and `pte fetch` against a server that misbehaves.

usage: run_fetch.py, with top_srcdir and top_builddir in the environment. Also against moto's S3, if
this interpreter or the one of PYTHON has it (tests/requirements.txt).
"""
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import interpreter
from run_daemon import ADD, add_body
from run_http import BUILD, SOURCE, Client, Daemon, Failure, Report, build_request, expect
from run_metrics import pick, read, scrape

DATA = Path(ADD).read_bytes()
HASH = hashlib.sha256(DATA).hexdigest()
BIG = bytes(range(256)) * 4096  # 1 MiB
SHARED = SOURCE.resolve().parent / "shared" / "models" / "public"  # may be absent


class Origin:
    """A server with files whose paths say how it behaves; |requests| has what was asked."""

    def __init__(self):
        self.files = {"/add.pte": DATA, "/big.bin": BIG}
        self.tags = True
        self.requests, self.cuts, self.statuses = [], 0, []
        origin = self

        class Handler(BaseHTTPRequestHandler):
            """One request."""
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # pylint: disable=invalid-name
                """Answers as the path says."""
                origin.requests.append((self.path, dict(self.headers)))
                origin.answer(self)

            def log_message(self, *arguments):  # pylint: disable=arguments-differ
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *why):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def head(handler, status, fields):
        """The head of an answer."""
        handler.send_response(status)
        for name, value in fields.items():
            handler.send_header(name, value)
        handler.end_headers()

    def answer(self, handler):
        """One answer."""
        path = handler.path.split("?")[0]
        if self.statuses:
            self.head(handler, self.statuses.pop(0), {"Content-Length": "0"})
        elif path.startswith("/redirect/"):
            self.head(handler, 302, {"Location": path[len("/redirect"):], "Content-Length": "0"})
        elif path == "/loop":
            self.head(handler, 302, {"Location": "/loop", "Content-Length": "0"})
        elif path == "/to-a-file":
            self.head(handler, 302, {"Location": "file:///etc/passwd", "Content-Length": "0"})
        elif path == "/endless":
            self.head(handler, 200, {"Connection": "close"})
            self.write_forever(handler, b"x" * 65536, 0)
        elif path == "/stalls":
            self.head(handler, 200, {"Content-Length": "1000000"})
            handler.wfile.write(b"x" * 1000)
            handler.wfile.flush()
            handler.rfile.read(1)  # until the client goes
        elif path == "/garbage":
            handler.wfile.write(b"\x00\x01\x02 nonsense\r\n\r\n")
            handler.close_connection = True
        elif path in self.files:
            self.send_file(handler, self.files[path])
        else:
            self.head(handler, 404, {"Content-Length": "0"})

    @staticmethod
    def write_forever(handler, piece, pause_s):
        """Until the client goes."""
        try:
            while True:
                handler.wfile.write(piece)
                time.sleep(pause_s)
        except OSError:
            handler.close_connection = True

    def send_file(self, handler, data):
        """With ETag, ranges and conditions; cut in the middle |cuts| times."""
        tag = '"%s"' % hashlib.sha256(data).hexdigest()[:16]
        fields = {"ETag": tag} if self.tags else {}
        if self.tags and handler.headers.get("If-None-Match") == tag:
            self.head(handler, 304, fields)
            return
        begin, span = 0, handler.headers.get("Range")
        if span and self.tags and handler.headers.get("If-Range", tag) == tag:
            begin = int(span[len("bytes="):-1])
            fields["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        fields["Content-Length"] = str(len(data) - begin)
        self.head(handler, 206 if "Content-Range" in fields else 200, fields)
        end = len(data)
        if self.cuts:
            self.cuts -= 1
            end = begin + (len(data) - begin) // 2
            handler.close_connection = True
        try:
            handler.wfile.write(data[begin:end])
        except OSError:
            handler.close_connection = True


def pte_fetch(folder, *arguments, env=None, preexec_fn=None):
    """The finished `pte fetch`."""
    return subprocess.run([str(BUILD / "pte"), "fetch", "--cache-dir", str(folder), *arguments],
                          capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, **(env or {})}, preexec_fn=preexec_fn)


def fetched(folder, *arguments, env=None):
    """The path that it has printed."""
    done = pte_fetch(folder, *arguments, env=env)
    if done.returncode != 0:
        raise Failure(f"pte fetch {arguments}: {done.stderr}")
    return Path(done.stdout.strip())


def refused(folder, status, text, *arguments, env=None):
    """It fails with that text."""
    done = pte_fetch(folder, *arguments, env=env)
    if done.returncode != status or text not in done.stderr:
        raise Failure(f"pte fetch {arguments}: {done.returncode} {done.stderr!r}; expected "
                      f"{status} and {text!r}")
    left = [path.name for path in Path(folder).iterdir() if path.suffix in (".pte", ".bin", "")]
    expect("nothing in the cache", left, [])


def once_and_again(folder):
    """A file comes once; the next time its tag says that it is the same, or another one comes."""
    with Origin() as origin:
        path = fetched(folder, origin.url + "/add.pte")
        expect("its bytes", path.read_bytes() == DATA, True)
        expect("its extension", path.suffix, ".pte")
        expect("the same", fetched(folder, origin.url + "/add.pte"), path)
        expect("asked for by its tag", "If-None-Match" in origin.requests[1][1], True)
        origin.files["/add.pte"] = DATA + b"more"
        fetched(folder, origin.url + "/add.pte")
        expect("a new state", path.read_bytes() == DATA + b"more", True)
        origin.tags = False
        origin.files["/add.pte"] = DATA
        fetched(folder, origin.url + "/add.pte")
        expect("without tags it comes again", path.read_bytes() == DATA, True)
        pinned = fetched(folder, f"{origin.url}/add.pte#sha256={HASH.upper()}")
        count = len(origin.requests)
        expect("pinned", fetched(folder, f"{origin.url}/add.pte#sha256={HASH.upper()}"), pinned)
        expect("a pinned file is not asked for", len(origin.requests), count)
        pinned.write_bytes(b"damaged")
        fetched(folder, f"{origin.url}/add.pte#sha256={HASH.upper()}")
        expect("a damaged one comes again", pinned.read_bytes() == DATA, True)
        fetched(folder, f"{origin.url}/redirect/add.pte")
        left = {path.suffix for path in Path(folder).iterdir()}
        expect("no parts are left", left, {".pte", ".tag", ".lock"})


def cut_downloads(folder):
    """A download that is cut goes on where it ended."""
    with Origin() as origin:
        origin.cuts = 2
        path = fetched(folder, origin.url + "/big.bin")
        expect("its bytes", path.read_bytes() == BIG, True)
        ranges = [fields.get("Range") for _, fields in origin.requests]
        expect("ranges", ranges, [None, "bytes=524288-", "bytes=786432-"])
        path.unlink()
        origin.requests.clear()
        origin.cuts, origin.tags = 1, False
        fetched(folder, origin.url + "/big.bin")
        expect("without a tag from the beginning", [fields.get("Range") for _, fields in
                                                    origin.requests], [None, None])
        expect("its bytes", path.read_bytes() == BIG, True)
        path.unlink()
        origin.cuts, origin.tags = 100, True
        done = pte_fetch(folder, origin.url + "/big.bin")
        expect("in the end it gives up", done.returncode, 77)
        expect("each try is told", done.stderr.count("/big.bin: "), 4)
        expect("those before the last", done.stderr.count("; it is tried again"), 3)
        origin.cuts = 0
        origin.files["/big.bin"] = BIG[::-1]  # another state: the part is of no use
        expect("another state", fetched(folder, origin.url + "/big.bin").read_bytes() == BIG[::-1],
               True)
        origin.statuses = [503, 429]
        fetched(folder, origin.url + "/add.pte")


def bad_answers(folder):
    """Each bad answer has a clear error and leaves nothing behind."""
    with Origin() as origin:
        refused(folder, 66, "/nope: expected HTTP status 200, got 404", origin.url + "/nope")
        refused(folder, 65, f"/add.pte: expected SHA-256 {'0' * 64}, got {HASH}",
                f"{origin.url}/add.pte#sha256={'0' * 64}")
        refused(folder, 77, "/loop: ", origin.url + "/loop")
        refused(folder, 77, "/to-a-file: ", origin.url + "/to-a-file")
        refused(folder, 77, "/garbage: ", origin.url + "/garbage")
        origin.statuses = [403]
        refused(folder, 77, "got 403", origin.url + "/add.pte?signature=secret")
        done = pte_fetch(folder, origin.url.replace("http://", "http://user:secret@") +
                         "/nope?signature=secret")
        expect("no secrets in errors", "secret" in done.stderr, False)
    refused(folder, 77, "", "http://127.0.0.1:1/add.pte")
    for bad in ("http://", "s3://bucket", "hf://owner", "file://relative", "ftp://a/b.pte",
                f"http://a/b#sha256={'0' * 63}", "http://a/b#md5=0"):
        refused(folder, 66, "expected ", bad)
    refused(folder, 64, "expected a URL, got 'add.pte'", "add.pte")


# Four tries, each ended after one or two idle seconds, and 3.5 s of pauses; a slow machine.
BOUND_S = 25


def full_cache(folder):
    """If the cache takes no more bytes, the message names the file, so that its user finds it."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    with Origin() as origin:
        done = pte_fetch(folder, origin.url + "/big.bin", preexec_fn=limit)
        if done.returncode != 74 or not re.search(
                f"cache file {folder}/.*, after 4096 bytes: File too large", done.stderr):
            raise Failure(f"pte fetch into a full cache: {done}")
        expect("nothing but a lock stays",
               [path.suffix for path in Path(folder).iterdir()], [".lock"])
        expect("there is room again", fetched(folder, origin.url + "/big.bin").read_bytes(), BIG)


def bounds(folder):
    """A daemon bounds the bytes of a file and the time without one, and stops when it is told."""
    with Origin() as origin:
        for arguments, status, text in (
                (["--fetch-bytes-max=1M", origin.url + "/endless"], 65, "--fetch-bytes-max"),
                (["--fetch-bytes-max=1000", origin.url + "/add.pte"], 65, "--fetch-bytes-max"),
                (["--fetch-idle-timeout=1s", origin.url + "/stalls"], None,
                 "--fetch-idle-timeout")):
            begin = time.monotonic()
            done = subprocess.run([str(BUILD / "pted"), "--cache-dir", folder,
                                   "--listen=127.0.0.1:0", *arguments], capture_output=True,
                                  text=True, check=False, timeout=60)
            if time.monotonic() - begin > BOUND_S:
                raise Failure(f"{arguments}: ended after {time.monotonic() - begin:.0f} s")
            if text not in done.stderr or done.returncode == 0:
                raise Failure(f"{arguments}: {done.returncode} {done.stderr}")
        stalls = subprocess.Popen([str(BUILD / "pted"), "--cache-dir", folder,
                                   "--listen=127.0.0.1:0", origin.url + "/stalls?2"],
                                  stderr=subprocess.DEVNULL)
        while not any(path == "/stalls?2" for path, _ in origin.requests):
            time.sleep(0.01)
        stalls.terminate()
        stalls.wait(timeout=10)


def add(client, model="add"):
    """The status of a call."""
    client.send(build_request("POST", f"/v2/models/{model}/infer", add_body()))
    return client.answer()


def look_again(daemon, changes):
    """Sends SIGHUP and waits until that change, the |changes|th of the daemon, is complete."""
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for(rf"(?:model files:[\s\S]*?){{{changes}}}")


def served(folder):
    """A daemon serves a URL, looks again at SIGHUP and load, and starts from the cache alone."""
    with Origin() as origin:
        url = f"{origin.url}/add.pte?version=1"
        arguments = [url, "--model", f"other={origin.url}/redirect/add.pte", "--cache-dir", folder]
        with Daemon(arguments) as daemon:
            client = Client(daemon.port)
            expect("named by its path", add(client), 200)
            expect("a name of its own", add(client, "other"), 200)
            series = read(scrape(client))
            expect("fetched", pick(series, "pted_fetches_total", 'result="fetched"'), 2)
            count = len(origin.requests)
            look_again(daemon, 1)
            expect("asked again", len(origin.requests) > count, True)
            expect("goes on", add(client), 200)
            origin.files["/add.pte"] = b"<html>please log in</html>"
            look_again(daemon, 2)
            daemon.wait_for("expected an ExecuTorch program, got another file; its file in the")
            origin.files["/add.pte"] = DATA[:100]
            look_again(daemon, 3)
            daemon.wait_for("the one that was loaded before goes on")
            expect("a bad file leaves the old one", add(client), 200)
            origin.files["/add.pte"] = DATA
            look_again(daemon, 4)
            daemon.wait_for("model files: 2 loaded")
            origin.statuses = [500] * 8
            look_again(daemon, 5)
            daemon.wait_for(r"got 500; its file in the cache is used")
            expect("goes on", add(client), 200)
    with Daemon(arguments) as daemon:  # the server is gone
        daemon.wait_for("its file in the cache is used")
        expect("from the cache", add(Client(daemon.port)), 200)


def documents(folder):
    """A URL in a document, with a data file from a URL; and a load by name."""
    with Origin() as origin:
        data = SHARED / "format_ptd.default_external_constant.ptd"
        net = {"path": origin.url + "/net.pte"}
        origin.files["/net.pte"] = DATA
        if data.exists():
            origin.files["/net.pte"] = (SHARED / "format_ptd.pte").read_bytes()
            origin.files["/net.ptd"] = data.read_bytes()
            net["data"] = [origin.url + "/net.ptd"]
        document = Path(folder) / "pted.json"
        document.write_text(json.dumps({
            "cache_dir": str(Path(folder) / "cache"),
            "models": {"net": net, "add": origin.url + "/add.pte"}}))
        admin = f"{folder}/admin"
        with Daemon(["--config", str(document), "--admin-listen", f"unix:{admin}"]) as daemon:
            client = Client(daemon.port)
            client.send(build_request("GET", "/v2/models/net/ready"))
            expect("net", client.answer(), 200)
            count = len(origin.requests)
            done = subprocess.run(["curl", "-s", "--unix-socket", admin, "-X", "POST",
                                   "http://x/v2/repository/models/add/load"],
                                  capture_output=True, text=True, check=True)
            expect("load", (done.stdout, len(origin.requests)), ("", count + 1))
            del origin.files["/add.pte"]
            done = subprocess.run(["curl", "-s", "--unix-socket", admin, "-X", "POST",
                                   "http://x/v2/repository/models/add/load"],
                                  capture_output=True, text=True, check=True)
            expect("why not", "expected HTTP status 200, got 404" in done.stdout, True)
            expect("goes on", add(client), 200)


def hubs(folder):
    """hf:// has the paths of a hub, its token, and revisions; s3:// is below its endpoint."""
    with Origin() as origin:
        origin.files["/me/net/resolve/main/a/add.pte"] = DATA
        origin.files["/me/net/resolve/v2/add.pte"] = DATA
        origin.files["/bucket/a/add.pte"] = DATA
        hub = ["--hf-endpoint", origin.url]
        fetched(folder, *hub, "hf://me/net/a/add.pte", env={"HF_TOKEN": "the token"})
        expect("token", origin.requests[-1][1]["Authorization"], "Bearer the token")
        fetched(folder, *hub, "hf://me/net@v2/add.pte", env={"HF_TOKEN": ""})
        expect("no token", "Authorization" in origin.requests[-1][1], False)
        keys = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_REGION": "eu-west-3", "AWS_SESSION_TOKEN": "session"}
        store = ["--s3-endpoint", origin.url]
        fetched(folder, *store, "s3://bucket/a/add.pte", env=keys)
        signed = {name.lower(): value for name, value in origin.requests[-1][1].items()}
        expect("signed", "Credential=id/" in signed["authorization"] and
               "/eu-west-3/s3/aws4_request" in signed["authorization"], True)
        expect("session", signed["x-amz-security-token"], "session")
        local = fetched(folder, f"file://{ADD}#sha256={HASH}")
        expect("a local file stays where it is", str(local), ADD)
        missing = pte_fetch(folder, "file:///none.pte")
        expect("a local file that is not there", (missing.returncode, missing.stdout), (66, ""))


def against_moto(folder):
    """moto's S3 takes the signature and gives the file."""
    if not interpreter.has("moto.server", "boto3"):
        print("# skip moto is not installed, see tests/requirements.txt")
        return
    from moto.server import ThreadedMotoServer  # pylint: disable=import-outside-toplevel
    import boto3  # pylint: disable=import-outside-toplevel
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1"}
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1",
                          aws_access_key_id="id", aws_secret_access_key="secret")
    client.create_bucket(Bucket="models")
    client.put_object(Bucket="models", Key="deep/add.pte", Body=DATA)
    try:
        path = fetched(folder, "--s3-endpoint", f"http://{host}:{port}", "s3://models/deep/add.pte",
                       env=keys)
        expect("its bytes", path.read_bytes() == DATA, True)
        refused_key = pte_fetch(folder, "--s3-endpoint", f"http://{host}:{port}",
                                "s3://models/none.pte", env=keys)
        expect("no such key", refused_key.returncode, 66)
    finally:
        server.stop()


def two_at_once(folder):
    """Processes that share a cache download a file once."""
    with Origin() as origin:
        command = [str(BUILD / "pte"), "fetch", "--cache-dir", folder,
                   f"{origin.url}/big.bin#sha256={hashlib.sha256(BIG).hexdigest()}"]
        with subprocess.Popen(command) as first, subprocess.Popen(command) as second:
            expect("both are well", (first.wait(), second.wait()), (0, 0))
        expect("one download", len(origin.requests), 1)


CHECKS = (once_and_again, cut_downloads, bad_answers, full_cache, bounds, served, documents, hubs,
          against_moto, two_at_once)


def main():
    interpreter.has("moto.server", "boto3")  # may begin again with another one
    report = Report()
    for check in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            report.run(check.__name__, check, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
