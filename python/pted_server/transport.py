# SPDX-License-Identifier: MIT
"""Requests and answers over HTTP/1.1: connections that are kept, Unix sockets, TLS, errors."""
from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union
from urllib.parse import urlsplit

JOINED_BYTES_MAX = 1 << 16  # a smaller request is one piece, so that it leaves in few packets
SENT_BYTES_MAX = 1 << 20  # at once, since a timeout is for all of what is sent at once
TRUSTED_BYTES_MAX = 1 << 24  # of a length that a server names; for more, memory follows what came
READ_BYTES_MAX = 1 << 16  # of a stream at once
EVENT_BYTES_MAX = 16 << 20
Part = Union[bytes, memoryview]


class ServerError(Exception):
    """pted refused a request, or could not answer it.

    |status| is that of HTTP, |text| says why. After |retry_after| seconds it may be tried again, if
    the server knows that; else it is None.
    """

    def __init__(self, status: int, text: str, retry_after: Optional[float] = None) -> None:
        super().__init__(f"{text} ({status})")
        self.status = status
        self.text = text
        self.retry_after = retry_after


class Answer(NamedTuple):
    """|document| is the JSON; |data| what follows it, of the binary extension."""

    document: Any
    data: memoryview


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float]) -> None:
        super().__init__("localhost", timeout=timeout)
        self.address = "\0" + path[1:] if path.startswith("@") else path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.address)


def is_fresh(connection: http.client.HTTPConnection) -> bool:
    """Has the server nothing to say on an idle connection? Else it has closed it."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


def text_of(body: bytes) -> str:
    """Of an error: {"error": TEXT}, {"error": {"message": TEXT}}, or whatever a proxy says."""
    try:
        error = json.loads(body)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace").strip() or "no reason was given"


def error_of(response: http.client.HTTPResponse, body: bytes) -> ServerError:
    wait = response.getheader("Retry-After", "")
    return ServerError(response.status, text_of(body), float(wait) if wait.isdecimal() else None)


def read_all(response: http.client.HTTPResponse) -> memoryview:
    """The body, in memory that arrays can be made of and written to."""
    if response.length is None:
        return memoryview(bytearray(response.read()))
    length, at = response.length, 0
    body = bytearray(min(length, TRUSTED_BYTES_MAX))
    while at < length:
        if at == len(body):  # it has sent as much as there is memory for
            body.extend(bytes(min(at, length - at)))
        with memoryview(body) as room, room[at:] as rest:
            count = response.readinto(rest)
        if count == 0:
            raise http.client.IncompleteRead(bytes(body[:at]), length - at)
        at += count
    response.read()  # nothing more, which ends the answer
    return memoryview(body)


def answer_of(response: http.client.HTTPResponse, body: memoryview) -> Answer:
    size = int(response.getheader("Inference-Header-Content-Length") or len(body))
    if not 0 <= size <= len(body):
        raise ValueError(f"Inference-Header-Content-Length: expected 0 to {len(body)}, got {size}")
    kind = response.getheader("Content-Type") or ""
    if not size or (kind.startswith("text/") and "json" not in kind):
        return Answer(str(body, "utf-8"), body[size:])
    return Answer(json.loads(bytes(body[:size])), body[size:])


def pieces(parts: Sequence[Part]) -> Iterator[Part]:
    """|parts| as they are sent."""
    if sum(len(part) for part in parts) <= JOINED_BYTES_MAX:
        yield b"".join(parts)
        return
    for part in parts:
        view = memoryview(part)
        for at in range(0, len(view), SENT_BYTES_MAX):
            yield view[at:at + SENT_BYTES_MAX]


def lines_of(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """The lines of a stream, as they come. readline() takes a cut between two chunks for the end;
    read1() does not.
    """
    line = bytearray()
    while True:
        part = response.read1(READ_BYTES_MAX)
        if not part:
            break
        *endings, rest = part.split(b"\n")
        for ending in endings:
            yield bytes(line + ending)
            line.clear()
        line += rest
        if len(line) > EVENT_BYTES_MAX:
            raise ConnectionError(f"an event has more than {EVENT_BYTES_MAX} bytes")
    if response.length:
        raise http.client.IncompleteRead(bytes(line), response.length)
    response.read()  # nothing more, which ends the answer


def is_last(event: Any) -> bool:
    """Of generate; the end of a stream of OpenAI's form is [DONE]."""
    return isinstance(event, dict) and event.get("finish_reason") is not None


