"""A push is posted to a collector as it is, and a collector that does not take it in time is an error."""

import pytest

from kavka_broker.runtime.otlp_export import post_to
from tests.support.collector import collecting
from tests.support.pages import dripping, serving


def test_a_push_is_posted() -> None:
    with collecting() as collector:
        post_to(collector.endpoint, b"push")
    assert collector.received == [("/v1/metrics", "application/x-protobuf", b"push")]


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_collector_that_does_not_take_it_is_an_error(status: int) -> None:
    with collecting(status) as collector, pytest.raises(OSError, match=str(status)):
        post_to(collector.endpoint, b"push")


def test_a_collector_that_never_ends_its_answer_is_given_up() -> None:
    answer = dripping(b"HTTP/1.1 200 OK\r\n\r\n", b" ")
    with serving(answer) as url, pytest.raises(TimeoutError, match="no whole answer"):
        post_to(url, b"push", seconds_max=0.2)
