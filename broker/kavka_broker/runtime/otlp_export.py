"""Posts what clients push to an OpenTelemetry collector, from a thread."""

from typing import Final

SECONDS_MAX: Final = 10.0
ANSWER_BYTES_MAX: Final = 64 * 1024
CONTENT_TYPE: Final = "application/x-protobuf"


def post_to(endpoint: str, push: bytes, seconds_max: float = SECONDS_MAX) -> None:
    """Post a push. Raises OSError where the collector does not take it, or has not answered by the deadline."""
    # Imported by the first push: few brokers send any, and the modules of HTTP cost each start some 30 ms.
    from urllib.request import Request

    from kavka_broker.runtime.http_answer import answer_of

    # That the address is one of HTTP says the check of the config.
    request = Request(endpoint, push, {"Content-Type": CONTENT_TYPE}, method="POST")  # noqa: S310
    answer_of(request, seconds_max=seconds_max, bytes_max=ANSWER_BYTES_MAX)
