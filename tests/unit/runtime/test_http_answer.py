"""The deadline of an answer holds against a server that always has one more byte to send."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from kavka_broker.runtime.http_answer import answer_of
from tests.support.pages import Answer, dripping, serving, whole
from tests.support.secured import certificates

SHORT_SECONDS, LONG_SECONDS = 0.2, 60.0
BYTES_MAX = 1000
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("scheme", "answer"),
    [
        ("http", dripping(OK + b"Content-Length: 999\r\n\r\n", b" ")),
        ("http", dripping(OK + b"\r\n", b" ")),
        ("http", dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n")),
        ("http", dripping(OK, b"X")),
        ("http", dripping(b"", b"")),
        ("https", dripping(b"\x16\x03\x03\x40\x00", b"\x02")),
        ("http", dripping(b"HTTP/1.1 302 Found\r\nLocation: /keys\r\nContent-Length: 0\r\nX: ", b"y")),
    ],
    ids=["body", "body without a length", "chunks", "header", "silence", "handshake", "redirection"],
)
def test_a_server_that_drips_is_given_up_at_the_deadline(scheme: str, answer: Answer) -> None:
    before = threading.active_count()
    with serving(answer, scheme) as url, pytest.raises(TimeoutError, match=r"no whole answer within 0\.2 seconds"):
        answer_of(url, seconds_max=SHORT_SECONDS, bytes_max=BYTES_MAX)
    assert threading.active_count() == before


def test_an_answer_is_read_to_its_bound() -> None:
    before = threading.active_count()
    with serving(whole(OK, b"Content-Length: 5\r\n\r\n", b"12345")) as url:
        assert answer_of(url, seconds_max=LONG_SECONDS, bytes_max=BYTES_MAX) == b"12345"
        assert answer_of(url, seconds_max=LONG_SECONDS, bytes_max=3) == b"123"
    assert threading.active_count() == before


def test_a_redirection_is_followed_to_another_server_and_to_no_file() -> None:
    with serving(whole(OK, b"\r\n", b"keys")) as target:
        for place, reason in ((target, None), ("file:///etc/hostname", "not allowed")):
            found = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()
            with serving(whole(found)) as url:
                if reason is None:
                    assert answer_of(url, seconds_max=LONG_SECONDS, bytes_max=BYTES_MAX) == b"keys"
                else:
                    with pytest.raises(OSError, match=reason):
                        answer_of(url, seconds_max=LONG_SECONDS, bytes_max=BYTES_MAX)


def test_what_is_no_http_and_a_server_that_is_away_are_errors_of_their_own() -> None:
    with serving(whole(b"220 smtp.example ESMTP\r\n")) as url, pytest.raises(OSError, match="no answer of HTTP"):
        answer_of(url, seconds_max=LONG_SECONDS, bytes_max=BYTES_MAX)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(OSError, match="refused"):
        answer_of(f"http://127.0.0.1:{port}/", seconds_max=LONG_SECONDS, bytes_max=BYTES_MAX)


def test_a_page_over_tls_is_read_and_its_authority_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = certificates(tmp_path / "keys", "DNS:localhost,IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys.directory / "broker.pem")

    def answer(accepted: socket.socket, has_ended: threading.Event) -> None:
        with context.wrap_socket(accepted, server_side=True) as wrapped:
            whole(OK, b"Content-Length: 4\r\n\r\n", b"keys")(wrapped, has_ended)

    with serving(answer, "https") as url:
        with pytest.raises(OSError, match="certificate verify failed"):
            answer_of(url, seconds_max=LONG_SECONDS, bytes_max=BYTES_MAX)
        monkeypatch.setenv("SSL_CERT_FILE", str(keys.directory / "ca.crt"))
        assert answer_of(url, seconds_max=LONG_SECONDS, bytes_max=BYTES_MAX) == b"keys"
