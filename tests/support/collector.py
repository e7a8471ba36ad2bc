"""A collector of OpenTelemetry's metrics, as far as a broker that posts to it can tell."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


class Collector(HTTPServer):
    """A collector that answers with a status."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), CollectorHandler)
        self.status = status
        self.received: list[tuple[str, str, bytes]] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/metrics"


class CollectorHandler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers["Content-Type"], body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


@contextmanager
def collecting(status: int = 200) -> Iterator[Collector]:
    with Collector(status) as collector:
        thread = threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()