class Transport:
    """Connections to one server. Threads may share it: each request has a connection to itself."""

    def __init__(self, url: str, token: Optional[str], timeout: Optional[float],
                 tls: Optional[ssl.SSLContext]) -> None:
        self.url, self.timeout, self.tls = url, timeout, tls
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ValueError("token: expected printable ASCII characters")
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.idle: list[http.client.HTTPConnection] = []
        self.lock = threading.Lock()  # of |idle|
        self.prefix = ""
        self.socket_path = url[len("unix:"):] if url.startswith("unix:") else ""
        if not self.socket_path:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            if parts.scheme not in ("http", "https") or not parts.hostname or url == "unix:":
                raise ValueError(f"url: expected http://HOST:PORT, https:// or unix:PATH, got "
                                 f"{url!r}")
            self.scheme, self.host, self.port = parts.scheme, parts.hostname, parts.port
            self.prefix = parts.path.rstrip("/")

    def connect(self) -> http.client.HTTPConnection:
        if self.socket_path:
            return UnixConnection(self.socket_path, self.timeout)
        if self.scheme == "https":
            return http.client.HTTPSConnection(self.host, self.port or 443, timeout=self.timeout,
                                               context=self.tls)
        return http.client.HTTPConnection(self.host, self.port or 80, timeout=self.timeout)

    def take(self) -> http.client.HTTPConnection:
        """A connection that was kept, or a new one. What has been sent is never sent again."""
        with self.lock:
            while self.idle:
                connection = self.idle.pop()
                if is_fresh(connection):
                    return connection
                connection.close()
        return self.connect()

    def keep(self, connection: http.client.HTTPConnection) -> None:
        """Also drops those that the server has closed, which nothing would ever take."""
        with self.lock:
            stale = [one for one in self.idle if not is_fresh(one)]
            self.idle = [one for one in self.idle if one not in stale] + [connection]
        for one in stale:
            one.close()

    def close(self) -> None:
        with self.lock:
            idle, self.idle = self.idle, []
        for connection in idle:
            connection.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Around code that takes an answer apart.

        Raises ConnectionError if the answer has another form: no pted, or a proxy, wrote it.
        """
        try:
            yield
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as why:
            raise ConnectionError(f"{self.url}: no answer of pted: {why!r}") from why

    @contextlib.contextmanager
    def exchange(self, method: str, path: str, parts: Sequence[Part],
                 headers: Mapping[str, str]) -> Iterator[http.client.HTTPResponse]:
        """Sends a request, and gives its answer to read. The connection is kept if all was read.

        Raises ConnectionError and TimeoutError, and other kinds of OSError.
        """
        connection = self.take()
        response = None
        try:
            response = self.send(connection, method, path, parts, headers)
            yield response
        except socket.timeout as why:  # a TimeoutError since Python 3.10
            text = why.strerror or f"nothing came in {self.timeout:g} s"
            raise TimeoutError(f"{self.url}: {text}") from why
        except ConnectionError:
            raise
        except http.client.HTTPException as why:
            raise ConnectionError(f"{self.url}: {why!r}") from why
        finally:
            if response is not None and response.isclosed() and not response.will_close:
                self.keep(connection)
            else:
                connection.close()

    def send(self, connection: http.client.HTTPConnection, method: str, path: str,
             parts: Sequence[Part], headers: Mapping[str, str]) -> http.client.HTTPResponse:
        size = str(sum(len(part) for part in parts))
        try:
            connection.request(method, self.prefix + path, pieces(parts),
                               {**self.headers, **headers, "Content-Length": size})
        except (BrokenPipeError, ConnectionResetError):
            if connection.sock is None:
                raise
            # It need not read the rest of a body that it refuses; the answer says why.
            with contextlib.suppress(OSError, http.client.HTTPException):
                return connection.getresponse()
            raise
        return connection.getresponse()

    def ask(self, method: str, path: str, parts: Sequence[Part] = (),
            headers: Optional[Mapping[str, str]] = None) -> Answer:
        """Raises ServerError if the status is not one of success."""
        with self.exchange(method, path, parts, headers or {}) as response:
            body = read_all(response)
            if response.status >= 300:
                raise error_of(response, bytes(body))
            with self.reading():
                return answer_of(response, body)

    def events(self, path: str, body: bytes) -> Iterator[Any]:
        """The JSON of each server-sent event. Who stops reading ends the request."""
        headers = {"Content-Type": "application/json"}
        with self.exchange("POST", path, [body], headers) as response:
            if response.status >= 300:
                raise error_of(response, response.read())
            is_ended = False
            for line in lines_of(response):
                word, _, text = line.partition(b":")
                if word != b"data":
                    continue
                if text.strip() == b"[DONE]":
                    is_ended = True
                    continue
                with self.reading():
                    event = json.loads(text)
                if isinstance(event, dict) and event.get("error") is not None:
                    raise ServerError(response.status, text_of(text))
                is_ended = is_ended or is_last(event)
                yield event
            if not is_ended:
                raise ConnectionError(f"{self.url}: the stream was cut")
