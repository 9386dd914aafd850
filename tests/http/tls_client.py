# SPDX-License-Identifier: MIT
"""Certificates that the openssl program makes, and clients of TLS.

A TlsSocket has the functions of a socket that run_http.Client uses. Its TLS lies in memory, so a
test can see and change the records between the two sides.
"""
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

from run_http import TIMEOUT_S, Client, Daemon, Failure

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
RSA = ("-newkey", "rsa:2048", "-nodes")
# Of `openssl ca`, which takes dates in the past; `openssl x509` of OpenSSL 3.5 refuses them.
CA_CONF = """\
[ca]
default_ca = own
[own]
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
[any]
commonName = supplied
"""


def need_openssl():
    """Ends the test if certificates cannot be made."""
    if not shutil.which("openssl"):
        print("the program openssl is missing", file=sys.stderr)
        sys.exit(77)


def openssl(*arguments):
    """Runs openssl and expects success."""
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failure(f"openssl {arguments[0]}: {done.stderr.strip()}")


class Authority:
    """A folder with an authority, and certificates that it has signed."""

    def __init__(self, name="authority"):
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0
        Path(self.path("index.txt")).touch()
        Path(self.path("ca.conf")).write_text(CA_CONF.format(folder=self.folder.name))
        openssl("req", "-x509", *CURVE, "-keyout", self.path("ca.key"), "-out",
                self.path("ca.pem"), "-days", "30", "-subj", f"/CN={name}",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # Python 3.13 wants to see it

    def path(self, name):
        """A file in the folder."""
        return str(Path(self.folder.name) / name)

    @property
    def ca(self):
        """The authority's own certificate."""
        return self.path("ca.pem")

    def sign(self, name, subject="/CN=localhost", key=CURVE, is_expired=False,
             usage="serverAuth"):
        """Makes NAME.key and NAME.pem; returns their paths, the certificate's first."""
        self.count += 1
        extensions = self.path(f"{name}.ext")
        Path(extensions).write_text(f"subjectAltName=DNS:localhost,IP:127.0.0.1\n"
                                    f"extendedKeyUsage={usage}\n")
        openssl("req", "-new", *key, "-keyout", self.path(f"{name}.key"), "-out",
                self.path(f"{name}.csr"), "-subj", subject, "-utf8")
        form = ["-in", self.path(f"{name}.csr"), "-extfile", extensions, "-out",
                self.path(f"{name}.pem")]
        if is_expired:
            openssl("ca", "-batch", "-notext", "-rand_serial", "-config", self.path("ca.conf"),
                    "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", *form)
        else:
            openssl("x509", "-req", "-CA", self.ca, "-CAkey", self.path("ca.key"), "-set_serial",
                    str(self.count), "-days", "30", *form)
        return self.path(f"{name}.pem"), self.path(f"{name}.key")

    def context(self, certificate=None, version=None):
        """For clients that trust this authority; |certificate|: of the client."""
        context = ssl.create_default_context(cafile=self.ca)
        if certificate:
            context.load_cert_chain(*certificate)
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    def close(self):
        """Removes the folder."""
        self.folder.cleanup()


class TlsSocket:
    """A client's side. |piece|: bytes of its records that are sent at a time; 0: all."""

    def __init__(self, port, context, piece=0, session=None):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.piece = piece
        self.is_abrupt = False
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost",
                                    session=session)
        self.run(self.tls.do_handshake)

    def flush(self):
        """Sends the records that wait."""
        data = self.outgoing.read()
        size = self.piece or len(data)
        for at in range(0, len(data), size or 1):
            self.socket.sendall(data[at:at + size])

    def feed(self):
        """Receives some records."""
        data = self.socket.recv(65536)
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()

    def run(self, call, *arguments):
        """Calls a function of the SSLObject until it has what it needs."""
        while True:
            try:
                result = call(*arguments)
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
                self.feed()
            except ssl.SSLError:
                try:
                    self.flush()  # an alert
                except OSError:
                    pass
                raise

    def recv(self, size):
        """Bytes; b"" after close_notify, and also after a cut in the sense of TLS."""
        try:
            return self.run(self.tls.read, size)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def sendall(self, data):
        """Encrypts and sends."""
        view = memoryview(data)
        while view:
            view = view[self.tls.write(view[:16384]):]
            self.flush()

    def notify(self):
        """Sends close_notify, without waiting for the other side's."""
        try:
            self.tls.unwrap()
        except (ssl.SSLWantReadError, ssl.SSLError):
            pass
        try:
            self.flush()
        except OSError:
            pass

    def shutdown(self, _):
        """Nothing more is sent; reading goes on."""
        self.notify()
        self.socket.shutdown(socket.SHUT_WR)

    def setsockopt(self, *arguments):
        """As of a socket. A client that sets SO_LINGER is about to reset the connection."""
        self.is_abrupt = True
        self.socket.setsockopt(*arguments)

    def settimeout(self, seconds):
        """As of a socket."""
        self.socket.settimeout(seconds)

    def close(self):
        """Ends the connection as the protocol wants it."""
        if not self.is_abrupt:
            self.notify()
        self.socket.close()


class TlsClient(Client):
    """run_http.Client over TLS."""

    def __init__(self, port, context, piece=0, session=None):
        self.arguments = context, piece, session
        super().__init__(port)

    def connect(self, port):
        """The socket."""
        return TlsSocket(port, *self.arguments)


class TlsDaemon(Daemon):
    """A daemon whose first address speaks TLS."""

    def __init__(self, arguments, certificate, key, **named):
        super().__init__(["--tls-cert", certificate, "--tls-key", key, *arguments],
                         listen=("--listen", "tls:127.0.0.1:0"), **named)
