#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rules of HTTP/2 (RFC 9113) and of its fields (RFC 7541), as a table: frames that a client
sends, and what a real daemon says to them.

A row of RULES has the section, what the client does, its frames, and one outcome:

    connection CODE     the connection ends, with that error
    stream CODE         stream 1 is reset, and the connection goes on
    NUMBER              stream 1 has an answer of that status, and the connection goes on
    NUMBER, the end     likewise, but the connection ends as it should
    ignored             nothing but that the connection goes on

Priorities of RFC 7540 are not in it: RFC 9113 has given them up, and the daemon says so. An outcome
with a note is not the first choice of the RFC; the note says what it allows.

usage: run_http2_rules.py [WORD]: rows that have the word; with top_srcdir and top_builddir in the
    environment.
"""
import struct
import sys

from http2_client import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS,
                          INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE,
                          MAX_HEADER_LIST_SIZE, PADDED, PING, PREFACE, PRIORITIZED, PRIORITY,
                          PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, Http2Client, block_of,
                          frame, integer, literal, request_fields, setting)
from run_daemon import ADD
from run_http import Daemon, Failure, Report, expect

CODES = ("NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED "
         "FRAME_SIZE_ERROR REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR "
         "ENHANCE_YOUR_CALM").split()
ENABLE_PUSH, NO_PRIORITIES = 2, 9  # settings
FRAME_BYTES = 1 << 20  # as the daemon allows them
WINDOW_MAX = (1 << 31) - 1
BOTH = END_HEADERS | END_STREAM

GET = request_fields("GET", "/v2")
POST_CALL = ("POST", "/v2/models/add/infer")
POST = request_fields(*POST_CALL)


def head(fields=GET, flags=BOTH, stream=1, more=b""):
    return frame(HEADERS, flags, stream, block_of(fields) + more)


def post(*fields):
    """The head of a request whose body is to follow."""
    return head([*POST, *fields], END_HEADERS)


def without(name):
    return [field for field in GET if field[0] != name]


def data(payload=b"x", flags=END_STREAM, stream=1):
    return frame(DATA, flags, stream, payload)


def rest(payload=b"", flags=END_HEADERS, stream=1):
    return frame(CONTINUATION, flags, stream, payload)


def reset(stream=1, payload=struct.pack(">I", 8)):
    return frame(RST_STREAM, 0, stream, payload)


def window(by, stream=0):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by))


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(setting(*pair) for pair in pairs))


def priority(stream=1, payload=struct.pack(">IB", 0, 15)):
    return frame(PRIORITY, 0, stream, payload)


def indexed(number):
    """A field of a table (RFC 7541, section 6.1)."""
    return integer(number, 7, 0x80)


def table_size(size):
    """A new size of the table of fields (RFC 7541, section 6.3)."""
    return integer(size, 5, 0x20)


def huffman(text):
    """A field whose value is said to be in Huffman's code (RFC 7541, section 5.2)."""
    return b"\0" + integer(1, 7) + b"x" + integer(len(text), 7, 0x80) + text


FIRST, SECOND = block_of(GET)[:9], block_of(GET)[9:]
ABSENT = request_fields("POST", "/nothing")
NO_WINDOW = settings((INITIAL_WINDOW_SIZE, 0))
IGNORES = "section 5.1 lets a server end the connection; nghttp2 ignores what may be late"
UNKNOWN_KIND, UNKNOWN_FLAGS, UNKNOWN_CODE = 0xfe, 0xc2, 0xfeedf00d

