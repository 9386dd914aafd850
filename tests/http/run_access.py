#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tokens, their scopes and limits, and pages of other origins, against a real daemon.

usage: run_access.py, with top_srcdir and top_builddir in the environment.
"""
import hashlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run_daemon import ADD, add_body, expect_exit
from run_http import BUILD, Client, Daemon, Report, build_request, expect
from run_metrics import pick, read

INFER, READ, ADMIN = "infer-token", "read-token", "admin-token"


def line(name, scopes, token, *limits):
    """A line of the file."""
    return " ".join([name, scopes, "sha256:" + hashlib.sha256(token.encode()).hexdigest(), *limits])


class Guarded:
    """A daemon with a token file. Entering it returns the object."""

    def __init__(self, *arguments, lines=None):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "tokens"
        self.write(*(lines or (line("ci", "infer", INFER), "", "# people",
                               line("alice@example", "read", READ),
                               line("root", "infer,read,admin", ADMIN))))
        self.daemon = Daemon([ADD, "--token-file", str(self.path), *arguments])

    def write(self, *lines):
        """Replaces the file."""
        self.path.write_text("\n".join(lines) + "\n")

    def reload(self, said):
        """Sends SIGHUP and waits for a new line of the log."""
        begin = len(self.daemon.read_log())
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.wait_for(said, begin)

    def __enter__(self):
        self.daemon.__enter__()
        return self

    def __exit__(self, *why):
        try:
            self.daemon.__exit__(*why)
        finally:
            self.folder.cleanup()


def ask(client, method, target, token=None, body=b"", fields=()):
    """The status."""
    fields = list(fields) + ([f"Authorization: Bearer {token}"] if token else [])
    client.send(build_request(method, target, body, fields))
    return client.answer()


def infer(client, token=None, fields=()):
    """The status of a call."""
    return ask(client, "POST", "/v2/models/add/infer", token, add_body(), fields)


def scopes():
    """Each route wants its scope; health wants none."""
    with Guarded() as guarded:
        client = Client(guarded.daemon.port)
        rows = (("POST", "/v2/models/add/infer", add_body(), {INFER, ADMIN}),
                ("GET", "/v2/models/add", b"", {READ, ADMIN}),
                ("GET", "/metrics", b"", {READ, ADMIN}),
                ("POST", "/v2/repository/index", b"", {READ, ADMIN}),
                ("POST", "/v2/repository/models/add/load", b"", {ADMIN}))
        for method, target, body, good in rows:
            for token in (INFER, READ, ADMIN):
                status = ask(client, method, target, token, body)
                expect(f"{target} with {token}", status, 200 if token in good else 403)
                expect("nothing to wait for", client.field("retry-after"), None)
                if token not in good:
                    expect("challenge", client.field("www-authenticate"),
                           'Bearer error="insufficient_scope"')
            expect("without", ask(client, method, target, None, body), 401)
            expect("challenge", client.field("www-authenticate"), "Bearer")
        for target in ("/v2/health/live", "/v2/health/ready"):
            expect(target, ask(client, "GET", target), 200)
        expect("no such path", ask(client, "GET", "/nope"), 404)
        expect("why", ask(client, "GET", "/v2/models/add", INFER), 403)
        expect("text", json.loads(client.body)["error"],
               "the token of ci lacks the scope read")
        for token, known in ((READ, ["read"]), (ADMIN, ["infer", "read", "admin"])):
            expect("scopes", ask(client, "GET", "/v2", token), 200)
            expect("says its scopes", json.loads(client.body)["scopes"], known)
        series = read(scrape_with(client, READ))
        expect("denied", pick(series, "pted_denied_requests_total", 'reason="no token"'), 5)
        expect("scope", pick(series, "pted_denied_requests_total", 'reason="scope"') > 5, True)


def scrape_with(client, token):
    """The page of metrics."""
    expect("metrics", ask(client, "GET", "/metrics", token), 200)
    return client.body.decode()


def guesses():
    """A token that is nearly right is not known, however long it is."""
    with Guarded() as guarded:
        client = Client(guarded.daemon.port)
        for guess in (INFER[:-1], INFER + "x", INFER.upper(), "x", "x" * 511, "x" * 513,
                      "x" * 8000, '"', "\\", "%00", "sha256:" + "0" * 64,
                      hashlib.sha256(INFER.encode()).hexdigest()):
            expect("guess", infer(client, guess), 401)
            expect("challenge", client.field("www-authenticate"), 'Bearer error="invalid_token"')
        for fields in (["Authorization: Bearer"], ["Authorization: Bearer "],
                       [f"Authorization: Basic {INFER}"], [f"Authorization: {INFER}"],
                       [f"Authorization: Bearer {INFER}"] * 2, [f"Authorization: Bearer{INFER}"]):
            expect(str(fields), infer(client, None, fields), 401)
        expect("the case of the scheme", infer(client, None, [f"authorization: bEARER  {INFER} "]),
               200)


def limits():
    """A token has a rate with a burst, and a number of requests at a time."""
    lines = (line("slow", "infer", INFER, "rate=1", "burst=3"),
             line("narrow", "infer", ADMIN, "running=1"), line("seer", "read", READ))
    with Guarded(lines=lines) as guarded:
        client = Client(guarded.daemon.port)
        statuses = [infer(client, INFER) for _ in range(4)]
        expect("a burst, then the rate", statuses, [200, 200, 200, 429])
        expect("Retry-After", client.field("retry-after"), "1")
        expect("text", json.loads(client.body)["error"],
               "token slow: expected at most 1 requests a second")
        time.sleep(1.1)
        expect("a second later", infer(client, INFER), 200)
        slow = Client(guarded.daemon.port)
        request = build_request("POST", "/v2/models/add/infer", add_body(),
                                [f"Authorization: Bearer {ADMIN}"])
        slow.send(request[:-5])
        expect("others run", infer(client, INFER) in (200, 429), True)
        expect("one at a time", wait_for_status(client, ADMIN, 429), True)
        slow.send(request[-5:])
        expect("the first", slow.answer(), 200)
        expect("the next", infer(client, ADMIN), 200)
        slow.send(request[:-5])
        expect("again", wait_for_status(client, ADMIN, 429), True)
        slow.reset()
        expect("a client that leaves gives its place back", wait_for_status(client, ADMIN, 200),
               True)
        series = read(scrape_with(client, READ))
        refused = pick(series, "pted_token_requests_total", 'token="narrow"', 'result="refused"')
        expect("refused", refused >= 2, True)
        expect("admitted", pick(series, "pted_token_requests_total", 'token="seer"',
                                'result="admitted"'), 1)


def wait_for_status(client, token, status):
    """True: a call has that status before long."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if infer(client, token) == status:
            return True
    return False


