"""Configs of a later release than the Apache Kafka that the others are compared with."""

from typing import Final

NEWER_KEYS: Final = frozenset({"max.decompressed.message.bytes"})
"""Of 4.4, with which `tests/conformance/clients/test_largest_records.py` compares it."""