RULES = (
    # ---- frames
    ("4.1", "a frame of an unknown type", [frame(UNKNOWN_KIND, 0, 0, bytes(8))], "ignored"),
    ("4.1", "unknown flags of PING", [frame(PING, UNKNOWN_FLAGS, 0, bytes(8))], "ignored"),
    ("4.1", "unknown flags of a head", [head(flags=BOTH | 0x40)], "200"),
    ("4.1", "the reserved bit of a stream", [head(stream=1 | 1 << 31)], "200"),
    ("4.2", "a frame as long as all peers take", [post(), data(bytes(1 << 14))], "400"),
    ("4.2", "a frame that only some peers take", [post(), data(bytes(60000))], "400"),
    ("4.2", "a longer frame of a body", [post(), frame(DATA, 0, 1, b"", size=FRAME_BYTES + 1)],
     "connection FRAME_SIZE_ERROR"),
    ("4.2", "a longer head", [frame(HEADERS, BOTH, 1, b"", size=FRAME_BYTES + 1)],
     "connection ENHANCE_YOUR_CALM", "so long a head is a flood first: http2_flood.def"),
    ("4.2", "a longer SETTINGS", [frame(SETTINGS, 0, 0, b"", size=FRAME_BYTES + 1)],
     "connection FRAME_SIZE_ERROR"),
    ("4.3", "a block that no list of fields has", [head(more=b"\xff\xff\xff\xff\xff\xff")],
     "connection COMPRESSION_ERROR"),
    ("4.3", "a block that ends in a field", [head(more=b"\0\x01x")],
     "connection COMPRESSION_ERROR"),
    ("4.3", "PRIORITY inside a head", [frame(HEADERS, END_STREAM, 1, FIRST), priority(),
                                       rest(SECOND)], "connection PROTOCOL_ERROR"),
    ("4.3", "a head inside a head", [frame(HEADERS, END_STREAM, 1, FIRST), head(stream=3)],
     "connection PROTOCOL_ERROR"),
    ("4.3", "a body inside a head", [frame(HEADERS, 0, 1, FIRST), data()],
     "connection PROTOCOL_ERROR"),

    # ---- states of streams
    ("5.1", "DATA before any head", [data()], "connection PROTOCOL_ERROR"),
    ("5.1", "RST_STREAM before any head", [reset()], "connection PROTOCOL_ERROR"),
    ("5.1", "WINDOW_UPDATE before any head", [window(1, 1)], "connection PROTOCOL_ERROR"),
    ("5.1", "CONTINUATION before any head", [rest(block_of(GET))], "connection PROTOCOL_ERROR"),
    ("5.1", "DATA behind the end of a request", [NO_WINDOW, head(), data()],
     "connection STREAM_CLOSED"),
    ("5.1", "a head behind the end of a request", [NO_WINDOW, head(), head()],
     "connection STREAM_CLOSED"),
    ("5.1", "DATA behind an answer", [head(), data()], "200", IGNORES),
    ("5.1", "a head behind an answer", [head(), head()], "200", IGNORES),
    ("5.1", "CONTINUATION behind the end of a request", [head(), rest(block_of(GET))],
     "connection PROTOCOL_ERROR"),
    ("5.1", "WINDOW_UPDATE behind the end of a request", [head(), window(1, 1)], "200"),
    ("5.1", "RST_STREAM behind the end of a request", [head(), reset()], "200"),
    ("5.1", "DATA behind RST_STREAM", [post(), reset(), data()], "ignored", IGNORES),
    ("5.1", "a head behind RST_STREAM", [post(), reset(), head()], "ignored", IGNORES),
    ("5.1", "CONTINUATION behind RST_STREAM", [post(), reset(), rest(block_of(GET))],
     "connection PROTOCOL_ERROR"),
    ("5.1", "WINDOW_UPDATE behind RST_STREAM", [post(), reset(), window(1, 1)], "ignored"),
    ("5.1", "RST_STREAM twice", [post(), reset(), reset()], "ignored"),
    ("5.1", "PRIORITY of any stream", [priority(7), head(), priority(1), priority(9)], "200"),
    ("5.1.1", "a stream with an even number", [head(stream=2)], "connection PROTOCOL_ERROR"),
    ("5.1.1", "a stream with a lower number", [head(stream=5), head(stream=1)], "ignored",
     "nghttp2 cannot tell it from one that is over, whose trailers may be on their way"),
    ("5.5", "a frame of an unknown type inside a head",
     [frame(HEADERS, END_STREAM, 1, FIRST), frame(UNKNOWN_KIND, 0, 0, bytes(8)), rest(SECOND)],
     "connection PROTOCOL_ERROR"),
    ("5.5", "an unknown type of an open stream", [post(), frame(UNKNOWN_KIND, 0, 1, b"any"),
                                                  data(b"{}")], "400"),

    # ---- DATA
    ("6.1", "of stream 0", [data(stream=0)], "connection PROTOCOL_ERROR"),
    ("6.1", "padding as long as the frame",
     [post(), frame(DATA, PADDED | END_STREAM, 1, b"\5abcd")], "connection PROTOCOL_ERROR"),
    ("6.1", "padding without room for its length", [post(), frame(DATA, PADDED | END_STREAM, 1)],
     "connection PROTOCOL_ERROR", "nghttp2 takes it for padding that is too long"),
    ("6.1", "padding alone", [post(), frame(DATA, PADDED | END_STREAM, 1, b"\3" + bytes(3))],
     "400"),
    ("6.1", "padding behind bytes", [post(("content-length", "2")),
                                     frame(DATA, PADDED | END_STREAM, 1, b"\3{}" + bytes(3))],
     "400"),

    # ---- HEADERS
    ("6.2", "of stream 0", [head(stream=0)], "connection PROTOCOL_ERROR"),
    ("6.2", "padding as long as the frame",
     [frame(HEADERS, BOTH | PADDED, 1, bytes([len(block_of(GET)) + 1]) + block_of(GET))],
     "connection PROTOCOL_ERROR"),
    ("6.2", "padding", [frame(HEADERS, BOTH | PADDED, 1, b"\4" + block_of(GET) + bytes(4))], "200"),
    ("6.2", "padding and a priority",
     [frame(HEADERS, BOTH | PADDED | PRIORITIZED, 1,
            b"\4" + struct.pack(">IB", 0, 15) + block_of(GET) + bytes(4))], "200"),
    ("6.2", "a priority without room", [frame(HEADERS, BOTH | PRIORITIZED, 1, b"\0\0\0")],
     "connection FRAME_SIZE_ERROR"),

    # ---- PRIORITY, of which the length and the stream still count
    ("6.3", "of stream 0", [priority(0)], "connection PROTOCOL_ERROR"),
    ("6.3", "of 4 bytes", [post(), priority(1, bytes(4))], "connection FRAME_SIZE_ERROR"),

    # ---- RST_STREAM
    ("6.4", "of stream 0", [reset(0)], "connection PROTOCOL_ERROR"),
    ("6.4", "of 3 bytes", [post(), reset(1, bytes(3))], "connection FRAME_SIZE_ERROR"),
    ("6.4", "with a code that nobody knows", [post(), reset(1, struct.pack(">I", UNKNOWN_CODE))],
     "ignored"),

    # ---- SETTINGS
    ("6.5", "an ACK with bytes", [frame(SETTINGS, ACK, 0, bytes(6))],
     "connection FRAME_SIZE_ERROR"),
    ("6.5", "of a stream", [frame(SETTINGS, 0, 1)], "connection PROTOCOL_ERROR"),
    ("6.5", "of 3 bytes", [frame(SETTINGS, 0, 0, bytes(3))], "connection FRAME_SIZE_ERROR"),
    ("6.5.2", "ENABLE_PUSH of 2", [settings((ENABLE_PUSH, 2))], "connection PROTOCOL_ERROR"),
    ("6.5.2", "a window beyond 2^31 - 1", [settings((INITIAL_WINDOW_SIZE, 1 << 31))],
     "connection FLOW_CONTROL_ERROR"),
    ("6.5.2", "frames below 2^14", [settings((MAX_FRAME_SIZE, (1 << 14) - 1))],
     "connection PROTOCOL_ERROR"),
    ("6.5.2", "frames beyond 2^24 - 1", [settings((MAX_FRAME_SIZE, 1 << 24))],
     "connection PROTOCOL_ERROR"),
    ("6.5.2", "a setting that nobody knows", [settings((0xff, 1)), head()], "200"),
    ("6.5.3", "the last value counts",
     [settings((INITIAL_WINDOW_SIZE, 0), (INITIAL_WINDOW_SIZE, 1 << 16)), head()], "200"),

    # ---- PUSH_PROMISE
    ("6.6", "of a client", [post(), frame(PUSH_PROMISE, END_HEADERS, 1,
                                          struct.pack(">I", 2) + block_of(GET))],
     "connection PROTOCOL_ERROR"),

    # ---- PING
    ("6.7", "an ACK that nobody asked for", [frame(PING, ACK, 0, b"whatever")], "ignored"),
    ("6.7", "of a stream", [frame(PING, 0, 1, bytes(8))], "connection PROTOCOL_ERROR"),
    ("6.7", "of 6 bytes", [frame(PING, 0, 0, bytes(6))], "connection FRAME_SIZE_ERROR"),

    # ---- GOAWAY
    ("6.8", "of a stream", [frame(GOAWAY, 0, 1, bytes(8))], "connection PROTOCOL_ERROR"),
    ("6.8", "of 7 bytes", [frame(GOAWAY, 0, 0, bytes(7))], "connection FRAME_SIZE_ERROR"),
    ("6.8", "with a text beyond 16 KiB", [frame(GOAWAY, 0, 0, b"", size=16385)],
     "connection FRAME_SIZE_ERROR"),
    ("7", "with a code that nobody knows, beside a request",
     [head(), frame(GOAWAY, 0, 0, struct.pack(">II", 0, UNKNOWN_CODE))], "200, the end"),

    # ---- WINDOW_UPDATE
    ("6.9", "by 0, of the connection", [window(0)], "connection PROTOCOL_ERROR"),
    ("6.9", "by 0, of a stream", [post(), window(0, 1)], "connection PROTOCOL_ERROR",
     "section 5.4: errors of a stream may end the connection"),
    ("6.9", "of 3 bytes", [frame(WINDOW_UPDATE, 0, 0, bytes(3))], "connection FRAME_SIZE_ERROR"),
    ("6.9.1", "the connection's beyond 2^31 - 1", [window(WINDOW_MAX), window(1)],
     "connection FLOW_CONTROL_ERROR"),
    ("6.9.1", "a stream's beyond 2^31 - 1", [post(), window(WINDOW_MAX, 1)],
     "stream FLOW_CONTROL_ERROR"),
    ("6.9.2", "a stream's beyond 2^31 - 1 by SETTINGS",
     [settings((INITIAL_WINDOW_SIZE, 1)), post(), window(WINDOW_MAX - 1, 1),
      settings((INITIAL_WINDOW_SIZE, 2))], "stream FLOW_CONTROL_ERROR",
     "nghttp2 ends the stream alone; its window is never used"),
    ("6.9", "more bytes than a window has",
     [head(ABSENT, END_HEADERS), *[data(bytes(16384), 0)] * 5], "stream FLOW_CONTROL_ERROR"),

    # ---- CONTINUATION
    ("6.10", "several frames", [frame(HEADERS, END_STREAM, 1, FIRST), rest(SECOND[:5], 0),
                                rest(b"", 0), rest(SECOND[5:])], "200"),
    ("6.10", "of another stream", [frame(HEADERS, END_STREAM, 1, FIRST), rest(SECOND, stream=3)],
     "connection PROTOCOL_ERROR"),
    ("6.10", "of stream 0", [frame(HEADERS, END_STREAM, 1, FIRST), rest(SECOND, stream=0)],
     "connection PROTOCOL_ERROR"),
    ("6.10", "behind a whole head", [post(), rest(block_of([("x-a", "1")]))],
     "connection PROTOCOL_ERROR"),
    ("6.10", "behind a last one", [frame(HEADERS, 0, 1, FIRST), rest(SECOND), rest(b"")],
     "connection PROTOCOL_ERROR"),
    ("6.10", "behind a body", [post(), data(flags=0), rest(b"")], "connection PROTOCOL_ERROR"),

    # ---- requests
    ("8.1", "a second head that does not end the stream", [post(), head(flags=END_HEADERS)],
     "stream PROTOCOL_ERROR"),
    ("8.1", "trailers", [post(), data(b"{}", 0), head([("x-check", "1")])], "400"),
    ("8.1", "trailers with a pseudo-field", [post(), data(b"{}", 0), head([(":method", "GET")])],
     "stream PROTOCOL_ERROR"),
    ("8.2.1", "a name in capitals", [head([*GET, ("X-Test", "1")])], "stream PROTOCOL_ERROR"),
    ("8.2.1", "a name with a space", [head([*GET, ("x test", "1")])], "stream PROTOCOL_ERROR"),
    ("8.2.1", "a name without a letter", [head([*GET, ("", "1")])], "stream PROTOCOL_ERROR"),
    ("8.2.1", "a value with a line feed", [head([*GET, ("x-test", "1\n2")])],
     "stream PROTOCOL_ERROR"),
    ("8.2.1", "a value with a zero byte", [head([*GET, ("x-test", "1\0")])],
     "stream PROTOCOL_ERROR"),
    ("8.2.1", "a value with a space around", [head([*GET, ("x-test", " 1")])],
     "stream PROTOCOL_ERROR"),
    ("8.2.2", "Connection", [head([*GET, ("connection", "keep-alive")])],
     "stream PROTOCOL_ERROR"),
    ("8.2.2", "Keep-Alive", [head([*GET, ("keep-alive", "5")])], "stream PROTOCOL_ERROR"),
    ("8.2.2", "Proxy-Connection", [head([*GET, ("proxy-connection", "close")])],
     "stream PROTOCOL_ERROR"),
    ("8.2.2", "Transfer-Encoding", [head([*POST, ("transfer-encoding", "chunked")])],
     "stream PROTOCOL_ERROR"),
    ("8.2.2", "Upgrade", [head([*GET, ("upgrade", "websocket")])], "stream PROTOCOL_ERROR"),
    ("8.2.2", "TE of trailers", [head([*GET, ("te", "trailers")])], "200"),
    ("8.2.2", "another TE", [head([*GET, ("te", "trailers, deflate")])], "stream PROTOCOL_ERROR"),
    ("8.3", "an unknown pseudo-field", [head([*GET, (":test", "1")])], "stream PROTOCOL_ERROR"),
    ("8.3", "a pseudo-field of answers", [head([*GET, (":status", "200")])],
     "stream PROTOCOL_ERROR"),
    ("8.3", "a pseudo-field behind others", [head([*GET[:3], ("x-test", "1"), GET[3]])],
     "stream PROTOCOL_ERROR"),
    ("8.3.1", "an empty :path", [head([*without(":path"), (":path", "")])],
     "stream PROTOCOL_ERROR"),
    ("8.3.1", "a :path without a slash", [head([*without(":path"), (":path", "v2")])],
     "stream PROTOCOL_ERROR"),
    *(("8.3.1", f"no {name}", [head(without(name))], "stream PROTOCOL_ERROR")
      for name in (":method", ":scheme", ":path")),
    *(("8.3.1", f"{name} twice", [head([*GET, next(f for f in GET if f[0] == name)])],
       "stream PROTOCOL_ERROR") for name in (":method", ":scheme", ":path", ":authority")),
    ("8.3.1", "Host and no :authority", [head([*without(":authority"), ("host", "test")])], "200"),
    ("8.3.1", "neither Host nor :authority", [head(without(":authority"))],
     "stream PROTOCOL_ERROR"),
    ("8.3.1", "OPTIONS of all", [head([(":method", "OPTIONS"), (":scheme", "http"), (":path", "*"),
                                       (":authority", "test")])], "400"),
    ("8.5", "CONNECT", [head([(":method", "CONNECT"), (":authority", "test")], END_HEADERS)],
     "400"),
    ("8.5", "CONNECT with a :path", [head([(":method", "CONNECT"), *GET[1:]])],
     "stream PROTOCOL_ERROR"),
    ("8.1.1", "fewer bytes than content-length", [post(("content-length", "3")), data(b"{}")],
     "stream PROTOCOL_ERROR"),
    ("8.1.1", "more bytes than content-length",
     [post(("content-length", "3")), data(b"{}", 0), data(b"{}")], "stream PROTOCOL_ERROR"),
    ("8.1.1", "content-length without a body", [head([*POST, ("content-length", "3")])],
     "stream PROTOCOL_ERROR"),
    ("8.1.1", "two content-lengths",
     [post(("content-length", "2"), ("content-length", "2")), data(b"{}")],
     "stream PROTOCOL_ERROR"),
    ("8.1.1", "content-length that is no number", [post(("content-length", "2a")), data(b"{}")],
     "stream PROTOCOL_ERROR"),

    # ---- fields (RFC 7541)
    ("HPACK 2.3.3", "an index beyond the tables", [head(more=indexed(70))],
     "connection COMPRESSION_ERROR"),
    ("HPACK 2.3.3", "a name by an index beyond the tables", [head(more=integer(70, 4) + b"\1x")],
     "connection COMPRESSION_ERROR"),
    ("HPACK 4.2", "a size of the table behind a field", [head(more=table_size(0))],
     "connection COMPRESSION_ERROR"),
    ("HPACK 4.2", "sizes of the table in front of fields",
     [frame(HEADERS, BOTH, 1, table_size(0) + table_size(4096) + block_of(GET))], "200"),
    ("HPACK 5.1", "an integer without an end", [head(more=b"\x1f" + b"\xff" * 10)],
     "connection COMPRESSION_ERROR"),
    ("HPACK 5.2", "padding of more than 7 bits", [head(more=huffman(b"\x1f\xff\xff"))],
     "connection COMPRESSION_ERROR"),
    ("HPACK 5.2", "padding of zeros", [head(more=huffman(b"\x1c\x64\x00"))],
     "connection COMPRESSION_ERROR"),
    ("HPACK 5.2", "the end of a string in it", [head(more=huffman(b"\xff\xff\xff\xff"))],
     "connection COMPRESSION_ERROR"),
    ("HPACK 5.2", "a right one", [head(more=huffman(b"\x1f"))], "200"),
    ("HPACK 6.1", "index 0", [head(more=indexed(0))], "connection COMPRESSION_ERROR"),
    ("HPACK 6.1", "all by the table",
     [frame(HEADERS, BOTH, 1, indexed(2) + indexed(6) + literal(":path", "/v2") +
            literal(":authority", "test"))], "200"),
    ("HPACK 6.2.1", "fields that the table keeps",
     [frame(HEADERS, BOTH, 1, b"".join(b"\x40" + literal(*field)[1:] for field in GET)),
      frame(HEADERS, BOTH, 3, b"".join(indexed(62 + at) for at in (3, 2, 1, 0)))], "200"),
    ("HPACK 6.2.3", "a field that is never kept", [head(more=b"\x10" + literal("x-a", "1")[1:])],
     "200"),
    ("HPACK 6.3", "a size beyond the limit",
     [frame(HEADERS, BOTH, 1, table_size(4097) + block_of(GET))], "connection COMPRESSION_ERROR"),
)