def reloads():
    """SIGHUP reads the file again; a bad one is refused, and the old one goes on."""
    with Guarded() as guarded:
        client = Client(guarded.daemon.port)
        expect("before", infer(client, INFER), 200)
        guarded.write(line("ci", "infer", "fresh"))
        guarded.reload("SIGHUP: looking for changed models")
        expect("the fresh one", wait_for_status(client, "fresh", 200), True)
        expect("the old one", infer(client, INFER), 401)
        for bad, said in ((line("a b", "infer", "x"), "expected scopes"),
                          (line("a", "infer,write", "x"), "expected scopes"),
                          (line("a/b", "infer", "x"), "expected a name of 1 to 64 letters"),
                          ("a infer sha256:12", "expected sha256: and 64"),
                          (line("a", "infer", "x", "rate=0"), "rate: expected 1 to 1000000"),
                          (line("a", "infer", "x", "speed=1"), "expected rate=N, burst=N or"),
                          (line("a", "infer", "fresh") + "\n" + line("b", "read", "fresh"),
                           "an earlier line has the same token: a")):
            guarded.write("# two", bad)
            guarded.reload(f"SIGHUP: {re.escape(str(guarded.path))}:[23]: {re.escape(said)}")
            expect("the old file goes on", infer(client, "fresh"), 200)
        guarded.path.unlink()
        guarded.reload("SIGHUP: token file .*: No such file or directory")
        expect("the old file goes on", infer(client, "fresh"), 200)
    expect_exit(66, "token file /none: No such file or directory", ADD, "--token-file=/none")


