# SPDX-License-Identifier: MIT
"""A client of HTTP/2 (RFC 9113) that sends each frame it is told to, well formed or not.

Fields are sent as literals without an index (RFC 7541, section 6.2.2). Those that come are read by
the inflater of libnghttp2.
"""
import ctypes
import struct
import sys

from run_http import Client, Failure

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, \
    CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 1, 1, 4, 8, 32
# Identifiers of settings, and codes of errors.
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, \
    MAX_HEADER_LIST_SIZE = range(1, 7)
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED, \
    FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, CONNECT_ERROR, \
    ENHANCE_YOUR_CALM = range(12)


class Field(ctypes.Structure):
    """struct nghttp2_nv."""
    _fields_ = [("name", ctypes.POINTER(ctypes.c_uint8)),
                ("value", ctypes.POINTER(ctypes.c_uint8)),
                ("name_len", ctypes.c_size_t), ("value_len", ctypes.c_size_t),
                ("flags", ctypes.c_uint8)]


class Inflater:
    """Fields of the blocks of one connection."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libnghttp2.so.14")
        except OSError as error:
            print(error, file=sys.stderr)
            sys.exit(77)
        self.library.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
        self.pointer = ctypes.c_void_p()
        self.library.nghttp2_hd_inflate_new(ctypes.byref(self.pointer))

    def inflate(self, block):
        """A list of pairs."""
        fields, at, flags = [], 0, ctypes.c_int(0)
        while at < len(block) or not flags.value & 1:
            field = Field()
            rest = block[at:]
            done = self.library.nghttp2_hd_inflate_hd2(
                self.pointer, ctypes.byref(field), ctypes.byref(flags), rest,
                ctypes.c_size_t(len(rest)), 1)
            if done < 0:
                raise Failure(f"fields that cannot be read: {done}")
            at += done
            if flags.value & 2:
                fields.append((bytes(field.name[:field.name_len]).decode(),
                               bytes(field.value[:field.value_len]).decode("latin-1")))
        self.library.nghttp2_hd_inflate_end_headers(self.pointer)
        return fields


def integer(value, bits, first=0):
    """RFC 7541, section 5.1."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def literal(name, value):
    """A field without an index."""
    texts = [text if isinstance(text, bytes) else text.encode() for text in (name, value)]
    return b"\0" + b"".join(integer(len(text), 7) + text for text in texts)


def block_of(fields):
    return b"".join(literal(name, value) for name, value in fields)


def frame(kind, flags=0, stream=0, payload=b"", size=None):
    """The bytes of a frame; |size|: that it claims to have."""
    size = len(payload) if size is None else size
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def request_fields(method, path, fields=()):
    return [(":method", method), (":scheme", "http"), (":path", path), (":authority", "test"),
            *fields]


def setting(name, value):
    return struct.pack(">HI", name, value)


class Answer:
    """What has come of one stream."""

    def __init__(self):
        self.heads, self.body, self.is_over, self.reset = [], b"", False, None

    @property
    def status(self):
        """The final one; 0: none yet."""
        found = [int(dict(head)[":status"]) for head in self.heads if ":status" in dict(head)]
        return found[-1] if found else 0

    def field(self, name):
        return dict(self.heads[0]).get(name)


class Http2Client:
    """One connection. |gives|: windows are opened as bytes come."""

    def __init__(self, port, settings=b"", gives=True, client=None, preface=PREFACE):
        self.client = client or Client(port)
        self.inflater = Inflater()
        self.answers, self.gives, self.goaway, self.settings = {}, gives, None, {}
        self.pongs, self.acks, self.windows, self.block = [], 0, {}, b""
        self.next, self.sent = 1, {}
        self.client.send(preface + frame(SETTINGS, 0, 0, settings))

    def close(self):
        self.client.close()

    def send(self, *parts):
        self.client.send(b"".join(parts))

    def begin(self, method="GET", path="/v2", fields=(), body=None, ends=True):
        """Sends a request; returns the number of its stream."""
        stream = self.next
        self.next += 2
        flags = END_HEADERS | (END_STREAM if body is None and ends else 0)
        self.send(frame(HEADERS, flags, stream, block_of(request_fields(method, path, fields))))
        self.answers[stream] = Answer()
        for at in range(0, len(body or b""), 16384):
            piece = body[at:at + 16384]
            self.send(frame(DATA, END_STREAM if ends and at + 16384 >= len(body) else 0, stream,
                            piece))
        if body == b"" and ends:
            self.send(frame(DATA, END_STREAM, stream))
        return stream

    def send_body(self, stream, body):
        """In frames, each of which has come before the next one, as the window of the stream
        allows. All of the body goes this way."""
        for at in range(0, len(body), 16384):
            piece = body[at:at + 16384]
            sent = self.sent[stream] = self.sent.get(stream, 0) + len(piece)
            while sent > 65535 + self.windows.get(stream, 0):
                self.read()
            self.send(frame(DATA, 0, stream, piece))
            self.ping()

    def read(self):
        """Takes the next frame: its kind, flags, stream and payload."""
        head = self.client.take(9)
        size = int.from_bytes(head[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        payload = self.client.take(size) if size else b""
        self.note(kind, flags, stream & 0x7fffffff, payload)
        return kind, flags, stream, payload

    def note(self, kind, flags, stream, payload):
        answer = self.answers.setdefault(stream, Answer()) if stream else None
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at:at + 6])
                self.settings[name] = value
            self.send(frame(SETTINGS, ACK))
        elif kind == SETTINGS:
            self.acks += 1
        elif kind == PING and flags & ACK:
            self.pongs.append(payload)
        elif kind == PING:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            self.goaway = struct.unpack(">II", payload[:8]) + (payload[8:],)
        elif kind == WINDOW_UPDATE:
            more = struct.unpack(">I", payload)[0]
            self.windows[stream] = self.windows.get(stream, 0) + more
        elif kind in (HEADERS, CONTINUATION):
            self.block += payload
            if flags & END_HEADERS:
                answer.heads.append(self.inflater.inflate(self.block))
                self.block = b""
        elif kind == DATA:
            answer.body += payload
            if self.gives and payload:
                more = struct.pack(">I", len(payload))
                self.send(frame(WINDOW_UPDATE, 0, 0, more), frame(WINDOW_UPDATE, 0, stream, more))
        elif kind == RST_STREAM:
            answer.reset = struct.unpack(">I", payload)[0]
            answer.is_over = True
        if answer and kind in (HEADERS, DATA) and flags & END_STREAM:
            answer.is_over = True

    def until(self, is_so):
        """Reads frames until |is_so|."""
        while not is_so():
            self.read()

    def answer(self, stream):
        """Waits for all of an answer; returns it."""
        self.until(lambda: self.answers[stream].is_over or self.goaway)
        answer = self.answers[stream]
        if not answer.is_over:
            self.until(lambda: answer.is_over)
        return answer

    def ask(self, *arguments, **named):
        return self.answer(self.begin(*arguments, **named))

    def error(self):
        """Waits for the end of the connection; returns the code of its error."""
        self.until(lambda: self.goaway and self.goaway[1] != NO_ERROR)
        return self.goaway[1]

    def ping(self):
        """Everything sent before has been seen when this returns."""
        count = len(self.pongs)
        self.send(frame(PING, 0, 0, struct.pack(">Q", count)))
        self.until(lambda: len(self.pongs) > count)