def outcome(port, frames):
    """What the daemon says to |frames|, in the words of the table."""
    client = Http2Client(port)
    client.ping()  # its settings are known to both
    is_ended = False
    try:
        client.send(*frames)
        client.ping()
        client.ping()  # what the first one overtook is out
        if client.goaway is None and 1 in client.answers and not client.answers[1].reset:
            client.until(lambda: client.goaway or client.answers[1].is_over)
    except (Failure, ConnectionError):
        is_ended = True
    if client.goaway and client.goaway[1]:
        return f"connection {CODES[client.goaway[1]]}"
    answer = client.answers.get(1)
    said = "ignored"
    if answer and answer.reset is not None:
        said = f"stream {CODES[answer.reset]}"
    elif answer and answer.status:
        said = str(answer.status)
    return f"{said}, the end" if is_ended else said


def check(port, frames, expected):
    expect("the outcome", outcome(port, frames), expected)


def settings_of_the_daemon():
    """They come first, and say what a client may do (section 6.5.2, and RFC 9218, section 2.1)."""
    with Daemon([ADD, "--stream-count-max=7", "--header-bytes-max=20K"]) as daemon:
        client = Http2Client(daemon.port)
        expect("the first frame", client.read()[:3], (SETTINGS, 0, 0))
        expect("them", client.settings, {MAX_CONCURRENT_STREAMS: 7, MAX_FRAME_SIZE: FRAME_BYTES,
                                         MAX_HEADER_LIST_SIZE: 20 << 10, NO_PRIORITIES: 1})
        client.ping()
        expect("the client's are acknowledged", client.acks, 1)


