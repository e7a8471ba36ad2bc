"""The way into a Kafka ends, whatever is there."""

import socket
import threading

import pytest

from kavka_operator.domain.access import Security
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.connection import Patience, connected
from tests.support.handshakes import sockets_collected

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
ENDS_SECONDS_MAX = 60.0

collected = pytest.fixture(autouse=True)(sockets_collected)


def test_who_takes_a_connection_and_says_nothing_is_given_up() -> None:
    said: list[AdminError] = []

    def connect(port: int) -> None:
        try:
            connected(f"127.0.0.1:{port}", Security(is_tls=True), Patience(bootstrap_ms=300, handshake_ms=200))
        except AdminError as error:
            said.append(error.with_traceback(None))

    with socket.create_server(("127.0.0.1", 0)) as silent:
        thread = threading.Thread(target=connect, args=(silent.getsockname()[1],), daemon=True)
        thread.start()
        thread.join(ENDS_SECONDS_MAX)
    (error,) = said
    assert error.retriable, "it may come"
    assert "timed out" in str(error)