def open_to_all():
    """A start warns of each address that others can reach without showing who they are."""
    local = ["--listen", "127.0.0.1:0"]
    warning = r"0\.0\.0\.0:\d+: everyone who reaches it may {} the models"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens"
        path.write_text(line("ci", "infer", INFER) + "\n")
        for options, words in (([], []), (["--listen", "0.0.0.0:0"], ["call"]),
                               (["--listen", "0.0.0.0:0", "--token-file", str(path)], []),
                               (["--admin-listen", "0.0.0.0:0", "--token-file", str(path)],
                                ["change"]),
                               (["--admin-listen", f"unix:{folder}/admin"], []),
                               (["--health-listen", "0.0.0.0:0"], [])):
            with Daemon([*options, ADD], listen=local) as daemon:
                daemon.wait_for("serving 1 of 1 models")
                log = daemon.read_log()
                expect(f"{options}", log.count("everyone who reaches it"), len(words))
                for word in words:
                    expect(f"{options}", bool(re.search(warning.format(word), log)), True)


def administrators():
    """The admin listener asks for no token; elsewhere changes need one, or are refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"unix:{folder}/admin"
        with Guarded("--admin-listen", path):
            done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                                   "--unix-socket", path[5:], "-X", "POST",
                                   "http://x/v2/repository/models/add/load"],
                                  capture_output=True, text=True, check=True)
            expect("over the socket", done.stdout, "200")
    with Daemon([ADD]) as daemon:
        expect("without a token file",
               ask(Client(daemon.port), "POST", "/v2/repository/models/add/load"), 403)


def made_by_pte():
    """`pte token` makes a token and its line; the access log has its name."""
    done = subprocess.run([str(BUILD / "pte"), "token", "made", "infer"], capture_output=True,
                          text=True, check=True)
    token = done.stderr.strip()
    expect("its form", re.fullmatch(r"pted_[0-9a-f]{64}", token) is not None, True)
    expect("its line", done.stdout, line("made", "infer", token) + "\n")
    with Guarded("--access-log=all", lines=[done.stdout]) as guarded:
        expect("infer", infer(Client(guarded.daemon.port), token), 200)
        text = guarded.daemon.wait_for(r'\n(\{"time":.*\})\n')[1]
        expect("its name", json.loads(text)["token"], "made")
        expect("no secret in the log", token in text, False)
    for arguments, said in (([], "expected a name"), (["a", "infer", "c"], "got 'c' as well"),
                            (["--x"], "--x"), (["a b"], "got 'a b'"), (["x" * 65], "1 to 64"),
                            (["a", "infr"], "got 'infr'"), (["a", "infer, read"], "scopes"),
                            (["a", "read,"], "scopes"), (["a", ""], "scopes")):
        done = subprocess.run([str(BUILD / "pte"), "token", *arguments], capture_output=True,
                              text=True, check=False)
        expect(f"pte token {arguments}", (done.returncode, done.stdout, said in done.stderr),
               (64, "", True))


def pages():
    """CORS: pages of named origins may call and read, others may not."""
    origin = "https://app.example.org"
    with Guarded("--cors-origin", origin, "--cors-origin", "http://localhost:3000") as guarded:
        client = Client(guarded.daemon.port)
        wanted = ["Access-Control-Request-Method: POST"]
        for target in ("/v2/models/add/infer", "/anything"):
            expect("preflight", ask(client, "OPTIONS", target, None, b"",
                                    [f"Origin: {origin}", *wanted]), 200)
            expect("origin", client.field("access-control-allow-origin"), origin)
            expect("methods", client.field("access-control-allow-methods"), "GET, HEAD, POST")
            allowed = client.field("access-control-allow-headers").lower()
            expect("fields", "authorization" in allowed and "content-type" in allowed, True)
        expect("another page", ask(client, "OPTIONS", "/v2/models/add/infer", None, b"",
                                   ["Origin: https://evil.example", *wanted]), 405)
        expect("no origin", client.field("access-control-allow-origin"), None)
        expect("varies", client.field("vary"), "Origin")
        expect("a call", infer(client, INFER, [f"Origin: {origin}"]), 200)
        expect("origin", client.field("access-control-allow-origin"), origin)
        expect("exposes", "X-Request-Id" in client.field("access-control-expose-headers"), True)
        expect("an error", infer(client, "wrong", [f"Origin: {origin}"]), 401)
        expect("is readable too", client.field("access-control-allow-origin"), origin)
        expect("a call of another page", infer(client, INFER, ["Origin: null"]), 200)
        expect("is not", client.field("access-control-allow-origin"), None)
    with Daemon([ADD, "--cors-origin=*"]) as daemon:
        client = Client(daemon.port)
        expect("any page", infer(client, None, ["Origin: https://x.example"]), 200)
        expect("origin", client.field("access-control-allow-origin"), "*")
    with Daemon([ADD]) as daemon:
        client = Client(daemon.port)
        expect("not asked for", infer(client, None, [f"Origin: {origin}"]), 200)
        expect("nothing", (client.field("access-control-allow-origin"), client.field("vary")),
               (None, None))
    for wrong in ("example.org", "https://", "https://a/b", "https://a b"):
        expect_exit(64, f"--cors-origin: expected https://HOST[:PORT] or *, got '{wrong}'", ADD,
                    "--cors-origin", wrong)


def of_page(client, target, host, origin=None, body=b"{}"):
    """The status of a request that a page of |origin| sends to |host|."""
    fields = [f"Origin: {origin}"] if origin is not None else []
    client.send(build_request("POST", target, body, fields, host))
    return client.answer()


def pages_at_admin_addresses():
    """A page of another origin cannot change the models; programs, and the console, can. What a
    name means can change, so a name does not make a page the daemon's own."""
    page = "https://app.example.org"
    with Daemon([ADD, "--admin-listen=127.0.0.1:0", "--cors-origin", page]) as daemon:
        client = Client(daemon.admin_port())
        for host, origin, want in (
                ("test", None, 200), ("evil.example", None, 200), ("test", page, 200),
                ("127.0.0.1:80", "http://127.0.0.1:80", 200), ("[::1]:80", "http://[::1]:80", 200),
                ("localhost", "https://LOCALHOST", 200), ("localhost:8", "http://localhost:8", 200),
                ("127.0.0.1:80", "http://127.0.0.1:81", 403), ("127.0.0.1", "null", 403),
                ("127.0.0.1", "http://127.0.0", 403), ("127.0.0.1", "http://evil.example", 403),
                ("127.0.0.1", "http://", 403), ("127.0.0.1", "", 403),
                ("evil.example:80", "http://evil.example:80", 403),
                ("evil.example", "https://evil.example", 403),
                ("localhost.evil.example", "http://localhost.evil.example", 403),
                ("127.0.0.1.evil.example", "http://127.0.0.1.evil.example", 403)):
            for target in ("/v2/repository/models/add/load", "/v2/logging"):
                expect(f"{target} at {host} of {origin}", of_page(client, target, host, origin),
                       want)
            expect(f"a call at {host} of {origin}",
                   of_page(client, "/v2/models/add/infer", host, origin, add_body()), 200)
        of_page(client, "/v2/logging", "test", "http://evil.example")
        expect("the reason", "expected a page of a --cors-origin, or of this address by its number "
               "or as localhost (with TLS, by any name), got one of 'http://evil.example'"
               in client.body.decode(), True)


CHECKS = (scopes, guesses, limits, reloads, open_to_all, administrators, made_by_pte, pages,
          pages_at_admin_addresses)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
