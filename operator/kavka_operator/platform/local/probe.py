"""Does a broker answer? One ApiVersions request, version 0, which every broker since 0.10 understands.

A port that accepts connections says little: it is the first answer that tells that the broker serves. The bytes are
written by hand because this is the only message that is needed before there is a client.
"""

import errno
import socket
import ssl
import struct
from contextlib import ExitStack

API_VERSIONS = 18
CORRELATION = 0x6B61766B
REQUEST = struct.pack(">ihhih", 10, API_VERSIONS, 0, CORRELATION, -1)
RESPONSE_BYTES_MAX = 64 * 1024
TIMEOUT_SECONDS = 1.0


def answers(
    host: str, port: int, timeout_seconds: float = TIMEOUT_SECONDS, context: ssl.SSLContext | None = None
) -> bool:
    """Whether a broker answers at an address, by TLS where a context is given."""
    try:
        with ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection((host, port), timeout_seconds))
            connection.settimeout(timeout_seconds)
            if context is not None:
                connection = stack.enter_context(context.wrap_socket(connection, server_hostname=host))
            connection.sendall(REQUEST)
            (size,) = struct.unpack(">i", _exactly(connection, 4))
            if not 6 <= size <= RESPONSE_BYTES_MAX:
                return False
            correlation, error = struct.unpack(">ih", _exactly(connection, 6))
            return bool(correlation == CORRELATION and error == 0)
    except OSError:
        return False


def port_is_taken(host: str, port: int) -> bool:
    """Whether a server could not bind this port: another one listens on it, or a connection goes out from it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        # As servers do: a connection that is closing does not count.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
            trial.listen()
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes of a connection. Raises ConnectionError."""
    data = b""
    while len(data) < size:
        if not (piece := connection.recv(size - len(data))):
            raise ConnectionError("closed before the answer was whole")
        data += piece
    return data
