"""A cluster behind a proxy: clients are told the proxy's address, and everything they do goes through it."""

import contextlib
import socket
import threading
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer

from tests.operator.local.support import Kavka, free_ports

SECONDS_MAX = 60.0
RECORDS = 20


class Proxy:
    """Passes bytes on to another port of this machine, and counts its connections."""

    def __init__(self, port: int, target: int) -> None:
        self.connections = 0
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", port))

    def serve(self) -> None:
        """Until the listener is closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            broker = socket.create_connection(("127.0.0.1", self._target))
            for source, sink in ((client, broker), (broker, client)):
                threading.Thread(target=pump, args=(source, sink), daemon=True).start()

    def close(self) -> None:
        """No more connections; those that are there end with their clients."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def pump(source: socket.socket, sink: socket.socket) -> None:
    """All bytes of one direction; at their end both sides end."""
    with source, sink, contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        for each in (source, sink):
            each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def running(proxy: Proxy) -> Iterator[None]:
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield
    finally:
        proxy.close()
        thread.join()


def test_clients_reach_a_cluster_by_what_it_advertises(kavka: Kavka) -> None:
    outside, proxied = free_ports(2)
    file = kavka.file()
    plain = f"- {{name: PLAINTEXT, port: {kavka.port}}}"
    more = f'- {{name: OUTSIDE, port: {outside}, advertised: "localhost:{proxied}"}}'
    file.write_text(file.read_text().replace(plain, f"{more}\n    {plain}"))
    kavka.up(file)
    assert kavka.status()["bootstrapServers"] == f"localhost:{proxied}"
    proxy = Proxy(proxied, outside)
    with running(proxy):
        producer = Producer({"bootstrap.servers": f"localhost:{proxied}", "broker.address.family": "v4"})
        told = producer.list_topics(timeout=SECONDS_MAX).brokers
        assert [(broker.host, broker.port) for broker in told.values()] == [("localhost", proxied)]
        for number in range(RECORDS):
            producer.produce("flights", str(number).encode())
        assert producer.flush(SECONDS_MAX) == 0
        settings = {"bootstrap.servers": f"localhost:{proxied}", "broker.address.family": "v4", "group.id": "g"}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe(["flights"])
        messages = [consumer.poll(SECONDS_MAX) for _ in range(RECORDS)]
        assert all(message is not None and message.error() is None for message in messages)
        consumer.close()
    assert proxy.connections >= 2