def preface():
    """A client begins with SETTINGS (section 3.4)."""
    with Daemon([ADD]) as daemon:
        ping = PREFACE + frame(PING, 0, 0, bytes(8))
        client = Http2Client(daemon.port, preface=ping)
        expect("another frame", client.error(), CODES.index("PROTOCOL_ERROR"))


def too_many_streams():
    """One too many is refused; a client that knows the limit breaks it on purpose (5.1.2, 5.4)."""
    with Daemon([ADD, "--stream-count-max=2"]) as daemon:
        client = Http2Client(daemon.port)
        first, _, third = [client.begin(*POST_CALL, ends=False) for _ in range(3)]
        client.until(lambda: client.answers[third].reset is not None)
        expect("the third", client.answers[third].reset, CODES.index("REFUSED_STREAM"))
        client.send(data(b"{}", stream=first))
        expect("the first", client.answer(first).status, 400)
        expect("another one", client.ask().status, 200)
        client.begin(*POST_CALL, ends=False)
        client.begin(*POST_CALL, ends=False)
        expect("on purpose", client.error(), CODES.index("PROTOCOL_ERROR"))


def windows_of_answers():
    """An answer is as long as its window, which SETTINGS change also below zero (section 6.9.2)."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 3), gives=False)
        stream = client.begin()
        answer = client.answers[stream]
        client.ping()
        client.ping()
        expect("three bytes", len(answer.body), 3)
        client.send(settings((INITIAL_WINDOW_SIZE, 1)), window(2, stream))
        client.ping()
        client.ping()
        expect("a window of 0", len(answer.body), 3)
        client.send(window(1, stream))
        client.until(lambda: len(answer.body) > 3)
        expect("a byte", len(answer.body), 4)
        client.send(settings((INITIAL_WINDOW_SIZE, 1 << 20)))
        expect("all of it", len(client.answer(stream).body), int(answer.field("content-length")))


def rules(report, word):
    with Daemon([ADD]) as daemon:
        for section, what, frames, expected, *_ in RULES:
            if word in f"{section} {what}":
                report.run(f"{section}: {what}", check, daemon.port, frames, expected)


def main(word=""):
    report = Report()
    if not word:
        report.run_all((settings_of_the_daemon, preface, too_many_streams, windows_of_answers))
    report.run("the daemon survives", rules, report, word)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
