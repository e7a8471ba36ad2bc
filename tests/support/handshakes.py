"""Sockets whose TLS handshake has failed, which kafka-python leaves to the garbage collector.

They are to be collected in the test that has made them, where their warnings are ignored, and not in whatever test
comes next.
"""

import gc
import logging
from collections.abc import Iterator

import pytest


def sockets_collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The body of a fixture: no log record holds them, and they are gone when the test has ended."""
    caplog.set_level(logging.CRITICAL + 1, "kafka")
    yield
    gc.collect()
